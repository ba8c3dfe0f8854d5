//! Dependences between instructions: read-after-write, write-after-read and write-after-write hazards by exact bytes, and the
//! same for registers. The order within an engine's queue is implicit.
//!
//! - On chip, bytes are physical (tensor address plus view), so tensors that share an address depend on each other. Each HBM tensor has
//!   separate storage; tensors that are never written are not tracked.
//! - A queue issues instructions in program order, except that an instruction may overtake others of its queue that are less than the queue's
//!   reach before it ([`Reach`]). With a reach of 1, an edge covers all earlier instructions of the queue: only the latest is kept.
//! - On one compute engine, a later write cannot overtake an earlier access, so the earlier instruction only has to start first
//!   ([`orders`]); with a reach of 1 such edges are omitted. On the tensor engine this also holds for reads after writes, because it
//!   accumulates in place.
//! - `depends_on` is an edge to the named instruction, whatever the two access.
//! - Registers are memory of 4 bytes each, shared by all engines. (On the device each sequencer has its own copy; the edge models the
//!   transfer.)
//! - Dynamic loops and branches are barriers; no edge crosses one.
//! - Cores run independently. Accesses of two cores to shared HBM are not ordered.

mod index;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nki_diag::progress;
use nki_isa::ids::{RegId, TagId};
use nki_isa::inst::Footprint;
use nki_isa::names::{Engine, Space};
use nki_isa::program::{Node, NodeKind};
use nki_isa::view::Index as ViewIndex;
use nki_isa::{Program, TensorId, View};

use crate::place::Placement;
use crate::trace::Resolved;

pub(crate) use index::{By, Index, Partitions, Region};
use pattern::Pattern;

/// The kind of a dependence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// Read after write: the earlier instruction produces the data.
    Raw,
    /// Write after write.
    Waw,
    /// Write after read: the earlier instruction still needs the bytes.
    War,
    /// An order that the kernel requests with `depends_on`.
    Order,
}

impl Hazard {
    /// Whether the later instruction needs the earlier one's result, not only its space.
    pub(crate) fn brings_data(self) -> bool {
        matches!(self, Hazard::Raw | Hazard::Order)
    }

    /// `RAW`, `WAW`, `WAR` or `order`.
    pub fn name(self) -> &'static str {
        match self {
            Hazard::Raw => "RAW",
            Hazard::Waw => "WAW",
            Hazard::War => "WAR",
            Hazard::Order => "order",
        }
    }
}

/// The storage or instruction that causes a dependence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// Bytes of this tensor (the earlier access's, where two tensors share bytes).
    Tensor(TensorId),
    /// A register.
    Register(RegId),
    /// The earlier instruction itself, by its tag.
    Tag(TagId),
}

/// A dependence on an earlier operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dep {
    /// The earlier operation, by position in the list given to [`analyze`].
    pub on: u32,
    /// The kind of the dependence.
    pub hazard: Hazard,
    /// The kind of the subject, and its number; more compact than a [`Subject`].
    kind: SubjectKind,
    number: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubjectKind {
    Tensor,
    Register,
    Tag,
}

impl Dep {
    /// A dependence on the operation `on`.
    pub fn new(on: u32, hazard: Hazard, subject: Subject) -> Self {
        let (kind, number) = match subject {
            Subject::Tensor(t) => (SubjectKind::Tensor, t.0),
            Subject::Register(r) => (SubjectKind::Register, r.0),
            Subject::Tag(t) => (SubjectKind::Tag, t.0),
        };
        Dep { on, hazard, kind, number }
    }

    /// The subject of the dependence.
    pub fn subject(self) -> Subject {
        match self.kind {
            SubjectKind::Tensor => Subject::Tensor(TensorId(self.number)),
            SubjectKind::Register => Subject::Register(RegId(self.number)),
            SubjectKind::Tag => Subject::Tag(TagId(self.number)),
        }
    }
}

/// An executed instruction, as input of the analysis.
#[derive(Debug, Clone, Copy)]
pub struct Op<'a> {
    /// The statement; an instruction, or anything else for a barrier.
    pub node: &'a Node,
    /// Resolved dynamic addresses (see [`crate::trace::EventKind::Inst`]).
    pub resolved: Option<&'a [Resolved]>,
    /// The queue that completes it: equal numbers complete in program order.
    pub queue: u8,
    /// The compute engine that runs it; `None` for a DMA.
    pub engine: Option<Engine>,
    /// Registers that decide whether it runs: the bounds or the condition of a dynamic loop entered since the last barrier.
    pub control: [Option<RegId>; 2],
}

/// Dependences of all operations.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deps {
    starts: Vec<u32>,
    edges: Vec<Dep>,
}

impl Deps {
    /// Known dependences, by operation.
    pub(crate) fn known(of: Vec<Vec<Dep>>) -> Self {
        let mut deps = Deps { starts: Vec::with_capacity(of.len() + 1), edges: Vec::new() };
        deps.starts.push(0);
        for mut list in of {
            list.sort_by_key(|d| d.on);
            deps.edges.extend(list);
            deps.starts.push(deps.edges.len() as u32);
        }
        deps
    }

    /// Renumbers the operations: the operation at each position of the list gets the number `order[position]`.
    pub(crate) fn renumbered(&self, order: &[u32]) -> Self {
        let mut position = vec![0; order.len()];
        for (at, op) in (0..).zip(order) {
            position[*op as usize] = at;
        }
        let mut deps =
            Deps { starts: Vec::with_capacity(self.starts.len()), edges: Vec::with_capacity(self.edges.len()) };
        deps.starts.push(0);
        for at in position {
            let start = deps.edges.len();
            deps.edges.extend(self.of(at).iter().map(|d| Dep { on: order[d.on as usize], ..*d }));
            deps.edges[start..].sort_by_key(|d| d.on);
            deps.starts.push(deps.edges.len() as u32);
        }
        deps
    }

    /// The dependences of operation `op`, in the order of the operations' numbers; at most one entry for a queue with reach 1.
    pub fn of(&self, op: usize) -> &[Dep] {
        &self.edges[self.starts[op] as usize..self.starts[op + 1] as usize]
    }
    /// Number of edges.
    pub fn len(&self) -> usize {
        self.edges.len()
    }
    /// Whether there are no dependences.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }
}

/// Maximum number of queues.
const QUEUES: usize = 16;

/// By queue number: an operation may overtake others of its queue that are fewer than this many positions before it. At least 1.
pub type Reach = [u32; QUEUES];

/// Every queue issues its operations in program order.
pub const IN_ORDER: Reach = [1; QUEUES];

struct Analyzer<'p> {
    program: &'p Program,
    sbuf: Index,
    psum: Index,
    /// By HBM tensor that an instruction writes.
    hbm: BTreeMap<TensorId, Index>,
    /// By register: the last writer, and its readers since.
    registers: Vec<(Option<u32>, Vec<u32>)>,
    queues: Vec<u8>,
    /// The last operation of each tag.
    tagged: Vec<Option<u32>>,
    /// By queue: its last operation in a block of `nl.no_reorder()`, with the block and its tag.
    ordered: [Option<(u32, u32, TagId)>; QUEUES],
    /// The dependences of the current operation.
    found: Conflicts,
}

/// Whether an edge between two instructions of one compute engine only constrains their start order.
pub(crate) fn orders(engine: Engine, hazard: Hazard) -> bool {
    engine == Engine::Tensor || !hazard.brings_data()
}

/// The dependences of `ops`, which one core executed in this order. `written` has, for each tensor, whether any core writes it; `reach` is
/// the maximum departure of each queue from program order.
pub fn analyze(program: &Program, placement: &Placement, ops: &[Op<'_>], written: &[bool], reach: &Reach) -> Deps {
    let arch = nki_isa::Arch::of(program.target);
    let mut a = Analyzer {
        program,
        sbuf: Index::new(u64::from(arch.sbuf_bytes)),
        psum: Index::new(u64::from(arch.psum_bytes())),
        hbm: (0..)
            .zip(&program.tensors)
            .zip(written)
            .filter(|((_, tensor), written)| tensor.space.is_hbm() && **written)
            .map(|((id, tensor), _)| (TensorId(id), Index::new(tensor.bytes() as u64)))
            .collect(),
        registers: vec![(None, Vec::new()); program.registers as usize],
        queues: ops.iter().map(|o| o.queue).collect(),
        tagged: vec![None; program.tags.len()],
        ordered: [None; QUEUES],
        found: Conflicts::new(reach.map(|r| r.max(1))),
    };
    let mut deps = Deps { starts: Vec::with_capacity(ops.len() + 1), edges: Vec::with_capacity(ops.len() * 2) };
    let touched = |ops: &[Op<'_>]| Touched::of(program, placement, ops, written);
    // One thread searches for conflicts while another collects the accesses of the next operations.
    let mut parts = ops.chunks(SHARE);
    let mut part = parts.next();
    let mut ready = part.map(touched).unwrap_or_default();
    let mut id = 0;
    progress::begin("statements analysed for dependences", ops.len() as u64);
    while let Some(now) = part {
        part = parts.next();
        progress::reach(u64::from(id));
        let mut work = || {
            let mut accesses = ready.accesses.drain(..);
            let (mut reads, mut writes) = (&ready.register_reads[..], &ready.register_writes[..]);
            for (op, counts) in now.iter().zip(&ready.counts) {
                deps.starts.push(deps.edges.len() as u32);
                let [count, register_reads, register_writes] = counts.map(|n| n as usize);
                let here = Here {
                    accesses: &mut accesses,
                    count,
                    register_reads: reads.split_off(..register_reads).unwrap_or_default(),
                    register_writes: writes.split_off(..register_writes).unwrap_or_default(),
                };
                match &op.node.kind {
                    NodeKind::Inst(_) => a.step(id, op, here, &mut deps.edges),
                    _ => a.barrier(),
                }
                id += 1;
            }
        };
        ready = match part {
            Some(next) => rayon::join(work, || touched(next)).1,
            None => {
                work();
                Touched::default()
            }
        };
    }
    deps.starts.push(deps.edges.len() as u32);
    deps
}

/// Operations per hand-over between the two threads. The number is large because on a busy machine each hand-over may have to wait.
const SHARE: usize = 16384;

/// An access of an operation: memory, tensor, whether it writes, bytes.
type Access = (Space, TensorId, bool, Region);

/// Accesses of operations, concatenated in a few lists: one list per operation would be copied often.
#[derive(Default)]
struct Touched {
    accesses: Vec<Access>,
    register_reads: Vec<RegId>,
    register_writes: Vec<RegId>,
    /// By operation: the number of its entries in each list.
    counts: Vec<[u32; 3]>,
}

impl Touched {
    /// `written` selects the HBM tensors to track.
    fn of(program: &Program, placement: &Placement, ops: &[Op<'_>], written: &[bool]) -> Self {
        let mut all = Touched::default();
        all.counts.reserve(ops.len());
        all.accesses.reserve(3 * ops.len());
        let mut footprint = Footprint::default();
        for op in ops {
            let before = all.lengths();
            if let NodeKind::Inst(inst) = &op.node.kind {
                footprint.clear();
                inst.footprint(&mut footprint);
                all.add(program, placement, op, &footprint, written);
            }
            let after = all.lengths();
            all.counts.push(std::array::from_fn(|i| after[i] - before[i]));
        }
        all
    }

    fn lengths(&self) -> [u32; 3] {
        [self.accesses.len(), self.register_reads.len(), self.register_writes.len()].map(|n| n as u32)
    }

    fn add(
        &mut self,
        program: &Program,
        placement: &Placement,
        op: &Op<'_>,
        footprint: &Footprint<'_>,
        written: &[bool],
    ) {
        let mut resolved = op.resolved.unwrap_or(&[]).iter();
        let reads = footprint.reads.iter().map(|v| (false, *v));
        for (write, view) in reads.chain(footprint.writes.iter().map(|v| (true, *v))) {
            let dynamic = view.indirect.as_ref().and_then(|_| resolved.next());
            if view.space.is_hbm() && written.get(view.tensor.0 as usize) != Some(&true) {
                continue;
            }
            regions(program, placement, view, dynamic, &mut |region| {
                self.accesses.push((view.space, view.tensor, write, region));
            });
        }
        self.register_reads.extend(footprint.register_reads.iter().copied().chain(op.control.into_iter().flatten()));
        self.register_writes.extend(footprint.register_writes.iter().copied());
    }
}

/// The accesses of one operation.
struct Here<'t, 'd> {
    /// Its accesses are the next `count` entries.
    accesses: &'t mut std::vec::Drain<'d, Access>,
    count: usize,
    register_reads: &'t [RegId],
    register_writes: &'t [RegId],
}

/// Whether an instruction of `program` writes each tensor.
pub fn written_tensors(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.tensors.len()];
    program.visit(&mut |node| {
        if let NodeKind::Inst(inst) = &node.kind {
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            for view in &footprint.writes {
                if let Some(w) = written.get_mut(view.tensor.0 as usize) {
                    *w = true;
                }
            }
        }
    });
    written
}

/// The conflicts of one operation.
struct Conflicts {
    reach: Reach,
    /// For queues in program order: the latest dependence.
    latest: [Option<Dep>; QUEUES],
    /// Bit set of the entries of `latest` in use.
    queues: u32,
    /// For the other queues: all dependences.
    all: Vec<Dep>,
}

impl Conflicts {
    fn new(reach: Reach) -> Self {
        Conflicts { reach, latest: [None; QUEUES], queues: 0, all: Vec::new() }
    }

    fn add(&mut self, on: u32, queue: u8, hazard: Hazard, subject: Subject) {
        let queue = usize::from(queue) % QUEUES;
        if self.reach[queue] > 1 {
            return self.all.push(Dep::new(on, hazard, subject));
        }
        let slot = &mut self.latest[queue];
        let better = slot.is_none_or(|d| (on, std::cmp::Reverse(hazard)) > (d.on, std::cmp::Reverse(d.hazard)));
        if better {
            *slot = Some(Dep::new(on, hazard, subject));
            self.queues |= 1 << queue;
        }
    }

    /// Moves all dependences to `edges`.
    fn hand_over(&mut self, edges: &mut Vec<Dep>) {
        while self.queues != 0 {
            self.all.extend(self.latest[self.queues.trailing_zeros() as usize].take());
            self.queues &= self.queues - 1;
        }
        // Of several edges to one instruction, keep the one that waits for its completion.
        self.all.sort_by_key(|d| (d.on, !d.hazard.brings_data(), d.hazard));
        self.all.dedup_by_key(|d| d.on);
        edges.append(&mut self.all);
    }
}

impl Analyzer<'_> {
    fn barrier(&mut self) {
        self.sbuf.clear();
        self.psum.clear();
        for index in self.hbm.values_mut() {
            index.clear();
        }
        self.registers.fill((None, Vec::new()));
        self.tagged.fill(None);
        self.ordered = [None; QUEUES];
    }

    fn step(&mut self, id: u32, op: &Op<'_>, here: Here<'_, '_>, edges: &mut Vec<Dep>) {
        let own = self.found.reach[usize::from(op.queue) % QUEUES];
        let by = |write| By { op: id, queue: op.queue, reach: own, write };
        let found = &mut self.found;
        let same = |queue: u8, hazard: Hazard| {
            own == 1 && queue == op.queue && op.engine.is_some_and(|engine| orders(engine, hazard))
        };
        for (space, tensor, write, region) in here.accesses.as_slice().iter().take(here.count) {
            let Some(index) = index_of(&mut self.sbuf, &mut self.psum, &mut self.hbm, *space, *tensor) else {
                continue;
            };
            index.conflicts(region, by(*write), |on, queue, hazard, subject, _| {
                if !same(queue, hazard) {
                    found.add(on, queue, hazard, subject);
                }
            });
        }
        for r in here.register_reads {
            if let Some((Some(on), _)) = self.registers.get(r.0 as usize) {
                let queue = self.queues[*on as usize];
                if !same(queue, Hazard::Raw) {
                    found.add(*on, queue, Hazard::Raw, Subject::Register(*r));
                }
            }
        }
        for r in here.register_writes {
            let Some((writer, readers)) = self.registers.get(r.0 as usize) else { continue };
            if let Some(on) = writer {
                let queue = self.queues[*on as usize];
                if !same(queue, Hazard::Waw) {
                    found.add(*on, queue, Hazard::Waw, Subject::Register(*r));
                }
            }
            for on in readers {
                let queue = self.queues[*on as usize];
                if !same(queue, Hazard::War) {
                    found.add(*on, queue, Hazard::War, Subject::Register(*r));
                }
            }
        }
        if let Some(tag) = op.node.tag {
            let requested = self.program.tags.get(tag.0 as usize);
            for after in requested.map_or(&[][..], |t| &t.after) {
                if let Some(Some(on)) = self.tagged.get(after.0 as usize) {
                    let queue = self.queues[*on as usize];
                    // As for data, the tensor engine completes in order.
                    if !same(queue, Hazard::Raw) {
                        found.add(*on, queue, Hazard::Order, Subject::Tag(*after));
                    }
                }
            }
            for after in requested.map_or(&[][..], |t| &t.issued_after) {
                if let Some(Some(on)) = self.tagged.get(after.0 as usize) {
                    let queue = self.queues[*on as usize];
                    // Only the issue order within a queue matters; different queues do not wait for each other. This is a start-order constraint like
                    // that of a write after a read.
                    if queue == op.queue && !same(queue, Hazard::War) {
                        found.add(*on, queue, Hazard::War, Subject::Tag(*after));
                    }
                }
            }
            if let Some(block) = requested.and_then(|t| t.block) {
                let last = &mut self.ordered[usize::from(op.queue) % QUEUES];
                if let Some((of, on, before)) = *last
                    && of == block
                    && !same(op.queue, Hazard::War)
                {
                    found.add(on, op.queue, Hazard::War, Subject::Tag(before));
                }
                *last = Some((block, id, tag));
            }
            if let Some(last) = self.tagged.get_mut(tag.0 as usize) {
                *last = Some(id);
            }
        }
        found.hand_over(edges);

        for (space, tensor, write, region) in here.accesses.take(here.count) {
            if let Some(index) = index_of(&mut self.sbuf, &mut self.psum, &mut self.hbm, space, tensor) {
                index.insert(region, by(write), Subject::Tensor(tensor));
            }
        }
        for r in here.register_reads {
            if let Some(slot) = self.registers.get_mut(r.0 as usize) {
                let queues = &self.queues;
                slot.1.retain(|r| queues[*r as usize] != op.queue || id - r < own);
                slot.1.push(id);
            }
        }
        for r in here.register_writes {
            if let Some(slot) = self.registers.get_mut(r.0 as usize) {
                *slot = (Some(id), Vec::new());
            }
        }
    }
}

/// The bytes that `view` names. If the dynamic address is unknown, all bytes of the tensor.
pub(crate) fn regions(
    program: &Program,
    placement: &Placement,
    view: &View,
    dynamic: Option<&Resolved>,
    out: &mut impl FnMut(Region),
) {
    let size = view.dtype.size() as i64;
    let tensor = program.tensor(view.tensor);
    let (partitions, dims, base) = if view.space.is_on_chip() {
        let address = placement.address(view.tensor).unwrap_or(nki_isa::ids::Address { partition: 0, byte: 0 });
        let p = view.dims.first().copied().unwrap_or(nki_isa::Dim { stride: 1, count: 1 });
        let p = Partitions {
            start: i64::from(address.partition) + i64::from(view.partition),
            stride: p.stride.max(1),
            count: if p.stride == 0 { 1 } else { i64::from(p.count) },
        };
        (p, view.free_dims(), placement.base(view, address))
    } else {
        (Partitions { start: 0, stride: 1, count: 1 }, &view.dims[..], 0)
    };
    let Some(indirect) = view.indirect.as_deref() else {
        return out(Region::of(partitions, dims, view.offset, size, base));
    };
    match dynamic {
        Some(Resolved::Skipped) => {}
        Some(Resolved::Offset(o)) => out(Region::of(partitions, dims, view.offset + o, size, base)),
        Some(Resolved::Rows(rows)) if view.space.is_hbm() && matches!(indirect.index, ViewIndex::Vector(_)) => {
            let dims = view.dims.get(1..).unwrap_or_default();
            for row in rows.iter().flatten() {
                out(Region::of(partitions, dims, view.offset + row, size, base));
            }
        }
        Some(Resolved::Rows(offsets)) if matches!(indirect.index, ViewIndex::Columns(_)) => {
            let mut offsets: Vec<i64> = offsets.iter().flatten().copied().collect();
            offsets.sort_unstable();
            offsets.dedup();
            for offset in offsets {
                out(Region::of(partitions, &[], view.offset + offset, size, base));
            }
        }
        _ => out(Region::new(partitions, Pattern::run(base, base + tensor.bytes().max(1) as i64))),
    }
}

fn index_of<'i>(
    sbuf: &'i mut Index,
    psum: &'i mut Index,
    hbm: &'i mut BTreeMap<TensorId, Index>,
    space: Space,
    tensor: TensorId,
) -> Option<&'i mut Index> {
    match space {
        Space::Sbuf => Some(sbuf),
        Space::Psum => Some(psum),
        Space::Hbm | Space::SharedHbm => hbm.get_mut(&tensor),
    }
}
