//! `nki.collectives.all_to_all_v_prepare`: reads the metadata of an `all_to_all_v` ahead of time.

use super::all_to_all_v::AllToAllV;
use crate::arg::{IntLists, Views};
use crate::operands;
use crate::view::View;

operands! {
    /// Prepares an `all_to_all_v` of these operands, which `all_to_all_v_trigger` starts: reads the metadata, and neither reads `srcs` nor writes `dsts`.
    pub struct AllToAllVPrepare: "all_to_all_v_prepare" on [Sync] {
        /// One HBM tensor, as a flat buffer of elements.
        [Attr Hbm] srcs: Views,
        /// One HBM tensor, as a flat buffer of elements.
        [Attr Hbm] dsts: Views,
        /// Lists of the ranks that work together.
        [Attr] replica_group: IntLists,
        /// Rows of uint32, one column for each rank: `send_counts`, `send_displs`, `recv_counts`, and `recv_displs`.
        [In Hbm Sbuf; U32] metadata_tensor: View,
        /// Leave the row of received counts alone.
        [Attr] recv_counts_known: bool = false,
        /// Row 3 says where received elements go; else each sender has an equal share of `dst`.
        [Attr] has_rdispls: bool = false,
        /// Quality of service 0 to 3, lower is more urgent (Trn3).
        [Attr] priority: Option<i64> = None,
    }
    numerics: "It computes nothing.",
    cost: Assumed "One access to memory by the sequencer; no measurement is known.",
    rules: {
        "one-tensor": "there is one source and one destination",
        "flat": "source and destination are contiguous",
        "metadata-shape": "`metadata_tensor` has one column for each rank of a group and three or four rows, four with `has_rdispls`: (rows, n) in HBM, (1, rows, n) in SBUF",
        "displacements": "`has_rdispls` needs trn2",
    },
}

super::variable::prepare!(AllToAllVPrepare, AllToAllV, "all_to_all_v_trigger");
