//! The operations of `nki.language`: their names, and how each is called.

use nki_isa::names::AluOp;

/// How an operation of `nki.language` is called as a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// `nl.add(x, y)`
    Binary(AluOp),
    /// `nl.exp(x)`
    Unary,
    /// Only a name for instructions.
    Name,
}

/// An operation that is a name for instructions and, most of them, a function too.
#[derive(Debug)]
pub(crate) struct Op {
    /// Its name under `nki.language`.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) kind: OpKind,
}

const fn binary(name: &'static str, op: AluOp) -> Op {
    Op { name, kind: OpKind::Binary(op) }
}

const fn unary(name: &'static str) -> Op {
    Op { name, kind: OpKind::Unary }
}

const fn only(name: &'static str) -> Op {
    Op { name, kind: OpKind::Name }
}

/// All operations of `nki.language`.
pub(crate) static OPS: &[Op] = &[
    binary("add", AluOp::Add),
    binary("subtract", AluOp::Subtract),
    binary("multiply", AluOp::Multiply),
    binary("divide", AluOp::Divide),
    binary("maximum", AluOp::Max),
    binary("minimum", AluOp::Min),
    binary("abs_max", AluOp::AbsMax),
    binary("abs_min", AluOp::AbsMin),
    binary("power", AluOp::Power),
    binary("mod", AluOp::Mod),
    binary("fmod", AluOp::Fmod),
    binary("equal", AluOp::Equal),
    binary("not_equal", AluOp::NotEqual),
    binary("greater", AluOp::Greater),
    binary("greater_equal", AluOp::GreaterEqual),
    binary("less", AluOp::Less),
    binary("less_equal", AluOp::LessEqual),
    binary("logical_and", AluOp::LogicalAnd),
    binary("logical_or", AluOp::LogicalOr),
    binary("logical_xor", AluOp::LogicalXor),
    binary("bitwise_and", AluOp::BitwiseAnd),
    binary("bitwise_or", AluOp::BitwiseOr),
    binary("bitwise_xor", AluOp::BitwiseXor),
    binary("left_shift", AluOp::LeftShift),
    binary("right_shift", AluOp::RightShift),
    binary("arithmetic_right_shift", AluOp::ArithmeticRightShift),
    binary("arithmetic_left_shift", AluOp::ArithmeticLeftShift),
    unary("abs"),
    unary("square"),
    unary("invert"),
    unary("logical_not"),
    unary("negative"),
    unary("exp"),
    unary("log"),
    unary("sqrt"),
    unary("rsqrt"),
    unary("reciprocal"),
    unary("tanh"),
    unary("sigmoid"),
    unary("relu"),
    unary("gelu"),
    unary("gelu_apprx_sigmoid"),
    unary("gelu_apprx_tanh"),
    unary("gelu_dx"),
    unary("gelu_apprx_sigmoid_dx"),
    unary("silu"),
    unary("silu_dx"),
    unary("softplus"),
    unary("mish"),
    unary("erf"),
    unary("erf_dx"),
    unary("sin"),
    unary("cos"),
    unary("tan"),
    unary("arctan"),
    unary("sign"),
    unary("floor"),
    unary("ceil"),
    unary("trunc"),
    unary("copy"),
    only("bypass"),
    only("prelu"),
    only("average"),
];
