//! Operations that exist in Beta 1, or are lowered differently from the current language.

use nki_isa::{Arg, DType, Space, View, Violation};

use super::{Lower, Operand, extents, name, view};
use crate::build::Result;
use crate::build::tensor::{Tensor, tuple_text};

/// fp32 elements of a PSUM bank.
const BANK: i64 = 512;

impl Lower<'_> {
    /// A new tile like the result of an operation on these operands. Emits nothing.
    pub(crate) fn rehearse(
        &mut self,
        operands: &[Operand],
        run: &impl Fn(&mut Lower<'_>, &[Operand]) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (site, name) = (self.site, self.name);
        let made = self.builder.rehearse(|builder| {
            let mut l = Lower { builder, site, name };
            let stand_in = |o: &Operand| match o {
                Operand::Tile(t) => l.tile(&extents(t), t.view.dtype, t.view.space).map(Operand::Tile),
                number => Ok(number.clone()),
            };
            let operands = operands.iter().map(stand_in).collect::<Result<Vec<_>>>()?;
            run(&mut l, &operands).map(|t| (extents(&t), t.view.dtype, t.view.space))
        });
        let (shape, dtype, space) = made?;
        self.tile(&shape, dtype, space)
    }

    /// A function of the scalar engine.
    pub(crate) fn activation(&mut self, what: &'static str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip(what, x)?;
        let dst = self.like(x, dtype.unwrap_or(x.view.dtype))?;
        self.emit("activation", &[("dst", view(&dst)), ("op", name(what)), ("data", view(x))])?;
        Ok(dst)
    }

    /// A tile in SBUF: a copy of one in PSUM.
    pub(crate) fn in_sbuf(&mut self, x: &Tensor) -> Result<Tensor> {
        if x.view.space == Space::Psum { self.copy(x, None) } else { Ok(x.clone()) }
    }

    /// Whether a tile has more dimensions than an access pattern of a compute engine.
    fn is_scattered(&self, x: &Tensor) -> bool {
        x.on_chip() && View::merged(x.view.free_dims()).len() > self.builder.arch().free_dims_max as usize
    }

    /// A tile readable by one access pattern: a compact copy of one that needs several.
    pub(crate) fn accessible(&mut self, x: &Tensor) -> Result<Tensor> {
        if !self.is_scattered(x) {
            return Ok(x.clone());
        }
        let compact = self.like(x, x.view.dtype)?;
        self.copy_in_parts(&compact, x)?;
        Ok(compact)
    }

    /// Operands readable by one access pattern each.
    pub(crate) fn all_accessible(&mut self, operands: &[Operand]) -> Result<Vec<Operand>> {
        let one = |o: &Operand| match o {
            Operand::Tile(tile) => self.accessible(tile).map(Operand::Tile),
            number => Ok(number.clone()),
        };
        operands.iter().map(one).collect()
    }

    /// Copies a tile to one of the same shape, with as many instructions as access patterns are needed.
    pub(crate) fn copy_in_parts(&mut self, dst: &Tensor, src: &Tensor) -> Result<()> {
        let axis = (1..dst.ndim()).find(|&d| dst.view.dims[d].count > 1);
        let Some(axis) = axis.filter(|_| self.is_scattered(dst) || self.is_scattered(src)) else {
            return self.emit("tensor_copy", &[("dst", view(dst)), ("src", view(src))]);
        };
        for at in 0..i64::from(dst.view.dims[axis].count) {
            let part = |t: &Tensor| t.slice(axis as i64, at, at + 1, 1);
            self.copy_in_parts(&part(dst)?, &part(src)?)?;
        }
        Ok(())
    }

    /// Loads into a tile.
    pub(crate) fn load_to(&mut self, dst: &Tensor, src: &Tensor) -> Result<()> {
        if src.on_chip() {
            let message = format!("nl.load reads HBM; `{}` is in {}", src.storage.name, src.view.space);
            return Err(Violation::new("operand-memory", "", message).help("use nl.copy between on-chip tiles"));
        }
        self.emit("dma_copy", &[("dst", view(dst)), ("src", view(src))])
    }

    /// One partition repeated: ones times the row on the tensor engine (the manual's tutorial on Mamba). Integers, which the
    /// tensor engine does not multiply, are repeated by DMA.
    pub(crate) fn spread(&mut self, row: &Tensor, partitions: u32) -> Result<Tensor> {
        let mut shape = extents(row);
        shape[0] = i64::from(partitions);
        if row.view.dtype.is_int() {
            return self.broadcast_to(row, &shape, None);
        }
        let row = self.in_sbuf(row)?;
        let dtype = row.view.dtype;
        let free = row.view.free_elements() as i64;
        let flat = if row.ndim() == 2 { row } else { self.copy(&row, None)?.reshape(&[1, free])? };
        let ones = self.tile(&[1, shape[0]], dtype, Space::Sbuf)?;
        self.emit("memset", &[("dst", view(&ones)), ("value", Arg::Float(1.0))])?;
        let wide = self.tile(&[shape[0], free], dtype, Space::Sbuf)?;
        for at in (0..free).step_by(BANK as usize) {
            let end = free.min(at + BANK);
            let moving = flat.slice(1, at, end, 1)?;
            let product = self.tile(&[shape[0], end - at], DType::F32, Space::Psum)?;
            self.emit("nc_matmul", &[("dst", view(&product)), ("stationary", view(&ones)), ("moving", view(&moving))])?;
            self.emit("tensor_copy", &[("dst", view(&wide.slice(1, at, end, 1)?)), ("src", view(&product))])?;
        }
        wide.reshape(&shape)
    }

    /// `nl.load_transpose2d` as lowered by the old compiler: rows are loaded, then transposed on the tensor engine.
    pub(crate) fn load_transposed(&mut self, src: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        if src.ndim() != 2 || src.on_chip() {
            let message = format!(
                "nl.load_transpose2d takes a tensor of 2 dimensions in HBM; `{}` of shape {} is in {}",
                src.storage.name,
                src.shape_text(),
                src.view.space
            );
            return Err(Violation::new("bad-shape", "", message).help("transpose tiles with nl.transpose"));
        }
        let (rows, columns) = (extents(src)[0], extents(src)[1]);
        let parts = i64::from(self.builder.arch().partitions);
        if columns > parts {
            let message = format!(
                "nl.load_transpose2d of `{}` of shape {}: its second dimension becomes partitions, at most {parts}",
                src.storage.name,
                src.shape_text()
            );
            return Err(Violation::new("partition-size", "", message).help("load columns in parts of 128"));
        }
        let out = self.tile(&[columns, rows], dtype.unwrap_or(src.view.dtype), Space::Sbuf)?;
        for at in (0..rows).step_by(parts as usize) {
            let end = rows.min(at + parts);
            let tile = self.load(&src.slice(0, at, end, 1)?, None)?;
            let turned = self.transpose(&tile, None)?;
            self.emit("tensor_copy", &[("dst", view(&out.slice(1, at, end, 1)?)), ("src", view(&turned))])?;
        }
        Ok(out)
    }

    /// A reduction over any free dimensions, which are moved to the end.
    pub(crate) fn reduce_any(
        &mut self,
        what: &'static str,
        x: &Tensor,
        axis: &[i64],
        dtype: Option<DType>,
        keepdims: bool,
    ) -> Result<Tensor> {
        let (moved, last) = reduced_last(x, axis)?;
        let out = self.reduce(what, &moved, &last, dtype, false)?;
        if !keepdims {
            return Ok(out);
        }
        let rank = x.ndim() as i64;
        let gone = |d: i64| axis.iter().any(|&a| a == d || a + rank == d);
        let shape: Vec<i64> = (0..).zip(extents(x)).map(|(d, n)| if gone(d) { 1 } else { n }).collect();
        out.reshape(&shape)
    }
}

/// A tile with its reduced dimensions last, and their new positions.
///
/// # Errors
/// `bad-dimension` for nonexistent dimensions, or the partitions.
pub(crate) fn reduced_last(x: &Tensor, axis: &[i64]) -> Result<(Tensor, Vec<i64>)> {
    let rank = x.ndim() as i64;
    let axes: Vec<i64> = axis.iter().map(|&a| if a < 0 { a + rank } else { a }).collect();
    if axes.is_empty() || axes.iter().any(|a| !(1..rank).contains(a)) {
        let message = format!(
            "a reduction over axis {} of `{}` of shape {}",
            tuple_text(axis.iter().copied()),
            x.storage.name,
            x.shape_text()
        );
        return Err(Violation::new("bad-dimension", "", message)
            .help("free dimensions are reduced; partitions (0) by nl.matmul with ones, or after nl.transpose"));
    }
    let kept = (0..rank).filter(|d| !axes.contains(d));
    let reduced = (0..rank).filter(|d| axes.contains(d));
    let order: Vec<i64> = kept.chain(reduced).collect();
    let count = (0..rank).filter(|d| axes.contains(d)).count() as i64;
    let last = (rank - count..rank).collect();
    let is_last = order.windows(2).all(|w| w[0] < w[1]);
    Ok((if is_last { x.clone() } else { x.permute(&order)? }, last))
}
