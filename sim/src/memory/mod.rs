//! The memories: SBUF, PSUM and HBM, with exact tracking of written bytes.
//!
//! Storage is not one array per memory. An automatically placed tensor shares its bytes with no tensor that could observe it, so it
//! has a separate buffer during its lifetime, from a pool that returns the most recently used one (which is still in the cache).
//! Tensors with explicit addresses share one buffer per core and memory, with real aliasing. Every HBM tensor is a buffer.

pub(crate) mod access;
pub(crate) mod account;
mod clobbers;
mod copy;
pub(crate) mod elements;
mod init;

use std::num::NonZeroU32;
use std::sync::Arc;

use nki_isa::{Arch, DType, Program, Space, TensorId};
use rustc_hash::FxHashMap;

pub(crate) use clobbers::{Clobbered, Clobbers};
pub(crate) use init::ByteSet;

use crate::Buffer;
use crate::place::Placement;
use access::{Access, Unwritten};
use elements::Codec;

/// One buffer: rows (partitions on chip, one row in HBM) of bytes.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    data: Buffer,
    version: u64,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
    /// Written bytes, in the program's bytes (see [`Memory::scale`]).
    pub(crate) init: ByteSet,
}

impl Storage {
    fn new(data: Buffer, pitch: usize, init: ByteSet) -> Self {
        Storage { data, version: 0, pitch, init }
    }

    /// The bytes, for reading.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The bytes, for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.version += 1;
        self.data.bytes_mut()
    }

    /// The bytes, for writing, and the set of written bytes.
    pub(crate) fn bytes_and_init(&mut self) -> (&mut [u8], &ByteSet) {
        self.version += 1;
        (self.data.bytes_mut(), &self.init)
    }

    /// Takes the bytes out for writing, so that other storages remain readable.
    pub(crate) fn take(&mut self) -> Buffer {
        self.version += 1;
        std::mem::take(&mut self.data)
    }

    /// Returns the bytes to the storage.
    pub(crate) fn put(&mut self, data: Buffer) {
        self.version += 1;
        self.data = data;
    }

    /// Changes whenever the bytes may have changed, including when another tensor reuses the storage.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// The location of a tensor's bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    /// One more than the index into [`Memory::storages`].
    storage: NonZeroU32,
    /// Column of the tensor's first byte in the row.
    column: u32,
    /// Row of the tensor's first partition.
    row: u16,
}

// A run keeps one per tensor.
const _: () = assert!(size_of::<Option<Home>>() <= 12);

impl Home {
    /// The location of a tensor at the start of its storage.
    fn whole(storage: usize) -> Self {
        Home { storage: NonZeroU32::MIN.saturating_add(storage as u32), column: 0, row: 0 }
    }

    pub(crate) fn storage(self) -> usize {
        self.storage.get() as usize - 1
    }

    pub(crate) fn row(self) -> usize {
        self.row as usize
    }

    pub(crate) fn column(self) -> usize {
        self.column as usize
    }
}

/// All memories of a run.
#[derive(Debug)]
pub(crate) struct Memory<'p> {
    program: &'p Program,
    placement: &'p Placement,
    arch: &'static Arch,
    /// Bytes in `data` per byte of the program: 4 if every element is kept in 32 bits.
    pub(crate) scale: usize,
    pub(crate) storages: Vec<Storage>,
    /// Locations by tensor.
    homes: Vec<Option<Home>>,
    /// Bytes of PSUM tensors that a matmul has written, by tensor.
    accumulated: FxHashMap<TensorId, ByteSet>,
    /// Buffers for reuse, by length.
    pool: FxHashMap<usize, Vec<Buffer>>,
    vacant: Vec<usize>,
    /// The shared storages of explicitly placed tensors, by (core, memory).
    explicit: FxHashMap<(u32, Space), usize>,
    /// Watches tensors that share bytes.
    pub(crate) clobbers: Clobbers<'p>,
    /// Whether only the metadata is kept, without bytes (see [`Memory::without_data`]).
    account_only: bool,
    /// The value of unwritten bytes.
    pub(crate) unwritten: UnwrittenValue,
}

/// The value of unwritten memory: on the device, the previous contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnwrittenValue {
    /// A value on which no result should depend: [`DType::uninitialized_bits`].
    #[default]
    Sentinel,
    /// Zeros.
    Zero,
}

impl<'p> Memory<'p> {
    /// Empty memories. With `precise`, every element is kept in its own type; otherwise in 32 bits.
    pub(crate) fn new(program: &'p Program, placement: &'p Placement, precise: bool) -> Self {
        Memory {
            program,
            placement,
            arch: Arch::of(program.target),
            scale: if precise { 1 } else { 4 },
            storages: Vec::new(),
            homes: vec![None; program.tensors.len()],
            accumulated: FxHashMap::default(),
            pool: FxHashMap::default(),
            vacant: Vec::new(),
            explicit: FxHashMap::default(),
            clobbers: Clobbers::new(program, placement),
            account_only: false,
            unwritten: UnwrittenValue::default(),
        }
    }

    /// Memories that track written bytes, but have no bytes. Inputs count as written.
    pub(crate) fn without_data(program: &'p Program, placement: &'p Placement) -> Self {
        let mut memory = Memory { account_only: true, ..Memory::new(program, placement, true) };
        for input in &program.inputs {
            let init = ByteSet::all(1, program.tensor(input.tensor).bytes());
            let storage = memory.add(Storage::new(Buffer::default(), 0, init));
            memory.homes[input.tensor.0 as usize] = Some(Home::whole(storage));
        }
        memory
    }

    /// A buffer, empty if only the metadata is kept.
    fn buffer(&self, bytes: usize) -> Buffer {
        if self.account_only { Buffer::default() } else { Buffer::unspecified(bytes) }
    }

    /// The codec of elements of `dtype`.
    pub(crate) fn codec(&self, dtype: DType) -> Codec {
        Codec { dtype, wide: self.scale != 1 }
    }

    fn add(&mut self, mut storage: Storage) -> usize {
        if let Some(i) = self.vacant.pop() {
            storage.version = self.storages[i].version + 1;
            self.storages[i] = storage;
            return i;
        }
        self.storages.push(storage);
        self.storages.len() - 1
    }

    /// Sets the contents of an HBM tensor; the bytes are moved, not copied.
    pub(crate) fn load(&mut self, tensor: TensorId, data: Buffer) {
        let t = self.program.tensor(tensor);
        let data = if self.scale == 1 {
            data
        } else {
            let mut wide = Buffer::zeroed(t.bytes() * self.scale);
            self.spread(t.dtype, &data, wide.bytes_mut());
            wide
        };
        let init = ByteSet::all(1, t.bytes());
        let storage = self.add(Storage::new(data, 0, init));
        self.homes[tensor.0 as usize] = Some(Home::whole(storage));
    }

    /// Dense host elements into memory, where the element at byte `b` is at `b * scale`.
    fn spread(&self, dtype: DType, host: &[u8], out: &mut [u8]) {
        let codec = self.codec(dtype);
        if self.scale == 1 {
            return out.copy_from_slice(host);
        }
        let mut wide = vec![0; host.len() / dtype.size() * 4];
        codec.widen(host, &mut wide);
        for (o, w) in out.chunks_exact_mut(dtype.size() * self.scale).zip(wide.chunks_exact(4)) {
            o[..4].copy_from_slice(w);
        }
    }

    /// The unwritten elements of an HBM tensor.
    pub(crate) fn missing(&mut self, tensor: TensorId) -> Option<Unwritten> {
        let view = nki_isa::View::whole(tensor, self.program.tensor(tensor));
        let access = self.resolve_static(&view, 0).ok()?;
        self.find_unwritten(&access)
    }

    /// Takes an HBM tensor's contents out, with its unwritten elements, if any (they read as the sentinel).
    /// `keep` leaves a copy in place.
    pub(crate) fn unload(&mut self, tensor: TensorId, keep: bool) -> (Buffer, Option<Unwritten>) {
        let home = self.home(tensor);
        let t = self.program.tensor(tensor);
        let view = nki_isa::View::whole(tensor, t);
        let mut missing = None;
        if let Ok(access) = self.resolve_static(&view, 0)
            && let Some(gap) = self.find_unwritten(&access)
        {
            missing = Some(gap);
            self.poison(&access);
        }
        let storage = &mut self.storages[home.storage()];
        let data = if keep { storage.data.clone() } else { storage.take() };
        if self.scale == 1 {
            return (data, missing);
        }
        let codec = self.codec(t.dtype);
        let dense: Vec<u8> = data.chunks_exact(t.dtype.size() * self.scale).flat_map(|c| c[..4].to_vec()).collect();
        let mut host = Buffer::zeroed(t.bytes());
        codec.narrow(&dense, host.bytes_mut());
        (host, missing)
    }

    /// The tensor's storage, created on first use.
    pub(crate) fn home(&mut self, tensor: TensorId) -> Home {
        match self.homes[tensor.0 as usize] {
            Some(home) => home,
            None => self.settle(tensor),
        }
    }

    fn settle(&mut self, tensor: TensorId) -> Home {
        let t = self.program.tensor(tensor);
        let bytes = t.bytes();
        let home = if t.space.is_hbm() {
            let data = self.buffer(bytes * self.scale);
            let storage = self.add(Storage::new(data, 0, ByteSet::empty(1, bytes)));
            Home::whole(storage)
        } else if let Some(address) = t.address {
            let storage = self.explicit_storage(t.core, t.space);
            Home { row: address.partition as u16, column: address.byte, ..Home::whole(storage) }
        } else {
            let rows = t.shape.first().map_or(1, |&n| n as usize).max(1);
            // Rows start on a cache line, but at different offsets in their pages.
            let pitch = (bytes * self.scale).next_multiple_of(64)
                + if (bytes * self.scale).is_multiple_of(4096) { 64 } else { 0 };
            let length = rows * pitch;
            let data = self.pool.get_mut(&length).and_then(Vec::pop).unwrap_or_else(|| self.buffer(length));
            let storage = match self.vacant.pop() {
                Some(i) => i,
                None => {
                    self.storages.push(Storage::default());
                    self.storages.len() - 1
                }
            };
            let s = &mut self.storages[storage];
            s.put(data);
            s.pitch = pitch;
            s.init.reset(rows, bytes);
            Home::whole(storage)
        };
        self.homes[tensor.0 as usize] = Some(home);
        if let Some(data) = &t.data {
            let data = Arc::clone(data);
            self.write_whole(tensor, &data);
        }
        home
    }

    fn explicit_storage(&mut self, core: u32, space: Space) -> usize {
        if let Some(&i) = self.explicit.get(&(core, space)) {
            return i;
        }
        let bytes = match space {
            Space::Psum => self.arch.psum_bytes(),
            _ => self.arch.sbuf_bytes,
        } as usize;
        let rows = self.arch.partitions as usize;
        // Rows at distances of a multiple of the page size would compete for the same cache lines.
        let pitch = bytes * self.scale + 64;
        let data = if self.account_only { Buffer::default() } else { Buffer::zeroed(rows * pitch) };
        let storage = self.add(Storage::new(data, pitch, ByteSet::empty(rows, bytes)));
        self.explicit.insert((core, space), storage);
        storage
    }

    fn write_whole(&mut self, tensor: TensorId, host: &[u8]) {
        let t = self.program.tensor(tensor);
        let view = nki_isa::View::whole(tensor, t);
        let Ok(access) = self.resolve_static(&view, 0) else { return };
        if self.account_only {
            return self.mark_written(&access);
        }
        let codec = self.codec(t.dtype);
        let mut dense = vec![0; access.elements() * codec.size()];
        let n = dense.len() / codec.size() * t.dtype.size();
        if host.len() >= n {
            codec.widen(&host[..n], &mut dense);
            self.scatter(&access, &dense);
            self.mark_written(&access);
        }
    }

    /// The storage of an on-chip tensor that is not shared with any other.
    pub(crate) fn own_storage(&self, tensor: TensorId) -> Option<usize> {
        let t = self.program.tensor(tensor);
        let own = t.space.is_on_chip() && t.address.is_none();
        self.homes[tensor.0 as usize].filter(|_| own).map(Home::storage)
    }

    /// Releases the buffer of a tensor that the program does not use any more.
    pub(crate) fn release(&mut self, tensor: TensorId) {
        let t = self.program.tensor(tensor);
        self.accumulated.remove(&tensor);
        if t.space.is_hbm() || t.address.is_some() {
            return;
        }
        if let Some(home) = self.homes[tensor.0 as usize].take() {
            let data = self.storages[home.storage()].take();
            if !self.account_only {
                self.pool.entry(data.len()).or_default().push(data);
            }
            self.vacant.push(home.storage());
        }
    }

    /// The bytes of a PSUM tensor that matmuls have written since its creation.
    pub(crate) fn accumulated(&mut self, tensor: TensorId) -> &mut ByteSet {
        let t = self.program.tensor(tensor);
        self.accumulated
            .entry(tensor)
            .or_insert_with(|| ByteSet::empty(t.shape.first().map_or(1, |&n| n as usize), t.bytes()))
    }

    /// Recreates the tensor in an iteration of a dynamic loop: none of its bytes are written, and no matmul has begun a sum in it.
    pub(crate) fn renew(&mut self, tensor: TensorId) {
        self.begin_sums(tensor);
        if let Some(storage) = self.own_storage(tensor) {
            self.storages[storage].init.clear();
        }
    }

    /// Clears the record of matmul writes to the tensor.
    pub(crate) fn begin_sums(&mut self, tensor: TensorId) {
        if let Some(set) = self.accumulated.get_mut(&tensor) {
            set.clear();
        }
    }

    /// Writes one element's bytes to all elements of a view.
    pub(crate) fn fill(&mut self, access: &Access, one: &[u8]) {
        let row = one.repeat(access.per_row);
        let steps = self.steps(access);
        for i in 0..access.rows {
            if let Some(base) = self.position(access, i) {
                elements::scatter(self.storages[access.storage].bytes_mut(), base, &steps, one.len(), &row);
            }
        }
    }

    /// The automatic placement of tensors; for messages.
    pub(crate) fn placement(&self) -> &'p Placement {
        self.placement
    }

    /// The program.
    pub(crate) fn program(&self) -> &'p Program {
        self.program
    }

    /// Limits of the target.
    pub(crate) fn arch(&self) -> &'static Arch {
        self.arch
    }
}
