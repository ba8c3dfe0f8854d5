//! `nl.sin`, `nl.cos`, `nl.tan`: the scalar engine's sine is valid on `[-pi, pi]` only, so the argument is reduced first.
//!
//! Source: "Supported Activation Functions" of the manual, which says that `nl.sin` has additional instructions for that, but not
//! which ones; here `r = x - round(x / 2 pi) * 2 pi` in two steps (Cody and Waite), and `cos x = sin(pi / 2 - |r|)`.

use std::f64::consts::{FRAC_PI_2, TAU};

use nki_isa::DType;
use nki_isa::arg::Arg;

use super::{Lower, name, view};
use crate::build::Result;
use crate::build::tensor::Tensor;

/// `2 pi` as an 8-bit number, whose products with numbers of up to 16 bits are exact in fp32, and the rest.
const TAU_PARTS: [f64; 2] = [6.28125, TAU - 6.28125];

impl Lower<'_> {
    /// `nl.sin`, `nl.cos` or `nl.tan` of a tile on chip.
    pub(super) fn trigonometric(&mut self, what: &str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let out = dtype.unwrap_or(x.view.dtype);
        let rest = self.reduced(x)?;
        match what {
            "sin" => self.engine_sine(&rest, out),
            "cos" => self.cosine(&rest, out),
            _ => {
                let sine = self.engine_sine(&rest, DType::F32)?;
                let cosine = self.cosine(&rest, DType::F32)?;
                self.two_tiles(what, name("divide"), &sine, &cosine, Some(out))
            }
        }
    }

    /// `x` minus its whole turns, within rounding of `[-pi, pi]`.
    fn reduced(&mut self, x: &Tensor) -> Result<Tensor> {
        // A conversion to an integer rounds.
        let turns = self.like(x, DType::I32)?;
        self.emit(
            "tensor_scalar",
            &[("dst", view(&turns)), ("data", view(x)), ("op0", name("multiply")), ("operand0", Arg::Float(1.0 / TAU))],
        )?;
        let mut rest = x.clone();
        for part in TAU_PARTS {
            let next = self.like(x, DType::F32)?;
            self.emit(
                "scalar_tensor_tensor",
                &[
                    ("dst", view(&next)),
                    ("data", view(&turns)),
                    ("op0", name("multiply")),
                    ("operand0", Arg::Float(-part)),
                    ("op1", name("add")),
                    ("operand1", view(&rest)),
                ],
            )?;
            rest = next;
        }
        Ok(rest)
    }

    fn cosine(&mut self, rest: &Tensor, out: DType) -> Result<Tensor> {
        // Near a zero of the cosine the first difference is exact; the rounding error of the fp32 number pi / 2 is added afterwards.
        let high = f64::from(FRAC_PI_2 as f32);
        let shifted = self.scaled(
            rest,
            &[
                ("op0", name("abs")),
                ("operand0", Arg::Float(0.0)),
                ("op1", name("subtract")),
                ("operand1", Arg::Float(high)),
                ("reverse1", Arg::Bool(true)),
            ],
        )?;
        let low = self.scaled(&shifted, &[("op0", name("add")), ("operand0", Arg::Float(FRAC_PI_2 - high))])?;
        self.engine_sine(&low, out)
    }

    fn engine_sine(&mut self, x: &Tensor, out: DType) -> Result<Tensor> {
        let dst = self.like(x, out)?;
        self.emit("activation", &[("dst", view(&dst)), ("op", name("sin")), ("data", view(x))])?;
        Ok(dst)
    }

    /// A tile in fp32: `tensor_scalar` with these operators.
    fn scaled(&mut self, x: &Tensor, operators: &[(&'static str, Arg)]) -> Result<Tensor> {
        let dst = self.like(x, DType::F32)?;
        let mut operands = vec![("dst", view(&dst)), ("data", view(x))];
        operands.extend_from_slice(operators);
        self.emit("tensor_scalar", &operands)?;
        Ok(dst)
    }
}
