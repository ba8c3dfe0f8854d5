//! Constants at the top level of a file, whose values a sweep replaces.

use std::ops::Range;

use nki_diag::FileId;

use crate::syntax::parse::parse;
use crate::syntax::resolve::bound_names;
use crate::syntax::{ExprKind, Interner, StmtKind, Symbol};

/// A name that a statement on one line assigns at the top level of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// The name.
    pub name: String,
    /// The bytes of its value in the text.
    pub value: Range<usize>,
    /// The line, from 1, of a later statement at the top level that also binds the name.
    pub bound_again: Option<usize>,
}

/// The constants of a file with this text, in their order; none if the text is not valid Python.
pub fn constants(text: &str) -> Vec<Constant> {
    let mut names = Interner::new();
    let (ast, wrong) = parse(FileId(0), text, &mut names);
    if !wrong.is_empty() {
        return Vec::new();
    }
    let line = |byte: u32| text[..byte as usize].matches('\n').count() + 1;
    let mut found: Vec<(Symbol, Constant)> = Vec::new();
    for stmt in &ast.body {
        let mut bound = Vec::new();
        bound_names(stmt, &mut bound);
        for (_, known) in found.iter_mut().filter(|(symbol, _)| bound.contains(symbol)) {
            known.bound_again.get_or_insert(line(stmt.span.start));
        }
        let (target, value) = match &stmt.kind {
            StmtKind::Assign(targets, value) if targets.len() == 1 => (&targets[0], value),
            StmtKind::AnnAssign(target, _, Some(value)) => (target, value),
            _ => continue,
        };
        let ExprKind::Name(symbol, _) = target.kind else { continue };
        let is_new = found.iter().all(|(known, _)| *known != symbol);
        if is_new && !text[stmt.span.start as usize..stmt.span.end as usize].contains('\n') {
            let value = value.span.start as usize..value.span.end as usize;
            found.push((symbol, Constant { name: names.name(symbol).to_string(), value, bound_again: None }));
        }
    }
    found.into_iter().map(|(_, constant)| constant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, &str, Option<usize>)> {
        constants(text).into_iter().map(|c| (c.name, &text[c.value], c.bound_again)).collect()
    }

    #[test]
    fn assignments_of_one_line_are_constants() {
        let text = "\"\"\"Doc:\nW = 3\n\"\"\"\nimport nki\nW = 64; V = (3)  # both\nB: int = 2\nA = C = 1\nL = [\n 1]\nW == 3\n\ndef f():\n    W = 9\n";
        assert_eq!(found(text), [("W".into(), "64", None), ("V".into(), "3", None), ("B".into(), "2", None)]);
        assert!(found("W = = 3\n").is_empty());
    }

    #[test]
    fn later_bindings_are_known() {
        assert_eq!(found("W = 64\n\nW = min(W, 32)\nW = 2\n"), [("W".into(), "64", Some(3))]);
        assert_eq!(found("W = 64\nif True:\n    W = 32\n"), [("W".into(), "64", Some(2))]);
        assert_eq!(found("W = 64\nfor W in range(3):\n    pass\n"), [("W".into(), "64", Some(2))]);
    }

    #[test]
    fn what_is_bound_before_is_no_constant_alone() {
        // The first binding is in a block; the second one decides.
        assert_eq!(found("if True:\n    W = 1\nW = 2\n"), [("W".into(), "2", None)]);
    }
}
