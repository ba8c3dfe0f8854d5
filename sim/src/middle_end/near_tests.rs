use nki_isa::{DType, Program, Space, Target, TensorId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{counted, results};
use super::*;
use crate::testing::*;

/// In fp32 columns: four tiles of this size are half of the SBUF of trn2.
const COLUMNS: u32 = 229_376 / 2 / 4 / 4;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Loads a block of `x` into a separate tile, and adds it to the sum.
    Load(u32),
    /// Loads one row of an argument.
    Row,
    /// Stores one row of the result.
    StoreRow,
    /// Loads one row of a tensor private to the kernel.
    OwnRow,
    /// Stores the sum to a block of `x`.
    Store(u32),
    /// Computes and stores a tile of this many columns.
    Fill(u32),
}

use Step::{Fill, Load, OwnRow, Row, Store, StoreRow};

/// The steps with tiles of `columns` columns, in two or three dimensions.
fn program(steps: &[Step], columns: u32, dims: usize) -> Program {
    let mut b = Builder::new();
    b.program.target = Target::Trn2;
    let x = b.input("x", &[8 * 128, columns], DType::F32);
    let out = b.output("out", &[128, columns], DType::F32);
    let own = b.tensor("own", Space::Hbm, &[1, 8], DType::F32);
    let sum = b.tensor("sum", Space::Sbuf, &[128, columns], DType::F32);
    let seed = b.tensor("seed", Space::Sbuf, &[1, 8], DType::F32);
    let c = i64::from(columns);
    let block = |b: &Builder, n: u32| pattern(b.whole(x), 0, i64::from(n) * 128 * c, &[(c, 128), (1, columns)]);
    let shape: &[u32] = if dims == 2 { &[128, columns] } else { &[128, 1, columns] };
    b.push(dma(b.whole(sum), block(&b, 7)));
    b.push(dma(b.whole(seed), pattern(b.whole(x), 0, 0, &[(c, 1), (1, 8)])));
    b.push(dma(b.whole(own), b.whole(seed)));
    for step in steps {
        let row = |b: &mut Builder| b.tensor("row", Space::Sbuf, &[1, 8], DType::F32);
        match *step {
            Load(n) => {
                let tile = b.tensor("tile", Space::Sbuf, shape, DType::F32);
                let whole = pattern(b.whole(tile), 0, 0, &[(1, 128), (1, columns)]);
                b.push(dma(whole.clone(), block(&b, n)));
                b.push(add(b.whole(sum), b.whole(sum), whole));
            }
            Row => {
                let row = row(&mut b);
                b.push(dma(b.whole(row), pattern(b.whole(x), 0, 0, &[(c, 1), (1, 8)])));
            }
            StoreRow => {
                let row = row(&mut b);
                b.push(add(b.whole(row), b.whole(seed), b.whole(seed)));
                b.push(dma(pattern(b.whole(out), 0, 0, &[(c, 1), (1, 8)]), b.whole(row)));
            }
            OwnRow => {
                let row = row(&mut b);
                b.push(dma(b.whole(row), b.whole(own)));
            }
            Store(n) => b.push(dma(block(&b, n), b.whole(sum))),
            Fill(columns) => {
                let tile = b.tensor("fill", Space::Sbuf, &[128, columns], DType::F32);
                let stored = b.tensor("stored", Space::Hbm, &[128, columns], DType::F32);
                b.push(add(b.whole(tile), b.whole(tile), b.whole(tile)));
                b.push(dma(b.whole(stored), b.whole(tile)));
            }
        }
    }
    b.push(dma(b.whole(out), b.whole(sum)));
    b.program
}

/// How many loads are dropped.
fn dropped(program: &Program) -> u32 {
    as_compiled(program).map_or(0, |(_, changes)| counted(&changes, ChangeKind::DroppedLoad))
}

#[test]
fn a_load_is_dropped_if_its_bytes_were_loaded_shortly_before() {
    let cases: [(&[Step], u32); 11] = [
        (&[Load(0), Load(0)], 1),
        (&[Load(0), Load(1)], 0),
        // Four tiles are half of SBUF, five are more.
        (&[Load(0), Load(1), Load(2), Load(3), Load(0)], 1),
        (&[Load(0), Load(1), Load(2), Load(3), Load(4), Load(0)], 0),
        // Dropped loads count, starting from the last executed one.
        (&[Load(0); 5], 4),
        (&[Load(0); 6], 4),
        (&[Load(0); 7], 5),
        (&[Load(0), Store(0), Load(0)], 0),
        (&[Load(0), Row, Load(0)], 0),
        (&[Load(0), StoreRow, Load(0)], 1),
        (&[Load(0), OwnRow, Load(0)], 1),
    ];
    for (steps, expected) in cases {
        assert_eq!(dropped(&program(steps, COLUMNS, 2)), expected, "{steps:?}");
        assert_eq!(dropped(&program(steps, COLUMNS, 3)), 0, "parts of a larger tensor: {steps:?}");
    }
}

#[test]
fn the_loads_that_are_left_are_those_of_the_first_tiles() {
    let program = program(&[Load(0), Load(1), Load(0), Load(1)], 8, 2);
    let (left, changes) = as_compiled(&program).expect("repeats");
    assert_eq!(left.cores[0].len(), program.cores[0].len() - 2);
    assert_eq!(changes.iter().map(|c| c.bytes).sum::<u64>(), 2 * 128 * 8 * 4);
    assert_eq!(results(&left), results(&program));
}

#[test]
fn what_another_core_may_write_is_loaded_again() {
    let mut program = program(&[Load(0), Load(0)], 8, 2);
    let mut other = Builder::new();
    std::mem::swap(&mut other.program, &mut program);
    let tile = other.tensor("tile", Space::Sbuf, &[128, 8], DType::F32);
    let out = TensorId(1);
    other.push(dma(other.whole(tile), other.whole(out)));
    let store_x = {
        let x = TensorId(0);
        dma(pattern(other.whole(x), 0, 0, &[(8, 128), (1, 8)]), other.whole(tile))
    };
    let mut two = other.program.clone();
    let node = other.node(NodeKind::Inst(store_x));
    two.cores.push(vec![node]);
    assert_eq!(dropped(&two), 0);
    two.cores[1].clear();
    assert_eq!(dropped(&two), 1);
}

#[test]
fn a_program_that_would_not_fit_keeps_its_loads() {
    // SBUF holds eight tiles. The sum and a tile of 5.5 or 6.5 times the size are alive between the loads: the loaded tile can stay only with the
    // first.
    for (tiles, expected) in [(11, 1), (13, 0)] {
        let program = program(&[Load(0), Fill(tiles * COLUMNS / 2), Load(0)], COLUMNS, 2);
        assert!(place_with(&program, Capacity::Error, 0).is_ok(), "it fits as it is written");
        assert_eq!(dropped(&program), expected, "{tiles} halves");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4u32).prop_map(Load),
        1 => Just(Row),
        1 => Just(StoreRow),
        1 => Just(OwnRow),
        1 => (0..4u32).prop_map(Store),
    ];
    vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Without the dropped loads, a program computes the same bits and has no new findings.
    #[test]
    fn dropped_loads_change_no_number(steps in steps()) {
        let program = program(&steps, 8, 2);
        if let Some((left, _)) = as_compiled(&program) {
            prop_assert_eq!(results(&left), results(&program));
            prop_assert!(place_with(&left, Capacity::Error, 0).is_ok());
        }
    }
}
