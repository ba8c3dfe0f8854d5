//! Changes of the program itself: other engines, a second buffer, merged transfers. Only statements outside dynamic control flow are
//! changed; the result is placed and timed like any program, and never executed.

use nki_isa::arg::Arg;
use nki_isa::ids::{Loc, RegId};
use nki_isa::inst::{self, Action, Footprint, Inst, Transfer};
use nki_isa::machine::Context;
use nki_isa::names::{DgeMode, Engine, Named};
use nki_isa::program::{Bound, Control, Node, NodeKind, Statements};
use nki_isa::view::MAX_DIMS;
use nki_isa::{Arch, Dim, Program, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::trace::{EventKind, NodeIndex, Trace};

/// Top-level statements of a core with their positions.
pub(super) fn top_level(stream: &[Node]) -> impl Iterator<Item = (u32, &Node)> {
    let statements = Statements::of(stream);
    std::iter::successors(statements.get(0).map(|s| (0, s)), move |(_, s)| Some((s.end, statements.get(s.end)?)))
        .map(|(at, s)| (at, s.node))
}

/// Tensors that an instruction touches.
fn tensors(inst: &Inst) -> Vec<TensorId> {
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    footprint.reads.iter().chain(&footprint.writes).map(|v| v.tensor).collect()
}

/// Runs the given instructions on `engine`, as far as its rules allow. Returns the program and the number of moved instructions.
pub(super) fn on_engine(program: &Program, nodes: &FxHashSet<(u32, u32)>, engine: Engine) -> Option<(Program, u32)> {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let mut out = program.clone();
    let mut moved = 0;
    for (core, stream) in program.cores.iter().enumerate() {
        for (position, (at, node)) in top_level(stream).enumerate() {
            let NodeKind::Inst(inst) = &node.kind else { continue };
            if !nodes.contains(&(core as u32, at)) {
                continue;
            }
            let (Some(entry), Some(slot)) = (inst::find(inst.schema().name), inst.schema().position("engine")) else {
                continue;
            };
            let mut args: Vec<Option<Arg>> = inst.args().into_iter().map(Some).collect();
            args[slot] = Some(Arg::Name(engine.name().into()));
            if let Ok(new) = (entry.build)(&mut args)
                && new.validate(&context).is_ok()
            {
                out.cores[core][position].kind = NodeKind::Inst(new);
                moved += 1;
            }
        }
    }
    (moved > 0).then_some((out, moved))
}

/// Changes the transfers of a line to hardware descriptors triggered by `engine`, as far as the program leaves this open and their rules allow it.
/// Returns the program, and the line of each changed transfer.
pub(super) fn on_queue(program: &Program, line: (u32, u32), engine: Engine) -> Option<(Program, Vec<Loc>)> {
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    let mut out = program.clone();
    let mut changed = Vec::new();
    for node in out.cores.iter_mut().flatten() {
        let NodeKind::Inst(inst) = &mut node.kind else { continue };
        if (node.loc.file, node.loc.line) == line
            && let Action::Transfers(_) = inst.action()
            && let Some(new) = inst.with_descriptors(DgeMode::HwDge, engine)
            && new.validate(&context).is_ok()
        {
            *inst = new;
            changed.push(node.loc);
        }
    }
    (!changed.is_empty()).then_some((out, changed))
}

/// The bounding box written by one generation of a buffer: partitions and bytes.
#[derive(Default, Clone, Copy)]
struct Written(Option<((i64, i64), (i64, i64))>);

impl Written {
    fn add(&mut self, v: &View) {
        let (p, b) = (v.partition_span(), v.byte_span());
        self.0 = Some(match self.0 {
            None => (p, b),
            Some((q, c)) => ((p.0.min(q.0), p.1.max(q.1)), (b.0.min(c.0), b.1.max(c.1))),
        });
    }
    fn covers(&self, v: &View) -> bool {
        let (p, b) = (v.partition_span(), v.byte_span());
        self.0.is_some_and(|(q, c)| q.0 <= p.0 && p.1 <= q.1 && c.0 <= b.0 && b.1 <= c.1)
    }
}

/// Adds a second buffer to each tensor of `wanted`; the buffers alternate each time the kernel refills the tensor after reading it. Tensors used
/// by dynamic control flow or another core, addressed by an index, or partly preserved by a refill are excluded.
/// Returns the program and the double-buffered tensors.
pub(super) fn double_buffered(program: &Program, wanted: &[TensorId]) -> Option<(Program, Vec<TensorId>)> {
    struct Life {
        core: u32,
        generation: u32,
        read: bool,
        written: Written,
        fit: bool,
        /// Statements of odd generations: core, position.
        odd: Vec<u32>,
    }
    let mut lives: FxHashMap<TensorId, Life> = wanted
        .iter()
        .map(|t| {
            let core = program.tensor(*t).core;
            (*t, Life { core, generation: 0, read: false, written: Written::default(), fit: true, odd: Vec::new() })
        })
        .collect();
    for (core, stream) in program.cores.iter().enumerate() {
        for (position, node) in stream.iter().enumerate() {
            let NodeKind::Inst(inst) = &node.kind else {
                // Used in a loop: the assignment of iterations to buffers is unknown here.
                for t in used_inside(node) {
                    if let Some(life) = lives.get_mut(&t) {
                        life.fit = false;
                    }
                }
                continue;
            };
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            for v in &footprint.writes {
                let Some(life) = lives.get_mut(&v.tensor) else { continue };
                let updates = footprint.reads.iter().any(|r| r.tensor == v.tensor);
                if life.read && !updates {
                    life.generation += 1;
                    life.read = false;
                    life.written = Written::default();
                }
            }
            for v in footprint.reads.iter().chain(&footprint.writes) {
                let Some(life) = lives.get_mut(&v.tensor) else { continue };
                life.fit &= life.core == core as u32 && v.indirect.is_none();
                if life.generation % 2 == 1 {
                    life.odd.push(position as u32);
                }
            }
            for v in &footprint.reads {
                let Some(life) = lives.get_mut(&v.tensor) else { continue };
                life.fit &= life.written.covers(v);
                life.read = true;
            }
            for v in &footprint.writes {
                if let Some(life) = lives.get_mut(&v.tensor) {
                    life.written.add(v);
                }
            }
        }
    }
    let mut chosen: Vec<TensorId> = lives.iter().filter(|(_, l)| l.fit && l.generation > 0).map(|(t, _)| *t).collect();
    chosen.sort_unstable();
    if chosen.is_empty() {
        return None;
    }
    let mut out = program.clone();
    let mut twins: FxHashMap<TensorId, TensorId> = FxHashMap::default();
    for t in &chosen {
        let mut twin = program.tensor(*t).clone();
        twin.address = None;
        out.tensors.push(twin);
        twins.insert(*t, TensorId(out.tensors.len() as u32 - 1));
    }
    let mut at: FxHashMap<(u32, u32), Vec<TensorId>> = FxHashMap::default();
    for t in &chosen {
        for position in &lives[t].odd {
            at.entry((lives[t].core, *position)).or_default().push(*t);
        }
    }
    for (core, stream) in out.cores.iter_mut().enumerate() {
        for (position, node) in stream.iter_mut().enumerate() {
            let Some(here) = at.get(&(core as u32, position as u32)) else { continue };
            let NodeKind::Inst(inst) = &mut node.kind else { continue };
            *inst = inst.with_views(&mut |v| {
                if here.contains(&v.tensor) {
                    v.tensor = twins[&v.tensor];
                }
            })?;
        }
    }
    Some((out, chosen))
}

/// The tensors that the instructions of a statement use.
fn used_inside(node: &Node) -> Vec<TensorId> {
    let mut out = Vec::new();
    for statement in Statements::of(std::slice::from_ref(node)).iter() {
        if let NodeKind::Inst(inst) = &statement.node.kind {
            out.extend(tensors(inst));
        }
    }
    out
}

/// A candidate for merging into a larger transfer.
struct Part<'a> {
    position: u32,
    at: u32,
    inst: &'a Inst,
    copy: Transfer<'a>,
}

/// Transfers of one line to be merged.
struct Group<'a> {
    parts: Vec<Part<'a>>,
    /// Step of the source and of the destination, known from the second part on. A destination (of a load) or source (of a store) with a
    /// separate tensor for each part has no step.
    steps: Option<(i64, i64)>,
    load: bool,
}

/// A program with merged transfers.
pub(super) struct Merged {
    pub(super) program: Program,
    pub(super) trace: Trace,
    /// Number of transfers before and after, in the changed lines.
    pub(super) before: u32,
    pub(super) after: u32,
    /// Lines that changed.
    pub(super) lines: Vec<Loc>,
}

/// Merges up to `most` transfers of one line if they move adjacent tiles and nothing between them prevents it.
pub(super) fn merged(program: &Program, trace: &Trace, most: usize) -> Option<Merged> {
    let mut out = Merged { program: program.clone(), trace: trace.clone(), before: 0, after: 0, lines: Vec::new() };
    for core in 0..program.cores.len() {
        let uses = Uses::of(program, core);
        let groups = find_groups(program, core, &uses, most);
        apply(&mut out, core, groups)?;
    }
    (out.before > out.after).then_some(out)
}

/// The uses of a tensor: positions and whether they write, in order.
struct Uses(FxHashMap<TensorId, Vec<(u32, bool)>>);

impl Uses {
    fn of(program: &Program, core: usize) -> Self {
        let mut map: FxHashMap<TensorId, Vec<(u32, bool)>> = FxHashMap::default();
        for (position, node) in program.cores[core].iter().enumerate() {
            let mut add = |t: TensorId, write: bool| map.entry(t).or_default().push((position as u32, write));
            match &node.kind {
                NodeKind::Inst(inst) => {
                    let mut footprint = Footprint::default();
                    inst.footprint(&mut footprint);
                    footprint.reads.iter().for_each(|v| add(v.tensor, false));
                    footprint.writes.iter().for_each(|v| add(v.tensor, true));
                }
                _ => used_inside(node).into_iter().for_each(|t| add(t, true)),
            }
        }
        Uses(map)
    }

    /// Whether an instruction strictly between two positions accesses (or, with `writes_only`, writes) the tensor, except those in `but`.
    fn between(&self, t: TensorId, from: u32, to: u32, writes_only: bool, but: &[Part<'_>]) -> bool {
        let Some(list) = self.0.get(&t) else { return false };
        let start = list.partition_point(|u| u.0 <= from);
        list[start..]
            .iter()
            .take_while(|u| u.0 < to)
            .any(|u| (u.1 || !writes_only) && !but.iter().any(|p| p.position == u.0))
    }
}

fn find_groups<'a>(program: &'a Program, core: usize, uses: &Uses, most: usize) -> Vec<Group<'a>> {
    let mut open: FxHashMap<(u32, u32), Group<'a>> = FxHashMap::default();
    let mut done = Vec::new();
    for (position, (at, node)) in top_level(&program.cores[core]).enumerate() {
        let NodeKind::Inst(inst) = &node.kind else { continue };
        let Action::Transfers(copy) = inst.action() else { continue };
        let key = (node.loc.file, node.loc.line);
        let part = Part { position: position as u32, at, inst, copy };
        let load = copy.src.space.is_hbm() && copy.dst.space.is_on_chip();
        let store = copy.dst.space.is_hbm() && copy.src.space.is_on_chip();
        if copy.src.indirect.is_some()
            || copy.dst.indirect.is_some()
            || !(load || store)
            || copy.src.dims.first().map(|d| d.count) != copy.dst.dims.first().map(|d| d.count)
            || copy.src.dims.len().max(copy.dst.dims.len()) >= MAX_DIMS
        {
            continue;
        }
        let joined = match open.get_mut(&key) {
            Some(group) if group.parts.len() < most => join(program, group, &part, uses),
            _ => None,
        };
        match (joined, open.get_mut(&key)) {
            (Some(steps), Some(group)) => {
                group.steps = Some(steps);
                group.parts.push(part);
            }
            _ => {
                if let Some(group) = open.insert(key, Group { parts: vec![part], steps: None, load }) {
                    done.push(group);
                }
            }
        }
    }
    done.extend(open.into_values());
    done.retain(|g| g.parts.len() > 1);
    done.sort_by_key(|g| g.parts[0].position);
    done
}

/// The steps of the group including `part`, if it can join.
fn join(program: &Program, group: &Group<'_>, part: &Part<'_>, uses: &Uses) -> Option<(i64, i64)> {
    let (first, last) = (group.parts.first()?, group.parts.last()?);
    let (a, b) = (last.copy, part.copy);
    let alike =
        |x: &View, y: &View| x.dims == y.dims && x.dtype == y.dtype && x.space == y.space && x.partition == y.partition;
    if !alike(a.src, b.src) || !alike(a.dst, b.dst) || a.engine != b.engine || a.dge_mode != b.dge_mode {
        return None;
    }
    let step = |x: &View, y: &View| {
        if x.tensor == y.tensor {
            let step = y.offset - x.offset;
            return (step != 0).then_some(step);
        }
        // Separate tensors for the parts become slices of a single one.
        let (t, u) = (program.tensor(x.tensor), program.tensor(y.tensor));
        let own = x.space.is_on_chip()
            && t.shape == u.shape
            && t.dtype == u.dtype
            && t.address.is_none()
            && u.address.is_none()
            && t.core == u.core
            && t.bytes() % x.dtype.size() == 0
            && x.offset == y.offset
            && !group.parts.iter().any(|p| p.copy.src.tensor == y.tensor || p.copy.dst.tensor == y.tensor);
        own.then(|| (t.bytes() / x.dtype.size()) as i64)
    };
    let steps = (step(a.src, b.src)?, step(a.dst, b.dst)?);
    if group.steps.is_some_and(|s| s != steps) {
        return None;
    }
    let blocked = if group.load {
        // The part moves up to the first.
        uses.between(b.dst.tensor, first.position, part.position, false, &group.parts)
            || uses.between(b.src.tensor, first.position, part.position, true, &group.parts)
    } else {
        // All previous parts move down to this one.
        group.parts.iter().any(|p| {
            uses.between(p.copy.src.tensor, p.position, part.position, true, &[])
                || uses.between(p.copy.dst.tensor, p.position, part.position, false, &group.parts)
        })
    };
    (!blocked).then_some(steps)
}

fn apply(out: &mut Merged, core: usize, groups: Vec<Group<'_>>) -> Option<()> {
    // Tensors that become slices: the new tensor and the byte offset.
    let mut slices: FxHashMap<TensorId, (TensorId, usize)> = FxHashMap::default();
    let mut dropped: FxHashSet<NodeIndex> = FxHashSet::default();
    for group in &groups {
        let (first, steps) = (&group.parts[0], group.steps?);
        let n = group.parts.len();
        let chip = |p: &Part<'_>| if group.load { p.copy.dst.tensor } else { p.copy.src.tensor };
        if chip(first) != chip(&group.parts[1]) {
            if group.parts.iter().any(|p| slices.contains_key(&chip(p))) {
                continue;
            }
            let mut tensor = out.program.tensor(chip(first)).clone();
            let bytes = tensor.bytes();
            let at = 1.min(tensor.shape.len());
            tensor.shape.insert(at, n as u32);
            out.program.tensors.push(tensor);
            let id = TensorId(out.program.tensors.len() as u32 - 1);
            for (i, p) in group.parts.iter().enumerate() {
                slices.insert(chip(p), (id, i * bytes));
            }
        }
        let keep = if group.load { first } else { group.parts.last()? };
        // One side is in HBM: the source of a load, the destination of a store.
        let merged = first.inst.with_views(&mut |view| {
            let stride = if view.space.is_hbm() == group.load { steps.0 } else { steps.1 };
            let at = 1.min(view.dims.len());
            view.dims.insert(at, Dim { stride, count: n as u32 });
        })?;
        let stream = &mut out.program.cores[core];
        out.lines.push(stream[keep.position as usize].loc);
        stream[keep.position as usize].kind = NodeKind::Inst(merged);
        for p in group.parts.iter().filter(|p| p.position != keep.position) {
            // A loop without iterations keeps the numbering of statements.
            stream[p.position as usize].kind = Control::For {
                variable: RegId(0),
                lower: Bound::Static(0),
                upper: Bound::Static(0),
                step: 1,
                body: Vec::new(),
            }
            .into();
            dropped.insert(NodeIndex(p.at));
        }
        out.before += n as u32;
        out.after += 1;
    }
    if !slices.is_empty() {
        for stream in &mut out.program.cores {
            reslice(stream, &slices)?;
        }
    }
    if let Some(core) = out.trace.cores.get_mut(core) {
        core.retain(|e| !(matches!(e.kind, EventKind::Inst { .. }) && dropped.contains(&e.node)));
    }
    Some(())
}

fn reslice(nodes: &mut [Node], slices: &FxHashMap<TensorId, (TensorId, usize)>) -> Option<()> {
    for node in nodes {
        match &mut node.kind {
            NodeKind::Inst(inst) => {
                if tensors(inst).iter().any(|t| slices.contains_key(t)) {
                    *inst = inst.with_views(&mut |v| {
                        if let Some((to, bytes)) = slices.get(&v.tensor) {
                            v.tensor = *to;
                            v.offset += (bytes / v.dtype.size()) as i64;
                        }
                    })?;
                }
            }
            NodeKind::Control(control) => {
                control.blocks_mut().into_iter().try_for_each(|block| reslice(block, slices))?;
            }
        }
    }
    Some(())
}
