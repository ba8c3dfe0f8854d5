//! The value-returning operations of `nki.language`, lowered to instructions.
//!
//! Each makes an SBUF tile (PSUM for the tensor engine), emits the instructions that fill it, and returns it. The manual
//! says which instruction only for some; where it is silent the cheapest documented one is taken: ALU operators run as
//! `tensor_tensor` or, with a scalar or one value per partition, as `tensor_scalar`; functions run as `activation`.

use nki_isa::inst::find;
use nki_isa::names::AluOp;
use nki_isa::{Arg, DType, Imm, Space, Violation};

use super::builder::{Builder, Request, Site};
use super::view::{Result, Tensor, shape_text};

/// A tile or a number.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A tensor.
    Tile(Tensor),
    /// A number.
    Number(Imm),
}

/// What lowering works on: the program, the place of the call and the name of the result.
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

/// The extents as the kernel sees them.
pub(crate) fn extents(t: &Tensor) -> Vec<i64> {
    t.view.dims.iter().map(|d| i64::from(d.count)).collect()
}

/// The dtype of a result made of two: the wider; floats win over integers; two different 16-bit floats make float32.
pub(crate) fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    match (a.is_float(), b.is_float()) {
        (true, false) => a,
        (false, true) => b,
        (true, true) if a.size() == b.size() => DType::F32,
        (false, false) if a.size() == b.size() => DType::I32,
        _ => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
    }
}

impl Lower<'_> {
    /// Emits one instruction by its name and operands.
    pub(crate) fn emit(&mut self, instruction: &'static str, operands: &[(&'static str, Arg)]) -> Result<()> {
        let Some(entry) = find(instruction) else {
            return Err(super::bind::not_yet(instruction));
        };
        let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
        for (operand, arg) in operands {
            match entry.schema.position(operand) {
                Some(at) => args[at] = Some(arg.clone()),
                None => {
                    return Err(Violation::new("unsupported-instruction", "", format!("{instruction} has no `{operand}` yet")));
                }
            }
        }
        let inst = (entry.build)(&mut args)?;
        self.builder.emit(inst, self.site)
    }

    /// A new tile for the result.
    pub(crate) fn tile(&mut self, shape: &[i64], dtype: DType, space: Space) -> Result<Tensor> {
        let request = Request { name: self.name, space, shape, dtype, address: None, data: None };
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
            return Err(Violation::new("operand-memory", "", format!("nl.load reads HBM; `{}` is in {}", src.storage.name, src.view.space))
                .help("use nl.copy or nisa.tensor_copy between on-chip tensors"));
        }
        if src.ndim() < 2 {
            return Err(Violation::new(
                "bad-shape",
                "",
                format!("nl.load of `{}` of shape {}: a tile has at least two dimensions", src.storage.name, src.shape_text()),
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
            return Err(Violation::new("operand-memory", "", format!("nl.store writes HBM; `{}` is in {}", dst.storage.name, dst.view.space))
                .help("use nisa.tensor_copy between on-chip tensors"));
        }
        if value.view.space == Space::Psum {
            // DMA does not reach PSUM (migration guide, NKI 0.3).
            let staged = self.copy(value, None)?;
            return self.emit("dma_copy", &[("dst", view(dst)), ("src", view(&staged))]);
        }
        self.emit("dma_copy", &[("dst", view(dst)), ("src", view(value))])
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
        // HBM is filled from a tile of one partition row set, as memset works on chip only.
        let flat = dst.reshape(&[dst.view.elements() as i64])?;
        let total = dst.view.elements() as i64;
        let parts = i64::from(self.builder.arch().partitions);
        let width = (total / parts).clamp(1, 2048);
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

    /// A binary operator with NumPy's broadcasting over free dimensions.
    pub(crate) fn binary(&mut self, what: &str, op: AluOp, x: &Operand, y: &Operand, dtype: Option<DType>) -> Result<Tensor> {
        let op_arg = || Arg::Name(nki_isa::names::Named::name(op).into());
        let (tile, scalar, reverse) = match (x, y) {
            (Operand::Number(_), Operand::Number(_)) => {
                return Err(Violation::new("operand-kind", "", format!("nl.{what} of two numbers: at least one must be a tile"))
                    .help("use Python's operators on numbers"));
            }
            (Operand::Tile(a), Operand::Tile(b)) => {
                self.on_chip(what, a)?;
                self.on_chip(what, b)?;
                let column = |t: &Tensor, of: &Tensor| {
                    t.view.free_elements() == 1 && of.view.free_elements() != 1 && t.view.partitions() == of.view.partitions()
                };
                if column(b, a) {
                    (a, y, false)
                } else if column(a, b) {
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
            Operand::Tile(t) => promote(tile.view.dtype, t.view.dtype),
            Operand::Number(Imm::Float(_)) if tile.view.dtype.is_int() => DType::F32,
            Operand::Number(_) => tile.view.dtype,
        };
        let dst = self.like(tile, dtype.unwrap_or(result))?;
        let mut operands =
            vec![("dst", view(&dst)), ("data", view(tile)), ("op0", op_arg()), ("operand0", operand)];
        if reverse {
            operands.push(("reverse0", Arg::Bool(true)));
        }
        self.emit("tensor_scalar", &operands)?;
        Ok(dst)
    }

    fn two_tiles(&mut self, what: &str, op: Arg, a: &Tensor, b: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let (sa, sb) = (extents(a), extents(b));
        let mismatch = || {
            Violation::new(
                "shape-mismatch",
                "",
                format!(
                    "nl.{what} of `{}` of shape {} and `{}` of shape {}",
                    a.storage.name,
                    shape_text(sa.iter().copied()),
                    b.storage.name,
                    shape_text(sb.iter().copied())
                ),
            )
            .help("shapes must be equal, or 1 in a free dimension of one of them; partitions are not broadcast")
        };
        if sa.len() != sb.len() || sa[0] != sb[0] {
            return Err(mismatch());
        }
        let shape: Vec<i64> = sa
            .iter()
            .zip(&sb)
            .map(|(&m, &n)| if m == n || n == 1 { Some(m) } else if m == 1 { Some(n) } else { None })
            .collect::<Option<_>>()
            .ok_or_else(mismatch)?;
        let (a, b) = (a.broadcast_to(&shape)?, b.broadcast_to(&shape)?);
        let dst = self.tile(&shape, dtype.unwrap_or(promote(a.view.dtype, b.view.dtype)), Space::Sbuf)?;
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

    /// A function of one tile.
    pub(crate) fn unary(&mut self, what: &'static str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip(what, x)?;
        let out = dtype.unwrap_or(x.view.dtype);
        match what {
            "negative" => self.scalar_op(what, x, AluOp::Multiply, Arg::Float(-1.0), dtype),
            // "Implemented as XOR with all-ones" and "with 1" (docstrings of nl.invert and nl.logical_not).
            "invert" => self.scalar_op(what, x, AluOp::BitwiseXor, Arg::Int(-1), dtype),
            "logical_not" => self.scalar_op(what, x, AluOp::LogicalXor, Arg::Int(1), dtype),
            "square" => {
                let dst = self.like(x, out)?;
                self.emit("tensor_tensor", &[("dst", view(&dst)), ("data1", view(x)), ("data2", view(x)), ("op", name("multiply"))])?;
                Ok(dst)
            }
            "rsqrt" => {
                // Runs on GpSimd for precision and takes no PSUM input since 0.5 (migration guide).
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
            "reciprocal" => {
                let dst = self.like(x, out)?;
                self.emit("reciprocal", &[("dst", view(&dst)), ("data", view(x))])?;
                Ok(dst)
            }
            // x - (x mod 1): the floor modulo of the ALU takes the sign of the divisor.
            "floor" | "trunc" => {
                let op = if what == "floor" { AluOp::Mod } else { AluOp::Fmod };
                let rest = self.scalar_op(what, x, op, Arg::Float(1.0), Some(DType::F32))?;
                self.two_tiles(what, name("subtract"), x, &rest, Some(out))
            }
            // -floor(-x) = x + (-x mod 1)
            "ceil" => {
                let minus = self.scalar_op(what, x, AluOp::Multiply, Arg::Float(-1.0), Some(DType::F32))?;
                let rest = self.scalar_op(what, &minus, AluOp::Mod, Arg::Float(1.0), Some(DType::F32))?;
                self.two_tiles(what, name("add"), x, &rest, Some(out))
            }
            _ => {
                let dst = self.like(x, out)?;
                self.emit("activation", &[("dst", view(&dst)), ("op", name(what)), ("data", view(x))])?;
                Ok(dst)
            }
        }
    }

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
                    shape_text(axis.iter().copied()),
                    x.storage.name,
                    x.shape_text()
                ),
            )
            .help("the partition dimension (0) is reduced by nisa.nc_matmul with ones or after nisa.nc_transpose"));
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

    fn tensor_reduce(&mut self, op: &str, x: &Tensor, axes: &[i64], shape: &[i64], dtype: DType, negate: bool) -> Result<Tensor> {
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
    pub(crate) fn reduce(&mut self, what: &str, x: &Tensor, axis: &[i64], dtype: Option<DType>, keepdims: bool) -> Result<Tensor> {
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
                // The result of nl.var "always has keepdims=True shape" (docstring).
                let shape = Self::reduced_shape(x, &axes, true);
                let sum = self.tensor_reduce("add", x, &axes, &shape, DType::F32, false)?;
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
    pub(crate) fn rms_norm(&mut self, x: &Tensor, w: &Tensor, axis: &[i64], n: f64, epsilon: f64, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("rms_norm", x)?;
        self.on_chip("rms_norm", w)?;
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
    pub(crate) fn select(&mut self, condition: &Tensor, x: &Operand, y: &Operand, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("where", condition)?;
        let out = dtype.unwrap_or(match (x, y) {
            (Operand::Tile(t), _) | (_, Operand::Tile(t)) => t.view.dtype,
            _ => condition.view.dtype,
        });
        let dst = self.like(condition, out)?;
        match y {
            Operand::Tile(t) => {
                self.on_chip("where", t)?;
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
        let src = match x {
            Operand::Tile(t) => {
                self.on_chip("where", t)?;
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
        let dst = self.tile(&[s[1], s[0]], dtype.unwrap_or(x.view.dtype), Space::Psum)?;
        self.emit("nc_transpose", &[("dst", view(&dst)), ("data", view(x)), ("engine", name("tensor"))])?;
        Ok(dst)
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
        let wide = x.broadcast_to(shape)?;
        self.copy(&wide, Some(out))
    }

    /// `nl.shared_identity_matrix`: an SBUF tile with ones on the diagonal.
    pub(crate) fn identity(&mut self, n: i64, dtype: DType, dst: Option<&Tensor>) -> Result<Tensor> {
        let size = usize::try_from(n).ok().filter(|&n| n > 0 && n <= self.builder.arch().partitions as usize);
        let Some(size) = size else {
            let message = format!("nl.shared_identity_matrix: n is {n}, must be 1 to {}", self.builder.arch().partitions);
            return Err(Violation::new("partition-size", "", message));
        };
        let one = one_bits(dtype);
        let width = dtype.size();
        let mut data = vec![0u8; size * size * width];
        for i in 0..size {
            let at = (i * size + i) * width;
            data[at..at + width].copy_from_slice(&one[..width]);
        }
        let request = Request {
            name: "identity",
            space: Space::SharedHbm,
            shape: &[n, n],
            dtype,
            address: None,
            data: Some(data.into()),
        };
        let constant = self.builder.constant(&request, self.site)?;
        let dst = match dst {
            Some(t) => t.clone(),
            None => self.tile(&[n, n], dtype, Space::Sbuf)?,
        };
        self.emit("dma_copy", &[("dst", view(&dst)), ("src", view(&constant))])?;
        Ok(dst)
    }
}

/// The bits of 1 in a dtype, little-endian.
fn one_bits(dtype: DType) -> [u8; 4] {
    if dtype.is_int() {
        return 1u32.to_le_bytes();
    }
    match (dtype.size(), dtype.name_text()) {
        (4, _) => 1f32.to_le_bytes(),
        (2, "bfloat16") => 0x3f80u32.to_le_bytes(),
        (2, _) => 0x3c00u32.to_le_bytes(),
        // Sign, exponent, mantissa: e4m3 has bias 7, e5m2 bias 15.
        (_, "float8_e5m2") => 0x3cu32.to_le_bytes(),
        _ => 0x38u32.to_le_bytes(),
    }
}

trait NameText {
    fn name_text(self) -> &'static str;
}

impl NameText for DType {
    fn name_text(self) -> &'static str {
        nki_isa::names::Named::name(self)
    }
}
