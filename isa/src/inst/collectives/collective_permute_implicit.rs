//! `nki.collectives.collective_permute_implicit`: each rank of a ring sends to the next one.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::{Channels, IntLists, Ints, Views};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::rendezvous::Participants;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Sends to the next rank of the ring and receives from the one before, on each channel. All channels go round the group in its order.
    pub struct CollectivePermuteImplicit: "collective_permute_implicit" on [Sync] {
        /// By channel, a list of one tensor to send.
        [In Hbm Sbuf] srcs_by_channel: Channels,
        /// By channel, a list of one tensor that receives.
        [Out Hbm Sbuf] dsts_by_channel: Channels,
        /// Lists of the ranks; each list is a ring in its order.
        [Attr] replica_group: IntLists,
        /// Channels: 0, 1, ...
        [Attr] channel_ids: Ints = Ints(vec![0]),
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "channels": "`channel_ids` are consecutive from 0, at most 4",
        "by-channel": "sources and destinations have a list for each channel",
        "shape": "a destination has the shape of its source",
    },
}

impl Instruction for CollectivePermuteImplicit {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::ring::check(context, &[&self.srcs_by_channel], &self.dsts_by_channel, &self.channel_ids, self.priority)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some((at, group)) = super::own_group(machine, &self.replica_group) else { return Ok(()) };
        let all = machine.contributions();
        let before = group[(at + group.len() - 1) % group.len()];
        for (i, dst) in self.dsts_by_channel.0.iter().enumerate() {
            super::put(machine, dst, super::contributed(&all, before, i)?, false)?;
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let moved = Views(self.dsts_by_channel.0.clone());
        super::work(CollectiveKind::Permute, &moved, &moved, super::group_size(&self.replica_group))
    }

    fn participants(&self) -> Option<Participants<'_>> {
        let whole = self.dsts_by_channel.0.iter().all(|v| v.space.is_hbm());
        Some(Participants::Group { groups: &self.replica_group, whole })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        super::contribution(machine, &Views(self.srcs_by_channel.0.clone()))
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("replica_group", &self.replica_group, &other.replica_group)?;
        super::same_tensors(&Views(self.dsts_by_channel.0.clone()), &Views(other.dsts_by_channel.0.clone()))
    }
}
