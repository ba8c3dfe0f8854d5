//! Names bound by `:=`: locals of the whole function, even before it.

use super::hoist::each_operand;
use crate::syntax::*;

/// The names that the expressions of a block bind in its function.
pub(super) fn names(body: &[Stmt], out: &mut Vec<Symbol>) {
    for stmt in body {
        stmt.expressions().into_iter().for_each(|expr| in_expr(expr, out));
        stmt.blocks().into_iter().for_each(|block| names(block, out));
    }
}

fn in_expr(expr: &Expr, out: &mut Vec<Symbol>) {
    match &expr.kind {
        ExprKind::Walrus(target, _) => {
            if let ExprKind::Name(name, _) = target.kind {
                out.push(name);
            }
        }
        // It binds in the function that encloses the comprehension.
        ExprKind::Comp(comp) => {
            let clauses = comp.clauses.iter().enumerate();
            clauses.for_each(|(at, clause)| {
                let later = (at > 0).then_some(&clause.iter);
                later.into_iter().chain(&clause.ifs).for_each(|e| in_expr(e, out));
            });
            comp.key.iter().for_each(|key| in_expr(key, out));
            in_expr(&comp.element, out);
        }
        ExprKind::Generator(def, _) => names(&def.body, out),
        _ => {}
    }
    each_operand(expr, &mut |operand| in_expr(operand, out));
}
