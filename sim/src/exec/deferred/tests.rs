//! Deferred instructions give the same values as separate ones.

use nki_isa::{DType, Program, Space, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::HostTensor;
use crate::exec::{ExecOptions, Extent, Moment, Observed, Observer, Rank, run, run_ranks};
use crate::place::place;
use crate::testing::*;

/// Reads everything that is written, so that nothing is deferred.
struct Eager;

impl Observer for Eager {
    fn wants(&mut self, _: &Moment<'_>) -> Option<Extent> {
        Some(Extent::Tensor)
    }

    fn value(&mut self, _: &Moment<'_>, _: Observed) {}
}

const ROWS: u32 = 16;
const COLUMNS: u32 = 32;
const TILES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Copy,
    Add,
    /// Stores the first tile in HBM and loads the second, which ends a run.
    StoreLoad,
}

/// An instruction on parts of tiles: the first is its destination. A tile from [`TILES`] on is a new one, which is written whole and dies soon.
#[derive(Debug, Clone)]
struct Step {
    kind: Kind,
    tiles: [usize; 3],
    /// First column and number of columns: in units of a quarter of a tile.
    columns: (u32, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![3 => Just(Kind::Copy), 2 => Just(Kind::Add), 1 => Just(Kind::StoreLoad)];
    let columns = prop_oneof![Just((0, 4)), (0..4u32).prop_flat_map(|first| (Just(first), 1..=4 - first))];
    let step = (kind, [0..TILES + 2, 0..TILES + 2, 0..TILES + 2], columns);
    vec(step.prop_map(|(kind, tiles, columns)| Step { kind, tiles, columns }), 1..24)
}

fn program_of(steps: &[Step]) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[ROWS * TILES as u32, COLUMNS], DType::F32);
    let out = b.output("out", &[ROWS * TILES as u32, COLUMNS], DType::F32);
    let mut tiles: Vec<TensorId> =
        (0..TILES + 2).map(|_| b.tensor("t", Space::Sbuf, &[ROWS, COLUMNS], DType::F32)).collect();
    let rows = |b: &Builder, id, n: usize| {
        let first = i64::from(n as u32 * ROWS * COLUMNS);
        pattern(b.whole(id), 0, first, &[(COLUMNS.into(), ROWS), (1, COLUMNS)])
    };
    for (n, &tile) in tiles.iter().enumerate() {
        b.push(dma(b.whole(tile), rows(&b, x, n % TILES)));
    }
    for &Step { kind, tiles: [to, one, two], columns: (first, count) } in steps {
        let new = to >= TILES;
        let part = |b: &Builder, id: TensorId| -> View {
            let unit = COLUMNS / 4;
            let part = pattern(b.whole(id), 0, (first * unit).into(), &[(1, ROWS), (1, count * unit)]);
            if new { b.whole(id) } else { part }
        };
        if kind == Kind::StoreLoad {
            b.push(dma(rows(&b, out, to % TILES), b.whole(tiles[to])));
            b.push(dma(b.whole(tiles[one]), rows(&b, x, two % TILES)));
            continue;
        }
        let [from, other] = [one, two].map(|t| part(&b, tiles[t]));
        if new {
            tiles[to] = b.tensor("short", Space::Sbuf, &[ROWS, COLUMNS], DType::F32);
        }
        let to = part(&b, tiles[to]);
        b.push(if kind == Kind::Add { add(to, from, other) } else { copy(to, from) });
    }
    for (n, &tile) in tiles.iter().take(TILES).enumerate() {
        b.push(dma(rows(&b, out, n), b.whole(tile)));
    }
    b.program
}

fn input() -> HostTensor {
    let n = (ROWS * COLUMNS) as usize * TILES;
    let values: Vec<f32> = (0..n).map(|i| (i * 7 % 1009) as f32).collect();
    host_f32("x", &[ROWS as usize * TILES, COLUMNS as usize], &values)
}

/// The outputs of a program: with deferred instructions, and one by one.
pub(super) fn both(program: &Program, input: &HostTensor) -> [Vec<HostTensor>; 2] {
    let placement = place(program).expect("fits");
    let waiting = run(program, &placement, vec![input.clone()], &ExecOptions::default()).expect("runs");
    let rank = Rank { program, placement: &placement, inputs: vec![input.clone()], observer: Some(&mut Eager) };
    let eager = run_ranks(vec![rank], &ExecOptions::default()).expect("runs").remove(0);
    [waiting, eager].map(|result| result.outputs)
}

/// The elements of the first output of both.
fn first_of_both(program: &Program) -> [Vec<f32>; 2] {
    both(program, &input()).map(|outputs| f32s(&outputs[0]))
}

/// A forwarded value may not reach a tile before an earlier instruction has read the tile.
#[test]
fn a_value_waits_for_readers_of_its_destination() {
    let copied = |to, from, columns| Step { kind: Kind::Copy, tiles: [to, from, from], columns };
    // A new tile gets tile 3; tile 0 reads a part of tile 1, which then becomes the new tile.
    let steps = [copied(4, 3, (0, 4)), copied(0, 1, (0, 2)), copied(1, 4, (0, 4))];
    let end = Step { kind: Kind::StoreLoad, tiles: [0, 2, 1], columns: (0, 4) };
    let [waiting, eager] = first_of_both(&program_of(&[&steps[..], &[end]].concat()));
    assert_eq!(waiting, eager);
}

/// A step of a program of loads and matmuls. Tiles from [`TILES`] on are new ones, which live until the next step that creates one.
#[derive(Debug, Clone)]
enum Tensor {
    /// Rows of the input, or of the output if they have been written, to a tile, or to a quarter of one.
    Load { tile: usize, block: usize, from_output: bool, quarter: Option<u32> },
    /// A product of two tiles, or of quarters of them, to a result.
    Product { to: usize, operands: [usize; 2], accumulate: Option<bool> },
    /// A result to a tile, and the tile to the output.
    Store { from: usize, tile: usize, block: usize },
}

const RESULTS: usize = 2;

fn tensor_steps() -> impl Strategy<Value = Vec<Tensor>> {
    let (tile, block) = (0..TILES + 2, 0..TILES);
    let quarter = proptest::option::weighted(0.2, 0..4u32);
    let load = (tile.clone(), block.clone(), proptest::bool::weighted(0.2), quarter);
    let product = (0..RESULTS, [tile.clone(), tile.clone()], any::<Option<bool>>());
    vec(
        prop_oneof![
            4 => load.prop_map(|(tile, block, from_output, quarter)| Tensor::Load { tile, block, from_output, quarter }),
            3 => product.prop_map(|(to, operands, accumulate)| Tensor::Product { to, operands, accumulate }),
            1 => (0..RESULTS, tile, block).prop_map(|(from, tile, block)| Tensor::Store { from, tile, block }),
        ],
        1..30,
    )
}

fn tensor_program_of(steps: &[Tensor]) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[ROWS * TILES as u32, COLUMNS], DType::F32);
    let out = b.output("out", &[ROWS * TILES as u32, COLUMNS], DType::F32);
    let result = |b: &mut Builder| b.tensor("result", Space::Psum, &[COLUMNS, COLUMNS], DType::F32);
    let results: Vec<TensorId> = (0..RESULTS).map(|_| result(&mut b)).collect();
    let tile = |b: &mut Builder| b.tensor("t", Space::Sbuf, &[ROWS, COLUMNS], DType::F32);
    let mut tiles: Vec<TensorId> = (0..TILES + 2).map(|_| tile(&mut b)).collect();
    let rows = |b: &Builder, id, n: usize, (first, count): (u32, u32)| {
        let first = i64::from(n as u32 * ROWS * COLUMNS + first);
        pattern(b.whole(id), 0, first, &[(COLUMNS.into(), ROWS), (1, count)])
    };
    let part =
        |b: &Builder, id, (first, count): (u32, u32)| pattern(b.whole(id), 0, first.into(), &[(1, ROWS), (1, count)]);
    let all = (0, COLUMNS);
    for (n, &tile) in tiles.iter().enumerate() {
        b.push(dma(b.whole(tile), rows(&b, x, n % TILES, all)));
        b.push(dma(rows(&b, out, n % TILES, all), b.whole(tile)));
    }
    for &to in &results {
        b.push(matmul(b.whole(to), b.whole(tiles[0]), b.whole(tiles[1]), None));
    }
    for step in steps {
        match *step {
            Tensor::Load { tile: n, block, from_output, quarter } => {
                if n >= TILES && quarter.is_none() {
                    tiles[n] = tile(&mut b);
                }
                let columns = quarter.map_or(all, |q| (q * COLUMNS / 4, COLUMNS / 4));
                let from = rows(&b, if from_output { out } else { x }, block, columns);
                b.push(dma(part(&b, tiles[n], columns), from));
            }
            Tensor::Product { to, operands: [one, two], accumulate } => {
                b.push(matmul(b.whole(results[to]), b.whole(tiles[one]), b.whole(tiles[two]), accumulate));
            }
            Tensor::Store { from, tile, block } => {
                let from = pattern(b.whole(results[from]), 0, 0, &[(1, ROWS), (1, COLUMNS)]);
                b.push(copy(b.whole(tiles[tile]), from));
                b.push(dma(rows(&b, out, block, all), b.whole(tiles[tile])));
            }
        }
    }
    for (n, &tile) in tiles.iter().take(TILES - 1).enumerate() {
        let from = pattern(b.whole(results[n % RESULTS]), 0, 0, &[(1, ROWS), (1, COLUMNS)]);
        b.push(add(b.whole(tile), b.whole(tile), from));
        b.push(dma(rows(&b, out, n, all), b.whole(tile)));
    }
    b.program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn loads_that_wait_with_matmuls_change_no_value(steps in tensor_steps()) {
        let bits = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
        let [waiting, eager] = first_of_both(&tensor_program_of(&steps)).map(|values| values.into_iter().map(bits).collect::<Vec<_>>());
        prop_assert_eq!(waiting, eager);
    }

    #[test]
    fn waiting_changes_no_value(steps in steps()) {
        let [waiting, eager] = first_of_both(&program_of(&steps));
        prop_assert_eq!(waiting, eager);
    }
}
