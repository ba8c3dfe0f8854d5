//! Tensors that a dynamic loop creates anew in each iteration.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nki_isa::inst::Footprint;
use nki_isa::program::{Control, NodeKind, Statements};
use nki_isa::{Program, Space, TensorId};
use rustc_hash::FxHashMap;

use crate::memory::account::Account;

/// The tensors of a core that are renewed, by the position of the loop.
#[derive(Debug, Default)]
pub(super) struct LoopLocalTensors {
    /// On-chip tensors declared in the body: values written by an earlier iteration are not theirs.
    made: FxHashMap<u32, Vec<TensorId>>,
    /// PSUM tensors used only by this loop: the first matmul of an iteration overwrites them.
    sums: FxHashMap<u32, Vec<TensorId>>,
}

impl LoopLocalTensors {
    /// Collects the tensors from the statements of a core.
    pub(super) fn new(program: &Program, statements: &Statements<'_>) -> Self {
        let mut out = Self::default();
        if statements.is_straight_line() {
            return out;
        }
        for (id, path) in common_loops(statements) {
            let tensor = program.tensor(id);
            // A tensor with an explicit address keeps its content.
            let own = tensor.address.is_none() && tensor.data.is_none();
            if let Some(&at) = (tensor.loops as usize).checked_sub(1).and_then(|n| path.get(n)).filter(|_| own) {
                out.made.entry(at).or_default().push(id);
            }
            if let Some(&at) = path.last().filter(|_| tensor.space == Space::Psum) {
                out.sums.entry(at).or_default().push(id);
            }
        }
        out
    }

    /// Starts an iteration of the loop at a position.
    pub(super) fn begin(&self, at: u32, account: &mut Account<'_, '_>) {
        self.made.get(&at).into_iter().flatten().for_each(|&tensor| account.renew(tensor));
        self.sums.get(&at).into_iter().flatten().for_each(|&tensor| account.begin_sums(tensor));
    }
}

/// The common loops around all uses of each on-chip tensor, outermost first.
pub(crate) fn common_loops(statements: &Statements<'_>) -> BTreeMap<TensorId, Vec<u32>> {
    let mut common: BTreeMap<TensorId, Vec<u32>> = BTreeMap::new();
    let mut footprint = Footprint::default();
    for (at, statement) in (0..).zip(statements.iter()) {
        let NodeKind::Inst(inst) = &statement.node.kind else { continue };
        footprint.clear();
        inst.footprint(&mut footprint);
        for view in footprint.reads.iter().chain(&footprint.writes).filter(|v| v.space.is_on_chip()) {
            let is_loop = |at: &u32| {
                let node = statements.node(*at);
                !matches!(node.and_then(|n| n.kind.control()), Some(Control::If { .. }))
            };
            let mut path: Vec<u32> = statements.around(at).filter(is_loop).collect();
            path.reverse();
            match common.entry(view.tensor) {
                Entry::Vacant(entry) => {
                    entry.insert(path);
                }
                Entry::Occupied(mut entry) => {
                    let n = entry.get().iter().zip(&path).take_while(|(a, b)| a == b).count();
                    entry.get_mut().truncate(n);
                }
            }
        }
    }
    common
}
