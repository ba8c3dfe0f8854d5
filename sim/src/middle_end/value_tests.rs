use nki_isa::ids::Address;
use nki_isa::names::OobMode;
use nki_isa::view::{Index, Indirect};
use nki_isa::{DType, Program, Space, Target, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use super::merge_tests::latency;
use super::tests::{counted, results};
use super::*;
use crate::testing::*;

/// Columns of a tile.
const COLUMNS: u32 = 128;
/// Tiles that the kernel declares.
const TILES: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Loads a block of `x`, which no other step loads, into a tile.
    Load(usize),
    /// Loads the first half of the columns of a tile.
    LoadHalf(usize),
    /// Writes the sum of the last two tiles to the first one.
    Add(usize, usize, usize),
    /// Adds half of the columns of a tile to those of another one.
    AddHalf(usize, usize),
    /// Writes the product of a tile with itself to a bank of PSUM, and the bank to a block of the result.
    Multiply(usize),
    /// Stores a tile.
    Store(usize),
}

use Step::{Add, AddHalf, Load, LoadHalf, Multiply, Store};

/// A kernel with three loaded tiles that executes the steps, and stores the tiles in which `stored` is true.
fn kernel(steps: &[Step], stored: [bool; TILES]) -> Program {
    let mut b = Builder::new();
    b.program.target = Target::Trn2;
    let blocks = (TILES + steps.len()) as u32;
    let x = b.input("x", &[blocks * 128, COLUMNS], DType::F32);
    let out = b.output("out", &[blocks * 128, COLUMNS], DType::F32);
    let tiles = [0; TILES].map(|_| b.tensor("tile", Space::Sbuf, &[128, COLUMNS], DType::F32));
    let c = i64::from(COLUMNS);
    let block = |whole: View, n: usize, columns: u32| pattern(whole, 0, n as i64 * 128 * c, &[(c, 128), (1, columns)]);
    let half = |whole: View| pattern(whole, 0, 0, &[(1, 128), (1, COLUMNS / 2)]);
    for (n, &tile) in tiles.iter().enumerate() {
        b.push(dma(b.whole(tile), block(b.whole(x), n, COLUMNS)));
    }
    for (n, step) in (TILES..).zip(steps) {
        let whole = |b: &Builder, t: usize| b.whole(tiles[t]);
        match *step {
            Load(t) => b.push(dma(whole(&b, t), block(b.whole(x), n, COLUMNS))),
            LoadHalf(t) => b.push(dma(half(whole(&b, t)), block(b.whole(x), n, COLUMNS / 2))),
            Add(to, left, right) => b.push(add(whole(&b, to), whole(&b, left), whole(&b, right))),
            AddHalf(to, from) => b.push(add(half(whole(&b, to)), half(whole(&b, to)), half(whole(&b, from)))),
            Multiply(t) => {
                let bank = b.tensor("bank", Space::Psum, &[128, COLUMNS], DType::F32);
                let copied = b.tensor("copied", Space::Sbuf, &[128, COLUMNS], DType::F32);
                b.push(matmul(b.whole(bank), whole(&b, t), whole(&b, t), None));
                b.push(copy(b.whole(copied), b.whole(bank)));
                b.push(dma(block(b.whole(out), n, COLUMNS), b.whole(copied)));
            }
            Store(t) => b.push(dma(block(b.whole(out), n, COLUMNS), whole(&b, t))),
        }
    }
    for (n, &tile) in tiles.iter().enumerate().filter(|(n, _)| stored[*n]) {
        b.push(dma(block(b.whole(out), n, COLUMNS), b.whole(tile)));
    }
    b.program
}

/// How many values get places of their own.
fn separated(program: &Program) -> u32 {
    as_compiled(program).map_or(0, |(_, changes)| counted(&changes, ChangeKind::SeparateValue))
}

#[test]
fn the_values_of_a_tile_that_is_written_as_a_whole_get_places_of_their_own() {
    let cases: [(&[Step], u32); 12] = [
        (&[], 0),
        (&[Store(0), Load(0)], 1),
        (&[Store(0), Load(0), Store(0), Load(0)], 2),
        (&[Store(0), Add(0, 1, 2)], 1),
        (&[Add(0, 1, 2), Store(0)], 0), // The first value is not read.
        (&[Load(0)], 0),                // Nor is it here.
        (&[Add(0, 0, 1)], 0),
        (&[Store(0), Load(0), AddHalf(0, 1)], 0),
        (&[Store(0), Load(0), LoadHalf(0)], 0),
        (&[Store(0), Load(0), Multiply(0)], 0),
        (&[Multiply(1), Store(0), Load(0)], 1),
        (&[Store(0), Load(0), Store(1), Load(1), Store(2), Load(2)], 3),
    ];
    for (steps, expected) in cases {
        assert_eq!(separated(&kernel(steps, [true; TILES])), expected, "{steps:?}");
    }
}

#[test]
fn a_last_value_that_nothing_reads_keeps_its_place() {
    assert_eq!(separated(&kernel(&[Store(0), Load(0)], [true; TILES])), 1);
    assert_eq!(separated(&kernel(&[Store(0), Load(0)], [false, true, true])), 0);
}

#[test]
fn two_cores_an_index_and_addresses_keep_tiles_in_their_places() {
    let program = kernel(&[Store(0), Load(0)], [true; TILES]);
    let tile = TensorId(2);
    let mut two = program.clone();
    two.cores.push(vec![program.cores[0].last().expect("a store").clone()]);
    assert_eq!(separated(&two), 1, "the other core uses the last tile only");
    let mut shared = program.clone();
    shared.cores.push(vec![program.cores[0][TILES].clone()]);
    assert_eq!(separated(&shared), 0);

    let mut placed = program.clone();
    placed.tensors[tile.0 as usize].address = Some(Address { partition: 0, byte: 0 });
    assert_eq!(separated(&placed), 0);

    // A row of the tile whose index is out of bounds keeps its old value.
    let mut b = Builder::new();
    b.program = program;
    let rows = b.tensor("rows", Space::Sbuf, &[128, 1], DType::I32);
    let mut gather = b.whole(TensorId(0));
    gather.indirect =
        Some(Box::new(Indirect { index: Index::Vector(b.whole(rows)), stride: i64::from(COLUMNS), bound: 128 }));
    b.push(dma_oob(b.whole(tile), gather, OobMode::Skip));
    b.push(dma(b.whole(TensorId(1)), b.whole(tile)));
    assert_eq!(separated(&b.program), 0);
}

#[test]
fn a_writer_does_not_wait_for_the_readers_of_an_older_value() {
    let first = [Store(0), Store(1), Store(2)];
    let in_turn = (0..32).flat_map(|i| [Load(i % 2), Add(2, i % 2, i % 2), Store(2)]);
    let steps: Vec<Step> = first.into_iter().chain(in_turn).collect();
    let program = kernel(&steps, [true; TILES]);
    let (after, _) = as_compiled(&program).expect("tiles in turn");
    let (before, after) = (latency(&program), latency(&after));
    assert!(after * 10 < before * 9, "{after} {before}");
}

/// Whether two programs have the same results, unwritten parts included, and the same findings.
fn same_results(one: &Program, other: &Program) -> bool {
    let bits = |program: &Program| {
        let (outputs, findings) = results(program);
        (outputs.concat().into_iter().map(f32::to_bits).collect::<Vec<u32>>(), findings)
    };
    bits(one) == bits(other)
}

fn step() -> impl Strategy<Value = Step> {
    let tile = 0..TILES;
    prop_oneof![
        4 => tile.clone().prop_map(Load),
        1 => tile.clone().prop_map(LoadHalf),
        4 => (tile.clone(), tile.clone(), tile.clone()).prop_map(|(to, left, right)| Add(to, left, right)),
        1 => (tile.clone(), tile.clone()).prop_map(|(to, from)| AddHalf(to, from)),
        1 => tile.clone().prop_map(Multiply),
        4 => tile.prop_map(Store),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Tiles of their own change neither a number nor the findings, and a program that fits still fits.
    #[test]
    fn places_of_their_own_change_no_number(steps in vec(step(), 1..30), stored in any::<[bool; TILES]>()) {
        let program = kernel(&steps, stored);
        if let Some((changed, _)) = as_compiled(&program) {
            prop_assert!(same_results(&changed, &program));
            prop_assert!(place_with(&changed, Capacity::Error, 0).is_ok());
        }
    }
}
