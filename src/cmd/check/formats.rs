//! The findings of a kernel for other programs: SARIF 2.1.0, annotations of GitHub Actions, JUnit.

use std::fmt::Write as _;
use std::path::{Component, Path};

use nki_diag::{Class, JsonDiagnostic, JsonLabel, Severity, slugs};
use serde_json::{Value, json};

use crate::VERSION;
use crate::markup::{Spot, annotation, xml};
use crate::report::Checked;

/// What SARIF calls a severity.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// The message with what explains it and what to do.
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

/// A path as a URI reference: relative to the folder of the sources, or with the scheme `file`.
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

/// A rule of SARIF: the slug with its page.
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

/// A log of SARIF 2.1.0 with one run.
pub(super) fn sarif(checked: &Checked) -> Value {
    let mut rules: Vec<&str> = checked.findings.iter().map(|d| d.id).collect();
    rules.sort_unstable();
    rules.dedup();
    let result = |d: &JsonDiagnostic| {
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
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "nki-sim",
                "semanticVersion": VERSION,
                "rules": rules.iter().map(|id| rule(id)).collect::<Vec<_>>(),
            } },
            "automationDetails": { "id": format!("nki-sim check/{}", checked.kernel) },
            "columnKind": "unicodeCodePoints",
            "results": checked.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// An annotation for each finding; a notice if there is none.
pub(super) fn github(checked: &Checked) -> String {
    let mut out = String::new();
    for d in &checked.findings {
        let kind = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let line = d.line.map(|line| line.to_string());
        let spot = d.file.as_deref().zip(line.as_deref()).map(|(file, line)| Spot { file, line, column: d.column });
        out += &annotation(kind, spot, &format!("nki-sim: {}", d.id), &explained(d));
    }
    if out.is_empty() {
        let message = format!("no findings on {}", checked.target);
        out = annotation("notice", None, &format!("nki-sim check {}", checked.kernel), &message);
    }
    out
}

/// A suite with a case for each finding, which fails if it is an error; without findings, one case that passes.
pub(super) fn junit(checked: &Checked) -> String {
    let failures = checked.findings.iter().filter(|d| d.severity == Severity::Error).count();
    let tests = checked.findings.len().max(1);
    let kernel = xml(&checked.kernel, false);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites tests=\"{tests}\" failures=\"{failures}\">");
    let _ = writeln!(out, "  <testsuite name=\"nki-sim check {kernel}\" tests=\"{tests}\" failures=\"{failures}\">");
    for d in &checked.findings {
        let line = d.line.map(|line| format!(":{line}")).unwrap_or_default();
        let place = d.file.as_ref().map(|file| format!(" at {file}{line}")).unwrap_or_default();
        let name = xml(&format!("{}{place}", d.id), false);
        let _ = writeln!(out, "    <testcase classname=\"nki-sim.{kernel}\" name=\"{name}\">");
        if d.severity == Severity::Error {
            let (message, text) = (xml(&d.message, false), xml(&explained(d), true));
            let _ = writeln!(out, "      <failure type=\"{}\" message=\"{message}\">{text}</failure>", d.id);
        } else {
            let text = xml(&format!("{}: {}", d.severity.name(), explained(d)), true);
            let _ = writeln!(out, "      <system-out>{text}</system-out>");
        }
        out += "    </testcase>\n";
    }
    if checked.findings.is_empty() {
        let _ = writeln!(out, "    <testcase classname=\"nki-sim.{kernel}\" name=\"no findings\"/>");
    }
    out += "  </testsuite>\n</testsuites>\n";
    out
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
}
