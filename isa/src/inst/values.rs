//! Dependence of an instruction's results on its operands, for the checks of values: the elements that contribute to a result, and the values
//! that the arithmetic can produce from finite numbers.

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use crate::arg::{Imm, ScalarOperand};
use crate::inst::math::activation::ActFn;
use crate::names::{AluOp, ReduceCmd};
use crate::view::View;

/// The elements of the operands that contribute to an element of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeds {
    /// Those at the same position, and the single element of per-partition operands.
    Elements,
    /// Those up to the same position.
    Prefix,
    /// An equal share of the partition: the results are reductions of groups.
    Groups,
    /// All elements of the partition, or of the tile if results and operands have different partitions.
    Row,
    /// Those of the same column, in all partitions.
    Columns,
    /// The one with partition and position exchanged.
    Transposed,
    /// A column of the first operand, a column of the second, and the destination's previous content.
    Product,
}

/// Use of the reduction registers by an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The second result includes the values left by earlier instructions.
    pub carries: bool,
    /// They retain information about the first result.
    pub updates: bool,
}

/// How results follow from operands.
#[derive(Debug, Clone, PartialEq)]
pub struct Values<'a> {
    /// Dependence of the first result on the operands. The second result, of a reduction, depends on all of the partition.
    pub feeds: Feeds,
    /// Whether the arithmetic of each result can produce infinity or NaN that is in no operand; moves, comparisons and bounded functions cannot.
    pub arises: [bool; 2],
    /// Its use of the accumulators.
    pub registers: Option<Registers>,
    /// Numbers that the kernel passes as scalar operands.
    pub immediates: SmallVec<[f32; 2]>,
    /// The first result in exact arithmetic, for integer operands.
    pub exact: Option<Exact<'a>>,
    /// Whether all ones in each result marks a missing value: clipping to it loses nothing.
    pub marks_absence: [bool; 2],
    /// The operand whose elements the first result contains unchanged where a condition holds, and does not depend on elsewhere.
    pub selected: Option<&'a View>,
}

impl<'a> Values<'a> {
    /// Results of arithmetic, which can be infinite or NaN even if no operand is.
    pub fn computed(feeds: Feeds) -> Self {
        let (arises, marks_absence) = ([true, true], [false, false]);
        Values {
            feeds,
            arises,
            registers: None,
            immediates: SmallVec::new(),
            exact: None,
            marks_absence,
            selected: None,
        }
    }

    /// Values of the operands, positions or bounded numbers: none is infinite or NaN unless an operand is.
    pub fn moved(feeds: Feeds) -> Self {
        Values { arises: [false, false], ..Self::computed(feeds) }
    }

    /// Whether every result is a value of an operand, a position or a bounded number.
    pub fn are_moved(&self) -> bool {
        self.arises == [false, false]
    }

    /// Sets whether the first result can be infinite or NaN even if no operand is.
    pub(crate) fn arising(self, arises: bool) -> Self {
        Values { arises: [arises, self.arises[1]], ..self }
    }

    /// Adds the second result and the registers of a reduction.
    pub(crate) fn reduced(self, op: AluOp, cmd: ReduceCmd) -> Self {
        let carries = matches!(cmd, ReduceCmd::Idle | ReduceCmd::Reduce);
        // The results of other commands do not depend on the row.
        let updates = matches!(cmd, ReduceCmd::Reduce | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce);
        let arises = [self.arises[0], makes(op) && updates];
        Values { arises, registers: Some(Registers { carries, updates }), ..self }
    }

    /// Adds the numbers among scalar operands.
    pub(crate) fn with_numbers<'o>(self, operands: impl IntoIterator<Item = &'o ScalarOperand>) -> Self {
        let number = |o: &ScalarOperand| if let ScalarOperand::Imm(i) = o { Some(i.as_f32()) } else { None };
        Values { immediates: operands.into_iter().filter_map(number).collect(), ..self }
    }

    /// Adds the operand whose elements are selected.
    pub(crate) fn selecting(self, selected: Option<&'a View>) -> Self {
        Values { selected, ..self }
    }

    /// Adds the first result in exact arithmetic.
    pub(crate) fn with_exact(self, exact: Exact<'a>) -> Self {
        Values { exact: Some(exact), ..self }
    }
}

/// Whether an operator can produce infinity or NaN from finite operands.
pub(crate) fn makes(op: AluOp) -> bool {
    use AluOp::{Add, Divide, Fmod, Mod, Multiply, Power, Reciprocal, Rsqrt, Square, Subtract};
    matches!(op, Add | Subtract | Multiply | Divide | Power | Mod | Fmod | Rsqrt | Square | Reciprocal)
}

/// Whether an activation function can.
pub(crate) fn function_makes(op: ActFn) -> bool {
    matches!(op, ActFn::Square | ActFn::Exp | ActFn::Log | ActFn::Sin | ActFn::Sqrt | ActFn::Rsqrt | ActFn::Reciprocal)
}

/// An operator, its scalar operand, and whether the scalar is the left one.
pub(crate) type ScalarStep<'a> = (AluOp, Option<&'a ScalarOperand>, bool);

/// A result whose exact value is known if all operands are integers.
#[derive(Debug, Clone, PartialEq)]
pub enum Exact<'a> {
    /// An operator between two tiles.
    Tiles(AluOp),
    /// Operators between a tile and scalars, in order.
    Scalars(ArrayVec<ScalarStep<'a>, 2>),
    /// The sum of a group of elements, or its negative.
    GroupSum {
        /// The sign is changed.
        negate: bool,
    },
}

impl Exact<'_> {
    /// Whether no operator is bitwise.
    pub fn is_arithmetic(&self) -> bool {
        match self {
            Exact::Tiles(op) => !op.is_bitvec(),
            Exact::Scalars(steps) => !steps.iter().any(|(op, ..)| op.is_bitvec()),
            Exact::GroupSum { .. } => true,
        }
    }

    /// Whether the first operator gives the same result for an integer of the data and for what it becomes in fp32: `minimum` with a smaller
    /// number, and comparisons with a number that both are above or below.
    pub fn absorbs(&self, exact: i64, rounded: f32) -> bool {
        let Exact::Scalars(steps) = self else { return false };
        let Some(&(op, Some(&ScalarOperand::Imm(number)), _)) = steps.first() else { return false };
        let (exact, rounded, bound) = (exact as f64, f64::from(rounded), f64::from(number.as_f32()));
        if number.as_i64().is_some_and(|number| number as f64 != bound) {
            // The number itself is rounded.
            return false;
        }
        match op {
            AluOp::Min => bound <= exact.min(rounded),
            AluOp::Max => bound >= exact.max(rounded),
            op => op.is_comparison() && exact.total_cmp(&bound) == rounded.total_cmp(&bound),
        }
    }

    /// The result at `at` of `results`; `None` unless it is a sum, difference or product. `ins` are the rows of the sources.
    pub fn result(&self, ins: &[&[f32]], results: usize, at: usize) -> Option<f64> {
        let element = |k: usize| {
            let row = ins.get(k)?;
            row.get(if row.len() == 1 { 0 } else { at }).map(|&x| f64::from(x))
        };
        match self {
            Exact::Tiles(op) => exact_op(*op, element(0)?, element(1)?),
            Exact::Scalars(steps) => {
                let mut next = 1;
                let mut scalar = |operand: Option<&ScalarOperand>| match operand {
                    None => Some(0.0),
                    Some(ScalarOperand::Imm(Imm::Int(n))) => Some(*n as f64),
                    Some(ScalarOperand::Imm(Imm::Float(x))) if x.fract() == 0.0 => Some(*x),
                    Some(ScalarOperand::View(_)) => {
                        next += 1;
                        element(next - 1)
                    }
                    _ => None,
                };
                steps.iter().try_fold(element(0)?, |x, &(op, operand, reverse)| {
                    let y = scalar(operand)?;
                    if reverse { exact_op(op, y, x) } else { exact_op(op, x, y) }
                })
            }
            Exact::GroupSum { negate } => {
                let row = ins.first()?;
                let group = row.len() / results.max(1);
                let sum: f64 = row.get(at * group..(at + 1) * group)?.iter().map(|&x| f64::from(x)).sum();
                Some(if *negate { -sum } else { sum })
            }
        }
    }
}

/// Integers up to 2^53 are exact in double precision.
fn exact_op(op: AluOp, x: f64, y: f64) -> Option<f64> {
    let value = match op {
        AluOp::Bypass => x,
        AluOp::Add => x + y,
        AluOp::Subtract => x - y,
        AluOp::Multiply => x * y,
        AluOp::Max => x.max(y),
        AluOp::Min => x.min(y),
        _ => return None,
    };
    (value.abs() <= 9_007_199_254_740_992.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_absorbed_if_the_first_operator_has_the_same_result() {
        let absorbs = |op, number, exact: i64| {
            let operand = ScalarOperand::Imm(number);
            let steps = std::iter::once((op, Some(&operand), false)).collect();
            Exact::Scalars(steps).absorbs(exact, exact as f32)
        };
        let (odd, top) = ((1 << 24) + 1, i64::from(i32::MAX));
        assert!(absorbs(AluOp::Min, Imm::Int(63), odd));
        assert!(!absorbs(AluOp::Max, Imm::Int(63), odd));
        assert!(absorbs(AluOp::Max, Imm::Float(0.5), -odd));
        for op in [AluOp::Less, AluOp::GreaterEqual, AluOp::Equal, AluOp::NotEqual] {
            assert!(absorbs(op, Imm::Int(5), top), "{op}");
            // 2^31 - 1 becomes 2^31.
            assert!(!absorbs(op, Imm::Int(1 << 31), top), "{op}");
            // The number is rounded, too.
            assert!(!absorbs(op, Imm::Int(odd), top), "{op}");
        }
        assert!(!absorbs(AluOp::Add, Imm::Int(1), odd));
        assert!(!Exact::Tiles(AluOp::Min).absorbs(odd, odd as f32));
    }
}
