//! `nki-sim compare BEFORE AFTER`: the differences, by line, engine and cause; and conditions that fail a build.

mod found;
mod gate;
mod hardware;
mod lines;
mod page;
mod profile;
mod render;
mod setup;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use nki_diag::{Denied, Mode};

use crate::Failure;
use crate::cli::{CompareArgs, CompareFormat};
use crate::findings::{Judge, denied_text};
use crate::output::{eprint, print, write_file};
use crate::places::{Inputs, check_places};
use found::Known;
use gate::Gate;
use profile::{CausesOf, Profile};

/// One number of both runs.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Change {
    /// The name of the metric.
    pub(crate) name: String,
    /// Value before, 0 if the run has none.
    pub(crate) before: f64,
    /// Value after.
    pub(crate) after: f64,
}

impl Change {
    /// The difference.
    pub(crate) fn delta(&self) -> f64 {
        self.after - self.before
    }

    /// The difference in percent of the earlier value; infinite if that is 0.
    pub(crate) fn percent(&self) -> f64 {
        match (self.before == 0.0, self.delta() == 0.0) {
            (_, true) => 0.0,
            (true, false) => f64::INFINITY.copysign(self.delta()),
            (false, false) => self.delta() * 100.0 / self.before.abs(),
        }
    }
}

/// The result of a condition.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Checked {
    /// The condition as written.
    pub(crate) condition: String,
    /// The metric before and after.
    #[serde(flatten)]
    pub(crate) change: Change,
    /// Whether it holds, so that the comparison fails.
    pub(crate) failed: bool,
}

/// The whole comparison.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Difference {
    /// The simulator's version.
    pub(crate) nki_sim_version: &'static str,
    /// The two files.
    pub(crate) files: (String, String),
    /// Notes on files from hardware, and on differences between the setups.
    pub(crate) notes: Vec<String>,
    /// Whether the earlier and the later latency are meaningful: not if the kernel does not fit into SBUF or PSUM.
    pub(crate) latency_valid: (bool, bool),
    /// Numbers of the whole run.
    pub(crate) metrics: Vec<Change>,
    /// Active time by engine.
    pub(crate) engines: Vec<Change>,
    /// Stalled time by row and cause.
    pub(crate) causes: Vec<Change>,
    /// Time of instructions by engine and name.
    pub(crate) opcodes: Vec<Change>,
    /// Number of instructions by engine and name.
    pub(crate) counts: Vec<Change>,
    /// Time on the critical path by source line, or engine time if one of the runs has no critical path.
    pub(crate) lines: Vec<Change>,
    /// Which of the two `lines` contains.
    pub(crate) lines_are: &'static str,
    /// The conditions.
    pub(crate) fail_if: Vec<Checked>,
    /// Findings of the later run, after levels; `None` if its file has no list of findings.
    pub(crate) findings: Option<Vec<Known>>,
    /// The denied findings.
    pub(crate) denied: Vec<Denied>,
    /// The paths of the later run's files, by name without the folder.
    #[serde(skip)]
    pub(crate) paths: BTreeMap<String, String>,
}

/// Compares two runs.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    inputs.add("the run before", &args.before);
    inputs.add("the run after", &args.after);
    check_places(&[("--output", args.output.as_deref()), ("--html", args.html.as_deref())], &inputs)?;
    let result = difference(args)?;
    let text = match args.format {
        CompareFormat::Text => render::text(&result, args.top),
        CompareFormat::Json => String::from_utf8_lossy(&crate::report::json(&result)?).into_owned(),
        CompareFormat::Github => render::github(&result),
        CompareFormat::Junit => render::junit(&result),
    };
    match &args.output {
        Some(path) => write_file(path, &[text.as_bytes()])?,
        None => print(&text),
    }
    if args.format != CompareFormat::Text {
        eprint(&denied_text(&result.denied));
    }
    if result.fails() { Err(Failure::Kernel) } else { Ok(()) }
}

/// The differences between two runs; also writes the page, if requested.
pub(crate) fn difference(args: &CompareArgs) -> Result<Difference, Failure> {
    let gates: Vec<Gate> = args.fail_if.iter().map(|text| gate::parse(text)).collect::<Result<_, _>>()?;
    let (before, after) = (Profile::read(&args.before)?, Profile::read(&args.after)?);
    let mut result = compare(&before, &after, &gates, (&args.before, &args.after))?;
    if let Some(path) = &args.html {
        let text = page::html([&args.before, &args.after], [&before, &after], &result)?;
        write_file(path, &[text.as_bytes()])?;
    }
    (result.findings, result.denied) = judged(args, &before, after)?;
    Ok(result)
}

impl Difference {
    /// Whether a condition fails the comparison, or a finding is denied.
    pub(crate) fn fails(&self) -> bool {
        !self.denied.is_empty() || self.fail_if.iter().any(|c| c.failed)
    }
}

/// The findings of the later run, and the denied ones. The project file is searched from the current folder upwards, because a report
/// may be anywhere.
fn judged(args: &CompareArgs, before: &Profile, after: Profile) -> Result<(Option<Vec<Known>>, Vec<Denied>), Failure> {
    let given = args.levels.source()?;
    let Some(mut found) = after.findings else {
        if !given.is_empty() {
            return Err(Failure::Call(format!(
                "`{}` does not say what was found, so --deny, --warn and --allow cannot be honoured; compare files of `nki-sim run --json`",
                args.after.display()
            )));
        }
        return Ok((None, Vec::new()));
    };
    // A strict finding is in the file because it was requested.
    let judge = Judge::new(Mode::Compare, true, vec![given], Some(Path::new("report")))?;
    found::mark_new(before.findings.as_deref().unwrap_or_default(), &mut found);
    let (found, denied) = found::apply(&judge, found);
    Ok((Some(found), denied))
}

/// The largest change first.
fn sorted(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by(|x, y| y.delta().abs().total_cmp(&x.delta().abs()).then_with(|| x.name.cmp(&y.name)));
    changes
}

/// Whether a row of the causes (`ROW: CAUSE`) is the time before the first or after the last instruction of a queue. It grows with the latency,
/// most of all in queues that the kernel does not use.
fn is_idle(name: &str) -> bool {
    let cause = name.rsplit_once(": ").map_or(name, |(_, cause)| cause);
    ["start-up", "finished"].contains(&cause)
}

/// The reason why the causes of stalls of two runs cannot be compared, if both have them.
fn different_causes(profiles: [&Profile; 2], files: [&Path; 2]) -> Option<String> {
    let [before, after] = profiles.map(|p| p.causes_of);
    let table = match (before?, after?) {
        (CausesOf::Instructions, CausesOf::Rows) => files[0],
        (CausesOf::Rows, CausesOf::Instructions) => files[1],
        _ => return None,
    };
    Some(format!(
        "`{}` has only the waits before instructions; compare two files of `nki-sim run --json`",
        table.display()
    ))
}

fn compare(before: &Profile, after: &Profile, gates: &[Gate], files: (&Path, &Path)) -> Result<Difference, String> {
    // If both files have the table, a row missing in one of them counts as 0.
    let rows = |f: fn(&Profile) -> &profile::Numbers| -> Vec<Change> {
        let (a, b) = (f(before), f(after));
        let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let of = |map: &profile::Numbers, name: &str| map.get(name).copied().unwrap_or(0.0);
        sorted(names.into_iter().map(|n| Change { name: n.clone(), before: of(a, n), after: of(b, n) }).collect())
    };
    let common = |f: fn(&Profile) -> &profile::Numbers| -> Vec<Change> {
        let change = |(name, a): (&String, &f64)| {
            f(after).get(name).map(|b| Change { name: name.clone(), before: *a, after: *b })
        };
        f(before).iter().filter_map(change).collect()
    };
    let both = |has: fn(&Profile) -> bool| has(before) && has(after);
    let metrics = common(|p| &p.metrics);
    let critical = [before, after].iter().all(|p| p.lines.iter().any(|l| l.critical.is_some()));
    let lines = match both(|p| !p.lines.is_empty()) {
        true => sorted(lines::changes(&before.lines, &after.lines, critical)),
        false => Vec::new(),
    };
    let mut causes = match (before.causes_of, after.causes_of) {
        (Some(a), Some(b)) if a == b => rows(|p| &p.causes),
        // The table of a run counts other waits than its report.
        (Some(_), Some(_)) => Vec::new(),
        _ if both(|p| !p.waits.is_empty()) => rows(|p| &p.waits),
        _ => Vec::new(),
    };
    // The sort is stable: the largest change of each group stays first.
    causes.sort_by_key(|cause| is_idle(&cause.name));
    let counted = both(|p| !p.counts.is_empty());
    let named = |f: fn(&Profile) -> &profile::Numbers| if counted { rows(f) } else { Vec::new() };
    let mut notes = hardware::notes(before, after, &metrics, (files.0, files.1));
    notes.extend(setup::notes([before, after], [files.0, files.1]));
    notes.extend(
        different_causes([before, after], [files.0, files.1])
            .map(|why| format!("causes of stalls are not compared: {why}")),
    );
    let versions = lines::counterparts(&before.lines, &after.lines).into_iter().filter(|_| !lines.is_empty());
    notes.extend(versions.map(|(new, old)| format!("lines of `{new}` are paired with lines of `{old}`")));
    let mut result = Difference {
        nki_sim_version: crate::VERSION,
        files: (files.0.display().to_string(), files.1.display().to_string()),
        notes,
        latency_valid: (before.setup.valid, after.setup.valid),
        metrics,
        engines: sorted(common(|p| &p.engines)),
        causes,
        opcodes: named(|p| &p.opcodes),
        counts: named(|p| &p.counts),
        lines,
        lines_are: if critical { "critical path" } else { "engine time" },
        fail_if: Vec::new(),
        findings: None,
        denied: Vec::new(),
        paths: after.paths.clone(),
    };
    for gate in gates {
        gate.check_files([before, after], [files.0, files.1])?;
        let checked = gate.check(&result)?;
        result.fail_if.push(checked);
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
