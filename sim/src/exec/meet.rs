//! Runs the cores of all ranks, each until it must wait for others, and holds their meetings.

use std::collections::BTreeMap;
use std::sync::Arc;

use nki_diag::{Advice, Diagnostic};
use nki_isa::machine::Context;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Contribution, Meeting};

use super::findings::{iterations, name_of};
use super::interpreter::{Interpreter, Stop, Waiting};
use crate::actors::{self, Actor};
use crate::place::span;

/// As [`actors::kind`] gives it.
type Kind = (u8, Option<i64>);

/// Why the run stopped, and on which rank.
pub(super) struct Stopped {
    pub(super) rank: usize,
    pub(super) error: Box<Diagnostic>,
}

/// Runs everything to its end.
///
/// # Errors
/// If a core faults, or cores wait for each other for ever.
pub(super) fn run(ranks: &mut [Interpreter<'_>]) -> Result<(), Stopped> {
    let mut ready: Vec<Actor> = Vec::new();
    for (rank, interpreter) in ranks.iter().enumerate() {
        ready.extend((0..interpreter.program.cores.len() as u32).map(|core| Actor { rank, core }));
    }
    let mut waiting: Vec<Actor> = Vec::new();
    // Those whose next statement needs an exchange that they have left behind.
    let mut blocked: Vec<Actor> = Vec::new();
    loop {
        for actor in std::mem::take(&mut ready) {
            let interpreter = &mut ranks[actor.rank];
            interpreter.switch(actor.core);
            match interpreter.advance() {
                Ok(Stop::Done) => {}
                Ok(Stop::Waits) => waiting.push(actor),
                Ok(Stop::Blocked) => blocked.push(actor),
                Err(error) => return Err(Stopped { rank: actor.rank, error }),
            }
        }
        if waiting.is_empty() && blocked.is_empty() && all_received(ranks) {
            return Ok(());
        }
        // Who has come is looked at in a fixed order, so that a run is the same every time.
        waiting.sort_unstable_by_key(|a| (a.rank, a.core));
        let mut met: Vec<Actor> = Vec::new();
        let mut received: Vec<Actor> = Vec::new();
        for &actor in &waiting {
            if met.contains(&actor) {
                continue;
            }
            if let Some(members) = all_here(ranks, actor) {
                let posted = hold(ranks, actor, &members)?;
                met.extend(members.into_iter().filter(|a| !posted.contains(a)));
                received.extend(posted);
            }
        }
        if met.is_empty() {
            // Exchanges of different pipes do not wait for each other: whoever stands at one has sent, and goes on.
            let at_exchange =
                |a: &Actor| matches!(waits(ranks, *a).and_then(|w| w.inst.meeting()), Some(Meeting::Exchange { .. }));
            met = waiting.iter().copied().filter(at_exchange).collect();
            if met.is_empty() {
                return Err(deadlock(ranks));
            }
            for &a in &met {
                let interpreter = &mut ranks[a.rank];
                interpreter.switch(a.core);
                interpreter.post().map_err(|error| Stopped { rank: a.rank, error })?;
            }
        }
        waiting.retain(|a| !met.contains(a));
        ready = met;
        ready.extend(blocked.iter().filter(|a| received.contains(a)));
        blocked.retain(|a| !received.contains(a));
        ready.sort_unstable_by_key(|a| (a.rank, a.core));
    }
}

/// Whether no exchange has been left behind.
fn all_received(ranks: &[Interpreter<'_>]) -> bool {
    actors_of(ranks).all(|a| ranks[a.rank].state(a.core).posted.is_empty())
}

fn actors_of<'r>(ranks: &'r [Interpreter<'_>]) -> impl Iterator<Item = Actor> + 'r {
    let cores = |rank: usize| ranks[rank].program.cores.len() as u32;
    (0..ranks.len()).flat_map(move |rank| (0..cores(rank)).map(move |core| Actor { rank, core }))
}

fn waits<'i, 'p>(ranks: &'i [Interpreter<'p>], actor: Actor) -> Option<&'i Waiting<'p>> {
    ranks[actor.rank].state(actor.core).waiting.as_ref()
}

/// Where an actor stands: what it waits at, else the first exchange that it has left behind.
fn stands<'i, 'p>(ranks: &'i [Interpreter<'p>], actor: Actor) -> Option<&'i Waiting<'p>> {
    let state = ranks[actor.rank].state(actor.core);
    state.waiting.as_ref().or_else(|| state.posted.first().map(|p| &p.waiting))
}

/// What an actor waits at or has left behind that is of this kind.
fn side<'i, 'p>(ranks: &'i [Interpreter<'p>], actor: Actor, wanted: Kind) -> Option<&'i Waiting<'p>> {
    let state = ranks[actor.rank].state(actor.core);
    let mut all = state.waiting.iter().chain(state.posted.iter().map(|p| &p.waiting));
    all.find(|w| w.inst.meeting().is_some_and(|m| actors::kind(&m) == wanted))
}

/// The actors that `actor` waits for, itself included, and the names of those that do not exist.
fn members(ranks: &[Interpreter<'_>], actor: Actor, at: Option<&Waiting<'_>>) -> (Vec<Actor>, Vec<String>) {
    let Some(meeting) = at.and_then(|w| w.inst.meeting()) else { return Default::default() };
    let cores: Vec<usize> = ranks.iter().map(|r| r.program.cores.len()).collect();
    actors::members(&meeting, actor, &cores)
}

fn kind(ranks: &[Interpreter<'_>], actor: Actor) -> Option<Kind> {
    stands(ranks, actor)?.inst.meeting().map(|m| actors::kind(&m))
}

/// The members of the meeting that `actor` waits for, itself first, if all of them wait for one of its kind or have left it behind.
fn all_here(ranks: &[Interpreter<'_>], actor: Actor) -> Option<Vec<Actor>> {
    let at = waits(ranks, actor)?;
    let wanted = actors::kind(&at.inst.meeting()?);
    let (mine, missing) = members(ranks, actor, Some(at));
    let here = missing.is_empty() && mine.iter().all(|&a| side(ranks, a, wanted).is_some());
    here.then_some(mine)
}

/// All have come: each gets what the others have brought and executes its instruction. Gives those that had left it behind.
fn hold(ranks: &mut [Interpreter<'_>], actor: Actor, members: &[Actor]) -> Result<Vec<Actor>, Stopped> {
    let Some(wanted) = kind(ranks, actor) else { return Ok(Vec::new()) };
    agree(ranks, members, wanted)?;
    let meeting = waits(ranks, actor).and_then(|w| w.inst.meeting());
    let of_ranks = meeting.is_some_and(|m| m.is_of_ranks());
    let orders_cores = meeting.is_some_and(|m| !m.is_of_ranks() || m.is_of_whole_cores());
    // Everybody brings before anybody gets. A collective joins what one core of each rank brings.
    let mut brought: BTreeMap<u32, Vec<Contribution>> = BTreeMap::new();
    for &a in members {
        let interpreter = &mut ranks[a.rank];
        interpreter.switch(a.core);
        let left = interpreter.core.posted.iter_mut().find(|p| is_of(&p.waiting, wanted));
        let tiles = match left {
            Some(posted) => std::mem::take(&mut posted.tiles),
            None => interpreter.contribute().map_err(|error| Stopped { rank: a.rank, error })?,
        };
        let (part, member) = if of_ranks { (a.core, a.rank as u32) } else { (0, a.core) };
        brought.entry(part).or_default().push(Contribution { member, tiles });
    }
    let brought: BTreeMap<u32, Arc<[Contribution]>> = brought.into_iter().map(|(k, v)| (k, v.into())).collect();
    let mut had_left = Vec::new();
    for &a in members {
        let interpreter = &mut ranks[a.rank];
        interpreter.switch(a.core);
        if let Some(brought) = brought.get(if of_ranks { &a.core } else { &0 }) {
            let outcome = match interpreter.core.posted.iter().position(|p| is_of(&p.waiting, wanted)) {
                Some(at) => {
                    had_left.push(a);
                    let posted = interpreter.core.posted.remove(at);
                    interpreter.receive(posted, brought)
                }
                None => interpreter.meet(brought),
            };
            outcome.map_err(|error| Stopped { rank: a.rank, error })?;
        }
        if orders_cores && members.len() > 1 {
            interpreter.races.forget();
        }
    }
    Ok(had_left)
}

fn is_of(waiting: &Waiting<'_>, wanted: Kind) -> bool {
    waiting.inst.meeting().is_some_and(|m| actors::kind(&m) == wanted)
}

/// The members execute instructions that fit together, and mean each other.
fn agree(ranks: &[Interpreter<'_>], all: &[Actor], wanted: Kind) -> Result<(), Stopped> {
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
    (a, wa): (Actor, &Waiting<'_>),
    (b, wb): (Actor, &Waiting<'_>),
) -> Result<(), String> {
    if members(ranks, a, Some(wa)) != members(ranks, b, Some(wb)) {
        return Err("they name different members".into());
    }
    if let (
        Some(Meeting::Exchange { send_to: a_to, receive_from: a_from, .. }),
        Some(Meeting::Exchange { send_to: b_to, receive_from: b_from, .. }),
    ) = (wa.inst.meeting(), wb.inst.meeting())
    {
        let (a, b) = (i64::from(a.core), i64::from(b.core));
        for (sender, to, receiver, from) in [(a, a_to, b, b_from), (b, b_to, a, a_from)] {
            if (to == receiver) != (from == sender) {
                return Err(format!("core {sender} sends to core {to}, core {receiver} receives from core {from}"));
            }
        }
    }
    let program = ranks[a.rank].program;
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    wa.inst.agrees(wb.inst, &context)
}

fn mismatch(several: bool, (a, na): (Actor, &Node), (b, nb): (Actor, &Node), why: &str) -> Stopped {
    let (wa, wb) = (who(a, several), who(b, several));
    let text = format!(
        "`{}` of {wa} (line {}) and `{}` of {wb} (line {}) do not fit together: {why}",
        name_of(na),
        na.loc.line,
        name_of(nb),
        nb.loc.line
    );
    let error = Diagnostic::error("meeting-mismatch", text)
        .at_loc(span(na.loc), na.loc.line, na.loc.column, format!("{wa} is here"))
        .with_loc(span(nb.loc), nb.loc.line, nb.loc.column, format!("{wb} is here"));
    Stopped { rank: a.rank, error: Box::new(error) }
}

/// `core 1`, or `core 1 of rank 2`.
fn who(actor: Actor, several_ranks: bool) -> String {
    if several_ranks { format!("core {} of rank {}", actor.core, actor.rank) } else { format!("core {}", actor.core) }
}

/// Where a stream ends.
fn last(nodes: &[Node]) -> Option<&Node> {
    let node = nodes.last()?;
    match &node.kind {
        NodeKind::For { body, .. } | NodeKind::While { body, .. } => last(body).or(Some(node)),
        _ => Some(node),
    }
}

/// Nobody can go on: says for whom the first one waits, and where that one is.
fn deadlock(ranks: &[Interpreter<'_>]) -> Stopped {
    let several = ranks.len() > 1;
    let bug = |text| Stopped { rank: 0, error: Box::new(Diagnostic::error("internal", text)) };
    let first = actors_of(ranks).find_map(|a| Some((a, stands(ranks, a)?)));
    let Some((actor, w)) = first else { return bug("nobody waits") };
    let (name, loc, me) = (name_of(w.node), w.node.loc, who(actor, several));
    let (all, missing) = members(ranks, actor, Some(w));
    let at = |text: String| {
        Diagnostic::error("deadlock", text).at_loc(span(loc), loc.line, loc.column, format!("{me} waits here for ever"))
    };
    let in_loops = |error: Diagnostic, a: Actor, node: &Node| {
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
            let cores = ranks[actor.rank].program.cores.len();
            ("core", cores, Advice::TwoCores)
        };
        let plural = if n == 1 { "" } else { "s" };
        at(format!(
            "`{name}` on line {} waits for {absent}, but there is none: the kernel runs on {n} {what}{plural}",
            loc.line
        ))
        .advise(advice)
    } else {
        let others = || all.iter().copied().filter(|&a| a != actor);
        let Some(other) = others().find(|&a| kind(ranks, a) != kind(ranks, actor)).or_else(|| others().next()) else {
            return bug("a core waits for itself");
        };
        let they = who(other, several);
        let error = match stands(ranks, other) {
            Some(o) => {
                let pipes = match (kind(ranks, actor), kind(ranks, other)) {
                    (Some((_, Some(a))), Some((_, Some(b)))) if a != b => format!(" (pipe_id {a} against {b})"),
                    _ => String::new(),
                };
                let there = o.node.loc;
                let error = at(format!(
                    "{me} waits at `{name}` on line {}, {they} at `{}` on line {}{pipes}: neither can go on",
                    loc.line,
                    name_of(o.node),
                    there.line
                ));
                let text = format!("{they} waits here");
                in_loops(error.with_loc(span(there), there.line, there.column, text), other, o.node)
            }
            None => {
                let end = last(&ranks[other.rank].program.cores[other.core as usize]).map(|n| n.loc);
                let when = end.map_or_else(|| "at once".to_owned(), |l| format!("after line {}", l.line));
                let error = at(format!(
                    "{me} waits at `{name}` on line {} for {they}, which ends {when} without coming there",
                    loc.line
                ));
                match end {
                    Some(l) => error.with_loc(span(l), l.line, l.column, format!("{they} ends here")),
                    None => error,
                }
            }
        };
        error.help("all members must come to their meetings in one order, each the same number of times")
    };
    Stopped { rank: actor.rank, error: Box::new(in_loops(error, actor, w.node)) }
}
