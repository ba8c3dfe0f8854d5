//! Scalar operands (immediate, register or one element per partition) for row kernels.

use smallvec::SmallVec;

use crate::arg::ScalarOperand;
use crate::machine::Machine;
use crate::view::View;

/// The source of a row kernel's scalar.
#[derive(Debug, Clone, Copy)]
pub enum Scalar<T> {
    /// The same value in every partition.
    Fixed(T),
    /// The only element of the row of this input.
    Input(usize),
}

impl<T: Copy + Default> Scalar<T> {
    /// The value for the partition with these input rows.
    pub fn get(self, inputs: &[&[T]]) -> T {
        match self {
            Scalar::Fixed(x) => x,
            Scalar::Input(i) => inputs.get(i).and_then(|row| row.first()).copied().unwrap_or_default(),
        }
    }
}

/// The sources of a row kernel: tiles, then the scalars that are views.
pub type Sources<'a> = SmallVec<[&'a View; 4]>;

/// Adds `operand` to the sources if it is a view, else evaluates it (0 if there is none).
pub fn scalar_f32<'a>(
    machine: &mut dyn Machine,
    operand: Option<&'a ScalarOperand>,
    sources: &mut Sources<'a>,
) -> Scalar<f32> {
    match operand {
        None => Scalar::Fixed(0.0),
        Some(ScalarOperand::Imm(i)) => Scalar::Fixed(i.as_f32()),
        Some(ScalarOperand::Register(r)) => Scalar::Fixed(machine.register(*r) as f32),
        Some(ScalarOperand::View(v)) => {
            sources.push(v);
            Scalar::Input(sources.len() - 1)
        }
    }
}

/// As [`scalar_f32`] in exact integers; a fractional immediate is rounded.
pub fn scalar_i64<'a>(
    machine: &mut dyn Machine,
    operand: Option<&'a ScalarOperand>,
    sources: &mut Sources<'a>,
) -> Scalar<i64> {
    match operand {
        None => Scalar::Fixed(0),
        Some(ScalarOperand::Imm(i)) => Scalar::Fixed(i.as_i64().unwrap_or_else(|| i.as_f32().round_ties_even() as i64)),
        Some(ScalarOperand::Register(r)) => Scalar::Fixed(machine.register(*r)),
        Some(ScalarOperand::View(v)) => {
            sources.push(v);
            Scalar::Input(sources.len() - 1)
        }
    }
}

/// The number of operands that are views: per-partition scalars that the engine reads from memory.
pub fn reads<'a>(operands: impl IntoIterator<Item = &'a ScalarOperand>) -> u32 {
    operands.into_iter().filter(|o| o.view().is_some()).count() as u32
}
