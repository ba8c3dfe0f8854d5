//! Properties of every order.

use std::cell::Cell;

use nki_isa::arg::{Imm, ScalarOperand};
use nki_isa::inst::Footprint;
use nki_isa::inst::math::activation::ActFn;
use nki_isa::inst::scalar::activation::Activation;
use nki_isa::inst::vector::tensor_tensor::TensorTensor;
use nki_isa::names::{AluOp, Engine, Named, ReduceCmd};
use nki_isa::program::NodeKind;
use nki_isa::{DType, Inst, Program, Space, Target, TensorId, View};
use proptest::prelude::*;

use super::{Clock, Policy, Schedule, on_clock, schedules};
use crate::exec::trace_only;
use crate::place::{Placement, place};
use crate::testing::{Builder, add, dma, pattern};
use crate::timing::lower::{ENGINES, Lowered, OpKind, lower};
use crate::timing::order::Order;
use crate::timing::tests::laws::{build, kernel};
use crate::timing::tests::matmul::blocked;
use crate::timing::tests::time_with;
use crate::timing::{CostModel, Laws, Params};
use crate::trace::CoreId;

fn with_order(choices: &[(u8, u8, u8, u8)], loops: bool, params: &Params, check: impl Fn(&Lowered<'_>, &Order)) {
    order_of(&build(choices, loops), params, check);
}

fn order_of(program: &Program, params: &Params, check: impl Fn(&Lowered<'_>, &Order)) {
    let (placement, trace) = (place(program).unwrap(), trace_only(program).unwrap());
    let (laws, policy) = (Laws::new(params).unwrap(), Policy::of(params));
    let (low, _) = lower(program, 0, &placement, &trace.cores[0], &laws, &policy.reach(), None);
    let lowered = [(CoreId { rank: 0, core: 0 }, low)];
    let schedule = || schedules(&lowered, laws.machine(), &policy).swap_remove(0);
    let Schedule { order, clock } = schedule();
    assert_eq!(order, schedule().order);
    let low = &lowered[0].1;
    if let Some(Clock { taken, times }) = clock {
        // Issued in the order of their start, each queue in its order.
        assert!(taken.is_sorted_by_key(|op| times[*op as usize].0) || low.segments.len() > 1);
        for (queue, ops) in order.queues.iter().enumerate() {
            assert!(taken.iter().filter(|op| low.queue(**op) == Some(queue)).eq(ops));
        }
    }
    check(low, &order);
}

/// A ring of tiles that are loaded again and again, and that nothing reads: loads of all tiles are in flight.
#[test]
fn loads_that_nothing_reads_stay_in_program_order() {
    let mut b = Builder::new();
    let (ring, rounds) = (4, 8);
    let x = b.input("x", &[128, 128], DType::F32);
    let tiles: Vec<TensorId> =
        (0..ring).map(|i| b.tensor(&format!("t{i}"), Space::Sbuf, &[128, 128], DType::F32)).collect();
    for _ in 0..rounds {
        for &tile in &tiles {
            b.push(dma(b.whole(tile), b.whole(x)));
        }
    }
    order_of(&b.program, &Params::of(Target::Trn2), |_, order| {
        let loads: Vec<&Vec<u32>> = order.queues.iter().filter(|ops| !ops.is_empty()).collect();
        assert!(loads.iter().map(|ops| ops.len()).sum::<usize>() == ring * rounds);
        assert!(loads.iter().all(|ops| ops.is_sorted()), "{loads:?}");
    });
}

/// `kept` is read last, so its load has the last place; but the store that overwrites the load's source holds the space for the load before it.
#[test]
fn a_load_comes_before_those_that_wait_for_a_store_behind_it() {
    let mut b = Builder::new();
    let shape = [128, 512];
    let inputs: Vec<TensorId> = (0..2).map(|i| b.input(&format!("x{i}"), &shape, DType::F32)).collect();
    let through = b.tensor("through", Space::Hbm, &shape, DType::F32);
    let outputs: Vec<TensorId> = (0..2).map(|i| b.output(&format!("o{i}"), &shape, DType::F32)).collect();
    let kept = b.placed("kept", Space::Sbuf, &shape, DType::F32, (0, 0));
    let tiles: Vec<TensorId> =
        (0..2).map(|i| b.placed(&format!("t{i}"), Space::Sbuf, &shape, DType::F32, (0, 4096))).collect();
    for (to, from) in [
        (kept, through),
        (tiles[0], inputs[0]),
        (through, tiles[0]),
        (tiles[1], inputs[1]),
        (outputs[0], tiles[1]),
        (outputs[1], kept),
    ] {
        b.push(dma(b.whole(to), b.whole(from)));
    }
    order_of(&b.program, &Params::of(Target::Trn2), |low, order| {
        for (ops, all) in order.queues.iter().zip(&low.queues) {
            assert_eq!(ops.len(), all.len());
        }
    });
}

/// Tiles go round a memory that is no multiple of their size, so that each overlaps two old ones; half of the loads are never read. A reader of a
/// new tile is no reader of the old ones, and all operations are scheduled.
#[test]
fn loads_of_overlapping_tiles_are_all_scheduled() {
    let mut b = Builder::new();
    let shape = [128, 2048];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    let tiles: Vec<TensorId> = (0..48)
        .map(|i| {
            b.placed("t", Space::Sbuf, &shape, DType::F32, (0, if i < 23 { 32 + 8192 * i } else { 8192 * (i % 23) }))
        })
        .collect();
    for four in tiles.chunks(4) {
        b.push(dma(b.whole(four[0]), b.whole(x)));
        b.push(dma(b.whole(four[1]), b.whole(x)));
        b.push(add(b.whole(four[2]), b.whole(four[0]), b.whole(four[0])));
        b.push(add(b.whole(four[3]), b.whole(four[0]), b.whole(four[0])));
        b.push(dma(b.whole(out), b.whole(four[3])));
    }
    order_of(&b.program, &Params::of(Target::Trn2), |low, order| {
        for (ops, all) in order.queues.iter().zip(&low.queues) {
            assert_eq!(ops.len(), all.len());
        }
    });
}

/// One load, and `tiles` tiles computed from it by chains of `length` instructions.
fn dependent(tiles: usize, length: usize) -> Program {
    let mut b = Builder::new();
    let shape = [128, 128];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    let loaded = b.tensor("loaded", Space::Sbuf, &shape, DType::F32);
    b.push(dma(b.whole(loaded), b.whole(x)));
    for _ in 0..tiles {
        let t = b.tensor("t", Space::Sbuf, &shape, DType::F32);
        b.push(add(b.whole(t), b.whole(loaded), b.whole(loaded)));
        for _ in 1..length {
            b.push(add(b.whole(t), b.whole(t), b.whole(t)));
        }
        b.push(dma(b.whole(out), b.whole(t)));
    }
    b.program
}

/// The farthest distance at which the vector engine overtakes a waiting instruction, in instructions.
fn farthest(program: &Program, window: &str) -> usize {
    let mut params = Params::of(Target::Trn2);
    params.set_text("compiler.latency_window", window).unwrap();
    let farthest = Cell::new(0);
    order_of(program, &params, |low, order| {
        let (all, taken) = (&low.queues[VECTOR], &order.queues[VECTOR]);
        for (n, op) in taken.iter().enumerate() {
            let first = all.iter().position(|op| !taken[..n].contains(op)).unwrap();
            let ahead = all.iter().position(|other| other == op).unwrap() - first;
            farthest.set(ahead.max(farthest.get()));
        }
    });
    farthest.get()
}

const VECTOR: usize = 1;

#[test]
fn an_engine_hides_its_own_latency_by_a_few_instructions_only() {
    // The second instruction of a pair depends on the first; that of the next tile does not.
    let pairs = dependent(4, 2);
    assert_eq!(farthest(&pairs, "1"), 0);
    assert!((1..8).contains(&farthest(&pairs, "8")));
    // The instructions of the next tile are beyond the window.
    let chains = dependent(2, 20);
    assert_eq!(farthest(&chains, "1"), 0);
    assert!(farthest(&chains, "8") < 8);
    assert!(farthest(&chains, "64") >= 19);
}

/// GpSimd writes the descriptors of loads. Its own computation without dependences stays between them as in the program; computation that waits
/// for a load is overtaken by later loads within the window.
#[test]
fn loads_overtake_only_computation_that_waits() {
    let mut b = Builder::new();
    let shape = [128, 256];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    let own = b.tensor("own", Space::Sbuf, &shape, DType::F32);
    let tiles: Vec<TensorId> = (0..4).map(|_| b.tensor("t", Space::Sbuf, &shape, DType::F32)).collect();
    let on_gpsimd = |data: View| {
        let engine = Engine::GpSimd;
        TensorTensor { dst: data.clone(), data1: data.clone(), data2: data, op: AluOp::Add, engine }
    };
    b.push(dma(b.whole(tiles[0]), b.whole(x)));
    b.push(on_gpsimd(b.whole(tiles[0])));
    b.push(dma(b.whole(tiles[1]), b.whole(x)));
    b.push(on_gpsimd(b.whole(own)));
    b.push(dma(b.whole(tiles[2]), b.whole(x)));
    b.push(dma(b.whole(tiles[3]), b.whole(x)));
    for t in tiles {
        b.push(add(b.whole(own), b.whole(own), b.whole(t)));
    }
    b.push(dma(b.whole(out), b.whole(own)));
    let mut params = Params::of(Target::Trn2);
    for (window, expected) in [("1", [0, 2, 3, 1, 4, 5]), ("2", [0, 2, 3, 4, 5, 1]), ("64", [0, 2, 3, 4, 5, 1])] {
        params.set_text("compiler.trigger_window", window).unwrap();
        order_of(&b.program, &params, |_, order| assert_eq!(order.queues[GPSIMD][..6], expected, "window {window}"));
    }
}

/// A transfer with available data overtakes waiting transfers only if it is among the next few of its class.
#[test]
fn a_transfer_overtakes_a_few_of_its_class() {
    let mut b = Builder::new();
    let shape = [128, 512];
    let x = b.input("x", &shape, DType::F32);
    let sum = b.tensor("sum", Space::Sbuf, &shape, DType::F32);
    let ready = b.tensor("ready", Space::Sbuf, &shape, DType::F32);
    b.push(dma(b.whole(ready), b.whole(x)));
    b.push(dma(b.whole(sum), b.whole(x)));
    for _ in 0..20 {
        b.push(add(b.whole(sum), b.whole(sum), b.whole(sum)));
    }
    // Three stores wait for the sum, the last one has no dependence.
    for _ in 0..3 {
        let out = b.output("out", &shape, DType::F32);
        b.push(dma(b.whole(out), b.whole(sum)));
    }
    let out = b.output("last", &shape, DType::F32);
    b.push(dma(b.whole(out), b.whole(ready)));
    let mut params = Params::of(Target::Trn2);
    for (window, last) in [("3", [22, 23, 24, 25]), ("4", [25, 22, 23, 24])] {
        params.set_text("compiler.transfer_window", window).unwrap();
        order_of(&b.program, &params, |_, order| {
            assert_eq!(order.queues[GPSIMD][2..], last, "window {window}");
        });
    }
}

const GPSIMD: usize = 3;

/// `n` tiles of `bytes` per partition: each is loaded and added to a sum.
fn chain(n: usize, bytes: u32) -> Builder {
    let mut b = Builder::new();
    let shape = [128, bytes / 4];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    let sum = b.tensor("sum", Space::Sbuf, &shape, DType::F32);
    for _ in 0..n {
        let t = b.tensor("t", Space::Sbuf, &shape, DType::F32);
        b.push(dma(b.whole(t), b.whole(x)));
        b.push(add(b.whole(sum), b.whole(sum), b.whole(t)));
    }
    b.push(dma(b.whole(out), b.whole(sum)));
    b
}

/// Checks the placement of a program by the clock, with the clock and the operations.
fn placed_on_clock(program: &Program, check: impl Fn(Option<&Placement>, &Lowered<'_>, &Clock)) {
    let (placement, trace) = (place(program).unwrap(), trace_only(program).unwrap());
    let params = Params::of(program.target);
    let (laws, policy) = (Laws::new(&params).unwrap(), Policy::of(&params));
    let (low, _) = lower(program, 0, &placement, &trace.cores[0], &laws, &policy.reach(), None);
    let lowered = [(CoreId { rank: 0, core: 0 }, low)];
    let clock = schedules(&lowered, laws.machine(), &policy).swap_remove(0).clock.unwrap();
    let low = &lowered[0].1;
    check(on_clock(program, 0, &placement, low, &clock).as_ref(), low, &clock);
}

#[test]
fn tensors_alive_at_one_time_on_the_clock_are_apart() {
    let bytes = 2048;
    let b = chain(100, bytes);
    placed_on_clock(&b.program, |placement, low, clock| {
        let placement = placement.expect("fits");
        // By tensor: its bytes, and the time interval of its lifetime.
        let mut lives: Vec<(u32, u64, u64)> = Vec::new();
        for tensor in (2..b.program.tensors.len() as u32).map(TensorId) {
            let uses = |op: &u32| {
                let mut footprint = Footprint::default();
                let Some(NodeKind::Inst(inst)) = low.node(*op).map(|node| &node.kind) else { return false };
                inst.footprint(&mut footprint);
                footprint.reads.iter().chain(&footprint.writes).any(|v| v.tensor == tensor)
            };
            let times = || clock.taken.iter().filter(|op| uses(op)).map(|op| clock.times[*op as usize]);
            let (from, until) = (times().map(|t| t.0).min().unwrap(), times().map(|t| t.1).max().unwrap());
            lives.push((placement.address(tensor).unwrap().byte, from, until));
        }
        for (i, a) in lives.iter().enumerate() {
            for b in &lives[i + 1..] {
                assert!(a.0 + bytes <= b.0 || b.0 + bytes <= a.0 || a.2 <= b.1 || b.2 <= a.1, "{a:?} {b:?}");
            }
        }
        // They rotate through a few places; program order would use all of the memory.
        let end = lives.iter().map(|l| l.0 + bytes).max().unwrap();
        assert!((3 * bytes..12 * bytes).contains(&end), "{end}");
    });
}

#[test]
fn parts_that_nothing_uses_together_are_placed_apart() {
    let mut b = Builder::new();
    let (x, out) = (b.input("x", &[128, 512], DType::F32), b.output("out", &[128, 512], DType::F32));
    let both = b.tensor("both", Space::Sbuf, &[128, 1024], DType::F32);
    let halves = [0, 512].map(|at| pattern(b.whole(both), 0, at, &[(1, 128), (1, 512)]));
    let whole = b.tensor("whole", Space::Sbuf, &[128, 512], DType::F32);
    for half in &halves {
        b.push(dma(half.clone(), b.whole(x)));
        b.push(add(b.whole(whole), half.clone(), half.clone()));
    }
    b.push(dma(b.whole(out), b.whole(whole)));
    placed_on_clock(&b.program, |placement, _, _| {
        let parts = &placement.expect("fits").parts[&both];
        let bytes: Vec<(i64, i64)> = parts.iter().map(|p| (p.start, p.end)).collect();
        assert_eq!(bytes, [(0, 2048), (2048, 4096)]);
    });
    // An access to the whole tensor merges its parts.
    b.push(add(b.whole(both), b.whole(both), b.whole(both)));
    placed_on_clock(&b.program, |placement, _, _| assert!(placement.expect("fits").parts.is_empty()));
}

#[test]
fn explicit_addresses_stay_and_the_memory_is_enough() {
    let mut b = chain(3, 4096);
    let kept = b.placed("kept", Space::Sbuf, &[128, 1024], DType::F32, (0, 0));
    b.push(dma(b.whole(kept), b.whole(TensorId(0))));
    placed_on_clock(&b.program, |placement, _, _| {
        let placement = placement.expect("fits");
        assert_eq!(placement.address(kept).unwrap().byte, 0);
        let others = (2..6).map(|i| placement.address(TensorId(i)).unwrap().byte);
        assert!(others.min() >= Some(4096));
    });
    // The sum and one tile fill the memory, so the other tiles wait on the clock, too.
    placed_on_clock(&chain(3, 100_000).program, |placement, _, _| {
        let placement = placement.expect("fits");
        assert!((2..6).all(|i| placement.address(TensorId(i)).unwrap().byte + 100_000 <= 229_376));
    });
}

/// If the clock expects transfers to arrive sooner, it rotates through fewer places, and loads wait for them on the machine.
#[test]
fn a_load_waits_for_memory_where_the_clock_is_faster() {
    let elapsed = |latency: f64| {
        let mut params = Params::of(Target::Trn2);
        params.set("compiler.dma_latency_us", latency).unwrap();
        time_with(&blocked(DType::F32, (2048, 2048, 2048), (1, 1, 4)), &params).0.elapsed
    };
    let (short, long) = (elapsed(0.0), elapsed(20.0));
    assert!(short > long * 105 / 100, "{short} {long}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every instruction appears once; none crosses a barrier, precedes its dependences in its queue, or exceeds its queue's reach.
    #[test]
    fn orders_are_complete_and_keep_dependences(
        choices in kernel(),
        loops: bool,
        tensor in 2u32..40,
        compute in 1u32..8,
        trigger in 1u32..8,
        dma in 1u32..40,
    ) {
        let mut params = Params::of(Target::Trn2);
        let windows = [("tensor", tensor), ("compute", compute), ("trigger", trigger), ("dma", dma)];
        for (name, window) in windows {
            params.set(&format!("compiler.{name}_window"), f64::from(window)).unwrap();
        }
        let reach = Policy::of(&params).reach();
        with_order(&choices, loops, &params, |low, order| {
            for (queue, ops) in order.queues.iter().enumerate() {
                let mut sorted = ops.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, low.queues[queue]);
                assert!(ops.is_sorted_by_key(|op| low.ops[..*op as usize].iter().filter(|o| matches!(o.kind, OpKind::Barrier(_))).count()));
                let place = |op: u32| ops.iter().position(|o| *o == op);
                for (at, &op) in ops.iter().enumerate() {
                    for dep in low.graph.deps.of(op as usize) {
                        assert!(place(dep.on).is_none_or(|before| before < at), "{op} is before {}", dep.on);
                    }
                    let reach = reach[if low.is_dma(op) { ENGINES + queue } else { queue }];
                    let same = |later: &&u32| low.is_dma(**later) == low.is_dma(op);
                    assert!(ops[at..].iter().filter(same).all(|later| op < later + reach), "{op} is too far ahead");
                }
            }
        });
    }

    /// Loads are in the order of their first use, unless one waits for data. A load that nothing uses follows those before it.
    #[test]
    fn loads_are_in_the_order_of_their_first_use(choices in prop::collection::vec((0u8..4, 0u8..4), 1..20)) {
        let mut b = Builder::new();
        let x = b.input("x", &[128, 128], DType::F32);
        let tiles: Vec<TensorId> =
            (0..choices.len()).map(|i| b.tensor(&format!("t{i}"), Space::Sbuf, &[128, 128], DType::F32)).collect();
        let out = b.tensor("out", Space::Sbuf, &[128, 128], DType::F32);
        for &tile in &tiles {
            b.push(dma(b.whole(tile), b.whole(x)));
        }
        let uses: Vec<usize> = choices.iter().map(|(i, j)| usize::from(4 * i + j) % tiles.len()).collect();
        for &used in &uses {
            b.push(add(b.whole(out), b.whole(tiles[used]), b.whole(out)));
        }
        let params = Params::of(Target::Trn2);
        let first = |tile: u32| uses.iter().position(|u| *u == tile as usize).unwrap_or(usize::MAX);
        order_of(&b.program, &params, |_, order| {
            let used: Vec<usize> = order.queues[3].iter().map(|op| first(*op)).filter(|f| *f != usize::MAX).collect();
            assert!(used.is_sorted(), "{used:?}");
            // The numbers of the loads, up to one that nothing uses, include all before it.
            for (at, unused) in order.queues[3].iter().enumerate().filter(|(_, op)| first(**op) == usize::MAX) {
                let before = order.queues[3][..at].iter().filter(|op| *op < unused).count();
                assert_eq!(before, *unused as usize, "{:?}", order.queues[3]);
            }
        });
    }

    /// A window of 1 means program order; the machine follows any order strictly.
    #[test]
    fn engines_follow_their_order(choices in kernel(), loops: bool, compiler: bool) {
        let mut params = Params::of(Target::Trn2);
        if !compiler {
            params.set("compiler.tensor_window", 1.0).unwrap();
            prop_assert_eq!(Policy::of(&params), Policy::Program);
        }
        let timeline = time_with(&build(&choices, loops), &params).0;
        with_order(&choices, loops, &params, |low, order| {
            assert!(compiler || order.queues == low.queues);
            for ops in &order.queues {
                let start = |op: &u32| timeline.events.iter().find(|e| e.trace == low.ops[*op as usize].trace).map(|e| e.start);
                assert!(ops.iter().map(start).is_sorted());
            }
        });
    }
}

/// The scalar engine issues a pass of exponentials and one of sigmoids one after the other, although each sigmoid can start before the data of the
/// last exponentials arrives.
#[test]
fn functions_that_the_program_keeps_apart_are_not_interleaved() {
    let mut b = Builder::new();
    let shape = [128, 512];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    let tiles: Vec<TensorId> = (0..8).map(|_| b.tensor("t", Space::Sbuf, &shape, DType::F32)).collect();
    for &t in &tiles {
        b.push(dma(b.whole(t), b.whole(x)));
        b.push(activation(b.whole(t), "exp"));
    }
    for &t in &tiles {
        b.push(activation(b.whole(t), "sigmoid"));
        b.push(dma(b.whole(out), b.whole(t)));
    }
    order_of(&b.program, &Params::of(Target::Trn2), |low, order| {
        let of = |op: &u32| match &low.node(*op).expect("a statement").kind {
            NodeKind::Inst(Inst::Activation(inst)) => Some(inst.op),
            _ => None,
        };
        let functions: Vec<_> = order.queues[SCALAR].iter().filter_map(of).collect();
        assert_eq!(functions.len(), 16);
        assert_eq!(functions.windows(2).filter(|pair| pair[0] != pair[1]).count(), 1, "{functions:?}");
    });
}

const SCALAR: usize = 2;

fn activation(tile: View, op: &str) -> Inst {
    let op = ActFn::from_name(op).expect("a function");
    let scale = ScalarOperand::Imm(Imm::Float(1.0));
    let (dst, data, engine, reduce_cmd) = (tile.clone(), tile, Engine::Scalar, ReduceCmd::Idle);
    Activation { dst, op, data, bias: None, scale, reduce_op: None, reduce_res: None, reduce_cmd, engine }.into()
}
