//! The report on a run's time: JSON, CSV, page, and the commands that compare, sweep and rank
//! parameters.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Session {
    folder: tempfile::TempDir,
}

impl Session {
    fn new() -> Self {
        Session { folder: tempfile::tempdir().expect("temporary directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("written")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    /// Runs the command and returns standard output; fails if the exit code is not `code`.
    #[track_caller]
    fn run(&self, code: i32, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nki-sim"));
        command.args(args).current_dir(self.folder.path());
        for name in ["NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION", "NKI_PRECISE_FP", "NKI_SIM_LOG"] {
            command.env_remove(name);
        }
        let Output { status, stdout, stderr } = command.output().expect("runs");
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert_eq!(status.code(), Some(code), "{args:?}\n{stdout}\n{stderr}");
        format!("{stdout}{stderr}")
    }
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).to_string_lossy().into_owned()
}

#[track_caller]
fn has(text: &str, what: &str) {
    assert!(text.contains(what), "`{what}` is not in\n{text}");
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("{v} is no number"))
}

#[test]
fn every_interval_has_a_cause_and_they_sum_to_the_latency() {
    let s = Session::new();
    let file = example("matmul_blocked.py");
    let args = ["run", &file, "--arg", "a_t=bfloat16[512,512]", "--arg", "b=bfloat16[512,1024]", "--no-numerics"];
    s.run(0, &[&args[..], &["--json", "r.json", "--csv", "r.csv"]].concat());
    let json = s.json("r.json");
    let latency = number(&json["latency_us"]);
    let rows = json["intervals"].as_array().expect("rows");
    assert!(rows.len() > 5);
    for row in rows {
        let mut at = 0.0;
        for span in row["intervals"].as_array().expect("intervals") {
            assert_eq!(number(&span[0]), at, "{}", row["row"]);
            at = number(&span[1]);
            assert!(span[2].as_str().is_some_and(|c| !c.is_empty()));
            assert!(span[2] != "busy" || span[3].is_u64() && span[4].is_u64());
        }
        assert_eq!(at, latency);
    }
    let path = json["critical_path"].as_array().expect("path");
    let on_path: f64 = path.iter().map(|p| number(&p["end_us"]) - number(&p["start_us"])).sum();
    let fixed = number(&path[0]["start_us"]) + latency - number(&path[path.len() - 1]["end_us"]);
    assert!((on_path + fixed - latency).abs() < 1e-6);
    assert!(path.iter().any(|p| p["iteration"].as_str().is_some_and(|i| i.contains("bm="))));

    // 512 x 512 x 1024 multiply-adds, and every byte of the operands at least once.
    assert_eq!(number(&json["summary"]["hardware_flops"]), 2.0 * 512.0 * 512.0 * 1024.0);
    assert_eq!(number(&json["traffic"]["minimum_read_bytes"]), 2.0 * (512.0 * 512.0 + 512.0 * 1024.0));
    assert_eq!(number(&json["traffic"]["minimum_write_bytes"]), 2.0 * 512.0 * 1024.0);
    assert!(number(&json["summary"]["mfu_estimated_percent"]) > 0.0);
    let lines: f64 = json["lines"].as_array().expect("lines").iter().map(|l| number(&l["critical_us"])).sum();
    assert!((lines - on_path).abs() < 1e-6);

    let csv = s.read("r.csv");
    let head = csv.lines().next().expect("a first line");
    for column in ["start_ts", "end_ts", "engine", "opcode", "nki_source_location", "evt_wait_time_ns", "wait_cause"] {
        assert!(head.split(',').any(|c| c == column), "{column}");
    }
    let instructions: f64 =
        json["engines"].as_object().expect("engines").values().map(|e| number(&e["instructions"])).sum();
    assert_eq!(csv.lines().count() as f64 - 1.0, instructions);
}

#[test]
fn the_verdict_names_lines_remedies_and_the_roofline() {
    let s = Session::new();
    let text = s.run(0, &["run", &example("softmax.py"), "--arg", "x=float32[256,512]", "--critical-path"]);
    has(&text, "Lines that cost most");
    has(&text, "softmax.py:");
    has(&text, "timed again with");
    has(&text, "Roofline: ");
    has(&text, "MBU");
    has(&text, "Critical path:");
    has(&text, "Confidence of the parameters");
}

/// A kernel that loads all weights at once, and one whose load has one reader.
const LOADS: &str = r#"import nki
import nki.isa as nisa
import nki.language as nl

HW = nisa.dge_mode.hwdge


# nki-sim: x_t=bfloat16[128,128] w=bfloat16[128,16,512]
@nki.jit
def layer(x_t, w):
    out = nl.ndarray((128, 512), dtype=x_t.dtype, buffer=nl.shared_hbm)
    x_tile = nl.ndarray((128, 128), dtype=x_t.dtype, buffer=nl.sbuf)
    w_tile = nl.ndarray((128, 16, 512), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_tile, src=x_t, dge_mode=HW)
    nisa.dma_copy(dst=w_tile, src=w, dge_mode=HW)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for b in range(16):
        nisa.nc_matmul(dst=total, stationary=x_tile, moving=w_tile[:, b, :], accumulate=b > 0)
    tile = nl.ndarray((128, 512), dtype=x_t.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=total)
    nisa.dma_copy(dst=out, src=tile, dge_mode=HW)
    return out


# nki-sim: x=bfloat16[128,4096]
@nki.jit
def whole(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x, dge_mode=HW)
    nisa.activation(dst=tile, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=tile, dge_mode=HW)
    return out
"#;

/// Implementing the reported remedy for the weights of a layer by hand has the reported gain.
#[test]
fn a_load_in_parts_is_offered_where_it_helps_and_gains_what_is_said() {
    let s = Session::new();
    std::fs::write(s.path("k.py"), LOADS).expect("writable");
    let printed = s.run(0, &["run", "k.py", "--kernel", "layer", "--json", "layer.json", "--html", "layer.html"]);
    let report = s.json("layer.json");
    let best = &report["remedies"][0];
    assert_eq!(best["kind"], "split-dma", "{:#}", report["remedies"]);
    assert_eq!(best["lines"], serde_json::json!(["k.py:15"]));
    let what = best["what"].as_str().expect("text");
    let loops = |parts: u32| {
        let step = 16 / parts;
        format!(
            "for i in range({parts}): nisa.dma_copy(dst=w_tile[:, nl.ds({step} * i, {step})], src=w[:, nl.ds({step} * i, {step})])"
        )
    };
    let parts = [4, 8].into_iter().find(|n| what.contains(&loops(*n))).unwrap_or_else(|| panic!("{what}"));
    has(&printed, what);
    has(&std::fs::read_to_string(s.path("layer.html")).expect("written"), "split DMA");
    // The kernel with these lines.
    let call = "    nisa.dma_copy(dst=w_tile, src=w, dge_mode=HW)\n";
    let by_hand = loops(parts).replace("): nisa", "):\n        nisa");
    let by_hand = format!("    {}, dge_mode=HW)\n", by_hand.strip_suffix(')').expect("a call"));
    assert!(LOADS.contains(call));
    std::fs::write(s.path("hand.py"), LOADS.replace(call, &by_hand)).expect("writable");
    s.run(0, &["run", "hand.py", "--kernel", "layer", "--json", "hand.json"]);
    let (offered, got) = (number(&best["latency_us"]), number(&s.json("hand.json")["latency_us"]));
    assert!((offered - got).abs() < 1e-3, "{offered} is offered, {got} comes of it");
    // Splitting a load does not help if one instruction needs all its parts.
    let printed = s.run(0, &["run", "k.py", "--kernel", "whole", "--json", "whole.json"]);
    for remedy in s.json("whole.json")["remedies"].as_array().expect("a list") {
        assert!(remedy["kind"] != "split-dma" || number(&remedy["gain_us"]) <= 0.0, "{remedy:#}");
    }
    assert!(!printed.contains("split DMA"), "{printed}");
}

/// The low and the high end in the report's line about hardware, which must be there.
fn error_bar(text: &str) -> (f64, f64) {
    let line = text.lines().find(|l| l.starts_with("On hardware: ")).unwrap_or_else(|| panic!("no error bar:\n{text}"));
    let words: Vec<&str> = line.split(' ').collect();
    let to = words.iter().position(|w| *w == "to").expect("an interval");
    (words[to - 1].parse().expect("a number"), words[to + 1].parse().expect("a number"))
}

#[test]
fn a_latency_has_an_error_bar() {
    let s = Session::new();
    let run = ["run", &*example("softmax.py"), "--arg", "x=float32[256,512]", "--no-numerics", "--json", "r.json"];
    let text = s.run(0, &[&run[..], &["--html", "r.html"]].concat());
    let json = s.json("r.json");
    let (latency, bar) = (number(&json["latency_us"]), &json["latency_error"]);
    let (low, high) = (number(&bar["low_us"]), number(&bar["high_us"]));
    assert!(low < latency && latency < high);
    assert!((low * high / latency / latency - 1.0).abs() < 1e-6, "{bar}");
    assert!(bar["rows"].is_u64() && (bar["group"].is_string() || bar["group"].is_null()));
    assert_eq!((&bar["features"]["target"], &bar["features"]["indirect_dma"]), (&"trn2".into(), &false.into()));
    let (shown_low, shown_high) = error_bar(&text);
    // Rounded outwards from the prediction, to tenths.
    assert!(shown_low <= low && low < shown_low + 0.1 && shown_high - 0.1 < high && high <= shown_high, "{text}");
    has(&s.read("r.html"), "\"error\":\"On hardware: ");

    // `--measure` chooses between two latencies that have both been compared with hardware; any
    // other change makes a different model.
    has(&s.run(0, &[&run[..], &["--measure", "device"]].concat()), "On hardware: ");
    std::fs::write(s.path("p.toml"), "tensor.clock_ghz = 2.8\n").expect("writable");
    for change in [["--schedule", "program"], ["--set", "tensor.clock_ghz=2.8"], ["--params", "p.toml"]] {
        let text = s.run(0, &[&run[..], &change, &["--html", "r.html"]].concat());
        assert!(!text.contains("On hardware"), "{text}");
        assert_eq!(s.json("r.json").get("latency_error"), None);
        has(&s.read("r.html"), "\"error\":\"\"");
    }
}

#[test]
fn ranks_have_the_error_bar_of_the_slowest() {
    let s = Session::new();
    let file = example("collectives.py");
    let args = ["--ranks", "2", "--arg", "ranks=2", "--arg", "x=float32[64,128]", "--json", "r.json"];
    let text = s.run(0, &[&["run", &*file, "--kernel", "ring_gather"][..], &args].concat());
    let json = s.json("r.json");
    let bar = &json["latency_error"];
    assert_eq!(bar["features"]["latency_us"], json["latency_us"]);
    assert_eq!(bar["features"]["ranks"], 2);
    has(&text, "collectives of few ranks took up to ten times as long");
    // The time of a collective is not that of the engine that starts it.
    let parts = json["ranks"][0]["critical_resources"].as_array().expect("resources");
    let time = |name: &str| parts.iter().find(|part| part["name"] == name).map_or(0.0, |part| number(&part["us"]));
    assert!(time("collectives") > 2.0 && time("sync engine") < 0.5, "{parts:?}");
    assert_eq!(text.matches("On hardware: ").count(), 1);
    let (low, high) = error_bar(&text);
    assert!(low <= number(&bar["low_us"]) && number(&bar["high_us"]) <= high);
}

#[test]
fn whatif_ranks_parameters() {
    let s = Session::new();
    let file = example("softmax.py");
    let text = s.run(0, &["whatif", &file, "--arg", "x=float32[256,512]", "--top", "5", "--json", "w.json"]);
    has(&text, "kernel.head_us");
    has(&text, "lower");
    let json = s.json("w.json");
    let effects: Vec<f64> =
        json["parameters"].as_array().expect("rows").iter().map(|p| number(&p["effect_percent"])).collect();
    assert!(effects.len() > 50 && effects.is_sorted_by(|a, b| a >= b));
    s.run(2, &["whatif", &file, "--arg", "x=float32[256,512]", "--step", "0"]);
}

#[test]
fn two_runs_are_compared_and_a_limit_fails() {
    let s = Session::new();
    let file = example("softmax.py");
    let run = ["run", &file, "--arg", "x=float32[256,512]", "--no-numerics"];
    s.run(0, &[&run[..], &["--json", "a.json", "--csv", "a.csv"]].concat());
    s.run(0, &[&run[..], &["--set", "dma.bytes_per_ns=5", "--json", "b.json", "--csv", "b.csv"]].concat());
    has(&s.run(0, &["compare", "a.json", "a.json", "--fail-if", "latency > +0%"]), "no change");
    assert_eq!(s.json("b.json")["parameters"], serde_json::json!({ "dma.bytes_per_ns": 5.0 }));
    assert!(s.json("a.json").get("parameters").is_none());
    has(
        &s.run(0, &["compare", "a.json", "b.json"]),
        "the timing parameter dma.bytes_per_ns differs: the default in `a.json`, 5.0 in `b.json`",
    );
    let text =
        s.run(0, &[&run[..], &["--set", "dma.bytes_per_ns=5", "--measure", "device", "--html", "b.html"]].concat());
    has(
        &text,
        "Changed timing parameters: dma.bytes_per_ns = 5.0 (default 27.2), kernel.measure = \"device\" (default \"profile\").",
    );
    has(&s.read("b.html"), "trn2 with dma.bytes_per_ns = 5.0");
    let gate = ["--fail-if", "latency > +2%", "--fail-if", "dma.bytes > +0%"];
    let text = s.run(1, &[&["compare", "a.json", "b.json"][..], &gate].concat());
    has(&text, "FAILED: latency > +2% (");
    has(&text, "passed: dma.bytes > +0% does not hold");
    has(&text, "by line, us of critical path");
    has(&s.run(1, &[&["compare", "a.json", "b.json", "--format", "github"][..], &gate].concat()), "::error ");
    s.run(1, &[&["compare", "a.json", "b.json", "--format", "junit", "-o", "j.xml"][..], &gate].concat());
    has(&s.read("j.xml"), "failures=\"1\"");
    has(&s.run(0, &["compare", "a.csv", "b.csv"]), "first to last instruction");
    has(&s.run(0, &["compare", "a.json", "b.csv"]), "engine");
    let negative =
        std::fs::read_to_string(s.path("a.json")).unwrap().replacen("\"latency_us\": ", "\"latency_us\": -", 1);
    std::fs::write(s.path("n.json"), negative).unwrap();
    has(&s.run(2, &["compare", "a.json", "n.json"]), "no number of a run is negative");
    has(&s.run(2, &["compare", "a.json", "b.json", "--fail-if", "latency"]), "METRIC");
    has(&s.run(2, &["compare", "a.json", "none.json"]), "cannot read");
}

#[test]
fn a_sweep_ranks_resumes_and_keeps_failures() {
    let s = Session::new();
    let file = example("matmul_blocked.py");
    let base = ["sweep", &file, "--arg", "a_t=bfloat16[512,512]", "--arg", "b=bfloat16[512,1024]"];
    let grid = [
        "--grid",
        "block_m=1,2,3",
        "--grid",
        "block_n=1,2",
        "--state",
        "s.jsonl",
        "--json",
        "r.json",
        "--csv",
        "r.csv",
    ];
    let text = s.run(0, &[&base[..], &grid].concat());
    has(&text, "1.000x");
    has(&text, "2 points failed:");
    has(&text, "is not made of blocks");
    let rows = s.json("r.json")["rows"].as_array().expect("rows").clone();
    assert_eq!(rows.len(), 6);
    let latencies: Vec<f64> = rows.iter().filter_map(|r| r["latency_us"].as_f64()).collect();
    assert!(latencies.len() == 4 && latencies.is_sorted());
    assert_eq!(s.read("r.csv").lines().count(), 7);
    let before = s.json("r.json");
    has(&s.run(0, &[&base[..], &grid].concat()), "6 finished points taken from the state file");
    assert_eq!(s.json("r.json"), before);
    has(&s.run(2, &[&base[..], &["--grid", "speed=1"]].concat()), "neither a parameter of kernel");

    let text = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\nWIDTH = 64\n\n@nki.jit\ndef k(x):\n    \
                out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    for i in range(x.shape[1] // WIDTH):\n        \
                t = nl.ndarray((128, WIDTH), dtype=x.dtype, buffer=nl.sbuf)\n        \
                nisa.dma_copy(dst=t, src=x[:, nl.ds(i * WIDTH, WIDTH)])\n        \
                nisa.dma_copy(dst=out[:, nl.ds(i * WIDTH, WIDTH)], src=t)\n    return out\n";
    std::fs::write(s.path("k.py"), text).expect("writable");
    let text =
        s.run(0, &["sweep", "k.py", "--arg", "x=float32[128,512]", "--grid", "WIDTH=64,512", "--json", "c.json"]);
    has(&text, "WIDTH");
    let rows = s.json("c.json");
    assert_eq!(rows["rows"][0]["point"][0][1], "512");
    assert_eq!(number(&rows["rows"][0]["dma_transfers"]), 2.0);
    assert_eq!(number(&rows["rows"][1]["dma_transfers"]), 16.0);
}

#[test]
fn a_trace_is_compressed_if_its_name_says_so() {
    let s = Session::new();
    let run = ["run", &*example("softmax.py"), "--arg", "x=float32[256,512]", "--no-numerics"];
    s.run(0, &[&run[..], &["--trace", "t.perfetto-trace"]].concat());
    s.run(0, &[&run[..], &["--trace", "t.perfetto-trace.gz"]].concat());
    let read = |name: &str| std::fs::read(s.path(name)).expect("written");
    let (plain, packed) = (read("t.perfetto-trace"), read("t.perfetto-trace.gz"));
    // RFC 1952: the magic number, and the length of the contents at the end.
    assert_eq!(packed[..2], [0x1f, 0x8b]);
    assert_eq!(packed[packed.len() - 4..], (plain.len() as u32).to_le_bytes());
    assert!(packed.len() * 3 < plain.len(), "{} of {}", packed.len(), plain.len());
    // Field 1 of the trace.
    assert_eq!(plain[0], 0x0a);
    // Also with several ranks.
    let args = ["--ranks", "2", "--arg", "ranks=2", "--arg", "x=float32[64,128]", "--trace", "r.gz"];
    s.run(0, &[&["run", &*example("collectives.py"), "--kernel", "ring_gather"][..], &args].concat());
    assert_eq!(read("r.gz")[..2], [0x1f, 0x8b]);
}

#[test]
fn tables_of_a_run_are_compared_and_never_mixed_with_others() {
    let s = Session::new();
    let run = |code, rows: &str, more: &[&str]| {
        let argument = format!("x=float32[{rows},512]");
        let kernel = example("softmax.py");
        let words = [&["run", &kernel, "--arg", &argument][..], more].concat();
        s.run(code, &words)
    };
    run(0, "256", &["--parquet", "before", "--json", "before.json"]);
    run(0, "512", &["--parquet", "after"]);
    run(0, "512", &["--parquet", "again"]);
    let files = |folder: &str| {
        let mut all: Vec<_> = std::fs::read_dir(s.path(folder))
            .expect("written")
            .map(|f| f.expect("readable").path())
            .map(|path| (path.file_name().map(|n| n.to_owned()), std::fs::read(&path).expect("readable")))
            .collect();
        all.sort();
        all
    };
    assert_eq!(files("after").len(), 28);
    assert!(files("after") == files("again"), "two calls write different bytes");
    let difference: Value =
        serde_json::from_str(&s.run(0, &["compare", "before", "after", "--format", "json"])).expect("JSON");
    let metric = |name: &str| {
        let metrics = difference["metrics"].as_array().expect("a list");
        metrics.iter().find(|m| m["name"] == name).unwrap_or_else(|| panic!("{name} is not compared")).clone()
    };
    let latency = number(&s.json("before.json")["latency_us"]);
    assert!((number(&metric("latency_us")["before"]) - latency).abs() < 1e-6 * latency);
    assert_eq!(number(&metric("hbm_read_bytes")["after"]), 2.0 * number(&metric("hbm_read_bytes")["before"]));
    has(&s.run(1, &["compare", "before", "after", "--fail-if", "latency > +2%"]), "latency");
    // One table is sufficient, split into parts as by Neuron Explorer.
    std::fs::create_dir(s.path("part")).expect("writable");
    std::fs::copy(s.path("after/Instruction.parquet"), s.path("part/Instruction_1.parquet")).expect("copied");
    has(&s.run(0, &["compare", "before/Instruction.parquet", "part"]), "softmax.py:");
    has(&s.run(2, &["compare", "before", "."]), "neither Instruction.parquet nor Summary.parquet");
    // A foreign profile is not overwritten.
    std::fs::write(s.path("after/HloInstruction.parquet"), "foreign").expect("writable");
    has(&run(2, "128", &["--parquet", "after"]), "holds HloInstruction.parquet");
    has(&run(2, "128", &["--parquet", "part"]), "holds Instruction_1.parquet");
    std::fs::remove_file(s.path("again/Metadata.parquet")).expect("removed");
    has(&run(2, "128", &["--parquet", "again"]), "not simulated");
    run(0, "128", &["--parquet", "before"]);
}
