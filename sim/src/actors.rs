//! Who meets whom: the cores of all ranks and the meetings of their instructions.

use nki_isa::Meeting;

/// A core of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Actor {
    pub(crate) rank: usize,
    pub(crate) core: u32,
}

/// The number of the kind of exchanges between the cores.
pub(crate) const EXCHANGE: u8 = 1;

/// What members must have in common to meet: the kind of the meeting, and the pipe of an exchange.
pub(crate) fn kind(meeting: &Meeting<'_>) -> (u8, Option<i64>) {
    match meeting {
        Meeting::Cores(_) => (0, None),
        Meeting::Exchange { pipe, .. } => (EXCHANGE, Some(*pipe)),
        Meeting::Group { whole, .. } => (if *whole { 2 } else { 3 }, None),
        Meeting::Pairs { whole, .. } => (if *whole { 4 } else { 5 }, None),
    }
}

/// The members of a meeting, `me` included, and the names of those that do not exist. `cores` gives the number of cores by rank.
pub(crate) fn members(meeting: &Meeting<'_>, me: Actor, cores: &[usize]) -> (Vec<Actor>, Vec<String>) {
    let of_ranks = meeting.is_of_ranks();
    let whole = meeting.is_of_whole_cores();
    let mut there = Vec::new();
    let mut missing = Vec::new();
    for member in meeting.members(if of_ranks { me.rank as u32 } else { me.core }) {
        let others = match (of_ranks, whole) {
            (false, _) => vec![Actor { rank: me.rank, core: member }],
            (true, false) => vec![Actor { rank: member as usize, core: me.core }],
            // The other rank has as many cores as this one, or the meeting cannot be.
            (true, true) => {
                let count = cores.get(me.rank).copied().unwrap_or(1) as u32;
                (0..count).map(|core| Actor { rank: member as usize, core }).collect()
            }
        };
        for other in others {
            let exist = cores.get(other.rank).copied().unwrap_or(0);
            if (other.core as usize) < exist {
                there.push(other);
            } else if !of_ranks {
                missing.push(format!("core {member}"));
            } else if exist == 0 {
                missing.push(format!("rank {member}"));
            } else {
                missing.push(format!("core {} of rank {member}", other.core));
            }
        }
    }
    (there, missing)
}
