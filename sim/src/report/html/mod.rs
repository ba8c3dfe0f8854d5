//! One self-contained page per run: no network, no framework; the assets beside this file are our own.

mod columns;
mod compare;
mod data;

use serde::Serialize;

use crate::analysis::Analysis;
pub use compare::{Busy, Side, Track, Tracks, html_compare};
use data::{Data, data};

/// A source file; if it has no text, its lines are not shown.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name in [`crate::timeline::Names::files`].
    pub name: String,
    /// Its text.
    pub text: Option<String>,
}

/// A diagnostic.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// Its slug.
    pub id: String,
    /// The diagnostic's text.
    pub message: String,
    /// File, or empty.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
}

/// The page's content in addition to the analysis.
#[derive(Debug, Clone)]
pub struct Page {
    /// The machine.
    pub target: String,
    /// Sources, by file index.
    pub sources: Vec<Source>,
    /// The diagnostics.
    pub findings: Vec<Finding>,
}

/// Scripts shared by all pages; the report of a run adds more. A script may use definitions of earlier ones.
const SHARED: [&str; 4] =
    [include_str!("format.js"), include_str!("decode.js"), include_str!("draw.js"), include_str!("table.js")];
const REPORT: [&str; 12] = [
    include_str!("model.js"),
    include_str!("totals.js"),
    include_str!("state.js"),
    include_str!("rows.js"),
    include_str!("memory.js"),
    include_str!("timeline.js"),
    include_str!("pointer.js"),
    include_str!("source.js"),
    include_str!("detail.js"),
    include_str!("tables.js"),
    include_str!("search.js"),
    include_str!("overview.js"),
];

/// The page as text.
///
/// # Errors
/// If the data cannot be written.
pub fn html(a: &Analysis<'_>, page: &Page) -> std::io::Result<String> {
    whole(&format!("{} on {}", a.timeline.kernel, page.target), vec![data(a, page)?])
}

/// A page with all ranks, from 0; the reader selects the rank to show.
///
/// # Errors
/// If the data cannot be written.
pub fn html_ranks(ranks: &[Analysis<'_>], page: &Page) -> std::io::Result<String> {
    let all = ranks.iter().map(|a| data(a, page)).collect::<Result<Vec<_>, _>>()?;
    let kernel = ranks.first().map_or("", |a| &*a.timeline.kernel);
    whole(&format!("{kernel} on {} ranks, {}", ranks.len(), page.target), all)
}

/// The columns of each rank are a separate element, so only those of the displayed rank are decoded.
fn whole(title: &str, ranks: Vec<(Data<'_>, String)>) -> std::io::Result<String> {
    let (data, columns): (Vec<_>, Vec<_>) = ranks.into_iter().unzip();
    let body = include_str!("page.html");
    Ok(assemble(body, title, &serde_json::to_string(&data)?, &columns, &[&SHARED[..], &REPORT[..]].concat()))
}

/// Fills a template: `@@NAME@@` stands for a part.
fn assemble(template: &str, title: &str, data: &str, columns: &[String], scripts: &[&str]) -> String {
    let size = data.len() + columns.iter().map(String::len).sum::<usize>() + 256 * 1024;
    let mut out = String::with_capacity(size);
    for (i, part) in template.split("@@").enumerate() {
        match (i % 2, part) {
            (1, "TITLE") => out.push_str(&escape(title)),
            (1, "VERSION") => out.push_str(super::VERSION),
            (1, "STYLE") => out.push_str(include_str!("style.css")),
            // In a script element only `<` can end it or start a comment.
            (1, "DATA") => out.push_str(&data.replace('<', "\\u003c")),
            (1, "COLUMNS") => {
                for text in columns {
                    out.push_str("<script type=\"text/plain\" class=\"columns\">");
                    out.push_str(text);
                    out.push_str("</script>\n");
                }
            }
            (1, "SCRIPT") => scripts.iter().for_each(|script| out.push_str(script)),
            _ => out.push_str(part),
        }
    }
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::remedies::{Case, THOROUGH};
    use crate::exec::trace_only;
    use crate::place::place;
    use crate::timeline::{RowKind, State};
    use crate::timing::Params;
    use crate::timing::tests::{tensor_add, time};
    use nki_isa::Target;
    use std::collections::BTreeMap;

    /// Calls `check` with the analysis of a sum of two tensors and its page.
    fn with_page(text: &str, check: impl FnOnce(&Analysis<'_>, String)) {
        let program = tensor_add();
        let (t, params) = (time(&program), Params::of(Target::Trn2));
        let (placement, trace) = (place(&program).unwrap(), trace_only(&program).unwrap());
        let case = Case {
            program: &program,
            placement: &placement,
            trace: &trace,
            params: &params,
            timeline: &t,
            known: None,
        };
        let a = Analysis::new(case, THOROUGH);
        let page = Page {
            target: "trn2".into(),
            sources: vec![Source { name: "kernel.py".into(), text: Some(text.into()) }],
            findings: Vec::new(),
        };
        check(&a, html(&a, &page).unwrap());
    }

    /// The text between two others.
    fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
        let start = page.find(from).unwrap() + from.len();
        &page[start..start + page[start..].find(to).unwrap()]
    }

    fn json(page: &str) -> serde_json::Value {
        let all: serde_json::Value = serde_json::from_str(between(page, "id=\"data\">", "</script>")).unwrap();
        all[0].clone()
    }

    fn columns(page: &str) -> BTreeMap<String, Vec<i64>> {
        columns::tests::decode(&json(page)["columns"], between(page, "class=\"columns\">", "</script>"))
    }

    #[test]
    fn nothing_in_the_source_can_end_the_script() {
        let evil = "x = '</script><script>alert(1)</script><!--' # \u{2028} @@DATA@@ @@COLUMNS@@\n";
        with_page(evil, |_, text| {
            assert!(!text.contains("alert(1)</script>"));
            // One element for the data, one for the columns, one for the program.
            assert_eq!(text.matches("<script").count(), 3);
            assert_eq!(text.matches("</script>").count(), 3);
            assert_eq!(json(&text)["files"][0][1][0].as_str(), Some(evil.trim_end()));
            for loads in ["http://", "https://", " src=\"", "<link", "<img", "@import", "url("] {
                assert!(!text.contains(loads), "{loads}");
            }
        });
    }

    #[test]
    fn columns_hold_every_event_stall_and_access() {
        with_page("", |a, text| {
            let (t, c) = (a.timeline, columns(&text));
            assert_eq!(c["event.start"].len(), t.events.len());
            for (i, e) in t.events.iter().enumerate() {
                let (start, end) = (c["event.start"][i], c["event.start"][i] + c["event.time"][i]);
                let done = end + c["event.complete"][i];
                for (ns, ps) in [(start, e.start), (end, e.end), (done, e.complete)] {
                    assert!(ns.abs_diff(ps as i64 / 1000) <= 1, "{ns} ns is not {ps} ps");
                }
            }
            // Three transfers and an addition of two operands, which reads two tensors and writes one.
            assert_eq!(c["transfer.event"].len(), 3);
            let accesses = c["event.accesses"].iter().sum::<i64>() as usize;
            assert_eq!(accesses, c["access"].len());
            assert_eq!(c["event.accesses"].iter().max(), Some(&3));
            // Stalls and work partition the time of each engine.
            let rows = json(&text)["rows"].clone();
            for (r, row) in t.rows.iter().enumerate().filter(|(_, r)| matches!(r.kind, RowKind::Engine(_))) {
                let spans = row.spans.iter().filter(|s| matches!(s.state, State::Stalled(_)));
                let mine = || (0..c["stall.row"].len()).filter(|i| c["stall.row"][*i] == r as i64);
                assert_eq!(mine().count(), spans.count());
                let stalled: i64 = mine().map(|i| c["stall.time"][i]).sum();
                let active = rows[r]["active_us"].as_f64().unwrap() * 1e3;
                assert!((stalled as f64 + active - t.elapsed as f64 / 1e3).abs() <= 1.0 + mine().count() as f64);
            }
            // On-chip tensors have an address, others have none.
            let on_chip = c["tensor.byte"].iter().filter(|b| **b >= 0).count();
            assert_eq!(on_chip, a.allocations().len());
            assert!(c["tensor.role"].contains(&1) && c["tensor.role"].contains(&2));
        });
    }

    #[test]
    fn every_script_is_part_of_the_page() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/html");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "js") {
                let text = std::fs::read_to_string(&path).unwrap();
                let compare = [include_str!("compare.js")];
                let mut scripts = SHARED.iter().chain(&REPORT).chain(&compare);
                assert!(scripts.any(|s| **s == *text), "{} is in no page", path.display());
                assert!(text.lines().count() <= 400, "{} is long", path.display());
                found += 1;
            }
        }
        assert_eq!(found, SHARED.len() + REPORT.len() + 1);
    }
}
