//! Builds the [`Program`]: storage, registers, and the structured instruction stream of each core.

mod alloc;
mod copies;
mod order;
mod output;
mod prepared;
mod redirect;
mod shared;

use std::ops::Range;
use std::sync::Arc;

use nki_isa::arg::Arg;
use nki_isa::ids::TrailId;
use nki_isa::inst::{Entry, Footprint};
use nki_isa::machine::Context;
use nki_isa::program::{Control, NodeKind, Trail};
use nki_isa::view::Dims;
use nki_isa::{Arch, DType, Declaration, Inst, Loc, Node, Program, RegId, Target, TensorId, View, Violation};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

pub(crate) use self::alloc::Request;
pub(crate) use self::copies::{Extent, Other, Piece};
pub(crate) use self::order::Dependency;
use self::shared::Shared;
pub(crate) use self::shared::Sharing;
use crate::build::Result;

/// A location in the source, with the enclosing loops and calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// The place.
    pub(crate) loc: Loc,
    /// The enclosing loops and calls.
    pub(crate) trail: TrailId,
}

/// A statement of the program under construction: the stream it is in and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeAt {
    body: u32,
    index: u32,
}

/// A stream of statements under construction.
#[derive(Debug, Default)]
struct Body {
    /// Unique among the streams of the program.
    id: u32,
    nodes: Vec<Node>,
    /// Number of tensors when it was opened.
    tensors: usize,
    /// Whether it is the body of a loop.
    repeats: bool,
}

/// The body of a loop function that has been evaluated: its tensors end with it.
#[derive(Debug)]
struct Ended {
    /// Its tensors, except data.
    tensors: Range<usize>,
    /// The function.
    function: &'static str,
    /// Line of the call.
    line: u32,
}

/// A state of a block to which the builder can be rewound.
#[derive(Debug)]
pub(crate) struct Mark {
    nodes: usize,
    tensors: usize,
    registers: u32,
    emitted: u64,
    inserted: usize,
    begun: u32,
    ended: usize,
    shared: (usize, usize),
    private: (usize, usize),
    hbm_places: usize,
}

/// The program under construction.
#[derive(Debug)]
pub(crate) struct Builder {
    program: Program,
    arch: &'static Arch,
    /// The core being specialised.
    core: u32,
    /// Cores of the logical core.
    cores: u32,
    /// Number of programs of a launch grid that were specialised for the core before this one.
    program_index: u32,
    /// The stream being filled, and the streams of the dynamic statements around it.
    bodies: Vec<Body>,
    /// Number of streams opened so far.
    begun: u32,
    /// Bodies of loop functions on this core, in the order in which they ended.
    ended: Vec<Ended>,
    /// Tensors in shared HBM.
    shared: Shared,
    /// Tensors of core 0 in private HBM, in order of allocation.
    private: Vec<TensorId>,
    /// Next entry of `private` on a core after the first.
    next_private: usize,
    /// Whether a tensor may be larger than its memory.
    over_capacity: bool,
    /// Such tensors, until they have been reported.
    pub(crate) too_large: Vec<(Violation, Site)>,
    /// Shapes and dtypes of outputs that are returned as a view of all their bytes. Set at the end: other cores allocate these tensors like
    /// core 0.
    reshaped: Vec<(TensorId, SmallVec<[u32; 4]>, DType)>,
    /// Names of outputs.
    output_names: FxHashSet<String>,
    /// Blocks of `nl.no_reorder()` so far, on all cores.
    ordered_blocks: u32,
    /// Statements emitted so far, on all cores.
    pub(crate) emitted: u64,
    /// Number of statements emitted when the core began.
    before_core: u64,
    /// Constants of `shared_constant`, by content.
    constants: FxHashMap<Arc<[u8]>, Vec<TensorId>>,
    /// The preparation without a start yet: there is only one slot for the metadata.
    prepared: Option<prepared::Prepared>,
    /// Locations in HBM with explicit addresses.
    hbm_places: Vec<alloc::HbmPlace>,
    names: FxHashMap<Box<str>, Arc<str>>,
    /// The last declaration of a tensor at each location: the iterations of a loop mostly repeat it.
    declared: FxHashMap<Loc, Option<Arc<Declaration>>>,
    /// The dimensions of operands, interned.
    dims: FxHashSet<Dims>,
    /// Edges of `with_schedule`: the later name, the earlier name, and whether an instruction enforces the edge.
    schedule: Vec<(Arc<str>, Arc<str>, bool)>,
    /// The last instruction of each name, if there is a schedule.
    named: FxHashMap<Arc<str>, NodeAt>,
    /// The statement before which each tensor was allocated.
    made: Vec<NodeAt>,
    /// Results that their instructions write to another destination.
    moved: FxHashMap<TensorId, redirect::Moved>,
    /// PSUM tiles whose writes are tracked.
    written: FxHashMap<TensorId, redirect::Written>,
    /// Statements to be inserted when their stream ends, each with its successor.
    inserted: Vec<(NodeAt, Node)>,
}

impl Builder {
    /// An empty program.
    pub(crate) fn new(name: &str, target: Target, cores: u32) -> Builder {
        Builder {
            program: Program {
                name: name.into(),
                target,
                files: Vec::new(),
                tensors: Vec::new(),
                registers: 0,
                inputs: Vec::new(),
                outputs: Vec::new(),
                trails: Vec::new(),
                tags: Vec::new(),
                cores: Vec::new(),
            },
            arch: Arch::of(target),
            core: 0,
            cores,
            program_index: 0,
            bodies: vec![Body::default()],
            begun: 1,
            ended: Vec::new(),
            shared: Shared::default(),
            private: Vec::new(),
            next_private: 0,
            over_capacity: false,
            too_large: Vec::new(),
            reshaped: Vec::new(),
            output_names: FxHashSet::default(),
            ordered_blocks: 0,
            emitted: 0,
            before_core: 0,
            constants: FxHashMap::default(),
            hbm_places: Vec::new(),
            prepared: None,
            names: FxHashMap::default(),
            declared: FxHashMap::default(),
            dims: FxHashSet::default(),
            schedule: Vec::new(),
            named: FxHashMap::default(),
            made: Vec::new(),
            moved: FxHashMap::default(),
            written: FxHashMap::default(),
            inserted: Vec::new(),
        }
    }

    /// Whether tensors may be larger than their memory.
    pub(crate) fn allow_too_large(mut self, allowed: bool) -> Self {
        self.over_capacity = allowed;
        self
    }

    /// Limits of the target.
    pub(crate) fn arch(&self) -> &'static Arch {
        self.arch
    }

    /// The core being specialised.
    pub(crate) fn core(&self) -> u32 {
        self.core
    }

    /// Cores of the logical core.
    pub(crate) fn cores(&self) -> u32 {
        self.cores
    }

    /// The instruction with these operands, which are moved out. Its views share their dimensions with those of earlier instructions.
    ///
    /// # Errors
    /// For the first operand that is missing or of a wrong kind or memory.
    pub(crate) fn make(&mut self, entry: &Entry, operands: &mut [Option<Arg>]) -> Result<Inst> {
        for operand in operands.iter_mut().flatten() {
            if let Arg::View(view) = operand {
                match self.dims.get(&view.dims) {
                    Some(known) => view.dims = known.clone(),
                    None => drop(self.dims.insert(view.dims.clone())),
                }
            }
        }
        (entry.build)(operands)
    }

    /// Validates an instruction and appends it.
    ///
    /// # Errors
    /// For the first rule that it breaks.
    pub(crate) fn emit(&mut self, inst: Inst, site: Site) -> Result<()> {
        self.validate(&inst)?;
        self.append(inst, site)
    }

    /// Checks the rules of an instruction.
    ///
    /// # Errors
    /// For the first rule that it breaks.
    pub(crate) fn validate(&self, inst: &Inst) -> Result<()> {
        inst.validate(&self.context())
    }

    /// Appends a valid instruction.
    ///
    /// # Errors
    /// If it uses an ended tensor or an on-chip one of another core, or prepares a collective before the previous one has been started.
    pub(crate) fn append(&mut self, inst: Inst, site: Site) -> Result<()> {
        if !self.ended.is_empty() || self.core > 0 {
            let mut footprint = Footprint::default();
            inst.footprint(&mut footprint);
            for view in footprint.reads.iter().chain(&footprint.writes) {
                self.check_alive(view.tensor)?;
                self.check_own(view)?;
            }
        }
        self.before(&inst)?;
        let prepared = self.prepares(&inst, site)?;
        self.push(NodeKind::Inst(inst), site);
        if let Some(mut prepared) = prepared {
            prepared.at = self.last_node();
            self.prepared = Some(prepared);
        }
        Ok(())
    }

    fn context(&self) -> Context<'_> {
        Context { arch: self.arch, tensors: &self.program.tensors }
    }

    fn push(&mut self, kind: NodeKind, site: Site) {
        self.emitted += 1;
        if let Some(body) = self.bodies.last_mut() {
            body.nodes.push(Node { kind, loc: site.loc, trail: site.trail, tag: None });
        }
    }

    /// Number of tensors allocated so far.
    pub(crate) fn tensors(&self) -> usize {
        self.program.tensors.len()
    }

    /// Number of statements in the open blocks.
    pub(crate) fn statements(&self) -> usize {
        self.bodies.iter().map(|b| b.nodes.len()).sum()
    }

    /// Runs a closure and rewinds the builder afterwards.
    pub(crate) fn rehearse<T>(&mut self, run: impl FnOnce(&mut Builder) -> T) -> T {
        let mark = self.mark();
        let result = run(self);
        self.rewind(&mark);
        result
    }

    /// The current state of the innermost block.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            nodes: self.bodies.last().map_or(0, |b| b.nodes.len()),
            tensors: self.program.tensors.len(),
            registers: self.program.registers,
            emitted: self.emitted,
            inserted: self.inserted.len(),
            begun: self.begun,
            ended: self.ended.len(),
            shared: self.shared.mark(),
            private: (self.private.len(), self.next_private),
            hbm_places: self.hbm_places.len(),
        }
    }

    /// Removes everything emitted and allocated in the innermost block since a mark of it.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        if let Some(body) = self.bodies.last_mut() {
            body.nodes.truncate(mark.nodes);
        }
        let remains = |id: &TensorId| (id.0 as usize) < mark.tensors;
        self.program.tensors.truncate(mark.tensors);
        self.made.truncate(mark.tensors);
        self.moved.retain(|id, _| remains(id));
        self.written.retain(|id, _| remains(id));
        self.constants.values_mut().for_each(|all| all.retain(remains));
        self.program.registers = mark.registers;
        self.emitted = mark.emitted;
        self.inserted.truncate(mark.inserted);
        self.ended.truncate(mark.ended);
        self.shared.rewind(mark.shared);
        self.private.truncate(mark.private.0);
        self.next_private = mark.private.1;
        self.hbm_places.truncate(mark.hbm_places);
        self.prepared.take_if(|p| p.at.body >= mark.begun);
    }

    /// Position of the next statement in the core's stream, in which a dynamic statement precedes its contents.
    pub(crate) fn position(&self) -> u64 {
        self.emitted - self.before_core + self.bodies.len() as u64 - 1
    }

    /// The statements appended last to the innermost block, at most `most`.
    pub(crate) fn last_nodes(&self, most: usize) -> &[Node] {
        let nodes = self.bodies.last().map_or(&[][..], |b| &b.nodes);
        &nodes[nodes.len().saturating_sub(most)..]
    }

    /// The statement appended last.
    pub(crate) fn last_node(&self) -> NodeAt {
        let body = self.bodies.last();
        NodeAt { body: body.map_or(0, |b| b.id), index: body.map_or(0, |b| b.nodes.len().saturating_sub(1) as u32) }
    }

    /// Starts the body of a dynamic statement, which a loop `repeats`.
    pub(crate) fn open(&mut self, repeats: bool) {
        self.bodies.push(Body { id: self.begun, nodes: Vec::new(), tensors: self.program.tensors.len(), repeats });
        self.begun += 1;
    }

    /// Dynamic loops whose bodies are open.
    pub(super) fn loops(&self) -> u32 {
        self.bodies.iter().filter(|body| body.repeats).count() as u32
    }

    /// Ends the body started last.
    pub(crate) fn close(&mut self) -> Vec<Node> {
        if self.bodies.len() < 2 {
            return Vec::new();
        }
        let mut body = self.bodies.pop().unwrap_or_default();
        self.settle(&mut body);
        body.nodes
    }

    /// Ends the body of `nl.fori_loop` or `nl.while_loop`, called at `site`, and the lifetime of its tensors.
    pub(crate) fn close_function(&mut self, function: &'static str, site: Site) -> Vec<Node> {
        let first = self.bodies.last().map_or(0, |b| b.tensors);
        let tensors = first..self.program.tensors.len();
        if !tensors.is_empty() {
            self.ended.push(Ended { tensors, function, line: site.loc.line });
        }
        self.close()
    }

    /// Rejects a tensor of the body of an ended loop function.
    ///
    /// # Errors
    /// `dynamic-loop`.
    pub(crate) fn check_alive(&self, id: TensorId) -> Result<()> {
        let at = id.0 as usize;
        let Some(ended) = self.ended.iter().find(|e| e.tensors.contains(&at)) else { return Ok(()) };
        let tensor = self.program.tensor(id);
        // Equal constants are one tensor, wherever they were first created.
        if tensor.data.is_some() {
            return Ok(());
        }
        let message = format!(
            "`{}` was allocated on line {} in the body of {} (line {}), which has ended",
            tensor.name, tensor.loc.line, ended.function, ended.line
        );
        Err(Violation::new("dynamic-loop", "", message)
            .help("allocate the tensor before the loop, and write to it in the body"))
    }

    /// Rejects an on-chip tensor of another core, which Python may keep from one specialisation of the kernel to the next.
    fn check_own(&self, view: &View) -> Result<()> {
        let tensor = self.program.tensor(view.tensor);
        if !view.space.is_on_chip() || tensor.core == self.core {
            return Ok(());
        }
        let message = format!(
            "`{}` (line {}) is in the {} of core {}, but core {} uses it here",
            tensor.name, tensor.loc.line, view.space, tensor.core, self.core
        );
        Err(Violation::new("operand-memory", "", message).help(
            "the kernel is specialised once per core: allocate the tensor in each specialisation instead of keeping it in a global or a cache; \
             nisa.sendrecv moves data between cores",
        ))
    }

    /// Appends a dynamic statement.
    pub(crate) fn statement(&mut self, control: Control, site: Site) {
        self.push(control.into(), site);
    }

    /// A new virtual register.
    pub(crate) fn register(&mut self) -> RegId {
        let id = RegId(self.program.registers);
        self.program.registers += 1;
        id
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let made: Arc<str> = name.into();
        self.names.insert(name.into(), made.clone());
        made
    }

    /// Bytes of a tensor (in each partition on chip).
    fn bytes(&self, id: TensorId) -> usize {
        self.program.tensors[id.0 as usize].bytes()
    }

    /// Ends the stream of this core and starts the next core's.
    pub(crate) fn next_core(&mut self) {
        while self.bodies.len() > 1 {
            self.bodies.pop();
        }
        let mut body = self.bodies.pop().unwrap_or_default();
        self.settle(&mut body);
        self.program.cores.push(body.nodes);
        self.moved.clear();
        self.written.clear();
        self.open(false);
        self.ended.clear();
        self.core += 1;
        self.before_core = self.emitted;
        self.shared.restart();
        self.next_private = 0;
    }

    /// Starts a program of a launch grid: it shares the HBM tensors of the first one.
    pub(crate) fn begin_program(&mut self, index: u32) {
        self.program_index = index;
        self.shared.restart();
        self.next_private = 0;
    }

    /// The finished program.
    pub(crate) fn finish(mut self, files: Vec<Arc<str>>, trails: Vec<Trail>) -> Program {
        if self.program.cores.len() <= self.core as usize {
            self.next_core();
        }
        for (id, shape, dtype) in self.reshaped {
            let tensor = &mut self.program.tensors[id.0 as usize];
            (tensor.shape, tensor.dtype) = (shape, dtype);
        }
        self.program.files = files;
        self.program.trails = trails;
        self.program
    }

    /// Names the program.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.program.name = name.into();
    }
}

#[cfg(test)]
mod tests;
