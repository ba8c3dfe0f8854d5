//! The tiles that the functions of a file pass to each other and return: a migration reads the file until this information is stable.

use rustc_hash::{FxHashMap, FxHashSet};

use super::kinds::{Kind, Memory, Tile, entries, walk};
use super::tree::{all, parts};
use super::{Api, Pass};
use crate::syntax::{Argument, Expr, ExprKind, Interner, Stmt, StmtKind, Symbol};

/// Maximum number of readings of a file: call chains of this length are followed against the order of the functions.
const ROUNDS: usize = 5;

/// The kind of the values at one location of a function in all its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Tiles, in this memory if it is unique.
    Tile(Option<Memory>),
    /// No tiles, as far as known.
    Other,
    /// Tiles in some calls.
    Both,
}

impl Seen {
    fn of(kind: &Kind) -> Self {
        match kind {
            Kind::Tile(tile) if tile.blocks.is_empty() => Self::Tile(tile.memory),
            Kind::Unclear => Self::Both,
            _ => Self::Other,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Tile(a), Self::Tile(b)) => Self::Tile(a.filter(|_| a == b)),
            (a, b) if a == b => a,
            _ => Self::Both,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Self::Tile(memory) => Kind::Tile(Tile { memory, ..Tile::default() }),
            Self::Both => Kind::Unclear,
            Self::Other => Kind::Other,
        }
    }
}

/// The functions of a file by name: the arguments of their parameters, and the values that they return.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Flow {
    passed: FxHashMap<(Symbol, Symbol), Seen>,
    /// One for each element of a tuple.
    returned: FxHashMap<Symbol, Vec<Seen>>,
    /// Start positions of subscripts that are whole tiles, although the source does not show it directly.
    whole: FxHashSet<u32>,
}

impl Flow {
    /// The result of repeated readings of a file.
    pub(super) fn of(text: &str, body: &[Stmt], names: &Interner, api: Api) -> Self {
        let mut flow = Self::default();
        for _ in 1..ROUNDS {
            let learned = Pass::over(text, body, names, flow.clone(), api).learned;
            if learned == flow {
                break;
            }
            flow = learned;
        }
        flow
    }

    fn pass(&mut self, function: Symbol, parameter: Symbol, seen: Seen) {
        self.passed.entry((function, parameter)).and_modify(|known| *known = known.and(seen)).or_insert(seen);
    }

    fn give(&mut self, function: Symbol, seen: Vec<Seen>) {
        match self.returned.get_mut(&function) {
            None => drop(self.returned.insert(function, seen)),
            Some(known) if known.len() == seen.len() => {
                known.iter_mut().zip(seen).for_each(|(known, seen)| *known = known.and(seen));
            }
            // Functions that return tuples of different lengths.
            Some(known) => *known = vec![Seen::Other],
        }
    }
}

/// The parameters of each function that is defined once, by position.
pub(super) fn parameters(body: &[Stmt]) -> FxHashMap<Symbol, Vec<Symbol>> {
    let (mut found, mut twice) = (FxHashMap::default(), FxHashSet::default());
    all(body, &mut |stmt| {
        if let StmtKind::Def(def, _) = &stmt.kind
            && found.insert(def.name, def.params.iter().map(|p| p.name).collect()).is_some()
        {
            twice.insert(def.name);
        }
    });
    found.retain(|name, _| !twice.contains(name));
    found
}

impl Pass<'_> {
    /// Records whether the target of an update is the whole tile: `t[i_p, i_f]`.
    pub(super) fn notes_whole(&mut self, target: &Expr) {
        let ExprKind::Subscript(base, _) = &target.kind else { return };
        let shape = self.tile(base).filter(|tile| tile.blocks.is_empty()).and_then(|tile| tile.shape);
        if shape.is_some() && self.place(target, &[]).ok().and_then(|place| place.shape) == shape {
            self.learned.whole.insert(target.span.start);
        }
    }

    /// Whether a target is the whole of a tile: `t[...]`, `t[:, :]`, or one that the last reading has recorded.
    pub(super) fn is_whole(&self, target: &Expr) -> bool {
        let ExprKind::Subscript(_, key) = &target.kind else { return false };
        let all = |k: &&Expr| matches!(k.kind, ExprKind::Ellipsis | ExprKind::Slice(None, None, None));
        entries(key).iter().all(all) || self.flow.whole.contains(&target.span.start)
    }

    /// Records the arguments of a call of a function of the file.
    pub(super) fn passes(&mut self, callee: &Expr, args: &[Argument]) {
        let ExprKind::Name(function, _) = callee.kind else { return };
        let Some(parameters) = self.functions.get(&function).cloned() else { return };
        for (at, arg) in args.iter().enumerate() {
            let (parameter, value) = match arg {
                Argument::Positional(value) => (parameters.get(at).copied(), value),
                Argument::Keyword(name, value) => (Some(*name).filter(|n| parameters.contains(n)), value),
                // The expanded arguments are unknown.
                Argument::Star(_) | Argument::DoubleStar(_) => return,
            };
            if let Some(parameter) = parameter {
                let seen = Seen::of(&self.value_kind(value));
                self.learned.pass(function, parameter, seen);
            }
        }
    }

    /// Records a value returned by the current function.
    pub(super) fn returns(&mut self, value: &Expr) {
        let Some(function) = self.function.filter(|f| self.functions.contains_key(f)) else { return };
        let seen = parts(value).into_iter().map(|part| Seen::of(&self.value_kind(part))).collect();
        self.learned.give(function, seen);
    }

    /// The kind of a parameter, as far as only calls determine it.
    pub(super) fn passed(&self, function: Symbol, parameter: Symbol) -> Option<Kind> {
        self.flow.passed.get(&(function, parameter)).map(|seen| seen.kind()).filter(|kind| *kind != Kind::Other)
    }

    /// The kinds of the results of a function of the file, by the elements of a tuple.
    pub(super) fn returned_by(&self, callee: &Expr) -> Option<Vec<Kind>> {
        let ExprKind::Name(function, _) = callee.kind else { return None };
        // Arrays of the host.
        if self.kernels.contains(&function) || self.function.is_none_or(|f| !self.on_device.contains(&f)) {
            return None;
        }
        Some(self.flow.returned.get(&function)?.iter().map(|seen| seen.kind()).collect())
    }

    /// The kinds of the elements of a loop's iterable: one kind, or those of tuples.
    fn elements(&self, iter: &Expr) -> Vec<Kind> {
        let each = |expr: &Expr| match self.value_kind(expr) {
            Kind::Tiles => Kind::Tile(Tile::default()),
            _ => self.kinds.elements(expr),
        };
        if let ExprKind::Call(callee, args) = &iter.kind {
            let mut given = args.iter().map_while(|a| match a {
                Argument::Positional(e) => Some(e),
                _ => None,
            });
            match &callee.kind {
                ExprKind::Name(name, _) => match (&**self.kinds.names.name(*name), given.next()) {
                    ("enumerate", Some(of)) => return vec![Kind::Int, each(of)],
                    ("zip", Some(first)) => return [first].into_iter().chain(given).map(each).collect(),
                    ("reversed", Some(of)) => return vec![each(of)],
                    _ => {}
                },
                ExprKind::Attr(base, method) if self.value_kind(base) == Kind::Tiles => {
                    match &**self.kinds.names.name(*method) {
                        "items" => return vec![Kind::Other, each(base)],
                        "values" => return vec![each(base)],
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        vec![each(iter)]
    }

    /// Binds the names of a loop's target to the elements of its iterable.
    pub(super) fn loop_targets(&mut self, target: &Expr, iter: &Expr) {
        let kinds = self.elements(iter);
        let bind = |pass: &mut Self, target: &Expr, kind: &Kind| {
            walk(target, &mut |e| {
                if let ExprKind::Name(name, _) = &e.kind {
                    pass.kinds.bind(*name, kind.clone(), &[]);
                }
            });
        };
        match (&target.kind, &kinds[..]) {
            (ExprKind::Tuple(items) | ExprKind::List(items), kinds) if items.len() == kinds.len() => {
                items.iter().zip(kinds).for_each(|(item, kind)| bind(self, item, kind));
            }
            (ExprKind::Name(..), [kind]) => bind(self, target, kind),
            // Elements of an int range or of a tuple of ints have no parts.
            _ => bind(self, target, &Kind::Other),
        }
    }
}
