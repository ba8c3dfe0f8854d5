//! Diagnostics of a run, with location and iteration.

use nki_diag::{Advice, Diagnostic};
use nki_isa::ids::{Loc, RegId, TensorId};
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind, Step};
use nki_isa::schema::{OperandSchema, Role};
use nki_isa::shape::{coordinates, index_text};
use nki_isa::{Arch, Fault, Program, View, Violation};
use rustc_hash::FxHashSet;

use super::limits::MEMORY_LIMIT;
use super::overwrites::Overwritten;
use super::taint::{Reached, keeps_what_it_reads};
use super::trips;
use super::unlinked::Crossing;
use crate::deps::Hazard;
use crate::labels::Labels;
use crate::lint::overlap::address;
use crate::memory::access::{Access, Accumulation, Unwritten};
use crate::memory::account::Account;
use crate::memory::{Clobbered, Memory};
use crate::trace::Trace;

/// The findings of a run, without repeats.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Diagnostic>,
    /// (location of the instruction, location of the tensor): unrolled iterations repeat findings.
    seen: FxHashSet<(Loc, Loc)>,
    seen_registers: FxHashSet<(Loc, RegId)>,
    /// (location of the instruction, operand): unexpected values.
    seen_values: FxHashSet<(Loc, &'static str)>,
    /// Indices in the list: reads of unwritten memory by instructions that only pass it on.
    passed_on: Vec<usize>,
    /// (location of the read, location of the overwriting write).
    seen_clobbers: FxHashSet<(Loc, Loc)>,
}

impl Findings {
    /// Starts with findings from before the run.
    pub(super) fn starting_with(list: &[Diagnostic]) -> Self {
        Findings { list: list.to_vec(), ..Findings::default() }
    }
}

/// The iterations around a statement: by name and value for unrolled loops, by number for dynamic loops.
pub(crate) fn iterations(program: &Program, node: &Node, dynamic: &[(Loc, u32)]) -> Option<String> {
    // The target of a loop may be several names, and `while` has no target.
    let text = |step: &Step| match step {
        Step::Iteration { variable, value, .. } if variable.is_empty() => Some(format!("iteration {value}")),
        Step::Iteration { variable, value, is_count: true, .. } => Some(format!("iteration {value} of `{variable}`")),
        Step::Iteration { variable, value, .. } => Some(format!("{variable} = {value}")),
        _ => None,
    };
    let mut parts: Vec<String> = program.iteration_steps(node.trail).into_iter().filter_map(text).collect();
    parts.extend(dynamic.iter().map(|(loc, i)| format!("iteration {i} of the dynamic loop at line {}", loc.line)));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Whether an instruction only writes tensors and accumulators: it sets no register.
fn passes_on(node: &Node) -> bool {
    let NodeKind::Inst(inst) = &node.kind else { return false };
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    !footprint.writes.is_empty() && !keeps_what_it_reads(&footprint)
}

/// The operand by which an instruction reads a view.
struct Operand {
    /// Its name in the schema.
    name: &'static str,
    /// The partition (on chip) or element (HBM) of the operand at which the view starts, if the view is only a part of
    /// it: instructions read scales quadrant by quadrant, and of a buffer to be sent only what is sent.
    part: Option<usize>,
}

/// The name of the instruction, and the operand by which it reads this view. `None`: the view is an index.
fn operand(node: &Node, view: &View) -> (&'static str, Option<Operand>) {
    let mut all = operands(node);
    // A matmul also reads its destination.
    all.sort_by_key(|(schema, _)| schema.role == Role::Out);
    let whole = all.iter().find(|(_, v)| *v == view).map(|(schema, _)| Operand { name: schema.name, part: None });
    let part = || all.iter().find_map(|(schema, v)| Some(Operand { name: schema.name, part: Some(part_of(view, v)?) }));
    (name_of(node), whole.or_else(part))
}

/// The memory operands of an instruction, in schema order.
pub(super) fn operands(node: &Node) -> Vec<(&'static OperandSchema, &View)> {
    let mut out = Vec::new();
    if let NodeKind::Inst(inst) = &node.kind {
        inst.each_view(&mut |schema, view| out.push((schema, view)));
    }
    out
}

/// The operand for a message.
fn name(operand: Option<Operand>) -> String {
    operand.map_or_else(|| "its index".to_owned(), |o| format!("`{}`", o.name))
}

/// The first partition of another view that a view consists of, or the first element of a flat one in HBM. `None` if it is no such part.
fn part_of(view: &View, of: &View) -> Option<usize> {
    if (view.tensor, view.dtype) != (of.tensor, of.dtype) {
        return None;
    }
    if of.space.is_on_chip() {
        let same_columns = view.offset == of.offset && view.dims[1..] == of.dims[1..];
        return view.partition.checked_sub(of.partition).filter(|_| same_columns).map(|first| first as usize);
    }
    let first = usize::try_from(view.offset - of.offset).ok()?;
    (view.indirect.is_none() && first + view.elements() <= of.elements()).then_some(first)
}

/// The index `[i, j]` of an element of a tensor, from its row-major number.
pub(super) fn position(shape: &[u32], element: usize) -> String {
    index_text(&coordinates(shape.iter().map(|&n| n as usize), element))
}

/// The instruction's name.
pub(crate) fn name_of(node: &Node) -> &'static str {
    match &node.kind {
        NodeKind::Inst(inst) => inst.schema().name,
        _ => "loop",
    }
}

/// The context of a finding in the program.
#[derive(Clone, Copy)]
pub(super) struct Place<'p, 'l> {
    pub(super) program: &'p Program,
    pub(super) node: &'p Node,
    /// The dynamic loops around it, with the iteration of each.
    pub(super) loops: &'l [(Loc, u32)],
}

impl Place<'_, '_> {
    /// The iterations around it.
    fn iterations(&self) -> Option<String> {
        iterations(self.program, self.node, self.loops)
    }

    /// The finding with a note of the iterations.
    fn note_iterations(&self, finding: Diagnostic) -> Diagnostic {
        match self.iterations() {
            Some(iterations) => finding.note(format!("in {iterations}")),
            None => finding,
        }
    }
}

impl Findings {
    /// Checks a read for bytes overwritten through another tensor, and for unwritten bytes. Returns whether there are
    /// unwritten ones.
    pub(super) fn check_read(
        &mut self,
        account: &mut Account<'_, '_>,
        at: Place<'_, '_>,
        view: &View,
        access: &Access,
    ) -> bool {
        if let Some(clobbered) = account.clobbered(access) {
            self.clobbered(at, view, clobbered);
        }
        let gap = account.find_unwritten(access);
        if let Some(gap) = gap {
            self.uninitialized(at, view, gap);
        }
        gap.is_some()
    }

    /// Checks the accumulation target of a matmul: before trn3, a matmul must have written it.
    pub(super) fn check_accumulation(
        &mut self,
        account: &Account<'_, '_>,
        at: Place<'_, '_>,
        dst: &View,
        to: &Access,
        what: Accumulation,
    ) {
        if what.foreign
            && !Arch::of(at.program.target).accumulates_onto_any_write
            && account.find_unwritten(to).is_none()
        {
            self.foreign_accumulation(at, dst);
        }
    }

    /// An instruction reads unwritten bytes.
    pub(super) fn uninitialized(&mut self, at: Place<'_, '_>, view: &View, gap: Unwritten) {
        let Place { program, node, .. } = at;
        let tensor = program.tensor(view.tensor);
        if !self.seen.insert((node.loc, tensor.loc)) {
            return;
        }
        let (inst, operand) = operand(node, view);
        if operand.is_some() && passes_on(node) {
            self.passed_on.push(self.list.len());
        }
        // Of a part, only the elements that are missing are known.
        let part = operand.as_ref().and_then(|o| o.part);
        let of_total = part.map_or_else(|| format!(" of {}", view.elements()), |_| String::new());
        let operand = name(operand);
        let first = if view.space.is_on_chip() {
            format!("partition {}, element {} of the access", part.unwrap_or(0) + gap.row, gap.element)
        } else {
            format!("element {} of the access", part.unwrap_or(0) + gap.row * view.free_elements() + gap.element)
        };
        let reads = if !tensor.dtype.is_int() { "NaN" } else { "the pattern 4" };
        let out = Diagnostic::warning(
            "uninitialized-read",
            format!(
                "`{inst}` reads {}{of_total} elements of {operand} (`{}`) before anything has written them; first: {first}",
                gap.elements, tensor.name
            ),
        )
        .at_source(node.loc, format!("reads `{}`", tensor.name))
        .with_source(tensor.loc, format!("`{}` is allocated here, uninitialised", tensor.name))
        .note(format!("the simulator reads {reads} there, or 0 with NKI_SIM_UNWRITTEN=zero; the device reads whatever was left there"));
        self.list.push(at.note_iterations(out));
    }

    /// Drops reads that only passed on unwritten bytes, which have not reached a visible tensor.
    pub(super) fn forget_reads_without_effect(&mut self) {
        let mut place = 0;
        self.list.retain(|_| {
            place += 1;
            !self.passed_on.contains(&(place - 1))
        });
        self.passed_on.clear();
    }

    /// A matmul accumulates onto a PSUM value that another instruction has written.
    pub(super) fn foreign_accumulation(&mut self, at: Place<'_, '_>, view: &View) {
        let Place { program, node, .. } = at;
        let tensor = program.tensor(view.tensor);
        if !self.seen.insert((node.loc, tensor.loc)) {
            return;
        }
        let out = Diagnostic::warning(
            "foreign-accumulation",
            format!(
                "`{}` adds to `{}` (accumulate=True), which another instruction has filled: undefined on {}",
                name_of(node),
                tensor.name,
                program.target
            ),
        )
        .at_source(node.loc, format!("adds to `{}`", tensor.name))
        .with_source(tensor.loc, format!("`{}` is allocated here", tensor.name))
        .help("let the first matmul overwrite (accumulate=False, or None), and add the initial value afterwards");
        self.list.push(at.note_iterations(out));
    }

    /// Reports the outputs that the program leaves unwritten.
    pub(super) fn outputs(&mut self, memory: &mut Memory<'_>, program: &Program) {
        for (i, output) in program.outputs.iter().enumerate() {
            // A tensor that is returned twice is reported once.
            if program.outputs[..i].iter().any(|o| o.tensor == output.tensor) {
                continue;
            }
            if let Some(missing) = memory.missing(output.tensor) {
                self.unwritten_output(program, &output.name, output.tensor, missing);
            }
        }
    }

    /// Some or all elements of an output are unwritten.
    pub(super) fn unwritten_output(
        &mut self,
        program: &Program,
        name: &str,
        tensor: nki_isa::TensorId,
        missing: Unwritten,
    ) {
        let t = program.tensor(tensor);
        let (count, total) = (missing.elements, t.elements());
        let (slug, message) = if count == total {
            (
                "output-not-written",
                format!("output `{name}` is never written: its {total} elements have no defined value"),
            )
        } else {
            let first = position(
                &t.shape,
                missing.row * (total / (t.shape.first().map_or(1, |&n| n as usize)).max(1)) + missing.element,
            );
            (
                "output-partly-written",
                format!("{count} of {total} elements of output `{name}` are never written; first: {first}"),
            )
        };
        let made = "is allocated here, uninitialised";
        let out = Diagnostic::warning(slug, message).at_source(t.loc, made);
        let out = if count == total {
            out.help("copy the result to it with nisa.dma_copy(dst=...) or nl.store")
        } else if program.cores.len() == 1 && count * 2 == total {
            out.note("only half of the output is written, by one core: if the kernel divides its work by nl.program_id, the second core writes the other")
                .advise(Advice::TwoCores)
        } else {
            out
        };
        self.list.push(out);
    }

    /// Unwritten memory has reached an output. `read` is the location and tensor of its first read.
    pub(super) fn tainted_output(
        &mut self,
        program: &Program,
        name: &str,
        tensor: nki_isa::TensorId,
        reached: Reached,
        (read, of): (Loc, nki_isa::TensorId),
    ) {
        let (t, source) = (program.tensor(tensor), program.tensor(of));
        let first = position(&t.shape, reached.first);
        let message = format!(
            "output `{name}`: {} of {} elements are computed from unwritten memory; first: {first}",
            reached.elements,
            t.elements()
        );
        self.list.push(
            Diagnostic::warning("uninitialized-output", message)
                .at_source(t.loc, "this output")
                .with_source(read, format!("reads `{}` before it is written", source.name))
                .help("write the tensor before it is read (nisa.memset), or do not read the unwritten elements"),
        );
    }

    /// An instruction reads bytes through one tensor after they were overwritten through another.
    pub(super) fn clobbered(&mut self, at: Place<'_, '_>, view: &View, by: Clobbered<'_>) {
        let Place { program, node, .. } = at;
        if !self.seen_clobbers.insert((node.loc, by.node.loc)) {
            return;
        }
        let (victim, writer) = (program.tensor(view.tensor), program.tensor(by.by));
        let (inst, operand) = operand(node, view);
        let operand = name(operand);
        let over = by.node.loc;
        let out = Diagnostic::warning(
            "clobbered-read",
            format!(
                "`{inst}` reads `{}` ({operand}), but `{}` on line {} has overwritten its bytes through `{}`",
                victim.name,
                name_of(by.node),
                over.line,
                writer.name
            ),
        )
        .at_source(node.loc, format!("reads `{}`", victim.name))
        .with_source(over, format!("writes `{}`", writer.name))
        .with_source(victim.loc, format!("`{}` is placed here", victim.name))
        .with_source(writer.loc, format!("`{}` is placed here", writer.name))
        .help(
            "give one of them an address that is free while the other is needed, or read it before it is overwritten",
        );
        self.list.push(at.note_iterations(out));
    }

    /// The cores iterate a device loop unequally often.
    pub(super) fn uneven_trips(&mut self, program: &Program, trace: &Trace) {
        let Some((loop_, counts)) = trips::uneven(program, trace) else { return };
        let message = format!(
            "the loop on line {} has {} iterations on core 0 and {} on core 1: on the device the cores wait for each other in each iteration",
            loop_.line, counts[0], counts[1]
        );
        self.list.push(
            Diagnostic::warning("uneven-trips", message)
                .at_source(loop_, "this loop")
                .help("let both cores iterate equally often, up to the larger count, and let the surplus iterations change nothing"),
        );
    }

    /// Two cores access the same bytes of shared memory, at least one writes, and the accesses are unordered. `this` was executed later.
    pub(super) fn race(
        &mut self,
        (core, at): (u32, Place<'_, '_>),
        (other_core, other): (u32, &Node),
        tensor: nki_isa::TensorId,
        hazard: Hazard,
    ) {
        let Place { program, node, .. } = at;
        let tensor = program.tensor(tensor);
        let (does, did) = match hazard {
            Hazard::Raw => ("reads", "writes"),
            Hazard::Waw => ("writes", "writes"),
            Hazard::War => ("writes", "reads"),
            // The requested order of a kernel is never a conflict between two accesses.
            Hazard::Order => ("follows", "precedes"),
        };
        let (this_name, other_name) = (name_of(node), name_of(other));
        let (a, b) = (node.loc, other.loc);
        let mut out = Diagnostic::warning(
            "shared-memory-race",
            format!(
                "core {} {does} `{}` (`{this_name}`, line {}) and core {} {did} the same bytes (`{other_name}`, line {}), with no core_barrier or sendrecv in between",
                core, tensor.name, a.line, other_core, b.line
            ),
        )
        .at_source(a, format!("core {core} {does} here"))
        .with_source(b, format!("core {other_core} {did} here"))
        .with_source(tensor.loc, format!("`{}` is shared by the cores", tensor.name))
        .help(format!(
            "write nisa.core_barrier(data={}, cores=(0, 1)) between the two, on both cores",
            tensor.name
        ));
        for (core, at) in [(core, at), (other_core, Place { program, node: other, loops: &[] })] {
            if let Some(iterations) = at.iterations() {
                out = out.note(format!("core {core} in {iterations}"));
            }
        }
        self.list.push(out);
    }

    /// A core reads what the other core has written to a tensor of which each core may have one of its own on the device.
    pub(super) fn unlinked(&mut self, (core, at): (u32, Place<'_, '_>), crossing: &Crossing<'_>) {
        let Place { program, node, .. } = at;
        let tensor = program.tensor(crossing.tensor);
        let (other, writer) = crossing.writer;
        let (read, write, name) = (node.loc, writer.loc, &tensor.name);
        let message = format!(
            "core {core} reads what core {other} wrote to `{name}` (`{}`, line {}), a shared_hbm tensor without name=: the compiler links the tensors of the cores by name, so each may have its own",
            name_of(writer),
            write.line
        );
        let mut out = Diagnostic::warning("unnamed-shared-hbm", message)
            .at_source(read, format!("core {core} reads here"))
            .with_source(write, format!("core {other} wrote here"))
            .with_source(tensor.loc, format!("`{name}` is allocated here"))
            .help(format!("name it: nl.ndarray(..., buffer=nl.shared_hbm, name=\"{name}\")"));
        if let Some(iterations) = at.iterations() {
            out = out.note(format!("core {core} in {iterations}"));
        }
        self.list.push(out);
    }

    /// An operand has values that the instruction does not support.
    pub(super) fn unexpected_values(&mut self, at: Place<'_, '_>, found: &Violation) {
        let node = at.node;
        if !self.seen_values.insert((node.loc, found.operand)) {
            return;
        }
        let message = format!("`{}`: {}", name_of(node), found.message);
        let out = Diagnostic::warning(found.id, message)
            .at_source(node.loc, format!("`{}`", found.operand))
            .help(found.help.as_str());
        self.list.push(at.note_iterations(out));
    }

    /// Whether [`Self::overlapping_store`] would be a repeat.
    pub(super) fn has_overlapping_store(&self, program: &Program, node: &Node, tensor: TensorId) -> bool {
        self.seen.contains(&(node.loc, program.tensor(tensor).loc))
    }

    /// A store overwrites part of an earlier store to an output, with other values. `total` is the number of elements stored.
    pub(super) fn overlapping_store(
        &mut self,
        at: Place<'_, '_>,
        view: &View,
        (found, total): (Overwritten, usize),
        earlier: Option<&Node>,
    ) {
        let Place { program, node, .. } = at;
        let tensor = program.tensor(view.tensor);
        if !self.seen.insert((node.loc, tensor.loc)) {
            return;
        }
        let is_static = tensor.dtype == view.dtype && view.indirect.is_none();
        let first = if is_static {
            position(&tensor.shape, usize::try_from(address(view, found.first).1).unwrap_or(0))
        } else {
            format!("element {} of the store", found.first)
        };
        let message = format!(
            "`{}` overwrites {} of the {total} elements that it stores in output `{}` with different values; first: {first}, which was {:?} and becomes {:?}",
            name_of(node),
            found.elements,
            tensor.name,
            found.values.0,
            found.values.1
        );
        let mut out =
            Diagnostic::warning("overlapping-store", message).at_source(node.loc, format!("stores `{}`", tensor.name));
        if let Some(earlier) = earlier.filter(|e| e.loc != node.loc) {
            out = out.with_source(earlier.loc, "stored here before");
        }
        out = out.help("check the start and the step of the stores: each element of an output is stored once");
        self.list.push(at.note_iterations(out));
    }

    /// An unset register is read.
    pub(super) fn unset_register(&mut self, at: Place<'_, '_>, register: RegId) {
        let node = at.node;
        if !self.seen_registers.insert((node.loc, register)) {
            return;
        }
        let out =
            Diagnostic::warning("uninitialized-read", "a register is read before anything has set it; it reads 0 here")
                .at_source(node.loc, "reads the register")
                .help("set it first: nisa.register_move(register, 0), or nisa.register_load");
        self.list.push(at.note_iterations(out));
    }
}

/// The error for a fault, which ends the run.
pub(super) fn fault(at: Place<'_, '_>, fault: Fault) -> Box<Diagnostic> {
    let node = at.node;
    let what = match &node.kind {
        NodeKind::Inst(inst) => format!("`{}`", inst.schema().name),
        _ => "loop".into(),
    };
    let mut out = Diagnostic::error(fault.id, format!("{what}: {}", fault.message)).at_source(node.loc, "stopped here");
    out = at.note_iterations(out);
    if out.id == MEMORY_LIMIT {
        out = out.advise(Advice::MoreMemory);
    } else if out.id == "step-limit" {
        out = out.advise(Advice::MoreSteps);
    }
    Box::new(out)
}
