//! `nl.device_print`: prints a tensor while the kernel runs.

use crate::inst::values::{Feeds, Values};
use std::fmt::Write as _;

use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::{Action, Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Work, WorkKind};

operands! {
    /// Prints a prefix and the values of a tensor. Costs no time on the modelled engines.
    pub struct DevicePrint: "device_print" on [Sync] {
        /// Printed first.
        [Attr] print_prefix: String,
        /// What to print.
        [In Sbuf Psum Hbm] tensor: View,
    }
    numerics: "Bits are printed as the values they encode.",
    cost: Assumed "Nothing: no engine executes it.",
    rules: {},
}

/// Tensors with more elements are abbreviated to [`EDGE`] entries at both ends of each dimension.
const ALL_UP_TO: usize = 1000;
const EDGE: usize = 3;

impl Instruction for DevicePrint {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let dtype = self.tensor.dtype;
        let values: Vec<Value> = if dtype.is_int() {
            machine.read_bits(&self.tensor)?.iter().map(|&b| Value::Int(extend(dtype, b))).collect()
        } else {
            machine.read_tile(&self.tensor)?.iter().map(|&x| Value::Float(x)).collect()
        };
        let shape: Vec<usize> = self.tensor.shape().iter().map(|&n| n as usize).collect();
        let mut line = String::new();
        if !self.print_prefix.is_empty() {
            line.push_str(&self.print_prefix);
            line.push(' ');
        }
        // Writing to a string cannot fail.
        let _ = write!(line, "{dtype}{shape:?} ");
        brackets(&mut line, &shape, &values, values.len() > ALL_UP_TO);
        machine.print(line);
        Ok(())
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        Work { engine: self.engine(context.arch), kind: WorkKind::Free }
    }
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Int(i64),
    Float(f32),
}

fn extend(dtype: DType, bits: u32) -> i64 {
    match dtype {
        DType::I8 => i64::from(bits as u8 as i8),
        DType::I16 => i64::from(bits as u16 as i16),
        DType::I32 => i64::from(bits as i32),
        _ => i64::from(bits),
    }
}

/// Nested brackets, row-major.
fn brackets(line: &mut String, shape: &[usize], values: &[Value], short: bool) {
    let Some((&count, inner)) = shape.split_first() else {
        let _ = match values.first() {
            Some(Value::Int(i)) => write!(line, "{i}"),
            Some(Value::Float(x)) => write!(line, "{x}"),
            None => Ok(()),
        };
        return;
    };
    let size: usize = inner.iter().product();
    line.push('[');
    for i in 0..count {
        if short && count > 2 * EDGE && (EDGE..count - EDGE).contains(&i) {
            if i == EDGE {
                line.push_str(", ...");
            }
            continue;
        }
        if i > 0 {
            line.push_str(", ");
        }
        brackets(line, inner, &values[i * size..(i + 1) * size], short);
    }
    line.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn print(prefix: &str, m: &mut TestMachine, tensor: View) -> String {
        m.run(DevicePrint { print_prefix: prefix.into(), tensor }).unwrap();
        m.printed.pop().unwrap()
    }

    #[test]
    fn shows_shape_and_values() {
        let mut m = TestMachine::new(Target::Trn2);
        let t = m.tensor_f32("t", Space::Sbuf, DType::F32, &[2, 2], &[1., -0.5, f32::NAN, 1e-8]);
        assert_eq!(print("x =", &mut m, t), "x = float32[2, 2] [[1, -0.5], [NaN, 0.00000001]]");
    }

    #[test]
    fn integers_are_exact() {
        let mut m = TestMachine::new(Target::Trn2);
        let t = m.tensor_bits("t", Space::Hbm, DType::I32, &[2], &[16_777_217, u32::MAX]);
        assert_eq!(print("", &mut m, t), "int32[2] [16777217, -1]");
    }

    #[test]
    fn large_tensors_are_abbreviated() {
        let mut m = TestMachine::new(Target::Trn2);
        let t = m.tensor_bits("t", Space::Sbuf, DType::U8, &[2, 600], &[0; 1200]);
        assert_eq!(print("t", &mut m, t), "t uint8[2, 600] [[0, 0, 0, ..., 0, 0, 0], [0, 0, 0, ..., 0, 0, 0]]");
    }
}
