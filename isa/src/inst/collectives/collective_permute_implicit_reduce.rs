//! `nki.collectives.collective_permute_implicit_reduce`: each rank of a ring reduces two tensors and sends the result to the next one.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::{Channels, IntLists, Ints, Views};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::rendezvous::Participants;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Sends `op(srcs0, srcs1)` to the next rank of the ring and receives that of the one before, on each channel.
    pub struct CollectivePermuteImplicitReduce: "collective_permute_implicit_reduce" on [Sync] {
        /// By channel, a list of one tensor: the left operands.
        [In Hbm Sbuf] srcs0_by_channel: Channels,
        /// By channel, a list of one tensor: the right operands.
        [In Hbm Sbuf] srcs1_by_channel: Channels,
        /// By channel, a list of one tensor that receives.
        [Out Hbm Sbuf] dsts_by_channel: Channels,
        /// Lists of the ranks; each list is a ring in its order.
        [Attr] replica_group: IntLists,
        /// Operator: add, minimum or maximum.
        [Attr] op: AluOp,
        /// Channels: 0, 1, ...
        [Attr] channel_ids: Ints = Ints(vec![0]),
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Floats in fp32, rounded once; integers wrap.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "op": "`op` is add, minimum or maximum",
        "channels": "`channel_ids` are consecutive from 0, at most 4",
        "by-channel": "sources and destinations have a list for each channel",
        "shape": "a destination has the shape of its sources",
    },
}

impl Instruction for CollectivePermuteImplicitReduce {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::check_op(self.op)?;
        let srcs = [&self.srcs0_by_channel, &self.srcs1_by_channel];
        super::ring::check(context, &srcs, &self.dsts_by_channel, &self.channel_ids, self.priority)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some((at, group)) = super::own_group(machine, &self.replica_group) else { return Ok(()) };
        let all = machine.contributions();
        let before = group[(at + group.len() - 1) % group.len()];
        for (i, dst) in self.dsts_by_channel.0.iter().enumerate() {
            super::put(machine, dst, super::contributed(&all, before, i)?, true)?;
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
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
        let left = super::contribution_values(machine, &Views(self.srcs0_by_channel.0.clone()))?;
        let right = super::contribution_values(machine, &Views(self.srcs1_by_channel.0.clone()))?;
        let dtypes = self.dsts_by_channel.0.iter().map(|v| v.dtype);
        let reduced = left.into_iter().zip(right).zip(dtypes).map(|((a, b), dtype)| {
            let (shape, a, b) = (a.dim(), a.into_iter().collect::<Vec<_>>(), b.into_iter().collect::<Vec<_>>());
            let sum = super::reduce(self.op, dtype, &[&a, &b]);
            Array2::from_shape_vec(shape, sum).map_err(|e| Fault::new("internal", e.to_string()))
        });
        reduced.collect()
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("replica_group", &self.replica_group, &other.replica_group)?;
        super::same("op", &self.op, &other.op)?;
        super::same_tensors(&Views(self.dsts_by_channel.0.clone()), &Views(other.dsts_by_channel.0.clone()))
    }
}
