//! Findings that need no values: [`accesses`] from the trace of a run or of [`crate::exec::trace_only`]; [`without_run`], which adds the findings of
//! a run itself; and [`without_trace`], for a program whose trace only a run determines.

mod accumulators;
mod independent;
mod lost;
pub(crate) mod overlap;
mod skips;
mod sums;
mod undecided;
pub(crate) mod walk;
mod words;

use nki_diag::Diagnostic;
use nki_isa::ids::{Loc, TrailId};
use nki_isa::inst::values::Feeds;
use nki_isa::inst::{Action, Footprint};
use nki_isa::program::{Node, NodeKind, Statements, Step as TrailStep};
use nki_isa::{Inst, Participants, Program, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::exec;
use crate::place::Placement;
use crate::trace::{Event, EventKind, Resolved, Trace};
use accumulators::Unset;
use lost::Lost;
use overlap::ElementOrder;
use walk::{Step, Visitor, walk};

/// Findings, one per line of the kernel: operands without effect or with probably unintended values, destinations with two elements at one address
/// (`overlapping-write`), instructions that read what they have just written (`overlapping-operands`) or unset accumulators (`uninitialized-read`),
/// exchanges of a core with itself (`unexpected-values`), transposing gathers that skip a part of a group (`mixed-skip`), and lost results in memory or accumulators (`overwritten-before-read`, `dead-load`,
/// `dead-store`). `trace` is that of the whole program.
pub fn accesses(program: &Program, placement: &Placement, trace: &Trace) -> Vec<Diagnostic> {
    let mut out = operands(program);
    let mut all = All {
        lost: lost::Watch::new(program, placement),
        overlaps: Overlaps::new(program),
        accumulators: Unset::new(program),
        exchanges: Exchanges::new(program),
        skips: skips::Skips::new(program),
    };
    walk(program, trace, &mut all);
    out.extend(all.overlaps.list);
    out.extend(all.accumulators.finish());
    out.extend(all.exchanges.list);
    out.extend(all.skips.list);
    out.extend(lost_results(program, trace, &all.lost.finish()));
    out
}

/// Whether every run of the program has this trace of one run: no value decides a branch, a loop or an address.
pub fn is_always_traced_alike(program: &Program, trace: &Trace) -> bool {
    let decided = |node: &Node| !matches!(node.kind, NodeKind::Inst(_));
    let addressed = |event: &Event| matches!(event.kind, EventKind::Inst { resolved: Some(_) });
    !program.cores.iter().flatten().any(decided) && !trace.cores.iter().flat_map(|core| &core.events).any(addressed)
}

/// All findings about accesses, for callers that do not run the program: the findings of [`crate::exec::run`] that need no values,
/// followed by [`accesses`].
pub fn without_run(program: &Program, placement: &Placement, trace: &Trace) -> Vec<Diagnostic> {
    let (mut out, more) =
        rayon::join(|| exec::without_values(program, placement, trace), || accesses(program, placement, trace));
    out.extend(more);
    out
}

/// Findings about a placed program whose trace depends on values, without running it: outputs that no instruction writes, operands without
/// effect or with probably unintended values, accumulators that nothing sets, and tensors that share bytes while both are in use.
pub fn without_trace(program: &Program, placement: &Placement) -> Vec<Diagnostic> {
    let mut findings = exec::never_written(program);
    findings.extend(operands(program));
    findings.extend(accumulators::never_set(program));
    findings.extend(placement.findings.iter().cloned());
    findings
}

/// Dependent iterations of loops that the kernel declares independent (`affine-dependence`), one per line. `program` must not contain the older
/// compiler's changes, which merge operations of several iterations.
pub fn dependent_iterations(program: &Program) -> Vec<Diagnostic> {
    independent::dependent(program).iter().map(|found| words::dependent(program, found)).collect()
}

/// Matmuls that continue a sum after it was read (`accumulation-after-read`), one per line. In kernels for the older compiler, `+=` states that a
/// matmul continues a sum.
pub fn continued_sums(program: &Program) -> Vec<Diagnostic> {
    sums::continued(program)
}

/// Operands without effect (`inert-operand`), and operands that are probably unintended whenever their line runs; one per line.
fn operands(program: &Program) -> Vec<Diagnostic> {
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    // A call may stand for several kinds of instructions.
    let mut doubts: FxHashMap<(Loc, &str), Option<Diagnostic>> = FxHashMap::default();
    let mut calls = Vec::new();
    program.visit(&mut |node| {
        let NodeKind::Inst(inst) = &node.kind else { return };
        if let Some(why) = inst.inert()
            && seen.insert((node.loc, why.operand))
        {
            out.push(words::operand_finding(program, node, &why));
        }
        let call = (node.loc, inst.schema().name);
        match (doubts.get_mut(&call), inst.doubt()) {
            (None, doubt) => {
                calls.extend(doubt.is_some().then_some(call));
                doubts.insert(call, doubt.map(|why| words::operand_finding(program, node, &why)));
            }
            (Some(doubt), None) => *doubt = None,
            (Some(_), Some(_)) => {}
        }
    });
    out.extend(calls.iter().filter_map(|call| doubts.remove(call)?));
    out
}

struct All<'p> {
    lost: lost::Watch<'p>,
    overlaps: Overlaps<'p>,
    accumulators: Unset<'p>,
    exchanges: Exchanges<'p>,
    skips: skips::Skips<'p>,
}

impl<'p> Visitor<'p> for All<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        self.lost.instruction(step, footprint);
        self.overlaps.instruction(step, footprint);
        self.accumulators.instruction(step, footprint);
        self.exchanges.instruction(step, footprint);
        self.skips.instruction(step, footprint);
    }
}

/// Exchanges of a core with itself (`unexpected-values`).
struct Exchanges<'p> {
    program: &'p Program,
    seen: FxHashSet<Loc>,
    list: Vec<Diagnostic>,
}

impl<'p> Exchanges<'p> {
    fn new(program: &'p Program) -> Self {
        Exchanges { program, seen: FxHashSet::default(), list: Vec::new() }
    }
}

impl<'p> Visitor<'p> for Exchanges<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, _footprint: &Footprint<'p>) {
        let Some(Participants::Exchange { send_to, receive_from, .. }) = step.inst.participants() else { return };
        let own = i64::from(step.core);
        if (send_to == own || receive_from == own) && self.seen.insert(step.node.loc) {
            self.list.push(words::own_exchange(self.program, step, (send_to, receive_from)));
        }
    }
}

/// Destinations with two elements at one address.
struct Overlaps<'p> {
    program: &'p Program,
    seen: FxHashSet<Loc>,
    /// Lines that read what they have just written.
    crossed: FxHashSet<Loc>,
    list: Vec<Diagnostic>,
}

impl<'p> Overlaps<'p> {
    fn new(program: &'p Program) -> Self {
        Overlaps { program, seen: FxHashSet::default(), crossed: FxHashSet::default(), list: Vec::new() }
    }

    fn check(&mut self, step: &Step<'p, '_>, view: &View, dynamic: Option<&Resolved>) {
        if self.seen.contains(&step.node.loc) {
            return;
        }
        let said = if let Some(twice) = overlap::of_dims(view) {
            words::same_address(self.program, step, view, twice)
        } else if !step.inst.adds_repeated()
            && let Some(same) = dynamic.and_then(|d| overlap::of_index(view, d))
        {
            words::same_row(self.program, step, view, same)
        } else {
            return;
        };
        self.seen.insert(step.node.loc);
        self.list.push(said);
    }

    /// Whether two results of the instruction share addresses.
    fn check_results(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        let [first, rest @ ..] = &footprint.writes[..] else { return };
        if rest.is_empty() || self.seen.contains(&step.node.loc) {
            return;
        }
        let pairs = std::iter::successors(Some((*first, rest)), |(_, rest)| rest.split_first().map(|(f, r)| (*f, r)));
        let found = pairs.flat_map(|(a, rest)| rest.iter().map(move |b| (a, *b))).find_map(|(a, b)| {
            let shared = overlap::shared(a, b)?;
            Some((a, b, shared))
        });
        if let Some((a, b, shared)) = found {
            self.seen.insert(step.node.loc);
            self.list.push(words::shared_results(self.program, step, (a, b), shared));
        }
    }

    /// Whether the instruction reads what it has just written.
    fn check_source(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        if self.crossed.contains(&step.node.loc) {
            return;
        }
        let pairs = footprint.writes.iter().flat_map(|dst| footprint.reads.iter().map(move |src| (*dst, *src)));
        let mut pairs = pairs.filter(|(dst, src)| dst.tensor == src.tensor);
        let found = match step.inst.action() {
            Action::Transposes(dst, src, axes) => {
                overlap::transposed(dst, src, axes).map(|crossing| (dst, src, crossing))
            }
            Action::Rearranges => pairs.find_map(|(dst, src)| Some((dst, src, overlap::shared(dst, src)?))),
            _ => {
                let Some(passage) = passage(step.inst) else { return };
                pairs
                    .filter(|(dst, src)| dst != src)
                    .find_map(|(dst, src)| Some((dst, src, overlap::crossing(dst, src, passage)?)))
            }
        };
        if let Some((dst, src, crossing)) = found {
            self.crossed.insert(step.node.loc);
            self.list.push(words::crossing(self.program, step, (dst, src), crossing));
        }
    }
}

/// The order in which an instruction processes its elements, if each element of its result depends on the source elements at the same position or,
/// in a scan or a shuffle, on those of earlier columns or of the same column.
fn passage(inst: &Inst) -> Option<ElementOrder> {
    match inst.action() {
        Action::Transfers(_) => Some(ElementOrder { streams: false, copies: true }),
        Action::Copies(..) => Some(ElementOrder { streams: true, copies: true }),
        action => {
            let in_order = action == Action::Shuffles || matches!(inst.values().feeds, Feeds::Elements | Feeds::Prefix);
            in_order.then_some(ElementOrder { streams: true, copies: false })
        }
    }
}

impl<'p> Visitor<'p> for Overlaps<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        self.check_source(step, footprint);
        self.check_results(step, footprint);
        let mut resolved = step.resolved.unwrap_or(&[]).iter();
        let mut dynamic = |view: &View| view.indirect.as_ref().and_then(|_| resolved.next());
        for view in &footprint.reads {
            dynamic(view);
        }
        for &view in &footprint.writes {
            let d = dynamic(view);
            self.check(step, view, d);
        }
    }
}

/// Findings for lost results: one per line (and overwriting line), with the number of occurrences.
///
/// A computed result may legitimately be lost in one iteration of a loop but not in the others: the last update of a loop-carried value.
/// A computed result that is only sometimes lost is therefore reported only if the same line overwrites it, or if a fill
/// overwrites all but the last. One that is (almost) always lost is reported only if it is not loop-carried (a loop may have one iteration). A
/// transfer is reported however often its data is lost.
fn lost_results(program: &Program, trace: &Trace, all: &[Lost<'_>]) -> Vec<Diagnostic> {
    if all.is_empty() {
        return Vec::new();
    }
    let nodes: Vec<Statements<'_>> = program.cores.iter().map(|stream| Statements::of(stream)).collect();
    let key = |l: &Lost<'_>| (l.node.loc, l.over.map(|n| n.loc));
    let mut times: FxHashMap<(Loc, Option<Loc>), usize> = FxHashMap::default();
    let mut of_line: FxHashMap<Loc, usize> = FxHashMap::default();
    for l in all {
        *times.entry(key(l)).or_default() += 1;
        *of_line.entry(l.node.loc).or_default() += 1;
    }
    let counts = executions(&nodes, trace);
    let counted = || nodes.iter().flat_map(|all| all.iter().map(|s| s.node)).zip(counts.iter().flatten().copied());
    let mut executed: FxHashMap<Loc, usize> = of_line.keys().map(|loc| (*loc, 0)).collect();
    for (node, times) in counted() {
        if let Some(sum) = executed.get_mut(&node.loc) {
            *sum += times;
        }
    }
    let elsewhere = read_if_values_say_so(counted());
    let mut out = Vec::new();
    let mut in_loops = FxHashMap::default();
    for l in all.iter().filter(|l| !elsewhere.contains(&l.tensor)) {
        // Another iteration of a loop that the overwriting instruction is not in may read it.
        if l.loops.get(usize::from(l.common)).is_some_and(|of| is_read_in(program, l, of.0, &mut in_loops)) {
            continue;
        }
        let loc = l.node.loc;
        let executed = executed.get(&loc).copied().unwrap_or(0);
        let Some(times) = times.remove(&key(l)) else { continue };
        let always = of_line.get(&loc).copied().unwrap_or(0) >= executed;
        let again = l.over.is_some_and(|n| n.loc == loc);
        if l.over.is_some() && fills_with_zero(l.node) {
            continue;
        }
        // A fill in a loop resets the results of all iterations but the last.
        let resets = times >= 2 && times + 1 == executed && l.over.is_some_and(|n| words::filled(n).is_some());
        if words::is_load(l.node) || again || (always || resets) && !is_carried(program, &nodes, l) {
            out.push(words::lost(program, l, times, executed.max(times)));
        }
    }
    out
}

/// A fill with 0 that is overwritten is a common precaution, and nothing is lost.
fn fills_with_zero(node: &Node) -> bool {
    words::filled(node).is_some_and(|value| value.as_f32() == 0.0)
}

/// A trail and its ancestors, innermost first.
fn around(program: &Program, id: TrailId) -> impl Iterator<Item = TrailId> + '_ {
    std::iter::successors(Some(id), |id| program.trails.get(id.0 as usize)?.parent)
}

/// Whether a lost result looks like a loop-carried value of an unrolled loop: its tensor is declared outside of the
/// iteration, and read earlier in it.
fn is_carried(program: &Program, nodes: &[Statements<'_>], l: &Lost<'_>) -> bool {
    let step = |id: &TrailId| program.trails.get(id.0 as usize).map(|trail| &trail.step);
    let is_iteration = |id: &TrailId| matches!(step(id), Some(TrailStep::Iteration { .. }));
    let Some(iteration) = around(program, l.node.trail).find(is_iteration) else { return false };
    let within = |id: TrailId| around(program, id).any(|t| t == iteration);
    if within(program.tensor(l.tensor).trail) {
        return false;
    }
    let (core, at) = l.place;
    let Some(all) = nodes.get(core as usize) else { return false };
    all.range(0..at.0).rev().map(|s| s.node).take_while(|n| within(n.trail)).any(|n| {
        let NodeKind::Inst(inst) = &n.kind else { return false };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        footprint.reads.iter().any(|v| v.tensor == l.tensor)
    })
}

/// Whether the dynamic loop around an unread result reads its tensor: a further iteration would read it.
fn is_read_in(
    program: &Program,
    l: &Lost<'_>,
    loop_: Loc,
    known: &mut FxHashMap<(u32, Loc), FxHashSet<TensorId>>,
) -> bool {
    let core = l.place.0;
    let read = known.entry((core, loop_)).or_insert_with(|| {
        let all = program.cores.get(core as usize).map(|stream| Statements::of(stream)).unwrap_or_default();
        let mut read = FxHashSet::default();
        let mut footprint = Footprint::default();
        for (at, of) in (0..).zip(all.iter()).filter(|(_, s)| s.node.loc == loop_) {
            for statement in all.range(at..of.end) {
                if let NodeKind::Inst(inst) = &statement.node.kind {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    read.extend(footprint.reads.iter().map(|view| view.tensor));
                }
            }
        }
        read
    });
    read.contains(&l.tensor)
}

/// The number of executions of each statement of each core.
fn executions(nodes: &[Statements<'_>], trace: &Trace) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = nodes.iter().map(|all| vec![0; all.len() as usize]).collect();
    for (times, core) in out.iter_mut().zip(&trace.cores) {
        for event in core.events.iter().filter(|e| matches!(e.kind, EventKind::Inst { .. })) {
            if let Some(times) = times.get_mut(event.node.0 as usize) {
                *times += 1;
            }
        }
    }
    out
}

/// The tensors read by instructions that this run has not executed: with other values, a loop has more iterations or a branch is taken.
fn read_if_values_say_so<'p>(executed: impl Iterator<Item = (&'p Node, usize)>) -> FxHashSet<TensorId> {
    let mut out = FxHashSet::default();
    let mut footprint = Footprint::default();
    for (node, _) in executed.filter(|(_, times)| *times == 0) {
        if let NodeKind::Inst(inst) = &node.kind {
            footprint.clear();
            inst.footprint(&mut footprint);
            out.extend(footprint.reads.iter().map(|view| view.tensor));
        }
    }
    out
}

#[cfg(test)]
mod tests;
