//! Matmuls, joined to chains, with operands that stay packed.
//!
//! A matmul waits until something other than a load touches memory, or a matmul has another destination. So the matmuls of a contraction become one
//! chain, shared between threads once. The order of the sums is that of one matmul after the other.
//!
//! Loads from HBM wait with the matmuls that use them. An operand that is exactly what a load brings is packed from HBM: the next load of the same
//! elements finds it packed, and a tile that nobody else reads is never filled.

use ndarray::{ArrayViewMut2, ShapeBuilder};
use nki_isa::gemm::{self, Packed, Side};
use nki_isa::{Fault, Machine, View};
use std::mem::take;

use super::Pending;
use super::packs::Key;
use crate::exec::interpreter::Interpreter;
use crate::exec::matmul_values::Product;
use crate::memory::Memory;
use crate::memory::access::Access;

/// Longest chain: its operands must fit.
const CHAIN: usize = 64;
/// Most loads that wait with a chain.
const LOADS: usize = 2 * CHAIN;
/// Matmuls with one destination.
#[derive(Debug)]
pub(super) struct Chain<'p> {
    to: Access,
    /// Whether the first is added to what is there.
    add: bool,
    /// Indices of packed operands.
    operands: Vec<(usize, usize)>,
    /// Loads that wait, in order.
    loads: Vec<Load>,
    /// On-chip storages that operands are packed from.
    packed_from: Vec<usize>,
    /// Each matmul with its operands, if its values are watched.
    watched: Vec<Product<'p>>,
}

/// A copy from HBM to a tile, without conversion.
#[derive(Debug, Clone)]
pub(super) struct Load {
    pub(super) to: Access,
    pub(super) from: Access,
}

impl Load {
    /// The copy, if it is a load.
    pub(super) fn of(memory: &Memory<'_>, to: &Access, from: &Access) -> Option<Self> {
        let pitch = |a: &Access| memory.storages[a.storage].pitch;
        let loads = pitch(from) == 0 && pitch(to) > 0 && to.starts.is_none() && from.starts.is_none();
        let same = (to.codec, to.rows, to.per_row) == (from.codec, from.rows, from.per_row);
        (loads && same).then(|| Load { to: to.clone(), from: from.clone() })
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
        if !matches!(&self.deferred.pending, Pending::Rows(run) if run.only_loads(&self.deferred.memory)) {
            self.flush_rows();
        }
        let to = self.destination(dst)?;
        let joins = |c: &Chain<'_>| c.operands.len() < CHAIN && same_elements(&c.to, &to);
        if matches!(&self.deferred.pending, Pending::Matmuls(chain) if !joins(chain)) {
            self.flush();
        }
        let what = self.deferred.memory.begin_accumulate(&to, accumulate);
        let add = what.add;
        if !add {
            self.flush_matmuls();
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
        let sources = [&left, &right].map(|operand| self.waiting_source(operand));
        let [Some(left_source), Some(right_source)] = sources else {
            self.flush();
            self.join_chain(to, add, [left.clone(), right.clone()], [left, right]);
            return Ok(());
        };
        self.join_chain(to, add, [left, right], [left_source, right_source]);
        Ok(())
    }

    /// Where the elements of an operand are while loads wait: in HBM if a load brings exactly them, else where the operand is; none if a load
    /// brings other elements of its storage.
    fn waiting_source(&self, operand: &Access) -> Option<Access> {
        let source = |to: &Access, from: &Access| same_elements(to, operand).then(|| from.clone());
        let last = match &self.deferred.pending {
            Pending::Matmuls(chain) => {
                chain.loads.iter().rfind(|l| l.to.storage == operand.storage).map(|l| source(&l.to, &l.from))
            }
            Pending::Rows(run) => run.last_copy_to(operand.storage).map(|(to, from)| source(to, from)),
            Pending::Nothing => None,
        };
        last.unwrap_or_else(|| Some(operand.clone()))
    }

    /// Adds a matmul to the chain that waits, or to a new one, which takes over the loads that wait. Its operands are packed from `sources`.
    fn join_chain(&mut self, to: Access, add: bool, operands: [Access; 2], sources: [Access; 2]) {
        if !matches!(self.deferred.pending, Pending::Matmuls(_)) {
            self.deferred.packs.begin_chain();
        }
        let watched = self.watch_product(&to, &operands, &sources);
        self.deferred.memory.mark_written(&to);
        let [left, right] = sources;
        let packed_from = [left.storage, right.storage];
        let packed = (self.packed(Side::Stationary, left), self.packed(Side::Moving, right));
        let mut chain = match take(&mut self.deferred.pending) {
            Pending::Matmuls(chain) => chain,
            pending => {
                let loads = if let Pending::Rows(run) = pending { run.into_loads() } else { Vec::new() };
                Box::new(Chain { to, add, operands: Vec::new(), loads, packed_from: Vec::new(), watched: Vec::new() })
            }
        };
        chain.operands.push(packed);
        chain.packed_from.extend(packed_from);
        chain.watched.extend(watched);
        self.deferred.pending = Pending::Matmuls(chain);
    }

    /// Defers a load behind a chain that waits; says whether it can be.
    pub(super) fn load_behind_chain(&mut self, to: &Access, from: &Access) -> bool {
        let memory = &mut self.deferred.memory;
        let Pending::Matmuls(chain) = &mut self.deferred.pending else { return false };
        // What the chain writes, and what it is still to pack, must stay as it is.
        let taken = to.storage == chain.to.storage || chain.packed_from.contains(&to.storage);
        let Some(load) = Load::of(memory, to, from).filter(|_| !taken && chain.loads.len() < LOADS) else {
            return false;
        };
        memory.mark_written(to);
        chain.loads.push(load);
        true
    }

    fn packed(&mut self, side: Side, access: Access) -> usize {
        let key = Key {
            side,
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
        packs.find(&memory.storages, key, access)
    }

    /// Multiplies the matmuls of a chain.
    pub(super) fn multiply_chain(&mut self, chain: Chain<'p>) {
        let Chain { to, add, operands, loads, watched, .. } = chain;
        let dead = self.dead_storages();
        let (memory, packs) = (&mut self.deferred.memory, &mut self.deferred.packs);
        for Load { to, from } in loads.iter().filter(|l| !dead.contains(&l.to.storage)) {
            memory.copy(to, from);
        }
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
            self.look_at_products(&to, add, &watched);
        }
        self.release_dead();
    }
}

/// Whether both are the same elements in the same order.
fn same_elements(a: &Access, b: &Access) -> bool {
    a.starts.is_none()
        && b.starts.is_none()
        && (a.storage, a.codec, a.row, a.row_step, a.column, a.column_step, a.rows)
            == (b.storage, b.codec, b.row, b.row_step, b.column, b.column_step, b.rows)
        && a.inner == b.inner
}
