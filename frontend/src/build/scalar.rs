//! Scalars (`NkiScalar`): integers that the device computes while the kernel runs.
//!
//! Source: the pages `nki.isa.NkiScalar`, `scalar_load` and `scalar_store` of NKI 0.7, and the guide to scalars.

use nki_isa::names::{Named, ScalarOp};
use nki_isa::{Arg, DType, RegId, Violation};

use super::Result;
use super::lower::Lower;
use super::tensor::Tensor;

/// A scalar: a register that is written once, of a fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// Its register.
    pub(crate) id: RegId,
    /// int32 or int64.
    pub(crate) dtype: DType,
    /// Whether it is the result of a comparison, which nothing accepts.
    pub(crate) comparison: bool,
    /// Whether it is the variable of a loop.
    pub(crate) loop_variable: bool,
}

/// A term of scalar arithmetic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Term {
    /// A scalar.
    Scalar(Scalar),
    /// A number that is known when the kernel is specialised.
    Int(i64),
}

/// The slug of operations that scalars and registers do not support.
pub(crate) const SLUG: &str = "register-arithmetic";

impl Scalar {
    /// The variable of a loop.
    pub(crate) fn loop_variable(id: RegId) -> Self {
        Self { id, dtype: DType::I32, comparison: false, loop_variable: true }
    }

    /// Its register, if `what` accepts a scalar.
    ///
    /// # Errors
    /// `register-arithmetic` for the result of a comparison.
    pub(crate) fn register(self, what: &str) -> Result<RegId> {
        if self.comparison {
            let message = format!("{what} does not accept the result of a scalar comparison");
            return Err(Violation::new(SLUG, "", message)
                .help("nothing on the device can use it: compute a mask with instructions on a tensor"));
        }
        Ok(self.id)
    }

    /// Its register, as a bound of a loop or an operand of an instruction.
    ///
    /// # Errors
    /// As [`Self::register`]; `register-arithmetic` for int64.
    pub(crate) fn narrow(self, what: &str) -> Result<RegId> {
        if self.dtype == DType::I64 {
            let message = format!("{what} takes 32 bits, but this scalar is int64");
            return Err(Violation::new(SLUG, "", message).help(
                "load it from an int32 tensor; int64 is for scalar_offset on HBM, arithmetic and nisa.scalar_store",
            ));
        }
        self.register(what)
    }

    /// Its register, as an offset into `t`.
    ///
    /// # Errors
    /// As [`Self::register`]; `register-arithmetic` for int64 on chip.
    pub(crate) fn offset_into(self, t: &Tensor, what: &str) -> Result<RegId> {
        if self.dtype == DType::I64 && t.on_chip() {
            let message = format!(
                "{what}: an int64 scalar cannot be an offset into `{}`, which is in {}",
                t.storage.name, t.view.space
            );
            return Err(Violation::new(SLUG, "", message)
                .help("on-chip offsets have 32 bits: load the scalar from an int32 tensor"));
        }
        self.register(what)
    }
}

impl Term {
    fn arg(self, dtype: DType, what: &str) -> Result<Arg> {
        match self {
            Term::Scalar(s) if s.dtype != dtype => {
                Err(Violation::new(SLUG, "", format!("{what}: one scalar is {dtype}, the other is {}", s.dtype))
                    .help("scalars are not widened: load both from tensors of the same dtype"))
            }
            Term::Scalar(s) => s.register(what).map(Arg::Register),
            Term::Int(i) if dtype == DType::I32 && i32::try_from(i).is_err() => {
                Err(Violation::new(SLUG, "", format!("{what}: {i} does not fit in the scalar's int32")))
            }
            Term::Int(i) => Ok(Arg::Int(i)),
        }
    }
}

impl Lower<'_> {
    /// `nisa.scalar_load(src)`
    ///
    /// # Errors
    /// As the instruction; `operand-dtype` unless `src` is int32 or int64.
    pub(crate) fn scalar_load(&mut self, src: &Tensor) -> Result<Scalar> {
        let id = self.builder.register();
        self.emit("scalar_load", &[("dst", Arg::Register(id)), ("src", Arg::View(src.view.clone()))])?;
        Ok(Scalar { id, dtype: src.view.dtype, comparison: false, loop_variable: false })
    }

    /// `nisa.scalar_store(dst, value)`
    ///
    /// # Errors
    /// As the instruction; `dtype-mismatch` unless both have one width.
    pub(crate) fn scalar_store(&mut self, dst: &Tensor, value: Scalar) -> Result<()> {
        let id = value.register("nisa.scalar_store")?;
        if dst.view.dtype != value.dtype && matches!(dst.view.dtype, DType::I32 | DType::I64) {
            let message = format!(
                "nisa.scalar_store: `{}` is {}, but the scalar is {}",
                dst.storage.name, dst.view.dtype, value.dtype
            );
            return Err(Violation::new("dtype-mismatch", "dst", message)
                .help("a scalar is stored without conversion: use a tensor of its dtype"));
        }
        self.emit("scalar_store", &[("dst", Arg::View(dst.view.clone())), ("value", Arg::Register(id))])
    }

    /// `x op y`, at least one of which is a scalar.
    ///
    /// # Errors
    /// `register-arithmetic` for scalars of two widths, for the result of a comparison, for a number that does not fit, and for a
    /// comparison of int64.
    pub(crate) fn scalar_compute(&mut self, op: ScalarOp, x: Term, y: Term) -> Result<Scalar> {
        let dtype = match (x, y) {
            (Term::Scalar(s), _) | (_, Term::Scalar(s)) => s.dtype,
            _ => DType::I32,
        };
        let comparison = !matches!(op, ScalarOp::Add | ScalarOp::Subtract | ScalarOp::Multiply);
        if comparison && dtype == DType::I64 {
            return Err(Violation::new(SLUG, "", "int64 scalars cannot be compared")
                .help("scalar comparisons have 32 bits: compute a mask with instructions on a tensor"));
        }
        let what = "scalar arithmetic";
        let (x, y) = (x.arg(dtype, what)?, y.arg(dtype, what)?);
        let id = self.builder.register();
        let operands = [
            ("dst", Arg::Register(id)),
            ("op", Arg::Name(op.name().into())),
            ("x", x),
            ("y", y),
            ("dtype", Arg::Name(dtype.name().into())),
        ];
        self.emit("scalar_compute", &operands)?;
        Ok(Scalar { id, dtype, comparison, loop_variable: false })
    }
}
