//! What holds for every order.

use nki_isa::{DType, Program, Space, Target, TensorId};
use proptest::prelude::*;

use super::{Policy, orders};
use crate::exec::trace_only;
use crate::place::place;
use crate::testing::{Builder, add, dma};
use crate::timing::lower::{ENGINES, Lowered, OpKind, lower};
use crate::timing::order::Order;
use crate::timing::tests::laws::{build, kernel};
use crate::timing::tests::time_with;
use crate::timing::{CostModel, Laws, Params};
use crate::trace::CoreId;

fn with_order(choices: &[(u8, u8, u8, u8)], loops: bool, params: &Params, check: impl Fn(&Lowered<'_>, &Order)) {
    order_of(&build(choices, loops), params, check);
}

fn order_of(program: &Program, params: &Params, check: impl Fn(&Lowered<'_>, &Order)) {
    let (placement, trace) = (place(program).unwrap(), trace_only(program).unwrap());
    let (laws, policy) = (Laws::new(params).unwrap(), Policy::of(params));
    let low = lower(program, 0, &placement, &trace.cores[0], &laws, &policy.reach(), None);
    let lowered = [(CoreId { rank: 0, core: 0 }, low)];
    let found = orders(&lowered, laws.machine(), &policy);
    assert_eq!(found, orders(&lowered, laws.machine(), &policy));
    check(&lowered[0].1, &found[0]);
}

/// `kept` is read last, so that its load has the last place; but the store that overwrites what it reads holds the space of the load before it.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every instruction once, no barrier crossed, none ahead of what it depends on in its queue, none further ahead than its queue's reach.
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

    /// Loads are in the order of their first use, unless one waits for data.
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
        });
    }

    /// A window of 1 is the program's order; the machine follows any order strictly.
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
