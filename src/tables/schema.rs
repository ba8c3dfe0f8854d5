//! The tables of Neuron Explorer's profile schema that a simulated run fills, with all their columns.
//!
//! Names, types, units and which columns are required follow the reference of schema 7.4.0; the descriptions say what a simulated profile holds.

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
    /// What it holds; none if the simulator does not know it and leaves it null.
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

/// The profile and its machine.
pub(super) const METADATA: Table = Table {
    name: "Metadata",
    about: "The profile and its machine.",
    columns: &[
        required("profile_schema_version", Text, "", "Version of Neuron Explorer's schema that the tables follow."),
        required("ntff_version", Int32, "", "Always 0: there is no trace of a device."),
        required("num_physical_cores", Int32, "", "Cores of the logical core."),
        required("vnc_enabled", Bool, "", "Whether there are several."),
        required("first_hw_timestamp", Int64, "nanoseconds", "Start of the kernel: 0."),
        required("last_hw_timestamp", Int64, "nanoseconds", "End of the kernel."),
        required("first_ts", Text, "", "Start of the Unix time: no clock is simulated."),
        required("last_ts", Text, "", "The same plus the latency."),
        required("dma_ddr_bandwidth", Float, "bytes_per_second", "Rate of all DMA engines of a core."),
        required("num_dma_engines_per_neuroncore", Int32, "", "DMA engines of a core."),
        required("hbm_ddr_bandwidth", Float, "bytes_per_second", "Rate of an HBM stack."),
        required("tensor_engine_num_rows", Int64, "", "Rows of the systolic array."),
        required("tensor_engine_num_cols", Int64, "", "Columns of the systolic array."),
        required("tensor_engine_clock_freq", Float, "gigahertz", "Clock."),
        required("vector_engine_clock_freq", Float, "gigahertz", "Clock."),
        required("vector_engine_num_channels", Int64, "", "Partitions."),
        required("scalar_engine_clock_freq", Float, "gigahertz", "Clock."),
        required("scalar_engine_num_channels", Int64, "", "Partitions."),
        required("gpsimd_engine_clock_freq", Float, "gigahertz", "Clock."),
        required("gpsimd_engine_num_channels", Int64, "", "Partitions."),
        required(
            "neuroncore_clock_freq",
            Float,
            "gigahertz",
            "Clock of the vector engine, by which cycles are counted.",
        ),
        required("ticks_per_nanosec", Int64, "", "Always 1: time stamps are nanoseconds."),
        optional("instance_type", Text, "", "Generation of the chip."),
        null("runtime_version", Text, ""),
        null("collectives_version", Text, ""),
        null("driver_version", Text, ""),
        optional("explorer_version", Text, "", "Version of nki-sim."),
        optional("compiler_version", Text, "", "Version of nki-sim."),
        null("neuroncore_idx", Int64, ""),
        null("neuron_device_idx", Int64, ""),
        null("ultraserver_id", Int64, ""),
        null("ultraserver_type", Text, ""),
        null("ultraserver_size", Int32, ""),
        null("ultraserver_instance_index", Int32, ""),
        null("s3_bucket_path", Text, ""),
        optional("profile_name", Text, "", "Kernel."),
        null("explorer_build_time", Text, ""),
        optional("is_simulation", Bool, "", "Always true."),
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

/// The columns of all tables.
pub(super) const SCHEMA_FIELDS: Table = Table {
    name: "SchemaFields",
    about: "The columns of all tables.",
    columns: &[
        required("table_name", Text, "", "Table."),
        required("table_description", Text, "", "What a row is."),
        required("field_name", Text, "", "Column."),
        required("field_description", Text, "", "Its contents."),
        null("field_example", Text, ""),
        required("field_type", Text, "", "integer, number, string or boolean."),
        required("field_required", Bool, "", "Whether every row has a value."),
        optional("field_format", Text, "", "int32, int64 or double."),
        optional("field_unit", Text, "", "Unit."),
        null("field_minimum", Float, ""),
        null("field_maximum", Float, ""),
        null("field_enum_values", Text, ""),
    ],
};

/// The whole run, in one row.
pub(super) const SUMMARY: Table = Table {
    name: "Summary",
    about: "The whole run, in one row.",
    columns: &[
        optional("total_time", Float, "seconds", "Latency."),
        optional("neuroncore_cycle_count", Int64, "cycles", "Latency in cycles of the vector engine."),
        null("model_flops", Int64, "flops"),
        optional("hardware_flops", Int64, "flops", "Operations of the tensor engine; a multiply-add is two."),
        optional("transpose_flops", Int64, "flops", "The part of them in transposes."),
        optional("adjusted_hardware_flops", Int64, "flops", "Operations in units of the bf16 rate."),
        optional("adjusted_transpose_flops", Int64, "flops", "The same of transposes."),
        optional("mm_arithmetic_intensity", Float, "", "Operations outside transposes for each byte of HBM traffic."),
        optional(
            "peak_flops_bandwidth_ratio",
            Float,
            "",
            "Peak rate of the tensor engines over the rate of an HBM stack.",
        ),
        optional("trace_count", Int64, "", "Executed instructions and transfers."),
        null("event_count", Int64, ""),
        null("total_row_count", Int64, ""),
        null("dma_active_cycles", Int64, "cycles"),
        optional("dma_active_time", Float, "seconds", "At least one transfer moves bytes."),
        optional("dma_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("static_dma_active_time", Float, "seconds", "Bytes move with prebuilt descriptors."),
        optional(
            "dynamic_dma_active_time_percent",
            Float,
            "percent",
            "Bytes move with descriptors made at run time, of the latency.",
        ),
        optional("static_dma_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("dma_transfer_average_bytes", Float, "bytes", "Bytes of a transfer, on average."),
        optional("dma_packet_time", Float, "seconds", "Sum over DmaPacket."),
        optional("dma_transfer_time", Float, "seconds", "Sum of the transfers, from issue to completion."),
        optional("dma_transfer_count", Int64, "", "Transfers."),
        optional("dma_transfer_total_bytes", Int64, "bytes", "Bytes moved, counted at the destination."),
        optional("dma_queue_count", Int64, "", "Queues that carry transfers."),
        optional("inputs_and_weights_size_bytes", Int64, "bytes", "Bytes of the inputs."),
        optional("inputs_outputs_weights_size_bytes", Int64, "bytes", "Bytes of inputs and outputs."),
        null("weight_size_bytes", Int64, "bytes"),
        optional("static_dma_packet_count", Int64, "", "Rows of DmaPacket with prebuilt descriptors."),
        optional("static_dma_size", Int64, "bytes", "Their bytes."),
        optional("dynamic_dma_packet_percent", Float, "percent", "Their part of all rows."),
        optional("static_dma_packet_percent", Float, "percent", "Their part of all rows."),
        optional("dynamic_dma_size_percent", Float, "percent", "Their part of all bytes."),
        optional("static_dma_size_percent", Float, "percent", "Their part of all bytes."),
        optional("mbu_estimated_percent", Float, "percent", "HBM traffic, of an HBM stack's rate."),
        optional("mbu_min_read_util_percent", Float, "percent", "Inputs read once, of an HBM stack's rate."),
        optional("hbm_write_bytes", Int64, "bytes", "Bytes written to HBM."),
        optional("hbm_read_bytes", Int64, "bytes", "Bytes read from HBM."),
        optional("sbuf_write_bytes", Int64, "bytes", "Bytes written to SBUF."),
        optional("sbuf_read_bytes", Int64, "bytes", "Bytes read from SBUF."),
        optional("spill_save_bytes", Int64, "bytes", "Always 0: nothing spills that the kernel does not store itself."),
        optional("spill_reload_bytes", Int64, "bytes", "Always 0."),
        optional("psum_write_bytes", Int64, "bytes", "Bytes written to PSUM."),
        optional("psum_read_bytes", Int64, "bytes", "Bytes read from PSUM."),
        optional("psum_read_sbuf_write_count", Int64, "", "Instructions that read PSUM and write SBUF."),
        optional("psum_read_sbuf_write_bytes", Int64, "bytes", "Bytes that they read from PSUM."),
        null("input_queue_bytes", Int64, "bytes"),
        null("output_queue_bytes", Int64, "bytes"),
        null("weight_queue_bytes", Int64, "bytes"),
        optional("software_dynamic_dma_active_time", Float, "seconds", "Bytes move with descriptors made by GpSimd."),
        optional("software_dynamic_dma_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("software_dynamic_dma_packet_count", Int64, "", "Rows of DmaPacket with descriptors made by GpSimd."),
        optional("software_dynamic_dma_size", Int64, "bytes", "Their bytes."),
        optional("software_dynamic_dma_packet_percent", Float, "percent", "Their part of all rows."),
        optional("software_dynamic_dma_size_percent", Float, "percent", "Their part of all bytes."),
        optional("hardware_dynamic_dma_active_time", Float, "seconds", "Bytes move with descriptors made by hardware."),
        optional("hardware_dynamic_dma_active_time_percent", Float, "percent", "The same, of the latency."),
        optional(
            "hardware_dynamic_dma_packet_count",
            Int64,
            "",
            "Rows of DmaPacket with descriptors made by hardware.",
        ),
        optional("hardware_dynamic_dma_size", Int64, "bytes", "Their bytes."),
        optional("hardware_dynamic_dma_packet_percent", Float, "percent", "Their part of all rows."),
        optional("hardware_dynamic_dma_size_percent", Float, "percent", "Their part of all bytes."),
        optional("tensor_engine_instruction_time", Float, "seconds", "Sum of the lengths of its instructions."),
        optional("tensor_engine_active_time", Float, "seconds", "The engine works; the average of the cores."),
        optional("tensor_engine_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("tensor_engine_instruction_count", Int64, "", "Instructions."),
        optional("matmul_instruction_count", Int64, "", "Executions of MATMUL."),
        optional("mfu_estimated_percent", Float, "percent", "Operations outside transposes, of the bf16 peak."),
        null("mfu_max_achievable_estimated_percent", Float, "percent"),
        null("mfu_hlo_estimated_percent", Float, "percent"),
        null("mfu_hlo_max_achievable_estimated_percent", Float, "percent"),
        optional("mfu_inst_estimated_percent", Float, "percent", "Operations outside transposes, of the bf16 peak."),
        optional(
            "mfu_inst_max_achievable_estimated_percent",
            Float,
            "percent",
            "What this intensity allows, of the bf16 peak.",
        ),
        optional("hfu_estimated_percent", Float, "percent", "Operations, of the bf16 peak."),
        optional("vector_engine_instruction_time", Float, "seconds", "Sum of the lengths of its instructions."),
        optional("vector_engine_active_time", Float, "seconds", "The engine works; the average of the cores."),
        optional("vector_engine_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("vector_engine_instruction_count", Int64, "", "Instructions."),
        optional("scalar_engine_instruction_time", Float, "seconds", "Sum of the lengths of its instructions."),
        optional("scalar_engine_active_time", Float, "seconds", "The engine works; the average of the cores."),
        optional("scalar_engine_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("scalar_engine_instruction_count", Int64, "", "Instructions."),
        null("activate_instruction_time", Float, "seconds"),
        null("activate_instruction_count", Int64, ""),
        optional("sync_engine_instruction_time", Float, "seconds", "Sum of the lengths of its instructions."),
        optional("sync_engine_active_time", Float, "seconds", "The engine works; the average of the cores."),
        optional("sync_engine_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("sync_engine_instruction_count", Int64, "", "Instructions."),
        optional("gpsimd_engine_instruction_time", Float, "seconds", "Sum of the lengths of its instructions."),
        optional("gpsimd_engine_active_time", Float, "seconds", "The engine works; the average of the cores."),
        optional("gpsimd_engine_active_time_percent", Float, "percent", "The same, of the latency."),
        optional("gpsimd_engine_instruction_count", Int64, "", "Instructions."),
        null("cc_op_time", Float, "seconds"),
        null("cc_op_active_time", Float, "seconds"),
        null("cc_op_active_time_percent", Float, "percent"),
        null("cc_op_count", Int64, ""),
        null("cc_cores_instruction_time", Float, "seconds"),
        null("cc_cores_instruction_active_time", Float, "seconds"),
        null("cc_cores_instruction_active_time_percent", Float, "percent"),
        null("cc_cores_instruction_count", Int64, ""),
        optional(
            "total_exec_time",
            Float,
            "seconds",
            "From the start of the first instruction to the last completion.",
        ),
        optional("total_active_time", Float, "seconds", "At least one engine or transfer is active."),
        optional("total_active_time_percent", Float, "percent", "The same, of the latency."),
    ],
};

/// An input or output of the kernel.
pub(super) const TENSOR_INFO: Table = Table {
    name: "TensorInfo",
    about: "An input or output of the kernel.",
    columns: &[
        optional("variable_name", Text, "", "Name."),
        optional("type", Text, "", "IN or OUT."),
        null("format", Text, ""),
        optional("shape", Text, "", "Extents, outermost first."),
        optional("size", Int64, "bytes", "Bytes."),
        optional("node", Int64, "", "Always 0."),
        null("pcore_idx", Int64, ""),
        optional("load_to_sbuf_avg_size_bytes", Int64, "", "Bytes of a transfer to SBUF, on average."),
        optional("load_to_sbuf_total_size_bytes", Int64, "", "Bytes of all transfers to SBUF."),
        optional("load_to_sbuf_dma_count", Int64, "", "Transfers to SBUF."),
        optional("load_to_sbuf_repeat_factor", Float, "", "Bytes transferred to SBUF, over the size."),
    ],
};

/// What was found in the kernel.
pub(super) const WARNING: Table = Table {
    name: "Warning",
    about: "What was found in the kernel.",
    columns: &[required("message", Text, "", "Finding, with its place."), required("category", Text, "", "Slug.")],
};

/// All tables, by name.
pub(super) const ALL: [&Table; 17] = [
    &ACTIVE_TIME,
    &DMA_PACKET,
    &DMA_PACKET_AGGREGATED,
    &FLOW,
    &INSTRUCTION,
    &KERNEL_INSTRUCTIONS,
    &KERNEL_ITERATION_VARIABLES,
    &KERNEL_STACK_FRAMES,
    &METADATA,
    &OPCODE_SUMMARY,
    &PSUM_USAGE,
    &SBUF_ALLOCATION,
    &SBUF_USAGE,
    &SCHEMA_FIELDS,
    &SUMMARY,
    &TENSOR_INFO,
    &WARNING,
];
