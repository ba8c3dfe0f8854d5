//! Functions: the kinds of their parameters and names, and the removal of index tile definitions.

use std::ops::Range;

use nki_diag::Span;
use rustc_hash::{FxHashMap, FxHashSet};

use super::kinds::{Kind, Memory, Tile, walk};
use super::tree::{all as every, expressions, parts, statements};
use super::{Change, Definition, Edit, Outcome, Pass, by_hand};
use crate::syntax::{Argument, BinOp, Expr, ExprKind, FuncDef, Stmt, StmtKind, Symbol};

impl Pass<'_> {
    /// Removes the definitions of index tiles that are not used any more.
    pub(super) fn definitions_gone(&mut self) {
        let mut gone: Vec<Span> = Vec::new();
        for definition in std::mem::take(&mut self.definitions) {
            if definition.names.iter().any(|n| self.used.contains(n)) {
                let instead = "slices in place of the index tile, where it is still used";
                self.report(by_hand(definition.stmt, self.kinds.source(definition.stmt), instead));
                continue;
            }
            let old = self.kinds.source(definition.stmt).to_owned();
            let span = definition.stmt.start as usize..definition.stmt.end as usize;
            self.changes.push(Change { span, old, new: "slices where it was used".to_owned(), rewritten: true });
            match gone.last_mut() {
                Some(last) if self.are_neighbours(*last, definition.stmt) => last.end = definition.stmt.end,
                _ => gone.push(definition.stmt),
            }
        }
        for span in gone {
            let edit = if self.is_only_statement(span) {
                Edit { span: span.start as usize..span.end as usize, text: "pass".to_owned() }
            } else {
                Edit { span: self.without_line(span), text: String::new() }
            };
            self.edits.push(edit);
        }
    }

    /// Whether a statement follows another on its line, and remains there.
    fn are_neighbours(&self, first: Span, second: Span) -> bool {
        let gap = first.end as usize..second.start as usize;
        let is_on_line = self.text.get(gap.clone()).is_some_and(|text| text.trim() == ";" && !text.contains('\n'));
        is_on_line && !self.edits.iter().any(|e| e.span.start < gap.end && gap.start < e.span.end)
    }

    /// The line of a statement if it is alone on it, else the statement.
    pub(super) fn without_line(&self, span: Span) -> Range<usize> {
        let (from, to) = (span.start as usize, span.end as usize);
        let start = self.text[..from].rfind('\n').map_or(0, |at| at + 1);
        let stop = self.text[to..].find('\n').map_or(self.text.len(), |at| to + at + 1);
        let alone = self.text[start..from].trim().is_empty() && self.text[to..stop].trim().is_empty();
        if alone { start..stop } else { from..to }
    }

    /// Whether a statement shares its line with others, or follows a colon, so that it cannot simply be removed.
    pub(super) fn is_only_statement(&self, span: Span) -> bool {
        let range = self.without_line(span);
        range.start == span.start as usize && range.end == span.end as usize && {
            let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
            let stop = self.text[range.end..].find('\n').map_or(self.text.len(), |at| range.end + at);
            !(self.text[start..range.start].trim().is_empty() && self.text[range.end..stop].trim().starts_with('#'))
        }
    }

    /// A function: starts without knowledge of names.
    pub(super) fn definition(&mut self, def: &FuncDef, name: &Expr) {
        self.decorators(def, name);
        self.annotations(def);
        self.kinds.clear();
        self.returned.clear();
        let mut returned = Vec::new();
        statements(&def.body, &mut |stmt| {
            if let StmtKind::Return(Some(value)) = &stmt.kind {
                walk(value, &mut |e| {
                    if let ExprKind::Name(name, _) = &e.kind {
                        returned.push(*name);
                    }
                });
            }
        });
        self.returned.extend(returned);
        self.zeroed.clear();
        self.accumulators(&def.body);
        // Index tiles of this function only.
        let outer = (std::mem::take(&mut self.definitions), std::mem::take(&mut self.used));
        let in_class = std::mem::take(&mut self.in_class);
        let function = self.function.replace(def.name);
        self.parameters(def, name);
        let is_kernel = self.is_kernel(def, name);
        let in_kernel = std::mem::replace(&mut self.in_kernel, is_kernel);
        if self.is_kernel(def, name) && self.returned.is_empty() {
            let instead = "nl.ndarray(shape, dtype, buffer=nl.shared_hbm), and return it";
            self.report(by_hand(def.name_span, "an argument as the output", instead));
        }
        self.block(&def.body);
        self.definitions_gone();
        (self.definitions, self.used) = outer;
        self.in_class = in_class;
        self.function = function;
        self.in_kernel = in_kernel;
        self.kinds.clear();
    }

    /// Rejects tiles as outputs, which Beta 1 stored to HBM.
    pub(super) fn check_outputs(&self, value: &Expr) -> Outcome<()> {
        for part in parts(value) {
            if self.tile(part).is_some_and(|t| matches!(t.memory, Some(Memory::Sbuf | Memory::Psum))) {
                let instead = "nl.ndarray(shape, dtype, buffer=nl.shared_hbm), nisa.dma_copy to it, and return it";
                return Err(by_hand(part.span, "a tile as the output", instead));
            }
        }
        Ok(())
    }

    /// Whether a function is called by the host.
    pub(super) fn is_kernel(&self, def: &FuncDef, name: &Expr) -> bool {
        let wrapped = def.decorators.iter().any(|d| self.wrapper(d).is_some_and(|p| p.starts_with("nki.")));
        wrapped && !matches!(&name.kind, ExprKind::Name(n, _) if self.called.contains(n))
    }

    /// Finds the tiles that are only updated as a whole by `name += matmul`, and those written by other instructions.
    pub(super) fn accumulators(&mut self, body: &[Stmt]) {
        let (mut whole, mut others) = (FxHashSet::default(), FxHashSet::default());
        let mut overwritten = FxHashSet::default();
        let base = |e: &Expr| match &e.kind {
            ExprKind::Name(name, _) => Some((*name, true)),
            ExprKind::Subscript(base, _) => match base.kind {
                ExprKind::Name(name, _) => Some((name, false)),
                _ => None,
            },
            _ => None,
        };
        statements(body, &mut |stmt| {
            let (target, value, adds) = match &stmt.kind {
                StmtKind::AugAssign(target, op, value) => (target, value, *op == BinOp::Add),
                StmtKind::Assign(targets, value) => (&targets[0], value, false),
                _ => return,
            };
            let is_matmul = self.is_matmul(value);
            match base(target) {
                Some((name, is_name)) if adds && is_matmul && (is_name || self.is_whole(target)) => {
                    whole.insert(name);
                }
                // A name that is bound.
                Some((_, true)) if !matches!(stmt.kind, StmtKind::AugAssign(..)) => {}
                Some((name, _)) => {
                    others.insert(name);
                    // `t[...] = nl.matmul(...)` may become a copy of the product.
                    let is_copied = !adds && self.callee(value).as_deref() == Some("nki.language.matmul");
                    if !is_matmul || is_copied {
                        overwritten.insert(name);
                    }
                }
                None => {}
            }
        });
        whole.retain(|n| !others.contains(n));
        self.accumulated = whole;
        self.overwritten = overwritten;
    }

    pub(super) fn is_matmul(&self, value: &Expr) -> bool {
        let ExprKind::Call(callee, _) = &value.kind else { return false };
        matches!(self.kinds.path(callee).as_deref(), Some("nki.isa.nc_matmul" | "nki.language.matmul"))
    }

    /// The functions that use the API, and all that they name. The others belong to the host, and their operators remain.
    pub(super) fn on_device(&self, body: &[Stmt]) -> FxHashSet<Symbol> {
        let mut mentioned: FxHashMap<Symbol, Vec<Symbol>> = FxHashMap::default();
        let mut open = Vec::new();
        every(body, &mut |stmt| {
            let StmtKind::Def(def, _) = &stmt.kind else { return };
            let of = mentioned.entry(def.name).or_default();
            let mut uses_api = def.decorators.iter().any(|d| self.wrapper(d).is_some_and(|p| p.starts_with("nki.")));
            statements(&def.body, &mut |inner| {
                for expr in expressions(inner) {
                    walk(expr, &mut |e| {
                        if let ExprKind::Name(name, _) | ExprKind::Attr(_, name) = &e.kind {
                            of.push(*name);
                        }
                        let path = self.kinds.path(e);
                        uses_api |= path.is_some_and(|p| p.starts_with("nki.language") || p.starts_with("nki.isa"));
                    });
                }
            });
            if uses_api {
                open.push(def.name);
            }
        });
        let mut found = FxHashSet::default();
        while let Some(name) = open.pop() {
            if found.insert(name) {
                open.extend(mentioned.get(&name).into_iter().flatten().filter(|n| mentioned.contains_key(n)));
            }
        }
        found
    }

    /// Parameters that are used as tensors, with those of kernels in HBM, and those to which calls pass tiles.
    pub(super) fn parameters(&mut self, def: &FuncDef, name: &Expr) {
        if !self.on_device.contains(&def.name) {
            return;
        }
        let mut tensors: FxHashSet<Symbol> = FxHashSet::default();
        let names = self.kinds.names;
        statements(&def.body, &mut |stmt| {
            for expr in expressions(stmt) {
                walk(expr, &mut |e| match &e.kind {
                    ExprKind::Attr(base, attr)
                        if ["shape", "dtype", "reshape", "ndim"].contains(&&**names.name(*attr)) =>
                    {
                        if let ExprKind::Name(n, _) = &base.kind {
                            tensors.insert(*n);
                        }
                    }
                    ExprKind::Subscript(base, _) => {
                        if let ExprKind::Name(n, _) = &base.kind {
                            tensors.insert(*n);
                        }
                    }
                    ExprKind::Call(callee, args)
                        if matches!(
                            self.kinds.language(callee).as_deref(),
                            Some("load" | "store" | "load_transpose2d")
                        ) =>
                    {
                        for arg in args {
                            if let Argument::Positional(Expr { kind: ExprKind::Name(n, _), .. }) = arg {
                                tensors.insert(*n);
                            }
                        }
                    }
                    _ => {}
                });
            }
        });
        let is_kernel = self.is_kernel(def, name);
        for param in &def.params {
            if tensors.contains(&param.name) {
                let dtype = Some(format!("{}.dtype", names.name(param.name)));
                let memory = is_kernel.then_some(Memory::Hbm);
                self.kinds.bind(param.name, Kind::Tile(Tile { memory, dtype, ..Tile::default() }), &[]);
            } else if !is_kernel && let Some(kind) = self.passed(def.name, param.name) {
                self.kinds.bind(param.name, kind, &[]);
            }
        }
    }

    /// Index tiles assigned to names: returns whether the statement is such an assignment.
    pub(super) fn defines(&mut self, stmt: &Stmt, target: &Expr, value: &Expr) -> bool {
        let name = |e: &Expr| match &e.kind {
            ExprKind::Name(name, _) => Some(*name),
            _ => None,
        };
        let Some(names) = parts(target).into_iter().map(name).collect::<Option<Vec<Symbol>>>() else { return false };
        let kinds: Vec<Kind> = match (&target.kind, &value.kind) {
            (ExprKind::Tuple(_), ExprKind::Tuple(values)) => values.iter().map(|e| self.kinds.kind(e)).collect(),
            (ExprKind::Tuple(_), _) => match self.kinds.kind(value) {
                Kind::Grid(axes) => axes.into_iter().map(Kind::Index).collect(),
                _ => return false,
            },
            _ => vec![self.kinds.kind(value)],
        };
        let all = kinds.iter().all(|k| matches!(k, Kind::Index(_) | Kind::Grid(_) | Kind::Mask(_)));
        if !all || kinds.len() != names.len() {
            return false;
        }
        for (name, kind) in names.iter().zip(kinds) {
            self.kinds.bind(*name, kind, &[value]);
        }
        self.definitions.push(Definition { names, stmt: stmt.span });
        true
    }
}
