//! Instructions of the GpSimd engine.

pub mod affine_select;
pub mod iota;
pub mod local_gather;
pub mod nc_n_gather;
pub mod nonzero_with_count;
pub mod rand_get_state;
pub mod rand_set_state;
pub mod sequence_bounds;
pub mod tensor_partition_reduce;
pub mod topk;

use crate::arg::{Imm, Pattern};
use crate::violation::Violation;

/// The integers that `iota` writes and `affine_select` compares: 32-bit, wrapping.
#[derive(Debug, Clone)]
pub(crate) struct Affine {
    offset: i32,
    channel_multiplier: i32,
    /// `(step, count)`, outermost first.
    pattern: Vec<(i32, u32)>,
}

impl Affine {
    /// Checks the operands of an affine expression over `elements` elements per partition.
    pub(crate) fn check(
        pattern: &Pattern,
        offset: i64,
        channel_multiplier: i64,
        elements: usize,
    ) -> Result<(), Violation> {
        if pattern.0.is_empty() || pattern.0.len() > 4 {
            return Err(Violation::new(
                "operand-value",
                "pattern",
                format!("`pattern` has {} dimensions, takes 1 to 4 pairs [step, count]", pattern.0.len()),
            ));
        }
        let numbers = [("offset", offset), ("channel_multiplier", channel_multiplier)];
        for (name, value) in numbers.into_iter().chain(pattern.0.iter().map(|p| ("pattern", p.0))) {
            if i32::try_from(value).is_err() {
                return Err(Violation::new("operand-value", name, format!("{value} in `{name}` does not fit 32 bits")));
            }
        }
        let product = pattern.0.iter().try_fold(1u64, |n, p| n.checked_mul(u64::from(p.1)));
        if product != Some(elements as u64) {
            return Err(Violation::new(
                "shape-mismatch",
                "pattern",
                format!(
                    "`pattern` counts {:?} elements, `dst` has {elements} per partition",
                    pattern.0.iter().map(|p| p.1).collect::<Vec<_>>()
                ),
            ));
        }
        Ok(())
    }

    /// The expression; operands are those that [`Self::check`] accepts.
    pub(crate) fn new(pattern: &Pattern, offset: i64, channel_multiplier: i64) -> Self {
        Affine {
            offset: offset as i32,
            channel_multiplier: channel_multiplier as i32,
            pattern: pattern.0.iter().map(|&(step, count)| (step as i32, count)).collect(),
        }
    }

    /// Calls `each(element, value)` for the elements of a partition, in order.
    pub(crate) fn row(&self, partition: usize, mut each: impl FnMut(usize, i32)) {
        let start = self.offset.wrapping_add((partition as i32).wrapping_mul(self.channel_multiplier));
        let mut index = 0;
        let inner = self.pattern.last().copied().unwrap_or((0, 1));
        let outer = &self.pattern[..self.pattern.len().saturating_sub(1)];
        let rows: u32 = outer.iter().map(|p| p.1).product();
        for row in 0..rows {
            let (mut rest, mut value) = (row, start);
            for &(step, count) in outer.iter().rev() {
                value = value.wrapping_add(((rest % count) as i32).wrapping_mul(step));
                rest /= count;
            }
            for _ in 0..inner.1 {
                each(index, value);
                index += 1;
                value = value.wrapping_add(inner.0);
            }
        }
    }
}

/// An immediate as an integer element: floats are truncated.
pub(crate) fn as_integer(value: Imm) -> i64 {
    match value {
        Imm::Int(i) => i,
        Imm::Float(x) => x as i64,
    }
}
