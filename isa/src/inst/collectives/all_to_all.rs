//! `nki.collectives.all_to_all`: each rank sends a part to each other rank.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

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
    /// Splits each rank's tensor into as many parts as there are ranks; part `j` of rank `i` becomes part `i` of rank `j`. Kernels of nki-library
    /// give both sides different shapes (attention_kv_parallel_segmented_cte), so parts are runs of elements.
    pub struct AllToAll: "all_to_all" on [Sync] {
        /// What each rank sends: HBM tensors, or one tile in SBUF.
        [In Hbm] srcs: Views,
        /// Where the results go.
        [Out Hbm] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Dimension along which `srcs` are split and `dsts` joined: 0.
        [Attr] collective_dim: i64,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {
        "dim": "`collective_dim` is 0",
        "splits": "`srcs` split into as many parts of equal size as a group has ranks",
        "shape": "`dsts` have as many elements as `srcs`",
    },
}

impl Instruction for AllToAll {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::check_tensors(context, &self.srcs, &self.dsts, self.priority, false)?;
        super::check_dim(self.collective_dim, &self.srcs, 0)?;
        let size = super::group_size(&self.replica_group) as usize;
        for (src, dst) in self.srcs.0.iter().zip(&self.dsts.0) {
            let problem = if !src.elements().is_multiple_of(size) {
                Some(("srcs", format!("a source has {:?}, which does not split into {size} equal parts", src.shape())))
            } else if src.elements() != dst.elements() {
                let (from, to) = (src.shape(), dst.shape());
                Some(("dsts", format!("a source has {from:?}, its destination {to:?}: it must have as many elements")))
            } else {
                None
            };
            if let Some((name, message)) = problem {
                return Err(Violation::new("shape-mismatch", name, message));
            }
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some((at, group)) = super::own_group(machine, &self.replica_group) else { return Ok(()) };
        let all = machine.contributions();
        for (i, (src, dst)) in self.srcs.0.iter().zip(&self.dsts.0).enumerate() {
            // Along dimension 0 parts are runs of elements.
            let part = src.elements() / group.len();
            let mut mine = Vec::with_capacity(src.elements());
            for &rank in group {
                mine.extend_from_slice(&super::contributed(&all, rank, i)?[at * part..][..part]);
            }
            super::put(machine, dst, mine, false)?;
        }
        Ok(())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        super::work(CollectiveKind::AllToAll, &self.dsts, &self.srcs, super::group_size(&self.replica_group))
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
