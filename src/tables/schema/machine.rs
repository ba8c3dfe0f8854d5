//! The tables about the machine's state and what it executed: DmaQueuesInfo, ExecutionInfo, NeffHeader, SemaphoreUpdate, Throttle, ThrottleSummary.

use super::Kind::{Bool, Float, Int32, Int64, Text};
use super::{Table, null, optional, required};

/// A DMA queue on a DMA engine that carries packets of it.
pub(in crate::tables) const DMA_QUEUES_INFO: Table = Table {
    name: "DmaQueuesInfo",
    about: "A DMA queue on a DMA engine that carries packets of it.",
    columns: &[
        required("name", Text, "", "Queue, by the engine that triggers it: `queue_name` in DmaPacket."),
        required("type", Text, "", "`queue_type` in DmaPacket."),
        required("pcore_idx", Int64, "", "Core of the logical core."),
        required("idx", Int64, "", "`queue_idx` in DmaPacket."),
        required("engine_idx", Int64, "", "DMA engine."),
        required("axi_port", Int64, "", "Always 0: ports are not simulated."),
        required("dram_channel", Int64, "", "Always 0: channels are not simulated."),
    ],
};

/// The execution of the kernel.
pub(in crate::tables) const EXECUTION_INFO: Table = Table {
    name: "ExecutionInfo",
    about: "The execution of the kernel: a simulated profile has one.",
    columns: &[
        required("execution_index", Int32, "", "Always 0."),
        null("neff_name", Text, ""),
        optional("execution_start_ts", Int64, "nanoseconds", "Start of the kernel: 0."),
        optional("execution_end_ts", Int64, "nanoseconds", "End of the kernel."),
        optional("num_subgraphs", Int32, "", "Cores of the logical core."),
        null("row_count", Int64, ""),
    ],
};

/// The program, in place of a compiled file.
pub(in crate::tables) const NEFF_HEADER: Table = Table {
    name: "NeffHeader",
    about: "The program, in place of a compiled file.",
    columns: &[
        optional("network_name", Text, "", "Kernel."),
        null("uuid", Text, ""),
        null("hash", Text, ""),
        null("enabled_features", Text, ""),
        null("header_size", Int64, "bytes"),
        null("data_size", Int64, "bytes"),
        null("major_version", Int64, ""),
        null("minor_version", Int64, ""),
        null("package_version", Text, ""),
        null("build_version", Text, ""),
        null("cc_participant_count", Int64, ""),
        optional("neuroncore_count", Int64, "", "Cores of the logical core."),
        optional("logical_neuroncore_count", Int64, "", "Always 1: a rank."),
        optional("pcore_count_per_lnc", Int64, "", "Cores of the logical core."),
    ],
};

/// The completion of an instruction or transfer, which the model signals to all that wait for it.
pub(in crate::tables) const SEMAPHORE_UPDATE: Table = Table {
    name: "SemaphoreUpdate",
    about: "The completion of an instruction or transfer, which the model signals to all that wait for it.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "The result is complete."),
        required("id", Text, "", "The engine or DMA queue: the model has one counter for each."),
        required("value", Int32, "", "Completions of that row so far."),
        optional("update_source", Text, "", "Engine, as in Instruction; `AXI` for a transfer."),
        null("double_set_or_clear", Bool, ""),
        null("update_mode", Int32, ""),
        optional("update_operation_type", Text, "", "Always `sem_inc`."),
        optional("update_trigger_timing", Text, "", "Always `complete`."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// A time in which the power limiter holds the tensor engine at its lower rate.
pub(in crate::tables) const THROTTLE: Table = Table {
    name: "Throttle",
    about: "A time in which the power limiter holds the tensor engine at its lower rate while it works.",
    columns: &[
        required("duration", Int64, "nanoseconds", "Length."),
        required("k", Int32, "", "The rate is k/n of the full one: parameter `tensor.limiter_rate`."),
        required("n", Int32, "", "See `k`."),
        required("timestamp", Int64, "nanoseconds", "Start."),
        required("type", Text, "", "Always `activity_0`."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// What the power limiter costs a core.
pub(in crate::tables) const THROTTLE_SUMMARY: Table = Table {
    name: "ThrottleSummary",
    about: "What the power limiter costs a core.",
    columns: &[
        required("nc_idx", Int32, "", "Core of the logical core."),
        optional("throttle_type", Text, "", "Always `all`."),
        optional("throttle_active_time_ns", Int64, "nanoseconds", "Time in table Throttle."),
        optional("throttle_active_time_percent", Float, "percent", "The same, of the latency."),
        optional(
            "max_achievable_util_with_throttling_percent",
            Float,
            "percent",
            "The rate in that time, as a fraction of the full one; 1 if there is none.",
        ),
    ],
};
