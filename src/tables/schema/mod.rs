//! The tables of Neuron Explorer's profile schema that a simulated run fills, with all their columns.
//!
//! Names, types, units and required columns follow the reference of schema 7.4.0; the descriptions are for a simulated profile.

mod machine;
mod run;

pub(super) use machine::{DMA_QUEUES_INFO, EXECUTION_INFO, NEFF_HEADER, SEMAPHORE_UPDATE, THROTTLE, THROTTLE_SUMMARY};
pub(super) use run::{METADATA, SCHEMA_FIELDS, SUMMARY, TENSOR_INFO, WARNING};

/// The version of the schema.
pub(super) const VERSION: &str = "7.4.0";

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int32,
    Int64,
    Float,
    Text,
    Bool,
}
use Kind::{Bool, Float, Int32, Int64, Text};

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether every row has a value.
    pub(super) required: bool,
    /// Empty without.
    pub(super) unit: &'static str,
    /// Description; `None` if the simulator cannot compute the column and leaves it null.
    pub(super) about: Option<&'static str>,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// What a row is.
    pub(super) about: &'static str,
    pub(super) columns: &'static [Column],
}

const fn required(name: &'static str, kind: Kind, unit: &'static str, about: &'static str) -> Column {
    Column { name, kind, required: true, unit, about: Some(about) }
}

const fn optional(name: &'static str, kind: Kind, unit: &'static str, about: &'static str) -> Column {
    Column { name, kind, required: false, unit, about: Some(about) }
}

const fn null(name: &'static str, kind: Kind, unit: &'static str) -> Column {
    Column { name, kind, required: false, unit, about: None }
}

/// An interval in which an engine works without a pause.
pub(super) const ACTIVE_TIME: Table = Table {
    name: "ActiveTime",
    about: "An interval in which an engine works without a pause.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "Start."),
        required("end_ts", Int64, "nanoseconds", "End."),
        required("engine", Text, "", "Engine, in lower case."),
        required("pcore_idx", Int64, "", "Core of the logical core."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
    ],
};

/// A collective.
pub(super) const CC_OP: Table = Table {
    name: "CcOp",
    about: "A collective.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "All ranks have arrived, and the first byte moves."),
        required("end_ts", Int64, "nanoseconds", "The last byte has moved."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
        required("operation", Text, "", "The instruction, such as AllReduce."),
        required("algorithm", Text, "", "Always `simulated`."),
        required("num_elements", Int64, "", "Elements written by this rank."),
        required("dtype", Text, "", "Element type."),
        required("op_id", Int64, "", "Number of the instruction: `id` in Instruction."),
        required("stream_id", Int64, "", "The core."),
        required("stream_index", Int64, "", "The core."),
        required("trigger_engine", Text, "", "Engine that executes the instruction."),
        optional("input_size", Int64, "bytes", "Bytes that this rank contributes."),
        optional("output_size", Int64, "bytes", "Bytes that this rank receives."),
        optional("algorithm_bandwidth", Float, "bytes_per_second", "The larger of the two sizes over the length."),
        null("bus_bandwidth", Float, "bytes_per_second"),
        optional("trigger_start_ts", Int64, "nanoseconds", "Start of the instruction."),
        optional(
            "cc_trigger_start_delay",
            Int64,
            "nanoseconds",
            "From the start of the instruction to the first byte.",
        ),
        null("replica_group_id", Int64, ""),
        optional("replica_group", Text, "", "Groups of ranks."),
    ],
};

/// A barrier of the cores of a logical core.
pub(super) const CORE_BARRIERS: Table = Table {
    name: "CoreBarriers",
    about: "A barrier of the cores of a logical core.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "The core has arrived."),
        required("end_ts", Int64, "nanoseconds", "It goes on."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
        required("engine_name", Text, "", "Engine that waits."),
        required("id", Int64, "", "Number of the instruction: `id` in Instruction."),
        required("semaphore", Int64, "", "Always 0: semaphores have no numbers here."),
        required("compiler_pc", Int64, "", "Statement of the program."),
        required("compiler_opcode", Text, "", "Name of the instruction in NKI."),
        required("compiler_operands", Text, "", "Its operands."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// What one DMA engine moves of a transfer: the model shares a transfer among its engines, packet by packet within.
pub(super) const DMA_PACKET: Table = Table {
    name: "DmaPacket",
    about: "What one DMA engine moves of a transfer: the model shares a transfer among its engines, packet by packet within.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "The transfer's first byte moves."),
        required("end_ts", Int64, "nanoseconds", "Its last byte has moved."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
        required("id", Int64, "", "Number of the row."),
        required("packet_idx", Int32, "", "Number within the transfer."),
        required("packet_aggregation_id", Int64, "", "The transfer: `id` in DmaPacketAggregated."),
        optional("engine_idx", Int64, "", "DMA engine."),
        required("read_bytes", Int64, "bytes", "Bytes read."),
        required("write_bytes", Int64, "bytes", "Bytes written."),
        required("transfer_bytes", Int64, "bytes", "Bytes moved, counted at the destination."),
        required("throughput", Float, "bytes_per_second", "Bytes moved over the length."),
        required("queue_type", Text, "", "Who makes the descriptors; for prebuilt ones, what they move."),
        optional("variable", Text, "", "Tensor in HBM; on chip, the destination."),
        optional("queue_name", Text, "", "Queue, by the engine that triggers it."),
        optional("queue_idx", Int64, "", "Number of that engine."),
        required("crc", Int64, "", "Always 0: no checksum is simulated."),
    ],
};

/// A DMA transfer.
pub(super) const DMA_PACKET_AGGREGATED: Table = Table {
    name: "DmaPacketAggregated",
    about: "A DMA transfer.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "The first byte moves."),
        required("end_ts", Int64, "nanoseconds", "The last byte has moved."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
        required("id", Int64, "", "Number of the transfer."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
        required("block_id", Int32, "", "Statement of the program that makes the transfer."),
        required("queue_idx", Int64, "", "Number of the engine that triggers the queue."),
        required("queue_name", Text, "", "Queue, by the engine that triggers it."),
        optional("queue_type", Text, "", "Who makes the descriptors; for prebuilt ones, what they move."),
        required("op", Text, "", "`write` if the destination is in HBM, else `read`."),
        required("variable", Text, "", "Tensor in HBM; on chip, the destination."),
        required("read_bytes", Int64, "bytes", "Bytes read."),
        required("write_bytes", Int64, "bytes", "Bytes written."),
        required("transfer_bytes", Int64, "bytes", "Bytes moved, counted at the destination."),
        required("throughput", Float, "bytes_per_second", "Bytes moved over the length."),
        required("source", Text, "", "Memory of the source."),
        required("dest", Text, "", "Memory of the destination."),
        required("semaphore_id", Text, "", "Empty: semaphores have no numbers here."),
        null("modular_flow_function", Text, ""),
        required("read_sbuf_partitions", Text, "", "First and last SBUF partition read."),
        required("read_num_sbuf_partitions", Int32, "", "SBUF partitions read."),
        required("read_shape", Text, "", "Extents of the source, outermost first."),
        required("read_offset", Text, "", "First byte of the source in its tensor (its partition on chip)."),
        required("read_steps", Text, "", "Strides of the source, in elements."),
        required("write_sbuf_partitions", Text, "", "First and last SBUF partition written."),
        required("write_num_sbuf_partitions", Int32, "", "SBUF partitions written."),
        required("write_shape", Text, "", "Extents of the destination, outermost first."),
        required("write_offset", Text, "", "First byte of the destination in its tensor (its partition on chip)."),
        required("write_steps", Text, "", "Strides of the destination, in elements."),
        optional("is_transpose_mode", Bool, "", "Whether the transfer transposes."),
        null("transpose_element_size", Text, ""),
        null("transpose_shape", Text, ""),
        null("transpose_from_shape", Text, ""),
        null("transpose_to_shape", Text, ""),
        null("transpose_unroll_factor", Text, ""),
        optional("trigger", Int64, "", "Start of the instruction that triggers it."),
        optional("completion", Int64, "", "End of that instruction."),
    ],
};

/// Traffic of all DMA queues from this time on.
pub(super) const DMA_USAGE: Table = Table {
    name: "DmaUsage",
    about: "Traffic of all DMA queues from this time on.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "A transfer begins or ends."),
        required("current_throughput", Float, "bytes_per_second", "Bytes moved, counted at the destination."),
        required("total_transfer_bytes", Int64, "bytes", "Bytes moved until then."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// A wait that let an instruction start, or a transfer and the instruction that triggers it.
pub(super) const FLOW: Table = Table {
    name: "Flow",
    about: "A wait that let an instruction start, or a transfer and the instruction that triggers it.",
    columns: &[
        required("in_id", Int64, "", "`id` of what came first."),
        required("out_id", Int64, "", "`id` of what waited."),
        required("in_table", Text, "", "Table of `in_id`: `instruction` or `dma_block` (DmaPacketAggregated)."),
        required("out_table", Text, "", "Table of `out_id`."),
        optional("dependency_type", Text, "", "FLOW_, ANTI_, OUTPUT_ or ORDER_DEPENDENCE; DMA_TRIGGER for a transfer."),
        optional("gap_time", Int64, "nanoseconds", "From the end of the first to the start of the other."),
    ],
};

/// Traffic of HBM from this time on.
pub(super) const HBM_USAGE: Table = Table {
    name: "HbmUsage",
    about: "Traffic of HBM from this time on.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "A transfer begins or ends."),
        required("current_throughput", Float, "bytes_per_second", "Bytes read and written."),
        required("total_transfer_bytes", Int64, "bytes", "Bytes read and written until then."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// An executed instruction.
pub(super) const INSTRUCTION: Table = Table {
    name: "Instruction",
    about: "An executed instruction.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "Start on the engine."),
        required("end_ts", Int64, "nanoseconds", "The engine is free for the next instruction."),
        required("duration_ns", Int64, "nanoseconds", "Length."),
        required("engine", Text, "", "Engine: Tensor, Vector, Scalar, GpSimd or Sync."),
        optional("timeline_track", Text, "", "Row of the timeline; of a transfer, its queue."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
        required(
            "opcode",
            Text,
            "",
            "MATMUL for all products of the tensor engine; else NKI's name in capitals, without `nc_`.",
        ),
        required("operands", Text, "", "Operands that differ from their defaults."),
        optional("compiler_opcode", Text, "", "NKI's name."),
        null("compiler_operands", Text, ""),
        required("id", Int64, "", "Number of the execution."),
        required("pc", Int64, "", "Position among the instructions of its engine."),
        optional("compiler_pc", Int64, "", "Statement of the core's program."),
        null("penguin_id", Text, ""),
        null("raw_penguin_id", Int64, ""),
        required("bir_id", Text, "", "Core and statement."),
        null("raw_bir_id", Int64, ""),
        optional("bir_instruction_name", Text, "", "The name that the kernel gave, else the statement."),
        optional("kernel_instruction_name", Text, "", "Name in KernelInstructions."),
        null("crc_in", Int64, ""),
        null("crc_out", Int64, ""),
        optional("evt_wait_time_ns", Int64, "nanoseconds", "Wait for semaphores, barriers and other cores."),
        null("hlo_attrs", Text, ""),
        null("hlo_name", Text, ""),
        null("raw_hlo_id", Int64, ""),
        null("raw_framework_id", Int64, ""),
        null("layer", Text, ""),
        optional("stack_frame_ids", Text, "", "Innermost call, in KernelStackFrames."),
        optional("nki_source_location", Text, "", "file:line."),
        optional("bir_debug_info_source_location", Text, "", "file:line."),
        optional("dma_trigger_start_ts", Int64, "", "Start of the transfer that it triggers."),
        optional("dma_trigger_end_ts", Int64, "", "Completion of that transfer."),
        optional(
            "dma_wait_time_ns",
            Int64,
            "nanoseconds",
            "From the end of the instruction to the start of the transfer.",
        ),
        null("instruction_chain", Text, ""),
        optional("hbm_read_bytes", Int64, "", "Bytes read from HBM."),
        optional("hbm_write_bytes", Int64, "", "Bytes written to HBM."),
        optional("sbuf_read_bytes", Int64, "", "Bytes read from SBUF."),
        optional("sbuf_write_bytes", Int64, "", "Bytes written to SBUF."),
        optional("spill_save_bytes", Int64, "", "Always 0: nothing spills that the kernel does not store itself."),
        optional("spill_reload_bytes", Int64, "", "Always 0."),
        optional("psum_read_bytes", Int64, "", "Bytes read from PSUM."),
        optional("psum_write_bytes", Int64, "", "Bytes written to PSUM."),
        optional("psum_read_sbuf_write_bytes", Int64, "", "Bytes read from PSUM by an instruction that writes SBUF."),
        null("input_queue_bytes", Int64, ""),
        null("output_queue_bytes", Int64, ""),
        null("weight_queue_bytes", Int64, ""),
        null("performance_mode", Text, ""),
        optional("tensor_instruction_type", Text, "", "REGULAR or TRANSPOSE for products of the tensor engine."),
        null("tensor_elements", Int64, ""),
        optional("raw_flops", Int64, "", "Operations; a multiply-add is two."),
        optional("adjusted_flops", Int64, "", "Operations in units of the bf16 rate."),
        null("tensor_elements_transpose", Int64, ""),
        optional("flops_transpose", Int64, "", "Operations of a transpose, else 0."),
        optional("adjusted_flops_transpose", Int64, "", "The same in units of the bf16 rate."),
        null("scalar_activation_fn", Text, ""),
    ],
};

/// A statement of a core's program: an instruction with all loops unrolled and calls inlined.
pub(super) const KERNEL_INSTRUCTIONS: Table = Table {
    name: "KernelInstructions",
    about: "A statement of a core's program: an instruction with all loops unrolled and calls inlined.",
    columns: &[
        required("kernel_instruction_name", Text, "", "Its name, as in Instruction."),
        optional("stack_frame_id", Int64, "", "Innermost call, in KernelStackFrames."),
        optional("stack_frame_depth", Int64, "", "Calls around it, the kernel included."),
        optional("iteration_variables_id", Int64, "", "Innermost iteration, in KernelIterationVariables."),
        optional("iteration_variable_depth", Int64, "", "Unrolled loops around it."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
        optional("file_path", Text, "", "Source file."),
        optional("line_number", Int64, "", "Line, from 1."),
    ],
};

/// An iteration of an unrolled loop.
pub(super) const KERNEL_ITERATION_VARIABLES: Table = Table {
    name: "KernelIterationVariables",
    about: "An iteration of an unrolled loop.",
    columns: &[
        required("iteration_variable_id", Int64, "", "Number of the iteration."),
        optional("variable_name", Text, "", "Loop variable."),
        optional("variable_value", Int64, "", "Its value."),
        optional("parent_iteration_variable_id", Int64, "", "Iteration of the loop around it."),
        null("pcore_idx", Int64, ""),
        optional("file_path", Text, "", "File of the loop."),
        optional("line_number", Int64, "", "Line of the loop, from 1."),
    ],
};

/// The kernel, or a call that was inlined.
pub(super) const KERNEL_STACK_FRAMES: Table = Table {
    name: "KernelStackFrames",
    about: "The kernel, or a call that was inlined.",
    columns: &[
        required("stack_frame_id", Int64, "", "Number of the call."),
        optional("fully_qualified_function_name", Text, "", "Function."),
        optional("parent_stack_frame_id", Int64, "", "The call around it."),
        null("pcore_idx", Int64, ""),
        null("file_path", Text, ""),
        null("line_number", Int64, ""),
    ],
};

/// Executions of an instruction on an engine.
pub(super) const OPCODE_SUMMARY: Table = Table {
    name: "OpcodeSummary",
    about: "Executions of an instruction on an engine.",
    columns: &[
        required("engine", Text, "", "Engine."),
        required("opcode", Text, "", "As in Instruction."),
        required("instruction_count", Int64, "", "Executions."),
        required("instruction_time_ns", Int64, "nanoseconds", "Sum of their lengths."),
        required("active_time_ns", Int64, "nanoseconds", "Time in which at least one runs."),
        required("active_time_percent", Float, "", "The same, of the latency."),
    ],
};

/// Transfers that are triggered and not finished, from this time on.
pub(super) const PENDING_DMA: Table = Table {
    name: "PendingDma",
    about: "Transfers that are triggered and not finished, from this time on.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "A transfer is triggered, or its last byte has moved."),
        required("value", Int32, "", "Transfers of all queues."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// Tensors alive in PSUM from this time on.
pub(super) const PSUM_USAGE: Table = Table {
    name: "PsumUsage",
    about: "Tensors alive in PSUM from this time on.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "Time of the change."),
        optional("avg_util_percent", Float, "percent", "Average of all banks."),
        optional("bank_0_util_percent", Float, "percent", "Bank 0."),
        optional("bank_1_util_percent", Float, "percent", "Bank 1."),
        optional("bank_2_util_percent", Float, "percent", "Bank 2."),
        optional("bank_3_util_percent", Float, "percent", "Bank 3."),
        optional("bank_4_util_percent", Float, "percent", "Bank 4."),
        optional("bank_5_util_percent", Float, "percent", "Bank 5."),
        optional("bank_6_util_percent", Float, "percent", "Bank 6."),
        optional("bank_7_util_percent", Float, "percent", "Bank 7."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// The life of a tensor in SBUF, for each of the partitions 0, 32, 64 and 96 that it covers.
pub(super) const SBUF_ALLOCATION: Table = Table {
    name: "SbufAllocation",
    about: "The life of a tensor in SBUF, for each of the partitions 0, 32, 64 and 96 that it covers.",
    columns: &[
        required("start_ts", Int64, "nanoseconds", "Start of the first instruction that touches it."),
        required("end_ts", Int64, "nanoseconds", "Completion of the last."),
        required("start_address", Int64, "bytes", "First byte in the partition."),
        required("end_address", Int64, "bytes", "Last byte in the partition."),
        required("partition", Int64, "", "0, 32, 64 or 96."),
        optional("op_source_type", Text, "", "`instruction` or `dma`: what touches it first."),
        optional("opcode", Text, "", "The first instruction."),
        optional("operands", Text, "", "Its operands."),
        optional("queue_name", Text, "", "Queue of the first transfer."),
        optional("block_id", Int64, "", "Statement of the first transfer."),
        optional("tensor_name", Text, "", "Name."),
        null("hlo_name", Text, ""),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// Tensors alive in SBUF from this time on.
pub(super) const SBUF_USAGE: Table = Table {
    name: "SbufUsage",
    about: "Tensors alive in SBUF from this time on.",
    columns: &[
        required("timestamp", Int64, "nanoseconds", "Time of the change."),
        optional("avg_util_percent", Float, "percent", "Average of all partitions."),
        optional("partition_0_util_percent", Float, "percent", "Partition 0."),
        optional("partition_32_util_percent", Float, "percent", "Partition 32."),
        optional("partition_64_util_percent", Float, "percent", "Partition 64."),
        optional("partition_96_util_percent", Float, "percent", "Partition 96."),
        optional("pcore_idx", Int64, "", "Core of the logical core."),
    ],
};

/// All tables, by name.
pub(super) const ALL: [&Table; 28] = [
    &ACTIVE_TIME,
    &CC_OP,
    &CORE_BARRIERS,
    &DMA_PACKET,
    &DMA_PACKET_AGGREGATED,
    &DMA_QUEUES_INFO,
    &DMA_USAGE,
    &EXECUTION_INFO,
    &FLOW,
    &HBM_USAGE,
    &INSTRUCTION,
    &KERNEL_INSTRUCTIONS,
    &KERNEL_ITERATION_VARIABLES,
    &KERNEL_STACK_FRAMES,
    &METADATA,
    &NEFF_HEADER,
    &OPCODE_SUMMARY,
    &PENDING_DMA,
    &PSUM_USAGE,
    &SBUF_ALLOCATION,
    &SBUF_USAGE,
    &SCHEMA_FIELDS,
    &SEMAPHORE_UPDATE,
    &SUMMARY,
    &TENSOR_INFO,
    &THROTTLE,
    &THROTTLE_SUMMARY,
    &WARNING,
];
