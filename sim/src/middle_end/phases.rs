//! Splits loops into phases, so that the small instructions of all iterations are consecutive.

use std::ops::Range;

use nki_isa::ids::TrailId;
use nki_isa::inst::Action;
use nki_isa::program::{Node, Step};
use nki_isa::{Inst, Loc, Program, TensorId, View};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::uses::each_view;
use super::{ChangeKind, Changes, fits, has_fixed_order, inst, leaves_values, transfer};

/// Maximum elements per partition in an operand of a small instruction: an instruction of the vector or the scalar engine takes at least 64
/// cycles (instruction costs of nki.isa 2.20 to 2.26).
const SMALL: usize = 64;

/// Maximum number of compared pairs of accesses to one tensor.
const MOST_PAIRS: usize = 1 << 20;

/// Splits loops over independent iterations at the small instructions of their bodies: all iterations execute the part before such an
/// instruction, then the instruction, then the rest. A loop is unchanged if iterations share bytes that one of them writes, or if the tiles
/// of all iterations do not fit into memory.
///
/// Evidence: the older compiler merges the small instructions of several iterations. In the public profiles of attention on trn2 (S = 512), the
/// second maximum, the second sum and the reciprocal of four rows of queries are one instruction each, so that no exponential is computed before the
/// last score. Attention with S = 2048, for which there is no profile, is predicted 9% too fast on average without phases, and between 2% too fast
/// and 9% too slow with them. Splitting at every statement is far too slow (34%, with transposes a third shorter). For kda's rmsnorm_matmul, to which
/// nothing was fitted, the mean error is 2.0% without phases and 2.2% with them. Here the small instructions remain separate, which costs about 1 us
/// for 16 of them.
pub(super) fn split(program: &mut Program, changes: &mut Changes) {
    let ordered = |inst: &Inst| matches!(inst.action(), Action::Sequenced) || leaves_values(inst);
    let nodes = || program.cores.iter().flatten();
    if !nodes().any(is_small) || has_fixed_order(program) || nodes().filter_map(inst).any(ordered) {
        return;
    }
    let (all, loops) = in_phases(program, &|_| true);
    if loops.is_empty() {
        return;
    }
    let mut best = fits(&all).is_ok().then(|| (all, loops.clone()));
    if best.is_none() && loops.len() > 1 {
        // Greedily split loops, from the first, as long as the program fits.
        let mut chosen: Vec<Loc> = Vec::new();
        for (at, _) in loops {
            chosen.push(at);
            let some = in_phases(program, &|at| chosen.contains(&at));
            if fits(&some.0).is_ok() {
                best = Some(some);
            } else {
                chosen.pop();
            }
        }
    }
    let Some((changed, loops)) = best else { return };
    *program = changed;
    for (at, iterations) in loops {
        changes.add_many(ChangeKind::Split, at, iterations, 0);
    }
}

/// The program with the loops selected by `chosen` split into phases, where that preserves results; and these loops with their iteration counts.
fn in_phases(program: &Program, chosen: &dyn Fn(Loc) -> bool) -> (Program, Vec<(Loc, usize)>) {
    let mut loops: Vec<(Loc, usize)> = Vec::new();
    let in_order = |stream: &Vec<Node>| {
        let mut split = Splitter { program, stream, chosen, loops: &mut loops };
        let units = split.units(0..stream.len() as u32, TrailId::ROOT);
        units.iter().flat_map(|unit| &unit.nodes).map(|&at| stream[at as usize].clone()).collect()
    };
    let cores = program.cores.iter().map(in_order).collect();
    (Program { cores, ..program.clone() }, loops)
}

/// A statement of a body: an instruction, or a nested loop with all its instructions.
struct Unit {
    /// Its location, and the number of earlier units of the body at the same location.
    key: (Loc, u32),
    small: bool,
    /// Its instructions, by position in the stream, in execution order.
    nodes: SmallVec<[u32; 1]>,
}

/// The units of a body so far.
#[derive(Default)]
struct Body {
    units: Vec<Unit>,
    seen: FxHashMap<Loc, u32>,
}

impl Body {
    fn push(&mut self, at: Loc, small: bool, nodes: SmallVec<[u32; 1]>) {
        let before = self.seen.entry(at).or_default();
        self.units.push(Unit { key: (at, *before), small, nodes });
        *before += 1;
    }
}

struct Splitter<'p> {
    program: &'p Program,
    stream: &'p [Node],
    chosen: &'p dyn Fn(Loc) -> bool,
    loops: &'p mut Vec<(Loc, usize)>,
}

impl Splitter<'_> {
    /// The units of the instructions in `range`, which are all inside `trail`. Statements of a called function belong to the caller.
    fn units(&mut self, range: Range<u32>, trail: TrailId) -> Vec<Unit> {
        let mut body = Body::default();
        let mut at = range.start;
        while at < range.end {
            let Some(inner) = self.below(at, trail) else {
                let node = &self.stream[at as usize];
                body.push(node.loc, is_small(node), smallvec![at]);
                at += 1;
                continue;
            };
            let end = match self.step(inner) {
                Step::Iteration { loc, independent, .. } => {
                    let (loc, independent) = (*loc, *independent);
                    let (iterations, end) = self.iterations(at..range.end, trail, loc);
                    let nodes = self.looped(loc, independent, iterations);
                    body.push(loc, false, nodes);
                    end
                }
                _ => {
                    let end = self.end(at..range.end, trail, inner);
                    self.units(at..end, inner).into_iter().for_each(|u| body.push(u.key.0, u.small, u.nodes));
                    end
                }
            };
            at = end;
        }
        body.units
    }

    fn step(&self, trail: TrailId) -> &Step {
        &self.program.trails[trail.0 as usize].step
    }

    /// The step of an instruction's trail directly below `trail`, if any.
    fn below(&self, at: u32, trail: TrailId) -> Option<TrailId> {
        let mut inner = None;
        let mut outer = self.stream[at as usize].trail;
        while outer != trail {
            inner = Some(outer);
            outer = self.program.trails[outer.0 as usize].parent?;
        }
        inner
    }

    /// The position after the leading instructions of `range` that are inside `inner`.
    fn end(&self, range: Range<u32>, trail: TrailId, inner: TrailId) -> u32 {
        range.clone().find(|&at| self.below(at, trail) != Some(inner)).unwrap_or(range.end)
    }

    /// The iterations of the loop at `loc` with which `range` begins, and the position after them.
    fn iterations(&self, range: Range<u32>, trail: TrailId, loc: Loc) -> (Vec<(TrailId, Range<u32>)>, u32) {
        let mut iterations = Vec::new();
        let mut at = range.start;
        while at < range.end
            && let Some(inner) = self.below(at, trail)
            && matches!(self.step(inner), Step::Iteration { loc: other, .. } if *other == loc)
        {
            let end = self.end(at..range.end, trail, inner);
            iterations.push((inner, at..end));
            at = end;
        }
        (iterations, at)
    }

    /// The instructions of a loop, in execution order.
    fn looped(&mut self, at: Loc, independent: bool, iterations: Vec<(TrailId, Range<u32>)>) -> SmallVec<[u32; 1]> {
        let bodies: Vec<Vec<Unit>> =
            iterations.iter().map(|(inner, range)| self.units(range.clone(), *inner)).collect();
        let alike = |a: &Vec<Unit>, b: &Vec<Unit>| a.iter().map(|u| u.key).eq(b.iter().map(|u| u.key));
        let splits = independent
            && bodies.len() > 1
            && bodies[0].iter().any(|unit| unit.small)
            && (self.chosen)(at)
            && bodies.windows(2).all(|w| alike(&w[0], &w[1]))
            && self.are_independent(&iterations);
        if !splits {
            return bodies.iter().flatten().flat_map(|unit| unit.nodes.iter().copied()).collect();
        }
        match self.loops.iter_mut().find(|(other, _)| *other == at) {
            Some((_, count)) => *count += bodies.len(),
            None => self.loops.push((at, bodies.len())),
        }
        let mut nodes = SmallVec::new();
        let mut end = 0;
        // A phase: one small instruction, or the part between two of them.
        for phase in bodies[0].chunk_by(|a, b| !a.small && !b.small) {
            let begin = end;
            end += phase.len();
            nodes.extend(bodies.iter().flat_map(|body| &body[begin..end]).flat_map(|unit| unit.nodes.iter().copied()));
        }
        nodes
    }

    /// Whether iterations share no bytes that one of them writes. Also `false` if the check would take too long.
    fn are_independent(&self, iterations: &[(TrailId, Range<u32>)]) -> bool {
        let mut of_tensor: FxHashMap<TensorId, Vec<Access<'_>>> = FxHashMap::default();
        for (iteration, (_, range)) in iterations.iter().enumerate() {
            for node in &self.stream[range.start as usize..range.end as usize] {
                each_view(node, &mut |view, writes| {
                    let bytes = if view.indirect.is_some() { (i64::MIN, i64::MAX) } else { view.byte_span() };
                    of_tensor.entry(view.tensor).or_default().push(Access { iteration, bytes, view, writes });
                });
            }
        }
        of_tensor.into_values().all(|accesses| !conflict(accesses))
    }
}

/// An access of an iteration to a tensor.
struct Access<'p> {
    iteration: usize,
    /// The first byte in the tensor (on chip, in a partition), and the byte after the last.
    bytes: (i64, i64),
    view: &'p View,
    writes: bool,
}

/// Whether two iterations access the same bytes of a tensor and at least one writes.
fn conflict(mut accesses: Vec<Access<'_>>) -> bool {
    let alone = accesses.iter().all(|a| a.iteration == accesses[0].iteration);
    if alone || !accesses.iter().any(|a| a.writes) {
        return false;
    }
    accesses.sort_by_key(|a| a.bytes.0);
    let mut pairs = 0;
    accesses.iter().enumerate().any(|(i, a)| {
        accesses[i + 1..].iter().take_while(|b| b.bytes.0 < a.bytes.1).any(|b| {
            pairs += 1;
            a.iteration != b.iteration && (a.writes || b.writes) && a.view.intersects(b.view) || pairs > MOST_PAIRS
        })
    })
}

/// Whether an instruction computes on few elements per partition.
fn is_small(node: &Node) -> bool {
    let computes =
        inst(node).is_some_and(|inst| !matches!(inst.action(), Action::Fills(_))) && transfer(node).is_none();
    let (mut small, mut writes) = (true, false);
    each_view(node, &mut |view, written| {
        small &= view.space.is_on_chip() && view.free_elements() <= SMALL;
        writes |= written;
    });
    computes && small && writes
}
