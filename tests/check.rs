//! `nki-sim check` for other programs: several kernels in one report, invalid calls.

mod command;

use command::{ADD_ONE, Ran, Session};
use serde_json::Value;

/// Two kernels with run lines, of which the second is wrong, and one without.
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

    // With `--kernel`, only that kernel is checked, in the report of a single kernel.
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
fn a_syntax_error_is_the_only_error() {
    let s = Session::new();
    for text in ["x = (", "x = 1 +", "x = [1, 2", "print(1 + )"] {
        s.write("k.py", format!("import nki\n{text}\n"));
        let found = s.run(&["check", "k.py"]).exits(1).stderr;
        let errors: Vec<&str> = found.lines().filter(|line| line.starts_with("error[")).collect();
        assert!(!errors.is_empty() && errors.iter().all(|e| e.starts_with("error[syntax-error]")), "{text}: {found}");
    }
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
fn no_kernel_of_several_overwrites_an_input() {
    let s = Session::new();
    let helper = "import nki.language as nl\n";
    let kernels = three_kernels().replace("import nki\n", "import nki\nimport helper\n");
    // No kernel can be called: each lacks an argument.
    let refused = kernels.replace("(x):", "(x, scale):");
    for text in [&kernels, &refused] {
        s.write("k.py", text);
        s.write("helper.py", helper);
        for file in ["k.py", "./k.py", "helper.py"] {
            s.run(&["check", "k.py", "--json", file]).exits(2).says("would overwrite");
        }
        assert_eq!(std::fs::read_to_string(s.path("k.py")).expect("there"), *text);
        assert_eq!(std::fs::read_to_string(s.path("helper.py")).expect("there"), helper);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("k.py", s.path("link.json")).expect("made");
        s.run(&["check", "k.py", "--json", "link.json"]).exits(2).says("would overwrite the kernel's file");
        s.run(&["check", ".", "--json", "link.json"]).exits(2).says("would overwrite the kernel's file");
    }
    s.write("k.py", kernels.replace("float32[64,32]", "nonsense"));
    let before = std::fs::read_to_string(s.path("k.py")).expect("there");
    s.run(&["run", "k.py", "--kernel", "add_one", "--json", "k.py"]).exits(2).says("would overwrite");
    assert_eq!(std::fs::read_to_string(s.path("k.py")).expect("there"), before);
}

#[test]
fn no_output_overwrites_the_project_file_or_an_array_that_the_kernel_reads() {
    let s = Session::new();
    let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 32), }");
    let array =
        [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes(), &[0; 8192]].concat();
    let project = "allow = [\"bug\"]\n";
    s.write("out.npy", &array);
    s.write("nki-sim.toml", project);
    let kernel = ADD_ONE
        .replace("@nki.jit", "# nki-sim: x=float32[64,32]\n@nki.jit")
        .replace("(x, amount=1.0):", "(x, amount=1.0):\n    x = nl.shared_constant('out.npy')");
    s.write("k.py", &kernel);
    for options in [["--json", "out.npy"], ["--out", "."]] {
        s.run(&[&["run", "k.py"], &options[..]].concat())
            .exits(2)
            .says("would overwrite `")
            .says("which the kernel reads");
    }
    s.run(&["check", "k.py", "--json", "out.npy"]).exits(2).says("which the kernel reads");
    for command in ["run", "check"] {
        s.run(&[command, "k.py", "--json", "nki-sim.toml"]).exits(2).says("would overwrite the project file");
    }
    assert_eq!(std::fs::read(s.path("out.npy")).expect("there"), array);
    assert_eq!(std::fs::read_to_string(s.path("nki-sim.toml")).expect("there"), project);
}

/// A folder with a correct kernel, two that share a wrong function, one without a run line, and
/// files of other types.
fn folder() -> Session {
    let s = Session::new();
    let kernel = |name: &str| {
        format!(
            "# nki-sim: x=float32[64,32]\n@nki.jit\ndef {name}(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    \
             nisa.dma_copy(dst=out, src=loaded(x))\n    return out\n"
        )
    };
    let head = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n";
    for name in ["d/sub", "d/.hidden", "d/__pycache__"] {
        std::fs::create_dir_all(s.path(name)).expect("made");
    }
    s.write("d/good.py", ADD_ONE.replace("@nki.jit", "# nki-sim: x=float32[64,32]\n@nki.jit"));
    s.write("d/.hidden/good.py", ADD_ONE);
    s.write("d/__pycache__/good.py", ADD_ONE);
    s.write("d/plain.py", "import os\n\ndef main():\n    os.exit(1)\n");
    s.write("d/sub/two.py", format!("{head}from shared import loaded\n{}{}", kernel("one"), kernel("two")));
    s.write("d/sub/other.py", ADD_ONE);
    let shared = "def loaded(x):\n    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)\n    nisa.dma_copy(dst=tile, src=x[0:1, :])\n    return tile\n";
    s.write("d/sub/shared.py", format!("{head}\n{shared}"));
    s
}

#[test]
fn a_folder_stands_for_its_kernels() {
    let s = folder();
    let check = |more: &[&str]| s.run(&[&["check", "d"], more].concat());
    let total = "3 kernels in 2 files checked: 1 error, 0 warnings; not checked: 2 files without a kernel, 1 kernel without a run line\n";
    let text = check(&[]).exits(1);
    assert!(text.stdout.starts_with("add_one: no errors") && text.stdout.ends_with(total), "{}", text.stdout);
    assert_eq!(text.stderr.matches("error[shape-mismatch]").count(), 1, "{}", text.stderr);
    assert!(text.stderr.contains("d/sub/other.py: not checked, without a run line: add_one\n"), "{}", text.stderr);

    let listed = json(&check(&["--format", "json", "--json", "c.json"]).exits(1));
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|o| (&o["file"], &o["kernel"])).collect();
    let expected = [("d/good.py", "add_one"), ("d/sub/two.py", "one"), ("d/sub/two.py", "two")];
    assert_eq!(
        names,
        expected
            .map(|(file, kernel)| (file.into(), kernel.into()))
            .iter()
            .map(|(f, k)| (f, k))
            .collect::<Vec<(&Value, &Value)>>()
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&std::fs::read(s.path("c.json")).expect("written")).expect("JSON"),
        listed
    );

    let log = json(&check(&["--format", "sarif"]).exits(1));
    let runs = log["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), runs[0]["results"].as_array().map(Vec::len)), (1, Some(1)), "{log}");
    assert_eq!(runs[0]["automationDetails"]["id"], "nki-sim check/d/");

    let github = check(&["--format", "github"]).exits(1).stdout;
    assert_eq!((github.matches("::error file=").count(), github.matches("::notice ").count()), (1, 1), "{github}");
    assert!(github.ends_with(&format!("::notice title=nki-sim check d::{total}")), "{github}");
    let suites = check(&["--format", "junit"]).exits(1).stdout;
    assert!(suites.contains("<testsuites tests=\"3\" failures=\"2\">"), "{suites}");
    assert!(suites.contains("<testsuite name=\"nki-sim check d/sub/two.py::two\""), "{suites}");
}

#[test]
fn a_broken_file_does_not_stop_the_others() {
    let s = folder();
    s.write("d/broken.py", "import nki\ndef k(x:\n");
    let ran = s.run(&["check", "d", "d/good.py"]).exits(1).says("syntax-error").says("shape-mismatch");
    assert!(ran.stdout.contains("4 kernels in 3 files checked: 2 errors, 0 warnings"), "{}", ran.stdout);
    let ran = s.run(&["check", "d/good.py", "missing.py", "d/plain.py"]).exits(2).says("cannot read `missing.py`");
    assert!(
        ran.stdout.ends_with("1 kernel in 1 file checked: no errors, 0 warnings; not checked: 1 kernel with invalid arguments, or in an unreadable file, 1 file without a kernel\n"),
        "{}",
        ran.stdout
    );
    s.run(&["check", "d/good.py", "d/good.py"]).exits(0).says("1 kernel in 1 file checked");
    for option in [["--kernel", "add_one"], ["--arg", "x=float32[64,32]"]] {
        let words = [&["check", "d"][..], &option].concat();
        s.run(&words)
            .exits(2)
            .says(option[0])
            .says("is for one file; several files take their arguments from comments");
    }
    s.run(&["check", "d/.hidden", "d/__pycache__"]).exits(0);
    std::fs::create_dir(s.path("empty")).expect("made");
    s.run(&["check", "empty"]).exits(2).says("there is no .py file in `empty` or below it");
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
