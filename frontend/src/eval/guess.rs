//! Conditions of host code that only a running Python knows.
//!
//! Outside kernels such a condition counts as false. What a module binds by it may differ from what Python would bind, and is reported.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};

use super::value::{Host, Value};
use super::{Frame, Interp};
use crate::syntax::*;

impl Interp<'_> {
    /// Remembers that the value of `host` decided something at `span`.
    pub(super) fn guess(&mut self, host: &Rc<Host>, span: Span) {
        if !self.in_kernel && !host.path.ends_with("TYPE_CHECKING") {
            self.guesses.push(span);
        }
    }

    /// Warns of the names of known value that a statement of a module or of a class in it binds, if guesses after the first `before` decided about them.
    pub(super) fn tell_guesses(&mut self, frame: &Frame<'_>, stmt: &Stmt, before: usize) {
        let Some(&condition) = self.guesses.get(before) else { return };
        self.guesses.truncate(before);
        let mut names = Vec::new();
        decided(stmt, &mut names);
        let known = |name: &Symbol| {
            let at = frame.module.index.borrow().get(name).copied();
            let global = at.map(|i| frame.module.globals.borrow()[i as usize].clone());
            // In the body of a class, names have slots.
            let slot = frame.names.iter().position(|n| n == name).map(|i| self.stack[frame.base + i].clone());
            let value = match &slot {
                Some(Value::Cell(cell)) => Some(cell.borrow().clone()),
                Some(Value::Unset) | None => global,
                slot => (*slot).clone(),
            };
            !matches!(value, None | Some(Value::Unset | Value::Host(_) | Value::Module(_)))
        };
        names.retain(known);
        let Some(first) = names.first() else { return };
        let message = format!(
            "only a running Python knows this condition, on which `{}` depends: taken as false",
            self.name(*first)
        );
        let help = "call the kernel from Python, where its module has run, or leave the condition out";
        self.report(Diagnostic::warning("host-condition", message).at(condition, "here").help(help));
    }
}

/// The names whose values the conditions of a statement itself decide. The statements in it tell their own.
fn decided(stmt: &Stmt, out: &mut Vec<Symbol>) {
    let mut blocks = |blocks: &[&[Stmt]]| blocks.iter().flat_map(|b| b.iter()).for_each(|s| all(s, out));
    match &stmt.kind {
        StmtKind::If(arms, orelse) => {
            arms.iter().for_each(|(_, body)| blocks(&[body]));
            blocks(&[orelse]);
        }
        StmtKind::For(f) => blocks(&[&f.body, &f.orelse]),
        StmtKind::While(_, body, orelse) => blocks(&[body, orelse]),
        StmtKind::Match(m) => m.cases.iter().for_each(|case| blocks(&[&case.body])),
        StmtKind::Try(_) | StmtKind::Import(_) | StmtKind::ImportFrom(_) => {}
        _ => all(stmt, out),
    }
}

/// The names that a statement binds, or into whose values it stores.
fn all(stmt: &Stmt, out: &mut Vec<Symbol>) {
    resolve::bound_names(stmt, out);
    match &stmt.kind {
        StmtKind::Assign(targets, _) => out.extend(targets.iter().filter_map(stored_into)),
        StmtKind::AugAssign(target, ..) => out.extend(stored_into(target)),
        _ => {}
    }
}

/// `a` of `a.b = ...` and `a[b] = ...`.
fn stored_into(target: &Expr) -> Option<Symbol> {
    match &target.kind {
        ExprKind::Attr(of, ..) | ExprKind::Subscript(of, ..) => match &of.kind {
            ExprKind::Name(name, _) => Some(*name),
            _ => stored_into(of),
        },
        _ => None,
    }
}
