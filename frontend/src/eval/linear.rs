//! Detects loops over numbers whose iterations are all alike, except for views that move by a
//! constant from each iteration to the next.
//!
//! This holds if every value in the body is the same in all iterations (apart from the tensors that
//! an iteration creates), or is a number that grows by a constant, or is a slice or view bounded by
//! such numbers. The body may therefore call functions that emit an instruction, create a tensor,
//! create a slice, or compute from loop-invariant values; it may add and subtract growing numbers,
//! and multiply them by invariant ones. No other dependence on growing numbers is allowed: no
//! condition, no division, no list index. The kernel's own functions and classes are not followed:
//! a loop that may run their code is not copied.
//!
//! The behaviour of an index at the ends of a tensor (it counts from the end, is clamped, or is an
//! error) is not linear. But each comparison with a bound changes at most once over the iterations.
//! So if it is the same in two iterations, it is the same in all iterations between them.

use super::foreign::Acts;
use super::value::{BuiltinType, Value};
use super::{Frame, Interp};
use crate::syntax::*;

/// Maximum length of a list whose items are inspected.
const MOST_ITEMS: usize = 4096;

/// Number of rounds after which the names of an inner loop must have values of stable kinds.
const ROUNDS: usize = 4;

/// Known facts about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    /// Whether it may vary between iterations.
    grows: bool,
    /// Whether it is a number.
    number: bool,
    /// Whether it is a tensor.
    tensor: bool,
}

impl Known {
    const SAME: Known = Known { grows: false, number: false, tensor: false };

    /// The facts about a value that is one of the two.
    fn or(self, other: Known) -> Known {
        Known {
            grows: self.grows || other.grows,
            number: self.number && other.number,
            tensor: self.tensor && other.tensor,
        }
    }

    /// Succeeds if a condition may depend on it.
    fn decides(self) -> Option<()> {
        (!self.grows && !self.tensor).then_some(())
    }
}

/// The body of a loop.
struct Body<'b, 'f, 'i> {
    interp: &'b mut Interp<'i>,
    frame: &'b Frame<'f>,
    /// The slots that the body assigns anywhere.
    assigned: Vec<Slot>,
    /// The slots that it has assigned so far.
    bound: Vec<(Slot, Known)>,
}

impl Interp<'_> {
    /// Whether the iterations of this loop over numbers are alike up to shifts. False if unknown.
    pub(super) fn is_linear(&mut self, frame: &Frame<'_>, f: &For) -> bool {
        let mut body = Body { interp: self, frame, assigned: Vec::new(), bound: Vec::new() };
        let variable = Known { grows: true, number: true, tensor: false };
        body.assigned_in(&f.body);
        body.targets(&f.target);
        body.bind(&f.target, variable).is_some() && body.block(&f.body).is_some()
    }
}

impl Body<'_, '_, '_> {
    fn assigned_in(&mut self, body: &[Stmt]) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Assign(targets, _) => targets.iter().for_each(|target| self.targets(target)),
                StmtKind::If(arms, orelse) => {
                    arms.iter().for_each(|(_, body)| self.assigned_in(body));
                    self.assigned_in(orelse);
                }
                StmtKind::For(f) => {
                    self.targets(&f.target);
                    self.assigned_in(&f.body);
                }
                // These either assign nothing or are not allowed.
                _ => {}
            }
        }
    }

    fn targets(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(_, slot) => self.assigned.push(*slot),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.targets(item)),
            _ => {}
        }
    }

    fn block(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match &stmt.kind {
            StmtKind::Pass => Some(()),
            StmtKind::Expr(value) => self.value(value).map(drop),
            StmtKind::Assert(test, _) => self.value(test)?.decides(),
            StmtKind::Assign(targets, value) => {
                let known = self.value(value)?;
                targets.iter().try_for_each(|target| self.bind(target, known))
            }
            StmtKind::If(arms, orelse) => self.branches(arms, orelse),
            StmtKind::For(f) if f.orelse.is_empty() => {
                let items = self.value(&f.iter)?;
                items.decides()?;
                for _ in 0..ROUNDS {
                    let before = self.bound.clone();
                    self.bind(&f.target, items)?;
                    self.block(&f.body)?;
                    self.bound = either(&before, &self.bound);
                    if self.bound == before {
                        return Some(());
                    }
                }
                None
            }
            _ => None,
        }
    }

    fn branches(&mut self, arms: &[(Expr, Vec<Stmt>)], orelse: &[Stmt]) -> Option<()> {
        let before = self.bound.clone();
        let mut after: Option<Vec<(Slot, Known)>> = None;
        let all = arms.iter().map(|(test, body)| (Some(test), &body[..])).chain([(None, orelse)]);
        for (test, body) in all {
            let decided = test.map_or(Some(true), |test| self.decided(test));
            if decided == Some(false) {
                continue;
            }
            self.bound.clone_from(&before);
            if let (Some(test), None) = (test, decided) {
                self.value(test)?.decides()?;
            }
            self.block(body)?;
            let now = std::mem::take(&mut self.bound);
            after = Some(after.map_or(now.clone(), |earlier| either(&earlier, &now)));
            if decided == Some(true) {
                break;
            }
        }
        self.bound = after.unwrap_or(before);
        Some(())
    }

    /// The value of a condition that nothing in the body changes.
    fn decided(&mut self, test: &Expr) -> Option<bool> {
        match &test.kind {
            ExprKind::And(items) => self.first_that_is(items, false),
            ExprKind::Or(items) => self.first_that_is(items, true),
            ExprKind::Unary(UnaryOp::Not, operand) => self.decided(operand).map(|is| !is),
            _ => match self.constant(test)? {
                Value::Bool(is) => Some(is),
                Value::Int(n) => Some(n != 0),
                Value::None => Some(false),
                _ => None,
            },
        }
    }

    /// `wanted` if one of the conditions has this value, its opposite if none has. `None` if a
    /// condition before that is undecided.
    fn first_that_is(&mut self, conditions: &[Expr], wanted: bool) -> Option<bool> {
        for condition in conditions {
            if self.decided(condition)? == wanted {
                return Some(wanted);
            }
        }
        Some(!wanted)
    }

    fn bind(&mut self, target: &Expr, known: Known) -> Option<()> {
        match &target.kind {
            ExprKind::Name(_, slot @ Slot::Local(_)) => {
                self.bound.retain(|(bound, _)| bound != slot);
                self.bound.push((*slot, known));
                Some(())
            }
            ExprKind::Tuple(items) if !known.grows && !known.tensor => {
                items.iter().try_for_each(|item| self.bind(item, Known::SAME))
            }
            _ => None,
        }
    }

    /// A loop-invariant value: that of a name from outside the loop, or an attribute of a module or
    /// tensor.
    fn constant(&mut self, expr: &Expr) -> Option<Value> {
        match &expr.kind {
            ExprKind::Name(_, slot) if self.assigned.contains(slot) => return None,
            ExprKind::Name(..) => {}
            ExprKind::Attr(base, _) => match self.constant(base)? {
                Value::Module(_) | Value::NativeModule(_) | Value::Object(_) => {}
                _ => return None,
            },
            ExprKind::Subscript(base, index) => match (self.constant(base)?, &index.kind) {
                (Value::Tuple(_), ExprKind::Int(_)) => {}
                _ => return None,
            },
            ExprKind::Compare(left, rest) => {
                self.literal(left)?;
                rest.iter().try_for_each(|(_, right)| self.literal(right))?;
            }
            _ => return None,
        }
        let (interp, frame) = (&mut *self.interp, self.frame);
        interp.handling_errors(|interp| interp.eval(frame, expr)).ok().filter(is_plain)
    }

    /// Succeeds for a number, a string or None, also as the value of a constant.
    fn literal(&mut self, expr: &Expr) -> Option<()> {
        let simple = |value: &Value| {
            matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_) | Value::None)
        };
        match &expr.kind {
            ExprKind::None | ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => Some(()),
            _ => self.constant(expr).filter(simple).map(drop),
        }
    }

    /// The facts about a value that the body does not change.
    fn known(&self, value: &Value) -> Known {
        let number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        Known { grows: false, number, tensor: self.interp.dialect.is_tensor(value) }
    }

    fn value(&mut self, expr: &Expr) -> Option<Known> {
        if let Some(value) = self.constant(expr) {
            return Some(self.known(&value));
        }
        match &expr.kind {
            ExprKind::None | ExprKind::Str(_) | ExprKind::Ellipsis => Some(Known::SAME),
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) => Some(Known { number: true, ..Known::SAME }),
            ExprKind::Name(_, slot) => self.bound.iter().find(|(bound, _)| bound == slot).map(|(_, known)| *known),
            ExprKind::Attr(base, _) => {
                let base = self.value(base)?;
                (base.tensor && !base.grows).then_some(Known::SAME)
            }
            ExprKind::Subscript(base, index) => {
                let (base, index) = (self.value(base)?, self.value(index)?);
                let grows = base.grows || index.grows;
                (base.tensor || !grows).then_some(Known { grows, tensor: base.tensor, number: false })
            }
            ExprKind::Slice(start, stop, step) => {
                // The length of a slice with a step is not linear.
                let steps = self.all(step.iter().map(|e| &**e))?;
                let ends = self.all([start, stop].into_iter().flatten().map(|e| &**e))?;
                let fits = step.is_none() || !ends.grows && !steps.grows;
                fits.then_some(Known { grows: ends.grows, ..Known::SAME })
            }
            ExprKind::Tuple(items) => Some(Known { grows: self.all(items)?.grows, ..Known::SAME }),
            ExprKind::List(items) => (!self.all(items)?.grows).then_some(Known::SAME),
            ExprKind::Unary(op, operand) => {
                let operand = self.value(operand)?;
                let fits = match op {
                    UnaryOp::Neg | UnaryOp::Pos => operand.number,
                    UnaryOp::Not | UnaryOp::Invert => operand.decides().is_some(),
                };
                fits.then_some(operand)
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let fits = match op {
                    _ if left.tensor || right.tensor => false,
                    _ if !left.grows && !right.grows => true,
                    BinOp::Add | BinOp::Sub => left.number && right.number,
                    BinOp::Mul => left.number && right.number && !(left.grows && right.grows),
                    _ => false,
                };
                let grows = left.grows || right.grows;
                fits.then_some(Known { grows, number: left.number && right.number, tensor: false })
            }
            ExprKind::Compare(left, rest) => {
                self.value(left)?.decides()?;
                self.all(rest.iter().map(|(_, e)| e))?.decides()?;
                Some(Known::SAME)
            }
            ExprKind::And(items) | ExprKind::Or(items) => {
                self.all(items)?.decides()?;
                Some(Known::SAME)
            }
            ExprKind::IfElse(test, then, otherwise) => match self.decided(test) {
                Some(true) => self.value(then),
                Some(false) => self.value(otherwise),
                None => {
                    self.value(test)?.decides()?;
                    Some(self.value(then)?.or(self.value(otherwise)?))
                }
            },
            ExprKind::Call(callee, arguments) => self.call(callee, arguments),
            _ => None,
        }
    }

    /// The combined facts about several values: whether any grows or is a tensor.
    fn all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Option<Known> {
        let mut all = Known::SAME;
        for expr in exprs {
            let known = self.value(expr)?;
            all.grows |= known.grows;
            all.tensor |= known.tensor;
        }
        Some(all)
    }

    fn call(&mut self, callee: &Expr, arguments: &[Argument]) -> Option<Known> {
        let acts = match &self.constant(callee)? {
            Value::Native(native) => match &*native.name {
                "len" | "abs" | "min" | "max" => Acts::Computes,
                _ => self.interp.dialect.acts(native)?,
            },
            Value::Type(BuiltinType::Range | BuiltinType::Int) => Acts::Computes,
            _ => return None,
        };
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            match argument {
                Argument::Positional(value) | Argument::Keyword(_, value) => given.push(value),
                Argument::Star(_) | Argument::DoubleStar(_) => return None,
            }
        }
        let given = self.all(given)?;
        let same = (!given.grows).then_some(());
        match acts {
            // Treat the result as growing, so that no condition may depend on it.
            Acts::Emits => Some(Known { grows: true, ..Known::SAME }),
            Acts::Slices => Some(Known { grows: given.grows, ..Known::SAME }),
            Acts::Makes => same.map(|()| Known { tensor: true, ..Known::SAME }),
            Acts::Computes => same.map(|()| Known { number: true, ..Known::SAME }),
        }
    }
}

/// The facts after one of two blocks, for the names that both bind.
fn either(a: &[(Slot, Known)], b: &[(Slot, Known)]) -> Vec<(Slot, Known)> {
    let in_b = |slot: &Slot| b.iter().find(|(other, _)| other == slot);
    a.iter().filter_map(|(slot, known)| Some((*slot, known.or(in_b(slot)?.1)))).collect()
}

/// Whether the operators and items of a value are those of Python's own types or the dialect's, so
/// that no code of the kernel runs.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Tuple(items) => items.len() <= MOST_ITEMS && items.iter().all(is_plain),
        Value::List(list) => {
            let items = list.items.borrow();
            items.len() <= MOST_ITEMS && items.iter().all(|item| !matches!(item, Value::List(_)) && is_plain(item))
        }
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Ellipsis
        | Value::Range(_)
        | Value::Native(_)
        | Value::Type(_)
        | Value::Module(_)
        | Value::NativeModule(_)
        | Value::Object(_) => true,
        _ => false,
    }
}
