//! `compare --html`: two runs on one time axis.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use nki_isa::names::Named as _;
use nki_sim_core::report::{self, Busy, Side, Track, Tracks};
use serde::Serialize;
use serde_json::Value;

use super::profile::{Profile, base};
use super::table::{self, Row};
use super::{Change, Difference, hardware, lines};
use crate::profile::{self, HardwareProfile, Mapped};
use crate::tables::read;

/// The tables of the page.
#[derive(Serialize)]
struct Tables<'a> {
    metrics: &'a [Change],
    engines: &'a [Change],
    causes: &'a [Change],
    opcodes: &'a [Change],
    counts: &'a [Change],
    notes: &'a [String],
    latency_valid: (bool, bool),
    lines: Vec<Change>,
    lines_are: &'static str,
    /// The locations of each of `lines` in the two runs; empty if a run has no such line.
    places: Vec<[String; 2]>,
}

/// The page of a comparison.
pub(super) fn html(files: [&Path; 2], profiles: [&Profile; 2], difference: &Difference) -> Result<String, String> {
    let critical = difference.lines_are == "critical path";
    let mut pairs = match difference.lines.is_empty() {
        true => Vec::new(),
        false => lines::pairs(&profiles[0].lines, &profiles[1].lines, critical),
    };
    pairs.sort_by(|x, y| {
        let (x, y) = (x.change(), y.change());
        y.delta().abs().total_cmp(&x.delta().abs()).then_with(|| x.name.cmp(&y.name))
    });
    let tables = Tables {
        metrics: &difference.metrics,
        engines: &difference.engines,
        causes: &difference.causes,
        opcodes: &difference.opcodes,
        counts: &difference.counts,
        notes: &difference.notes,
        latency_valid: difference.latency_valid,
        lines: pairs.iter().map(lines::Pair::change).collect(),
        lines_are: difference.lines_are,
        places: pairs.iter().map(lines::Pair::places).collect(),
    };
    let side = |n: usize| -> Result<Side, String> {
        let tracks = tracks(files[n])?;
        let last = tracks.rows.iter().flat_map(|r| &r.spans).map(|s| s.end).max().unwrap_or(0);
        let latency = profiles[n].metrics.get("latency_us").map_or(last, |us| (us * 1e3).round() as i64);
        Ok(Side { file: files[n].display().to_string(), latency, tracks })
    };
    report::html_compare(&[side(0)?, side(1)?], &tables).map_err(|e| format!("cannot write the page: {e}"))
}

/// The activity of a run over time from its file; empty if it has only sums.
fn tracks(path: &Path) -> Result<Tracks, String> {
    let wrong = |why: String| format!("`{}`: {why}", path.display());
    if read::is_profile(path) {
        let rows = read::table(path, "Instruction")?.unwrap_or_default();
        let metadata = read::table(path, "Metadata")?.unwrap_or_default();
        let simulated = metadata.iter().any(|row| row.get("is_simulation").is_some_and(|value| value == "true"));
        return Ok(of_rows(&rows, simulated));
    }
    let text = profile::text(path)?;
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv")) {
        let rows = table::parse(&text).map_err(wrong)?;
        let simulated = rows.first().is_some_and(|row| row.contains_key("nki_sim_version"));
        return Ok(of_rows(&rows, simulated));
    }
    if let Some(profile) = HardwareProfile::parse(&text).map_err(wrong)? {
        return Ok(of_hardware(&profile));
    }
    let json: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("it is not JSON: {e}")))?;
    Ok(of_run(&json))
}

/// Tracks while they are made.
#[derive(Default)]
struct Maker {
    tracks: Tracks,
    names: HashMap<String, u32>,
    places: HashMap<String, u32>,
    rows: BTreeMap<String, usize>,
}

impl Maker {
    fn row(&mut self, name: &str) -> usize {
        let rows = &mut self.tracks.rows;
        *self.rows.entry(name.to_owned()).or_insert_with(|| {
            rows.push(Track { name: name.to_owned(), spans: Vec::new() });
            rows.len() - 1
        })
    }

    fn add(&mut self, row: usize, (start, end): (i64, i64), name: &str, place: &str, stalled: bool) {
        let name = number(&mut self.names, &mut self.tracks.names, name);
        let place = number(&mut self.places, &mut self.tracks.places, place);
        if end > start {
            self.tracks.rows[row].spans.push(Busy { start, end, name, place, stalled });
        }
    }
}

impl Maker {
    /// The tracks in chronological order.
    fn sorted(mut self) -> Tracks {
        for row in &mut self.tracks.rows {
            row.spans.sort_by_key(|s| (s.start, s.end));
        }
        self.tracks
    }
}

fn number(index: &mut HashMap<String, u32>, texts: &mut Vec<String>, text: &str) -> u32 {
    if let Some(n) = index.get(text) {
        return *n;
    }
    let n = texts.len() as u32;
    texts.push(text.to_owned());
    index.insert(text.to_owned(), n);
    n
}

/// The intervals of `run --json`. They name the line, but not its file: if lines of two files have the same number, the place is only the number.
fn of_run(json: &Value) -> Tracks {
    let mut known: HashMap<u64, (String, Vec<&str>)> = HashMap::new();
    for l in json["lines"].as_array().into_iter().flatten() {
        let (Some(file), Some(line), Some(instruction)) =
            (l["file"].as_str(), l["line"].as_u64(), l["instruction"].as_str())
        else {
            continue;
        };
        let place = format!("{}:{line}", base(file));
        let (known_place, instructions) = known.entry(line).or_insert_with(|| (place.clone(), Vec::new()));
        if *known_place != place {
            *known_place = format!("line {line}");
        }
        if !instructions.contains(&instruction) {
            instructions.push(instruction);
        }
    }
    let rows = json["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let several = rows.iter().any(|r| r["core"].as_u64().is_some_and(|c| c > 0));
    let mut out = Maker::default();
    for r in rows {
        let name = r["row"].as_str().unwrap_or_default();
        let row = if several { out.row(&format!("{name}/{}", r["core"])) } else { out.row(name) };
        for span in r["intervals"].as_array().into_iter().flatten() {
            let (Some(start), Some(end), Some(what)) = (span[0].as_f64(), span[1].as_f64(), span[2].as_str()) else {
                continue;
            };
            let time = ((start * 1e3).round() as i64, (end * 1e3).round() as i64);
            match (what, span[4].as_u64().and_then(|line| known.get(&line))) {
                ("busy", Some((place, instructions))) => out.add(row, time, &instructions.join(", "), place, false),
                ("busy", None) => out.add(row, time, "instruction", "", false),
                _ => out.add(row, time, what, "", true),
            }
        }
    }
    out.tracks
}

/// The rows of a table Instruction: each engine, and each queue with its transfers. Times are relative to the kernel's start if simulated, else to
/// the first instruction.
fn of_rows(rows: &[Row], simulated: bool) -> Tracks {
    let number = |r: &Row, name: &str| r.get(name).and_then(|v| v.parse::<f64>().ok()).filter(|x| x.is_finite());
    let first = rows.iter().filter_map(|r| number(r, "start_ts")).fold(f64::INFINITY, f64::min);
    let several = rows.iter().any(|r| number(r, "pcore_idx").is_some_and(|core| core > 0.0));
    let zero = if simulated { 0.0 } else { first };
    let mut out = Maker::default();
    for r in rows {
        let text = |name: &str| r.get(name).map(String::as_str).unwrap_or_default();
        let (Some(start), Some(end)) = (number(r, "start_ts"), number(r, "end_ts")) else { continue };
        let place = base(text("nki_source_location").trim_matches(['[', ']', '"', '\'']));
        let at = |t: f64| (t - zero).round() as i64;
        let engine = text("engine").to_lowercase();
        let row = out.row(&if several { format!("{engine}/{}", text("pcore_idx")) } else { engine });
        if let Some(wait) = number(r, "evt_wait_time_ns").filter(|w| *w > 0.0) {
            let cause = if text("wait_cause").is_empty() { "event wait" } else { text("wait_cause") };
            out.add(row, (at(start - wait), at(start)), cause, "", true);
        }
        out.add(row, (at(start), at(end)), text("opcode"), place, false);
        if let (Some(from), Some(to)) = (number(r, "dma_trigger_start_ts"), number(r, "dma_trigger_end_ts")) {
            let queue = out.row(text("timeline_track"));
            out.add(queue, (at(from), at(to)), text("opcode"), place, false);
        }
    }
    out.sorted()
}

/// The activity of a DMA queue in a hardware profile.
const TRANSFER: &str = "transfer";

/// The program in a hardware profile: its engines, and each DMA queue while data packets are in flight.
fn of_hardware(profile: &HardwareProfile) -> Tracks {
    let several = profile.busy_cores().count() > 1;
    let mut out = Maker::default();
    for (n, core) in profile.busy_cores() {
        let name = |row: &str| if several { format!("{row}/{n}") } else { row.to_owned() };
        let mapped = Mapped::of(core);
        for (op, parts) in mapped.ops.iter().enumerate() {
            let Some(opcode) = hardware::instruction(core, &mapped, op) else { continue };
            let row = out.row(&name(mapped.stream[op].queue.name()));
            let (start, end) = hardware::span(core, &mapped, op);
            let wait = parts.parts.first().map_or(0, |p| core.instructions[p.instruction].wait);
            out.add(row, (start - wait, start), "event wait", "", true);
            out.add(row, (start, end), &opcode, "", false);
        }
        let mut moving: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        for p in core.packets.iter().filter(|p| p.is_data()) {
            let row = out.row(&name(core.queues.get(&p.queue).map_or("dma", String::as_str)));
            match moving.get_mut(&p.queue) {
                Some(span) if p.start <= span.1 => span.1 = span.1.max(p.end),
                span => {
                    let before = span.map(|s| std::mem::replace(s, (p.start, p.end)));
                    match before {
                        Some(before) => out.add(row, before, TRANSFER, "", false),
                        None => drop(moving.insert(p.queue, (p.start, p.end))),
                    }
                }
            }
        }
        for (queue, span) in moving {
            let row = out.row(&name(core.queues.get(&queue).map_or("dma", String::as_str)));
            out.add(row, span, TRANSFER, "", false);
        }
    }
    out.sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(tracks: &Tracks, row: &str) -> Vec<(i64, i64, String, String, bool)> {
        let row = tracks.rows.iter().find(|r| r.name == row).expect("a row");
        let text = |list: &[String], n: u32| list[n as usize].clone();
        let of = |s: &Busy| (s.start, s.end, text(&tracks.names, s.name), text(&tracks.places, s.place), s.stalled);
        row.spans.iter().map(of).collect()
    }

    #[test]
    fn intervals_of_a_report_become_tracks() {
        let json = serde_json::json!({
            "lines": [
                {"file": "a/k.py", "line": 3, "instruction": "dma_copy"},
                {"file": "a/k.py", "line": 4, "instruction": "activation"},
                {"file": "b.py", "line": 4, "instruction": "memset"},
            ],
            "intervals": [{"core": 0, "row": "scalar", "intervals": [
                [0.0, 1.0, "start-up", null, null], [1.0, 1.5, "busy", 0, 3], [1.5, 1.75, "semaphore from vector (RAW)", 1, 4], [1.75, 2.0, "busy", 2, 4],
            ]}],
        });
        let got = spans(&of_run(&json), "scalar");
        let of = |a, b, name: &str, place: &str, stalled| (a, b, name.to_owned(), place.to_owned(), stalled);
        let expected = [
            of(0, 1000, "start-up", "", true),
            of(1000, 1500, "dma_copy", "k.py:3", false),
            of(1500, 1750, "semaphore from vector (RAW)", "", true),
            // Both files have a line 4.
            of(1750, 2000, "activation, memset", "line 4", false),
        ];
        assert_eq!(got, expected);
        assert_eq!(of_run(&serde_json::json!({"latency_us": 3.0})), Tracks::default());
    }

    #[test]
    fn rows_of_a_hardware_profile_begin_with_the_first_instruction() {
        let text = "start_ts,end_ts,engine,opcode,nki_source_location,evt_wait_time_ns,dma_trigger_start_ts,dma_trigger_end_ts,timeline_track\n\
                    5000,5100,Vector,TENSOR_TENSOR,/x/k.py:7,0,,,vector\n5400,5450,Act,ACTIVATE,k.py:8,200,,,act\n5460,5470,SP,DMA,k.py:9,,5480,5600,q0\n";
        let tracks = of_rows(&table::parse(text).expect("a table"), false);
        assert_eq!(spans(&tracks, "vector"), [(0, 100, "TENSOR_TENSOR".into(), "k.py:7".into(), false)]);
        assert_eq!(spans(&tracks, "act")[0], (200, 400, "event wait".into(), String::new(), true));
        assert_eq!(spans(&tracks, "q0"), [(480, 600, "DMA".into(), "k.py:9".into(), false)]);
    }
}
