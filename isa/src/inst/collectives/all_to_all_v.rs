//! `nki.collectives.all_to_all_v`: each rank sends a part to each other rank; how much is known when it runs.

use ndarray::Array2;

use super::variable;
use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::inst::{Footprint, Instruction, Operands};
use crate::machine::{Context, Fault, Machine};
use crate::meeting::Meeting;
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{CollectiveKind, Work};

operands! {
    /// Sends to each rank as many elements of `src` as the metadata say.
    pub struct AllToAllV: "all_to_all_v" on [Sync] {
        /// One HBM tensor, as a flat buffer of elements.
        [In Hbm] srcs: Views,
        /// One HBM tensor, as a flat buffer of elements.
        [Out Hbm] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Rows of uint32, one column for each rank: `send_counts`, `send_displs`, `recv_counts`, and `recv_displs`.
        [InOut Hbm Sbuf] metadata_tensor: View,
        /// Leave the row of received counts alone.
        [Attr] recv_counts_known: bool = false,
        /// Row 3 says where received elements go; else each sender has an equal share of `dst`.
        [Attr] has_rdispls: bool = false,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and goes on.",
    rules: {},
}

impl Instruction for AllToAllV {
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        super::check_groups(&self.replica_group)?;
        super::check_tensors(context, &self.srcs, &self.dsts, self.priority, false)?;
        variable::check(&self.srcs, &self.dsts, &self.metadata_tensor, &self.replica_group, self.has_rdispls)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        variable::execute(
            machine,
            &self.dsts,
            &self.metadata_tensor,
            &self.replica_group,
            variable::Flags { counts_known: self.recv_counts_known, displacements: self.has_rdispls, one_chunk: false },
        )
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        super::work(CollectiveKind::AllToAll, &self.dsts, &self.srcs, super::group_size(&self.replica_group))
    }

    fn meeting(&self) -> Option<Meeting<'_>> {
        Some(Meeting::Group { groups: &self.replica_group, whole: super::whole(&self.srcs) })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        variable::bring(machine, &self.srcs, &self.metadata_tensor, super::group_size(&self.replica_group))
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        super::same("replica_group", &self.replica_group, &other.replica_group)?;
        let dtype = |v: &Views| v.0.first().map(|v| v.dtype);
        super::same("dtype of srcs", &dtype(&self.srcs), &dtype(&other.srcs))
    }
}
