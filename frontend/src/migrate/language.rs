//! `nl.<function>(...)`, operators on tiles, and assignments of their results.

use super::access::{Bounds, tuple};
use super::call::Written;
use super::instruction::{Target, returns};
use super::kinds::{Kind, Memory, Tile, children};
use super::poly::Poly;
use super::result::{Made, bare};
use super::{Outcome, Pass, by_hand};
use crate::build::ops::{OPS, OpKind};
use crate::dialect::beta2::removed;
use crate::syntax::{Argument, BinOp, Expr, ExprKind, Symbol, UnaryOp};

/// Functions that allocate tensors.
pub(super) const MAKERS: &[&str] = &["ndarray", "zeros", "ones", "full", "empty_like", "zeros_like"];

/// Comparison operations.
pub(super) const COMPARISONS: &[&str] = &[
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
];

/// Functions of several elements that determine the type of their result.
pub(super) const REDUCTIONS: &[&str] = &["sum", "max", "min", "mean", "prod", "var", "softmax", "rms_norm"];

/// The type of an operation of an int and a tile of this type, if it is an integer type.
pub(super) fn integer(dtype: &str) -> Option<&'static str> {
    match dtype {
        "int8" | "int16" | "int32" | "uint8" | "uint16" | "bool_" => Some("int32"),
        "uint32" => Some("float32"),
        _ => None,
    }
}

/// Whether a function combines the elements along some axes.
pub(super) fn is_reduction(name: &str) -> bool {
    REDUCTIONS.contains(&name) && !matches!(name, "softmax" | "rms_norm") || name == "all"
}

pub(super) fn binary(name: &str) -> bool {
    OPS.iter().any(|o| o.name == name && matches!(o.kind, OpKind::Binary(_)))
}

pub(super) fn name_of(expr: &Expr) -> Option<Symbol> {
    match expr.kind {
        ExprKind::Name(name, _) => Some(name),
        _ => None,
    }
}

/// Whether the source shows that a tile holds integers.
fn is_of_integers(tile: &Tile) -> bool {
    tile.dtype.as_deref().is_some_and(|dtype| integer(bare(dtype)).is_some())
}

/// The lowest finite number of a format; the current language has no such constant.
fn lowest(path: &str) -> Option<&'static str> {
    Some(match path {
        "nki.language.fp32.min" | "nki.isa.fp32.min" => "-3.4028234663852886e38",
        "nki.language.bfp16.min" => "-3.3895313892515355e38",
        _ => return None,
    })
}

impl Pass<'_> {
    /// The function called by an expression.
    pub(super) fn callee(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Call(callee, _) => self.kinds.path(callee),
            _ => None,
        }
    }

    /// `nl.load(src, mask=, dtype=)`
    pub(super) fn load(&mut self, call: &Expr, target: Target<'_>) -> Outcome<Vec<String>> {
        let (_, mut parts) = self.arguments(call)?;
        let bounds = self.take(&mut parts, "mask").map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        let dtype = self.take(&mut parts, "dtype").map(|d| self.expr(d.value)).transpose()?;
        let Some(given) = parts.given.iter().find(|g| g.keyword.as_deref().is_none_or(|k| k == "src")).cloned() else {
            return Err(by_hand(call.span, "nl.load", "nisa.dma_copy(dst=tile, src=...)"));
        };
        let src = self.place(given.value, &bounds)?;
        let nisa = self.nisa();
        let (mut lines, dst) = match target {
            Target::New(name) => {
                let shape = match &src.shape {
                    // A vector is a column on chip.
                    Some(shape) if shape.len() == 1 => Some(vec![shape[0].clone(), Poly::number(1)]),
                    shape => shape.clone(),
                };
                let dtype = dtype.or(src.dtype.clone()).unwrap_or_else(|| format!("{}.dtype", src.text));
                let text = shape.as_ref().map_or_else(|| format!("{}.shape", src.text), |s| tuple(s));
                let rows = self.rows_of_place(&src);
                let tile =
                    Tile { memory: Some(Memory::Sbuf), shape, dtype: Some(dtype.clone()), rows, ..Tile::default() };
                let made = self.made(name, &Made { shape: text, dtype, tile: tile.clone() });
                let dst = self.narrowed(call, name.to_owned(), &tile, &bounds)?.text;
                self.last_made = Some(tile);
                (vec![made], dst)
            }
            Target::Into(expr) | Target::Onto(expr) => {
                let dst = self.place(expr, &bounds)?;
                if dst.memory == Some(Memory::Psum) {
                    return Err(by_hand(call.span, "a load into PSUM", "load into SBUF, then nisa.tensor_copy"));
                }
                (Vec::new(), dst.text)
            }
        };
        let written = vec![Written::new("dst", &dst), Written::in_place_of(&given, Some("src"), &src.text)];
        lines.push(parts.call(&format!("{nisa}.dma_copy"), written));
        Ok(lines)
    }

    /// `nl.store(dst, value, mask=)`
    pub(super) fn store(&mut self, call: &Expr) -> Outcome<Vec<String>> {
        let (_, mut parts) = self.arguments(call)?;
        let bounds = self.take(&mut parts, "mask").map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        let at = |keyword: &str, position: usize| {
            let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some(keyword));
            named.or(parts.given.get(position).filter(|g| g.keyword.is_none())).cloned()
        };
        let (Some(dst), Some(value)) = (at("dst", 0), at("value", 1)) else {
            return Err(by_hand(call.span, "nl.store", "nisa.dma_copy(dst=..., src=tile)"));
        };
        if matches!(self.kinds.kind(self.number(value.value)), Kind::Int | Kind::Float) {
            return Err(by_hand(call.span, "nl.store of a number", "nisa.memset of a tile, and nisa.dma_copy"));
        }
        let to = self.place(dst.value, &bounds)?;
        let from = self.place(value.value, &bounds)?;
        let nisa = self.nisa();
        let in_psum = self.tile(value.value).is_some_and(|t| t.memory == Some(Memory::Psum));
        // DMA cannot access PSUM.
        let text = if in_psum { format!("{}.copy({})", self.nl(), from.text) } else { from.text };
        let written =
            vec![Written::in_place_of(&dst, Some("dst"), &to.text), Written::in_place_of(&value, Some("src"), &text)];
        Ok(vec![parts.call(&format!("{nisa}.dma_copy"), written)])
    }

    /// `t[...] = nl.copy(x)`
    pub(super) fn copy(&mut self, target: &Expr, value: &Expr) -> Outcome<Vec<String>> {
        let (_, mut parts) = self.arguments(value)?;
        let bounds = self.take(&mut parts, "mask").map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        let Some(given) = parts.given.iter().find(|g| g.keyword.as_deref().is_none_or(|k| k == "src")).cloned() else {
            return Err(by_hand(value.span, "nl.copy", "nisa.tensor_copy(dst=..., src=tile)"));
        };
        let (src, dst) = (self.place(given.value, &bounds)?, self.place(target, &bounds)?);
        let nisa = self.nisa();
        let written = vec![Written::new("dst", &dst.text), Written::in_place_of(&given, Some("src"), &src.text)];
        Ok(vec![parts.call(&format!("{nisa}.tensor_copy"), written)])
    }

    /// `target = nl.loop_reduce(x, op=, loop_indices=[i])`
    pub(super) fn loop_reduce(&mut self, target: &Expr, call: &Expr) -> Outcome<Vec<String>> {
        let (_, mut parts) = self.arguments(call)?;
        let bounds = self.take(&mut parts, "mask").map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        let at = |keyword: &str, position: usize| {
            let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some(keyword));
            named.or(parts.given.get(position).filter(|g| g.keyword.is_none())).map(|g| g.value)
        };
        let refuse = || {
            by_hand(
                call.span,
                "nl.loop_reduce",
                "accumulate in a tensor made before the loop: nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)",
            )
        };
        let (Some(x), Some(op), Some(indices)) = (at("x", 0), at("op", 1), at("loop_indices", 2)) else {
            return Err(refuse());
        };
        let (ExprKind::List(indices) | ExprKind::Tuple(indices)) = &indices.kind else { return Err(refuse()) };
        let first: Vec<String> = indices.iter().map(|i| format!("{} == 0", self.kinds.source(i.span))).collect();
        if self.tile(target).is_none() {
            return Err(refuse());
        }
        let op = self.named_operation(op)?;
        let (x, dst) = (self.place(x, &bounds)?.text, self.place(target, &bounds)?.text);
        let nisa = self.nisa();
        Ok(vec![
            format!("if {}:", first.join(" and ")),
            format!("    {nisa}.tensor_copy(dst={dst}, src={x})"),
            "else:".to_owned(),
            format!("    {nisa}.tensor_tensor(dst={dst}, data1={dst}, data2={x}, op={op})"),
        ])
    }

    pub(super) fn is_transposed_matmul(&self, call: &Expr) -> bool {
        self.arguments(call).is_ok_and(|(_, parts)| {
            let turned =
                parts.given.iter().find(|g| g.keyword.as_deref() == Some("transpose_x")).or(parts.given.get(2));
            turned.is_some_and(|g| matches!(g.value.kind, ExprKind::Bool(true)))
        })
    }

    /// `nl.matmul(x, y, transpose_x=True)`, which is an instruction; without `transpose_x` x is transposed before.
    pub(super) fn matmul(&mut self, call: &Expr, target: Target<'_>) -> Outcome<Vec<String>> {
        let (_, parts) = self.arguments(call)?;
        let is_mask =
            parts.given.iter().any(|g| g.keyword.as_deref() == Some("mask") && !matches!(g.value.kind, ExprKind::None));
        if is_mask {
            return Err(by_hand(call.span, "mask= of nl.matmul", "bound the slices of the operands and of the result"));
        }
        let operand = |keyword: &str, at: usize| {
            let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some(keyword));
            named
                .or(parts.given.get(at))
                .map(|g| g.value)
                .ok_or_else(|| by_hand(call.span, "nl.matmul", "nisa.nc_matmul"))
        };
        let mut x = self.place(operand("x", 0)?, &[])?;
        if !self.is_transposed_matmul(call) {
            let (nl, name) = (self.nl(), self.fresh("transposed"));
            self.before.push(format!("{name} = {nl}.copy({nl}.transpose({}))", x.text));
            x.shape = x.shape.filter(|s| s.len() == 2).map(|s| vec![s[1].clone(), s[0].clone()]);
            x.text = name;
        }
        let y = self.place(operand("y", 1)?, &[])?;
        let nisa = self.nisa();
        let (mut lines, dst) = match target {
            Target::New(name) => {
                let operands = [("stationary".to_owned(), x.clone()), ("moving".to_owned(), y.clone())];
                let made = self.result(call, "nc_matmul", &operands, &parts, None)?;
                let line = self.made(name, &made);
                self.last_made = Some(made.tile);
                (vec![line], name.to_owned())
            }
            Target::Into(e) | Target::Onto(e) => {
                // Reports products accumulated in a tile of a narrower type.
                if matches!(target, Target::Onto(_)) {
                    self.can_write(e, true, false, true)?;
                }
                (Vec::new(), self.place(e, &[])?.text)
            }
        };
        let onto = match target {
            Target::Onto(e) if self.is_zeroed(e) => ", accumulate=True",
            Target::Into(_) => ", accumulate=False",
            _ => "",
        };
        lines.push(format!("{nisa}.nc_matmul(dst={dst}, stationary={}, moving={}{onto})", x.text, y.text));
        Ok(lines)
    }

    /// An operator on tiles.
    pub(super) fn operator(&mut self, name: &str, left: &Expr, right: &Expr, dtype: Option<&str>) -> Outcome<String> {
        self.check_ranks(name, left, right)?;
        let own = self.operation_type(name, left, right);
        let (a, b) = (self.operand(left)?, self.operand(right)?);
        let b = if self.both_in_psum(left, right) { format!("{}.copy({b})", self.nl()) } else { b };
        let dtype = dtype.map(ToOwned::to_owned).or(own).map_or(String::new(), |d| format!(", dtype={d}"));
        Ok(format!("{}.{name}({a}, {b}{dtype})", self.nl()))
    }

    /// `~of`: for a comparison the negation, as for Python's type bool, for an integer the inverted bits.
    pub(super) fn inverted(&mut self, expr: &Expr, of: &Expr, tile: &Tile) -> Outcome<String> {
        let text = self.operand(of)?;
        if self.is_truth(of) {
            return Ok(format!("{nl}.logical_not({text}, dtype={nl}.uint8)", nl = self.nl()));
        }
        match tile.dtype.as_deref().map(bare) {
            Some("int8" | "int16" | "int32" | "uint16" | "uint32") => Ok(format!("{}.invert({text})", self.nl())),
            _ => {
                let instead = "nl.logical_not(t, dtype=nl.uint8) of a comparison, nl.invert(t) of integers";
                Err(by_hand(expr.span, "~ of a tile that may be a comparison", instead))
            }
        }
    }

    /// Whether an expression is a comparison of tiles, or combines such.
    fn is_truth(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Compare(..) => self.tile(expr).is_some(),
            ExprKind::Binary(BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor, a, b) => {
                self.is_truth(a) && self.is_truth(b)
            }
            ExprKind::Unary(UnaryOp::Invert, of) => self.is_truth(of),
            ExprKind::Call(callee, args) => {
                let has_type = args
                    .iter()
                    .any(|a| matches!(a, Argument::Keyword(name, _) if &**self.kinds.names.name(*name) == "dtype"));
                !has_type && self.kinds.language(callee).is_some_and(|name| COMPARISONS.contains(&&*name))
            }
            _ => false,
        }
    }

    /// Whether two operands are in PSUM, of which an instruction reads at most one. Beta 1 copies the second one.
    pub(super) fn both_in_psum(&self, a: &Expr, b: &Expr) -> bool {
        [a, b].into_iter().all(|e| self.tile(e).is_some_and(|t| t.memory == Some(Memory::Psum)))
    }

    fn operand(&mut self, expr: &Expr) -> Outcome<String> {
        if self.tile(expr).is_some()
            && !matches!(expr.kind, ExprKind::Call(..) | ExprKind::Binary(..) | ExprKind::Unary(..))
        {
            return Ok(self.place(expr, &[])?.text);
        }
        self.expr(self.number(expr))
    }

    /// The type of a result if the two languages choose different ones.
    fn operation_type(&mut self, name: &str, left: &Expr, right: &Expr) -> Option<String> {
        if COMPARISONS.contains(&name) {
            return Some(format!("{}.uint8", self.nl()));
        }
        let (tile, number) = match (self.tile(left), self.tile(right)) {
            (Some(t), None) => (t, right),
            (None, Some(t)) => (t, left),
            (Some(a), Some(b)) => {
                let is_float = |t: &Tile| t.dtype.as_deref().is_some_and(|d| bare(d).contains("float"));
                if name != "divide" || is_float(&a) || is_float(&b) {
                    return None;
                }
                if is_of_integers(&a) && is_of_integers(&b) {
                    return Some(format!("{}.float32", self.nl()));
                }
                let instead = "dtype=nl.float32 if both are of integers";
                self.report(by_hand(right.span, "the type of nl.divide of two tiles", instead));
                return None;
            }
            _ => return None,
        };
        let dtype = tile.dtype.as_deref().map(bare);
        if dtype == Some("float32") {
            return None;
        }
        // As in Python, the quotient of ints is not an int.
        if name == "divide" && matches!(self.number_kind(number), Kind::Int) {
            match dtype {
                Some("bfloat16" | "float16" | "tfloat32") => return None,
                Some(d) if integer(d).is_some() => return Some(format!("{}.float32", self.nl())),
                _ => {}
            }
            let instead = "dtype=nl.float32 if the tile is of integers";
            self.report(by_hand(number.span, "the type of nl.divide of a tile and an int", instead));
            return None;
        }
        match self.number_kind(number) {
            Kind::Float => Some(format!("{}.float32", self.nl())),
            // Python's ints counted as int32.
            Kind::Int => match dtype {
                Some("bfloat16" | "float16" | "tfloat32") => None,
                Some(d) if integer(d).is_some() => {
                    integer(d).filter(|promoted| *promoted != d).map(|d| format!("{}.{d}", self.nl()))
                }
                _ => {
                    let what = format!("the type of nl.{name} of a tile and an int");
                    let instead = "dtype=nl.int32 if the tile is of narrower integers, nl.float32 if it is uint32";
                    self.report(by_hand(number.span, &what, instead));
                    None
                }
            },
            _ => {
                let what = format!("the type of nl.{name} of a tile and a number");
                self.report(by_hand(
                    number.span,
                    &what,
                    "dtype=nl.float32 if the number is a float and the tile is not float32",
                ));
                None
            }
        }
    }

    /// The type of `nl.where`: the current language uses that of its first tile, or of the condition without tiles, the old one the common
    /// type of both.
    fn chosen_type(&mut self, x: &Expr, y: &Expr) -> Option<String> {
        if self.tile(x).is_none() && self.tile(y).is_none() {
            return match [x, y].map(|number| self.number_kind(number)) {
                [Kind::Float, Kind::Float | Kind::Int] | [Kind::Int, Kind::Float] => {
                    Some(format!("{}.float32", self.nl()))
                }
                [Kind::Int, Kind::Int] => Some(format!("{}.int32", self.nl())),
                _ => {
                    let instead = "dtype=nl.float32 if one of them is a float, else dtype=nl.int32";
                    self.report(by_hand(y.span, "the type of nl.where of two numbers", instead));
                    None
                }
            };
        }
        let (Some(a), Some(b)) = (self.tile(x), self.tile(y)) else { return self.operation_type("where", x, y) };
        let (a, b) = (a.dtype.as_deref().map(bare), b.dtype.as_deref().map(bare));
        if a.is_some() && (a == b || a == Some("float32")) {
            return None;
        }
        if b == Some("float32") {
            return Some(format!("{}.float32", self.nl()));
        }
        let instead = "dtype= the wider of the two, if they differ";
        self.report(by_hand(y.span, "the type of nl.where of two tiles", instead));
        None
    }

    /// A function of `nl` that exists in the current language.
    pub(super) fn function(&mut self, call: &Expr, dtype: Option<&str>, bounds: &Bounds) -> Outcome<String> {
        let (callee, mut parts) = self.arguments(call)?;
        let path = self.kinds.path(callee).unwrap_or_default();
        let name = path.strip_prefix("nki.language.").unwrap_or_default().to_owned();
        if name == "device_print" && parts.given.iter().any(|g| g.keyword.as_deref() == Some("mask")) {
            return Err(by_hand(call.span, "mask= of nl.device_print", "print the slice that the mask leaves"));
        }
        let mask = self.take(&mut parts, "mask");
        if let Some(mask) = mask.filter(|_| bounds.is_empty()) {
            return Err(by_hand(
                mask.value.span,
                "mask=",
                "assign to the slice that the mask leaves, of operands that are bounded in the same way",
            ));
        }
        if OPS.iter().any(|o| o.name == name) {
            self.take(&mut parts, "name");
        }
        let has_dtype = parts.given.iter().any(|g| g.keyword.as_deref() == Some("dtype"))
            || parts.given.get(2).is_some_and(|g| binary(&name) && g.keyword.is_none());
        let mut own = None;
        if let ([a, b], false) = (&parts.given[..], has_dtype)
            && binary(&name)
        {
            own = self.operation_type(&name, a.value, b.value);
        }
        let chosen = match (&parts.given[..], has_dtype || parts.given.len() > 3) {
            ([_, x, y], false) if name == "where" => self.chosen_type(x.value, y.value),
            // The mean of integers is not an integer.
            ([x, ..], false) if name == "mean" && self.tile(x.value).is_some_and(|t| is_of_integers(&t)) => {
                Some(format!("{}.float32", self.nl()))
            }
            // Results that had Python's type bool.
            (_, false) if matches!(&*name, "logical_not" | "all") => Some(format!("{}.uint8", self.nl())),
            // The type was optional.
            ([_], false) if name == "rand" => Some(format!("{}.float32", self.nl())),
            _ => None,
        };
        let second = match &parts.given[..] {
            [a, b, ..] if binary(&name) && self.both_in_psum(a.value, b.value) => Some(b.value.span),
            _ => None,
        };
        let rows = self.row_and_other(&name, &parts)?;
        let reordered = self.reordered(call, &name, &parts)?;
        let mut written = Vec::new();
        for given in &parts.given {
            let keyword = match (given.keyword.as_deref(), name.as_str()) {
                (Some("src"), "copy" | "broadcast_to") => Some("x"),
                (Some("data"), "expand_dims") => Some("x"),
                (keyword, _) => keyword,
            };
            if keyword == Some("dtype") && matches!(given.value.kind, ExprKind::None) {
                continue;
            }
            // "currently `dtype` and `compute_dtype` behave the same" (manual of nl.softmax).
            let keyword = match keyword {
                Some("compute_dtype") if has_dtype || matches!(given.value.kind, ExprKind::None) => continue,
                Some("compute_dtype") => Some("dtype"),
                keyword => keyword,
            };
            let is_nested = matches!(given.value.kind, ExprKind::Call(..) | ExprKind::Binary(..));
            let text = if self.tile(given.value).is_some() && (!is_nested || !bounds.is_empty()) {
                self.place(given.value, bounds)?.text
            } else {
                self.expr(self.number(given.value))?
            };
            let text = if second == Some(given.value.span) { format!("{}.copy({text})", self.nl()) } else { text };
            let text = match &rows {
                Some((row, like)) if *row == given.value.span => format!("{}.broadcast_to({text}, {like})", self.nl()),
                _ => text,
            };
            let text = match (&reordered.operand, &reordered.axes) {
                (Some((span, order)), _) if *span == given.value.span => text + order,
                (_, Some((span, axes))) if *span == given.value.span => axes.clone(),
                _ => text,
            };
            written.push(Written::in_place_of(given, keyword, &text));
        }
        let is_op = OPS.iter().any(|o| o.name == name) || REDUCTIONS.contains(&name.as_str());
        if let (Some(dtype), true, false) = (dtype.map(ToOwned::to_owned).or(own), is_op, has_dtype) {
            written.push(Written::new("dtype", &dtype));
        } else if let Some(dtype) = chosen {
            written.push(Written::new("dtype", &dtype));
        }
        let callee = self.expr(callee)?;
        Ok(parts.call(&callee, written) + &reordered.suffix)
    }

    /// A call in an expression.
    pub(super) fn call(&mut self, call: &Expr) -> Outcome<String> {
        let ExprKind::Call(callee, args) = &call.kind else { return self.spliced(call.span, &[]) };
        if let Some(text) = self.harness(call)? {
            return Ok(text);
        }
        if let ExprKind::Attr(base, method) = &callee.kind
            && self.tile(base).is_some()
            && self.kinds.path(callee).is_none()
        {
            let method = self.kinds.names.name(*method).to_string();
            return self.method(call, base, &method);
        }
        let Some(path) = self.kinds.path(callee) else {
            self.passes(callee, args);
            return self.spliced(call.span, &children(call));
        };
        if let Some(name) = path.strip_prefix("nki.isa.").filter(|n| returns(n)) {
            let name = name.to_owned();
            return self.hoisted(&name, |pass, tile| pass.instruction(call, &name, Target::New(tile)));
        }
        let Some(name) = path.strip_prefix("nki.language.") else {
            return self.spliced(call.span, &children(call));
        };
        match name {
            "par_dim" => match &args[..] {
                [crate::syntax::Argument::Positional(size)] => self.expr(size),
                _ => Err(by_hand(call.span, "nl.par_dim", "the extent alone: the first dimension is the partitions")),
            },
            // Beta 1 returns it in SBUF.
            "transpose" => Ok(format!("{}.copy({})", self.nl(), self.function(call, None, &[])?)),
            "load" => self.hoisted("loaded", |pass, tile| pass.load(call, Target::New(tile))),
            "static_cast" => {
                let (_, parts) = self.arguments(call)?;
                match &parts.given[..] {
                    [x, dtype] if self.tile(x.value).is_some() => {
                        let (x, dtype) = (self.place(x.value, &[])?.text, self.expr(dtype.value)?);
                        Ok(format!("{}.copy({x}, dtype={dtype})", self.nl()))
                    }
                    [x, dtype] => Ok(format!("{}.astype({})", self.expr(x.value)?, self.expr(dtype.value)?)),
                    _ => Err(by_hand(call.span, "nl.static_cast", "nl.copy(x, dtype=...)")),
                }
            }
            "program_id" | "num_programs" | "program_ndim" => {
                let instead = "a loop over the programs; the current language counts physical cores: kernel[lnc](...)";
                Err(by_hand(call.span, &format!("nl.{name} of a launch grid"), instead))
            }
            "store" => Err(by_hand(call.span, "nl.store as a value", "nisa.dma_copy(dst=..., src=tile)")),
            name if let Some(instead) = removed::instead(&format!("nl.{name}")) => {
                Err(by_hand(call.span, &format!("nl.{name}"), instead))
            }
            name if MAKERS.contains(&name) => self.remade(call, name),
            name if !self.is_current(name) => {
                Err(by_hand(call.span, &format!("nl.{name}"), "a function of the current language"))
            }
            _ => self.function(call, None, &[]),
        }
    }

    fn is_current(&self, name: &str) -> bool {
        crate::dialect::beta2::names::api_names().iter().any(|n| n.0 == "nki.language" && n.1 == name)
    }

    /// A method of a tile.
    fn method(&mut self, call: &Expr, base: &Expr, method: &str) -> Outcome<String> {
        let (_, parts) = self.arguments(call)?;
        let first = parts.given.first().map(|g| g.value);
        let of = |pass: &mut Self| pass.place(base, &[]).map(|p| p.text);
        let in_hbm = self.tile(base).is_some_and(|t| t.memory == Some(Memory::Hbm));
        match (method, first) {
            ("broadcast_to", _) if in_hbm => Err(by_hand(
                call.span,
                "broadcast_to of a tensor in HBM",
                "load the part, then nl.broadcast_to(tile, shape)",
            )),
            ("broadcast_to", Some(shape)) => {
                let (t, shape) = (of(self)?, self.expr(shape)?);
                Ok(format!("{}.broadcast_to({t}, {shape})", self.nl()))
            }
            ("expand_dims", Some(axis)) => Ok(format!("{}.expand_dim({})", of(self)?, self.expr(axis)?)),
            ("astype", Some(dtype)) => {
                let (t, dtype) = (of(self)?, self.expr(dtype)?);
                Ok(format!("{}.copy({t}, dtype={dtype})", self.nl()))
            }
            ("assert_shape", _) => Err(by_hand(call.span, "assert_shape", "assert t.shape == (...)")),
            _ => {
                let mut text = of(self)?;
                let mut at = base.span.end;
                for given in &parts.given {
                    text += &self.text[at as usize..given.value.span.start as usize];
                    text += &self.expr(given.value)?;
                    at = given.value.span.end;
                }
                Ok(text + &self.text[at as usize..call.span.end as usize])
            }
        }
    }

    /// `t.dtype` of a table of tiles: of its first one, and as written.
    pub(super) fn table_dtype(&self, expr: &Expr) -> Option<(String, Option<String>)> {
        let ExprKind::Attr(base, name) = &expr.kind else { return None };
        let tile = name_of(base).and_then(|_| self.tile(base)).filter(|tile| !tile.blocks.is_empty())?;
        let text = format!("{}[0].dtype", self.kinds.source(base.span));
        (&**self.kinds.names.name(*name) == "dtype").then_some((text, tile.dtype))
    }

    /// An attribute: removed names of the old modules.
    pub(super) fn attribute(&mut self, expr: &Expr) -> Outcome<String> {
        let ExprKind::Attr(base, _) = &expr.kind else { return self.spliced(expr.span, &[]) };
        if let Some((text, _)) = self.table_dtype(expr) {
            return Ok(text);
        }
        let Some(path) = self.kinds.path(expr) else { return self.spliced(expr.span, &[base]) };
        if let Some(number) = lowest(&path) {
            return Ok(number.to_owned());
        }
        let short = path.replace("nki.language.", "nl.").replace("nki.isa.", "nisa.");
        if let Some(instead) = removed::instead(&short) {
            return Err(by_hand(expr.span, &short, instead));
        }
        if path.starts_with("nki.compiler.") || path.starts_with("nki.typing.") {
            let instead = removed::instead("nki.compiler.")
                .unwrap_or("nl.ndarray(..., address=(partition, byte)) places a tensor");
            return Err(by_hand(expr.span, &path, instead));
        }
        Ok(self.kinds.source(expr.span).to_owned())
    }
}
