//! `nisa.nc_stream_shuffle`: moves partitions within each quadrant of 32.

use ndarray::{Array2, Axis, Slice};

use crate::arch::{self, Arch};
use crate::arg::Ints;
use crate::inst::stream::{on, rows, stream};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Action, Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::Engine;
use crate::operands;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// In each quadrant of 32 partitions: partition `i` of `dst` becomes partition `shuffle_mask[i]` of `src`, or stays as it is where
    /// the mask says 255.
    pub struct NcStreamShuffle: "nc_stream_shuffle" on [Vector] {
        /// Destination.
        [Out Sbuf Psum] dst: View,
        /// Source, of the dtype of `dst` and with as many elements per partition.
        [In Sbuf Psum] src: View,
        /// 32 numbers: 0 to 31, or 255.
        [Attr] shuffle_mask: Ints,
    }
    numerics: "Bits move unchanged.",
    cost: Measured "N steps for N elements of a partition, all quadrants at once, and a fixed part for the mask.",
    rules: {
        "mask-length": "`shuffle_mask` has 32 elements",
        "mask-values": "each is 0 to 31, or 255",
        "same-dtype": "`dst` has the dtype of `src`",
        "same-elements": "`src` and `dst` have the same number of elements per partition",
        "quadrant-start": "both start at 0 for more than 64 partitions of the larger, at 0 or 64 for more than 32, else at 0, 32, \
            64 or 96; a `src` of one partition starts anywhere",
        "mask-source": "the mask names only partitions of `src`",
    },
}

const QUADRANT: usize = arch::QUADRANT as usize;
/// Mask value for a partition that is left unchanged.
const KEEP: i64 = 255;

impl NcStreamShuffle {
    /// The partition of `src` that is moved to partition `to` of `dst`.
    fn source(&self, to: usize) -> Option<usize> {
        let from = *self.shuffle_mask.0.get(to % QUADRANT)?;
        (from != KEEP).then_some(to / QUADRANT * QUADRANT + from as usize)
    }

    /// The partitions of `src` that are moved, in order.
    fn sources(&self) -> Vec<u32> {
        let mut sources: Vec<u32> = self.moves().map(|(_, from)| from as u32).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    fn moves(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.dst.partitions() as usize).filter_map(|to| self.source(to).map(|from| (to, from)))
    }
}

impl Instruction for NcStreamShuffle {
    const PLACING: Placing = Placing::Fixed;
    /// The manual has no such exception; tests of nki-library (SDK 2.33) broadcast partitions 2, 5, 15 and 127.
    const ANY_PARTITION: &'static [&'static str] = &["src"];
    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Vector
    }

    fn validate(&self, context: &Context<'_>) -> Result<(), Violation> {
        let mask = &self.shuffle_mask.0;
        if mask.len() != QUADRANT {
            return Err(Violation::new(
                "operand-value",
                "shuffle_mask",
                format!("`shuffle_mask` has {} elements, it must have {QUADRANT}", mask.len()),
            ));
        }
        if let Some((i, m)) = mask.iter().enumerate().find(|(_, m)| !(0..QUADRANT as i64).contains(m) && **m != KEEP) {
            return Err(Violation::new(
                "operand-value",
                "shuffle_mask",
                format!("`shuffle_mask[{i}]` is {m}; it must be 0 to 31, or 255 to leave the partition as it is"),
            ));
        }
        check::same_dtype(("dst", &self.dst), ("src", &self.src))?;
        check::same_free(("src", &self.src), ("dst", &self.dst))?;
        // The larger operand determines the allowed start partitions of both.
        let active = self.src.partitions().max(self.dst.partitions()).next_multiple_of(QUADRANT as u32);
        let allowed = context.arch.partition_starts(active);
        for (name, view) in [("src", &self.src), ("dst", &self.dst)] {
            let tensor = &context.tensors[view.tensor.0 as usize];
            let start = tensor.start_partition(view);
            let anywhere = Self::ANY_PARTITION.contains(&name) && view.partitions() == 1;
            if !anywhere && !allowed.contains(&start) {
                let allowed: Vec<_> = allowed.iter().map(u32::to_string).collect();
                return Err(Violation::new(
                    "partition-start",
                    name,
                    format!(
                        "`{name}` starts at partition {start}; with {active} active partitions it must start at {}",
                        allowed.join(", ")
                    ),
                ));
            }
        }
        let have = self.src.partitions() as usize;
        if let Some((to, from)) = self.moves().find(|&(_, from)| from >= have) {
            return Err(Violation::new(
                "out-of-bounds",
                "shuffle_mask",
                format!("partition {to} of `dst` takes partition {from} of `src`, which has {have} (0 to {})", have - 1),
            )
            .help("each quadrant of dst reads the same quadrant of src: pass a larger src, or shuffle quadrant by quadrant"));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
        // Unchanged partitions are part of the result.
        if self.moves().count() < self.dst.partitions() as usize {
            footprint.read(&self.dst);
        }
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let sources = self.sources();
        let mut tile = Array2::zeros((self.src.partitions() as usize, self.src.free_elements()));
        for run in sources.chunk_by(|a, b| a + 1 == *b) {
            let rows = self.src.rows(run[0], run.len() as u32);
            let read = machine.read_bits(&rows)?;
            let start = run[0] as usize;
            tile.slice_axis_mut(Axis(0), Slice::from(start..start + run.len())).assign(&read);
        }
        let moves: Vec<(usize, usize)> = self.moves().collect();
        // Runs of adjacent partitions are written together; unchanged ones are not touched.
        for run in moves.chunk_by(|a, b| a.0 + 1 == b.0) {
            let rows: Vec<usize> = run.iter().map(|m| m.1).collect();
            let dst = self.dst.rows(run[0].0 as u32, run.len() as u32);
            machine.write_bits(&dst, tile.select(Axis(0), &rows).view())?;
        }
        Ok(())
    }

    fn partitions_read(&self, operand: &View) -> Option<Vec<u32>> {
        // `dst`, if it is read, is read as a whole.
        std::ptr::eq(operand, &self.src).then(|| self.sources())
    }

    fn action(&self) -> Action<'_> {
        Action::Shuffles
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        on(Engine::Vector, stream(rows("nc_stream_shuffle", "nc_stream_shuffle"), &[&self.src], &[&self.dst]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::testing::TestMachine;

    fn shuffle(dst: &View, src: &View, mask: Vec<i64>) -> NcStreamShuffle {
        NcStreamShuffle { dst: dst.clone(), src: src.clone(), shuffle_mask: Ints(mask) }
    }

    fn part(view: &View, start: u32, count: u32) -> View {
        let mut view = view.clone();
        view.partition = start;
        view.dims[0].count = count;
        view
    }

    #[test]
    fn every_quadrant_is_shuffled_alike() {
        let mut m = TestMachine::new(Target::Trn2);
        let values: Vec<f32> = (0..64u8).map(f32::from).collect();
        let src = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[64, 1], &values);
        // In place: all inputs are read before any output is written.
        m.run(shuffle(&src, &src, (0..32).rev().collect())).unwrap();
        let want: Vec<f32> = (0..32u8).rev().chain((32..64).rev()).map(f32::from).collect();
        assert_eq!(m.f32s(&src), want);
    }

    #[test]
    fn reads_what_the_mask_selects() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[64, 1]);
        let row = part(&src, 3, 1);
        m.write_tile(&row, ndarray::arr2(&[[5.0f32]]).view()).unwrap();
        m.write_tile(&part(&src, 35, 1), ndarray::arr2(&[[6.0f32]]).view()).unwrap();
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[64, 1]);
        let i = shuffle(&dst, &src, vec![3; 32]);
        assert_eq!((i.partitions_read(&i.src), i.partitions_read(&i.dst)), (Some(vec![3, 35]), None));
        m.run(i).unwrap();
        assert_eq!(m.f32s(&dst), [[5.0; 32], [6.0; 32]].concat());
        assert!(m.uninitialized.is_empty());
    }

    #[test]
    fn a_broadcast_of_one_partition_between_quadrants() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Psum, DType::F32, &[1, 2], &[5., 6.]);
        let dst = m.tensor_f32("d", Space::Sbuf, DType::F32, &[64, 2], &[0.; 128]);
        m.run(shuffle(&part(&dst, 32, 3), &src, vec![0; 32])).unwrap();
        let got = m.f32s(&dst);
        assert_eq!((&got[62..72], got[..62].iter().sum::<f32>()), (&[0., 0., 5., 6., 5., 6., 5., 6., 0., 0.][..], 0.));
    }

    #[test]
    fn partitions_of_255_stay_and_are_not_read() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_bits("s", Space::Sbuf, DType::U8, &[4, 1], &[1, 2, 3, 4]);
        let dst = m.tensor("d", Space::Sbuf, DType::U8, &[4, 1]);
        let mut mask = vec![255; 32];
        (mask[1], mask[3]) = (3, 0);
        let inst = shuffle(&dst, &src, mask);
        let before = m.bits(&dst);
        m.run(inst.clone()).unwrap();
        assert_eq!(m.bits(&dst), [before[0], 4, before[2], 1]);
        assert_eq!(m.uninitialized, []);
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        assert_eq!(footprint.reads.len(), 2);
    }

    #[test]
    fn broken_rules() {
        let mut m = TestMachine::new(Target::Trn2);
        let t = m.tensor("t", Space::Sbuf, DType::F32, &[128, 2]);
        let h = m.tensor("h", Space::Sbuf, DType::BF16, &[128, 2]);
        let said = |dst: &View, src: &View, mask| m.check(shuffle(dst, src, mask)).unwrap_err();
        assert!(said(&t, &t, vec![0; 31]).contains("`shuffle_mask` has 31 elements, it must have 32"));
        assert!(said(&t, &t, vec![32; 32]).contains("`shuffle_mask[0]` is 32"));
        assert!(said(&t, &h, vec![0; 32]).contains("`src` is bfloat16, `dst` is float32"));
        let e = said(&part(&t, 0, 64), &part(&t, 32, 2), vec![0; 32]);
        assert!(e.contains("`src` starts at partition 32; with 64 active partitions it must start at 0, 64"), "{e}");
        // One partition may start anywhere.
        assert_eq!(m.check(shuffle(&part(&t, 32, 32), &part(&t, 5, 1), vec![0; 32])), Ok(()));
        let e = said(&t, &part(&t, 0, 32), vec![7; 32]);
        assert!(e.contains("partition 32 of `dst` takes partition 39 of `src`, which has 32 (0 to 31)"), "{e}");
    }
}
