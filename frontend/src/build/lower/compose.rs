//! Operations of `nki.language` that require several instructions: reductions, softmax, normalisation, selection, matmul.

use nki_isa::arch::QUADRANT;
use nki_isa::dtype::{f32_to_bits, i64_to_bits};
use nki_isa::inst::vector::tensor_reduce::with_reduced_last;
use nki_isa::names::AluOp;
use nki_isa::{Arg, DType, Imm, Space, Violation};

use super::{Lower, Operand, common_shape, extents, name, view};
use crate::build::Result;
use crate::build::builder::{Request, Sharing};
use crate::build::tensor::{Tensor, tuple_text};

impl Lower<'_> {
    /// The axes of a reduction: the last free dimensions, ascending.
    fn axes(&self, what: &str, x: &Tensor, axis: &[i64]) -> Result<Vec<i64>> {
        let n = x.ndim() as i64;
        let mut axes: Vec<i64> = axis.iter().map(|&a| if a < 0 { a + n } else { a }).collect();
        axes.sort_unstable();
        let last = (n - axes.len() as i64..n).collect::<Vec<_>>();
        if axes.is_empty() || axes != last || axes[0] < 1 {
            return Err(Violation::new(
                "bad-dimension",
                "",
                format!(
                    "nl.{what} over axis {} of `{}` of shape {}: only the last free dimensions can be reduced",
                    tuple_text(axis.iter().copied()),
                    x.storage.name,
                    x.shape_text()
                ),
            )
            .help(with_reduced_last("x", x.ndim(), axis).unwrap_or_else(|| {
                "the partition dimension (0) is reduced by nisa.nc_matmul with ones or after nisa.nc_transpose".into()
            })));
        }
        Ok(axes)
    }

    fn reduced_shape(x: &Tensor, axes: &[i64], keepdims: bool) -> Vec<i64> {
        let mut shape: Vec<i64> = extents(x)[..axes[0] as usize].to_vec();
        if keepdims {
            shape.extend(axes.iter().map(|_| 1));
        } else if shape.len() < 2 {
            // A tile has at least two dimensions.
            shape.push(1);
        }
        shape
    }

    fn tensor_reduce(
        &mut self,
        op: &str,
        x: &Tensor,
        axes: &[i64],
        shape: &[i64],
        dtype: DType,
        negate: bool,
    ) -> Result<Tensor> {
        let dst = self.tile(shape, dtype, Space::Sbuf)?;
        let list = Arg::List(axes.iter().map(|&a| Arg::Int(a)).collect());
        let mut operands = vec![("dst", view(&dst)), ("op", name(op)), ("data", view(x)), ("axis", list)];
        if shape.len() == x.ndim() {
            operands.push(("keepdims", Arg::Bool(true)));
        }
        if negate {
            operands.push(("negate", Arg::Bool(true)));
        }
        self.emit("tensor_reduce", &operands)?;
        Ok(dst)
    }

    /// `nl.sum`, `nl.max`, `nl.min`, `nl.prod`, `nl.all`, `nl.mean`, `nl.var`.
    pub(crate) fn reduce(
        &mut self,
        what: &str,
        x: &Tensor,
        axis: &[i64],
        dtype: Option<DType>,
        keepdims: bool,
    ) -> Result<Tensor> {
        self.on_chip(what, x)?;
        let axes = self.axes(what, x, axis)?;
        let out = dtype.unwrap_or(x.view.dtype);
        let shape = Self::reduced_shape(x, &axes, keepdims);
        let n = axes.iter().map(|&a| i64::from(x.view.dims[a as usize].count)).product::<i64>() as f64;
        let op = match what {
            "sum" => "add",
            "max" => "maximum",
            "min" => "minimum",
            "prod" => "multiply",
            "all" => "logical_and",
            "mean" => {
                let sum = self.tensor_reduce("add", x, &axes, &shape, DType::F32, false)?;
                return self.scalar_op(what, &sum, AluOp::Multiply, Arg::Float(1.0 / n), Some(out));
            }
            _ => {
                let means = Self::reduced_shape(x, &axes, true);
                let sum = self.tensor_reduce("add", x, &axes, &means, DType::F32, false)?;
                let mean = self.scalar_op(what, &sum, AluOp::Multiply, Arg::Float(1.0 / n), Some(DType::F32))?;
                let centred = self.binary(
                    "subtract",
                    AluOp::Subtract,
                    &Operand::Tile(x.clone()),
                    &Operand::Tile(mean),
                    Some(DType::F32),
                )?;
                let squared = self.unary("square", &centred, Some(DType::F32))?;
                let sum = self.tensor_reduce("add", &squared, &axes, &shape, DType::F32, false)?;
                return self.scalar_op(what, &sum, AluOp::Multiply, Arg::Float(1.0 / n), Some(out));
            }
        };
        self.tensor_reduce(op, x, &axes, &shape, out, false)
    }

    /// `nl.softmax` over the last dimensions.
    pub(crate) fn softmax(&mut self, x: &Tensor, axis: &[i64], dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("softmax", x)?;
        let axes = self.axes("softmax", x, axis)?;
        let out = dtype.unwrap_or(x.view.dtype);
        let rows = Self::reduced_shape(x, &axes, true);
        let f32 = DType::F32;
        if axes.len() + 1 == x.ndim() {
            // One value per partition: exp(x - max) and its sum in one pass.
            let column = [rows[0], 1];
            let minus_max = self.tensor_reduce("maximum", x, &axes, &rows, f32, true)?.reshape(&column)?;
            let exp = self.like(x, f32)?;
            let sum = self.tile(&column, f32, Space::Sbuf)?;
            self.emit(
                "activation_reduce",
                &[
                    ("dst", view(&exp)),
                    ("op", name("exp")),
                    ("data", view(x)),
                    ("reduce_op", name("add")),
                    ("reduce_res", view(&sum)),
                    ("bias", view(&minus_max)),
                ],
            )?;
            let scale = self.unary("reciprocal", &sum, Some(f32))?;
            let dst = self.like(x, out)?;
            self.emit(
                "tensor_scalar",
                &[("dst", view(&dst)), ("data", view(&exp)), ("op0", name("multiply")), ("operand0", view(&scale))],
            )?;
            return Ok(dst);
        }
        let max = self.tensor_reduce("maximum", x, &axes, &rows, f32, false)?;
        let shifted = self.two_tiles("softmax", name("subtract"), x, &max, Some(f32))?;
        let exp = self.unary("exp", &shifted, Some(f32))?;
        let sum = self.tensor_reduce("add", &exp, &axes, &rows, f32, false)?;
        let scale = self.unary("reciprocal", &sum, Some(f32))?;
        self.two_tiles("softmax", name("multiply"), &exp, &scale, Some(out))
    }

    /// `nl.rms_norm`: `x / sqrt(sum(x*x)/n + epsilon) * w`.
    pub(crate) fn rms_norm(
        &mut self,
        x: &Tensor,
        w: &Tensor,
        axis: &[i64],
        n: f64,
        epsilon: f64,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        self.on_chip("rms_norm", x)?;
        self.on_chip("rms_norm", w)?;
        let (x, w) = &self.over_partitions(x, w)?;
        common_shape("rms_norm", x, w)?;
        let axes = self.axes("rms_norm", x, axis)?;
        let f32 = DType::F32;
        let rows = Self::reduced_shape(x, &axes, true);
        let squared = self.unary("square", x, Some(f32))?;
        let sum = self.tensor_reduce("add", &squared, &axes, &rows, f32, false)?;
        let mean = self.like(&sum, f32)?;
        self.emit(
            "tensor_scalar",
            &[
                ("dst", view(&mean)),
                ("data", view(&sum)),
                ("op0", name("multiply")),
                ("operand0", Arg::Float(1.0 / n)),
                ("op1", name("add")),
                ("operand1", Arg::Float(epsilon)),
            ],
        )?;
        let scale = self.like(&mean, f32)?;
        self.emit("activation", &[("dst", view(&scale)), ("op", name("rsqrt")), ("data", view(&mean))])?;
        let (x, scale) = (Operand::Tile(x.clone()), Operand::Tile(scale));
        let out = dtype.unwrap_or(match &x {
            Operand::Tile(t) => t.view.dtype,
            Operand::Number(_) => f32,
        });
        let normal = self.binary("rms_norm", AluOp::Multiply, &x, &scale, Some(f32))?;
        self.two_tiles("rms_norm", name("multiply"), &normal, w, Some(out))
    }

    /// `nl.where`.
    pub(crate) fn select(
        &mut self,
        condition: &Tensor,
        x: &Operand,
        y: &Operand,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        self.on_chip("where", condition)?;
        let mut condition = condition.clone();
        for branch in [x, y] {
            let Operand::Tile(t) = branch else { continue };
            self.on_chip("where", t)?;
            condition = self.over_partitions(&condition, t)?.0;
        }
        let mut branch = |of: &Operand| match of {
            Operand::Tile(t) => Ok(Operand::Tile(self.over_partitions(&condition, t)?.1)),
            Operand::Number(v) => Ok(Operand::Number(*v)),
        };
        let (x, y) = (branch(x)?, branch(y)?);
        // As in NumPy, a column as condition selects whole rows.
        let mut shape = extents(&condition);
        for branch in [&x, &y] {
            let Operand::Tile(t) = branch else { continue };
            let other = extents(t);
            if other.len() == shape.len() {
                let free = shape.iter_mut().zip(other).skip(1).filter(|(have, _)| **have == 1);
                free.for_each(|(have, wanted)| *have = wanted);
            }
        }
        let condition = &condition.broadcast_to(&shape)?;
        let out = dtype.unwrap_or(match (&x, &y) {
            (Operand::Tile(t), _) | (_, Operand::Tile(t)) => t.view.dtype,
            _ => condition.view.dtype,
        });
        let dst = self.like(condition, out)?;
        match &y {
            Operand::Tile(t) => {
                let t = t.broadcast_to(&extents(condition))?;
                self.emit("tensor_copy", &[("dst", view(&dst)), ("src", view(&t))])?;
            }
            Operand::Number(v) => self.fill(&dst, *v)?,
        }
        // The predicate must be an unsigned integer; a float condition is compared with 0 first.
        let predicate = match condition.view.dtype {
            DType::U8 | DType::U16 | DType::U32 => condition.clone(),
            _ => self.scalar_op("where", condition, AluOp::NotEqual, Arg::Float(0.0), Some(DType::U8))?,
        };
        let src = match &x {
            Operand::Tile(t) => {
                let t = t.broadcast_to(&extents(condition))?;
                // Source and destination share their dtype.
                view(&if t.view.dtype == out { t } else { self.copy(&t, Some(out))? })
            }
            Operand::Number(Imm::Int(i)) => Arg::Int(*i),
            Operand::Number(Imm::Float(v)) => Arg::Float(*v),
        };
        self.emit("tensor_copy_predicated", &[("dst", view(&dst)), ("src", src), ("predicate", view(&predicate))])?;
        Ok(dst)
    }

    /// A tile in PSUM for what the tensor engine transposes. Where it moves bits (trn2 and later), it writes an 8-bit float as 16 bits, so
    /// the tile is every second element of one of twice the width.
    pub(crate) fn transposed_tile(&mut self, rows: i64, columns: i64, dtype: DType) -> Result<Tensor> {
        let is_wide = dtype.size() == 1 && dtype.is_float() && self.builder.arch().exact_transpose;
        if !is_wide {
            return self.tile(&[rows, columns], dtype, Space::Psum);
        }
        self.tile(&[rows, 2 * columns], dtype, Space::Psum)?.slice(1, 0, 2 * columns, 2)
    }

    /// `nl.transpose`: a 2-D tile to PSUM, on the tensor engine.
    pub(crate) fn transpose(&mut self, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("transpose", x)?;
        if x.ndim() != 2 {
            return Err(Violation::new(
                "bad-shape",
                "",
                format!("nl.transpose takes a 2-D tile; `{}` has shape {}", x.storage.name, x.shape_text()),
            ));
        }
        let s = extents(x);
        let dst = self.transposed_tile(s[1], s[0], x.view.dtype)?;
        self.emit("nc_transpose", &[("dst", view(&dst)), ("data", view(x)), ("engine", name("tensor"))])?;
        match dtype.filter(|d| *d != x.view.dtype) {
            Some(dtype) => self.copy(&dst, Some(dtype)),
            None => Ok(dst),
        }
    }

    /// `nl.matmul`: `x @ y`, or `x.T @ y` with `transpose_x`; fp32 in PSUM.
    pub(crate) fn matmul(&mut self, x: &Tensor, y: &Tensor, transpose_x: bool) -> Result<Tensor> {
        self.on_chip("matmul", x)?;
        self.on_chip("matmul", y)?;
        let (sx, sy) = (extents(x), extents(y));
        let contract = if transpose_x { sx[0] } else { *sx.last().unwrap_or(&0) };
        if sx.len() != 2 || sy.len() != 2 || contract != sy[0] {
            return Err(Violation::new(
                "shape-mismatch",
                "",
                format!(
                    "nl.matmul of {}{} and {}: the contracted sizes are {contract} and {}",
                    x.shape_text(),
                    if transpose_x { " (transposed)" } else { "" },
                    y.shape_text(),
                    sy[0]
                ),
            ));
        }
        let stationary = if transpose_x {
            x.clone()
        } else {
            let turned = self.transpose(x, None)?;
            self.copy(&turned, None)?
        };
        let rows = if transpose_x { sx[1] } else { sx[0] };
        let dst = self.tile(&[rows, sy[1]], DType::F32, Space::Psum)?;
        self.emit("nc_matmul", &[("dst", view(&dst)), ("stationary", view(&stationary)), ("moving", view(y))])?;
        Ok(dst)
    }

    /// `nl.broadcast_to`: a new tile with the values repeated.
    pub(crate) fn broadcast_to(&mut self, x: &Tensor, shape: &[i64], dtype: Option<DType>) -> Result<Tensor> {
        let out = dtype.unwrap_or(x.view.dtype);
        if extents(x) == shape && out == x.view.dtype {
            return Ok(x.clone());
        }
        self.on_chip("broadcast_to", x)?;
        let one_partition = x.view.partitions() == 1 && shape.first().is_some_and(|&p| p > 1);
        if !one_partition {
            let wide = x.broadcast_to(shape)?;
            return self.copy(&wide, Some(out));
        }
        let mut inner = shape.to_vec();
        inner[0] = 1;
        let dst = self.tile(shape, out, Space::Sbuf)?;
        let start = x.storage.start_partition(&x.view);
        if !start.is_multiple_of(QUADRANT) {
            // Only DMA reads a row starting there. The source steps by 0 partitions.
            let mut wide = self.in_sbuf(x)?.broadcast_to(&inner)?;
            wide.view.dims[0] = nki_isa::Dim { stride: 0, count: dst.view.partitions() };
            self.emit("dma_copy", &[("dst", view(&dst)), ("src", view(&wide))])?;
            return Ok(dst);
        }
        // A profile of a kernel with two of these in a loop (DF-MP2 energy of trnblas, trn1) shows neither DMA nor matmuls for them, and as many
        // instructions of the vector engine as shuffles would need.
        let row = if out == x.view.dtype { x.clone() } else { self.copy(x, Some(out))? };
        let src = row.broadcast_to(&inner)?;
        let first = Arg::List(vec![Arg::Int(0); QUADRANT as usize]);
        for at in (0..shape[0]).step_by(QUADRANT as usize) {
            let rows = dst.slice(0, at, shape[0].min(at + i64::from(QUADRANT)), 1)?;
            let operands = [("dst", view(&rows)), ("src", view(&src)), ("shuffle_mask", first.clone())];
            self.emit("nc_stream_shuffle", &operands)?;
        }
        Ok(dst)
    }

    /// `nl.shared_identity_matrix`: an SBUF tile with ones on the diagonal.
    pub(crate) fn identity(&mut self, n: i64, dtype: DType, dst: Option<&Tensor>) -> Result<Tensor> {
        let constant = self.identity_constant(n, dtype)?;
        let dst = match dst {
            Some(t) => t.clone(),
            None => self.tile(&[n, n], dtype, Space::Sbuf)?,
        };
        self.emit("dma_copy", &[("dst", view(&dst)), ("src", view(&constant))])?;
        Ok(dst)
    }

    /// A matrix in HBM with ones on the diagonal.
    pub(crate) fn identity_constant(&mut self, n: i64, dtype: DType) -> Result<Tensor> {
        let size = usize::try_from(n).ok().filter(|&n| n > 0 && n <= self.builder.arch().partitions as usize);
        let Some(size) = size else {
            let message =
                format!("nl.shared_identity_matrix: n is {n}, but must be 1 to {}", self.builder.arch().partitions);
            return Err(Violation::new("partition-size", "", message));
        };
        if dtype.is_packed() {
            let message = format!("nl.shared_identity_matrix of {dtype}: each element holds four numbers");
            return Err(
                Violation::new("unsupported-dtype", "", message).help("use a dtype with one number per element")
            );
        }
        let one = if dtype.is_float() { f32_to_bits(dtype, 1.0) } else { i64_to_bits(dtype, 1) }.to_le_bytes();
        let width = dtype.size();
        let mut data = vec![0u8; size * size * width];
        for i in 0..size {
            let at = (i * size + i) * width;
            data[at..at + width].copy_from_slice(&one[..width]);
        }
        let request = Request {
            name: "identity",
            sharing: Sharing::Order,
            space: Space::SharedHbm,
            shape: &[n, n],
            dtype,
            address: None,
            data: Some(data.into()),
        };
        self.builder.constant(&request, self.site)
    }
}
