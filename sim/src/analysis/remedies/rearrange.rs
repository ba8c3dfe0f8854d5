//! Rearranges transfers: splits them into parts, or moves loads up. Only statements outside dynamic control flow and without a name or ordering
//! constraint are changed; the result is placed and timed like any program, and never executed.

use nki_isa::ids::Loc;
use nki_isa::inst::{Action, Footprint, Inst, Transfer};
use nki_isa::machine::Context;
use nki_isa::names::{DgeMode, Engine, Named};
use nki_isa::program::{Node, NodeKind, Statements};
use nki_isa::{Arch, Program, TensorId, View};
use rustc_hash::FxHashMap;

use super::change::{Cut, Slice, Spot};
use super::rewrite::top_level;
use crate::trace::{CoreTrace, Event, NodeIndex, Trace};

/// Maximum number of uses of a tensor examined for one load: beyond it, the tensor is assumed to be in use.
const FAR: usize = 256;

/// A program with split transfers.
pub(super) struct Split {
    pub(super) program: Program,
    pub(super) trace: Trace,
    /// Lines of the split transfers.
    pub(super) lines: Vec<Loc>,
    /// Number of transfers before and after.
    pub(super) before: u32,
    pub(super) after: u32,
    /// How the first one was split.
    pub(super) first: Cut,
    /// NKI's name of the engine that triggers alternate parts, if any.
    pub(super) engine: Option<&'static str>,
}

/// How the transfers of a line are split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// Maximum number of equal parts.
    pub(super) most: u32,
    /// The engine that triggers alternate parts, with hardware descriptors; `None` if all stay on their queue.
    pub(super) engine: Option<Engine>,
}

/// Splits each transfer of some lines between HBM and the chip into equal parts, along the outermost possible axis of the tile. `None` if nothing
/// can be split.
pub(super) fn split(program: &Program, trace: &Trace, cuts: &[((u32, u32), Parts)]) -> Option<Split> {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let (mut lines, mut before, mut after, mut first) = (Vec::new(), 0, 0, None);
    let mut engine = None;
    let mut out = (program.clone(), trace.clone());
    for (core, stream) in program.cores.iter().enumerate() {
        let mut pieces: Vec<Piece> = Vec::with_capacity(stream.len());
        for (position, node) in stream.iter().enumerate() {
            let mut piece = Piece { position: position as u32, parts: Vec::new() };
            if let NodeKind::Inst(inst) = &node.kind
                && let Some((_, wanted)) = cuts.iter().find(|cut| cut.0 == (node.loc.file, node.loc.line))
                && let Some(transfer) = movable(node)
                && let Some(cut) = cut(program, &transfer, wanted.most, node.loc)
                && let Some(parts) = parts(inst, &transfer, &cut, wanted.engine, &context)
            {
                (before, after) = (before + 1, after + cut.parts);
                piece.parts = parts;
                lines.push(node.loc);
                engine = engine.or(wanted.engine.map(Engine::name));
                first.get_or_insert(cut);
            }
            pieces.push(piece);
        }
        rebuild(&mut out, core, &pieces)?;
    }
    Some(Split { program: out.0, trace: out.1, lines, before, after, first: first?, engine })
}

/// The transfer of a statement that may be moved: it has fixed addresses and no ordering constraint.
fn movable(node: &Node) -> Option<Transfer<'_>> {
    let NodeKind::Inst(inst) = &node.kind else { return None };
    if node.tag.is_some() {
        return None;
    }
    let Action::Transfers(copy) = inst.action() else { return None };
    let fixed = copy.src.indirect.is_none() && copy.dst.indirect.is_none();
    (fixed && copy.src.space.is_on_chip() != copy.dst.space.is_on_chip()).then_some(copy)
}

/// The axes of destination and source along which a transfer can be split into equal parts, and their number: the outermost axis of the tile
/// except the partitions, and the largest number up to `most`.
fn axes(copy: &Transfer<'_>, most: u32) -> Option<(usize, usize, u32)> {
    let outside = |v: &View, axis: usize| v.dims[..axis].iter().map(|d| u64::from(d.count)).product::<u64>();
    let tile_is_dst = copy.dst.space.is_on_chip();
    let pairs = (0..copy.dst.dims.len()).flat_map(|d| (0..copy.src.dims.len()).map(move |s| (d, s)));
    let fits = |&(d, s): &(usize, usize)| {
        (if tile_is_dst { d } else { s }) > 0 && outside(copy.dst, d) == outside(copy.src, s)
    };
    pairs.filter(fits).find_map(|(d, s)| {
        let (a, b) = (copy.dst.dims[d].count, copy.src.dims[s].count);
        let parts = (2..=most).rev().find(|n| a % n == 0 && b % n == 0)?;
        Some((d, s, parts))
    })
}

/// How to split a transfer into at most `most` parts; `None` if equal parts are impossible.
fn cut(program: &Program, copy: &Transfer<'_>, most: u32, loc: Loc) -> Option<Cut> {
    let (dst, src, parts) = axes(copy, most)?;
    let slice = |view: &View, axis: usize| {
        let tensor = program.tensor(view.tensor);
        let shape = view.shape();
        let (whole, step) = (shape[..] == tensor.shape[..], shape[axis] / parts);
        Slice { tensor: tensor.name.clone(), whole, step, axis }
    };
    Some(Cut { loc, parts, dst: slice(copy.dst, dst), src: slice(copy.src, src) })
}

/// The parts of a transfer, if all of them are valid.
fn parts(
    inst: &Inst,
    copy: &Transfer<'_>,
    cut: &Cut,
    other: Option<Engine>,
    context: &Context<'_>,
) -> Option<Vec<Inst>> {
    let source_in_hbm = copy.src.space.is_hbm();
    let part = |i: u32| -> Option<Inst> {
        let part = inst.with_views(&mut |view| {
            let slice = if view.space.is_hbm() == source_in_hbm { &cut.src } else { &cut.dst };
            let dim = &mut view.dims[slice.axis];
            dim.count = slice.step;
            view.offset += dim.stride * i64::from(slice.step * i);
        })?;
        let part = match other {
            Some(engine) if i % 2 == 1 => part.with_descriptors(DgeMode::HwDge, engine)?,
            _ => part,
        };
        part.validate(context).is_ok().then_some(part)
    };
    (0..cut.parts).map(part).collect()
}

/// A program with loads moved up.
pub(super) struct Hoisted {
    pub(super) program: Program,
    pub(super) trace: Trace,
    /// Loads that moved up.
    pub(super) loads: u32,
    /// The first of them, and the statement that it now precedes.
    pub(super) first: (Spot, Spot),
}

/// Moves each load of `lines` up to where its tile is free and its source is written, but not across control flow, a rendezvous, or an instruction
/// with a name or an ordering constraint. Loads at the same position are in the order of the first reads of their tiles. `None` if none moves.
pub(super) fn hoisted(program: &Program, trace: &Trace, lines: &[(u32, u32)]) -> Option<Hoisted> {
    let (mut loads, mut first) = (0, None);
    let mut out = (program.clone(), trace.clone());
    for (core, stream) in program.cores.iter().enumerate() {
        let fences = fences(stream, &trace.cores[core]);
        let uses = Uses::of(stream);
        // Sort keys: position to insert before, whether the statement stays, position of the first reader, old position.
        let mut keys: Vec<(u32, bool, u32, u32)> = Vec::with_capacity(stream.len());
        let mut fence = 0;
        for (position, node) in stream.iter().enumerate() {
            let position = position as u32;
            let stay = (position, true, 0, position);
            let wanted = lines.contains(&(node.loc.file, node.loc.line));
            let load = movable(node).filter(|copy| wanted && copy.dst.space.is_on_chip());
            keys.push(match load {
                Some(copy) if program.tensor(copy.dst.tensor).address.is_none() => {
                    let free = uses.free_from(&copy, position).max(fence);
                    (free, false, uses.first_read(copy.dst, position), position)
                }
                _ => stay,
            });
            if fences[position as usize] {
                fence = position + 1;
            }
        }
        keys.sort_unstable();
        for (place, key) in keys.iter().enumerate().filter(|(place, key)| (*place as u32) < key.3) {
            loads += 1;
            let next = keys[place + 1..].iter().find(|next| next.1 || next.3 < key.3);
            if let (None, Some(next)) = (&first, next) {
                let spot = |position: u32| spot(program, &stream[position as usize]);
                first = Some((spot(key.3), spot(next.3)));
            }
        }
        let pieces: Vec<Piece> = keys.iter().map(|key| Piece { position: key.3, parts: Vec::new() }).collect();
        rebuild(&mut out, core, &pieces)?;
    }
    Some(Hoisted { program: out.0, trace: out.1, loads, first: first? })
}

/// The source location of a statement.
fn spot(program: &Program, node: &Node) -> Spot {
    let label = match &node.kind {
        NodeKind::Inst(inst) => inst.schema().name,
        _ => "",
    };
    let iterations = program.iterations(node.trail).into_iter().map(|(v, n)| (v.to_owned(), n)).collect();
    Spot { label, loc: node.loc, iterations }
}

/// By top-level statement: whether loads must not pass it.
fn fences(stream: &[Node], trace: &CoreTrace) -> Vec<bool> {
    let mut fences: Vec<bool> = stream
        .iter()
        .map(|node| match &node.kind {
            NodeKind::Inst(inst) => node.tag.is_some() || matches!(inst.action(), Action::Orders | Action::Prepares(_)),
            _ => true,
        })
        .collect();
    let starts = starts(stream);
    for rendezvous in &trace.rendezvous {
        if let Some(event) = trace.events.get(rendezvous.event as usize) {
            fences[position(&starts, event.node)] = true;
        }
    }
    fences
}

/// The reads and writes of a tensor outside control flow, in program order.
struct Uses<'p>(FxHashMap<TensorId, Vec<(u32, bool, &'p View)>>);

impl<'p> Uses<'p> {
    fn of(stream: &'p [Node]) -> Self {
        let mut map: FxHashMap<TensorId, Vec<(u32, bool, &'p View)>> = FxHashMap::default();
        for (position, node) in stream.iter().enumerate() {
            // Control flow is a fence, so uses beyond it do not matter.
            let NodeKind::Inst(inst) = &node.kind else { continue };
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            let views = footprint.reads.iter().map(|v| (false, *v)).chain(footprint.writes.iter().map(|v| (true, *v)));
            for (write, view) in views {
                map.entry(view.tensor).or_default().push((position as u32, write, view));
            }
        }
        Uses(map)
    }

    fn of_tensor(&self, tensor: TensorId) -> &[(u32, bool, &'p View)] {
        self.0.get(&tensor).map_or(&[], Vec::as_slice)
    }

    /// The earliest position for the load: after the last write of its source, and after the last use of its tile.
    fn free_from(&self, copy: &Transfer<'_>, at: u32) -> u32 {
        let last = |view: &View, any: bool| {
            let uses = self.of_tensor(view.tensor);
            let before = &uses[..uses.partition_point(|u| u.0 < at)];
            let near = &before[before.len().saturating_sub(FAR)..];
            let hit = near.iter().rev().find(|u| (any || u.1) && u.2.may_intersect(view)).map(|u| u.0 + 1);
            hit.unwrap_or(if near.len() < before.len() { near[0].0 } else { 0 })
        };
        last(copy.src, false).max(last(copy.dst, true))
    }

    /// The first position after `at` that reads from the view, within the examined uses.
    fn first_read(&self, view: &View, at: u32) -> u32 {
        let uses = self.of_tensor(view.tensor);
        let behind = uses[uses.partition_point(|u| u.0 <= at)..].iter().take(FAR);
        behind.filter(|u| !u.1).find(|u| u.2.may_intersect(view)).map_or(u32::MAX, |u| u.0)
    }
}

/// A statement of the new stream: its old position, and its replacements, if any.
struct Piece {
    position: u32,
    parts: Vec<Inst>,
}

/// The number of each top-level statement, and of the end.
fn starts(stream: &[Node]) -> Vec<u32> {
    let end = Statements::of(stream).len();
    top_level(stream).map(|(at, _)| at).chain([end]).collect()
}

/// The top-level statement that a statement belongs to.
fn position(starts: &[u32], node: NodeIndex) -> usize {
    starts.partition_point(|start| *start <= node.0).saturating_sub(1).min(starts.len().saturating_sub(2))
}

/// Builds the stream of a core from pieces, with the trace of its run. Each statement is in one piece. `None` if the trace is not in stream
/// order.
fn rebuild(out: &mut (Program, Trace), core: usize, pieces: &[Piece]) -> Option<()> {
    let stream = std::mem::take(&mut out.0.cores[core]);
    let starts = starts(&stream);
    let Some(trace) = out.1.cores.get_mut(core) else {
        out.0.cores[core] = stream;
        return Some(());
    };
    let events = std::mem::take(&mut trace.events);
    let mut of = vec![0..0; stream.len()];
    let mut at = 0;
    while at < events.len() {
        let (from, owner) = (at, position(&starts, events[at].node));
        while at < events.len() && position(&starts, events[at].node) == owner {
            at += 1;
        }
        if !of[owner].is_empty() {
            return None;
        }
        of[owner] = from..at;
    }
    let mut nodes: Vec<Option<Node>> = stream.into_iter().map(Some).collect();
    let mut places = vec![0u32; events.len()];
    let mut number = 0;
    for piece in pieces {
        let old = piece.position as usize;
        let node = nodes[old].take()?;
        let mut ran = |shift: u32, from: u32, places: &mut [u32]| {
            for event in of[old].clone() {
                places[event] = trace.events.len() as u32;
                let Event { node, kind } = events[event];
                trace.events.push(Event { node: NodeIndex(node.0 - from + shift), kind });
            }
        };
        if piece.parts.is_empty() {
            ran(number, starts[old], &mut places);
            number += starts[old + 1] - starts[old];
            out.0.cores[core].push(node);
        } else {
            for part in &piece.parts {
                ran(number, starts[old], &mut places);
                number += 1;
                out.0.cores[core].push(Node { kind: NodeKind::Inst(part.clone()), ..node.clone() });
            }
        }
    }
    for rendezvous in &mut trace.rendezvous {
        rendezvous.event = places[rendezvous.event as usize];
    }
    Some(())
}
