//! Reductions: the current language supports only the last dimensions.

use nki_diag::Span;

use super::access::{Place, tuple};
use super::call::Parts;
use super::language::{binary, is_reduction};
use super::poly::Poly;
use super::{Outcome, Pass, by_hand};
use crate::build::ops::{OPS, OpKind};
use crate::syntax::{Argument, Expr, ExprKind, UnaryOp};

/// The changes to a reduction.
#[derive(Default)]
pub(super) struct Reordered {
    /// The operand, and its new suffix: the reduced dimensions move to the end.
    pub(super) operand: Option<(Span, String)>,
    /// The axes, and their new numbers.
    pub(super) axes: Option<(Span, String)>,
    /// The suffix of the call: `nl.var` now keeps the dimensions that it reduces.
    pub(super) suffix: String,
}

/// Whether a flag of a call is `True`.
fn is_set(parts: &Parts<'_>, keyword: &str) -> bool {
    let is_true = |e: &Expr| matches!(e.kind, ExprKind::Bool(true));
    parts.given.iter().any(|g| g.keyword.as_deref() == Some(keyword) && is_true(g.value))
}

impl Pass<'_> {
    /// The changes to `nl.name(x, axis)`, a reduction.
    pub(super) fn reordered(&mut self, call: &Expr, name: &str, parts: &Parts<'_>) -> Outcome<Reordered> {
        let none = Reordered::default();
        let Some(x) = parts.given.iter().find(|g| g.keyword.as_deref().is_none_or(|k| k == "x")) else {
            return Ok(none);
        };
        let Some(tile) = self.tile(x.value).filter(|_| is_reduction(name)) else { return Ok(none) };
        let Some(axes) = Self::reduced_axes(parts, 1) else { return Ok(none) };
        // Other expressions must not be duplicated.
        let plain = matches!(x.value.kind, ExprKind::Name(..) | ExprKind::Subscript(..));
        let x_place = if plain { Some(self.place(x.value, &[])?) } else { None };
        let shape = x_place.as_ref().and_then(|p| p.shape.clone()).or_else(|| self.extents(x.value)).or(tile.shape);
        let Some(rank) = self.rank(call, shape.as_deref(), &axes) else { return Ok(none) };
        let keeps = is_set(parts, "keepdims");
        let reduced: Vec<usize> =
            (0..rank).filter(|&at| axes.iter().any(|&a| a == at as i64 || a + rank as i64 == at as i64)).collect();
        let left: Vec<usize> = (0..rank).filter(|at| !reduced.contains(at)).collect();
        let mut out = Reordered::default();
        if Self::check_axes(call, rank, &axes).is_err() {
            if keeps || reduced.contains(&0) {
                Self::check_axes(call, rank, &axes)?;
            }
            let order: Vec<String> = left.iter().chain(&reduced).map(ToString::to_string).collect();
            out.operand = Some((x.value.span, format!(".permute(({}))", order.join(", "))));
            let last: Vec<Poly> = (left.len()..rank).map(|at| Poly::number(at as i64)).collect();
            let text = if let [one] = &last[..] { one.to_string() } else { tuple(&last) };
            out.axes = Self::axis_argument(parts, 1).map(|e| (e.span, text));
        }
        if name == "var" && !keeps && rank > 2 {
            let extent = |at: usize| match (&shape, &x_place) {
                (Some(shape), _) => Some(shape[at].clone()),
                (None, Some(place)) => Some(Poly::atom(&format!("{}.shape[{at}]", place.text), true)),
                _ => None,
            };
            let Some(mut kept) = left.iter().map(|&at| extent(at)).collect::<Option<Vec<Poly>>>() else {
                let instead = "nl.var(...).reshape(...): nl.var keeps the dimensions that it reduces";
                return Err(by_hand(call.span, "nl.var of a tile whose shape is not known", instead));
            };
            if kept.len() == 1 {
                kept.push(Poly::number(1));
            }
            out.suffix = format!(".reshape({})", tuple(&kept));
        }
        Ok(out)
    }

    /// Rejects `nisa.tensor_reduce` over dimensions other than the last ones.
    pub(super) fn check_reduction(
        &mut self,
        call: &Expr,
        places: &[(String, Place)],
        parts: &Parts<'_>,
    ) -> Outcome<()> {
        let data = places.iter().find(|p| p.0 == "data").and_then(|p| p.1.shape.clone());
        let Some(axes) = Self::reduced_axes(parts, 2) else { return Ok(()) };
        match self.rank(call, data.as_deref(), &axes) {
            Some(rank) => Self::check_axes(call, rank, &axes),
            None => Ok(()),
        }
    }

    /// The number of dimensions of a reduction's operand: if its shape is unknown, the number with which the reduced ones are the last.
    pub(super) fn rank(&mut self, call: &Expr, shape: Option<&[Poly]>, axes: &[i64]) -> Option<usize> {
        if let Some(shape) = shape {
            return Some(shape.len());
        }
        let highest = *axes.iter().max()?;
        if axes.iter().any(|&a| a <= 0) {
            return None;
        }
        if highest == 1 {
            let instead = "if it has, move the reduced one to the end: t.permute((0, 2, 1))";
            self.report(by_hand(call.span, "a reduction of a tile that may have more than 2 dimensions", instead));
        }
        Some(highest as usize + 1)
    }

    fn axis_argument<'e>(parts: &Parts<'e>, position: usize) -> Option<&'e Expr> {
        let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some("axis"));
        named.or(parts.given.get(position).filter(|g| g.keyword.is_none())).map(|g| g.value)
    }

    /// The axes of a reduction as numbers; `position` is that of the argument.
    pub(super) fn reduced_axes(parts: &Parts<'_>, position: usize) -> Option<Vec<i64>> {
        numbers(Self::axis_argument(parts, position)?)
    }

    /// Rejects a reduction of a tile of `rank` dimensions over others than the last ones, which the current language does not support.
    pub(super) fn check_axes(call: &Expr, rank: usize, axes: &[i64]) -> Outcome<()> {
        let rank = rank as i64;
        let is_last = |at: i64| axes.iter().any(|&a| a == at || a + rank == at);
        if (1..rank).skip_while(|&at| !is_last(at)).all(is_last) {
            return Ok(());
        }
        let instead = "move the dimensions to the end before: t.permute((0, 2, 1))";
        Err(by_hand(call.span, "a reduction of dimensions that are not the last", instead))
    }

    /// The shape of the result of `nisa.tensor_reduce`.
    pub(super) fn reduced(&self, call: &Expr, data: &Place, parts: &Parts<'_>) -> Outcome<Vec<Poly>> {
        let refuse =
            || by_hand(call.span, "the shape of a reduction", "make the tile with nl.ndarray and pass it as dst=");
        let axes = Self::reduced_axes(parts, 2).ok_or_else(refuse)?;
        let kept = is_set(parts, "keepdims");
        let Some(shape) = &data.shape else {
            // Two dimensions: the number of elements is checked at run time.
            return match axes[..] {
                [1 | -1] => Ok(vec![Poly::atom(&format!("{}.shape[0]", data.text), true), Poly::number(1)]),
                _ => Err(refuse()),
            };
        };
        Ok(left_of(shape, &axes, kept))
    }

    /// The shape of the result of a function of `nl`, if the source shows it.
    pub(super) fn shape_of_function(&self, name: &str, args: &[Argument]) -> Option<Vec<Poly>> {
        let at = |keyword: &str, position: usize| {
            let named = args.iter().find_map(|a| match a {
                Argument::Keyword(name, e) if &**self.kinds.names.name(*name) == keyword => Some(e),
                _ => None,
            });
            named.or_else(|| match args.get(position) {
                Some(Argument::Positional(e)) => Some(e),
                _ => None,
            })
        };
        if binary(name) {
            return self.joint_shape(at("x", 0)?, at("y", 1)?);
        }
        let x = at("x", 0).or_else(|| at("src", 0))?;
        if is_reduction(name) {
            let kept = at("keepdims", usize::MAX).is_some_and(|e| matches!(e.kind, ExprKind::Bool(true)));
            return Some(left_of(&self.extents(x)?, &numbers(at("axis", 1)?)?, kept));
        }
        let is_unary = OPS.iter().any(|o| o.name == name && o.kind == OpKind::Unary);
        if is_unary || name == "softmax" { self.extents(x) } else { None }
    }
}

/// The shape after a reduction: at least two dimensions.
fn left_of(shape: &[Poly], axes: &[i64], kept: bool) -> Vec<Poly> {
    let rank = shape.len() as i64;
    let gone = |at: i64| axes.iter().any(|a| *a == at || a + rank == at);
    let mut out: Vec<Poly> = (0..)
        .zip(shape)
        .filter(|(at, _)| kept || !gone(*at))
        .map(|(at, n)| if gone(at) { Poly::number(1) } else { n.clone() })
        .collect();
    if out.len() == 1 {
        out.push(Poly::number(1));
    }
    out
}

/// The numbers of an argument that names axes.
fn numbers(axis: &Expr) -> Option<Vec<i64>> {
    let number = |e: &Expr| match &e.kind {
        ExprKind::Int(n) => Some(*n),
        ExprKind::Unary(UnaryOp::Neg, of) => match of.kind {
            ExprKind::Int(n) => Some(-n),
            _ => None,
        },
        _ => None,
    };
    match &axis.kind {
        ExprKind::List(all) | ExprKind::Tuple(all) => all.iter().map(number).collect(),
        _ => number(axis).map(|n| vec![n]),
    }
}
