//! Properties of random kernels.

use nki_isa::ids::RegId;
use nki_isa::names::Engine;
use nki_isa::program::{Bound, Control, NodeKind};
use nki_isa::{DType, Program, Space, Target, TensorId};
use proptest::prelude::*;

use super::matmul::nc_matmul;
use super::{check, time_with};
use crate::exec::trace_only;
use crate::place::place;
use crate::schedule::Policy;
use crate::simulate::{RankTrace, latency, simulate};
use crate::testing::{Builder, add, dma};
use crate::timing::lower::Dependences;
use crate::timing::{Laws, Params};

/// A kernel from small numbers: each selects an instruction and its tensors.
pub(crate) fn build(choices: &[(u8, u8, u8, u8)], loops: bool) -> Program {
    let mut b = Builder::new();
    let x: Vec<TensorId> = (0..2).map(|i| b.input(&format!("x{i}"), &[128, 128], DType::F32)).collect();
    let y: Vec<TensorId> = (0..2).map(|i| b.output(&format!("y{i}"), &[128, 128], DType::F32)).collect();
    let s: Vec<TensorId> = (0..4).map(|i| b.tensor(&format!("s{i}"), Space::Sbuf, &[128, 128], DType::F32)).collect();
    let p: Vec<TensorId> = (0..2).map(|i| b.tensor(&format!("p{i}"), Space::Psum, &[128, 128], DType::F32)).collect();
    let mut body = Vec::new();
    for &(kind, i, j, k) in choices {
        let w = |t: &[TensorId], i: u8| b.whole(t[i as usize % t.len()]);
        let inst = match kind % 5 {
            0 => dma(w(&s, i), w(&x, j)),
            1 => dma(w(&y, i), w(&s, j)),
            2 => add(w(&s, i), w(&s, j), w(&s, k)),
            3 => nc_matmul(w(&p, i), w(&s, j), w(&s, k)),
            _ => add(w(&s, i), w(&p, j), w(&s, k)),
        };
        body.push(b.node(NodeKind::Inst(inst)));
    }
    if loops {
        b.program.registers = 1;
        let (lower, upper) = (Bound::Static(0), Bound::Static(3));
        b.push_node(Control::For { variable: RegId(0), lower, upper, step: 1, body }.into());
    } else {
        b.program.cores[0] = body;
    }
    b.program
}

pub(crate) fn kernel() -> impl Strategy<Value = Vec<(u8, u8, u8, u8)>> {
    prop::collection::vec((0u8..5, 0u8..4, 0u8..4, 0u8..4), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_add_up_and_dependences_hold(choices in kernel(), loops: bool, target in 0usize..3) {
        let mut program = build(&choices, loops);
        program.target = [Target::Trn1, Target::Trn2, Target::Trn3][target];
        let params = Params::of(program.target);
        let t = time_with(&program, &params).0;
        check(&t);
        prop_assert_eq!(&t, &time_with(&program, &params).0);

        let (placement, trace) = (place(&program).unwrap(), trace_only(&program).unwrap());
        let laws = Laws::new(&params).unwrap();
        let (low, _) = crate::timing::lower::lower(&program, 0, &placement, &trace.cores[0], &laws, &Policy::of(&params).reach(), None);
        let by_trace = |op: usize| t.events.iter().find(|e| e.trace == low.ops[op].trace);
        for op in 0..low.ops.len() {
            for d in low.graph.deps.of(op) {
                if let (Some(now), Some(before)) = (by_trace(op), by_trace(d.on as usize)) {
                    // Accesses of one engine keep their order; all others wait for the result.
                    let engine = Engine::QUEUES[(now.origin.row.0 as usize) % Engine::QUEUES.len()];
                    let order = now.origin.row == before.origin.row
                        && now.origin.queue.is_none()
                        && before.origin.queue.is_none()
                        && crate::deps::orders(engine, d.hazard);
                    let from = if order { before.start } else { before.complete };
                    prop_assert!(now.start >= from, "{op} starts before {} is done", d.on);
                }
            }
        }
        for e in &t.events {
            prop_assert!(t.head <= e.start && e.start <= e.end && e.end <= e.complete);
            prop_assert!(e.complete <= t.elapsed - t.tail);
        }
    }

    /// Without arbitration (program order, one DMA queue, no limiter, no shared port) a faster part never makes a kernel slower. This does not hold
    /// for a greedy scheduler: other times lead to another order.
    #[test]
    fn faster_is_never_slower(choices in kernel(), which in 0usize..8) {
        let program = build(&choices, false);
        let mut params = Params::of(Target::Trn2);
        params.set("compiler.tensor_window", 1.0).unwrap();
        params.set("tensor.limiter_rate", 1.0).unwrap();
        params.set_text("vector.port", "never").unwrap();
        params.set_text("dma.load_queues", "[\"sync\"]").unwrap();
        params.set_text("dma.store_queues", "[\"sync\"]").unwrap();
        let before = time_with(&program, &params).0.elapsed;
        let (name, factor) = [
            ("tensor.clock_ghz", 2.0),
            ("vector.clock_ghz", 1.5),
            ("dma.bytes_per_ns", 2.0),
            ("dma.descriptor_ns", 0.5),
            ("dma.hardware_trigger_ns", 0.1),
            ("dma.load_dispatch_ns", 0.5),
            ("sync.engine_ns.vector", 0.0),
            ("kernel.head_us", 0.5),
        ][which];
        let value = params.get(name).and_then(|p| p.value.as_float()).unwrap();
        params.set(name, value * factor).unwrap();
        let after = time_with(&program, &params).0.elapsed;
        prop_assert!(after <= before, "{name}: {before} to {after}");
    }

    /// Cached dependences of a trace do not change its times, whichever parameters have changed since.
    #[test]
    fn a_trace_timed_again_takes_what_it_takes_alone(choices in kernel(), loops: bool) {
        let program = build(&choices, loops);
        let (placement, trace) = (place(&program).unwrap(), trace_only(&program).unwrap());
        let known = Dependences::default();
        for (name, value) in [
            ("tensor.clock_ghz", "1.0"),
            ("compiler.compute_window", "1"),
            ("dma.load_queues", "[\"sync\", \"scalar\"]"),
            ("compiler.tensor_window", "1"),
        ] {
            let mut params = Params::of(Target::Trn2);
            params.set_text(name, value).unwrap();
            let rank = RankTrace { program: &program, placement: &placement, trace: &trace };
            let again = latency(rank, &Laws::new(&params).unwrap(), &Policy::of(&params), Some(&known));
            let alone = simulate(&program, &placement, &trace, &params).unwrap().elapsed;
            prop_assert_eq!(again, alone, "{}", name);
        }
    }
}
