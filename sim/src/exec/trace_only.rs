//! The dynamic trace without numbers, for programs whose control flow and addresses do not depend on memory.

use ndarray::{Array2, ArrayView2};
use nki_diag::{Advice, Diagnostic};
use nki_isa::ids::{Loc, RegId};
use nki_isa::inst::{Footprint, Inst};
use nki_isa::machine::Context;
use nki_isa::program::{Bound, Control, Node, NodeKind, Statement, Statements};
use nki_isa::{Arch, Fault, Index, Program, View};

use super::disagreement::{self, Awaited, Member, Waiting};
use super::findings::iterations;
use super::rendezvous::{self, Cores, Kind, Pairing, RendezvousPoint, Stop};
use crate::trace::{CoreId, CoreTrace, EventKind, NodeIndex, Resolved, Trace};

/// The trace of this program depends on values in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedsData {
    /// The statement that needs them.
    pub loc: Loc,
    /// The missing data and its use, for the message.
    pub what: String,
}

/// Maximum number of statements inside dynamic loops before tracing is abandoned.
const MOST_STEPS: u64 = 4_000_000;

/// The trace of running `program`, without numbers.
///
/// # Errors
/// If control flow or an address depends on values in memory, or a dynamic loop does not seem to end. The caller then runs the program.
pub fn trace_only(program: &Program) -> Result<Trace, NeedsData> {
    trace_within(program, MOST_STEPS)
}

/// The same with a given maximum number of statements inside dynamic loops.
///
/// # Errors
/// As [`trace_only`].
pub fn trace_within(program: &Program, step_limit: u64) -> Result<Trace, NeedsData> {
    let mut trace = Trace::default();
    for stream in &program.cores {
        let mut walk = Walk {
            program,
            registers: vec![Value::Known(0); program.registers as usize],
            trace: CoreTrace::with_capacity(stream.len()),
            steps: 0,
            step_limit,
            depth: 0,
        };
        let all = Statements::of(stream);
        walk.block(&all, 0, all.len())?;
        trace.cores.push(walk.trace);
    }
    if program.cores.len() > 1 {
        pair(program, &mut trace);
    }
    Ok(trace)
}

/// Pairs the rendezvous of the cores. After a deadlock, only those before it are paired.
fn pair(program: &Program, trace: &mut Trace) {
    let mut pairing = Pairing::default();
    // `check_rendezvous` reports the deadlock.
    let _ = rendezvous::run(&mut Traced::new(program, trace), &mut pairing);
    for (core, executed) in trace.cores.iter_mut().enumerate() {
        executed.rendezvous = pairing.take(CoreId { rank: 0, core: core as u32 });
    }
}

/// The error if the cores of a traced program wait for each other forever, or meet at incompatible instructions.
pub fn check_rendezvous(program: &Program, trace: &Trace) -> Option<Diagnostic> {
    rendezvous::run(&mut Traced::new(program, trace), &mut Pairing::default()).err().map(|error| *error)
}

/// A rendezvous of a traced core.
#[derive(Clone)]
struct Place<'p> {
    point: RendezvousPoint,
    node: &'p Node,
    inst: &'p Inst,
    /// A core that does not exist, of those it waits for.
    missing: Option<String>,
}

/// Traced cores, which advance once more from rendezvous to rendezvous.
struct Traced<'p> {
    program: &'p Program,
    /// By core: the remaining rendezvous, the next one last.
    stops: Vec<Vec<Place<'p>>>,
    waits: Vec<Option<Place<'p>>>,
    /// By core: its posted exchanges.
    posted: Vec<Vec<Place<'p>>>,
}

impl<'p> Traced<'p> {
    fn new(program: &'p Program, trace: &Trace) -> Self {
        let stops = program.cores.iter().zip(&trace.cores).zip(0..).map(|((stream, executed), core)| {
            let nodes = Statements::of(stream);
            let place = |event: u32, node: &'p Node| {
                let NodeKind::Inst(inst) = &node.kind else { return None };
                let participants = inst.participants().filter(|p| rendezvous::waits(p, program.cores.len()))?;
                let me = CoreId { rank: 0, core };
                let (members, missing) = rendezvous::members(&participants, me, &[program.cores.len()]);
                // A program is traced as one rank, of an unknown number.
                let missing = missing.into_iter().next().filter(|_| !participants.is_of_ranks());
                if members.is_empty() {
                    return None;
                }
                let members = missing.is_none().then_some(members);
                let point = RendezvousPoint { event, kind: Kind::of(&participants), members };
                Some(Place { point, node, inst, missing })
            };
            let events = executed.events.iter().zip(0..).filter(|(e, _)| matches!(e.kind, EventKind::Inst { .. }));
            let mut places: Vec<_> = events.filter_map(|(e, at)| place(at, nodes.node(e.node.0)?)).collect();
            places.reverse();
            places
        });
        let stops: Vec<_> = stops.collect();
        let count = stops.len();
        Traced { program, stops, waits: vec![None; count], posted: vec![Vec::new(); count] }
    }

    /// The rendezvous at which a core waits, else its first posted exchange.
    fn waiting_at(&self, core: u32) -> Option<&Place<'p>> {
        self.waits[core as usize].as_ref().or_else(|| self.posted[core as usize].first())
    }

    fn waiting(&self, core: u32) -> Option<Waiting<'p>> {
        let place = self.waiting_at(core)?;
        let iterations = iterations(self.program, place.node, &[]);
        Some(Waiting { member: place.member(core), iterations })
    }
}

impl<'p> Place<'p> {
    fn member(&self, core: u32) -> Member<'p> {
        Member { core: CoreId { rank: 0, core }, several_ranks: false, node: self.node, inst: self.inst }
    }
}

impl Cores for Traced<'_> {
    type Stopped = Box<Diagnostic>;

    fn counts(&self) -> Vec<usize> {
        vec![self.stops.len()]
    }

    fn advance(&mut self, core: CoreId) -> Result<Stop, Self::Stopped> {
        let core = core.core as usize;
        self.waits[core] = self.stops[core].pop();
        Ok(if self.waits[core].is_some() { Stop::Waits } else { Stop::Done })
    }

    fn place(&self, core: CoreId) -> Option<RendezvousPoint> {
        self.waits[core.core as usize].as_ref().map(|place| place.point.clone())
    }

    fn complete(&mut self, core: CoreId, members: &[CoreId]) -> Result<(), Self::Stopped> {
        let Some(wanted) = self.waits[core.core as usize].as_ref().map(|place| place.point.kind) else { return Ok(()) };
        let places = members.iter().filter_map(|m| {
            let posted = &mut self.posted[m.core as usize];
            let left = posted.iter().position(|place| place.point.kind == wanted).map(|at| posted.remove(at));
            Some(left.as_ref().or(self.waits[m.core as usize].as_ref())?.member(m.core))
        });
        let members: Vec<Member<'_>> = places.collect();
        let context = Context { arch: Arch::of(self.program.target), tensors: &self.program.tensors };
        match disagreement::mismatch(&members, &self.counts(), &context) {
            Some((_, error)) => Err(Box::new(error)),
            None => Ok(()),
        }
    }

    fn post(&mut self, core: CoreId) -> Result<(), Self::Stopped> {
        let core = core.core as usize;
        self.posted[core].extend(self.waits[core].take());
        Ok(())
    }

    fn deadlock(&self) -> Self::Stopped {
        let cores = 0..self.stops.len() as u32;
        let Some((core, place, me)) =
            cores.clone().find_map(|core| Some((core, self.waiting_at(core)?, self.waiting(core)?)))
        else {
            return Box::new(Diagnostic::error("internal", "nobody waits"));
        };
        if let Some(absent) = &place.missing {
            return Box::new(me.for_missing(absent, "core", self.stops.len(), Advice::TwoCores));
        }
        // The same choice as in a run: a member that waits elsewhere, else any.
        let kind = |core: u32| self.waiting_at(core).map(|place| place.point.kind);
        let others = || cores.clone().filter(|&other| other != core);
        let Some(other) = others().find(|&other| kind(other) != kind(core)).or_else(|| others().next()) else {
            return Box::new(Diagnostic::error("internal", "a core waits for itself"));
        };
        let awaited = self.waiting(other).map(Awaited::Waits).unwrap_or_else(|| Awaited::Ended {
            core: CoreId { rank: 0, core: other }.name(false),
            at: disagreement::end(&self.program.cores[other as usize]),
        });
        Box::new(me.for_other(&awaited))
    }
}

/// A register without data.
#[derive(Debug, Clone, Copy)]
enum Value {
    Known(i64),
    /// Loaded from memory here.
    FromMemory(Loc),
}

struct Walk<'p> {
    program: &'p Program,
    registers: Vec<Value>,
    trace: CoreTrace,
    steps: u64,
    step_limit: u64,
    depth: u32,
}

impl Walk<'_> {
    fn get(&self, register: RegId, node: &Node, use_: &str) -> Result<i64, NeedsData> {
        match self.registers.get(register.0 as usize) {
            Some(Value::Known(v)) => Ok(*v),
            Some(Value::FromMemory(loc)) => Err(NeedsData {
                loc: node.loc,
                what: format!("{use_} is register r{}, which line {} loads from memory", register.0, loc.line),
            }),
            None => Ok(0),
        }
    }

    /// Executes the statements of a block in a range of positions.
    fn block(&mut self, all: &Statements<'_>, from: u32, until: u32) -> Result<(), NeedsData> {
        let mut footprint = Footprint::default();
        let mut next = from;
        while next < until {
            let at = NodeIndex(next);
            let Some(Statement { node, end, otherwise, .. }) = all.get(next) else { break };
            next = end;
            if self.depth > 0 {
                self.step(node)?;
            }
            match &node.kind {
                NodeKind::Inst(inst) => {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    let mut resolved = Vec::new();
                    for view in footprint.reads.iter().chain(&footprint.writes) {
                        if let Some(r) = self.resolve(view, node)? {
                            resolved.push(r);
                        }
                    }
                    if !footprint.register_writes.is_empty() {
                        let unknown =
                            footprint.register_reads.iter().find_map(|r| match self.registers.get(r.0 as usize) {
                                Some(Value::FromMemory(loc)) => Some(*loc),
                                _ => None,
                            });
                        let unknown = if footprint.reads.is_empty() { unknown } else { Some(node.loc) };
                        let mut machine = Registers { walk: self, failed: false, state: Vec::new() };
                        if unknown.is_some() || inst.execute(&mut machine).is_err() || machine.failed {
                            for r in &footprint.register_writes {
                                self.set(*r, Value::FromMemory(unknown.unwrap_or(node.loc)));
                            }
                        }
                    }
                    let resolved = (!resolved.is_empty()).then(|| resolved.into_boxed_slice());
                    self.trace.push_instruction(at, resolved);
                }
                NodeKind::Control(control) => match &**control {
                    Control::For { variable, lower, upper, step, .. } => {
                        let lower = self.bound(*lower, node)?;
                        let upper = self.bound(*upper, node)?;
                        self.trace.push(at, EventKind::LoopEnter);
                        self.depth += 1;
                        let (mut value, mut iteration) = (lower, 0);
                        while value < upper {
                            self.set(*variable, Value::Known(value));
                            self.step(node)?;
                            self.trace.push(at, EventKind::LoopIteration(iteration));
                            self.block(all, at.0 + 1, end)?;
                            value += (*step).max(1);
                            iteration += 1;
                        }
                        self.depth -= 1;
                        self.trace.push(at, EventKind::LoopExit);
                    }
                    Control::While { condition, .. } => {
                        self.trace.push(at, EventKind::LoopEnter);
                        self.depth += 1;
                        let mut iteration = 0;
                        while self.get(*condition, node, "the condition of the loop")? != 0 {
                            self.step(node)?;
                            self.trace.push(at, EventKind::LoopIteration(iteration));
                            self.block(all, at.0 + 1, end)?;
                            iteration += 1;
                        }
                        self.depth -= 1;
                        self.trace.push(at, EventKind::LoopExit);
                    }
                    Control::If { condition, .. } => {
                        let taken = self.get(*condition, node, "the condition of the branch")? != 0;
                        self.trace.push(at, EventKind::Branch(taken));
                        let (from, until) = if taken { (at.0 + 1, otherwise) } else { (otherwise, end) };
                        self.block(all, from, until)?;
                    }
                },
            }
        }
        Ok(())
    }

    fn step(&mut self, node: &Node) -> Result<(), NeedsData> {
        self.steps += 1;
        if self.steps > self.step_limit {
            return Err(NeedsData {
                loc: node.loc,
                what: format!("a dynamic loop has not ended after {} steps", self.step_limit),
            });
        }
        Ok(())
    }

    fn set(&mut self, register: RegId, value: Value) {
        let i = register.0 as usize;
        if i >= self.registers.len() {
            self.registers.resize(i + 1, Value::Known(0));
        }
        self.registers[i] = value;
    }

    fn bound(&self, bound: Bound, node: &Node) -> Result<i64, NeedsData> {
        match bound {
            Bound::Static(v) => Ok(v),
            Bound::Register(r) => self.get(r, node, "a bound of the loop"),
        }
    }

    fn resolve(&self, view: &View, node: &Node) -> Result<Option<Resolved>, NeedsData> {
        let Some(indirect) = view.indirect.as_deref() else { return Ok(None) };
        let name = &self.program.tensor(view.tensor).name;
        match &indirect.index {
            Index::Register(r) => {
                let value = self.get(*r, node, &format!("the dynamic offset of `{name}`"))?;
                Ok(Some(if (0..i64::from(indirect.bound)).contains(&value) {
                    Resolved::Offset(value * indirect.stride)
                } else {
                    Resolved::Skipped
                }))
            }
            Index::Scalar(v) | Index::Vector(v) | Index::Columns(v) => Err(NeedsData {
                loc: node.loc,
                what: format!(
                    "the dynamic offset of `{name}` is in memory, in `{}`",
                    self.program.tensor(v.tensor).name
                ),
            }),
        }
    }
}

/// A machine with registers only.
struct Registers<'w, 'p> {
    walk: &'w mut Walk<'p>,
    failed: bool,
    state: Vec<u32>,
}

impl Registers<'_, '_> {
    fn no<T>(&mut self) -> Result<T, Fault> {
        self.failed = true;
        Err(Fault::new("needs-data", "memory is not simulated"))
    }
}

impl nki_isa::Machine for Registers<'_, '_> {
    fn context(&self) -> nki_isa::machine::Context<'_> {
        nki_isa::machine::Context {
            arch: nki_isa::Arch::of(self.walk.program.target),
            tensors: &self.walk.program.tensors,
        }
    }
    fn map_f32(
        &mut self,
        _: &[&View],
        _: &[&View],
        _: nki_isa::machine::RowsF32,
        _: Option<nki_isa::machine::StateUpdate>,
    ) -> Result<(), Fault> {
        self.no()
    }
    fn map_i64(&mut self, _: &[&View], _: &[&View], _: nki_isa::machine::RowsI64<'_>) -> Result<(), Fault> {
        self.no()
    }
    fn is_outside(&mut self, _: &View) -> Result<bool, Fault> {
        self.no()
    }
    fn copy(&mut self, _: &View, _: &View, _: nki_isa::names::OobMode) -> Result<(), Fault> {
        self.no()
    }
    fn fill(&mut self, _: &View, _: nki_isa::Imm) -> Result<(), Fault> {
        self.no()
    }
    fn begin_accumulate(&mut self, _: &View, _: Option<bool>) -> Result<bool, Fault> {
        self.no()
    }
    fn contract(&mut self, _: &View, _: &View, _: &View, _: nki_isa::machine::Tiles<'_>) -> Result<(), Fault> {
        self.no()
    }
    fn read_tile(&mut self, _: &View) -> Result<Array2<f32>, Fault> {
        self.no()
    }
    fn write_tile(&mut self, _: &View, _: ArrayView2<'_, f32>) -> Result<(), Fault> {
        self.no()
    }
    fn read_bits(&mut self, _: &View) -> Result<Array2<u32>, Fault> {
        self.no()
    }
    fn write_bits(&mut self, _: &View, _: ArrayView2<'_, u32>) -> Result<(), Fault> {
        self.no()
    }
    fn register(&mut self, register: RegId) -> i64 {
        match self.walk.registers.get(register.0 as usize) {
            Some(Value::Known(v)) => *v,
            Some(Value::FromMemory(_)) => {
                self.failed = true;
                0
            }
            None => 0,
        }
    }
    fn set_register(&mut self, register: RegId, value: i64) {
        self.walk.set(register, Value::Known(value));
    }
    fn print(&mut self, _: String) {}
    fn engine_state(&mut self, _: &'static str) -> &mut Vec<u32> {
        // The state depends on earlier instructions: the instruction counts as failed.
        self.failed = true;
        &mut self.state
    }
}
