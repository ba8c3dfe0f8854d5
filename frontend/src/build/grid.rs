//! Grids of tiles and of blocks of tiles: coordinates over a tensor (`nl.tiles`, `nl.blocks`, `nl.alloc_tiles`, `nl.alloc_blocks`).
//!
//! A grid is pure geometry: creating, indexing and regrouping one emits nothing. Along each dimension of its source it is a list of tiles,
//! and cells of neighbouring tiles of that list: one tile in a grid of tiles, several in a grid of blocks.
//!
//! Source: the pages of `nki.language` 0.7 on grids. Choices that they leave open are noted.

use std::ops::Range;

use nki_isa::{DType, Space, Violation};

use super::Result;
use super::builder::{Builder, Request, Sharing, Site};
use super::tensor::{Key, Tensor, tuple_text};

/// Maximum number of tiles along a dimension.
const MAX_TILES: i64 = 1 << 20;

/// The cells along one dimension of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Axis {
    /// Elements of the dimension.
    extent: i64,
    /// Elements of a whole tile; 1 in a dimension that is not tiled.
    tile: i64,
    /// Tiles of a whole cell.
    group: i64,
    /// Tiles from one cell to the next.
    step: i64,
    /// The selected tiles, ascending.
    tiles: Vec<i64>,
    /// The tiles of each cell, as positions in `tiles`.
    cells: Vec<Range<usize>>,
    /// Whether an integer index has consumed its coordinate.
    consumed: bool,
}

/// The location of the tiles.
#[derive(Debug, Clone)]
enum Layout {
    /// Tiles are rectangles of a tensor whose elements are those of the source.
    View(Tensor),
    /// Tiles are adjacent along the free axis of a tensor, in row-major order, each padded to a whole tile. `counts` are the
    /// tiles of the whole allocation along each dimension.
    SideBySide { storage: Tensor, counts: Vec<i64> },
}

/// `NkiTileGrid` or `NkiBlockGrid`.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    axes: Vec<Axis>,
    /// Number of leading untiled dimensions.
    untiled: usize,
    blocks: bool,
    layout: Layout,
}

/// One entry of the index of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GridKey {
    /// `i`
    At(i64),
    /// `start:stop:step`
    Slice(Option<i64>, Option<i64>, i64),
    /// `...`
    Ellipsis,
}

/// Storage for a grid.
#[derive(Debug)]
pub(crate) struct GridRequest<'a> {
    /// Name of the storage.
    pub(crate) name: &'a str,
    /// Which storage of the other core it is, in shared HBM.
    pub(crate) sharing: Sharing,
    /// Memory.
    pub(crate) space: Space,
    /// Element type.
    pub(crate) dtype: DType,
    /// Elements of a tile.
    pub(crate) tile_shape: &'a [i64],
    /// Tiles of a block; a grid of tiles without.
    pub(crate) block_shape: Option<&'a [i64]>,
    /// Total elements.
    pub(crate) element_shape: &'a [i64],
    /// `address=`
    pub(crate) address: Option<&'a [i64]>,
}

fn refuse(slug: &'static str, message: String) -> Violation {
    Violation::new(slug, "", message)
}

fn text(shape: &[i64]) -> String {
    tuple_text(shape.iter().copied())
}

impl Axis {
    fn new(extent: i64, tile: i64) -> Result<Self> {
        let n = extent.div_euclid(tile) + i64::from(extent % tile != 0);
        if n > MAX_TILES {
            return Err(refuse(
                "bad-shape",
                format!("{n} tiles along a dimension of {extent}: at most {MAX_TILES} are possible"),
            )
            .help("use larger tiles"));
        }
        let cells = (0..n as usize).map(|i| i..i + 1).collect();
        Ok(Self { extent, tile, group: 1, step: 1, tiles: (0..n).collect(), cells, consumed: false })
    }

    /// Range of elements of a tile.
    fn span(&self, tile: i64) -> Range<i64> {
        tile * self.tile..((tile + 1) * self.tile).min(self.extent)
    }

    /// Number of selected elements.
    fn elements(&self) -> i64 {
        self.tiles.iter().map(|&t| self.span(t)).map(|s| s.end - s.start).sum()
    }

    /// Whether a cell is incomplete.
    fn has_remainder(&self) -> bool {
        self.cells.iter().any(|cell| {
            let elements: i64 = self.tiles[cell.clone()].iter().map(|&t| self.span(t)).map(|s| s.end - s.start).sum();
            elements < self.tile * self.group
        })
    }

    /// Start, end and step of the selected elements, if they form one regular run.
    fn run(&self) -> Option<(i64, i64, i64)> {
        let (first, last) = (*self.tiles.first()?, *self.tiles.last()?);
        let step = if self.tiles.len() > 1 { self.tiles[1] - first } else { 1 };
        if self.tiles.windows(2).any(|w| w[1] - w[0] != step) {
            return None;
        }
        let (start, end) = (self.span(first).start, self.span(last).end);
        // Separated tiles form a run only if each is one element.
        (step == 1 || self.tile == 1).then_some((start, end, step))
    }

    /// The cells at these positions.
    fn select(&self, positions: impl Iterator<Item = usize>, step: i64, consumed: bool) -> Self {
        let (mut tiles, mut cells) = (Vec::new(), Vec::new());
        for at in positions {
            let start = tiles.len();
            tiles.extend_from_slice(&self.tiles[self.cells[at].clone()]);
            cells.push(start..tiles.len());
        }
        Self { step: self.step * step, tiles, cells, consumed, ..*self }
    }

    /// The same tiles in cells of `group` tiles.
    fn grouped(&self, group: i64) -> Self {
        let n = self.tiles.len();
        let size = usize::try_from(group).unwrap_or(n).clamp(1, n.max(1));
        let cells = (0..n).step_by(size).map(|i| i..(i + size).min(n)).collect();
        // The step of the single-tile cells that they consist of.
        let step = if self.group == 1 { self.step } else { 1 };
        Self { group, step: step * group, cells, consumed: false, tiles: self.tiles.clone(), ..*self }
    }

    /// The same elements without gaps.
    fn packed(&self) -> Self {
        let step = self.group;
        let tiles = (0..self.tiles.len() as i64).collect();
        Self { extent: self.elements(), step, tiles, cells: self.cells.clone(), ..*self }
    }
}

fn check_counts(what: &str, name: &str, counts: &[i64]) -> Result<()> {
    match counts.iter().position(|&n| n < 1) {
        Some(at) => {
            Err(refuse("value-error", format!("{what}: {name} is {}; entry {at} must be a positive int", text(counts))))
        }
        None if counts.is_empty() => Err(refuse("value-error", format!("{what}: {name} is empty"))),
        None => Ok(()),
    }
}

impl Grid {
    /// `nl.tiles(t, tile_shape=...)`
    ///
    /// # Errors
    /// `value-error` unless `tile_shape` has positive entries for the last dimensions of `t`, on chip for all; `indirect-view` for a tensor
    /// with an index at run time.
    pub(crate) fn of_tensor(what: &str, t: &Tensor, tile_shape: &[i64]) -> Result<Grid> {
        check_counts(what, "tile_shape", tile_shape)?;
        let (rank, name) = (t.ndim(), &t.storage.name);
        if tile_shape.len() > rank {
            let message = format!(
                "{what}: tile_shape {} has more dimensions than `{name}`, shape {}",
                text(tile_shape),
                t.shape_text()
            );
            return Err(refuse("value-error", message));
        }
        if t.on_chip() && tile_shape.len() < rank {
            let message = format!(
                "{what}: tile_shape {} leaves out the partitions of `{name}`, shape {}",
                text(tile_shape),
                t.shape_text()
            );
            return Err(refuse("value-error", message).help("tile an on-chip tensor in all of its dimensions"));
        }
        if t.view.indirect.is_some() {
            return Err(refuse("indirect-view", format!("{what} of `{name}`, which is indexed at run time"))
                .help("build the grid from the whole tensor"));
        }
        if t.is_empty() {
            return Err(t.nothing(what));
        }
        let untiled = rank - tile_shape.len();
        let extents = t.view.dims.iter().map(|d| i64::from(d.count));
        let tiles = std::iter::repeat_n(1, untiled).chain(tile_shape.iter().copied());
        let axes = extents.zip(tiles).map(|(extent, tile)| Axis::new(extent, tile)).collect::<Result<_>>()?;
        Ok(Grid { axes, untiled, blocks: false, layout: Layout::View(t.clone()) })
    }

    /// `nl.tiles(grid)`: the tiles of the blocks.
    pub(crate) fn tiles(&self) -> Grid {
        let (untiled, tiled) = self.axes.split_at(self.untiled);
        let axes = untiled.iter().cloned().chain(tiled.iter().map(|a| a.grouped(1))).collect();
        match self.blocks {
            true => Grid { axes, blocks: false, ..self.clone() },
            false => self.clone(),
        }
    }

    /// `nl.blocks(grid, block_shape=...)`
    ///
    /// # Errors
    /// `value-error` unless `block_shape` has a positive entry for each dimension of a tile.
    pub(crate) fn blocks(&self, what: &str, block_shape: &[i64]) -> Result<Grid> {
        check_counts(what, "block_shape", block_shape)?;
        let tile_shape = self.tile_shape();
        if block_shape.len() != tile_shape.len() {
            let message = format!(
                "{what}: block_shape {} and tile_shape {} differ in their number of dimensions",
                text(block_shape),
                text(&tile_shape)
            );
            return Err(refuse("value-error", message).help("block_shape counts tiles along each dimension of a tile"));
        }
        let mut axes = self.axes.clone();
        for (axis, &group) in axes[self.untiled..].iter_mut().zip(block_shape) {
            *axis = axis.grouped(1).grouped(group);
        }
        Ok(Grid { axes, blocks: true, ..self.clone() })
    }

    /// `nl.alloc_tiles` and `nl.alloc_blocks`: new storage.
    ///
    /// In HBM the elements form an ordinary tensor. On chip the tiles are adjacent along the free axis, in row-major order, each padded to
    /// a whole tile: (tile_shape[0], tiles * product of the others). The manual calls it a dense capacity layout of rank two
    /// and gives no numbers.
    ///
    /// # Errors
    /// `value-error` for a shape that the manual excludes; as [`Builder::alloc`].
    pub(crate) fn alloc(builder: &mut Builder, what: &str, request: &GridRequest<'_>, site: Site) -> Result<Grid> {
        let (tile, elements) = (request.tile_shape, request.element_shape);
        check_counts(what, "tile_shape", tile)?;
        check_counts(what, "element_shape", elements)?;
        if tile.len() < 2 || tile.len() > elements.len() {
            let message = format!(
                "{what}: tile_shape {} must have at least two dimensions, and no more than element_shape {}",
                text(tile),
                text(elements)
            );
            return Err(refuse("value-error", message));
        }
        let untiled = elements.len() - tile.len();
        let tiles = std::iter::repeat_n(1, untiled).chain(tile.iter().copied());
        let axes = elements.iter().zip(tiles).map(|(&extent, tile)| Axis::new(extent, tile)).collect::<Result<_>>()?;
        Self::with_storage(builder, axes, untiled, request, site).and_then(|grid| match request.block_shape {
            Some(block_shape) => grid.blocks(what, block_shape),
            None => Ok(grid),
        })
    }

    fn with_storage(
        builder: &mut Builder,
        axes: Vec<Axis>,
        untiled: usize,
        request: &GridRequest<'_>,
        site: Site,
    ) -> Result<Grid> {
        let counts: Vec<i64> = axes.iter().map(|a| a.tiles.len() as i64).collect();
        let extents: Vec<i64> = axes.iter().map(|a| a.extent).collect();
        let capacity = |of: &[i64]| of.iter().try_fold(1i64, |n, &d| n.checked_mul(d)).unwrap_or(i64::MAX);
        let free = capacity(&counts).saturating_mul(capacity(&request.tile_shape[1..]));
        let on_chip = [request.tile_shape[0], free];
        let shape: &[i64] = if request.space.is_on_chip() { &on_chip } else { &extents };
        let storage = builder.alloc(
            &Request {
                name: request.name,
                sharing: request.sharing,
                space: request.space,
                shape,
                dtype: request.dtype,
                address: request.address,
                data: None,
            },
            site,
        )?;
        let layout = match request.space.is_on_chip() {
            true => Layout::SideBySide { storage, counts },
            false => Layout::View(storage),
        };
        Ok(Grid { axes, untiled, blocks: false, layout })
    }

    /// `nl.empty_like(grid)`: the same cells over new storage, without the gaps of a sliced grid; with `order`, the dimensions
    /// permuted.
    ///
    /// # Errors
    /// `value-error` for an order that is no permutation of the dimensions, or of a grid with dimensions that are not tiled; as
    /// [`Builder::alloc`].
    pub(crate) fn empty_like(
        &self,
        builder: &mut Builder,
        (name, sharing, space, dtype): (&str, Sharing, Space, DType),
        order: Option<&[usize]>,
        address: Option<&[i64]>,
        site: Site,
    ) -> Result<Grid> {
        let mut axes: Vec<Axis> = self.axes.iter().map(Axis::packed).collect();
        if let Some(order) = order {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            if self.untiled > 0 || sorted != (0..axes.len()).collect::<Vec<_>>() {
                let message = format!(
                    "nl.empty_like: transpose_axes must permute the {} dimensions of a tile",
                    self.axes.len() - self.untiled
                );
                return Err(refuse("value-error", message));
            }
            axes = order.iter().map(|&d| axes[d].clone()).collect();
        }
        let tile_shape: Vec<i64> = axes[self.untiled..].iter().map(|a| a.tile).collect();
        let element_shape: Vec<i64> = axes.iter().map(|a| a.extent).collect();
        let request = GridRequest {
            name,
            sharing,
            space,
            dtype,
            tile_shape: &tile_shape,
            block_shape: None,
            element_shape: &element_shape,
            address,
        };
        let grid = Self::with_storage(builder, axes, self.untiled, &request, site)?;
        Ok(Grid { blocks: self.blocks, ..grid })
    }

    /// `grid[keys]`: the same class over fewer cells. An integer consumes its coordinate; a slice has a positive step. Negative integers
    /// count from the end, and slices are clamped, as in Python (the manual is silent).
    ///
    /// # Errors
    /// `bad-index`, `index-out-of-range`, `empty-slice`.
    pub(crate) fn index(&self, keys: &[GridKey]) -> Result<Grid> {
        let open: Vec<usize> = (0..self.axes.len()).filter(|&d| !self.axes[d].consumed).collect();
        let whole = || format!("a grid of shape {}", text(&self.shape()));
        let given = keys.iter().filter(|k| **k != GridKey::Ellipsis).count();
        if given > open.len() || keys.len() - given > 1 {
            return Err(refuse("bad-index", format!("{given} indices into {}", whole())));
        }
        let full = GridKey::Slice(None, None, 1);
        let fill = open.len() - given;
        let mut all = Vec::with_capacity(open.len());
        for key in keys {
            match key {
                GridKey::Ellipsis => all.extend(std::iter::repeat_n(full, fill)),
                other => all.push(*other),
            }
        }
        all.resize(open.len(), full);
        let mut grid = self.clone();
        for (&d, key) in open.iter().zip(all) {
            let axis = &self.axes[d];
            let n = axis.cells.len() as i64;
            let from_end = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
            grid.axes[d] = match key {
                GridKey::At(i) if (0..n).contains(&from_end(i)) => {
                    axis.select(std::iter::once(from_end(i) as usize), 1, true)
                }
                GridKey::At(i) => {
                    return Err(refuse("index-out-of-range", format!("index {i} is out of range of {}", whole())));
                }
                GridKey::Slice(_, _, step) if step < 1 => {
                    return Err(refuse("bad-index", format!("the step of a slice of {} is {step}", whole()))
                        .help("cells are selected in ascending order"));
                }
                GridKey::Slice(start, stop, step) => {
                    let (start, stop) = (start.map_or(0, from_end).clamp(0, n), stop.map_or(n, from_end).clamp(0, n));
                    if start >= stop {
                        return Err(refuse("empty-slice", format!("a slice of {} selects no cell", whole()))
                            .help("skip the work on the slice when it is empty"));
                    }
                    axis.select((start as usize..stop as usize).step_by(step as usize), step, false)
                }
                GridKey::Ellipsis => axis.clone(),
            };
        }
        Ok(grid)
    }

    /// Whether its cells are blocks.
    pub(crate) fn is_of_blocks(&self) -> bool {
        self.blocks
    }

    /// Cells along each dimension whose coordinate is not consumed.
    pub(crate) fn shape(&self) -> Vec<i64> {
        self.axes.iter().filter(|a| !a.consumed).map(|a| a.cells.len() as i64).collect()
    }

    /// Elements of a whole tile.
    pub(crate) fn tile_shape(&self) -> Vec<i64> {
        self.axes[self.untiled..].iter().map(|a| a.tile).collect()
    }

    /// Tiles of a whole block.
    pub(crate) fn block_shape(&self) -> Vec<i64> {
        self.axes[self.untiled..].iter().map(|a| a.group).collect()
    }

    /// Selected elements along each dimension of the source.
    pub(crate) fn element_shape(&self) -> Vec<i64> {
        self.axes.iter().map(Axis::elements).collect()
    }

    /// Elements of the source from one coordinate to the next, for each dimension of the source.
    pub(crate) fn index_step(&self) -> Vec<i64> {
        self.axes.iter().map(|a| a.step * a.tile).collect()
    }

    /// Whether a cell is incomplete.
    pub(crate) fn is_remainder(&self) -> bool {
        self.axes.iter().any(Axis::has_remainder)
    }

    /// The tensor that contains the tiles.
    pub(crate) fn source(&self) -> &Tensor {
        match &self.layout {
            Layout::View(t) | Layout::SideBySide { storage: t, .. } => t,
        }
    }

    /// The selection as one operand. For adjacent tiles it is the rectangle that they fill.
    ///
    /// # Errors
    /// `not-contiguous` if no access pattern covers exactly these elements.
    pub(crate) fn data(&self) -> Result<Tensor> {
        let made = match &self.layout {
            Layout::View(t) => self.rectangle(t)?,
            Layout::SideBySide { storage, counts } => self.side_by_side(storage, counts)?,
        };
        made.ok_or_else(|| {
            let message = format!(
                "`.data` of a grid over `{}`: no access pattern covers exactly the {} elements of these cells",
                self.source().storage.name,
                text(&self.element_shape())
            );
            refuse("not-contiguous", message).help("index a single cell, or test `.is_data_representable` first")
        })
    }

    fn rectangle(&self, t: &Tensor) -> Result<Option<Tensor>> {
        let mut keys = Vec::with_capacity(self.axes.len());
        for (d, axis) in self.axes.iter().enumerate() {
            let Some((start, end, step)) = axis.run() else { return Ok(None) };
            keys.push(match axis.consumed && d < self.untiled {
                true => Key::At(start),
                false => Key::Slice(Some(start), Some(end), Some(step)),
            });
        }
        t.index(&keys).map(Some)
    }

    fn side_by_side(&self, storage: &Tensor, counts: &[i64]) -> Result<Option<Tensor>> {
        let free: i64 = self.tile_shape()[1..].iter().product();
        // Each selected tile: its position in the storage, and its extents.
        let mut tiles: Vec<(i64, Vec<i64>)> = vec![(0, Vec::new())];
        for (axis, &count) in self.axes.iter().zip(counts) {
            let add = |(at, extents): &(i64, Vec<i64>), &tile: &i64| {
                let span = axis.span(tile);
                (at * count + tile, extents.iter().copied().chain([span.end - span.start]).collect())
            };
            tiles = tiles.iter().flat_map(|so_far| axis.tiles.iter().map(move |t| add(so_far, t))).collect();
        }
        let Some(((first, _), (_, last))) = tiles.first().zip(tiles.last()) else { return Ok(None) };
        let partitions = last[self.untiled];
        if let [(at, extents)] = &tiles[..] {
            let whole = storage.index(&[
                Key::Slice(Some(0), Some(partitions), None),
                Key::Slice(Some(at * free), Some((at + 1) * free), None),
            ])?;
            let mut shape = self.tile_shape();
            shape[0] = partitions;
            let keys: Vec<Key> = extents[self.untiled..].iter().map(|&n| Key::Slice(Some(0), Some(n), None)).collect();
            return whole.reshape(&shape)?.index(&keys).map(Some);
        }
        let joined = tiles.windows(2).all(|w| w[1].0 == w[0].0 + 1);
        // Whole tiles; the last one may end early along its first free dimension.
        let tile_shape = self.tile_shape();
        let is_whole = |extents: &[i64], from: usize| {
            extents[self.untiled] == partitions && extents[self.untiled + from..] == tile_shape[from..]
        };
        let Some((_, before)) = tiles.split_last() else { return Ok(None) };
        if !joined || !before.iter().all(|(_, e)| is_whole(e, 1)) || !is_whole(last, 2) {
            return Ok(None);
        }
        let end = (first + before.len() as i64) * free + last[self.untiled + 1..].iter().product::<i64>();
        let keys = [Key::Slice(Some(0), Some(partitions), None), Key::Slice(Some(first * free), Some(end), None)];
        storage.index(&keys).map(Some)
    }
}

#[cfg(test)]
mod tests;
