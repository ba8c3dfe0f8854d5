//! What was moved and multiplied: bytes by memory and floating-point operations, as Neuron Explorer counts them.

use nki_isa::inst::Footprint;
use nki_isa::machine::Context;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind};
use nki_isa::view::Dims;
use nki_isa::work::{Work, WorkKind};
use nki_isa::{Arch, DType, Inst, Program, Space, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::timeline::Timeline;
use crate::trace::index_nodes;

/// What one instruction, line or kernel did. A multiply-add is two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// Operations of the tensor engine, transposes included.
    pub flops: u64,
    /// The part of them in transposes.
    pub transpose_flops: u64,
    /// Operations in units of the bf16 rate, doubled so that half rates stay whole: fp32 counts 4, fp8 on trn2 and trn3 one half.
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
        self.add_times(other, 1);
    }

    /// Adds what `times` of `other` count.
    pub fn add_times(&mut self, other: &Counters, times: u64) {
        self.flops += times * other.flops;
        self.transpose_flops += times * other.transpose_flops;
        self.adjusted_flops_x2 += times * other.adjusted_flops_x2;
        self.hbm_read += times * other.hbm_read;
        self.hbm_write += times * other.hbm_write;
        self.sbuf_read += times * other.sbuf_read;
        self.sbuf_write += times * other.sbuf_write;
        self.psum_read += times * other.psum_read;
        self.psum_write += times * other.psum_write;
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

/// What one statement is and does.
#[derive(Debug, Clone, Default)]
pub struct NodeFacts {
    /// Its counters; zero for control flow.
    pub counters: Counters,
    /// On-chip tensors that it touches, each once.
    pub on_chip: SmallVec<[TensorId; 4]>,
}

/// The facts of all statements, by core and [`crate::trace::NodeIndex`].
pub fn node_facts(program: &Program) -> Vec<Vec<NodeFacts>> {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let of = |node: &Node| {
        let mut facts = NodeFacts::default();
        if let NodeKind::Inst(inst) = &node.kind {
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            facts.counters = counters(inst, &footprint, &context);
            for view in footprint.reads.iter().chain(&footprint.writes).filter(|v| v.space.is_on_chip()) {
                if !facts.on_chip.contains(&view.tensor) {
                    facts.on_chip.push(view.tensor);
                }
            }
        }
        facts
    };
    program.cores.iter().map(|stream| index_nodes(stream).into_iter().map(of).collect()).collect()
}

/// Sums over a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// What was executed.
    pub executed: Counters,
    /// The least HBM traffic that the result needs, read and written: every byte of an input that the kernel reads, once, and every byte
    /// of an output that it writes, once. Addresses that depend on data count as the whole tensor.
    pub minimum_bytes: (u64, u64),
}

impl Totals {
    /// The sums over one run of a program, whose statements it looks at once.
    pub fn of(program: &Program, timeline: &Timeline) -> Self {
        let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
        let mut executed = Counters::default();
        let mut needed = Needed::new(program);
        let streams: Vec<Vec<&Node>> = program.cores.iter().map(|stream| index_nodes(stream)).collect();
        let mut times: Vec<Vec<u32>> = streams.iter().map(|nodes| vec![0; nodes.len()]).collect();
        for e in &timeline.events {
            times[e.origin.core as usize][e.node.0 as usize] += 1;
        }
        for (node, times) in streams.iter().flatten().zip(times.iter().flatten()) {
            if let NodeKind::Inst(inst) = &node.kind {
                let mut footprint = Footprint::default();
                inst.footprint(&mut footprint);
                needed.add(&footprint);
                executed.add_times(&counters(inst, &footprint, &context), u64::from(*times));
            }
        }
        Totals { executed, minimum_bytes: needed.sums() }
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
    // Twice the factor that Neuron Explorer's table of columns gives for adjusted_flops.
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

/// What distinguishes views: tensor, whether written, offset, dimensions.
type Named = (TensorId, bool, i64, Dims);

/// Collects the bytes of inputs and outputs that a program touches.
struct Needed<'p> {
    program: &'p Program,
    is_input: FxHashSet<TensorId>,
    is_output: FxHashSet<TensorId>,
    /// Pieces by tensor, read and written.
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

/// Merges pieces when there are many, so that a kernel's runs need not all be kept.
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
        let Totals { executed: total, minimum_bytes } = Totals::of(&program, &t);
        let tile = 128 * 512 * 4;
        assert_eq!((total.hbm_read, total.hbm_write), (2 * tile, tile));
        assert_eq!((total.sbuf_write, total.sbuf_read), (3 * tile, 3 * tile));
        assert_eq!(minimum_bytes, (2 * tile, tile));
        assert_eq!(total.flops, 0);
    }

    #[test]
    fn pieces_that_overlap_count_once() {
        assert_eq!(covered(vec![(0, 4), (2, 6), (6, 8), (10, 12)]), 10);
    }
}
