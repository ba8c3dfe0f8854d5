//! Names that `:=` binds: locals of the whole function, also before it.

use super::hoist::each_operand;
use crate::syntax::*;

/// The names that the expressions of a block bind in its function.
pub(super) fn names(body: &[Stmt], out: &mut Vec<Symbol>) {
    for stmt in body {
        in_statement(stmt, out);
        stmt.blocks().into_iter().for_each(|block| names(block, out));
    }
}

/// Those of a statement, the blocks in it excepted.
fn in_statement(stmt: &Stmt, out: &mut Vec<Symbol>) {
    let mut each = |expr: &Expr| in_expr(expr, out);
    match &stmt.kind {
        StmtKind::Expr(e) => each(e),
        StmtKind::Assign(targets, value) => {
            each(value);
            targets.iter().for_each(each);
        }
        StmtKind::AugAssign(target, _, value) => {
            each(target);
            each(value);
        }
        StmtKind::AnnAssign(target, _, value) => {
            each(target);
            value.iter().for_each(each);
        }
        StmtKind::If(arms, _) => arms.iter().for_each(|(test, _)| each(test)),
        StmtKind::For(f) => each(&f.iter),
        StmtKind::While(test, ..) => each(test),
        StmtKind::Return(value) | StmtKind::Raise(value) => value.iter().for_each(each),
        StmtKind::Assert(test, message) => {
            each(test);
            message.iter().for_each(each);
        }
        StmtKind::With(items, _) => items.iter().for_each(|(context, _)| each(context)),
        StmtKind::Match(m) => {
            each(&m.subject);
            m.cases.iter().filter_map(|case| case.guard.as_ref()).for_each(each);
        }
        StmtKind::Yield(y) => y.value.iter().for_each(each),
        StmtKind::Delete(targets) => targets.iter().for_each(each),
        StmtKind::Def(def, _) => {
            let defaults = def.params.iter().filter_map(|param| param.default.as_ref());
            def.decorators.iter().chain(defaults).for_each(each);
        }
        StmtKind::Class(def, _) => def.decorators.iter().chain(&def.bases).for_each(each),
        _ => {}
    }
}

fn in_expr(expr: &Expr, out: &mut Vec<Symbol>) {
    match &expr.kind {
        ExprKind::Walrus(target, _) => {
            if let ExprKind::Name(name, _) = target.kind {
                out.push(name);
            }
        }
        // It binds in the function around a comprehension.
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
