//! Where the elements of a tile are, while the move to it is deferred.

use std::ops::Range;

use crate::memory::access::Access;
use crate::memory::elements::Step;

/// The location of a matrix's elements in memory.
#[derive(Debug, Clone)]
pub(in crate::exec) struct Source {
    pub(in crate::exec) access: Access,
    /// Element `[i, j]` of the matrix is element `[j, i]` of the access.
    pub(in crate::exec) transposed: bool,
}

impl Source {
    /// The elements of an access, not transposed.
    pub(super) fn of(access: &Access) -> Self {
        Source { access: access.clone(), transposed: false }
    }

    /// Rows and columns of the matrix.
    pub(in crate::exec) fn shape(&self) -> (usize, usize) {
        let (rows, columns) = (self.access.rows, self.access.per_row);
        if self.transposed { (columns, rows) } else { (rows, columns) }
    }

    /// The transposed matrix.
    pub(super) fn turned(self) -> Self {
        Source { transposed: !self.transposed, ..self }
    }

    /// Some rows and columns of the matrix; none if no access describes them.
    pub(super) fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Option<Source> {
        let (rows, columns) = if self.transposed { (columns, rows) } else { (rows, columns) };
        let mut part = self.clone();
        let access = &mut part.access;
        access.row = access.row.wrapping_add_signed(access.row_step * rows.start as isize);
        access.column = access.column.wrapping_add_signed(access.column_step * rows.start as isize);
        access.rows = rows.len();
        if columns == (0..access.per_row) {
            return Some(part);
        }
        access.per_row = columns.len();
        let (first, count) = (columns.start, columns.len());
        let offset = match access.inner[..] {
            [step] => {
                access.inner[0].count = count;
                step.stride * first as isize
            }
            // Within one block, or whole blocks.
            [outer, inner] if columns.end <= (first / inner.count + 1) * inner.count => {
                access.inner.remove(0);
                access.inner[0].count = count;
                outer.stride * (first / inner.count) as isize + inner.stride * (first % inner.count) as isize
            }
            [outer, Step { count: block, .. }] if first % block == 0 && count % block == 0 => {
                access.inner[0].count = count / block;
                outer.stride * (first / block) as isize
            }
            _ => return None,
        };
        access.column = access.column.wrapping_add_signed(offset);
        Some(part)
    }
}

/// Which elements of an operand a move writes.
pub(super) enum Overlap {
    Nothing,
    /// All: these rows and columns of the move's destination.
    All {
        rows: Range<usize>,
        columns: Range<usize>,
    },
    /// Some, or all in another order.
    Some,
}

/// Which elements of an operand on chip a move to `to`, in the same storage, writes.
pub(super) fn overlap(operand: &Access, to: &Access) -> Overlap {
    if operand.starts.is_some() || to.starts.is_some() {
        return Overlap::Some;
    }
    if same_elements(operand, to) {
        return Overlap::All { rows: 0..to.rows, columns: 0..to.per_row };
    }
    let apart = |a: Range<usize>, b: Range<usize>| a.end <= b.start || b.end <= a.start;
    if apart(rows_of(operand), rows_of(to)) || apart(bytes_of(operand), bytes_of(to)) {
        return Overlap::Nothing;
    }
    let regular = |a: &Access| (a.rows == 1 || a.row_step == 1) && a.pieces == 1 && a.is_dense();
    let size = to.codec.dtype.size();
    let offsets = operand.row.checked_sub(to.row).zip(operand.column.checked_sub(to.column));
    match offsets {
        Some((row, bytes)) if regular(operand) && regular(to) && operand.codec == to.codec && bytes % size == 0 => {
            let rows = row..row + operand.rows;
            let columns = bytes / size..bytes / size + operand.per_row;
            let inside = rows.end <= to.rows && columns.end <= to.per_row;
            if inside { Overlap::All { rows, columns } } else { Overlap::Some }
        }
        _ => Overlap::Some,
    }
}

/// From the first to the last row.
fn rows_of(a: &Access) -> Range<usize> {
    let last = a.row.wrapping_add_signed(a.row_step * (a.rows.max(1) - 1) as isize);
    a.row.min(last)..a.row.max(last) + 1
}

/// From the first to the last byte of each row.
fn bytes_of(a: &Access) -> Range<usize> {
    let (low, high) = a.reach();
    a.column.wrapping_add_signed(low)..a.column.wrapping_add_signed(high)
}

/// Whether both access the same elements in the same order.
pub(super) fn same_elements(a: &Access, b: &Access) -> bool {
    a.starts.is_none()
        && b.starts.is_none()
        && (a.storage, a.codec, a.row, a.row_step, a.column, a.column_step, a.rows)
            == (b.storage, b.codec, b.row, b.row_step, b.column, b.column_step, b.rows)
        && a.inner == b.inner
}
