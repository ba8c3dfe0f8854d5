//! Valid but probably unintended combinations of operands ([`Instruction::doubt`](super::Instruction::doubt)), shared by several instructions.

use crate::arg::{Imm, ScalarOperand};
use crate::dtype::{DType, bits_to_f32, f32_to_bits};
use crate::inst::math::activation::ActFn;
use crate::names::{AluOp, Named};
use crate::view::{Dims, Index, View};
use crate::violation::Violation;

/// Whether a function of integers has fractional values, even for large arguments. Functions that approach the identity, square root
/// and logarithm are excluded: rounding their values may be intended.
fn gives_fractions(op: ActFn, scale: Option<&ScalarOperand>) -> bool {
    match op {
        ActFn::Sigmoid
        | ActFn::Tanh
        | ActFn::Erf
        | ActFn::ErfDx
        | ActFn::GeluDx
        | ActFn::GeluApprxSigmoidDx
        | ActFn::SiluDx
        | ActFn::Sin
        | ActFn::Arctan
        | ActFn::Rsqrt
        | ActFn::Reciprocal => true,
        // With a scale it may be a power of a base other than e.
        ActFn::Exp => scale.is_none_or(|s| matches!(s, ScalarOperand::Imm(x) if x.as_f32() == 1.0)),
        _ => false,
    }
}

/// A function with fractional values from integers to integers: usually the result inherited its dtype.
pub(crate) fn fractions_as_integers(
    op: ActFn,
    scale: Option<&ScalarOperand>,
    (from, source): (&str, &View),
    dst: &View,
) -> Option<Violation> {
    let integer = |dtype: DType| dtype.is_int() && dtype != DType::Bool && !dtype.is_packed();
    let found = integer(source.dtype) && integer(dst.dtype) && gives_fractions(op, scale);
    found.then(|| {
        let message = format!(
            "`dst` is {} and `{from}` is {}: the values of {} are rounded to integers",
            dst.dtype,
            source.dtype,
            Named::name(op)
        );
        Violation::new("integer-function", "dst", message)
            .help(format!("make `dst` a float tile; without `dtype=`, a result has the dtype of `{from}`"))
    })
}

/// A finite number that becomes infinite or NaN in a float type.
pub(crate) fn overflows(name: &'static str, value: Imm, dtype: DType) -> Option<Violation> {
    let exact = match value {
        Imm::Int(i) => i as f64,
        Imm::Float(x) => x,
    };
    let stored = bits_to_f32(dtype, f32_to_bits(dtype, value.as_f32()));
    let is_lost = dtype.is_float() && exact.is_finite() && !stored.is_finite();
    is_lost.then(|| {
        let message = format!("`{name}` is {exact:?}, which becomes {stored} in {dtype}");
        Violation::new("non-finite", name, message).help("give a number that the type holds")
    })
}

/// A number that is not 0, but becomes 0 in fp32.
pub(crate) fn vanishes(name: &'static str, value: Imm) -> Option<Violation> {
    let Imm::Float(exact) = value else { return None };
    (exact != 0.0 && value.as_f32() == 0.0).then(|| {
        let message = format!("`{name}` is {exact:?}, which becomes 0 in float32");
        Violation::new("unexpected-values", name, message)
            .help("the smallest number above 0 that float32 holds is 1.4e-45")
    })
}

/// The scalar of a comparison with 32-bit integers that fp32, in which the engine compares, does not hold.
pub(crate) fn inexact_comparison(
    (op, reverse): (AluOp, bool),
    (name, scalar): (&'static str, Option<&ScalarOperand>),
    data: &View,
) -> Option<Violation> {
    let Some(ScalarOperand::Imm(number)) = scalar else { return None };
    let exact = number.as_i64()?;
    let compared = number.as_f32();
    if !op.is_comparison() || !matches!(data.dtype, DType::I32 | DType::U32) || f64::from(compared) == exact as f64 {
        return None;
    }
    let side = if reverse { "left" } else { "right" };
    let message = format!(
        "`{name}` is {exact}, the {side} side of {op}, but {} elements are compared in float32, where it is {compared:?}",
        data.dtype
    );
    let help = "compare with a number below 2^24, or subtract the number first (add, subtract and multiply of int32 tiles are exact) and compare with 0";
    Some(Violation::new("inexact-integer", name, message).help(help))
}

/// The number of a shift that is negative or not below the `bits` of the shifted elements: the manual does not specify the result.
pub(crate) fn shift_out_of_range(
    (op, reverse): (AluOp, bool),
    (name, scalar): (&'static str, Option<&ScalarOperand>),
    bits: usize,
) -> Option<Violation> {
    use AluOp::{ArithmeticLeftShift, ArithmeticRightShift, LeftShift, RightShift};
    let Some(ScalarOperand::Imm(number)) = scalar else { return None };
    let count = number.as_i64()?;
    let is_shift = matches!(op, LeftShift | RightShift | ArithmeticLeftShift | ArithmeticRightShift);
    if !is_shift || reverse || (0..bits as i64).contains(&count) {
        return None;
    }
    let message = format!("`{name}` is {count}, but {op} of elements of {bits} bits shifts by 0 to {}", bits - 1);
    let help = "the result is not specified; here it is 0, or the sign for arithmetic_right_shift";
    Some(Violation::new("unexpected-values", name, message).help(help))
}

/// A quotient of integers stored as an integer. The rounding is undocumented: here GpSimd truncates, and the engines that compute in fp32
/// round.
pub(crate) fn quotients_as_integers(op: AluOp, sources: &[(&str, &View)], dst: &View) -> Option<Violation> {
    let integer = |dtype: DType| dtype.is_int() && dtype != DType::Bool && !dtype.is_packed();
    let found = op == AluOp::Divide && integer(dst.dtype) && sources.iter().all(|(_, source)| integer(source.dtype));
    found.then(|| {
        let name = sources.first().map_or("data", |(name, _)| name);
        let message = format!(
            "`dst` is {}: quotients of integers lose their fractions (GpSimd truncates them, the other engines round them), and division by 0 gives an integer",
            dst.dtype
        );
        Violation::new("integer-function", "dst", message)
            .help(format!("make `dst` a float tile; without `dtype=`, a result has the dtype of `{name}`"))
    })
}

/// A vector of row indices that is not a single column: DMA takes the index of each row from a separate partition.
pub(crate) fn index_in_rows<'a>(views: impl IntoIterator<Item = (&'static str, &'a View)>) -> Option<Violation> {
    views.into_iter().find_map(|(name, view)| {
        let Index::Vector(index) = &view.indirect.as_deref()?.index else { return None };
        let (partitions, rows) = (index.partitions(), view.partitions());
        (partitions < rows).then(|| {
            let message = format!(
                "the index of `{name}` has the shape ({partitions}, {}), but DMA takes one index from each partition: {rows} rows need ({rows}, 1)",
                index.free_elements()
            );
            let help = format!("load the indices into an SBUF tile of shape ({rows}, 1)");
            Violation::new("index-layout", name, message).help(help)
        })
    })
}

/// Rows of a gather or scatter that extend into the next row. Whole rows, every nth element of whole rows, and steps by whole rows are intended.
pub(crate) fn crosses_rows<'a>(views: impl IntoIterator<Item = (&'static str, &'a View)>) -> Option<Violation> {
    views.into_iter().find_map(|(name, view)| {
        let indirect = view.indirect.as_deref()?;
        let row = indirect.stride.abs();
        if row == 0 || !matches!(indirect.index, Index::Vector(_)) {
            return None;
        }
        let within: Dims =
            View::merged(view.free_dims()).into_iter().filter(|dim| dim.count > 1 && dim.stride % row != 0).collect();
        let step = within.iter().map(|dim| dim.stride.abs()).min()?;
        let (low, high) = View::span(&within);
        let (start, length) = ((view.offset + low).rem_euclid(row), high - low + 1);
        let whole = start < step && (high - low + step) % row == 0;
        (start + length > row && !whole).then(|| {
            let message = format!(
                "an index of `{name}` moves by {row} elements, but the pattern accesses {length} from element {start} of this row: {} are not in it",
                start + length - row
            );
            let help = "the index moves by the row of the tensor that `.ap` is called on, whatever the first pair of the pattern says: reshape the \
                        tensor to the rows that are meant, or to one dimension if they may overlap";
            Violation::new("row-crossing", name, message).help(help)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;
    use crate::view::{Dim, Indirect};

    #[test]
    fn rows_cross_unless_they_are_whole() {
        let mut m = TestMachine::new(Target::Trn2);
        let table = m.tensor("t", Space::Hbm, DType::F32, &[100, 8]);
        let index = m.tensor("i", Space::Sbuf, DType::U32, &[4, 1]);
        let crosses = |offset: i64, (stride, count): (i64, u32)| {
            let mut view = table.clone();
            view.dims = [Dim { stride: 8, count: 4 }, Dim { stride, count }].into_iter().collect();
            view.offset = offset;
            let index = Index::Vector(index.clone());
            view.indirect = Some(Box::new(Indirect { index, stride: 8, bound: 100 }));
            crosses_rows([("src", &view)]).is_some()
        };
        for (offset, dim) in [(0, (1, 8)), (3, (1, 5)), (8, (1, 16)), (0, (2, 8)), (1, (2, 8)), (5, (8, 3))] {
            assert!(!crosses(offset, dim), "{offset} {dim:?}");
        }
        for (offset, dim) in [(0, (1, 9)), (3, (1, 6)), (2, (2, 8)), (1, (1, 8)), (0, (3, 4))] {
            assert!(crosses(offset, dim), "{offset} {dim:?}");
        }
    }
}
