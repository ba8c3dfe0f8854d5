//! Diagnostics for findings about accesses.

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::inst::{Action, Footprint};
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind, Step as TrailStep};
use nki_isa::schema::Role;
use nki_isa::tensor::Tensor;
use nki_isa::{Imm, Inst, Program, Space, TensorId, View, Violation};

use super::independent::Dependent;
use super::lost::Lost;
use super::overlap::{SameAddress, SameRow, SharedAddress, indices};
use super::skips::GROUP;
use super::walk::Step;
use crate::exec::{iterations, name_of};
use crate::labels::Labels;

fn at(diagnostic: Diagnostic, loc: Loc, label: impl Into<String>) -> Diagnostic {
    diagnostic.at_source(loc, label)
}

fn beside(diagnostic: Diagnostic, loc: Loc, label: impl Into<String>) -> Diagnostic {
    diagnostic.with_source(loc, label)
}

/// Whether the instruction reads from HBM.
pub(super) fn is_load(node: &Node) -> bool {
    let NodeKind::Inst(inst) = &node.kind else { return false };
    let mut from_hbm = false;
    inst.each_view(&mut |operand, view| from_hbm |= operand.role == Role::In && view.space.is_hbm());
    from_hbm && inst.values().are_moved()
}

/// The value with which an instruction fills its destination; `None` for other instructions.
pub(super) fn filled(node: &Node) -> Option<Imm> {
    match &node.kind {
        NodeKind::Inst(inst) => match inst.action() {
            Action::Fills(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The result of an instruction is lost, `times` out of `executed` executions of its line.
pub(super) fn lost(program: &Program, l: &Lost<'_>, times: usize, executed: usize) -> Diagnostic {
    let tensor = program.tensor(l.tensor);
    let (inst, name) = (name_of(l.node), &tensor.name);
    let loc = l.node.loc;
    let fills = filled(l.node).is_some();
    let mut out = match l.over {
        Some(over) => {
            if fills {
                let (by, line) = (name_of(over), over.loc.line);
                let message = format!(
                    "`{inst}` has no effect: `{by}` on line {line} overwrites all of `{name}` that it writes before anything reads it"
                );
                let out = at(Diagnostic::warning("overwritten-before-read", message), loc, format!("fills `{name}`"));
                beside(out, over.loc, "overwrites it").help("remove it, or fill only the elements that nothing else writes")
            } else {
                let by = name_of(over);
                let what = if over.loc == loc {
                    "what it wrote there the last time this line ran".to_owned()
                } else {
                    format!("what `{inst}` on line {} wrote there", loc.line)
                };
                let message = format!("`{by}` overwrites `{name}`: nothing has read {what}");
                let out = at(
                    Diagnostic::warning("overwritten-before-read", message),
                    over.loc,
                    format!("overwrites `{name}`"),
                );
                let out = if over.loc == loc { out } else { beside(out, loc, "the result that is lost") };
                if over.loc == loc && program.outputs.iter().any(|o| o.tensor == l.tensor) {
                    out.help(format!(
                        "each iteration writes the same elements of the output: index `{name}` with the loop variable"
                    ))
                } else {
                    out.help("read it first, write to another buffer, or remove the first write")
                }
            }
        }
        None if is_load(l.node) => at(
            Diagnostic::warning("dead-load", format!("nothing reads what `{inst}` loads into `{name}`")),
            loc,
            format!("loads `{name}`"),
        )
        .help("remove the transfer, or check that the instruction meant to read its data names the right tensor and index"),
        None => at(
            Diagnostic::warning("dead-store", format!("nothing reads what `{inst}` writes to `{name}`")),
            loc,
            format!("writes `{name}`"),
        )
        .help(unread(program, tensor)),
    };
    out = beside(out, tensor.loc, format!("`{name}` is allocated here"));
    if executed > 1 {
        let often = if times == executed { format!("all {executed}") } else { format!("{times} of the {executed}") };
        out = out.note(format!("{often} times that line {} runs", loc.line));
    }
    if let Some(where_) = iterations(program, l.node, &l.loops) {
        out = out.note(format!("first: in {where_}"));
    }
    out
}

/// Advice for a result that nothing reads. A tensor written in HBM is usually meant to be an output.
fn unread(program: &Program, tensor: &Tensor) -> String {
    let name = &tensor.name;
    if tensor.space != Space::SharedHbm {
        return "remove the instruction, or check that the instruction meant to read its result names the right tensor and index".into();
    }
    let returns =
        if program.outputs.is_empty() { "the kernel returns nothing" } else { "the kernel does not return it" };
    format!("{returns}: write `return {name}` to make it an output, or remove the instruction")
}

/// An operand without effect or with a probably unintended value.
pub(super) fn operand_finding(program: &Program, node: &Node, why: &Violation) -> Diagnostic {
    let message = format!("`{}`: {}", name_of(node), why.message);
    let mut out = at(Diagnostic::warning(why.id, message), node.loc, format!("`{}`", why.operand));
    if !why.help.is_empty() {
        out = out.help(why.help.as_str());
    }
    match iterations(program, node, &[]) {
        Some(where_) => out.note(format!("first: in {where_}")),
        None => out,
    }
}

/// The operand that an instruction writes with this view.
fn operand(inst: &Inst, view: &View) -> &'static str {
    let mut name = None;
    inst.each_view(&mut |schema, v| {
        if name.is_none() && v == view && matches!(schema.role, Role::Out | Role::InOut) {
            name = Some(schema.name);
        }
    });
    name.unwrap_or("dst")
}

/// Two elements of a destination have the same address according to its static dimensions.
pub(super) fn same_address(program: &Program, step: &Step<'_, '_>, view: &View, twice: SameAddress) -> Diagnostic {
    let (inst, name) = (name_of(step.node), &program.tensor(view.tensor).name);
    let operand = operand(step.inst, view);
    let message = format!(
        "`{inst}` writes elements {} and {} of `{operand}` to the same address of `{name}`: which one remains is undefined",
        indices(view, twice.first),
        indices(view, twice.second)
    );
    let out = at_tensor(program, step, view, Diagnostic::warning("overlapping-write", message), "writes")
        .help("write to a view in which every element has an address of its own: no broadcast, no stride of 0");
    with_iterations(out, program, step)
}

/// Two results of an instruction share an address.
pub(super) fn shared_results(
    program: &Program,
    step: &Step<'_, '_>,
    (a, b): (&View, &View),
    shared: SharedAddress,
) -> Diagnostic {
    let (inst, name) = (name_of(step.node), &program.tensor(a.tensor).name);
    let (first, second) = (operand(step.inst, a), operand(step.inst, b));
    let message = format!(
        "`{inst}` writes element {} of `{first}` and element {} of `{second}` to the same address of `{name}`: which one remains is undefined",
        indices(a, shared.first),
        indices(b, shared.second)
    );
    let out = at_tensor(program, step, a, Diagnostic::warning("overlapping-write", message), "writes")
        .help(format!("write `{second}` to a tile of its own, or to a part of `{name}` that `{first}` does not write"));
    with_iterations(out, program, step)
}

/// A matmul continues a sum that has been read.
pub(super) fn continued_sum(program: &Program, node: &Node, dst: &View, reader: &Node) -> Diagnostic {
    let (inst, name) = (name_of(node), &program.tensor(dst.tensor).name);
    let message = format!(
        "`{inst}` without `accumulate` adds to the sum in `{name}` that `{}` on line {} has read: it does not start a new sum",
        name_of(reader),
        reader.loc.line
    );
    let out = at(Diagnostic::warning("accumulation-after-read", message), node.loc, format!("adds to `{name}`"));
    let tensor = program.tensor(dst.tensor).loc;
    let out = beside(beside(out, reader.loc, "reads the sum"), tensor, format!("`{name}` is allocated here"))
        .help("allocate the tile where the sum starts, or start it with accumulate=False; use accumulate=True if the sum continues");
    match iterations(program, node, &[]) {
        Some(where_) => out.note(format!("first: in {where_}")),
        None => out,
    }
}

/// A matmul in a dynamic loop writes to a tile from outside that only the loop uses: it is unspecified whether each iteration starts a sum.
pub(super) fn sum_of_iterations(program: &Program, node: &Node, tensor: TensorId, header: &Node) -> Diagnostic {
    let tensor = program.tensor(tensor);
    let (inst, name) = (name_of(node), &tensor.name);
    let message = format!(
        "`{inst}` without `accumulate` starts a new sum in `{name}` in each iteration here, but `{name}` is allocated outside of the dynamic loop on line {}: the device may continue the sum of the previous iteration",
        header.loc.line
    );
    let out =
        at(Diagnostic::warning("accumulation-after-read", message), node.loc, format!("starts a sum in `{name}`"));
    beside(out, tensor.loc, format!("`{name}` is allocated here")).help(
        "allocate the tile in the loop body, or start with accumulate=False; use accumulate=True if the sum continues",
    )
}

/// Accumulators of an engine are read before anything has set them.
pub(super) fn unset_accumulators(
    program: &Program,
    (node, spoiled_by): (&Node, Option<&Node>),
    loops: &[(Loc, u32)],
    (engine, part): (Engine, Option<(u32, u32)>),
    (core, cores): (u32, usize),
) -> Diagnostic {
    let name = if engine == Engine::Scalar { "scalar engine" } else { "vector engine" };
    let on = if cores > 1 { format!(" of core {core}") } else { String::new() };
    let why = match spoiled_by {
        Some(by) => format!(
            "after `{}` on line {}, which ran idle and may have changed them; they are NaN here",
            name_of(by),
            by.loc.line
        ),
        None => "before anything has set them; they are 0 here".to_owned(),
    };
    let of = match part {
        Some((count, first)) => format!(" in {count} of its partitions, the first is {first},"),
        None => String::new(),
    };
    let message = format!("`{}` continues from the accumulators of the {name}{on}{of} {why}", name_of(node));
    let out = at(Diagnostic::warning("uninitialized-read", message), node.loc, "reads the accumulators")
        .note("the device continues from whatever was left there")
        .help("start with reduce_cmd=nisa.reduce_cmd.reset_reduce");
    match iterations(program, node, loops) {
        Some(where_) => out.note(format!("in {where_}")),
        None => out,
    }
}

/// A sum in the accumulators of an engine is lost: `over` resets them, or nothing reads them out.
pub(super) fn lost_sum(
    program: &Program,
    (node, over): (&Node, Option<&Node>),
    loops: &[(Loc, u32)],
    engine: Engine,
    (core, cores): (u32, usize),
) -> Diagnostic {
    let name = if engine == Engine::Scalar { "scalar engine" } else { "vector engine" };
    let on = if cores > 1 { format!(" of core {core}") } else { String::new() };
    let (inst, loc) = (name_of(node), node.loc);
    let out = match over {
        Some(over) => {
            let line =
                if over.loc == loc { "the last time this line ran".into() } else { format!("on line {}", loc.line) };
            let message = format!(
                "`{}` resets the accumulators of the {name}{on}: nothing has read the reduction that `{inst}` left there {line}",
                name_of(over)
            );
            let out = at(Diagnostic::warning("overwritten-before-read", message), over.loc, "resets the accumulators");
            if over.loc == loc { out } else { beside(out, loc, "the reduction that is lost") }
        }
        None => {
            let message =
                format!("nothing reads the reduction that `{inst}` leaves in the accumulators of the {name}{on}");
            at(Diagnostic::warning("dead-store", message), loc, "reduces into the accumulators")
        }
    };
    let out =
        out.help("pass `reduce_res`, or continue with reduce_cmd=nisa.reduce_cmd.reduce and pass it to the last call");
    match iterations(program, node, loops) {
        Some(where_) => out.note(format!("first: in {where_}")),
        None => out,
    }
}

/// A core exchanges tiles with itself.
pub(super) fn own_exchange(program: &Program, step: &Step<'_, '_>, (to, from): (i64, i64)) -> Diagnostic {
    let (inst, core) = (name_of(step.node), i64::from(step.core));
    let what = match (to == core, from == core) {
        (true, true) => "sends to core {} and receives from it",
        (true, false) => "sends to core {}",
        _ => "receives from core {}",
    }
    .replace("{}", &core.to_string());
    let message = format!("`{inst}` on core {core} {what}, which is itself: the instruction is for two cores");
    let out = at(Diagnostic::warning("unexpected-values", message), step.node.loc, "exchanges with its own core")
        .note("the simulator copies `src` to `dst`; the device need not")
        .help("the other core is 1 - nl.program_id(0); copy within a core with nisa.tensor_copy");
    with_iterations(out, program, step)
}

/// An element of a destination is also read at another position.
pub(super) fn crossing(
    program: &Program,
    step: &Step<'_, '_>,
    (dst, src): (&View, &View),
    crossing: SharedAddress,
) -> Diagnostic {
    let (inst, name) = (name_of(step.node), &program.tensor(dst.tensor).name);
    let message = format!(
        "`{inst}` reads what it writes: element {} of its destination in `{name}` is element {} of its source, and whether the old or the new value is read is undefined",
        indices(dst, crossing.first),
        indices(src, crossing.second)
    );
    let finding = Diagnostic::warning("overlapping-operands", message);
    let out = at_tensor(program, step, dst, finding, "reads and writes")
        .help("write to another tensor, or to views that do not overlap; the simulator reads the old values");
    with_iterations(out, program, step)
}

/// Two entries of an index name the same row of a destination.
pub(super) fn same_row(program: &Program, step: &Step<'_, '_>, view: &View, same: SameRow) -> Diagnostic {
    let (inst, name) = (name_of(step.node), &program.tensor(view.tensor).name);
    let SameRow { partition, first, second, value, repeats } = same;
    let mut footprint = Footprint::default();
    step.inst.footprint(&mut footprint);
    let (does, undefined) = if footprint.reads.contains(&view) {
        ("adds to", "whether both are added")
    } else {
        ("writes", "which one remains")
    };
    let message = match partition {
        None => format!(
            "`{inst}` {does} row {value} of `{name}` twice: entries {first} and {second} of the index are both {value}, and {undefined} is undefined"
        ),
        Some(p) => format!(
            "`{inst}` {does} an element of `{name}` twice: offsets {first} and {second} of partition {p} are both {value}, and {undefined} is undefined"
        ),
    };
    let mut out = at_tensor(program, step, view, Diagnostic::warning("overlapping-write", message), "writes");
    if repeats > 1 {
        out = out.note(format!("{repeats} entries repeat an earlier one"));
    }
    out = out.help("make the entries distinct, or add up the rows with the same index before they are written");
    with_iterations(out, program, step)
}

/// A transposing gather skips one entry of its index (the first) but not another of the same group.
pub(super) fn mixed_skip(
    program: &Program,
    step: &Step<'_, '_>,
    view: &View,
    (skipped, moved): (usize, usize),
) -> Diagnostic {
    let (inst, name) = (name_of(step.node), &program.tensor(view.tensor).name);
    let first = skipped - skipped % GROUP;
    let message = format!(
        "`{inst}` skips entry {skipped} of the index of `{name}`, but not entry {moved}: hardware aborts a transposing DMA if it skips some of the entries {first} to {}, but not all",
        first + GROUP - 1
    );
    let out = at_tensor(program, step, view, Diagnostic::warning("mixed-skip", message), "skips rows of");
    let out = out.help(format!(
        "pad the index with a valid row up to a multiple of {GROUP}, and ignore the columns of the result"
    ));
    with_iterations(out, program, step)
}

/// An iteration of a loop declared independent reads data written by another one.
pub(super) fn dependent(program: &Program, found: &Dependent<'_>) -> Diagnostic {
    let Dependent { reader, writer, tensor, read_in, written_in } = found;
    let (inst, tensor) = (name_of(reader), program.tensor(*tensor));
    let text = |step: &TrailStep| match step {
        TrailStep::Iteration { variable, value, .. } => format!("{variable} = {value}"),
        _ => String::new(),
    };
    let message = format!(
        "`{inst}` in iteration {} of an affine_range reads elements of `{}` that iteration {} has written",
        text(read_in),
        tensor.name,
        text(written_in)
    );
    let out = at(Diagnostic::warning("affine-dependence", message), reader.loc, format!("reads `{}`", tensor.name));
    let out = beside(out, writer.loc, "written here");
    let out = match read_in {
        TrailStep::Iteration { loc, .. } => beside(out, *loc, "declares the iterations independent"),
        _ => out,
    };
    out.help("loop over nl.sequential_range: the older compiler may run iterations of an affine_range in any order")
}

/// Attaches a finding to the instruction, and to the declaration of the tensor of `view`; `does` describes the relation.
fn at_tensor(program: &Program, step: &Step<'_, '_>, view: &View, finding: Diagnostic, does: &str) -> Diagnostic {
    let tensor = program.tensor(view.tensor);
    let out = at(finding, step.node.loc, format!("{does} `{}`", tensor.name));
    beside(out, tensor.loc, format!("`{}` is allocated here", tensor.name))
}

fn with_iterations(out: Diagnostic, program: &Program, step: &Step<'_, '_>) -> Diagnostic {
    match iterations(program, step.node, step.loops) {
        Some(where_) => out.note(format!("in {where_}")),
        None => out,
    }
}
