//! `nisa.sendrecv_compute`: the two physical cores of a logical core exchange tiles, and each reduces its own with the received one.

use ndarray::Array2;

use crate::arch::Arch;
use crate::arg::Views;
use crate::inst::collectives::{contributed, contribution_values, put, reduce};
use crate::inst::dma::sendrecv::{check_ranks, exchange};
use crate::inst::values::{Feeds, Values};
use crate::inst::{Footprint, Instruction, Operands, Placing, check};
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine, Space};
use crate::operands;
use crate::rendezvous::Participants;
use crate::view::View;
use crate::violation::Violation;
use crate::work::Work;

operands! {
    /// Sends `src` to core `send_to_rank`, and writes `reduce_op(src, received)` to `dst`, where core `recv_from_rank` sends the second operand.
    pub struct SendrecvCompute: "sendrecv_compute" on [Sync from Trn2] {
        /// The tile to send, and the first operand.
        [In Sbuf Hbm] src: View,
        /// Where the result goes: in the same memory as `src`.
        [Out Sbuf Hbm] dst: View,
        /// The core that gets `src`: 0 or 1.
        [Attr] send_to_rank: i64,
        /// The core that sends the second operand: 0 or 1.
        [Attr] recv_from_rank: i64,
        /// Operator: add, maximum or minimum.
        [Attr] reduce_op: AluOp,
    }
    numerics: "Floats are added and compared in fp32 and rounded once to the dtype of `dst`; integers wrap. The manual does not say; \
        collectives are the model.",
    cost: Assumed "A DMA of the bytes of `dst`, started when both cores are there, as sendrecv; the reduction costs nothing.",
    rules: {
        "same-dtype": "`src` and `dst` have the same dtype",
        "same-size": "`src` and `dst` have the same number of partitions and of elements per partition",
        "same-memory": "`src` and `dst` are both in SBUF or both in private HBM",
        "ranks": "`send_to_rank` and `recv_from_rank` are 0 or 1",
        "operator": "`reduce_op` is add, maximum or minimum",
    },
}

/// The pipe of these exchanges, which have no `pipe_id`: they are paired in program order, apart from those of sendrecv.
const PIPE: i64 = -1;

impl SendrecvCompute {
    /// "both in SBUF or both in private HBM" (sendrecv_compute reference).
    fn validate_memories(&self) -> Result<(), Violation> {
        for (name, view) in [("src", &self.src), ("dst", &self.dst)] {
            if view.space == Space::SharedHbm {
                let message = format!("`{name}` is in shared_hbm; both tensors must be in sbuf or in private_hbm");
                return Err(Violation::new("operand-memory", name, message)
                    .help("copy it to a tensor with buffer=nl.private_hbm or nl.sbuf, which belongs to one core"));
            }
        }
        if self.src.space == self.dst.space {
            return Ok(());
        }
        let message = format!(
            "`dst` is in {}, `src` is in {}; both must be in sbuf or both in private_hbm",
            self.dst.space, self.src.space
        );
        Err(Violation::new("operand-memory", "dst", message).help("copy one of them with nisa.dma_copy"))
    }
}

impl Instruction for SendrecvCompute {
    const PLACING: Placing = Placing::Fixed;

    fn engine(&self, _arch: &Arch) -> Engine {
        Engine::Sync
    }

    fn validate(&self, _context: &Context<'_>) -> Result<(), Violation> {
        check::same_dtype(("src", &self.src), ("dst", &self.dst))?;
        check::same_shape(("src", &self.src), ("dst", &self.dst))?;
        self.validate_memories()?;
        check_ranks(self.send_to_rank, self.recv_from_rank)?;
        match self.reduce_op {
            AluOp::Add | AluOp::Max | AluOp::Min => Ok(()),
            op => {
                let message = format!("`reduce_op` is {op}; it must be add, maximum or minimum");
                Err(Violation::new("op-unsupported", "reduce_op", message)
                    .help("exchange the tiles with nisa.sendrecv, and combine them with nisa.tensor_tensor"))
            }
        }
    }

    fn footprint<'a>(&'a self, footprint: &mut Footprint<'a>) {
        self.operand_footprint(footprint);
    }

    fn execute(&self, machine: &mut dyn Machine) -> Result<(), Fault> {
        let own: Vec<u32> = self.contribute(machine)?.into_iter().flatten().collect();
        let received = contributed(&machine.contributions(), self.recv_from_rank, 0)?;
        put(machine, &self.dst, reduce(self.reduce_op, self.src.dtype, &[&own, &received]), true)
    }

    fn values(&self) -> Values<'_> {
        Values::computed(Feeds::Row)
    }

    fn work(&self, _context: &Context<'_>) -> Work {
        Work { engine: Engine::Sync, kind: exchange(&self.src, &self.dst) }
    }

    fn participants(&self) -> Option<Participants<'_>> {
        Some(Participants::Exchange { send_to: self.send_to_rank, receive_from: self.recv_from_rank, pipe: PIPE })
    }

    fn contribute(&self, machine: &mut dyn Machine) -> Result<Vec<Array2<u32>>, Fault> {
        contribution_values(machine, &Views(vec![self.src.clone()]))
    }

    fn agrees(&self, other: &Self, _context: &Context<'_>) -> Result<(), String> {
        if self.reduce_op != other.reduce_op {
            return Err(format!("one has reduce_op {}, the other {}", self.reduce_op, other.reduce_op));
        }
        let of = |s: &Self| (s.src.dtype, s.src.partitions(), s.src.free_elements());
        if of(self) != of(other) {
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
    use crate::rendezvous::Contribution;
    use crate::testing::TestMachine;

    fn inst(src: &View, dst: &View, reduce_op: AluOp) -> SendrecvCompute {
        SendrecvCompute { src: src.clone(), dst: dst.clone(), send_to_rank: 1, recv_from_rank: 1, reduce_op }
    }

    #[test]
    fn reduces_its_own_tile_with_the_received_one() {
        let mut m = TestMachine::new(Target::Trn2);
        for space in [Space::Sbuf, Space::Hbm] {
            let src = m.tensor_f32("s", space, DType::BF16, &[2, 2], &[1., 2., 3., 4.]);
            let dst = m.tensor("d", space, DType::BF16, &[2, 2]);
            for (op, want) in
                [(AluOp::Add, [3., 4., 2., 260.]), (AluOp::Max, [2., 2., 3., 256.]), (AluOp::Min, [1., 2., -1., 4.])]
            {
                let inst = inst(&src, &dst, op);
                let mine = inst.contribute(&mut m).unwrap();
                let theirs = Array2::from_shape_vec((2, 2), [2f32, 2., -1., 256.].map(f32::to_bits).to_vec()).unwrap();
                m.contributions =
                    vec![Contribution { member: 0, tiles: mine }, Contribution { member: 1, tiles: vec![theirs] }];
                m.run(inst).unwrap();
                assert_eq!(m.f32s(&dst), want, "{op}");
            }
        }
    }

    #[test]
    fn the_rules_of_the_reference() {
        let mut m = TestMachine::new(Target::Trn2);
        let src = m.tensor("s", Space::Sbuf, DType::F32, &[2, 4]);
        let half = m.tensor("h", Space::Sbuf, DType::BF16, &[2, 4]);
        let hbm = m.tensor("b", Space::Hbm, DType::F32, &[2, 4]);
        let shared = m.tensor("c", Space::SharedHbm, DType::F32, &[2, 4]);
        let short = m.tensor("e", Space::Sbuf, DType::F32, &[2, 3]);
        let ok = inst(&src, &src, AluOp::Add);
        m.check(ok.clone()).unwrap();
        for (inst, want) in [
            (inst(&src, &half, AluOp::Add), "must have the same dtype"),
            (inst(&src, &short, AluOp::Add), "3 elements per partition"),
            (inst(&src, &hbm, AluOp::Add), "`dst` is in hbm, `src` is in sbuf"),
            (inst(&shared, &shared, AluOp::Add), "`src` is in shared_hbm"),
            (inst(&src, &src, AluOp::Multiply), "`reduce_op` is multiply"),
            (SendrecvCompute { send_to_rank: 2, ..ok.clone() }, "`send_to_rank` is 2"),
        ] {
            let e = m.check(inst).unwrap_err();
            assert!(e.contains(want), "{e}");
        }
        let e = ok.agrees(&inst(&src, &src, AluOp::Max), &m.context()).unwrap_err();
        assert_eq!(e, "one has reduce_op add, the other maximum");
    }
}
