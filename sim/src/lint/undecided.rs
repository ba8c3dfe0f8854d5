//! Decisions that depend on values: which statements are executed, and which elements they access. Both may differ in another run.

use std::ops::Range;

use nki_isa::inst::dma::skips_out_of_bounds;
use nki_isa::program::{Bound, Control, Node, Statements};
use nki_isa::{Index, Inst, Program, RegId, View};
use rustc_hash::FxHashSet;

use crate::trace::NodeIndex;

/// Positions of statements: the first, and the position after the last.
type Block = (u32, u32);

const STREAM: Block = (0, u32::MAX);

/// One core's stream.
struct OfCore {
    /// By statement: the innermost enclosing block whose execution depends on values. Empty if the stream has neither loops nor branches.
    blocks: Vec<Block>,
    /// The variables of loops whose bounds are known.
    known: FxHashSet<RegId>,
}

/// The value-dependent decisions in a program.
pub(super) struct Undecided {
    cores: Vec<OfCore>,
}

impl Undecided {
    pub(super) fn new(program: &Program) -> Self {
        Undecided { cores: program.cores.iter().map(|stream| OfCore::new(stream)).collect() }
    }

    /// The statements whose execution implies that of statement `at`, in the same or a later iteration of a loop: those of the innermost
    /// enclosing block whose execution depends on values.
    pub(super) fn implying(&self, core: u32, at: NodeIndex) -> Range<u32> {
        let block = self.cores.get(core as usize).and_then(|c| c.blocks.get(at.0 as usize)).copied();
        let (begin, end) = block.unwrap_or(STREAM);
        begin..end
    }

    /// Whether the view's elements depend on values.
    pub(super) fn is_address(&self, core: u32, view: &View) -> bool {
        match view.indirect.as_deref().map(|indirect| &indirect.index) {
            None => false,
            Some(Index::Register(register)) => {
                !self.cores.get(core as usize).is_some_and(|c| c.known.contains(register))
            }
            Some(Index::Scalar(_) | Index::Vector(_) | Index::Columns(_)) => true,
        }
    }

    /// Whether values decide if the instruction skips accesses.
    pub(super) fn is_extent(&self, core: u32, inst: &Inst) -> bool {
        let mut indexed = false;
        inst.each_view(&mut |_, view| indexed |= self.is_address(core, view));
        indexed && skips_out_of_bounds(inst)
    }
}

impl OfCore {
    fn new(stream: &[Node]) -> Self {
        let mut known = FxHashSet::default();
        let statements = Statements::of(stream);
        if statements.is_straight_line() {
            return OfCore { blocks: Vec::new(), known };
        }
        let mut blocks: Vec<Block> = Vec::with_capacity(statements.len() as usize);
        for (at, statement) in (0..).zip(statements.iter()) {
            if let Some(Control::For { variable, lower: Bound::Static(_), upper: Bound::Static(_), .. }) =
                statement.node.kind.control()
            {
                known.insert(*variable);
            }
            let parent = statement.parent.and_then(|p| Some((p, statements.get(p)?)));
            let block = parent.map_or(STREAM, |(p, parent)| match parent.node.kind.control() {
                Some(Control::For { lower: Bound::Static(_), upper: Bound::Static(_), .. }) | None => {
                    blocks.get(p as usize).copied().unwrap_or(STREAM)
                }
                Some(Control::For { .. } | Control::While { .. }) => (p + 1, parent.end),
                Some(Control::If { .. }) if at < parent.otherwise => (p + 1, parent.otherwise),
                Some(Control::If { .. }) => (parent.otherwise, parent.end),
            });
            blocks.push(block);
        }
        OfCore { blocks, known }
    }
}

#[cfg(test)]
mod tests {
    use nki_isa::DType;
    use nki_isa::program::NodeKind;

    use super::*;
    use crate::testing::{Builder, dma};

    #[test]
    fn a_statement_implies_those_that_the_same_values_lead_to() {
        let mut b = Builder::new();
        let (x, y) = (b.input("x", &[8, 64], DType::F32), b.output("y", &[8, 64], DType::F32));
        let copy = dma(b.whole(y), b.whole(x));
        let mut node = |kind: NodeKind| b.node(kind);
        let inst = || NodeKind::Inst(copy.clone());
        let known = Control::For {
            variable: RegId(0),
            lower: Bound::Static(0),
            upper: Bound::Static(3),
            step: 1,
            body: vec![node(inst())],
        };
        let branch = Control::If { condition: RegId(3), then: vec![node(inst())], otherwise: vec![node(inst())] };
        let body = vec![node(branch.into()), node(inst())];
        let unknown = Control::For {
            variable: RegId(1),
            lower: Bound::Static(0),
            upper: Bound::Register(RegId(2)),
            step: 1,
            body,
        };
        let stream = vec![node(inst()), node(known.into()), node(unknown.into())];
        // 0 copy, 1 known loop, 2 its copy, 3 unknown loop, 4 branch, 5 then, 6 otherwise, 7 copy after the branch
        b.program.cores[0] = stream;
        let undecided = Undecided::new(&b.program);
        let leads = |second: u32| undecided.implying(0, NodeIndex(second));
        for (second, range) in
            [(0, 0..u32::MAX), (2, 0..u32::MAX), (4, 4..8), (5, 5..6), (6, 6..7), (7, 4..8), (99, 0..u32::MAX)]
        {
            assert_eq!(leads(second), range, "{second}");
        }
        assert_eq!(undecided.cores[0].known.iter().collect::<Vec<_>>(), [&RegId(0)]);
    }
}
