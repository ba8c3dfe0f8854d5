//! Adapts the interpreters of all ranks to rendezvous: contributions, receives, and mismatches between instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

use nki_diag::{Advice, Diagnostic};
use nki_isa::machine::Context;
use nki_isa::program::{Control, Node};
use nki_isa::{Arch, Contribution, Participants};

use super::findings::{iterations, name_of};
use super::interpreter::{Interpreter, PendingRendezvous};
use super::rendezvous::{self, Cores, Kind, RendezvousPoint, Stop};
use crate::labels::Labels;
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
    for (i, &a) in all.iter().enumerate() {
        for &b in &all[i + 1..] {
            let (Some(wa), Some(wb)) = (side(ranks, a, wanted), side(ranks, b, wanted)) else { continue };
            if let Err(why) = fit(ranks, (a, wa), (b, wb)) {
                return Err(mismatch(ranks.len() > 1, (a, wa.node), (b, wb.node), &why));
            }
        }
    }
    Ok(())
}

fn fit(
    ranks: &[Interpreter<'_>],
    (a, wa): (CoreId, &PendingRendezvous<'_>),
    (b, wb): (CoreId, &PendingRendezvous<'_>),
) -> Result<(), String> {
    if members(ranks, a, Some(wa)) != members(ranks, b, Some(wb)) {
        return Err("they name different members".into());
    }
    if let (
        Some(Participants::Exchange { send_to: a_to, receive_from: a_from, .. }),
        Some(Participants::Exchange { send_to: b_to, receive_from: b_from, .. }),
    ) = (wa.inst.participants(), wb.inst.participants())
    {
        let (a, b) = (i64::from(a.core), i64::from(b.core));
        for (sender, to, receiver, from) in [(a, a_to, b, b_from), (b, b_to, a, a_from)] {
            if (to == receiver) != (from == sender) {
                return Err(format!("core {sender} sends to core {to}, but core {receiver} receives from core {from}"));
            }
        }
    }
    let program = ranks[a.rank].program;
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    wa.inst.agrees(wb.inst, &context)
}

fn mismatch(several: bool, (a, na): (CoreId, &Node), (b, nb): (CoreId, &Node), why: &str) -> Stopped {
    let (wa, wb) = (who(a, several), who(b, several));
    let text = format!(
        "`{}` of {wa} (line {}) and `{}` of {wb} (line {}) are incompatible: {why}",
        name_of(na),
        na.loc.line,
        name_of(nb),
        nb.loc.line
    );
    let error = Diagnostic::error("meeting-mismatch", text)
        .at_source(na.loc, format!("{wa} is here"))
        .with_source(nb.loc, format!("{wb} is here"));
    Stopped { rank: a.rank, error: Box::new(error) }
}

/// `core 1`, or `core 1 of rank 2`.
fn who(core: CoreId, several_ranks: bool) -> String {
    if several_ranks { format!("core {} of rank {}", core.core, core.rank) } else { format!("core {}", core.core) }
}

/// The last statement of a stream, including those in loop bodies.
fn last(nodes: &[Node]) -> Option<&Node> {
    let node = nodes.last()?;
    match node.kind.control() {
        Some(Control::For { body, .. } | Control::While { body, .. }) => last(body).or(Some(node)),
        _ => Some(node),
    }
}

/// No core can proceed: reports the core that the first one waits for, and its position.
fn deadlock(ranks: &[Interpreter<'_>]) -> Stopped {
    let several = ranks.len() > 1;
    let bug = |text| Stopped { rank: 0, error: Box::new(Diagnostic::error("internal", text)) };
    let first = all(ranks).find_map(|a| Some((a, waiting_at(ranks, a)?)));
    let Some((core, w)) = first else { return bug("nobody waits") };
    let (name, loc, me) = (name_of(w.node), w.node.loc, who(core, several));
    let (all, missing) = members(ranks, core, Some(w));
    let at = |text: String| Diagnostic::error("deadlock", text).at_source(loc, format!("{me} waits here forever"));
    let in_loops = |error: Diagnostic, a: CoreId, node: &Node| {
        let interpreter = &ranks[a.rank];
        match iterations(interpreter.program, node, &interpreter.state(a.core).loops) {
            Some(text) => error.note(format!("{} in {text}", who(a, several))),
            None => error,
        }
    };
    let error = if let Some(absent) = missing.first() {
        let (what, n, advice) = if absent.starts_with("rank") {
            ("rank", ranks.len(), Advice::MoreRanks)
        } else {
            let cores = ranks[core.rank].program.cores.len();
            ("core", cores, Advice::TwoCores)
        };
        let plural = if n == 1 { "" } else { "s" };
        at(format!(
            "`{name}` on line {} waits for {absent}, but there is none: the kernel runs on {n} {what}{plural}",
            loc.line
        ))
        .advise(advice)
    } else {
        let others = || all.iter().copied().filter(|&a| a != core);
        let Some(other) = others().find(|&a| kind(ranks, a) != kind(ranks, core)).or_else(|| others().next()) else {
            return bug("a core waits for itself");
        };
        let they = who(other, several);
        let error = match waiting_at(ranks, other) {
            Some(o) => {
                let pipes = match (kind(ranks, core), kind(ranks, other)) {
                    (Some(Kind::Exchange { pipe: a }), Some(Kind::Exchange { pipe: b })) if a != b => {
                        format!(" (pipe_id {a} against {b})")
                    }
                    _ => String::new(),
                };
                let there = o.node.loc;
                let error = at(format!(
                    "{me} waits at `{name}` on line {}, {they} at `{}` on line {}{pipes}: neither can proceed",
                    loc.line,
                    name_of(o.node),
                    there.line
                ));
                let text = format!("{they} waits here");
                in_loops(error.with_source(there, text), other, o.node)
            }
            None => {
                let end = last(&ranks[other.rank].program.cores[other.core as usize]).map(|n| n.loc);
                let when = end.map_or_else(|| "at once".to_owned(), |l| format!("after line {}", l.line));
                let error = at(format!(
                    "{me} waits at `{name}` on line {} for {they}, which ends {when} without reaching it",
                    loc.line
                ));
                match end {
                    Some(l) => error.with_source(l, format!("{they} ends here")),
                    None => error,
                }
            }
        };
        error.help("all members must reach their rendezvous in the same order, each the same number of times")
    };
    Stopped { rank: core.rank, error: Box::new(in_loops(error, core, w.node)) }
}
