//! The statements of a file, and the names that they bind.

use rustc_hash::FxHashSet;

use super::language::name_of;
use crate::syntax::resolve::pattern_targets;
use crate::syntax::{BinOp, CompKind, Expr, ExprKind, Stmt, StmtKind, Symbol};

/// The expressions of a statement, without those of statements in it.
pub(super) fn expressions(stmt: &Stmt) -> Vec<&Expr> {
    match &stmt.kind {
        StmtKind::Expr(e) | StmtKind::Return(Some(e)) | StmtKind::Raise(Some(e), _) => vec![e],
        StmtKind::Assign(targets, value) => targets.iter().chain([value]).collect(),
        StmtKind::AugAssign(target, _, value) => vec![target, value],
        StmtKind::AnnAssign(target, _, value) => [target].into_iter().chain(value).collect(),
        StmtKind::Assert(test, message) => [test].into_iter().chain(message).collect(),
        StmtKind::Delete(all) => all.iter().collect(),
        StmtKind::If(arms, _) => arms.iter().map(|a| &a.0).collect(),
        StmtKind::For(f) => vec![&f.iter],
        StmtKind::While(test, ..) => vec![test],
        StmtKind::With(items, _) => items.iter().map(|i| &i.0).collect(),
        StmtKind::Match(m) => [&m.subject].into_iter().chain(m.cases.iter().filter_map(|c| c.guard.as_ref())).collect(),
        _ => Vec::new(),
    }
}

/// Calls `found` with all statements at any depth, but not those of nested functions and classes.
pub(super) fn statements<'s>(body: &'s [Stmt], found: &mut dyn FnMut(&'s Stmt)) {
    for stmt in body {
        found(stmt);
        stmt.blocks().into_iter().for_each(|b| statements(b, found));
    }
}

/// All statements, including those of functions and classes.
pub(super) fn all<'s>(body: &'s [Stmt], found: &mut dyn FnMut(&'s Stmt)) {
    statements(body, &mut |stmt| {
        found(stmt);
        match &stmt.kind {
            StmtKind::Def(def, _) => all(&def.body, found),
            StmtKind::Class(class, _) => all(&class.body, found),
            _ => {}
        }
    });
}

/// Calls `found` with the names that statements bind or update.
pub(super) fn assigned(body: &[Stmt], found: &mut dyn FnMut(Symbol, &Stmt)) {
    statements(body, &mut |stmt| {
        let targets: Vec<&Expr> = match &stmt.kind {
            StmtKind::Assign(targets, _) => targets.iter().collect(),
            StmtKind::AugAssign(target, ..) | StmtKind::AnnAssign(target, ..) => vec![target],
            StmtKind::For(f) => vec![&f.target],
            StmtKind::Match(m) => {
                let mut names = Vec::new();
                m.cases.iter().for_each(|case| pattern_targets(&case.pattern, &mut |e| names.push(e)));
                names
            }
            _ => Vec::new(),
        };
        for target in targets.into_iter().flat_map(parts) {
            if let ExprKind::Name(name, _) = &target.kind {
                found(*name, stmt);
            }
        }
    });
}

/// The names that a file binds to lists and dicts: `[]`, `{}`, `[None] * 4`, comprehensions.
pub(super) fn containers(body: &[Stmt]) -> FxHashSet<Symbol> {
    fn is_container(value: &Expr) -> bool {
        match &value.kind {
            ExprKind::List(_) | ExprKind::Dict(_) => true,
            ExprKind::Comp(comp) => matches!(comp.kind, CompKind::List | CompKind::Dict),
            ExprKind::Binary(BinOp::Mul, left, right) => is_container(left) || is_container(right),
            _ => false,
        }
    }
    let mut names = FxHashSet::default();
    all(body, &mut |stmt| {
        if let StmtKind::Assign(targets, value) = &stmt.kind
            && is_container(value)
        {
            names.extend(targets.iter().filter_map(name_of));
        }
    });
    names
}

/// The targets of an assignment to several targets.
pub(super) fn parts(target: &Expr) -> Vec<&Expr> {
    match &target.kind {
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().flat_map(parts).collect(),
        _ => vec![target],
    }
}
