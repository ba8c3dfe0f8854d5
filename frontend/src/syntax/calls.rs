//! The functions that a function calls by name, and all names that it reads.

use rustc_hash::FxHashSet;

use super::hoist::each_operand;
use crate::syntax::*;

impl ParamKind {
    /// Whether it collects the remaining arguments.
    pub(crate) fn takes_rest(self) -> bool {
        matches!(self, ParamKind::Star | ParamKind::DoubleStar)
    }
}

impl FuncDef {
    /// The parameters with one value each.
    pub(crate) fn named_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| !p.kind.takes_rest())
    }

    /// Whether it accepts arguments without a named parameter: `*args`, `**kwargs`.
    pub(crate) fn takes_rest(&self) -> bool {
        self.params.iter().any(|p| p.kind.takes_rest())
    }

    /// The names called by the function, including its nested functions, lambdas and classes.
    pub(crate) fn calls(&self) -> FxHashSet<Symbol> {
        let mut out = FxHashSet::default();
        in_block(&self.body, &mut |expr| {
            if let ExprKind::Call(callee, _) = &expr.kind
                && let ExprKind::Name(name, _) = callee.kind
            {
                out.insert(name);
            }
        });
        out
    }

    /// The names read by the function, including its nested functions, lambdas and classes.
    pub(crate) fn names(&self) -> FxHashSet<Symbol> {
        let mut out = FxHashSet::default();
        in_block(&self.body, &mut |expr| {
            if let ExprKind::Name(name, _) = expr.kind {
                out.insert(name);
            }
        });
        out
    }
}

fn in_block(body: &[Stmt], found: &mut dyn FnMut(&Expr)) {
    for stmt in body {
        stmt.expressions().into_iter().for_each(|expr| in_expr(expr, found));
        stmt.blocks().into_iter().for_each(|block| in_block(block, found));
        match &stmt.kind {
            StmtKind::Def(def, _) => in_block(&def.body, found),
            StmtKind::Class(def, _) => in_block(&def.body, found),
            _ => {}
        }
    }
}

fn in_expr(expr: &Expr, found: &mut dyn FnMut(&Expr)) {
    found(expr);
    match &expr.kind {
        ExprKind::Lambda(def) | ExprKind::Generator(def, _) => in_block(&def.body, found),
        ExprKind::Comp(comp) => {
            let clauses = comp.clauses.iter().flat_map(|clause| [&clause.iter].into_iter().chain(&clause.ifs));
            clauses.chain(&comp.key).chain([&comp.element]).for_each(|e| in_expr(e, found));
        }
        _ => {}
    }
    each_operand(expr, &mut |operand| in_expr(operand, found));
}
