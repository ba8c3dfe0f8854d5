//! Calls that must be rejected: tests/refused/<instruction>.py; every_operand.py, every_indirect.py
//! and every_collective.py for the rules that several instructions share.
//!
//! ```text
//! # setup of the cases below, up to the next blank line
//! s = nl.ndarray((128, 8), nl.float32, nl.sbuf)
//!
//! # rule: name-of-the-rule                     the rule that the calls below break
//! nisa.tensor_tensor(s, s, p, nl.add)          # [slug] words that the message has | and others
//! nisa.tensor_tensor(s, s, p, nl.power)        # trn1 [slug] words
//! nisa.tensor_tensor(s, s, s, nl.add)          # accepted
//! ```
//!
//! Lines without a trailing comment are setup, which applies from there to the end of the file.
//! Every rule of an instruction's schema needs a case, and every case a rule.

mod snippet;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use nki_isa::inst::collectives::COLLECTIVE_RULES;
use nki_isa::inst::every_operand::COMMON_RULES;
use nki_isa::inst::indirection::INDIRECT_RULES;
use nki_isa::names::Named;
use nki_isa::schema::Rule;
use nki_isa::{Target, inst, reference};
use snippet::Snippet;

/// Rules that several instructions share, by file.
const GENERAL: &[(&str, &[Rule])] =
    &[("every_operand", COMMON_RULES), ("every_indirect", INDIRECT_RULES), ("every_collective", COLLECTIVE_RULES)];

/// The expectation in a comment about the call before it.
enum Expected<'a> {
    Accepted,
    Refused { slug: &'a str, words: Vec<&'a str> },
}

/// The target and the expectation in a comment; `None` if it does not contain one.
fn expected(comment: &str) -> Option<(Target, Expected<'_>)> {
    let comment = comment.trim();
    let (target, rest) = match comment.split_once(' ') {
        Some((word, rest)) => Target::from_name(word).map_or((Target::Trn2, comment), |t| (t, rest.trim())),
        None => (Target::Trn2, comment),
    };
    if rest == "accepted" {
        return Some((target, Expected::Accepted));
    }
    let (slug, words) = rest.strip_prefix('[')?.split_once(']')?;
    let words: Vec<_> = words.split('|').map(str::trim).filter(|w| !w.is_empty()).collect();
    Some((target, Expected::Refused { slug, words }))
}

/// Runs the cases of a file, and compares them with the rules that they must break.
fn check(path: &Path, rules: &[Rule], problems: &mut String) -> usize {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(text) = fs::read_to_string(path) else {
        let _ = writeln!(problems, "{name}: there is no such file in tests/refused");
        return 0;
    };
    let mut setup = Vec::new();
    let mut rule = "";
    let mut broken = BTreeSet::new();
    let mut cases = 0;
    for (i, line) in text.lines().enumerate() {
        let at = format!("{name}:{}", i + 1);
        if let Some(id) = line.strip_prefix("# rule: ") {
            rule = id.trim();
            if !rules.iter().any(|r| r.id == rule) {
                let _ = writeln!(problems, "{at}: the schema has no rule `{rule}`");
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((call, (target, expected))) = line.rsplit_once("  # ").and_then(|(c, e)| Some((c, expected(e)?)))
        else {
            setup.push(line);
            continue;
        };
        cases += 1;
        let error = Snippet::compile(&setup, call.trim_end(), target).error();
        match (expected, error) {
            (Expected::Accepted, None) => {}
            (Expected::Accepted, Some((slug, said))) => {
                let _ = writeln!(problems, "{at}: refused: [{slug}] {said}\n    {line}");
            }
            (Expected::Refused { .. }, None) => {
                let _ = writeln!(problems, "{at}: accepted\n    {line}");
            }
            (Expected::Refused { slug, words }, Some((got, said))) => {
                if words.is_empty() || slug != got || words.iter().any(|w| !said.contains(w)) {
                    let _ = writeln!(problems, "{at}: [{got}] {said}\n    {line}");
                }
                broken.insert(rule);
            }
        }
    }
    for r in rules.iter().filter(|r| !broken.contains(r.id)) {
        let _ = writeln!(problems, "{name}: no call breaks the rule `{}`: {}", r.id, r.text);
    }
    cases
}

#[test]
fn every_rule_has_a_call_that_breaks_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut problems = String::new();
    let mut cases = 0;
    for (name, rules) in GENERAL {
        cases += check(&folder.join(format!("{name}.py")), rules, &mut problems);
    }
    for schema in reference::by_name().iter().filter(|s| !s.rules.is_empty()) {
        cases += check(&folder.join(format!("{}.py", schema.name)), schema.rules, &mut problems);
    }
    assert!(problems.is_empty(), "of {cases} cases:\n{problems}");
}

#[test]
fn every_file_is_of_an_instruction() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("entry").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let known = GENERAL.iter().any(|(name, _)| *name == stem)
            || inst::find(&stem).is_some_and(|e| !e.schema.rules.is_empty());
        assert!(known, "{} is no instruction with rules", path.display());
    }
}
