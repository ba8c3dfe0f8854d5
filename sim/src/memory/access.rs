//! A view resolved to bytes of a storage: bounds, written bytes, gather and scatter.

use nki_isa::{Fault, Tensor, TensorId, View};

use super::elements::{self, Codec, Step, Steps};
use super::{Home, Memory, UnwrittenValue};

/// A view with its dynamic offsets resolved and its bounds checked.
///
/// Dimension 0 ("row": the partition on chip) is separate from the others. Rows and columns are storage coordinates; columns are in program bytes.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) tensor: TensorId,
    pub(crate) storage: usize,
    pub(crate) codec: Codec,
    /// Storage row of the view's first row (0 in HBM).
    pub(crate) row: usize,
    /// Distance in storage rows between rows of the view (0 in HBM).
    pub(crate) row_step: isize,
    /// First byte of the first row.
    pub(crate) column: usize,
    /// Bytes between the starts of rows of the view (0 on chip).
    pub(crate) column_step: isize,
    /// Rows of the view; if offsets select columns, each element is a row.
    pub(crate) rows: usize,
    /// Rows per partition: more than one only if offsets select columns.
    pub(crate) pieces: usize,
    /// The elements of a row, merged.
    pub(crate) inner: Steps,
    /// Elements of a row.
    pub(crate) per_row: usize,
    /// With a vector of indices: first byte of each row, or none if it is skipped. Replaces `column` and `column_step`.
    pub(crate) starts: Option<Box<[Option<usize>]>>,
    /// Location of the tensor.
    pub(crate) home: Home,
}

impl Access {
    /// Number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.rows * self.per_row
    }

    /// Partitions (steps of dimension 0).
    pub(crate) fn partitions(&self) -> usize {
        self.rows / self.pieces.max(1)
    }

    /// Elements of a partition.
    pub(crate) fn width(&self) -> usize {
        self.per_row * self.pieces
    }

    /// Row and first byte of row `i` of the view; none if it is skipped.
    pub(crate) fn start(&self, i: usize) -> Option<(usize, usize)> {
        let row = self.row.wrapping_add_signed(self.row_step * (i / self.pieces.max(1)) as isize);
        match &self.starts {
            Some(starts) => starts[i].map(|s| (row, s)),
            None => Some((row, self.column.wrapping_add_signed(self.column_step * i as isize))),
        }
    }

    /// Whether the elements of a row are contiguous bytes.
    pub(crate) fn is_dense(&self) -> bool {
        match self.inner[..] {
            [] => true,
            [s] => s.stride == self.codec.dtype.size() as isize,
            _ => false,
        }
    }

    /// The access restricted to the elements, counted over all rows, for which `keep` is true. Keeps whole rows if `keep` is uniform within every
    /// row; otherwise each element becomes a separate row.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Access {
        let kept: Vec<bool> = (0..self.elements()).map(keep).collect();
        let start = |i: usize| self.start(i).map(|(_, at)| at);
        let by_row: Vec<&[bool]> = kept.chunks(self.per_row.max(1)).collect();
        if by_row.iter().all(|row| row.iter().all(|&k| k == row[0])) {
            let starts = by_row.iter().enumerate().map(|(i, row)| if row[0] { start(i) } else { None }).collect();
            return Access { starts: Some(starts), ..self.clone() };
        }
        let mut offsets = Vec::new();
        elements::each_run(0, &self.inner, self.codec.dtype.size(), &mut |at, step| {
            offsets.extend((0..step.count as isize).map(|k| at.wrapping_add_signed(step.stride * k)));
        });
        let element = |e: usize| start(e / self.per_row).map(|at| at.wrapping_add(offsets[e % self.per_row]));
        let starts = kept.iter().enumerate().map(|(e, &kept)| if kept { element(e) } else { None }).collect();
        Access {
            rows: self.elements(),
            pieces: self.width(),
            per_row: 1,
            inner: Steps::new(),
            starts: Some(starts),
            ..self.clone()
        }
    }

    /// Lowest and highest byte of a row, relative to its start; the end is exclusive.
    pub(crate) fn reach(&self) -> (isize, isize) {
        reach(&self.inner, self.codec.dtype.size())
    }
}

/// The fault of an access through `view` to element `reached`, which is outside its tensor.
pub(crate) fn beyond(tensor: &Tensor, view: &View, reached: i64) -> Fault {
    let elements = tensor.bytes() / view.dtype.size();
    let what = if view.space.is_on_chip() { " per partition" } else { "" };
    let message = format!(
        "the access reaches element {reached} of `{}`, which has {elements} {} elements{what} (0 to {})",
        tensor.name,
        view.dtype,
        elements as i64 - 1
    );
    Fault::new("out-of-bounds", message)
}

fn reach(inner: &[Step], size: usize) -> (isize, isize) {
    let (mut lo, mut hi) = (0, size as isize);
    for s in inner {
        let far = s.stride * (s.count as isize - 1);
        if far < 0 {
            lo += far;
        } else {
            hi += far;
        }
    }
    (lo, hi)
}

/// Unwritten bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unwritten {
    /// Number of affected elements.
    pub(crate) elements: usize,
    /// Row of the view with the first one.
    pub(crate) row: usize,
    /// Its position in the row.
    pub(crate) element: usize,
}

/// The dynamic part of a view's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shift {
    /// The same for all elements.
    Offset(i64),
    /// Elements by step of dimension 0 (replacing its stride); none if skipped.
    Rows(Box<[Option<i64>]>),
    /// Elements by element of each partition, partition after partition.
    Columns(Box<[i64]>),
}

impl Memory<'_> {
    /// Resolves a view without dynamic parts, moved by `offset` elements.
    pub(crate) fn resolve_static(&mut self, view: &View, offset: i64) -> Result<Access, Fault> {
        self.resolve(view, &Shift::Offset(offset))
    }

    /// Rejects a view as another dtype if every element is kept in 32 bits, unless these are the bits of both dtypes.
    fn check_readable(&self, view: &View) -> Result<(), Fault> {
        let tensor = self.program().tensor(view.tensor);
        let (kept, read) = (tensor.dtype, view.dtype);
        if self.scale == 1 || kept == read || kept.size() == 4 && read.size() == 4 {
            return Ok(());
        }
        let message = format!(
            "NKI_PRECISE_FP=0 keeps the elements of `{}` ({kept}) in 32 bits each: there are no bytes to view as {read}",
            tensor.name
        );
        Err(Fault::new("wide-view", message))
    }

    /// Resolves a view: finds the storage, applies the dynamic part, checks bounds.
    pub(crate) fn resolve(&mut self, view: &View, shift: &Shift) -> Result<Access, Fault> {
        let home = self.home(view.tensor);
        let program = self.program();
        let tensor = program.tensor(view.tensor);
        self.check_readable(view)?;
        let codec = self.codec(view.dtype);
        let size = view.dtype.size() as i64;
        let bytes = tensor.bytes() as i64;
        let on_chip = view.space.is_on_chip();
        let outer = view.dims.first().copied().unwrap_or(nki_isa::Dim { stride: 1, count: 1 });
        let inner = elements::merge(
            view.free_dims().iter().map(|d| Step { stride: (d.stride * size) as isize, count: d.count as usize }),
        );
        let (lo, hi) = reach(&inner, view.dtype.size());
        let rows = outer.count as usize;

        if on_chip {
            let last = i64::from(view.partition) + outer.stride * (rows as i64 - 1);
            let limit = i64::from(tensor.shape.first().copied().unwrap_or(1));
            if last < 0 || last >= limit || i64::from(view.partition) >= limit {
                let most = last.max(i64::from(view.partition));
                return Err(Fault::new(
                    "out-of-bounds",
                    format!("the access reaches partition {most} of `{}`, which has {limit}", tensor.name),
                ));
            }
        }
        let bad = |first: i64, end: i64| beyond(tensor, view, if first < 0 { first / size } else { (end - 1) / size });
        let check = |start: i64, row_reach: i64| -> Result<usize, Fault> {
            let first = start + lo as i64 + row_reach.min(0);
            let end = start + hi as i64 + row_reach.max(0);
            if first < 0 || end > bytes { Err(bad(first, end)) } else { Ok(home.column() + start as usize) }
        };
        let column_step = if on_chip { 0 } else { outer.stride * size };
        let mut access = Access {
            tensor: view.tensor,
            storage: home.storage(),
            codec,
            row: home.row() + if on_chip { view.partition as usize } else { 0 },
            row_step: if on_chip { outer.stride as isize } else { 0 },
            column: home.column(),
            column_step: column_step as isize,
            rows,
            pieces: 1,
            per_row: elements::count(&inner),
            inner,
            starts: None,
            home,
        };
        match shift {
            Shift::Offset(moved) => {
                access.column = check((view.offset + moved) * size, column_step * (rows as i64 - 1))?;
            }
            Shift::Rows(moves) => {
                let starts: Result<Box<[_]>, Fault> = moves
                    .iter()
                    .take(rows)
                    .map(|m| m.map(|m| check((view.offset + m) * size, 0)).transpose())
                    .collect();
                let starts = starts?;
                if starts.len() < rows {
                    return Err(Fault::new(
                        "out-of-bounds",
                        format!("{} indices for {rows} rows of `{}`", starts.len(), tensor.name),
                    ));
                }
                access.starts = Some(starts);
            }
            Shift::Columns(moves) => {
                // Separate elements: only the bytes of each must be in bounds.
                access.inner = Steps::new();
                access.per_row = 1;
                access.pieces = moves.len() / rows.max(1);
                access.rows = moves.len();
                let place = |m: &i64| {
                    let first = (view.offset + m) * size;
                    if first < 0 || first + size > bytes {
                        return Err(bad(first, first + size));
                    }
                    Ok(Some(home.column() + first as usize))
                };
                access.starts = Some(moves.iter().map(place).collect::<Result<_, _>>()?);
            }
        }
        Ok(access)
    }

    /// Position in the storage's data of row `i` of the view.
    pub(crate) fn position(&self, access: &Access, i: usize) -> Option<usize> {
        let pitch = self.storages[access.storage].pitch;
        access.start(i).map(|(row, column)| row * pitch + column * self.scale)
    }

    /// The inner steps in storage bytes.
    pub(crate) fn steps(&self, access: &Access) -> Steps {
        access.inner.iter().map(|s| Step { stride: s.stride * self.scale as isize, count: s.count }).collect()
    }

    /// All steps, rows first, in storage bytes; none if rows are indexed.
    pub(crate) fn all_steps(&self, access: &Access) -> Option<Steps> {
        if access.starts.is_some() {
            return None;
        }
        let pitch = self.storages[access.storage].pitch as isize;
        let outer =
            Step { stride: access.row_step * pitch + access.column_step * self.scale as isize, count: access.rows };
        Some(elements::merge(std::iter::once(outer).chain(self.steps(access))))
    }

    /// All elements in fp32.
    pub(crate) fn tile(&self, access: &Access) -> Vec<f32> {
        let mut out = Vec::new();
        self.tile_into(access, &mut out);
        out
    }

    /// Writes all elements, rounded to their type.
    pub(crate) fn put_tile(&mut self, access: &Access, values: &[f32]) {
        let steps = self.steps(access);
        let mut packed = Vec::new();
        for (i, values) in values.chunks_exact(access.per_row.max(1)).enumerate() {
            if let Some(at) = self.position(access, i) {
                let bytes = self.storages[access.storage].bytes_mut();
                elements::write_f32(bytes, at, &steps, access.codec, &mut packed, values);
            }
        }
    }

    /// All elements in fp32, in a reused buffer.
    pub(crate) fn tile_into(&self, access: &Access, out: &mut Vec<f32>) {
        out.resize(access.elements(), 0.0);
        let bytes = self.storages[access.storage].bytes();
        let steps = self.steps(access);
        let mut packed = Vec::new();
        for (i, out) in out.chunks_exact_mut(access.per_row.max(1)).enumerate() {
            if let Some(at) = self.position(access, i) {
                elements::read_f32(bytes, at, &steps, access.codec, &mut packed, out);
            }
        }
    }

    /// The position of an fp32 matrix in its storage's words, if its strides are regular: (first, row stride, column stride).
    pub(crate) fn layout(&self, access: &Access) -> Option<(usize, usize, usize)> {
        if !access.codec.is_f32() || access.starts.is_some() {
            return None;
        }
        let base = self.position(access, 0)?;
        let storage = &self.storages[access.storage];
        // Memory of the host may have any alignment.
        bytemuck::try_cast_slice::<u8, f32>(storage.bytes()).ok()?;
        let pitch = storage.pitch as isize;
        let row = access.row_step * pitch + access.column_step * self.scale as isize;
        let column = match self.steps(access)[..] {
            [] => 4,
            [s] => s.stride,
            _ => return None,
        };
        let words = |b: isize| (b >= 0 && b % 4 == 0).then_some(b as usize / 4);
        Some((words(base as isize)?, words(row)?, words(column)?))
    }

    /// Copies all elements of the view densely to `out`. The elements of skipped rows stay unchanged.
    pub(crate) fn gather(&self, access: &Access, out: &mut [u8]) {
        let from = self.storages[access.storage].bytes();
        let size = access.codec.size();
        if let (Some(steps), Some(base)) = (self.all_steps(access), self.position(access, 0)) {
            return elements::gather(from, base, &steps, size, out);
        }
        let steps = self.steps(access);
        for (i, out) in out.chunks_exact_mut((access.per_row * size).max(1)).enumerate() {
            if let Some(base) = self.position(access, i) {
                elements::gather(from, base, &steps, size, out);
            }
        }
    }

    /// Copies dense elements to all elements of the view. Skipped rows stay unchanged.
    pub(crate) fn scatter(&mut self, access: &Access, values: &[u8]) {
        let size = access.codec.size();
        let steps = self.steps(access);
        let all = self.all_steps(access);
        if let (Some(steps), Some(base)) = (all, self.position(access, 0)) {
            let to = self.storages[access.storage].bytes_mut();
            return elements::scatter(to, base, &steps, size, values);
        }
        for (i, values) in values.chunks_exact((access.per_row * size).max(1)).enumerate() {
            if let Some(base) = self.position(access, i) {
                elements::scatter(self.storages[access.storage].bytes_mut(), base, &steps, size, values);
            }
        }
    }

    /// The columns of the view, if it covers every row of its storage in one column range.
    fn whole_columns(&self, access: &Access) -> Option<std::ops::Range<usize>> {
        if access.starts.is_some() || !access.is_dense() {
            return None;
        }
        let width = access.per_row * access.codec.dtype.size();
        if self.storages[access.storage].pitch == 0 {
            // HBM: one row.
            let one = access.rows == 1 || access.column_step == width as isize;
            return one.then_some(access.column..access.column + width * access.rows);
        }
        let rows = self.storages[access.storage].init.rows();
        (access.row == 0 && access.row_step == 1 && access.rows == rows).then_some(access.column..access.column + width)
    }

    /// Records that the view's bytes have been written.
    pub(crate) fn mark_written(&mut self, access: &Access) {
        if !self.clobbers.is_empty() {
            let program = self.program();
            self.clobbers.write(access, |t| {
                let a = program.tensor(t).address?;
                Some((a.partition as usize, a.byte as usize))
            });
        }
        let whole = self.whole_columns(access);
        let init = &mut self.storages[access.storage].init;
        if let Some(columns) = whole {
            return init.insert_columns(columns);
        }
        mark(init, access);
    }

    /// Whether no byte between the ends of each row of the view has been written.
    pub(crate) fn is_fresh(&self, access: &Access) -> bool {
        let init = &self.storages[access.storage].init;
        let (lo, hi) = access.reach();
        (0..access.rows)
            .filter_map(|i| access.start(i))
            .all(|(row, start)| init.misses_all(row, (start as isize + lo) as usize..(start as isize + hi) as usize))
    }

    /// The first unwritten byte of the view, and the number of affected elements.
    pub(crate) fn find_unwritten(&self, access: &Access) -> Option<Unwritten> {
        let init = &self.storages[access.storage].init;
        // Two fast paths: the columns are written in all rows of the storage; or each row is written from end to end.
        let (lo, hi) = access.reach();
        let span = |start: usize, more: isize| {
            let a = start as isize + lo + more.min(0);
            let b = start as isize + hi + more.max(0);
            a as usize..b as usize
        };
        if access.starts.is_none() {
            let more = access.column_step * (access.rows as isize - 1);
            if init.has_columns(&span(access.column, more)) {
                return None;
            }
        }
        let size = access.codec.dtype.size();
        let mut found: Option<Unwritten> = None;
        for i in 0..access.rows {
            let Some((row, start)) = access.start(i) else { continue };
            if init.first_missing(row, span(start, 0)).is_none() {
                continue;
            }
            let mut element = 0;
            elements::each_run(start, &access.inner, size, &mut |at, step| {
                if step.stride == size as isize && init.first_missing(row, at..at + step.count * size).is_none() {
                    element += step.count;
                    return;
                }
                let mut at = at;
                for _ in 0..step.count {
                    if init.first_missing(row, at..at + size).is_some() {
                        let first = found.get_or_insert(Unwritten { elements: 0, row: i, element });
                        first.elements += 1;
                    }
                    element += 1;
                    at = at.wrapping_add_signed(step.stride);
                }
            });
        }
        found
    }

    /// For each element of the view, whether it has an unwritten byte. Elements of skipped rows count as written.
    pub(crate) fn unwritten_elements(&self, access: &Access) -> Vec<bool> {
        let init = &self.storages[access.storage].init;
        let size = access.codec.dtype.size();
        let mut out = vec![false; access.elements()];
        for i in 0..access.rows {
            let Some((row, start)) = access.start(i) else { continue };
            let mut element = i * access.per_row;
            elements::each_run(start, &access.inner, size, &mut |at, step| {
                let mut at = at;
                for _ in 0..step.count {
                    out[element] = init.first_missing(row, at..at + size).is_some();
                    element += 1;
                    at = at.wrapping_add_signed(step.stride);
                }
            });
        }
        out
    }

    /// Sets the unwritten bytes of the view to the value of uninitialized memory. They stay unwritten.
    pub(crate) fn poison(&mut self, access: &Access) {
        let value = match self.unwritten {
            UnwrittenValue::Sentinel => access.codec.poison(),
            UnwrittenValue::Zero => [0; 8],
        };
        let value = &value[..access.codec.size()];
        let (scale, size) = (self.scale, access.codec.dtype.size());
        let storage = &mut self.storages[access.storage];
        let pitch = storage.pitch;
        let (data, init) = storage.bytes_and_init();
        for i in 0..access.rows {
            let Some((row, start)) = access.start(i) else { continue };
            elements::each_run(start, &access.inner, size, &mut |at, step| {
                let mut at = at;
                for _ in 0..step.count {
                    if init.first_missing(row, at..at + size).is_some() {
                        let to = row * pitch + at * scale;
                        if scale > 1 || init.misses_all(row, at..at + size) {
                            data[to..to + value.len()].copy_from_slice(value);
                        } else {
                            // Some bytes were written as elements of another type.
                            for (i, v) in value.iter().enumerate() {
                                if init.misses_all(row, at + i..at + i + 1) {
                                    data[to + i] = *v;
                                }
                            }
                        }
                    }
                    at = at.wrapping_add_signed(step.stride);
                }
            });
        }
    }

    /// Determines the effect of a matmul on its destination (see [`nki_isa::Machine::begin_accumulate`]) and records the write.
    /// Fresh elements of a mixed destination are zeroed.
    pub(crate) fn begin_accumulate(&mut self, access: &Access, mode: Option<bool>) -> Accumulation {
        // In rows and columns of the tensor, to which the flags belong.
        let mut local = access.clone();
        local.row -= access.home.row();
        local.column -= access.home.column();
        if let Some(starts) = &mut local.starts {
            starts.iter_mut().flatten().for_each(|s| *s -= access.home.column());
        }
        let size = local.codec.dtype.size();
        let rows = self.program().tensor(access.tensor).shape.first().map_or(1, |&n| n as usize);
        let columns = local.column..local.column + local.per_row * size;
        let whole =
            local.starts.is_none() && local.is_dense() && local.row == 0 && local.row_step == 1 && local.rows == rows;
        let set = self.accumulated(access.tensor);
        if whole && set.has_columns(&columns) {
            return Accumulation { add: mode.unwrap_or(true), foreign: false };
        }
        let (mut some, mut gaps) = (false, false);
        if mode != Some(false) {
            for i in 0..local.rows {
                let Some((row, start)) = local.start(i) else { continue };
                elements::each_run(start, &local.inner, size, &mut |at, step| {
                    let mut at = at;
                    let (count, width) =
                        if step.stride == size as isize { (1, step.count * size) } else { (step.count, size) };
                    for _ in 0..count {
                        gaps |= set.first_missing(row, at..at + width).is_some();
                        some |= !set.misses_all(row, at..at + width);
                        at = at.wrapping_add_signed(step.stride);
                    }
                });
            }
        }
        let mut fresh = Vec::new();
        if mode.is_none() && some && gaps {
            for i in 0..local.rows {
                let Some((row, start)) = local.start(i) else { continue };
                elements::each_run(start, &local.inner, size, &mut |at, step| {
                    let mut at = at;
                    for _ in 0..step.count {
                        if set.first_missing(row, at..at + size).is_some() {
                            fresh.push((row, at));
                        }
                        at = at.wrapping_add_signed(step.stride);
                    }
                });
            }
        }
        if whole {
            set.insert_columns(columns);
        } else {
            mark(set, &local);
        }
        let (scale, account_only) = (self.scale, self.account_only);
        let storage = &mut self.storages[access.storage];
        for (row, at) in fresh {
            let (row, at) = (row + access.home.row(), at + access.home.column());
            let to = row * storage.pitch + at * scale;
            if !account_only {
                storage.bytes_mut()[to..to + access.codec.size()].fill(0);
            }
            storage.init.insert(row, at..at + size);
        }
        Accumulation { add: mode.unwrap_or(some), foreign: mode == Some(true) && gaps }
    }
}

/// The effect of a matmul on its destination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accumulation {
    /// Whether it adds.
    pub(crate) add: bool,
    /// Whether it adds to a destination that matmuls have not written completely.
    pub(crate) foreign: bool,
}

/// Adds the view's bytes to a set that has the storage's rows and columns.
fn mark(set: &mut super::ByteSet, access: &Access) {
    let size = access.codec.dtype.size();
    let (lo, hi) = access.reach();
    for i in 0..access.rows {
        let Some((row, start)) = access.start(i) else { continue };
        if access.is_dense() {
            set.insert(row, start..start + access.per_row * size);
            continue;
        }
        let span = start.wrapping_add_signed(lo)..start.wrapping_add_signed(hi);
        if set.first_missing(row, span).is_none() {
            continue;
        }
        elements::each_run(start, &access.inner, size, &mut |at, step| {
            if step.stride == size as isize {
                set.insert(row, at..at + step.count * size);
            } else {
                let mut at = at;
                for _ in 0..step.count {
                    set.insert(row, at..at + size);
                    at = at.wrapping_add_signed(step.stride);
                }
            }
        });
    }
}
