//! Converts the instructions of a core to a recorded stream that the machine can run.
//!
//! - The profiler records each pass of the tensor engine and each weight load separately. The laws are for whole matmuls: the loads and
//!   passes of a matmul form one operation.
//! - A wait refers to the operation that brought the semaphore to its value.
//! - Work without a law takes its recorded time, minus its waits. This includes `EVENT_SEMAPHORE` and `NOP`, which only wait: a simulated kernel
//!   has no such instructions.

use std::collections::BTreeMap;

use nki_isa::inst::law_of_opcode;
use nki_isa::names::{AluOp, DgeMode, Engine, Named, Space};
use nki_isa::view::Dim;
use nki_isa::work::{Dma, DmaSide, Law, Matmul, Operand, Stream, Work, WorkKind};
use nki_isa::{DType, TensorId, View};
use nki_sim_core::timing::replay::{Recorded, RecordedKind};

use super::operands::{Access, Wait};
use super::waits::Semaphores;
use super::{Core, Instruction, Ns, Operands, Transfer};

/// The role of an instruction within its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The weight load of a pass, by number.
    Weights(usize),
    /// A pass of the tensor engine, by number.
    Pass(usize),
    /// The trigger of a transfer.
    Trigger,
    /// The whole operation.
    Whole,
}

/// An instruction of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its position among the core's instructions.
    pub(crate) instruction: usize,
    pub(crate) role: Role,
}

/// An operation with its recorded data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappedOp {
    pub(crate) parts: Vec<Part>,
    /// Time when its results were available.
    pub(crate) complete: Ns,
    /// A description of its operands: `fp32 psum 512`.
    pub(crate) shape: String,
    /// Its transfer, by position in [`Mapped::transfers`].
    pub(crate) transfer: Option<usize>,
}

impl MappedOp {
    /// The position of its first instruction among the core's.
    pub(crate) fn first_instruction(&self) -> usize {
        self.parts[0].instruction
    }
}

/// A core's stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mapped {
    pub(crate) stream: Vec<Recorded>,
    /// The recorded data, by operation.
    pub(crate) ops: Vec<MappedOp>,
    pub(crate) transfers: Vec<Transfer>,
    /// Instructions without a law, by engine and opcode: they take the recorded time.
    pub(crate) unmapped: BTreeMap<(Engine, String), usize>,
    /// Waits that nothing in the profile satisfies.
    pub(crate) unmet: usize,
    pub(crate) notes: Vec<String>,
}

impl Mapped {
    /// The stream of `core`.
    pub(crate) fn of(core: &Core) -> Mapped {
        let mut out = Mapped::default();
        let mut waits: Vec<Vec<Wait>> = Vec::new();
        let list = &core.instructions;
        let mut at = 0;
        while let Some(first) = list.get(at) {
            if !first.of_kernel {
                at += 1;
                continue;
            }
            let op = Op::of(list, at);
            let own = &list[at..at + op.parts.len()];
            waits.push(own.iter().flat_map(|i| &i.operands.waits).copied().collect());
            if let RecordedKind::Known { .. } = op.kind {
                *out.unmapped.entry((first.engine, first.opcode.clone())).or_insert(0) += own.len();
            }
            let complete = own.iter().map(|i| i.end).max().unwrap_or(first.end);
            let parts: Vec<Part> = op.parts.into_iter().map(|(i, role)| Part { instruction: at + i, role }).collect();
            at += parts.len();
            out.stream.push(Recorded { queue: first.engine, kind: op.kind, waits: Vec::new() });
            out.ops.push(MappedOp { parts, complete, shape: op.shape, transfer: None });
        }
        out.find_transfers(core);
        out.find_waits(core, &waits);
        out
    }

    /// Pairs the triggers of each engine with its transfers, and determines their completion.
    fn find_transfers(&mut self, core: &Core) {
        for engine in Engine::QUEUES {
            let triggers: Vec<usize> =
                (0..self.ops.len()).filter(|o| self.stream[*o].queue == engine && self.is_dma(*o)).collect();
            let transfers = core.transfers(engine);
            if triggers.len() != transfers.len() {
                if !triggers.is_empty() {
                    self.notes.push(format!(
                        "{} of the {} engine trigger transfers, but the packets of its queues are those of {}: packets are not compared",
                        crate::count(triggers.len(), "instruction"),
                        engine.name(),
                        transfers.len()
                    ));
                }
                continue;
            }
            for (op, transfer) in triggers.into_iter().zip(transfers) {
                self.ops[op].complete = transfer.span().map_or(self.ops[op].complete, |s| s.1);
                self.ops[op].transfer = Some(self.transfers.len());
                self.transfers.push(transfer);
            }
        }
        // A semaphore becomes visible after the packet that writes it.
        let mut values: BTreeMap<u32, Vec<(Ns, i64)>> = BTreeMap::new();
        for &(at, id, value) in &core.semaphores {
            values.entry(id).or_default().push((at, value));
        }
        let mut target: BTreeMap<u32, i64> = BTreeMap::new();
        let mut by_time: Vec<usize> = (0..self.ops.len()).collect();
        by_time.sort_by_key(|o| (self.ops[*o].complete, *o));
        for op in by_time {
            let Some((semaphore, by)) = trigger_semaphore(self.operands(core, op)) else { continue };
            let value = target.entry(semaphore).or_insert(0);
            *value += by;
            let from = self.issue(core, op);
            let own = values.get(&semaphore).map_or(&[][..], Vec::as_slice);
            let later = &own[own.partition_point(|v| v.0 < from)..];
            if let Some((visible, _)) = later.iter().find(|(_, v)| *v >= *value).copied() {
                self.ops[op].complete = self.ops[op].complete.max(visible);
            }
        }
    }

    fn operands<'c>(&self, core: &'c Core, op: usize) -> &'c Operands {
        &core.instructions[self.ops[op].first_instruction()].operands
    }

    /// The first instruction of an engine, unless it waits for another one.
    pub(crate) fn first(&self, engine: Engine) -> Option<usize> {
        let first = (0..self.ops.len()).find(|o| self.stream[*o].queue == engine)?;
        // GpSimd's records of triggers start late.
        let late = engine == Engine::GpSimd && self.is_dma(first);
        (self.stream[first].waits.is_empty() && !late).then_some(first)
    }

    /// Start of the program: the earliest start of an engine's first instruction. `core` has the recorded times.
    pub(crate) fn start(&self, core: &Core) -> Option<Ns> {
        let first = Engine::QUEUES.into_iter().filter_map(|engine| self.first(engine));
        first.map(|op| self.issue(core, op)).min()
    }

    /// The start of an operation's first instruction.
    pub(crate) fn issue(&self, core: &Core, op: usize) -> Ns {
        core.instructions[self.ops[op].first_instruction()].start
    }

    pub(crate) fn is_dma(&self, op: usize) -> bool {
        matches!(self.ops[op].parts[..], [Part { role: Role::Trigger, .. }])
    }

    /// Its in-order completion queue.
    pub(super) fn queue(&self, op: usize) -> (Engine, bool) {
        (self.stream[op].queue, self.is_dma(op))
    }

    /// Resolves semaphore conditions to operations.
    fn find_waits(&mut self, core: &Core, waits: &[Vec<Wait>]) {
        let semaphores = Semaphores::of(self, core);
        let mut unmet = 0;
        for (op, conditions) in waits.iter().enumerate() {
            let start = self.issue(core, op);
            for condition in conditions {
                match semaphores.setters(self, condition, op, start) {
                    Some(setters) => self.stream[op].waits.extend(setters),
                    None => unmet += 1,
                }
            }
            let own = &mut self.stream[op];
            own.waits.sort_unstable();
            own.waits.dedup();
            if let RecordedKind::Known { busy, complete } = &mut own.kind {
                // The record may include the wait.
                let i = &core.instructions[self.ops[op].first_instruction()];
                let met = own.waits.iter().map(|w| self.ops[*w as usize].complete).max().unwrap_or(i.start);
                let start = met.clamp(i.start, i.end);
                *busy = (i.end - start).unsigned_abs() * 1000;
                // A transfer completes later.
                *complete = (self.ops[op].complete.max(i.end) - start).unsigned_abs() * 1000;
            }
        }
        self.unmet = unmet;
    }
}

/// The semaphore that a transfer changes on completion, and the change.
pub(super) fn trigger_semaphore(o: &Operands) -> Option<(u32, i64)> {
    let semaphore = u32::try_from(o.number("semaphore")?).ok()?;
    Some((semaphore, i64::try_from(o.number("sem_increment").unwrap_or(1)).ok()?))
}

/// An operation that starts at some instruction.
struct Op {
    kind: RecordedKind,
    /// Instructions relative to the first one.
    parts: Vec<(usize, Role)>,
    shape: String,
}

impl Op {
    fn of(list: &[Instruction], at: usize) -> Op {
        let first = &list[at];
        if let Some(op) = matmul(&list[at..]) {
            return op;
        }
        let (work, role) = match first.opcode.as_str() {
            "ACT_TABLE_LOAD" => {
                let kind = RecordedKind::TableLoad;
                return Op { kind, parts: vec![(0, Role::Whole)], shape: String::new() };
            }
            opcode if opcode.starts_with("DMA_") => (transfer(first), Role::Trigger),
            _ => (stream(first), Role::Whole),
        };
        let parts = vec![(0, role)];
        match work {
            Some((work, partition, shape)) => {
                Op { kind: RecordedKind::Work { work: Box::new(work), partition, loads_weights: false }, parts, shape }
            }
            None => Op {
                kind: RecordedKind::Known { busy: 0, complete: 0 },
                parts: vec![(0, Role::Whole)],
                shape: String::new(),
            },
        }
    }
}

/// Operands never exceed these; larger records are treated as unknown.
const MOST_PARTITIONS: u32 = 128;
const MOST_ELEMENTS: u32 = 1 << 20;
const MOST_BYTES: u64 = 1 << 36;

/// The profiler's names of the tensor engine's opcodes.
const LOAD: &str = "LDWEIGHTS";
const PASS: &str = "MATMUL";

/// The matmul at the start of `list`: a load and a pass, or the two loads and passes of fp32.
fn matmul(list: &[Instruction]) -> Option<Op> {
    let is = |i: usize, opcode: &str| {
        list.get(i).is_some_and(|n| n.of_kernel && n.engine == Engine::Tensor && n.opcode == opcode)
    };
    let loads = is(0, LOAD);
    let pass = usize::from(loads);
    if !is(pass, PASS) {
        return None;
    }
    let (src, dst) = (list[pass].operands.access("src")?, list[pass].operands.access("dst")?);
    let weights = if loads { list[0].operands.access("src") } else { None };
    let (rows, columns) = list[pass].operands.tile()?;
    let dtype = src.dtype?;
    let weights_dtype = weights.as_ref().and_then(|w| w.dtype).unwrap_or(dtype);
    let fp32 = dtype == DType::F32 || weights_dtype == DType::F32;
    let transpose = list[pass].transpose || list[0].operands.field("transpose_mode") == Some("ENABLED");
    let mut parts = if loads { vec![(0, Role::Weights(0)), (1, Role::Pass(0))] } else { vec![(0, Role::Pass(0))] };
    if fp32 && !transpose {
        // The second pass has the same columns and destination, with the other half of the weights' bits.
        let (other, again) = if loads { (2, 3) } else { (0, 1) };
        let second = !loads || is(other, LOAD) && list[other].operands.access("src") == weights;
        let same = second
            && is(again, PASS)
            && list[again].operands.waits.is_empty()
            && (!loads || list[other].operands.waits.is_empty())
            && list[again].operands.access("src").as_ref() == Some(&src)
            && list[again].operands.access("dst").as_ref() == Some(&dst);
        if !same {
            return None;
        }
        if loads {
            parts.push((2, Role::Weights(1)));
        }
        parts.push((again, Role::Pass(1)));
    }
    let moving = src.elements();
    if rows > MOST_PARTITIONS || columns > MOST_PARTITIONS || moving > MOST_ELEMENTS {
        return None;
    }
    let work = Matmul {
        rows,
        columns,
        moving,
        stationary_dtype: weights_dtype,
        moving_dtype: dtype,
        moving_layout: operand(&src, dtype),
        transpose,
        double_row: false,
        stationary_onezero: false,
        moving_onezero: false,
        tile_position: (0, 0),
        tile_size: (rows, columns),
        stationary: placeholder(weights_dtype),
    };
    let kind = RecordedKind::Work {
        work: Box::new(Work { engine: Engine::Tensor, kind: WorkKind::Matmul(work) }),
        partition: None,
        loads_weights: loads,
    };
    let mode = if transpose { " transpose" } else { "" };
    Some(Op { kind, parts, shape: format!("{}{mode} {rows}x{columns}x{moving}", dtype.name()) })
}

/// A placeholder for weights, which are not compared: the recording contains the actual loads.
fn placeholder(dtype: DType) -> View {
    let dims = [Dim { stride: 1, count: 1 }, Dim { stride: 1, count: 1 }];
    View {
        tensor: TensorId(0),
        space: Space::Sbuf,
        dtype,
        partition: 0,
        offset: 0,
        dims: dims.into_iter().collect(),
        indirect: None,
    }
}

fn operand(access: &Access, dtype: DType) -> Operand {
    Operand {
        space: access.space(),
        dtype,
        elements: access.elements(),
        inner_stride_bytes: access.stride_bytes(dtype),
    }
}

type Mapping = (Work, Option<u32>, String);

/// A pass through the vector, scalar or GpSimd engine.
fn stream(i: &Instruction) -> Option<Mapping> {
    if !matches!(i.engine, Engine::Vector | Engine::Scalar | Engine::GpSimd) {
        return None;
    }
    let o = &i.operands;
    let op = || AluOp::from_name(&o.field("op").or(o.field("ops"))?.split(',').next()?.to_ascii_lowercase());
    let law = match i.opcode.as_str() {
        "ACTIVATE" => Law::Function(function(i)?),
        opcode => law_of_opcode(opcode, op())?,
    };
    let fills = matches!(i.opcode.as_str(), "MEMSET" | "IOTA");
    let named = |names: &[&str]| -> Option<Vec<Operand>> {
        let given = names.iter().filter(|n| o.field(n).is_some());
        given.map(|n| o.access(n).and_then(|a| Some(operand(&a, a.dtype?)))).collect()
    };
    let inputs = named(&["src", "src0", "src1", "in0", "in1", "in"])?;
    let outputs = named(&["dst", "dst0", "dst1", "out"])?;
    if outputs.is_empty() || inputs.is_empty() && !fills {
        return None;
    }
    let measured = if inputs.is_empty() { &outputs } else { &inputs };
    let elements = measured.iter().map(|p| p.elements).max().unwrap_or(1);
    if elements > MOST_ELEMENTS {
        return None;
    }
    // Pointers: `imm_src=PTR,INSTRUCTION`, `bias_ptr=...`, `scale_ptr=...`.
    let immediates = o.field("imm_src").map_or(0, |s| s.split(',').filter(|w| *w == "PTR").count());
    let pointers = o.fields.keys().filter(|k| k.ends_with("_ptr")).count();
    let place = |list: &[Operand]| list.first().map_or("", |p| p.space.name());
    let dtype = measured.first().map_or("", |p| p.dtype.name());
    let shape = format!("{dtype} {} to {} {elements}", place(&inputs), place(&outputs)).replace("  to", " to");
    let stream = Stream {
        law,
        elements,
        partitions: o.number("channels").and_then(|n| u32::try_from(n).ok()).unwrap_or(128),
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        scalar_reads: (immediates + pointers) as u32,
        accumulator_read: false,
    };
    Some((Work { engine: i.engine, kind: WorkKind::Stream(stream) }, None, shape))
}

/// The function of an `ACTIVATE`, as named by the laws.
fn function(i: &Instruction) -> Option<&'static str> {
    let given = i.function.trim().to_ascii_lowercase();
    let named = nki_isa::inst::math::activation::ActFn::from_name(&given);
    match named {
        Some(function) => Some(function.name()),
        None => (given == "none").then_some("copy"),
    }
}

/// Distance of adjacent SBUF partitions in DMA addresses.
const PARTITION_STEP: u64 = 1 << 18;

/// The upper half of SBUF's DMA addresses.
const SBUF_WINDOW: u64 = 0x8020;

/// The transfer that an instruction triggers.
fn transfer(i: &Instruction) -> Option<Mapping> {
    let o = &i.operands;
    let side = |name: &str| -> Option<(DmaSide, Option<u32>)> {
        let run = o.number(&format!("{name}_elem_size"))?;
        let mut dims = vec![(1i64, run)];
        dims.extend(o.pattern(&format!("{name}_pattern"))?.into_iter().filter(|d| d.1 > 1));
        let address = o.number(&format!("{name}_addr_imm"));
        let sbuf = address.is_some_and(|a| a >> 32 == SBUF_WINDOW);
        let space = if sbuf { Space::Sbuf } else { Space::Hbm };
        let partitions = dims.iter().find(|d| sbuf && d.0.unsigned_abs() == PARTITION_STEP).map_or(1, |d| d.1);
        let total = dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.1))?;
        if partitions > u64::from(MOST_PARTITIONS) || total > MOST_BYTES {
            return None;
        }
        // Contiguous rows form one run.
        let mut merged = run;
        let mut rest: Vec<(i64, u64)> = dims.split_off(1);
        while let Some(next) = rest.iter().position(|d| d.0.unsigned_abs() == merged) {
            merged = merged.checked_mul(rest.remove(next).1)?;
        }
        let side = DmaSide {
            space,
            partitions: (0, u32::try_from(partitions).ok()?),
            run_bytes: u32::try_from(merged).unwrap_or(u32::MAX),
            runs: total / merged.max(1),
            stride_bytes: rest.first().map_or(0, |d| d.0.unsigned_abs()),
        };
        Some((side, address.filter(|_| sbuf).map(|a| ((a & 0xFFFF_FFFF) / PARTITION_STEP) as u32)))
    };
    let ((src, src_at), (dst, dst_at)) = (side("src")?, side("dst")?);
    let bytes = u64::from(dst.run_bytes).checked_mul(dst.runs)?;
    let dtype = |name: &str| o.field(name).unwrap_or_default().to_owned();
    let cast = dtype("in_dtype") != dtype("out_dtype");
    let software = i.engine == Engine::GpSimd;
    let way = |s: &DmaSide| s.space.name();
    let shape =
        format!("{} to {} {}x{}B", way(&src), way(&dst), src.runs.max(dst.runs), src.run_bytes.min(dst.run_bytes));
    let work = Dma {
        src,
        dst,
        bytes,
        elements: bytes,
        dge: if software { DgeMode::SwDge } else { DgeMode::HwDge },
        dynamic: false,
        indexed: false,
        indirect: false,
        transpose: false,
        cast,
    };
    Some((Work { engine: i.engine, kind: WorkKind::Dma(work) }, dst_at.or(src_at), shape))
}
