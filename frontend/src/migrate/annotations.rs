//! Annotations with names of `nki.typing`, a module that no longer exists.

use nki_diag::Span;

use super::Pass;
use crate::syntax::{FuncDef, Stmt};

impl Pass<'_> {
    /// Whether an annotation uses a name of `nki.typing`: `nt.tensor`, `nt.tensor[128, 512]`, `tensor | None`.
    pub(super) fn is_of_typing(&self, annotation: Span) -> bool {
        let text = self.kinds.source(annotation);
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        text.split(|c| !is_of_name(c)).any(|path| {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let imported = self.kinds.names.find(first).and_then(|name| self.kinds.imported.get(&name));
            imported.is_some_and(|of| format!("{of}.{rest}").starts_with("nki.typing"))
        })
    }

    /// Removes those annotations from the parameters and the result of a function.
    pub(super) fn annotations(&mut self, def: &FuncDef) {
        for param in &def.params {
            let Some(annotation) = param.annotation.filter(|a| self.is_of_typing(*a)) else { continue };
            let name = self.kinds.source(Span { end: annotation.start, ..param.span });
            let text = name.trim_end().trim_end_matches(':').trim_end().to_owned();
            self.replaced(Span { end: annotation.end, ..param.span }, text);
        }
        let Some(annotation) = def.returns.filter(|a| self.is_of_typing(*a)) else { return };
        let before = &self.text[..annotation.start as usize];
        let Some(arrow) = before.rfind("->") else { return };
        let start = before[..arrow].trim_end().len();
        self.replaced(Span { start: start as u32, ..annotation }, String::new());
    }

    /// The declaration of a variable or field, with a class that includes every object.
    pub(super) fn with_any_class(&self, stmt: &Stmt, annotation: Span) -> String {
        let text = |from: u32, to: u32| &self.text[from as usize..to as usize];
        format!("{}object{}", text(stmt.span.start, annotation.start), text(annotation.end, stmt.span.end))
    }
}
