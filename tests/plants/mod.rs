//! The planted bugs of tests/planted: the expectations in their comments, and the table of
//! docs/diagnostics.md generated from them.
//!
//! A file is a class of bugs, named by its docstring. Each bug is a kernel `NAME` and its corrected twin `NAME_fixed`:
//!
//! ```text
//! # args: x=float32[128,64] n=3       --arg values of both; comments before the twin replace them for the twin
//! # flags: --lnc 2                    other flags of both
//! # seen-by: check run                the commands that report the bug; without this line: undetected
//! @nki.jit
//! def NAME(x, n):
//!     nisa.dma_copy(dst=a, src=b)     # plant: SLUG, on the line that the finding points at
//!
//! # undetected: REASON                in place of seen-by and plant
//! # expect: same                      an undetected bug that the outputs do not show either
//! ```

#[path = "../words/mod.rs"]
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nki_diag::slugs::{self, Class};
use words::words;

/// A kernel of tests/planted with the information in its comments.
#[derive(Debug, Clone, Default)]
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) struct Kernel {
    /// The function's name.
    pub(crate) name: String,
    /// Arguments for the command line: `--arg NAME=VALUE` pairs and flags.
    pub(crate) args: Vec<String>,
    /// The commands that report the bug.
    pub(crate) seen_by: Vec<String>,
    /// The reason why no command reports it.
    pub(crate) undetected: Option<String>,
    /// Whether the outputs equal the twin's.
    pub(crate) same_outputs: bool,
    /// Lines (from 1) and slugs of the findings.
    pub(crate) plants: Vec<(usize, String)>,
    /// The first line of the function's docstring, which describes the bug.
    pub(crate) wrong: String,
}

/// A file of tests/planted.
#[derive(Debug)]
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) struct Plants {
    pub(crate) path: PathBuf,
    /// The class of its bugs, from the docstring.
    pub(crate) class: String,
    pub(crate) kernels: Vec<Kernel>,
}

/// Parses a comment before a kernel. Returns false if it is not part of this format.
fn header(line: &str, kernel: &mut Kernel) -> bool {
    let Some((key, value)) = line.strip_prefix("# ").and_then(|l| l.split_once(':')) else { return false };
    let value = value.trim();
    match key {
        "args" => {
            for word in words(value) {
                kernel.args.extend(["--arg".to_string(), word]);
            }
        }
        "flags" => kernel.args.extend(words(value)),
        "seen-by" => kernel.seen_by = words(value),
        "undetected" => kernel.undetected = Some(value.to_string()),
        "expect" => kernel.same_outputs = value == "same",
        _ => return false,
    }
    true
}

/// The kernels of a file: decorated functions, with the comments before and inside them.
fn kernels(text: &str) -> Vec<Kernel> {
    let mut out: Vec<Kernel> = Vec::new();
    let mut next = Kernel::default();
    let mut decorated = false;
    for (i, line) in text.lines().enumerate() {
        if header(line, &mut next) {
            continue;
        }
        if line == "@nki.jit" {
            decorated = true;
        } else if let Some(rest) = line.strip_prefix("def ") {
            if std::mem::take(&mut decorated) {
                next.name = rest.split('(').next().unwrap_or_default().to_string();
                out.push(std::mem::take(&mut next));
            }
        } else if let Some(kernel) = out.last_mut()
            && kernel.wrong.is_empty()
            && let Some(doc) = line.trim().strip_prefix("\"\"\"")
        {
            kernel.wrong = doc.trim_end_matches("\"\"\"").to_string();
        }
        if let Some(kernel) = out.last_mut() {
            for slug in line.split("# plant: ").skip(1) {
                let slug = slug.split_whitespace().next().unwrap_or_default();
                kernel.plants.push((i + 1, slug.to_string()));
            }
        }
    }
    out
}

/// All files of tests/planted, by name.
pub(crate) fn all() -> Vec<Plants> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).expect("readable").map(|e| e.expect("entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "py"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("readable");
            let class = text.lines().next().unwrap_or_default().trim_matches('"').to_string();
            Plants { kernels: kernels(&text), class, path }
        })
        .collect()
}

/// The effect of a finding of this class without options.
fn level(class: Class) -> &'static str {
    match class {
        Class::Error => "error",
        Class::Bug => "deny in `check`, warn in `run`",
        Class::Suspicious => "warn",
        Class::Strict => "allow; warn with `--strict`",
    }
}

/// The table of docs/diagnostics.md, and the list of undetected bugs.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) fn table() -> String {
    let mut out = String::from(
        "\n## Classes of bugs\n\nKernels with a planted bug in `tests/planted` test each row (`cargo test --test planted`).\n\n\
         | class of bug | finding | default level | seen by |\n| --- | --- | --- | --- |\n",
    );
    let mut missed = String::new();
    for file in all() {
        // By slug, whether `check` reports it always, and at least once.
        let mut seen: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for kernel in &file.kernels {
            let by_check = kernel.seen_by.iter().any(|c| c == "check");
            for (_, slug) in &kernel.plants {
                let entry = seen.entry(slug).or_insert((true, false));
                *entry = (entry.0 && by_check, entry.1 || by_check);
            }
            if let Some(reason) = &kernel.undetected {
                let shows = if kernel.same_outputs { "no" } else { "yes" };
                missed += &format!("| {} | {reason} | {shows} |\n", kernel.wrong.trim_end_matches('.'));
            }
        }
        for (slug, by_check) in seen {
            let level = slugs::find(slug).map_or("?", |s| level(s.class));
            let by = match by_check {
                (true, _) => "`check` and `run`",
                (false, true) => "`run`, partly `check`",
                (false, false) => "`run`",
            };
            out += &format!("| {} | [{slug}](#{slug}) | {level} | {by} |\n", file.class);
        }
    }
    out + "\nNo finding detects these bugs. Compare the outputs with a reference: `--expect`,\n\
           `nki_sim.assert_close`.\n\n\
           | bug | reason | a reference detects it |\n| --- | --- | --- |\n"
        + &missed
}
