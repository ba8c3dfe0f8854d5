//! `nki-sim explain SLUG|INSTRUCTION`.

use std::fmt::Write;

use nki_diag::slugs;
use nki_isa::{inst, reference};

use crate::Failure;
use crate::output::print;

/// Prints the page of a diagnostic or an instruction, or the list of all.
pub(crate) fn run(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        print(&list());
        return Ok(());
    };
    let short = name.strip_prefix("nisa.").or_else(|| name.strip_prefix("nki.isa.")).unwrap_or(name);
    if let Some(page) = slugs::explain(name) {
        print(&page);
    } else if let Some(entry) = inst::find(short) {
        print(&reference::page(entry.schema, 1));
    } else {
        let hint = match slugs::nearest(name) {
            Some(near) => format!("; did you mean `{}`?", near.id),
            None => "; `nki-sim explain` lists all".into(),
        };
        return Err(Failure::Call(format!("no diagnostic or instruction is called `{name}`{hint}")));
    }
    Ok(())
}

fn list() -> String {
    let mut out = String::from("diagnostics:\n");
    let width = slugs::all().map(|s| s.id.len()).max().unwrap_or(0);
    let mut all: Vec<_> = slugs::all().collect();
    all.sort_by_key(|s| s.id);
    for s in all {
        let _ = writeln!(out, "  {:width$}  {}", s.id, s.summary);
    }
    out += "\ninstructions:\n";
    for s in reference::by_name() {
        let _ = writeln!(out, "  {:width$}  {}", s.name, first_line(s.doc));
    }
    out
}

fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or("")
}
