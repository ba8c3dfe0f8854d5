//! The blocks of a statement.

use super::{Stmt, StmtKind};

impl Stmt {
    /// The blocks in it that its function runs: none of a function or class that it defines.
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
}
