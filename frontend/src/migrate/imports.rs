//! Imports of `neuronxcc.nki`.

use nki_diag::Span;
use rustc_hash::FxHashMap;

use super::tree::{all, statements};
use super::{Api, Edit, Pass, by_hand};
use crate::syntax::{ExprKind, ImportFrom, ImportName, Interner, Stmt, StmtKind, Symbol};

/// The dotted name in the current package for a name of the old one.
fn current(path: &str) -> Option<String> {
    let rest = path.strip_prefix("neuronxcc.nki")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| format!("nki{rest}"))
}

/// The imported names of a file: modules and names of the API, with `nki` for `neuronxcc.nki`, and NumPy.
pub(super) fn names(body: &[Stmt], interner: &Interner, api: Api) -> FxHashMap<Symbol, String> {
    let mut found = FxHashMap::default();
    all(body, &mut |stmt| imported_by(stmt, interner, api, &mut found));
    found
}

/// Those of [`names`] that statements outside of functions and classes import.
pub(super) fn names_at_top(body: &[Stmt], interner: &Interner, api: Api) -> FxHashMap<Symbol, String> {
    let mut found = FxHashMap::default();
    statements(body, &mut |stmt| imported_by(stmt, interner, api, &mut found));
    found
}

/// Adds the names of [`names`] that a statement imports.
fn imported_by(stmt: &Stmt, interner: &Interner, api: Api, found: &mut FxHashMap<Symbol, String>) {
    let current = |path: &str| {
        let is_new = api == Api::Any && (path == "nki" || path.starts_with("nki."));
        current(path).or_else(|| is_new.then(|| path.to_owned()))
    };
    match &stmt.kind {
        StmtKind::Import(items) => {
            for item in items {
                let path = current(&item.path).or((item.path == "numpy").then(|| item.path.clone()));
                if let (Some(path), ExprKind::Name(name, _), true) =
                    (path, &item.bind.kind, item.has_alias || ["numpy", "nki"].contains(&&*item.path))
                {
                    found.insert(*name, path);
                }
            }
        }
        StmtKind::ImportFrom(import) if import.level == 0 => {
            for (name, bind) in &import.names {
                let path = current(&format!("{}.{}", import.path, interner.name(*name)));
                if let (Some(path), ExprKind::Name(bound, _)) = (path, &bind.kind) {
                    found.insert(*bound, path);
                }
            }
        }
        _ => {}
    }
}

/// Whether the current package has a name of a module.
fn has(module: &str, name: &str) -> bool {
    match module {
        "nki" => ["jit", "language", "isa", "FrameworkKernel"].contains(&name),
        "nki.language" | "nki.isa" => {
            crate::dialect::beta2::names::api_names().iter().any(|n| n.0 == module && n.1 == name)
        }
        _ => false,
    }
}

impl Pass<'_> {
    /// Rewrites the imports, and adds the imports required by the new text.
    pub(super) fn imports(&mut self, body: &[Stmt]) {
        let mut found: Vec<&Stmt> = Vec::new();
        all(body, &mut |stmt| {
            if matches!(stmt.kind, StmtKind::Import(_) | StmtKind::ImportFrom(_)) {
                found.push(stmt);
            }
        });
        let top: Vec<u32> = body.iter().map(|s| s.span.start).collect();
        // Names bound by a line at the top of the file need no line in a function.
        let mut bound: Vec<String> = Vec::new();
        let mut rewritten: Vec<(Span, Option<String>)> = Vec::new();
        for stmt in found {
            if let StmtKind::ImportFrom(import) = &stmt.kind
                && let Some(name) = self.unknown_name(import)
            {
                let instead =
                    format!("a function of your own in place of {name}: the current package has none of that name");
                self.report(by_hand(stmt.span, self.kinds.source(stmt.span), &instead));
                continue;
            }
            let lines = match &stmt.kind {
                StmtKind::Import(items) => self.import(items),
                StmtKind::ImportFrom(import) => self.import_from(import),
                _ => None,
            };
            let Some(mut lines) = lines else { continue };
            if top.contains(&stmt.span.start) {
                bound.extend(lines.iter().cloned());
            } else {
                lines.retain(|l| !bound.contains(l));
            }
            rewritten.push((stmt.span, (!lines.is_empty()).then(|| lines.join("\n"))));
        }
        let mut needs: Vec<(&str, String)> = self.needs.iter().map(|(p, n)| (*p, n.clone())).collect();
        needs.sort_unstable();
        let missing: Vec<String> = needs
            .into_iter()
            .filter(|(path, name)| {
                !self.imported_at_top.iter().any(|(n, p)| p == path && **self.kinds.names.name(*n) == **name)
            })
            .map(
                |(path, name)| if path == name { format!("import {path}") } else { format!("import {path} as {name}") },
            )
            .collect();
        let last_top = rewritten.iter().rposition(|(span, _)| top.contains(&span.start));
        if !missing.is_empty() {
            match last_top {
                Some(at) => {
                    let (_, text) = &mut rewritten[at];
                    let before = text.take().map(|t| t + "\n").unwrap_or_default();
                    *text = Some(before + &missing.join("\n"));
                }
                None => {
                    let at = body.first().map_or(0, |s| s.span.start as usize);
                    self.edits.push(Edit { span: at..at, text: missing.join("\n") + "\n" });
                }
            }
        }
        for (span, text) in rewritten {
            match text {
                Some(text) => {
                    let start = self.text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
                    let indent = self.text[start..span.start as usize].trim_start_matches('\u{feff}').to_owned();
                    self.replaced(span, text.replace('\n', &format!("\n{indent}")));
                }
                None => self.import_gone(span),
            }
        }
    }

    fn import_gone(&mut self, span: Span) {
        let range = self.without_line(span);
        let alone = range.end - range.start > (span.end - span.start) as usize;
        let old = self.kinds.source(span).to_owned();
        let own = span.start as usize..span.end as usize;
        self.changes.push(super::Change {
            span: own.clone(),
            old,
            new: "nothing: not needed".to_owned(),
            rewritten: true,
        });
        self.edits.push(if alone {
            Edit { span: range, text: String::new() }
        } else {
            Edit { span: own, text: "pass".to_owned() }
        });
    }

    /// A name imported from a non-public module of the old package, or that the module does not have.
    fn unknown_name(&self, import: &ImportFrom) -> Option<String> {
        let module = current(&import.path)?;
        const PUBLIC: [&str; 6] = ["nki", "nki.language", "nki.isa", "nki.typing", "nki.compiler", "nki.isa.constants"];
        let is_known = PUBLIC.contains(&module.as_str()) || module.starts_with("nki.language.");
        (!is_known).then(|| import.names.first().map(|(name, _)| self.kinds.names.name(*name).to_string())).flatten()
    }

    /// The lines that replace `import a, b`; `None` if none of them is of the old package.
    fn import(&mut self, items: &[ImportName]) -> Option<Vec<String>> {
        items.iter().any(|i| i.path.split('.').next() == Some("neuronxcc")).then_some(())?;
        let mut lines = Vec::new();
        for item in items {
            let alias = self.kinds.source(item.bind.span).split_whitespace().last().unwrap_or_default().to_owned();
            let Some(path) = current(&item.path) else {
                if item.path.split('.').next() != Some("neuronxcc") {
                    lines.push(format!("import {}", self.kinds.source(item.bind.span)));
                }
                continue;
            };
            if !item.has_alias {
                continue;
            }
            let remains = ["nki", "nki.language", "nki.isa"].contains(&path.as_str());
            if remains {
                lines.push(if path == alias { format!("import {path}") } else { format!("import {path} as {alias}") });
            }
        }
        Some(lines)
    }

    fn import_from(&mut self, import: &ImportFrom) -> Option<Vec<String>> {
        if import.path == "neuronxcc" {
            let mut lines = Vec::new();
            for (name, bind) in &import.names {
                let alias = self.kinds.source(bind.span);
                if &**self.kinds.names.name(*name) == "nki" {
                    lines.push(if alias == "nki" { "import nki".to_owned() } else { format!("import nki as {alias}") });
                }
            }
            return Some(lines);
        }
        let module = current(&import.path);
        if module.is_none() {
            return (import.path.split('.').next() == Some("neuronxcc")).then(Vec::new);
        }
        let module = module?;
        let mut kept = Vec::new();
        let mut lines = Vec::new();
        for (name, bind) in &import.names {
            let (name, alias) = (self.kinds.names.name(*name).to_string(), self.kinds.source(bind.span));
            if module == "nki" && matches!(name.as_str(), "language" | "isa") {
                lines.push(format!("import nki.{name} as {alias}"));
            } else if has(&module, &name) {
                kept.push(if name == alias { name } else { format!("{name} as {alias}") });
            }
        }
        if import.star {
            kept.push("*".to_owned());
        }
        if !kept.is_empty() {
            lines.push(format!("from {module} import {}", kept.join(", ")));
        }
        Some(lines)
    }
}
