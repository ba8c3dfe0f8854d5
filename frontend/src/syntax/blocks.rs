//! The blocks and expressions of a statement.

use super::{Expr, Stmt, StmtKind};

impl Stmt {
    /// The nested blocks that belong to the same function, but not those of a nested function or class.
    pub(crate) fn blocks(&self) -> Vec<&[Stmt]> {
        match &self.kind {
            StmtKind::If(arms, orelse) => arms.iter().map(|(_, body)| &body[..]).chain([&orelse[..]]).collect(),
            StmtKind::For(f) => vec![&f.body, &f.orelse],
            StmtKind::While(_, body, orelse) => vec![body, orelse],
            StmtKind::With(_, body) => vec![body],
            StmtKind::Try(t) => {
                let handlers = t.handlers.iter().map(|h| &h.body[..]);
                [&t.body[..], &t.orelse, &t.finally].into_iter().chain(handlers).collect()
            }
            StmtKind::Match(m) => m.cases.iter().map(|case| &case.body[..]).collect(),
            _ => Vec::new(),
        }
    }

    /// The expressions that belong to the same function, except those of its blocks.
    pub(crate) fn expressions(&self) -> Vec<&Expr> {
        match &self.kind {
            StmtKind::Expr(e) | StmtKind::While(e, ..) => vec![e],
            StmtKind::Assign(targets, value) => [value].into_iter().chain(targets).collect(),
            StmtKind::AugAssign(target, _, value) => vec![target, value],
            StmtKind::AnnAssign(target, _, value) => [target].into_iter().chain(value).collect(),
            StmtKind::If(arms, _) => arms.iter().map(|(test, _)| test).collect(),
            StmtKind::For(f) => vec![&f.iter],
            StmtKind::Return(value) => value.iter().collect(),
            StmtKind::Raise(value, cause) => value.iter().chain(cause).collect(),
            StmtKind::Assert(test, message) => [test].into_iter().chain(message).collect(),
            StmtKind::With(items, _) => items.iter().map(|(context, _)| context).collect(),
            StmtKind::Match(m) => {
                let guards = m.cases.iter().filter_map(|case| case.guard.as_ref());
                [&m.subject].into_iter().chain(guards).collect()
            }
            StmtKind::Yield(y) => y.value.iter().collect(),
            StmtKind::Delete(targets) => targets.iter().collect(),
            StmtKind::Def(def, _) => {
                let defaults = def.params.iter().filter_map(|param| param.default.as_ref());
                def.decorators.iter().chain(defaults).collect()
            }
            StmtKind::Class(def, _) => def.decorators.iter().chain(&def.bases).collect(),
            _ => Vec::new(),
        }
    }
}
