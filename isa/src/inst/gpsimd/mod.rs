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

use crate::arg::{Pattern, RegisterOrInt};
use crate::violation::Violation;

/// The integers that `iota` writes and `affine_select` compares: 32-bit, wrapping.
#[derive(Debug, Clone)]
pub(crate) struct Affine {
    offset: i32,
    channel_multiplier: i32,
    /// The pattern's contribution to each element of a partition.
    pattern: Vec<i32>,
}

impl Affine {
    /// Checks the operands of an affine expression over `elements` elements per partition.
    pub(crate) fn check(
        pattern: &Pattern,
        offset: RegisterOrInt,
        channel_multiplier: i64,
        elements: usize,
    ) -> Result<(), Violation> {
        if pattern.0.is_empty() || pattern.0.len() > 4 {
            return Err(Violation::new(
                "operand-value",
                "pattern",
                format!("`pattern` has {} dimensions, but must have 1 to 4 pairs [step, count]", pattern.0.len()),
            ));
        }
        let offset = match offset {
            RegisterOrInt::Int(offset) => offset,
            RegisterOrInt::Register(_) => 0,
        };
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

    /// The expression, with the value of `offset`. [`Self::check`] must accept the operands.
    pub(crate) fn new(pattern: &Pattern, offset: i64, channel_multiplier: i64) -> Self {
        // From the innermost dimension outwards: the sums so far, repeated for each step.
        let mut sums = vec![0];
        for &(step, count) in pattern.0.iter().rev() {
            let inner = std::mem::take(&mut sums);
            for i in 0..count as i32 {
                let by = i.wrapping_mul(step as i32);
                sums.extend(inner.iter().map(|v: &i32| v.wrapping_add(by)));
            }
        }
        Affine { offset: offset as i32, channel_multiplier: channel_multiplier as i32, pattern: sums }
    }

    /// The values of a partition's elements, in order.
    #[inline(always)]
    pub(crate) fn row(&self, partition: usize) -> impl Iterator<Item = i32> {
        let start = self.offset.wrapping_add((partition as i32).wrapping_mul(self.channel_multiplier));
        self.pattern.iter().map(move |v| start.wrapping_add(*v))
    }
}
