//! The page of `run --html` in a browser: its contents, interaction, and layout at two widths, in
//! light and dark mode.

mod browser;

use std::path::{Path, PathBuf};
use std::process::Command;

use browser::Browser;
use serde_json::Value;

const WIDE: (u32, u32) = (1440, 900);
const NARROW: (u32, u32) = (390, 844);

/// Kernels with findings and with many transfers in flight.
const KERNELS: &str = r#"# </script><script>document.title='broken'</script>
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def faulty(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    unwritten = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=unwritten, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def streamed(x, tiles):
    out = nl.ndarray((128 * tiles, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(tiles):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        for j in range(6):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1.5)
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128), :], src=tile)
    return out
"#;

/// A run of a kernel: the folder with its page, and the output of the command.
struct Run {
    folder: tempfile::TempDir,
    printed: String,
}

impl Run {
    #[track_caller]
    fn of(file: &Path, args: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("temporary directory");
        let out = Command::new(env!("CARGO_BIN_EXE_nki-sim"))
            .arg("run")
            .arg(file)
            .args(args)
            .args(["--html", "r.html"])
            .current_dir(folder.path())
            .output()
            .expect("runs");
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{args:?}\n{printed}\n{}", String::from_utf8_lossy(&out.stderr));
        Run { folder, printed }
    }

    fn example(name: &str, args: &[&str]) -> Run {
        Run::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name), args)
    }

    fn kernel(name: &str, args: &[&str]) -> Run {
        let folder = tempfile::tempdir().expect("temporary directory");
        let file = folder.path().join("k.py");
        std::fs::write(&file, KERNELS).expect("writable");
        Run::of(&file, &[&["--kernel", name][..], args].concat())
    }

    fn softmax() -> Run {
        Run::example("softmax.py", &["--arg", "x=float32[256,512]"])
    }

    fn attention() -> Run {
        let args = ["q_t=bfloat16[128,512]", "k_t=bfloat16[128,512]", "v=bfloat16[512,128]"]
            .map(|arg| ["--arg", arg])
            .concat();
        Run::example("flash_attention.py", &[&args[..], &["--no-numerics", "--json", "r.json"]].concat())
    }

    fn two_cores() -> Run {
        Run::example("two_cores.py", &["--kernel", "row_norms", "--lnc", "2", "--arg", "x=float32[128,1024]"])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn html(&self) -> String {
        std::fs::read_to_string(self.path("r.html")).expect("written")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path("r.json")).expect("written")).expect("JSON")
    }

    fn url(&self, hash: &str) -> String {
        format!("file://{}{hash}", self.path("r.html").display())
    }
}

#[track_caller]
fn has(text: &str, what: &str) {
    assert!(text.contains(what), "`{what}` is not in\n{text}");
}

/// Numbers that the page computes.
#[track_caller]
fn numbers(b: &mut Browser, expression: &str) -> Vec<f64> {
    let list = b.eval(expression);
    let list = list.as_array().unwrap_or_else(|| panic!("{expression} is {list}"));
    list.iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The position on the page of an object on a canvas; `code` returns its position on the canvas.
#[track_caller]
fn place(b: &mut Browser, canvas: &str, code: &str) -> (f64, f64) {
    let at = numbers(
        b,
        &format!(
            "(() => {{ const c = document.getElementById('{canvas}'); c.scrollIntoView({{ block: 'center' }}); \
             const r = c.getBoundingClientRect(), [x, y] = ({code})(); return [r.left + x, r.top + y]; }})()"
        ),
    );
    (at[0], at[1])
}

/// The middle of the longest event of the first engine that has events.
const LONGEST: &str = "() => { const band = bands.find((b) => b.kind === 'row' && data.rows[b.r].engine && lists[b.r].lanes.length); \
    const l = lists[band.r].lanes[0]; let m = 0; for (let i = 0; i < l.id.length; i++) if (l.end[i] - l.start[i] > l.end[m] - l.start[m]) m = i; \
    const f = frameOf('timeline'); return [f.left + ((l.start[m] + l.end[m]) / 2 - f.from) * f.k, band.y + band.lane / 2]; }";

#[test]
fn a_page_shows_the_run() {
    let run = Run::attention();
    let (html, json) = (run.html(), run.json());
    assert!(!html.contains("http://") && !html.contains("https://"), "the page names the network");
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    assert_eq!(b.errors(), Vec::<String>::new());
    assert_eq!(b.eval("document.title"), "flash_attention on trn2");
    assert_eq!(b.text("sentence"), json["verdict"].as_str().expect("verdict"));
    has(&b.text("error"), "On hardware: 90% within ");
    has(&b.text("error-ends"), "on hardware");
    // Times have a suitable unit: there are no thousands of microseconds.
    let latency = json["latency_us"].as_f64().expect("latency");
    let shown = b.text("latency");
    let value: f64 = shown.strip_suffix(" \u{b5}s").and_then(|x| x.parse().ok()).unwrap_or_else(|| panic!("{shown}"));
    assert!((value - latency).abs() < 0.06, "{shown}: {latency}");

    // A line in the address: its instructions are counted and its position in the source is marked.
    let lines = json["lines"].as_array().expect("lines");
    let line = lines[0]["line"].as_u64().expect("line");
    let count: u64 = lines.iter().filter(|l| l["line"] == line).filter_map(|l| l["count"].as_u64()).sum();
    b.open(&run.url(&format!("#line=0:{line}")), WIDE, false);
    assert_eq!((b.note("highlighted"), b.note("lit")), (count.to_string(), count.to_string()));
    assert_eq!(b.eval("document.querySelector('#source .on').dataset.line"), line.to_string());

    // An event: what it did, and what it waited for.
    let event = json["critical_path"][5]["event"].as_u64().expect("event");
    b.open(&run.url(&format!("#event={event}")), WIDE, false);
    assert_eq!(b.note("event"), event.to_string());
    let detail = b.text("detail");
    for term in ["operands", "waited", "released by", "critical path", "writes", "reads"] {
        has(&detail, term);
    }
    // A part of the time range shows fewer events than the whole.
    let whole: u64 = b.note("drawn").parse().expect("a number");
    b.open(&run.url("#view=14000-16000"), WIDE, false);
    assert!(b.note("drawn").parse::<u64>().expect("a number") < whole);
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn sums_on_the_page_are_those_of_the_report() {
    let run = Run::attention();
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    let json = run.json();
    // Per line: instructions, critical path, engine time, waits, bytes, operations.
    let mut expected: std::collections::BTreeMap<u64, [f64; 6]> = Default::default();
    for l in json["lines"].as_array().expect("lines") {
        let sums = expected.entry(l["line"].as_u64().expect("line")).or_default();
        let of = |name: &str| l[name].as_f64().expect("a number");
        let values = [of("count"), of("critical_us"), of("engine_us"), of("wait_us")];
        let more = [of("hbm_read_bytes") + of("hbm_write_bytes"), of("flops")];
        sums.iter_mut().zip(values.iter().chain(&more)).for_each(|(sum, x)| *sum += x);
    }
    let groups = b.eval(
        "byLine(sums).map((g) => [Number(g.key.split(':')[1]), g.count, g.critical / 1e3, g.engine / 1e3, g.wait / 1e3, g.read + g.write, g.flops])",
    );
    let groups = groups.as_array().expect("groups");
    assert_eq!(groups.len(), expected.len());
    for g in groups {
        let g: Vec<f64> = g.as_array().expect("numbers").iter().filter_map(Value::as_f64).collect();
        for (got, want) in g[1..].iter().zip(expected[&(g[0] as u64)]) {
            // Times on the page are whole nanoseconds.
            assert!((got - want).abs() <= 1e-3 * g[1].max(1.0), "line {}: {got} is not {want}", g[0]);
        }
    }
    // The totals of the parts add up to the total of the whole.
    let halves = "(() => { const sum = (t) => [...t.statements.count, ...t.statements.engine, ...t.statements.critical, ...t.statements.wait, \
                  ...t.rows.map((r) => r.active)]; const m = Math.round(data.elapsed / 3), a = sum(totals(0, m)), b = sum(totals(m, data.elapsed)), \
                  all = sum(totals(0, data.elapsed)); return all.map((x, i) => x - a[i] - b[i]); })()";
    assert!(numbers(&mut b, halves).iter().all(|d| d.abs() < 1e-6));
    // `busy` on the page is `active` in the terminal.
    b.eval("document.getElementById('tab-rows').click()");
    let table = b.text("table");
    let mut rows = 0;
    for line in run.printed.lines().skip(1).take_while(|l| !l.is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        if cells[1] == "0" {
            continue;
        }
        let row =
            table.lines().find(|l| l.starts_with(&format!("{}\t", cells[0]))).unwrap_or_else(|| panic!("{table}"));
        assert!(row.split('\t').any(|c| c == cells[3]), "{row}: {}", cells[3]);
        rows += 1;
    }
    assert!(rows >= 5, "{}", run.printed);
}

#[test]
fn a_reader_selects_searches_and_sorts() {
    let run = Run::attention();
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    // The tooltip of an event disappears when the view changes.
    let at = place(&mut b, "timeline", LONGEST);
    b.click(at);
    assert_ne!(b.note("event"), "-1");
    assert_eq!(b.eval("document.getElementById('tip').hidden"), false);
    b.eval("document.getElementById('zoom-in').click()");
    assert_eq!(b.eval("document.getElementById('tip').hidden"), true);
    // The critical path can be highlighted while something is selected.
    let all: u64 = b.note("lit").parse().expect("a number");
    b.eval("document.getElementById('only-critical').click()");
    let critical: u64 = b.note("lit").parse().expect("a number");
    assert!(0 < critical && critical < all, "{critical} of {all}");
    b.eval("document.getElementById('only-critical').click(); fit(); select({})");

    // Dragging selects a range, to which the tables are then restricted.
    let (x, y) = place(&mut b, "timeline", "() => [nameWidth() + 200, 40]");
    b.drag((x, y), (x + 150.0, y));
    let ends: Vec<f64> = b.note("range").split('-').map(|t| t.parse().expect("a number")).collect();
    let width = numbers(&mut b, "[150 / frameOf('timeline').k]")[0];
    assert!((ends[1] - ends[0] - width).abs() <= width / 50.0, "{ends:?} {width}");
    has(&b.text("detail"), "instructions");
    assert!(!b.text("scope").contains("whole"), "{}", b.text("scope"));
    let count = numbers(
        &mut b,
        "[tables.lines.table.rows.reduce((n, g) => n + g.count, 0), E.start.filter((t) => t >= sums.from && t < sums.to).length]",
    );
    assert!(count[0] > 0.0 && count[0] == count[1], "{count:?}");
    // Digits beyond a nanosecond survive in the address.
    let hash = b.eval("location.hash");
    b.open(&run.url(hash.as_str().expect("text")), WIDE, false);
    assert_eq!(b.note("range").split('-').count(), 2);
    b.eval("selectRange(null)");
    has(&b.text("scope"), "whole");

    let line = format!("flash_attention.py:{}", run.json()["lines"][0]["line"]);
    // Search by instruction, line and tensor.
    for (query, kind, event) in
        [("transpose", "instruction", true), (&*line, "line", true), ("q_tile", "tensor", false)]
    {
        b.eval("document.getElementById('search').value = ''; document.getElementById('search').focus()");
        b.type_text(query);
        b.eval("new Promise((done) => setTimeout(done, 150))");
        let results = b.text("results");
        assert!(results.lines().any(|l| l == kind), "{query}: {results}");
        b.eval(&format!("chosen = results.findIndex((r) => r.kind === '{kind}'); markChosen()"));
        b.press("Enter");
        let lit: u64 = b.note("lit").parse().expect("a number");
        assert!(0 < lit && lit < all, "{query}: {lit}");
        if !event {
            assert_ne!(b.note("tensor"), "-1");
            let detail = b.text("detail");
            for term in ["lifetime", "writers (", "readers ("] {
                has(&detail, term);
            }
        }
    }
    b.eval("select({ found: null })");

    // Tables can be sorted by any column and show the selected columns.
    b.eval("document.getElementById('tab-lines').click()");
    let sort = |title: &str| {
        format!(
            "[...document.querySelectorAll('#table th button')].find((x) => x.innerText.startsWith('{title}')).click()"
        )
    };
    let counts = "[...tables.lines.table.order].map((i) => tables.lines.table.rows[i].count)";
    b.eval(&sort("count"));
    assert!(numbers(&mut b, counts).is_sorted_by(|x, y| x >= y));
    b.eval(&sort("count"));
    assert!(numbers(&mut b, counts).is_sorted());
    assert!(!b.text("table").contains("waits: semaphore"));
    b.eval("document.querySelector('.chooser input[name=wait-semaphore]').click()");
    has(&b.text("table"), "waits: semaphore");
    // The table contains every event, although few of them are DOM elements.
    b.eval("document.getElementById('tab-events').click()");
    assert_eq!(numbers(&mut b, "[tables.events.table.rows.length]"), [all as f64]);
    assert!(numbers(&mut b, "[document.querySelectorAll('#table tr').length]")[0] < 100.0);

    // A click on a tensor in the memory view shows its lifetime.
    let tensor = "() => { const m = memories[0]; let best = m.tensors[0]; for (const t of m.tensors) if (T.end[t] - T.start[t] > T.end[best] - T.start[best]) best = t; \
        const f = frameOf('memory'); return [f.left + ((T.start[best] + T.end[best]) / 2 - f.from) * f.k, MEMORY - (T.byte[best] + T.bytes[best] / 2) / m.full * MEMORY]; }";
    let at = place(&mut b, "memory", tensor);
    b.click(at);
    assert_ne!(b.note("tensor"), "-1");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn transfers_do_not_cover_each_other() {
    let run = Run::attention();
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    let covered =
        "lists.flatMap((row) => row.lanes.flatMap((l) => [...l.start].filter((t, i) => i > 0 && t < l.end[i - 1])))";
    assert_eq!(numbers(&mut b, covered), Vec::<f64>::new());
    let queue = numbers(
        &mut b,
        "[Math.max(...lists.filter((l, r) => !data.rows[r].engine).map((l) => l.lanes.length)), X.event.length]",
    );
    assert!(queue[0] > 3.0, "this kernel has more transfers under way: {queue:?}");
    let drawn = numbers(
        &mut b,
        "[lists.flatMap((l, r) => data.rows[r].engine ? [] : l.lanes).reduce((n, l) => n + l.id.length, 0)]",
    );
    assert_eq!(drawn[0], queue[1]);
}

#[test]
fn several_cores_and_ranks() {
    let Some(mut b) = Browser::start() else { return };
    let run = Run::two_cores();
    b.open(&run.url(""), WIDE, false);
    assert_eq!(b.eval("bands.filter((x) => x.kind === 'core').map((x) => x.core).join()"), "0,1");
    b.eval("document.getElementById('tab-rows').click()");
    has(&b.text("table"), "vector/0");
    has(&b.text("table"), "vector/1");

    let args = ["--kernel", "ring_gather", "--ranks", "2", "--arg", "ranks=2", "--arg", "x=float32[64,128]"];
    let run = Run::example("collectives.py", &args);
    b.open(&run.url(""), WIDE, false);
    assert_eq!((b.eval("document.title"), b.note("rank")), ("ring_gather on 2 ranks, trn2".into(), "0".into()));
    b.open(&run.url("#rank=1"), WIDE, false);
    assert_eq!(b.note("rank"), "1");
    // Selecting a rank reloads the page.
    b.eval("document.body.dataset.ready = ''; const s = document.getElementById('rank'); s.value = '0'; s.dispatchEvent(new Event('change'))");
    b.wait_until_ready();
    assert_eq!(b.note("rank"), "0");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn findings_come_first_and_source_is_text() {
    let run = Run::kernel("faulty", &["--arg", "x=float32[128,64]"]);
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    assert_eq!(b.eval("document.title"), "faulty on trn2");
    has(&b.text("source"), "</script><script>document.title");
    has(&b.text("findings"), "uninitialized-read");
    has(&b.text("found-title"), "warning");
    let order =
        numbers(&mut b, "['found', 'time'].map((id) => document.getElementById(id).getBoundingClientRect().top)");
    assert!(order[0] < order[1]);
    let run = Run::softmax();
    b.open(&run.url(""), WIDE, false);
    assert_eq!(b.eval("document.getElementById('found').hidden"), true);
}

#[test]
fn nothing_overlaps_or_overflows() {
    let layout = include_str!("browser/layout.js");
    let Some(mut b) = Browser::start() else { return };
    let runs =
        [Run::softmax(), Run::attention(), Run::two_cores(), Run::kernel("faulty", &["--arg", "x=float32[128,64]"])];
    for (n, run) in runs.iter().enumerate() {
        for size in [WIDE, NARROW] {
            for dark in [false, true] {
                for hash in ["", "#event=2", "#range=14000-16000&tensor=1"] {
                    b.open(&run.url(hash), size, dark);
                    for tab in ["lines", "events", "causes"] {
                        b.eval(&format!("document.getElementById('tab-{tab}').click()"));
                        let faults = b.eval(layout);
                        assert_eq!(faults, Value::Array(Vec::new()), "run {n}{hash}, {tab}, {size:?}, dark: {dark}");
                    }
                }
            }
        }
    }
    assert_eq!(b.errors(), Vec::<String>::new());
    // The layout check detects an injected fault.
    b.eval("document.getElementById('sentence').style.cssText = 'position:absolute;top:12px;left:14px;width:700px;color:#777'");
    let faults = b.eval(layout).to_string();
    for fault in ["overlaps", "px wide in a window", "contrast"] {
        has(&faults, fault);
    }
}

#[test]
fn two_runs_share_an_axis() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let command = |args: &[&str]| {
        let out =
            Command::new(env!("CARGO_BIN_EXE_nki-sim")).args(args).current_dir(folder.path()).output().expect("runs");
        assert!(out.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&out.stderr));
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/softmax.py");
    let run = ["run", &*file.to_string_lossy(), "--arg", "x=float32[256,512]", "--no-numerics"];
    command(&[&run[..], &["--json", "a.json", "--csv", "a.csv", "--parquet", "a"]].concat());
    command(
        &[&run[..], &["--set", "dma.bytes_per_ns=5", "--json", "b.json", "--csv", "b.csv", "--parquet", "b"]].concat(),
    );
    command(&["compare", "a.json", "b.json", "--html", "json.html"]);
    command(&["compare", "a.csv", "b.csv", "--html", "csv.html"]);
    command(&["compare", "a", "b", "--html", "parquet.html"]);
    command(&["compare", "a.json", "a.json", "--html", "same.html"]);
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    assert!(!page("json.html").contains("http://") && !page("json.html").contains("https://"));
    let Some(mut b) = Browser::start() else { return };
    let url = |name: &str| format!("file://{}", folder.path().join(name).display());
    // Neuron Explorer's tables have no causes.
    let (all, tables) = (["lines", "causes", "engines", "metrics"], ["lines", "engines", "metrics"]);
    for (name, tabs) in [("json.html", &all[..]), ("csv.html", &all[..]), ("parquet.html", &tables[..])] {
        for size in [WIDE, NARROW] {
            for dark in [false, true] {
                b.open(&url(name), size, dark);
                for tab in tabs {
                    b.eval(&format!("document.getElementById('tab-{tab}').click()"));
                    let faults = b.eval(include_str!("browser/layout.js"));
                    assert_eq!(faults, Value::Array(Vec::new()), "{name}, {tab}, {size:?}, dark: {dark}");
                }
            }
        }
        // The engines of both runs have the same number of instructions. Consecutive transfers form
        // one span in the JSON.
        let spans = "runs.map((run) => [...run].filter(([name]) => !name.startsWith('dma')).map(([name, row]) => [name, row.lanes.reduce((n, l) => n + l.start.length, 0)].join()).sort().join(';'))";
        let both = b.eval(spans);
        assert_eq!(both[0], both[1]);
        has(both[0].as_str().expect("text"), "vector,");
    }
    b.open(&url("json.html"), WIDE, false);
    has(&b.text("verdict"), "slower");
    let sums = numbers(
        &mut b,
        "[diff.difference.lines.reduce((n, l) => n + l.after - l.before, 0), (diff.sides[1].latency - diff.sides[0].latency) / 1e3]",
    );
    assert!(sums[0] > 0.0 && (sums[0] - sums[1]).abs() < 0.01, "{sums:?}");
    // A line selected in the table is highlighted in both runs.
    b.eval("document.querySelector('#table tr.pick').click()");
    assert_ne!(b.note("chosen"), "");
    let lit = numbers(
        &mut b,
        "runs.map((run) => [...run].filter(([name]) => !name.startsWith('dma')).flatMap(([, row]) => row.lanes).reduce((n, l) => n + l.lit[l.start.length], 0))",
    );
    assert!(lit[0] > 0.0 && lit[0] == lit[1], "{lit:?}");
    b.open(&url("same.html"), WIDE, false);
    has(&b.text("verdict"), "No change");
    assert_eq!(b.errors(), Vec::<String>::new());
}

#[test]
fn a_long_run_makes_a_small_page_that_draws_quickly() {
    let tiles = 5000;
    let run =
        Run::kernel("streamed", &["--arg", "x=float32[128,64]", "--arg", &format!("tiles={tiles}"), "--no-numerics"]);
    let size = std::fs::metadata(run.path("r.html")).expect("written").len();
    // Two transfers and six instructions per tile.
    assert!(size < 400_000 + 8 * tiles * 12, "{size} bytes");
    let Some(mut b) = Browser::start() else { return };
    b.open(&run.url(""), WIDE, false);
    assert_eq!(b.note("events"), (8 * tiles).to_string());
    // The number of rectangles is limited by pixels, regardless of the number of events.
    let drawn: u64 = b.note("drawn").parse().expect("a number");
    assert!(drawn < 30_000, "{drawn}");
    has(&b.eval("document.getElementById('memory').dataset.drawn").to_string(), "cells");
    b.eval("setView(20000, 60000); drawNow()");
    has(&b.eval("document.getElementById('memory').dataset.drawn").to_string(), "boxes");
    assert_eq!(b.errors(), Vec::<String>::new());
}

/// Run manually: `cargo test --release --test page -- --ignored --nocapture`.
#[test]
#[ignore = "decides by wall time"]
fn two_hundred_thousand_events_open_in_two_seconds_and_pan_at_thirty_frames() {
    let run = Run::kernel("streamed", &["--arg", "x=float32[128,64]", "--arg", "tiles=25000", "--no-numerics"]);
    let Some(mut b) = Browser::start() else { return };
    let mut opened = Vec::new();
    for _ in 0..3 {
        let start = std::time::Instant::now();
        b.open(&run.url(""), WIDE, false);
        opened.push(start.elapsed().as_secs_f64());
    }
    assert_eq!(b.note("events"), "200000");
    let pan = "new Promise((done) => {
        const frames = 90, width = 20000, start = performance.now();
        let n = 0;
        const step = () => {
            setView(n * 1000, n * 1000 + width);
            drawNow();
            n += 1;
            if (n < frames) requestAnimationFrame(step);
            else done((frames * 1000) / (performance.now() - start));
        };
        requestAnimationFrame(step);
    })";
    let rates: Vec<f64> = [20_000, 2_000_000]
        .map(|width| b.eval(&pan.replace("width = 20000", &format!("width = {width}"))).as_f64().expect("a number"))
        .to_vec();
    println!("opened in {opened:.2?} s, {rates:.1?} frames a second");
    assert!(opened.iter().copied().fold(f64::INFINITY, f64::min) < 2.0, "{opened:?}");
    assert!(rates.iter().all(|&rate| rate > 30.0), "{rates:?}");
}
