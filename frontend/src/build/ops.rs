//! The operations of `nki.language`: their names and call forms.

use nki_isa::names::AluOp;

/// The call form of an operation of `nki.language` as a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// `nl.add(x, y)`
    Binary(AluOp),
    /// `nl.exp(x)`
    Unary,
    /// Only an operand of instructions.
    Name,
}

/// An operation that is an operand of instructions and, in most cases, a function too.
#[derive(Debug)]
pub(crate) struct Op {
    /// Its name under `nki.language`.
    pub(crate) name: &'static str,
    /// Its call form.
    pub(crate) kind: OpKind,
    /// The formula for an element `x`, or for two.
    pub(crate) formula: &'static str,
}

const fn binary(name: &'static str, op: AluOp, formula: &'static str) -> Op {
    Op { name, kind: OpKind::Binary(op), formula }
}

const fn unary(name: &'static str, formula: &'static str) -> Op {
    Op { name, kind: OpKind::Unary, formula }
}

const fn only(name: &'static str, formula: &'static str) -> Op {
    Op { name, kind: OpKind::Name, formula }
}

/// All operations of `nki.language`.
pub(crate) static OPS: &[Op] = &[
    binary("add", AluOp::Add, "x + y"),
    binary("subtract", AluOp::Subtract, "x - y"),
    binary("multiply", AluOp::Multiply, "x * y"),
    binary("divide", AluOp::Divide, "x / y"),
    binary("maximum", AluOp::Max, "the larger of x and y"),
    binary("minimum", AluOp::Min, "the smaller of x and y"),
    binary("abs_max", AluOp::AbsMax, "x if |x| > |y|, else y"),
    binary("abs_min", AluOp::AbsMin, "x if |x| < |y|, else y"),
    binary("power", AluOp::Power, "x to the power of y"),
    binary("mod", AluOp::Mod, "remainder of x / y with the sign of y"),
    binary("fmod", AluOp::Fmod, "remainder of x / y with the sign of x"),
    binary("equal", AluOp::Equal, "1 where x == y, else 0"),
    binary("not_equal", AluOp::NotEqual, "1 where x != y, else 0"),
    binary("greater", AluOp::Greater, "1 where x > y, else 0"),
    binary("greater_equal", AluOp::GreaterEqual, "1 where x >= y, else 0"),
    binary("less", AluOp::Less, "1 where x < y, else 0"),
    binary("less_equal", AluOp::LessEqual, "1 where x <= y, else 0"),
    binary("logical_and", AluOp::LogicalAnd, "1 where x and y are nonzero, else 0"),
    binary("logical_or", AluOp::LogicalOr, "1 where x or y is nonzero, else 0"),
    binary("logical_xor", AluOp::LogicalXor, "1 where exactly one of x and y is nonzero, else 0"),
    binary("bitwise_and", AluOp::BitwiseAnd, "x & y, of integers"),
    binary("bitwise_or", AluOp::BitwiseOr, "x | y, of integers"),
    binary("bitwise_xor", AluOp::BitwiseXor, "x ^ y, of integers"),
    binary("left_shift", AluOp::LeftShift, "x << y, of integers"),
    binary("right_shift", AluOp::RightShift, "x >> y of the bits: zeros come in"),
    binary("arithmetic_right_shift", AluOp::ArithmeticRightShift, "x >> y of integers: copies of the sign come in"),
    binary("arithmetic_left_shift", AluOp::ArithmeticLeftShift, "x << y, of integers"),
    unary("abs", "|x|"),
    unary("square", "x * x"),
    unary("invert", "the complement of each bit of an integer"),
    unary("logical_not", "1 where x is 0, else 0"),
    unary("negative", "-x"),
    unary("exp", "e^x"),
    unary("log", "natural logarithm"),
    unary("sqrt", "square root"),
    unary("rsqrt", "1 / sqrt(x)"),
    unary("reciprocal", "1 / x"),
    unary("tanh", "hyperbolic tangent"),
    unary("sigmoid", "1 / (1 + e^-x)"),
    unary("relu", "max(x, 0)"),
    unary("gelu", "x Phi(x), with the normal distribution function Phi"),
    unary("gelu_apprx_sigmoid", "x sigmoid(1.702 x)"),
    unary("gelu_apprx_tanh", "x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"),
    unary("gelu_dx", "derivative of gelu: Phi(x) + x phi(x)"),
    unary("gelu_apprx_sigmoid_dx", "derivative of gelu_apprx_sigmoid"),
    unary("silu", "x sigmoid(x)"),
    unary("silu_dx", "derivative of silu"),
    unary("softplus", "ln(1 + e^x)"),
    unary("mish", "x tanh(softplus(x))"),
    unary("erf", "error function"),
    unary("erf_dx", "derivative of the error function: 2/sqrt(pi) e^(-x^2)"),
    unary("sin", "sine"),
    unary("cos", "cosine"),
    unary("tan", "tangent"),
    unary("arctan", "inverse tangent"),
    unary("sign", "-1, 0 or 1"),
    unary("floor", "largest integer that is at most x"),
    unary("ceil", "smallest integer that is at least x"),
    unary("trunc", "x without its fraction"),
    unary("copy", "x"),
    only("bypass", "the first operand, unchanged"),
    only("prelu", "x above 0, else a slope times x"),
    only("average", "the sum divided by the number of partitions"),
];
