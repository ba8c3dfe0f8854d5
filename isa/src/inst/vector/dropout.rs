//! `nisa.dropout`: replaces elements with zeros at random.

use crate::arch::Arch;
use crate::arg::ScalarOperand;
use crate::dtype::DType;
use crate::inst::math::moves;
use crate::inst::random::Generators;
use crate::inst::result::{Given, ResultTile};
use crate::inst::scalars;
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Stream, Work};

operands! {
    /// Copies `data` with each element replaced by zero with probability `prob`.
    pub struct Dropout: "dropout" on [Vector] {
        /// The result, of the dtype of `data`.
        [Out Sbuf Psum] dst: View,
        /// Input tile.
        [In Sbuf Psum] data: View,
        /// Probability of zero: a number or a tile of shape (P, 1); float32 for integers, else of any float type.
        [In Sbuf Psum] prob: ScalarOperand,
    }
    numerics: "What stays keeps its bits and is not scaled. An element is dropped if its 32 random bits, as a fraction \
        of 2^32, are below the probability.",
    cost: Documented "N steps for N elements of a partition, at least 64.",
    rules: {
        "same-size": "`data` and `dst` have the same number of partitions and of elements per partition",
        "same-dtype": "`dst` has the dtype of `data`",
        "per-partition": "`prob`: a tile has one element per partition, and as many partitions as the input",
        "prob-range": "`prob` is between 0 and 1 if it is a number",
        "prob-dtype": "a tile as `prob` is float32 for integer data, and of any float type for float data",
    },
}

/// Whether a number is a probability; NaN is not.
fn is_probability(p: f32) -> bool {
    (0.0..=1.0).contains(&p)
}

impl Instruction for Dropout {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.like("data")
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        let data = ("data", &self.data);
        check::same_shape(data, ("dst", &self.dst))?;
        check::same_dtype(data, ("dst", &self.dst))?;
        check::scalar_operand(data, "prob", &self.prob)?;
        if let ScalarOperand::Imm(p) = &self.prob
            && !is_probability(p.as_f32())
        {
            let message = format!("`prob` is {:?}, but a probability is 0 to 1", p.as_f32());
            return Err(Violation::new("operand-value", "prob", message)
                .help("pass the fraction of elements to drop, not that of elements to keep or a percentage"));
        }
        match self.prob.view().map(|v| v.dtype) {
            Some(got) if self.data.dtype.is_int() && got != DType::F32 => Err(Violation::new(
                "operand-dtype",
                "prob",
                format!("`prob` is {got}, for `data` of {} it must be float32", self.data.dtype),
            )),
            Some(got) if got.is_int() => {
                Err(Violation::new("operand-dtype", "prob", format!("`prob` is {got}; it must be a float type")))
            }
            _ => Ok(()),
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// An element is dropped if its 32 random bits, as a fraction of 2^32, are below the probability. The other elements are not scaled and keep
    /// their bits. Open question: the engine's comparison; probabilities 0 and 1 are exact in any case.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let partitions = self.data.partitions() as usize;
        let probabilities: Vec<f32> = match &self.prob {
            ScalarOperand::Imm(p) => vec![p.as_f32(); partitions],
            ScalarOperand::Register(r) => vec![machine.register(*r) as f32; partitions],
            ScalarOperand::View(v) => machine.read_tile(v)?.into_iter().collect(),
        };
        if let Some((partition, p)) = probabilities.iter().enumerate().find(|(_, p)| !is_probability(**p)) {
            let message = format!("`prob` is {p:?} in partition {partition}, but a probability is 0 to 1");
            let help =
                "pass the fraction of elements to drop; the simulator takes numbers below 0 as 0 and above 1 as 1";
            machine.note_unexpected(Violation::new("unexpected-values", "prob", message).help(help));
        }
        Generators::of(Engine::Vector).map_bits(machine, &self.dst, &[&self.data], &mut |row| {
            let p = probabilities.get(row.partition).copied().unwrap_or(0.0);
            // At most 2^32, which exceeds all 32-bit values.
            let below = (f64::from(p) * 4_294_967_296.0).clamp(0.0, 4_294_967_296.0).ceil() as u64;
            moves::drop_below(below, row.ins[0], row.outs[0]);
        })
    }

    fn action(&self) -> Action<'_> {
        Action::Sequenced
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Elements)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        let stream = stream(rows("dropout", "typical"), &[&self.data], &[&self.dst]);
        on(Engine::Vector, Stream { scalar_reads: scalars::reads([&self.prob]), ..stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::arg::Imm;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn imm(x: f64) -> ScalarOperand {
        ScalarOperand::Imm(Imm::Float(x))
    }

    #[test]
    fn drops_as_often_as_asked_and_keeps_bits() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_bits("s", Space::Sbuf, DType::I32, &[3, 1000], &[0x7FFF_FFFF; 3000]);
        let prob = m.tensor_f32("p", Space::Sbuf, DType::F32, &[3, 1], &[0., 0.25, 1.]);
        let dst = m.tensor("d", Space::Sbuf, DType::I32, &[3, 1000]);
        m.run(Dropout { dst: dst.clone(), data, prob: ScalarOperand::View(prob) }).unwrap();
        let got = m.bits(&dst);
        assert!(got.iter().all(|&b| b == 0 || b == 0x7FFF_FFFF));
        let zeros: Vec<usize> = got.chunks(1000).map(|row| row.iter().filter(|&&b| b == 0).count()).collect();
        assert_eq!((zeros[0], zeros[2]), (0, 1000));
        assert!((200..300).contains(&zeros[1]), "{}", zeros[1]);
    }

    #[test]
    fn the_next_call_drops_others() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor_f32("s", Space::Psum, DType::BF16, &[1, 64], &[1.; 64]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[1, 64]);
        let inst = Dropout { dst: dst.clone(), data, prob: imm(0.5) };
        m.run(inst.clone()).unwrap();
        let first = m.f32s(&dst);
        m.run(inst).unwrap();
        assert_ne!(m.f32s(&dst), first);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[2, 2]);
        let ints = m.tensor("i", Space::Sbuf, DType::I8, &[2, 2]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 1]);
        let whole = m.tensor("w", Space::Sbuf, DType::I16, &[2, 1]);
        let said = |dst: &View, data: &View, prob| {
            m.check(Dropout { dst: dst.clone(), data: data.clone(), prob }).unwrap_err()
        };
        assert!(said(&ints, &float, imm(0.5)).contains("`dst` is int8, `data` is float32"));
        let e = said(&ints, &ints, ScalarOperand::View(half.clone()));
        assert!(e.contains("`prob` is bfloat16, for `data` of int8 it must be float32"), "{e}");
        assert!(said(&float, &float, ScalarOperand::View(whole)).contains("must be a float type"));
        assert!(said(&float, &float, ScalarOperand::View(float.clone())).contains("(2, 1)"));
        m.check(Dropout { dst: float.clone(), data: float, prob: ScalarOperand::View(half) }).unwrap();
    }
}
