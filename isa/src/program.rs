//! The compiled kernel: tensors, registers and a structured instruction stream per core.

use std::sync::Arc;

use crate::arch::{Arch, Target};
use crate::ids::{Loc, RegId, TagId, TensorId, TrailId};
use crate::inst::Inst;
use crate::machine::Context;
use crate::tensor::Tensor;
use crate::violation::Violation;

/// The unrolled loop iterations and inlined calls through which the specialiser reached a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// The enclosing trail; `None` only for the root.
    pub parent: Option<TrailId>,
    /// The iteration or call.
    pub step: Step,
}

/// One step of a [`Trail`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The kernel body.
    Root,
    /// One iteration of an unrolled loop.
    Iteration {
        /// The loop variable's name.
        variable: Arc<str>,
        /// Its value, or the number of the iteration.
        value: i64,
        /// Whether `value` is the number of the iteration, counted from 0, because the variable is not an integer.
        is_count: bool,
        /// The loop statement.
        loc: Loc,
        /// The kernel declares the iterations independent (`nl.affine_range` of the older interface).
        independent: bool,
    },
    /// An inlined call.
    Call {
        /// The callee's name.
        function: Arc<str>,
        /// The call.
        loc: Loc,
    },
}

/// An instruction's name and ordering constraints from the kernel. Few instructions have one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tag {
    /// `name=`, or empty.
    pub name: Arc<str>,
    /// Instructions that must have completed earlier (`depends_on`).
    pub after: Vec<TagId>,
    /// Instructions that must have been issued earlier (`depends_on` with `kind=dependency.schedule`).
    pub issued_after: Vec<TagId>,
    /// Number of the enclosing `nl.no_reorder()` block: instructions of a block on the same queue are issued in program order.
    pub block: Option<u32>,
}

/// An input of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Parameter name (`name.0`, `name.key` for members of containers).
    pub name: Arc<str>,
    /// Its HBM tensor.
    pub tensor: TensorId,
}

/// A returned tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Name of the returned variable, else `output0`...
    pub name: Arc<str>,
    /// Its HBM tensor (may be an input that is written in place).
    pub tensor: TensorId,
}

/// A compiled kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The kernel's name.
    pub name: Arc<str>,
    /// The target generation.
    pub target: Target,
    /// Source files, with the user's spelling.
    pub files: Vec<Arc<str>>,
    /// All storage.
    pub tensors: Vec<Tensor>,
    /// Number of virtual registers; ids are below it.
    pub registers: u32,
    /// Inputs, in parameter order.
    pub inputs: Vec<Input>,
    /// Outputs, in return order.
    pub outputs: Vec<Output>,
    /// Loop iterations and calls; entry 0 is the root.
    pub trails: Vec<Trail>,
    /// Names of instructions and the order requested between them.
    pub tags: Vec<Tag>,
    /// One instruction stream per core (the logical core's size, 1 or 2).
    pub cores: Vec<Vec<Node>>,
}

impl Program {
    /// The tensor with this id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0 as usize]
    }

    /// By tensor: whether it is an argument or a result.
    pub fn visible(&self) -> Vec<bool> {
        let mut visible = vec![false; self.tensors.len()];
        let tensors = self.inputs.iter().map(|i| i.tensor).chain(self.outputs.iter().map(|o| o.tensor));
        for t in tensors {
            if let Some(v) = visible.get_mut(t.0 as usize) {
                *v = true;
            }
        }
        visible
    }

    /// The name that the kernel gave a statement, or an empty string.
    pub fn name_of(&self, node: &Node) -> &str {
        node.tag.map_or("", |t| &*self.tags[t.0 as usize].name)
    }

    /// Calls `visit` for each statement of all cores, outer before inner, in program order.
    pub fn visit(&self, visit: &mut dyn FnMut(&Node)) {
        for core in &self.cores {
            visit_stream(core, visit);
        }
    }

    /// Checks each instruction against the target's rules and returns the violations with location and trail.
    pub fn validate(&self) -> Vec<(Violation, Loc, TrailId)> {
        let context = Context { arch: Arch::of(self.target), tensors: &self.tensors };
        let mut found = Vec::new();
        self.visit(&mut |node| {
            if let NodeKind::Inst(inst) = &node.kind
                && let Err(violation) = inst.validate(&context)
            {
                found.push((violation, node.loc, node.trail));
            }
        });
        found
    }

    /// The iterations around a place, outermost first, as `(variable, value)`.
    pub fn iterations(&self, trail: TrailId) -> Vec<(&str, i64)> {
        self.iteration_steps(trail)
            .into_iter()
            .filter_map(|step| match step {
                Step::Iteration { variable, value, .. } => Some((&**variable, *value)),
                _ => None,
            })
            .collect()
    }

    /// The iterations around a place, outermost first.
    pub fn iteration_steps(&self, trail: TrailId) -> Vec<&Step> {
        let mut out = Vec::new();
        let mut at = Some(trail);
        while let Some(id) = at {
            let t = &self.trails[id.0 as usize];
            if let Step::Iteration { .. } = &t.step {
                out.push(&t.step);
            }
            at = t.parent;
        }
        out.reverse();
        out
    }
}

/// A loop bound or register operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Known at compile time.
    Static(i64),
    /// Read from a register when the loop starts.
    Register(RegId),
}

/// One statement of a core's stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The instruction or control statement.
    pub kind: NodeKind,
    /// Source location.
    pub loc: Loc,
    /// Enclosing iterations and calls.
    pub trail: TrailId,
    /// Name and ordering constraints, if the kernel specifies any; instructions only.
    pub tag: Option<TagId>,
}

// A long program has millions of them (docs/performance.md, memory of an instruction).
const _: () = assert!(size_of::<Node>() <= 48);

/// Kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// An instruction.
    Inst(Inst),
    /// A dynamic loop or branch. Boxed: nearly all statements of a long program are instructions, and this halves their size.
    Control(Box<Control>),
}

impl From<Control> for NodeKind {
    fn from(control: Control) -> Self {
        NodeKind::Control(Box::new(control))
    }
}

/// A dynamic loop or branch.
#[derive(Debug, Clone, PartialEq)]
pub enum Control {
    /// `for variable in range(lower, upper, step)` on the device; `step` is positive.
    For {
        /// The loop variable: frozen inside the body.
        variable: RegId,
        /// First value.
        lower: Bound,
        /// End, exclusive.
        upper: Bound,
        /// Positive step.
        step: i64,
        /// The body.
        body: Vec<Node>,
    },
    /// `while condition != 0` on the device, tested before each iteration.
    While {
        /// The register tested.
        condition: RegId,
        /// The body.
        body: Vec<Node>,
    },
    /// `if condition != 0` on the device.
    If {
        /// The register tested.
        condition: RegId,
        /// Taken when it is not 0.
        then: Vec<Node>,
        /// Taken when it is 0.
        otherwise: Vec<Node>,
    },
}

impl NodeKind {
    /// The dynamic loop or branch; `None` for an instruction.
    pub fn control(&self) -> Option<&Control> {
        match self {
            NodeKind::Inst(_) => None,
            NodeKind::Control(control) => Some(control),
        }
    }
}

impl Control {
    /// The nested statements, in program order; only a branch has a second block.
    pub fn blocks(&self) -> [&[Node]; 2] {
        match self {
            Control::For { body, .. } | Control::While { body, .. } => [body, &[]],
            Control::If { then, otherwise, .. } => [then, otherwise],
        }
    }

    /// As [`Self::blocks`], mutably.
    pub fn blocks_mut(&mut self) -> [&mut [Node]; 2] {
        match self {
            Control::For { body, .. } | Control::While { body, .. } => [body, &mut []],
            Control::If { then, otherwise, .. } => [then, otherwise],
        }
    }
}

/// An entry in the flat index of a core's stream.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'p> {
    /// The statement.
    pub node: &'p Node,
    /// Position after the last nested statement; for an instruction, the next position.
    pub end: u32,
    /// For a branch, the position of the first statement taken when the condition is 0; else `end`.
    pub otherwise: u32,
    /// Position of the innermost enclosing loop or branch.
    pub parent: Option<u32>,
}

/// Visits the statements of a stream in program order, outer before inner.
pub fn visit_stream<'p>(stream: &'p [Node], visit: &mut dyn FnMut(&'p Node)) {
    for node in stream {
        visit(node);
        if let NodeKind::Control(control) = &node.kind {
            match &**control {
                Control::For { body, .. } | Control::While { body, .. } => visit_stream(body, visit),
                Control::If { then, otherwise, .. } => {
                    visit_stream(then, visit);
                    visit_stream(otherwise, visit);
                }
            }
        }
    }
}

/// The statements of a stream in program order, outer before inner, by position. A stream without loops and branches needs no list of them.
#[derive(Debug, Clone)]
pub struct Statements<'p>(List<'p>);

#[derive(Debug, Clone)]
enum List<'p> {
    Flat(&'p [Node]),
    Nested(Vec<Statement<'p>>),
}

impl Default for Statements<'_> {
    fn default() -> Self {
        Statements(List::Flat(&[]))
    }
}

impl<'p> Statements<'p> {
    /// The statements of `stream`.
    pub fn of(stream: &'p [Node]) -> Self {
        if stream.iter().all(|node| matches!(node.kind, NodeKind::Inst(_))) {
            return Statements(List::Flat(stream));
        }
        let mut list = Vec::with_capacity(stream.len());
        add(stream, None, &mut list);
        Statements(List::Nested(list))
    }

    /// Whether all statements are instructions.
    pub fn is_straight_line(&self) -> bool {
        matches!(self.0, List::Flat(_))
    }

    /// Number of statements, nested ones included.
    pub fn len(&self) -> u32 {
        match &self.0 {
            List::Flat(nodes) => nodes.len() as u32,
            List::Nested(list) => list.len() as u32,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statement at a position, if there is one.
    pub fn get(&self, at: u32) -> Option<Statement<'p>> {
        match &self.0 {
            List::Flat(nodes) => {
                let node = nodes.get(at as usize)?;
                Some(Statement { node, end: at + 1, otherwise: at + 1, parent: None })
            }
            List::Nested(list) => list.get(at as usize).copied(),
        }
    }

    /// The node of the statement at a position, if there is one.
    pub fn node(&self, at: u32) -> Option<&'p Node> {
        self.get(at).map(|statement| statement.node)
    }

    /// The statements at these positions.
    pub fn range(&self, positions: std::ops::Range<u32>) -> impl DoubleEndedIterator<Item = Statement<'p>> + '_ {
        positions.filter_map(|at| self.get(at))
    }

    /// All statements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Statement<'p>> + '_ {
        self.range(0..self.len())
    }

    /// The positions of the loops and branches around a statement, innermost first.
    pub fn around(&self, at: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |at: u32| self.get(at).and_then(|s| s.parent);
        std::iter::successors(parent(at), move |&at| parent(at))
    }
}

/// Appends the statements of a block.
fn add<'p>(nodes: &'p [Node], parent: Option<u32>, out: &mut Vec<Statement<'p>>) {
    for node in nodes {
        let at = out.len();
        out.push(Statement { node, end: 0, otherwise: 0, parent });
        let inside = Some(at as u32);
        let mut otherwise = None;
        match &node.kind {
            NodeKind::Inst(_) => {}
            NodeKind::Control(control) => match &**control {
                Control::For { body, .. } | Control::While { body, .. } => add(body, inside, out),
                Control::If { then, otherwise: other, .. } => {
                    add(then, inside, out);
                    otherwise = Some(out.len() as u32);
                    add(other, inside, out);
                }
            },
        }
        let end = out.len() as u32;
        (out[at].end, out[at].otherwise) = (end, otherwise.unwrap_or(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_the_position_after_what_they_hold() {
        let node =
            |control: Control| Node { kind: control.into(), loc: Loc::default(), trail: TrailId::ROOT, tag: None };
        let branch = |then, otherwise| node(Control::If { condition: RegId(0), then, otherwise });
        let repeat = |body| node(Control::While { condition: RegId(0), body });
        let empty = || branch(Vec::new(), Vec::new());
        let stream = [repeat(vec![empty(), branch(vec![empty()], vec![empty(), empty()])]), empty()];
        let all = Statements::of(&stream);
        let mut visited = Vec::new();
        visit_stream(&stream, &mut |node| visited.push(node));
        assert!(all.iter().map(|s| s.node).zip(&visited).all(|(a, &b)| std::ptr::eq(a, b)));
        assert_eq!(all.len() as usize, visited.len());
        let ends: Vec<(u32, u32)> = all.iter().map(|s| (s.otherwise, s.end)).collect();
        assert_eq!(ends, [(6, 6), (2, 2), (4, 6), (4, 4), (5, 5), (6, 6), (7, 7)]);
        let outer = |at| all.around(at).collect::<Vec<_>>();
        assert_eq!((outer(0), outer(1), outer(5), outer(6)), (vec![], vec![0], vec![2, 0], vec![]));
    }
}
