//! Errors that Python reports before it runs a file although its grammar allows them: `global` and `nonlocal` declarations that
//! come too late or have no binding, duplicate parameters, statements outside a loop or function, and misplaced
//! stars.

use nki_diag::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::hoist::each_operand;
use super::resolve::{bound_names, pattern_targets};
use super::walrus;
use crate::syntax::*;

/// Reports the errors in the scopes of a file.
pub(super) fn check(body: &[Stmt], names: &Interner, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker { names, found, functions: Vec::new() };
    checker.declarations(body, &FxHashSet::default(), true);
    checker.block(body, Around::default());
}

/// An earlier use of a name in a scope.
#[derive(Clone, Copy)]
enum Earlier {
    Used,
    Assigned,
    Declared(&'static str),
}

/// The context of a statement in its scope.
#[derive(Clone, Copy, Default)]
struct Around {
    is_loop: bool,
    is_function: bool,
}

struct Checker<'a> {
    names: &'a Interner,
    found: &'a mut Vec<Diagnostic>,
    /// The names bound by the enclosing functions.
    functions: Vec<FxHashSet<Symbol>>,
}

impl Checker<'_> {
    fn report(&mut self, message: String, span: Span) {
        self.found.push(Diagnostic::error("syntax-error", message).at(span, "not valid Python"));
    }

    /// The statements of a block, and its functions, lambdas and classes.
    fn block(&mut self, body: &[Stmt], around: Around) {
        for stmt in body {
            self.placed(stmt, around);
            stmt.expressions().into_iter().for_each(|expr| self.expr(expr));
            match &stmt.kind {
                StmtKind::For(f) => {
                    self.block(&f.body, Around { is_loop: true, ..around });
                    self.block(&f.orelse, around);
                }
                StmtKind::While(_, body, orelse) => {
                    self.block(body, Around { is_loop: true, ..around });
                    self.block(orelse, around);
                }
                StmtKind::Def(def, _) => self.function(def),
                StmtKind::Class(def, _) => {
                    self.declarations(&def.body, &FxHashSet::default(), false);
                    self.block(&def.body, Around::default());
                }
                _ => stmt.blocks().into_iter().for_each(|block| self.block(block, around)),
            }
        }
    }

    /// Checks whether a statement is allowed in its context, and its stars.
    fn placed(&mut self, stmt: &Stmt, around: Around) {
        let outside = match &stmt.kind {
            StmtKind::Break if !around.is_loop => "`break` outside of a loop",
            StmtKind::Continue if !around.is_loop => "`continue` outside of a loop",
            StmtKind::Return(_) if !around.is_function => "`return` outside of a function",
            StmtKind::Yield(_) if !around.is_function => "`yield` outside of a function",
            StmtKind::Assign(targets, _) if targets.iter().any(is_starred) => {
                "a starred target must be in a list or tuple"
            }
            StmtKind::Assign(targets, _) if targets.iter().any(has_two_stars) => "two starred targets in an assignment",
            StmtKind::Assign(_, value) | StmtKind::Return(Some(value)) if is_starred(value) => {
                "a starred expression must be in a list or tuple"
            }
            _ => return,
        };
        self.report(outside.to_owned(), stmt.span);
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Lambda(def) => {
                def.params.iter().filter_map(|p| p.default.as_ref()).for_each(|e| self.expr(e));
                self.function(def);
            }
            ExprKind::Generator(def, _) => self.block(&def.body, Around { is_loop: false, is_function: true }),
            ExprKind::Call(_, arguments) => {
                let mut given = FxHashSet::default();
                for argument in arguments {
                    if let Argument::Keyword(name, value) = argument
                        && !given.insert(*name)
                    {
                        self.report(format!("keyword argument repeated: `{}`", self.names.name(*name)), value.span);
                    }
                }
            }
            ExprKind::Comp(comp) => {
                let clauses = comp.clauses.iter().enumerate();
                clauses.for_each(|(at, clause)| {
                    let later = (at > 0).then_some(&clause.iter);
                    later.into_iter().chain(&clause.ifs).for_each(|e| self.expr(e));
                });
                comp.key.iter().for_each(|key| self.expr(key));
                self.expr(&comp.element);
            }
            _ => {}
        }
        each_operand(expr, &mut |operand| self.expr(operand));
    }

    fn function(&mut self, def: &FuncDef) {
        let mut params = FxHashSet::default();
        for param in &def.params {
            if !params.insert(param.name) {
                let name = self.names.name(param.name);
                let message = format!("duplicate argument `{name}` in function definition");
                self.report(message, param.span);
            }
        }
        self.declarations(&def.body, &params, false);
        let mut bound = Vec::new();
        def.body.iter().for_each(|stmt| bound_names(stmt, &mut bound));
        walrus::names(&def.body, &mut bound);
        let mut declared: FxHashSet<Symbol> = FxHashSet::default();
        each_declaration(&def.body, &mut |names| declared.extend(names));
        params.extend(bound.into_iter().filter(|name| !declared.contains(name)));
        self.functions.push(params);
        self.block(&def.body, Around { is_loop: false, is_function: true });
        self.functions.pop();
    }

    /// Checks the `global` and `nonlocal` declarations of a scope.
    fn declarations(&mut self, body: &[Stmt], params: &FxHashSet<Symbol>, is_module: bool) {
        let mut any = false;
        each_declaration(body, &mut |_| any = true);
        if any {
            self.in_order(body, params, is_module, &mut FxHashMap::default());
        }
    }

    /// Statements in the order of the text; `seen` has the uses in the previous ones.
    fn in_order(
        &mut self,
        body: &[Stmt],
        params: &FxHashSet<Symbol>,
        is_module: bool,
        seen: &mut FxHashMap<Symbol, Earlier>,
    ) {
        for stmt in body {
            if let Some((word, names)) = declaration(stmt) {
                for &name in names {
                    if let Some(message) = self.refused(word, name, params, is_module, seen.get(&name)) {
                        self.report(message, stmt.span);
                    }
                    seen.insert(name, Earlier::Declared(word));
                }
                continue;
            }
            for expr in stmt.expressions() {
                used_names(expr, &mut |name| {
                    seen.entry(name).or_insert(Earlier::Used);
                });
            }
            let mut bound = Vec::new();
            own_bindings(stmt, &mut bound);
            for name in bound {
                let earlier = seen.entry(name).or_insert(Earlier::Assigned);
                if matches!(earlier, Earlier::Used) {
                    *earlier = Earlier::Assigned;
                }
            }
            stmt.blocks().into_iter().for_each(|block| self.in_order(block, params, is_module, seen));
        }
    }

    /// The error in a declaration of `name`.
    fn refused(
        &self,
        word: &'static str,
        name: Symbol,
        params: &FxHashSet<Symbol>,
        is_module: bool,
        earlier: Option<&Earlier>,
    ) -> Option<String> {
        let text = self.names.name(name);
        if is_module && word == "nonlocal" {
            return Some("nonlocal declaration not allowed at module level".to_owned());
        }
        if params.contains(&name) {
            return Some(format!("name `{text}` is parameter and {word}"));
        }
        match earlier {
            Some(Earlier::Used) => return Some(format!("name `{text}` is used prior to {word} declaration")),
            Some(Earlier::Assigned) => {
                return Some(format!("name `{text}` is assigned to before {word} declaration"));
            }
            Some(Earlier::Declared(other)) if *other != word => {
                return Some(format!("name `{text}` is nonlocal and global"));
            }
            _ => {}
        }
        let is_bound = self.functions.iter().any(|bound| bound.contains(&name));
        (word == "nonlocal" && !is_bound).then(|| format!("no binding for nonlocal `{text}` found"))
    }
}

fn is_starred(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Starred(_))
}

/// Whether a target, or a nested one, has two starred items.
fn has_two_stars(target: &Expr) -> bool {
    let (ExprKind::Tuple(items) | ExprKind::List(items)) = &target.kind else { return false };
    items.iter().filter(|item| is_starred(item)).count() > 1 || items.iter().any(has_two_stars)
}

/// The keyword and the names of a declaration.
fn declaration(stmt: &Stmt) -> Option<(&'static str, &[Symbol])> {
    match &stmt.kind {
        StmtKind::Global(names) => Some(("global", names)),
        StmtKind::Nonlocal(names) => Some(("nonlocal", names)),
        _ => None,
    }
}

/// Calls `found` with the declarations of a scope.
fn each_declaration(body: &[Stmt], found: &mut dyn FnMut(&[Symbol])) {
    for stmt in body {
        if let Some((_, names)) = declaration(stmt) {
            found(names);
        }
        stmt.blocks().into_iter().for_each(|block| each_declaration(block, found));
    }
}

/// The names read by an expression in its own scope.
fn used_names(expr: &Expr, found: &mut dyn FnMut(Symbol)) {
    if let ExprKind::Name(name, _) = &expr.kind {
        found(*name);
    }
    each_operand(expr, &mut |operand| used_names(operand, found));
}

/// The names bound by a statement, except those of its blocks.
fn own_bindings(stmt: &Stmt, out: &mut Vec<Symbol>) {
    let mut target = |expr: &Expr| target_names(expr, out);
    match &stmt.kind {
        StmtKind::For(f) => target(&f.target),
        StmtKind::With(items, _) => items.iter().filter_map(|(_, e)| e.as_ref()).for_each(target),
        StmtKind::Try(t) => t.handlers.iter().filter_map(|h| h.name.as_ref()).for_each(target),
        StmtKind::Match(m) => m.cases.iter().for_each(|case| pattern_targets(&case.pattern, &mut |e| target(e))),
        StmtKind::If(..) | StmtKind::While(..) => {}
        _ => bound_names(stmt, out),
    }
}

fn target_names(expr: &Expr, out: &mut Vec<Symbol>) {
    match &expr.kind {
        ExprKind::Name(name, _) => out.push(*name),
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().for_each(|e| target_names(e, out)),
        ExprKind::Starred(inner) => target_names(inner, out),
        _ => {}
    }
}
