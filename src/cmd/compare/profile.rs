//! A run as numbers by name, from the JSON or CSV of `run` or an export of Neuron Explorer.

use std::collections::BTreeMap;
use std::path::Path;

use nki_isa::names::{Engine, Named as _};
use serde_json::Value;

use super::found::Known;
use super::hardware;
use super::lines::Line;
use super::setup::Setup;
use super::table::{self, Row};
use crate::profile::{self, HardwareProfile};
use crate::tables::read;

/// Numbers by name.
pub(super) type Numbers = BTreeMap<String, f64>;

/// The origin of a run's causes of stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CausesOf {
    /// The whole time of all engines and queues: a JSON report.
    Rows,
    /// The waits before instructions: a table of instructions.
    Instructions,
}

/// The content of a run's file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Profile {
    /// Of the whole run.
    pub(super) metrics: Numbers,
    /// Active time by engine, us.
    pub(super) engines: Numbers,
    /// Stalled time by row and cause, us.
    pub(super) causes: Numbers,
    /// The origin of the causes, if the file has them, even if there were none.
    pub(super) causes_of: Option<CausesOf>,
    /// Time in which an engine waited for events (semaphores, barriers), us: a hardware profile's only data on stalls.
    pub(super) waits: Numbers,
    /// Time of instructions by engine and name, us.
    pub(super) opcodes: Numbers,
    /// Number of instructions by engine and name.
    pub(super) counts: Numbers,
    /// Source lines.
    pub(super) lines: Vec<Line>,
    /// The paths of the files of the lines, by name without the folder.
    pub(super) paths: BTreeMap<String, String>,
    /// Findings, if the file has a list of them.
    pub(super) findings: Option<Vec<Known>>,
    /// The setup of the run.
    pub(super) setup: Setup,
    /// For a hardware profile, the scope of its numbers.
    pub(super) hardware: Option<String>,
}

impl Profile {
    /// Adds the data of another table of the same run.
    fn extend(&mut self, part: Profile) {
        self.metrics.extend(part.metrics);
        self.engines.extend(part.engines);
        self.causes.extend(part.causes);
        self.causes_of = self.causes_of.or(part.causes_of);
        self.waits.extend(part.waits);
        self.opcodes.extend(part.opcodes);
        self.counts.extend(part.counts);
        self.lines.extend(part.lines);
        self.paths.extend(part.paths);
    }

    /// Notes the path of a file with lines.
    fn note_path(&mut self, file: &str) {
        self.paths.entry(base(file).to_owned()).or_insert_with(|| file.to_owned());
    }

    /// Checks that no number of a report is negative.
    fn check(&self) -> Result<(), String> {
        let all = [&self.metrics, &self.engines, &self.causes, &self.opcodes, &self.counts];
        match all.into_iter().flatten().find(|(_, value)| **value < 0.0) {
            Some((name, value)) => {
                Err(format!("`{name}` is {value}, but no number of a run is negative; was the file changed?"))
            }
            None => Ok(()),
        }
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Profile, String> {
        if read::is_profile(path) {
            return from_tables(path);
        }
        let text = profile::text(path)?;
        let wrong = |why: String| {
            format!(
                "`{}`: {why}; expected the file of `nki-sim run --json` or `--csv`, the directory of `--parquet`, the file of `neuron-profile view --output-format json`, or a table Instruction or Summary of Neuron Explorer as CSV or JSON",
                path.display()
            )
        };
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
            let rows = table::parse(&text).map_err(wrong)?;
            return from_rows(&rows).map_err(wrong);
        }
        if let Some(profile) = HardwareProfile::parse(&text).map_err(wrong)? {
            return Ok(hardware::numbers(&profile));
        }
        let json: Value = serde_json::from_str(&text).map_err(|_| wrong("it is not JSON".into()))?;
        from_json(&json).map_err(wrong)
    }
}

/// The tables Instruction and Summary of a profile in Parquet.
fn from_tables(path: &Path) -> Result<Profile, String> {
    let mut out = Profile::default();
    let mut found = false;
    for name in ["Instruction", "Summary"] {
        let Some(rows) = read::table(path, name)?.filter(|rows| !rows.is_empty()) else { continue };
        out.extend(from_rows(&rows).map_err(|why| format!("`{}`, table {name}: {why}", path.display()))?);
        found = true;
    }
    if found {
        let rows = |name: &str| Ok::<_, String>(read::table(path, name)?.unwrap_or_default());
        if path.is_dir() {
            out.setup = Setup::of_profile(&rows("Metadata")?, &rows("Warning")?);
        }
        return Ok(out);
    }
    let rank = path.join("rank0");
    if rank.is_dir() {
        return Err(format!(
            "`{}` has the tables of several ranks; give the directory of one, such as `{}`",
            path.display(),
            rank.display()
        ));
    }
    Err(format!(
        "`{}` has neither Instruction.parquet nor Summary.parquet, or both are empty; expected the directory of `nki-sim run --parquet` or of a profile that Neuron Explorer has processed",
        path.display()
    ))
}

fn from_json(json: &Value) -> Result<Profile, String> {
    if json["latency_us"].is_number() {
        let run = from_run(json);
        run.check()?;
        return Ok(run);
    }
    if json["findings"].is_array() {
        return Err("the run failed, so the report has no timing; see its findings".into());
    }
    // A table, or tables by name: {"instruction": [...], "summary": [{...}]}.
    let mut out = Profile::default();
    let mut found = false;
    let mut add = |rows: &Value| -> Result<(), String> {
        let list: Vec<Row> = match rows {
            Value::Array(items) => items.iter().filter_map(Value::as_object).map(row).collect(),
            Value::Object(one) => vec![row(one)],
            _ => Vec::new(),
        };
        if list.is_empty() {
            return Ok(());
        }
        let part = from_rows(&list)?;
        found = true;
        out.extend(part);
        Ok(())
    };
    match json {
        Value::Array(_) => add(json)?,
        Value::Object(tables) => {
            let mut named = false;
            for (name, rows) in tables {
                if name.eq_ignore_ascii_case("instruction") || name.eq_ignore_ascii_case("summary") {
                    named = true;
                    add(rows)?;
                }
            }
            if !named {
                add(json)?;
            }
        }
        _ => {}
    }
    if found { Ok(out) } else { Err("it has no known table".into()) }
}

fn row(object: &serde_json::Map<String, Value>) -> Row {
    let text = |v: &Value| match v {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        // Source locations are lists of strings here.
        Value::Array(items) => items.first().and_then(Value::as_str).unwrap_or_default().to_string(),
        other => other.to_string(),
    };
    object.iter().map(|(k, v)| (k.clone(), text(v))).collect()
}

/// The file of `run --json`.
fn from_run(json: &Value) -> Profile {
    let has_causes = json["stalls"].is_array();
    let causes_of = has_causes.then_some(CausesOf::Rows);
    let mut out = Profile { setup: Setup::of_run(json), causes_of, ..Profile::default() };
    let number = |v: &Value| v.as_f64();
    if let Some(x) = number(&json["latency_us"]) {
        out.metrics.insert("latency_us".into(), x);
    }
    for section in ["dma", "memory", "traffic"] {
        for (name, v) in json[section].as_object().into_iter().flatten() {
            if let Some(x) = number(v) {
                out.metrics.insert(format!("{section}.{name}"), x);
            }
        }
    }
    for (name, v) in json["summary"].as_object().into_iter().flatten() {
        if let Some(x) = number(v) {
            out.metrics.insert(name.clone(), x);
        }
    }
    for (name, v) in json["engines"].as_object().into_iter().flatten() {
        if has_causes {
            out.waits.insert(format!("{name}: event wait"), 0.0);
        }
        if let Some(x) = number(&v["active_us"]) {
            out.engines.insert(name.clone(), x);
        }
        if let Some(x) = number(&v["instructions"]) {
            out.metrics.insert(format!("instructions.{name}"), x);
        }
    }
    for o in json["opcodes"].as_array().into_iter().flatten() {
        let (Some(engine), Some(opcode)) = (o["engine"].as_str(), o["opcode"].as_str()) else { continue };
        let name = format!("{engine} {opcode}");
        *out.opcodes.entry(name.clone()).or_insert(0.0) += number(&o["instruction_time_ns"]).unwrap_or(0.0) / 1e3;
        *out.counts.entry(name).or_insert(0.0) += number(&o["instruction_count"]).unwrap_or(0.0);
    }
    for s in json["stalls"].as_array().into_iter().flatten() {
        let (Some(row), Some(cause), Some(us)) = (s["engine"].as_str(), s["cause"].as_str(), number(&s["us"])) else {
            continue;
        };
        *out.causes.entry(format!("{row}: {cause}")).or_insert(0.0) += us;
        if matches!(s["kind"].as_str(), Some("semaphore" | "bank" | "barrier")) && !row.starts_with("dma") {
            *out.waits.entry(format!("{row}: event wait")).or_insert(0.0) += us;
        }
    }
    for l in json["lines"].as_array().into_iter().flatten() {
        let place = match (l["file"].as_str(), l["line"].as_u64()) {
            (Some(file), Some(line)) if line > 0 => {
                out.note_path(file);
                format!("{}:{line}", base(file))
            }
            _ => continue,
        };
        out.lines.push(Line {
            place,
            instruction: l["instruction"].as_str().unwrap_or_default().to_owned(),
            text: l["text"].as_str().map(str::to_owned),
            critical: number(&l["critical_us"]),
            busy: number(&l["engine_us"]).unwrap_or(0.0),
        });
    }
    out.findings = Known::read(json);
    out
}

/// The last component of a path: the two runs may have been made in different folders.
pub(super) fn base(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// Rows of Neuron Explorer's tables Instruction or Summary.
fn from_rows(rows: &[Row]) -> Result<Profile, String> {
    let Some(first) = rows.first() else { return Err("it has no rows".into()) };
    if first.contains_key("start_ts") && first.contains_key("engine") {
        return instructions(rows);
    }
    let mut out = Profile::default();
    for (name, value) in first {
        if let Ok(x) = value.parse::<f64>() {
            out.metrics.insert(name.clone(), x);
        }
    }
    let Some(total) = out.metrics.get("total_time").copied() else {
        return Err("it has neither the columns start_ts and engine nor total_time".into());
    };
    if total.is_nan() || total < 0.0 {
        return Err(format!("`total_time` is {total}, which is not a time"));
    }
    // Its unit is seconds.
    out.metrics.insert("latency_us".into(), total * 1e6);
    for engine in ["tensor", "vector", "scalar", "gpsimd", "sync"] {
        if let Some(x) = out.metrics.get(&format!("{engine}_engine_active_time")) {
            out.engines.insert(engine.into(), x * 1e6);
        }
    }
    Ok(out)
}

fn instructions(rows: &[Row]) -> Result<Profile, String> {
    let simulated = rows[0].contains_key("wait_kind");
    let mut out = Profile { causes_of: simulated.then_some(CausesOf::Instructions), ..Profile::default() };
    let mut active: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let mut lines: BTreeMap<(String, String), Line> = BTreeMap::new();
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    let summed = [
        "hbm_read_bytes",
        "hbm_write_bytes",
        "sbuf_read_bytes",
        "sbuf_write_bytes",
        "psum_read_bytes",
        "psum_write_bytes",
    ];
    for (i, r) in rows.iter().enumerate() {
        let number = |name: &str| r.get(name).and_then(|v| v.parse::<f64>().ok());
        let (Some(start), Some(end)) = (number("start_ts"), number("end_ts")) else {
            return Err(format!("row {} has no number in start_ts or end_ts", i + 1));
        };
        first = first.min(start);
        last =
            last.max(end).max(number("dma_trigger_end_ts").unwrap_or(end)).max(number("completion_ts").unwrap_or(end));
        let engine = r.get("engine").map(|e| e.to_lowercase()).unwrap_or_default();
        active.entry(engine.clone()).or_default().push((start, end));
        if let Some(wait) = number("evt_wait_time_ns") {
            *out.waits.entry(format!("{engine}: event wait")).or_insert(0.0) += wait / 1e3;
        }
        if let (true, Some(wait), Some(cause)) = (simulated, number("evt_wait_time_ns"), r.get("wait_cause"))
            && !cause.is_empty()
        {
            *out.causes.entry(format!("{engine}: {cause}")).or_insert(0.0) += wait / 1e3;
        }
        for name in summed {
            if let Some(x) = number(name) {
                *out.metrics.entry(name.into()).or_insert(0.0) += x;
            }
        }
        if let Some(x) = number("raw_flops") {
            *out.metrics.entry("hardware_flops".into()).or_insert(0.0) += x;
        }
        let place = r.get("nki_source_location").map(String::as_str).unwrap_or_default();
        let place = place.trim_matches(['[', ']', '"', '\'']);
        if !place.is_empty() {
            if let Some((file, _)) = place.rsplit_once(':') {
                out.note_path(file);
            }
            let opcode = r.get("opcode").cloned().unwrap_or_default();
            let line = lines.entry((base(place).to_string(), opcode)).or_default();
            line.busy += (end - start) / 1e3;
            if let Some(x) = number("critical_path_ns") {
                *line.critical.get_or_insert(0.0) += x / 1e3;
            }
        }
    }
    // From the first instruction to the last: a table of instructions has no data on the time before and after.
    out.metrics.insert("span_us".into(), (last - first) / 1e3);
    out.metrics.insert("instruction_count".into(), rows.len() as f64);
    out.lines = lines.into_iter().map(|((place, instruction), l)| Line { place, instruction, ..l }).collect();
    for (engine, mut spans) in active {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum, mut reach) = (0.0, f64::NEG_INFINITY);
        for (a, b) in spans {
            if b > reach {
                sum += b - a.max(reach);
                reach = b;
            }
        }
        out.engines.insert(engine, sum / 1e3);
    }
    if simulated {
        out.setup = Setup::of_table(rows);
        // The table only has rows of engines that the kernel uses.
        for engine in Engine::QUEUES {
            out.engines.entry(engine.name().to_owned()).or_insert(0.0);
        }
    }
    Ok(out)
}
