//! Adapts the interpreters of all ranks to rendezvous: contributions, receives, and mismatches between instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

use nki_diag::{Advice, Diagnostic};
use nki_isa::machine::Context;
use nki_isa::{Arch, Contribution};

use super::disagreement::{self, Awaited, Member, Waiting};
use super::findings::iterations;
use super::interpreter::{Interpreter, PendingRendezvous};
use super::rendezvous::{self, Cores, Kind, RendezvousPoint, Stop};
use crate::trace::CoreId;

/// The error that stopped the run, and its rank.
pub(super) struct Stopped {
    pub(super) rank: usize,
    pub(super) error: Box<Diagnostic>,
}

impl Cores for [Interpreter<'_>] {
    type Stopped = Stopped;

    fn counts(&self) -> Vec<usize> {
        self.iter().map(|r| r.program.cores.len()).collect()
    }

    fn advance(&mut self, core: CoreId) -> Result<Stop, Stopped> {
        let interpreter = &mut self[core.rank];
        interpreter.switch(core.core);
        interpreter.advance().map_err(|error| Stopped { rank: core.rank, error })
    }

    fn place(&self, core: CoreId) -> Option<RendezvousPoint> {
        let state = self[core.rank].state(core.core);
        let participants = state.waiting.as_ref()?.inst.participants()?;
        let (members, missing) = rendezvous::members(&participants, core, &self.counts());
        let members = missing.is_empty().then_some(members);
        Some(RendezvousPoint { event: state.executed(), kind: Kind::of(&participants), members })
    }

    /// Each member receives the contributions and executes its instruction.
    fn complete(&mut self, core: CoreId, members: &[CoreId]) -> Result<(), Stopped> {
        let Some(wanted) = kind(self, core) else { return Ok(()) };
        agree(self, members, wanted)?;
        let participants = waits(self, core).and_then(|w| w.inst.participants());
        let of_ranks = participants.is_some_and(|m| m.is_of_ranks());
        let orders_cores = participants.is_some_and(|m| !m.is_of_ranks() || m.is_of_whole_cores());
        // All members contribute before any of them receives. A collective concatenates the contributions of each rank's cores.
        let mut contributed: BTreeMap<u32, Vec<Contribution>> = BTreeMap::new();
        for &a in members {
            let interpreter = &mut self[a.rank];
            interpreter.switch(a.core);
            let left = interpreter.core.posted.iter_mut().find(|p| is_of(&p.waiting, wanted));
            let tiles = match left {
                Some(posted) => std::mem::take(&mut posted.tiles),
                None => interpreter.contribute().map_err(|error| Stopped { rank: a.rank, error })?,
            };
            let (part, member) = if of_ranks { (a.core, a.rank as u32) } else { (0, a.core) };
            contributed.entry(part).or_default().push(Contribution { member, tiles });
        }
        let contributed: BTreeMap<u32, Arc<[Contribution]>> =
            contributed.into_iter().map(|(k, v)| (k, v.into())).collect();
        for &a in members {
            let interpreter = &mut self[a.rank];
            interpreter.switch(a.core);
            if let Some(contributed) = contributed.get(if of_ranks { &a.core } else { &0 }) {
                let outcome = match interpreter.core.posted.iter().position(|p| is_of(&p.waiting, wanted)) {
                    Some(at) => {
                        let posted = interpreter.core.posted.remove(at);
                        interpreter.receive(posted, contributed)
                    }
                    None => interpreter.complete(contributed),
                };
                outcome.map_err(|error| Stopped { rank: a.rank, error })?;
            }
            if orders_cores && members.len() > 1 {
                interpreter.races.forget();
            }
        }
        Ok(())
    }

    fn post(&mut self, core: CoreId) -> Result<(), Stopped> {
        let interpreter = &mut self[core.rank];
        interpreter.switch(core.core);
        interpreter.post().map_err(|error| Stopped { rank: core.rank, error })
    }

    fn deadlock(&self) -> Stopped {
        deadlock(self)
    }
}

fn all<'r>(ranks: &'r [Interpreter<'_>]) -> impl Iterator<Item = CoreId> + 'r {
    let cores = |rank: usize| ranks[rank].program.cores.len() as u32;
    (0..ranks.len()).flat_map(move |rank| (0..cores(rank)).map(move |core| CoreId { rank, core }))
}

fn waits<'i, 'p>(ranks: &'i [Interpreter<'p>], core: CoreId) -> Option<&'i PendingRendezvous<'p>> {
    ranks[core.rank].state(core.core).waiting.as_ref()
}

/// The rendezvous at which a core waits, else its first posted exchange.
fn waiting_at<'i, 'p>(ranks: &'i [Interpreter<'p>], core: CoreId) -> Option<&'i PendingRendezvous<'p>> {
    let state = ranks[core.rank].state(core.core);
    state.waiting.as_ref().or_else(|| state.posted.first().map(|p| &p.waiting))
}

/// The rendezvous of this kind at which a core waits, or that it has posted.
fn side<'i, 'p>(ranks: &'i [Interpreter<'p>], core: CoreId, wanted: Kind) -> Option<&'i PendingRendezvous<'p>> {
    let state = ranks[core.rank].state(core.core);
    let mut all = state.waiting.iter().chain(state.posted.iter().map(|p| &p.waiting));
    all.find(|w| w.inst.participants().is_some_and(|m| Kind::of(&m) == wanted))
}

/// The cores that `core` waits for, itself included, and the names of those that do not exist.
fn members(ranks: &[Interpreter<'_>], core: CoreId, at: Option<&PendingRendezvous<'_>>) -> (Vec<CoreId>, Vec<String>) {
    let Some(participants) = at.and_then(|w| w.inst.participants()) else { return Default::default() };
    rendezvous::members(&participants, core, &ranks.counts())
}

fn kind(ranks: &[Interpreter<'_>], core: CoreId) -> Option<Kind> {
    waiting_at(ranks, core)?.inst.participants().map(|m| Kind::of(&m))
}

fn is_of(waiting: &PendingRendezvous<'_>, wanted: Kind) -> bool {
    waiting.inst.participants().is_some_and(|m| Kind::of(&m) == wanted)
}

/// Checks that the members' instructions are compatible and name the same members.
fn agree(ranks: &[Interpreter<'_>], all: &[CoreId], wanted: Kind) -> Result<(), Stopped> {
    let members: Vec<Member<'_>> =
        all.iter().filter_map(|&core| Some(member(ranks, core, side(ranks, core, wanted)?))).collect();
    let Some(program) = all.first().map(|core| ranks[core.rank].program) else { return Ok(()) };
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    match disagreement::mismatch(&members, &ranks.counts(), &context) {
        Some((rank, error)) => Err(Stopped { rank, error: Box::new(error) }),
        None => Ok(()),
    }
}

fn member<'p>(ranks: &[Interpreter<'_>], core: CoreId, waiting: &PendingRendezvous<'p>) -> Member<'p> {
    Member { core, several_ranks: ranks.len() > 1, node: waiting.node, inst: waiting.inst }
}

/// No core can proceed: reports the core that the first one waits for, and its position.
fn deadlock(ranks: &[Interpreter<'_>]) -> Stopped {
    let bug = |text| Stopped { rank: 0, error: Box::new(Diagnostic::error("internal", text)) };
    let first = all(ranks).find_map(|a| Some((a, waiting_at(ranks, a)?)));
    let Some((core, w)) = first else { return bug("nobody waits") };
    let stopped = |error: Diagnostic| Stopped { rank: core.rank, error: Box::new(error) };
    let waiting = |a: CoreId| {
        let member = member(ranks, a, waiting_at(ranks, a)?);
        let interpreter = &ranks[a.rank];
        let iterations = iterations(interpreter.program, member.node, &interpreter.state(a.core).loops);
        Some(Waiting { member, iterations })
    };
    let Some(me) = waiting(core) else { return bug("a core waits for nothing") };
    let (all, missing) = members(ranks, core, Some(w));
    if let Some(absent) = missing.first() {
        return stopped(if absent.starts_with("rank") {
            me.for_missing(absent, "rank", ranks.len(), Advice::MoreRanks)
        } else {
            me.for_missing(absent, "core", ranks[core.rank].program.cores.len(), Advice::TwoCores)
        });
    }
    let others = || all.iter().copied().filter(|&a| a != core);
    let Some(other) = others().find(|&a| kind(ranks, a) != kind(ranks, core)).or_else(|| others().next()) else {
        return bug("a core waits for itself");
    };
    let awaited = waiting(other).map(Awaited::Waits).unwrap_or_else(|| Awaited::Ended {
        core: other.name(ranks.len() > 1),
        at: disagreement::end(&ranks[other.rank].program.cores[other.core as usize]),
    });
    stopped(me.for_other(&awaited))
}
