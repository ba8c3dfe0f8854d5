//! The kinds of a kernel's values, as far as its source shows them: index tiles, masks, tiles with their shapes.

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::poly::Poly;
use crate::syntax::{Argument, BinOp, CmpOp, Expr, ExprKind, Interner, Symbol, UnaryOp};

/// A memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Memory {
    Sbuf,
    Psum,
    Hbm,
}

/// An index tile: `base + sum of coefficient * position` over the axes of its frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    /// Extents; `None` for an axis of 1 that broadcasts.
    pub(super) counts: Vec<Option<Poly>>,
    /// Coefficients, one for each axis.
    pub(super) steps: Vec<Poly>,
    /// The first value.
    pub(super) base: Poly,
}

/// A tensor, or a table of tiles.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tile {
    pub(super) memory: Option<Memory>,
    /// Extents of a tile, if known.
    pub(super) shape: Option<Vec<Poly>>,
    /// The element type, as an expression.
    pub(super) dtype: Option<String>,
    /// Extents of the block dimensions.
    pub(super) blocks: Vec<Poly>,
    /// The number of partitions, as an expression, of a tile of unknown shape.
    pub(super) rows: Option<String>,
}

/// The kind of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Index(Frame),
    /// `nl.mgrid[...]`
    Grid(Vec<Frame>),
    /// Inequalities: each is at least 0.
    Mask(Vec<Frame>),
    Tile(Tile),
    Int,
    Float,
    /// A list, tuple, or dict of tiles.
    Tiles,
    /// A tile or something else.
    Unclear,
    Other,
}

impl Frame {
    fn number(base: Poly) -> Self {
        Self { counts: Vec::new(), steps: Vec::new(), base }
    }

    /// The sum, or the difference.
    fn plus(&self, other: &Self, sign: i64) -> Option<Self> {
        let other = other.scaled(&Poly::number(sign))?;
        let (wide, narrow) = if self.counts.len() >= other.counts.len() { (self, &other) } else { (&other, self) };
        let mut out = wide.clone();
        out.base = wide.base.plus(&narrow.base)?;
        if narrow.counts.is_empty() {
            return Some(out);
        }
        if narrow.counts.len() != wide.counts.len() {
            return None;
        }
        for (axis, count) in narrow.counts.iter().enumerate() {
            match (&out.counts[axis], count) {
                (Some(a), Some(b)) if a != b => return None,
                (None, Some(b)) => out.counts[axis] = Some(b.clone()),
                _ => {}
            }
            out.steps[axis] = out.steps[axis].plus(&narrow.steps[axis])?;
        }
        Some(out)
    }

    fn scaled(&self, by: &Poly) -> Option<Self> {
        let steps = self.steps.iter().map(|s| s.times(by)).collect::<Option<_>>()?;
        Some(Self { counts: self.counts.clone(), steps, base: self.base.times(by)? })
    }

    /// The axes along which it moves.
    pub(super) fn axes(&self) -> Vec<usize> {
        (0..self.steps.len()).filter(|&a| !self.steps[a].is(0)).collect()
    }

    /// `arange[:, None]` and the like.
    fn expanded(&self, keys: &[&Expr]) -> Option<Self> {
        let mut out = Self::number(self.base.clone());
        let mut own = 0;
        for key in keys {
            match &key.kind {
                ExprKind::None => {
                    out.counts.push(None);
                    out.steps.push(Poly::number(0));
                }
                ExprKind::Slice(None, None, None) => {
                    out.counts.push(self.counts.get(own)?.clone());
                    out.steps.push(self.steps.get(own)?.clone());
                    own += 1;
                }
                _ => return None,
            }
        }
        (own == self.counts.len()).then_some(out)
    }
}

/// The entries of a subscript.
pub(super) fn entries(key: &Expr) -> Vec<&Expr> {
    match &key.kind {
        ExprKind::Tuple(items) => items.iter().collect(),
        _ => vec![key],
    }
}

/// The known kind of a name, and the versions of the names on which it depends.
#[derive(Debug, Clone)]
struct Known {
    kind: Kind,
    depends: Vec<(Symbol, u32)>,
}

/// The kinds of a function's names at one position.
pub(super) struct Kinds<'a> {
    pub(super) text: &'a str,
    pub(super) names: &'a Interner,
    /// The dotted name of each imported name, with `nki` for `neuronxcc.nki`.
    pub(super) imported: FxHashMap<Symbol, String>,
    known: FxHashMap<Symbol, Known>,
    versions: FxHashMap<Symbol, u32>,
}

impl<'a> Kinds<'a> {
    pub(super) fn new(text: &'a str, names: &'a Interner, imported: FxHashMap<Symbol, String>) -> Self {
        Self { text, names, imported, known: FxHashMap::default(), versions: FxHashMap::default() }
    }

    /// Source text.
    pub(super) fn source(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// Removes all names, for another function.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    fn version(&self, name: Symbol) -> u32 {
        self.versions.get(&name).copied().unwrap_or(0)
    }

    /// Records a new value of a name, of this kind, computed from an expression.
    pub(super) fn bind(&mut self, name: Symbol, kind: Kind, from: &[&Expr]) {
        let mut depends = Vec::new();
        for expr in from {
            names_of(expr, &mut |used| {
                depends.push((used, self.version(used)));
                if let Some(known) = self.known.get(&used) {
                    depends.extend(known.depends.iter().copied());
                }
            });
        }
        *self.versions.entry(name).or_default() += 1;
        self.known.insert(name, Known { kind, depends });
    }

    /// Makes the kind of a name unknown.
    pub(super) fn forget(&mut self, name: Symbol) {
        *self.versions.entry(name).or_default() += 1;
        self.known.remove(&name);
    }

    /// The current knowledge, for [`Self::join`].
    pub(super) fn state(&self) -> FxHashMap<Symbol, Kind> {
        self.known.iter().map(|(n, k)| (*n, k.kind.clone())).collect()
    }

    /// Removes the names that differ in another state: after a branch.
    pub(super) fn join(&mut self, other: &FxHashMap<Symbol, Kind>) {
        let differ: Vec<Symbol> =
            self.known.iter().filter(|(n, k)| other.get(n).is_some_and(|o| *o != k.kind)).map(|(n, _)| *n).collect();
        differ.into_iter().for_each(|n| self.forget(n));
    }

    /// The kind of a name. Kinds derived from a name that has been reassigned since are unknown.
    pub(super) fn name(&self, name: Symbol) -> Kind {
        let Some(known) = self.known.get(&name) else { return Kind::Other };
        if known.depends.iter().all(|(n, version)| self.version(*n) == *version) {
            return known.kind.clone();
        }
        match &known.kind {
            Kind::Tile(tile) => {
                let shape = tile.shape.as_ref().filter(|s| s.iter().all(|n| n.value().is_some())).cloned();
                // `t.dtype` is the type of another tile if `t` has been reassigned since.
                let is_stale = |dtype: &String| {
                    let of = dtype.strip_suffix(".dtype").and_then(|base| self.names.find(base));
                    of.is_some_and(|base| known.depends.iter().any(|(n, v)| *n == base && self.version(base) != *v))
                };
                let dtype = tile.dtype.clone().filter(|dtype| !is_stale(dtype));
                Kind::Tile(Tile { shape, dtype, ..tile.clone() })
            }
            _ => Kind::Other,
        }
    }

    /// The dotted name of a function or constant of the API.
    pub(super) fn path(&self, expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Name(name, _) => self.imported.get(name).cloned(),
            ExprKind::Attr(base, name) => Some(format!("{}.{}", self.path(base)?, self.names.name(*name))),
            _ => None,
        }
    }

    /// The name of a function of `nki.language`.
    pub(super) fn language(&self, expr: &Expr) -> Option<String> {
        Some(self.path(expr)?.strip_prefix("nki.language.")?.to_owned())
    }

    /// Whether an expression contains no index tile and no mask.
    pub(super) fn is_plain(&self, expr: &Expr) -> bool {
        let mut plain = true;
        names_of(expr, &mut |n| {
            // A stale kind cannot be assumed to be an int either.
            let kind = self.known.get(&n).map(|k| &k.kind);
            plain &= !matches!(kind, Some(Kind::Index(_) | Kind::Grid(_) | Kind::Mask(_)));
        });
        walk(expr, &mut |e| {
            if let ExprKind::Call(callee, _) = &e.kind {
                plain &= self.language(callee).as_deref() != Some("arange");
            }
            if let ExprKind::Subscript(base, _) = &e.kind {
                plain &= self.language(base).as_deref() != Some("mgrid");
            }
        });
        plain
    }

    /// An int as a sum of products.
    pub(super) fn poly(&self, expr: &Expr) -> Option<Poly> {
        let atom = |tight| self.is_plain(expr).then(|| Poly::atom(self.source(expr.span), tight));
        match &expr.kind {
            ExprKind::Int(value) => Some(Poly::number(*value)),
            ExprKind::Name(..) | ExprKind::Attr(..) | ExprKind::Subscript(..) | ExprKind::Call(..) => atom(true),
            ExprKind::Binary(op, left, right) => match op {
                BinOp::Add => self.poly(left)?.plus(&self.poly(right)?),
                BinOp::Sub => self.poly(left)?.minus(&self.poly(right)?),
                BinOp::Mul => self.poly(left)?.times(&self.poly(right)?),
                BinOp::FloorDiv | BinOp::Mod => match (op, self.poly(left)?.value(), self.poly(right)?.value()) {
                    (BinOp::FloorDiv, Some(a), Some(b)) if b > 0 => Some(Poly::number(a.div_euclid(b))),
                    _ => atom(false),
                },
                _ => atom(false),
            },
            ExprKind::Unary(UnaryOp::Neg, of) => self.poly(of)?.times(&Poly::number(-1)),
            ExprKind::IfElse(..) => atom(false),
            _ => None,
        }
    }

    /// An index tile.
    pub(super) fn frame(&self, expr: &Expr) -> Option<Frame> {
        match &expr.kind {
            ExprKind::Name(name, _) => match self.name(*name) {
                Kind::Index(frame) => Some(frame),
                _ => None,
            },
            ExprKind::Call(callee, args) if self.language(callee)? == "arange" => {
                let plain = |a: &Argument| match a {
                    Argument::Positional(e) => self.poly(e),
                    _ => None,
                };
                let bounds = args.iter().map(plain).collect::<Option<Vec<_>>>()?;
                let (base, count) = match &bounds[..] {
                    [n] => (Poly::number(0), n.clone()),
                    [from, to] => (from.clone(), to.minus(from)?),
                    _ => return None,
                };
                Some(Frame { counts: vec![Some(count)], steps: vec![Poly::number(1)], base })
            }
            ExprKind::Subscript(base, key) => self.frame(base)?.expanded(&entries(key)),
            ExprKind::Attr(base, name) => {
                let Kind::Grid(axes) = self.kind(base) else { return None };
                let at = ["p", "x", "y", "z", "w"].iter().position(|n| **n == **self.names.name(*name))?;
                axes.get(at).cloned()
            }
            ExprKind::Binary(op, left, right) => {
                let side = |e: &Expr| self.frame(e).or_else(|| self.poly(e).map(Frame::number));
                let (a, b) = (side(left)?, side(right)?);
                if a.counts.is_empty() && b.counts.is_empty() {
                    return None;
                }
                match op {
                    BinOp::Add => a.plus(&b, 1),
                    BinOp::Sub => a.plus(&b, -1),
                    BinOp::Mul if b.counts.is_empty() => a.scaled(&b.base),
                    BinOp::Mul if a.counts.is_empty() => b.scaled(&a.base),
                    _ => None,
                }
            }
            ExprKind::Unary(UnaryOp::Neg, of) => self.frame(of)?.scaled(&Poly::number(-1)),
            _ => None,
        }
    }

    /// `nl.mgrid[a:b, ...]`
    fn grid(&self, expr: &Expr) -> Option<Vec<Frame>> {
        let ExprKind::Subscript(base, key) = &expr.kind else { return None };
        if self.language(base)? != "mgrid" {
            return None;
        }
        let mut spans = Vec::new();
        for entry in entries(key) {
            let ExprKind::Slice(from, Some(to), None) = &entry.kind else { return None };
            let from = from.as_ref().map_or(Some(Poly::number(0)), |e| self.poly(e))?;
            let count = self.poly(to)?.minus(&from)?;
            spans.push((from, count));
        }
        let counts: Vec<_> = spans.iter().map(|s| Some(s.1.clone())).collect();
        let axis = |at: usize| {
            let steps = (0..spans.len()).map(|d| Poly::number(i64::from(d == at))).collect();
            Frame { counts: counts.clone(), steps, base: spans[at].0.clone() }
        };
        Some((0..spans.len()).map(axis).collect())
    }

    /// `left - right`, of which at least one is an index tile.
    pub(super) fn difference(&self, left: &Expr, right: &Expr) -> Option<Frame> {
        let side = |e: &Expr| self.frame(e).or_else(|| self.poly(e).map(Frame::number));
        side(left)?.plus(&side(right)?, -1).filter(|f| !f.counts.is_empty())
    }

    /// Inequalities on index tiles.
    pub(super) fn mask(&self, expr: &Expr) -> Option<Vec<Frame>> {
        match &expr.kind {
            ExprKind::Name(name, _) => match self.name(*name) {
                Kind::Mask(mask) => Some(mask),
                _ => None,
            },
            ExprKind::Binary(BinOp::BitAnd, left, right) => Some([self.mask(left)?, self.mask(right)?].concat()),
            ExprKind::And(all) => all.iter().map(|e| self.mask(e)).collect::<Option<Vec<_>>>().map(|m| m.concat()),
            ExprKind::Compare(first, rest) => {
                let side = |e: &Expr| self.frame(e).or_else(|| self.poly(e).map(Frame::number));
                let mut left = side(first)?;
                let mut found = Vec::new();
                for (op, right) in rest {
                    let right = side(right)?;
                    let strict = Frame::number(Poly::number(1));
                    found.push(match op {
                        CmpOp::Lt => right.plus(&left, -1)?.plus(&strict, -1)?,
                        CmpOp::Le => right.plus(&left, -1)?,
                        CmpOp::Gt => left.plus(&right, -1)?.plus(&strict, -1)?,
                        CmpOp::Ge => left.plus(&right, -1)?,
                        _ => return None,
                    });
                    left = right;
                }
                found.iter().any(|f| !f.counts.is_empty()).then_some(found)
            }
            _ => None,
        }
    }

    /// The kind of an expression; for calls only if it needs no table of functions.
    pub(super) fn kind(&self, expr: &Expr) -> Kind {
        if let Some(frame) = self.frame(expr) {
            return Kind::Index(frame);
        }
        if let Some(grid) = self.grid(expr) {
            return Kind::Grid(grid);
        }
        if let Some(mask) = self.mask(expr) {
            return Kind::Mask(mask);
        }
        match &expr.kind {
            ExprKind::Name(name, _) => self.name(*name),
            ExprKind::Int(_) | ExprKind::Bool(_) => Kind::Int,
            ExprKind::Float(_) => Kind::Float,
            ExprKind::Unary(UnaryOp::Neg, of) => self.kind(of),
            ExprKind::Binary(op, left, right) => match (self.kind(left), self.kind(right)) {
                (Kind::Int, Kind::Int) if *op == BinOp::Div => Kind::Float,
                // A negative exponent gives a float.
                (Kind::Int, Kind::Int) if *op == BinOp::Pow => Kind::Other,
                (Kind::Int, Kind::Int) => Kind::Int,
                (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => Kind::Float,
                _ => Kind::Other,
            },
            // `x.shape[0]`
            ExprKind::Subscript(base, at)
                if matches!(&base.kind, ExprKind::Attr(_, name) if &**self.names.name(*name) == "shape")
                    && self.kind(at) == Kind::Int =>
            {
                Kind::Int
            }
            ExprKind::Attr(..) if self.language(expr).is_some_and(|l| l.starts_with("tile_size.")) => Kind::Int,
            ExprKind::Call(callee, _) if self.language(callee).as_deref() == Some("program_id") => Kind::Int,
            ExprKind::Call(callee, _) if let ExprKind::Name(name, _) = callee.kind => match &**self.names.name(name) {
                "float" => Kind::Float,
                "int" | "len" => Kind::Int,
                _ => Kind::Other,
            },
            _ => Kind::Other,
        }
    }

    /// Whether an entry of a subscript may be a slice, or several entries: `row = nl.ds(i, 1)`, `t[row, :]`. Arithmetic yields ints only.
    pub(super) fn may_be_slices(&self, entry: &Expr) -> bool {
        !matches!(&entry.kind, ExprKind::Binary(..) | ExprKind::Unary(..)) && self.kind(entry) != Kind::Int
    }

    /// The kind of the elements of a loop's iterable.
    pub(super) fn elements(&self, iter: &Expr) -> Kind {
        const RANGES: [&str; 4] = ["affine_range", "sequential_range", "static_range", "range"];
        match &iter.kind {
            ExprKind::Call(callee, _) => {
                let builtin = matches!(&callee.kind, ExprKind::Name(n, _) if &**self.names.name(*n) == "range");
                let language = self.language(callee).is_some_and(|name| RANGES.contains(&&*name));
                if builtin || language { Kind::Int } else { Kind::Other }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) if items.iter().all(|e| self.kind(e) == Kind::Int) => {
                Kind::Int
            }
            _ => Kind::Other,
        }
    }
}

/// Calls `found` with every subexpression, the expression itself first.
pub(super) fn walk<'e>(expr: &'e Expr, found: &mut dyn FnMut(&'e Expr)) {
    found(expr);
    for child in children(expr) {
        walk(child, found);
    }
}

fn names_of(expr: &Expr, found: &mut dyn FnMut(Symbol)) {
    walk(expr, &mut |e| {
        if let ExprKind::Name(name, _) = &e.kind {
            found(*name);
        }
    });
}

/// The direct subexpressions, in the order of the source. Those of lambdas and f-strings are left out.
pub(super) fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Attr(base, _) | ExprKind::Unary(_, base) | ExprKind::Starred(base) => vec![base],
        ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) | ExprKind::Walrus(a, b) => vec![a, b],
        ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().map(|e| &**e).collect(),
        ExprKind::Tuple(all) | ExprKind::List(all) | ExprKind::Set(all) | ExprKind::And(all) | ExprKind::Or(all) => {
            all.iter().collect()
        }
        ExprKind::Dict(pairs) => pairs.iter().flat_map(|(k, v)| k.iter().chain([v])).collect(),
        ExprKind::Compare(first, rest) => [&**first].into_iter().chain(rest.iter().map(|r| &r.1)).collect(),
        ExprKind::IfElse(test, then, other) => vec![then, test, other],
        ExprKind::Call(callee, args) => {
            let arg = |a| match a {
                &Argument::Positional(ref e)
                | &Argument::Keyword(_, ref e)
                | &Argument::Star(ref e)
                | &Argument::DoubleStar(ref e) => e,
            };
            [&**callee].into_iter().chain(args.iter().map(arg)).collect()
        }
        ExprKind::Comp(comp) => {
            let clauses = comp.clauses.iter().flat_map(|c| [&c.target, &c.iter].into_iter().chain(&c.ifs));
            comp.key.iter().chain([&comp.element]).chain(clauses).collect()
        }
        _ => Vec::new(),
    }
}
