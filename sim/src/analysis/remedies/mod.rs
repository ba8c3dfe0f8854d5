//! Tries known remedies: changes the program, the trace or the costs, and times the whole kernel again. The reported gain is the difference
//! between the two latencies, never a rule of thumb. A remedy that does not apply is not tried.
//!
//! The changed program is never executed: the author must judge whether its results are the same. Each remedy states its assumptions.

mod change;
mod model;
mod rearrange;
mod rewrite;
#[cfg(test)]
mod tests;
mod transfer_places;

use std::sync::Arc;

use nki_diag::stop;
use nki_isa::ids::Loc;
use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::names::{Engine, Named};
use nki_isa::program::NodeKind;
use nki_isa::work::WorkKind;
use nki_isa::{Arch, DType, Inst, Program, TensorId};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::deps::{self, Hazard, Subject};
use crate::place::{Placement, place};
use crate::schedule::Policy;
use crate::simulate::{RankTrace, latency, simulate};
use crate::timeline::{Cause, Ps, RowKind, State, Timeline};
use crate::timing::lower::Dependences;
use crate::timing::{CostModel, Laws, Params};
use crate::trace::Trace;
pub use change::{Cut, Moved, RemedyChange, Slice, Spot};
use model::{Changed, Replacement, Whole, is_scattered};
use rewrite::top_level;

/// A run, for timing again with changes.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The program.
    pub program: &'a Program,
    /// The addresses of its tensors.
    pub placement: &'a Placement,
    /// The executed instructions.
    pub trace: &'a Trace,
    /// The timing parameters.
    pub params: &'a Params,
    /// The timeline of the trace.
    pub timeline: &'a Timeline,
    /// Cached dependences of the trace from an earlier timing.
    pub known: Option<&'a Dependences>,
}

/// A change that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// The change.
    pub change: RemedyChange,
    /// Changed source lines, first to last, without repeats.
    pub lines: Vec<Loc>,
    /// Latency with the change.
    pub elapsed: Ps,
    /// Latency before minus latency after; negative if it makes the kernel slower.
    pub gain: i64,
}

/// The remedies tried, and those skipped to bound the cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Remedies {
    /// Best first; for each kind, the best of its variants.
    pub tried: Vec<Remedy>,
    /// Kinds that were not tried because the kernel is long.
    pub left_out: Vec<&'static str>,
}

/// Limit on instructions that all trials together may time again for a written report.
pub const THOROUGH: usize = 500_000;
/// The same for terminal output only: the trials must not take longer than the run itself.
pub const QUICK: usize = 20_000;

/// Every kind of remedy.
const KINDS: [&str; 10] = [
    "larger-dma",
    "redundant-loads",
    "fewer-descriptors",
    "dma-queues",
    "split-dma",
    "earlier-loads",
    "double-buffering",
    "idle-engine",
    "tile-shape",
    "lower-precision",
];

/// Times a kernel with one change, or with several of one kind, of which the best is kept.
struct Trial<'a> {
    /// See [`RemedyChange::kind`].
    kind: &'static str,
    /// Maximum number of times that it times the kernel.
    cost: usize,
    run: Box<dyn Fn() -> Option<Remedy> + Send + Sync + 'a>,
}

impl<'a> Trial<'a> {
    fn new(kind: &'static str, run: impl Fn() -> Option<Remedy> + Send + Sync + 'a) -> Self {
        Trial { kind, cost: 1, run: Box::new(run) }
    }
}

/// Tries every applicable remedy, as long as all trials together time at most `budget` instructions.
pub fn remedies(case: &Case<'_>, budget: usize) -> Remedies {
    // Creating the variants of a long kernel has a cost, too.
    if case.timeline.events.len() > budget {
        return Remedies { tried: Vec::new(), left_out: KINDS.to_vec() };
    }
    let known = Dependences::default();
    let case = &Case { known: Some(&known), ..*case };
    let mut trials: Vec<Trial<'_>> = Vec::new();
    transfers(case, &mut trials);
    transfer_places::trials(case, &mut trials);
    buffers(case, &mut trials);
    engines(case, &mut trials);
    tiles(case, &mut trials);
    let affordable = budget / case.timeline.events.len().max(1);
    // Run the first variant of each kind first.
    let mut rank: FxHashMap<&'static str, usize> = FxHashMap::default();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (i, trial) in trials.iter().enumerate() {
        let n = rank.entry(trial.kind).or_insert(0);
        order.push((*n, i));
        *n += 1;
    }
    order.sort_unstable();
    let mut left = affordable;
    let (chosen, omitted): (Vec<usize>, Vec<usize>) = order.iter().map(|(_, i)| *i).partition(|i| {
        let fits = trials[*i].cost <= left;
        left = if fits { left - trials[*i].cost } else { 0 };
        fits
    });
    let stop = stop::current();
    let mut found: Vec<Remedy> =
        chosen.par_iter().filter_map(|i| stop::within(stop.clone(), || (trials[*i].run)())).collect();
    found.sort_by_key(|r| (r.elapsed, r.change.kind()));
    let mut out = Remedies::default();
    for r in found {
        if !out.tried.iter().any(|t| t.change.kind() == r.change.kind()) {
            out.tried.push(r);
        }
    }
    for i in omitted {
        let kind = trials[i].kind;
        let tried = chosen.iter().any(|c| trials[*c].kind == kind);
        if !tried && !out.left_out.contains(&kind) {
            out.left_out.push(kind);
        }
    }
    out
}

impl Case<'_> {
    fn outcome(&self, change: RemedyChange, mut lines: Vec<Loc>, elapsed: Ps) -> Remedy {
        lines.sort_unstable_by_key(|l| (l.file, l.line));
        lines.dedup_by_key(|l| (l.file, l.line));
        Remedy { change, lines, elapsed, gain: self.timeline.elapsed as i64 - elapsed as i64 }
    }

    /// The latency of the same trace with other costs, or another policy.
    pub(super) fn again(&self, model: &dyn CostModel, policy: &Policy) -> Ps {
        let rank = RankTrace { program: self.program, placement: self.placement, trace: self.trace };
        latency(rank, model, policy, self.known)
    }

    fn with_model(&self, model: &dyn CostModel) -> Ps {
        self.again(model, &Policy::of(self.params))
    }

    fn with_program(&self, program: &Program, trace: &Trace) -> Option<Ps> {
        let placement = place(program).ok()?;
        let rank = RankTrace { program, placement: &placement, trace };
        Some(latency(rank, &Laws::new(self.params).ok()?, &Policy::of(self.params), None))
    }

    /// Every statement outside dynamic control flow: core, number, location, instruction.
    fn statements(&self) -> impl Iterator<Item = (u32, u32, Loc, &Inst)> {
        self.program.cores.iter().enumerate().flat_map(|(core, stream)| {
            top_level(stream).filter_map(move |(at, node)| match &node.kind {
                NodeKind::Inst(inst) => Some((core as u32, at, node.loc, inst)),
                _ => None,
            })
        })
    }

    fn context(&self) -> Context<'_> {
        Context { arch: Arch::of(self.program.target), tensors: &self.program.tensors }
    }
}

fn percent(part: usize, of: usize) -> usize {
    part * 100 / of.max(1)
}

/// Larger transfers, fewer descriptors, no repeated loads, a second queue.
fn transfers<'a>(case: &Case<'a>, trials: &mut Vec<Trial<'a>>) {
    let case = *case;
    if case.timeline.dma.transfers < 2 {
        return;
    }
    for most in [4, 2, 16] {
        trials.push(Trial::new("larger-dma", move || {
            let merged = rewrite::merged(case.program, case.trace, most)?;
            let elapsed = case.with_program(&merged.program, &merged.trace)?;
            let change = RemedyChange::LargerDma { before: merged.before, after: merged.after };
            Some(case.outcome(change, merged.lines, elapsed))
        }));
    }
    trials.push(Trial::new("redundant-loads", move || {
        let RepeatedLoads { replaced, loads, bytes, kept, lines } = repeated_loads(&case)?;
        let elapsed = case.with_model(&Changed::new(case.params, Whole::Same, replaced).ok()?);
        Some(case.outcome(RemedyChange::RedundantLoads { loads, bytes, kept }, lines, elapsed))
    }));
    trials.push(Trial::new("fewer-descriptors", move || {
        let context = case.context();
        let (mut lines, mut shortest) = (Vec::new(), u32::MAX);
        let mut seen = FxHashSet::default();
        case.program.visit(&mut |node| {
            let NodeKind::Inst(inst) = &node.kind else { return };
            if let WorkKind::Dma(d) = &inst.work(&context).kind
                && is_scattered(d, case.params)
            {
                shortest = shortest.min(d.src.run_bytes.min(d.dst.run_bytes));
                if seen.insert((node.loc.file, node.loc.line)) {
                    lines.push(node.loc);
                }
            }
        });
        if lines.is_empty() {
            return None;
        }
        let elapsed = case.with_model(&Changed::new(case.params, Whole::Contiguous, FxHashMap::default()).ok()?);
        Some(case.outcome(RemedyChange::FewerDescriptors { shortest }, lines, elapsed))
    }));
    trials.push(Trial::new("dma-queues", move || {
        if !Arch::of(case.program.target).hwdge {
            return None;
        }
        let mut params = case.params.clone();
        let old = params.dma.load_queues.value.clone();
        let extra = ["sync", "scalar"].into_iter().find(|e| !old.iter().any(|o| o == e))?;
        let mut list: Vec<String> = old.iter().map(|e| format!("{e:?}")).collect();
        list.push(format!("{extra:?}"));
        params.set_text("dma.load_queues", &format!("[{}]", list.join(", "))).ok()?;
        let t = simulate(case.program, case.placement, case.trace, &params).ok()?;
        let used = t.rows.iter().any(|r| r.count > 0 && matches!(r.kind, RowKind::DmaQueue(e) if e.name() == extra));
        used.then(|| case.outcome(RemedyChange::DmaQueue { engine: extra }, Vec::new(), t.elapsed))
    }));
}

struct RepeatedLoads {
    replaced: FxHashMap<(u32, u32), Replacement>,
    loads: usize,
    bytes: u64,
    kept: u64,
    lines: Vec<Loc>,
}

/// Loads of bytes that an earlier load of the same core has fetched, as far as SBUF has space to keep them.
fn repeated_loads(case: &Case<'_>) -> Option<RepeatedLoads> {
    let written = deps::written_tensors(case.program);
    let arch = Arch::of(case.program.target);
    let room = u64::from(arch.sbuf_bytes.saturating_sub(case.placement.sbuf_peak_bytes));
    type Source = (u32, TensorId, i64, Vec<(i64, u32)>, DType);
    // Bytes per partition, and whether space is reserved for them.
    let mut first: FxHashMap<Source, (u64, bool)> = FxHashMap::default();
    let mut out = RepeatedLoads { replaced: FxHashMap::default(), loads: 0, bytes: 0, kept: 0, lines: Vec::new() };
    for (core, at, loc, inst) in case.statements() {
        let Action::Transfers(copy) = inst.action() else { continue };
        let fixed = copy.src.indirect.is_none() && copy.dst.indirect.is_none();
        let load = copy.src.space.is_hbm() && copy.dst.space.is_on_chip();
        if !fixed || !load || written[copy.src.tensor.0 as usize] {
            continue;
        }
        let dims = copy.src.dims.iter().map(|d| (d.stride, d.count)).collect();
        let key = (core, copy.src.tensor, copy.src.offset, dims, copy.src.dtype);
        let per_partition = (copy.dst.free_elements() * copy.dst.dtype.size()) as u64;
        match first.get_mut(&key) {
            None => {
                first.insert(key, (per_partition, false));
            }
            Some((bytes, kept)) => {
                if !*kept {
                    if out.kept + *bytes > room {
                        continue;
                    }
                    out.kept += *bytes;
                    *kept = true;
                }
                out.replaced.insert((core, at), Replacement::Nothing);
                out.loads += 1;
                out.bytes += copy.src.bytes() as u64;
                out.lines.push(loc);
            }
        }
    }
    (out.loads > 0).then_some(out)
}

/// On-chip tensors into which the same bytes are loaded more than once.
fn loaded_again(case: &Case<'_>) -> Vec<TensorId> {
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    for (core, _, _, inst) in case.statements() {
        let Action::Transfers(copy) = inst.action() else { continue };
        if copy.src.space.is_hbm() && copy.dst.space.is_on_chip() && copy.dst.indirect.is_none() {
            let tensor = copy.dst.tensor;
            if !seen.insert((core, tensor, copy.dst.partition, copy.dst.offset)) && !found.contains(&tensor) {
                found.push(tensor);
            }
        }
    }
    found
}

/// A second buffer for tensors that cause waits because they are still in use.
fn buffers<'a>(case: &Case<'a>, trials: &mut Vec<Trial<'a>>) {
    let case = *case;
    let mut waited: FxHashMap<TensorId, Ps> = FxHashMap::default();
    for span in case.timeline.rows.iter().flat_map(|r| &r.spans) {
        if let State::Stalled(Cause::Semaphore {
            hazard: Hazard::War | Hazard::Waw, subject: Subject::Tensor(t), ..
        }) = span.state
        {
            *waited.entry(t).or_insert(0) += span.end - span.start;
        }
    }
    let mut tensors: Vec<(Ps, TensorId)> = waited
        .into_iter()
        .filter(|(t, time)| case.program.tensor(*t).space.is_on_chip() && *time * 500 > case.timeline.elapsed)
        .map(|(t, time)| (time, t))
        .collect();
    tensors.sort_by_key(|(time, t)| (std::cmp::Reverse(*time), *t));
    if tensors.is_empty() {
        // In a queue with loads and stores such a wait may appear as one for a store.
        tensors = loaded_again(&case).into_iter().map(|t| (0, t)).collect();
    }
    tensors.truncate(64);
    if tensors.is_empty() {
        return;
    }
    for most in [tensors.len(), 1] {
        let wanted: Vec<TensorId> = tensors.iter().take(most).map(|(_, t)| *t).collect();
        trials.push(Trial::new("double-buffering", move || {
            let (program, chosen) = rewrite::double_buffered(case.program, &wanted)?;
            let elapsed = case.with_program(&program, case.trace)?;
            let mut tensors: Vec<Arc<str>> = Vec::new();
            let (mut sbuf, mut psum) = (0, 0);
            for t in &chosen {
                let tensor = case.program.tensor(*t);
                if !tensors.contains(&tensor.name) {
                    tensors.push(tensor.name.clone());
                }
                if tensor.space == nki_isa::Space::Psum { psum += tensor.bytes() } else { sbuf += tensor.bytes() }
            }
            tensors.truncate(4);
            let lines = chosen.iter().map(|t| case.program.tensor(*t).loc).collect();
            Some(case.outcome(RemedyChange::DoubleBuffering { tensors, sbuf, psum }, lines, elapsed))
        }));
    }
}

/// Moves work of the busiest engine to a less busy one.
fn engines<'a>(case: &Case<'a>, trials: &mut Vec<Trial<'a>>) {
    let case = *case;
    let busy = |engine: Engine| -> Ps {
        case.timeline.rows.iter().filter(|r| r.kind == RowKind::Engine(engine)).map(|r| r.busy()).sum()
    };
    const SHARED: [Engine; 3] = [Engine::Vector, Engine::Scalar, Engine::GpSimd];
    let Some(busiest) = SHARED.into_iter().max_by_key(|e| busy(*e)) else { return };
    if busy(busiest) * 20 < case.timeline.elapsed {
        return;
    }
    // Lines of that engine by time, with their statements.
    type Of = (Ps, Loc, Vec<(u32, u32)>);
    let mut lines: FxHashMap<(u32, u32, &'static str), Of> = FxHashMap::default();
    for e in &case.timeline.events {
        if case.timeline.rows[e.origin.row.0 as usize].kind == RowKind::Engine(busiest) && e.origin.queue.is_none() {
            let line = lines.entry((e.origin.loc.file, e.origin.loc.line, e.origin.label)).or_insert((
                0,
                e.origin.loc,
                Vec::new(),
            ));
            line.0 += e.end - e.start;
            line.2.push((e.origin.core, e.node.0));
        }
    }
    let mut lines: Vec<((u32, u32, &'static str), Of)> = lines.into_iter().collect();
    lines.sort_by_key(|(key, l)| (std::cmp::Reverse(l.0), *key));
    for ((.., label), (_, loc, nodes)) in lines.into_iter().take(3) {
        for target in SHARED.into_iter().filter(|e| *e != busiest && busy(*e) * 5 < busy(busiest) * 4) {
            let legal = nki_isa::inst::find(label).is_some_and(|i| {
                let runs = i.schema.engines.iter().any(|r| r.on == target && r.since <= case.program.target);
                runs && i.schema.position("engine").is_some()
            });
            if !legal {
                continue;
            }
            let every = if nodes.len() > 1 { 2 } else { 1 };
            let some: FxHashSet<(u32, u32)> = nodes.iter().copied().skip(every - 1).step_by(every).collect();
            trials.push(Trial::new("idle-engine", move || {
                let (program, moved) = rewrite::on_engine(case.program, &some, target)?;
                let elapsed = case.with_program(&program, case.trace)?;
                let moved = if every == 1 { Moved::All } else { Moved::EveryOther(moved) };
                let change = RemedyChange::IdleEngine { moved, label, from: busiest, to: target };
                Some(case.outcome(change, vec![loc], elapsed))
            }));
        }
    }
}

/// Full tiles, and bf16 instead of fp32.
fn tiles<'a>(case: &Case<'a>, trials: &mut Vec<Trial<'a>>) {
    let case = *case;
    for matmuls in [true, false] {
        trials.push(Trial::new("tile-shape", move || {
            let (replaced, lines, merged) = full_tiles(&case, matmuls)?;
            let elapsed = case.with_model(&Changed::new(case.params, Whole::Same, replaced).ok()?);
            let change = if matmuls { RemedyChange::FullMatmuls { merged } } else { RemedyChange::FullRows { merged } };
            Some(case.outcome(change, lines, elapsed))
        }));
    }
    trials.push(Trial::new("lower-precision", move || {
        let context = case.context();
        let (mut lines, mut seen, mut fp32, mut all) = (Vec::new(), FxHashSet::default(), 0, 0);
        case.program.visit(&mut |node| {
            let NodeKind::Inst(inst) = &node.kind else { return };
            all += 1;
            let uses = match inst.work(&context).kind {
                WorkKind::Matmul(m) => m.stationary_dtype == DType::F32 || m.moving_dtype == DType::F32,
                WorkKind::Stream(s) => {
                    s.inputs.iter().chain(&s.outputs).any(|o| o.dtype == DType::F32 && o.space == nki_isa::Space::Sbuf)
                }
                WorkKind::Dma(d) => d.bytes == 4 * d.elements && d.elements > 0,
                _ => false,
            };
            if uses {
                fp32 += 1;
                if seen.insert((node.loc.file, node.loc.line)) {
                    lines.push(node.loc);
                }
            }
        });
        if fp32 == 0 {
            return None;
        }
        let elapsed = case.with_model(&Changed::new(case.params, Whole::HalfWidth, FxHashMap::default()).ok()?);
        Some(case.outcome(RemedyChange::LowerPrecision { percent: percent(fp32, all) }, lines, elapsed))
    }));
}

type Replaced = FxHashMap<(u32, u32), Replacement>;

/// Groups of small instructions of one line that one full instruction could replace. Returns the replacement of each statement, the lines, and
/// the reduction in the number of instructions.
fn full_tiles(case: &Case<'_>, matmuls: bool) -> Option<(Replaced, Vec<Loc>, usize)> {
    type Line = (Loc, usize, u32, Vec<(u32, u32)>);
    let context = case.context();
    let mut by_line: FxHashMap<(u32, u32, u32), Line> = FxHashMap::default();
    for (core, at, loc, inst) in case.statements() {
        let (group, wider) = match inst.work(&context).kind {
            WorkKind::Matmul(m) if matmuls && !m.transpose => {
                let used = u64::from(m.rows.max(1)) * u64::from(m.columns.max(1)) * u64::from(m.moving.max(1));
                ((128 * 128 * 512 / used) as usize, 0)
            }
            WorkKind::Stream(s) if !matmuls => {
                let longer = (512 / s.elements.max(1)).clamp(1, 8);
                ((128 / s.partitions.max(1)).max(1) as usize * longer as usize, longer)
            }
            _ => continue,
        };
        if group < 2 {
            continue;
        }
        let line = by_line.entry((core, loc.file, loc.line)).or_insert((loc, group, wider, Vec::new()));
        line.1 = line.1.min(group);
        line.2 = line.2.min(wider);
        line.3.push((core, at));
    }
    let (mut replaced, mut lines, mut fewer) = (Replaced::default(), Vec::new(), 0);
    let mut all: Vec<Line> = by_line.into_values().collect();
    all.sort_by_key(|l| (l.0.file, l.0.line));
    for (loc, group, wider, nodes) in all {
        let group = group.min(nodes.len());
        if group < 2 {
            continue;
        }
        // The last of each group does the work: the dependences of all are complete by then.
        for chunk in nodes.chunks_exact(group) {
            for (i, node) in chunk.iter().enumerate() {
                let last = i + 1 == group;
                let full = if matmuls { Replacement::FullMatmul } else { Replacement::Wider(wider.max(1)) };
                replaced.insert(*node, if last { full } else { Replacement::Nothing });
                fewer += usize::from(!last);
            }
        }
        lines.push(loc);
    }
    (fewer > 0).then_some((replaced, lines, fewer))
}
