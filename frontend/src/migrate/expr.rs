//! Expressions in the current language.

use nki_diag::Span;

use super::kinds::{Kind, children, entries};
use super::{Outcome, Pass, by_hand};
use crate::syntax::{BinOp, CmpOp, Expr, ExprKind, UnaryOp};

impl Pass<'_> {
    /// The text of a span with its expressions rewritten.
    pub(super) fn spliced(&mut self, span: Span, parts: &[&Expr]) -> Outcome<String> {
        let mut parts = parts.to_vec();
        parts.sort_by_key(|e| e.span.start);
        let mut out = String::new();
        let mut at = span.start;
        for part in parts {
            out += &self.text[at as usize..part.span.start as usize];
            out += &self.expr(part)?;
            at = part.span.end;
        }
        Ok(out + &self.text[at as usize..span.end as usize])
    }

    /// An expression whose parts require no preceding statement.
    fn without_instructions(&mut self, expr: &Expr, construct: &str, instead: &str) -> Outcome<String> {
        let hoisted = self.before.len();
        let text = self.spliced(expr.span, &children(expr))?;
        if self.before.len() > hoisted { Err(by_hand(expr.span, construct, instead)) } else { Ok(text) }
    }

    /// An expression in the current language.
    pub(super) fn expr(&mut self, expr: &Expr) -> Outcome<String> {
        match &expr.kind {
            ExprKind::Name(name, _) => {
                if matches!(self.kinds.name(*name), Kind::Index(_) | Kind::Grid(_) | Kind::Mask(_)) {
                    return Err(by_hand(
                        expr.span,
                        "an index tile as a value",
                        "slices; nisa.iota makes a tile of indices",
                    ));
                }
                if let Kind::Tile(tile) = self.kinds.name(*name)
                    && !tile.blocks.is_empty()
                {
                    return Err(by_hand(
                        expr.span,
                        "a table of tiles as a value",
                        "pass the list of tiles and its extents",
                    ));
                }
                Ok(self.kinds.source(expr.span).to_owned())
            }
            ExprKind::Subscript(base, key) => {
                if self.tile(base).is_some() || entries(key).iter().any(|k| self.kinds.frame(k).is_some()) {
                    return Ok(self.place(expr, &[])?.text);
                }
                if matches!(self.kinds.kind(expr), Kind::Index(_) | Kind::Grid(_)) {
                    return Err(by_hand(
                        expr.span,
                        "an index tile as a value",
                        "slices; nisa.iota makes a tile of indices",
                    ));
                }
                self.spliced(expr.span, &[base, key])
            }
            ExprKind::Call(..) => self.call(expr),
            ExprKind::Attr(..) => self.attribute(expr),
            ExprKind::Binary(_, left, right)
                if [left, right].into_iter().any(|e| self.kinds.kind(e) == Kind::Unclear) =>
            {
                let instead = "nl.add(...) and the like if the value is a tile";
                Err(by_hand(expr.span, "an operator on what may be a tile", instead))
            }
            ExprKind::Comp(_) => {
                let instead = "a loop, with the instruction in its body";
                self.without_instructions(expr, "an instruction in a comprehension", instead)
            }
            ExprKind::IfElse(..) => {
                let instead = "an `if` statement, with the instruction in its body";
                self.without_instructions(expr, "an instruction in a conditional expression", instead)
            }
            ExprKind::Binary(op, left, right) => match operation(*op) {
                Some(name) if self.tile(left).is_some() || self.tile(right).is_some() => {
                    self.operator(name, left, right, None)
                }
                _ => self.spliced(expr.span, &[left, right]),
            },
            ExprKind::Compare(left, rest) => match &rest[..] {
                [(op, right)]
                    if let Some(name) = comparison(*op)
                        && (self.tile(left).is_some() || self.tile(right).is_some()) =>
                {
                    self.operator(name, left, right, None)
                }
                _ => self.spliced(expr.span, &children(expr)),
            },
            ExprKind::Unary(UnaryOp::Neg, of) if self.tile(of).is_some() => {
                let of = self.place(of, &[])?.text;
                Ok(format!("{}.negative({of})", self.nl()))
            }
            ExprKind::Unary(UnaryOp::Pos, of) if self.tile(of).is_some() => {
                let of = self.place(of, &[])?.text;
                Ok(format!("{}.copy({of})", self.nl()))
            }
            ExprKind::Unary(UnaryOp::Invert, of) if let Some(tile) = self.tile(of) => self.inverted(expr, of, &tile),
            _ => self.spliced(expr.span, &children(expr)),
        }
    }
}

/// The function of `nki.language` for an operator on tiles.
pub(super) fn operation(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add => "add",
        BinOp::Sub => "subtract",
        BinOp::Mul => "multiply",
        BinOp::Div => "divide",
        BinOp::Pow => "power",
        BinOp::Mod => "mod",
        BinOp::BitAnd => "bitwise_and",
        BinOp::BitOr => "bitwise_or",
        BinOp::BitXor => "bitwise_xor",
        BinOp::LShift => "left_shift",
        BinOp::RShift => "right_shift",
        BinOp::MatMul | BinOp::FloorDiv => return None,
    })
}

/// The function of `nki.language` for a comparison of tiles.
pub(super) fn comparison(op: CmpOp) -> Option<&'static str> {
    Some(match op {
        CmpOp::Lt => "less",
        CmpOp::Le => "less_equal",
        CmpOp::Gt => "greater",
        CmpOp::Ge => "greater_equal",
        CmpOp::Eq => "equal",
        CmpOp::Ne => "not_equal",
        _ => return None,
    })
}
