//! Bytes moved by memory and floating-point operations, counted as in Neuron Explorer.

use nki_isa::inst::{Action, Footprint};
use nki_isa::machine::Context;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind};
use nki_isa::view::Dims;
use nki_isa::work::{Work, WorkKind};
use nki_isa::{Arch, DType, Inst, Program, Space, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::timeline::{Event, Timeline};
use crate::trace::{NodeIndex, index_nodes};

/// Counters of one instruction, line or kernel. A multiply-add is two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// Operations of the tensor engine, including transposes.
    pub flops: u64,
    /// The operations of transposes.
    pub transpose_flops: u64,
    /// Operations in units of the bf16 rate, doubled so that half rates are integers: fp32 counts 4, fp8 on trn2 and trn3 one half.
    pub adjusted_flops_x2: u64,
    /// Bytes read from HBM.
    pub hbm_read: u64,
    /// Bytes written to HBM.
    pub hbm_write: u64,
    /// Bytes read from SBUF.
    pub sbuf_read: u64,
    /// Bytes written to SBUF.
    pub sbuf_write: u64,
    /// Bytes read from PSUM.
    pub psum_read: u64,
    /// Bytes written to PSUM.
    pub psum_write: u64,
}

impl Counters {
    /// Adds `other`.
    pub fn add(&mut self, other: &Counters) {
        self.flops += other.flops;
        self.transpose_flops += other.transpose_flops;
        self.adjusted_flops_x2 += other.adjusted_flops_x2;
        self.hbm_read += other.hbm_read;
        self.hbm_write += other.hbm_write;
        self.sbuf_read += other.sbuf_read;
        self.sbuf_write += other.sbuf_write;
        self.psum_read += other.psum_read;
        self.psum_write += other.psum_write;
    }

    /// Operations outside of transposes.
    pub fn useful_flops(&self) -> u64 {
        self.flops - self.transpose_flops
    }

    /// Bytes read from and written to HBM.
    pub fn hbm(&self) -> u64 {
        self.hbm_read + self.hbm_write
    }
}

/// The time-independent counters of a program, found in one pass over its statements.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// By core and [`NodeIndex`]: the index in `distinct` of the statement's counters.
    of: Vec<Vec<u32>>,
    /// Distinct counters: a long program has few.
    distinct: Vec<Counters>,
    /// The minimum HBM traffic for the result, read and written: each byte of an input that the kernel reads, once, and each byte
    /// of an output that it writes, once. Data-dependent addresses count as the whole tensor, of which a run may need less.
    pub minimum_bytes: (u64, u64),
}

impl Facts {
    /// The facts of all statements.
    pub fn of(program: &Program) -> Facts {
        let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
        let mut needed = Needed::new(program);
        let mut numbers: FxHashMap<Counters, u32> = FxHashMap::default();
        let mut distinct = Vec::new();
        let mut number = |node: &Node| {
            let mut counted = Counters::default();
            // A barrier moves nothing, although its footprint names a tensor.
            if let NodeKind::Inst(inst) = &node.kind
                && inst.action() != Action::Orders
            {
                let mut footprint = Footprint::default();
                inst.footprint(&mut footprint);
                needed.add(&footprint);
                counted = counters(inst, &footprint, &context);
            }
            *numbers.entry(counted).or_insert_with(|| {
                distinct.push(counted);
                distinct.len() as u32 - 1
            })
        };
        let of =
            program.cores.iter().map(|stream| index_nodes(stream).into_iter().map(&mut number).collect()).collect();
        Facts { of, distinct, minimum_bytes: needed.sums() }
    }

    /// The counters of a statement; zero for control flow.
    pub fn counters(&self, core: u32, node: NodeIndex) -> &Counters {
        &self.distinct[self.of[core as usize][node.0 as usize] as usize]
    }

    /// The counters of an event.
    pub fn of_event(&self, e: &Event) -> &Counters {
        self.counters(e.origin.core, e.node)
    }

    /// The sum over all executed instructions.
    pub fn total(&self, timeline: &Timeline) -> Counters {
        let mut out = Counters::default();
        for e in &timeline.events {
            out.add(self.of_event(e));
        }
        out
    }
}

fn counters(inst: &Inst, footprint: &Footprint<'_>, context: &Context<'_>) -> Counters {
    let mut c = Counters::default();
    for (views, write) in [(&footprint.reads[..], false), (&footprint.writes[..], true)] {
        for v in views {
            let slot = match (v.space, write) {
                (Space::Sbuf, false) => &mut c.sbuf_read,
                (Space::Sbuf, true) => &mut c.sbuf_write,
                (Space::Psum, false) => &mut c.psum_read,
                (Space::Psum, true) => &mut c.psum_write,
                (_, false) => &mut c.hbm_read,
                (_, true) => &mut c.hbm_write,
            };
            *slot += v.bytes() as u64;
        }
    }
    // No other engine multiplies matrices.
    if inst.engine(context.arch) == Engine::Tensor {
        flops(&inst.work(context), context.arch, &mut c);
    }
    c
}

fn flops(work: &Work, arch: &Arch, c: &mut Counters) {
    let WorkKind::Matmul(m) = &work.kind else { return };
    let flops = 2 * u64::from(m.rows) * u64::from(m.columns) * u64::from(m.moving);
    let fp32 = m.stationary_dtype == DType::F32 || m.moving_dtype == DType::F32;
    let fp8 = m.stationary_dtype.size() == 1 && m.moving_dtype.size() == 1;
    // Twice the factor in Neuron Explorer's table of columns for adjusted_flops.
    let factor = match (fp32, fp8 && arch.double_row) {
        (true, _) => 8,
        (_, true) => 1,
        _ => 2,
    };
    c.flops = flops;
    c.adjusted_flops_x2 = flops * factor;
    if m.transpose {
        c.transpose_flops = flops;
    }
}

/// Identity of a view: tensor, whether written, offset, dimensions.
type Named = (TensorId, bool, i64, Dims);

/// Collects the bytes of inputs and outputs that a program accesses.
struct Needed<'p> {
    program: &'p Program,
    is_input: FxHashSet<TensorId>,
    is_output: FxHashSet<TensorId>,
    /// Byte ranges by tensor, read and written.
    pieces: [FxHashMap<TensorId, Vec<(i64, i64)>>; 2],
    seen: FxHashSet<Named>,
}

impl<'p> Needed<'p> {
    fn new(program: &'p Program) -> Self {
        Needed {
            program,
            is_input: program.inputs.iter().map(|i| i.tensor).collect(),
            is_output: program.outputs.iter().map(|o| o.tensor).collect(),
            pieces: Default::default(),
            seen: FxHashSet::default(),
        }
    }

    fn add(&mut self, footprint: &Footprint<'_>) {
        for v in footprint.reads.iter().filter(|v| v.space.is_hbm()) {
            if self.is_input.contains(&v.tensor) || self.program.tensor(v.tensor).data.is_some() {
                self.view(v, false);
            }
        }
        for v in footprint.writes.iter().filter(|v| v.space.is_hbm()) {
            if self.is_output.contains(&v.tensor) {
                self.view(v, true);
            }
        }
    }

    fn view(&mut self, v: &View, write: bool) {
        if !self.seen.insert((v.tensor, write, v.offset, v.dims.clone())) {
            return;
        }
        let pieces = self.pieces[usize::from(write)].entry(v.tensor).or_default();
        if v.indirect.is_some() {
            pieces.push((0, self.program.tensor(v.tensor).bytes() as i64));
        } else {
            pieces.extend(v.runs().map(|r| (r.offset, r.end())));
            compact(pieces);
        }
    }

    fn sums(self) -> (u64, u64) {
        let [read, written] = self.pieces.map(|map| {
            let mut all: Vec<_> = map.into_iter().collect();
            all.sort_unstable_by_key(|(id, _)| *id);
            all.into_iter().map(|(_, pieces)| covered(pieces)).sum()
        });
        (read, written)
    }
}

/// Merges byte ranges when there are many, so that not all need to be stored.
fn compact(pieces: &mut Vec<(i64, i64)>) {
    const MANY: usize = 1 << 20;
    if pieces.len() > MANY {
        let merged = merge(std::mem::take(pieces));
        *pieces = merged;
    }
}

fn merge(mut pieces: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    pieces.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::new();
    for (a, b) in pieces {
        match out.last_mut() {
            Some(last) if a <= last.1 => last.1 = last.1.max(b),
            _ => out.push((a, b)),
        }
    }
    out
}

fn covered(pieces: Vec<(i64, i64)>) -> u64 {
    merge(pieces).iter().map(|(a, b)| (b - a) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::tests::{tensor_add, time};

    #[test]
    fn a_sum_of_two_tensors_moves_each_byte_once() {
        let program = tensor_add();
        let t = time(&program);
        let facts = Facts::of(&program);
        let total = facts.total(&t);
        let tile = 128 * 512 * 4;
        assert_eq!((total.hbm_read, total.hbm_write), (2 * tile, tile));
        assert_eq!((total.sbuf_write, total.sbuf_read), (3 * tile, 3 * tile));
        assert_eq!(facts.minimum_bytes, (2 * tile, tile));
        assert_eq!(total.flops, 0);
    }

    #[test]
    fn pieces_that_overlap_count_once() {
        assert_eq!(covered(vec![(0, 4), (2, 6), (6, 8), (10, 12)]), 10);
    }
}
