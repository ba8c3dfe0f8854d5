//! Rendezvous between the cores of a logical core, or between ranks.

use ndarray::Array2;

use crate::arg::IntLists;

/// The members of an instruction's rendezvous. It executes when all have reached an instruction that [agrees](crate::inst::Instruction::agrees).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participants<'a> {
    /// Cores of the logical core, by number.
    Cores(&'a [i64]),
    /// The two cores of a logical core, one transfer each way.
    Exchange {
        /// The core that receives this core's data.
        send_to: i64,
        /// The core that sends its data to this core.
        receive_from: i64,
        /// Exchanges of one pipe are paired in program order.
        pipe: i64,
    },
    /// The ranks of the list that contains this rank; no rendezvous if no list does.
    Group {
        /// Lists of ranks.
        groups: &'a IntLists,
        /// On HBM a collective is one operation of the logical core: both of its cores take part. On SBUF each core performs its own.
        whole: bool,
    },
    /// All ranks in these (source, target) pairs, if this rank is among them.
    Pairs {
        /// `[source, target]` pairs.
        pairs: &'a IntLists,
        /// As for [`Participants::Group`].
        whole: bool,
    },
}

impl Participants<'_> {
    /// Whether the participants are ranks, not cores of one rank.
    pub fn is_of_ranks(&self) -> bool {
        matches!(self, Participants::Group { .. } | Participants::Pairs { .. })
    }

    /// Whether all cores of each rank take part.
    pub fn is_of_whole_cores(&self) -> bool {
        matches!(self, Participants::Group { whole: true, .. } | Participants::Pairs { whole: true, .. })
    }

    /// The number of ranks in the largest group; 0 for cores of one rank.
    pub fn ranks(&self) -> u32 {
        match self {
            Participants::Cores(_) | Participants::Exchange { .. } => 0,
            Participants::Group { groups, .. } => groups.0.iter().map(Vec::len).max().unwrap_or(0) as u32,
            Participants::Pairs { pairs, .. } => {
                let mut all: Vec<i64> = pairs.0.iter().flatten().copied().collect();
                all.sort_unstable();
                all.dedup();
                all.len() as u32
            }
        }
    }

    /// The members in order, as seen by `me`: a core's number, or a rank. Empty if `me` does not take part.
    pub fn members(&self, me: u32) -> Vec<u32> {
        let mut out: Vec<u32> = match self {
            Participants::Cores(cores) => cores.iter().filter_map(|&c| u32::try_from(c).ok()).collect(),
            Participants::Exchange { send_to, receive_from, .. } => {
                let others = [*send_to, *receive_from];
                let mut all: Vec<u32> = others.iter().filter_map(|&c| u32::try_from(c).ok()).collect();
                all.push(me);
                all.sort_unstable();
                all
            }
            Participants::Group { groups, .. } => match groups.0.iter().find(|g| g.contains(&i64::from(me))) {
                Some(group) => group.iter().filter_map(|&r| u32::try_from(r).ok()).collect(),
                None => Vec::new(),
            },
            Participants::Pairs { pairs, .. } => {
                let mut all: Vec<u32> = pairs.0.iter().flatten().filter_map(|&r| u32::try_from(r).ok()).collect();
                all.sort_unstable();
                all
            }
        };
        out.dedup();
        if out.contains(&me) { out } else { Vec::new() }
    }
}

/// One member's contribution to a rendezvous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Its core's number, or its rank.
    pub member: u32,
    /// The tiles it sends, in the order that its instruction defines. Element bits, zero-extended.
    pub tiles: Vec<Array2<u32>>,
}
