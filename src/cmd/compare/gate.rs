//! Conditions of `--fail-if`.
//!
//! ```text
//! condition := metric op value
//! op        := ">" | ">=" | "<" | "<="
//! value     := SIGN NUMBER "%"      change in percent of before
//!            | SIGN NUMBER [unit]   change
//!            | NUMBER [unit]        the value after
//! unit      := "us" | "ms"  (for latency and other times in us)
//! metric    := "latency" | "engine." ENGINE | "cause." CAUSE | "line." FILE ":" LINE | a name from the comparison
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use nki_sim_core::report::CAUSES;

use super::profile::Profile;
use super::{Change, Checked, Difference};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    More,
    MoreOrSame,
    Less,
    LessOrSame,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    /// Change in percent.
    Percent(f64),
    /// Change.
    Delta(f64),
    /// Value after.
    After(f64),
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gate {
    text: String,
    metric: String,
    op: Op,
    limit: Limit,
    /// Whether the value has a unit of time.
    timed: bool,
}

/// Reads a condition.
pub(super) fn parse(text: &str) -> Result<Gate, String> {
    let wrong = |why: &str| {
        format!(
            "--fail-if '{text}': {why}; a condition is METRIC > +2%, METRIC > +3 (change), or METRIC > 100 (value after), also with >=, <, <="
        )
    };
    let at = text.find(['<', '>']).ok_or_else(|| wrong("there is no <, <=, > or >= in it"))?;
    let metric = text[..at].trim();
    if metric.is_empty() {
        return Err(wrong("the metric is missing"));
    }
    let rest = &text[at..];
    let (op, rest) = if let Some(r) = rest.strip_prefix(">=") {
        (Op::MoreOrSame, r)
    } else if let Some(r) = rest.strip_prefix("<=") {
        (Op::LessOrSame, r)
    } else if let Some(r) = rest.strip_prefix('>') {
        (Op::More, r)
    } else {
        (Op::Less, &rest[1..])
    };
    let value = rest.trim();
    let signed = value.starts_with(['+', '-']);
    let (number, factor, percent) = if let Some(n) = value.strip_suffix('%') {
        (n, 1.0, true)
    } else if let Some(n) = value.strip_suffix("us") {
        (n, 1.0, false)
    } else if let Some(n) = value.strip_suffix("ms") {
        (n, 1000.0, false)
    } else {
        (value, 1.0, false)
    };
    let number: f64 = number
        .trim()
        .parse()
        .ok()
        .filter(|x: &f64| x.is_finite())
        .ok_or_else(|| wrong(&format!("`{value}` is not a number")))?;
    let limit = match (percent, signed) {
        (true, true) => Limit::Percent(number),
        (true, false) => return Err(wrong(&format!("a percentage is a change and needs a sign: +{value}"))),
        (false, true) => Limit::Delta(number * factor),
        (false, false) => Limit::After(number * factor),
    };
    let timed = value.ends_with('s');
    // Lines of the two runs are compared by the name of their file, which may be in different folders.
    let metric = match metric.strip_prefix("line.") {
        Some(line) => format!("line.{}", super::profile::base(line)),
        None => metric.to_string(),
    };
    Ok(Gate { text: text.to_string(), metric, op, limit, timed })
}

impl Gate {
    /// Checks it against a comparison.
    pub(super) fn check(&self, result: &Difference) -> Result<Checked, String> {
        let change = self.find(result)?;
        let groups = ["engine.", "cause.", "line."];
        let time = self.metric == "latency"
            || self.metric.ends_with("_us")
            || groups.iter().any(|group| self.metric.starts_with(group));
        if self.timed && !time {
            return Err(format!(
                "--fail-if '{}': `{}` is not a time in us; give its value without a unit",
                self.text, self.metric
            ));
        }
        let (value, limit) = match self.limit {
            Limit::Percent(p) => (change.percent(), p),
            Limit::Delta(d) => (change.delta(), d),
            Limit::After(x) => (change.after, x),
        };
        let failed = match self.op {
            Op::More => value > limit,
            Op::MoreOrSame => value >= limit,
            Op::Less => value < limit,
            Op::LessOrSame => value <= limit,
        };
        Ok(Checked { condition: self.text.clone(), change, failed })
    }

    /// Checks that both files have the condition's table: missing data is not 0.
    ///
    /// # Errors
    /// With the file that lacks it.
    pub(super) fn check_files(&self, profiles: [&Profile; 2], files: [&Path; 2]) -> Result<(), String> {
        let waits = self.metric.ends_with("event wait");
        let (what, has): (&str, fn(&Profile) -> bool) = match self.metric.split_once('.') {
            Some(("engine", _)) => ("times of engines", |p| !p.engines.is_empty()),
            Some(("cause", _)) if waits => ("times of waits", |p| !p.waits.is_empty()),
            Some(("cause", _)) => ("causes of stalls", |p| p.causes_of.is_some()),
            Some(("line", _)) => ("source lines", |p| !p.lines.is_empty()),
            _ => return Ok(()),
        };
        if what == "causes of stalls"
            && let Some(why) = super::different_causes(profiles, files)
        {
            return Err(format!("--fail-if '{}': {why}", self.text));
        }
        match profiles.into_iter().zip(files).find(|(profile, _)| !has(profile)) {
            Some((_, file)) => Err(format!(
                "--fail-if '{}': both files must have {what}, and `{}` has none",
                self.text,
                file.display()
            )),
            None => Ok(()),
        }
    }

    /// Checks that the cause or the line's file exists: values missing in one run count as 0, but a condition on an unknown name would never fail.
    fn check_name(&self, result: &Difference) -> Result<(), String> {
        if let Some(cause) = self.metric.strip_prefix("cause.") {
            let kind = |name: &str| name.split_once(": ").map_or(name, |x| x.1).split(' ').next().map(str::to_owned);
            let known = result.causes.iter().any(|c| c.name == cause || kind(&c.name) == kind(cause));
            if !known && CAUSES.iter().all(|c| Some(c.name) != kind(cause).as_deref()) {
                let names: Vec<&str> = CAUSES.iter().map(|c| c.name).collect();
                return Err(format!(
                    "--fail-if '{}': `{cause}` is not a cause of a stall; the causes are {}",
                    self.text,
                    names.join(", ")
                ));
            }
        }
        let Some(line) = self.metric.strip_prefix("line.") else { return Ok(()) };
        let file = |name: &str| name.split_once(':').map(|x| x.0.to_owned());
        let files: BTreeSet<String> = result.lines.iter().filter_map(|c| file(&c.name)).collect();
        match file(line) {
            None => Err(format!("--fail-if '{}': expected line.FILE:LINE", self.text)),
            Some(file) if files.is_empty() || files.contains(&file) => Ok(()),
            Some(file) => {
                let list: Vec<String> = files.into_iter().collect();
                Err(format!("--fail-if '{}': no line is in `{file}`; the files are {}", self.text, list.join(", ")))
            }
        }
    }

    fn find(&self, result: &Difference) -> Result<Change, String> {
        let name = self.metric.as_str();
        let exact = |list: &[Change], name: &str| list.iter().find(|c| c.name == name).cloned();
        let named = |c: Change| Change { name: name.to_string(), ..c };
        self.check_name(result)?;
        let found = if let Some(engine) = name.strip_prefix("engine.") {
            exact(&result.engines, engine).map(named)
        } else if let Some(cause) = name.strip_prefix("cause.") {
            // `limiter` is the limiter on all rows, `tensor: limiter` on a single row.
            let mut sum = Change { name: name.to_string(), before: 0.0, after: 0.0 };
            for c in &result.causes {
                let kind = c.name.split_once(": ").map_or(c.name.as_str(), |x| x.1);
                if c.name == cause || kind == cause || kind.split(' ').next() == Some(cause) {
                    sum.before += c.before;
                    sum.after += c.after;
                }
            }
            Some(sum)
        } else if let Some(line) = name.strip_prefix("line.") {
            let mut sum = Change { name: name.to_string(), before: 0.0, after: 0.0 };
            for c in result.lines.iter().filter(|c| c.name == line || c.name.split(' ').next() == Some(line)) {
                sum.before += c.before;
                sum.after += c.after;
            }
            Some(sum)
        } else {
            let full = if name == "latency" { "latency_us" } else { name };
            exact(&result.metrics, full).map(named)
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = if name.starts_with("engine.") {
                result.engines.iter().map(|c| c.name.as_str()).collect()
            } else {
                result.metrics.iter().map(|c| c.name.as_str()).collect()
            };
            format!("--fail-if '{}': both files must have `{name}`; they have {}", self.text, known.join(", "))
        })
    }
}
