//! The scalar engine's activation functions.

use super::alu;
use super::elementary::{
    arctan, erf64, exp, exp64, ln, ln_1p64, normal_cdf64, rsqrt, sigmoid, sigmoid64, sin_engine, tanh,
};
use super::extent;
use super::simd::{Kernel, dispatch};
use crate::names::AluOp;

crate::named_enum! {
    /// An activation function, by its `nki.language` name (manual, `nki-act-func`).
    pub enum ActFn: "activation function" {
        /// `x`
        Copy "copy" | "identity" | "bypass",
        /// `x^2`
        Square "square",
        /// `1 / (1 + e^-x)`
        Sigmoid "sigmoid",
        /// `max(x, 0)`
        Relu "relu",
        /// `x` above 0, else a slope times `x`
        Prelu "prelu" | "lrelu",
        /// `x Phi(x)`
        Gelu "gelu",
        /// Derivative of gelu: `Phi(x) + x phi(x)`
        GeluDx "gelu_dx",
        /// gelu by tanh: `x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
        GeluApprxTanh "gelu_apprx_tanh",
        /// gelu by sigmoid: `x sigmoid(1.702 x)`
        GeluApprxSigmoid "gelu_apprx_sigmoid",
        /// Derivative of gelu by sigmoid.
        GeluApprxSigmoidDx "gelu_apprx_sigmoid_dx",
        /// `x sigmoid(x)`
        Silu "silu" | "swish",
        /// Derivative of silu.
        SiluDx "silu_dx",
        /// Hyperbolic tangent.
        Tanh "tanh",
        /// `ln(1 + e^x)`
        Softplus "softplus",
        /// `x tanh(softplus(x))`
        Mish "mish",
        /// Error function.
        Erf "erf",
        /// Derivative of the error function: `2/sqrt(pi) e^(-x^2)`
        ErfDx "erf_dx",
        /// `e^x`
        Exp "exp",
        /// Natural logarithm.
        Log "log",
        /// Sine on `[-pi, pi]`, extrapolated beyond like the engine's.
        Sin "sin",
        /// Inverse tangent.
        Arctan "arctan",
        /// Square root.
        Sqrt "sqrt",
        /// `1 / sqrt(x)`
        Rsqrt "rsqrt",
        /// `1 / x`
        Reciprocal "reciprocal",
        /// -1, 0 or 1.
        Sign "sign",
        /// `|x|`
        Abs "abs",
    }
}

/// The arguments for which the engine's approximation of a function is valid. Source: column "Valid Input Range" of the table of activation
/// functions in the manual (`tbl-act-func`), which says that the engine's results for other arguments are invalid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValidRange {
    /// Lowest argument, or lowest magnitude.
    pub low: f32,
    /// Highest argument, or highest magnitude.
    pub high: f32,
    /// Whether the limits apply to the magnitude, whatever the sign.
    pub either_sign: bool,
    /// As the manual writes it.
    pub text: &'static str,
}

impl ValidRange {
    /// Whether the function is valid for `x`. NaN counts as valid.
    pub fn holds(self, x: f32) -> bool {
        let x = if self.either_sign { x.abs() } else { x };
        x.is_nan() || (self.low <= x && x <= self.high)
    }

    /// Whether some argument of a row is invalid; NaN may count as invalid.
    pub fn excludes_any(self, row: &[f32]) -> bool {
        if self.either_sign {
            extent::any_magnitude_outside(row, extent::magnitude(self.low), extent::magnitude(self.high))
        } else {
            extent::any_outside(row, self.low, self.high.next_up())
        }
    }
}

impl ActFn {
    /// The arguments for which it is valid; `None` if all are.
    pub fn valid_range(self) -> Option<ValidRange> {
        let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
        let between =
            |low, high, text| Some(ValidRange { low: power(low), high: power(high), either_sign: false, text });
        let within = |high, text| Some(ValidRange { low: 0.0, high, either_sign: true, text });
        match self {
            ActFn::Log => between(-64, 64, "[2^-64, 2^64]"),
            ActFn::Sqrt => between(-116, 118, "[2^-116, 2^118]"),
            ActFn::Rsqrt => between(-87, 97, "[2^-87, 2^97]"),
            ActFn::Reciprocal => {
                Some(ValidRange { low: power(-42), high: power(42), either_sign: true, text: "±[2^-42, 2^42]" })
            }
            // The range reduction of `nl.sin` may exceed pi by a rounding error, which is valid: docs/numerics.md has its bound.
            ActFn::Sin => within(3.2, "[-pi, pi]"),
            ActFn::Arctan => within(std::f32::consts::FRAC_PI_2, "[-pi/2, pi/2]"),
            _ => None,
        }
    }
}

/// A function on lanes.
trait Op1: Copy {
    fn eval(self, x: f32) -> f32;
}

macro_rules! functions {
    ($($Name:ident = |$x:ident| $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $Name;
            impl Op1 for $Name {
                #[inline(always)]
                fn eval(self, $x: f32) -> f32 { $body }
            }
        )*
    };
}

/// [`functions`] in double precision, rounded once.
macro_rules! functions64 {
    ($($Name:ident = |$x:ident| $body:expr;)*) => {
        functions! { $($Name = |x| { let $x = f64::from(x); ($body) as f32 };)* }
    };
}

functions! {
    Square = |x| x * x;
    Sigmoid = |x| sigmoid(x);
    GeluApprxSigmoid = |x| times(x, sigmoid(1.702 * x));
    Silu = |x| times(x, sigmoid(x));
    Tanh = |x| tanh(x);
    Exp = |x| exp(x);
    Log = |x| ln(x);
    Sin = |x| sin_engine(x);
    Arctan = |x| arctan(x);
    Sqrt = |x| x.sqrt();
    Rsqrt = |x| rsqrt(x);
    Reciprocal = |x| 1.0 / x;
    Sign = |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
    Abs = |x| x.abs();
}

const FRAC_2_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI;
/// `1 / sqrt(2 pi)`.
const PHI_0: f64 = 0.398_942_280_401_432_7;
/// `2 sqrt(2/pi)`.
const GELU_TANH: f64 = 1.595_769_121_605_730_7;

functions64! {
    Gelu = |x| if x < -16.0 { -0.0 } else { x * normal_cdf64(x) };
    GeluDx = |x| normal_cdf64(x) + clamp(x) * PHI_0 * exp64(-0.5 * clamp(x) * clamp(x));
    // (1 + tanh u) / 2 = sigmoid(2 u)
    GeluApprxTanh = |x| if x < -16.0 { -0.0 } else {
        x * sigmoid64(GELU_TANH * (0.044_715 * x * x).mul_add(x, x))
    };
    GeluApprxSigmoidDx = |x| sigmoid_product_dx(x, 1.702);
    SiluDx = |x| sigmoid_product_dx(x, 1.0);
    Softplus = |x| (if x > 0.0 { x } else { 0.0 }) + ln_1p64(exp64(-x.abs()));
    // With e = e^x: tanh(ln(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2); at 40 it is 1 to double precision.
    Mish = |x| {
        let e = exp64(if x > 40.0 { 40.0 } else { x });
        let n = e * (e + 2.0);
        (if x < -200.0 { -0.0 } else { x }) * (n / (n + 2.0))
    };
    Erf = |x| erf64(x);
    ErfDx = |x| FRAC_2_SQRT_PI * exp64(-x * x);
}

/// Avoids products of infinity and zero; NaN is preserved.
#[inline(always)]
fn clamp(x: f64) -> f64 {
    let x = if x > 64.0 { 64.0 } else { x };
    if x < -64.0 { -64.0 } else { x }
}

/// `x * factor` for a factor that falls to 0 faster than `x` grows: -inf times 0 is 0.
#[inline(always)]
fn times(x: f32, factor: f32) -> f32 {
    let x = if x < -1e4 { -0.0 } else { x };
    x * factor
}

/// Derivative of `x sigmoid(k x)`.
#[inline(always)]
fn sigmoid_product_dx(x: f64, k: f64) -> f64 {
    let x = if x > 1000.0 { 1000.0 } else { x };
    let x = if x < -1000.0 { -1000.0 } else { x };
    let s = sigmoid64(k * x);
    // 1 - s as the sigmoid of the opposite argument: no cancellation.
    s * (k * x).mul_add(sigmoid64(-k * x), 1.0)
}

#[derive(Clone, Copy)]
struct Prelu(f32);
impl Op1 for Prelu {
    #[inline(always)]
    fn eval(self, x: f32) -> f32 {
        // Select the factor, not the result: selecting results in place would compile to a branch.
        x * if x < 0.0 { self.0 } else { 1.0 }
    }
}

/// One element, out of line, so that the baseline is compiled once per function.
#[inline(never)]
fn eval_one<F: Op1>(f: F, x: f32) -> f32 {
    f.eval(x)
}

struct Map<'a, F> {
    f: F,
    row: &'a mut [f32],
}

impl<F: Op1> Kernel for Map<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let f = self.f;
        for x in self.row.iter_mut() {
            *x = f.eval(*x);
        }
    }
    fn run_baseline(self) {
        for x in self.row.iter_mut() {
            *x = eval_one(self.f, *x);
        }
    }
}

/// Applies `f` to every element of `row`. `slope` is the slope of [`ActFn::Prelu`] for negative inputs.
pub fn apply(f: ActFn, slope: f32, row: &mut [f32]) {
    macro_rules! run {
        ($F:expr) => {
            dispatch(Map { f: $F, row })
        };
    }
    match f {
        ActFn::Copy => {}
        ActFn::Square => run!(Square),
        ActFn::Sigmoid => run!(Sigmoid),
        ActFn::Relu => alu::apply_in_place(AluOp::Relu, false, row, alu::Rhs::One(0.0)),
        ActFn::Prelu => run!(Prelu(slope)),
        ActFn::Gelu => run!(Gelu),
        ActFn::GeluDx => run!(GeluDx),
        ActFn::GeluApprxTanh => run!(GeluApprxTanh),
        ActFn::GeluApprxSigmoid => run!(GeluApprxSigmoid),
        ActFn::GeluApprxSigmoidDx => run!(GeluApprxSigmoidDx),
        ActFn::Silu => run!(Silu),
        ActFn::SiluDx => run!(SiluDx),
        ActFn::Tanh => run!(Tanh),
        ActFn::Softplus => run!(Softplus),
        ActFn::Mish => run!(Mish),
        ActFn::Erf => run!(Erf),
        ActFn::ErfDx => run!(ErfDx),
        ActFn::Exp => run!(Exp),
        ActFn::Log => run!(Log),
        ActFn::Sin => run!(Sin),
        ActFn::Arctan => run!(Arctan),
        ActFn::Sqrt => run!(Sqrt),
        ActFn::Rsqrt => run!(Rsqrt),
        ActFn::Reciprocal => run!(Reciprocal),
        ActFn::Sign => run!(Sign),
        ActFn::Abs => run!(Abs),
    }
}
