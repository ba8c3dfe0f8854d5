//! From the first to the last use of every tensor.

use nki_isa::inst::Footprint;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Program, TensorId};

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
    /// First to last use in program order, as written.
    pub(super) used: Vec<Option<Lifetime>>,
    /// The same, but what is used inside a dynamic loop lives for the whole of the outermost loop, for any iteration may come again.
    pub(super) alive: Vec<Option<Lifetime>>,
}

struct Walk<'p> {
    program: &'p Program,
    lifetimes: Lifetimes,
    core: u32,
    position: u32,
    depth: u32,
    /// Tensors used inside the current outermost dynamic loop.
    in_loop: Vec<TensorId>,
}

/// The lifetime of every tensor that an instruction uses.
pub(super) fn lifetimes(program: &Program) -> Lifetimes {
    let none = vec![None; program.tensors.len()];
    let mut walk = Walk {
        program,
        lifetimes: Lifetimes { used: none.clone(), alive: none },
        core: 0,
        position: 0,
        depth: 0,
        in_loop: Vec::new(),
    };
    for (core, stream) in program.cores.iter().enumerate() {
        walk.core = core as u32;
        walk.position = 0;
        walk.nodes(stream);
    }
    walk.lifetimes
}

impl<'p> Walk<'p> {
    fn nodes(&mut self, nodes: &'p [Node]) {
        let mut footprint = Footprint::default();
        for node in nodes {
            let start = self.position;
            self.position += 1;
            match &node.kind {
                NodeKind::Inst(inst) => {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    for view in footprint.reads.iter().chain(&footprint.writes) {
                        self.touch(view.tensor, start);
                    }
                }
                NodeKind::For { body, .. } | NodeKind::While { body, .. } => {
                    self.depth += 1;
                    self.nodes(body);
                    self.depth -= 1;
                    if self.depth == 0 {
                        let end = self.position - 1;
                        for id in std::mem::take(&mut self.in_loop) {
                            if let Some(life) = &mut self.lifetimes.alive[id.0 as usize] {
                                life.include(start);
                                life.include(end);
                            }
                        }
                    }
                }
                NodeKind::If { then, otherwise, .. } => {
                    self.nodes(then);
                    self.nodes(otherwise);
                }
            }
        }
    }

    fn touch(&mut self, id: TensorId, position: u32) {
        let tensor = self.program.tensor(id);
        let here = Lifetime { first: position, last: position };
        // Positions of two streams cannot be compared: what another core uses is alive throughout.
        let foreign = tensor.space.is_on_chip() && tensor.core != self.core;
        let alive = if foreign { Lifetime { first: 0, last: u32::MAX } } else { here };
        for (slot, new) in [(&mut self.lifetimes.used, here), (&mut self.lifetimes.alive, alive)] {
            let life = slot[id.0 as usize].get_or_insert(new);
            life.include(new.first);
            life.include(new.last);
        }
        if self.depth > 0 {
            self.in_loop.push(id);
        }
    }
}
