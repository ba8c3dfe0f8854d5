//! `nki.collectives.reduce_scatter`: each rank receives its part of the reduction over all ranks.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use super::{parts::chunk, reduce};
use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::inst::{Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::rendezvous::Participants;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Reduces the ranks' tensors element by element; each rank gets the part at its position in the group.
    pub struct ReduceScatter: "reduce_scatter" on [Sync] {
        /// What each rank sends: HBM tensors, or one tile in SBUF.
        [In Hbm Sbuf] srcs: Views,
        /// Where the results go.
        [Out Hbm Sbuf] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Dimension along which `srcs` are split: 0.
        [Attr] collective_dim: i64,
        /// Operator: add, minimum or maximum.
        [Attr] op: AluOp,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "In the order of the group, from its first rank on: floats are summed and compared in fp32 and rounded once at the end, integers wrap.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "dim": "`collective_dim` is 0",
        "op": "`op` is add, minimum or maximum",
        "shape": "`dsts` have the shapes of `srcs`, as many times smaller along `collective_dim` as a group has ranks",
    },
}

impl Instruction for ReduceScatter {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::check_tensors(context, &self.srcs, &self.dsts, self.priority, true)?;
        super::check_dim(self.collective_dim, &self.srcs, 0)?;
        super::check_op(self.op)?;
        super::check_shapes(&self.srcs, &self.dsts, self.collective_dim, 1, super::group_size(&self.replica_group))
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some((at, group)) = super::own_group(machine, &self.replica_group) else { return Ok(()) };
        let all = machine.contributions();
        for (i, (src, dst)) in self.srcs.0.iter().zip(&self.dsts.0).enumerate() {
            let parts = group.iter().map(|&r| super::contributed(&all, r, i)).collect::<Result<Vec<_>, _>>()?;
            let dim = self.collective_dim as usize;
            let mine: Vec<Vec<u32>> = parts.iter().map(|p| chunk(p, &src.shape(), dim, group.len(), at)).collect();
            let mine: Vec<&[u32]> = mine.iter().map(Vec::as_slice).collect();
            super::put(machine, dst, reduce(self.op, src.dtype, &mine), true)?;
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        super::work(CollectiveKind::ReduceScatter, &self.dsts, &self.srcs, super::group_size(&self.replica_group))
    }

    fn participants(&self) -> Option<Participants<'_>> {
        Some(Participants::Group { groups: &self.replica_group, whole: super::whole(&self.srcs) })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        super::contribution_values(machine, &self.srcs)
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("replica_group", &self.replica_group, &other.replica_group)?;
        super::same("collective_dim", &self.collective_dim, &other.collective_dim)?;
        super::same("op", &self.op, &other.op)?;
        super::same_tensors(&self.srcs, &other.srcs)
    }
}
