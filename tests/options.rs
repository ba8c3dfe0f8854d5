//! The meaning of options in every mode: an option is honoured or rejected, an output never
//! replaces an input, and figures belong to the call.

mod command;

use command::{ADD_ONE, Ran, Session};
use serde_json::{Value, json};

/// An `.npy` file of float32 with a two-byte header length.
fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    out
}

fn read(s: &Session, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(s.path(name)).expect("written")).expect("JSON")
}

#[test]
fn an_output_replaces_no_input() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("x.npy", npy("(4, 4)", &[1.0; 16]));
    s.write("p.toml", "tensor.clock_ghz = 2.8\n");
    std::fs::create_dir(s.path("d")).expect("new");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(s.path("k.py"), s.path("link")).expect("links");
        std::fs::hard_link(s.path("x.npy"), s.path("hard")).expect("links");
    }
    let files = ["k.py", "x.npy", "p.toml"];
    let before: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(s.path(f)).expect("there")).collect();
    let kernel = ["k.py", "--arg", "x=x.npy"];
    let run = |command: &str, more: &[&str]| s.run(&[&[command], &kernel[..], more].concat());
    for option in ["--json", "--csv", "--trace", "--html"] {
        run("run", &[option, "k.py"]).exits(2).says("would overwrite the kernel's file");
        run("run", &[option, "d/../x.npy"]).exits(2).says("would overwrite --arg x");
    }
    #[cfg(unix)]
    {
        run("run", &["--json", "link"]).exits(2).says("would overwrite the kernel's file");
        run("run", &["--html", "hard"]).exits(2).says("would overwrite --arg x");
    }
    run("run", &["--params", "p.toml", "--json", "./p.toml"]).exits(2).says("would overwrite --params");
    run("run", &["--expect", "out=x.npy", "--csv", "x.npy"]).exits(2);
    run("run", &["--ranks", "2", "--json", "k.py"]).exits(2);
    run("check", &["--json", "k.py"]).exits(2).says("would overwrite");
    run("lower", &["-o", "k.py"]).exits(2).says("would overwrite");
    run("whatif", &["--json", "x.npy"]).exits(2).says("would overwrite");
    for option in ["--json", "--csv", "--state"] {
        run("sweep", &["--grid", "amount=1.0,2.0", option, "k.py"]).exits(2).says("would overwrite");
    }
    s.run(&["sweep", "k.py", "--grid", "x=x.npy", "--json", "x.npy"]).exits(2).says("would overwrite --grid x");
    run("run", &["--json", "a", "--csv", "d/../a"]).exits(2).says("name the same file");
    run("run", &["--out", "d", "--json", "d/out.npy"]).exits(2).says("--json and --out name the same file");
    run("run", &["--parquet", "d", "--csv", "d/Summary.parquet"])
        .exits(2)
        .says("--csv and --parquet name the same file");
    for (file, text) in files.iter().zip(&before) {
        assert!(std::fs::read(s.path(file)).expect("there") == *text, "{file} was changed");
    }
    // An output with the name of an argument, in the argument's folder.
    s.write("d/out.npy", npy("(4, 4)", &[1.0; 16]));
    s.run(&["run", "k.py", "--arg", "x=d/out.npy", "--out", "d"])
        .exits(2)
        .says("--out d/out.npy would overwrite --arg x");
    s.run(&["run", "k.py", "--arg", "x=d/out.npy", "--json", "r.json"]).exits(0);
    s.run(&["compare", "r.json", "r.json", "-o", "r.json"]).exits(2).says("would overwrite the run before");
    // A module that the kernel imports.
    s.write("helper.py", "ONE = 1.0\n");
    s.write(
        "uses.py",
        ADD_ONE.replace("import nki\n", "import nki\nfrom helper import ONE\n").replace("amount=1.0", "amount=ONE"),
    );
    for command in ["run", "check", "whatif"] {
        s.run(&[command, "uses.py", "--arg", "x=x.npy", "--json", "helper.py"]).exits(2).says("helper.py");
    }
    s.run(&["sweep", "uses.py", "--arg", "x=x.npy", "--grid", "amount=1.0", "--json", "helper.py"]).exits(2);
    assert_eq!(std::fs::read_to_string(s.path("helper.py")).expect("there"), "ONE = 1.0\n");
}

#[test]
fn nan_is_no_small_error() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("nan.npy", npy("(2, 2)", &[f32::NAN; 4]));
    s.write("one.npy", npy("(2, 2)", &[1.0; 4]));
    s.run(&["run", "k.py", "--arg", "x=nan.npy", "--expect", "out=one.npy", "--json", "r.json"])
        .exits(1)
        .says("max abs error nan, max rel error nan")
        .says("4 of 4 elements differ from one.npy (4 are NaN on one side only)");
    let expected = &read(&s, "r.json")["expected"][0];
    assert_eq!((&expected["max_abs_error"], &expected["nan_mismatches"]), (&Value::Null, &json!(4)));
    s.run(&["run", "k.py", "--arg", "x=nan.npy", "--expect", "out=nan.npy"]).exits(0).says("max abs error 0.000e0");
}

#[test]
fn a_script_refuses_every_option_of_one_kernel() {
    let s = Session::new();
    s.write("script.py", format!("{ADD_ONE}\nif __name__ == \"__main__\":\n    print(1)\n"));
    s.write("p.toml", "");
    for words in [
        "--csv c",
        "--html h",
        "--json j",
        "--trace t",
        "--critical-path",
        "--set tensor.clock_ghz=1",
        "--params p.toml",
        "--schedule program",
        "--rtol 1",
        "--atol 1",
        "--out o",
        "--expect out=o.npy",
        "--no-numerics",
        "--max-steps 5",
        "--lnc 2",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let ran = s.run(&[&["run", "script.py"], &words[..]].concat()).exits(2);
        if !["--expect", "--rtol", "--atol"].contains(&words[0]) {
            ran.says(&format!("{} is for one kernel", words[0]));
        }
    }
    s.run(&["run", "script.py", "--deny", "bugs"]).exits(2).says("did you mean `bug`?");
    s.run(&["run", "script.py", "--json", "script.py"]).exits(2);
    assert!(std::fs::read_to_string(s.path("script.py")).expect("there").starts_with("import nki"));
}

/// Runs a loop on the device whose bound is a constant or comes from memory.
const LOOP: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def looped(x, from_memory=False):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    bound = nisa.register_alloc(100)
    if from_memory:
        count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.memset(dst=count, value=3)
        nisa.register_load(bound, count)
    for _ in nl.dynamic_range(0, bound):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=t)
    return out
";

#[test]
fn without_numerics_steps_are_limited_and_values_are_owned_up_to() {
    let s = Session::new();
    s.write("k.py", LOOP);
    let run = |more: &[&str]| s.run(&[&["run", "k.py", "--no-numerics", "--arg", "x=float32[4,4]"], more].concat());
    run(&["--max-steps", "1000"]).exits(0).keeps_quiet_about("needs-data");
    run(&["--max-steps", "150"]).exits(1).says("error[step-limit]");
    run(&["--arg", "from_memory=True", "--json", "r.json"])
        .exits(0)
        .says("info[needs-data]: values were computed in spite of --no-numerics");
    assert_eq!(read(&s, "r.json")["findings"][0]["id"], json!("needs-data"));
    // A remark is not a warning.
    run(&["--arg", "from_memory=True", "--deny", "warnings"]).exits(0);
}

#[test]
fn parameters_have_a_range_and_the_roofline_follows_them() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let run = |more: &[&str]| s.run(&[&["run", "k.py", "--arg", "x=float32[128,512]"], more].concat());
    run(&["--set", "vector.clock_ghz=1e-15"])
        .exits(2)
        .says("`vector.clock_ghz` cannot be `1e-15`")
        .says("between 0.001 and 1000000");
    run(&["--set", "vector.clock_ghz=1e300"]).exits(2).says("`vector.clock_ghz` cannot be `1e300`");
    run(&["--set", "vector.clock_ghz=1", "--set", "vector.clock_ghz=2"])
        .exits(2)
        .says("--set vector.clock_ghz is given twice");
    s.write("binary.toml", [0xff, 0xfe, 0]);
    run(&["--params", "binary.toml"]).exits(2).says("--params `binary.toml`: the file is not UTF-8 text");
    run(&["--json", "a.json"]).exits(0);
    run(&["--set", "cores.hbm_bytes_per_ns=100", "--json", "b.json"]).exits(0);
    let roofline = |name: &str, key: &str| read(&s, name)["roofline"][key].as_f64().expect("a number");
    assert_eq!(
        (roofline("a.json", "hbm_stack_gbytes_per_s"), roofline("b.json", "hbm_stack_gbytes_per_s")),
        (725.0, 725.0)
    );
    assert_eq!(roofline("b.json", "peak_gbytes_per_s"), 100.0);
}

#[test]
fn a_wrong_number_is_explained() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let x = ["k.py", "--arg", "x=float32[4,4]"];
    for (command, words, why) in [
        ("whatif", ["--step", "-5"], "expected a percentage between 0 and 100"),
        ("whatif", ["--top", "-1"], "expected a whole number, 0 or more"),
        ("run", ["--max-memory", "-5"], "`-5` is not a size"),
        ("run", ["--max-steps", "0"], "expected a whole number, at least 1"),
        ("run", ["--ranks", "0"], "expected a whole number from 1 to 1024"),
        ("run", ["--rtol", "inf"], "expected a finite number, 0 or more"),
        ("run", ["--rtol", "1"], "--expect"),
        ("sweep", ["--jobs", "-1"], "expected a whole number, at least 1"),
        ("sweep", ["--atol", "1"], "--expect"),
    ] {
        let grid: &[&str] = if command == "sweep" { &["--grid", "amount=1.0"] } else { &[] };
        s.run(&[&[command], &x[..], grid, &words].concat()).exits(2).says(why).keeps_quiet_about("tip:");
    }
}

#[test]
fn a_launch_grid_is_for_the_older_language() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let run = |programs: &str| s.run(&["run", "k.py", "--arg", "x=float32[4,4]", "--programs", programs]);
    for grid in ["2,3", "2", "1,1", "nc2*4"] {
        run(grid).exits(2).says("--programs is for kernels of neuronxcc.nki");
    }
    run("1").exits(0);
}

/// Loads `x` twice, into tiles that are not written otherwise.
const TWICE: &str = "import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    c = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=x)
    nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=out, src=c)
    return out
";

#[test]
fn a_kernel_runs_as_it_is_written_on_request() {
    let s = Session::new();
    s.write("twice.py", TWICE);
    // The tile of the second load is written again, so it cannot share the first tile.
    s.write("written.py", TWICE.replace("=c", "=b"));
    let x = ["--arg", "x=float32[4,4]"];
    s.run(&[&["run", "written.py"], &x[..]].concat()).exits(0).says("192 bytes in 3 transfers");
    s.run(&[&["run", "twice.py"], &x[..]].concat())
        .exits(0)
        .says("128 bytes in 2 transfers")
        .says("twice.py:12: 1 load dropped: SBUF held the same bytes (64 bytes)");
    s.run(&[&["run", "twice.py", "--as-written"], &x[..]].concat())
        .exits(0)
        .says("192 bytes in 3 transfers")
        .keeps_quiet_about("dropped");
    s.run(&[&["check", "twice.py", "--as-written"], &x[..]].concat()).exits(0);
    s.write("k.py", ADD_ONE);
    s.run(&[&["sweep", "k.py", "--as-written", "--grid", "amount=1.0"], &x[..]].concat()).exits(0);
    // A lowered kernel contains all its loads; redundant ones are dropped when it runs.
    s.run(&[&["lower", "twice.py", "-o", "k.nkir"], &x[..]].concat()).exits(0);
    s.run(&[&["run", "k.nkir"], &x[..]].concat()).exits(0).says("128 bytes in 2 transfers");
    s.run(&[&["run", "k.nkir", "--as-written"], &x[..]].concat()).exits(0).says("192 bytes in 3 transfers");
}

const IN_TURN: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    loaded = [nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2)]
    sums = [nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf) for _ in range(2)]
    for i in range(8):
        nisa.dma_copy(dst=loaded[i % 2], src=x[i * 128:(i + 1) * 128, :])
        nisa.tensor_tensor(dst=sums[i % 2], data1=loaded[i % 2], data2=loaded[i % 2], op=nl.add)
        nisa.dma_copy(dst=out[i * 128:(i + 1) * 128, :], src=sums[i % 2])
    print('core', nl.program_id(0))
    return out
";

#[test]
fn tiles_in_turn_have_places_for_all_their_values() {
    let s = Session::new();
    s.write("k.py", IN_TURN);
    let run = ["run", "k.py", "--arg", "x=float32[1024,512]:arange", "--out", "o", "--dump", "loaded@11:3=d.npy"];
    let bytes = |name: &str| std::fs::read(s.path(name)).expect("it was written");
    let latency = |more: &[&str], dir: &str| {
        let done = s.run(&[&run[..], more, &["--json", dir]].concat()).exits(0);
        (done, read(&s, dir)["latency_us"].as_f64().expect("a number"))
    };
    let (done, apart) = latency(&[], "apart.json");
    // Once for each of the two tiles of a line.
    done.says("k.py:8: 6 later values of this tile have places of their own").says("k.py:9: 6 later values");
    let values = bytes("o/out.npy");
    let loaded = bytes("d.npy");
    let (done, together) = latency(&["--as-written"], "together.json");
    done.keeps_quiet_about("places of their own");
    assert!(values == bytes("o/out.npy") && loaded == bytes("d.npy"), "the same values");
    assert!(apart < 0.95 * together, "{apart} us, {together} us");
}

#[test]
fn each_core_prints() {
    let s = Session::new();
    s.write("k.py", IN_TURN);
    let run = ["run", "k.py", "--arg", "x=float32[1024,512]", "--no-numerics"];
    s.run(&run).exits(0).says("core 0").keeps_quiet_about("core 1");
    s.run(&[&run[..], &["--lnc", "2"]].concat()).says("core 0\ncore 1");
    // The variable of the runtime decides if the command does not.
    let with = |value: &str, options: &[&str]| {
        let done = s.command(&[&run[..], options].concat()).env("NEURON_LOGICAL_NC_CONFIG", value).output();
        Ran::from(done.expect("the command runs"))
    };
    with("2", &[]).exits(0).says("core 0\ncore 1");
    with("2", &["--lnc", "1"]).exits(0).keeps_quiet_about("core 1");
    with("3", &[]).exits(2).says("NEURON_LOGICAL_NC_CONFIG='3': a logical core has 1 or 2 physical cores");
}

#[test]
fn a_memory_limit_that_is_just_exceeded_is_told_apart() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    // Input, output and tile are 4 MiB each.
    let limit = ["--arg", "x=float32[128,8192]", "--max-memory", "12580000"];
    s.run(&[&["run", "k.py"], &limit[..]].concat())
        .exits(1)
        .says("the kernel's tensors need 12.000 MiB of memory; the limit is 11.997 MiB");
}

#[test]
fn the_decorator_chooses_the_target_and_the_option_beats_it() {
    let s = Session::new();
    let target = |decorator: &str, more: &[&str]| {
        s.write("k.py", ADD_ONE.replace("@nki.jit", decorator));
        s.run(&[&["run", "k.py", "--arg", "x=float32[4,4]", "--json", "r.json"], more].concat()).exits(0);
        read(&s, "r.json")["target"].as_str().expect("a target").to_owned()
    };
    assert_eq!(target("@nki.jit", &[]), "trn2");
    assert_eq!(target("@nki.jit(platform_target=\"trn1\")", &[]), "trn1");
    assert_eq!(target("@nki.jit(platform_target=\"gen4\", mode=\"simulation\")", &[]), "trn3");
    assert_eq!(target("@nki.jit(platform_target=None)", &[]), "trn2");
    assert_eq!(target("@nki.jit(platform_target=\"trn1\")", &["--target", "trn3"]), "trn3");
    for (name, is) in
        [("trn1n", "trn1"), ("inf2", "trn1"), ("gen2", "trn1"), ("gen3", "trn2"), ("gen4", "trn3"), ("trn3pre", "trn3")]
    {
        assert_eq!(target("@nki.jit", &["--target", name]), is);
    }
    s.write("k.py", ADD_ONE.replace("@nki.jit", "@nki.jit(platform_target=\"trn9\")"));
    s.run(&["run", "k.py", "--arg", "x=float32[4,4]"])
        .exits(1)
        .says("\"trn9\" is not a target; the targets are trn1, trn1n, inf2,");
}

#[test]
fn every_report_carries_the_version() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let version = env!("CARGO_PKG_VERSION");
    let reports = ["--json", "r.json", "--csv", "r.csv", "--html", "r.html", "--trace", "r.trace"];
    s.run(&[&["run", "k.py", "--arg", "x=float32[4,4]"], &reports[..]].concat()).exits(0);
    let text = |name: &str| String::from_utf8_lossy(&std::fs::read(s.path(name)).expect("written")).into_owned();
    let csv = text("r.csv");
    let mut lines = csv.lines();
    assert!(lines.next().is_some_and(|l| l.ends_with(",nki_sim_version,target")), "{csv}");
    assert!(lines.all(|l| l.ends_with(&format!(",{version},trn2"))), "{csv}");
    assert!(text("r.html").contains(&format!("content=\"nki-sim {version}\"")));
    assert!(text("r.trace").contains(&format!("nki-sim {version}")));
    let kernel = ["k.py", "--arg", "x=float32[4,4]", "--json", "other.json"];
    for (command, more) in
        [("check", &[][..]), ("whatif", &[]), ("sweep", &["--grid", "amount=1.0"]), ("run", &["--ranks", "2"])]
    {
        s.run(&[&[command], &kernel[..], more].concat()).exits(0);
        assert_eq!(read(&s, "other.json")["nki_sim_version"], json!(version), "{command}");
    }
    let ran = s.run(&["compare", "r.json", "r.json", "--format", "json"]).exits(0);
    assert!(ran.stdout.contains(&format!("\"nki_sim_version\": \"{version}\"")), "{}", ran.stdout);
}

#[test]
fn compare_knows_a_line_that_moved() {
    let s = Session::new();
    let run = |code: String, name: &str| {
        s.write("k.py", code);
        s.run(&["run", "k.py", "--arg", "x=float32[128,512]", "--json", name]).exits(0);
    };
    run(ADD_ONE.to_owned(), "a.json");
    run(format!("# A comment\n\n{ADD_ONE}"), "b.json");
    let compared = s.run(&["compare", "a.json", "b.json"]).exits(0);
    assert!(compared.stdout.contains("by line, us of critical path\n  no change"), "{}", compared.stdout);
    s.run(&["compare", "a.json", "b.json", "--format", "github"]).exits(0).keeps_quiet_about("::warning");
    s.write("x.toml", "a = 1\n");
    s.run(&["compare", "x.toml", "a.json"]).exits(2).says("`x.toml`: it is not JSON; expected");
    // An actual slowdown: the vector engine processes its tile twice, and the line has moved.
    run(
        format!("# A comment\n{}", ADD_ONE.replace("op0=nl.add, operand0=amount", "op0=nl.add, operand0=amount + 1")),
        "c.json",
    );
    let edited = s.run(&["compare", "a.json", "c.json"]).exits(0);
    assert!(edited.stdout.contains("by line, us of critical path\n  no change"), "{}", edited.stdout);
    s.write("k.py", format!("# A comment\n{ADD_ONE}"));
    s.run(&["run", "k.py", "--arg", "x=float32[128,512]", "--json", "d.json", "--set", "vector.clock_ghz=0.1"])
        .exits(0);
    s.run(&["compare", "a.json", "d.json", "--format", "github"])
        .exits(0)
        .says("::warning file=k.py,line=11,title=nki-sim%3A slower line::");
    // The time after the last instruction of a queue does not explain the difference.
    let compared = s.run(&["compare", "a.json", "d.json"]).exits(0).stdout;
    let causes = compared.split("by cause, us stalled\n").nth(1).expect("a table");
    assert!(!causes.lines().next().unwrap_or_default().contains(": finished"), "{compared}");
    // Seconds are shown in a readable unit.
    let metrics = s.run(&["compare", "a.json", "d.json"]).exits(0);
    assert!(metrics.stdout.contains(" us ->") && !metrics.stdout.contains(" 0.000 ->"), "{}", metrics.stdout);
}

#[test]
fn a_frontend_that_is_not_installed_is_said_to_be() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let run = |words: &[&str]| {
        let mut command = s.command(words);
        command.env("NKI_SIM_PYTHON", "no-such-interpreter");
        command::Ran::from(command.output().expect("runs"))
    };
    let call = ["run", "k.py", "--arg", "x=float32[4,4]"];
    let with = |more: &[&'static str]| run(&[&call[..], more].concat());
    let plain = with(&[]).exits(0);
    assert_eq!(with(&["--frontend", "auto"]).exits(0).stdout, plain.stdout);
    assert_eq!(with(&["--frontend", "builtin"]).exits(0).stdout, plain.stdout);
    for command in ["run", "check", "lower", "whatif"] {
        let words = [&[command], &call[1..], &["--frontend", "python"]].concat();
        run(&words)
            .exits(2)
            .says("`no-such-interpreter` does not have it")
            .says("pip install")
            .says("NKI_SIM_PYTHON names another interpreter")
            .says("--frontend builtin");
    }
    with(&["--break", "3"]).exits(2).says("add --frontend python");
    with(&["--break", "3", "--frontend", "auto"]).exits(2).says("add --frontend python");
    with(&["--frontend", "python", "--break", "x"]).exits(2).says("expected LINE[:ITERATION]");
    with(&["--frontend", "python", "--break", "0"]).exits(2).says("expected LINE[:ITERATION]");
    run(&["sweep", "k.py", "--grid", "x=float32[4,4]", "--frontend", "python"]).exits(2).says("nki_sim.sweep");
    // A lowered kernel contains no Python.
    run(&["lower", "k.py", "--arg", "x=float32[4,4]", "-o", "k.nkir"]).exits(0);
    let lowered = ["run", "k.nkir", "--arg", "x=float32[4,4]", "--frontend", "python"];
    run(&lowered).exits(0);
    run(&[&lowered[..], &["--break", "3"]].concat()).exits(2).says("the kernel's source");
}

#[test]
fn the_built_in_evaluator_says_where_a_debugger_is() {
    let s = Session::new();
    s.write("k.py", ADD_ONE.replace("    return", "    breakpoint()\n    return"));
    s.run(&["run", "k.py", "--arg", "x=float32[4,4]"]).exits(1).says("choose Python as the frontend");
}

#[test]
fn a_search_refuses_what_it_cannot_use() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let search =
        |more: &[&str]| s.run(&[&["sweep", "k.py", "--grid", "amount=1.0", "--search"], more].concat()).exits(2);
    search(&["--study", "mine"]).says("--storage <URL>");
    search(&["--seed", "99999999999"]).says("'--seed <N>'");
}
