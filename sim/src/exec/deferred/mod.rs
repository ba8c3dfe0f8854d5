//! The memory of a run, and the instructions that are not computed on it yet.
//!
//! An instruction is checked, traced and recorded as written when its turn comes. Its values may be computed later, together with those of others:
//! matmuls that add to one destination are a [`chain`], with the [`moves`] between them and before them; partition-wise instructions are a [`run`].
//! One of the three at most waits at a time.
//!
//! The bytes of memory are reached through [`Interpreter::memory`] only, which computes what waits first; the fields of [`Deferred`] are private to this
//! module. What is known without bytes (where tensors are, what has been written) is always up to date: [`Deferred::account`].

mod chain;
#[cfg(test)]
mod move_tests;
mod moves;
mod packs;
mod plan;
mod run;
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

pub(super) use moves::Source;
pub(super) use run::{BLOCK, What, apart};

use super::interpreter::Interpreter;

/// Memory with what waits to be computed on it.
pub(super) struct Deferred<'p> {
    memory: Memory<'p>,
    pending: Pending<'p>,
    packs: Packs,
}

/// Instructions that wait to be computed.
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
        Deferred { memory, pending: Pending::Nothing, packs: Packs::default() }
    }

    /// What is known of memory without its bytes.
    pub(super) fn account(&mut self) -> Account<'_, 'p> {
        self.memory.account()
    }

    /// See [`nki_isa::Machine::begin_accumulate`]. Only a sum accesses bytes: for one, nothing may wait.
    pub(super) fn begin_accumulate(&mut self, to: &Access, mode: Option<bool>) -> Accumulation {
        debug_assert!(mode == Some(false) || matches!(self.pending, Pending::Nothing), "bytes are about to be read");
        self.memory.begin_accumulate(to, mode)
    }

    /// Where automatic placement put tensors.
    pub(super) fn placement(&self) -> &'p Placement {
        self.memory.placement()
    }
}

impl<'p> Interpreter<'p> {
    /// Memory, after everything that waits has been computed.
    pub(super) fn memory(&mut self) -> &mut Memory<'p> {
        self.flush();
        &mut self.deferred.memory
    }

    /// Computes what waits. Instructions that are computed at once begin with it, so that findings are in program order.
    pub(super) fn flush(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Nothing => {}
            Pending::Moves(moves) => self.perform_moves(&moves),
            Pending::Matmuls(chain) => self.multiply_chain(*chain, Moves::default()),
            Pending::Rows(run) => self.compute_run(run, &[]),
        }
    }

    /// Computes moves and matmuls that wait: the next instruction may join a run, but neither of these.
    pub(super) fn flush_matmuls(&mut self) {
        if matches!(self.deferred.pending, Pending::Moves(_) | Pending::Matmuls(_)) {
            self.flush();
        }
    }

    /// Computes a run that waits: the next instruction may join a chain, but not a run.
    fn flush_rows(&mut self) {
        if matches!(self.deferred.pending, Pending::Rows(_)) {
            self.flush();
        }
    }

    /// Releases the buffers of tensors whose lifetime ends before the current statement, unless instructions that wait may still use them.
    ///
    /// That holds in dynamic loops as well: a tensor that a further iteration needs lives to the end of the loop.
    pub(super) fn release_dead(&mut self) {
        let looks = self.observer.as_ref().is_some_and(|o| o.looks());
        if looks || !matches!(self.deferred.pending, Pending::Nothing) || !self.core.posted.is_empty() {
            return;
        }
        while let Some(tensor) = self.core.next_dead() {
            self.deferred.memory.release(tensor);
        }
    }

    /// The storages that only tensors have whose lifetime ends before the current statement, so that nobody reads their bytes any more.
    fn dead_storages(&self) -> Vec<usize> {
        let looks = self.observer.as_ref().is_some_and(|o| o.looks());
        if looks || !self.core.loops.is_empty() || !self.core.posted.is_empty() {
            return Vec::new();
        }
        let memory = &self.deferred.memory;
        self.core.all_dead().filter_map(|tensor| memory.own_storage(tensor)).collect()
    }

    /// Before a statement that loads from HBM: a run that has stored a result there ends, and what only the run used is released. The load then takes
    /// buffers that are used again.
    pub(super) fn end_stored_run(&mut self) {
        if matches!(&self.deferred.pending, Pending::Rows(run) if run.has_stored()) {
            self.flush_without_dead();
        }
    }

    /// Computes what waits. Rows of tensors whose lifetime ends before the current statement exist for no longer than a run needs them.
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
