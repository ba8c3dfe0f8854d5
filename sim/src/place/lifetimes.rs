//! Lifetimes: from the first to the last use of each tensor.

use nki_isa::inst::Footprint;
use nki_isa::program::{Control, NodeKind, Statements};
use nki_isa::{Program, TensorId};
use rustc_hash::FxHashMap;

/// When a tensor holds values: positions in pre-order over its core's stream (see [`crate::trace::NodeIndex`]), both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// First use.
    pub first: u32,
    /// Last use.
    pub last: u32,
}

impl Lifetime {
    /// Whether both are alive at some position.
    pub fn overlaps(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn include(&mut self, position: u32) {
        self.first = self.first.min(position);
        self.last = self.last.max(position);
    }
}

/// Lifetimes by tensor id; `None` for tensors that no instruction uses.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Lifetimes {
    /// First to last use in program order, as written, of the tensors with explicit addresses.
    pub(super) used: FxHashMap<TensorId, Lifetime>,
    /// Lifetimes of all tensors. A use inside a dynamic loop extends to the whole outermost loop, because iterations may read values of earlier ones.
    pub(super) alive: Vec<Option<Lifetime>>,
}

/// The lifetime of every tensor that an instruction uses.
pub(super) fn lifetimes(program: &Program) -> Lifetimes {
    let mut out = Lifetimes { used: FxHashMap::default(), alive: vec![None; program.tensors.len()] };
    let mut footprint = Footprint::default();
    for (core, stream) in program.cores.iter().enumerate() {
        // The outermost dynamic loop around the current position: first and last position.
        let mut outer = Lifetime { first: 0, last: 0 };
        let mut in_loop = false;
        for (at, statement) in (0..).zip(Statements::of(stream).iter()) {
            in_loop &= at <= outer.last;
            match &statement.node.kind {
                NodeKind::Inst(inst) => {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    for view in footprint.reads.iter().chain(&footprint.writes) {
                        out.touch(program, core as u32, view.tensor, at, in_loop.then_some(outer));
                    }
                }
                NodeKind::Control(control) if !in_loop && !matches!(**control, Control::If { .. }) => {
                    (in_loop, outer) = (true, Lifetime { first: at, last: statement.end - 1 });
                }
                _ => {}
            }
        }
    }
    out
}

impl Lifetimes {
    /// Records a use of a tensor by a statement of `core` at `position`, inside the dynamic loop `outer`.
    fn touch(&mut self, program: &Program, core: u32, id: TensorId, position: u32, outer: Option<Lifetime>) {
        let tensor = program.tensor(id);
        let here = Lifetime { first: position, last: position };
        // Positions of two streams are not comparable: a tensor used by another core is alive throughout.
        let foreign = tensor.space.is_on_chip() && tensor.core != core;
        let alive = if foreign { Lifetime { first: 0, last: u32::MAX } } else { outer.unwrap_or(here) };
        let whole = self.alive[id.0 as usize].get_or_insert(alive);
        whole.include(alive.first);
        whole.include(alive.last);
        if tensor.address.is_some() {
            self.used.entry(id).or_insert(here).include(position);
        }
    }
}
