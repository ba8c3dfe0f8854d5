//! `nl.ndarray(...)` and its siblings: the partition dimension moves to the front, tables of tiles become lists.

use super::access::tuple;
use super::assign::UNNAMED;
use super::call::Written;
use super::kinds::{Kind, Memory, Tile};
use super::poly::Poly;
use super::{Outcome, Pass, by_hand};
use crate::syntax::{Expr, ExprKind, Stmt};

impl Pass<'_> {
    /// `name = nl.maker(...)`
    pub(super) fn make(&mut self, stmt: &Stmt, target: &Expr, value: &Expr, maker: &str) -> Outcome<Vec<String>> {
        let ExprKind::Name(name, _) = target.kind else {
            let text = self.remade(value, maker)?;
            let place = self.place(target, &[])?.text;
            return Ok(vec![format!("{place} = {text}")]);
        };
        let (tile, text) = self.maker(value, maker, Some(name))?;
        let blocks = tile.blocks.clone();
        self.kinds.bind(name, Kind::Tile(tile), &[value]);
        if blocks.is_empty() {
            let head = &self.text[stmt.span.start as usize..value.span.start as usize];
            return Ok(vec![format!("{head}{text}")]);
        }
        let count = blocks.iter().try_fold(Poly::number(1), |n, b| n.times(b));
        let count = count.ok_or_else(|| by_hand(value.span, "a table of tiles", "a list of tensors"))?;
        let lines = vec![
            format!("{UNNAMED} = []"),
            format!("for _ in range({count}):"),
            format!("    {UNNAMED}.append({text})"),
        ];
        Ok(self.named(target, lines))
    }

    /// The call in an expression.
    pub(super) fn remade(&mut self, call: &Expr, maker: &str) -> Outcome<String> {
        let (tile, text) = self.maker(call, maker, None)?;
        if tile.blocks.is_empty() {
            return Ok(text);
        }
        Err(by_hand(call.span, "a table of tiles as a value", "a list of tensors"))
    }

    /// The tile and the call that allocates it; for a table one of its tiles.
    fn maker(&mut self, call: &Expr, maker: &str, name: Option<crate::syntax::Symbol>) -> Outcome<(Tile, String)> {
        let (callee, mut parts) = self.arguments(call)?;
        let positions: &[&str] = match maker {
            "full" => &["shape", "fill_value", "dtype"],
            "empty_like" | "zeros_like" => &["x", "dtype"],
            _ => &["shape", "dtype"],
        };
        let lazy =
            self.take(&mut parts, "lazy_initialization").is_some_and(|g| matches!(g.value.kind, ExprKind::Bool(true)));
        let get = |keyword: &str| {
            let at = positions.iter().position(|p| *p == keyword);
            let named = parts.given.iter().find(|g| g.keyword.as_deref() == Some(keyword));
            named.or(at.and_then(|at| parts.given.get(at)).filter(|g| g.keyword.is_none())).map(|g| g.value)
        };
        let dtype = get("dtype").map(|e| match self.table_dtype(e) {
            Some((text, given)) => given.unwrap_or(text),
            None => self.kinds.source(e.span).to_owned(),
        });
        let buffer = get("buffer").filter(|e| !matches!(e.kind, ExprKind::None));
        let path = buffer.and_then(|e| self.buffer(e));
        let memory = match path.as_deref() {
            Some("nki.language.psum") => Some(Memory::Psum),
            Some("nki.language.hbm" | "nki.language.shared_hbm" | "nki.language.private_hbm") => Some(Memory::Hbm),
            None if buffer.is_none() => Some(Memory::Sbuf),
            Some("nki.language.sbuf") => Some(Memory::Sbuf),
            _ => None,
        };
        let (shape_text, shape, blocks) = match get("shape") {
            Some(shape) => self.shape(shape, memory)?,
            None => (String::new(), None, Vec::new()),
        };
        let maker = match maker {
            "zeros" if lazy && !name.is_some_and(|n| self.overwritten.contains(&n)) => "ndarray",
            "zeros" if memory == Some(Memory::Psum) && name.is_some_and(|n| self.accumulated.contains(&n)) => "ndarray",
            maker => maker,
        };
        if let ("zeros" | "full" | "ones" | "zeros_like", Some(name)) = (maker, name) {
            self.zeroed.insert(name);
        }
        let is_output =
            name.is_some_and(|n| self.returned.contains(&n)) && path.as_deref().is_some_and(|p| p.ends_with("hbm"));
        let mut written = Vec::new();
        for (at, given) in parts.given.iter().enumerate() {
            let operand = given.keyword.as_deref().or(positions.get(at).copied()).unwrap_or_default();
            if operand == "name"
                && (!blocks.is_empty() || self.kinds.source(given.value.span).trim_matches(['\'', '"']).is_empty())
            {
                continue;
            }
            let text = match operand {
                "shape" => shape_text.clone(),
                "buffer" if is_output => format!("{}.shared_hbm", self.nl()),
                "buffer" if path.as_deref().is_some_and(|p| p.starts_with("nki.language.")) => {
                    let memory = path.as_deref().and_then(|p| p.rsplit('.').next()).unwrap_or("sbuf").to_owned();
                    if self.kinds.path(given.value).is_some() {
                        self.expr(given.value)?
                    } else {
                        format!("{}.{memory}", self.nl())
                    }
                }
                _ => self.expr(self.number(given.value))?,
            };
            written.push(Written::in_place_of(given, given.keyword.as_deref(), &text));
        }
        let callee = match maker {
            "ndarray" => format!("{}.ndarray", self.nl()),
            _ => self.expr(callee)?,
        };
        let text = parts.call(&callee, written);
        let rows = self.rows_of_shape(&shape_text);
        let known = Tile { memory, shape, dtype, blocks, rows };
        Ok((known, text))
    }

    /// The memory named by an argument.
    fn buffer(&self, expr: &Expr) -> Option<String> {
        if let ExprKind::Call(callee, _) = &expr.kind {
            let path = self.kinds.path(callee)?;
            let memory = path.strip_prefix("nki.compiler.")?.strip_suffix(".auto_alloc")?;
            return Some(format!("nki.language.{memory}"));
        }
        match &expr.kind {
            ExprKind::Str(memory) => Some(format!("nki.language.{memory}")),
            _ => self.kinds.path(expr),
        }
    }

    /// A shape without `par_dim`: its text, its extents and those of the block dimensions before the partitions.
    fn shape(&mut self, shape: &Expr, memory: Option<Memory>) -> Outcome<(String, Option<Vec<Poly>>, Vec<Poly>)> {
        let (ExprKind::Tuple(items) | ExprKind::List(items)) = &shape.kind else {
            return Ok((self.expr(shape)?, None, Vec::new()));
        };
        let partitions = items.iter().position(|e| match &e.kind {
            ExprKind::Call(callee, _) => self.kinds.language(callee).as_deref() == Some("par_dim"),
            _ => false,
        });
        let mut extents = Vec::new();
        for item in items {
            let of = match &item.kind {
                ExprKind::Call(callee, args) if self.kinds.language(callee).as_deref() == Some("par_dim") => {
                    match &args[..] {
                        [crate::syntax::Argument::Positional(size)] => size,
                        _ => return Err(by_hand(item.span, "nl.par_dim", "the extent alone")),
                    }
                }
                _ => item,
            };
            extents.push(self.kinds.poly(of));
        }
        let at = partitions.filter(|_| memory != Some(Memory::Hbm)).unwrap_or(0);
        if extents.len() - at == 1 && matches!(memory, Some(Memory::Sbuf | Memory::Psum)) {
            let instead = "two dimensions, (partitions, 1), here and in the indices of the tile";
            return Err(by_hand(shape.span, "a tile of one dimension", instead));
        }
        let all: Option<Vec<Poly>> = extents.into_iter().collect();
        if at == 0 {
            return Ok((self.expr(shape)?, all, Vec::new()));
        }
        let all =
            all.ok_or_else(|| by_hand(shape.span, "block dimensions", "a list of tensors of shape (partitions, ...)"))?;
        let (blocks, tile) = all.split_at(at);
        Ok((tuple(tile), Some(tile.to_vec()), blocks.to_vec()))
    }
}
