//! Where the cores of a logical core, or ranks, wait for each other.

use ndarray::Array2;

use crate::arg::IntLists;

/// The cores or ranks that an instruction waits for. It executes when all of them have reached an instruction that [agrees](crate::inst::Instruction::agrees).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participants<'a> {
    /// Cores of the logical core, by number.
    Cores(&'a [i64]),
    /// The two cores of a logical core, one transfer each way.
    Exchange {
        /// The core that gets this core's data.
        send_to: i64,
        /// The core whose data this core gets.
        receive_from: i64,
        /// Exchanges of one pipe are paired in program order.
        pipe: i64,
    },
    /// The ranks of the list in which this rank is; no list, no rendezvous.
    Group {
        /// Lists of ranks.
        groups: &'a IntLists,
        /// On HBM a collective is one operation of the logical core: both of its cores take part. On SBUF each core has its own.
        whole: bool,
    },
    /// All ranks that these (source, target) pairs name, if this rank is among them.
    Pairs {
        /// Source and target each.
        pairs: &'a IntLists,
        /// As for a group.
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

    /// The members in their order, for `me`: a core's number, or a rank. Empty if `me` does not take part.
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

/// What one member contributes to a rendezvous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Its core's number, or its rank.
    pub member: u32,
    /// The tiles it sends, in an order that its instruction knows. Element bits, zero-extended.
    pub tiles: Vec<Array2<u32>>,
}
