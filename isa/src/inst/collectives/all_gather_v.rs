//! `nki.collectives.all_gather_v`: every rank receives a part of each rank's data; the sizes are known at run time.

use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;

operands! {
    /// Sends one chunk of each rank to all ranks: as many elements of `src` as its metadata say.
    pub struct AllGatherV: "all_gather_v" on [Sync] {
        /// One HBM tensor, as a flat buffer of elements.
        [In Hbm] srcs: Views,
        /// One HBM tensor, as a flat buffer of elements.
        [Out Hbm] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Rows of uint32, one column for each rank: `send_count` and `send_displ` in the first column, `recv_counts`, and `recv_displs`.
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
    rules: {
        "one-tensor": "there is one source and one destination",
        "flat": "source and destination are contiguous",
        "metadata-shape": "`metadata_tensor` has one column for each rank of a group and three or four rows: (rows, n) in HBM, (1, rows, n) in SBUF",
        "displacements": "`has_rdispls` is False (a current limit, according to the reference)",
        "four-ranks": "a group has 4 ranks (a current limit, according to the reference)",
    },
}

impl AllGatherV {
    /// The current limitations that its reference lists. The requirement of two cores per logical core cannot be checked here.
    pub(super) fn limits(groups: &IntLists, has_rdispls: bool, _arch: &Arch) -> Result<(), Violation> {
        if has_rdispls {
            return Err(Violation::new(
                "operand-value",
                "has_rdispls",
                "`has_rdispls` is True, which all_gather_v does not support yet (see its reference)",
            ));
        }
        let size = super::group_size(groups);
        if size != 4 {
            return Err(Violation::new(
                "operand-value",
                "replica_group",
                format!(
                    "`replica_group` has groups of {size} ranks, but all_gather_v takes groups of 4 (see its reference)"
                ),
            ));
        }
        Ok(())
    }
}

super::variable::collective!(AllGatherV, AllGather, one_chunk: true, prepared: false);
