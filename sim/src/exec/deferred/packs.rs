//! Packed operands of matmuls, cached until their source bytes change.
//!
//! They are adjacent in blocks of memory with huge pages: the inner loop of a multiplication reads them sequentially, and small pages would
//! cost a TLB lookup and restart the hardware prefetcher every 4 KiB.

use ndarray::{ArrayView2, ShapeBuilder};
use nki_isa::DType;
use nki_isa::gemm::{self, Layout, Packed, Part, Side};
use nki_isa::share::{share, threads};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ops::Range;

use super::source::Source;
use crate::buffer::Buffer;
use crate::memory::elements::Steps;
use crate::memory::{Memory, Storage};

/// Bytes of cached operands: two float32 matrices of 2048 x 2048.
const KEEP: usize = 32 << 20;
/// Maximum number of cached operands.
const KEEP_OPERANDS: usize = 512;
/// Bytes of the smallest block, which starts at a page boundary, and of the largest.
const BLOCK: [usize; 2] = [64 << 10, 8 << 20];
/// Number of elements above which packing is divided among threads.
const PARALLEL_ABOVE: usize = 32 * 1024;

/// Elements of one version of a storage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) side: Side,
    pub(super) transposed: bool,
    pub(super) storage: usize,
    pub(super) version: u64,
    pub(super) dtype: DType,
    pub(super) row: usize,
    pub(super) row_step: isize,
    pub(super) rows: usize,
    pub(super) column: usize,
    pub(super) column_step: isize,
    pub(super) inner: Steps,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    layout: Layout,
    /// When it was last used.
    used: u64,
    /// The source of the elements, until they are packed.
    fresh: Option<Source>,
    /// The location of the packed elements: the block, and the slot in it.
    block: usize,
    place: usize,
}

/// Slots of one size for packed operands.
#[derive(Debug)]
struct Block {
    /// Bytes of a slot.
    size: usize,
    memory: Buffer,
    /// The operand in each slot; the last ones may be free.
    entries: Vec<usize>,
}

/// Packed operands, cached by storage, version of the storage and elements.
#[derive(Debug, Default)]
pub(super) struct Packs {
    entries: Vec<Entry>,
    blocks: Vec<Block>,
    index: FxHashMap<Key, usize>,
    /// Total bytes of occupied slots.
    bytes: usize,
    /// Counts chains.
    clock: u64,
}

impl Packs {
    /// Protects the operands used from now on until the next chain begins.
    pub(super) fn begin_chain(&mut self) {
        self.clock += 1;
    }

    /// The index of a packed operand, or of one to be packed, from one of these storages.
    pub(super) fn find(&mut self, storages: &[Storage], key: Key, source: Source) -> usize {
        if let Some(&i) = self.index.get(&key) {
            self.entries[i].used = self.clock;
            return i;
        }
        let layout = Layout::new(key.side, source.shape());
        let size = place_of(layout);
        let Some(i) = self.left(storages, size).or_else(|| self.oldest(size)) else {
            let i = self.entries.len();
            let (block, place) = self.place(size, i);
            self.index.insert(key.clone(), i);
            self.entries.push(Entry { key, layout, used: self.clock, fresh: Some(source), block, place });
            return i;
        };
        let entry = &mut self.entries[i];
        self.index.remove(&entry.key);
        self.index.insert(key.clone(), i);
        (entry.key, entry.layout, entry.used, entry.fresh) = (key, layout, self.clock, Some(source));
        i
    }

    /// An operand in a slot of `size` bytes that has become unreachable, because its storage has been overwritten. Its memory is
    /// probably still in a CPU cache.
    fn left(&self, storages: &[Storage], size: usize) -> Option<usize> {
        let is_left = |e: &Entry| e.used < self.clock && storages[e.key.storage].version() != e.key.version;
        self.entries.iter().position(|e| self.blocks[e.block].size == size && is_left(e))
    }

    /// If there are too many operands, the least recently used one in a slot of `size` bytes, unless the current chain needs it.
    fn oldest(&self, size: usize) -> Option<usize> {
        if self.bytes < KEEP && self.entries.len() < KEEP_OPERANDS {
            return None;
        }
        let old = |e: &Entry| e.used < self.clock && self.blocks[e.block].size == size;
        let of_size = self.entries.iter().enumerate().filter(|(_, e)| old(e));
        of_size.min_by_key(|(_, e)| e.used).map(|(i, _)| i)
    }

    /// A free slot for an operand: its block and index in the block. Each block is as large as all others of its size together, within limits.
    fn place(&mut self, size: usize, entry: usize) -> (usize, usize) {
        self.bytes += size;
        let free = |b: &Block| b.size == size && b.entries.len() < b.memory.len() / size;
        let block = self.blocks.iter().position(free).unwrap_or_else(|| {
            let before: usize = self.blocks.iter().filter(|b| b.size == size).map(|b| b.memory.len()).sum();
            let memory = Buffer::unspecified(before.clamp(BLOCK[0], BLOCK[1]).max(size));
            self.blocks.push(Block { size, memory, entries: Vec::new() });
            self.blocks.len() - 1
        });
        let entries = &mut self.blocks[block].entries;
        entries.push(entry);
        (block, entries.len() - 1)
    }

    /// An operand that is packed.
    pub(super) fn operand(&self, i: usize) -> Packed<'_> {
        let Entry { layout, block, place, .. } = &self.entries[i];
        let Block { size, memory, .. } = &self.blocks[*block];
        layout.packed(bytemuck::cast_slice(&memory[place * size..(place + 1) * size]))
    }

    /// Packs all operands that are not packed yet.
    pub(super) fn pack(&mut self, memory: &Memory<'_>) {
        let threads = threads();
        let mut tasks: Vec<(Part<'_>, Elements<'_>)> = Vec::new();
        let mut elements = 0;
        for Block { size, memory: packed, entries } in &mut self.blocks {
            for (&i, place) in entries.iter().zip(packed.bytes_mut().chunks_exact_mut(*size)) {
                let Entry { fresh, layout, .. } = &mut self.entries[i];
                let Some(source) = fresh.take() else { continue };
                let access = &source.access;
                elements += access.elements();
                let floats = bytemuck::cast_slice_mut(place);
                let words: Option<&[f32]> = bytemuck::try_cast_slice(memory.storages[access.storage].bytes()).ok();
                let view = memory.layout(access).zip(words).and_then(|((base, row, column), words)| {
                    let shape = (access.rows, access.per_row).strides((row, column));
                    ArrayView2::from_shape(shape, words.get(base..)?).ok()
                });
                match view {
                    Some(view) => {
                        let view = turned(view, source.transposed);
                        tasks.extend(layout.tasks(floats, threads, |c| Elements::Direct(gemm::columns(view, c))));
                    }
                    None if source.transposed || access.is_dense() => {
                        let columns = |c| Elements::Converted(Box::new(columns_of(&source, c)));
                        tasks.extend(layout.tasks(floats, threads, columns));
                    }
                    None => tasks.extend(layout.tasks(floats, 1, |_| Elements::Converted(Box::new(source.clone())))),
                }
            }
        }
        let run = |(part, elements): (Part<'_>, Elements<'_>)| match elements {
            Elements::Direct(view) => part.pack(view),
            Elements::Converted(source) => {
                let Source { access, transposed } = *source;
                let mut tile = CONVERTED.take();
                memory.tile_into(&access, &mut tile);
                if let Ok(view) = ArrayView2::from_shape((access.rows, access.per_row), &tile) {
                    part.pack(turned(view, transposed));
                }
                CONVERTED.set(tile);
            }
        };
        share(if elements > PARALLEL_ABOVE { threads } else { 1 }, tasks, run);
    }
}

/// Bytes of an operand's slot: one of few sizes, so that slots can be reused, and a whole number of cache lines.
fn place_of(layout: Layout) -> usize {
    let bytes = layout.bytes();
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(64)).max(64)
}

/// The source elements of a part of an operand.
enum Elements<'a> {
    /// fp32 in memory.
    Direct(ArrayView2<'a, f32>),
    /// Another layout or type, to be converted.
    Converted(Box<Source>),
}

fn turned(view: ArrayView2<'_, f32>, transposed: bool) -> ArrayView2<'_, f32> {
    if transposed { view.reversed_axes() } else { view }
}

thread_local! {
    /// A buffer for a converted tile, kept for reuse.
    static CONVERTED: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Some columns of a matrix that is transposed in memory or whose rows are dense.
fn columns_of(source: &Source, columns: Range<usize>) -> Source {
    let mut part = source.clone();
    let access = &mut part.access;
    if source.transposed {
        access.row = access.row.wrapping_add_signed(access.row_step * columns.start as isize);
        access.column = access.column.wrapping_add_signed(access.column_step * columns.start as isize);
        access.rows = columns.len();
        return part;
    }
    access.column += columns.start * access.codec.dtype.size();
    access.per_row = columns.len();
    if let Some(step) = access.inner.first_mut() {
        step.count = columns.len();
    }
    part
}
