//! Matmuls that continue a sum in PSUM after it was read.

use nki_diag::Diagnostic;
use nki_isa::ids::{Loc, TensorId};
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind, Statement, Statements};
use nki_isa::{Arch, Inst, Program, Space, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::words;
use crate::exec::common_loops;

/// A sum of matmuls in PSUM.
struct Sum<'p> {
    dst: &'p View,
    /// The last instruction that has read all of it since the last matmul.
    reader: Option<&'p Node>,
}

/// The sums of one core, by tensor.
struct Sums<'p> {
    arch: &'static Arch,
    all: FxHashMap<TensorId, Vec<Sum<'p>>>,
}

/// Matmuls without `accumulate` that continue a sum which another instruction has read (`accumulation-after-read`), one per line. The kernel can
/// make this explicit: `accumulate=True`. Sums are tracked within straight-line code only, not across iterations of a dynamic loop, except that
/// a tile declared outside of a loop and used only by it holds one sum overall or one per iteration ([`in_loops`]).
pub(super) fn continued(program: &Program) -> Vec<Diagnostic> {
    let mut seen: FxHashSet<Loc> = FxHashSet::default();
    let mut out = Vec::new();
    for stream in &program.cores {
        in_loops(program, stream, &mut seen, &mut out);
        let mut sums = Sums { arch: Arch::of(program.target), all: FxHashMap::default() };
        let statements = Statements::of(stream);
        for node in statements.iter().map(|s| s.node) {
            let NodeKind::Inst(inst) = &node.kind else {
                sums.all.clear();
                continue;
            };
            let found = sums.instruction(node, inst);
            if let Some((dst, reader)) = found
                && seen.insert(node.loc)
            {
                out.push(words::continued_sum(program, node, dst, reader));
            }
        }
    }
    out
}

/// Matmuls without `accumulate` in a dynamic loop, to a tile that is declared outside of the loop, but used only by it and read in it: the first
/// matmul of an iteration may start a sum or continue the last one.
fn in_loops(program: &Program, stream: &[Node], seen: &mut FxHashSet<Loc>, out: &mut Vec<Diagnostic>) {
    let statements = Statements::of(stream);
    if statements.is_straight_line() {
        return;
    }
    let arch = Arch::of(program.target);
    for (id, path) in common_loops(&statements) {
        let tensor = program.tensor(id);
        let Some(&header) = path.last().filter(|_| path.len() > tensor.loops as usize && tensor.space == Space::Psum)
        else {
            continue;
        };
        let Some(Statement { node: loop_, end, .. }) = statements.get(header) else { continue };
        let (mut first, mut is_read) = (None, false);
        for statement in statements.range(header..end) {
            let NodeKind::Inst(inst) = &statement.node.kind else { continue };
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            match inst.accumulation(arch) {
                Some((dst, accumulate)) if dst.tensor == id => {
                    if accumulate.is_some() {
                        (first, is_read) = (None, false);
                        break;
                    }
                    first.get_or_insert(statement.node);
                }
                _ => {
                    is_read |= footprint.reads.iter().any(|view| view.tensor == id);
                    // The result of another instruction is not a sum of matmuls.
                    if first.is_none() && footprint.writes.iter().any(|view| view.tensor == id) {
                        break;
                    }
                }
            }
        }
        if let Some(node) = first.filter(|_| is_read)
            && seen.insert(node.loc)
        {
            out.push(words::sum_of_iterations(program, node, id, loop_));
        }
    }
}

impl<'p> Sums<'p> {
    /// The destination of a matmul that continues a sum, and the reader of that sum.
    fn instruction(&mut self, node: &'p Node, inst: &'p Inst) -> Option<(&'p View, &'p Node)> {
        if let Some((dst, accumulate)) = inst.accumulation(self.arch) {
            return self.matmul(dst, accumulate);
        }
        if self.all.is_empty() {
            return None;
        }
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        for view in footprint.reads.iter().filter(|v| v.space == Space::Psum) {
            for sum in self.all.get_mut(&view.tensor).into_iter().flatten().filter(|sum| covers(view, sum.dst)) {
                sum.reader = Some(node);
            }
        }
        for view in footprint.writes.iter().filter(|v| v.space == Space::Psum) {
            if let Some(sums) = self.all.get_mut(&view.tensor) {
                sums.retain(|sum| !view.may_intersect(sum.dst));
            }
        }
        None
    }

    fn matmul(&mut self, dst: &'p View, accumulate: Option<bool>) -> Option<(&'p View, &'p Node)> {
        let sums = self.all.entry(dst.tensor).or_default();
        if dst.indirect.is_some() {
            sums.clear();
            return None;
        }
        if let Some(sum) = sums.iter_mut().find(|sum| sum.dst == dst) {
            let reader = sum.reader.take();
            return if accumulate.is_none() { reader.map(|reader| (dst, reader)) } else { None };
        }
        sums.retain(|sum| !dst.may_intersect(sum.dst));
        sums.push(Sum { dst, reader: None });
        None
    }
}

/// Whether the bounding box of a dense view contains that of another view.
fn covers(outer: &View, inner: &View) -> bool {
    let contains = |a: (i64, i64), b: (i64, i64)| a.0 <= b.0 && b.1 <= a.1;
    outer.indirect.is_none()
        && outer.is_contiguous()
        && contains(outer.partition_span(), inner.partition_span())
        && contains(outer.byte_span(), inner.byte_span())
}
