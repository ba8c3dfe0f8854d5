//! Lost results: overwritten before they are read, or never read.
//!
//! An instruction is reported only if *no* byte of its result is ever read. If a few rectangles cannot describe the remainder of a partly overwritten
//! write, the write counts as read: the analysis errs on the side of false negatives. The same applies if values decide whether the result is
//! read or overwritten, because the next run may have other values.

use std::collections::BTreeMap;

use nki_isa::ids::Loc;
use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind};
use nki_isa::view::Index as ViewIndex;
use nki_isa::{Arch, Inst, Program, Space, TensorId, View};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::undecided::Undecided;
use super::walk::{Step, Visitor};
use crate::deps::{self, Index, Region, Subject};
use crate::place::Placement;
use crate::trace::{NodeIndex, Resolved};

/// An executed instruction with a lost result.
#[derive(Debug, Clone)]
pub(crate) struct Lost<'p> {
    /// The instruction.
    pub(crate) node: &'p Node,
    /// Its core, and its position in the core's stream.
    pub(crate) place: (u32, NodeIndex),
    /// The dynamic loops around it and their iterations.
    pub(crate) loops: Box<[(Loc, u32)]>,
    /// A tensor that it writes.
    pub(crate) tensor: TensorId,
    /// The instruction that overwrites the last remainder; `None` if there is none.
    pub(crate) over: Option<&'p Node>,
    /// How many of `loops`, from the outermost, are also around `over`.
    pub(crate) common: u16,
    /// Its position in execution order.
    order: u64,
}

/// A write that has not been read.
struct Slot<'p> {
    node: &'p Node,
    place: (u32, NodeIndex),
    loops: Box<[(Loc, u32)]>,
    tensor: TensorId,
    order: u64,
    /// Number of its regions in the indexes.
    regions: u32,
    read: bool,
    /// It may remain unread: an output, or an instruction with other effects.
    may_end: bool,
    over: Option<&'p Node>,
    common: u16,
}

/// Tensors shared by the two cores of a logical core: the order of their accesses is unknown.
#[derive(Default)]
struct Shared<'p> {
    read: bool,
    writer: Option<Lost<'p>>,
}

/// The analysis.
pub(crate) struct Watch<'p> {
    program: &'p Program,
    placement: &'p Placement,
    undecided: Undecided,
    /// By core: SBUF and PSUM.
    chip: Vec<[Index; 2]>,
    hbm: FxHashMap<TensorId, Index>,
    shared: BTreeMap<TensorId, Shared<'p>>,
    /// Tensors whose final contents are visible to the caller.
    visible: Vec<bool>,
    slots: Vec<Slot<'p>>,
    free: Vec<u32>,
    executed: u64,
    lost: Vec<Lost<'p>>,
    rest: Vec<(Region, u32)>,
}

impl<'p> Watch<'p> {
    pub(crate) fn new(program: &'p Program, placement: &'p Placement) -> Self {
        let arch = Arch::of(program.target);
        let chip = |_| [Index::new(u64::from(arch.sbuf_bytes)), Index::new(u64::from(arch.psum_bytes()))];
        Watch {
            program,
            placement,
            undecided: Undecided::new(program),
            chip: program.cores.iter().map(chip).collect(),
            hbm: FxHashMap::default(),
            shared: BTreeMap::new(),
            visible: program.visible(),
            slots: Vec::new(),
            free: Vec::new(),
            executed: 0,
            lost: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// The lost results, in execution order.
    pub(crate) fn finish(mut self) -> Vec<Lost<'p>> {
        for slot in self.slots.drain(..).filter(|s| s.regions > 0 && !s.read && !s.may_end) {
            let Slot { node, place, loops, tensor, order, .. } = slot;
            self.lost.push(Lost { node, place, loops, tensor, over: None, common: 0, order });
        }
        for (_, shared) in std::mem::take(&mut self.shared) {
            self.lost.extend(shared.writer.filter(|_| !shared.read));
        }
        self.lost.sort_by_key(|l| (l.order, l.tensor));
        self.lost
    }

    fn is_shared(&self, view: &View) -> bool {
        view.space == Space::SharedHbm && self.program.cores.len() > 1
    }

    fn index(&mut self, core: u32, view: &View) -> Option<&mut Index> {
        match view.space {
            Space::Sbuf => self.chip.get_mut(core as usize).map(|c| &mut c[0]),
            Space::Psum => self.chip.get_mut(core as usize).map(|c| &mut c[1]),
            Space::Hbm | Space::SharedHbm => self.hbm.get_mut(&view.tensor),
        }
    }

    fn read(&mut self, core: u32, view: &View, dynamic: Option<&Resolved>) {
        if self.is_shared(view) {
            self.shared.entry(view.tensor).or_default().read = true;
            return;
        }
        let (program, placement) = (self.program, self.placement);
        // If values decide the address, this may read any part of the tensor.
        let dynamic = dynamic.filter(|_| !self.undecided.is_address(core, view));
        let mut slots = std::mem::take(&mut self.slots);
        let mut free = std::mem::take(&mut self.free);
        if let Some(index) = self.index(core, view) {
            deps::regions(program, placement, view, dynamic, &mut |region| {
                index.retain(&region, |op, _| {
                    let slot = &mut slots[op as usize];
                    slot.read = true;
                    drop_region(slot, op, &mut free);
                    false
                });
            });
        }
        self.slots = slots;
        self.free = free;
    }

    fn write(
        &mut self,
        step: &Step<'p, '_>,
        view: &View,
        dynamic: Option<&Resolved>,
        mut own: Option<u32>,
        partly: bool,
    ) -> Option<u32> {
        if self.is_shared(view) {
            let visible = self.visible[view.tensor.0 as usize] || may_stay_unread(step.inst);
            let shared = self.shared.entry(view.tensor).or_default();
            shared.read |= visible;
            shared.writer.get_or_insert_with(|| Lost {
                node: step.node,
                place: (step.core, step.at),
                loops: step.loops.into(),
                tensor: view.tensor,
                over: None,
                common: 0,
                order: self.executed,
            });
            return own;
        }
        if view.space.is_hbm() {
            let bytes = self.program.tensor(view.tensor).bytes() as u64;
            self.hbm.entry(view.tensor).or_insert_with(|| Index::new(bytes));
        }
        // If values decide the address (a scatter or a dynamic offset), the write may overwrite everything this time and only part the next time.
        let scattered = self.undecided.is_address(step.core, view);
        let partly = partly || scattered || !is_exact(view, dynamic);
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        deps::regions(self.program, self.placement, view, dynamic, &mut |region| regions.push(region));
        if regions.is_empty() {
            return own;
        }
        for region in &regions {
            self.overwrite(step, view, region, own, partly);
        }
        if !is_exact(view, dynamic) {
            return own;
        }
        let id = *own.get_or_insert_with(|| {
            let slot = Slot {
                node: step.node,
                place: (step.core, step.at),
                loops: step.loops.into(),
                tensor: view.tensor,
                order: self.executed,
                regions: 0,
                read: false,
                may_end: may_stay_unread(step.inst),
                over: None,
                common: 0,
            };
            match self.free.pop() {
                Some(id) => {
                    self.slots[id as usize] = slot;
                    id
                }
                None => {
                    self.slots.push(slot);
                    self.slots.len() as u32 - 1
                }
            }
        });
        let slot = &mut self.slots[id as usize];
        slot.may_end |= self.visible[view.tensor.0 as usize];
        slot.regions += regions.len() as u32;
        if let Some(index) = self.index(step.core, view) {
            for region in regions {
                index.push(region, id, Subject::Tensor(view.tensor));
            }
        }
        own
    }

    /// Removes `region` from the earlier writes; with `partly`, only some of its bytes are written, and overlapping writes count as read.
    fn overwrite(&mut self, step: &Step<'p, '_>, view: &View, region: &Region, own: Option<u32>, partly: bool) {
        let mut slots = std::mem::take(&mut self.slots);
        let mut free = std::mem::take(&mut self.free);
        let mut rest = std::mem::take(&mut self.rest);
        let mut gone: SmallVec<[Lost<'p>; 1]> = SmallVec::new();
        let arch = Arch::of(self.program.target);
        let adds = adds(step.inst, arch);
        let implying = self.undecided.implying(step.core, step.at);
        if let Some(index) = self.index(step.core, view) {
            index.retain(region, |op, earlier| {
                if own == Some(op) {
                    return true;
                }
                let slot = &mut slots[op as usize];
                let kept = partly || !implying.contains(&slot.place.1.0) || adds && is_matmul(slot.node, arch);
                let left = if kept { None } else { earlier.minus(region) };
                match left {
                    None => slot.read = true,
                    Some(left) => {
                        let same = slot.loops.iter().zip(step.loops).take_while(|(of, now)| of.0 == now.0);
                        (slot.over, slot.common) = (Some(step.node), same.count() as u16);
                        slot.regions += left.len() as u32;
                        rest.extend(left.into_iter().map(|r| (r, op)));
                    }
                }
                if slot.regions == 1 && !slot.read && !has_other_effects(slot.node) {
                    gone.push(Lost {
                        node: slot.node,
                        place: slot.place,
                        loops: std::mem::take(&mut slot.loops),
                        tensor: slot.tensor,
                        over: slot.over,
                        common: slot.common,
                        order: slot.order,
                    });
                }
                drop_region(slot, op, &mut free);
                false
            });
            for (region, op) in rest.drain(..) {
                index.push(region, op, Subject::Tensor(view.tensor));
            }
        }
        for mut lost in gone {
            // If the placement has reassigned the address to another tensor, this is not an overwrite: the first tensor was never read.
            let (a, b) = (self.program.tensor(lost.tensor), self.program.tensor(view.tensor));
            if lost.tensor != view.tensor && (a.address.is_none() || b.address.is_none()) {
                (lost.over, lost.common) = (None, 0);
            }
            self.lost.push(lost);
        }
        self.slots = slots;
        self.free = free;
        self.rest = rest;
    }
}

fn drop_region(slot: &mut Slot<'_>, id: u32, free: &mut Vec<u32>) {
    slot.regions -= 1;
    if slot.regions == 0 {
        free.push(id);
    }
}

/// Whether [`deps::regions`] yields exactly the bytes of the view.
fn is_exact(view: &View, dynamic: Option<&Resolved>) -> bool {
    let Some(indirect) = view.indirect.as_deref() else { return true };
    match dynamic {
        Some(Resolved::Skipped | Resolved::Offset(_)) => true,
        Some(Resolved::Rows(_)) => match indirect.index {
            ViewIndex::Vector(_) => view.space.is_hbm(),
            ViewIndex::Columns(_) => true,
            _ => false,
        },
        None => false,
    }
}

/// Whether the instruction skips accesses, so that it may write less than its destination.
fn skips(resolved: &[Resolved]) -> bool {
    resolved.iter().any(|r| match r {
        Resolved::Skipped => true,
        Resolved::Rows(rows) => rows.iter().any(Option::is_none),
        Resolved::Offset(_) => false,
    })
}

/// A matmul that accumulates only onto results of earlier matmuls.
fn adds(inst: &Inst, arch: &Arch) -> bool {
    matches!(inst.accumulation(arch), Some((_, None)))
}

fn is_matmul(node: &Node, arch: &Arch) -> bool {
    matches!(&node.kind, NodeKind::Inst(inst) if inst.accumulation(arch).is_some())
}

/// Whether an instruction has effects other than writing its destinations.
fn may_stay_unread(inst: &Inst) -> bool {
    inst.sets_engine_state() || inst.participants().is_some()
}

fn has_other_effects(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Inst(inst) if may_stay_unread(inst))
}

impl<'p> Visitor<'p> for Watch<'p> {
    fn instruction(&mut self, step: &Step<'p, '_>, footprint: &Footprint<'p>) {
        self.executed += 1;
        let all = step.resolved.unwrap_or(&[]);
        let mut resolved = all.iter();
        let mut dynamic = |view: &View| view.indirect.as_ref().and_then(|_| resolved.next());
        for view in &footprint.reads {
            let d = dynamic(view);
            self.read(step.core, view, d);
        }
        let partly = !all.is_empty() && (skips(all) || self.undecided.is_extent(step.core, step.inst));
        let mut own = None;
        for view in &footprint.writes {
            let d = dynamic(view);
            own = self.write(step, view, d, own, partly);
        }
    }
}
