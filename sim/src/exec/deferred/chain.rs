//! Matmuls, joined to chains, with operands that stay packed.
//!
//! A matmul waits until something other than a load touches memory, or a matmul has another destination. So the matmuls of a contraction become one
//! chain, shared between threads once. The order of the sums is that of one matmul after the other.
//!
//! Loads from HBM wait with the matmuls that use them. An operand that is exactly what a load brings is packed from HBM: the next load of the same
//! elements finds it packed, and a tile that nobody else reads is never filled.

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};
use nki_isa::gemm::{self, Packed, Part, Side};
use nki_isa::share::{share, threads};
use nki_isa::{DType, Fault, Machine, View};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::mem::take;
use std::ops::Range;

use super::Pending;
use crate::exec::interpreter::Interpreter;
use crate::exec::matmul_values::Product;
use crate::memory::access::Access;
use crate::memory::elements::Steps;
use crate::memory::{Memory, Storage};

/// Bytes of packed operands that are kept: two float32 matrices of 2048 x 2048.
const KEEP: usize = 32 << 20;
/// Most operands that are kept.
const KEEP_OPERANDS: usize = 512;
/// Longest chain: its operands must fit.
const CHAIN: usize = 64;
/// Most loads that wait with a chain.
const LOADS: usize = 2 * CHAIN;
/// Elements to be packed from which the work is shared between threads.
const PARALLEL_ABOVE: usize = 32 * 1024;

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

/// Elements of a storage at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    side: Side,
    storage: usize,
    version: u64,
    dtype: DType,
    row: usize,
    row_step: isize,
    rows: usize,
    column: usize,
    column_step: isize,
    inner: Steps,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    /// When it was last used.
    used: u64,
    /// Where the elements are, until they are packed.
    fresh: Option<Access>,
    packed: Packed,
}

/// Packed operands, kept by storage, version of the storage and elements.
#[derive(Debug, Default)]
pub(super) struct Packs {
    entries: Vec<Entry>,
    index: FxHashMap<Key, usize>,
    bytes: usize,
    /// Counts chains.
    clock: u64,
}

impl Packs {
    /// The index of an operand that is packed, or will be, of one of these storages.
    fn find(&mut self, storages: &[Storage], key: Key, access: Access) -> usize {
        if let Some(&i) = self.index.get(&key) {
            self.entries[i].used = self.clock;
            return i;
        }
        let shape = (access.rows, access.per_row);
        let i = self.left(storages, key.side.bytes(shape)).unwrap_or_else(|| self.place());
        let entry = &mut self.entries[i];
        self.index.remove(&entry.key);
        self.bytes -= entry.packed.bytes();
        entry.packed.reset(key.side, shape);
        self.bytes += entry.packed.bytes();
        self.index.insert(key.clone(), i);
        (entry.key, entry.used, entry.fresh) = (key, self.clock, Some(access));
        i
    }

    /// The place of an operand of so many bytes that nobody can ask for any more: something else has been written to its storage. Its memory is
    /// likely to be in a cache.
    fn left(&self, storages: &[Storage], bytes: usize) -> Option<usize> {
        let is_left = |e: &Entry| e.used < self.clock && storages[e.key.storage].version() != e.key.version;
        self.entries.iter().position(|e| e.packed.bytes() == bytes && is_left(e))
    }

    /// A place for another operand: a new one, or that of the one used longest ago, unless the current chain needs it.
    fn place(&mut self) -> usize {
        if self.bytes >= KEEP || self.entries.len() >= KEEP_OPERANDS {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, e)| e.used);
            if let Some((i, _)) = oldest.filter(|(_, e)| e.used < self.clock) {
                return i;
            }
        }
        self.entries.push(Entry {
            key: Key {
                side: Side::Moving,
                storage: usize::MAX,
                version: 0,
                dtype: DType::F32,
                row: self.entries.len(),
                row_step: 0,
                rows: 0,
                column: 0,
                column_step: 0,
                inner: Steps::new(),
            },
            used: 0,
            fresh: None,
            packed: Packed::default(),
        });
        self.entries.len() - 1
    }
}

/// A part of an operand to be packed.
enum Source<'a> {
    /// fp32 in memory.
    Direct(ArrayView2<'a, f32>),
    /// Something else, to be converted.
    Converted(Box<Access>),
}

thread_local! {
    /// A converted tile, kept for its memory.
    static CONVERTED: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
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
            self.deferred.packs.clock += 1;
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
        pack(memory, &mut packs.entries);
        let chain: Vec<(&Packed, &Packed)> =
            operands.iter().map(|&(l, r)| (&packs.entries[l].packed, &packs.entries[r].packed)).collect();
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

/// Packs all operands that are not packed yet.
fn pack(memory: &Memory<'_>, entries: &mut [Entry]) {
    let threads = threads();
    let mut tasks: Vec<(Part<'_>, Source<'_>)> = Vec::new();
    let mut elements = 0;
    for Entry { packed, fresh, .. } in entries.iter_mut() {
        let Some(access) = fresh.take() else { continue };
        elements += access.elements();
        let words: Option<&[f32]> = bytemuck::try_cast_slice(memory.storages[access.storage].bytes()).ok();
        let view = memory.layout(&access).zip(words).and_then(|((base, row, column), words)| {
            let shape = (access.rows, access.per_row).strides((row, column));
            ArrayView2::from_shape(shape, words.get(base..)?).ok()
        });
        match view {
            Some(view) => tasks.extend(packed.tasks(threads, |c| Source::Direct(gemm::columns(view, c)))),
            None if access.is_dense() => {
                tasks.extend(packed.tasks(threads, |c| Source::Converted(Box::new(columns_of(&access, c)))));
            }
            None => tasks.extend(packed.tasks(1, |_| Source::Converted(Box::new(access.clone())))),
        }
    }
    let run = |(part, source): (Part<'_>, Source<'_>)| match source {
        Source::Direct(view) => part.pack(view),
        Source::Converted(access) => {
            let mut tile = CONVERTED.take();
            memory.tile_into(&access, &mut tile);
            if let Ok(view) = ArrayView2::from_shape((access.rows, access.per_row), &tile) {
                part.pack(view);
            }
            CONVERTED.set(tile);
        }
    };
    share(if elements > PARALLEL_ABOVE { threads } else { 1 }, tasks, run);
}

/// Some columns of an access whose rows are dense.
fn columns_of(access: &Access, columns: Range<usize>) -> Access {
    let mut part = access.clone();
    part.column += columns.start * access.codec.dtype.size();
    part.per_row = columns.len();
    if let Some(step) = part.inner.first_mut() {
        step.count = columns.len();
    }
    part
}

/// Whether both are the same elements in the same order.
fn same_elements(a: &Access, b: &Access) -> bool {
    a.starts.is_none()
        && b.starts.is_none()
        && (a.storage, a.codec, a.row, a.row_step, a.column, a.column_step, a.rows)
            == (b.storage, b.codec, b.row, b.row_step, b.column, b.column_step, b.rows)
        && a.inner == b.inner
}
