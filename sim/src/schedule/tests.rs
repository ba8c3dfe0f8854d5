//! What holds for every order.

use nki_isa::Target;
use proptest::prelude::*;

use super::{Policy, orders};
use crate::deps::written_tensors;
use crate::exec::trace_only;
use crate::place::place;
use crate::timing::dispatch::Order;
use crate::timing::lower::{Lowered, OpKind, lower};
use crate::timing::tests::laws::{build, kernel};
use crate::timing::tests::time_with;
use crate::timing::{CostModel, Laws, Params};
use crate::trace::CoreId;

fn with_order(choices: &[(u8, u8, u8, u8)], loops: bool, params: &Params, check: impl Fn(&Lowered<'_>, &Order)) {
    let program = build(choices, loops);
    let (placement, trace) = (place(&program).unwrap(), trace_only(&program).unwrap());
    let (laws, policy) = (Laws::new(params).unwrap(), Policy::of(params));
    let written = written_tensors(&program);
    let low = lower(&program, 0, &placement, &trace.cores[0], &laws, &written, policy.reach());
    let lowered = [(CoreId { rank: 0, core: 0 }, low)];
    let found = orders(&lowered, laws.machine(), &policy);
    assert_eq!(found, orders(&lowered, laws.machine(), &policy));
    check(&lowered[0].1, &found[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every instruction once, no barrier crossed, none ahead of what it depends on in its queue, none further ahead than the window.
    #[test]
    fn orders_are_complete_and_keep_dependences(choices in kernel(), loops: bool, window in 2u32..40) {
        let mut params = Params::of(Target::Trn2);
        params.set("compiler.window", f64::from(window)).unwrap();
        with_order(&choices, loops, &params, |low, order| {
            for (queue, ops) in order.queues.iter().enumerate() {
                let mut sorted = ops.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, low.queues[queue]);
                assert!(ops.is_sorted_by_key(|op| low.ops[..*op as usize].iter().filter(|o| matches!(o.kind, OpKind::Barrier(_))).count()));
                let place = |op: u32| ops.iter().position(|o| *o == op);
                for (at, &op) in ops.iter().enumerate() {
                    for dep in low.deps.of(op as usize) {
                        assert!(place(dep.on).is_none_or(|before| before < at), "{op} stands before {}", dep.on);
                    }
                    assert!(ops[at..].iter().all(|later| op < later + window), "{op} is too far ahead");
                }
            }
        });
    }

    /// A window of 1 is the program's order; the machine follows any order strictly.
    #[test]
    fn engines_follow_their_order(choices in kernel(), loops: bool, compiler: bool) {
        let mut params = Params::of(Target::Trn2);
        if !compiler {
            params.set("compiler.window", 1.0).unwrap();
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
