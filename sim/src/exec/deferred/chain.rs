//! Chains of matmuls with cached packed operands.
//!
//! A matmul is deferred until an instruction other than a move of [`moves`](super::moves) accesses memory, or a matmul has another destination. The
//! matmuls of a contraction thus form one chain, which is divided among threads once. The order of the sums is that of separate matmuls.
//!
//! An operand that is the result of a deferred move, or a part of it, is packed from the source of the move; the next load of the same elements
//! reuses it.

use ndarray::{ArrayViewMut2, ShapeBuilder};
use nki_isa::gemm::{self, Packed, Side};
use nki_isa::{Fault, Machine, View};
use std::mem::take;

use super::Pending;
use super::moves::Moves;
use super::packs::Key;
use super::source::{Source, same_elements};
use crate::exec::interpreter::Interpreter;
use crate::exec::matmul_values::Product;
use crate::memory::access::Access;

/// Longest chain: its operands must fit.
const CHAIN: usize = 64;

/// Matmuls with one destination.
#[derive(Debug)]
pub(super) struct Chain<'p> {
    to: Access,
    /// Whether the first product is added to the destination.
    add: bool,
    /// Indices of packed operands.
    operands: Vec<(usize, usize)>,
    /// Deferred moves, with the number of those before the last matmul.
    moves: Moves,
    before_last: usize,
    /// Storages that operands are packed from.
    packed_from: Vec<usize>,
    /// Each matmul with its operands, if its values are watched.
    watched: Vec<Product<'p>>,
}

impl<'p> Chain<'p> {
    /// The moves deferred with the chain.
    pub(super) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// The moves deferred with the chain, mutable.
    pub(super) fn moves_mut(&mut self) -> &mut Moves {
        &mut self.moves
    }

    /// Whether a move may be deferred with the chain: the chain must neither write its source or destination nor still pack bytes that it overwrites.
    pub(super) fn admits(&self, to: &Access, from: &Source) -> bool {
        let written = self.to.storage;
        to.storage != written && from.access.storage != written && !self.packed_from.contains(&to.storage)
    }
}

impl<'p> Interpreter<'p> {
    /// See [`nki_isa::Machine::multiply`].
    pub(in crate::exec) fn defer_matmul(
        &mut self,
        dst: &View,
        stationary: &View,
        moving: &View,
        accumulate: Option<bool>,
    ) -> Result<(), Fault> {
        self.defer_loads_as_moves();
        let to = self.destination(dst)?;
        self.perform_moves_at(&to);
        let joins = |c: &Chain<'_>| c.operands.len() < CHAIN && same_elements(&c.to, &to);
        if matches!(&self.deferred.pending, Pending::Matmuls(chain) if !joins(chain)) {
            self.end_chain();
        }
        let what = self.deferred.memory.begin_accumulate(&to, accumulate);
        let add = what.add;
        if !add {
            self.end_chain();
        }
        self.check_accumulation(dst, &to, what);
        let left = self.source(stationary)?;
        let right = self.source(moving)?;
        let plain = |a: &Access| a.starts.is_none() && a.storage != to.storage;
        let regular = match self.deferred.memory.layout(&to) {
            Some((_, row, column)) => to.starts.is_none() && column == 1 && (row >= to.per_row || to.rows == 1),
            None => false,
        };
        let fits = (left.rows, left.per_row, right.per_row) == (right.rows, to.rows, to.per_row);
        if !(regular && fits && plain(&left) && plain(&right)) {
            return self.contract(dst, stationary, moving, &mut |s, m, out| gemm::multiply(s, m, add, out));
        }
        // A finding about a product reads the operands after the product has been written.
        let kept = |source: &Source| source.access.storage != to.storage;
        let sources = [&left, &right].map(|operand| self.pending_source(operand).filter(kept));
        let sources = match sources {
            [Some(left), Some(right)] => [left, right],
            _ => {
                self.flush();
                [Source::of(&left), Source::of(&right)]
            }
        };
        self.join_chain(to, add, [left, right], sources);
        Ok(())
    }

    /// Adds a matmul to the pending chain or to a new one, which takes over the pending moves. Its operands are packed from `sources`.
    fn join_chain(&mut self, to: Access, add: bool, operands: [Access; 2], sources: [Source; 2]) {
        if !matches!(self.deferred.pending, Pending::Matmuls(_)) {
            self.deferred.packs.begin_chain();
        }
        let watched = self.watch_product(&to, &operands, &sources);
        self.deferred.memory.mark_written(&to);
        let [left, right] = sources;
        let packed_from = [left.access.storage, right.access.storage];
        let packed = (self.packed(Side::Stationary, left), self.packed(Side::Moving, right));
        let mut chain = match take(&mut self.deferred.pending) {
            Pending::Matmuls(chain) => chain,
            pending => {
                let moves = if let Pending::Moves(moves) = pending { moves } else { Moves::default() };
                Box::new(Chain {
                    to,
                    add,
                    operands: Vec::new(),
                    moves,
                    before_last: 0,
                    packed_from: Vec::new(),
                    watched: Vec::new(),
                })
            }
        };
        chain.before_last = chain.moves.len();
        chain.operands.push(packed);
        chain.packed_from.extend(packed_from);
        chain.watched.extend(watched);
        self.deferred.pending = Pending::Matmuls(chain);
    }

    fn packed(&mut self, side: Side, source: Source) -> usize {
        let access = &source.access;
        let key = Key {
            side,
            transposed: source.transposed,
            storage: access.storage,
            version: self.deferred.memory.storages[access.storage].version(),
            dtype: access.codec.dtype,
            row: access.row,
            row_step: access.row_step,
            rows: access.rows,
            column: access.column,
            column_step: access.column_step,
            inner: access.inner.clone(),
        };
        let super::Deferred { packs, memory, .. } = &mut self.deferred;
        packs.find(&memory.storages, key, source)
    }

    /// Computes the pending chain. The moves after its last matmul remain pending for the next chain.
    fn end_chain(&mut self) {
        match take(&mut self.deferred.pending) {
            Pending::Matmuls(mut chain) => {
                let later = chain.moves.split_off(chain.before_last);
                self.multiply_chain(*chain, later);
            }
            pending => self.deferred.pending = pending,
        }
    }

    /// Computes the matmuls of a chain, after which the later moves remain pending.
    pub(super) fn multiply_chain(&mut self, chain: Chain<'p>, later: Moves) {
        let Chain { to, add, operands, mut moves, watched, .. } = chain;
        moves.remove(&self.dead_storages());
        self.leave_unfilled(moves, &later);
        let (memory, packs) = (&mut self.deferred.memory, &mut self.deferred.packs);
        packs.pack(memory);
        let chain: Vec<(Packed<'_>, Packed<'_>)> =
            operands.iter().map(|&(l, r)| (packs.operand(l), packs.operand(r))).collect();
        let layout = memory.layout(&to);
        let storage = &mut memory.storages[to.storage];
        let out = layout.and_then(|(base, row, column)| {
            let words: &mut [f32] = bytemuck::try_cast_slice_mut(storage.bytes_mut()).ok()?;
            let shape = (to.rows, to.per_row).strides((row, column));
            ArrayViewMut2::from_shape(shape, words.get_mut(base..)?).ok()
        });
        gemm::accumulate(&chain, add, out.expect("looked at when the matmul was deferred"));
        if !watched.is_empty() {
            self.inspect_products(&to, add, &watched);
        }
        if later.len() > 0 {
            self.deferred.pending = Pending::Moves(later);
        }
        self.release_dead();
    }
}
