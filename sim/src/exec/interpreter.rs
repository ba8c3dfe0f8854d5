//! Walks the structured stream: instructions, dynamic loops and branches.

use nki_diag::Diagnostic;
use nki_isa::inst::Footprint;
use nki_isa::program::{Bound, Loc, Node, NodeKind, RegId};
use nki_isa::{Fault, Program, Space, TensorId};
use rustc_hash::FxHashMap;

use super::ExecOptions;
use super::findings::{self, Findings};
use crate::HostTensor;
use crate::memory::Memory;
use crate::trace::{Event, EventKind, NodeIndex};

/// State of a run. Memories are shared by the cores, the rest is per core.
pub(super) struct Interpreter<'p> {
    pub(super) program: &'p Program,
    pub(super) memory: Memory<'p>,
    pub(super) findings: Findings,
    pub(super) prints: Vec<String>,
    registers: Vec<Option<i32>>,
    pub(super) engine_state: FxHashMap<&'static str, Vec<u32>>,
    /// The statement being executed.
    pub(super) node: Option<&'p Node>,
    /// Dynamic loops around it: statement and iteration.
    pub(super) loops: Vec<(Loc, u32)>,
    steps: u64,
    step_limit: u64,
    /// On-chip tensors of the core by last use, and how many of them have been given back.
    dying: Vec<(u32, TensorId)>,
    dead: usize,
    /// PSUM tensors that are made anew in each iteration, by position of the loop.
    renewed: FxHashMap<u32, Vec<TensorId>>,
    pub(super) scratch: super::rows::Scratch,
    /// Converted operands of matmuls, kept for their buffers.
    pub(super) tiles: [Vec<f32>; 2],
}

impl<'p> Interpreter<'p> {
    pub(super) fn new(program: &'p Program, memory: Memory<'p>, options: &ExecOptions) -> Self {
        Interpreter {
            program,
            memory,
            findings: Findings::default(),
            prints: Vec::new(),
            registers: Vec::new(),
            engine_state: FxHashMap::default(),
            node: None,
            loops: Vec::new(),
            steps: 0,
            step_limit: options.step_limit,
            dying: Vec::new(),
            dead: 0,
            renewed: FxHashMap::default(),
            scratch: super::rows::Scratch::default(),
            tiles: Default::default(),
        }
    }

    /// Runs one core's stream.
    pub(super) fn core(
        &mut self,
        core: u32,
        stream: &'p [Node],
        events: &mut Vec<Event>,
    ) -> Result<(), Box<Diagnostic>> {
        self.registers = vec![None; self.program.registers as usize];
        self.engine_state.clear();
        self.loops.clear();
        let lifetimes = &self.memory.placement().lifetimes;
        self.dying = self
            .program
            .tensors
            .iter()
            .zip(lifetimes)
            .enumerate()
            .filter(|(_, (t, _))| t.space.is_on_chip() && t.core == core)
            .filter_map(|(i, (_, life))| life.map(|l| (l.last, TensorId(i as u32))))
            .collect();
        self.dying.sort_unstable();
        self.dead = 0;
        self.renewed.clear();
        find_renewed(self.program, stream, 0, &mut self.renewed);
        let mut position = 0;
        let outcome = self.block(stream, &mut position, events);
        outcome.map_err(|fault| match self.node {
            Some(node) => findings::fault(self.program, node, &self.loops, fault),
            None => Box::new(Diagnostic::error(fault.id, fault.message)),
        })
    }

    fn block(&mut self, nodes: &'p [Node], position: &mut u32, events: &mut Vec<Event>) -> Result<(), Fault> {
        let mut footprint = Footprint::default();
        for node in nodes {
            let at = NodeIndex(*position);
            *position += 1;
            self.node = Some(node);
            if !self.loops.is_empty() {
                self.steps += 1;
                if self.steps > self.step_limit {
                    return Err(Fault::new(
                        "step-limit",
                        format!(
                            "{} statements have been executed inside dynamic loops, the limit is {}: the loop does not seem to end",
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
                    let resolved = self.resolved(&footprint)?;
                    inst.execute(self)?;
                    events.push(Event { node: at, kind: EventKind::Inst { resolved } });
                }
                NodeKind::For { variable, lower, upper, step, body } => {
                    let (lower, upper) = (self.bound(*lower), self.bound(*upper));
                    events.push(Event { node: at, kind: EventKind::LoopEnter });
                    self.loops.push((node.loc, 0));
                    let mut value = lower;
                    let mut iteration = 0;
                    while value < upper {
                        self.set(*variable, value as i32);
                        self.iterate(at, iteration, body, events)?;
                        value += (*step).max(1);
                        iteration += 1;
                    }
                    self.loops.pop();
                    *position += size(body);
                    events.push(Event { node: at, kind: EventKind::LoopExit });
                }
                NodeKind::While { condition, body } => {
                    events.push(Event { node: at, kind: EventKind::LoopEnter });
                    self.loops.push((node.loc, 0));
                    let mut iteration = 0;
                    while self.get(*condition) != 0 {
                        self.iterate(at, iteration, body, events)?;
                        self.node = Some(node);
                        iteration += 1;
                    }
                    self.loops.pop();
                    *position += size(body);
                    events.push(Event { node: at, kind: EventKind::LoopExit });
                }
                NodeKind::If { condition, then, otherwise } => {
                    let taken = self.get(*condition) != 0;
                    events.push(Event { node: at, kind: EventKind::Branch(taken) });
                    let skipped = *position + size(then);
                    let mut inside = if taken { *position } else { skipped };
                    self.block(if taken { then } else { otherwise }, &mut inside, events)?;
                    *position = skipped + size(otherwise);
                }
            }
            if self.loops.is_empty() {
                self.bury(*position);
            }
        }
        Ok(())
    }

    fn iterate(
        &mut self,
        at: NodeIndex,
        iteration: u32,
        body: &'p [Node],
        events: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        events.push(Event { node: at, kind: EventKind::LoopIteration(iteration) });
        if let Some(last) = self.loops.last_mut() {
            last.1 = iteration;
        }
        // An empty body must reach the limit as well.
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
        if let Some(tensors) = self.renewed.get(&at.0) {
            for &t in tensors {
                self.memory.renew(t);
            }
        }
        let mut position = at.0 + 1;
        self.block(body, &mut position, events)
    }

    /// Gives back the buffers of tensors that were last used before `position`.
    fn bury(&mut self, position: u32) {
        while let Some(&(last, tensor)) = self.dying.get(self.dead)
            && last < position
        {
            self.memory.release(tensor);
            self.dead += 1;
        }
    }

    fn bound(&mut self, bound: Bound) -> i64 {
        match bound {
            Bound::Static(v) => v,
            Bound::Register(r) => i64::from(self.get(r)),
        }
    }

    /// A register's value; 0 and a finding if it was never set.
    pub(super) fn get(&mut self, register: RegId) -> i32 {
        match self.registers.get(register.0 as usize).copied().flatten() {
            Some(value) => value,
            None => {
                if let Some(node) = self.node {
                    self.findings.unset_register(self.program, node, &self.loops, register);
                }
                0
            }
        }
    }

    /// Sets a register.
    pub(super) fn set(&mut self, register: RegId, value: i32) {
        let i = register.0 as usize;
        if i >= self.registers.len() {
            self.registers.resize(i + 1, None);
        }
        self.registers[i] = Some(value);
    }

    /// The outputs, after the last core has ended.
    pub(super) fn outputs(&mut self) -> Vec<HostTensor> {
        let program = self.program;
        let mut out = Vec::with_capacity(program.outputs.len());
        for (i, output) in program.outputs.iter().enumerate() {
            let t = program.tensor(output.tensor);
            let again = program.outputs[i + 1..].iter().any(|o| o.tensor == output.tensor);
            let (data, missing) = self.memory.unload(output.tensor, again);
            if missing > 0 {
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

    pub(super) fn into_messages(self) -> (Vec<Diagnostic>, Vec<String>) {
        (self.findings.list, self.prints)
    }
}

/// Number of statements, those inside others included.
pub(super) fn size(nodes: &[Node]) -> u32 {
    nodes
        .iter()
        .map(|n| {
            1 + match &n.kind {
                NodeKind::Inst(_) => 0,
                NodeKind::For { body, .. } | NodeKind::While { body, .. } => size(body),
                NodeKind::If { then, otherwise, .. } => size(then) + size(otherwise),
            }
        })
        .sum()
}

/// Finds the PSUM tensors that only one dynamic loop uses, by the position of the innermost such loop: such a tensor is made in the
/// body, anew in each iteration, and so the first matmul of an iteration overwrites it.
fn find_renewed(program: &Program, stream: &[Node], start: u32, out: &mut FxHashMap<u32, Vec<TensorId>>) {
    /// The loops around the uses of a tensor, outermost first, as far as all uses share them.
    fn walk(nodes: &[Node], position: &mut u32, path: &mut Vec<u32>, common: &mut FxHashMap<TensorId, Vec<u32>>) {
        let mut footprint = Footprint::default();
        for node in nodes {
            let at = *position;
            *position += 1;
            match &node.kind {
                NodeKind::Inst(inst) => {
                    footprint.clear();
                    inst.footprint(&mut footprint);
                    for view in footprint.reads.iter().chain(&footprint.writes).filter(|v| v.space == Space::Psum) {
                        let shared = common.entry(view.tensor).or_insert_with(|| path.clone());
                        let n = shared.iter().zip(path.iter()).take_while(|(a, b)| a == b).count();
                        shared.truncate(n);
                    }
                }
                NodeKind::For { body, .. } | NodeKind::While { body, .. } => {
                    path.push(at);
                    walk(body, position, path, common);
                    path.pop();
                }
                NodeKind::If { then, otherwise, .. } => {
                    walk(then, position, path, common);
                    walk(otherwise, position, path, common);
                }
            }
        }
    }
    let dynamic = |n: &Node| !matches!(n.kind, NodeKind::Inst(_));
    if !stream.iter().any(dynamic) {
        return;
    }
    let mut common = FxHashMap::default();
    let mut position = start;
    walk(stream, &mut position, &mut Vec::new(), &mut common);
    for i in 0..program.tensors.len() {
        let id = TensorId(i as u32);
        if let Some(&innermost) = common.get(&id).and_then(|path| path.last()) {
            out.entry(innermost).or_default().push(id);
        }
    }
}
