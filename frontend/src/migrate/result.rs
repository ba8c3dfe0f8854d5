//! Results of calls, as far as the source shows them.

use super::access::{Place, tuple};
use super::call::Parts;
use super::expr::{comparison, operation};
use super::kinds::{Kind, Memory, Tile};
use super::language::{MAKERS, integer};
use super::poly::Poly;
use super::{Outcome, Pass, by_hand};
use crate::syntax::{Argument, BinOp, Expr, ExprKind, UnaryOp};

/// The result of an instruction: a tile to make.
pub(super) struct Made {
    /// Its shape, as an expression.
    pub(super) shape: String,
    /// Its element type, as an expression.
    pub(super) dtype: String,
    pub(super) tile: Tile,
}

/// An element type without the name of the module.
pub(super) fn bare(dtype: &str) -> &str {
    dtype.strip_prefix("np.").or(dtype.strip_prefix("nl.")).or(dtype.strip_prefix("numpy.")).unwrap_or(dtype)
}

/// The type of the result of two operands, if known.
pub(super) fn promoted(a: Option<&str>, b: Option<&str>) -> Option<String> {
    let f32 = |d: Option<&str>| d.is_some_and(|d| bare(d) == "float32");
    if f32(a) || f32(b) {
        return Some(if f32(a) { a } else { b }?.to_owned());
    }
    (bare(a?) == bare(b?)).then(|| a.map(ToOwned::to_owned))?
}

/// The operand that determines shape and type of the result.
fn like(instruction: &str) -> Option<&'static str> {
    Some(match instruction {
        "activation"
        | "activation_reduce"
        | "tensor_scalar"
        | "scalar_tensor_tensor"
        | "reciprocal"
        | "dropout"
        | "tensor_scalar_reduce"
        | "nc_match_replace8"
        | "tensor_scalar_cumulative" => "data",
        "tensor_tensor" => "data1",
        "tensor_tensor_scan" => "data0",
        "tensor_copy" => "src",
        "range_select" => "on_true_tile",
        _ => return None,
    })
}

impl Pass<'_> {
    /// The result of an instruction with its operands in their current form.
    pub(super) fn result(
        &mut self,
        call: &Expr,
        name: &str,
        operands: &[(String, Place)],
        parts: &Parts<'_>,
        dtype: Option<String>,
    ) -> Outcome<Made> {
        let get = |operand: &str| operands.iter().find(|o| o.0 == operand).map(|o| &o.1);
        let need = |operand: &str| {
            get(operand).ok_or_else(|| {
                by_hand(call.span, &format!("nisa.{name}"), "make the tile with nl.ndarray and pass it as dst=")
            })
        };
        let shape_of = |p: &Place| p.shape.as_ref().map_or_else(|| format!("{}.shape", p.text), |s| tuple(s));
        let dtype_of = |p: &Place| p.dtype.clone().unwrap_or_else(|| format!("{}.dtype", p.text));
        let free = |p: &Place| match &p.shape {
            Some(shape) => {
                let all = shape[1..].iter().try_fold(Poly::number(1), |n, e| n.times(e));
                all.unwrap_or_default()
            }
            None => Poly::atom(&format!("{}.shape[1]", p.text), true),
        };
        let rows = |p: &Place| match &p.shape {
            Some(shape) => shape[0].clone(),
            None => Poly::atom(&format!("{}.shape[0]", p.text), true),
        };
        let mut memory = Memory::Sbuf;
        let (shape, known, own): (String, Option<Vec<Poly>>, String) = if let Some(operand) = like(name) {
            let data = need(operand)?;
            let mut own = dtype_of(data);
            if matches!(name, "tensor_tensor" | "tensor_tensor_scan") && dtype.is_none() {
                let other = need(if name == "tensor_tensor" { "data2" } else { "data1" })?;
                own = promoted(data.dtype.as_deref(), other.dtype.as_deref()).ok_or_else(|| {
                    by_hand(
                        call.span,
                        "the type of the result",
                        "nl.ndarray of the type that both operands promote to, as dst=",
                    )
                })?;
            }
            (shape_of(data), data.shape.clone(), own)
        } else {
            let nl = self.nl();
            let columns = |n: i64| -> Outcome<(Vec<Poly>, String)> {
                let data = need(if name == "max8" { "src" } else { "data" })?;
                Ok((vec![rows(data), Poly::number(n)], dtype_of(data)))
            };
            let (shape, own) = match name {
                "nc_matmul" => {
                    memory = Memory::Psum;
                    (vec![free(need("stationary")?), free(need("moving")?)], format!("{nl}.float32"))
                }
                "nc_transpose" => {
                    let data = need("data")?;
                    let vector = parts.given.iter().any(|g| {
                        g.keyword.as_deref() == Some("engine") && self.kinds.source(g.value.span).contains("vector")
                    });
                    let shape = vec![free(data), rows(data)];
                    let small = shape.iter().all(|n| n.value().is_some_and(|v| v <= 32));
                    memory = if vector || small { Memory::Sbuf } else { Memory::Psum };
                    if !vector && shape.iter().any(|n| n.value().is_none()) {
                        memory = Memory::Psum;
                    }
                    (shape, dtype_of(data))
                }
                "tensor_reduce" => (self.reduced(call, need("data")?, parts)?, dtype_of(need("data")?)),
                "bn_stats" => columns(6)?,
                "bn_aggr" => columns(2)?,
                "max8" => columns(8)?,
                "nc_find_index8" => (columns(8)?.0, format!("{nl}.uint32")),
                _ => {
                    let instead = "make the tile with nl.ndarray and pass it as dst=";
                    return Err(by_hand(call.span, &format!("the result of nisa.{name}"), instead));
                }
            };
            (tuple(&shape), Some(shape), own)
        };
        let dtype = dtype.unwrap_or(own);
        let rows = like(name).and_then(get).and_then(|data| self.rows_of_place(data));
        let tile = Tile { memory: Some(memory), shape: known, dtype: Some(dtype.clone()), rows, ..Tile::default() };
        Ok(Made { shape, dtype, tile })
    }

    /// The known properties of the value of a call or another expression that is not a name.
    pub(super) fn computed(&self, expr: &Expr) -> Option<Tile> {
        let sbuf = |dtype| Some(Tile { memory: Some(Memory::Sbuf), dtype, ..Tile::default() });
        match &expr.kind {
            ExprKind::Subscript(base, key) => {
                if self.value_kind(base) == Kind::Tiles && !matches!(key.kind, ExprKind::Slice(..)) {
                    return Some(Tile::default());
                }
                let mut tile = self.tile(base)?;
                let keys = super::kinds::entries(key).len();
                if keys > tile.blocks.len() || tile.blocks.is_empty() {
                    tile.shape = None;
                }
                tile.blocks.clear();
                Some(tile)
            }
            ExprKind::Binary(op, left, right) => {
                operation(*op)?;
                let (a, b) = (self.tile(left), self.tile(right));
                a.as_ref().or(b.as_ref())?;
                let of = |t: &Option<Tile>| t.as_ref().and_then(|t| t.dtype.clone());
                let dtype = match (&a, &b) {
                    (Some(_), Some(_)) => promoted(of(&a).as_deref(), of(&b).as_deref()),
                    (tile, _) => self.with_number(*op, of(&a).or(of(&b)), if tile.is_some() { right } else { left }),
                };
                Some(Tile { shape: self.joint_shape(left, right), ..sbuf(dtype)? })
            }
            ExprKind::Compare(left, rest) => {
                let [(op, right)] = &rest[..] else { return None };
                comparison(*op)?;
                self.tile(left).or_else(|| self.tile(right))?;
                let shape = self.joint_shape(left, right);
                let dtype = Some(format!("{}.uint8", self.module_name("nki.language", "nl")));
                Some(Tile { shape, ..sbuf(dtype)? })
            }
            ExprKind::Unary(UnaryOp::Neg | UnaryOp::Pos | UnaryOp::Invert, of) => {
                let tile = self.tile(of)?;
                Some(Tile { shape: self.extents(of), ..sbuf(tile.dtype)? })
            }
            ExprKind::Call(callee, args) => self.called(callee, args),
            _ => None,
        }
    }

    /// The type of an operation of a tile of this type and a number.
    fn with_number(&self, op: BinOp, dtype: Option<String>, number: &Expr) -> Option<String> {
        let float32 = || Some(format!("{}.float32", self.module_name("nki.language", "nl")));
        match (self.kinds.kind(self.number(number)), dtype) {
            (_, Some(dtype)) if bare(&dtype) == "float32" => Some(dtype),
            (Kind::Float, _) => float32(),
            (Kind::Int, Some(dtype)) => match integer(bare(&dtype)) {
                Some(_) if op == BinOp::Div => float32(),
                Some(promoted) => Some(format!("{}.{promoted}", self.module_name("nki.language", "nl"))),
                None => Some(dtype).filter(|d| matches!(bare(d), "bfloat16" | "float16" | "tfloat32")),
            },
            _ => None,
        }
    }

    fn called(&self, callee: &Expr, args: &[Argument]) -> Option<Tile> {
        let keyword = |wanted: &str| {
            args.iter().find_map(|a| match a {
                Argument::Keyword(name, e) if &**self.kinds.names.name(*name) == wanted => Some(e),
                _ => None,
            })
        };
        let first = args.iter().find_map(|a| match a {
            Argument::Positional(e) => Some(e),
            _ => None,
        });
        let none = |e: &&Expr| !matches!(e.kind, ExprKind::None);
        let given = keyword("dtype").filter(none).map(|e| self.kinds.source(e.span).to_owned());
        if let ExprKind::Attr(base, method) = &callee.kind
            && let Some(tile) = self.tile(base)
        {
            let shape = match (&**self.kinds.names.name(*method), first.map(|e| &e.kind)) {
                ("reshape" | "broadcast_to", Some(ExprKind::Tuple(all) | ExprKind::List(all))) => {
                    all.iter().map(|e| self.kinds.poly(e)).collect()
                }
                ("reshape" | "broadcast_to" | "expand_dims" | "view" | "astype", _) => None,
                _ => return None,
            };
            return Some(Tile { shape, rows: None, ..tile });
        }
        if let Some([Kind::Tile(tile)]) = self.returned_by(callee).as_deref() {
            return Some(tile.clone());
        }
        let path = self.kinds.path(callee)?;
        if let Some(name) = path.strip_prefix("nki.isa.") {
            // A number of the host.
            if name == "get_nc_version" {
                return None;
            }
            let memory = if matches!(name, "nc_matmul" | "nc_transpose") { Memory::Psum } else { Memory::Sbuf };
            return Some(Tile { memory: Some(memory), dtype: given, ..Tile::default() });
        }
        let name = path.strip_prefix("nki.language.")?;
        if MAKERS.contains(&name) {
            let memory = match keyword("buffer") {
                None => Some(Memory::Sbuf),
                Some(e) => match self.kinds.path(e).as_deref() {
                    Some("nki.language.psum") => Some(Memory::Psum),
                    Some("nki.language.sbuf") => Some(Memory::Sbuf),
                    Some(path) if path.ends_with("hbm") => Some(Memory::Hbm),
                    _ => None,
                },
            };
            return Some(Tile { memory, dtype: given, ..Tile::default() });
        }
        let operand = first.or(keyword("src")).or(keyword("x")).and_then(|e| self.tile(e));
        let memory = match name {
            "matmul" => Memory::Psum,
            "shared_constant" | "shared_identity_matrix" => Memory::Hbm,
            "load" | "load_transpose2d" | "transpose" | "copy" | "broadcast_to" | "sum" | "max" | "min" | "mean"
            | "prod" | "var" | "all" | "softmax" | "rms_norm" | "where" | "dropout" | "gather_flattened"
            | "static_cast" | "rand" => Memory::Sbuf,
            other if crate::build::ops::OPS.iter().any(|o| o.name == other) => Memory::Sbuf,
            _ => return None,
        };
        let dtype = given.or(operand.as_ref().and_then(|t| t.dtype.clone()));
        let shape = match name {
            "load" => operand.and_then(|t| t.shape),
            name => self.shape_of_function(name, args),
        };
        Some(Tile { memory: Some(memory), dtype, shape, ..Tile::default() })
    }
}
