//! The value-returning operations of `nki.language`, lowered to instructions.
//!
//! Each allocates an SBUF tile (PSUM for the tensor engine), emits the instructions that fill it, and returns it. The manual
//! names the instruction only for some; otherwise the cheapest documented one is used: ALU operators run as
//! `tensor_tensor` or, with a scalar or one value per partition, as `tensor_scalar`; functions run as `activation`.

mod compose;
mod random;
pub(crate) mod results;
#[cfg(test)]
mod tests;
mod trig;

use nki_isa::inst::find;
use nki_isa::names::AluOp;
use nki_isa::{Arg, DType, Imm, Space, Violation};

use crate::build::Result;
use crate::build::builder::{Builder, Request, Sharing, Site};
use crate::build::tensor::Tensor;

/// A tile or a number.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A tensor.
    Tile(Tensor),
    /// A number.
    Number(Imm),
}

/// The context of a lowering: the program, the location of the call and the name of the result.
#[derive(Debug)]
pub(crate) struct Lower<'a> {
    /// The program.
    pub(crate) builder: &'a mut Builder,
    /// The call.
    pub(crate) site: Site,
    /// Name of the result.
    pub(crate) name: &'a str,
}

fn view(t: &Tensor) -> Arg {
    Arg::View(t.view.clone())
}

fn name(n: &str) -> Arg {
    Arg::Name(n.into())
}

/// The extents as seen by the kernel.
pub(crate) fn extents(t: &Tensor) -> Vec<i64> {
    t.view.dims.iter().map(|d| i64::from(d.count)).collect()
}

/// A documented instruction missing from the registry.
fn not_yet(instruction: &str) -> Violation {
    Violation::new("unsupported-instruction", "", format!("nki.isa.{instruction} is not supported yet"))
        .help("the manual documents it, but this version does not model it")
}

/// Maximum elements per partition of a tile from which HBM is filled.
const FILLED: i64 = 2048;

/// Whether a tile has one element for each partition of a wider one: an instruction accepts it as a vector.
pub(crate) fn is_column(t: &Tensor, of: &Tensor) -> bool {
    t.view.free_elements() == 1 && of.view.free_elements() != 1 && t.view.partitions() == of.view.partitions()
}

impl Lower<'_> {
    /// Emits one instruction by its name and operands.
    pub(crate) fn emit(&mut self, instruction: &'static str, operands: &[(&'static str, Arg)]) -> Result<()> {
        let Some(entry) = find(instruction) else {
            return Err(not_yet(instruction));
        };
        let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
        for (operand, arg) in operands {
            match entry.schema.position(operand) {
                Some(at) => args[at] = Some(arg.clone()),
                None => {
                    return Err(Violation::new(
                        "unsupported-instruction",
                        "",
                        format!("{instruction} does not support `{operand}` yet"),
                    ));
                }
            }
        }
        let inst = self.builder.make(entry, &mut args)?;
        self.builder.emit(inst, self.site)
    }

    /// A new tile for the result.
    pub(crate) fn tile(&mut self, shape: &[i64], dtype: DType, space: Space) -> Result<Tensor> {
        let request =
            Request { name: self.name, sharing: Sharing::Order, space, shape, dtype, address: None, data: None };
        self.builder.alloc(&request, self.site)
    }

    fn like(&mut self, x: &Tensor, dtype: DType) -> Result<Tensor> {
        self.tile(&extents(x), dtype, Space::Sbuf)
    }

    fn on_chip(&self, what: &str, x: &Tensor) -> Result<()> {
        if x.on_chip() {
            return Ok(());
        }
        Err(Violation::new(
            "operand-memory",
            "",
            format!("nl.{what} works on SBUF and PSUM tiles; `{}` is in {}", x.storage.name, x.view.space),
        )
        .help(format!("load it first: tile = nl.load({})", x.storage.name)))
    }

    /// `nl.copy`.
    pub(crate) fn copy(&mut self, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("copy", x)?;
        let dst = self.like(x, dtype.unwrap_or(x.view.dtype))?;
        self.emit("tensor_copy", &[("dst", view(&dst)), ("src", view(x))])?;
        Ok(dst)
    }

    /// `nl.load`.
    pub(crate) fn load(&mut self, src: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        if src.on_chip() {
            return Err(Violation::new(
                "operand-memory",
                "",
                format!("nl.load reads HBM; `{}` is in {}", src.storage.name, src.view.space),
            )
            .help("use nl.copy or nisa.tensor_copy between on-chip tensors"));
        }
        if src.ndim() < 2 {
            return Err(Violation::new(
                "bad-shape",
                "",
                format!(
                    "nl.load of `{}` of shape {}: a tile has at least two dimensions",
                    src.storage.name,
                    src.shape_text()
                ),
            )
            .help(format!("load {}.reshape((1, -1)) or .reshape((-1, 1))", src.storage.name)));
        }
        let dst = self.like(src, dtype.unwrap_or(src.view.dtype))?;
        self.emit("dma_copy", &[("dst", view(&dst)), ("src", view(src))])?;
        Ok(dst)
    }

    /// `nl.store`.
    pub(crate) fn store(&mut self, dst: &Tensor, value: &Tensor) -> Result<()> {
        if dst.on_chip() {
            return Err(Violation::new(
                "operand-memory",
                "",
                format!("nl.store writes HBM; `{}` is in {}", dst.storage.name, dst.view.space),
            )
            .help("use nisa.tensor_copy between on-chip tensors"));
        }
        if value.view.space == Space::Psum {
            // DMA cannot access PSUM (migration guide, NKI 0.3).
            let staged = self.copy(value, None)?;
            return self.emit("dma_copy", &[("dst", view(dst)), ("src", view(&staged))]);
        }
        self.emit("dma_copy", &[("dst", view(dst)), ("src", view(value))])
    }

    /// `dst[...] = value`: an engine copies on chip, DMA from and to HBM.
    pub(crate) fn assign(&mut self, dst: &Tensor, value: &Tensor) -> Result<()> {
        if !dst.on_chip() {
            return self.store(dst, value);
        }
        if value.on_chip() {
            return self.emit("tensor_copy", &[("dst", view(dst)), ("src", view(value))]);
        }
        if dst.view.space == Space::Psum {
            let staged = self.load(value, None)?;
            return self.emit("tensor_copy", &[("dst", view(dst)), ("src", view(&staged))]);
        }
        self.emit("dma_copy", &[("dst", view(dst)), ("src", view(value))])
    }

    /// `nl.load_transpose2d`: the DMA writes rows of HBM as columns of a tile.
    pub(crate) fn load_transpose2d(&mut self, src: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        if src.on_chip() {
            return Err(Violation::new(
                "operand-memory",
                "",
                format!("nl.load_transpose2d reads HBM; `{}` is in {}", src.storage.name, src.view.space),
            )
            .help("transpose on-chip tiles with nl.transpose or nisa.nc_transpose"));
        }
        if src.ndim() != 2 {
            return Err(Violation::new(
                "bad-shape",
                "",
                format!(
                    "nl.load_transpose2d takes a tensor of 2 dimensions; `{}` has shape {}",
                    src.storage.name,
                    src.shape_text()
                ),
            ));
        }
        let s = extents(src);
        let dst = self.tile(&[s[1], s[0]], src.view.dtype, Space::Sbuf)?;
        self.emit("dma_transpose", &[("dst", view(&dst)), ("src", view(src))])?;
        match dtype {
            Some(d) if d != src.view.dtype => self.copy(&dst, Some(d)),
            _ => Ok(dst),
        }
    }

    /// `nl.gather_flattened`: in each partition `data.flat[indices]`, on GpSimd, which reads SBUF only.
    pub(crate) fn gather_flattened(&mut self, data: &Tensor, indices: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let what = "gather_flattened";
        self.on_chip(what, data)?;
        self.on_chip(what, indices)?;
        if !indices.view.dtype.is_int() {
            let message = format!("`{}` is {}, but indices must be integers", indices.storage.name, indices.view.dtype);
            return Err(Violation::new("unsupported-dtype", what, message)
                .help(format!("convert them first: nl.copy({}, dtype=nl.uint32)", indices.storage.name)));
        }
        let in_sbuf = |l: &mut Self, t: &Tensor, dtype: DType| {
            if t.view.space == Space::Sbuf && t.view.dtype == dtype { Ok(t.clone()) } else { l.copy(t, Some(dtype)) }
        };
        let data = in_sbuf(self, data, data.view.dtype)?;
        let indices = in_sbuf(self, indices, DType::U32)?;
        let dst = self.like(&indices, data.view.dtype)?;
        self.emit("nc_n_gather", &[("dst", view(&dst)), ("data", view(&data)), ("indices", view(&indices))])?;
        match dtype {
            Some(d) if d != data.view.dtype => self.copy(&dst, Some(d)),
            _ => Ok(dst),
        }
    }

    /// `nisa.memset`-based creation: `nl.zeros`, `nl.ones`, `nl.full`.
    pub(crate) fn fill(&mut self, dst: &Tensor, value: Imm) -> Result<()> {
        let arg = match value {
            Imm::Int(i) if dst.view.dtype.is_float() => Arg::Float(i as f64),
            Imm::Float(x) if dst.view.dtype.is_int() && x.fract() == 0.0 => Arg::Int(x as i64),
            Imm::Int(i) => Arg::Int(i),
            Imm::Float(x) => Arg::Float(x),
        };
        if dst.on_chip() {
            return self.emit("memset", &[("dst", view(dst)), ("value", arg)]);
        }
        // HBM is filled from a tile, since memset works on chip only.
        let flat = match dst.reshape(&[dst.view.elements() as i64]) {
            Ok(flat) => flat,
            Err(violation) => return self.fill_rows(dst, arg, violation),
        };
        let total = dst.view.elements() as i64;
        let parts = i64::from(self.builder.arch().partitions);
        let width = (total / parts).clamp(1, FILLED);
        let block = parts * width;
        let tile = self.tile(&[parts, width], dst.view.dtype, Space::Sbuf)?;
        self.emit("memset", &[("dst", view(&tile)), ("value", arg)])?;
        let mut at = 0;
        while at < total {
            let n = block.min(total - at);
            let (rows, rest) = (n / width, n % width);
            if rows > 0 {
                let to = flat.slice(0, at, at + rows * width, 1)?.reshape(&[rows, width])?;
                let from = tile.slice(0, 0, rows, 1)?;
                self.emit("dma_copy", &[("dst", view(&to)), ("src", view(&from))])?;
                at += rows * width;
            } else {
                let to = flat.slice(0, at, at + rest, 1)?.reshape(&[1, rest])?;
                let from = tile.slice(0, 0, 1, 1)?.slice(1, 0, rest, 1)?;
                self.emit("dma_copy", &[("dst", view(&to)), ("src", view(&from))])?;
                at += rest;
            }
        }
        Ok(())
    }

    /// Fills a non-contiguous part of a tensor in HBM from a tile of its first rows; `violation` if a row is too long for that.
    fn fill_rows(&mut self, dst: &Tensor, arg: Arg, violation: Violation) -> Result<()> {
        let shape = extents(dst);
        if shape.contains(&0) {
            return Ok(());
        }
        let inner: i64 = shape.iter().skip(2).product();
        if dst.ndim() < 2 || dst.view.indirect.is_some() || inner > FILLED {
            return Err(violation);
        }
        let (rows, columns) = (shape[0].min(i64::from(self.builder.arch().partitions)), shape[1].min(FILLED / inner));
        let mut block = shape.clone();
        (block[0], block[1]) = (rows, columns);
        let tile = self.tile(&block, dst.view.dtype, Space::Sbuf)?;
        self.emit("memset", &[("dst", view(&tile)), ("value", arg)])?;
        for row in (0..shape[0]).step_by(rows as usize) {
            for column in (0..shape[1]).step_by(columns as usize) {
                let (end, last) = (shape[0].min(row + rows), shape[1].min(column + columns));
                let to = dst.slice(0, row, end, 1)?.slice(1, column, last, 1)?;
                let from = tile.slice(0, 0, end - row, 1)?.slice(1, 0, last - column, 1)?;
                self.emit("dma_copy", &[("dst", view(&to)), ("src", view(&from))])?;
            }
        }
        Ok(())
    }

    /// A binary operator with NumPy's broadcasting of tiles of the same rank.
    pub(crate) fn binary(
        &mut self,
        what: &str,
        op: AluOp,
        x: &Operand,
        y: &Operand,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let op_arg = || Arg::Name(nki_isa::names::Named::name(op).into());
        let (x, y) = &match (x, y) {
            (Operand::Tile(a), Operand::Tile(b)) => {
                self.on_chip(what, a)?;
                self.on_chip(what, b)?;
                let (a, b) = self.over_partitions(a, b)?;
                (Operand::Tile(a), Operand::Tile(b))
            }
            _ => (x.clone(), y.clone()),
        };
        let (tile, scalar, reverse) = match (x, y) {
            (Operand::Number(_), Operand::Number(_)) => {
                return Err(Violation::new(
                    "operand-kind",
                    "",
                    format!("nl.{what} of two numbers: at least one must be a tile"),
                )
                .help("use Python operators for numbers"));
            }
            (Operand::Tile(a), Operand::Tile(b)) => {
                // `tensor_scalar` accepts a column of few types; columns of other types are broadcast.
                let suits = |column: &Tensor, other: &Tensor| {
                    let dtype = column.view.dtype;
                    let exact = matches!(dtype, DType::I32 | DType::U32) && matches!(op, AluOp::Add | AluOp::Multiply);
                    dtype == DType::F32 || op.is_bitvec() || exact || column.ndim() != other.ndim()
                };
                if is_column(b, a) && suits(b, a) {
                    (a, y, false)
                } else if is_column(a, b) && suits(a, b) {
                    (b, x, true)
                } else {
                    return self.two_tiles(what, op_arg(), a, b, dtype);
                }
            }
            (Operand::Tile(a), Operand::Number(_)) => (a, y, false),
            (Operand::Number(_), Operand::Tile(b)) => (b, x, true),
        };
        self.on_chip(what, tile)?;
        let operand = match scalar {
            Operand::Tile(t) => view(t),
            Operand::Number(Imm::Int(i)) => Arg::Int(*i),
            Operand::Number(Imm::Float(v)) => Arg::Float(*v),
        };
        let result = match scalar {
            Operand::Tile(t) => tile.view.dtype.promote(t.view.dtype),
            // A comparison "defaults to the input tile dtype" (docstrings), which holds 0 and 1.
            Operand::Number(Imm::Float(_)) if tile.view.dtype.is_int() && !op.is_comparison() => DType::F32,
            Operand::Number(_) => tile.view.dtype,
        };
        let dst = self.like(tile, dtype.unwrap_or(result))?;
        let mut operands = vec![("dst", view(&dst)), ("data", view(tile)), ("op0", op_arg()), ("operand0", operand)];
        if reverse {
            operands.push(("reverse0", Arg::Bool(true)));
        }
        self.emit("tensor_scalar", &operands)?;
        Ok(dst)
    }

    /// Two tiles of the same rank with equal partitions: a tile of one partition is repeated over those of the other.
    pub(super) fn over_partitions(&mut self, a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor)> {
        let (mut sa, mut sb) = (extents(a), extents(b));
        let fit = sa.len() == sb.len() && sa.iter().zip(&sb).all(|(&m, &n)| m == n || m == 1 || n == 1);
        if !fit || sa[0] == sb[0] {
            return Ok((a.clone(), b.clone()));
        }
        let partitions = sa[0].max(sb[0]);
        (sa[0], sb[0]) = (partitions, partitions);
        // The tile that has all partitions stays as it is.
        let one_partition = |t: &Tensor| t.view.partitions() == 1;
        Ok((
            if one_partition(a) { self.broadcast_to(a, &sa, None)? } else { a.clone() },
            if one_partition(b) { self.broadcast_to(b, &sb, None)? } else { b.clone() },
        ))
    }

    fn two_tiles(&mut self, what: &str, op: Arg, a: &Tensor, b: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let shape = common_shape(what, a, b)?;
        let (a, b) = (a.broadcast_to(&shape)?, b.broadcast_to(&shape)?);
        let dst = self.tile(&shape, dtype.unwrap_or(a.view.dtype.promote(b.view.dtype)), Space::Sbuf)?;
        self.emit("tensor_tensor", &[("dst", view(&dst)), ("data1", view(&a)), ("data2", view(&b)), ("op", op)])?;
        Ok(dst)
    }

    fn scalar_op(&mut self, what: &str, x: &Tensor, op: AluOp, by: Arg, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip(what, x)?;
        let dst = self.like(x, dtype.unwrap_or(x.view.dtype))?;
        let op = name(nki_isa::names::Named::name(op));
        self.emit("tensor_scalar", &[("dst", view(&dst)), ("data", view(x)), ("op0", op), ("operand0", by)])?;
        Ok(dst)
    }

    /// `(x op0 a) op1 b` in one instruction.
    fn emit_two_ops(&mut self, dst: &Tensor, x: &Tensor, first: (AluOp, f64), second: (AluOp, f64)) -> Result<()> {
        let op = |op: AluOp| name(nki_isa::names::Named::name(op));
        let operands = [
            ("dst", view(dst)),
            ("data", view(x)),
            ("op0", op(first.0)),
            ("operand0", Arg::Float(first.1)),
            ("op1", op(second.0)),
            ("operand1", Arg::Float(second.1)),
        ];
        self.emit("tensor_scalar", &operands)
    }

    /// A tile with the fractions of `x`, with the values as remainders: that of infinity is NaN. No float from 2^23 has a fraction.
    fn with_fraction(&mut self, what: &str, x: &Tensor) -> Result<Tensor> {
        const WHOLE: f64 = 8_388_608.0;
        self.on_chip(what, x)?;
        if !x.view.dtype.is_float() {
            return Ok(x.clone());
        }
        let dst = self.like(x, DType::F32)?;
        self.emit_two_ops(&dst, x, (AluOp::Max, -WHOLE), (AluOp::Min, WHOLE))?;
        Ok(dst)
    }

    /// A function of one tile.
    pub(crate) fn unary(&mut self, what: &'static str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip(what, x)?;
        let out = dtype.unwrap_or(x.view.dtype);
        match what {
            // With an integer, those of 32 bits stay exact.
            "negative" => self.scalar_op(what, x, AluOp::Multiply, Arg::Int(-1), dtype),
            // "Implemented as XOR with all-ones" and "with 1" (docstrings of nl.invert and nl.logical_not).
            "invert" => self.scalar_op(what, x, AluOp::BitwiseXor, Arg::Int(-1), dtype),
            "logical_not" => self.scalar_op(what, x, AluOp::LogicalXor, Arg::Int(1), dtype),
            // No instruction reads two operands from PSUM: the scalar engine squares tiles there.
            "square" if x.view.space != Space::Psum => {
                let dst = self.like(x, out)?;
                self.emit(
                    "tensor_tensor",
                    &[("dst", view(&dst)), ("data1", view(x)), ("data2", view(x)), ("op", name("multiply"))],
                )?;
                Ok(dst)
            }
            "rsqrt" => {
                // Runs on GpSimd for precision and accepts no PSUM input since 0.5 (migration guide).
                if x.view.space == Space::Psum {
                    return Err(Violation::new("operand-memory", "", "nl.rsqrt reads SBUF only")
                        .help("copy the tile to SBUF, or call nisa.activation(op=nl.rsqrt)"));
                }
                let dst = self.like(x, out)?;
                self.emit(
                    "tensor_scalar",
                    &[
                        ("dst", view(&dst)),
                        ("data", view(x)),
                        ("op0", name("rsqrt")),
                        ("operand0", Arg::Float(0.0)),
                        ("engine", name("gpsimd")),
                    ],
                )?;
                Ok(dst)
            }
            "sin" | "cos" | "tan" => self.trigonometric(what, x, dtype),
            "reciprocal" => {
                let dst = self.like(x, out)?;
                self.emit("reciprocal", &[("dst", view(&dst)), ("data", view(x))])?;
                Ok(dst)
            }
            // x - (x mod 1): the floor modulo of the ALU takes the sign of the divisor.
            "floor" | "trunc" => {
                let op = if what == "floor" { AluOp::Mod } else { AluOp::Fmod };
                let bounded = self.with_fraction(what, x)?;
                let rest = self.scalar_op(what, &bounded, op, Arg::Float(1.0), Some(DType::F32))?;
                self.two_tiles(what, name("subtract"), x, &rest, Some(out))
            }
            // -floor(-x) = x + (-x mod 1)
            "ceil" => {
                let bounded = self.with_fraction(what, x)?;
                let rest = self.like(x, DType::F32)?;
                self.emit_two_ops(&rest, &bounded, (AluOp::Multiply, -1.0), (AluOp::Mod, 1.0))?;
                self.two_tiles(what, name("add"), x, &rest, Some(out))
            }
            _ => {
                let dst = self.like(x, out)?;
                self.emit("activation", &[("dst", view(&dst)), ("op", name(what)), ("data", view(x))])?;
                Ok(dst)
            }
        }
    }
}

/// The error for two tiles whose shapes do not fit.
pub(crate) fn mismatch(what: &str, a: &Tensor, b: &Tensor) -> Violation {
    let (name_a, name_b) = (&a.storage.name, &b.storage.name);
    let message =
        format!("nl.{what} of `{name_a}` of shape {} and `{name_b}` of shape {}", a.shape_text(), b.shape_text());
    Violation::new("shape-mismatch", "", message).help("dimensions must be equal, or 1 in one of the tiles")
}

/// The shape of an operation on two tiles with equal partitions.
pub(super) fn common_shape(what: &str, a: &Tensor, b: &Tensor) -> Result<Vec<i64>> {
    let (sa, sb) = (extents(a), extents(b));
    let mismatch = || mismatch(what, a, b);
    if sa.len() != sb.len() || sa[0] != sb[0] {
        return Err(mismatch());
    }
    sa.iter()
        .zip(&sb)
        .map(|(&m, &n)| {
            if m == n || n == 1 {
                Some(m)
            } else if m == 1 {
                Some(n)
            } else {
                None
            }
        })
        .collect::<Option<_>>()
        .ok_or_else(mismatch)
}
