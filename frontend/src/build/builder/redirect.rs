//! Results written directly to their assigned destination, and PSUM tiles that start as zeros.
//!
//! In Beta 1 an instruction returns a new tile, and `t[...] = nisa.f(...)` writes to `t` without a copy: [`Builder::redirect`]
//! redirects the instruction that has just computed a tile. If the tile is used after all (`x = nisa.f(...)`,
//! `t[...] = x`, then `x` again), the instruction gets its tile back and a copy is inserted after it. Thus the distinction is not
//! needed at the assignment.
//!
//! `acc += nisa.nc_matmul(...)` accumulates in PSUM ([`Builder::accumulate`]). For that, a tile of `nl.zeros` needs no memset: the
//! first matmul overwrites. The zeros are needed only if unwritten elements are read, or if matmuls are mixed with other writers; the
//! memset is then inserted at the allocation of the tile.

use nki_isa::inst::{Footprint, find};
use nki_isa::program::NodeKind;
use nki_isa::schema::Role;
use nki_isa::{Arg, Inst, Node, TensorId, View, Violation};

use super::{Body, Builder, NodeAt, Site};
use crate::build::Result;
use crate::build::tensor::Tensor;

/// A tile whose instruction writes to another destination.
#[derive(Debug)]
pub(super) struct Moved {
    at: NodeAt,
    /// The part of the tile that the instruction computes.
    tile: View,
    /// Whether the instruction accumulates in the other destination.
    added: bool,
}

/// The written part of a PSUM tile.
#[derive(Debug)]
pub(super) struct Written {
    /// The position of its allocation.
    made: NodeAt,
    site: Site,
    /// The whole tile.
    whole: View,
    /// Whether it starts as zeros without an instruction for them yet.
    zero: bool,
    /// Partitions written, from the first to the one after the last, of each element of a partition.
    columns: Vec<(u32, u32)>,
    /// Whether something other than a matmul has written.
    others: bool,
}

/// The coverage of a view by writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Covered {
    Nothing,
    Part,
    All,
}

/// The positions of a view's elements within a partition.
fn positions(view: &View) -> Vec<usize> {
    let mut at = vec![view.offset];
    for dim in view.free_dims() {
        at = at.iter().flat_map(|&a| (0..i64::from(dim.count)).map(move |i| a + i * dim.stride)).collect();
    }
    at.into_iter().filter_map(|a| usize::try_from(a).ok()).collect()
}

impl Written {
    fn partitions(view: &View) -> (u32, u32) {
        let (first, end) = view.partition_span();
        (u32::try_from(first).unwrap_or(0), u32::try_from(end).unwrap_or(0))
    }

    fn covered(&self, view: &View) -> Covered {
        let (first, end) = Self::partitions(view);
        let (mut some, mut all) = (false, true);
        for at in positions(view) {
            let (from, to) = self.columns.get(at).copied().unwrap_or((0, 0));
            some |= from < end && first < to;
            all &= from <= first && end <= to;
        }
        match (some, all) {
            (false, _) => Covered::Nothing,
            (true, false) => Covered::Part,
            (true, true) => Covered::All,
        }
    }

    fn cover(&mut self, view: &View) {
        let (first, end) = Self::partitions(view);
        for at in positions(view) {
            let Some(column) = self.columns.get_mut(at) else { continue };
            let (from, to) = *column;
            // Two disjoint pieces count as their union with the gap: at worst there is an additional memset.
            *column = if from == to || first <= to && from <= end && from < to {
                if from == to { (first, end) } else { (from.min(first), to.max(end)) }
            } else if end - first > to - from {
                (first, end)
            } else {
                (from, to)
            };
        }
    }
}

impl Builder {
    /// Tracks writes to a PSUM tile that is allocated here and starts as zeros, or uninitialized.
    pub(crate) fn follow(&mut self, tile: &Tensor, zero: bool, site: Site) {
        let made = self.next_node();
        let columns = vec![(0, 0); tile.view.free_elements()];
        let whole = tile.view.clone();
        self.written.insert(tile.storage.id, Written { made, site, whole, zero, columns, others: false });
    }

    /// The position of the next statement.
    pub(crate) fn next_node(&self) -> NodeAt {
        let body = self.bodies.last();
        NodeAt { body: body.map_or(0, |b| b.id), index: body.map_or(0, |b| b.nodes.len() as u32) }
    }

    /// Moves the initialization of tiles allocated since `from` before the instruction that has just computed `tile`, which may then write to them.
    pub(crate) fn make_earlier(&mut self, tile: &Tensor, from: NodeAt) {
        let Some(body) = self.bodies.last().filter(|body| body.id == from.body) else { return };
        let (start, end) = (from.index as usize, body.nodes.len());
        if start == end || self.maker_before(tile, start).is_none() || self.moved.contains_key(&tile.storage.id) {
            return;
        }
        let is_new = |at: &NodeAt| at.body == from.body && at.index >= from.index;
        let fills = |node: &Node| {
            let NodeKind::Inst(inst) = &node.kind else { return false };
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            let is_own = |view: &&View| self.made.get(view.tensor.0 as usize).is_some_and(is_new);
            footprint.reads.is_empty() && footprint.writes.iter().all(is_own)
        };
        if !body.nodes[start..].iter().all(fills) {
            return;
        }
        if let Some(body) = self.bodies.last_mut() {
            body.nodes[start - 1..].rotate_left(1);
        }
        // The new tiles are the last ones.
        let first = self.made.iter().rposition(|at| !is_new(at)).map_or(0, |at| at + 1);
        for id in first..self.made.len() {
            self.made[id].index -= 1;
            if let Some(written) = self.written.get_mut(&TensorId(id as u32)) {
                written.made.index -= 1;
            }
        }
        // Names of and references to the instruction remain valid.
        for at in self.named.values_mut().filter(|at| at.body == from.body && at.index + 1 == from.index) {
            at.index = end as u32 - 1;
        }
        for (at, _) in self.inserted.iter_mut().filter(|(at, _)| *at == from) {
            at.index = end as u32;
        }
    }

    /// Makes the instruction that has just computed `tile` write to `to`; `false` if it cannot, or if there is no such instruction.
    pub(crate) fn redirect(&mut self, tile: &Tensor, to: &View) -> Result<bool> {
        let Some(inst) = self.maker(tile) else { return Ok(false) };
        let is_matmul = inst.accumulation(self.arch).is_some();
        let mode = is_matmul.then_some(Arg::Bool(false));
        self.move_result(tile, inst, to, mode, false)
    }

    /// Makes the matmul that has just computed `tile` accumulate in `to`, in PSUM; `false` if no matmul computed the tile.
    pub(crate) fn accumulate(&mut self, tile: &Tensor, to: &View) -> Result<bool> {
        let Some(inst) = self.maker(tile) else { return Ok(false) };
        if !matches!(inst.accumulation(self.arch), Some((_, None))) {
            return Ok(false);
        }
        let mode = match self.written.get(&to.tensor) {
            None => Arg::Bool(true),
            Some(written) => match (written.others, written.covered(to)) {
                (false, _) | (true, Covered::Nothing) => Arg::None,
                (true, Covered::All) => Arg::Bool(true),
                (true, Covered::Part) => {
                    self.fill_zeros(to.tensor)?;
                    Arg::Bool(true)
                }
            },
        };
        if self.move_result(tile, inst.clone(), to, Some(mode), true)? {
            return Ok(true);
        }
        // A 16-bit tile, in which no matmul can accumulate, can still be overwritten: the first term of a sum.
        let is_zero = self.written.get(&to.tensor).is_some_and(|w| w.zero && w.covered(to) == Covered::Nothing);
        if is_zero { self.move_result(tile, inst, to, Some(Arg::Bool(false)), false) } else { Ok(false) }
    }

    /// The last emitted instruction, if it computes these elements of a new tile that nothing else has accessed.
    fn maker(&self, tile: &Tensor) -> Option<Inst> {
        self.maker_before(tile, self.bodies.last()?.nodes.len())
    }

    /// [`Self::maker`] at the time when the stream had `end` nodes.
    fn maker_before(&self, tile: &Tensor, end: usize) -> Option<Inst> {
        let body = self.bodies.last()?;
        let made = self.made.get(tile.storage.id.0 as usize)?;
        if made.body != body.id {
            return None;
        }
        let since = body.nodes.get(made.index as usize..end)?;
        let (last, before) = since.split_last()?;
        let NodeKind::Inst(inst) = &last.kind else { return None };
        let touches = |node: &Node| match &node.kind {
            NodeKind::Inst(inst) => {
                let mut footprint = Footprint::default();
                inst.footprint(&mut footprint);
                footprint.reads.iter().chain(&footprint.writes).any(|v| v.tensor == tile.storage.id)
            }
            _ => true,
        };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        let at = inst.schema().position("dst")?;
        let is_result = inst.schema().operands[at].role == Role::Out
            && matches!(&inst.args()[at], Arg::View(v) if *v == tile.view)
            && !footprint.reads.iter().any(|v| v.tensor == tile.storage.id)
            && !before.iter().any(touches);
        is_result.then(|| inst.clone())
    }

    fn move_result(&mut self, tile: &Tensor, inst: Inst, to: &View, mode: Option<Arg>, added: bool) -> Result<bool> {
        // Elements read and written at different positions would be overwritten before they are read.
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        if footprint.reads.iter().any(|v| **v != *to && v.intersects(to)) {
            return Ok(false);
        }
        let Some(moved) = self.with_destination(&inst, to, mode) else { return Ok(false) };
        let at = self.last_node();
        self.use_views(&[], &[to], inst.accumulation(self.arch).is_some())?;
        if let Some(node) = self.bodies.last_mut().and_then(|b| b.nodes.last_mut()) {
            node.kind = NodeKind::Inst(moved);
        }
        self.moved.insert(tile.storage.id, Moved { at, tile: tile.view.clone(), added });
        Ok(true)
    }

    /// The instruction with another destination, if that is valid.
    fn with_destination(&self, inst: &Inst, to: &View, mode: Option<Arg>) -> Option<Inst> {
        let schema = inst.schema();
        let mut slots: Vec<Option<Arg>> = inst.args().into_iter().map(Some).collect();
        slots[schema.position("dst")?] = Some(Arg::View(to.clone()));
        if let Some(mode) = mode {
            slots[schema.position("accumulate")?] = Some(mode);
        }
        let moved = (find(schema.name)?.build)(&mut slots).ok()?;
        moved.validate(&self.context()).ok()?;
        Some(moved)
    }

    /// Called before an instruction is emitted: restores the redirected results that it uses, and emits the zeros that it reads.
    pub(super) fn before(&mut self, inst: &Inst) -> Result<()> {
        if self.moved.is_empty() && self.written.is_empty() {
            return Ok(());
        }
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        self.use_views(&footprint.reads, &footprint.writes, inst.accumulation(self.arch).is_some())
    }

    fn use_views(&mut self, reads: &[&View], writes: &[&View], matmul: bool) -> Result<()> {
        for view in reads.iter().chain(writes) {
            if self.moved.contains_key(&view.tensor) {
                self.give_back(view.tensor)?;
            }
        }
        for view in reads {
            if self.written.get(&view.tensor).is_some_and(|w| w.zero && w.covered(view) != Covered::All) {
                self.fill_zeros(view.tensor)?;
            }
        }
        for view in writes {
            if let Some(written) = self.written.get_mut(&view.tensor) {
                written.others |= !matmul;
                written.cover(view);
            }
        }
        Ok(())
    }

    /// Lets the instruction that computes a tile write to it again, and copies from it to the assigned destination.
    fn give_back(&mut self, id: TensorId) -> Result<()> {
        let Some(Moved { at, tile, added }) = self.moved.remove(&id) else { return Ok(()) };
        let name = self.program.tensors[id.0 as usize].name.clone();
        let refuse = |why: &str| {
            Err(Violation::new(
                "late-use",
                "",
                format!("`{name}` is used after it was assigned to another tile, {why}"),
            )
            .help("copy it first: other = nl.copy(result), or use the tile that it was assigned to"))
        };
        if added {
            return refuse("to which it was added in PSUM");
        }
        let Some(body) = self.bodies.iter_mut().find(|b| b.id == at.body) else {
            return refuse("in a loop that has ended");
        };
        let Some(node) = body.nodes.get(at.index as usize).cloned() else { return refuse("in a loop that has ended") };
        let NodeKind::Inst(inst) = &node.kind else { return Ok(()) };
        let position = inst.schema().position("dst").unwrap_or(0);
        let Some(Arg::View(to)) = inst.args().into_iter().nth(position) else { return Ok(()) };
        let mode = inst.schema().position("accumulate").map(|_| Arg::Bool(false));
        let Some(own) = self.with_destination(&inst.clone(), &tile, mode) else {
            return refuse("in which it was computed");
        };
        let copy = self.instruction("tensor_copy", &[("dst", Arg::View(to)), ("src", Arg::View(tile))])?;
        if let Some(body) = self.bodies.iter_mut().find(|b| b.id == at.body) {
            body.nodes[at.index as usize].kind = NodeKind::Inst(own);
        }
        let after = NodeAt { body: at.body, index: at.index + 1 };
        self.emitted += 1;
        self.inserted.push((after, Node { kind: NodeKind::Inst(copy), ..node }));
        Ok(())
    }

    /// Inserts the memset of a tile that starts as zeros, at its allocation.
    fn fill_zeros(&mut self, id: TensorId) -> Result<()> {
        let Some(written) = self.written.get_mut(&id).filter(|w| w.zero) else { return Ok(()) };
        written.zero = false;
        written.others = true;
        let (whole, at, site) = (written.whole.clone(), written.made, written.site);
        written.cover(&whole);
        let zero = if whole.dtype.is_float() { Arg::Float(0.0) } else { Arg::Int(0) };
        let fill = self.instruction("memset", &[("dst", Arg::View(whole)), ("value", zero)])?;
        self.emitted += 1;
        self.inserted.push((at, Node { kind: NodeKind::Inst(fill), loc: site.loc, trail: site.trail, tag: None }));
        Ok(())
    }

    /// An instruction by its name and operands, valid but not emitted.
    fn instruction(&self, name: &'static str, operands: &[(&'static str, Arg)]) -> Result<Inst> {
        let Some(entry) = find(name) else {
            return Err(Violation::new("unsupported-instruction", "", format!("{name} is not supported")));
        };
        let mut slots = vec![None; entry.schema.operands.len()];
        for (operand, arg) in operands {
            if let Some(at) = entry.schema.position(operand) {
                slots[at] = Some(arg.clone());
            }
        }
        let inst = (entry.build)(&mut slots)?;
        inst.validate(&self.context())?;
        Ok(inst)
    }

    /// Inserts the pending statements of an ended stream.
    pub(super) fn settle(&mut self, body: &mut Body) {
        let (mut mine, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.inserted).into_iter().partition(|(at, _)| at.body == body.id);
        self.inserted = rest;
        if mine.is_empty() {
            return;
        }
        mine.sort_by_key(|(at, _)| at.index);
        let mut mine = mine.into_iter().peekable();
        let old = std::mem::take(&mut body.nodes);
        for (index, node) in old.into_iter().enumerate() {
            while let Some((_, new)) = mine.next_if(|(at, _)| at.index as usize <= index) {
                body.nodes.push(new);
            }
            body.nodes.push(node);
        }
        body.nodes.extend(mine.map(|(_, node)| node));
    }
}
