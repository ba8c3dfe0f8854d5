//! The interpreter's memories and registers as seen by instructions.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, ShapeBuilder};
use nki_isa::arg::Imm;
use nki_isa::ids::RegId;
use nki_isa::inst::Footprint;
use nki_isa::inst::math::activation::ActFn;
use nki_isa::machine::{Arguments, BatchF32, Context, Representation, RowsBits, RowsF32, RowsI64, StateUpdate, Tiles};
use nki_isa::names::{Engine, OobMode};
use nki_isa::program::NodeKind;
use nki_isa::view::{column_group, column_position};
use nki_isa::{Arch, Contribution, Dim, Fault, Index, Machine, Tensor, View, Violation};

use super::deferred::StepKind;
use super::findings::Place;
use super::interpreter::Interpreter;
use crate::memory::access::{Access, Accumulation, Shift, beyond};
use crate::memory::elements;
use crate::trace::Resolved;

/// Dynamic part of an address.
enum Dynamic {
    Shift(Shift),
    /// The whole access is out of bounds.
    Outside(Fault),
}

impl Interpreter<'_> {
    /// Evaluates the dynamic part of a view's address. Rows out of bounds are `None`, and the returned fault names them.
    fn dynamic(&mut self, view: &View) -> Result<(Dynamic, Option<Fault>), Fault> {
        let Some(indirect) = view.indirect.as_deref() else { return Ok((Dynamic::Shift(Shift::Offset(0)), None)) };
        let outside = |interpreter: &Self, value: i64, which: &str| {
            let tensor = interpreter.program.tensor(view.tensor);
            Fault::new(
                "out-of-bounds",
                format!(
                    "dynamic index {value}{which} of `{}` (line {}) is out of bounds: valid are 0 to {}",
                    tensor.name,
                    tensor.loc.line,
                    i64::from(indirect.bound) - 1
                ),
            )
        };
        let inside = |value: i64| (0..i64::from(indirect.bound)).contains(&value);
        let tensor = self.program.tensor(view.tensor);
        let scalar = match &indirect.index {
            Index::Register(r) => self.get(*r),
            Index::Scalar(v) => self.integers(v)?.first().copied().unwrap_or(0),
            Index::Vector(v) => {
                let values = self.integers(v)?;
                let mut fault = None;
                let mut row = |i: usize, value: i64| {
                    let by = value * indirect.stride;
                    let found = if inside(value) {
                        unless_within(tensor, view, view.dims.get(1..).unwrap_or_default(), by)
                    } else {
                        Some(outside(self, value, &format!(" (entry {i} of the index vector)")))
                    };
                    let is_inside = found.is_none();
                    fault = fault.take().or(found);
                    is_inside.then_some(by)
                };
                let rows = values.iter().enumerate().map(|(i, &value)| row(i, value)).collect();
                return Ok((Dynamic::Shift(Shift::Rows(rows)), fault));
            }
            Index::Columns(v) => {
                let values = self.integers(v)?;
                let group = self.column_group();
                let (partitions, count) = (view.partitions() as usize, view.free_elements());
                let mut moves = Vec::with_capacity(partitions * count);
                for (p, i) in (0..partitions).flat_map(|p| (0..count).map(move |i| (p, i))) {
                    let at = column_position(group, v.free_elements(), p, i);
                    let value = values.get(at).copied().unwrap_or(-1);
                    if !inside(value) {
                        let which = format!(" (offset {i} of partition {p})");
                        return Ok((Dynamic::Outside(outside(self, value, &which)), None));
                    }
                    moves.push(value * indirect.stride);
                }
                return Ok((Dynamic::Shift(Shift::Columns(moves.into_boxed_slice())), None));
            }
        };
        let by = scalar * indirect.stride;
        let fault =
            if inside(scalar) { unless_within(tensor, view, &view.dims, by) } else { Some(outside(self, scalar, "")) };
        Ok((fault.map_or(Dynamic::Shift(Shift::Offset(by)), Dynamic::Outside), None))
    }

    /// Partitions that share the offsets of tensor indirection in the current instruction.
    fn column_group(&self) -> usize {
        match self.core.node.map(|n| &n.kind) {
            Some(NodeKind::Inst(inst)) => column_group(inst.engine(Arch::of(self.program.target))),
            _ => column_group(Engine::Vector),
        }
    }

    /// All elements of an index tensor.
    fn integers(&mut self, view: &View) -> Result<Vec<i64>, Fault> {
        self.flush();
        let access = self.source(view)?;
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        self.memory().gather(&access, &mut bytes);
        let mut out = vec![0; access.elements()];
        if access.codec.dtype.is_float() {
            let mut floats = vec![0.0; out.len()];
            access.codec.to_f32(&bytes, &mut floats);
            out.iter_mut().zip(floats).for_each(|(o, f)| *o = f as i64);
        } else {
            access.codec.to_i64(&bytes, &mut out);
        }
        Ok(out)
    }

    /// Resolves a view for an access; none if the whole access is out of bounds and may be skipped.
    pub(super) fn locate(&mut self, view: &View, oob: OobMode) -> Result<Option<Access>, Fault> {
        let skip = oob == OobMode::Skip;
        let (dynamic, fault) = self.dynamic(view)?;
        let shift = match (dynamic, fault) {
            (Dynamic::Outside(_), _) if skip => return Ok(None),
            (Dynamic::Outside(f), _) => return Err(f),
            (_, Some(f)) if !skip => return Err(f),
            (Dynamic::Shift(shift), _) => shift,
        };
        self.deferred.account().resolve(view, &shift).map(Some)
    }

    /// Resolves a view for a read: unwritten elements are reported, and read as the sentinel.
    pub(super) fn source(&mut self, view: &View) -> Result<Access, Fault> {
        let access = self.locate(view, OobMode::Error)?;
        let access = access.ok_or_else(|| Fault::new("out-of-bounds", "access out of bounds"))?;
        self.check_written(view, &access);
        Ok(access)
    }

    pub(super) fn check_written(&mut self, view: &View, access: &Access) {
        let unwritten = match self.core.node {
            Some(node) => {
                let at = Place { program: self.program, node, loops: &self.core.loops };
                self.findings.check_read(&mut self.deferred.account(), at, view, access)
            }
            None => self.deferred.account().find_unwritten(access).is_some(),
        };
        if unwritten {
            self.memory().poison(access);
            self.taint_unwritten(view, access);
        }
    }

    /// The destination of an accumulating matmul must have been written; before trn3 by a matmul.
    pub(super) fn check_accumulation(&mut self, dst: &View, to: &Access, what: Accumulation) {
        if let Some(node) = self.core.node {
            let at = Place { program: self.program, node, loops: &self.core.loops };
            self.findings.check_accumulation(&self.deferred.account(), at, dst, to, what);
        }
        if what.add {
            self.check_written(dst, to);
        }
    }

    /// Resolves a view for a write.
    pub(super) fn destination(&mut self, view: &View) -> Result<Access, Fault> {
        let access = self.locate(view, OobMode::Error)?;
        access.ok_or_else(|| Fault::new("out-of-bounds", "access out of bounds"))
    }

    /// The dynamic addresses of an instruction, for the trace.
    pub(super) fn resolved(&mut self, footprint: &Footprint<'_>) -> Result<Option<Box<[Resolved]>>, Fault> {
        let views = footprint.reads.iter().chain(&footprint.writes).filter(|v| v.indirect.is_some());
        let mut out = Vec::new();
        for view in views {
            out.push(match self.dynamic(view)?.0 {
                Dynamic::Outside(_) => Resolved::Skipped,
                Dynamic::Shift(Shift::Offset(by)) => Resolved::Offset(by),
                Dynamic::Shift(Shift::Rows(rows)) => Resolved::Rows(rows),
                Dynamic::Shift(Shift::Columns(moves)) => Resolved::Rows(moves.iter().map(|&m| Some(m)).collect()),
            });
        }
        Ok((!out.is_empty()).then(|| out.into_boxed_slice()))
    }

    /// Writes all elements of an access as bits.
    fn put_bits(&mut self, to: &Access, tile: ArrayView2<'_, u32>) {
        let memory = self.memory();
        memory.scatter(to, &elements::from_bits(&elements::dense(tile), to.codec.size()));
        memory.mark_written(to);
    }
}

/// The fault if the elements selected by `dims` in HBM, `by` elements from the start of a view, are not all in its tensor.
fn unless_within(tensor: &Tensor, view: &View, dims: &[Dim], by: i64) -> Option<Fault> {
    let reach = |d: &Dim| d.stride * (i64::from(d.count) - 1);
    let first = view.offset + by + dims.iter().map(|d| reach(d).min(0)).sum::<i64>();
    let last = view.offset + by + dims.iter().map(|d| reach(d).max(0)).sum::<i64>();
    let is_within = first >= 0 && last < (tensor.bytes() / view.dtype.size()) as i64;
    let reached = if first < 0 { first } else { last };
    (view.space.is_hbm() && !is_within).then(|| beyond(tensor, view, reached))
}

/// A borrowed or converted matrix.
fn matrix<'a>(
    layout: Option<(usize, usize, usize)>,
    bytes: &'a [u8],
    shape: (usize, usize),
    scratch: &'a [f32],
) -> Result<ArrayView2<'a, f32>, Fault> {
    let words: Option<&[f32]> = bytemuck::try_cast_slice(bytes).ok();
    if let (Some((base, row, column)), Some(words)) = (layout, words)
        && let Some(words) = words.get(base..)
        && let Ok(view) = ArrayView2::from_shape(shape.strides((row, column)), words)
    {
        return Ok(view);
    }
    let elements = scratch.get(..shape.0 * shape.1).unwrap_or(scratch);
    ArrayView2::from_shape(shape, elements).map_err(|e| Fault::new("internal", e.to_string()))
}

/// Elements of an access as bits, one row per partition.
fn bits(from: &Access, bytes: &[u8]) -> Result<Array2<u32>, Fault> {
    Array2::from_shape_vec((from.partitions(), from.width()), elements::to_bits(bytes, from.codec.size()))
        .map_err(|e| Fault::new("internal", e.to_string()))
}

/// One side of a transfer without the elements of the rows that the other side skips.
fn transferred<'a>(side: &'a Access, other: &Access) -> Cow<'a, Access> {
    match &other.starts {
        Some(starts) if starts.iter().any(Option::is_none) => {
            Cow::Owned(side.only(|element| starts[element / other.per_row.max(1)].is_some()))
        }
        _ => Cow::Borrowed(side),
    }
}

impl Machine for Interpreter<'_> {
    fn context(&self) -> Context<'_> {
        Context { arch: Arch::of(self.program.target), tensors: &self.program.tensors }
    }

    fn map_f32(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        f: RowsF32,
        update: Option<StateUpdate>,
    ) -> Result<(), Fault> {
        self.defer_rows(dsts, srcs, StepKind::Map(f), update)
    }

    fn map_f32_batch(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        f: BatchF32,
        update: Option<StateUpdate>,
    ) -> Result<(), Fault> {
        self.defer_rows(dsts, srcs, StepKind::Batch(f), update)
    }

    fn map_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault> {
        self.map_rows_i64(dsts, srcs, f)
    }

    fn representation(&mut self) -> Representation {
        if self.memory().scale == 1 { Representation::Narrow } else { Representation::Wide }
    }

    fn map_bits(&mut self, dsts: &[&View], srcs: &[&View], f: RowsBits<'_>) -> Result<(), Fault> {
        self.map_rows_bits(dsts, srcs, f)
    }

    fn is_outside(&mut self, view: &View) -> Result<bool, Fault> {
        Ok(self.locate(view, OobMode::Skip)?.is_none())
    }

    fn copy(&mut self, dst: &View, src: &View, oob: OobMode) -> Result<(), Fault> {
        let from = self.locate(src, oob)?;
        let to = self.locate(dst, oob)?;
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        if from.elements() != to.elements() {
            return Err(Fault::new(
                "shape-mismatch",
                format!("copies {} elements to {}", from.elements(), to.elements()),
            ));
        }
        if !self.may_follow_moves(&to, &from) {
            self.flush_matmuls();
        }
        self.check_written(src, &transferred(&from, &to));
        let to = transferred(&to, &from);
        if self.defer_copy(&to, &from) {
            return Ok(());
        }
        self.flush();
        if to.codec != from.codec {
            self.inspect_copy(&to, &from);
        }
        let memory = self.memory();
        memory.copy(&to, &from);
        memory.mark_written(&to);
        Ok(())
    }

    fn fill(&mut self, dst: &View, value: Imm) -> Result<(), Fault> {
        self.flush_matmuls();
        let to = self.destination(dst)?;
        let size = to.codec.size();
        let mut one = [0; 4];
        match (value.as_i64(), to.codec.dtype.is_int()) {
            (Some(i), true) => to.codec.write_i64(&[i], &mut one[..size]),
            _ => to.codec.write_f32(&[value.as_f32()], &mut one[..size]),
        }
        self.inspect_fill(&to, value.as_f32());
        if self.defer_fill(&to, one) {
            return Ok(());
        }
        let memory = self.memory();
        memory.fill(&to, &one[..size]);
        memory.mark_written(&to);
        Ok(())
    }

    fn begin_accumulate(&mut self, dst: &View, mode: Option<bool>) -> Result<bool, Fault> {
        let to = self.destination(dst)?;
        // Only a sum reads the destination.
        if mode != Some(false) {
            self.flush();
        }
        let what = self.deferred.begin_accumulate(&to, mode);
        self.check_accumulation(dst, &to, what);
        Ok(what.add)
    }

    fn contract(&mut self, dst: &View, stationary: &View, moving: &View, f: Tiles<'_>) -> Result<(), Fault> {
        self.flush();
        let left = self.source(stationary)?;
        let right = self.source(moving)?;
        let to = self.destination(dst)?;
        // Operands that are not fp32, or are in the destination's storage, are converted.
        let [mut left_scratch, mut right_scratch] = std::mem::take(&mut self.tiles);
        let memory = self.memory();
        let place = |a: &Access, scratch: &mut Vec<f32>| {
            let direct = if a.storage == to.storage { None } else { memory.layout(a) };
            if direct.is_none() {
                memory.tile_into(a, scratch);
            }
            direct
        };
        let left_at = place(&left, &mut left_scratch);
        let right_at = place(&right, &mut right_scratch);
        // Elements at equal addresses cannot be borrowed together.
        let apart = |&(_, row, column): &(usize, usize, usize)| {
            column > 0 && (to.partitions() == 1 || row > column * (to.width() - 1))
        };
        let direct = memory.layout(&to).filter(apart);
        let mut result = if direct.is_none() { memory.tile(&to) } else { Vec::new() };
        let mut data = memory.storages[to.storage].take();
        let outcome = (|| {
            let bytes = |a: &Access| memory.storages[a.storage].bytes();
            let left = matrix(left_at, bytes(&left), (left.partitions(), left.width()), &left_scratch)?;
            let right = matrix(right_at, bytes(&right), (right.partitions(), right.width()), &right_scratch)?;
            let shape = (to.partitions(), to.width());
            let target = match direct {
                Some((base, row, column)) => {
                    let words: Option<&mut [f32]> = bytemuck::try_cast_slice_mut(data.bytes_mut()).ok();
                    words
                        .and_then(|w| w.get_mut(base..))
                        .and_then(|w| ArrayViewMut2::from_shape(shape.strides((row, column)), w).ok())
                }
                None => ArrayViewMut2::from_shape(shape, &mut result).ok(),
            };
            let target = target
                .ok_or_else(|| Fault::new("internal", "the destination of a matmul is not a matrix".to_owned()))?;
            f(left, right, target);
            Ok(())
        })();
        memory.storages[to.storage].put(data);
        self.tiles = [left_scratch, right_scratch];
        outcome?;
        if direct.is_none() {
            self.inspect_tile(&to, &result);
            self.memory().put_tile(&to, &result);
        } else if self.values.wants_non_finite_at(self.core.node) {
            let result = self.memory().tile(&to);
            self.inspect_tile(&to, &result);
        }
        self.memory().mark_written(&to);
        Ok(())
    }

    fn multiply(
        &mut self,
        dst: &View,
        stationary: &View,
        moving: &View,
        accumulate: Option<bool>,
    ) -> Result<(), Fault> {
        self.defer_matmul(dst, stationary, moving, accumulate)
    }

    fn read_tile(&mut self, src: &View) -> Result<Array2<f32>, Fault> {
        self.flush();
        let from = self.source(src)?;
        self.inspect_read(&from);
        let values = self.memory().tile(&from);
        Array2::from_shape_vec((from.partitions(), from.width()), values)
            .map_err(|e| Fault::new("internal", e.to_string()))
    }

    fn write_tile(&mut self, dst: &View, tile: ArrayView2<'_, f32>) -> Result<(), Fault> {
        self.flush();
        let to = self.destination(dst)?;
        if tile.len() != to.elements() {
            return Err(Fault::new("shape-mismatch", format!("writes {} elements to {}", tile.len(), to.elements())));
        }
        let values = elements::dense(tile);
        self.inspect_tile(&to, &values);
        let memory = self.memory();
        memory.put_tile(&to, &values);
        memory.mark_written(&to);
        Ok(())
    }

    fn read_bits(&mut self, src: &View) -> Result<Array2<u32>, Fault> {
        self.flush();
        let from = self.source(src)?;
        let mut bytes = vec![0; from.elements() * from.codec.size()];
        self.memory().gather(&from, &mut bytes);
        self.inspect_register_load(&from, &bytes);
        bits(&from, &bytes)
    }

    fn write_bits(&mut self, dst: &View, tile: ArrayView2<'_, u32>) -> Result<(), Fault> {
        self.flush();
        let to = self.destination(dst)?;
        if tile.len() != to.elements() {
            return Err(Fault::new("shape-mismatch", format!("writes {} elements to {}", tile.len(), to.elements())));
        }
        self.put_bits(&to, tile);
        Ok(())
    }

    fn transpose(&mut self, dst: &View, src: &View) -> Result<(), Fault> {
        let from = self.source(src)?;
        let to = self.destination(dst)?;
        if !self.defer_transpose(&to, &from) {
            let memory = self.memory();
            memory.transpose(&to, &from);
            memory.mark_written(&to);
        }
        Ok(())
    }

    fn register(&mut self, register: RegId) -> i64 {
        self.get(register)
    }

    fn set_register(&mut self, register: RegId, value: i64) {
        self.set(register, value);
    }

    fn watch_arguments(&mut self, op: ActFn) -> Option<Arguments> {
        let arguments = self.arguments(op)?;
        Some(Arc::new(move |partition, row| arguments.row(partition, row)))
    }

    fn print(&mut self, line: String) {
        self.prints.push(line);
    }

    fn engine_state(&mut self, name: &'static str) -> &mut Vec<u32> {
        // A deferred instruction may still add to it.
        self.flush();
        self.core.engine_state.entry(name).or_default()
    }

    fn note_unexpected(&mut self, found: Violation) {
        if let Some(node) = self.core.node {
            let at = Place { program: self.program, node, loops: &self.core.loops };
            self.findings.unexpected_values(at, &found);
        }
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributed)
    }

    fn core(&self) -> u32 {
        self.core.number
    }

    fn rank(&self) -> u32 {
        self.rank
    }
}
