//! Markdown pages that are tests: each ```python block is a kernel file, and its comments state the
//! expected findings.
//!
//! ```text
//! args: x=float32[128,512] n=3        (optional, before the block: --arg values, then other flags after `flags:`)
//! # error: [slug] fragment            (on the line the diagnostic must point at)
//! # warning: [slug] fragment
//! ```
//!
//! `page flags:` and `page needs values` apply to all blocks after them.
//!
//! `--no-numerics` must report the same warnings as a run, unless a line `needs values` precedes
//! the block: findings that need no values are those of `check`. A block without such comments must
//! be accepted without errors or warnings. Every error and warning that the command reports must be
//! announced by a comment.

mod words;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use words::words;

/// A finding that a comment announces or the command reports.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    line: usize,
    severity: String,
    slug: String,
    text: String,
}

struct Block {
    first_line: usize,
    args: Vec<String>,
    code: String,
    /// Whether its warnings need values.
    needs_values: bool,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut out = Vec::new();
    let mut args = Vec::new();
    let mut needs_values = false;
    let (mut all_flags, mut all_need_values) = (Vec::new(), false);
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if let Some(rest) = line.strip_prefix("args:") {
            for word in words(rest) {
                args.extend(["--arg".to_string(), word]);
            }
        } else if let Some(rest) = line.strip_prefix("flags:") {
            args.extend(words(rest));
        } else if let Some(rest) = line.strip_prefix("page flags:") {
            all_flags = words(rest);
        } else if line == "page needs values" {
            all_need_values = true;
        } else if line == "needs values" {
            needs_values = true;
        } else if line.trim() == "```python" {
            let mut code = String::new();
            let mut first_line = 0;
            for (n, line) in lines.by_ref() {
                if line.trim() == "```" {
                    break;
                }
                if code.is_empty() {
                    first_line = n + 1;
                }
                code += line;
                code.push('\n');
            }
            out.push(Block {
                first_line,
                args: std::mem::take(&mut args).into_iter().chain(all_flags.iter().cloned()).collect(),
                code,
                needs_values: std::mem::take(&mut needs_values) || all_need_values,
            });
        }
    }
    out
}

fn announced(code: &str) -> Vec<Said> {
    let mut out = Vec::new();
    for (i, line) in code.lines().enumerate() {
        // A line may announce several findings.
        for comment in line.split("# ").skip(1) {
            let Some((severity, rest)) = comment.split_once(": [") else { continue };
            let Some((slug, text)) = rest.split_once(']') else { continue };
            if matches!(severity, "error" | "warning") {
                out.push(Said { line: i + 1, severity: severity.into(), slug: slug.into(), text: text.trim().into() });
            }
        }
    }
    out
}

fn reported(json: &serde_json::Value) -> Vec<Said> {
    let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_string();
    json["findings"]
        .as_array()
        .map(|all| {
            all.iter()
                .filter(|f| f["severity"] != "info")
                .map(|f| Said {
                    line: f["line"].as_u64().unwrap_or(0) as usize,
                    severity: text(&f["severity"]),
                    slug: text(&f["id"]),
                    text: text(&f["message"]),
                })
                .collect()
        })
        .unwrap_or_default()
}

/// Runs a block and compares the reported findings with `want`.
fn run(at: &str, block: &Block, want: &[Said], flags: &[&str]) -> datatest_stable::Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kernel.py");
    std::fs::File::create(&file)?.write_all(block.code.as_bytes())?;
    let report = folder.path().join("report.json");
    let done = Command::new(env!("CARGO_BIN_EXE_nki-sim"))
        .arg("run")
        .arg(&file)
        .args(&block.args)
        .args(flags)
        .arg("--json")
        .arg(&report)
        .env_remove("NEURON_PLATFORM_TARGET_OVERRIDE")
        .env_remove("NKI_NC_VERSION")
        .env_remove("NKI_PRECISE_FP")
        .output()?;
    let at = format!("{at} {}", flags.join(" "));
    let stderr = String::from_utf8_lossy(&done.stderr);
    let code = i32::from(want.iter().any(|w| w.severity == "error"));
    if done.status.code() != Some(code) {
        return Ok(format!("{at}: exit {:?}, expected {code}\n{stderr}\n", done.status.code()));
    }
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let mut got = reported(&json);
    let mut problems = String::new();
    for w in want {
        let found = got
            .iter()
            .position(|g| g.line == w.line && g.severity == w.severity && g.slug == w.slug && g.text.contains(&w.text));
        match found {
            Some(i) => {
                got.remove(i);
            }
            None => {
                problems +=
                    &format!("{at}: line {}: expected {}[{}]: {}\n{stderr}\n", w.line, w.severity, w.slug, w.text)
            }
        }
    }
    for g in got {
        problems += &format!("{at}: line {}: not announced: {}[{}]: {}\n", g.line, g.severity, g.slug, g.text);
    }
    Ok(problems)
}

fn page(path: &Path) -> datatest_stable::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let mut problems = String::new();
    for block in blocks(&text) {
        let at = format!("{}:{}", path.display(), block.first_line);
        let want = announced(&block.code);
        problems += &run(&at, &block, &want, &[])?;
        if !block.needs_values && want.iter().all(|w| w.severity != "error") {
            problems += &run(&at, &block, &want, &["--no-numerics"])?;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.into()) }
}

datatest_stable::harness! {
    { test = page, root = "tests/pages", pattern = r"^.*\.md$" },
}
