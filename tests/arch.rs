//! The structure of the repository: dependency edges, and a page for every diagnostic.

mod plants;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The edges of docs/architecture.md. Any other edge needs a decision there first.
const EDGES: &[(&str, &[&str])] = &[
    ("nki-isa", &[]),
    ("nki-diag", &[]),
    ("nki-frontend", &["nki-diag", "nki-isa"]),
    ("nki-sim-core", &["nki-diag", "nki-isa"]),
    ("nki-sim", &["nki-diag", "nki-frontend", "nki-isa", "nki-sim-core"]),
    ("nki-sim-python", &["nki-diag", "nki-frontend", "nki-isa", "nki-sim", "nki-sim-core"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn crates_depend_only_along_the_edges() {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let name = package["name"].as_str().expect("name");
        let of = edges.entry(name).or_default();
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // Edges of tests count, too: a test that needs both sides belongs to the root.
            of.extend(dependency["name"].as_str().filter(|d| ours.contains(d)));
        }
    }
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        EDGES.iter().map(|(name, to)| (*name, to.iter().copied().collect())).collect();
    assert_eq!(edges, allowed, "dependency edges differ from docs/architecture.md");
}

fn sources(directory: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(directory).expect("readable").map(|e| e.expect("entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Code that is not a test: everything before the unit tests of a file, without comments.
fn code_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    code.lines().enumerate().map(|(i, line)| (i + 1, line.split("//").next().unwrap_or(line)))
}

/// The stages of the simulator in the order of the data flow, and the stages that the code of each
/// may name. The schedule decides the order of instructions with the machine's clock; the machine
/// knows no policy. What is derived from a timeline or printed affects neither.
const STAGES: &[(&str, &[&str])] = &[
    ("trace", &[]),
    ("place", &["trace"]),
    ("deps", &["trace", "place"]),
    ("timeline", &["trace", "deps"]),
    ("exec", &["trace", "place", "deps"]),
    ("timing", &["trace", "place", "deps", "timeline"]),
    ("schedule", &["trace", "place", "deps", "timeline", "timing"]),
    ("simulate", &["trace", "place", "deps", "timeline", "timing", "schedule"]),
    ("analysis", &["trace", "place", "deps", "timeline", "timing", "schedule", "simulate"]),
    ("report", &["trace", "place", "timeline", "analysis"]),
];

/// The modules of the crate that a line of code names: `use crate::name`, `crate::name::`.
fn modules_named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::")
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest))
}

#[test]
fn stages_of_the_simulator_name_only_earlier_ones() {
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let Some(inside) = name.strip_prefix("sim/src/") else { continue };
        let stage = inside.split(['/', '.']).next().unwrap_or(inside);
        let Some((_, allowed)) = STAGES.iter().find(|(s, _)| *s == stage) else { continue };
        let file = inside.rsplit('/').next().unwrap_or(inside);
        let test =
            inside.contains("/tests/") || file.contains("tests") || ["differential.rs", "speed.rs"].contains(&file);
        if test {
            continue;
        }
        for (number, line) in code_of(&text) {
            for module in modules_named(line) {
                let is_stage = STAGES.iter().any(|(s, _)| *s == module);
                if is_stage && module != stage && !allowed.contains(&module) {
                    found.push(format!("{name}:{number}: {}", line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "a stage names a later one:\n{}", found.join("\n"));
}

/// Facts about a generation are fields of `Arch`. Other code queries the capability; a comparison
/// of targets would be silently wrong for the next generation. The exceptions are the list of
/// parameter files, which does not compile without the new one, and tests.
#[test]
fn only_arch_compares_targets() {
    let compared = |line: &str| {
        line.contains("Target::Trn")
            || ["target <", "target >", "target ==", "target !="].iter().any(|c| line.contains(c))
    };
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let test = name.contains("/tests") || name.ends_with("_tests.rs") || name.ends_with("testing.rs");
        if test
            || ["isa/src/arch/", "isa/src/schema.rs", "sim/src/exec/differential.rs"]
                .iter()
                .any(|p| name.starts_with(p))
        {
            continue;
        }
        for (number, line) in code_of(&text).filter(|(_, line)| compared(line)) {
            if name == "sim/src/timing/params.rs" && line.contains("include_str!") {
                continue;
            }
            found.push(format!("{name}:{number}: {}", line.trim()));
        }
    }
    assert!(found.is_empty(), "ask a field of `Arch` instead:\n{}", found.join("\n"));
}

/// Names of instructions that the language also uses for other things: operators, and functions of
/// `nl` and `nki.collectives`.
const OTHER_VOCABULARY: &[&str] = &[
    "all_gather_v_trigger",
    "all_reduce",
    "all_to_all_v_trigger",
    "collective_permute_implicit_current_processing_rank_id",
    "device_print",
    "dropout",
    "rank_id",
    "reciprocal",
    "scalar_load",
    "scalar_store",
];

/// Everything specific to an instruction is in its own file. Other code queries the instruction; a
/// list of names, or a match on variants, would be silently wrong for the next one. The exceptions
/// are the frontend, which emits instructions by name, and tests.
#[test]
fn only_inst_names_instructions() {
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let test = name.contains("/tests") || name.ends_with("_tests.rs") || name.ends_with("testing.rs");
        // Functions of the older language share names with instructions but have other operands:
        // the dialect defines the differences, and migration replaces one with the other.
        let of_beta1 = ["instruction", "operands"].map(|file| format!("frontend/src/dialect/beta1/{file}.rs"));
        let older = of_beta1.contains(&name) || name.starts_with("frontend/src/migrate/");
        if test || older || name.starts_with("isa/src/inst/") {
            continue;
        }
        let code: Vec<&str> = code_of(&text).map(|(_, line)| line).collect();
        let code = code.join("\n");
        let mut report = |at: usize, what: &str| {
            let line = code[..at].matches('\n').count() + 1;
            found.push(format!("{name}:{line}: {what}"));
        };
        for (at, _) in code.match_indices("Inst::") {
            let own = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let variant: String = code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == ':').collect();
            if own && variant["Inst::".len()..].starts_with(char::is_uppercase) {
                report(at, &variant);
            }
        }
        for entry in nki_isa::inst::REGISTRY.iter().filter(|e| !OTHER_VOCABULARY.contains(&e.schema.name)) {
            let quoted = format!("\"{}\"", entry.schema.name);
            for (at, _) in code.match_indices(&quoted) {
                let before = code[..at].replace(char::is_whitespace, "");
                if !["emit(", "emit(interp,", "find(", "self.instruction("].iter().any(|call| before.ends_with(call)) {
                    report(at, &quoted);
                }
            }
        }
    }
    assert!(found.is_empty(), "ask the instruction instead, by an answer in its own file:\n{}", found.join("\n"));
}

/// Rows of the timing parameters that instructions name: each named row exists, and each existing
/// row is named.
#[test]
fn instructions_name_the_rows_of_the_timing_parameters() {
    let mut files = Vec::new();
    sources(&root().join("isa/src/inst"), &mut files);
    let text: String = files.iter().map(|f| fs::read_to_string(f).expect("readable")).collect();
    let all = nki_sim_core::timing::params::names(nki_isa::Target::DEFAULT);
    let rows = |section: &str| -> BTreeSet<&str> { all.iter().filter_map(|n| n.strip_prefix(section)).collect() };
    let (cycles, fixed, gpsimd) = (rows("vector.cycles."), rows("vector.fixed_ns."), rows("gpsimd.cycles."));
    for (at, call) in text.match_indices("rows(\"") {
        let named: Vec<&str> = text[at + call.len()..].split('"').step_by(2).take(2).collect();
        assert!(cycles.contains(named[0]) && fixed.contains(named[1]), "no such rows: {named:?}");
    }
    // Reading the accumulators is part of several instructions.
    let unused = |row: &&&str| **row != "accumulator_read" && !text.contains(&format!("\"{row}\""));
    let unused: Vec<_> = cycles.iter().chain(&fixed).chain(&gpsimd).filter(unused).collect();
    assert!(unused.is_empty(), "no instruction names these rows: {unused:?}");
}

/// No code of the command or of the Python package other than src/session.rs does the work of a
/// session.
#[test]
fn only_the_session_assembles_the_pipeline() {
    const STAGES: [&str; 8] = [
        "ExecOptions",
        "place::place",
        "place_with(",
        "exec::run",
        "exec::trace_",
        "timing::simulate",
        "lint::",
        "levels.apply(",
    ];
    let mut found = Vec::new();
    let mut entries = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let edge = name.starts_with("src/") || name.starts_with("python/src/");
        for (number, line) in code_of(&text).filter(|_| edge) {
            let allowed = name == "src/session.rs" || (name == "src/findings.rs" && line.contains("levels.apply("));
            if !allowed && STAGES.iter().any(|stage| line.contains(stage)) {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
            if line.contains("nki_frontend::compile") {
                entries.push(name.clone());
            }
        }
    }
    assert!(found.is_empty(), "leave the stage to `Session`:\n{}", found.join("\n"));
    assert_eq!(entries, ["src/kernel.rs", "python/src/cache.rs"], "one entry into the frontend for each driver");
}

/// Only the command names its options. The crates below it describe problems, and give
/// [`nki_diag::Advice`] about the call.
#[test]
fn libraries_name_no_option_of_the_command() {
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if !["isa/src/", "frontend/src/", "sim/src/"].iter().any(|c| name.starts_with(c)) || name.contains("/tests") {
            continue;
        }
        for (number, line) in code_of(&text) {
            let option = line.split("--").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            if option && line.contains('"') {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "an option of the command:\n{}", found.join("\n"));
}

fn library_sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for member in ["src", "isa/src", "diag/src", "frontend/src", "sim/src", "python/src"] {
        sources(&root().join(member), &mut files);
    }
    files
        .into_iter()
        .map(|f| {
            let text = fs::read_to_string(&f).expect("readable");
            (f, text)
        })
        .collect()
}

/// Slugs named in `Diagnostic::error("...")`, `Violation::new("...")` and similar calls, possibly
/// with whitespace in between.
fn slugs_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for builder in ["Diagnostic::error(", "Diagnostic::warning(", "Diagnostic::info(", "Violation::new(", "Fault::new("]
    {
        for (at, _) in text.match_indices(builder) {
            let rest = text[at + builder.len()..].trim_start();
            if let Some(slug) = rest.strip_prefix('"').and_then(|r| r.split('"').next()) {
                found.push(slug.to_string());
            }
        }
    }
    found
}

#[test]
fn every_slug_in_use_has_a_page() {
    let mut missing = BTreeSet::new();
    for (file, text) in library_sources() {
        for slug in slugs_in(&text) {
            let file = file.strip_prefix(root()).unwrap_or(&file);
            // The registry's own documentation and the unit tests' machine do not produce
            // diagnostics for users.
            let ours = file.ends_with("testing.rs") || file.ends_with("tests.rs") || file.ends_with("slugs.rs");
            if !ours && nki_diag::explain(&slug).is_none() {
                missing.insert(format!("{slug} ({})", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "add these to diag/src/slugs/: {missing:#?}");
}

#[test]
fn only_the_parser_module_names_the_parser_crate() {
    for (file, text) in library_sources() {
        let relative = file.strip_prefix(root()).expect("inside").to_string_lossy().replace('\\', "/");
        let is_parser = relative.starts_with("frontend/src/syntax/parse");
        assert!(is_parser || !text.contains("ruff_python"), "{relative} names the parser crate");
    }
}

/// Modules of the frontend that the files of a folder must not name, by any path.
const FRONTEND: &[(&str, &[&str], &str)] = &[
    (
        "frontend/src/eval/",
        &["build", "dialect"],
        "the evaluator knows `Object`, `Dialect` and `Backend` (eval/foreign.rs, eval/language.rs)",
    ),
    (
        "frontend/src/build/",
        &["eval", "dialect", "entry"],
        "the Python package drives `build` as well: it takes tensors and numbers",
    ),
    ("frontend/src/dialect/common/", &["beta2", "klr"], "what one dialect needs is an argument of what all share"),
    ("frontend/src/syntax/", &["eval", "build", "dialect", "entry"], "the syntax stands for itself"),
];

/// The position at which code names a module: as a segment of a path, or an item of a `use` group.
fn names_module(code: &str, module: &str) -> Option<usize> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(module).map(|(at, _)| at).find(|&at| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        let statement = before.rsplit(';').next().unwrap_or(before);
        let in_group = || statement.rfind("use ").is_some_and(|start| statement[start..].contains("::{"));
        let segment = before.ends_with("::") || before.trim_end().ends_with(['{', ',']) && in_group();
        segment && !after.starts_with(word) && !after.starts_with('(')
    })
}

/// The edges inside the frontend: syntax, build -> eval's traits <- dialects.
#[test]
fn folders_of_the_frontend_name_only_what_is_below_them() {
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        for (folder, forbidden, why) in FRONTEND.iter().filter(|(folder, ..)| name.starts_with(folder)) {
            assert!(root().join(folder).is_dir(), "{folder} has moved: the rule would hold of nothing");
            let code: Vec<&str> = code_of(&text).map(|(_, line)| line).collect();
            let code = code.join("\n");
            for module in *forbidden {
                if let Some(at) = names_module(&code, module) {
                    let line = code[..at].matches('\n').count() + 1;
                    found.push(format!("{name}:{line} names `{module}`: {why}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The evaluator interprets Python. References to the API in its messages come from the dialect
/// (`Dialect::hint`).
#[test]
fn the_evaluator_names_nothing_of_the_api() {
    let mut found = Vec::new();
    for (path, text) in library_sources() {
        let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        // NumPy and NKI share the element types; the message about a wrong one gives an example.
        let exempt = name.contains("/tests") || name.ends_with("eval/stdlib/dtype.rs");
        if !name.starts_with("frontend/src/eval/") || exempt {
            continue;
        }
        for (number, line) in code_of(&text) {
            let named = ["nl.", "nisa.", "nki.", "NKIObject"].iter().any(|api| {
                line.match_indices(api).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            });
            if named {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "give the text in `Dialect::hint`:\n{}", found.join("\n"));
}

/// The section about levels, with the defaults from the code.
fn levels() -> String {
    use nki_diag::{Class, Mode};
    let mut out = String::from(LEVELS);
    let modes: Vec<&str> = Mode::ALL.iter().map(|m| m.name()).collect();
    out += &format!("\n| class | findings | {} |\n| --- | --- |{}\n", modes.join(" | "), " --- |".repeat(modes.len()));
    for class in Class::ALL {
        let slugs: Vec<String> = match class {
            Class::Error => vec!["all others".into()],
            _ => nki_diag::slugs::all().filter(|s| s.class == class).map(|s| format!("[{0}](#{0})", s.id)).collect(),
        };
        let level = |mode: &Mode| match (class, mode.default_level(class, false), mode.default_level(class, true)) {
            (Class::Error, ..) => "error".to_owned(),
            (_, plain, strict) if plain == strict => plain.name().to_owned(),
            (_, plain, strict) => format!("{}, with `--strict` {}", plain.name(), strict.name()),
        };
        let cells: Vec<String> = Mode::ALL.iter().map(level).collect();
        out += &format!("| `{}` | {} | {} |\n", class.name(), slugs.join(", "), cells.join(" | "));
    }
    out
}

const LEVELS: &str = "
## Levels

A diagnostic is an error or a finding. A finding reports a doubtful property of a kernel that runs.
Errors have no level. A finding has one of three levels:

- `allow` drops the finding.
- `warn` reports a warning.
- `deny` reports an error that names the reason for the denial, and fails the run: the exit code is
  1, and a call in Python raises `nki_sim.KernelError`.

| source, the strongest first | lists |
| --- | --- |
| arguments of a call in Python | `nki.simulate(kernel, deny=..., warn=..., allow=...)`, also of `nki_sim.profile` and `nki_sim.sweep` |
| the command line | `--deny`, `--warn`, `--allow` of every command (scripts included); `--nki-sim-deny`, `--nki-sim-warn`, `--nki-sim-allow` of pytest |
| the process | `nki_sim.configure(deny=..., warn=..., allow=...)`; then `nki_sim_deny`, `nki_sim_warn`, `nki_sim_allow` in pytest's ini file |
| the environment | `NKI_SIM_DENY`, `NKI_SIM_WARN`, `NKI_SIM_ALLOW` |
| the project file | `deny`, `warn`, `allow` in `nki-sim.toml`, or under `[tool.nki-sim]` in `pyproject.toml` |
| defaults | the table below |

An entry is a slug, a class (`bug`, `suspicious`, `strict`), or `warnings`: every finding that would
otherwise be at level warn. Lists may be repeated; commas separate the entries of a list.

- The strongest source that names a slug or its class decides. Within one source, a slug overrides
  its class.
- `warnings` applies to all findings that are then at level warn, except where the same or a
  stronger source names the slug or the class.
- It is an error if two lists of one source have the same entry, if an entry is unknown, or if an
  entry allows or warns of an error.
- The nearest project file applies, searched from the folder of the kernel upwards; for `compare`,
  from the current folder. Within one folder, `nki-sim.toml` has precedence over `pyproject.toml`.
  An unknown key is an error. Python reads a project file once in a process.
- A strict finding is searched for if its level is not allow: `--deny strict` needs no `--strict`.
- `sweep` does not rank points with a denied finding. Its exit code is 1 if a list denies a finding,
  or if no point remains. Points that only the defaults deny count as failed points.
- `compare` applies levels to the findings of the later run. A finding that was denied in that run
  stays denied, unless a list names it.

```toml
# pyproject.toml
[tool.nki-sim]
deny = [\"bug\", \"overlapping-write\"]
allow = [\"kernel-output\"]
```
";

#[test]
fn every_warning_has_the_class_of_a_finding() {
    for (file, text) in library_sources() {
        let tests = file.ends_with("tests.rs") || file.starts_with(root().join("diag"));
        for (at, _) in text.match_indices("Diagnostic::warning(").filter(|_| !tests) {
            let rest = text[at + "Diagnostic::warning(".len()..].trim_start();
            let Some(id) = rest.strip_prefix('"').and_then(|r| r.split('"').next()) else { continue };
            let class = nki_diag::slugs::find(id).map(|s| s.class);
            assert_ne!(class, Some(nki_diag::Class::Error), "{id} is a warning: give it a class ({})", file.display());
        }
    }
}

#[test]
fn every_page_of_a_diagnostic_is_in_docs() {
    let path = root().join("docs/diagnostics.md");
    let mut want = String::from(
        "# Diagnostics\n\nThis page is generated from `diag/src/slugs/`; `BLESS=1 cargo test --test arch` regenerates it.\n\
         `nki-sim explain SLUG` prints the page of one diagnostic.\n",
    );
    want += &levels();
    want += &plants::table();
    for slug in nki_diag::slugs::all() {
        want += &format!(
            "\n## {}\n\n{}.\n\nClass: {}.\n\n{}\n",
            slug.id,
            slug.summary,
            slug.class.name(),
            slug.page.trim()
        );
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, want).expect("writable");
        return;
    }
    let have = fs::read_to_string(&path).unwrap_or_default();
    assert!(have == want, "docs/diagnostics.md is stale: run BLESS=1 cargo test --test arch");
}
