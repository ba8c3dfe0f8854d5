//! Generator expressions and the patterns of `match`.

use std::cell::{Cell, OnceCell};

use std::rc::Rc;

use nki_diag::Span;
use ruff_python_ast as py;

use super::Convert;
use crate::syntax::*;

impl Convert<'_> {
    /// `(element for target in iter if test ...)`: a generator of its first iterable.
    pub(super) fn generator(&mut self, element: &py::Expr, generators: &[py::Comprehension], span: Span) -> ExprKind {
        let Some((first, _)) = generators.split_first().filter(|_| generators.iter().all(|g| !g.is_async)) else {
            return ExprKind::Unsupported(Unsupported {
                construct: "an async generator expression",
                instead: "use a plain `for` loop",
            });
        };
        let iterable = self.boxed(&first.iter);
        let outer = std::mem::take(&mut self.yields);
        let value = self.expr(element);
        let at = value.span;
        let mut body =
            Stmt { kind: StmtKind::Yield(Box::new(Yield { target: None, value: Some(value), from: false })), span: at };
        for (index, clause) in generators.iter().enumerate().rev() {
            for test in clause.ifs.iter().rev() {
                let test = self.expr(test);
                let span = test.span;
                body = Stmt { kind: StmtKind::If(vec![(test, vec![body])], Vec::new()), span };
            }
            let iter = match index {
                0 => Expr { kind: ExprKind::Name(sym::iterable, Slot::Unresolved), span: iterable.span },
                _ => self.expr(&clause.iter),
            };
            let (target, span) = (self.expr(&clause.target), self.span(clause));
            let each = For {
                target,
                iter,
                body: vec![body],
                orelse: Vec::new(),
                carried: OnceCell::new(),
                own: OnceCell::new(),
                differs: Cell::new(false),
            };
            body = Stmt { kind: StmtKind::For(Box::new(each)), span };
        }
        self.yields = outer;
        let parameter = Param {
            name: sym::iterable,
            kind: ParamKind::Normal,
            default: None,
            annotation: None,
            span: iterable.span,
        };
        let def = FuncDef {
            name: sym::genexpr,
            params: vec![parameter],
            body: vec![body],
            decorators: Vec::new(),
            scope: Scope::default(),
            name_span: span,
            returns: None,
            positional: 1,
            has_star: false,
            has_double_star: false,
            is_async: false,
            is_generator: true,
        };
        ExprKind::Generator(Rc::new(def), iterable)
    }

    pub(super) fn pattern(&mut self, pattern: &py::Pattern) -> Pattern {
        let kind = match pattern {
            py::Pattern::MatchValue(p) => PatternKind::Value(self.expr(&p.value)),
            py::Pattern::MatchSingleton(p) => {
                let kind = match p.value {
                    py::Singleton::None => ExprKind::None,
                    py::Singleton::True => ExprKind::Bool(true),
                    py::Singleton::False => ExprKind::Bool(false),
                };
                PatternKind::Singleton(Expr { kind, span: self.span(pattern) })
            }
            py::Pattern::MatchSequence(p) => PatternKind::Sequence(self.patterns(&p.patterns)),
            py::Pattern::MatchStar(p) => PatternKind::Star(p.name.as_ref().map(|n| self.name(n))),
            py::Pattern::MatchMapping(p) => PatternKind::Mapping {
                items: p.keys.iter().zip(&p.patterns).map(|(k, p)| (self.expr(k), self.pattern(p))).collect(),
                rest: p.rest.as_ref().map(|n| self.name(n)),
            },
            py::Pattern::MatchClass(p) => PatternKind::Class {
                class: self.expr(&p.cls),
                positional: self.patterns(&p.arguments.patterns),
                keyword: p.arguments.keywords.iter().map(|k| (self.sym(&k.attr), self.pattern(&k.pattern))).collect(),
            },
            py::Pattern::MatchAs(p) => PatternKind::As {
                pattern: p.pattern.as_ref().map(|p| Box::new(self.pattern(p))),
                name: p.name.as_ref().map(|n| self.name(n)),
            },
            py::Pattern::MatchOr(p) => PatternKind::Or(self.patterns(&p.patterns)),
        };
        Pattern { kind, span: self.span(pattern) }
    }

    fn patterns(&mut self, patterns: &[py::Pattern]) -> Vec<Pattern> {
        patterns.iter().map(|p| self.pattern(p)).collect()
    }
}
