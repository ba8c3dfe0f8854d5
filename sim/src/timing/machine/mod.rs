//! The event loop: engines, DMA queues and semaphores of all cores on one clock.
//!
//! `core`: the state of one core and its dependences. `engine`: the engines and their queues. `tensor`: the tensor engine. `transfers`: the DMA
//! queues. `rendezvous`: waits between cores.
//!
//! *Invariants: an engine starts its operations in the given order; this module makes no ordering decisions.*

mod core;
mod engine;
mod rendezvous;
mod tensor;
mod transfers;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nki_diag::progress;
use nki_isa::names::Engine;
use smallvec::SmallVec;

use self::core::{Moment, Progress, Queue, SegmentState};
use self::rendezvous::Standing;
use self::tensor::Array;
use super::cost::MachineConstants;
use super::dma::Engines;
use super::fixed::Millionths;
use super::limiter;
use super::lower::{ENGINES, Lowered};
use super::order::Order;
use super::record::Observer;
use crate::timeline::{Peer, Ps};
use crate::trace::CoreId;

/// One core while it runs.
pub(super) struct Core<'a, O> {
    low: &'a Lowered<'a>,
    order: &'a Order,
    machine: &'a MachineConstants,
    progress: Vec<Progress>,
    segments: Vec<SegmentState>,
    queues: [Queue; ENGINES],
    /// By DMA queue: completion time of its last transfer; transfers complete in order.
    transferred: [Ps; ENGINES],
    engines: Engines,
    /// End of the last collective. Those of a rank run one after the other: in a public profile of four ranks of a trn2, a second
    /// all-gather waits 28.9 us for the first (nki-moe-megakernel, round_megakernel_perf.md).
    collectives: Ps,
    /// By operation: parts of a transfer still in flight.
    moving: Vec<u32>,
    array: Array,
    limiter: limiter::State,
    table: Option<u32>,
    /// By shared port: the current or next reservation of each of its two engines.
    ports: [[Held; 2]; PORTS.len()],
    heap: BinaryHeap<Reverse<(Ps, u64, Moment)>>,
    sequence: u64,
    standing: Standing,
    /// The time of the last step.
    now: Ps,
    end: Ps,
    observer: O,
}

/// The engines that share a port to memory, by port: SBUF, PSUM.
const PORTS: [[Engine; 2]; 2] = [[Engine::Vector, Engine::GpSimd], [Engine::Vector, Engine::Scalar]];

/// A reservation of a shared port.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    from: Ps,
    until: Ps,
    by: u32,
}

/// The result of a core's run.
pub(crate) struct Finished<O> {
    pub(crate) observer: O,
    /// Completion time of the whole core.
    pub(crate) end: Ps,
    /// Number of operations that never start because of a cycle in the orders of the queues. The scheduler's orders have none.
    pub(crate) waiting: u32,
}

impl<O> Finished<O> {
    /// Converts the observer with `make`.
    pub(super) fn map<T>(self, make: impl FnOnce(O) -> T) -> Finished<T> {
        Finished { observer: make(self.observer), end: self.end, waiting: self.waiting }
    }
}

/// Time from the start of the kernel to its end, after these cores have run.
pub(super) fn elapsed<O>(finished: &[Finished<O>], machine: &MachineConstants) -> Ps {
    finished.iter().map(|core| core.end).fold(machine.head, Ps::max) + machine.tail
}

/// Runs the executed operations of all cores on one clock, each core in its order. `observe(i)` returns the observer of core `i`.
pub(crate) fn run<O: Observer>(
    lowered: &[(CoreId, Lowered<'_>)],
    orders: &[Order],
    machine: &MachineConstants,
    mut observe: impl FnMut(usize) -> O,
) -> Vec<Finished<O>> {
    let mut cores: Vec<Core<'_, O>> =
        lowered.iter().enumerate().map(|(i, (_, low))| Core::new(low, &orders[i], machine, observe(i))).collect();
    let ids: Vec<CoreId> = lowered.iter().map(|(id, _)| *id).collect();
    // By rendezvous: number of missing members, and the members that have arrived (core in the list, operation).
    let mut gathering: Vec<(usize, Vec<(usize, u32)>)> = Vec::new();
    for r in lowered.iter().flat_map(|(_, low)| &low.rendezvous) {
        if gathering.len() <= r.number as usize {
            gathering.resize(r.number as usize + 1, (0, Vec::new()));
        }
        gathering[r.number as usize].0 += 1;
    }
    for core in cores.iter_mut() {
        core.begin();
    }
    let mut changed: Vec<usize> = (0..cores.len()).collect();
    progress::begin("statements timed", lowered.iter().map(|(_, low)| low.ops.len() as u64).sum());
    let mut steps = 0;
    loop {
        steps += 1;
        if steps % progress::STEP == 0 {
            progress::reach(cores.iter().flat_map(|c| &c.queues).map(|q| u64::from(q.taken)).sum());
        }
        nki_diag::stop::check();
        // Process arrivals before other events of this time.
        while let Some(c) = changed.pop() {
            let Some((op, rendezvous)) = cores[c].standing.arrived.take() else { continue };
            let (pending, here) = &mut gathering[rendezvous as usize];
            here.push((c, op));
            *pending -= 1;
            if *pending == 0 {
                hold(&mut cores, &ids, here, (c, op));
            }
        }
        let next = cores.iter().enumerate().filter_map(|(i, c)| Some((c.next()?, i))).min();
        let Some((_, c)) = next else { break };
        cores[c].step();
        changed.push(c);
        share_traffic(&mut cores, &ids, c);
    }
    let waiting = |c: &Core<'_, O>| c.segments.iter().map(|s| s.pending).sum();
    cores.into_iter().map(|c| Finished { waiting: waiting(&c), end: c.end, observer: c.observer }).collect()
}

/// Completes a rendezvous whose members have all arrived, `last` being the last. All members resume.
fn hold<O: Observer>(cores: &mut [Core<'_, O>], ids: &[CoreId], here: &[(usize, u32)], last: (usize, u32)) {
    let (c, op) = last;
    let now = cores[c].now;
    for &(member, its) in here {
        let same_rank = ids[member].rank == ids[c].rank;
        let peer = if same_rank { Peer::Core(ids[c].core) } else { Peer::Rank(ids[c].rank as u32) };
        // A posted operation starts when its engine is free, possibly after an operation that depends on this rendezvous.
        if member != c && same_rank && !cores[member].standing.is_left(its) {
            cores[member].observer.met(its, c, op);
        }
        cores[member].resume(its, now, (member != c).then_some(peer));
    }
}

/// The cores of a logical core share the bandwidth of one HBM stack, in proportion to their demand. A single core reaches the limit
/// with copies from HBM to HBM, whose bytes count twice.
fn share_traffic<O: Observer>(cores: &mut [Core<'_, O>], ids: &[CoreId], stepped: usize) {
    if !std::mem::take(&mut cores[stepped].engines.touched) {
        return;
    }
    let rank = ids[stepped].rank;
    let now = cores[stepped].now;
    let of_rank: SmallVec<[usize; 2]> = (0..cores.len()).filter(|&i| ids[i].rank == rank).collect();
    let limit = cores[stepped].machine.shared;
    let wanted: u128 = of_rank.iter().map(|&i| cores[i].engines.demand()).sum();
    let scale = if wanted > u128::from(limit) && wanted > 0 {
        Millionths::from_parts((u128::from(limit) * u128::from(Millionths::FULL.parts()) / wanted).max(1) as u64)
    } else {
        Millionths::FULL
    };
    for i in of_rank {
        cores[i].rescale(scale, now);
    }
}
