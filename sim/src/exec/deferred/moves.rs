//! Moves of elements deferred to the matmuls that use them: loads from HBM, transposes, and copies of the results of both.
//!
//! A matmul packs its operand directly from the source of the move. A tile whose lifetime ends before the moves are computed is never filled.

use std::mem::take;

use super::Pending;
use super::run::Run;
use crate::exec::interpreter::Interpreter;
use crate::memory::Memory;
use crate::memory::access::Access;

/// Maximum number of deferred moves.
const MAX_PENDING: usize = 128;

/// The location of a matrix's elements in memory.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Source {
    pub(in crate::exec) access: Access,
    /// Element `[i, j]` of the matrix is element `[j, i]` of the access.
    pub(in crate::exec) transposed: bool,
}

impl Source {
    /// The elements of an access, not transposed.
    pub(super) fn of(access: &Access) -> Self {
        Source { access: access.clone(), transposed: false }
    }

    /// Rows and columns of the matrix.
    pub(in crate::exec) fn shape(&self) -> (usize, usize) {
        let (rows, columns) = (self.access.rows, self.access.per_row);
        if self.transposed { (columns, rows) } else { (rows, columns) }
    }

    fn turned(self) -> Self {
        Source { transposed: !self.transposed, ..self }
    }
}

/// A deferred move: without conversion, from one storage to another.
#[derive(Debug)]
struct Move {
    to: Access,
    from: Source,
}

/// Deferred moves, in program order. None writes to the source of another.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<Move>);

impl Moves {
    /// Location of an operand's elements while the moves are deferred; none if only some of them are in the source of a move.
    pub(super) fn source(&self, operand: &Access) -> Option<Source> {
        match self.0.iter().rfind(|m| m.to.storage == operand.storage) {
            Some(last) => same_elements(&last.to, operand).then(|| last.from.clone()),
            None => Some(Source::of(operand)),
        }
    }

    /// Whether a deferred move writes to the storage of the access.
    fn write_to(&self, access: &Access) -> bool {
        self.0.iter().any(|m| m.to.storage == access.storage)
    }

    fn admit(&self, to: &Access) -> bool {
        self.0.len() < MAX_PENDING && self.0.iter().all(|m| m.from.access.storage != to.storage)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes and returns the moves from an index on.
    pub(super) fn split_off(&mut self, first: usize) -> Moves {
        Moves(self.0.split_off(first))
    }

    fn push(&mut self, to: Access, from: Source) {
        self.0.push(Move { to, from });
    }

    /// Performs the moves, except those to `dead` storages.
    pub(super) fn perform(&self, memory: &mut Memory<'_>, dead: &[usize]) {
        for Move { to, from } in self.0.iter().filter(|m| !dead.contains(&m.to.storage)) {
            if from.transposed {
                memory.transpose(to, &from.access);
            } else {
                memory.copy(to, &from.access);
            }
        }
    }

    /// The copies of a run of loads.
    pub(super) fn of_run(run: Run<'_>) -> Self {
        Moves(
            run.into_copies().map(|(to, from)| Move { to, from: Source { access: from, transposed: false } }).collect(),
        )
    }
}

/// Whether a copy is a load from HBM to a tile, without conversion.
pub(super) fn is_load(memory: &Memory<'_>, to: &Access, from: &Access) -> bool {
    let pitch = |a: &Access| memory.storages[a.storage].pitch;
    pitch(from) == 0 && pitch(to) > 0 && keeps_elements(to, from) && (to.rows, to.per_row) == (from.rows, from.per_row)
}

fn keeps_elements(to: &Access, from: &Access) -> bool {
    to.starts.is_none() && from.starts.is_none() && to.codec == from.codec && to.storage != from.storage
}

impl<'p> Interpreter<'p> {
    /// The pending moves, including those pending with a chain of matmuls.
    fn pending_moves(&self) -> Option<&Moves> {
        match &self.deferred.pending {
            Pending::Moves(moves) => Some(moves),
            Pending::Matmuls(chain) => Some(chain.moves()),
            _ => None,
        }
    }

    /// Whether a copy may be deferred: it is a load, or copies the destination of a deferred move.
    pub(in crate::exec) fn may_follow_moves(&self, to: &Access, from: &Access) -> bool {
        let Some(moves) = self.pending_moves() else { return false };
        let memory = &self.deferred.memory;
        let same = keeps_elements(to, from) && (to.rows, to.per_row) == (from.rows, from.per_row);
        let continues = same && moves.write_to(from) && memory.storages[to.storage].pitch > 0;
        continues || is_load(memory, to, from)
    }

    /// Defers a copy that may follow the pending moves, if there are any; returns whether that is possible.
    pub(super) fn copy_behind_moves(&mut self, to: &Access, from: &Access) -> bool {
        self.pending_source(from).is_some_and(|source| self.join_moves(to, source))
    }

    /// Location of an operand's elements while moves are pending; none if only some of them are in the source of a move.
    pub(super) fn pending_source(&self, operand: &Access) -> Option<Source> {
        match self.pending_moves() {
            Some(moves) => moves.source(operand),
            None => Some(Source::of(operand)),
        }
    }

    /// Turns a pending run of nothing but loads into moves, and computes any other pending run.
    pub(super) fn defer_loads_as_moves(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Rows(run) if run.only_loads(&self.deferred.memory) => {
                self.deferred.pending = Pending::Moves(Moves::of_run(run));
            }
            pending => {
                self.deferred.pending = pending;
                if matches!(self.deferred.pending, Pending::Rows(_)) {
                    self.flush();
                }
            }
        }
    }

    /// Defers a transpose of `from` to `to`; returns whether that is possible.
    pub(in crate::exec) fn defer_transpose(&mut self, to: &Access, from: &Access) -> bool {
        let fits = (to.rows, to.per_row) == (from.per_row, from.rows);
        let on_chip = self.deferred.memory.storages[to.storage].pitch > 0;
        if !fits || !on_chip || !keeps_elements(to, from) {
            return false;
        }
        self.defer_loads_as_moves();
        let source = self.pending_source(from);
        if source.is_some_and(|source| self.join_moves(to, source.turned())) {
            return true;
        }
        self.flush();
        self.deferred.pending = Pending::Moves(Moves::default());
        self.join_moves(to, Source::of(from).turned())
    }

    /// Adds a deferred move; returns whether that is possible: neither the destinations nor the operands of pending instructions may change.
    fn join_moves(&mut self, to: &Access, from: Source) -> bool {
        let moves = match &mut self.deferred.pending {
            Pending::Moves(moves) => moves,
            Pending::Matmuls(chain) if chain.admits(to, &from) => chain.moves_mut(),
            _ => return false,
        };
        let free = moves.admit(to) && from.access.storage != to.storage;
        if free {
            moves.push(to.clone(), from);
            self.deferred.memory.mark_written(to);
        }
        free
    }
}

/// Whether both access the same elements in the same order.
pub(super) fn same_elements(a: &Access, b: &Access) -> bool {
    a.starts.is_none()
        && b.starts.is_none()
        && (a.storage, a.codec, a.row, a.row_step, a.column, a.column_step, a.rows)
            == (b.storage, b.codec, b.row, b.row_step, b.column, b.column_step, b.rows)
        && a.inner == b.inner
}
