//! docs/isa.md: no documented name is missing, and the page matches the registry.
//!
//! `BLESS=1 cargo test --test isa_reference` rewrites the page.

mod snippet;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use nki_isa::inst::collectives::COLLECTIVE_RULES;
use nki_isa::inst::every_operand::COMMON_RULES;
use nki_isa::inst::indirection::INDIRECT_RULES;
use nki_isa::{Target, inst, reference};
use snippet::Snippet;

/// A public name in the API stubs.
struct Documented<'a> {
    name: &'a str,
    /// Whether the simulator lacks it.
    missing: bool,
    /// The diagnostic with which the language rejects it.
    refused: Option<&'a str>,
    target: Target,
    /// A statement that uses it; `None` for an instruction, which the registry covers.
    statement: Option<&'a str>,
    section: &'a str,
}

fn documented(text: &str) -> Vec<Documented<'_>> {
    let mut out = Vec::new();
    let mut section = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title;
            continue;
        }
        let Some((name, rest)) = line.split_once(' ') else { continue };
        if name == "#" || name.is_empty() {
            continue;
        }
        let rest = rest.trim();
        let (missing, rest) = rest.strip_prefix("! ").map_or((false, rest), |r| (true, r));
        let (refused, rest) = match rest.strip_prefix('[').and_then(|r| r.split_once("] ")) {
            Some((slug, statement)) => (Some(slug), statement),
            None => (None, rest),
        };
        let (target, rest) = rest.strip_prefix("@trn3 ").map_or((Target::Trn2, rest), |r| (Target::Trn3, r));
        out.push(Documented { name, missing, refused, target, statement: (rest != "-").then_some(rest), section });
    }
    out
}

/// How the simulator supports it, or what is wrong.
fn how(entry: &Documented<'_>) -> Result<String, String> {
    let Some(statement) = entry.statement else {
        let found = inst::find(entry.name.trim_start_matches("nisa."));
        return found.map(|_| "instruction".into()).ok_or_else(|| "the registry does not have it".into());
    };
    let snippet = Snippet::compile(snippet::SETUP, statement, entry.target);
    if let Some(slug) = entry.refused {
        return match snippet.error() {
            Some((got, _)) if got == slug => Ok(format!("refused (`{slug}`)")),
            other => Err(format!("`{statement}`: not refused with {slug}, but {other:?}")),
        };
    }
    if let Some((slug, said)) = snippet.error() {
        return Err(format!("`{statement}`: [{slug}] {said}"));
    }
    let instructions = snippet.instructions();
    Ok(if instructions.is_empty() { "at compile time".into() } else { instructions.join(", ") })
}

fn coverage() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/documented.txt");
    let text = fs::read_to_string(path).expect("readable");
    let mut out = String::new();
    let mut problems = String::new();
    let mut section = "";
    for entry in documented(&text) {
        if entry.section != section {
            section = entry.section;
            let _ = write!(out, "\n### {section}\n\n| name | how | checked with |\n| --- | --- | --- |\n");
        }
        let how = match (how(&entry), entry.missing) {
            (Ok(how), false) => how,
            (Err(_), true) => "**missing**".into(),
            (Ok(_), true) => {
                let _ = writeln!(problems, "{}: works: take the `!` out of tests/api/documented.txt", entry.name);
                continue;
            }
            (Err(why), false) => {
                let _ = writeln!(problems, "{}: {why}", entry.name);
                continue;
            }
        };
        let on = if entry.target == Target::Trn3 { " (trn3)" } else { "" };
        let with = entry.statement.map_or(String::new(), |s| format!("`{}`{on}", s.replace('|', "\\|")));
        let _ = writeln!(out, "| `{}` | {how} | {with} |", entry.name);
    }
    assert!(problems.is_empty(), "\n{problems}");
    out
}

fn reference() -> String {
    let mut out = String::from(
        "# Instruction reference\n\n\
         Generated from the schemas of the instructions; `BLESS=1 cargo test --test isa_reference` rewrites this file. \
         `nki-sim explain NAME` prints one page. The names are those of the API stubs of the AWS Neuron SDK 2.32.0.\n\n\
         The cost is in hardware terms, with how well it is founded: documented by the vendor, measured on hardware, derived from \
         either, or assumed. What a step takes in time is in `sim/src/timing/params/`.\n\n\
         ## Rules of every operand\n\n",
    );
    out += &reference::rules(COMMON_RULES);
    out += "\n## Rules of tensor indirection\n\n`NkiTensor.indirect(index)`, on trn3.\n\n";
    out += &reference::rules(INDIRECT_RULES);
    out += "\n## Rules of every collective\n\n";
    out += &reference::rules(COLLECTIVE_RULES);
    out += "\nEach rule has a refused call in `tests/refused/`.\n\n## Instructions\n\n";
    for schema in reference::by_name() {
        let _ = writeln!(out, "{}", reference::page(schema, 3));
    }
    out += "## Coverage\n\nEvery public name of `nki.isa` and `nki.language`, and how the simulator treats it.\n";
    out += &coverage();
    out
}

#[test]
fn every_documented_name_is_there_and_the_page_is_fresh() {
    let page = reference();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/isa.md");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, page).expect("writable");
        return;
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    assert!(have == page, "docs/isa.md is stale: run BLESS=1 cargo test --test isa_reference");
}
