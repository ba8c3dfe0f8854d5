//! `nki.collectives.all_to_all_v`: each rank sends a part to each other rank; the sizes are known at run time.

use crate::arch::Arch;
use crate::arg::{IntLists, Views};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;

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
        "metadata-shape": "`metadata_tensor` has one column for each rank of a group and three or four rows, four with `has_rdispls`: (rows, n) in HBM, (1, rows, n) in SBUF",
        "displacements": "`has_rdispls` needs trn2",
    },
}

impl AllToAllV {
    /// The ranks allowed in a group depend on the wiring of the instances, which is unknown here; so does whether a group between nodes of trn2
    /// takes displacements (all_to_all_v reference of 2.33).
    pub(super) fn limits(_groups: &IntLists, has_rdispls: bool, arch: &Arch) -> Result<(), Violation> {
        if has_rdispls && !arch.receive_displacements {
            return Err(Violation::new(
                "unsupported-on-target",
                "has_rdispls",
                format!("`has_rdispls` needs trn2 or later (target is {})", arch.target),
            ));
        }
        Ok(())
    }
}

super::variable::collective!(AllToAllV, AllToAll, one_chunk: false, prepared: false);
