//! Machine-readable findings: SARIF 2.1.0, annotations of GitHub Actions, JUnit.

use std::fmt::Write as _;
use std::path::{Component, Path};

use nki_diag::{Class, JsonDiagnostic, JsonLabel, Severity, slugs};
use serde_json::{Value, json};

use super::{CheckResult, Outcome, Refused, Reported};
use crate::VERSION;
use crate::markup::{Spot, annotation, xml};
use crate::report::Checked;

/// The SARIF level of a severity.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// The message with its explanation and advice.
fn explained(d: &JsonDiagnostic) -> String {
    let mut out = d.message.clone();
    for note in &d.notes {
        let _ = write!(out, "\nnote: {note}");
    }
    for help in &d.help {
        let _ = write!(out, "\nhelp: {help}");
    }
    out
}

/// A path as a URI reference: relative to the source folder, or with the scheme `file`.
fn uri(path: &str) -> String {
    let parts: Vec<String> = Path::new(path)
        .components()
        .filter_map(|c| match c {
            Component::Normal(part) => Some(encoded(&part.to_string_lossy())),
            Component::ParentDir => Some("..".to_owned()),
            Component::Prefix(drive) => Some(encoded(&drive.as_os_str().to_string_lossy())),
            Component::CurDir | Component::RootDir => None,
        })
        .collect();
    let joined = parts.join("/");
    if Path::new(path).is_absolute() { format!("file:///{joined}") } else { joined }
}

/// A segment of a URI's path.
fn encoded(segment: &str) -> String {
    let mut out = String::new();
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=@".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn location(label: &JsonLabel) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(&label.file) } });
    if label.line > 0 {
        physical["region"] = json!({ "startLine": label.line });
        if label.column > 0 {
            physical["region"]["startColumn"] = json!(label.column);
        }
    }
    let mut out = json!({ "physicalLocation": physical });
    if !label.text.is_empty() {
        out["message"] = json!({ "text": label.text });
    }
    out
}

/// A SARIF rule: the slug with its page.
fn rule(id: &str) -> Value {
    let Some(slug) = slugs::find(id) else { return json!({ "id": id }) };
    let worst = if slug.class == Class::Error { "error" } else { "warning" };
    json!({
        "id": id,
        "shortDescription": { "text": slug.summary },
        "help": { "text": slug.page.trim(), "markdown": slug.page.trim() },
        "defaultConfiguration": { "level": worst },
        "properties": { "tags": [slug.class.name()] },
    })
}

/// A SARIF 2.1.0 log with one run per kernel of the file.
pub(super) fn sarif(file: &str, outcomes: &[Outcome]) -> Value {
    log(outcomes.iter().map(|outcome| sarif_run(file, outcome)).collect())
}

fn log(runs: Vec<Value>) -> Value {
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": runs,
    })
}

/// The category of a run, with a trailing slash. Code scanning accepts one run per category in an upload.
fn category(file: &str, kernel: &str) -> String {
    let part = |text: String| if text.is_empty() { text } else { text + "/" };
    format!("nki-sim check/{}{}", part(uri(file)), part(encoded(kernel)))
}

fn sarif_run(file: &str, outcome: &Outcome) -> Value {
    let findings: Vec<&JsonDiagnostic> = outcome.findings().iter().collect();
    run_of(&category(file, outcome.kernel()), &findings, refused(outcome).into_iter())
}

/// A SARIF 2.1.0 log for several files. It has a single run, because code scanning accepts at most 20; each finding is one result.
pub(super) fn sarif_of_files(root: &str, outcomes: &[Outcome]) -> Value {
    let mut reported = Reported::default();
    let findings: Vec<&JsonDiagnostic> =
        outcomes.iter().flat_map(Outcome::findings).filter(|finding| reported.is_new(finding)).collect();
    log(vec![run_of(&category(root, ""), &findings, outcomes.iter().filter_map(refused))])
}

/// The error of a kernel that could not be checked, if any.
fn refused(outcome: &Outcome) -> Option<&Refused> {
    match &outcome.result {
        CheckResult::Checked(_) => None,
        CheckResult::Refused(refused) => Some(refused),
    }
}

/// A run with these findings and invalid calls.
fn run_of<'a>(category: &str, findings: &[&JsonDiagnostic], refused: impl Iterator<Item = &'a Refused>) -> Value {
    let mut rules: Vec<&str> = findings.iter().map(|d| d.id).collect();
    rules.sort_unstable();
    rules.dedup();
    let result = |d: &&JsonDiagnostic| {
        let (primary, others): (Vec<_>, Vec<_>) = d.labels.iter().partition(|l| l.primary);
        let mut out = json!({
            "ruleId": d.id,
            "ruleIndex": rules.binary_search(&d.id).unwrap_or_default(),
            "level": level(d.severity),
            "message": { "text": explained(d) },
            "locations": primary.into_iter().map(location).collect::<Vec<_>>(),
        });
        if !others.is_empty() {
            out["relatedLocations"] = others.into_iter().map(location).collect();
        }
        out
    };
    let mut run = json!({
        "tool": { "driver": {
            "name": "nki-sim",
            "semanticVersion": VERSION,
            "rules": rules.iter().map(|id| rule(id)).collect::<Vec<_>>(),
        } },
        "automationDetails": { "id": category },
        "columnKind": "unicodeCodePoints",
        "results": findings.iter().map(result).collect::<Vec<_>>(),
    });
    let notification = |refused: &Refused| json!({ "level": "error", "message": { "text": refused.error } });
    let notifications: Vec<Value> = refused.map(notification).collect();
    if !notifications.is_empty() {
        run["invocations"] =
            json!([{ "executionSuccessful": false, "exitCode": 2, "toolExecutionNotifications": notifications }]);
    }
    run
}

/// Annotations for the findings of all kernels, without repeats. A notice covers results without findings: each kernel of a single file, or all
/// files together, with the result `total`.
pub(super) fn github(root: &str, outcomes: &[Outcome], total: &str) -> String {
    let mut reported = Reported::default();
    let mut out = String::new();
    for outcome in outcomes {
        let file = outcome.file.as_deref().unwrap_or(root);
        out += &match &outcome.result {
            CheckResult::Checked(checked) => github_checked(checked, &mut reported, outcome.file.is_none()),
            CheckResult::Refused(refused) => {
                annotation("error", None, &format!("nki-sim check {file}"), &refused.error)
            }
        };
    }
    if !total.is_empty() {
        out += &annotation("notice", None, &format!("nki-sim check {root}"), total);
    }
    out
}

fn github_checked(checked: &Checked, reported: &mut Reported, says_nothing_found: bool) -> String {
    let mut out = String::new();
    for d in checked.findings.iter().filter(|finding| reported.is_new(finding)) {
        let kind = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let line = d.line.map(|line| line.to_string());
        let spot = d.file.as_deref().zip(line.as_deref()).map(|(file, line)| Spot { file, line, column: d.column });
        out += &annotation(kind, spot, &format!("nki-sim: {}", d.id), &explained(d));
    }
    if checked.findings.is_empty() && says_nothing_found {
        let message = format!("no findings on {}", checked.target);
        out = annotation("notice", None, &format!("nki-sim check {}", checked.kernel), &message);
    }
    out
}

/// Test cases of a suite, and the numbers of failures and errors.
#[derive(Default)]
struct Suite {
    text: String,
    tests: usize,
    failures: usize,
    errors: usize,
}

impl Suite {
    /// The counts as attributes; `errors` only if there are any.
    fn counts(&self) -> String {
        let errors = if self.errors == 0 { String::new() } else { format!(" errors=\"{}\"", self.errors) };
        format!("tests=\"{}\" failures=\"{}\"{errors}", self.tests, self.failures)
    }
}

/// A suite for each kernel.
pub(super) fn junit(root: &str, outcomes: &[Outcome]) -> String {
    let mut all = Suite::default();
    for outcome in outcomes {
        let name = match (&outcome.file, outcome.kernel()) {
            (None, "") => root.to_owned(),
            (None, kernel) => kernel.to_owned(),
            (Some(file), "") => file.clone(),
            (Some(file), kernel) => format!("{file}::{kernel}"),
        };
        let name = xml(&name, false);
        let suite = match &outcome.result {
            CheckResult::Checked(checked) => cases(&name, &checked.findings),
            CheckResult::Refused(refused) => error_case(&name, &refused.error),
        };
        let _ = writeln!(all.text, "  <testsuite name=\"nki-sim check {name}\" {}>", suite.counts());
        all.text += &suite.text;
        all.text += "  </testsuite>\n";
        all.tests += suite.tests;
        all.failures += suite.failures;
        all.errors += suite.errors;
    }
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    format!("{head}\n<testsuites {}>\n{}</testsuites>\n", all.counts(), all.text)
}

/// A test case for a check that was not performed.
fn error_case(name: &str, error: &str) -> Suite {
    let (message, text) = (xml(error.lines().next().unwrap_or_default(), false), xml(error, true));
    let text = format!(
        "    <testcase classname=\"nki-sim.{name}\" name=\"check\">\n      <error type=\"usage\" message=\"{message}\">{text}</error>\n    </testcase>\n"
    );
    Suite { text, tests: 1, errors: 1, ..Suite::default() }
}

/// A test case per finding, failed if it is an error; without findings, one case that passes.
fn cases(name: &str, findings: &[JsonDiagnostic]) -> Suite {
    let mut out = String::new();
    for d in findings {
        let line = d.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = d.file.as_ref().map(|file| format!(" at {file}{line}")).unwrap_or_default();
        let case = xml(&format!("{}{place}", d.id), false);
        let _ = writeln!(out, "    <testcase classname=\"nki-sim.{name}\" name=\"{case}\">");
        if d.severity == Severity::Error {
            let (message, text) = (xml(&d.message, false), xml(&explained(d), true));
            let _ = writeln!(out, "      <failure type=\"{}\" message=\"{message}\">{text}</failure>", d.id);
        } else {
            let text = xml(&format!("{}: {}", d.severity.name(), explained(d)), true);
            let _ = writeln!(out, "      <system-out>{text}</system-out>");
        }
        out += "    </testcase>\n";
    }
    if findings.is_empty() {
        let _ = writeln!(out, "    <testcase classname=\"nki-sim.{name}\" name=\"no findings\"/>");
    }
    let failures = findings.iter().filter(|d| d.severity == Severity::Error).count();
    Suite { text: out, tests: findings.len().max(1), failures, errors: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_uri_references() {
        assert_eq!(uri("./kernels/a b#1.py"), "kernels/a%20b%231.py");
        assert_eq!(uri("../k.py"), "../k.py");
        assert_eq!(uri("/home/é/k.py"), "file:///home/%C3%A9/k.py");
        assert_eq!(uri("<string>"), "%3Cstring%3E");
    }

    #[test]
    fn each_kernel_of_each_file_has_a_category() {
        assert_eq!(category("a/b.py", "k"), "nki-sim check/a/b.py/k/");
        assert_eq!(category("a/b.py", ""), "nki-sim check/a/b.py/");
    }
}
