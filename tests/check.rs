//! `nki-sim check` for other programs: several kernels in one report, calls that are wrong.

mod command;

use command::{ADD_ONE, Ran, Session};
use serde_json::Value;

/// Two kernels with run lines, the second of which is wrong, and one without.
fn three_kernels() -> String {
    let body = ADD_ONE.split_once("@nki.jit").expect("a kernel").1;
    let kernel = |name: &str| format!("@nki.jit{}", body.replace("add_one", name));
    let good = ADD_ONE.replace("@nki.jit", "# nki-sim: x=float32[64,32]\n@nki.jit");
    let wrong = kernel("wrong").replace("src=x)", "src=x[0:1, :])");
    format!("{good}\n# nki-sim: x=float32[64,32]\n{wrong}\n{}", kernel("other"))
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{e}: {}", ran.stdout))
}

#[test]
fn every_kernel_with_a_run_line_is_checked() {
    let s = Session::new();
    s.write("k.py", three_kernels());
    let check = |more: &[&str]| s.run(&[&["check", "k.py"], more].concat());
    let text = check(&[]).exits(1).says("add_one: no errors").says("shape-mismatch");
    assert!(text.stderr.contains("k.py: not checked, without a run line: other\n"), "{}", text.stderr);

    let listed = json(&check(&["--format", "json", "--json", "c.json"]).exits(1));
    let names: Vec<&Value> = listed.as_array().expect("a list").iter().map(|one| &one["kernel"]).collect();
    assert_eq!(names, ["add_one", "wrong"]);
    let file = std::fs::read(s.path("c.json")).expect("written");
    assert_eq!(serde_json::from_slice::<Value>(&file).expect("JSON"), listed);

    let log = json(&check(&["--format", "sarif"]).exits(1));
    let runs = log["runs"].as_array().expect("runs");
    let id = |run: &Value| run["automationDetails"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(runs.iter().map(id).collect::<Vec<_>>(), ["nki-sim check/k.py/add_one/", "nki-sim check/k.py/wrong/"]);
    assert!(runs[0]["results"] == Value::Array(Vec::new()) && runs[1]["results"][0]["ruleId"] == "shape-mismatch");

    let suites = check(&["--format", "junit"]).exits(1).stdout;
    assert_eq!(suites.matches("<testsuite ").count(), 2, "{suites}");
    assert!(suites.contains("<testsuites tests=\"2\" failures=\"1\">"), "{suites}");
    let github = check(&["--format", "github"]).exits(1).stdout;
    assert!(
        github.contains("::notice title=nki-sim check add_one::") && github.contains("::error file=k.py"),
        "{github}"
    );

    // A choice is a choice, and one kernel has the report that it always had.
    let one = json(&check(&["--kernel", "add_one", "--format", "json"]).exits(0));
    assert_eq!(one["kernel"], "add_one");
    s.write("k.py", three_kernels().replace("# nki-sim:", "#"));
    check(&[]).exits(2).says("has 3 kernels; choose one with --kernel");
}

#[test]
fn the_exit_code_is_the_highest_of_all_kernels() {
    let s = Session::new();
    // The wrong kernel now also lacks an argument in its run line.
    s.write("k.py", three_kernels().replacen("def wrong(x, ", "def wrong(x, scale, ", 1));
    let listed =
        json(&s.run(&["check", "k.py", "--format", "json"]).exits(2).says("kernel `wrong` needs argument `scale`"));
    assert_eq!((&listed[0]["kernel"], &listed[1]["kernel"]), (&"add_one".into(), &"wrong".into()));
    assert!(listed[1]["error"].as_str().is_some_and(|e| e.contains("needs argument `scale`")), "{listed}");
}

#[test]
fn a_call_that_is_wrong_has_a_document_too() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let check = |format: &str| s.run(&["check", "k.py", "--format", format]).exits(2).says("needs argument `x`");
    let log = json(&check("sarif"));
    let run = &log["runs"][0];
    assert_eq!(
        (&run["results"], &run["invocations"][0]["executionSuccessful"]),
        (&Value::Array(Vec::new()), &false.into())
    );
    let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
    assert!(notification["message"]["text"].as_str().is_some_and(|t| t.contains("needs argument `x`")), "{log}");
    assert!(json(&check("json"))["error"].is_string());
    assert!(check("github").stdout.starts_with("::error title=nki-sim check k.py::"));
    let suites = check("junit").stdout;
    assert!(suites.contains("<testsuites tests=\"1\" failures=\"0\" errors=\"1\">"), "{suites}");
    assert!(
        suites.contains("<testsuite name=\"nki-sim check k.py\"") && suites.contains("<error type=\"usage\""),
        "{suites}"
    );
}

#[test]
fn a_file_that_cannot_be_parsed_is_named_in_junit() {
    let s = Session::new();
    s.write("k.py", "def k(x:\n");
    let suites = s.run(&["check", "k.py", "--format", "junit"]).exits(1).stdout;
    assert!(
        suites.contains("<testsuite name=\"nki-sim check k.py\"") && suites.contains("classname=\"nki-sim.k.py\""),
        "{suites}"
    );
}

#[test]
fn a_malformed_run_line_overwrites_no_input() {
    let s = Session::new();
    let kernel = ADD_ONE.replace("@nki.jit", "# nki-sim: nonsense\n@nki.jit");
    s.write("k.py", &kernel);
    s.run(&["check", "k.py", "--json", "k.py"]).exits(2).says("would overwrite the kernel's file");
    assert_eq!(std::fs::read_to_string(s.path("k.py")).expect("there"), kernel);
}

#[test]
fn standard_output_has_one_document() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let check = |more: &[&str]| s.run(&[&["check", "k.py", "--arg", "x=float32[128,4]"], more].concat());
    for format in ["json", "sarif", "github", "junit"] {
        let ran = check(&["--format", format, "--json", "-"]).exits(2).says("both write to standard output");
        assert_eq!(ran.stdout, "");
    }
    let ran = check(&["--json", "-"]).exits(0);
    serde_json::from_str::<serde_json::Value>(&ran.stdout).expect("one document");
}

#[test]
fn iterations_of_several_names_are_numbered() {
    let s = Session::new();
    let body = "import nki, nki.isa as nisa, nki.language as nl\n@nki.jit\ndef k(x):\n    \
                out = nl.ndarray((64, 64), nl.float32, nl.shared_hbm)\n    t = nl.ndarray((64, 64), nl.float32, nl.sbuf)\n    \
                for i, n in enumerate((1, 2)):\n        nisa.tensor_scalar(t, t, nl.add, n)\n    nl.store(out, t)\n    return out\n";
    s.write("k.py", body);
    let ran = s.run(&["check", "k.py", "--arg", "x=float32[64,64]"]);
    assert!(
        ran.stderr.contains("in iteration 0") || ran.stdout.contains("in iteration 0"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}
