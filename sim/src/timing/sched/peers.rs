//! Cores side by side: one clock, meetings, and the HBM that they share.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::core::{Core, Moment};
use crate::actors::Actor;
use crate::timeline::{Cause, EventId, Peer, Ps, Release};
use crate::timing::lower::OpKind;
use crate::timing::meetings::Meetings;

/// Where a core stands in its meetings.
#[derive(Debug, Default)]
pub(super) struct Attendance {
    /// Meetings still to be held, by operation.
    meetings: FxHashMap<u32, u32>,
    /// Operations that the engine leaves behind when the others are not there.
    posted: FxHashSet<u32>,
    /// Those of them that it has left behind.
    left: FxHashSet<u32>,
    /// The one it has come to, to be announced.
    arrived: Option<(u32, u32)>,
    /// Operations that waited for an operation of another core of the same timeline: (operation, core, that operation).
    pub(super) waited: Vec<(u32, usize, u32)>,
}

impl Attendance {
    pub(super) fn new(meetings: Vec<(u32, u32)>, posted: Vec<u32>) -> Self {
        Attendance {
            meetings: meetings.into_iter().collect(),
            posted: posted.into_iter().collect(),
            ..Attendance::default()
        }
    }

    /// Whether `op` has been left behind: what follows it does not wait for it.
    pub(super) fn is_left(&self, op: u32) -> bool {
        self.left.contains(&op)
    }

    /// Whether `op` has still to meet operations of other cores.
    pub(super) fn is_meeting(&self, op: u32) -> bool {
        self.meetings.contains_key(&op)
    }
}

impl Core<'_> {
    /// Whether `op`, at the head of queue `q`, must wait for others. If so its arrival is announced, once.
    pub(super) fn must_meet(&mut self, q: usize, op: u32, now: Ps) -> bool {
        let Some(&meeting) = self.attendance.meetings.get(&op) else { return false };
        self.wait_lane(q, op, now, None);
        self.attendance.arrived = Some((op, meeting));
        if self.attendance.posted.contains(&op) {
            self.attendance.left.insert(op);
            self.consider(q);
        } else {
            self.queues[q].chosen = Some(op);
        }
        true
    }

    /// The meeting of `op` is held now; it starts. `last` came last, if that was another.
    fn go_on(&mut self, op: u32, now: Ps, last: Option<Peer>) {
        let OpKind::Inst { queue } = self.low.ops[op as usize].kind else { return };
        self.attendance.meetings.remove(&op);
        if self.attendance.left.remove(&op) {
            // It starts as soon as the engine is free.
            let q = queue as usize;
            let queue = &mut self.queues[q];
            queue.free = queue.free.max(now);
            queue.ready.push(Reverse((0, op)));
            return self.consider(q);
        }
        if let Some(peer) = last {
            let queue = &mut self.queues[queue as usize];
            queue.lane.stall(now, Cause::Peer(peer));
            queue.free = now;
        }
        self.choose(queue as usize, op, now);
    }
}

/// Runs all cores on one clock.
pub(super) fn run(cores: &mut [Core<'_>], actors: &[Actor], mut meetings: Meetings) {
    for core in cores.iter_mut() {
        core.begin();
    }
    let mut changed: Vec<usize> = (0..cores.len()).collect();
    loop {
        nki_diag::stop::check();
        // Arrivals before anything else at this time.
        while let Some(c) = changed.pop() {
            let Some((op, meeting)) = cores[c].attendance.arrived.take() else { continue };
            let gathering = &mut meetings.all[meeting as usize];
            gathering.here.push((c, op));
            gathering.pending -= 1;
            if gathering.pending > 0 {
                continue;
            }
            let now = cores[c].now;
            for &(member, its) in &gathering.here {
                let same_rank = actors[member].rank == actors[c].rank;
                let last = (member != c).then_some(if same_rank {
                    Peer::Core(actors[c].core)
                } else {
                    Peer::Rank(actors[c].rank as u32)
                });
                // What was left behind starts when its engine is free: that may be after something that waited for this very meeting.
                if member != c && same_rank && !cores[member].attendance.is_left(its) {
                    cores[member].attendance.waited.push((its, c, op));
                }
                cores[member].go_on(its, now, last);
            }
        }
        let next = cores.iter().enumerate().filter_map(|(i, c)| Some((c.next()?, i))).min();
        let Some((_, c)) = next else { return };
        cores[c].step();
        changed.push(c);
        share_hbm(cores, actors, c);
    }
}

/// The cores of a logical core use one stack of HBM: together they get no more than it gives, each in proportion to what it asks for.
fn share_hbm(cores: &mut [Core<'_>], actors: &[Actor], stepped: usize) {
    if !std::mem::take(&mut cores[stepped].engines.touched) {
        return;
    }
    let rank = actors[stepped].rank;
    let now = cores[stepped].now;
    let of_rank: Vec<usize> = (0..cores.len()).filter(|&i| actors[i].rank == rank).collect();
    if of_rank.len() < 2 {
        return;
    }
    let limit = cores[stepped].machine.hbm;
    let wanted: u128 = of_rank.iter().map(|&i| cores[i].engines.demand()).sum();
    let scale = if wanted > u128::from(limit) && wanted > 0 {
        (u128::from(limit) * 1_000_000 / wanted).max(1) as u64
    } else {
        1_000_000
    };
    for i in of_rank {
        cores[i].rescale(scale, now);
    }
}

impl Core<'_> {
    /// The DMA engines move at `scale` millionths of their rate from now on.
    fn rescale(&mut self, scale: u64, now: Ps) {
        let mut ticks = Vec::new();
        self.engines.rescale(scale, now, &mut |t, c, v| ticks.push((t, c, v)));
        for (t, c, v) in ticks {
            self.at(t, Moment::Tick(c, v));
        }
    }
}

/// Tells the events that waited for another core which of its events that was.
pub(super) fn link(
    waited: &[(u32, usize, u32)],
    own: &super::Renumber,
    all: &[super::Renumber],
    base: usize,
) -> Vec<(EventId, Release)> {
    waited
        .iter()
        .map(|&(op, core, its)| (own.event(EventId(op)), Release::Peer(all[core - base].event(EventId(its)))))
        .collect()
}
