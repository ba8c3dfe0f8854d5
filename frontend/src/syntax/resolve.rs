//! Resolves names to slots before evaluation.
//!
//! Locals become frame slots; a slot that an inner function uses becomes a cell. Comprehension variables get slots of
//! their own in the enclosing frame. Module-level names and unbound names become indexed globals.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::carried::find_counters;
use super::walrus;
use crate::syntax::*;

/// Fills in every [`Slot`] and [`Scope`] of a file.
pub(crate) fn resolve(ast: &mut ModuleAst) {
    let mut resolver = Resolver {
        globals: Vec::new(),
        index: FxHashMap::default(),
        scopes: vec![Building::new(Kind::Module)],
        functions: Vec::new(),
    };
    resolver.block(&mut ast.body);
    ast.scope = resolver.finish();
    ast.globals = resolver.globals;
    ast.functions = resolver.functions;
}

/// The names a statement binds in its own scope.
pub(crate) fn bound_names(stmt: &Stmt, out: &mut Vec<Symbol>) {
    fn target(expr: &Expr, out: &mut Vec<Symbol>) {
        match &expr.kind {
            ExprKind::Name(name, _) => out.push(*name),
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|e| target(e, out)),
            ExprKind::Starred(inner) => target(inner, out),
            _ => {}
        }
    }
    let block = |body: &[Stmt], out: &mut Vec<Symbol>| body.iter().for_each(|s| bound_names(s, out));
    match &stmt.kind {
        StmtKind::Assign(targets, _) | StmtKind::Delete(targets) => targets.iter().for_each(|e| target(e, out)),
        StmtKind::AugAssign(e, ..) | StmtKind::AnnAssign(e, ..) | StmtKind::Def(_, e) | StmtKind::Class(_, e) => {
            target(e, out)
        }
        StmtKind::If(arms, orelse) => {
            arms.iter().for_each(|(_, body)| block(body, out));
            block(orelse, out);
        }
        StmtKind::For(f) => {
            target(&f.target, out);
            block(&f.body, out);
            block(&f.orelse, out);
        }
        StmtKind::While(_, body, orelse) => {
            block(body, out);
            block(orelse, out);
        }
        StmtKind::With(items, body) => {
            items.iter().filter_map(|(_, t)| t.as_ref()).for_each(|e| target(e, out));
            block(body, out);
        }
        StmtKind::Try(t) => {
            block(&t.body, out);
            for handler in &t.handlers {
                handler.name.iter().for_each(|e| target(e, out));
                block(&handler.body, out);
            }
            block(&t.orelse, out);
            block(&t.finally, out);
        }
        StmtKind::Match(m) => {
            for case in &m.cases {
                pattern_targets(&case.pattern, &mut |e| target(e, out));
                block(&case.body, out);
            }
        }
        StmtKind::Yield(y) => y.target.iter().for_each(|e| target(e, out)),
        StmtKind::Import(names) => names.iter().for_each(|n| target(&n.bind, out)),
        StmtKind::ImportFrom(import) => import.names.iter().for_each(|(_, e)| target(e, out)),
        _ => {}
    }
}

/// The number of bindings of each name in statements.
fn bindings(names: Vec<Symbol>) -> FxHashMap<Symbol, usize> {
    let mut counts = FxHashMap::default();
    names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

/// Finds the names of each loop ([`For::own`]) of a function with `bound` bindings of each name.
fn own_names(body: &[Stmt], bound: &FxHashMap<Symbol, usize>) {
    for stmt in body {
        if let StmtKind::For(f) = &stmt.kind {
            let mut inside = Vec::new();
            bound_names(stmt, &mut inside);
            let only_here = |(name, count): (Symbol, usize)| (bound.get(&name) == Some(&count)).then_some(name);
            // Set once: a tree is resolved once.
            let _ = f.own.set(bindings(inside).into_iter().filter_map(only_here).collect());
        }
        stmt.blocks().into_iter().for_each(|block| own_names(block, bound));
    }
}

/// Calls `each` with the names that a pattern binds.
pub(crate) fn pattern_targets<'p>(pattern: &'p Pattern, each: &mut dyn FnMut(&'p Expr)) {
    match &pattern.kind {
        PatternKind::Value(_) | PatternKind::Singleton(_) => {}
        PatternKind::Star(name) => name.iter().for_each(each),
        PatternKind::Sequence(items) | PatternKind::Or(items) => items.iter().for_each(|p| pattern_targets(p, each)),
        PatternKind::Mapping { items, rest } => {
            items.iter().for_each(|(_, p)| pattern_targets(p, each));
            rest.iter().for_each(each);
        }
        PatternKind::Class { positional, keyword, .. } => {
            positional.iter().for_each(|p| pattern_targets(p, each));
            keyword.iter().for_each(|(_, p)| pattern_targets(p, each));
        }
        PatternKind::As { pattern, name } => {
            pattern.iter().for_each(|p| pattern_targets(p, each));
            name.iter().for_each(each);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Module,
    Function,
    Class,
}

/// A scope being resolved.
struct Building {
    kind: Kind,
    /// Whether it is a generator expression.
    comprehension: bool,
    names: Vec<Symbol>,
    index: FxHashMap<Symbol, u32>,
    /// Declared `global` (or deliberately unbound).
    globals: FxHashSet<Symbol>,
    nonlocals: FxHashSet<Symbol>,
    /// Variables of the enclosing comprehensions.
    overlays: Vec<Vec<(Symbol, u32)>>,
    cells: Vec<u32>,
    captures: Vec<Capture>,
    captured: FxHashMap<Symbol, u32>,
    /// By index.
    captured_names: Vec<Symbol>,
}

impl Building {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            comprehension: false,
            names: Vec::new(),
            index: FxHashMap::default(),
            globals: FxHashSet::default(),
            nonlocals: FxHashSet::default(),
            overlays: Vec::new(),
            cells: Vec::new(),
            captures: Vec::new(),
            captured: FxHashMap::default(),
            captured_names: Vec::new(),
        }
    }

    fn declare(&mut self, name: Symbol) {
        if self.globals.contains(&name) || self.nonlocals.contains(&name) || self.index.contains_key(&name) {
            return;
        }
        let slot = self.add(name);
        self.index.insert(name, slot);
    }

    fn add(&mut self, name: Symbol) -> u32 {
        let slot = self.names.len() as u32;
        self.names.push(name);
        slot
    }

    fn overlay(&self, name: Symbol) -> Option<u32> {
        self.overlays.iter().rev().flatten().find(|(n, _)| *n == name).map(|(_, slot)| *slot)
    }

    /// Collects `global` and `nonlocal` declarations, which apply to the whole scope.
    fn declarations(&mut self, body: &[Stmt]) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Global(names) => self.globals.extend(names),
                StmtKind::Nonlocal(names) => self.nonlocals.extend(names),
                StmtKind::If(arms, orelse) => {
                    arms.iter().for_each(|(_, b)| self.declarations(b));
                    self.declarations(orelse);
                }
                StmtKind::For(f) => {
                    self.declarations(&f.body);
                    self.declarations(&f.orelse);
                }
                StmtKind::While(_, body, orelse) => {
                    self.declarations(body);
                    self.declarations(orelse);
                }
                StmtKind::With(_, body) => self.declarations(body),
                StmtKind::Try(t) => {
                    self.declarations(&t.body);
                    t.handlers.iter().for_each(|h| self.declarations(&h.body));
                    self.declarations(&t.orelse);
                    self.declarations(&t.finally);
                }
                StmtKind::Match(m) => m.cases.iter().for_each(|c| self.declarations(&c.body)),
                _ => {}
            }
        }
    }

    fn cell(&mut self, slot: u32) -> Capture {
        if !self.cells.contains(&slot) {
            self.cells.push(slot);
        }
        Capture::Slot(slot)
    }
}

struct Resolver {
    globals: Vec<Symbol>,
    index: FxHashMap<Symbol, u32>,
    scopes: Vec<Building>,
    functions: Vec<Rc<FuncDef>>,
}

impl Resolver {
    fn top(&mut self) -> &mut Building {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    fn finish(&mut self) -> Scope {
        let b = self.scopes.pop().unwrap_or_else(|| Building::new(Kind::Module));
        Scope {
            slots: b.names.len() as u32,
            names: b.names,
            cells: b.cells,
            captures: b.captures,
            captured: b.captured_names,
        }
    }

    fn global(&mut self, name: Symbol) -> u32 {
        *self.index.entry(name).or_insert_with(|| {
            self.globals.push(name);
            (self.globals.len() - 1) as u32
        })
    }

    fn lookup(&mut self, name: Symbol) -> Slot {
        let level = self.scopes.len() - 1;
        let scope = &self.scopes[level];
        if let Some(slot) = scope.overlay(name) {
            return Slot::Local(slot);
        }
        if scope.kind == Kind::Module || scope.globals.contains(&name) {
            return Slot::Global(self.global(name));
        }
        // A comprehension in the body of a class cannot access the names of the class.
        let is_visible = scope.kind != Kind::Class || scope.overlays.is_empty();
        if let Some(&slot) = scope.index.get(&name).filter(|_| is_visible) {
            if scope.kind == Kind::Class {
                return Slot::Class(slot, self.global(name));
            }
            return Slot::Local(slot);
        }
        match self.outer(level, name) {
            Some(index) => Slot::Free(index),
            None => Slot::Global(self.global(name)),
        }
    }

    /// The capture of `level` for a name of an enclosing function.
    fn outer(&mut self, level: usize, name: Symbol) -> Option<u32> {
        if let Some(&index) = self.scopes[level].captured.get(&name) {
            return Some(index);
        }
        let parent = level.checked_sub(1)?;
        let scope = &mut self.scopes[parent];
        let capture = if let Some(slot) = scope.overlay(name) {
            scope.cell(slot)
        } else if scope.kind == Kind::Function && scope.globals.contains(&name) {
            return None;
        } else if let (Kind::Function, Some(&slot)) = (scope.kind, scope.index.get(&name)) {
            scope.cell(slot)
        } else {
            Capture::Free(self.outer(parent, name)?)
        };
        let scope = &mut self.scopes[level];
        let index = scope.captures.len() as u32;
        scope.captures.push(capture);
        scope.captured.insert(name, index);
        scope.captured_names.push(name);
        Some(index)
    }

    /// A scope for `body` whose first slots are `params`.
    fn enter(&mut self, kind: Kind, params: impl Iterator<Item = Symbol>, body: &[Stmt], comprehension: bool) {
        let mut scope = Building::new(kind);
        scope.comprehension = comprehension;
        for name in params {
            // A parameter has its slot even if an (invalid) program has two of one name.
            let slot = scope.add(name);
            scope.index.insert(name, slot);
        }
        scope.declarations(body);
        let mut names = Vec::new();
        body.iter().for_each(|s| bound_names(s, &mut names));
        if !comprehension {
            walrus::names(body, &mut names);
        }
        names.into_iter().for_each(|n| scope.declare(n));
        self.scopes.push(scope);
    }

    fn function(&mut self, def: &mut Rc<FuncDef>) {
        // The tree is not shared before it is resolved.
        let Some(inner) = Rc::get_mut(def) else { return };
        inner.decorators.iter_mut().for_each(|e| self.expr(e));
        inner.params.iter_mut().filter_map(|p| p.default.as_mut()).for_each(|e| self.expr(e));
        let comprehension = inner.name == sym::genexpr;
        self.enter(Kind::Function, inner.params.iter().map(|p| p.name), &inner.body, comprehension);
        self.block(&mut inner.body);
        let mut bound: Vec<Symbol> = inner.params.iter().map(|p| p.name).collect();
        inner.body.iter().for_each(|stmt| bound_names(stmt, &mut bound));
        own_names(&inner.body, &bindings(bound));
        find_counters(&inner.body);
        inner.scope = self.finish();
        self.functions.push(def.clone());
    }

    fn block(&mut self, body: &mut [Stmt]) {
        body.iter_mut().for_each(|s| self.stmt(s));
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::Assign(targets, value) => {
                self.expr(value);
                self.exprs(targets);
            }
            StmtKind::AugAssign(target, _, value) => {
                self.expr(value);
                self.expr(target);
            }
            StmtKind::AnnAssign(target, annotation, value) => {
                annotation.item.iter_mut().for_each(|e| self.expr(e));
                value.iter_mut().for_each(|e| self.expr(e));
                self.expr(target);
            }
            StmtKind::If(arms, orelse) => {
                for (test, body) in arms {
                    self.expr(test);
                    self.block(body);
                }
                self.block(orelse);
            }
            StmtKind::For(f) => {
                self.expr(&mut f.iter);
                self.expr(&mut f.target);
                self.block(&mut f.body);
                self.block(&mut f.orelse);
            }
            StmtKind::While(test, body, orelse) => {
                self.expr(test);
                self.block(body);
                self.block(orelse);
            }
            StmtKind::Return(value) => value.iter_mut().for_each(|e| self.expr(e)),
            StmtKind::Raise(value, cause) => value.iter_mut().chain(cause).for_each(|e| self.expr(e)),
            StmtKind::Assert(test, message) => {
                self.expr(test);
                message.iter_mut().for_each(|e| self.expr(e));
            }
            StmtKind::With(items, body) => {
                for (context, target) in items {
                    self.expr(context);
                    target.iter_mut().for_each(|e| self.expr(e));
                }
                self.block(body);
            }
            StmtKind::Try(t) => {
                self.block(&mut t.body);
                for handler in &mut t.handlers {
                    handler.class.iter_mut().for_each(|e| self.expr(e));
                    handler.name.iter_mut().for_each(|e| self.expr(e));
                    self.block(&mut handler.body);
                }
                self.block(&mut t.orelse);
                self.block(&mut t.finally);
            }
            StmtKind::Match(m) => {
                self.expr(&mut m.subject);
                for case in &mut m.cases {
                    self.pattern(&mut case.pattern);
                    case.guard.iter_mut().for_each(|e| self.expr(e));
                    self.block(&mut case.body);
                }
            }
            StmtKind::Yield(y) => {
                y.value.iter_mut().for_each(|e| self.expr(e));
                y.target.iter_mut().for_each(|e| self.expr(e));
            }
            StmtKind::Def(def, bind) => {
                self.function(def);
                self.expr(bind);
            }
            StmtKind::Class(def, bind) => {
                if let Some(def) = Rc::get_mut(def) {
                    self.exprs(&mut def.decorators);
                    self.exprs(&mut def.bases);
                    def.keywords.iter_mut().for_each(|(_, e)| self.expr(e));
                    self.enter(Kind::Class, std::iter::empty(), &def.body, false);
                    self.block(&mut def.body);
                    def.scope = self.finish();
                }
                self.expr(bind);
            }
            StmtKind::Import(names) => names.iter_mut().for_each(|n| self.expr(&mut n.bind)),
            StmtKind::ImportFrom(import) => import.names.iter_mut().for_each(|(_, e)| self.expr(e)),
            StmtKind::Delete(targets) => self.exprs(targets),
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Global(_)
            | StmtKind::Nonlocal(_)
            | StmtKind::Unsupported(_) => {}
        }
    }

    fn pattern(&mut self, pattern: &mut Pattern) {
        match &mut pattern.kind {
            PatternKind::Value(e) | PatternKind::Singleton(e) => self.expr(e),
            PatternKind::Star(name) => name.iter_mut().for_each(|e| self.expr(e)),
            PatternKind::Sequence(items) | PatternKind::Or(items) => items.iter_mut().for_each(|p| self.pattern(p)),
            PatternKind::Mapping { items, rest } => {
                for (key, pattern) in items {
                    self.expr(key);
                    self.pattern(pattern);
                }
                rest.iter_mut().for_each(|e| self.expr(e));
            }
            PatternKind::Class { class, positional, keyword } => {
                self.expr(class);
                positional.iter_mut().for_each(|p| self.pattern(p));
                keyword.iter_mut().for_each(|(_, p)| self.pattern(p));
            }
            PatternKind::As { pattern, name } => {
                pattern.iter_mut().for_each(|p| self.pattern(p));
                name.iter_mut().for_each(|e| self.expr(e));
            }
        }
    }

    fn exprs(&mut self, exprs: &mut [Expr]) {
        exprs.iter_mut().for_each(|e| self.expr(e));
    }

    fn expr(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Name(name, slot) => *slot = self.lookup(*name),
            ExprKind::Attr(base, _) | ExprKind::Unary(_, base) | ExprKind::Starred(base) => self.expr(base),
            ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|e| self.expr(e)),
            ExprKind::Tuple(items)
            | ExprKind::List(items)
            | ExprKind::Set(items)
            | ExprKind::And(items)
            | ExprKind::Or(items) => {
                self.exprs(items);
            }
            ExprKind::Dict(items) => {
                for (key, value) in items {
                    key.iter_mut().for_each(|e| self.expr(e));
                    self.expr(value);
                }
            }
            ExprKind::Compare(left, rest) => {
                self.expr(left);
                rest.iter_mut().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::IfElse(a, b, c) => [a, b, c].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Call(callee, arguments) => {
                self.expr(callee);
                for argument in arguments {
                    match argument {
                        Argument::Positional(e)
                        | Argument::Keyword(_, e)
                        | Argument::Star(e)
                        | Argument::DoubleStar(e) => self.expr(e),
                    }
                }
            }
            ExprKind::Lambda(def) => self.function(def),
            ExprKind::Walrus(target, value) => {
                self.expr(value);
                if let ExprKind::Name(name, slot) = &mut target.kind {
                    // Binds in the function, not in the enclosing comprehensions.
                    let own = self.scopes.iter().rposition(|s| !s.comprehension).unwrap_or(0);
                    let overlays: Vec<_> =
                        self.scopes[own..].iter_mut().map(|s| std::mem::take(&mut s.overlays)).collect();
                    if self.scopes[own].kind != Kind::Module {
                        self.scopes[own].declare(*name);
                    }
                    *slot = self.lookup(*name);
                    for (scope, overlays) in self.scopes[own..].iter_mut().zip(overlays) {
                        scope.overlays = overlays;
                    }
                }
            }
            ExprKind::Comp(comp) => self.comp(comp),
            ExprKind::Generator(def, iterable) => {
                self.expr(iterable);
                self.function(def);
            }
            ExprKind::Yield(value, _) => value.iter_mut().for_each(|e| self.expr(e)),
            ExprKind::FString(parts) => self.fparts(parts),
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Ellipsis
            | ExprKind::Unsupported(_) => {}
        }
    }

    fn comp(&mut self, comp: &mut Comp) {
        // The first iterable belongs to the scope that encloses the comprehension.
        if let Some(first) = comp.clauses.first_mut() {
            self.expr(&mut first.iter);
        }
        let mut names = Vec::new();
        for clause in &comp.clauses {
            target_names(&clause.target, &mut names);
        }
        let scope = self.top();
        let overlay = names.into_iter().map(|name| (name, scope.add(sym::empty))).collect();
        scope.overlays.push(overlay);
        for (index, clause) in comp.clauses.iter_mut().enumerate() {
            if index > 0 {
                self.expr(&mut clause.iter);
            }
            self.expr(&mut clause.target);
            self.exprs(&mut clause.ifs);
        }
        comp.key.iter_mut().for_each(|e| self.expr(e));
        self.expr(&mut comp.element);
        self.top().overlays.pop();
    }

    fn fparts(&mut self, parts: &mut [FPart]) {
        for part in parts {
            if let FPart::Value { expr, spec, .. } = part {
                self.expr(expr);
                spec.iter_mut().for_each(|s| self.fparts(s));
            }
        }
    }
}

fn target_names(expr: &Expr, out: &mut Vec<Symbol>) {
    match &expr.kind {
        ExprKind::Name(name, _) if !out.contains(name) => out.push(*name),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|e| target_names(e, out)),
        ExprKind::Starred(inner) => target_names(inner, out),
        _ => {}
    }
}
