//! Walks the structured stream: instructions, dynamic loops and branches.

use std::sync::Arc;

use ndarray::Array2;
use nki_diag::Diagnostic;
use nki_isa::ids::{Address, Loc, RegId};
use nki_isa::inst::Footprint;
use nki_isa::program::{Bound, Control, Node, NodeKind, Statement, Statements};
use nki_isa::{Contribution, Fault, Inst, Participants, Program, TensorId, View};
use rustc_hash::FxHashMap;

use super::ExecOptions;
use super::deferred::Deferred;
use super::findings::{self, Findings, Place};
use super::limits::Events;
use super::loop_local::LoopLocalTensors;
use super::observe::{Observer, Reached};
use super::overwrites::Outputs;
use super::races::Races;
use super::rendezvous::{self, Stop};
use super::taint::Taint;
use super::unlinked::Unlinked;
use super::value_findings::ValueFindings;
use crate::HostTensor;
use crate::memory::Memory;
use crate::place::Placement;
use crate::trace::{CoreTrace, EventKind, NodeIndex, Resolved, Trace};

/// State of a run of one rank. Memories are shared by its cores.
pub(super) struct Interpreter<'p> {
    pub(super) program: &'p Program,
    /// Memory, and the computations deferred on it.
    pub(super) deferred: Deferred<'p>,
    pub(super) findings: Findings,
    pub(super) values: ValueFindings,
    /// Tracks unwritten memory from its first read.
    pub(super) taint: Option<Box<Taint>>,
    /// See [`ExecOptions::reads_without_effect`].
    reads_without_effect: bool,
    pub(super) prints: Vec<String>,
    /// The core that runs.
    pub(super) core: CoreState<'p>,
    /// The other cores by number, with an empty state in place of the running one.
    parked: Vec<CoreState<'p>>,
    pub(super) races: Races<'p>,
    pub(super) unlinked: Unlinked<'p>,
    /// The outputs whose stores are checked.
    pub(super) stored: Outputs,
    /// The rank, for instructions that read it.
    pub(super) rank: u32,
    /// The contributions of the members of the current rendezvous.
    pub(super) contributed: Arc<[Contribution]>,
    steps: u64,
    step_limit: u64,
    most_events: Events,
    /// The observer of written values.
    pub(super) observer: Option<&'p mut dyn Observer>,
    /// Converted operands of matmuls, kept to reuse their buffers.
    pub(super) tiles: [Vec<f32>; 2],
}

/// Private state of a core.
#[derive(Default)]
pub(super) struct CoreState<'p> {
    pub(super) number: u32,
    registers: Vec<Option<i64>>,
    pub(super) engine_state: FxHashMap<&'static str, Vec<u32>>,
    /// The statement being executed.
    pub(super) node: Option<&'p Node>,
    /// Dynamic loops around it: statement and iteration.
    pub(super) loops: Vec<(Loc, u32)>,
    /// The core's stream.
    statements: Statements<'p>,
    /// Blocks being executed, outermost first.
    frames: Vec<Frame>,
    /// Position of the statement being executed.
    position: u32,
    /// On-chip tensors of the core by last use; the first `dead` of them have been released, because they ended before `position`.
    dying: Vec<(u32, TensorId)>,
    dead: usize,
    /// Tensors that are created anew in each iteration.
    loop_local: LoopLocalTensors,
    /// The instruction that waits for other cores.
    pub(super) waiting: Option<PendingRendezvous<'p>>,
    /// Posted exchanges: the core has sent its data, and continues until it needs the data to be received.
    pub(super) posted: Vec<Posted<'p>>,
    trace: CoreTrace,
}

impl CoreState<'_> {
    /// Returns the next tensor whose last use is before the current statement, and marks it as released.
    pub(super) fn next_dead(&mut self) -> Option<TensorId> {
        let next = self.all_dead().next();
        self.dead += usize::from(next.is_some());
        next
    }

    /// The unreleased tensors whose last use is before the current statement.
    pub(super) fn all_dead(&self) -> impl Iterator<Item = TensorId> {
        let dying = self.dying[self.dead..].iter();
        dying.take_while(|(last, _)| *last < self.position).map(|&(_, tensor)| tensor)
    }
}

/// An active block: positions in the core's stream.
struct Frame {
    /// The next statement.
    next: u32,
    /// The end of the block, exclusive.
    until: u32,
    end: End,
}

/// The continuation of a block.
enum End {
    /// The statements after it.
    Leave,
    /// Possibly another iteration of this loop.
    Loop { at: NodeIndex, iteration: u32, counter: Counter },
}

/// Decides whether there is another iteration.
#[derive(Clone, Copy)]
enum Counter {
    For { variable: RegId, next: i64, upper: i64, step: i64 },
    While(RegId),
}

/// An instruction that waits for other cores.
pub(super) struct PendingRendezvous<'p> {
    pub(super) node: &'p Node,
    pub(super) inst: &'p Inst,
    at: NodeIndex,
    resolved: Option<Box<[Resolved]>>,
}

/// An exchange whose peer has not arrived.
pub(super) struct Posted<'p> {
    pub(super) waiting: PendingRendezvous<'p>,
    /// The tiles that the core has sent.
    pub(super) tiles: Vec<Array2<u32>>,
}

impl<'p> CoreState<'p> {
    /// Position of the current statement in the stream.
    pub(super) fn position(&self) -> u32 {
        self.position
    }

    /// The statements before the current one, in reverse order.
    pub(super) fn statements_before(&self) -> impl Iterator<Item = &'p Node> + '_ {
        self.statements.range(0..self.position).rev().map(|s| s.node)
    }

    /// The content of a register, if it was set.
    pub(super) fn register(&self, register: RegId) -> Option<i64> {
        self.registers.get(register.0 as usize).copied().flatten()
    }

    /// Number of events so far.
    pub(super) fn executed(&self) -> u32 {
        self.trace.events.len() as u32
    }
}

impl<'p> Interpreter<'p> {
    pub(super) fn new(program: &'p Program, memory: Memory<'p>, rank: u32, options: &ExecOptions) -> Self {
        let mut interpreter = Interpreter {
            program,
            findings: Findings::starting_with(&memory.placement().over_capacity),
            deferred: Deferred::new(memory),
            values: ValueFindings::new(options.checks),
            taint: None,
            reads_without_effect: options.reads_without_effect,
            prints: Vec::new(),
            core: CoreState::default(),
            parked: Vec::new(),
            races: Races::new(program),
            unlinked: Unlinked::new(program),
            stored: Outputs::of(program),
            rank,
            contributed: Arc::from([]),
            steps: 0,
            step_limit: options.step_limit,
            most_events: Events::of(options),
            observer: None,
            tiles: Default::default(),
        };
        interpreter.parked = program.cores.iter().enumerate().map(|(i, s)| interpreter.start(i as u32, s)).collect();
        if let Some(first) = interpreter.parked.first_mut() {
            interpreter.core = std::mem::take(first);
        }
        interpreter
    }

    /// A core before its first statement.
    fn start(&self, core: u32, stream: &'p [Node]) -> CoreState<'p> {
        let dying = by_last_use(self.program, self.deferred.placement(), core);
        let statements = Statements::of(stream);
        let loop_local = LoopLocalTensors::new(self.program, &statements);
        CoreState {
            number: core,
            registers: vec![None; self.program.registers as usize],
            frames: vec![Frame { next: 0, until: statements.len(), end: End::Leave }],
            dying,
            loop_local,
            statements,
            trace: CoreTrace::with_capacity(stream.len()),
            ..CoreState::default()
        }
    }

    /// Switches to `core`.
    pub(super) fn switch(&mut self, core: u32) {
        let now = self.core.number;
        if now != core {
            self.flush();
            std::mem::swap(&mut self.core, &mut self.parked[now as usize]);
            std::mem::swap(&mut self.core, &mut self.parked[core as usize]);
        }
    }

    /// The state of a core, running or not.
    pub(super) fn state(&self, core: u32) -> &CoreState<'p> {
        if self.core.number == core { &self.core } else { &self.parked[core as usize] }
    }

    /// Runs the current core until it ends or waits.
    pub(super) fn advance(&mut self) -> Result<Stop, Box<Diagnostic>> {
        if self.core.node.is_none() && self.observer.is_some() {
            self.reached(Reached::Start);
        }
        let outcome = self.statements();
        outcome.map_err(|fault| self.diagnose(fault))
    }

    /// The current core's contribution to the rendezvous at which it waits.
    pub(super) fn contribute(&mut self) -> Result<Vec<Array2<u32>>, Box<Diagnostic>> {
        let Some(PendingRendezvous { node, inst, .. }) = self.core.waiting else { return Ok(Vec::new()) };
        self.core.node = Some(node);
        inst.contribute(self).map_err(|fault| self.diagnose(fault))
    }

    /// Completes the rendezvous at which the current core waits: executes its instruction.
    pub(super) fn complete(&mut self, contributed: &Arc<[Contribution]>) -> Result<(), Box<Diagnostic>> {
        let Some(waiting) = self.core.waiting.take() else { return Ok(()) };
        self.contributed = Arc::clone(contributed);
        self.core.node = Some(waiting.node);
        self.deferred.account().executes(waiting.node);
        let outcome = waiting.inst.execute(self);
        self.spread_taint(waiting.inst);
        self.contributed = Arc::from([]);
        self.core.trace.push_instruction(waiting.at, waiting.resolved);
        outcome.and_then(|()| self.observe(waiting.inst)).map_err(|fault| self.diagnose(fault))?;
        self.reached(Reached::After(waiting.at.0));
        Ok(())
    }

    /// Posts the exchange at which the current core waits: reads the data to send, and lets the core proceed.
    pub(super) fn post(&mut self) -> Result<(), Box<Diagnostic>> {
        let tiles = self.contribute()?;
        if let Some(mut waiting) = self.core.waiting.take() {
            let resolved = waiting.resolved.take();
            self.core.trace.push_instruction(waiting.at, resolved);
            let at = waiting.at.0;
            self.core.posted.push(Posted { waiting, tiles });
            self.reached(Reached::After(at));
        }
        Ok(())
    }

    /// Receives the data of a posted exchange after its peer has arrived.
    pub(super) fn receive(
        &mut self,
        posted: Posted<'p>,
        contributed: &Arc<[Contribution]>,
    ) -> Result<(), Box<Diagnostic>> {
        let now = self.core.node.replace(posted.waiting.node);
        self.contributed = Arc::clone(contributed);
        self.deferred.account().executes(posted.waiting.node);
        let outcome = posted.waiting.inst.execute(self);
        self.spread_taint(posted.waiting.inst);
        self.contributed = Arc::from([]);
        let outcome = outcome.and_then(|()| self.observe(posted.waiting.inst)).map_err(|fault| self.diagnose(fault));
        self.core.node = now;
        outcome
    }

    /// Whether an instruction must wait for a posted exchange: it uses the tile to be received, has the same pipe, or
    /// orders everything before it.
    fn needs_posted(&self, inst: &Inst, footprint: &Footprint<'_>) -> bool {
        let mut own = Footprint::default();
        self.core.posted.iter().any(|p| {
            let pipe = |i: &Inst| match i.participants() {
                Some(Participants::Exchange { pipe, .. }) => Some(pipe),
                _ => None,
            };
            match inst.participants() {
                Some(Participants::Exchange { pipe: mine, .. }) if pipe(p.waiting.inst) == Some(mine) => return true,
                Some(Participants::Exchange { .. }) | None => {}
                Some(_) => return true,
            }
            own.clear();
            p.waiting.inst.footprint(&mut own);
            let touches = |v: &View| own.writes.iter().any(|w| self.may_share(v, w));
            footprint.reads.iter().chain(&footprint.writes).any(|v| touches(v))
        })
    }

    /// Whether two on-chip views may share a byte, by bounding boxes of partitions and bytes.
    fn may_share(&self, a: &View, b: &View) -> bool {
        if a.space != b.space || self.program.tensor(a.tensor).core != self.program.tensor(b.tensor).core {
            return false;
        }
        let rectangle = |v: &View| {
            let at = self.deferred.placement().address(v.tensor).unwrap_or(Address { partition: 0, byte: 0 });
            let ((p0, p1), (b0, b1)) = (v.partition_span(), v.byte_span());
            let whole = v.indirect.is_some();
            let bytes = self.program.tensor(v.tensor).bytes() as i64;
            let (p0, p1) = if whole { (0, 128) } else { (i64::from(at.partition) + p0, i64::from(at.partition) + p1) };
            let (b0, b1) = if whole { (0, bytes) } else { (b0, b1) };
            (p0, p1, i64::from(at.byte) + b0, i64::from(at.byte) + b1)
        };
        let ((p0, p1, b0, b1), (q0, q1, c0, c1)) = (rectangle(a), rectangle(b));
        p0 < q1 && q0 < p1 && b0 < c1 && c0 < b1
    }

    fn diagnose(&self, fault: Fault) -> Box<Diagnostic> {
        match self.core.node {
            Some(node) => findings::fault(Place { program: self.program, node, loops: &self.core.loops }, fault),
            None => Box::new(Diagnostic::error(fault.id, fault.message)),
        }
    }

    fn statements(&mut self) -> Result<Stop, Fault> {
        let mut footprint = Footprint::default();
        loop {
            nki_diag::stop::check();
            let Some(frame) = self.core.frames.last_mut() else { return Ok(Stop::Done) };
            let position = frame.next;
            let next = self.core.statements.get(position).filter(|_| position < frame.until);
            let Some(Statement { node, end, otherwise, .. }) = next else {
                self.end_of_block()?;
                continue;
            };
            // Skip the statement's body.
            frame.next = end;
            self.core.position = position;
            self.release_dead();
            let at = NodeIndex(position);
            self.core.node = Some(node);
            if !self.core.loops.is_empty() {
                self.steps += 1;
                if self.steps > self.step_limit {
                    return Err(Fault::new(
                        "step-limit",
                        format!(
                            "{} statements have been executed inside dynamic loops; the limit is {}: the loop does not seem to end",
                            self.steps - 1,
                            self.step_limit
                        ),
                    ));
                }
            }
            match &node.kind {
                NodeKind::Inst(inst) => {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    if !self.core.posted.is_empty() && self.needs_posted(inst, &footprint) {
                        // Retry the statement after the exchange.
                        if let Some(frame) = self.core.frames.last_mut() {
                            frame.next = position;
                        }
                        return Ok(Stop::Blocked);
                    }
                    if footprint.reads.iter().any(|v| v.space.is_hbm()) {
                        self.end_stored_run();
                    }
                    let resolved = self.resolved(&footprint)?;
                    let waits = match inst.participants() {
                        Some(participants) if !rendezvous::waits(&participants, self.program.cores.len()) => false,
                        Some(participants) => !participants.members(self.member(&participants)).is_empty(),
                        None => false,
                    };
                    if waits {
                        self.core.waiting = Some(PendingRendezvous { node, inst, at, resolved });
                        return Ok(Stop::Waits);
                    }
                    self.deferred.account().executes(node);
                    if self.races.is_on() {
                        self.execute_watched(node, inst, &footprint, resolved.as_deref())?;
                    } else if footprint.writes.iter().any(|v| v.space.is_hbm()) {
                        self.execute_storing(node, inst, &footprint)?;
                    } else {
                        inst.execute(self)?;
                    }
                    self.spread_taint_of_statement();
                    if self.observer.is_some() {
                        self.observe(inst)?;
                    }
                    self.core.trace.push_instruction(at, resolved);
                    if self.observer.is_some() {
                        self.reached(Reached::After(position));
                    }
                }
                NodeKind::Control(control) => match &**control {
                    Control::For { variable, lower, upper, step, .. } => {
                        let (next, upper) = (self.bound(*lower), self.bound(*upper));
                        self.enter(
                            node.loc,
                            at,
                            end,
                            Counter::For { variable: *variable, next, upper, step: (*step).max(1) },
                        );
                    }
                    Control::While { condition, .. } => self.enter(node.loc, at, end, Counter::While(*condition)),
                    Control::If { condition, .. } => {
                        let taken = self.get(*condition) != 0;
                        self.core.trace.push(at, EventKind::Branch(taken));
                        let (next, until) = if taken { (position + 1, otherwise) } else { (otherwise, end) };
                        self.core.frames.push(Frame { next, until, end: End::Leave });
                    }
                },
            }
        }
    }

    /// The member number of the current core in a rendezvous.
    pub(super) fn member(&self, participants: &Participants<'_>) -> u32 {
        if participants.is_of_ranks() { self.rank } else { self.core.number }
    }

    fn enter(&mut self, loc: Loc, at: NodeIndex, until: u32, counter: Counter) {
        self.core.trace.push(at, EventKind::LoopEnter);
        self.core.loops.push((loc, 0));
        // The state at the end of the body, before the first iteration.
        self.core.frames.push(Frame { next: until, until, end: End::Loop { at, iteration: 0, counter } });
    }

    /// Starts another iteration or continues after the block.
    fn end_of_block(&mut self) -> Result<(), Fault> {
        let Some(Frame { until, end, .. }) = self.core.frames.pop() else { return Ok(()) };
        let End::Loop { at, iteration, mut counter } = end else { return Ok(()) };
        self.core.node = self.core.statements.node(at.0);
        let again = match &mut counter {
            Counter::For { variable, next, upper, step } => {
                let more = *next < *upper;
                if more {
                    self.set(*variable, *next);
                    *next = next.saturating_add(*step);
                }
                more
            }
            Counter::While(condition) => self.get(*condition) != 0,
        };
        if !again {
            self.core.loops.pop();
            self.core.trace.push(at, EventKind::LoopExit);
            self.reached(Reached::Exit { header: at.0, end: until });
            return Ok(());
        }
        self.core.trace.push(at, EventKind::LoopIteration(iteration));
        if let Some(last) = self.core.loops.last_mut() {
            last.1 = iteration;
        }
        self.most_events.check(self.core.trace.events.len())?;
        // An empty body must reach the limit, too.
        self.steps += 1;
        if self.steps > self.step_limit {
            return Err(Fault::new(
                "step-limit",
                format!(
                    "a dynamic loop is in iteration {iteration}, and the limit of {} steps is reached",
                    self.step_limit
                ),
            ));
        }
        self.core.loop_local.begin(at.0, &mut self.deferred.account());
        // Tensors whose last use is inside the body are alive again.
        let first = self.core.dying.partition_point(|(last, _)| *last <= at.0);
        self.core.dead = self.core.dead.min(first);
        self.reached(Reached::Iteration { header: at.0, number: iteration });
        let end = End::Loop { at, iteration: iteration + 1, counter };
        self.core.frames.push(Frame { next: at.0 + 1, until, end });
        Ok(())
    }

    fn bound(&mut self, bound: Bound) -> i64 {
        match bound {
            Bound::Static(v) => v,
            Bound::Register(r) => self.get(r),
        }
    }

    /// A register's value; 0 and a finding if it was never set.
    pub(super) fn get(&mut self, register: RegId) -> i64 {
        match self.core.register(register) {
            Some(value) => value,
            None => {
                if let Some(node) = self.core.node {
                    let at = Place { program: self.program, node, loops: &self.core.loops };
                    self.findings.unset_register(at, register);
                }
                0
            }
        }
    }

    /// Sets a register.
    pub(super) fn set(&mut self, register: RegId, value: i64) {
        let i = register.0 as usize;
        let registers = &mut self.core.registers;
        if i >= registers.len() {
            registers.resize(i + 1, None);
        }
        registers[i] = Some(value);
    }

    /// The outputs, after the last core has ended.
    pub(super) fn outputs(&mut self) -> Vec<HostTensor> {
        // All statements have been executed: on-chip memory is not read any more.
        self.core.position = self.core.statements.len();
        self.flush_without_dead();
        let program = self.program;
        if !self.reads_without_effect && self.taint.is_some() && !self.taint_is_visible() {
            self.findings.forget_reads_without_effect();
        }
        let mut out = Vec::with_capacity(program.outputs.len());
        let last: FxHashMap<TensorId, usize> =
            program.outputs.iter().enumerate().map(|(i, output)| (output.tensor, i)).collect();
        for (i, output) in program.outputs.iter().enumerate() {
            let t = program.tensor(output.tensor);
            if let Some(reached) = self.tainted_output(output.tensor)
                && let Some(taint) = &self.taint
            {
                self.findings.tainted_output(program, &output.name, output.tensor, reached, (taint.read, taint.tensor));
            }
            let again = last.get(&output.tensor) != Some(&i);
            let (data, missing) = self.memory().unload(output.tensor, again);
            let reported = program.outputs[..i].iter().any(|o| o.tensor == output.tensor);
            if let Some(missing) = missing.filter(|_| !reported) {
                self.findings.unwritten_output(program, &output.name, output.tensor, missing);
            }
            out.push(HostTensor {
                name: output.name.clone(),
                shape: t.shape.iter().map(|&d| d as usize).collect(),
                dtype: t.dtype,
                data,
            });
        }
        out
    }

    /// The trace of each core.
    pub(super) fn take_trace(&mut self) -> Trace {
        let all = 0..self.program.cores.len() as u32;
        let mut take = |core| {
            self.switch(core);
            std::mem::take(&mut self.core.trace)
        };
        Trace { cores: all.map(&mut take).collect() }
    }

    pub(super) fn into_messages(self) -> (Vec<Diagnostic>, Vec<String>) {
        (self.findings.list, self.prints)
    }
}

/// The on-chip tensors of a core with the position of their last use, in that order.
pub(super) fn by_last_use(program: &Program, placement: &Placement, core: u32) -> Vec<(u32, TensorId)> {
    let mut out: Vec<(u32, TensorId)> = program
        .tensors
        .iter()
        .zip(&placement.lifetimes)
        .enumerate()
        .filter(|(_, (t, _))| t.space.is_on_chip() && t.core == core)
        .filter_map(|(i, (_, life))| life.map(|l| (l.last, TensorId(i as u32))))
        .collect();
    out.sort_unstable();
    out
}
