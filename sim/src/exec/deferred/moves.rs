//! Moves of elements deferred to the matmuls that use them: loads from HBM, transposes, and copies of the results of both.
//!
//! A matmul packs its operand, which may be a part of a tile, directly from the source of the move. A tile whose lifetime ends before the moves are computed is never filled.
//! Other loaded tiles are filled when something other than a matmul uses them, or when the source of the load is about to change.

use std::mem::take;

use super::run::Run;
use super::source::{Overlap, Source, overlap};
use super::{Deferred, Pending};
use crate::exec::interpreter::Interpreter;
use crate::memory::Memory;
use crate::memory::access::Access;

/// Maximum number of deferred moves.
const MAX_PENDING: usize = 128;

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
    /// Location of an operand's elements while the moves are deferred; none if only some of them are in the source of one move.
    pub(super) fn source(&self, operand: &Access) -> Option<Source> {
        for m in self.0.iter().rev().filter(|m| m.to.storage == operand.storage) {
            match overlap(operand, &m.to) {
                Overlap::Nothing => {}
                Overlap::All { rows, columns } => return m.from.part(rows, columns),
                Overlap::Some => return None,
            }
        }
        Some(Source::of(operand))
    }

    /// Whether a deferred move writes to the storage of the access.
    fn write_to(&self, access: &Access) -> bool {
        self.0.iter().any(|m| m.to.storage == access.storage)
    }

    /// Whether a deferred move reads from the storage of the access.
    fn read_from(&self, access: &Access) -> bool {
        self.0.iter().any(|m| m.from.access.storage == access.storage)
    }

    /// Whether all moves read from HBM, whose tensors are never released.
    fn all_read_hbm(&self, memory: &Memory<'_>) -> bool {
        self.0.iter().all(|m| memory.storages[m.from.access.storage].pitch == 0)
    }

    /// Removes the moves to these storages.
    pub(super) fn remove(&mut self, storages: &[usize]) {
        self.0.retain(|m| !storages.contains(&m.to.storage));
    }

    fn admit(&self, to: &Access) -> bool {
        self.0.len() < MAX_PENDING && !self.read_from(to)
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

    /// Performs the moves.
    fn perform(&self, memory: &mut Memory<'_>) {
        for Move { to, from } in &self.0 {
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

    /// Location of an operand's elements while moves are deferred; none if only some of them are in the source of a move.
    pub(super) fn pending_source(&self, operand: &Access) -> Option<Source> {
        match self.pending_moves() {
            Some(moves) if moves.write_to(operand) => moves.source(operand),
            _ => self.deferred.unfilled.source(operand),
        }
    }

    /// Performs moves on which no matmul depends.
    pub(super) fn perform_moves(&mut self, mut moves: Moves) {
        moves.remove(&self.dead_storages());
        moves.perform(&mut self.deferred.memory);
        self.release_dead();
    }

    /// Before a chain of matmuls is computed: leaves loaded tiles unfilled, because further matmuls may use them, and performs other moves. The `later`
    /// moves remain pending.
    pub(super) fn leave_unfilled(&mut self, moves: Moves, later: &Moves) {
        let Deferred { memory, unfilled, .. } = &mut self.deferred;
        let leave = moves.all_read_hbm(memory) && !moves.0.iter().any(|m| later.write_to(&m.to));
        if leave && unfilled.len() + moves.len() <= MAX_PENDING {
            unfilled.0.extend(moves.0);
        } else {
            moves.perform(memory);
        }
    }

    /// Fills the tiles that are still unfilled.
    pub(super) fn fill_tiles(&mut self) {
        let mut moves = take(&mut self.deferred.unfilled);
        if moves.len() > 0 {
            moves.remove(&self.dead_storages());
            moves.perform(&mut self.deferred.memory);
        }
    }

    /// Before an instruction that accesses these operands: fills the tiles that are still unfilled if one is among them, or is to be filled from
    /// bytes that the instruction writes.
    pub(super) fn fill_tiles_before(&mut self, to: &[Access], from: &[Access]) {
        let unfilled = &self.deferred.unfilled;
        let uses = |a: &Access| unfilled.write_to(a);
        if to.iter().any(|a| uses(a) || unfilled.read_from(a)) || from.iter().any(uses) {
            self.fill_tiles();
        }
    }

    /// Before a matmul to `to`: performs the deferred moves if any of them is to the same storage or from it. The first matmul of a sum may zero some
    /// elements at once.
    pub(super) fn perform_moves_at(&mut self, to: &Access) {
        self.fill_tiles_before(std::slice::from_ref(to), &[]);
        if self.pending_moves().is_some_and(|moves| moves.write_to(to) || moves.read_from(to)) {
            self.flush();
        }
    }

    /// Before the buffer of a storage is released: its tile need not be filled.
    pub(super) fn drop_unfilled(&mut self, storage: usize) {
        self.deferred.unfilled.remove(&[storage]);
    }

    /// Turns a pending run of nothing but loads into moves, and computes any other pending run.
    pub(super) fn defer_loads_as_moves(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Rows(run) if run.only_loads(&self.deferred.memory) => {
                self.deferred.pending = Pending::Moves(Moves::of_run(run));
            }
            Pending::Rows(run) => {
                let dead = self.dead_storages();
                self.compute_run(run, &dead);
            }
            pending => self.deferred.pending = pending,
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
        self.fill_tiles_before(std::slice::from_ref(to), &[]);
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
