//! The position of a driver that runs the kernel outside the evaluator.
//!
//! Before each operation, the driver announces the enclosing calls and loop iterations. This module
//! also finds loops and definitions in the source.

use std::path::Path;
use std::rc::Rc;

use nki_diag::{FileId, Span};

use super::language::Dialect;
use super::{Interp, PendingStep};
use crate::syntax::*;

/// An unrolled loop around a position.
pub(crate) struct Around {
    /// Its variable.
    pub(crate) variable: Symbol,
    /// From `for` to the end of the iterable.
    pub(crate) header: Span,
    /// Whether the loop is declared to have independent iterations.
    pub(crate) independent: bool,
}

impl Interp<'_> {
    /// Lets a driver run the kernel from now on: it receives all errors, and announces its
    /// position.
    pub(crate) fn be_driven(&mut self) {
        self.kernel_depth = 0;
        self.leave_errors_to_driver();
    }

    /// Records the dialect of a file of the driver: the one that its imports name, otherwise the
    /// one of these modules. The first file is the kernel's.
    pub(crate) fn drive_file(&mut self, file: FileId, named: Option<&'static dyn Dialect>, modules: &[String]) {
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        let dialect = named.unwrap_or_else(|| self.dialect_by(&modules));
        if self.driven.is_empty() {
            self.dialect = dialect;
        }
        let index = file.0 as usize;
        self.driven.resize(self.driven.len().max(index + 1), None);
        self.driven[index] = Some(dialect);
    }

    /// Announces that the next operation is in this file.
    pub(crate) fn enter_file(&mut self, file: FileId) {
        if let Some(Some(dialect)) = self.driven.get(file.0 as usize) {
            self.dialect = *dialect;
        }
    }

    /// The number of iterations and calls around the current position.
    pub(crate) fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Leaves the iterations and calls above `depth`.
    pub(crate) fn leave_to(&mut self, depth: usize) {
        let left = self.steps.get(depth..).unwrap_or_default();
        let calls = left.iter().filter(|(step, _)| matches!(step, PendingStep::Call { .. })).count();
        self.calls.truncate(self.calls.len().saturating_sub(calls));
        self.pop_steps(depth);
    }

    /// Enters an iteration of an unrolled loop.
    pub(crate) fn enter_iteration(&mut self, around: &Around, value: i64) {
        let depth = self.push_iteration(around.variable, around.header, around.independent);
        self.set_iteration(depth, value, false);
    }

    /// Enters a call.
    pub(crate) fn enter_call(&mut self, function: Symbol, span: Span) {
        self.steps.push((PendingStep::Call { function, span }, None));
        self.calls.push((function, span));
    }

    /// The syntax tree of a file whose text the driver provided.
    pub(crate) fn tree(&self, file: FileId) -> Option<Rc<ModuleAst>> {
        self.known_file(Path::new(self.sources.path(file)))
    }

    /// The loops with a single variable around a position, within its function, outermost first.
    pub(crate) fn loops_around(&self, place: Span) -> Vec<Around> {
        let Some(tree) = self.tree(place.file) else { return Vec::new() };
        let mut found = Vec::new();
        descend(&tree.body, place, &mut found);
        found
            .iter()
            .filter(|(stmt, _)| stmt.span != place)
            .filter_map(|(stmt, f)| {
                let ExprKind::Name(variable, _) = f.target.kind else { return None };
                let independent = self.dialect.is_independent(self, &f.iter);
                in_body(f, place).then(|| Around { variable, header: header(stmt, f), independent })
            })
            .collect()
    }

    /// The iterable of the `for` statement at a position.
    pub(crate) fn iterated_at(&self, place: Span) -> Option<Span> {
        let tree = self.tree(place.file)?;
        let mut found = Vec::new();
        descend(&tree.body, place, &mut found);
        found.iter().rev().find(|(stmt, _)| stmt.span == place).map(|(_, f)| f.iter.span)
    }

    /// The header of a loop around a position that runs to completion even if the position is a
    /// `return`: [`super::language::Dialect::reads_body_once`].
    pub(crate) fn loop_read_once_around(&self, place: Span) -> Option<Span> {
        let tree = self.tree(place.file)?;
        let mut found = Vec::new();
        descend(&tree.body, place, &mut found);
        let around = found.iter().find(|(_, f)| in_body(f, place) && self.dialect.reads_body_once(self, &f.iter));
        around.map(|(stmt, f)| header(stmt, f))
    }

    /// The loop-carried names of the loop over the iterable at a position, if each iteration starts
    /// with their values from before the loop: because the loop runs on the device (`counted`), or
    /// by [`super::language::Dialect::reads_body_once`].
    pub(crate) fn carried_by_loop_over(&self, place: Span, counted: bool) -> Vec<Carried> {
        let Some(tree) = self.tree(place.file) else { return Vec::new() };
        let mut found = Vec::new();
        descend(&tree.body, place, &mut found);
        let over = |f: &&For| holds(place, f.iter.span) && (counted || self.dialect.reads_body_once(self, &f.iter));
        let found = found.iter().rev().map(|(_, f)| *f).find(over);
        found.map_or_else(Vec::new, |f| f.carried_into().copied().collect())
    }
}

impl Interp<'_> {
    /// The items that the loop over the iterable at a position carries, which runs on the device.
    pub(crate) fn items_carried_by_loop_over(&self, place: Span) -> Vec<CarriedItem> {
        let Some(tree) = self.tree(place.file) else { return Vec::new() };
        let mut found = Vec::new();
        descend(&tree.body, place, &mut found);
        let found = found.iter().rev().find(|(_, f)| holds(place, f.iter.span));
        found.map_or_else(Vec::new, |(_, f)| carried_items(&f.body))
    }
}

/// Whether a position is in the body of a loop. The iterable is evaluated before the loop, the
/// `else` block after it.
fn in_body(f: &For, place: Span) -> bool {
    f.body.iter().any(|stmt| holds(stmt.span, place))
}

/// From `for` to the end of the iterable.
fn header(stmt: &Stmt, f: &For) -> Span {
    Span { end: f.iter.span.end, ..stmt.span }
}

fn holds(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The `for` statements that contain a position, within its function, outermost first.
fn descend<'a>(body: &'a [Stmt], place: Span, found: &mut Vec<(&'a Stmt, &'a For)>) {
    let Some(stmt) = body.iter().find(|stmt| holds(stmt.span, place)) else { return };
    let blocks = match &stmt.kind {
        StmtKind::Def(def, _) => {
            found.clear();
            vec![&def.body[..]]
        }
        StmtKind::Class(def, _) => {
            found.clear();
            vec![&def.body[..]]
        }
        _ => stmt.blocks(),
    };
    if let StmtKind::For(f) = &stmt.kind {
        found.push((stmt, f));
    }
    blocks.into_iter().for_each(|block| descend(block, place, found));
}
