//! `nisa.nonzero_with_count`: the positions of the elements that are not zero, and their number.

use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use super::local_gather::CORE;
use crate::arch::Arch;
use crate::dtype::DType;
use crate::inst::stream::{on, stream};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Start, Term, Work};

operands! {
    /// In partitions 0, 16, 32, ...: the positions of the elements of `src` that are not zero, then padding, and last their number.
    /// The other partitions of `dst` stay as they are (trn2 and later).
    pub struct NonzeroWithCount: "nonzero_with_count" on [GpSimd from Trn2] {
        /// Positions, padding and number: int32, one element more per partition than `src`.
        [Out Sbuf; I32] dst: View,
        /// Input tile: float32 or int32.
        [In Sbuf; F32 I32] src: View,
        /// Added to each position (int32).
        [Attr] index_offset: i64 = 0,
        /// Fills the places behind the positions (int32).
        [Attr] padding_val: i64 = -1,
    }
    numerics: "-0.0 is zero, NaN is not; positions are 32-bit integers, wrapping.",
    cost: Assumed "One pass over the elements of a partition; one partition for each core.",
    rules: {
        "same-partitions": "`src` and `dst` have the same number of partitions",
        "one-more": "`dst` has one element more per partition than `src`",
        "int32": "`index_offset` and `padding_val` fit 32 bits",
    },
}

/// The first partition of each GpSimd core.
fn core_rows(view: &View) -> View {
    let mut view = view.clone();
    if let Some(d) = view.dims.first_mut() {
        d.count = d.count.div_ceil(CORE);
        d.stride *= i64::from(CORE);
    }
    view
}

impl Instruction for NonzeroWithCount {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_partitions(("src", &self.src), ("dst", &self.dst))?;
        let (n, got) = (self.src.free_elements(), self.dst.free_elements());
        if got != n + 1 {
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!(
                    "`dst` has {got} elements per partition, it must have one more than the {n} of `src`: {}",
                    n + 1
                ),
            ));
        }
        for (name, value) in [("index_offset", self.index_offset), ("padding_val", self.padding_val)] {
            if i32::try_from(value).is_err() {
                return Err(Violation::new(
                    "operand-value",
                    name,
                    format!("`{name}` is {value}, which is not an int32"),
                ));
            }
        }
        Ok(())
    }

    /// `dst` keeps its other partitions, so it is an input too.
    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
        if self.dst.partitions() > 1 {
            footprint.read(&self.dst);
        }
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        // Bits, not numbers: rounding an int32 to fp32 does not make it zero.
        let src = machine.read_bits(&core_rows(&self.src))?;
        let is_zero = |bits: u32| bits == 0 || self.src.dtype == DType::F32 && bits == (-0.0f32).to_bits();
        let mut out = Array2::from_elem((src.nrows(), src.ncols() + 1), self.padding_val as u32);
        for (row, mut o) in src.outer_iter().zip(out.outer_iter_mut()) {
            let mut count = 0;
            for (i, _) in row.iter().enumerate().filter(|(_, bits)| !is_zero(**bits)) {
                o[count] = (self.index_offset as u32).wrapping_add(i as u32);
                count += 1;
            }
            o[src.ncols()] = count as u32;
        }
        machine.write_bits(&core_rows(&self.dst), out.view())
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(
            Engine::GpSimd,
            stream(
                Law::Algorithm(Algorithm { start: Start::Once, terms: &[Term::Elements("nonzero")] }),
                &[&self.src],
                &[&self.dst],
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::names::Space;
    use crate::testing::TestMachine;

    #[test]
    fn the_example_of_the_manual() {
        for dtype in [DType::F32, DType::I32] {
            let mut m = TestMachine::new(Target::Trn2);
            let src = m.tensor_f32("s", Space::Sbuf, dtype, &[1, 8], &[0., 1., 1., 0., 0., 1., 0., 0.]);
            let dst = m.tensor("d", Space::Sbuf, DType::I32, &[1, 9]);
            m.run(NonzeroWithCount { dst: dst.clone(), src, index_offset: 16, padding_val: -1 }).unwrap();
            let pad = u32::MAX;
            assert_eq!(m.bits(&dst), [17, 18, 21, pad, pad, pad, pad, pad, 3]);
        }
    }

    #[test]
    fn only_the_first_partition_of_each_core_takes_part() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[20, 2]);
        let row = |p| View {
            partition: p,
            dims: [crate::Dim { stride: 1, count: 1 }, src.dims[1]].into_iter().collect(),
            ..src.clone()
        };
        m.set_f32(&row(0), &[0., 5.]);
        m.set_f32(&row(16), &[f32::NAN, -0.0]);
        let dst = m.tensor_bits("d", Space::Sbuf, DType::I32, &[20, 3], &[9; 60]);
        m.run(NonzeroWithCount { dst: dst.clone(), src, index_offset: 0, padding_val: 7 }).unwrap();
        assert_eq!(m.uninitialized, []);
        let got = m.bits(&dst);
        assert_eq!((&got[..3], &got[48..51]), (&[1, 7, 1][..], &[0, 7, 1][..]));
        assert!(got[3..48].iter().chain(&got[51..]).all(|&x| x == 9));
    }

    #[test]
    fn broken_rules() {
        let inst = |m: &mut TestMachine, from, to, n| NonzeroWithCount {
            src: m.tensor("s", Space::Sbuf, from, &[16, 4]),
            dst: m.tensor("d", Space::Sbuf, to, &[16, n]),
            index_offset: 0,
            padding_val: -1,
        };
        let said = |target, from, to, n| {
            let mut m = TestMachine::new(target);
            let inst = inst(&mut m, from, to, n);
            m.check(inst).unwrap_err()
        };
        assert!(said(Target::Trn1, DType::F32, DType::I32, 5).contains("needs trn2 or later"));
        assert!(said(Target::Trn2, DType::BF16, DType::I32, 5).contains("`src` is bfloat16"));
        assert!(said(Target::Trn2, DType::F32, DType::U32, 5).contains("`dst` is uint32; it must be int32"));
        assert!(
            said(Target::Trn2, DType::F32, DType::I32, 4)
                .contains("has 4 elements per partition, it must have one more")
        );
        let mut m = TestMachine::new(Target::Trn3);
        let base = inst(&mut m, DType::I32, DType::I32, 5);
        let e = m.check(NonzeroWithCount { padding_val: 1 << 31, ..base }).unwrap_err();
        assert!(e.contains("`padding_val` is 2147483648, which is not an int32"), "{e}");
    }
}
