//! Kernels with a planted bug: each is found by the commands that its comments name, on the line
//! that they name, at the class's default level. Its corrected twin has no findings. Undetected
//! bugs are listed, and must stay undetected. tests/plants describes the format. All modes find the
//! same in a kernel, except for findings that need values.

mod plants;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nki_diag::slugs::{self, Class};
use plants::{Kernel, Plants};

/// A finding that a command reports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    line: usize,
    slug: String,
    severity: String,
    message: String,
}

/// A command's report on a kernel.
struct Report {
    code: Option<i32>,
    findings: BTreeSet<Finding>,
    /// Whether execution depends on values, so that `check` finds less.
    needs_data: bool,
    stderr: String,
}

impl Report {
    /// The lines and slugs of the findings.
    fn places(&self) -> BTreeSet<(usize, &str)> {
        self.findings.iter().map(|f| (f.line, &*f.slug)).collect()
    }
}

fn command(name: &str, file: &Path, kernel: &str, args: &[String], more: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nki-sim"))
        .arg(name)
        .arg(file)
        .args(["--kernel", kernel])
        .args(args)
        .args(more)
        .env_remove("NEURON_PLATFORM_TARGET_OVERRIDE")
        .env_remove("NKI_NC_VERSION")
        .env_remove("NKI_PRECISE_FP")
        .env_remove("NKI_SIM_DENY")
        .env_remove("NKI_SIM_WARN")
        .env_remove("NKI_SIM_ALLOW")
        .output()
        .expect("the command starts")
}

/// The findings in the output of a command: `severity[slug]: message`, then ` -->
/// file:line:column`.
fn in_text(stderr: &str) -> BTreeSet<Finding> {
    let mut out = BTreeSet::new();
    let mut lines = stderr.lines().peekable();
    while let Some(line) = lines.next() {
        let severity = ["error", "warning"].into_iter().find(|s| line.starts_with(&format!("{s}[")));
        let Some((severity, (slug, message))) =
            severity.and_then(|s| Some((s, line[s.len() + 1..].split_once("]: ")?)))
        else {
            continue;
        };
        let place = lines.peek().and_then(|l| l.trim_start().strip_prefix("--> ")).unwrap_or_default();
        out.insert(Finding {
            line: place.rsplit(':').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0),
            slug: slug.into(),
            severity: severity.into(),
            message: message.into(),
        });
    }
    out
}

/// The findings of a report; for `sweep`, those of its only point.
fn in_json(path: &Path) -> BTreeSet<Finding> {
    let Ok(bytes) = fs::read(path) else { return BTreeSet::new() };
    let json: serde_json::Value = serde_json::from_slice(&bytes).expect("a JSON report");
    let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_string();
    let findings = json.get("findings").unwrap_or(&json["rows"][0]["findings"]).as_array().expect("findings");
    findings
        .iter()
        .filter(|f| f["severity"] != "info")
        .map(|f| Finding {
            line: f["line"].as_u64().unwrap_or(0) as usize,
            slug: text(&f["id"]),
            severity: text(&f["severity"]),
            message: text(&f["message"]),
        })
        .collect()
}

/// Runs `check` (its findings come from the text), or `run` or `sweep` (from `--json`).
fn report(name: &str, file: &Path, kernel: &str, args: &[String], out: &Path) -> Report {
    let json = out.join(format!("{name}_{kernel}.json"));
    let mut args = args.to_vec();
    match name {
        "run" => args.extend(["--out".into(), out.join(kernel).display().to_string()]),
        // A grid with a single point: an argument.
        "sweep" => *args.iter_mut().find(|a| *a == "--arg").expect("an argument") = "--grid".into(),
        _ => {}
    }
    if name != "check" {
        args.extend(["--json".into(), json.display().to_string()]);
    }
    let done = command(name, file, kernel, &args, &[]);
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    let findings = if name == "check" { in_text(&stderr) } else { in_json(&json) };
    let needs_data = String::from_utf8_lossy(&done.stdout).contains("what it executes depends on values");
    Report { code: done.status.code(), findings, needs_data, stderr }
}

/// The severity that a finding of this class has by default.
fn severity(class: Class, command: &str) -> &'static str {
    match class {
        Class::Error => "error",
        Class::Bug if command == "check" => "error",
        Class::Bug | Class::Suspicious | Class::Strict => "warning",
    }
}

/// Compares a command's report with what the kernel announces.
fn announced(kernel: &Kernel, name: &str, report: &Report, problems: &mut String) {
    let seen = kernel.seen_by.iter().any(|c| c == name);
    for (line, slug) in &kernel.plants {
        let found = report.findings.iter().find(|f| f.line == *line && f.slug == *slug);
        match (seen, found) {
            (true, None) => {
                let _ = writeln!(problems, "{name}: no [{slug}] on line {line}\n{}", report.stderr);
            }
            (false, Some(_)) => {
                let _ = writeln!(problems, "{name}: now reports [{slug}]: add it to `seen-by`");
            }
            (true, Some(f)) => {
                let class = slugs::find(slug).map_or(Class::Error, |s| s.class);
                let want = severity(class, name);
                if f.severity != want {
                    let _ = writeln!(problems, "{name}: [{slug}] has severity {} (expected {want})", f.severity);
                }
            }
            (false, None) => {}
        }
    }
    let code = i32::from(report.findings.iter().any(|f| f.severity == "error"));
    if report.code != Some(code) {
        let _ = writeln!(problems, "{name}: exit code {:?}, expected {code}\n{}", report.code, report.stderr);
    }
    if kernel.undetected.is_some() && (!report.findings.is_empty() || report.code != Some(0)) {
        let _ = writeln!(problems, "{name}: now detected, move it: {:#?}", report.findings);
    }
}

/// `sweep` finds the same as `check`, or the same as `run` if it has to run as well. `run` finds
/// everything that `check` finds, unless it faults first.
fn same_in_all_modes(check: &Report, run: &Report, sweep: &Report, problems: &mut String) {
    let (like, name) = if check.needs_data { (run, "run") } else { (check, "check") };
    if sweep.places() != like.places() {
        let _ = writeln!(problems, "sweep: {:?}, unlike {name}: {:?}", sweep.places(), like.places());
    }
    if !run.findings.iter().any(|f| f.severity == "error") && !check.places().is_subset(&run.places()) {
        let _ = writeln!(problems, "check: {:?}, not all in run: {:?}", check.places(), run.places());
    }
}

/// An undetected bug must be real: the outputs differ from the twin's, unless the comments declare
/// that they do not.
fn differs(file: &Path, kernel: &Kernel, out: &Path, problems: &mut String) {
    let mut expect = Vec::new();
    for entry in fs::read_dir(out.join(format!("{}_fixed", kernel.name))).expect("the twin has outputs") {
        let path = entry.expect("entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        expect.extend(["--expect".to_string(), format!("{name}={}", path.display())]);
    }
    let done = command("run", file, &kernel.name, &kernel.args, &expect);
    let want = i32::from(!kernel.same_outputs);
    if done.status.code() != Some(want) {
        let stderr = String::from_utf8_lossy(&done.stderr);
        let _ = writeln!(problems, "compared with its twin: exit {:?}, expected {want}\n{stderr}", done.status.code());
    }
}

/// All discrepancies for one planted bug; empty if everything is as announced.
fn check(file: &Plants, kernel: &Kernel) -> String {
    let mut problems = String::new();
    let twin = format!("{}_fixed", kernel.name);
    let Some(fixed) = file.kernels.iter().find(|k| k.name == twin) else {
        return format!("there is no `{twin}`\n");
    };
    if kernel.plants.is_empty() == kernel.undetected.is_none() || kernel.plants.is_empty() != kernel.seen_by.is_empty()
    {
        return "needs either `# seen-by:` and `# plant:`, or `# undetected:`\n".into();
    }
    let out = tempfile::tempdir().expect("a folder");
    let of_kernel = |name: &str| report(name, &file.path, &kernel.name, &kernel.args, out.path());
    let [checked, ran, swept] = ["check", "run", "sweep"].map(of_kernel);
    same_in_all_modes(&checked, &ran, &swept, &mut problems);
    for (name, got) in [("check", checked), ("run", ran)] {
        announced(kernel, name, &got, &mut problems);
        let args = if fixed.args.is_empty() { &kernel.args } else { &fixed.args };
        let got = report(name, &file.path, &twin, args, out.path());
        if !got.findings.is_empty() || got.code != Some(0) {
            let _ = writeln!(
                problems,
                "{name}: `{twin}` is right and gives, with exit code {:?}:\n{}",
                got.code, got.stderr
            );
        }
    }
    if kernel.undetected.is_some() && problems.is_empty() {
        differs(&file.path, kernel, out.path(), &mut problems);
    }
    problems
}

#[test]
fn planted_bugs_are_found_and_their_twins_are_clean() {
    let files = plants::all();
    let bugs: Vec<(&Plants, &Kernel)> = files
        .iter()
        .flat_map(|f| f.kernels.iter().filter(|k| !k.name.ends_with("_fixed")).map(move |k| (f, k)))
        .collect();
    let next = AtomicUsize::new(0);
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((file, kernel)) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = check(file, kernel);
                    if !found.is_empty() {
                        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                        problems.lock().expect("no panic").push(format!("{name} {}: {found}", kernel.name));
                    }
                }
            });
        }
    });
    let mut problems = problems.into_inner().expect("no panic");
    problems.sort();
    assert!(problems.is_empty(), "{} of {} planted bugs:\n{}", problems.len(), bugs.len(), problems.join("\n"));
    assert!(bugs.iter().filter(|(_, k)| k.undetected.is_none()).count() >= 66, "planted bugs are missing");
}

#[test]
fn every_bug_has_a_name_of_its_own_and_a_sentence() {
    let mut names = BTreeSet::new();
    for file in plants::all() {
        assert!(!file.class.is_empty(), "{}: the docstring names the class", file.path.display());
        for kernel in &file.kernels {
            assert!(names.insert(kernel.name.clone()), "two kernels are called {}", kernel.name);
            let twin = kernel.name.ends_with("_fixed");
            assert!(twin || !kernel.wrong.is_empty(), "{} does not say what is wrong", kernel.name);
            assert!(!twin || kernel.plants.is_empty(), "{} is a twin with a planted bug", kernel.name);
            for (_, slug) in &kernel.plants {
                assert!(slugs::find(slug).is_some(), "{}: no diagnostic is called {slug}", kernel.name);
            }
        }
    }
}
