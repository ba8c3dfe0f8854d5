//! `nki.collectives.all_to_all_v_trigger`: starts a prepared `all_to_all_v`.

use super::all_to_all_v::AllToAllV;
use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;

operands! {
    /// Sends to each rank as many elements of `src` as the metadata say, which were read when it was prepared. A kernel calls it with the preparation, whose operands it takes.
    pub struct AllToAllVTrigger: "all_to_all_v_trigger" on [Sync] {
        /// One HBM tensor, as a flat buffer of elements.
        [In Hbm] srcs: Views,
        /// One HBM tensor, as a flat buffer of elements.
        [Out Hbm] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Rows of uint32, one column for each rank: `send_counts`, `send_displs`, `recv_counts`, and `recv_displs`.
        [InOut Hbm Sbuf; U32] metadata_tensor: View,
        /// Leave the row of received counts alone.
        [Attr] recv_counts_known: bool = false,
        /// Row 3 says where received elements go; else each sender has an equal share of `dst`.
        [Attr] has_rdispls: bool = false,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "Bits move unchanged.",
    cost: Derived "Hops between ranks, then bytes over the links; the engine only starts it and continues.",
    rules: {},
}

impl AllToAllVTrigger {
    fn limits(groups: &IntLists, has_rdispls: bool, arch: &Arch) -> Result<(), Violation> {
        AllToAllV::limits(groups, has_rdispls, arch)
    }
}

super::variable::collective!(AllToAllVTrigger, AllToAll, one_chunk: false, prepared: true);
