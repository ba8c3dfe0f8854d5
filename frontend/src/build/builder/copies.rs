//! Iterations of an unrolled loop with equal results: those of one iteration, copied for another.
//!
//! Each iteration has separate tensors and trails, and its views may start elsewhere. Everything else has to be equal.

use std::ops::Range;
use std::sync::Arc;

use nki_isa::Node;
use nki_isa::ids::TrailId;
use nki_isa::program::NodeKind;
use nki_isa::tensor::Tensor as Memory;

use super::{Builder, NodeAt, Site};

/// The state of the builder between two iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    nodes: usize,
    tensors: usize,
    /// Trails of the evaluation.
    trails: usize,
    /// State that differs in no copied iteration.
    others: [usize; 14],
}

/// The program part of one iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    nodes: Range<usize>,
    tensors: Range<usize>,
    /// Its trails.
    pub(crate) trails: Range<usize>,
}

impl Piece {
    /// The part between two extents; `None` if it contains more than statements and tensors.
    pub(crate) fn between(begin: &Extent, end: &Extent) -> Option<Self> {
        (begin.others == end.others).then_some(Piece {
            nodes: begin.nodes..end.nodes,
            tensors: begin.tensors..end.tensors,
            trails: begin.trails..end.trails,
        })
    }

    /// The trail of a later piece that corresponds to a trail of this one or of the enclosing code.
    pub(crate) fn later_trail(&self, trail: TrailId, later: usize) -> TrailId {
        let own = trail.0 as usize >= self.trails.start;
        TrailId(trail.0 + if own { (later * self.trails.len()) as u32 } else { 0 })
    }
}

/// Another piece, relative to the one that it resembles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Other<'s> {
    /// Distance in pieces of this size.
    pub(crate) later: usize,
    /// Distance in iterations.
    pub(crate) turns: i64,
    /// For each view of the piece: the elements by which it moves per iteration.
    pub(crate) steps: &'s [i64],
}

impl Builder {
    /// The current extent; `None` if the result of an iteration may depend on more than its statements. `trails` are those of the evaluation.
    pub(crate) fn extent(&self, trails: usize) -> Option<Extent> {
        let plain = self.moved.is_empty()
            && self.written.is_empty()
            && self.named.is_empty()
            && self.ended.is_empty()
            && self.prepared.is_none();
        plain.then(|| Extent {
            nodes: self.bodies.last().map_or(0, |b| b.nodes.len()),
            tensors: self.program.tensors.len(),
            trails,
            others: [
                self.bodies.len(),
                self.program.registers as usize,
                self.program.tags.len(),
                self.program.inputs.len(),
                self.begun as usize,
                self.inserted.len(),
                self.shared.mark().0 + self.shared.mark().1,
                self.private.len() + self.next_private,
                self.hbm_places.len(),
                self.too_large.len(),
                self.reshaped.len(),
                self.output_names.len(),
                self.ordered_blocks as usize,
                self.constants.len(),
            ],
        })
    }

    /// The nodes of a piece.
    fn nodes(&self, piece: &Piece) -> &[Node] {
        self.bodies.last().and_then(|b| b.nodes.get(piece.nodes.clone())).unwrap_or_default()
    }

    /// For each view of a piece, the distance in elements to that of the next one; `None` if the two have different statements.
    pub(crate) fn steps(&self, piece: &Piece, next: &Piece) -> Option<Vec<i64>> {
        let mut steps = Vec::new();
        let offsets = |node: &Node, out: &mut Vec<i64>| match &node.kind {
            NodeKind::Inst(inst) => {
                inst.each_view(&mut |_, view| out.push(view.offset));
                Some(())
            }
            _ => None,
        };
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for (a, b) in self.nodes(piece).iter().zip(self.nodes(next)) {
            offsets(a, &mut here)?;
            offsets(b, &mut there)?;
            if here.len() != there.len() {
                return None;
            }
            steps.extend(here.drain(..).zip(there.drain(..)).map(|(a, b)| b - a));
        }
        Some(steps)
    }

    /// Whether `other` is equal to `piece`.
    pub(crate) fn is_like(&self, piece: &Piece, made: &Piece, other: Other<'_>) -> bool {
        let lengths = |p: &Piece| (p.nodes.len(), p.tensors.len(), p.trails.len());
        let mut steps = other.steps.iter();
        let same_node = |(a, b): (&Node, &Node)| {
            let NodeKind::Inst(_) = a.kind else { return false };
            let moved = moved(a, piece, other, &mut steps);
            a.tag.is_none() && moved.0 == *b
        };
        let all = &self.program.tensors;
        let same_tensor = |(a, b): (usize, usize)| {
            Arc::ptr_eq(all[a].declaration(), all[b].declaration())
                && self.is_plain(all[a].declaration())
                && piece.later_trail(all[a].trail, other.later) == all[b].trail
                && self.later_place(piece, a, other.later) == Some(self.made[b])
        };
        lengths(piece) == lengths(made)
            && self.nodes(piece).iter().zip(self.nodes(made)).all(same_node)
            && piece.tensors.clone().zip(made.tensors.clone()).all(same_tensor)
    }

    /// The allocation site of the tensor of another piece that corresponds to `tensor` of this one.
    fn later_place(&self, piece: &Piece, tensor: usize, later: usize) -> Option<NodeAt> {
        let NodeAt { body, index } = self.made[tensor];
        let here = self.next_node();
        (body == here.body).then(|| NodeAt { body, index: index + (later * piece.nodes.len()) as u32 })
    }

    /// Copies a piece; returns `false`, without any effect, if an instruction breaks a rule.
    pub(crate) fn copy(&mut self, piece: &Piece, other: Other<'_>) -> bool {
        let mark = self.mark();
        let made = self.try_copy(piece, other).is_some();
        if !made {
            self.rewind(&mark);
        }
        made
    }

    fn try_copy(&mut self, piece: &Piece, other: Other<'_>) -> Option<()> {
        for tensor in piece.tensors.clone() {
            let place = self.later_place(piece, tensor, other.later)?;
            let earlier = &self.program.tensors[tensor];
            let trail = piece.later_trail(earlier.trail, other.later);
            let copy = Memory::new(earlier.declaration().clone(), trail);
            self.program.tensors.push(copy);
            self.made.push(place);
        }
        let mut steps = other.steps.iter();
        for at in piece.nodes.clone() {
            let node = self.bodies.last()?.nodes.get(at)?;
            let (node, elsewhere) = moved(node, piece, other, &mut steps);
            let NodeKind::Inst(inst) = node.kind else { return None };
            if elsewhere {
                self.validate(&inst).ok()?;
            }
            self.append(inst, Site { loc: node.loc, trail: node.trail }).ok()?;
        }
        Some(())
    }
}

/// The statement of another piece, and whether one of its views starts elsewhere in its tensor.
fn moved(node: &Node, piece: &Piece, other: Other<'_>, steps: &mut std::slice::Iter<'_, i64>) -> (Node, bool) {
    let mut node = node.clone();
    let mut elsewhere = false;
    if let NodeKind::Inst(inst) = &mut node.kind {
        inst.each_view_mut(&mut |view| {
            if piece.tensors.contains(&(view.tensor.0 as usize)) {
                view.tensor.0 += (other.later * piece.tensors.len()) as u32;
            }
            let step = steps.next().copied().unwrap_or_default();
            view.offset += other.turns * step;
            elsewhere |= step != 0;
        });
    }
    node.trail = piece.later_trail(node.trail, other.later);
    (node, elsewhere)
}
