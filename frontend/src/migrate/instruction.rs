//! `nisa.<instruction>(...)`: the destination becomes an argument.

use nki_isa::inst::REGISTRY;
use nki_isa::schema::{Kind as OperandKind, Schema};

use super::access::{Bounds, Place};
use super::call::{Given, Parts, Written};
use super::expr::comparison;
use super::kinds::{Kind, Memory, walk};
use super::poly::Poly;
use super::result::{Made, bare, promoted};
use super::{Outcome, Pass, by_hand};
use crate::dialect::beta1::instruction::{DOUBLE_ROW, WITH_DST, position};
use crate::dialect::beta1::ops::spelled;
use crate::syntax::{Expr, ExprKind};

/// The destination of a result.
#[derive(Clone, Copy)]
pub(super) enum Target<'e> {
    /// A new tile of this name.
    New(&'e str),
    /// A part of a tensor.
    Into(&'e Expr),
    /// Accumulated in a tile of PSUM.
    Onto(&'e Expr),
}

/// An instruction and its operands in Beta 1.
pub(super) fn schema(name: &str) -> Option<&'static Schema> {
    REGISTRY.iter().map(|e| e.schema).find(|s| s.name == name)
}

/// Whether an instruction returns its result, or nothing, in Beta 1.
pub(super) fn returns(name: &str) -> bool {
    schema(name).is_some() && !WITH_DST.contains(&name)
}

impl Pass<'_> {
    /// The part of each axis left by a mask.
    pub(super) fn bounds(&self, mask: &Expr) -> Outcome<Vec<(usize, Poly)>> {
        let refuse = |instead: &str| by_hand(mask.span, "mask=", instead);
        let frames = self.kinds.mask(mask).ok_or_else(|| {
            let mut is_compared = false;
            walk(mask, &mut |e| is_compared |= matches!(e.kind, ExprKind::Compare(..)));
            refuse(if is_compared && self.kinds.is_plain(mask) {
                "an `if` of this condition around the instruction: it has no index tiles"
            } else {
                "bound the slices: t[start:min(end, size)]"
            })
        })?;
        let mut out: Vec<(usize, Poly)> = Vec::new();
        for frame in frames {
            let [axis] = frame.axes()[..] else {
                let instead = "an `if` around the instruction for a condition without index tiles, nisa.affine_select for one on two axes";
                return Err(refuse(instead));
            };
            let count = match frame.steps[axis].value() {
                Some(-1) => frame.base.plus(&Poly::number(1)),
                Some(step) if step < 0 => match frame.base.value() {
                    Some(base) => Some(Poly::number(base.div_euclid(-step) + 1)),
                    None => Poly::atom(&format!("{} // {}", frame.base.factor(), -step), false).plus(&Poly::number(1)),
                },
                _ => return Err(refuse("start the slice where the mask begins: t[max(start, first):end]")),
            };
            let count = count.ok_or_else(|| refuse("an index beyond 64 bits"))?;
            if out.iter().any(|b| b.0 == axis) {
                return Err(refuse("one bound for each axis: t[start:min(end, size)]"));
            }
            out.push((axis, count));
        }
        Ok(out)
    }

    /// Removes an argument; `None` if it is missing or is `None`.
    pub(super) fn take<'e>(&self, parts: &mut Parts<'e>, keyword: &str) -> Option<Given<'e>> {
        let at = parts.given.iter().position(|g| g.keyword.as_deref() == Some(keyword))?;
        let taken = parts.given.remove(at);
        parts.keep_comment(&taken);
        (!matches!(taken.value.kind, ExprKind::None)).then_some(taken)
    }

    /// A number as written, without an enclosing NumPy type.
    pub(super) fn number<'e>(&self, expr: &'e Expr) -> &'e Expr {
        self.typed_number(expr).map_or(expr, |(number, _)| number)
    }

    /// The kind of a number; one of a NumPy type has the kind of its type.
    pub(super) fn number_kind(&self, expr: &Expr) -> Kind {
        self.typed_number(expr).map_or_else(|| self.kinds.kind(expr), |(_, kind)| kind)
    }

    /// The number in `np.float32(2)` or `np.dtype(...).type(2)`, and the kind of its type.
    fn typed_number<'e>(&self, expr: &'e Expr) -> Option<(&'e Expr, Kind)> {
        let ExprKind::Call(callee, args) = &expr.kind else { return None };
        let [crate::syntax::Argument::Positional(value)] = &args[..] else { return None };
        let typed = match &callee.kind {
            ExprKind::Attr(base, _) if let ExprKind::Call(of, _) = &base.kind => {
                self.kinds.path(of).as_deref() == Some("numpy.dtype")
            }
            _ => self.kinds.path(callee).is_some_and(|p| {
                p.strip_prefix("numpy.")
                    .is_some_and(|n| n.starts_with("float") || n.starts_with("int") || n.starts_with("uint"))
            }),
        };
        let kind = if self.kinds.source(callee.span).contains("float") { Kind::Float } else { Kind::Int };
        (typed && matches!(value.kind, ExprKind::Int(_) | ExprKind::Float(_))).then_some((value, kind))
    }

    /// The operation or mode named by an argument.
    pub(super) fn named_operation(&mut self, expr: &Expr) -> Outcome<String> {
        // Beta 1 named the mode of matmuls by generation: "double_row_gen3".
        if let ExprKind::Str(text) = &expr.kind
            && text.starts_with(DOUBLE_ROW)
        {
            return Ok(format!("{}.matmul_perf_mode.{DOUBLE_ROW}", self.nisa()));
        }
        if let Some(path) = self.kinds.path(expr)
            && let Some(name) = path.strip_prefix("numpy.").or(path.strip_prefix("nki.language."))
        {
            let nl = self.nl();
            return Ok(format!("{nl}.{}", spelled(name)));
        }
        self.expr(expr)
    }

    /// The bounds of an operand: for a matmul those of the columns, which are the moving operand's.
    fn of_operand(operand: &str, bounds: &Bounds) -> Vec<(usize, Poly)> {
        if operand == "stationary" { Vec::new() } else { bounds.to_vec() }
    }

    /// The bounds of the result: for a reduction those of the remaining axes.
    fn of_result(
        call: &Expr,
        name: &str,
        places: &[(String, Place)],
        parts: &Parts<'_>,
        bounds: &Bounds,
    ) -> Outcome<Vec<(usize, Poly)>> {
        if name != "tensor_reduce" {
            return Ok(bounds.to_vec());
        }
        let Some(axes) = Self::reduced_axes(parts, 2) else { return Ok(bounds.to_vec()) };
        let data = places.iter().find(|p| p.0 == "data").and_then(|p| p.1.shape.as_ref());
        let named = axes.iter().max().filter(|_| axes.iter().all(|&a| a > 0)).map(|&last| last as usize + 1);
        let Some(rank) = data.map(Vec::len).or(named) else { return Ok(bounds.to_vec()) };
        Self::check_axes(call, rank, &axes)?;
        Ok(bounds.iter().filter(|(axis, _)| *axis + axes.len() < rank).cloned().collect())
    }

    /// The part of each axis left by the mask of an instruction.
    fn bounds_of_call(&self, call: &Expr, name: &str, parts: &mut Parts<'_>) -> Outcome<Vec<(usize, Poly)>> {
        let mask = self.take(parts, "mask");
        let bounds = mask.map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        if name == "nc_matmul" && bounds.iter().any(|(axis, _)| *axis == 0) {
            let instead = "bound the rows of both operands, which are the contraction, or the columns of the stationary one and the rows of dst";
            return Err(by_hand(call.span, "mask= along the first axis of a matmul", instead));
        }
        Ok(bounds)
    }

    /// `nisa.name(...)` whose result goes to the target: the new statements.
    pub(super) fn instruction(&mut self, call: &Expr, name: &str, target: Target<'_>) -> Outcome<Vec<String>> {
        let hoisted = self.before.len();
        let (callee, mut parts) = self.arguments(call)?;
        let Some(schema) = schema(name) else {
            let instead = "an instruction of the current language, with dst=";
            return Err(by_hand(call.span, &format!("nisa.{name}"), instead));
        };
        if name == "memset" {
            return self.memset(call, target);
        }
        if matches!(name, "iota" | "affine_select") {
            return self.of_indices(call, name, target);
        }
        by_keyword(schema, call, name, &mut parts)?;
        let bounds = self.bounds_of_call(call, name, &mut parts)?;
        let dtype = if schema.position("dtype").is_some() { None } else { self.take(&mut parts, "dtype") };
        let dtype = dtype.map(|d| self.expr(d.value)).transpose()?;
        let mut places: Vec<(String, Place)> = Vec::new();
        let mut written = Vec::new();
        for given in &parts.given {
            let keyword = given.keyword.as_deref().unwrap_or_default();
            let Some(operand) = schema.position(keyword).map(|at| &schema.operands[at]) else {
                if keyword == "name" {
                    written.push(Written::in_place_of(given, Some(keyword), self.kinds.source(given.value.span)));
                } else {
                    self.report(by_hand(
                        given.value.span,
                        &format!("nisa.{name}: {keyword}="),
                        "left out: it had no effect",
                    ));
                }
                continue;
            };
            let kind = match operand.kind {
                OperandKind::Optional(kind) => *kind,
                kind => kind,
            };
            let text = match kind {
                OperandKind::Name(_) => self.named_operation(given.value)?,
                OperandKind::View | OperandKind::Scalar
                    if self.tile(given.value).is_some() || matches!(given.value.kind, ExprKind::Subscript(..)) =>
                {
                    let place = self.place(given.value, &Self::of_operand(keyword, &bounds))?;
                    let text = place.text.clone();
                    places.push((keyword.to_owned(), place));
                    text
                }
                OperandKind::View if !matches!(given.value.kind, ExprKind::None) => {
                    let place = self.place(given.value, &Self::of_operand(keyword, &bounds))?;
                    let text = place.text.clone();
                    places.push((keyword.to_owned(), place));
                    text
                }
                _ => self.expr(self.number(given.value))?,
            };
            written.push(Written::in_place_of(given, Some(keyword), &text));
        }
        if let (Target::New(tile), "tensor_tensor", None) = (target, name, &dtype)
            && let Some(line) = self.promoting(tile, &parts, &places)
        {
            return Ok(vec![line]);
        }
        let callee = self.expr(callee)?;
        let mut lines = Vec::new();
        if name == "tensor_reduce" {
            self.check_reduction(call, &places, &parts)?;
        }
        let bounds = Self::of_result(call, name, &places, &parts, &bounds)?;
        let dst = match target {
            Target::New(tile) => {
                let made = self.result(call, name, &places, &parts, dtype)?;
                lines.push(self.made(tile, &made));
                let dst = self.narrowed(call, tile.to_owned(), &made.tile, &bounds)?.text;
                self.last_made = Some(made.tile);
                dst
            }
            Target::Into(expr) | Target::Onto(expr) => {
                let accumulates = schema.position("accumulate").is_some();
                let in_psum = name == "nc_transpose"
                    && self.result(call, name, &places, &parts, None)?.tile.memory == Some(Memory::Psum);
                if !self.can_write(expr, accumulates, in_psum, matches!(target, Target::Onto(_)))? {
                    self.before.truncate(hoisted);
                    return self.by_way_of_a_tile(call, name, expr);
                }
                match target {
                    Target::Into(_) if accumulates => written.push(Written::new("accumulate", "False")),
                    Target::Onto(_) if self.is_zeroed(expr) => written.push(Written::new("accumulate", "True")),
                    _ => {}
                }
                self.place(expr, &bounds)?.text
            }
        };
        written.insert(0, Written::new("dst", &dst));
        lines.push(parts.call(&callee, written));
        Ok(lines)
    }

    /// Whether an instruction of the tensor engine, or another one, can write directly to the target of an assignment or update.
    pub(super) fn can_write(&mut self, to: &Expr, is_matmul: bool, is_transpose: bool, adds: bool) -> Outcome<bool> {
        let Some(tile) = self.tile(to) else { return Ok(true) };
        let in_sbuf = tile.memory == Some(Memory::Sbuf);
        if tile.memory == Some(Memory::Hbm) || in_sbuf && (is_matmul || is_transpose) {
            return Ok(false);
        }
        // Matmuls write float32, which a copy rounds.
        let Some(dtype) = tile.dtype.as_deref().map(bare).filter(|d| is_matmul && *d != "float32") else {
            return Ok(true);
        };
        if !adds {
            return Ok(false);
        }
        let what = "a matmul added to a tile that is not float32";
        let problem = by_hand(to.span, what, "accumulate in a tile of float32, and copy it");
        if !dtype.ends_with(".dtype") {
            return Err(problem);
        }
        // The type of another tensor, which may be float32.
        self.report(problem);
        Ok(true)
    }

    /// Whether a tile is initialized before the first matmul accumulates in it.
    pub(super) fn is_zeroed(&self, expr: &Expr) -> bool {
        let base = match &expr.kind {
            ExprKind::Subscript(base, _) => base,
            _ => expr,
        };
        matches!(base.kind, ExprKind::Name(name, _) if self.zeroed.contains(&name) || self.overwritten.contains(&name))
    }

    /// `tile = nl.op(data1, data2)` for a `tensor_tensor` whose operands may have different types: the function promotes them.
    fn promoting(&mut self, tile: &str, parts: &Parts<'_>, places: &[(String, Place)]) -> Option<String> {
        let get = |operand: &str| places.iter().find(|p| p.0 == operand).map(|p| &p.1);
        let (a, b) = (get("data1")?, get("data2")?);
        if promoted(a.dtype.as_deref(), b.dtype.as_deref()).is_some() {
            return None;
        }
        let given = parts.given.iter().find(|g| g.keyword.as_deref() == Some("op"))?;
        let op = self.named_operation(given.value).ok()?;
        let engine = parts.given.iter().find(|g| g.keyword.as_deref() == Some("engine"));
        if engine.is_some_and(|g| !self.kinds.source(g.value.span).contains("unknown")) {
            return None;
        }
        self.last_made =
            Some(super::Tile { memory: Some(Memory::Sbuf), shape: a.shape.clone(), ..super::Tile::default() });
        Some(format!("{tile} = {op}({}, {})", a.text, b.text))
    }

    /// A result that the instruction cannot write to its target: a tile, and a copy of it.
    fn by_way_of_a_tile(&mut self, call: &Expr, name: &str, to: &Expr) -> Outcome<Vec<String>> {
        let tile = self.fresh(name);
        let mut lines = self.instruction(call, name, Target::New(&tile))?;
        let dst = self.place(to, &[])?;
        let nisa = self.nisa();
        let copy = if dst.memory == Some(Memory::Hbm) { "dma_copy" } else { "tensor_copy" };
        lines.push(format!("{nisa}.{copy}(dst={}, src={tile})", dst.text));
        Ok(lines)
    }

    /// The statement that allocates a tile.
    pub(super) fn made(&mut self, name: &str, made: &Made) -> String {
        let nl = self.nl();
        let memory = if made.tile.memory == Some(Memory::Psum) { "psum" } else { "sbuf" };
        format!("{name} = {nl}.ndarray({}, dtype={}, buffer={nl}.{memory})", made.shape, made.dtype)
    }

    fn memset(&mut self, call: &Expr, target: Target<'_>) -> Outcome<Vec<String>> {
        let (callee, mut parts) = self.arguments(call)?;
        for (given, name) in parts.given.iter_mut().zip(["shape", "value", "dtype"]) {
            given.keyword.get_or_insert_with(|| name.to_owned());
        }
        if let Some(mask) = self.take(&mut parts, "mask") {
            return Err(by_hand(mask.value.span, "mask=", "fill the slice that the mask leaves"));
        }
        let shape = self.take(&mut parts, "shape");
        let dtype = self.take(&mut parts, "dtype").map(|d| self.expr(d.value)).transpose()?;
        let callee = self.expr(callee)?;
        let mut lines = Vec::new();
        let dst = match (target, shape, dtype) {
            (Target::New(name), Some(shape), Some(dtype)) => {
                let known = match &shape.value.kind {
                    ExprKind::Tuple(all) | ExprKind::List(all) => all.iter().map(|e| self.kinds.poly(e)).collect(),
                    _ => None,
                };
                let tile = super::Tile {
                    memory: Some(Memory::Sbuf),
                    shape: known,
                    dtype: Some(dtype.clone()),
                    ..super::Tile::default()
                };
                let made = Made { shape: self.expr(shape.value)?, dtype, tile };
                lines.push(self.made(name, &made));
                self.last_made = Some(made.tile);
                name.to_owned()
            }
            (Target::Into(expr), ..) => self.place(expr, &[])?.text,
            _ => return Err(by_hand(call.span, "nisa.memset", "nisa.memset(dst=tile, value=...)")),
        };
        let mut written = vec![Written::new("dst", &dst)];
        for given in &parts.given {
            let keyword = given.keyword.as_deref().unwrap_or_default();
            let text = self.expr(self.number(given.value))?;
            written.push(Written::in_place_of(given, Some(keyword), &text));
        }
        lines.push(parts.call(&callee, written));
        Ok(lines)
    }

    /// `nisa.iota(index tile)` and `nisa.affine_select(comparison of index tiles, ...)`, which have patterns.
    fn of_indices(&mut self, call: &Expr, name: &str, target: Target<'_>) -> Outcome<Vec<String>> {
        let instead =
            "pattern=[[step, count], ...], offset= and channel_multiplier= in place of the index expression, and dst=";
        let refuse = || by_hand(call.span, &format!("nisa.{name} of an index expression"), instead);
        let (callee, mut parts) = self.arguments(call)?;
        if self.take(&mut parts, "mask").is_some() {
            return Err(refuse());
        }
        let positions: &[&str] = match name {
            "iota" => &["expr", "dtype"],
            _ => &["pred", "on_true_tile", "on_false_value"],
        };
        let get = |keyword: &str| {
            let at = positions.iter().position(|p| *p == keyword);
            let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some(keyword));
            named.or(at.and_then(|at| parts.given.get(at)).filter(|g| g.keyword.is_none())).map(|g| g.value)
        };
        let (nl, callee) = (self.nl(), self.expr(callee)?);
        let dtype = get("dtype").map(|d| self.expr(d)).transpose()?;
        let (frame, operands, like) = if name == "iota" {
            let frame = get("expr").and_then(|e| self.kinds.frame(e)).ok_or_else(refuse)?;
            (frame, String::new(), None)
        } else {
            let (Some(pred), Some(tile), Some(other)) = (get("pred"), get("on_true_tile"), get("on_false_value"))
            else {
                return Err(refuse());
            };
            let ExprKind::Compare(left, rest) = &pred.kind else { return Err(refuse()) };
            let [(op, right)] = &rest[..] else { return Err(refuse()) };
            let frame = self.kinds.difference(left, right).ok_or_else(refuse)?;
            let place = self.place(tile, &[])?;
            let source = if place.memory == Some(Memory::Psum) {
                format!("{nl}.copy({})", place.text)
            } else {
                place.text.clone()
            };
            let op = comparison(*op).ok_or_else(refuse)?;
            let other = self.expr(self.number(other))?;
            let operands = format!(", on_true_tile={source}, on_false_value={other}, cmp_op={nl}.{op}");
            (frame, operands, Some(place))
        };
        let of_tile = |axis: usize| like.as_ref().and_then(|p| p.shape.as_ref()).and_then(|s| s.get(axis).cloned());
        let mut shape = Vec::new();
        for (axis, count) in frame.counts.iter().enumerate() {
            let one = (name == "iota").then(|| Poly::number(1));
            shape.push(count.clone().or_else(|| of_tile(axis)).or(one).ok_or_else(refuse)?);
        }
        if shape.len() < 2 {
            return Err(refuse());
        }
        let pairs: Vec<String> =
            frame.steps.iter().zip(&shape).skip(1).map(|(step, n)| format!("[{step}, {n}]")).collect();
        let mut lines = Vec::new();
        let dst = match target {
            Target::New(tile) => {
                let own = like.as_ref().map(|p| p.dtype.clone().unwrap_or_else(|| format!("{}.dtype", p.text)));
                let dtype = dtype.or(own).unwrap_or_else(|| format!("{nl}.int32"));
                let known = super::Tile {
                    memory: Some(Memory::Sbuf),
                    shape: Some(shape.clone()),
                    dtype: Some(dtype.clone()),
                    ..super::Tile::default()
                };
                let made = Made { shape: super::access::tuple(&shape), dtype, tile: known };
                lines.push(self.made(tile, &made));
                self.last_made = Some(made.tile);
                tile.to_owned()
            }
            Target::Into(expr) | Target::Onto(expr) => self.place(expr, &[])?.text,
        };
        lines.push(format!(
            "{callee}(dst={dst}, pattern=[{}], offset={}, channel_multiplier={}{operands})",
            pairs.join(", "),
            frame.base,
            frame.steps[0]
        ));
        Ok(lines)
    }

    /// A call that already had an explicit destination in Beta 1.
    pub(super) fn with_dst(&mut self, call: &Expr, name: &str) -> Outcome<String> {
        let (callee, mut parts) = self.arguments(call)?;
        let refuse = |what: &str, instead: &str| by_hand(call.span, &format!("nisa.{name}: {what}"), instead);
        let mask = self.take(&mut parts, "mask");
        let bounds = mask.map_or(Ok(Vec::new()), |m| self.bounds(m.value))?;
        let Some(schema) = schema(name) else { return Err(refuse("the instruction", "one of the current language")) };
        let mut written = Vec::new();
        for given in &parts.given {
            let keyword = given
                .keyword
                .as_deref()
                .ok_or_else(|| refuse("positional arguments", "pass the arguments by keyword"))?;
            if keyword == "dst_rmw_op" && matches!(given.value.kind, ExprKind::None) {
                continue;
            }
            if keyword == "dst_rmw_op" {
                return Err(refuse("dst_rmw_op=", "nisa.dma_compute(dst, [src, dst], reduce_op=nl.add)"));
            }
            let text = match schema.position(keyword).map(|at| schema.operands[at].kind) {
                Some(OperandKind::Name(_) | OperandKind::Optional(OperandKind::Name(_))) => {
                    self.named_operation(given.value)?
                }
                Some(OperandKind::View | OperandKind::Scalar | OperandKind::Optional(_))
                    if self.tile(given.value).is_some() || matches!(given.value.kind, ExprKind::Subscript(..)) =>
                {
                    self.place(given.value, &bounds)?.text
                }
                Some(_) => self.expr(self.number(given.value))?,
                None => {
                    self.report(by_hand(
                        given.value.span,
                        &format!("nisa.{name}: {keyword}="),
                        "left out: it had no effect",
                    ));
                    continue;
                }
            };
            written.push(Written::in_place_of(given, Some(keyword), &text));
        }
        let callee = self.expr(callee)?;
        Ok(parts.call(&callee, written))
    }

    /// The result of an instruction or a load in the middle of an expression: a tile computed before the statement.
    pub(super) fn hoisted(
        &mut self,
        stem: &str,
        run: impl FnOnce(&mut Self, &str) -> Outcome<Vec<String>>,
    ) -> Outcome<String> {
        let name = self.fresh(stem);
        let mut lines = run(self, &name)?;
        self.before.append(&mut lines);
        Ok(name)
    }

    /// Records the kind of a new tile's name.
    pub(super) fn bind_made(&mut self, name: &Expr, from: &Expr) {
        let tile = self.last_made.take().unwrap_or_default();
        if let ExprKind::Name(name, _) = &name.kind {
            self.kinds.bind(*name, Kind::Tile(tile), &[from]);
        }
    }
}

/// Adds the keywords of their positions to all arguments of an instruction. Positions refer to the original arguments.
fn by_keyword(schema: &Schema, call: &Expr, name: &str, parts: &mut Parts<'_>) -> Outcome<()> {
    for (at, given) in parts.given.iter_mut().enumerate() {
        if given.keyword.is_none() {
            let operand = position(schema, at).map(|i| schema.operands[i].name);
            let operand =
                operand.ok_or_else(|| by_hand(call.span, &format!("nisa.{name}"), "pass the arguments by keyword"))?;
            given.keyword = Some(operand.to_owned());
        }
    }
    Ok(())
}
