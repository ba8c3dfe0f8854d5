//! What a check of values has to know of an instruction: how its results depend on its operands, and what its arithmetic can make of finite numbers.

use smallvec::SmallVec;

use crate::arg::{Imm, ScalarOperand};
use crate::inst::Inst;
use crate::inst::math::activation::ActFn;
use crate::names::{AluOp, ReduceCmd};

/// Which elements of the operands an element of the result is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeds {
    /// Those at its place, and the only one of the operands that have one for each partition.
    Elements,
    /// Those up to its place.
    Prefix,
    /// An equal share of the partition: the results are reductions of groups.
    Groups,
    /// All elements of the partition.
    Row,
}

/// What an instruction does with its reduction's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The second result contains what earlier instructions have left in them.
    pub carries: bool,
    /// They keep something of the first result.
    pub updates: bool,
}

/// What a check of values has to know of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// How the first result depends on the operands. A second one, of a reduction, depends on all of the partition.
    pub feeds: Feeds,
    /// Whether the arithmetic of each result can give infinity or NaN that is in no operand; moving, comparing and bounded functions cannot.
    pub arises: [bool; 2],
    /// Its use of the accumulators.
    pub registers: Option<Registers>,
    /// Numbers that the kernel writes as scalar operands.
    pub immediates: SmallVec<[f32; 2]>,
}

/// Whether an operator can give infinity or NaN where its operands are finite.
fn makes(op: AluOp) -> bool {
    use AluOp::{Add, Divide, Fmod, Mod, Multiply, Power, Reciprocal, Rsqrt, Square, Subtract};
    matches!(op, Add | Subtract | Multiply | Divide | Power | Mod | Fmod | Rsqrt | Square | Reciprocal)
}

/// Whether an activation function can.
fn function_makes(op: ActFn) -> bool {
    matches!(op, ActFn::Square | ActFn::Exp | ActFn::Log | ActFn::Sin | ActFn::Sqrt | ActFn::Rsqrt | ActFn::Reciprocal)
}

/// A reduction's part of the facts: of its result, and its use of the registers.
fn reduction(op: AluOp, cmd: ReduceCmd) -> (bool, Option<Registers>) {
    let carries = matches!(cmd, ReduceCmd::Idle | ReduceCmd::Reduce);
    // Other commands than these make a result that the row does not touch.
    let computes = matches!(cmd, ReduceCmd::Reduce | ReduceCmd::ResetReduce | ReduceCmd::LoadReduce);
    (makes(op) && computes, Some(Registers { carries, updates: computes }))
}

impl Facts {
    /// The facts of an instruction that computes row by row.
    pub fn of(inst: &Inst) -> Facts {
        let mut facts =
            Facts { feeds: Feeds::Elements, arises: [true, true], registers: None, immediates: SmallVec::new() };
        let numbers = |operands: &[Option<&ScalarOperand>]| -> SmallVec<[f32; 2]> {
            let number = |o: &ScalarOperand| if let ScalarOperand::Imm(i) = o { Some(i.as_f32()) } else { None };
            operands.iter().flatten().filter_map(|o| number(o)).collect()
        };
        let plain = |o: &ScalarOperand| matches!(o, ScalarOperand::Imm(i) if i.as_f32() == 1.0);
        match inst {
            Inst::TensorTensor(i) => facts.arises[0] = makes(i.op),
            Inst::TensorScalar(i) => {
                facts.arises[0] = makes(i.op0) || i.op1.is_some_and(makes);
                facts.immediates = numbers(&[i.operand0.as_ref(), i.operand1.as_ref()]);
            }
            Inst::ScalarTensorTensor(i) => {
                facts.arises[0] = makes(i.op0) || makes(i.op1);
                facts.immediates = numbers(&[Some(&i.operand0)]);
            }
            Inst::TensorReduce(i) => {
                facts.feeds = Feeds::Groups;
                facts.arises[0] = makes(i.op);
            }
            Inst::TensorScalarReduce(i) => {
                facts.arises[0] = makes(i.op0);
                (facts.arises[1], facts.registers) = reduction(i.reduce_op, i.reduce_cmd);
                facts.immediates = numbers(&[i.operand0.as_ref(), i.reduce_init.as_ref()]);
            }
            Inst::Activation(i) => {
                facts.arises[0] = function_makes(i.op) || i.bias.is_some() || !plain(&i.scale);
                (facts.arises[1], facts.registers) = reduction(AluOp::Add, i.reduce_cmd);
                facts.immediates = numbers(&[i.bias.as_ref(), Some(&i.scale)]);
            }
            Inst::ActivationReduce(i) => {
                facts.arises[0] = function_makes(i.op) || i.bias.is_some() || !plain(&i.scale);
                (facts.arises[1], facts.registers) = reduction(AluOp::Add, ReduceCmd::ResetReduce);
                facts.immediates = numbers(&[i.bias.as_ref(), Some(&i.scale)]);
            }
            Inst::Activate2(i) => {
                facts.arises[0] = function_makes(i.op) || i.op0.is_some_and(makes);
                (facts.arises[1], facts.registers) = reduction(i.reduce_op.unwrap_or(AluOp::Add), i.reduce_cmd);
                facts.immediates = numbers(&[i.imm0.as_ref(), i.imm1.as_ref()]);
            }
            Inst::Exponential(i) => {
                (facts.arises[1], facts.registers) = reduction(AluOp::Add, i.reduce_cmd);
                facts.immediates = numbers(&[Some(&i.max_value), Some(&i.reduce_init)]);
            }
            Inst::SelectReduce(i) => {
                facts.arises[0] = false;
                (facts.arises[1], facts.registers) = reduction(i.reduce_op, i.reduce_cmd);
            }
            Inst::RangeSelect(i) => {
                facts.arises[0] = false;
                (facts.arises[1], facts.registers) = reduction(i.reduce_op, i.reduce_cmd);
            }
            Inst::TensorTensorScan(i) => {
                facts.feeds = Feeds::Prefix;
                facts.arises[0] = makes(i.op0) || makes(i.op1);
                facts.immediates = numbers(&[Some(&i.initial)]);
            }
            Inst::TensorScalarCumulative(i) => {
                facts.feeds = Feeds::Prefix;
                facts.arises[0] = makes(i.op0) || makes(i.op1);
                facts.immediates = numbers(&[Some(&i.imm0), i.imm1.as_ref()]);
                // What it starts from may be what an earlier instruction has left.
                let carries = i.reduce_cmd == ReduceCmd::Reduce;
                facts.registers = Some(Registers { carries, updates: true });
            }
            Inst::BnStats(_) | Inst::BnAggr(_) => facts.feeds = Feeds::Row,
            Inst::Reciprocal(_) | Inst::Rand2(_) => {}
            // They move values, pick among them, or give positions.
            Inst::AffineSelect(_)
            | Inst::Iota(_)
            | Inst::SequenceBounds(_)
            | Inst::Max8(_)
            | Inst::NcFindIndex8(_)
            | Inst::NcMatchReplace8(_)
            | Inst::TensorCopy(_)
            | Inst::TensorCopyPredicated(_)
            | Inst::DmaCopy(_)
            | Inst::DmaTranspose(_)
            | Inst::Memset(_) => facts.arises = [false, false],
            _ => facts.feeds = Feeds::Row,
        }
        facts
    }
}

/// The result at `at` of an instruction whose operands are all integers, in exact arithmetic; none where it is not a sum, difference or product.
/// `ins` are the rows of its sources.
pub fn exact(inst: &Inst, ins: &[&[f32]], results: usize, at: usize) -> Option<f64> {
    let element = |k: usize| {
        let row = ins.get(k)?;
        row.get(if row.len() == 1 { 0 } else { at }).map(|&x| f64::from(x))
    };
    match inst {
        Inst::TensorTensor(i) => exact_op(i.op, element(0)?, element(1)?),
        Inst::TensorScalar(i) => {
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
            let ordered = |reverse, x, y| if reverse { (y, x) } else { (x, y) };
            let (x, y) = ordered(i.reverse0, element(0)?, scalar(i.operand0.as_ref())?);
            let first = exact_op(i.op0, x, y)?;
            let Some(op1) = i.op1 else { return Some(first) };
            let (x, y) = ordered(i.reverse1, first, scalar(i.operand1.as_ref())?);
            exact_op(op1, x, y)
        }
        Inst::TensorReduce(i) if i.op == AluOp::Add => {
            let row = ins.first()?;
            let group = row.len() / results.max(1);
            let sum: f64 = row.get(at * group..(at + 1) * group)?.iter().map(|&x| f64::from(x)).sum();
            Some(if i.negate { -sum } else { sum })
        }
        _ => None,
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
