//! `nki.collectives.all_gather`: every rank receives the concatenated data of all ranks.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use super::parts::join;
use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::rendezvous::Participants;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Joins the ranks' tensors along a dimension, in the order of the group; every rank gets the whole.
    pub struct AllGather: "all_gather" on [Sync] {
        /// What each rank sends: HBM tensors, or one tile in SBUF.
        [In Hbm Sbuf] srcs: Views,
        /// Where the results go.
        [Out Hbm Sbuf] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Dimension along which `dsts` are joined: 0; for tiles in SBUF 0 or 1.
        [Attr] collective_dim: i64,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "dim": "`collective_dim` is 0, for tiles in SBUF 0 or 1",
        "shape": "`dsts` have the shapes of `srcs`, as many times larger along `collective_dim` as a group has ranks",
    },
}

impl Instruction for AllGather {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::check_tensors(context, &self.srcs, &self.dsts, self.priority, true)?;
        super::check_dim(self.collective_dim, &self.srcs, 1)?;
        super::check_shapes(&self.srcs, &self.dsts, self.collective_dim, super::group_size(&self.replica_group), 1)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some((_, group)) = super::own_group(machine, &self.replica_group) else { return Ok(()) };
        let all = machine.contributions();
        for (i, (src, dst)) in self.srcs.0.iter().zip(&self.dsts.0).enumerate() {
            let parts = group.iter().map(|&r| super::contributed(&all, r, i)).collect::<Result<Vec<_>, _>>()?;
            super::put(machine, dst, join(&parts, &src.shape(), self.collective_dim as usize), false)?;
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        super::work(CollectiveKind::AllGather, &self.dsts, &self.srcs, super::group_size(&self.replica_group))
    }

    fn participants(&self) -> Option<Participants<'_>> {
        Some(Participants::Group { groups: &self.replica_group, whole: super::whole(&self.srcs) })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        super::contribution(machine, &self.srcs)
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("replica_group", &self.replica_group, &other.replica_group)?;
        super::same("collective_dim", &self.collective_dim, &other.collective_dim)?;
        super::same_tensors(&self.srcs, &other.srcs)
    }
}
