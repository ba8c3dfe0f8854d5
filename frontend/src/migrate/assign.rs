//! Assignments and updates.

use super::access::{Bounds, Place, tuple};
use super::expr::operation;
use super::instruction::{Target, returns};
use super::kinds::{Kind, Memory, Tile, entries};
use super::language::{COMPARISONS, MAKERS, REDUCTIONS, binary, name_of};
use super::poly::Poly;
use super::result::{Made, bare};
use super::tree::parts;
use super::{Outcome, Pass, by_hand};
use crate::build::ops::OPS;
use crate::dialect::beta1::instruction::WITH_DST;
use crate::syntax::{Argument, BinOp, Expr, ExprKind, Stmt, Symbol};

/// Placeholder for the name of a new tile in statements, until it is known whether they read another tile of its name.
pub(super) const UNNAMED: &str = "\u{e000}";

/// Whether new text uses a name, except as a keyword of a call or an attribute.
fn reads(text: &str, name: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_keyword = after.starts_with('=') && !after.starts_with("==");
        !before.ends_with(|c| part_of_name(c) || c == '.') && !after.starts_with(part_of_name) && !is_keyword
    })
}

impl Pass<'_> {
    /// `target = value`
    pub(super) fn assign(&mut self, stmt: &Stmt, target: &Expr, value: &Expr) -> Outcome<Option<Vec<String>>> {
        if self.defines(stmt, target, value) {
            return Ok(None);
        }
        if let (ExprKind::Tuple(items), ExprKind::Attr(base, attr)) = (&target.kind, &value.kind)
            && &**self.kinds.names.name(*attr) == "shape"
            && let Some(tensor) = name_of(base)
        {
            self.unpacked(tensor, items);
            return Ok(Some(vec![self.kinds.source(stmt.span).to_owned()]));
        }
        let path = self.callee(value).unwrap_or_default();
        let is_name = name_of(target).is_some();
        if let Some(name) = path.strip_prefix("nki.isa.").filter(|n| returns(n)) {
            let name = name.to_owned();
            return self.made_or_written(target, value, |pass, to| pass.instruction(value, &name, to)).map(Some);
        }
        match path.strip_prefix("nki.language.") {
            Some("load") => self.made_or_written(target, value, |pass, to| pass.load(value, to)).map(Some),
            Some(maker) if MAKERS.contains(&maker) => {
                let maker = maker.to_owned();
                self.make(stmt, target, value, &maker).map(Some)
            }
            Some("loop_reduce") => self.loop_reduce(target, value).map(Some),
            Some("copy") if !is_name && self.tile(target).is_some_and(|t| t.memory != Some(Memory::Hbm)) => {
                self.copy(target, value).map(Some)
            }
            Some("matmul") if self.is_transposed_matmul(value) && is_name => {
                self.made_or_written(target, value, |pass, to| pass.matmul(value, to)).map(Some)
            }
            Some("matmul") if !is_name && self.takes_products(target) => {
                self.matmul(value, Target::Into(target)).map(Some)
            }
            _ => self.plain_assign(stmt, target, value).map(Some),
        }
    }

    /// Whether a matmul can write directly to the target of its result: a tile of float32 in PSUM.
    fn takes_products(&self, target: &Expr) -> bool {
        let is_float32 = |tile: &Tile| tile.dtype.as_deref().is_some_and(|d| bare(d) == "float32");
        self.tile(target).is_some_and(|tile| tile.memory == Some(Memory::Psum) && is_float32(&tile))
    }

    /// A result that is a new tile if the target is a name, else is written to a part of a tensor.
    fn made_or_written(
        &mut self,
        target: &Expr,
        value: &Expr,
        run: impl FnOnce(&mut Self, Target<'_>) -> Outcome<Vec<String>>,
    ) -> Outcome<Vec<String>> {
        if name_of(target).is_none() {
            let is_item = match &target.kind {
                ExprKind::Subscript(base, _) => {
                    name_of(base).is_some_and(|name| self.containers.contains(&name))
                        && !matches!(self.kinds.kind(base), Kind::Tile(_))
                }
                ExprKind::Attr(..) => true,
                _ => false,
            };
            if is_item {
                let what = "a new tile in a list, dict or object";
                return Err(by_hand(
                    target.span,
                    what,
                    "assign the tile to a name first, and then the name to the item",
                ));
            }
            return run(self, Target::Into(target));
        }
        let lines = run(self, Target::New(UNNAMED))?;
        self.bind_made(target, value);
        Ok(self.named(target, lines))
    }

    /// An engine writes partitions from 0, 32, 64 or 96 on; Beta 1 wrote others by DMA.
    fn check_first_partition(&self, target: &Expr) -> Outcome<()> {
        let ExprKind::Subscript(base, key) = &target.kind else { return Ok(()) };
        let blocks = self.tile(base).map_or(0, |tile| tile.blocks.len());
        let Some(first) = entries(key).get(blocks).copied() else { return Ok(()) };
        let start = match &first.kind {
            ExprKind::Slice(Some(from), ..) => from,
            ExprKind::Slice(None, ..) | ExprKind::Ellipsis => return Ok(()),
            _ if self.kinds.kind(first) == Kind::Int => first,
            _ => return Ok(()),
        };
        if self.kinds.poly(start).is_some_and(|start| start.is_multiple_of(32)) {
            return Ok(());
        }
        let instead = "write the number to a tile with nisa.memset, and copy that with nisa.dma_copy";
        Err(by_hand(target.span, "a number assigned to partitions that may start at any number", instead))
    }

    /// Inserts the name of the new tile of statements. The name would hide an operand if the statements read the current tile of that
    /// name: then it is bound after them.
    pub(super) fn named(&mut self, target: &Expr, mut lines: Vec<String>) -> Vec<String> {
        let name = self.kinds.source(target.span);
        // The first statement reads its operands before it binds the name.
        if !lines.iter().skip(1).any(|line| reads(line, name)) {
            return lines.iter().map(|line| line.replace(UNNAMED, name)).collect();
        }
        let tile = self.fresh(name);
        lines.push(format!("{name} = {UNNAMED}"));
        lines.iter().map(|line| line.replace(UNNAMED, &tile)).collect()
    }

    /// `m, n = t.shape`
    pub(super) fn unpacked(&mut self, tensor: Symbol, items: &[Expr]) {
        for item in items {
            if let Some(name) = name_of(item) {
                self.kinds.bind(name, Kind::Int, &[]);
            }
        }
        let shape: Option<Vec<_>> = items.iter().map(|e| self.kinds.poly(e)).collect();
        if let Kind::Tile(tile) = self.kinds.name(tensor) {
            let from: Vec<&Expr> = items.iter().collect();
            self.kinds.bind(tensor, Kind::Tile(Tile { shape, ..tile }), &from);
        }
    }

    /// An assignment that remains one.
    pub(super) fn plain_assign(&mut self, stmt: &Stmt, target: &Expr, value: &Expr) -> Outcome<Vec<String>> {
        if let Some(name) = name_of(target) {
            let mask = self.masked(value);
            let text = match mask {
                Some(_) => return self.masked_result(target, value),
                None => self.expr(value)?,
            };
            let kind = match self.value_kind(value) {
                Kind::Tile(tile) if tile.shape.is_none() => Kind::Tile(Tile { rows: self.rows(value), ..tile }),
                kind => kind,
            };
            self.kinds.bind(name, kind, &[value]);
            if name_of(value).is_some_and(|v| self.returned.contains(&name) && !self.returned.contains(&v)) {
                self.returned.extend(name_of(value));
            }
            return Ok(vec![self.with_value(stmt, target, value, &text)]);
        }
        let Some(to) = self.tile(target) else {
            let text = self.spliced(stmt.span, &[target, value])?;
            let mut bound = Vec::new();
            self.paired(target, value, &mut bound);
            for (name, kind) in bound {
                self.kinds.forget(name);
                self.kinds.bind(name, kind, &[]);
            }
            return Ok(vec![text]);
        };
        if matches!(self.number_kind(value), Kind::Int | Kind::Float) {
            let dst = self.place(target, &[])?;
            let (nisa, value) = (self.nisa(), self.expr(self.number(value))?);
            if dst.memory == Some(Memory::Hbm) {
                return Err(by_hand(
                    target.span,
                    "a number assigned to HBM",
                    "nisa.memset of a tile, and nisa.dma_copy",
                ));
            }
            self.check_first_partition(target)?;
            return Ok(vec![format!("{nisa}.memset(dst={}, value={value})", dst.text)]);
        }
        let dtype = to.dtype.clone().or_else(|| match &target.kind {
            ExprKind::Subscript(base, _) if name_of(base).is_some() && to.blocks.is_empty() => {
                Some(format!("{}.dtype", self.kinds.source(base.span)))
            }
            _ => None,
        });
        let bounds = self.masked(value).map_or(Ok(Vec::new()), |m| self.bounds(m))?;
        let dst = self.place(target, &bounds)?;
        if let Some(line) = self.direct(&dst, value, &bounds)? {
            return Ok(vec![line]);
        }
        let text = self.typed(value, dtype.as_deref(), &bounds)?;
        // A call is not a valid target.
        if dst.text.ends_with(')') {
            if dst.memory == Some(Memory::Hbm) {
                return Err(by_hand(target.span, "an assignment to HBM", "nisa.dma_copy(dst=t.ap(...), src=tile)"));
            }
            let nisa = self.nisa();
            return Ok(vec![format!("{nisa}.tensor_copy(dst={}, src={text})", dst.text)]);
        }
        let text = self.widened(&dst, value, text);
        let dst = if name_of(target).is_some() { format!("{}[...]", dst.text) } else { dst.text };
        Ok(vec![format!("{dst} = {text}")])
    }

    /// The kind of an expression's value.
    pub(super) fn value_kind(&self, value: &Expr) -> Kind {
        let kind = match self.kinds.kind(value) {
            Kind::Other => self.tile(value).map_or(Kind::Other, Kind::Tile),
            kind => kind,
        };
        let tiles = |all: &mut dyn Iterator<Item = Kind>| {
            let mut all = all.peekable();
            let some = all.peek().is_some();
            if some && all.all(|k| matches!(k, Kind::Tile(_))) { Kind::Tiles } else { Kind::Other }
        };
        match (&value.kind, kind) {
            (ExprKind::List(items) | ExprKind::Tuple(items), Kind::Other) => {
                tiles(&mut items.iter().map(|e| self.value_kind(e)))
            }
            (ExprKind::Dict(pairs), Kind::Other) => tiles(&mut pairs.iter().map(|(_, e)| self.value_kind(e))),
            (ExprKind::Comp(comp), Kind::Other) => tiles(&mut [self.value_kind(&comp.element)].into_iter()),
            // A part of a list.
            (ExprKind::Subscript(base, key), Kind::Other) if matches!(key.kind, ExprKind::Slice(..)) => {
                if self.value_kind(base) == Kind::Tiles { Kind::Tiles } else { Kind::Other }
            }
            (ExprKind::Call(callee, _), Kind::Other) => match self.returned_by(callee) {
                Some(kinds) if kinds.len() == 1 => kinds[0].clone(),
                Some(kinds) => tiles(&mut kinds.into_iter()),
                None => Kind::Other,
            },
            (ExprKind::IfElse(_, then, other), Kind::Other) => match (self.value_kind(then), self.value_kind(other)) {
                (Kind::Tile(_), Kind::Tile(_)) => Kind::Tile(Tile::default()),
                (Kind::Tile(_) | Kind::Unclear, _) | (_, Kind::Tile(_) | Kind::Unclear) => Kind::Unclear,
                _ => Kind::Other,
            },
            (_, kind) => kind,
        }
    }

    /// The names of a target with the assigned values.
    fn paired(&self, target: &Expr, value: &Expr, bound: &mut Vec<(Symbol, Kind)>) {
        match (&target.kind, &value.kind) {
            (ExprKind::Name(name, _), _) => bound.push((
                *name,
                match self.value_kind(value) {
                    // The names in its extents may be assigned here, too.
                    Kind::Tile(tile) => Kind::Tile(Tile { shape: None, rows: self.rows(value), ..tile }),
                    kind @ (Kind::Int | Kind::Float | Kind::Tiles | Kind::Unclear) => kind,
                    _ => Kind::Other,
                },
            )),
            (ExprKind::Tuple(to) | ExprKind::List(to), ExprKind::Tuple(from) | ExprKind::List(from))
                if to.len() == from.len() =>
            {
                to.iter().zip(from).for_each(|(to, from)| self.paired(to, from, bound));
            }
            (ExprKind::Tuple(to) | ExprKind::List(to), ExprKind::Call(callee, _))
                if let Some(kinds) = self.returned_by(callee).filter(|kinds| kinds.len() == to.len()) =>
            {
                to.iter().zip(kinds).for_each(|(to, kind)| bound.extend(name_of(to).map(|name| (name, kind))));
            }
            (ExprKind::Tuple(_) | ExprKind::List(_), _) if self.value_kind(value) == Kind::Tiles => {
                let tile = || Kind::Tile(Tile::default());
                bound.extend(parts(target).into_iter().filter_map(name_of).map(|name| (name, tile())));
            }
            (ExprKind::Tuple(_) | ExprKind::List(_), _) => {
                let mut has_tile = false;
                super::walk(value, &mut |e| {
                    has_tile |= matches!(&e.kind, ExprKind::Name(n, _) if matches!(self.kinds.name(*n), Kind::Tile(_) | Kind::Unclear));
                });
                let is_shape = matches!(&value.kind, ExprKind::Attr(..));
                let kind = if has_tile && !is_shape { Kind::Unclear } else { Kind::Other };
                bound.extend(parts(target).into_iter().filter_map(name_of).map(|name| (name, kind.clone())));
            }
            _ => {}
        }
    }

    /// An assigned tile, broadcast along the free dimensions of the destination if it may have another shape.
    fn widened(&mut self, dst: &Place, value: &Expr, text: String) -> String {
        let Some(shape) = &dst.shape else { return text };
        let plain = matches!(value.kind, ExprKind::Name(..) | ExprKind::Subscript(..));
        let Some(tile) = self.tile(value).filter(|_| plain) else { return text };
        let elements = |shape: &[Poly]| shape.iter().try_fold(Poly::number(1), |n, extent| n.times(extent));
        let is_whole = match self.shape_of(value).or(tile.shape) {
            // Dimensions may be joined or divided.
            Some(own) => elements(&own) == elements(shape),
            None => shape.len() != 2,
        };
        if is_whole || tile.memory == Some(Memory::Hbm) {
            return text;
        }
        format!("{}.broadcast_to({text}, {})", self.nl(), tuple(shape))
    }

    /// The extents of a tensor or a part of one.
    fn shape_of(&mut self, expr: &Expr) -> Option<Vec<Poly>> {
        self.place(expr, &[]).ok()?.shape
    }

    /// The instruction that computes `nl.op(a, b)` directly into its target, for tiles of its shape or a tile and a number.
    pub(super) fn direct(&mut self, dst: &Place, value: &Expr, bounds: &Bounds) -> Outcome<Option<String>> {
        let function = self.callee(value).and_then(|p| p.strip_prefix("nki.language.").map(ToOwned::to_owned));
        let Some(name) = function.filter(|n| binary(n) && !COMPARISONS.contains(&n.as_str())) else { return Ok(None) };
        let (_, parts) = self.arguments(value)?;
        let on_chip = dst.memory.is_some_and(|m| m != Memory::Hbm);
        let ([a, b, ..], Some(shape), true) = (&parts.given[..], &dst.shape, on_chip) else { return Ok(None) };
        let plain = |e: &Expr| matches!(e.kind, ExprKind::Name(..) | ExprKind::Subscript(..));
        let positional = a.keyword.is_none() && b.keyword.is_none();
        if !positional || self.kinds.source(value.span).contains(['\n', '#']) {
            return Ok(None);
        }
        let number = |pass: &Self, e: &Expr| matches!(pass.kinds.kind(pass.number(e)), Kind::Int | Kind::Float);
        let (nl, nisa) = (self.nl(), self.nisa());
        if plain(a.value) && plain(b.value) && self.tile(a.value).is_some() && self.tile(b.value).is_some() {
            let (pa, pb) = (self.place(a.value, bounds)?, self.place(b.value, bounds)?);
            let both_psum = pa.memory == Some(Memory::Psum) && pb.memory == Some(Memory::Psum);
            if both_psum || pa.shape.as_ref() != Some(shape) || pb.shape.as_ref() != Some(shape) {
                return Ok(None);
            }
            let operands = format!("dst={}, data1={}, data2={}, op={nl}.{name}", dst.text, pa.text, pb.text);
            return Ok(Some(format!("{nisa}.tensor_tensor({operands})")));
        }
        let (tile, scalar, reverse) = match (number(self, a.value), number(self, b.value)) {
            (false, true) => (a.value, b.value, ""),
            (true, false) => (b.value, a.value, ", reverse0=True"),
            _ => return Ok(None),
        };
        if !plain(tile) || self.tile(tile).is_none() {
            return Ok(None);
        }
        let place = self.place(tile, bounds)?;
        if place.shape.as_ref() != Some(shape) {
            return Ok(None);
        }
        let scalar = self.expr(self.number(scalar))?;
        let operands = format!("dst={}, data={}, op0={nl}.{name}, operand0={scalar}{reverse}", dst.text, place.text);
        Ok(Some(format!("{nisa}.tensor_scalar({operands})")))
    }

    /// The statement with another value, in its layout.
    pub(super) fn with_value(&self, stmt: &Stmt, target: &Expr, value: &Expr, text: &str) -> String {
        if let crate::syntax::StmtKind::AnnAssign(_, annotation, _) = &stmt.kind
            && self.is_of_typing(annotation.span)
        {
            return format!("{} = {text}", self.kinds.source(target.span));
        }
        let (start, end) = (stmt.span.start as usize, stmt.span.end as usize);
        format!("{}{text}{}", &self.text[start..value.span.start as usize], &self.text[value.span.end as usize..end])
    }

    /// The mask of a call of `nl`.
    pub(super) fn masked<'e>(&self, value: &'e Expr) -> Option<&'e Expr> {
        let ExprKind::Call(callee, args) = &value.kind else { return None };
        self.kinds.language(callee)?;
        args.iter().find_map(|a| match a {
            Argument::Keyword(name, e)
                if &**self.kinds.names.name(*name) == "mask" && !matches!(e.kind, ExprKind::None) =>
            {
                Some(e)
            }
            _ => None,
        })
    }

    /// `x = nl.f(..., mask=...)`: a tile of the full shape, of which a part is assigned.
    pub(super) fn masked_result(&mut self, target: &Expr, value: &Expr) -> Outcome<Vec<String>> {
        let mask = self.masked(value);
        let bounds = mask.map_or(Ok(Vec::new()), |m| self.bounds(m))?;
        let (_, parts) = self.arguments(value)?;
        let first = parts.given.first().map(|g| g.value).filter(|e| self.tile(e).is_some());
        let refuse = || {
            by_hand(value.span, "mask=", "make the tile with nl.ndarray and assign to the slice that the mask leaves")
        };
        let function = self
            .callee(value)
            .and_then(|p| p.strip_prefix("nki.language.").map(ToOwned::to_owned))
            .ok_or_else(refuse)?;
        if !OPS.iter().any(|o| o.name == function) {
            return Err(refuse());
        }
        let data = self.place(first.ok_or_else(refuse)?, &[])?;
        let name = self.kinds.source(target.span).to_owned();
        let (Some(shape), Some(dtype)) = (data.shape.clone(), self.type_of_call(value, &data)) else {
            // A tile of the part left by the mask, of the operands' common type.
            let text = self.typed(value, None, &bounds)?;
            self.last_made = Some(Tile { memory: Some(Memory::Sbuf), shape: data.shape, ..Tile::default() });
            self.bind_made(target, value);
            return Ok(vec![format!("{name} = {text}")]);
        };
        let tile = Tile {
            memory: Some(Memory::Sbuf),
            shape: Some(shape.clone()),
            dtype: Some(dtype.clone()),
            ..Tile::default()
        };
        let made = self.made(UNNAMED, &Made { shape: tuple(&shape), dtype: dtype.clone(), tile: tile.clone() });
        let dst = self.narrowed(value, UNNAMED.to_owned(), &tile, &bounds)?.text;
        let text = self.typed(value, Some(&dtype), &bounds)?;
        self.last_made = Some(tile);
        self.bind_made(target, value);
        Ok(self.named(target, vec![made, format!("{dst} = {text}")]))
    }

    pub(super) fn type_of_call(&self, value: &Expr, data: &Place) -> Option<String> {
        let (_, parts) = self.arguments(value).ok()?;
        if let Some(given) = parts.given.iter().find(|g| g.keyword.as_deref() == Some("dtype")) {
            return Some(self.kinds.source(given.value.span).to_owned());
        }
        let others = parts.given.iter().skip(1).filter(|g| g.keyword.as_deref() != Some("mask"));
        let mut dtype = data.dtype.clone();
        for other in others {
            if let Some(tile) = self.tile(other.value) {
                dtype = super::result::promoted(dtype.as_deref(), tile.dtype.as_deref());
            } else if dtype.as_deref().map(bare) != Some("float32") {
                return None;
            }
        }
        dtype
    }

    /// A value assigned to a part of a tensor: it is computed in the type of the tensor.
    pub(super) fn typed(&mut self, value: &Expr, dtype: Option<&str>, bounds: &Bounds) -> Outcome<String> {
        match &value.kind {
            ExprKind::Call(..) if let Some(path) = self.callee(value) => match path.strip_prefix("nki.language.") {
                Some(name) if OPS.iter().any(|o| o.name == name) || REDUCTIONS.contains(&name) && bounds.is_empty() => {
                    self.function(value, dtype, bounds)
                }
                _ if !bounds.is_empty() => Err(by_hand(value.span, "mask=", "bound the slices of the operands")),
                _ => self.expr(value),
            },
            ExprKind::Binary(op, left, right)
                if let Some(name) = operation(*op)
                    && (self.tile(left).is_some() || self.tile(right).is_some()) =>
            {
                self.operator(name, left, right, dtype)
            }
            _ => Ok(self.place(value, bounds)?.text),
        }
    }

    /// `target op= value`
    pub(super) fn update(&mut self, stmt: &Stmt, target: &Expr, op: BinOp, value: &Expr) -> Outcome<Vec<String>> {
        let Some(tile) = self.tile(target) else {
            if let Some(name) = name_of(target) {
                let text = self.spliced(stmt.span, &[value])?;
                self.kinds.forget(name);
                return Ok(vec![text]);
            }
            return self.spliced(stmt.span, &[target, value]).map(|t| vec![t]);
        };
        let path = self.callee(value).unwrap_or_default();
        if op == BinOp::Add && tile.memory != Some(Memory::Sbuf) {
            self.notes_whole(target);
            if path == "nki.isa.nc_matmul" {
                return self.instruction(value, "nc_matmul", Target::Onto(target));
            }
            if path == "nki.language.matmul" {
                return self.matmul(value, Target::Onto(target));
            }
        }
        let Some(name) = operation(op) else {
            return Err(by_hand(stmt.span, "an operator on tiles", "a function of nki.language"));
        };
        let place = self.place(target, &[])?;
        let (nl, nisa) = (self.nl(), self.nisa());
        if matches!(self.number_kind(value), Kind::Int | Kind::Float) {
            let number = self.expr(self.number(value))?;
            let text = &place.text;
            return Ok(vec![format!(
                "{nisa}.tensor_scalar(dst={text}, data={text}, op0={nl}.{name}, operand0={number})"
            )]);
        }
        let mut other = self.place(value, &[])?;
        if self.both_in_psum(target, value) {
            other.text = format!("{nl}.copy({})", other.text);
        }
        if place.shape.is_some() && place.shape == other.shape {
            let text = &place.text;
            return Ok(vec![format!(
                "{nisa}.tensor_tensor(dst={text}, data1={text}, data2={}, op={nl}.{name})",
                other.text
            )]);
        }
        let dtype = place.dtype.clone().unwrap_or_else(|| format!("{}.dtype", place.text));
        let to = if name_of(target).is_some() { format!("{}[...]", place.text) } else { place.text.clone() };
        Ok(vec![format!("{to} = {nl}.{name}({}, {}, dtype={dtype})", place.text, other.text)])
    }

    /// `tiles.append(tile)`: from then on the list contains tiles, until something else is appended.
    fn appended(&mut self, value: &Expr) {
        if let ExprKind::Call(callee, args) = &value.kind
            && let (ExprKind::Attr(base, method), [Argument::Positional(item)]) = (&callee.kind, &args[..])
            && &**self.kinds.names.name(*method) == "append"
            && let Some(list) = name_of(base)
        {
            match (self.kinds.name(list), self.value_kind(item)) {
                (Kind::Other, Kind::Tile(_)) => self.kinds.bind(list, Kind::Tiles, &[]),
                (Kind::Tiles, kind) if !matches!(kind, Kind::Tile(_)) => self.kinds.forget(list),
                _ => {}
            }
        }
    }

    /// An expression statement.
    pub(super) fn statement(&mut self, value: &Expr) -> Outcome<Vec<String>> {
        let path = self.callee(value).unwrap_or_default();
        if path == "nki.language.store" {
            return self.store(value);
        }
        if let Some(name) = path.strip_prefix("nki.isa.").filter(|n| WITH_DST.contains(n)) {
            let name = name.to_owned();
            return self.with_dst(value, &name).map(|t| vec![t]);
        }
        self.appended(value);
        let text = self.expr(value)?;
        // The unused result of an instruction needs no separate line.
        let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
        Ok(if is_name && !self.before.is_empty() { Vec::new() } else { vec![text] })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keywords_and_attributes_read_no_name() {
        let reads = |text| super::reads(text, "data");
        assert!(reads("nisa.f(dst=t, data=data[0:4])") && reads("f(data==1)") && reads("(data.shape[0], 1)"));
        assert!(!reads("nisa.f(dst=t, data=u.data, metadata, data_2)"));
    }
}
