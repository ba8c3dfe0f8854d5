//! The errors for cores that wait for each other forever, or meet at incompatible instructions.

use nki_diag::{Advice, Diagnostic};
use nki_isa::Participants;
use nki_isa::ids::Loc;
use nki_isa::inst::Inst;
use nki_isa::machine::Context;
use nki_isa::program::{Control, Node};

use super::findings::name_of;
use super::rendezvous;
use crate::labels::Labels;
use crate::trace::CoreId;

/// A core at a rendezvous.
pub(super) struct Member<'p> {
    pub(super) core: CoreId,
    pub(super) several_ranks: bool,
    pub(super) node: &'p Node,
    pub(super) inst: &'p Inst,
}

impl Member<'_> {
    fn name(&self) -> String {
        self.core.name(self.several_ranks)
    }
}

/// The error, and the rank that reports it, if two members' instructions are incompatible or name different members. `cores` is the number of
/// cores by rank.
pub(super) fn mismatch(members: &[Member<'_>], cores: &[usize], context: &Context<'_>) -> Option<(usize, Diagnostic)> {
    for (i, a) in members.iter().enumerate() {
        for b in &members[i + 1..] {
            let Err(why) = fit(a, b, cores, context) else { continue };
            let text = format!(
                "`{}` of {} (line {}) and `{}` of {} (line {}) are incompatible: {why}",
                name_of(a.node),
                a.name(),
                a.node.loc.line,
                name_of(b.node),
                b.name(),
                b.node.loc.line
            );
            let error = Diagnostic::error("meeting-mismatch", text)
                .at_source(a.node.loc, format!("{} is here", a.name()))
                .with_source(b.node.loc, format!("{} is here", b.name()));
            return Some((a.core.rank, error));
        }
    }
    None
}

fn fit(a: &Member<'_>, b: &Member<'_>, cores: &[usize], context: &Context<'_>) -> Result<(), String> {
    let participants = (a.inst.participants(), b.inst.participants());
    let members = |of: &Option<Participants<'_>>, core| of.as_ref().map(|p| rendezvous::members(p, core, cores));
    if members(&participants.0, a.core) != members(&participants.1, b.core) {
        return Err("they name different members".into());
    }
    if let (
        Some(Participants::Exchange { send_to: a_to, receive_from: a_from, .. }),
        Some(Participants::Exchange { send_to: b_to, receive_from: b_from, .. }),
    ) = participants
    {
        let (a, b) = (i64::from(a.core.core), i64::from(b.core.core));
        for (sender, to, receiver, from) in [(a, a_to, b, b_from), (b, b_to, a, a_from)] {
            if (to == receiver) != (from == sender) {
                return Err(format!("core {sender} sends to core {to}, but core {receiver} receives from core {from}"));
            }
        }
    }
    a.inst.agrees(b.inst, context)
}

/// A core that cannot proceed at a rendezvous.
pub(super) struct Waiting<'p> {
    pub(super) member: Member<'p>,
    /// The loop iterations around the instruction.
    pub(super) iterations: Option<String>,
}

/// The member that a core waits for.
pub(super) enum Awaited<'p> {
    /// It waits elsewhere.
    Waits(Waiting<'p>),
    /// It has ended, at this location.
    Ended { core: String, at: Option<Loc> },
}

impl Waiting<'_> {
    /// An error with this core as its place.
    fn error(&self, text: String) -> Diagnostic {
        let label = format!("{} waits here forever", self.member.name());
        Diagnostic::error("deadlock", text).at_source(self.member.node.loc, label)
    }

    /// Adds the iterations around the instruction.
    fn note_iterations(&self, error: Diagnostic) -> Diagnostic {
        match &self.iterations {
            Some(text) => error.note(format!("{} in {text}", self.member.name())),
            None => error,
        }
    }

    /// The error if the core waits for the core or rank `absent`: the kernel runs on `count` of `what`.
    pub(super) fn for_missing(&self, absent: &str, what: &str, count: usize, advice: Advice) -> Diagnostic {
        let plural = if count == 1 { "" } else { "s" };
        let (name, line) = (name_of(self.member.node), self.member.node.loc.line);
        let error = self.error(format!(
            "`{name}` on line {line} waits for {absent}, but there is none: the kernel runs on {count} {what}{plural}"
        ));
        self.note_iterations(error.advise(advice))
    }

    /// The error if the core waits for `other`, which does not come.
    pub(super) fn for_other(&self, other: &Awaited<'_>) -> Diagnostic {
        let Member { node, inst, .. } = self.member;
        let (me, name, line) = (self.member.name(), name_of(node), node.loc.line);
        let error = match other {
            Awaited::Waits(other) => {
                let pipes = match (inst.participants(), other.member.inst.participants()) {
                    (Some(Participants::Exchange { pipe: a, .. }), Some(Participants::Exchange { pipe: b, .. }))
                        if a != b =>
                    {
                        format!(" (pipe_id {a} against {b})")
                    }
                    _ => String::new(),
                };
                let (they, there) = (other.member.name(), other.member.node.loc);
                let error = self.error(format!(
                    "{me} waits at `{name}` on line {line}, {they} at `{}` on line {}{pipes}: neither can proceed",
                    name_of(other.member.node),
                    there.line
                ));
                other.note_iterations(error.with_source(there, format!("{they} waits here")))
            }
            Awaited::Ended { core: they, at } => {
                let when = at.map_or_else(|| "at once".to_owned(), |end| format!("after line {}", end.line));
                let error = self.error(format!(
                    "{me} waits at `{name}` on line {line} for {they}, which ends {when} without reaching it"
                ));
                match at {
                    Some(end) => error.with_source(*end, format!("{they} ends here")),
                    None => error,
                }
            }
        };
        let help = "all members must reach their rendezvous in the same order, each the same number of times";
        self.note_iterations(error.help(help))
    }
}

/// The location of the last statement of a stream, including those in loop bodies.
pub(super) fn end(nodes: &[Node]) -> Option<Loc> {
    let node = nodes.last()?;
    match node.kind.control() {
        Some(Control::For { body, .. } | Control::While { body, .. }) => end(body).or(Some(node.loc)),
        _ => Some(node.loc),
    }
}
