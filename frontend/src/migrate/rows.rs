//! Operands of one partition, which the functions of Beta 1 broadcast to all partitions of the other operand.

use nki_diag::Span;

use super::access::{Place, tuple};
use super::call::Parts;
use super::kinds::{Kind, Tile, entries};
use super::language::{binary, is_reduction};
use super::poly::Poly;
use super::{Outcome, Pass, by_hand};
use crate::build::ops::{OPS, OpKind};
use crate::syntax::{Argument, Expr, ExprKind};

/// Whether an expression can be duplicated.
fn is_plain(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Name(..) | ExprKind::Subscript(..))
}

/// Whether a function returns a tile with the partitions of its first operand.
fn keeps_rows(name: &str) -> bool {
    is_reduction(name)
        || matches!(name, "softmax" | "rms_norm" | "copy" | "where" | "dropout" | "static_cast")
        || OPS.iter().any(|o| o.name == name && o.kind == OpKind::Unary)
}

impl Pass<'_> {
    /// The number of partitions of a place, as an expression.
    pub(super) fn rows_of_place(&self, place: &Place) -> Option<String> {
        if let Some(shape) = &place.shape {
            return Some(shape.first()?.to_string());
        }
        match self.kinds.name(self.kinds.names.find(&place.text)?) {
            Kind::Tile(tile) => tile.rows.or_else(|| Some(format!("{}.shape[0]", place.text))),
            _ => None,
        }
    }

    /// The shape of an elementwise operation on two operands, of which one may be no tile, if known.
    pub(super) fn joint_shape(&self, a: &Expr, b: &Expr) -> Option<Vec<Poly>> {
        let shape = |e: &Expr| self.extents(e);
        match (self.tile(a).is_some(), self.tile(b).is_some()) {
            (true, false) => shape(a),
            (false, true) => shape(b),
            _ => {
                let (a, b) = (shape(a)?, shape(b)?);
                let is_repeated =
                    |x: &[Poly], y: &[Poly]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x == y || x.is(1));
                if is_repeated(&b, &a) { Some(a) } else { Some(b.clone()).filter(|_| is_repeated(&a, &b)) }
            }
        }
    }

    /// The shape of a tile, if known, without rewriting its expression.
    pub(super) fn extents(&self, expr: &Expr) -> Option<Vec<Poly>> {
        let tile = self.tile(expr)?;
        if let (ExprKind::Call(callee, args), None) = (&expr.kind, &tile.shape) {
            return self.shape_of_function(&self.kinds.language(callee)?, args);
        }
        let ExprKind::Subscript(base, key) = &expr.kind else { return tile.shape };
        let own = self.tile(base)?;
        if tile.shape.is_some() || !own.blocks.is_empty() {
            return tile.shape;
        }
        let keys = entries(key);
        if own.shape.as_ref().is_some_and(|s| s.len() != keys.len()) {
            return None;
        }
        let extent = |(at, key): (usize, &&Expr)| match &key.kind {
            ExprKind::Slice(None, None, None) => own.shape.as_ref()?.get(at).cloned(),
            ExprKind::Slice(from, Some(to), None) => {
                let from = from.as_ref().map_or(Some(Poly::number(0)), |e| self.kinds.poly(e))?;
                let count = self.kinds.poly(to)?.minus(&from)?;
                (!from.may_be_negative()).then_some(count)
            }
            _ => None,
        };
        keys.iter().enumerate().map(extent).collect()
    }

    /// The number of partitions of a shape expression (`t.shape`).
    pub(super) fn rows_of_shape(&self, shape: &str) -> Option<String> {
        let base = shape.strip_suffix(".shape")?;
        match self.kinds.name(self.kinds.names.find(base)?) {
            Kind::Tile(Tile { shape: Some(shape), .. }) => Some(shape.first()?.to_string()),
            Kind::Tile(tile) => tile.rows.or_else(|| Some(format!("{base}.shape[0]"))),
            _ => None,
        }
    }

    /// The number of partitions of a tile, as an expression, if the source shows it.
    pub(super) fn rows(&self, expr: &Expr) -> Option<String> {
        let tile = self.tile(expr)?;
        if let Some(shape) = &tile.shape {
            return Some(shape.first()?.to_string());
        }
        match &expr.kind {
            ExprKind::Name(..) => tile.rows,
            ExprKind::Subscript(base, key) => {
                let first = *entries(key).get(self.tile(base)?.blocks.len())?;
                if let Some(frame) = self.kinds.frame(first) {
                    return frame.counts.first()?.as_ref().map(ToString::to_string);
                }
                match &first.kind {
                    ExprKind::Slice(None, None, None) | ExprKind::Ellipsis => self.rows(base),
                    ExprKind::Slice(from, Some(to), None) => {
                        let from = from.as_ref().map_or(Some(Poly::number(0)), |e| self.kinds.poly(e))?;
                        self.kinds.poly(to)?.minus(&from).map(|n| n.to_string())
                    }
                    _ => None,
                }
            }
            ExprKind::Binary(_, a, b) => self.rows(a).or_else(|| self.rows(b)),
            ExprKind::Compare(a, rest) => self.rows(a).or_else(|| self.rows(&rest.first()?.1)),
            ExprKind::Unary(_, of) => self.rows(of),
            ExprKind::Call(callee, args) => self.rows_of_call(callee, args),
            _ => None,
        }
    }

    fn rows_of_call(&self, callee: &Expr, args: &[Argument]) -> Option<String> {
        let name = self.kinds.language(callee)?;
        let values: Vec<&Expr> = args
            .iter()
            .filter_map(|a| match a {
                Argument::Positional(e) | Argument::Keyword(_, e) => Some(e),
                _ => None,
            })
            .collect();
        let first = *values.first()?;
        match &*name {
            "load" => self.rows(first).or_else(|| match &first.kind {
                ExprKind::Name(..) => Some(format!("{}.shape[0]", self.kinds.source(first.span))),
                _ => None,
            }),
            name if binary(name) => {
                let second = *values.get(1)?;
                match (self.rows(first), self.rows(second)) {
                    (Some(one), b) if one == "1" && self.tile(second).is_some() => b,
                    (None, b) if self.tile(first).is_none() => b,
                    (a, _) => a,
                }
            }
            name if keeps_rows(name) => self.rows(first),
            _ => None,
        }
    }

    /// Rejects operands with different numbers of dimensions, which Beta 1 pairs by position.
    pub(super) fn check_ranks(&self, name: &str, a: &Expr, b: &Expr) -> Outcome<()> {
        match (self.extents(a), self.extents(b)) {
            (Some(first), Some(second)) if first.len() != second.len() => {
                let what = format!("nl.{name} of tiles with {} and {} dimensions", first.len(), second.len());
                Err(by_hand(b.span, &what, "keepdims=True of a reduction, or a reshape to the same dimensions"))
            }
            _ => Ok(()),
        }
    }

    /// The operand of a function with a single partition, which has to be broadcast: its span, and the target shape.
    pub(super) fn row_and_other(&mut self, name: &str, parts: &Parts<'_>) -> Outcome<Option<(Span, String)>> {
        let (Some(a), Some(b)) = (parts.given.first(), parts.given.get(1)) else { return Ok(None) };
        let (a, b) = (a.value, b.value);
        let weighted = name == "rms_norm";
        if !(binary(name) || weighted) || self.tile(a).is_none() || self.tile(b).is_none() {
            return Ok(None);
        }
        self.check_ranks(name, a, b)?;
        let is_one = |rows: &Option<String>| rows.as_deref() == Some("1");
        let (rows, others) = (self.rows(a), self.rows(b));
        let (row, other) = match (is_one(&rows), is_one(&others)) {
            (true, true) => return Ok(None),
            (false, true) => (b, a),
            (true, false) if !weighted => (a, b),
            _ if rows.is_some() && rows == others || self.kinds.source(a.span) == self.kinds.source(b.span) => {
                return Ok(None);
            }
            // A tile of the same shape is unchanged.
            _ if weighted => (b, a),
            _ => {
                if rows.is_none() || others.is_none() || is_argument(&rows) || is_argument(&others) {
                    let what = format!("nl.{name} of two tiles, of which one may be of a single partition");
                    self.report(by_hand(b.span, &what, "nl.broadcast_to(row, shape of the other tile) if it is"));
                }
                return Ok(None);
            }
        };
        if !is_plain(other) {
            let instead = "assign the operands to names, and nl.broadcast_to(row, other.shape)";
            return Err(by_hand(other.span, &format!("nl.{name} of an expression and a row"), instead));
        }
        if let (Some(own), Some(all)) = (self.extents(row), self.extents(other))
            && own.len() == all.len()
        {
            // Both operands may repeat: (128, 1) and (1, 512).
            let joint: Vec<Poly> = own.into_iter().zip(all).map(|(o, a)| if a.is(1) { o } else { a }).collect();
            return Ok(Some((row.span, tuple(&joint))));
        }
        let place = self.place(other, &[])?;
        Ok(Some((row.span, place.shape.as_ref().map_or_else(|| format!("{}.shape", place.text), |s| tuple(s)))))
    }
}

/// Whether a number of partitions is that of an array of unknown shape.
fn is_argument(rows: &Option<String>) -> bool {
    rows.as_deref().is_some_and(|rows| rows.ends_with(".shape[0]"))
}
