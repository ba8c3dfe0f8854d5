//! The compiler's changes to a kernel. The older compiler's middle end dropped transfers and copies, and added transfers where SBUF was too
//! small; the current compiler drops repeated loads, and gives the values of a tile places of their own.
//!
//! Each pass maps the unrolled program to one that computes the same bits. It applies to kernels of `neuronxcc.nki`
//! unless they are decorated with `skip_middle_end_transformations`. A program with dynamic control flow or explicit addresses is unchanged.
//!
//! Evidence: bytes and instructions that public kernels issue, against the counters of their profiles (NKIBench, kda-for-trainium,
//! trainium-kernel-fusion).

mod banks;
#[cfg(test)]
mod broadcast_tests;
mod broadcasts;
pub mod descriptors;
mod engines;
mod evictions;
#[cfg(test)]
mod merge_tests;
mod merges;
#[cfg(test)]
mod near_tests;
#[cfg(test)]
mod phase_tests;
mod phases;
mod recent_loads;
mod reloads;
mod room;
mod spill;
#[cfg(test)]
mod tests;
mod uses;
#[cfg(test)]
mod value_tests;
mod values;

use nki_isa::ids::Loc;
use nki_isa::inst::{Action, Footprint, Transfer};
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Inst, Program, Space, Tensor, View};

use crate::labels::Labels;
use crate::place::{Capacity, Placement, place_with};
use crate::timing::cost::CostModel;
use nki_diag::Diagnostic;
use nki_diag::memory::size;

/// Bytes at the end of each partition of SBUF that the older compiler reserves. Source: nki_direct_allocation_guide of SDK 2.26.1; it rejected
/// kernels of kda that need more than the rest of a trn2 (208 KiB).
pub const RESERVED: u32 = 16 << 10;

/// Share of the rest for tiles that live longer than an iteration. In a full SBUF, a load reuses the space of the most recently used
/// tile, and waits for it.
///
/// Evidence: AccelOpt's measurements of NKIBench on trn1. With all of SBUF, gqa_full (19.1 ms) is predicted at 38.0 ms, bmm_softmax (12.0) at
/// 31.9, swiglu (4.22) at 5.38; with nine tenths at 15.1, 11.2 and 4.33; with eight tenths at 16.0, 11.3 and 4.27, but then they read 1991, 882 and
/// 295 MB instead of 1322, 844 and 226 (measured: 1194, 794, 142). Confidence: low, as the old compiler's own reserve is unknown.
const STAYING: f64 = 0.9;

/// The placement, if the program fits into PSUM and the compiler's share of SBUF.
fn fits(program: &Program) -> Result<Placement, Vec<Diagnostic>> {
    place_with(program, Capacity::Error, RESERVED)
}

/// The memories that a program exceeds.
#[derive(Debug, Clone, Copy)]
struct Overflows {
    sbuf: bool,
    psum: bool,
}

fn overflows_of(program: &Program) -> Overflows {
    let errors = fits(program).err().unwrap_or_default();
    let psum = errors.iter().filter(|d| d.id.starts_with("psum")).count();
    Overflows { sbuf: errors.len() > psum, psum: psum > 0 }
}

/// The enabled passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// A load is dropped if a tile with the same bytes is or can be kept alive.
    pub reloads: bool,
    /// A broadcast of a row over the partitions is dropped if a tile of an earlier one is or can be kept alive.
    pub broadcasts: bool,
    /// A copy from PSUM to SBUF is dropped if all its readers can read PSUM.
    pub evictions: bool,
    /// Loops over independent iterations are split at the small instructions of their bodies.
    pub phases: bool,
    /// Copies to adjacent columns, and transfers of successive rows, are merged.
    pub merges: bool,
    /// Matmuls wait for a free PSUM bank; results leave PSUM.
    pub banks: bool,
    /// Tiles that do not fit into SBUF are spilled, and loaded again before their next use.
    pub spills: bool,
    /// Instructions that the vector and the scalar engine can both run use the one that completes first.
    pub engines: bool,
}

impl Passes {
    /// All passes, as in the older compiler.
    pub const ALL: Passes = Passes {
        reloads: true,
        broadcasts: true,
        evictions: true,
        phases: true,
        merges: true,
        banks: true,
        spills: true,
        engines: true,
    };
    /// For a kernel with `skip_middle_end_transformations`: the middle end does not change it, but engines that the kernel leaves open are
    /// selected later.
    ///
    /// Evidence: a profile of a transpose of 1024 by 1024 on trn2 with that decorator (rishic3/asst4-trainium2,
    /// profile_view_transpose_1024.txt): the scalar engine runs all 64 `tensor_copy` without `engine`, and the vector engine none.
    pub const AS_WRITTEN: Passes = Passes { engines: true, ..Passes::NONE };
    /// No passes: the program is unchanged.
    pub const NONE: Passes = Passes {
        reloads: false,
        broadcasts: false,
        evictions: false,
        phases: false,
        merges: false,
        banks: false,
        spills: false,
        engines: false,
    };
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A load was dropped: the same bytes were in SBUF.
    DroppedLoad,
    /// A broadcast of a row was dropped: SBUF held its result.
    DroppedBroadcast,
    /// A copy from PSUM was dropped: its readers read PSUM.
    DroppedCopy,
    /// A loop was split into phases: all iterations execute each phase before the next.
    Split,
    /// A copy from PSUM was merged with another one, to adjacent columns.
    MergedCopy,
    /// A transfer was merged with another one, of adjacent rows.
    MergedTransfer,
    /// An instruction was moved after those that free a PSUM bank for its result.
    Delayed,
    /// A result was copied to SBUF, because PSUM was too small to keep it.
    Evicted,
    /// A tile was loaded again, because SBUF was too small to keep it.
    Reloaded,
    /// A tile was stored to HBM, because SBUF was too small to keep it.
    Spilled,
    /// A spilled tile was loaded again.
    Restored,
    /// The scalar engine runs an instruction for which the vector engine is the default.
    OnScalar,
    /// A later value of a tile was given a tile of its own.
    SeparateValue,
}

impl ChangeKind {
    /// Whether it is due to a tile that left SBUF or PSUM.
    pub fn is_spill(self) -> bool {
        matches!(self, ChangeKind::Evicted | ChangeKind::Reloaded | ChangeKind::Spilled | ChangeKind::Restored)
    }

    /// A description of the change for `count` instructions.
    pub fn text(self, count: u32) -> String {
        let plural = if count == 1 { "" } else { "s" };
        match self {
            ChangeKind::DroppedLoad => format!("{count} load{plural} dropped: SBUF held the same bytes"),
            ChangeKind::DroppedBroadcast => format!("{count} broadcast{plural} of a row dropped: SBUF held the result"),
            ChangeKind::DroppedCopy if count == 1 => "1 copy from PSUM dropped: its readers read PSUM".into(),
            ChangeKind::DroppedCopy => format!("{count} copies from PSUM dropped: their readers read PSUM"),
            ChangeKind::Split => {
                format!("{count} iterations in phases: all of them up to a small instruction, then that, then the rest")
            }
            ChangeKind::MergedCopy if count == 1 => {
                "1 copy from PSUM merged into another: their tiles share a bank".into()
            }
            ChangeKind::MergedCopy => format!("{count} copies from PSUM merged into others: their tiles share a bank"),
            ChangeKind::MergedTransfer if count == 1 => "1 transfer merged into another: successive rows".into(),
            ChangeKind::MergedTransfer => format!("{count} transfers merged into others: successive rows"),
            ChangeKind::Delayed => {
                format!("{count} instruction{plural} delayed until PSUM has a bank for the result")
            }
            ChangeKind::Evicted if count == 1 => "1 copy to SBUF added: PSUM is too small to keep the tile".into(),
            ChangeKind::Evicted => format!("{count} copies to SBUF added: PSUM is too small to keep the tiles"),
            ChangeKind::Reloaded => format!("{count} load{plural} repeated: SBUF is too small to keep the tile"),
            ChangeKind::Spilled => format!("{count} store{plural} to HBM added: SBUF is too small to keep the tile"),
            ChangeKind::OnScalar => {
                format!("{count} instruction{plural} moved to the scalar engine, which finishes first")
            }
            ChangeKind::SeparateValue if count == 1 => {
                "1 later value of this tile has a place of its own, so that writing it waits for no reader of the first"
                    .into()
            }
            ChangeKind::SeparateValue => format!(
                "{count} later values of this tile have places of their own, so that writing them waits for no reader of older ones"
            ),
            ChangeKind::Restored => format!("{count} load{plural} of stored tiles added"),
        }
    }
}

/// The changes at one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The kind of the change.
    pub what: ChangeKind,
    /// The line of the dropped instruction, or of the tile that moved or whose values have places of their own.
    pub loc: Loc,
    /// The number of changes.
    pub count: u32,
    /// Bytes per kernel execution that these instructions moved, or would have moved; 0 for values.
    pub bytes: u64,
}

/// Bytes that the kernel stores to HBM, and loads again from there, because SBUF is too small. Repeated loads of inputs do not count, as in
/// Neuron's profiles: a matmul of NKIBench reads 9.06 GB where its source loads 1.26 GB, and has 0 (profile_results.csv of AccelOpt).
pub fn spilled_bytes(changes: &[Change]) -> (u64, u64) {
    let of = |what: ChangeKind| changes.iter().filter(|c| c.what == what).map(|c| c.bytes).sum();
    (of(ChangeKind::Spilled), of(ChangeKind::Restored))
}

/// Collects changes by line.
#[derive(Debug, Default)]
struct Changes(std::collections::BTreeMap<(u32, u32, u32, ChangeKind), Change>);

impl Changes {
    fn add(&mut self, what: ChangeKind, loc: Loc, bytes: usize) {
        self.add_many(what, loc, 1, bytes);
    }

    fn add_many(&mut self, what: ChangeKind, loc: Loc, count: usize, bytes: usize) {
        let change = Change { what, loc, count: 0, bytes: 0 };
        let entry = self.0.entry((loc.file, loc.line, loc.column, what)).or_insert(change);
        entry.count += count as u32;
        entry.bytes += bytes as u64;
    }
}

/// The program after the middle end, and the changes, by line. `model` is the compiler's cost model.
pub fn rewrite(program: &Program, passes: Passes, model: &dyn CostModel) -> (Program, Vec<Change>) {
    let mut program = program.clone();
    let mut changes = Changes::default();
    if !is_plain(&program) {
        return (program, Vec::new());
    }
    // Before the loads: a row that the kernel loads in the loop is repeated each time, even if the later loads are dropped.
    if passes.broadcasts {
        broadcasts::drop_repeated(&mut program, &mut changes);
    }
    if passes.reloads {
        reloads::drop_repeated(&mut program, &mut changes);
    }
    let mut overflows = overflows_of(&program);
    if passes.banks && overflows.psum {
        banks::fit_psum(&mut program, &mut changes);
        overflows = overflows_of(&program);
    }
    if passes.evictions
        && let Some(left) = evictions::drop_copies(&mut program, &mut changes)
    {
        overflows = left;
    }
    if passes.phases {
        phases::split(&mut program, &mut changes);
    }
    if passes.merges {
        merges::merge_evictions(&mut program, &mut changes);
        merges::merge_transfers(&mut program, &mut changes);
    }
    // Spilling from SBUF frees no space in PSUM.
    if passes.spills && overflows.sbuf && !overflows.psum {
        spill::fit_sbuf(&mut program, &mut changes);
    }
    if passes.engines {
        engines::choose(&mut program, model, &mut changes);
    }
    (program, changes.0.into_values().collect())
}

/// The program as the current compiler changes it, and the changes, by line; `None` if there are none. A pass after which the program would not
/// fit into SBUF is left out.
pub fn as_compiled(program: &Program) -> Option<(Program, Vec<Change>)> {
    /// Returns the changed program; `None` if there is nothing to change.
    type Pass = fn(&Program, &mut Changes) -> Option<Program>;
    const PASSES: [Pass; 2] = [recent_loads::drop_near, values::separate];
    if !is_plain(program) {
        return None;
    }
    let mut changes = Changes::default();
    let mut changed: Option<Program> = None;
    for pass in PASSES {
        let mut made = Changes::default();
        let after = pass(changed.as_ref().unwrap_or(program), &mut made);
        if let Some(after) = after.filter(|after| place_with(after, Capacity::Error, 0).is_ok()) {
            changes.0.append(&mut made.0);
            changed = Some(after);
        }
    }
    changed.map(|program| (program, changes.0.into_values().collect()))
}

/// Whether a program has neither dynamic control flow nor explicit addresses.
fn is_plain(program: &Program) -> bool {
    program.cores.iter().flatten().all(|node| matches!(node.kind, NodeKind::Inst(_)))
        && program.tensors.iter().all(|t| t.address.is_none())
}

/// A warning if spilling causes many repeated loads: more bytes than [`MUCH`] times all arguments.
pub fn thrashes(program: &Program, changes: &[Change]) -> Option<Diagnostic> {
    let again = || changes.iter().filter(|change| matches!(change.what, ChangeKind::Reloaded | ChangeKind::Restored));
    let bytes: u64 = again().map(|change| change.bytes).sum();
    let arguments: u64 = program.inputs.iter().map(|input| program.tensor(input.tensor).bytes() as u64).sum();
    let most = again().max_by_key(|change| change.bytes)?;
    (bytes > MUCH * arguments).then(|| {
        let (bytes, arguments) = (size(bytes), size(arguments));
        let message = format!("SBUF is too small for the tiles of this kernel: {bytes} are loaded again, but its arguments have {arguments}");
        Diagnostic::warning("sbuf-spill", message)
            .at_source(most.loc, most.what.text(most.count))
            .note("whole tiles are loaded again here; the older compiler may load the parts that an instruction needs, so that the latency is an upper bound")
            .help("keep less in SBUF at one time, for example the rows of one iteration")
    })
}

/// Multiple of the argument size that spilling loads again before [`thrashes`] warns: NKIBench's matmul loads 7 times as much.
const MUCH: u64 = 20;

/// Whether instructions have ordering constraints other than data: registers, other cores, or explicit ones.
fn has_fixed_order(program: &Program) -> bool {
    let exchanges = |node: &Node| {
        inst(node).is_none_or(|inst| {
            inst.participants().is_some() || matches!(inst.action(), Action::Orders | Action::Prepares(_))
        })
    };
    program.registers > 0
        || program.tags.iter().any(|t| !t.after.is_empty() || !t.issued_after.is_empty() || t.block.is_some())
        || program.cores.iter().flatten().any(exchanges)
}

/// Whether an instruction leaves a value in its engine's accumulators for others.
fn leaves_values(inst: &Inst) -> bool {
    let carries = inst.values().registers.is_some_and(|r| r.carries && !r.updates);
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    inst.sets_engine_state() || carries && footprint.writes.len() > 1
}

/// Removes the statements at these ascending positions.
fn remove(stream: &mut Vec<Node>, positions: &[u32]) {
    let mut at = 0;
    stream.retain(|_| {
        at += 1;
        positions.binary_search(&(at - 1)).is_err()
    });
}

/// The transfer of a statement; the program has no control flow.
fn transfer(node: &Node) -> Option<Transfer<'_>> {
    match inst(node)?.action() {
        Action::Transfers(transfer) => Some(transfer),
        _ => None,
    }
}

/// The HBM side and the SBUF side of a transfer between them.
fn hbm_and_tile<'a>(transfer: &Transfer<'a>) -> Option<(&'a View, &'a View)> {
    let (dst, src) = (transfer.dst, transfer.src);
    let (hbm, tile) = if dst.space.is_hbm() { (dst, src) } else { (src, dst) };
    (hbm.space.is_hbm() && tile.space == Space::Sbuf).then_some((hbm, tile))
}

/// Whether a view in SBUF belongs to a tile of one partition.
fn has_one_partition(view: &View, tensors: &[Tensor]) -> bool {
    tensors[view.tensor.0 as usize].shape.first() == Some(&1)
}

/// The instruction of a statement; the program has no control flow.
fn inst(node: &Node) -> Option<&nki_isa::Inst> {
    match &node.kind {
        NodeKind::Inst(inst) => Some(inst),
        _ => None,
    }
}

/// A compiler-generated instruction with the location of `node`.
fn added(inst: Inst, node: &Node) -> Node {
    Node { kind: NodeKind::Inst(inst), loc: node.loc, trail: node.trail, tag: None }
}
