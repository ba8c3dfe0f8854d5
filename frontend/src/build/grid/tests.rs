//! Grids against a brute-force enumeration of their elements: all small shapes, tiles, blocks and slices.

use nki_isa::Target;
use nki_isa::ids::TrailId;
use nki_isa::{DType, Loc, Space};

use super::*;

const SITE: Site = Site { loc: Loc { file: 0, line: 1, column: 1, start: 0, end: 0 }, trail: TrailId::ROOT };

fn builder() -> Builder {
    Builder::new("k", Target::Trn2, 1)
}

fn tensor(builder: &mut Builder, space: Space, shape: &[i64]) -> Tensor {
    let request =
        Request { name: "t", sharing: Sharing::Order, space, shape, dtype: DType::F32, address: None, data: None };
    builder.alloc(&request, SITE).unwrap()
}

fn storage(space: Space, tile: &[i64], block: Option<&[i64]>, elements: &[i64]) -> Result<Grid> {
    let request = GridRequest {
        name: "g",
        sharing: Sharing::Order,
        space,
        dtype: DType::F32,
        tile_shape: tile,
        block_shape: block,
        element_shape: elements,
        address: None,
    };
    Grid::alloc(&mut builder(), "nl.alloc_tiles", &request, SITE)
}

/// The elements of a view in order, as (partition, position in the storage).
fn elements(t: &Tensor) -> Vec<(i64, i64)> {
    let mut out = vec![(i64::from(t.view.partition), t.view.offset)];
    for (d, dim) in t.view.dims.iter().enumerate() {
        let partition = d == 0 && t.on_chip();
        let step = |&(p, at): &(i64, i64), i: i64| match partition {
            true => (p + i * dim.stride, at),
            false => (p, at + i * dim.stride),
        };
        out = out.iter().flat_map(|e| (0..i64::from(dim.count)).map(move |i| step(e, i))).collect();
    }
    out
}

/// A dimension by enumeration: the positions of each tile of each cell.
type Cells = Vec<Vec<Vec<i64>>>;

fn cells(extent: i64, tile: i64, block: i64) -> Cells {
    let all: Vec<i64> = (0..extent).collect();
    let tiles: Vec<Vec<i64>> = all.chunks(tile as usize).map(<[i64]>::to_vec).collect();
    tiles.chunks(block as usize).map(<[Vec<i64>]>::to_vec).collect()
}

fn positions(cells: &Cells) -> Vec<i64> {
    cells.iter().flatten().flatten().copied().collect()
}

fn is_regular(positions: &[i64]) -> bool {
    positions.windows(3).all(|w| w[2] - w[1] == w[1] - w[0])
}

/// Representative indices in a dimension of `n` cells, with the cells that they select.
fn keys(n: usize) -> Vec<(GridKey, Vec<usize>)> {
    let mut out = vec![(GridKey::Slice(None, None, 1), (0..n).collect())];
    for i in 0..n {
        out.push((GridKey::At(i as i64), vec![i]));
        out.push((GridKey::At(i as i64 - n as i64), vec![i]));
        for step in 1..=3 {
            out.push((GridKey::Slice(Some(i as i64), None, step), (i..n).step_by(step as usize).collect()));
            out.push((GridKey::Slice(None, Some(i as i64 + 1), step), (0..=i).step_by(step as usize).collect()));
        }
    }
    out
}

/// Calls `each` with every small case: extents, tile, block (0: a grid of tiles).
fn cases(each: &mut dyn FnMut([i64; 2], [i64; 2], [i64; 2])) -> usize {
    let mut n = 0;
    for rows in 1..=7 {
        for columns in [1, 2, 3, 5, 6] {
            for tile in [[1, 1], [1, 2], [2, 1], [2, 2], [3, 2], [2, 4]] {
                for block in [[0, 0], [1, 1], [2, 1], [1, 2], [2, 2], [3, 1]] {
                    each([rows, columns], tile, block);
                    n += 1;
                }
            }
        }
    }
    n
}

#[test]
fn cells_of_a_tensor_are_those_of_an_enumeration() {
    let mut compared = 0;
    let n = cases(&mut |shape, tile, block| {
        let t = tensor(&mut builder(), Space::SharedHbm, &shape);
        let tiles = Grid::of_tensor("nl.tiles", &t, &tile).unwrap();
        let (grid, block) = match block {
            [0, 0] => (tiles, [1, 1]),
            block => (tiles.blocks("nl.blocks", &block).unwrap(), block),
        };
        let model: Vec<Cells> = (0..2).map(|d| cells(shape[d], tile[d], block[d])).collect();
        assert_eq!(grid.shape(), [model[0].len() as i64, model[1].len() as i64]);
        assert_eq!(grid.index_step(), [tile[0] * block[0], tile[1] * block[1]]);
        for (k0, rows) in keys(model[0].len()) {
            for (k1, columns) in keys(model[1].len()) {
                let cell = grid.index(&[k0, k1]).unwrap();
                let chosen: Vec<Cells> = [&rows, &columns]
                    .iter()
                    .zip(&model)
                    .map(|(at, m)| at.iter().map(|&i| m[i].clone()).collect())
                    .collect();
                let at: Vec<Vec<i64>> = chosen.iter().map(positions).collect();
                assert_eq!(cell.element_shape(), [at[0].len() as i64, at[1].len() as i64]);
                let short =
                    |d: usize| chosen[d].iter().any(|c| (c.iter().flatten().count() as i64) < tile[d] * block[d]);
                assert_eq!(cell.is_remainder(), short(0) || short(1), "{shape:?} {tile:?} {block:?} {k0:?} {k1:?}");
                let open = [k0, k1].into_iter().zip(&chosen).filter(|(k, _)| !matches!(k, GridKey::At(_)));
                assert_eq!(cell.shape(), open.map(|(_, c)| c.len() as i64).collect::<Vec<_>>());
                // The tiles of blocks are the same elements.
                assert_eq!(cell.tiles().element_shape(), cell.element_shape());
                match cell.data() {
                    Ok(data) => {
                        let expected: Vec<(i64, i64)> =
                            at[0].iter().flat_map(|r| at[1].iter().map(move |c| (0, r * shape[1] + c))).collect();
                        assert_eq!(elements(&data), expected, "{shape:?} {tile:?} {block:?} {k0:?} {k1:?}");
                    }
                    Err(v) => {
                        assert!(
                            !is_regular(&at[0]) || !is_regular(&at[1]),
                            "{shape:?} {tile:?} {block:?} {k0:?} {k1:?}"
                        );
                        assert_eq!(v.id, "not-contiguous");
                    }
                }
                compared += 1;
            }
        }
    });
    assert!(n > 1000 && compared > 100_000, "{n} {compared}");
}

#[test]
fn tiles_on_chip_lie_side_by_side() {
    let mut joined = 0;
    cases(&mut |shape, tile, block| {
        let (grid, block) = match block {
            [0, 0] => (storage(Space::Sbuf, &tile, None, &shape).unwrap(), [1, 1]),
            block => (storage(Space::Sbuf, &tile, Some(&block), &shape).unwrap(), block),
        };
        let model: Vec<Cells> = (0..2).map(|d| cells(shape[d], tile[d], block[d])).collect();
        let across = shape[1].div_euclid(tile[1]) + i64::from(shape[1] % tile[1] != 0);
        let down = shape[0].div_euclid(tile[0]) + i64::from(shape[0] % tile[0] != 0);
        let made = grid.source().storage.shape.to_vec();
        assert_eq!(made, [tile[0] as u32, (down * across * tile[1]) as u32]);
        // The position of an element: its row in the tile, and its column in the tile after the preceding tiles.
        let place = move |r: i64, c: i64| {
            let before = (r / tile[0]) * across + c / tile[1];
            (r % tile[0], before * tile[1] + c % tile[1])
        };
        for (k0, rows) in keys(model[0].len()) {
            for (k1, columns) in keys(model[1].len()) {
                let cell = grid.index(&[k0, k1]).unwrap();
                let pick = |d: usize, at: &[usize]| positions(&at.iter().map(|&i| model[d][i].clone()).collect());
                let (r, c) = (pick(0, &rows), pick(1, &columns));
                let mut expected: Vec<(i64, i64)> =
                    r.iter().flat_map(|&r| c.iter().map(move |&c| place(r, c))).collect();
                expected.sort_unstable();
                match cell.data() {
                    Ok(data) => {
                        let mut got = elements(&data);
                        // Row by row, each row from left to right.
                        assert!(got.is_sorted(), "{shape:?} {tile:?} {k0:?} {k1:?}");
                        got.sort_unstable();
                        assert_eq!(got, expected, "{shape:?} {tile:?} {block:?} {k0:?} {k1:?}");
                        joined += usize::from(rows.len() * columns.len() > 1);
                    }
                    Err(_) => {
                        // The same positions in each partition, and a regular run of them, would be an access pattern.
                        let of = |p: i64| expected.iter().filter(|e| e.0 == p).map(|e| e.1).collect::<Vec<_>>();
                        let partitions = expected.iter().map(|e| e.0).max().unwrap() + 1;
                        let same = (0..partitions).all(|p| of(p) == of(0));
                        let dense = of(0).windows(2).all(|w| w[1] == w[0] + 1);
                        assert!(!(same && dense), "{shape:?} {tile:?} {block:?} {k0:?} {k1:?}");
                    }
                }
            }
        }
    });
    assert!(joined > 1000, "{joined}");
}

#[test]
fn a_sliced_grid_is_packed_by_empty_like() {
    let t = tensor(&mut builder(), Space::SharedHbm, &[7, 10]);
    let grid = Grid::of_tensor("nl.tiles", &t, &[2, 3]).unwrap();
    // Rows 0, 1, 4, 5; columns 3 to 8, and 9.
    let sliced = grid.index(&[GridKey::Slice(Some(0), None, 2), GridKey::Slice(Some(1), None, 1)]).unwrap();
    assert_eq!((sliced.shape(), sliced.element_shape()), (vec![2, 3], vec![4, 7]));
    assert!(sliced.data().is_err());
    let like = |space, order: Option<&[usize]>| {
        sliced.empty_like(&mut builder(), ("l", Sharing::Order, space, DType::BF16), order, None, SITE).unwrap()
    };
    let packed = like(Space::SharedHbm, None);
    assert_eq!((packed.shape(), packed.tile_shape()), (sliced.shape(), sliced.tile_shape()));
    assert_eq!(packed.element_shape(), sliced.element_shape());
    assert_eq!(packed.data().unwrap().shape_text(), "(4, 7)");
    assert_eq!(packed.source().view.dtype, DType::BF16);
    let cell = |g: &Grid| g.index(&[GridKey::At(1), GridKey::At(2)]).unwrap();
    assert_eq!(cell(&packed).element_shape(), cell(&sliced).element_shape());
    let on_chip = like(Space::Sbuf, None);
    assert_eq!(on_chip.source().storage.shape.to_vec(), [2, 2 * 3 * 3]);
    let turned = like(Space::Sbuf, Some(&[1, 0]));
    assert_eq!((turned.shape(), turned.tile_shape(), turned.element_shape()), (vec![3, 2], vec![3, 2], vec![7, 4]));
}

#[test]
fn untiled_dimensions_come_first_and_are_indexed_slab_by_slab() {
    let t = tensor(&mut builder(), Space::SharedHbm, &[3, 4, 6]);
    let grid = Grid::of_tensor("nl.tiles", &t, &[2, 4]).unwrap();
    assert_eq!((grid.shape(), grid.tile_shape(), grid.element_shape()), (vec![3, 2, 2], vec![2, 4], vec![3, 4, 6]));
    let cell = grid.index(&[GridKey::At(2), GridKey::At(1), GridKey::At(1)]).unwrap();
    assert_eq!((cell.shape(), cell.element_shape(), cell.is_remainder()), (vec![], vec![1, 2, 2], true));
    assert_eq!(elements(&cell.data().unwrap()), [(0, 64), (0, 65), (0, 70), (0, 71)]);
    assert_eq!(cell.data().unwrap().shape_text(), "(2, 2)");
    // Consumed coordinates stay consumed; `...` stands for the rest.
    let slab = grid.index(&[GridKey::At(1)]).unwrap();
    assert_eq!(slab.shape(), [2, 2]);
    assert_eq!(slab.index(&[GridKey::Ellipsis, GridKey::At(0)]).unwrap().shape(), [2]);
    assert_eq!(slab.index(&[GridKey::At(0); 3]).unwrap_err().id, "bad-index");
    let on_chip = storage(Space::Sbuf, &[2, 4], None, &[3, 4, 6]).unwrap();
    assert_eq!(on_chip.source().storage.shape.to_vec(), [2, 3 * 2 * 2 * 4]);
    let cell = on_chip.index(&[GridKey::At(2), GridKey::At(1), GridKey::At(1)]).unwrap();
    assert_eq!(elements(&cell.data().unwrap()), [(0, 44), (0, 45), (1, 44), (1, 45)]);
}

#[test]
fn blocks_of_a_grid_regroup_and_expose_their_tiles() {
    let t = tensor(&mut builder(), Space::SharedHbm, &[8, 8]);
    let blocks = Grid::of_tensor("nl.tiles", &t, &[2, 2]).unwrap().blocks("nl.blocks", &[2, 2]).unwrap();
    let block = blocks.index(&[GridKey::At(1), GridKey::At(0)]).unwrap();
    let inner = block.tiles();
    assert_eq!((inner.shape(), inner.is_of_blocks()), (vec![2, 2], false));
    let tile = inner.index(&[GridKey::At(0), GridKey::At(1)]).unwrap();
    assert_eq!(elements(&tile.data().unwrap()), [(0, 34), (0, 35), (0, 42), (0, 43)]);
    let regrouped = blocks.blocks("nl.blocks", &[4, 1]).unwrap();
    assert_eq!((regrouped.shape(), regrouped.block_shape()), (vec![1, 4], vec![4, 1]));
}

#[test]
fn what_the_manual_excludes_is_refused() {
    let mut b = builder();
    let hbm = tensor(&mut b, Space::SharedHbm, &[4, 6]);
    let sbuf = tensor(&mut b, Space::Sbuf, &[4, 2, 6]);
    let id = |r: Result<Grid>| r.unwrap_err().id;
    assert_eq!(id(Grid::of_tensor("nl.tiles", &hbm, &[0, 2])), "value-error");
    assert_eq!(id(Grid::of_tensor("nl.tiles", &hbm, &[])), "value-error");
    assert_eq!(id(Grid::of_tensor("nl.tiles", &hbm, &[1, 2, 3])), "value-error");
    assert_eq!(id(Grid::of_tensor("nl.tiles", &sbuf, &[2, 6])), "value-error");
    let grid = Grid::of_tensor("nl.tiles", &hbm, &[2, 2]).unwrap();
    assert_eq!(id(grid.blocks("nl.blocks", &[2])), "value-error");
    assert_eq!(id(grid.blocks("nl.blocks", &[2, -1])), "value-error");
    assert_eq!(id(grid.index(&[GridKey::At(2)])), "index-out-of-range");
    assert_eq!(id(grid.index(&[GridKey::Slice(None, None, -1)])), "bad-index");
    assert_eq!(id(grid.index(&[GridKey::Slice(Some(2), None, 1)])), "empty-slice");
    assert_eq!(id(grid.index(&[GridKey::Ellipsis, GridKey::Ellipsis])), "bad-index");
    assert_eq!(id(storage(Space::Sbuf, &[4], None, &[4, 6])), "value-error");
    assert_eq!(id(storage(Space::Sbuf, &[2, 2, 2], None, &[4, 6])), "value-error");
    assert_eq!(id(storage(Space::Sbuf, &[256, 2], None, &[256, 6])), "partition-size");
    assert_eq!(id(storage(Space::Sbuf, &[128, 512], None, &[128 * 128, 512 * 8])), "sbuf-capacity");
    assert_eq!(id(storage(Space::SharedHbm, &[1, 1], None, &[1 << 21, 6])), "bad-shape");
}
