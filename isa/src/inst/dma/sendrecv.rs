//! `nisa.sendrecv`: the two physical cores of a logical core exchange tiles.

use crate::inst::dma::dma_copy::is_indexed;
use crate::inst::values::{Feeds, Values};
use ndarray::Array2;

use crate::arch::Arch;
use crate::inst::{Action, Footprint, Instruction, Operands, Placing};
use crate::machine::{Context, Fault, Machine};
use crate::names::{DgeMode, DmaEngine, Engine};
use crate::operands;
use crate::rendezvous::Participants;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Dma, DmaSide, RendezvousWork, Work, WorkKind};

operands! {
    /// Sends `src` to the `dst` of core `send_to_rank`, and receives into `dst` the `src` of core `recv_from_rank`.
    pub struct Sendrecv: "sendrecv" on [Sync from Trn2, GpSimd from Trn2, Scalar from Trn2] {
        /// The tile to send.
        [In Sbuf] src: View,
        /// Where the received tile goes.
        [Out Sbuf] dst: View,
        /// The core that gets `src`: 0 or 1.
        [Attr] send_to_rank: i64,
        /// The core whose `src` goes to `dst`: 0 or 1.
        [Attr] recv_from_rank: i64,
        /// Exchanges with one id go in their order on both cores.
        [Attr] pipe_id: i64,
        /// Who moves the bytes.
        [Attr] dma_engine: DmaEngine = DmaEngine::Dma,
    }
    numerics: "Bits move unchanged.",
    cost: Assumed "A DMA of the bytes of `dst`, started when both cores are there; by GpSimd's own DMA a fixed part and the \
        bytes.",
    rules: {
        "same-dtype": "`src` and `dst` have the same dtype",
        "same-size": "`src` and `dst` have the same number of partitions and of elements per partition",
        "ranks": "`send_to_rank` and `recv_from_rank` are 0 or 1",
        "gpsimd-size": "gpsimd_dma moves at most 256 elements per partition",
    },
}

/// Maximum elements per partition for GpSimd's DMA engine: 1024, 512 and 256 bytes for types of 4, 2 and 1 byte (`sendrecv` reference).
const GPSIMD_ELEMENTS: usize = 256;

/// The ranks of an exchange are cores of the logical core.
///
/// # Errors
/// `operand-value`.
pub(super) fn check_ranks(send_to_rank: i64, recv_from_rank: i64) -> Result<(), Violation> {
    for (operand, rank) in [("send_to_rank", send_to_rank), ("recv_from_rank", recv_from_rank)] {
        if !(0..2).contains(&rank) {
            let message = format!("`{operand}` is {rank}: the cores of a logical core are 0 and 1");
            return Err(Violation::new("operand-value", operand, message));
        }
    }
    Ok(())
}

/// The work of an exchange that the DMA engines make.
pub(super) fn exchange(src: &View, dst: &View) -> WorkKind {
    WorkKind::Dma(Dma {
        src: DmaSide::of(src),
        dst: DmaSide::of(dst),
        bytes: dst.bytes() as u64,
        elements: dst.elements() as u64,
        dge: DgeMode::Unknown,
        dynamic: src.indirect.is_some() || dst.indirect.is_some(),
        indexed: is_indexed(src) || is_indexed(dst),
        indirect: false,
        transpose: false,
        cast: false,
    })
}

impl Instruction for Sendrecv {
    const PLACING: Placing = Placing::Fixed;
    const PACKED: &'static [&'static str] = &["dst", "src"];

    fn engine(&self, _arch: &Arch) -> Engine {
        match self.dma_engine {
            DmaEngine::Dma => Engine::Sync,
            DmaEngine::GpSimdDma => Engine::GpSimd,
        }
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        if self.src.dtype != self.dst.dtype {
            return Err(Violation::new(
                "dtype-mismatch",
                "src",
                format!("`src` is {}, `dst` is {}: they must have the same dtype", self.src.dtype, self.dst.dtype),
            ));
        }
        let same =
            self.src.partitions() == self.dst.partitions() && self.src.free_elements() == self.dst.free_elements();
        if !same {
            return Err(Violation::new(
                "shape-mismatch",
                "src",
                format!(
                    "`src` has {:?} elements, `dst` {:?}: they must have the same shape",
                    self.src.shape(),
                    self.dst.shape()
                ),
            ));
        }
        check_ranks(self.send_to_rank, self.recv_from_rank)?;
        let elements = self.src.free_elements();
        if self.dma_engine == DmaEngine::GpSimdDma && elements > GPSIMD_ELEMENTS {
            let size = self.src.dtype.size();
            return Err(Violation::new(
                "free-size",
                "src",
                format!(
                    "`src` has {} bytes per partition, dma_engine=gpsimd_dma moves at most {} of {}",
                    elements * size,
                    GPSIMD_ELEMENTS * size,
                    self.src.dtype
                ),
            )
            .help("send it in parts, or use nisa.dma_engine.dma"));
        }
        Ok(())
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let contributions = machine.contributions();
        let from = contributions.iter().find(|c| i64::from(c.member) == self.recv_from_rank);
        match from.and_then(|c| c.tiles.first()) {
            Some(tile) => machine.write_bits(&self.dst, tile.view()),
            None => Err(Fault::new("internal", format!("core {} has sent nothing", self.recv_from_rank))),
        }
    }

    fn action(&self) -> Action<'_> {
        Action::Rearranges
    }

    fn values(&self) -> Values<'_> {
        Values::moved(Feeds::Row)
    }

    fn work(&self, context: &Context<'_>) -> Work {
        let kind = match self.dma_engine {
            DmaEngine::GpSimdDma => WorkKind::Rendezvous(RendezvousWork::GpSimdDma { bytes: self.dst.bytes() as u64 }),
            DmaEngine::Dma => exchange(&self.src, &self.dst),
        };
        Work { engine: self.engine(context.arch), kind }
    }

    fn participants(&self) -> Option<Participants<'_>> {
        Some(Participants::Exchange {
            send_to: self.send_to_rank,
            receive_from: self.recv_from_rank,
            pipe: self.pipe_id,
        })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        Ok(vec![machine.read_bits(&self.src)?])
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        if self.dma_engine != other.dma_engine {
            return Err(format!("one has dma_engine {}, the other {}", self.dma_engine, other.dma_engine));
        }
        let of = |s: &Self| (s.src.partitions(), s.src.free_elements());
        if self.dst.dtype != other.src.dtype || of(self) != of(other) {
            return Err(format!(
                "one sends {} {:?}, the other {} {:?}",
                self.src.dtype,
                self.src.shape(),
                other.src.dtype,
                other.src.shape()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::dtype::DType;
    use crate::names::Space;
    use crate::rendezvous::Contribution;
    use crate::testing::TestMachine;

    fn swap(src: &View, dst: &View) -> Sendrecv {
        Sendrecv {
            src: src.clone(),
            dst: dst.clone(),
            send_to_rank: 1,
            recv_from_rank: 1,
            pipe_id: 0,
            dma_engine: DmaEngine::Dma,
        }
    }

    #[test]
    fn receives_what_the_other_core_sends() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[2, 2], &[1., 2., 3., 4.]);
        let dst = m.tensor("d", Space::Sbuf, DType::BF16, &[2, 2]);
        let inst = swap(&src, &dst);
        let mine = inst.contribute(&mut m).unwrap();
        m.contributions = vec![
            Contribution { member: 0, tiles: mine.clone() },
            Contribution { member: 1, tiles: vec![mine[0].mapv(|b| b ^ 0x8000)] },
        ];
        m.run(inst.clone()).unwrap();
        assert_eq!(m.f32s(&dst), [-1., -2., -3., -4.]);
        assert_eq!(inst.participants().map(|x| x.members(0)), Some(vec![0, 1]));
    }

    #[test]
    fn the_rules_of_the_reference() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[2, 300]);
        let dst = m.tensor("d", Space::Sbuf, DType::F32, &[2, 300]);
        let narrow = m.tensor("n", Space::Sbuf, DType::BF16, &[2, 300]);
        let short = m.tensor("h", Space::Sbuf, DType::F32, &[2, 200]);
        let ok = swap(&src, &dst);
        m.check(ok.clone()).unwrap();
        for (inst, want) in [
            (swap(&src, &narrow), "must have the same dtype"),
            (swap(&src, &short), "must have the same shape"),
            (Sendrecv { send_to_rank: 2, ..ok.clone() }, "`send_to_rank` is 2"),
            (Sendrecv { recv_from_rank: -1, ..ok.clone() }, "`recv_from_rank` is -1"),
            (
                Sendrecv { dma_engine: DmaEngine::GpSimdDma, ..ok.clone() },
                "1200 bytes per partition, dma_engine=gpsimd_dma moves at most 1024",
            ),
        ] {
            let e = m.check(inst).unwrap_err();
            assert!(e.contains(want), "{e}");
        }
        m.check(Sendrecv { dma_engine: DmaEngine::GpSimdDma, ..swap(&short, &short) }).unwrap();
        let e = ok.agrees(&swap(&short, &short), &m.context()).unwrap_err();
        assert_eq!(e, "one sends float32 [2, 300], the other float32 [2, 200]");
        let old = TestMachine::new(Target::Trn1);
        let e = old.check(ok).unwrap_err();
        assert!(e.contains("needs trn2 or later"), "{e}");
    }
}
