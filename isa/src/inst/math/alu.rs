//! The vector ALU's operators on rows of fp32.

use super::elementary::pow;
use super::simd::{Kernel, dispatch};
use crate::names::AluOp;

/// The second operand of an operator: a row or one value for all elements.
#[derive(Debug, Clone, Copy)]
pub enum Rhs<'a, T> {
    /// One value per element.
    Row(&'a [T]),
    /// The same value for every element.
    One(T),
}

/// A binary operator on lanes. `eval` must be branch-free to vectorise.
trait Op2: Copy + Default + 'static {
    /// Whether it selects between values. In place, `if c { x } else { y }` becomes a store behind a branch, which does not vectorise.
    const CHOOSES: bool = false;
    fn eval(self, x: f32, y: f32) -> f32;
}

macro_rules! ops {
    ($($Name:ident $($chooses:ident)? = |$x:ident, $y:ident| $body:expr;)*) => {
        $(
            #[derive(Clone, Copy, Default)]
            struct $Name;
            impl Op2 for $Name {
                $(const CHOOSES: bool = stringify!($chooses).len() > 0;)?
                #[inline(always)]
                fn eval(self, $x: f32, $y: f32) -> f32 { $body }
            }
        )*
    };
}

#[inline(always)]
fn truth(b: bool) -> f32 {
    if b { 1.0 } else { 0.0 }
}

/// `max` that propagates NaN, as NumPy's `maximum`: a value computed from unwritten memory must not disappear.
#[inline(always)]
pub(super) fn maximum(x: f32, y: f32) -> f32 {
    if (x > y) | x.is_nan() { x } else { y }
}

/// `min` that propagates NaN.
#[inline(always)]
pub(super) fn minimum(x: f32, y: f32) -> f32 {
    if (x < y) | x.is_nan() { x } else { y }
}

/// Remainder with the sign of `x`, exact as C's `fmod`.
#[inline(always)]
fn fmod(x: f32, y: f32) -> f32 {
    x % y
}

/// Remainder with the sign of `y`, as Python's `%` and NumPy's `mod`.
#[inline(always)]
fn floor_mod(x: f32, y: f32) -> f32 {
    let r = x % y;
    if r == 0.0 {
        0.0f32.copysign(y)
    } else if (r < 0.0) != (y < 0.0) {
        r + y
    } else {
        r
    }
}

ops! {
    Bypass = |x, _y| x;
    Add = |x, y| x + y;
    Subtract = |x, y| x - y;
    Multiply = |x, y| x * y;
    Divide = |x, y| x / y;
    Max chooses = |x, y| maximum(x, y);
    Min chooses = |x, y| minimum(x, y);
    // As in the manual: y unless |x| is larger, even if one of them is NaN.
    AbsMax chooses = |x, y| if x.abs() > y.abs() { x } else { y };
    AbsMin chooses = |x, y| if x.abs() < y.abs() { x } else { y };
    Power chooses = |x, y| pow(x, y);
    Mod chooses = |x, y| floor_mod(x, y);
    Fmod = |x, y| fmod(x, y);
    Equal = |x, y| truth(x == y);
    NotEqual = |x, y| truth(x != y);
    Greater = |x, y| truth(x > y);
    GreaterEqual = |x, y| truth(x >= y);
    Less = |x, y| truth(x < y);
    LessEqual = |x, y| truth(x <= y);
    LogicalAnd = |x, y| truth((x != 0.0) & (y != 0.0));
    LogicalOr = |x, y| truth((x != 0.0) | (y != 0.0));
    LogicalXor = |x, y| truth((x != 0.0) ^ (y != 0.0));
    LogicalNot = |x, _y| truth(x == 0.0);
    Rsqrt = |x, _y| 1.0 / x.sqrt();
    Abs = |x, _y| x.abs();
    Square = |x, _y| x * x;
    Relu chooses = |x, _y| if x < 0.0 { 0.0 } else { x };
    Reciprocal = |x, _y| 1.0 / x;
}

/// The operator with its operands exchanged.
#[derive(Clone, Copy, Default)]
struct Swap<O>(O);

impl<O: Op2> Op2 for Swap<O> {
    const CHOOSES: bool = O::CHOOSES;
    #[inline(always)]
    fn eval(self, x: f32, y: f32) -> f32 {
        self.0.eval(y, x)
    }
}

/// A callback that receives an operator as a type.
trait Visit {
    fn visit<O: Op2>(self, op: O);
}

fn with_op(op: AluOp, reverse: bool, v: impl Visit) {
    macro_rules! sided {
        ($Op:expr) => {
            if reverse { v.visit(Swap($Op)) } else { v.visit($Op) }
        };
    }
    match op {
        AluOp::Bypass => v.visit(Bypass),
        AluOp::Add => v.visit(Add),
        AluOp::Subtract => sided!(Subtract),
        AluOp::Multiply => v.visit(Multiply),
        AluOp::Divide => sided!(Divide),
        AluOp::Max => v.visit(Max),
        AluOp::Min => v.visit(Min),
        AluOp::AbsMax => sided!(AbsMax),
        AluOp::AbsMin => sided!(AbsMin),
        AluOp::Power => sided!(Power),
        AluOp::Mod => sided!(Mod),
        AluOp::Fmod => sided!(Fmod),
        AluOp::Equal => v.visit(Equal),
        AluOp::NotEqual => v.visit(NotEqual),
        AluOp::Greater => sided!(Greater),
        AluOp::GreaterEqual => sided!(GreaterEqual),
        AluOp::Less => sided!(Less),
        AluOp::LessEqual => sided!(LessEqual),
        AluOp::LogicalAnd => v.visit(LogicalAnd),
        AluOp::LogicalOr => v.visit(LogicalOr),
        AluOp::LogicalXor => v.visit(LogicalXor),
        AluOp::LogicalNot => v.visit(LogicalNot),
        AluOp::Rsqrt => v.visit(Rsqrt),
        AluOp::Abs => v.visit(Abs),
        AluOp::Square => v.visit(Square),
        AluOp::Relu => v.visit(Relu),
        AluOp::Reciprocal => v.visit(Reciprocal),
        // Validation keeps bitvec operators on the integer path; here values pass through.
        AluOp::BitwiseAnd
        | AluOp::BitwiseOr
        | AluOp::BitwiseXor
        | AluOp::Invert
        | AluOp::LeftShift
        | AluOp::RightShift
        | AluOp::ArithmeticRightShift
        | AluOp::ArithmeticLeftShift => v.visit(Bypass),
    }
}

struct Map<'a, O> {
    op: O,
    x: &'a [f32],
    y: Rhs<'a, f32>,
    out: &'a mut [f32],
}

impl<O: Op2> Kernel for Map<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Map { op, x, y, out } = self;
        match y {
            Rhs::Row(y) => {
                for ((o, &x), &y) in out.iter_mut().zip(x).zip(y) {
                    *o = op.eval(x, y);
                }
            }
            Rhs::One(y) => {
                for (o, &x) in out.iter_mut().zip(x) {
                    *o = op.eval(x, y);
                }
            }
        }
    }
    fn run_baseline(self) {
        self.out.iter_mut().zip(self.x).for_each(|(o, &x)| *o = x);
        baseline(self.op, self.y, self.out);
    }
}

/// The loop without vector instructions, compiled once per operator.
#[inline(never)]
fn baseline<O: Op2>(op: O, y: Rhs<'_, f32>, row: &mut [f32]) {
    match y {
        Rhs::Row(y) => row.iter_mut().zip(y).for_each(|(x, &y)| *x = eval_one(op, *x, y)),
        Rhs::One(y) => row.iter_mut().for_each(|x| *x = eval_one(op, *x, y)),
    }
}

#[inline(never)]
fn eval_one<O: Op2>(op: O, x: f32, y: f32) -> f32 {
    op.eval(x, y)
}

struct MapInPlace<'a, O> {
    op: O,
    y: Rhs<'a, f32>,
    out: &'a mut [f32],
}

impl<O: Op2> Kernel for MapInPlace<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MapInPlace { op, y, out } = self;
        if !O::CHOOSES {
            match y {
                Rhs::Row(y) => {
                    for (o, &y) in out.iter_mut().zip(y) {
                        *o = op.eval(*o, y);
                    }
                }
                Rhs::One(y) => {
                    for o in out.iter_mut() {
                        *o = op.eval(*o, y);
                    }
                }
            }
            return;
        }
        // Out of place in pieces.
        const PIECE: usize = 128;
        let mut old = [0.0; PIECE];
        for (i, out) in out.chunks_mut(PIECE).enumerate() {
            let old = &mut old[..out.len()];
            old.copy_from_slice(out);
            match y {
                Rhs::Row(y) => {
                    for ((o, &x), &y) in out.iter_mut().zip(&*old).zip(y.get(i * PIECE..).unwrap_or(&[])) {
                        *o = op.eval(x, y);
                    }
                }
                Rhs::One(y) => {
                    for (o, &x) in out.iter_mut().zip(&*old) {
                        *o = op.eval(x, y);
                    }
                }
            }
        }
    }
    fn run_baseline(self) {
        baseline(self.op, self.y, self.out);
    }
}

/// `out = x op y`, or `y op x` if `reverse` (which unary operators ignore).
pub fn apply(op: AluOp, reverse: bool, x: &[f32], y: Rhs<'_, f32>, out: &mut [f32]) {
    struct V<'a>(&'a [f32], Rhs<'a, f32>, &'a mut [f32]);
    impl Visit for V<'_> {
        fn visit<O: Op2>(self, op: O) {
            dispatch(Map { op, x: self.0, y: self.1, out: self.2 });
        }
    }
    with_op(op, reverse, V(x, y, out));
}

/// `row = row op y`, or `y op row` if `reverse`.
pub fn apply_in_place(op: AluOp, reverse: bool, row: &mut [f32], y: Rhs<'_, f32>) {
    struct V<'a>(Rhs<'a, f32>, &'a mut [f32]);
    impl Visit for V<'_> {
        fn visit<O: Op2>(self, op: O) {
            dispatch(MapInPlace { op, y: self.0, out: self.1 });
        }
    }
    with_op(op, reverse, V(y, row));
}

/// The operator as a function, for loops whose steps depend on each other (scans) or that access single elements.
pub fn function(op: AluOp, reverse: bool) -> fn(f32, f32) -> f32 {
    struct V<'a>(&'a mut fn(f32, f32) -> f32);
    impl Visit for V<'_> {
        fn visit<O: Op2>(self, _: O) {
            *self.0 = |x, y| O::default().eval(x, y);
        }
    }
    let mut function: fn(f32, f32) -> f32 = |x, _| x;
    with_op(op, reverse, V(&mut function));
    function
}

/// As [`function`], on several values at once.
pub fn lanes<const N: usize>(op: AluOp, reverse: bool) -> fn([f32; N], [f32; N]) -> [f32; N] {
    struct V<'a, const N: usize>(&'a mut fn([f32; N], [f32; N]) -> [f32; N]);
    impl<const N: usize> Visit for V<'_, N> {
        fn visit<O: Op2>(self, _: O) {
            *self.0 = |x, y| std::array::from_fn(|i| O::default().eval(x[i], y[i]));
        }
    }
    let mut function: fn([f32; N], [f32; N]) -> [f32; N] = |x, _| x;
    with_op(op, reverse, V(&mut function));
    function
}

/// A callback that receives an operator on several values at once.
pub trait WithLanes<const N: usize> {
    /// Its result.
    type Output;
    /// Compiled for each common operator, and once for all others.
    fn with(self, f: impl Fn([f32; N], [f32; N]) -> [f32; N] + Copy + Send + Sync + 'static) -> Self::Output;
}

/// Calls `v` with [`lanes`], so that the common operators of scans are compiled into its loop.
pub fn with_lanes<const N: usize, V: WithLanes<N>>(op: AluOp, reverse: bool, v: V) -> V::Output {
    use std::array::from_fn;
    match op {
        AluOp::Add => v.with(|x, y| from_fn(|i| x[i] + y[i])),
        AluOp::Multiply => v.with(|x, y| from_fn(|i| x[i] * y[i])),
        AluOp::Subtract if !reverse => v.with(|x, y| from_fn(|i| x[i] - y[i])),
        AluOp::Max => v.with(|x, y| from_fn(|i| maximum(x[i], y[i]))),
        AluOp::Min => v.with(|x, y| from_fn(|i| minimum(x[i], y[i]))),
        _ => {
            let slow = lanes(op, reverse);
            v.with(move |x, y| choose_lanes(op, reverse, slow, x, y))
        }
    }
}

/// Selects the operator at each step by a predictable branch, so that the values stay in vector registers. `slow` computes the operators
/// that do not fit there.
#[inline(always)]
fn choose_lanes<const N: usize>(
    op: AluOp,
    reverse: bool,
    slow: fn([f32; N], [f32; N]) -> [f32; N],
    x: [f32; N],
    y: [f32; N],
) -> [f32; N] {
    #[inline(always)]
    fn each<O: Op2, const N: usize>(op: O, x: [f32; N], y: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| op.eval(x[i], y[i]))
    }
    let (a, b) = if reverse { (y, x) } else { (x, y) };
    match op {
        AluOp::Bypass => x,
        AluOp::Subtract => each(Subtract, a, b),
        AluOp::Divide => each(Divide, a, b),
        AluOp::AbsMax => each(AbsMax, a, b),
        AluOp::AbsMin => each(AbsMin, a, b),
        AluOp::Equal => each(Equal, x, y),
        AluOp::NotEqual => each(NotEqual, x, y),
        AluOp::Greater => each(Greater, a, b),
        AluOp::GreaterEqual => each(GreaterEqual, a, b),
        AluOp::Less => each(Less, a, b),
        AluOp::LessEqual => each(LessEqual, a, b),
        AluOp::LogicalAnd => each(LogicalAnd, x, y),
        AluOp::LogicalOr => each(LogicalOr, x, y),
        AluOp::LogicalXor => each(LogicalXor, x, y),
        _ => slow(x, y),
    }
}

/// `out = x` where the mask is non-zero (zero, if `reverse`), else `otherwise`.
pub fn select(mask: &[f32], reverse: bool, x: &[f32], otherwise: f32, out: &mut [f32]) {
    struct K<'a>(&'a [f32], bool, &'a [f32], f32, &'a mut [f32]);
    impl Kernel for K<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let K(mask, reverse, x, otherwise, out) = self;
            for ((o, &x), &m) in out.iter_mut().zip(x).zip(mask) {
                *o = if (m != 0.0) != reverse { x } else { otherwise };
            }
        }
    }
    dispatch(K(mask, reverse, x, otherwise, out));
}

/// One value.
pub fn scalar(op: AluOp, x: f32, y: f32) -> f32 {
    let mut out = [0.0];
    apply(op, false, &[x], Rhs::One(y), &mut out);
    out[0]
}

/// `out = x * scale + bias`, each step rounded to fp32 (the scalar engine's input stage).
pub fn affine(x: &[f32], scale: f32, bias: f32, out: &mut [f32]) {
    struct K<'a>(&'a [f32], f32, f32, &'a mut [f32]);
    impl Kernel for K<'_> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let K(x, scale, bias, out) = self;
            for (o, &x) in out.iter_mut().zip(x) {
                *o = x * scale + bias;
            }
        }
    }
    dispatch(K(x, scale, bias, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Named;

    /// Applies [`with_lanes`] to two sets of lanes.
    struct Apply([f32; 4], [f32; 4]);

    impl WithLanes<4> for Apply {
        type Output = [f32; 4];
        fn with(self, f: impl Fn([f32; 4], [f32; 4]) -> [f32; 4] + Copy + Send + Sync + 'static) -> [f32; 4] {
            f(self.0, self.1)
        }
    }

    #[test]
    fn lanes_have_the_values_of_rows() {
        let special = [0.0, -0.0, 1.5, -1.5, 7.25, -3e-41, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX];
        let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
        for (&op, reverse) in AluOp::ALL.iter().flat_map(|op| [(op, false), (op, true)]) {
            for (x, y) in special.iter().flat_map(|x| special.iter().map(move |y| (*x, *y))) {
                let mut want = [0.0; 4];
                apply(op, reverse, &[x, y, 2.0, x], Rhs::Row(&[y, x, x, -0.5]), &mut want);
                let got = with_lanes(op, reverse, Apply([x, y, 2.0, x], [y, x, x, -0.5]));
                assert_eq!(got.map(bits), want.map(bits), "{op} {reverse}: {x} and {y}");
            }
        }
    }
}
