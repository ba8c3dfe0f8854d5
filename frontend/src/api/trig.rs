//! `nl.sin`, `nl.cos`, `nl.tan`: the scalar engine's sine holds on `[-pi, pi]` only, so the argument is reduced first.
//!
//! Source: "Supported Activation Functions" of the manual, which says that `nl.sin` has additional instructions for that. Which ones
//! it does not say; here `k = round(x / 2 pi)`, then `x - k * 2 pi` in two steps (Cody and Waite).

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use nki_isa::DType;
use nki_isa::arg::Arg;

use super::lower::{Lower, name, view};
use super::view::{Result, Tensor};

/// `2 pi` as a number of 8 bits, whose products with up to 16 bits are exact in fp32, and the rest.
const TAU_HIGH: f64 = 6.28125;
const TAU_LOW: f64 = TAU - TAU_HIGH;

impl Lower<'_> {
    /// `nl.sin`, `nl.cos` or `nl.tan` of a tile on chip.
    pub(super) fn trigonometric(&mut self, what: &str, x: &Tensor, dtype: Option<DType>) -> Result<Tensor> {
        let out = dtype.unwrap_or(x.view.dtype);
        match what {
            "sin" => self.sine(x, 0.0, out),
            "cos" => self.sine(x, FRAC_PI_2, out),
            _ => {
                let sine = self.sine(x, 0.0, DType::F32)?;
                let cosine = self.sine(x, FRAC_PI_2, DType::F32)?;
                self.two_tiles(what, name("divide"), &sine, &cosine, Some(out))
            }
        }
    }

    /// `sin(x + shift)`
    fn sine(&mut self, x: &Tensor, shift: f64, out: DType) -> Result<Tensor> {
        // The turns: a conversion to an integer rounds.
        let turns = self.like(x, DType::I32)?;
        let mut operands = vec![
            ("dst", view(&turns)),
            ("data", view(x)),
            ("op0", name("multiply")),
            ("operand0", Arg::Float(1.0 / TAU)),
        ];
        if shift != 0.0 {
            operands.extend([("op1", name("add")), ("operand1", Arg::Float(shift / TAU))]);
        }
        self.emit("tensor_scalar", &operands)?;
        let mut rest = x.clone();
        for part in [TAU_HIGH, TAU_LOW] {
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
        if shift != 0.0 {
            rest = self.two_scalars(&rest, "add", shift, None)?;
        }
        // A rounding may have left it a little outside.
        let bounded = self.two_scalars(&rest, "minimum", PI, Some(("maximum", -PI)))?;
        let dst = self.like(x, out)?;
        self.emit("activation", &[("dst", view(&dst)), ("op", name("sin")), ("data", view(&bounded))])?;
        Ok(dst)
    }

    /// A tile in fp32 with one or two scalar operations done to it.
    fn two_scalars(&mut self, x: &Tensor, op0: &str, by: f64, second: Option<(&str, f64)>) -> Result<Tensor> {
        let dst = self.like(x, DType::F32)?;
        let mut operands =
            vec![("dst", view(&dst)), ("data", view(x)), ("op0", name(op0)), ("operand0", Arg::Float(by))];
        if let Some((op1, by)) = second {
            operands.extend([("op1", name(op1)), ("operand1", Arg::Float(by))]);
        }
        self.emit("tensor_scalar", &operands)?;
        Ok(dst)
    }
}
