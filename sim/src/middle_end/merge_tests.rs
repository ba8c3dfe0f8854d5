//! Merging the operations of loop iterations on adjacent tiles preserves results.

use nki_isa::inst::Action;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{DType, Inst, Loc, Program, Space, Target, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{counted, results, rewritten};
use super::{Change, ChangeKind, Passes};
use crate::exec;
use crate::place::place;
use crate::simulate::simulate;
use crate::testing::*;
use crate::timing::Params;

const MERGES: Passes = Passes { merges: true, ..Passes::NONE };
const P: u32 = 8;

/// A step of an iteration, in addition to a load, a product, a copy out of PSUM and a store.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Between {
    Nothing,
    /// Reads all columns that the copies write.
    ReadsColumns,
    /// Writes the columns of an iteration.
    WritesColumns(usize),
    /// Overwrites the PSUM tile of an iteration.
    WritesBank(usize),
    /// Overwrites the tile of an iteration.
    WritesTile(usize),
    /// Stores to rows that the loads read.
    StoresInput(usize),
    /// Loads rows that the stores write.
    LoadsOutput(usize),
    /// Reads the tiles of an iteration.
    Reads(usize),
}

const ITERATIONS: usize = 8;

fn between() -> impl Strategy<Value = Between> {
    let at = || 0..ITERATIONS;
    prop_oneof![
        6 => Just(Between::Nothing),
        1 => Just(Between::ReadsColumns),
        1 => at().prop_map(Between::WritesColumns),
        1 => at().prop_map(Between::WritesBank),
        1 => at().prop_map(Between::WritesTile),
        1 => at().prop_map(Between::StoresInput),
        1 => at().prop_map(Between::LoadsOutput),
        1 => at().prop_map(Between::Reads),
    ]
}

/// A loop: each iteration loads rows to a tile, computes a product, copies it to its columns of one tile, and stores a sum. `order` is the order of
/// the rows and columns.
fn looped(steps: &[Between], order: &[usize], columns: u32) -> Program {
    let mut b = Builder::new();
    let (n, c) = (steps.len() as u32, i64::from(columns));
    let x = b.input("x", &[n * P, columns], DType::F32);
    let out = b.output("out", &[n * P, columns], DType::F32);
    let gathered = b.output("gathered", &[P, n * columns], DType::F32);
    let other = b.output("other", &[P, n * columns], DType::F32);
    let all = b.tensor("all", Space::Sbuf, &[P, n * columns], DType::F32);
    let [extra, sum] = ["extra", "sum"].map(|name| b.tensor(name, Space::Sbuf, &[P, n * columns], DType::F32));
    let each = |b: &mut Builder, name: &str, space| -> Vec<TensorId> {
        steps.iter().map(|_| b.tensor(name, space, &[P, columns], DType::F32)).collect()
    };
    let (tiles, stored) = (each(&mut b, "tile", Space::Sbuf), each(&mut b, "stored", Space::Sbuf));
    let banks = each(&mut b, "bank", Space::Psum);
    let rows = |b: &Builder, id: TensorId, i: usize| {
        pattern(b.whole(id), 0, i as i64 * i64::from(P) * c, &[(c, P), (1, columns)])
    };
    let part = |b: &Builder, id: TensorId, i: usize| pattern(b.whole(id), 0, i as i64 * c, &[(1, P), (1, columns)]);
    let at_line = |b: &mut Builder, line: u32, inst: Inst| {
        b.push(inst);
        b.program.cores[0].last_mut().expect("pushed").loc = Loc { file: 0, line, column: 1, start: 0, end: 0 };
    };
    // Initialise all tensors.
    for &tensor in [extra, sum, all].iter().chain(&banks).chain(&tiles) {
        let whole = b.whole(tensor);
        if !tiles.contains(&tensor) {
            b.push(fill(whole));
        }
    }
    for i in 0..steps.len() {
        let tile = b.whole(extra);
        b.push(dma(rows(&b, out, i), pattern(tile, 0, 0, &[(1, P), (1, columns)])));
    }
    for (i, step) in steps.iter().enumerate() {
        let load = dma(b.whole(tiles[i]), rows(&b, x, order[i]));
        at_line(&mut b, 1000, load);
        let product = copy(b.whole(banks[i]), b.whole(tiles[i]));
        at_line(&mut b, 1001, product);
        let evict = copy(part(&b, all, order[i]), b.whole(banks[i]));
        at_line(&mut b, 1002, evict);
        let add = add(b.whole(stored[i]), b.whole(tiles[i]), b.whole(tiles[i]));
        at_line(&mut b, 1003, add);
        let store = dma(rows(&b, out, order[i]), b.whole(stored[i]));
        at_line(&mut b, 1004, store);
        let known = |j: usize| j.min(i);
        match *step {
            Between::Nothing => {}
            Between::ReadsColumns => b.push(copy(b.whole(sum), b.whole(all))),
            Between::WritesColumns(j) => b.push(copy(part(&b, all, order[known(j)]), part(&b, extra, 0))),
            Between::WritesBank(j) => b.push(copy(b.whole(banks[known(j)]), part(&b, extra, 0))),
            Between::WritesTile(j) => b.push(copy(b.whole(stored[known(j)]), part(&b, extra, 0))),
            Between::StoresInput(j) => b.push(dma(rows(&b, x, order[j % order.len()]), part(&b, extra, 0))),
            Between::LoadsOutput(j) => b.push(dma(part(&b, sum, i), rows(&b, out, order[known(j)]))),
            Between::Reads(j) => {
                b.push(copy(part(&b, sum, i), b.whole(stored[known(j)])));
                b.push(copy(part(&b, sum, i), b.whole(banks[known(j)])));
            }
        }
    }
    b.push(dma(b.whole(gathered), b.whole(all)));
    b.push(dma(b.whole(other), b.whole(sum)));
    b.program
}

fn fill(dst: View) -> Inst {
    use nki_isa::Arg;
    let entry = nki_isa::inst::find("memset").expect("registered");
    let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
    args[entry.schema.position("dst").expect("an operand")] = Some(Arg::View(dst));
    args[entry.schema.position("value").expect("an operand")] = Some(Arg::Float(3.0));
    (entry.build)(&mut args).expect("valid")
}

/// Number of instructions, and bytes that transfers move.
fn size(program: &Program) -> (usize, usize) {
    let mut size = (0, 0);
    program.visit(&mut |node| {
        if let NodeKind::Inst(inst) = &node.kind {
            size.0 += 1;
            if let Action::Transfers(t) = inst.action() {
                size.1 += t.src.bytes();
            }
        }
    });
    size
}

pub(super) fn latency(program: &Program) -> u64 {
    let placement = place(program).expect("fits");
    let trace = exec::trace_only(program).expect("runs");
    simulate(program, &placement, &trace, &Params::of(program.target)).expect("has a meaning").elapsed
}

fn merged(program: &Program) -> (Program, Vec<Change>, u32) {
    let (less, changes) = rewritten(program, MERGES);
    let saved = counted(&changes, ChangeKind::MergedCopy) + counted(&changes, ChangeKind::MergedTransfer);
    (less, changes, saved)
}

fn in_order() -> Vec<usize> {
    (0..ITERATIONS).collect()
}

#[test]
fn iterations_share_copies_and_transfers() {
    // A bank has 512 columns: four tiles of 128.
    let program = looped(&[Between::Nothing; ITERATIONS], &in_order(), 128);
    let (less, changes, saved) = merged(&program);
    assert_eq!((counted(&changes, ChangeKind::MergedCopy), counted(&changes, ChangeKind::MergedTransfer)), (6, 14));
    assert_eq!(size(&less), (size(&program).0 - saved as usize, size(&program).1));
    assert_eq!(results(&less), results(&program));
    assert!(latency(&less) <= latency(&program), "{} {}", latency(&less), latency(&program));
    // Each product fills a bank.
    assert_eq!(counted(&merged(&looped(&[Between::Nothing; 3], &in_order(), 512)).1, ChangeKind::MergedCopy), 0);
}

#[test]
fn cores_that_do_not_synchronise_merge_their_own_transfers() {
    let alone = looped(&[Between::Nothing; 4], &in_order(), 128);
    let transfers = |program: &Program| counted(&merged(program).1, ChangeKind::MergedTransfer);
    let mut two = alone.clone();
    two.cores.push(Vec::new());
    assert!(transfers(&alone) > 0);
    assert_eq!(transfers(&two), transfers(&alone));
    let entry = nki_isa::inst::find("core_barrier").expect("registered");
    let cores = nki_isa::Arg::List(vec![nki_isa::Arg::Int(0), nki_isa::Arg::Int(1)]);
    let data =
        nki_isa::Arg::View(View::whole(alone.outputs[0].tensor, &alone.tensors[alone.outputs[0].tensor.0 as usize]));
    let barrier = (entry.build)(&mut [Some(data), Some(cores), None]).expect("valid");
    for core in &mut two.cores {
        core.push(Node { kind: NodeKind::Inst(barrier.clone()), ..alone.cores[0][0].clone() });
    }
    assert_eq!(transfers(&two), 0);
}

#[test]
fn transfers_of_512_kib_stay() {
    for (columns, transfers) in [(16 << 10, 0), (8 << 10, 2), (4 << 10, 4)] {
        let mut b = Builder::new();
        let x = b.input("x", &[P * 3, columns], DType::F32);
        let out = b.output("out", &[P * 3, columns], DType::F32);
        for i in 0..3 {
            let tile = b.tensor("tile", Space::Sbuf, &[P, columns], DType::F32);
            let c = i64::from(columns);
            for (line, loads) in [(1, true), (2, false)] {
                let hbm =
                    pattern(b.whole(if loads { x } else { out }), 0, i * i64::from(P) * c, &[(c, P), (1, columns)]);
                b.push(if loads { dma(b.whole(tile), hbm) } else { dma(hbm, b.whole(tile)) });
                b.program.cores[0].last_mut().expect("pushed").loc = Loc { line, ..Loc::default() };
            }
        }
        let (less, changes, _) = merged(&b.program);
        assert_eq!(counted(&changes, ChangeKind::MergedTransfer), transfers, "{columns}");
        assert_eq!(results(&less), results(&b.program));
    }
}

#[test]
fn rows_that_are_not_partitions_stay_apart() {
    // Each tile of eight partitions has two blocks of four rows, which are not contiguous in HBM.
    let mut b = Builder::new();
    let x = b.input("x", &[4 * P, 4], DType::F32);
    let out = b.output("out", &[4 * P, 4], DType::F32);
    for i in 0..2 {
        let tile = b.tensor("tile", Space::Sbuf, &[P, 4], DType::F32);
        let rows = |id: TensorId, b: &Builder| pattern(b.whole(id), 0, i * 64, &[(32, 2), (4, 4), (1, 4)]);
        for (line, inst) in [(1, dma(b.whole(tile), rows(x, &b))), (2, dma(rows(out, &b), b.whole(tile)))] {
            b.push(inst);
            b.program.cores[0].last_mut().expect("pushed").loc = Loc { line, ..Loc::default() };
        }
    }
    let (same, changes, _) = merged(&b.program);
    assert_eq!((same, changes), (b.program, Vec::new()));
}

#[test]
fn what_is_used_in_between_stays_apart() {
    let steps = |at: usize, step: Between| {
        let mut steps = [Between::Nothing; ITERATIONS];
        steps[at] = step;
        steps
    };
    for (step, copies, transfers) in [
        (Between::ReadsColumns, 5, 14),
        (Between::WritesColumns(0), 5, 14),
        (Between::WritesBank(0), 5, 14),
        (Between::WritesTile(0), 6, 13),
        (Between::StoresInput(5), 6, 13),
        (Between::LoadsOutput(0), 6, 13),
        (Between::Reads(0), 6, 14),
    ] {
        let program = looped(&steps(1, step), &in_order(), 128);
        let (less, changes, _) = merged(&program);
        let found = (counted(&changes, ChangeKind::MergedCopy), counted(&changes, ChangeKind::MergedTransfer));
        assert_eq!(found, (copies, transfers), "{step:?}");
        assert_eq!(results(&less), results(&program), "{step:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Merging keeps the bits and the bytes moved and reduces the number of instructions, whatever the iterations do in between.
    #[test]
    fn merges_change_no_number(
        steps in vec(between(), 2..=ITERATIONS),
        shuffled in Just(in_order()).prop_shuffle(),
        keeps_order in prop::bool::weighted(0.7),
        columns in prop::sample::select(vec![1u32, 7, 100, 128, 200, 512]),
        target in prop::sample::select(vec![Target::Trn1, Target::Trn2]),
    ) {
        let order: Vec<usize> = if keeps_order { in_order() } else { shuffled }
            .into_iter().filter(|&i| i < steps.len()).collect();
        let program = Program { target, ..looped(&steps, &order, columns) };
        let (less, _, saved) = merged(&program);
        prop_assert_eq!(results(&less), results(&program));
        prop_assert_eq!(size(&less), (size(&program).0 - saved as usize, size(&program).1));
    }
}
