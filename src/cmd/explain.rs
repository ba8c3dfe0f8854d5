//! `nki-sim explain NAME`: a diagnostic, an instruction, a timing parameter, or a table or column of `run --parquet` and `--csv`.

use std::fmt::Write;

use nki_diag::slugs;
use nki_isa::names::Named as _;
use nki_isa::{Target, inst, reference};
use nki_sim_core::timing::Params;

use crate::Failure;
use crate::output::print;
use crate::tables;

/// Prints the page of what has this name; without a name, the list of diagnostics and instructions.
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
    } else if let Some(page) = parameter(name).or_else(|| tables::explain(name)) {
        print(&page);
    } else {
        let hint = match slugs::nearest(name) {
            Some(near) => format!("; did you mean `{}`?", near.id),
            None => "; `nki-sim explain` lists all".into(),
        };
        return Err(Failure::Call(format!(
            "no diagnostic, instruction, timing parameter, table or column is called `{name}`{hint}"
        )));
    }
    Ok(())
}

/// A timing parameter on every generation that has it.
fn parameter(name: &str) -> Option<String> {
    let mut out = format!("# {name}\n\nTiming parameter; `--set {name}=VALUE` changes it.\n\n");
    let empty = out.len();
    for &target in Target::ALL {
        let Some(p) = Params::of(target).get(name) else { continue };
        let _ = writeln!(out, "{target}: {} {} ({}: {})", p.value, p.unit, p.confidence.name(), p.source);
    }
    (out.len() > empty).then_some(out)
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
