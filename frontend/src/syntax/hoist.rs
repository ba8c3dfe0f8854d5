//! Generators: moves each `yield` out of its expression.
//!
//! A suspended generator resumes at a statement. So a `yield` inside an expression becomes a separate statement before it, whose result
//! is kept in a hidden variable, like everything that Python evaluates before it: `f(a(), (yield b))` becomes
//! `t = a(); u = yield b; f(t, u)`. Operators that may skip an operand become `if` statements.

use nki_diag::Span;

use crate::syntax::*;

/// Rewrites the body of a generator. A `yield` where no statement can precede it, such as a default, stays and is rejected at evaluation.
pub(super) fn body(names: &mut Interner, body: Vec<Stmt>) -> Vec<Stmt> {
    Hoist { names, next: 0 }.block(body)
}

struct Hoist<'n> {
    names: &'n mut Interner,
    /// Number of hidden variables so far.
    next: u32,
}

fn at(kind: StmtKind, span: Span) -> Stmt {
    Stmt { kind, span }
}

fn name(symbol: Symbol, span: Span) -> Expr {
    Expr { kind: ExprKind::Name(symbol, Slot::Unresolved), span }
}

fn assign(target: Expr, value: Expr) -> Stmt {
    let span = value.span;
    at(StmtKind::Assign(vec![target], value), span)
}

/// Whether the value of an expression is independent of the effects of a `yield`.
fn is_constant(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Ellipsis
    )
}

/// Whether an expression contains a `yield` of this function.
fn yields(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Yield(..));
    each_operand(expr, &mut |e| found = found || yields(e));
    found
}

/// Calls `each` with the operands of an expression that are evaluated in the same function.
pub(super) fn each_operand<'e>(expr: &'e Expr, each: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Attr(e, _) | ExprKind::Unary(_, e) | ExprKind::Starred(e) | ExprKind::Walrus(_, e) => each(e),
        ExprKind::Generator(_, e) => each(e),
        ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => {
            each(a);
            each(b);
        }
        ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|e| each(e)),
        ExprKind::Tuple(items)
        | ExprKind::List(items)
        | ExprKind::Set(items)
        | ExprKind::And(items)
        | ExprKind::Or(items) => items.iter().for_each(each),
        ExprKind::Dict(items) => items.iter().for_each(|(key, value)| {
            key.iter().for_each(&mut *each);
            each(value);
        }),
        ExprKind::Compare(left, rest) => {
            each(left);
            rest.iter().for_each(|(_, e)| each(e));
        }
        ExprKind::IfElse(a, b, c) => [a, b, c].into_iter().for_each(|e| each(e)),
        ExprKind::Call(callee, arguments) => {
            each(callee);
            arguments.iter().for_each(|a| match a {
                Argument::Positional(e) | Argument::Keyword(_, e) | Argument::Star(e) | Argument::DoubleStar(e) => {
                    each(e)
                }
            });
        }
        ExprKind::FString(parts) => parts.iter().for_each(|p| {
            if let FPart::Value { expr, .. } = p {
                each(expr);
            }
        }),
        ExprKind::Comp(comp) => comp.clauses.iter().take(1).for_each(|c| each(&c.iter)),
        ExprKind::Yield(value, _) => value.iter().for_each(|e| each(e)),
        ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Ellipsis
        | ExprKind::Name(..)
        | ExprKind::Lambda(_)
        | ExprKind::Unsupported(_) => {}
    }
}

impl Hoist<'_> {
    fn hidden(&mut self) -> Symbol {
        self.next += 1;
        self.names.intern(&format!(".{}", self.next))
    }

    fn block(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            self.stmt(stmt, &mut out);
        }
        out
    }

    fn stmt(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        let span = stmt.span;
        let kind = match stmt.kind {
            StmtKind::Expr(Expr { kind: ExprKind::Yield(value, from), .. }) => {
                let value = value.map(|v| self.expr(*v, out));
                StmtKind::Yield(Box::new(Yield { target: None, value, from }))
            }
            StmtKind::Assign(mut targets, Expr { kind: ExprKind::Yield(value, from), .. })
                if targets.len() == 1 && !yields(&targets[0]) =>
            {
                let value = value.map(|v| self.expr(*v, out));
                StmtKind::Yield(Box::new(Yield { target: targets.pop(), value, from }))
            }
            StmtKind::Expr(e) => StmtKind::Expr(self.expr(e, out)),
            StmtKind::Assign(targets, value) => StmtKind::Assign(targets, self.expr(value, out)),
            StmtKind::AnnAssign(target, annotation, value) => {
                StmtKind::AnnAssign(target, annotation, value.map(|v| self.expr(v, out)))
            }
            StmtKind::AugAssign(target, op, value) if yields(&value) => {
                return self.aug_assign(target, op, value, span, out);
            }
            StmtKind::If(arms, orelse) => self.branches(arms, orelse, out),
            StmtKind::For(f) => {
                let For { target, iter, body, orelse, carried, own, differs } = *f;
                let iter = self.expr(iter, out);
                StmtKind::For(Box::new(For {
                    target,
                    iter,
                    body: self.block(body),
                    orelse: self.block(orelse),
                    carried,
                    own,
                    differs,
                }))
            }
            StmtKind::While(test, body, orelse) if yields(&test) && orelse.is_empty() => {
                let mut inner = Vec::new();
                let (line, test) = (test.span, self.expr(test, &mut inner));
                let ended = Expr { kind: ExprKind::Unary(UnaryOp::Not, Box::new(test)), span: line };
                inner.push(at(StmtKind::If(vec![(ended, vec![at(StmtKind::Break, line)])], Vec::new()), line));
                inner.extend(self.block(body));
                StmtKind::While(Expr { kind: ExprKind::Bool(true), span: line }, inner, Vec::new())
            }
            StmtKind::While(test, body, orelse) => StmtKind::While(test, self.block(body), self.block(orelse)),
            StmtKind::Return(value) => StmtKind::Return(value.map(|v| self.expr(v, out))),
            StmtKind::Raise(value, cause) => StmtKind::Raise(value.map(|v| self.expr(v, out)), cause),
            StmtKind::Assert(test, message) => StmtKind::Assert(self.expr(test, out), message),
            StmtKind::With(items, body) => self.with(items, body, span, out),
            StmtKind::Try(t) => {
                let Try { body, handlers, orelse, finally } = *t;
                let handlers = handlers.into_iter().map(|h| Handler { body: self.block(h.body), ..h }).collect();
                StmtKind::Try(Box::new(Try {
                    body: self.block(body),
                    handlers,
                    orelse: self.block(orelse),
                    finally: self.block(finally),
                }))
            }
            StmtKind::Match(m) => {
                let subject = self.expr(m.subject, out);
                let cases = m.cases.into_iter().map(|c| Case { body: self.block(c.body), ..c }).collect();
                StmtKind::Match(Box::new(Match { subject, cases }))
            }
            other => other,
        };
        out.push(at(kind, span));
    }

    /// `if`: a later test with a `yield` moves into the `else`.
    fn branches(&mut self, mut arms: Vec<(Expr, Vec<Stmt>)>, orelse: Vec<Stmt>, out: &mut Vec<Stmt>) -> StmtKind {
        let split = arms.iter().skip(1).position(|(test, _)| yields(test)).map(|i| i + 1);
        let orelse = match split {
            Some(at_arm) => {
                let rest = arms.split_off(at_arm);
                let span = rest.first().map_or_else(Span::default, |(test, _)| test.span);
                self.block(vec![at(StmtKind::If(rest, orelse), span)])
            }
            None => self.block(orelse),
        };
        let mut tests = Vec::with_capacity(arms.len());
        for (index, (test, body)) in arms.into_iter().enumerate() {
            let test = if index == 0 { self.expr(test, out) } else { test };
            tests.push((test, self.block(body)));
        }
        StmtKind::If(tests, orelse)
    }

    /// `with`: if a context contains a `yield`, the following ones move inside.
    fn with(
        &mut self,
        mut items: Vec<(Expr, Option<Expr>)>,
        body: Vec<Stmt>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> StmtKind {
        let Some(split) = items.iter().skip(1).position(|(context, _)| yields(context)) else {
            if let Some((context, target)) = items.first_mut() {
                let placeholder = Expr { kind: ExprKind::None, span: context.span };
                *context = self.expr(std::mem::replace(context, placeholder), out);
                let _ = target;
            }
            return StmtKind::With(items, self.block(body));
        };
        let rest = items.split_off(split + 1);
        let inner = vec![at(StmtKind::With(rest, body), span)];
        self.with(items, inner, span, out)
    }

    /// `target op= value`: the old value is read before the `yield`.
    fn aug_assign(&mut self, target: Expr, op: BinOp, value: Expr, span: Span, out: &mut Vec<Stmt>) {
        let line = target.span;
        let old = self.hidden();
        // The parts of the target are evaluated once.
        let (read, write) = match target.kind {
            ExprKind::Attr(base, attr) => {
                let base = self.kept(*base, out);
                let part = |base: &Expr| ExprKind::Attr(Box::new(copy_name(base)), attr);
                (part(&base), part(&base))
            }
            ExprKind::Subscript(base, index) => {
                let (base, index) = (self.kept(*base, out), self.kept(*index, out));
                let part = || ExprKind::Subscript(Box::new(copy_name(&base)), Box::new(copy_name(&index)));
                (part(), part())
            }
            ExprKind::Name(symbol, slot) => (ExprKind::Name(symbol, slot), ExprKind::Name(symbol, slot)),
            other => (ExprKind::None, other),
        };
        out.push(assign(name(old, line), Expr { kind: read, span: line }));
        let value = self.expr(value, out);
        out.push(at(StmtKind::AugAssign(name(old, line), op, value), span));
        out.push(assign(Expr { kind: write, span: line }, name(old, line)));
    }

    /// The expression as a hidden variable, which is assigned now.
    fn kept(&mut self, expr: Expr, out: &mut Vec<Stmt>) -> Expr {
        let span = expr.span;
        let value = self.expr(expr, out);
        let hidden = self.hidden();
        out.push(assign(name(hidden, span), value));
        name(hidden, span)
    }

    /// The expression without a `yield`; what must run before it is appended to `out`.
    fn expr(&mut self, expr: Expr, out: &mut Vec<Stmt>) -> Expr {
        if !yields(&expr) {
            return expr;
        }
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Yield(value, from) => {
                let value = value.map(|v| self.expr(*v, out));
                let hidden = self.hidden();
                let target = Some(name(hidden, span));
                out.push(at(StmtKind::Yield(Box::new(Yield { target, value, from })), span));
                return name(hidden, span);
            }
            ExprKind::Attr(e, attr) => ExprKind::Attr(Box::new(self.expr(*e, out)), attr),
            ExprKind::Unary(op, e) => ExprKind::Unary(op, Box::new(self.expr(*e, out))),
            ExprKind::Starred(e) => ExprKind::Starred(Box::new(self.expr(*e, out))),
            ExprKind::Generator(def, e) => ExprKind::Generator(def, Box::new(self.expr(*e, out))),
            ExprKind::Walrus(target, value) => {
                let value = self.kept(*value, out);
                out.push(assign(*target, copy_name(&value)));
                return value;
            }
            ExprKind::Subscript(a, b) => {
                let [a, b] = self.pair(*a, *b, out);
                ExprKind::Subscript(a, b)
            }
            ExprKind::Binary(op, a, b) => {
                let [a, b] = self.pair(*a, *b, out);
                ExprKind::Binary(op, a, b)
            }
            ExprKind::Slice(a, b, c) => {
                let given = [a.is_some(), b.is_some(), c.is_some()];
                let mut parts = self.all([a, b, c].into_iter().flatten().map(|e| *e).collect(), out).into_iter();
                let mut part = |given: bool| if given { parts.next().map(Box::new) } else { None };
                ExprKind::Slice(part(given[0]), part(given[1]), part(given[2]))
            }
            ExprKind::Tuple(items) => ExprKind::Tuple(self.all(items, out)),
            ExprKind::List(items) => ExprKind::List(self.all(items, out)),
            ExprKind::Set(items) => ExprKind::Set(self.all(items, out)),
            ExprKind::Dict(items) => {
                let keyed: Vec<bool> = items.iter().map(|(key, _)| key.is_some()).collect();
                let flat = items.into_iter().flat_map(|(key, value)| key.into_iter().chain([value])).collect();
                let mut parts = self.all(flat, out).into_iter();
                let mut items = Vec::with_capacity(keyed.len());
                for has_key in keyed {
                    let key = if has_key { parts.next() } else { None };
                    items.extend(parts.next().map(|value| (key, value)));
                }
                ExprKind::Dict(items)
            }
            ExprKind::And(items) => return self.skipping(items, true, span, out),
            ExprKind::Or(items) => return self.skipping(items, false, span, out),
            ExprKind::Compare(left, rest) => return self.comparison(*left, rest, span, out),
            ExprKind::IfElse(test, then, otherwise) => {
                let result = self.hidden();
                let test = self.expr(*test, out);
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                let then = self.expr(*then, &mut yes);
                yes.push(assign(name(result, span), then));
                let otherwise = self.expr(*otherwise, &mut no);
                no.push(assign(name(result, span), otherwise));
                out.push(at(StmtKind::If(vec![(test, yes)], no), span));
                return name(result, span);
            }
            ExprKind::Call(callee, arguments) => return self.call(*callee, arguments, span, out),
            ExprKind::FString(parts) => ExprKind::FString(self.fstring(parts, out)),
            ExprKind::Comp(mut comp) => {
                if let Some(first) = comp.clauses.first_mut() {
                    let placeholder = Expr { kind: ExprKind::None, span };
                    first.iter = self.expr(std::mem::replace(&mut first.iter, placeholder), out);
                }
                ExprKind::Comp(comp)
            }
            other => other,
        };
        Expr { kind, span }
    }

    fn pair(&mut self, a: Expr, b: Expr, out: &mut Vec<Stmt>) -> [Box<Expr>; 2] {
        let mut parts = self.all(vec![a, b], out).into_iter().map(Box::new);
        let missing = || Box::new(Expr { kind: ExprKind::None, span: Span::default() });
        [parts.next().unwrap_or_else(missing), parts.next().unwrap_or_else(missing)]
    }

    /// Operands in order: those before the last one with a `yield` are kept in hidden variables.
    fn all(&mut self, items: Vec<Expr>, out: &mut Vec<Stmt>) -> Vec<Expr> {
        let last = items.iter().rposition(yields).unwrap_or(0);
        let mut done = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            done.push(match item.kind {
                _ if index > last || is_constant(&item) => item,
                _ if index == last => self.expr(item, out),
                ExprKind::Starred(inner) => {
                    Expr { kind: ExprKind::Starred(Box::new(self.kept(*inner, out))), span: item.span }
                }
                ExprKind::Slice(a, b, c) => {
                    let mut part = |e: Option<Box<Expr>>| e.map(|e| Box::new(self.kept(*e, out)));
                    Expr { kind: ExprKind::Slice(part(a), part(b), part(c)), span: item.span }
                }
                _ => self.kept(item, out),
            });
        }
        done
    }

    /// `and` (continues while true) and `or`.
    fn skipping(&mut self, items: Vec<Expr>, go_on: bool, span: Span, out: &mut Vec<Stmt>) -> Expr {
        let result = self.hidden();
        let mut rest = Vec::new();
        for (index, item) in items.into_iter().enumerate().rev() {
            let mut block = Vec::new();
            let value = self.expr(item, &mut block);
            block.push(assign(name(result, span), value));
            if !rest.is_empty() {
                let test = name(result, span);
                let test = match go_on {
                    true => test,
                    false => Expr { kind: ExprKind::Unary(UnaryOp::Not, Box::new(test)), span },
                };
                block.push(at(StmtKind::If(vec![(test, std::mem::take(&mut rest))], Vec::new()), span));
            }
            rest = block;
            if index == 0 {
                out.append(&mut rest);
            }
        }
        name(result, span)
    }

    /// `a < b < c`: each operand is evaluated once, and only while the previous comparisons hold.
    fn comparison(&mut self, left: Expr, rest: Vec<(CmpOp, Expr)>, span: Span, out: &mut Vec<Stmt>) -> Expr {
        let result = self.hidden();
        let mut left = self.kept(left, out);
        // Blocks from the outermost comparison inwards.
        let mut blocks: Vec<Vec<Stmt>> = Vec::new();
        for (op, right) in rest {
            let mut block = Vec::new();
            let right = self.kept(right, &mut block);
            let value = ExprKind::Compare(Box::new(left), vec![(op, copy_name(&right))]);
            block.push(assign(name(result, span), Expr { kind: value, span }));
            blocks.push(block);
            left = right;
        }
        let mut inner: Vec<Stmt> = Vec::new();
        for mut block in blocks.into_iter().rev() {
            if !inner.is_empty() {
                let test = name(result, span);
                block.push(at(StmtKind::If(vec![(test, std::mem::take(&mut inner))], Vec::new()), span));
            }
            inner = block;
        }
        out.append(&mut inner);
        name(result, span)
    }

    fn call(&mut self, callee: Expr, arguments: Vec<Argument>, span: Span, out: &mut Vec<Stmt>) -> Expr {
        enum Form {
            Positional,
            Keyword(Symbol),
            Star,
            DoubleStar,
        }
        let mut forms = Vec::with_capacity(arguments.len());
        let mut operands = Vec::with_capacity(arguments.len() + 1);
        // In `base.method(...)`, the base is evaluated before the arguments.
        let method = match callee.kind {
            ExprKind::Attr(base, attr) => {
                operands.push(*base);
                Some((attr, callee.span))
            }
            kind => {
                operands.push(Expr { kind, span: callee.span });
                None
            }
        };
        for argument in arguments {
            let (form, operand) = match argument {
                Argument::Positional(e) => (Form::Positional, e),
                Argument::Keyword(symbol, e) => (Form::Keyword(symbol), e),
                Argument::Star(e) => (Form::Star, e),
                Argument::DoubleStar(e) => (Form::DoubleStar, e),
            };
            forms.push(form);
            operands.push(operand);
        }
        let mut operands = self.all(operands, out).into_iter();
        let callee = operands.next().unwrap_or(Expr { kind: ExprKind::None, span });
        let callee = match method {
            Some((attr, span)) => Expr { kind: ExprKind::Attr(Box::new(callee), attr), span },
            None => callee,
        };
        let arguments = forms.into_iter().zip(operands).map(|(form, e)| match form {
            Form::Positional => Argument::Positional(e),
            Form::Keyword(symbol) => Argument::Keyword(symbol, e),
            Form::Star => Argument::Star(e),
            Form::DoubleStar => Argument::DoubleStar(e),
        });
        Expr { kind: ExprKind::Call(Box::new(callee), arguments.collect()), span }
    }

    fn fstring(&mut self, parts: Vec<FPart>, out: &mut Vec<Stmt>) -> Vec<FPart> {
        let last = parts.iter().rposition(|p| matches!(p, FPart::Value { expr, .. } if yields(expr)));
        let mut done = Vec::with_capacity(parts.len());
        for (index, part) in parts.into_iter().enumerate() {
            done.push(match part {
                FPart::Value { expr, conversion, spec } if last.is_some_and(|last| index <= last) => {
                    FPart::Value { expr: self.kept(expr, out), conversion, spec }
                }
                other => other,
            });
        }
        done
    }
}

/// Another reference to a hidden variable.
fn copy_name(expr: &Expr) -> Expr {
    match expr.kind {
        ExprKind::Name(symbol, _) => name(symbol, expr.span),
        _ => Expr { kind: ExprKind::None, span: expr.span },
    }
}
