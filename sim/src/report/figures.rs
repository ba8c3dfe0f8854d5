//! The columns and figures of reports, for their pages.

/// A column of a table of the page, the terminal, the JSON report or the CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Its names: the title on the page first, then the names in the other reports.
    pub names: &'static [&'static str],
    /// A description of its content.
    pub about: &'static str,
}

const fn figure(names: &'static [&'static str], about: &'static str) -> Figure {
    Figure { names, about }
}

/// All figures.
pub const FIGURES: &[Figure] = &[
    figure(&["line"], "File and line of a statement of the kernel."),
    figure(&["instruction"], "NKI's name of the instruction."),
    figure(&["text"], "The statement's source text."),
    figure(&["count", "instructions"], "How often it was executed; of a row, its instructions or transfers."),
    figure(
        &["critical path", "critical_us", "critical_path_ns"],
        "Time on the critical path: the chain of instructions in which each waits for the one before, from the last completion back to the start. \
         Only a change to it makes the kernel faster.",
    ),
    figure(&["% of latency", "critical_percent"], "Time on the critical path as a share of the latency."),
    figure(&["engine time", "engine_us"], "Time for which the instruction occupies its engine."),
    figure(&["transfer time", "transfer_us"], "From issue to completion of its transfers, added up; they may overlap."),
    figure(&["waits", "wait_us"], "Time for which the engine waited before the instruction, whatever the cause."),
    figure(
        &["waits for", "waits mostly for", "stalled by (us)", "wait_cause", "cause"],
        "What was waited for longest.",
    ),
    figure(&["kind", "wait_kind"], "The cause of a wait; `nki-sim explain CAUSE` describes each."),
    figure(&["HBM bytes", "hbm_read_bytes", "hbm_write_bytes"], "Bytes read from and written to HBM by its transfers."),
    figure(&["SBUF bytes"], "Bytes read from and written to SBUF."),
    figure(&["PSUM bytes"], "Bytes read from and written to PSUM."),
    figure(&["FLOP", "flops"], "Operations of the tensor engine; a multiply-add is two."),
    figure(
        &["utilisation"],
        "Share of the tensor engine's peak that the instruction reaches while it occupies the engine; for transfers, the share of the memory's \
         peak between issue and completion.",
    ),
    figure(&["start"], "Start on the engine, from the start of the kernel."),
    figure(
        &["completion_ts"],
        "The time at which the result is available, in nanoseconds from the start of the kernel.",
    ),
    figure(&["iteration"], "The values of the loop variables around the statement."),
    figure(&["row", "engine"], "An engine, or a DMA queue by the engine that triggers it."),
    figure(&["time", "us"], "Length. In the table of causes: the time for which the row waited for this cause."),
    figure(&["released by"], "What the instruction waited for last before it started."),
    figure(&["bytes"], "Bytes that the transfer moves, counted at the destination."),
    figure(&["operands"], "Operands that differ from their defaults."),
    figure(&["tensor"], "Name of the tensor."),
    figure(&["type"], "Shape and element type."),
    figure(&["memory"], "The memory that holds it."),
    figure(&["size"], "Bytes in each partition on the chip, else all bytes."),
    figure(&["address"], "First byte in the partition."),
    figure(&["lifetime"], "From the first use to the last."),
    figure(&["first use"], "Start of the first instruction that touches the tensor."),
    figure(&["writers"], "Instructions that write it."),
    figure(&["readers"], "Instructions that read it."),
    figure(&["made at"], "The line that makes the tensor."),
    figure(
        &["active", "active us"],
        "Time in which the row works, including time in which the power limiter slows it.",
    ),
    figure(&["active %", "%"], "Active time as a share of the latency or the range."),
    figure(&["% of time"], "Share of the latency or the range."),
    figure(&["core"], "Core of the logical core."),
    figure(&["file"], "Source file."),
    figure(&["rank"], "Rank of the run."),
    figure(&["latency_valid"], "False if the kernel does not fit into SBUF or PSUM: its times are meaningless."),
    figure(&["nki_sim_version"], "Version of nki-sim that wrote the report."),
    figure(&["target"], "Chip generation that the run was made for."),
    figure(&["latency_us"], "From the first instruction fetch to the end; of a remedy, the latency with it."),
    figure(&["gain_us"], "Latency without the remedy less latency with it; negative if it makes the kernel slower."),
    figure(&["gain_percent"], "The gain as a share of the latency without the remedy."),
    figure(&["what"], "What a remedy changes."),
    figure(&["lines"], "The lines that a remedy changes."),
];

/// Kinds of remedies, each with the simulated change.
pub const REMEDIES: &[(&str, &str)] = &[
    ("larger-dma", "2, 4 or 16 transfers of adjacent tiles as one transfer with an additional dimension."),
    (
        "redundant-loads",
        "Loads of bytes that an earlier load has fetched take no time, as far as SBUF has room to keep them.",
    ),
    ("fewer-descriptors", "Every transfer finds its bytes in one run for each partition."),
    (
        "dma-queues",
        "Every other load, or all transfers of a line of the critical path, with hardware descriptors, triggered by another engine.",
    ),
    (
        "split-dma",
        "Transfers of lines on the critical path in 4 or 8 parts along the outermost axis of the tile, so that what needs the first part does not \
         wait for the last; all in their queue, or every other part in another one.",
    ),
    (
        "earlier-loads",
        "Loads of lines on the critical path where their tiles are free first, with a new placement. The compiler orders loads by their first \
         readers, so this helps mostly where instructions stay in the order of the program.",
    ),
    ("double-buffering", "The fills of a tensor alternate between two buffers, with a new placement."),
    ("idle-engine", "Every other instruction of a line on an engine that is less busy."),
    ("tile-shape", "The same work in full tiles: one instruction of a group does the work of all."),
    ("lower-precision", "bfloat16 for float32 in HBM, SBUF and the tensor engine."),
];
