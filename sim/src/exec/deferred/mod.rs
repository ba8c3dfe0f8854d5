//! The memory of a run, and the instructions not yet computed on it.
//!
//! An instruction is checked, traced and recorded as written in program order. Its values may be computed later, together with those of others:
//! matmuls that add to one destination are a [`chain`], with the [`moves`] between them and before them; partition-wise instructions are a [`run`].
//! At most one of the three is pending at a time.
//!
//! The bytes of memory are accessible only through [`Interpreter::memory`], which first computes pending instructions and fills tiles; the fields of
//! [`Deferred`] are private to this module. Metadata (locations of tensors, written bytes) is always up to date: [`Deferred::account`].

mod chain;
#[cfg(test)]
mod move_tests;
mod moves;
mod packs;
mod plan;
mod run;
mod source;
#[cfg(test)]
mod tests;

use std::mem::take;

use crate::memory::Memory;
use crate::memory::access::{Access, Accumulation};
use crate::memory::account::Account;
use crate::place::Placement;
use chain::Chain;
use moves::Moves;
use packs::Packs;
use run::Run;

pub(super) use run::{BLOCK, StepKind, apart};
pub(super) use source::Source;

use super::interpreter::Interpreter;

/// Memory with the instructions pending on it.
pub(super) struct Deferred<'p> {
    memory: Memory<'p>,
    pending: Pending<'p>,
    /// Loads of earlier chains whose tiles only matmuls have used. Pending instructions access neither these tiles, except as operands of matmuls, nor
    /// write to the sources of the loads.
    unfilled: Moves,
    packs: Packs,
}

/// Instructions that are not computed yet.
#[derive(Default)]
enum Pending<'p> {
    #[default]
    Nothing,
    Moves(Moves),
    Matmuls(Box<Chain<'p>>),
    Rows(Run<'p>),
}

impl<'p> Deferred<'p> {
    pub(super) fn new(memory: Memory<'p>) -> Self {
        Deferred { memory, pending: Pending::Nothing, unfilled: Moves::default(), packs: Packs::default() }
    }

    /// The metadata of memory, without its bytes.
    pub(super) fn account(&mut self) -> Account<'_, 'p> {
        self.memory.account()
    }

    /// See [`nki_isa::Machine::begin_accumulate`]. Only a sum accesses bytes, so only a sum flushes pending instructions.
    pub(super) fn begin_accumulate(&mut self, to: &Access, mode: Option<bool>) -> Accumulation {
        debug_assert!(mode == Some(false) || matches!(self.pending, Pending::Nothing), "bytes are about to be read");
        self.memory.begin_accumulate(to, mode)
    }

    /// The automatic placement of tensors.
    pub(super) fn placement(&self) -> &'p Placement {
        self.memory.placement()
    }
}

impl<'p> Interpreter<'p> {
    /// Memory, after all pending instructions have been computed.
    pub(super) fn memory(&mut self) -> &mut Memory<'p> {
        self.flush();
        &mut self.deferred.memory
    }

    /// Memory after a chain of matmuls has been computed: the results and the sources of its operands. Tiles may be unfilled.
    pub(super) fn memory_of_products(&self) -> &Memory<'p> {
        debug_assert!(matches!(self.deferred.pending, Pending::Nothing), "the chain is not computed yet");
        &self.deferred.memory
    }

    /// Computes pending instructions and fills all tiles. Instructions that are not deferred flush first, so that findings are in program order.
    pub(super) fn flush(&mut self) {
        self.compute_pending();
        self.fill_tiles();
    }

    /// Computes pending instructions.
    fn compute_pending(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Nothing => {}
            Pending::Moves(moves) => self.perform_moves(moves),
            Pending::Matmuls(chain) => self.multiply_chain(*chain, Moves::default()),
            Pending::Rows(run) => self.compute_run(run, &[]),
        }
    }

    /// Computes pending moves and matmuls: the next instruction may join a run, but neither of these.
    pub(super) fn flush_matmuls(&mut self) {
        if matches!(self.deferred.pending, Pending::Moves(_) | Pending::Matmuls(_)) {
            self.compute_pending();
        }
    }

    /// Releases the buffers of tensors whose lifetime ends before the current statement, unless pending instructions may still use them.
    ///
    /// This is valid in dynamic loops too: a tensor that a further iteration needs lives to the end of the loop.
    pub(super) fn release_dead(&mut self) {
        let inspects = self.observer.as_ref().is_some_and(|o| o.inspects());
        if inspects || !matches!(self.deferred.pending, Pending::Nothing) || !self.core.posted.is_empty() {
            return;
        }
        while let Some(tensor) = self.core.next_dead() {
            if let Some(storage) = self.deferred.memory.own_storage(tensor) {
                self.drop_unfilled(storage);
            }
            self.deferred.memory.release(tensor);
        }
    }

    /// The storages used only by tensors whose lifetime ends before the current statement, so that their bytes are never read again.
    fn dead_storages(&self) -> Vec<usize> {
        let inspects = self.observer.as_ref().is_some_and(|o| o.inspects());
        if inspects || !self.core.loops.is_empty() || !self.core.posted.is_empty() {
            return Vec::new();
        }
        let memory = &self.deferred.memory;
        self.core.all_dead().filter_map(|tensor| memory.own_storage(tensor)).collect()
    }

    /// Before a statement that loads from HBM: ends a run that has stored a result there, and releases the tensors that only the run used. The load
    /// then reuses their buffers.
    pub(super) fn end_stored_run(&mut self) {
        if matches!(&self.deferred.pending, Pending::Rows(run) if run.has_stored()) {
            self.flush_without_dead();
        }
    }

    /// Computes pending instructions. Rows of tensors whose lifetime ends before the current statement exist only while a run uses them.
    pub(super) fn flush_without_dead(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Rows(run) => {
                let dead = self.dead_storages();
                self.compute_run(run, &dead);
            }
            pending => {
                self.deferred.pending = pending;
                self.flush();
            }
        }
    }
}
