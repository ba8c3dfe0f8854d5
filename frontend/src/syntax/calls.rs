//! The functions that a function calls by name.

use rustc_hash::FxHashSet;

use super::hoist::each_operand;
use crate::syntax::*;

impl FuncDef {
    /// The names that the function calls, and the functions, lambdas and classes in it.
    pub(crate) fn calls(&self) -> FxHashSet<Symbol> {
        let mut out = FxHashSet::default();
        in_block(&self.body, &mut out);
        out
    }
}

fn in_block(body: &[Stmt], out: &mut FxHashSet<Symbol>) {
    for stmt in body {
        stmt.expressions().into_iter().for_each(|expr| in_expr(expr, out));
        stmt.blocks().into_iter().for_each(|block| in_block(block, out));
        match &stmt.kind {
            StmtKind::Def(def, _) => in_block(&def.body, out),
            StmtKind::Class(def, _) => in_block(&def.body, out),
            _ => {}
        }
    }
}

fn in_expr(expr: &Expr, out: &mut FxHashSet<Symbol>) {
    match &expr.kind {
        ExprKind::Call(callee, _) => {
            if let ExprKind::Name(name, _) = callee.kind {
                out.insert(name);
            }
        }
        ExprKind::Lambda(def) | ExprKind::Generator(def, _) => in_block(&def.body, out),
        ExprKind::Comp(comp) => {
            let clauses = comp.clauses.iter().flat_map(|clause| [&clause.iter].into_iter().chain(&clause.ifs));
            clauses.chain(&comp.key).chain([&comp.element]).for_each(|e| in_expr(e, out));
        }
        _ => {}
    }
    each_operand(expr, &mut |operand| in_expr(operand, out));
}
