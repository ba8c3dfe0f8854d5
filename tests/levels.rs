//! Levels of findings on the command line: flags, variables, the project file, and the defaults of
//! each mode.

mod command;

use command::{ADD_ONE, Ran, Session};
use serde_json::{Value, json};

/// Reads rows of a tile that were never written, for some arguments.
const HALF: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def half(x, rows=64):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    if rows > 0:
        nisa.dma_copy(dst=t[0:rows], src=x[0:rows])
    nisa.dma_copy(dst=out, src=t)
    return out
";

/// Never writes its output, for some arguments. With fewer rows it is faster.
const FORGETS: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def forgets(x, rows):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:rows], src=x[0:rows])
    if rows == 128:
        nisa.dma_copy(dst=out, src=t)
    return out
";

const X: [&str; 2] = ["--arg", "x=float32[128,64]"];

/// `run half.py` with additional words and variables.
fn half(s: &Session, more: &[&str], variables: &[(&str, &str)]) -> Ran {
    s.write("half.py", HALF);
    let mut command = s.command(&[&["run", "half.py"][..], &X, more].concat());
    command.envs(variables.iter().copied());
    Ran::from(command.output().expect("runs"))
}

fn read(s: &Session, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(s.path(name)).expect("written")).expect("JSON")
}

#[test]
fn run_warns_and_deny_fails() {
    let s = Session::new();
    half(&s, &[], &[]).exits(0).says("warning[uninitialized-output]").keeps_quiet_about("denied");
    half(&s, &["--deny", "uninitialized-output", "--json", "r.json"], &[])
        .exits(1)
        .says("error[uninitialized-output]")
        .says("note: denied by --deny uninitialized-output")
        .says("denied: uninitialized-output (1) by --deny uninitialized-output\n")
        // The report is written nevertheless.
        .says("us; DMA:");
    let report = read(&s, "r.json");
    assert_eq!(
        report["denied"],
        json!([{"id": "uninitialized-output", "count": 1, "by": "--deny uninitialized-output", "default": false}])
    );
    let found: Vec<[&Value; 2]> =
        report["findings"].as_array().expect("findings").iter().map(|f| [&f["class"], &f["severity"]]).collect();
    assert_eq!(found, [[&json!("suspicious"), &json!("warning")], [&json!("bug"), &json!("error")]]);
    assert_eq!(report["nki_sim_version"], json!(env!("CARGO_PKG_VERSION")));
    for list in ["bug", "warnings", "suspicious,bug", "strict,uninitialized-output"] {
        half(&s, &["--deny", list], &[]).exits(1).says("denied: uninitialized-output (1) by --deny");
    }
    half(&s, &["--deny", "strict", "--deny", "shared-memory-race"], &[]).exits(0).says("warning[");
    half(&s, &["--allow", "bug, suspicious", "--json", "r.json"], &[])
        .exits(0)
        .keeps_quiet_about("uninitialized-output");
    assert_eq!(read(&s, "r.json")["findings"], json!([]));
    // The slug takes precedence over the class.
    half(&s, &["--allow", "bug", "--deny", "uninitialized-output"], &[]).exits(1);
    half(&s, &["--deny", "bug,warnings", "--warn", "uninitialized-output", "--allow", "suspicious"], &[])
        .exits(0)
        .says("warning[");
}

#[test]
fn wrong_lists_are_wrong_calls() {
    let s = Session::new();
    half(&s, &["--deny", "uninitialised-read"], &[]).exits(2).says("did you mean `uninitialized-read`?");
    half(&s, &["--allow", "sbuf-overflow"], &[]).exits(2).says("--allow: `sbuf-overflow` is an error");
    half(&s, &["--deny", "sbuf-overflow"], &[]).exits(0);
    half(&s, &["--deny", "bug", "--allow", "bug"], &[]).exits(2).says("`bug` is given twice, also as --deny bug");
    half(&s, &["--deny", ""], &[]).exits(2);
    half(&s, &[], &[("NKI_SIM_WARN", "bugs")]).exits(2).says("environment variable NKI_SIM_WARN: `bugs`");
}

#[test]
fn sources_beat_each_other_in_order() {
    let s = Session::new();
    let file = |text: &str| s.write("nki-sim.toml", text);
    half(&s, &[], &[("NKI_SIM_DENY", " bug ,")]).exits(1).says("by NKI_SIM_DENY: bug");
    file("deny = [\"bug\"]\n");
    half(&s, &[], &[]).exits(1).says("nki-sim.toml: bug");
    half(&s, &[], &[("NKI_SIM_WARN", "bug")]).exits(0).says("warning[");
    half(&s, &["--deny", "bug"], &[("NKI_SIM_WARN", "bug")]).exits(1).says("by --deny bug");
    half(&s, &["--allow", "bug,suspicious"], &[("NKI_SIM_DENY", "bug")]).exits(0).keeps_quiet_about("warning[");
    half(&s, &[], &[("NKI_SIM_DENY", "")]).exits(1).says("nki-sim.toml");
    file("deny = [\"bug\"]\ncapacity = 3\n");
    half(&s, &[], &[]).exits(2).says("nki-sim.toml`: unknown key `capacity`");
    std::fs::remove_file(s.path("nki-sim.toml")).expect("removable");
    s.write("pyproject.toml", "[tool.nki-sim]\nallow = [\"bug\", \"suspicious\"]\n");
    half(&s, &[], &[]).exits(0).keeps_quiet_about("warning[");
    // The project file nearest to the kernel applies, not the one nearest to the caller.
    std::fs::create_dir(s.path("below")).expect("new");
    s.write("below/half.py", HALF);
    s.write("below/nki-sim.toml", "deny = [\"warnings\"]\n");
    s.run(&[&["run", "below/half.py"][..], &X].concat()).exits(1).says("nki-sim.toml: warnings");
}

#[test]
fn check_denies_bugs_by_default() {
    let s = Session::new();
    s.write("forgets.py", FORGETS);
    let check = |more: &[&str]| s.run(&[&["check", "forgets.py", "--arg", "rows=32"][..], &X, more].concat());
    check(&["--json", "c.json"])
        .exits(1)
        .says("error[output-not-written]")
        .says("denied by default in check")
        .says("--warn output-not-written reports it as a warning")
        .says("denied: output-not-written (1) by default in check");
    assert_eq!(read(&s, "c.json")["denied"][0]["default"], json!(true));
    check(&["--warn", "bug"]).exits(0).says("no errors (2 warnings");
    check(&["--allow", "output-not-written", "--json", "c.json"]).exits(0).says("no errors (1 warning,");
    assert_eq!(read(&s, "c.json")["denied"], json!([]));
    s.run(&[&["run", "forgets.py", "--arg", "rows=32"][..], &X].concat()).exits(0).says("warning[output-not-written]");
    s.run(&[&["whatif", "forgets.py", "--arg", "rows=32", "--deny", "bug"][..], &X].concat())
        .exits(1)
        .says("denied: output-not-written");
}

#[test]
fn strict_findings_have_a_level_too() {
    let s = Session::new();
    let code = ADD_ONE.replace("dtype=x.dtype, buffer=nl.sbuf", "dtype=x.dtype, buffer=\"sbuf\"");
    s.write("k.py", code);
    let run = |more: &[&str]| s.run(&[&["run", "k.py", "--arg", "x=float32[4,4]"], more].concat());
    run(&[]).exits(0).keeps_quiet_about("strict-language");
    run(&["--strict"]).exits(0).says("warning[strict-language]");
    run(&["--deny", "strict"]).exits(1).says("denied: strict-language (1) by --deny strict");
    run(&["--warn", "strict-language"]).exits(0).says("warning[strict-language]");
    run(&["--deny", "warnings"]).exits(0);
    run(&["--strict", "--deny", "warnings"]).exits(1).says("by --deny warnings");
    run(&["--strict", "--allow", "strict"]).exits(0).keeps_quiet_about("strict-language");
    let lower = ["lower", "k.py", "--arg", "x=float32[4,4]", "-o", "p.nkir"];
    s.run(&[&lower[..], &["--deny", "strict"]].concat()).exits(1).says("denied: strict-language");
    assert!(!s.path("p.nkir").exists());
    s.run(&[&lower[..], &["--strict"]].concat()).exits(0).says("warning[strict-language]");
}

#[test]
fn a_sweep_ranks_no_denied_point_and_marks_warnings() {
    let s = Session::new();
    s.write("forgets.py", FORGETS);
    let sweep = |more: &[&str]| s.run(&[&["sweep", "forgets.py", "--grid", "rows=32,64,128"][..], &X, more].concat());
    let ran = sweep(&["--json", "s.json", "--csv", "s.csv"])
        .exits(0)
        .says(
            "2 points denied, not ranked:\n  rows=32: output-not-written (1) by default in sweep: [output-not-written]",
        )
        .says("denied: output-not-written (2) by default in sweep");
    let first = ran.stdout.lines().nth(1).expect("a first point");
    assert!(first.trim_start().starts_with("128"), "{}", ran.stdout);
    let table = read(&s, "s.json");
    let rows = table["rows"].as_array().expect("rows");
    assert_eq!(rows[0]["findings"], json!([]));
    for row in &rows[1..] {
        assert_eq!((&row["latency_us"], &row["denied"][0]["id"]), (&Value::Null, &json!("output-not-written")));
        assert_eq!(row["findings"][0]["severity"], json!("error"));
        assert!(row["error"].as_str().expect("an error").starts_with("[output-not-written] "), "{row}");
    }
    let csv = std::fs::read_to_string(s.path("s.csv")).expect("written");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",error,warnings,denied,nki_sim_version"), "{csv}");
    assert!(lines[2].ends_with(&format!(",output-not-written,{}", env!("CARGO_PKG_VERSION"))), "{csv}");
    // As warnings they are marked, and rank behind the complete point.
    let ran = sweep(&["--warn", "bug", "--json", "s.json"])
        .exits(0)
        .says("2 points with warnings:\n  rows=32: [output-not-written]");
    assert!(ran.stdout.lines().next().is_some_and(|l| l.contains("warnings")), "{}", ran.stdout);
    let table = read(&s, "s.json");
    assert_eq!((&table["rows"][0]["findings"], &table["rows"][1]["incomplete"]), (&json!([]), &json!(true)));
    assert_eq!(table["rows"][1]["findings"][0]["severity"], json!("warning"));
    sweep(&["--allow", "bug"]).exits(0).keeps_quiet_about("output-not-written");
    // An explicit list of the user makes the call fail.
    sweep(&["--deny", "bug"]).exits(1).says("denied: output-not-written (2) by --deny bug");
    s.run(&[&["sweep", "forgets.py", "--grid", "rows=32"][..], &X].concat()).exits(1);
}

#[test]
fn a_state_file_is_of_the_levels_it_was_made_with() {
    let s = Session::new();
    s.write("forgets.py", FORGETS);
    let sweep = |more: &[&str]| {
        s.run(&[&["sweep", "forgets.py", "--grid", "rows=32,128", "--state", "state"][..], &X, more].concat()).exits(0)
    };
    sweep(&[]).says("1 point denied");
    sweep(&[]).says("2 finished points taken").says("1 point denied");
    sweep(&["--warn", "bug"]).says("1 point with warnings").keeps_quiet_about("taken from the state file");
}

#[test]
fn a_state_file_is_of_the_options_it_was_made_with() {
    let s = Session::new();
    s.write("forgets.py", FORGETS);
    let sweep = |more: &[&str]| {
        s.run(&[&["sweep", "forgets.py", "--grid", "rows=32,128", "--state", "state"][..], &X, more].concat()).exits(0)
    };
    sweep(&[]);
    for options in [
        &["--schedule", "program"][..],
        &["--measure", "device"],
        &["--set", "dma.bytes_per_ns=20"],
        &["--target", "trn3"],
        &["--disable-dge"],
        &["--as-written"],
        &["--beta1"],
        &["--lnc", "2"],
        &["--strict"],
        &["--max-steps", "100000"],
    ] {
        sweep(options).keeps_quiet_about("taken from the state file");
        sweep(options).says("2 finished points taken");
    }
    // These do not change a point.
    sweep(&["--jobs", "1", "--top", "1", "--csv", "points.csv"]).says("2 finished points taken");
}

#[test]
fn ranks_are_judged_like_one_kernel() {
    let s = Session::new();
    half(&s, &["--ranks", "2"], &[]).exits(0).says("warning[uninitialized-output]");
    half(&s, &["--ranks", "2", "--deny", "bug", "--json", "r.json"], &[])
        .exits(1)
        .says("denied: uninitialized-output (");
    assert_eq!(read(&s, "r.json")["denied"][0]["by"], json!("--deny bug"));
}

#[test]
fn compare_fails_for_denied_findings_of_the_later_run() {
    let s = Session::new();
    half(&s, &["--arg", "rows=128", "--json", "good.json", "--csv", "good.csv"], &[]).exits(0);
    half(&s, &["--json", "bad.json"], &[]).exits(0);
    let compare = |before: &str, after: &str, more: &[&str]| s.run(&[&["compare", before, after], more].concat());
    compare("good.json", "bad.json", &[])
        .exits(0)
        .says("findings of the run after: 2, 2 new")
        .says("new: warning[uninitialized-output]");
    compare("bad.json", "bad.json", &[]).exits(0).says("findings of the run after: 2, 0 new");
    compare("good.json", "bad.json", &["--deny", "bug"])
        .exits(1)
        .says("denied: uninitialized-output (1) by --deny bug");
    compare("good.json", "bad.json", &["--deny", "strict"]).exits(0);
    compare("bad.json", "good.json", &["--deny", "warnings"]).exits(0).keeps_quiet_about("uninitialized-output");
    compare("good.json", "bad.json", &["--deny", "bug", "--format", "github"])
        .exits(1)
        .says("title=nki-sim%3A new finding uninitialized-output::");
    let ran = compare("good.json", "bad.json", &["--deny", "bug", "--format", "json"]).exits(1);
    let result: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&result["denied"][0]["count"], &result["findings"][0]["new"]), (&json!(1), &json!(true)));
    compare("good.json", "bad.json", &["--deny", "bug", "--format", "junit"]).exits(1).says("failures=\"1\"");
    s.write("nki-sim.toml", "deny = [\"bug\"]\n");
    compare("good.json", "bad.json", &[]).exits(1).says("nki-sim.toml: bug");
    std::fs::remove_file(s.path("nki-sim.toml")).expect("removable");
    // Findings denied in the run stay denied, unless a list overrides this.
    half(&s, &["--deny", "bug", "--json", "bad.json"], &[]).exits(1);
    compare("good.json", "bad.json", &[]).exits(1).says("by the run itself");
    compare("good.json", "bad.json", &["--warn", "bug"]).exits(0).says("new: warning[");
    compare("good.json", "good.csv", &[]).exits(0);
    compare("good.json", "good.csv", &["--deny", "bug"]).exits(2).says("`good.csv` does not say what was found");
}
