//! `nisa.tensor_partition_reduce`: reduces a tile across partitions.

use crate::inst::values::{Feeds, Values};
use ndarray::{ArrayView2, Axis};

use crate::arch::Arch;
use crate::dtype::{bits_to_i64, i64_to_bits};
use crate::inst::math::alu;
use crate::inst::math::integer::{self, Widths};
use crate::inst::result::{Given, ResultTile};
use crate::inst::stream::{on, stream};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Algorithm, Law, Start, Term, Work};

crate::named_enum! {
    /// What `tensor_partition_reduce` can do.
    pub enum PartitionReduce: "partition reduction" {
        /// The sum.
        Add "add",
        /// The sum divided by the number of partitions.
        Average "average" | "mean",
        /// The largest.
        Max "maximum" | "max",
        /// Bitwise or.
        BitwiseOr "bitwise_or",
        /// Bitwise and.
        BitwiseAnd "bitwise_and",
        /// Bitwise exclusive or.
        BitwiseXor "bitwise_xor",
    }
}

operands! {
    /// Reduces `data` across its partitions to one partition.
    pub struct TensorPartitionReduce: "tensor_partition_reduce" on [GpSimd] {
        /// The result, in its first partition, with as many elements as a partition of `data`. Other partitions keep their contents.
        [Out Sbuf] dst: View,
        /// Operator: add, average, maximum, bitwise_or, bitwise_and or bitwise_xor.
        [Attr] op: PartitionReduce,
        /// Input tile.
        [In Sbuf] data: View,
    }
    numerics: "Bitwise operators on bit patterns; 32-bit integers are added and compared exactly; all else in fp32 from \
        the first partition to the last, rounded once. The manual says nothing of the arithmetic: the exactness \
        is our choice, after what it says of GpSimd elsewhere.",
    cost: Measured "A fixed part, then 0.71 cycles for each element of each partition: 5 us for 62 columns of 128 partitions. A matmul with \
        ones sums over partitions far quicker.",
    rules: {
        "same-elements": "`dst` has as many elements per partition as `data`",
        "rank": "`data` and `dst` have at most 5 dimensions",
        "bitvec-ints": "bitwise operators take integers only",
    },
}

/// Most dimensions of `data` and `dst` (tensor_partition_reduce reference of 2.33).
const RANK: usize = 5;

impl TensorPartitionReduce {
    fn alu(&self) -> AluOp {
        match self.op {
            PartitionReduce::Add | PartitionReduce::Average => AluOp::Add,
            PartitionReduce::Max => AluOp::Max,
            PartitionReduce::BitwiseOr => AluOp::BitwiseOr,
            PartitionReduce::BitwiseAnd => AluOp::BitwiseAnd,
            PartitionReduce::BitwiseXor => AluOp::BitwiseXor,
        }
    }
}

impl Instruction for TensorPartitionReduce {
    const PLACING: Placing = Placing::Fixed;
    fn result(given: &Given<'_>) -> Option<ResultTile> {
        given.view("data").map(|d| ResultTile::sbuf(std::iter::once(1).chain(d.shape().into_iter().skip(1)), d.dtype))
    }

    /// A `dst` of several partitions stands for its first: "writes the result to partition 0 only on hardware" (aws-neuron/vllm-omni-neuron,
    /// which reduces a tile of 128 partitions in place).
    fn completed(self) -> Self {
        let dst = if self.dst.partitions() > 1 && self.dst.indirect.is_none() { self.dst.rows(0, 1) } else { self.dst };
        TensorPartitionReduce { dst, ..self }
    }

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::GpSimd
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_free(("data", &self.data), ("dst", &self.dst))?;
        check::rank("data", &self.data, RANK)?;
        check::rank("dst", &self.dst, RANK)?;
        check::bitvec_dtypes(self.alu(), &[("data", &self.data), ("dst", &self.dst)])
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    /// Reduces from the first partition to the last. Bitwise operators work on bit patterns. Open question: the manual does not specify the
    /// arithmetic; as in the engine's other instructions it is fp32, except that 32-bit integers are added and compared exactly.
    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let exact = check::all_int32([&self.data, &self.dst].into_iter()) && self.op != PartitionReduce::Average;
        if self.alu().is_bitvec() || exact {
            let widths = Widths::of(self.data.dtype, self.dst.dtype);
            let data = &widths.patterns(&[&self.data])[0];
            let tile = machine.read_bits(data)?.mapv(|bits| bits_to_i64(data.dtype, bits));
            let reduced = tile.fold_axis(Axis(0), None, |acc: &Option<i64>, &x| {
                Some(acc.map_or(x, |acc| integer::scalar(self.alu(), widths, acc, x)))
            });
            let (dtype, representation) = (self.dst.dtype, machine.representation());
            let bits = reduced.mapv(|x| representation.bits(dtype, i64_to_bits(dtype, x.unwrap_or(0))));
            return machine.write_bits(&self.dst, bits.insert_axis(Axis(0)).view());
        }
        let tile = machine.read_tile(&self.data)?;
        let mut rows = tile.outer_iter();
        let mut result = rows.next().map_or_else(Vec::new, |first| first.to_vec());
        for row in rows.filter_map(|row| row.to_slice()) {
            alu::apply_in_place(self.alu(), false, &mut result, alu::Rhs::Row(row));
        }
        if self.op == PartitionReduce::Average {
            alu::apply_in_place(AluOp::Divide, false, &mut result, alu::Rhs::One(self.data.partitions() as f32));
        }
        let result = ArrayView2::from_shape((1, result.len()), &result[..]);
        machine.write_tile(&self.dst, result.map_err(|e| Fault::new("internal", e.to_string()))?)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Columns)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(
            Engine::GpSimd,
            stream(
                Law::Algorithm(Algorithm { start: Start::Once, terms: &[Term::AllPartitions("partition_reduce")] }),
                &[&self.data],
                &[&self.dst],
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn reduce(op: PartitionReduce, dtype: DType, rows: u32, bits: &[u32]) -> Vec<u32> {
        let mut m = TestMachine::new(Target::Trn2);
        let columns = bits.len() as u32 / rows;
        let data = m.tensor_bits("s", Space::Sbuf, dtype, &[rows, columns], bits);
        let dst = m.tensor("d", Space::Sbuf, dtype, &[1, columns]);
        m.run(TensorPartitionReduce { dst: dst.clone(), op, data }).unwrap();
        m.bits(&dst)
    }

    #[test]
    fn reduces_columns() {
        let bits: Vec<u32> = [1.0f32, 2., 3., -4., 5., 9.].iter().map(|x| x.to_bits()).collect();
        let want = |a: f32, b: f32| [a.to_bits(), b.to_bits()];
        assert_eq!(reduce(PartitionReduce::Add, DType::F32, 3, &bits), want(9., 7.));
        assert_eq!(reduce(PartitionReduce::Average, DType::F32, 3, &bits), want(3., 7. / 3.));
        assert_eq!(reduce(PartitionReduce::Max, DType::F32, 3, &bits), want(5., 9.));
    }

    #[test]
    fn only_the_first_partition_of_the_destination_is_written() {
        let mut m = TestMachine::new(Target::Trn2);
        let bits: Vec<u32> = [1.0f32, 2., 3., 4., 5., 9.].iter().map(|x| x.to_bits()).collect();
        let tile = m.tensor_bits("s", Space::Sbuf, DType::F32, &[3, 2], &bits);
        let reduce = TensorPartitionReduce { dst: tile.clone(), op: PartitionReduce::Add, data: tile.clone() };
        m.run(reduce.completed()).unwrap();
        assert_eq!(m.bits(&tile), [&[9.0f32.to_bits(), 15.0f32.to_bits()], &bits[2..]].concat());
    }

    #[test]
    fn bits_and_large_integers_are_exact() {
        assert_eq!(reduce(PartitionReduce::BitwiseOr, DType::U8, 2, &[0x81, 0x0F, 0x18, 0xF0]), [0x99, 0xFF]);
        assert_eq!(reduce(PartitionReduce::BitwiseAnd, DType::I16, 2, &[0x8001, 3, 0x8002, 6]), [0x8000, 2]);
        assert_eq!(reduce(PartitionReduce::BitwiseXor, DType::U8, 3, &[0x81, 3, 7]), [0x85]);
        assert_eq!(
            reduce(PartitionReduce::Add, DType::I32, 2, &[16_777_217, u32::MAX, 16_777_218, 1]),
            [33_554_435, 0]
        );
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let data = m.tensor("s", Space::Sbuf, DType::F32, &[4, 2]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[1, 2]);
        let short = m.tensor("e", Space::Sbuf, DType::F32, &[1, 1]);
        let said =
            |dst: &View, op| m.check(TensorPartitionReduce { dst: dst.clone(), op, data: data.clone() }).unwrap_err();
        assert!(said(&short, PartitionReduce::Add).contains("= 1 elements per partition"));
        assert!(said(&dst, PartitionReduce::BitwiseOr).contains("`bitwise_or` works on the bits"));
        let args = [("op", crate::Arg::Name("minimum".into())), ("dst", crate::Arg::View(dst))];
        let e = crate::testing::build("tensor_partition_reduce", &args).unwrap_err();
        assert!(e.contains("one of add, average, maximum, bitwise_or, bitwise_and, bitwise_xor"), "{e}");
    }
}
