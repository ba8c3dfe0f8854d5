//! Builds the [`Program`]: storage, registers, and the structured instruction stream of each core.

use std::rc::Rc;
use std::sync::Arc;

use nki_isa::ids::{Address, TagId, TrailId};
use nki_isa::machine::Context;
use nki_isa::program::{Input, NodeKind, Output, Tag, Trail};
use nki_isa::tensor::Tensor as Memory;
use nki_isa::view::MAX_DIMS;
use nki_isa::{Arch, DType, Inst, Loc, Node, Program, RegId, Space, Target, TensorId, Violation};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::view::{MAX_ELEMENTS, Result, Storage, Tensor, shape_text};

/// Where something is written, and the loops and calls around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// The place.
    pub(crate) loc: Loc,
    /// Around it.
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
    /// Different for each stream of the program.
    id: u32,
    nodes: Vec<Node>,
}

/// A piece of storage to make.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Name for messages and reports.
    pub(crate) name: &'a str,
    /// Memory.
    pub(crate) space: Space,
    /// Extents as the kernel gave them.
    pub(crate) shape: &'a [i64],
    /// Element type.
    pub(crate) dtype: DType,
    /// `address=(partition, byte)`.
    pub(crate) address: Option<(i64, i64)>,
    /// Initial contents.
    pub(crate) data: Option<Arc<[u8]>>,
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
    /// The stream being filled, and the streams of the dynamic statements around it.
    bodies: Vec<Body>,
    /// Streams begun so far.
    begun: u32,
    /// Handles of all tensors, by id.
    storages: Vec<Rc<Storage>>,
    /// Shared tensors in the order of their making: the cores of a logical core make the same ones.
    shared: Vec<TensorId>,
    /// Next entry of `shared` on a core after the first.
    next_shared: usize,
    /// Whether a tensor may be larger than its memory.
    over_capacity: bool,
    /// Tensors that are, until they have been reported.
    pub(crate) too_large: Vec<(Violation, Site)>,
    /// Names of outputs.
    output_names: FxHashSet<String>,
    /// Statements emitted so far, on all cores.
    pub(crate) emitted: u64,
    /// Constants of `shared_constant`, by content.
    constants: FxHashMap<Arc<[u8]>, Vec<TensorId>>,
    names: FxHashMap<Box<str>, Arc<str>>,
    /// Edges of `with_schedule`: who waits, for whom, and whether an instruction does.
    schedule: Vec<(Arc<str>, Arc<str>, bool)>,
    /// The last instruction of each name, where there is a schedule.
    named: FxHashMap<Arc<str>, NodeAt>,
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
            bodies: vec![Body::default()],
            begun: 1,
            storages: Vec::new(),
            shared: Vec::new(),
            next_shared: 0,
            over_capacity: false,
            too_large: Vec::new(),
            output_names: FxHashSet::default(),
            emitted: 0,
            constants: FxHashMap::default(),
            names: FxHashMap::default(),
            schedule: Vec::new(),
            named: FxHashMap::default(),
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

    /// Validates an instruction and appends it.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn emit(&mut self, inst: Inst, site: Site) -> Result<()> {
        inst.validate(&Context { arch: self.arch, tensors: &self.program.tensors })?;
        self.push(NodeKind::Inst(inst), site);
        Ok(())
    }

    fn push(&mut self, kind: NodeKind, site: Site) {
        self.emitted += 1;
        if let Some(body) = self.bodies.last_mut() {
            body.nodes.push(Node { kind, loc: site.loc, trail: site.trail, tag: None });
        }
    }

    /// Number of tensors made so far.
    pub(crate) fn tensors(&self) -> usize {
        self.program.tensors.len()
    }

    /// How many statements the blocks that are open have.
    pub(crate) fn statements(&self) -> usize {
        self.bodies.iter().map(|b| b.nodes.len()).sum()
    }

    /// The statement appended last.
    pub(crate) fn last_node(&self) -> NodeAt {
        let body = self.bodies.last();
        NodeAt { body: body.map_or(0, |b| b.id), index: body.map_or(0, |b| b.nodes.len().saturating_sub(1) as u32) }
    }

    /// The tag of a statement, made if there is none; `None` if its stream has ended.
    fn tag(&mut self, at: NodeAt) -> Option<TagId> {
        let tags = &mut self.program.tags;
        let body = self.bodies.iter_mut().find(|b| b.id == at.body)?;
        let node = body.nodes.get_mut(at.index as usize)?;
        Some(*node.tag.get_or_insert_with(|| {
            tags.push(Tag::default());
            TagId(tags.len() as u32 - 1)
        }))
    }

    /// Names an instruction, which may have to wait for others then.
    ///
    /// # Errors
    /// As [`Self::order`].
    pub(crate) fn name_node(&mut self, at: NodeAt, name: &str) -> Result<()> {
        let name = self.intern(name);
        if let Some(tag) = self.tag(at) {
            self.program.tags[tag.0 as usize].name = name.clone();
        }
        for i in 0..self.schedule.len() {
            if self.schedule[i].0 == name
                && let Some(earlier) = self.named.get(&self.schedule[i].1).copied()
            {
                self.order(at, earlier)?;
                self.schedule[i].2 = true;
            }
        }
        if !self.schedule.is_empty() {
            self.named.insert(name, at);
        }
        Ok(())
    }

    /// The edges of `with_schedule`, for the core that begins.
    pub(crate) fn set_schedule<'e>(&mut self, edges: impl Iterator<Item = (&'e str, &'e str)>) {
        self.schedule = edges.map(|(later, earlier)| (later.into(), earlier.into(), false)).collect();
        self.named.clear();
    }

    /// Refuses a schedule with an edge that no instruction keeps.
    pub(crate) fn check_schedule(&self) -> Result<()> {
        let Some((later, earlier, _)) = self.schedule.iter().find(|edge| !edge.2) else { return Ok(()) };
        let missing = [later, earlier].into_iter().find(|name| !self.named.contains_key(*name));
        let (message, help) = match missing {
            Some(name) => (
                format!("with_schedule names `{name}`, which no instruction of the kernel has"),
                "name the instruction: nisa.op(..., name=\"...\")",
            ),
            None => (
                format!("with_schedule: `{later}` is to wait for `{earlier}`, which comes after it in the program"),
                "instructions are issued in the order of the program here: write the one to wait for first",
            ),
        };
        Err(Violation::new("depends-on", "", message).help(help))
    }

    /// Makes one instruction run after another has completed.
    ///
    /// # Errors
    /// `depends-on` if the later one does not come later, or if a loop or branch of the device lies between them.
    pub(crate) fn order(&mut self, later: NodeAt, earlier: NodeAt) -> Result<()> {
        let refuse = |message: &str, help: &str| Err(Violation::new("depends-on", "", message).help(help));
        let depth = |at: NodeAt| self.bodies.iter().position(|b| b.id == at.body);
        let (Some(to), Some(from)) = (depth(later), depth(earlier)) else {
            return refuse(
                "depends_on: one of the instructions is in a loop or branch of the device that has ended",
                "both must be in the same loop body, or the one that runs first in a loop around it",
            );
        };
        if from > to {
            return refuse(
                "depends_on: the instruction to wait for is in a loop or branch of the device, the one that waits is not",
                "both must be in the same loop body, or the one that runs first in a loop around it",
            );
        }
        if from == to && earlier.index >= later.index {
            return refuse(
                "depends_on: the instruction to wait for does not come before the one that waits",
                "write second.depends_on(first), where first is issued before second",
            );
        }
        if let (Some(later), Some(earlier)) = (self.tag(later), self.tag(earlier)) {
            let after = &mut self.program.tags[later.0 as usize].after;
            if !after.contains(&earlier) {
                after.push(earlier);
            }
        }
        Ok(())
    }

    /// Starts the body of a dynamic statement.
    pub(crate) fn open(&mut self) {
        self.bodies.push(Body { id: self.begun, nodes: Vec::new() });
        self.begun += 1;
    }

    /// Ends the body started last.
    pub(crate) fn close(&mut self) -> Vec<Node> {
        if self.bodies.len() > 1 { self.bodies.pop().unwrap_or_default().nodes } else { Vec::new() }
    }

    /// Appends a dynamic statement.
    pub(crate) fn statement(&mut self, kind: NodeKind, site: Site) {
        self.push(kind, site);
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

    /// Makes storage after checking shape, capacity and address.
    ///
    /// # Errors
    /// `bad-shape`, `partition-size`, `sbuf-capacity`, `psum-capacity`, `psum-alignment`, `bad-address`.
    pub(crate) fn alloc(&mut self, request: &Request<'_>, site: Site) -> Result<Tensor> {
        let shape = check_shape(request)?;
        let space = request.space;
        let bytes: u64 = shape.iter().skip(usize::from(space.is_on_chip())).map(|&n| u64::from(n)).product::<u64>()
            * request.dtype.size() as u64;
        if space.is_on_chip() {
            self.check_on_chip(request, &shape, bytes, site)?;
        } else if bytes > u64::from(u32::MAX) * 16 {
            return Err(Violation::new("bad-shape", "", format!("`{}` takes {bytes} bytes of HBM", request.name)));
        }
        let address = match request.address {
            None => None,
            Some(at) => Some(self.check_address(request, &shape, bytes, at)?),
        };
        if space == Space::SharedHbm && self.core > 0 {
            // Both cores of a logical core run the same code; what the first made in shared HBM the second one shares.
            if let Some(&id) = self.shared.get(self.next_shared) {
                self.next_shared += 1;
                let first = &self.storages[id.0 as usize];
                if first.shape == shape && first.dtype == request.dtype {
                    return Ok(Tensor::whole(first.clone()));
                }
            }
            return Err(Violation::new(
                "shared-divergence",
                "",
                format!(
                    "core {} makes shared_hbm tensor `{}` of shape {}, which core 0 does not make at this point",
                    self.core,
                    request.name,
                    shape_text(request.shape.iter().copied())
                ),
            )
            .help("make shared tensors unconditionally, before branching on nl.program_id"));
        }
        let core = if space == Space::SharedHbm { 0 } else { self.core };
        let tensor = Memory {
            name: self.intern(request.name),
            space,
            shape,
            dtype: request.dtype,
            address,
            core,
            data: request.data.clone(),
            loc: site.loc,
            trail: site.trail,
        };
        let id = self.add(tensor);
        if space == Space::SharedHbm {
            self.shared.push(id);
        }
        Ok(Tensor::whole(self.storages[id.0 as usize].clone()))
    }

    fn add(&mut self, tensor: Memory) -> TensorId {
        let id = TensorId(self.program.tensors.len() as u32);
        self.storages.push(Rc::new(Storage {
            id,
            name: tensor.name.clone(),
            space: tensor.space,
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            address: tensor.address,
            loc: tensor.loc,
        }));
        self.program.tensors.push(tensor);
        id
    }

    /// A constant in shared HBM; equal constants are one tensor.
    ///
    /// # Errors
    /// As [`Builder::alloc`].
    pub(crate) fn constant(&mut self, request: &Request<'_>, site: Site) -> Result<Tensor> {
        let shape = check_shape(request)?;
        let Some(data) = request.data.clone() else {
            return self.alloc(request, site);
        };
        let known = self.constants.get(&data).and_then(|ids| {
            ids.iter().copied().find(|id| {
                let s = &self.storages[id.0 as usize];
                s.shape == shape && s.dtype == request.dtype
            })
        });
        if let Some(id) = known {
            return Ok(Tensor::whole(self.storages[id.0 as usize].clone()));
        }
        let tensor = Memory {
            name: self.intern(request.name),
            space: Space::SharedHbm,
            shape,
            dtype: request.dtype,
            address: None,
            core: 0,
            data: request.data.clone(),
            loc: site.loc,
            trail: site.trail,
        };
        let id = self.add(tensor);
        self.constants.entry(data).or_default().push(id);
        Ok(Tensor::whole(self.storages[id.0 as usize].clone()))
    }

    fn check_on_chip(&mut self, request: &Request<'_>, shape: &[u32], bytes: u64, site: Site) -> Result<()> {
        let name = request.name;
        if shape[0] > self.arch.partitions {
            return Err(Violation::new(
                "partition-size",
                "",
                format!(
                    "`{name}` has {} partitions (dimension 0 of {}), {} has {}",
                    shape[0],
                    shape_text(request.shape.iter().copied()),
                    request.space,
                    self.arch.partitions
                ),
            )
            .help(format!(
                "split dimension 0 into tiles of at most {} (nl.tile_size.pmax), or move it to a free dimension",
                self.arch.partitions
            )));
        }
        let (id, limit) = match request.space {
            Space::Psum => ("psum-capacity", self.arch.psum_bytes()),
            _ => ("sbuf-capacity", self.arch.sbuf_bytes),
        };
        if bytes > u64::from(limit) {
            let too_large = Violation::new(
                id,
                "",
                format!(
                    "`{name}` takes {bytes} bytes in each partition ({} of {}), {} has {limit}",
                    shape_text(request.shape.iter().copied()),
                    request.dtype,
                    request.space
                ),
            )
            .help("tile the free dimension");
            if !self.over_capacity {
                return Err(too_large);
            }
            self.too_large.push((too_large, site));
        }
        Ok(())
    }

    fn check_address(&self, request: &Request<'_>, shape: &[u32], bytes: u64, at: (i64, i64)) -> Result<Address> {
        let name = request.name;
        let refuse = |message: String| Violation::new("bad-address", "", message);
        if request.space.is_hbm() {
            return Err(refuse(format!(
                "`{name}` is in {}: only SBUF and PSUM tensors can have an address",
                request.space
            ))
            .help("remove address="));
        }
        let (Ok(partition), Ok(byte)) = (u32::try_from(at.0), u32::try_from(at.1)) else {
            return Err(refuse(format!("`{name}` has address ({}, {}): both parts must be 0 or more", at.0, at.1)));
        };
        if u64::from(partition) + u64::from(shape[0]) > u64::from(self.arch.partitions) {
            return Err(refuse(format!(
                "`{name}` with {} partitions at partition {partition} ends past partition {}",
                shape[0],
                self.arch.partitions - 1
            )));
        }
        let limit = if request.space == Space::Psum { self.arch.psum_bytes() } else { self.arch.sbuf_bytes };
        if u64::from(byte) + bytes > u64::from(limit) {
            return Err(refuse(format!(
                "`{name}` takes bytes {byte} to {} of each partition, {} has {limit}",
                u64::from(byte) + bytes,
                request.space
            ))
            .help("the second part of an address counts bytes"));
        }
        let bank = self.arch.psum_bank_bytes;
        if request.space == Space::Psum && byte % bank != 0 {
            return Err(Violation::new(
                "psum-alignment",
                "",
                format!(
                    "`{name}` is at byte {byte} of PSUM; a PSUM tensor starts on a bank, a multiple of {bank} bytes"
                ),
            )
            .help(format!("use address=({partition}, bank * {bank}), bank 0 to {}", self.arch.psum_banks - 1)));
        }
        Ok(Address { partition, byte })
    }

    /// An HBM tensor for an array argument.
    ///
    /// # Errors
    /// `bad-shape`.
    pub(crate) fn input(&mut self, name: &str, shape: &[i64], dtype: DType, loc: Loc) -> Result<Tensor> {
        let request = Request { name, space: Space::SharedHbm, shape, dtype, address: None, data: None };
        let shape = check_shape(&request)?;
        if let Some(known) = self.program.inputs.iter().find(|i| &*i.name == name) {
            return Ok(Tensor::whole(self.storages[known.tensor.0 as usize].clone()));
        }
        let name = self.intern(name);
        let tensor = Memory {
            name: name.clone(),
            space: Space::SharedHbm,
            shape,
            dtype,
            address: None,
            core: 0,
            data: None,
            loc,
            trail: TrailId::ROOT,
        };
        let id = self.add(tensor);
        self.program.inputs.push(Input { name, tensor: id });
        Ok(Tensor::whole(self.storages[id.0 as usize].clone()))
    }

    /// Whether the tensor is an argument of the kernel.
    pub(crate) fn is_input(&self, id: TensorId) -> bool {
        self.program.inputs.iter().any(|i| i.tensor == id)
    }

    /// Adds an output; a name that is taken gets a number.
    pub(crate) fn output(&mut self, name: &str, tensor: TensorId) {
        let mut chosen = name.to_owned();
        let mut n = 1;
        while !self.output_names.insert(chosen.clone()) {
            chosen = format!("{name}_{n}");
            n += 1;
        }
        self.program.outputs.push(Output { name: chosen.into(), tensor });
    }

    /// Bytes of a tensor (in each partition on chip).
    pub(crate) fn bytes(&self, id: TensorId) -> usize {
        self.program.tensors[id.0 as usize].bytes()
    }

    /// Ends the stream of this core and begins the next one's.
    pub(crate) fn next_core(&mut self) {
        while self.bodies.len() > 1 {
            self.bodies.pop();
        }
        self.program.cores.push(self.bodies.pop().unwrap_or_default().nodes);
        self.open();
        self.core += 1;
        self.next_shared = 0;
    }

    /// The finished program.
    pub(crate) fn finish(mut self, files: Vec<Arc<str>>, trails: Vec<Trail>) -> Program {
        if self.program.cores.len() <= self.core as usize {
            self.next_core();
        }
        self.program.files = files;
        self.program.trails = trails;
        self.program
    }

    /// Names the program.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.program.name = name.into();
    }

    /// Gives an HBM tensor that is returned under another shape that shape; its elements lie flat either way.
    pub(crate) fn set_shape(&mut self, id: TensorId, shape: &[u32]) {
        self.program.tensors[id.0 as usize].shape = shape.into();
    }
}

/// The extents as counts.
fn check_shape(request: &Request<'_>) -> Result<SmallVec<[u32; 6]>> {
    let name = request.name;
    let text = || shape_text(request.shape.iter().copied());
    let on_chip = request.space.is_on_chip();
    // The manual makes [1] tensors in SBUF for registers (register_alloc); they are (1, 1) everywhere else.
    if on_chip && request.shape == [1] {
        return Ok(SmallVec::from_slice(&[1, 1]));
    }
    let least = if on_chip { 2 } else { 1 };
    if request.shape.len() < least || request.shape.len() > MAX_DIMS {
        let message =
            format!("`{name}` of shape {} in {} must have {least} to {MAX_DIMS} dimensions", text(), request.space);
        let help = match request.shape {
            // Of (1,), both are the same.
            [n] if on_chip => format!(
                "write ({n}, 1) for one element in each of {n} partitions, or (1, {n}) for {n} elements in one partition"
            ),
            _ if on_chip => "on chip dimension 0 is the partition dimension: write (partitions, elements)".into(),
            _ => String::new(),
        };
        return Err(Violation::new("bad-shape", "", message).help(help));
    }
    let total = request.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).unwrap_or(1)));
    if total.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(Violation::new(
            "bad-shape",
            "",
            format!("`{name}` of shape {} has more than 2**40 elements", text()),
        ));
    }
    request
        .shape
        .iter()
        .enumerate()
        .map(|(d, &n)| {
            u32::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
                Violation::new(
                    "bad-shape",
                    "",
                    format!("`{name}` of shape {}: dimension {d} is {n}, not positive", text()),
                )
            })
        })
        .collect()
}
