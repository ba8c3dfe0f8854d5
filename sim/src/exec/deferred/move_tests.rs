//! Moves deferred with matmuls give the same values as separate moves.

use nki_isa::{DType, Program, Space, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::both;
use crate::HostTensor;
use crate::testing::*;

/// Tiles have the shape `[ROWS, COLUMNS]`, or `[COLUMNS, ROWS]` if they are transposed.
const ROWS: u32 = 16;
const COLUMNS: u32 = 32;
/// Tiles of each shape; the last is replaced by a new one whenever it is written whole.
const TILES: usize = 3;
const RESULTS: usize = 2;
/// Blocks of `[COLUMNS, COLUMNS]` in HBM for whole products.
const SQUARES: usize = 2;
/// Parts of a tile: quarters of its columns, or of the rows of a transposed one.
const QUARTERS: u32 = 4;
/// Columns of a quarter, or its rows if the tile is transposed.
const PART: u32 = COLUMNS / QUARTERS;

/// A step of a program. A quarter applies to both tiles.
#[derive(Debug, Clone)]
enum Step {
    /// Rows of the input, or of an output if they have been written, to a tile; optionally every n-th column before the others.
    Load { to: usize, block: usize, source: HbmSource, quarter: Option<u32>, every: u32 },
    /// A tile to a transposed one, or the reverse.
    Transpose { from: usize, to: usize, back: bool, on_tensor: bool, quarter: Option<u32> },
    /// A tile to another of the same shape.
    Copy { from: usize, to: usize, turned: bool, quarter: Option<u32> },
    /// A product of two tiles of the same shape, or of parts of them from this column (row of transposed ones) on, to a new tensor if it is `fresh` and whole.
    /// The last destination is the first transposed tile, if the product fits and the tile is fp32.
    Product { fresh: bool, to: usize, operands: [usize; 2], turned: bool, accumulate: Option<bool>, part: Option<u32> },
    /// A part of a result to a transposed tile, if both are fp32.
    TransposeResult { from: usize, to: usize },
    /// A part of a result to a tile, and optionally the tile to the output.
    Evict { from: usize, to: usize, store: Option<usize> },
    /// The result of the last product, on chip and then to this block of the squares, or directly to it. The copy may be stored a second time.
    Square { from: usize, block: usize, on_chip: bool, again: Option<usize> },
}

/// What a tile is loaded from. An fp32 program can also load rows of the squares.
#[derive(Debug, Clone, Copy)]
enum HbmSource {
    Input,
    Output,
    Squares,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let tile = || 0..TILES;
    let quarter = || proptest::option::weighted(0.2, 0..QUARTERS);
    let source = prop_oneof![3 => Just(HbmSource::Input), 1 => Just(HbmSource::Output), 1 => Just(HbmSource::Squares)];
    let load = (tile(), tile(), source, quarter(), prop::sample::select(&[1, 2, 8][..]));
    let transpose = (tile(), tile(), any::<bool>(), any::<bool>(), quarter());
    let copied = (tile(), tile(), any::<bool>(), quarter());
    let part = proptest::option::of(0..=COLUMNS - PART);
    let product = (any::<bool>(), 0..=RESULTS, [tile(), tile()], any::<bool>(), any::<Option<bool>>(), part);
    let square = (0..RESULTS, 0..SQUARES, any::<bool>(), proptest::option::weighted(0.3, 0..SQUARES));
    let evict = (0..RESULTS, tile(), proptest::option::of(tile()));
    let step = prop_oneof![
        3 => load.prop_map(|(to, block, source, quarter, every)| Step::Load { to, block, source, quarter, every }),
        5 => transpose.prop_map(|(from, to, back, on_tensor, quarter)| Step::Transpose { from, to, back, on_tensor, quarter }),
        4 => copied.prop_map(|(from, to, turned, quarter)| Step::Copy { from, to, turned, quarter }),
        5 => product.prop_map(|(fresh, to, operands, turned, accumulate, part)| {
            Step::Product { fresh, to, operands, turned, accumulate, part }
        }),
        4 => square.prop_map(|(from, block, on_chip, again)| Step::Square { from, block, on_chip, again }),
        1 => (0..RESULTS, tile()).prop_map(|(from, to)| Step::TransposeResult { from, to }),
        1 => evict.prop_map(|(from, to, store)| Step::Evict { from, to, store }),
    ];
    vec(step, 1..30)
}

/// Tiles of one shape.
struct Tiles {
    turned: bool,
    dtype: DType,
    tensors: Vec<TensorId>,
}

impl Tiles {
    fn new(b: &mut Builder, turned: bool, dtype: DType) -> Self {
        let mut tiles = Tiles { turned, dtype, tensors: Vec::new() };
        tiles.tensors = (0..TILES).map(|n| tiles.tensor(b, n)).collect();
        tiles
    }

    fn shape(&self) -> [u32; 2] {
        if self.turned { [COLUMNS, ROWS] } else { [ROWS, COLUMNS] }
    }

    /// A tensor for tile `n`: the first transposed tile is in PSUM.
    fn tensor(&self, b: &mut Builder, n: usize) -> TensorId {
        let space = if self.turned && n == 0 { Space::Psum } else { Space::Sbuf };
        b.tensor("t", space, &self.shape(), self.dtype)
    }

    fn view(&self, b: &Builder, n: usize, quarter: Option<u32>) -> View {
        quarter.map_or_else(|| b.whole(self.tensors[n]), |quarter| self.part(b, n, quarter * PART))
    }

    /// A part of a tile, from this column or row on.
    fn part(&self, b: &Builder, n: usize, first: u32) -> View {
        let whole = b.whole(self.tensors[n]);
        if self.turned {
            pattern(whole, first, 0, &[(1, PART), (1, ROWS)])
        } else {
            pattern(whole, 0, first.into(), &[(1, ROWS), (1, PART)])
        }
    }

    /// The view of the next write.
    fn target(&mut self, b: &mut Builder, n: usize, quarter: Option<u32>) -> View {
        if n == TILES - 1 && quarter.is_none() {
            self.tensors[n] = self.tensor(b, n);
        }
        self.view(b, n, quarter)
    }
}

/// A program that is being built, with its tensors.
struct Making {
    b: Builder,
    dtype: DType,
    x: TensorId,
    out: TensorId,
    out_turned: TensorId,
    squares: TensorId,
    results: Vec<TensorId>,
    /// The size of the last product to each result.
    sizes: [u32; RESULTS],
    /// Tiles, and transposed ones.
    tiles: [Tiles; 2],
}

impl Making {
    /// All tiles, results and outputs are written.
    fn new(dtype: DType) -> Self {
        let mut b = Builder::new();
        let rows = TILES as u32;
        let x = b.input("x", &[rows * ROWS, COLUMNS], dtype);
        let out = b.output("out", &[rows * ROWS, COLUMNS], dtype);
        let out_turned = b.output("turned", &[rows * COLUMNS, ROWS], dtype);
        let squares = b.output("squares", &[SQUARES as u32 * COLUMNS, COLUMNS], DType::F32);
        let result = |b: &mut Builder| b.tensor("result", Space::Psum, &[COLUMNS, COLUMNS], DType::F32);
        let results = (0..RESULTS).map(|_| result(&mut b)).collect();
        let tiles = [false, true].map(|turned| Tiles::new(&mut b, turned, dtype));
        let mut making = Making { b, dtype, x, out, out_turned, squares, results, sizes: [COLUMNS; RESULTS], tiles };
        for n in 0..TILES {
            let [tile, turned] = [0, 1].map(|side: usize| making.tiles[side].view(&making.b, n, None));
            making.b.push(dma(tile.clone(), making.block(x, n, None)));
            making.b.push(dma(making.block(out, n, None), tile.clone()));
            making.b.push(nc_transpose(turned, tile, false));
        }
        for n in 0..RESULTS {
            let [left, right] = [0, 1].map(|n| making.tiles[0].view(&making.b, n, None));
            let to = making.b.whole(making.results[n]);
            making.b.push(matmul(to, left, right, None));
        }
        for n in 0..SQUARES {
            let to = square(&making.b, squares, n, COLUMNS);
            making.store_result(0, to);
        }
        making
    }

    /// Rows of a tensor in HBM with the shape of a tile, or a quarter of their columns.
    fn block(&self, tensor: TensorId, n: usize, quarter: Option<u32>) -> View {
        let (first, count) = quarter.map_or((0, COLUMNS), |q| (q * PART, PART));
        let first = i64::from(n as u32 * ROWS * COLUMNS + first);
        pattern(self.b.whole(tensor), 0, first, &[(COLUMNS.into(), ROWS), (1, count)])
    }

    /// Copies a whole result to SBUF, and from there to HBM.
    fn store_result(&mut self, n: usize, to: View) {
        let copied = self.b.tensor("copied", Space::Sbuf, &[COLUMNS, COLUMNS], DType::F32);
        self.b.push(copy(self.b.whole(copied), self.b.whole(self.results[n])));
        self.b.push(dma(to, self.b.whole(copied)));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Load { to, block: n, source, quarter, every } => {
                let source = match source {
                    HbmSource::Squares if self.dtype == DType::F32 => self.squares,
                    HbmSource::Output => self.out,
                    _ => self.x,
                };
                let from = if every > 1 && quarter.is_none() {
                    let first = i64::from(n as u32 * ROWS * COLUMNS);
                    let dims = [(COLUMNS.into(), ROWS), (1, every), (every.into(), COLUMNS / every)];
                    pattern(self.b.whole(source), 0, first, &dims)
                } else {
                    self.block(source, n, quarter)
                };
                let to = self.tiles[0].target(&mut self.b, to, quarter);
                self.b.push(dma(to, from));
            }
            Step::Transpose { from, to, back, on_tensor, quarter } => {
                let (from_side, to_side) = if back { (1, 0) } else { (0, 1) };
                let from = self.tiles[from_side].view(&self.b, from, quarter);
                let on_tensor = on_tensor && to_side == 1 && to == 0;
                let to = self.tiles[to_side].target(&mut self.b, to, quarter);
                self.b.push(nc_transpose(to, from, on_tensor));
            }
            Step::Copy { from, to, turned, quarter } => {
                let from = self.tiles[usize::from(turned)].view(&self.b, from, quarter);
                let to = self.tiles[usize::from(turned)].target(&mut self.b, to, quarter);
                self.b.push(copy(to, from));
            }
            Step::Product { .. } => self.product(step),
            Step::TransposeResult { from, to } if self.dtype == DType::F32 => {
                let from = pattern(self.b.whole(self.results[from]), 0, 0, &[(1, ROWS), (1, COLUMNS)]);
                let to = self.tiles[1].target(&mut self.b, to, None);
                self.b.push(nc_transpose(to, from, false));
            }
            Step::TransposeResult { .. } => {}
            Step::Evict { from, to, store } => {
                let from = pattern(self.b.whole(self.results[from]), 0, 0, &[(1, ROWS), (1, COLUMNS)]);
                let to = self.tiles[0].target(&mut self.b, to, None);
                self.b.push(copy(to.clone(), from));
                if let Some(n) = store {
                    self.b.push(dma(self.block(self.out, n, None), to));
                }
            }
            Step::Square { from, block: n, on_chip, again } => {
                let size = self.sizes[from];
                let part = |view| pattern(view, 0, 0, &[(1, size), (1, size)]);
                let result = part(self.b.whole(self.results[from]));
                let first = square(&self.b, self.squares, n, size);
                if !on_chip {
                    self.b.push(dma(first, result));
                    return;
                }
                let copied = self.b.tensor("copied", Space::Sbuf, &[COLUMNS, COLUMNS], DType::F32);
                let copied = part(self.b.whole(copied));
                self.b.push(copy(copied.clone(), result));
                self.b.push(dma(first, copied.clone()));
                if let Some(n) = again {
                    self.b.push(dma(square(&self.b, self.squares, n, size), copied));
                }
            }
        }
    }

    fn product(&mut self, step: &Step) {
        let Step::Product { fresh, to, operands, turned, accumulate, part } = *step else { return };
        let side = &self.tiles[usize::from(turned)];
        // The first transposed tile is in PSUM, which cannot hold operands.
        let operand = |n: usize| {
            let n = n.max(turned.into());
            part.map_or_else(|| side.view(&self.b, n, None), |first| side.part(&self.b, n, first))
        };
        let [left, right] = operands.map(operand);
        let size = if turned || part.is_none() { side.shape()[1] } else { PART };
        let to = match self.results.get_mut(to) {
            Some(result) => {
                self.sizes[to] = size;
                if fresh && size == COLUMNS {
                    *result = self.b.tensor("result", Space::Psum, &[COLUMNS, COLUMNS], DType::F32);
                }
                *result
            }
            None if self.dtype == DType::F32 && size <= ROWS => self.tiles[1].tensors[0],
            None => return,
        };
        let to = pattern(self.b.whole(to), 0, 0, &[(1, size), (1, size)]);
        self.b.push(matmul(to, left, right, accumulate));
    }

    /// Stores all results and tiles.
    fn finish(mut self) -> Program {
        let out_results = self.b.output("results", &[RESULTS as u32 * COLUMNS, COLUMNS], DType::F32);
        for n in 0..RESULTS {
            let to = square(&self.b, out_results, n, COLUMNS);
            self.store_result(n, to);
        }
        for n in 0..TILES {
            let tile = self.tiles[0].view(&self.b, n, None);
            self.b.push(dma(self.block(self.out, n, None), tile));
            let turned = self.tiles[1].view(&self.b, n, None);
            let copied = self.b.tensor("copied", Space::Sbuf, &[COLUMNS, ROWS], self.dtype);
            self.b.push(copy(self.b.whole(copied), turned));
            let first = i64::from(n as u32 * COLUMNS * ROWS);
            let to = pattern(self.b.whole(self.out_turned), 0, first, &[(ROWS.into(), COLUMNS), (1, ROWS)]);
            self.b.push(dma(to, self.b.whole(copied)));
        }
        self.b.program
    }
}

/// The first `size` rows and columns of a block of `[COLUMNS, COLUMNS]` in HBM.
fn square(b: &Builder, tensor: TensorId, n: usize, size: u32) -> View {
    let first = i64::from(n as u32 * COLUMNS * COLUMNS);
    pattern(b.whole(tensor), 0, first, &[(COLUMNS.into(), size), (1, size)])
}

fn program_of(steps: &[Step], dtype: DType) -> Program {
    let mut making = Making::new(dtype);
    steps.iter().for_each(|step| making.step(step));
    making.finish()
}

fn input(dtype: DType) -> HostTensor {
    let n = (ROWS * COLUMNS) as usize * TILES;
    let values: Vec<f32> = (0..n).map(|i| (i * 7 % 251) as f32 - 125.0).collect();
    let shape = [ROWS as usize * TILES, COLUMNS as usize];
    let mut input = host_f32("x", &shape, &values);
    if dtype == DType::BF16 {
        // These values have at most eight bits.
        let halves: Vec<u16> = values.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
        input.data = bytemuck::cast_slice(&halves).to_vec().into();
        input.dtype = dtype;
    }
    input
}

/// Bits of the elements of both outputs; all NaNs are equal.
fn bits(outputs: &[HostTensor]) -> Vec<u32> {
    let bits = |x: f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    let elements = |host: &HostTensor| -> Vec<u32> {
        let bytes: &[u8] = &host.data;
        match host.dtype {
            DType::BF16 => {
                let halves = bytes.as_chunks::<2>().0.iter();
                halves.map(|&h| bits(f32::from_bits(u32::from(u16::from_le_bytes(h)) << 16))).collect()
            }
            _ => f32s(host).into_iter().map(bits).collect(),
        }
    };
    outputs.iter().flat_map(elements).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn moves_that_wait_with_matmuls_change_no_value(steps in steps(), low in any::<bool>()) {
        let dtype = if low { DType::BF16 } else { DType::F32 };
        let [waiting, eager] = both(&program_of(&steps, dtype), &input(dtype)).map(|outputs| bits(&outputs));
        prop_assert_eq!(waiting, eager);
    }
}
