//! The interface between an instruction's numerics and the memories it works on.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use smallvec::SmallVec;

use crate::arch::Arch;
use crate::arg::Imm;
use crate::dtype::{DType, bits_to_f32, bits_to_i64};
use crate::gemm;
use crate::ids::RegId;
use crate::inst::math::activation::ActFn;
use crate::names::OobMode;
use crate::rendezvous::Contribution;
use crate::tensor::Tensor;
use crate::view::View;
use crate::violation::Violation;

/// Input of validation and costing.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Limits of the target.
    pub arch: &'a Arch,
    /// All tensors of the program.
    pub tensors: &'a [Tensor],
}

/// A run-time error of the kernel: the run stops here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Diagnostic slug.
    pub id: &'static str,
    /// Description of the error, with its numbers.
    pub message: String,
}

impl Fault {
    /// A fault.
    pub fn new(id: &'static str, message: impl Into<String>) -> Self {
        Fault { id, message: message.into() }
    }
}

/// An owning function of one partition for [`Machine::map_f32`]: `(partition, inputs, outputs)`.
///
/// `inputs[i]` holds the elements of source `i` in this partition, in the view's order (a `(P, 1)` view has one
/// element); the function fills `outputs[j]` for destination `j` (its previous content is unspecified).
/// `partition` counts from 0 within the operands.
pub type RowsF32 = Box<dyn Fn(usize, &[&[f32]], &mut [&mut [f32]]) + Send + Sync>;

/// The rows of one partition, one for each operand.
#[derive(Debug)]
pub struct Row<'a, T> {
    /// Counts from 0 within the operands.
    pub partition: usize,
    /// A row of each source.
    pub ins: SmallVec<[&'a [T]; 4]>,
    /// A row of each destination.
    pub outs: SmallVec<[&'a mut [T]; 2]>,
}

/// The rows in fp32 (see [`RowsF32`]).
pub type RowF32<'a> = Row<'a, f32>;

/// The rows as raw element bits, zero-extended (see [`RowsBits`]).
pub type RowBits<'a> = Row<'a, u32>;

/// The representation of elements in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// Each in the bits of its own type.
    Narrow,
    /// In 32 bits: floats as fp32, integers sign- or zero-extended.
    Wide,
}

impl Representation {
    /// The bits in memory of an element of at most 32 bits whose own bits are `bits`.
    pub fn bits(self, dtype: DType, bits: u32) -> u32 {
        match self {
            Representation::Narrow => bits,
            Representation::Wide if dtype.is_packed() => bits,
            Representation::Wide if dtype.is_float() => bits_to_f32(dtype, bits).to_bits(),
            Representation::Wide => bits_to_i64(dtype, bits) as u32,
        }
    }
}

/// An owning function of several independent partitions at once. Their number carries no meaning.
pub type BatchF32 = Box<dyn Fn(&mut [RowF32<'_>]) + Send + Sync>;

/// Observes the arguments of a function before it is applied: `(partition, arguments)`, where the partition counts from 0 within the operands.
pub type Arguments = Arc<dyn Fn(usize, &[f32]) + Send + Sync>;

/// An update of an engine state (see [`Machine::engine_state`]) by an instruction: the state's name, and the change.
pub type StateUpdate = (&'static str, Box<dyn FnOnce(&mut Vec<u32>) + Send>);

/// As [`RowsF32`] with integers, borrowed: values sign- or zero-extended from the element type.
pub type RowsI64<'f> = &'f (dyn Fn(usize, &[&[i64]], &mut [&mut [i64]]) + Sync);

/// A function of the element bits of adjacent partitions for [`Machine::map_bits`], called immediately, with partitions in ascending order. The
/// number of partitions per call depends on the machine. The previous content of the destination rows is unspecified; each destination element
/// keeps the low bits of its new value. After a fault the function is not called again.
pub type RowsBits<'f> = &'f mut dyn FnMut(&mut [RowBits<'_>]) -> Result<(), Fault>;

/// A function of three tiles for [`Machine::contract`]: `(stationary [K, M], moving [K, N], result [M, N])`.
pub type Tiles<'f> = &'f mut dyn FnMut(ArrayView2<'_, f32>, ArrayView2<'_, f32>, ArrayViewMut2<'_, f32>);

/// Adapts a function of several partitions to a single partition.
pub fn one_partition(f: BatchF32) -> RowsF32 {
    Box::new(move |partition, ins, outs| {
        let outs = outs.iter_mut().map(|o| &mut **o).collect();
        f(&mut [RowF32 { partition, ins: ins.iter().copied().collect(), outs }]);
    })
}

/// A row of a matrix whose rows have `width` elements.
fn row<T>(matrix: Option<&[T]>, partition: usize, width: usize) -> &[T] {
    matrix.unwrap_or_default().chunks(width.max(1)).nth(partition).unwrap_or_default()
}

/// The memories and state that numerics run on. All methods resolve dynamic offsets, check bounds, and record reads of unwritten bytes.
///
/// Semantics of the row methods: within one partition all sources are read before any destination is written. If a
/// destination's partitions differ from a source's, the result is as if all partitions were read before any is written.
/// Values are converted to fp32 when read and rounded to the element type when written.
pub trait Machine {
    /// Limits and tensors.
    fn context(&self) -> Context<'_>;

    /// Applies `f` to each partition in fp32. All views have the same number of partitions (dimension 0). The machine may defer the
    /// computation as long as this is not observable; `update` is applied after it.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn map_f32(&mut self, dsts: &[&View], srcs: &[&View], f: RowsF32, update: Option<StateUpdate>)
    -> Result<(), Fault>;

    /// As [`map_f32`](Machine::map_f32) for a function whose steps depend on each other within a row, so that processing several rows
    /// together is faster.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn map_f32_batch(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        f: BatchF32,
        update: Option<StateUpdate>,
    ) -> Result<(), Fault> {
        self.map_f32(dsts, srcs, one_partition(f), update)
    }

    /// Applies `f` to each partition in exact integers; written values wrap to the element type. Integer views only.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn map_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault>;

    /// Applies `f` to the element bits of all partitions, for bit-exact moves. Elements have at most 32 bits. Without destinations it only reads.
    ///
    /// # Errors
    /// If an address is out of bounds, or the fault that `f` returns.
    fn map_bits(&mut self, dsts: &[&View], srcs: &[&View], f: RowsBits<'_>) -> Result<(), Fault> {
        let ins = srcs.iter().map(|v| self.read_bits(v)).collect::<Result<Vec<_>, _>>()?;
        let mut outs: Vec<Array2<u32>> =
            dsts.iter().map(|v| Array2::zeros((v.partitions() as usize, v.free_elements()))).collect();
        for partition in 0..dsts.iter().chain(srcs).map(|v| v.partitions()).max().unwrap_or(0) as usize {
            let ins = ins.iter().map(|tile| row(tile.as_slice(), partition, tile.ncols())).collect();
            let outs = outs.iter_mut().map(|tile| {
                let width = tile.ncols();
                tile.as_slice_mut().unwrap_or_default().chunks_mut(width.max(1)).nth(partition).unwrap_or_default()
            });
            f(&mut [RowBits { partition, ins, outs: outs.collect() }])?;
        }
        dsts.iter().zip(&outs).try_for_each(|(v, tile)| self.write_bits(v, tile.view()))
    }

    /// Whether the register or the scalar that indexes the view takes it out of its tensor.
    ///
    /// # Errors
    /// If the index cannot be read.
    fn is_outside(&mut self, view: &View) -> Result<bool, Fault>;

    /// Copies elements in order; shapes may differ, element counts may not. Bit-exact between equal dtypes, else through fp32.
    /// Works between any memories. With [`OobMode::Skip`] elements whose dynamic index is out of bounds are left unchanged.
    ///
    /// # Errors
    /// If an address is out of bounds and `oob` is [`OobMode::Error`].
    fn copy(&mut self, dst: &View, src: &View, oob: OobMode) -> Result<(), Fault>;

    /// Writes one value to every element (converted to the element type: exact for integers).
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn fill(&mut self, dst: &View, value: Imm) -> Result<(), Fault>;

    /// Prepares a PSUM destination for a matmul and returns whether the result is to be added to its content.
    ///
    /// `mode` is NKI's `accumulate`: `Some(false)` overwrites, `Some(true)` adds, `None` overwrites the locations that no matmul
    /// has written since the tensor was created and adds to the others (mixed destinations are zeroed where fresh, then added to).
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn begin_accumulate(&mut self, dst: &View, mode: Option<bool>) -> Result<bool, Fault>;

    /// Calls `f` with the operands of a matmul as fp32 matrices: `stationary`, `moving` and `dst`, the latter with its current
    /// content. Rows are partitions, columns the free elements in order. The result matrix is then rounded to `dst`'s
    /// element type.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn contract(&mut self, dst: &View, stationary: &View, moving: &View, f: Tiles<'_>) -> Result<(), Fault>;

    /// Multiplies the transpose of `stationary` `[K, M]` with `moving` `[K, N]` into `dst` `[M, N]` in fp32, in the order of
    /// [`gemm`]; `accumulate` as for [`begin_accumulate`](Machine::begin_accumulate).
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn multiply(
        &mut self,
        dst: &View,
        stationary: &View,
        moving: &View,
        accumulate: Option<bool>,
    ) -> Result<(), Fault> {
        let add = self.begin_accumulate(dst, accumulate)?;
        self.contract(dst, stationary, moving, &mut |s, m, out| gemm::multiply(s, m, add, out))
    }

    /// Reads a whole tile (partitions x free elements) in fp32.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn read_tile(&mut self, src: &View) -> Result<Array2<f32>, Fault>;

    /// Writes a whole tile in fp32, rounded to the element type.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn write_tile(&mut self, dst: &View, tile: ArrayView2<'_, f32>) -> Result<(), Fault>;

    /// How memory holds elements. An instruction that creates elements (from numbers or at random) instead of moving other elements' bits converts
    /// them with [`Representation::bits`] before it writes them as bits.
    fn representation(&mut self) -> Representation {
        Representation::Narrow
    }

    /// Reads a whole tile as raw element bits, zero-extended: for bit-exact moves.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn read_bits(&mut self, src: &View) -> Result<Array2<u32>, Fault>;

    /// Writes a whole tile of raw element bits.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn write_bits(&mut self, dst: &View, tile: ArrayView2<'_, u32>) -> Result<(), Fault>;

    /// Moves the element of partition `i` and free position `j` of `src` to partition `j` and position `i` of `dst`, bit by bit.
    ///
    /// # Errors
    /// If an address is out of bounds.
    fn transpose(&mut self, dst: &View, src: &View) -> Result<(), Fault> {
        let bits = self.read_bits(src)?;
        self.write_bits(dst, bits.t())
    }

    /// A register's value. Reading an unwritten register is a finding and returns 0.
    fn register(&mut self, register: RegId) -> i64;

    /// Sets a register. It holds 64 bits; 32-bit instructions sign-extend their results.
    fn set_register(&mut self, register: RegId, value: i64);

    /// Records a line that the kernel prints on the device (`nl.device_print`).
    fn print(&mut self, line: String);

    /// State that an engine keeps between instructions (accumulator registers, random number generators): a named block of
    /// `f32` bits that starts empty.
    fn engine_state(&mut self, name: &'static str) -> &mut Vec<u32>;

    /// Reports that an operand of the current instruction has unexpected values (slug `unexpected-values`).
    fn note_unexpected(&mut self, _found: Violation) {}

    /// The observer for the arguments of the activation function that the current instruction applies, if there is one.
    fn watch_arguments(&mut self, _op: ActFn) -> Option<Arguments> {
        None
    }

    /// The contributions of the members of the instruction's rendezvous, in the order of its members; empty for an instruction
    /// without a rendezvous.
    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::from([])
    }

    /// The number of the physical core in its logical core.
    fn core(&self) -> u32 {
        0
    }

    /// The rank.
    fn rank(&self) -> u32 {
        0
    }
}
