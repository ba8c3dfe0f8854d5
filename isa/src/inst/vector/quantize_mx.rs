//! `nisa.quantize_mx`: 16-bit floats to blocks of MXFP8.

use crate::inst::values::{Feeds, Values};
use ndarray::{Array1, Array2};

use crate::arch::Arch;
use crate::dtype::MxElement;
use crate::inst::mx::{self, BLOCK};
use crate::inst::stream::rows;
use crate::inst::{Footprint, Instruction, Operands, Placing, check, stream};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Quantizes `src` to MXFP8: each block of 8 partitions x 4 elements gets the scale `2^(floor(log2(max|x|)) - (E - 1))`, where `E` is
    /// the largest exponent of the result's format (8 for e4m3fn, 15 for e5m2), and its elements are divided by that and rounded to
    /// nearest even. A block of zeros gets the smallest scale, 2^-127 (Trn3).
    pub struct QuantizeMx: "quantize_mx" on [Vector from Trn3] {
        /// The quantized elements, four to each packed element.
        [Out Sbuf; F8E4M3FNX4 F8E5M2X4] dst: View,
        /// The tile to quantize, in float16 or bfloat16.
        [In Sbuf; F16 BF16] src: View,
        /// The scales: four rows in each quadrant of 32 partitions, one column for each packed element.
        [Out Sbuf; F8E8M0 U8] dst_scale: View,
    }
    numerics: "The scale is a power of two, exact; a quotient is exact in fp32 and rounded once to the nearest, ties to \
        even.",
    cost: Documented "A step for four elements of a partition of `src`.",
    rules: {
        "quadrants": "`src` has 32, 64, 96 or 128 partitions",
        "same-partitions": "`src` and `dst` have the same number of partitions",
        "multiple": "`src` has a multiple of 4 elements per partition",
        "dst-size": "`dst` has a quarter of the elements of `src`",
        "scale-size": "`dst_scale` has one element for each packed element",
        "scale-partitions": "`dst_scale` spans four partitions in each quadrant of the data",
        "scale-start": "`dst_scale` starts at partition 0, 4, 8 or 12 of a quadrant",
        "scale-quadrant": "`dst_scale` is in the quadrant of its data",
        "scale-stride": "`dst_scale` is in neighbouring partitions",
    },
}

/// Largest exponent field of an fp32 number, at infinity and NaN.
const FIELD_MAX: u32 = 255;

/// The scale's code for a block whose largest exponent field (of fp32) is `field`.
///
/// The field of infinity and NaN is treated like any other (the manual does not say): their elements stay infinite or NaN.
fn scale_code(field: u32, element: MxElement) -> u32 {
    debug_assert!(field <= FIELD_MAX);
    (field + 1).saturating_sub(element.max_exponent() as u32)
}

impl Instruction for QuantizeMx {
    const PLACING: Placing = Placing::Fixed;
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    const OWN_LAYOUT: &'static [&'static str] = &["dst_scale"];
    const PACKED: &'static [&'static str] = &["dst"];

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        mx::check_partitions("src", &self.src)?;
        check::same_partitions(("src", &self.src), ("dst", &self.dst))?;
        let (n, packed) = (self.src.free_elements(), self.dst.free_elements());
        if !n.is_multiple_of(4) {
            return Err(Violation::new(
                "free-size",
                "src",
                format!("`src` has {n} elements per partition, but must be a multiple of 4"),
            ));
        }
        if packed != n / 4 {
            return Err(Violation::new(
                "shape-mismatch",
                "dst",
                format!(
                    "`dst` has {:?} = {packed} packed elements per partition, `src` {:?} gives {}",
                    self.dst.shape(),
                    self.src.shape(),
                    n / 4
                ),
            )
            .help("a packed element holds four: give `dst` a quarter of the elements of `src`"));
        }
        mx::check_scale(("src", &self.src), packed, ("dst_scale", &self.dst_scale), context)
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let Some(element) = self.dst.dtype.mx_element() else {
            return Err(Fault::new("internal", "quantize_mx to a type that is not packed"));
        };
        let src = machine.read_tile(&self.src)?;
        let (p, columns) = (src.nrows(), self.dst.free_elements());
        let mut data = Array2::zeros((p, columns));
        let mut scales = Array2::zeros((p / BLOCK, columns));
        let (mut scaled, mut inverses) = (vec![0.0; 4 * columns], vec![0.0; columns]);
        for (block, mut scales) in scales.outer_iter_mut().enumerate() {
            let rows =
                || (block * BLOCK..(block + 1) * BLOCK).map(|row| (row, src.row(row).to_slice().unwrap_or_default()));
            let mut fields = vec![0; columns];
            for (_, row) in rows() {
                for (field, four) in fields.iter_mut().zip(row.as_chunks::<4>().0) {
                    *field = four.iter().fold(*field, |most, x| most.max(x.to_bits() >> 23 & FIELD_MAX));
                }
            }
            for ((scale, inverse), field) in scales.iter_mut().zip(&mut inverses).zip(fields) {
                let code = scale_code(field, element);
                // 2^-(code - 127): from 2^127 down to 2^-122, always a normal number, so the division is exact.
                *inverse = f32::from_bits((254 - code) << 23);
                *scale = crate::dtype::mx_scale_value(code as u8);
            }
            for (row, x) in rows() {
                let fours = scaled.as_chunks_mut::<4>().0.iter_mut().zip(x.as_chunks::<4>().0);
                for ((scaled, x), inverse) in fours.zip(&inverses) {
                    *scaled = x.map(|x| x * inverse);
                }
                data.row_mut(row).assign(&Array1::from(element.pack_all(&scaled)));
            }
        }
        machine.write_bits(&self.dst, data.view())?;
        mx::write_scales(machine, &self.dst_scale, p as u32, scales.view())
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let class = rows("quantize_mx", "typical");
        stream::on(self.engine(context.arch), stream::stream(class, &[&self.src], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn parts(m: &mut TestMachine, p: u32, n: u32, dtype: DType, scale: &[u32]) -> QuantizeMx {
        QuantizeMx {
            src: m.tensor("s", Space::Sbuf, DType::BF16, &[p, n]),
            dst: m.tensor("d", Space::Sbuf, dtype, &[p, n / 4]),
            dst_scale: m.tensor("c", Space::Sbuf, DType::F8E8M0, scale),
        }
    }

    #[test]
    fn a_block_shares_the_scale_of_its_largest() {
        let mut m = TestMachine::new(Target::Trn3);
        let q = parts(&mut m, 32, 4, DType::F8E4M3FNX4, &[4, 1]);
        let mut values = vec![0.0; 128];
        // Block 0: largest exponent 3, scale 2^(3 - 7). 8.5 is 136, a tie between 128 and 144; 9.5 is 152, one of 144 and 160.
        values[..4].copy_from_slice(&[8.5, -1.0, 0.0, 9.5]);
        // Block 2.
        values[4 * 16 + 3] = -3.0;
        m.set_f32(&q.src, &values);
        m.run(q.clone()).unwrap();
        assert_eq!(m.bits(&q.dst_scale), [127 + 3 - 7, 0, 127 + 1 - 7, 0]);
        let bits = m.bits(&q.dst);
        assert_eq!(MxElement::E4M3FN.unpack(bits[0]), [128.0, -16.0, 0.0, 160.0]);
        assert_eq!(MxElement::E4M3FN.unpack(bits[16]), [0.0, 0.0, 0.0, -192.0]);
        assert!(m.uninitialized.is_empty());
    }

    #[test]
    fn special_numbers_stay_special() {
        let mut m = TestMachine::new(Target::Trn3);
        let q = parts(&mut m, 32, 4, DType::F8E5M2X4, &[4, 1]);
        let mut values = vec![1.0; 128];
        values[0] = f32::INFINITY;
        values[33] = f32::NAN;
        values[64..96].fill(f32::from_bits(0x0001_0000));
        m.set_f32(&q.src, &values);
        m.run(q.clone()).unwrap();
        assert_eq!(m.bits(&q.dst_scale), [241, 241, 0, 113]);
        let bits = m.bits(&q.dst);
        assert_eq!(MxElement::E5M2.unpack(bits[0]), [f32::INFINITY, 0.0, 0.0, 0.0]);
        assert!(MxElement::E5M2.unpack(bits[8])[1].is_nan());
        // 2^-133 over 2^-127.
        assert_eq!(MxElement::E5M2.unpack(bits[16]), [1.0 / 64.0; 4]);
    }

    #[test]
    fn scales_stay_in_the_quadrant_of_their_data_beside_others() {
        let mut m = TestMachine::new(Target::Trn3);
        let q = parts(&mut m, 64, 4, DType::F8E4M3FNX4, &[64, 1]);
        m.set_f32(&q.src, &[1.0; 256]);
        let mut shifted = q.dst_scale.clone();
        shifted.partition = 4;
        shifted.dims[0].count = 60;
        m.run(QuantizeMx { dst_scale: shifted, ..q.clone() }).unwrap();
        let written: Vec<usize> =
            m.bits(&q.dst_scale).iter().enumerate().filter(|(_, b)| **b == 120).map(|(i, _)| i).collect();
        assert_eq!(written, [4, 5, 6, 7, 36, 37, 38, 39]);
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let check = |target, p, n, dtype, scale: &[u32], change: &dyn Fn(&mut QuantizeMx)| {
            let mut m = TestMachine::new(target);
            let mut q = parts(&mut m, p, n, dtype, scale);
            change(&mut q);
            m.check(q).err().unwrap_or_default()
        };
        let shifted = |q: &mut QuantizeMx| {
            q.dst_scale.partition = 2;
            q.dst_scale.dims[0].count = 4;
        };
        let same = |_: &mut QuantizeMx| {};
        let fp8 = DType::F8E4M3FNX4;
        assert_eq!(check(Target::Trn3, 96, 8, fp8, &[68, 2], &same), "");
        assert!(check(Target::Trn2, 32, 8, fp8, &[4, 2], &same).contains("needs trn3 (target is trn2)"));
        assert!(check(Target::Trn3, 16, 8, fp8, &[4, 2], &same).contains("`src` has 16 partitions"));
        assert!(check(Target::Trn3, 32, 6, fp8, &[4, 1], &same).contains("6 elements per partition"));
        assert!(check(Target::Trn3, 32, 8, DType::F4E2M1FNX4, &[4, 2], &same).contains("`dst` is float4_e2m1fn_x4"));
        assert!(check(Target::Trn3, 32, 8, fp8, &[4, 3], &same).contains("= 3 scales per partition"));
        assert!(check(Target::Trn3, 64, 8, fp8, &[8, 2], &same).contains("spans 8 partitions"));
        assert!(check(Target::Trn3, 64, 8, fp8, &[8, 2], &same).contains("span 36"));
        assert!(check(Target::Trn3, 32, 8, fp8, &[64, 2], &shifted).contains("starts at partition 2"));
        let quadrant = |q: &mut QuantizeMx| {
            q.dst_scale.partition = 32;
            q.dst_scale.dims[0].count = 4;
            q.src.partition = 0;
            q.src.dims[0].count = 32;
            q.dst.dims[0].count = 32;
        };
        assert!(check(Target::Trn3, 128, 8, fp8, &[128, 2], &quadrant).contains("in the quadrant of their data"));
        assert!(check(Target::Trn3, 32, 8, fp8, &[4, 2], &|q| q.src.dtype = DType::I16).contains("`src` is int16"));
        assert!(check(Target::Trn3, 32, 8, fp8, &[4, 2], &|q| q.dst_scale.dtype = DType::I8).contains("is int8"));
        assert!(check(Target::Trn3, 32, 8, fp8, &[4, 2], &|q| q.dst.dims[1].count = 1).contains("1 packed elements"));
    }
}
