//! The command line as users see it: exit codes, messages, files.

mod command;

use std::path::Path;
use std::process::Command;

use command::{ADD_ONE, Ran, Session, example};

#[test]
fn misspelt_names_are_reported_with_what_was_meant() {
    let s = Session::new();
    let kernel = ADD_ONE.replace("@nki.jit", "COLUMNS = 4\n# nki-sim: x=float32[64,4]\n@nki.jit");
    s.write("k.py", kernel);
    for (words, expected) in [
        (&["run", "k.py", "--target", "trn22"][..], "trn3pre; did you mean `trn2`?"),
        (
            &["run", "k.py", "--kernel", "add_onne"],
            "has no kernel called `add_onne`; it has add_one; did you mean `add_one`?",
        ),
        (&["run", "k.py", "--arg", "x=flot32[64,4]"], "float4_e2m1fn_x4); did you mean `float32`?"),
        (&["sweep", "k.py", "--grid", "COLUMN=1,2"], "at the top level of `k.py`; did you mean `COLUMNS`?"),
    ] {
        s.run(words).exits(2).says(expected);
    }
    s.write(
        "made.py",
        format!("{ADD_ONE}\ndef make():\n    @nki.jit\n    def inner(x):\n        return x\n    return inner\n"),
    );
    s.run(&["run", "made.py", "--kernel", "inner", "--arg", "x=float32[4,4]"])
        .exits(2)
        .says("it has add_one; a function or class of the file defines it, so call it from Python");
}

#[test]
fn wrong_calls_exit_with_2() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&[]).exits(2);
    s.run(&["run"]).exits(2).says("<FILE>");
    s.run(&["fly", "k.py"]).exits(2);
    s.run(&["run", "missing.py"]).exits(2).says("cannot read `missing.py`");
    s.run(&["run", "."]).exits(2).says("is a directory");
    s.run(&["run", "k.py", "--arg", "x=float32[64,4]", "--json", "r.json", "--trace", "t.json"]).exits(0);
    for command in [
        &["run", "r.json"] as &[_],
        &["check", "r.json"],
        &["migrate", "r.json"],
        &["sweep", "r.json", "--grid", "x=1"],
    ] {
        s.run(command).exits(2).says("`r.json` is a report of `nki-sim run`; `nki-sim compare BEFORE AFTER` compares");
    }
    s.run(&["run", "t.json"]).exits(2).says("`t.json` is a trace; https://ui.perfetto.dev shows it");
    s.run(&["run", "k.py", "--target", "trn9"])
        .exits(2)
        .says("expected one of trn1, trn1n, inf2, gen2, trn2, gen3, trn3, gen4");
    s.run(&["run", "k.py", "--lnc", "3"]).exits(2);
    s.run(&["run", "k.py", "--arg", "x"]).exits(2).says("NAME=VALUE");
    s.run(&["run", "k.py", "--arg", "x=float32[2"]).exits(2).says("--arg x=float32[2: at character 8");
    s.run(&["run", "k.py", "--arg", "x=1", "--arg", "x=2"]).exits(2).says("given twice");
    s.run(&["run", "k.py", "--arg", "x=float32[99999999999]"]).exits(2).says("the largest is 4294967295");
    s.run(&["run", "k.py", "--arg", "x=float32[2]:arange:-1"]).exits(2).says("`-1`: expected a seed");
    s.run(&["run", "k.py", "--arg", "x@0=float32[2,2]"]).exits(2).says("argument of one rank, and needs --ranks");
    s.run(&["run", "k.py", "--rtol", "-1"]).exits(2);
    s.run(&["run", "k.py", "--arg", "x=none.npy"]).exits(2).says("cannot read `none.npy`");
    let sweep =
        |plot| s.run(&["sweep", "k.py", "--arg", "x=float32[64,4]", "--grid", "amount=1.0,2.0", "--plot", plot]);
    sweep("p.png").exits(2).says("--plot p.png: a plot is an SVG file; give a name that ends in .svg");
    sweep("p.svg").exits(0);
}

#[test]
fn a_sweep_offers_only_what_it_takes() {
    let help = Session::new().run(&["sweep", "--help"]).exits(0);
    help.says("Python file with a kernel").keeps_quiet_about(".nkir").keeps_quiet_about("--frontend");
}

#[test]
fn a_point_that_skips_work_does_not_rank() {
    let s = Session::new();
    s.write("k.py", TILED);
    let sweep = |more: &[&str]| {
        let grid = ["sweep", "k.py", "--arg", "x=float32[128,512]", "--json", "t.json", "--grid"];
        s.run(&[&grid[..], more].concat())
    };
    // 384 columns do three quarters of the work, in one tile.
    let ran = sweep(&["columns=128,384,512"]).exits(0).says("not ranked: elements of an output are never written");
    let table: serde_json::Value =
        serde_json::from_slice(&std::fs::read(s.path("t.json")).expect("written")).expect("JSON");
    let rows = table["rows"].as_array().expect("rows");
    let order: Vec<&str> = rows.iter().filter_map(|row| row["point"][0][1].as_str()).collect();
    assert_eq!(order, ["512", "128", "384"], "{}", ran.stdout);
    assert!(rows[2]["incomplete"] == true && rows[2]["latency_us"].as_f64() < rows[1]["latency_us"].as_f64());
    assert!(table["front"].as_array().is_some_and(|front| !front.contains(&2.into())), "{table}");
    // It may be intended.
    sweep(&["columns=384"]).exits(1);
    sweep(&["columns=384", "--allow", "output-partly-written"]).exits(0).keeps_quiet_about("not ranked");
}

/// Omits the last columns if `columns` does not divide their number.
const TILED: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def tiled(x, columns):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[1] // columns):
        part = nl.ds(i * columns, columns)
        t = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[:, part])
        nisa.dma_copy(dst=out[:, part], src=t)
    return out
";

#[test]
fn a_value_of_a_grid_that_is_there_twice_is_one_point() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&["sweep", "k.py", "--arg", "x=float32[64,4]", "--grid", "amount=1.0, 2.0,1.0", "--csv", "t.csv"]).exits(0);
    let table = std::fs::read_to_string(s.path("t.csv")).expect("written");
    assert_eq!(table.lines().count(), 3, "{table}");
}

#[test]
fn missing_arguments_show_signature_and_example() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&["run", "k.py"])
        .exits(2)
        .says("kernel `add_one` needs argument `x`")
        .says("signature: add_one(x, amount=1.0)")
        .says("nki-sim run k.py --arg 'x=float32[128,512]'");
    s.run(&["run", "k.py", "--arg", "y=1"])
        .exits(2)
        .says("no parameter called `y`; did you mean `x`?")
        .says("needs argument `x`");
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--arg", "amuont=2"])
        .exits(2)
        .says("no parameter called `amuont`; did you mean `amount`?");
    s.run(&["run"]).exits(2).says("Usage: nki-sim run");
    s.run(&["migrate", "none.py"]).exits(2).says("cannot read `none.py`");
}

/// A report larger than a pipe's buffer, whose reader stops after the first bytes.
#[test]
#[cfg(unix)]
fn a_reader_may_close_the_pipe_of_a_report() {
    use std::io::Read;
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let mut child = s
        .command(&["run", "k.py", "--arg", "x=float32[128,4]", "--no-numerics", "--html", "-"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let mut start = [0; 5];
    child.stdout.take().expect("piped").read_exact(&mut start).expect("written");
    assert!(child.wait().expect("ends").success());
}

#[test]
fn several_kernels_need_a_choice() {
    let s = Session::new();
    s.write("k.py", format!("{ADD_ONE}\n@nki.jit\ndef other(x):\n    return x\n"));
    let x = "x=float32[128,4]";
    s.run(&["run", "k.py", "--arg", x]).exits(2).says("2 kernels").says("add_one, other");
    s.run(&["run", "k.py", "--kernel", "third", "--arg", x]).exits(2).says("no kernel called `third`");
    s.run(&["run", "k.py", "--kernel", "add_one", "--arg", x]).exits(0);
    s.write("none.py", "x = 1\n");
    s.run(&["run", "none.py"]).exits(2).says("no kernel");
}

#[test]
fn wrong_npy_files_are_named() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("bad.npy", "hello");
    s.run(&["run", "k.py", "--arg", "x=bad.npy"]).exits(2).says("`bad.npy`: not a .npy file");
    let mut double = b"\x93NUMPY\x01\x00".to_vec();
    let header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }\n";
    double.extend((header.len() as u16).to_le_bytes());
    double.extend(header);
    s.write("short.npy", &double);
    s.run(&["run", "k.py", "--arg", "x=short.npy"]).exits(2).says("truncated").says("needs 8 bytes");
    double.extend([0; 8]);
    s.write("double.npy", &double);
    s.run(&["run", "k.py", "--arg", "x=double.npy"]).exits(2).says("float64 is not a device type");
}

#[test]
fn environment_variables_name_the_target_and_a_flag_beats_them() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let args = ["run", "k.py", "--arg", "x=float32[128,4]", "--json", "r.json"];
    let target = |command: &mut Command| {
        Ran::from(command.output().expect("runs")).exits(0);
        let text = std::fs::read(s.path("r.json")).expect("report");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        json["target"].as_str().unwrap_or_default().to_string()
    };
    assert_eq!(target(&mut s.command(&args)), "trn2");
    assert_eq!(target(s.command(&args).env("NKI_NC_VERSION", "gen4")), "trn3");
    assert_eq!(target(s.command(&args).env("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")), "trn1");
    let with_flag: Vec<&str> = args.iter().copied().chain(["--target", "trn3"]).collect();
    assert_eq!(target(s.command(&with_flag).env("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")), "trn3");
    let wrong = s.command(&args).env("NKI_NC_VERSION", "gen9").output().expect("runs");
    Ran::from(wrong).exits(2).says("NKI_NC_VERSION");
    let wrong = s.command(&args).env("NKI_PRECISE_FP", "yes").output().expect("runs");
    Ran::from(wrong).exits(2).says("NKI_PRECISE_FP");
}

#[test]
fn the_log_shows_the_time_of_each_stage() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let logged = |level: &str| {
        let args = ["run", "k.py", "--arg", "x=float32[128,4]"];
        Ran::from(s.command(&args).env("NKI_SIM_LOG", level).output().expect("runs")).exits(0)
    };
    logged("debug").says("stage=\"execute\" us=");
    logged("info").keeps_quiet_about("stage");
    logged("loud").says("NKI_SIM_LOG=loud is not a level");
}

#[test]
fn outputs_are_written_and_compared() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let x = ["--arg", "x=float32[128,4]:arange"];
    s.run(&["run", "k.py", x[0], x[1], "--out", "res/ults"]).exits(0);
    let out = std::fs::read(s.path("res/ults/out.npy")).expect("written");
    assert_eq!(&out[..6], b"\x93NUMPY");
    assert_eq!(&out[out.len() - 4..], 512f32.to_le_bytes());
    s.run(&["run", "k.py", x[0], x[1], "--expect", "out=res/ults/out.npy"]).exits(0).says("matches");
    s.run(&["run", "k.py", x[0], x[1], "--arg", "amount=2.0", "--expect", "out=res/ults/out.npy"])
        .exits(1)
        .says("512 of 512 elements differ")
        .says("first at [0, 0]: got 2, expected 1");
    s.run(&["run", "k.py", x[0], x[1], "--arg", "amount=2.0", "--expect", "out=res/ults/out.npy", "--atol", "1.5"])
        .exits(0);
    s.run(&["run", "k.py", x[0], x[1], "--expect", "other=res/ults/out.npy"]).exits(2).says("`out`");
    s.run(&["run", "k.py", "--arg", "x=float32[64,4]", "--expect", "out=res/ults/out.npy"])
        .exits(1)
        .says("has shape (64, 4)");
}

#[cfg(unix)]
#[test]
fn a_kernel_is_read_from_a_pipe_once() {
    let s = Session::new();
    let status = Command::new("mkfifo").arg(s.path("pipe.py")).status().expect("runs");
    assert!(status.success());
    let kernel = ADD_ONE.replace("@nki.jit", "# nki-sim: x=float32[128,4]\n@nki.jit");
    for command in ["check", "run"] {
        let (pipe, kernel) = (s.path("pipe.py"), kernel.clone());
        // Opening the pipe a second time would wait forever for another writer.
        let writer = std::thread::spawn(move || std::fs::write(pipe, kernel).expect("written"));
        s.run(&[command, "pipe.py"]).exits(0);
        writer.join().expect("ends");
    }
}

#[cfg(unix)]
#[test]
fn a_report_replaces_what_it_names_and_nothing_else() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let run = |more: &[&str]| s.run(&[&["run", "k.py", "--arg", "x=float32[128,4]", "--no-numerics"], more].concat());
    // A symbolic link is kept, and a file keeps its permissions.
    let kept = s.write("kept.json", "old");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).expect("own file");
    std::os::unix::fs::symlink(&kept, s.path("link.json")).expect("linked");
    run(&["--json", "link.json"]).exits(0);
    assert!(s.path("link.json").is_symlink());
    assert!(std::fs::read_to_string(&kept).expect("written").contains("latency_us"));
    assert_eq!(std::fs::metadata(&kept).expect("there").permissions().mode() & 0o777, 0o600);
    // A dangling link creates its target, and two reports cannot share a file.
    std::os::unix::fs::symlink("made.json", s.path("dangling.json")).expect("linked");
    run(&["--json", "dangling.json", "--csv", "made.json"]).exits(2).says("name the same file");
    run(&["--json", "dangling.json"]).exits(0);
    assert!(s.path("dangling.json").is_symlink());
    assert!(std::fs::read_to_string(s.path("made.json")).expect("written").contains("latency_us"));
    std::os::unix::fs::symlink("circle.json", s.path("circle.json")).expect("linked");
    run(&["--json", "circle.json"]).exits(2).says("cannot write `circle.json`");
    // A device or pipe is written directly, and is kept.
    let status = Command::new("mkfifo").arg(s.path("pipe")).status().expect("runs");
    assert!(status.success());
    let pipe = s.path("pipe");
    let reader = std::thread::spawn(move || std::fs::read_to_string(pipe).expect("read"));
    run(&["--json", "pipe"]).exits(0);
    assert!(reader.join().expect("ends").contains("latency_us"));
    assert!(std::fs::metadata(s.path("pipe")).expect("there").file_type().is_fifo());
    for name in ["/dev/stdout", "-"] {
        // Standard output holds only the file; the report for reading goes to standard error.
        let ran = run(&["--json", name]).exits(0);
        assert!(serde_json::from_str::<serde_json::Value>(&ran.stdout).is_ok_and(|json| json["latency_us"].is_f64()));
        assert!(ran.stderr.contains("Roofline"), "{}", ran.stderr);
    }
    let checked = s.run(&["check", "k.py", "--arg", "x=float32[128,4]", "--json", "-"]).exits(0);
    assert!(serde_json::from_str::<serde_json::Value>(&checked.stdout).is_ok(), "{}", checked.stdout);
    assert!(checked.stderr.contains("no errors"), "{}", checked.stderr);
    run(&["--json", "-", "--csv", "-"]).exits(2).says("--json and --csv name the same file, `-`");
    assert!(!s.path("-").exists());
    // Errors in the options are reported before the run.
    run(&["--json", "a", "--csv", "a"]).exits(2).says("--json and --csv name the same file, `a`");
    run(&["--json", "none/a"]).exits(2).says("--json none/a: there is no directory `none`");
    run(&["--json", "."]).exits(2).says("cannot write `.`: is a directory");
    let left: Vec<_> =
        std::fs::read_dir(s.folder.path()).expect("there").map(|e| e.expect("entry").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".nki-sim")), "{left:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let call = ["run", "k.py", "--arg", "x=float32[128,4]", "--no-numerics"];
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let ran = s.command(&call).stdout(full).output().expect("runs");
    Ran::from(ran).exits(2).says("cannot write to standard output");
    s.run(&[&call[..], &["--json", "/dev/full"]].concat()).exits(2).says("cannot write `/dev/full`: No space left");
}

#[test]
fn same_call_same_bytes() {
    let s = Session::new();
    let softmax = example("softmax.py");
    let mut seen: Vec<(Vec<u8>, Vec<u8>, String)> = Vec::new();
    for _ in 0..2 {
        let ran = s
            .run(&["run", &softmax, "--arg", "x=bfloat16[256,128]", "--json", "r.json", "--trace", "t.perfetto-trace"])
            .exits(0);
        let read = |name| std::fs::read(s.path(name)).expect("written");
        seen.push((read("r.json"), read("t.perfetto-trace"), ran.stdout));
    }
    assert!(seen[0] == seen[1]);
}

#[test]
fn the_json_report_has_what_it_promises() {
    let s = Session::new();
    s.run(&["run", &example("softmax.py"), "--arg", "x=float32[256,512]", "--json", "r.json"]).exits(0);
    let text = std::fs::read(s.path("r.json")).expect("report");
    let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(json["kernel"], "softmax_rows");
    assert!(json["latency_us"].as_f64().is_some_and(|x| x > 0.0));
    assert_eq!(json["outputs"][0]["name"], "out");
    assert_eq!(json["outputs"][0]["shape"], serde_json::json!([256, 512]));
    assert_eq!(json["outputs"][0]["dtype"], "float32");
    for engine in ["tensor", "vector", "scalar", "gpsimd", "sync"] {
        for field in ["active_us", "active_percent", "instructions"] {
            assert!(json["engines"][engine][field].is_number(), "{engine}.{field}");
        }
    }
    assert!(json["engines"]["scalar"]["active_us"].as_f64().is_some_and(|x| x > 0.0));
    for field in ["bytes", "transfers", "active_us", "active_percent"] {
        assert!(json["dma"][field].is_number(), "dma.{field}");
    }
    assert_eq!(json["dma"]["bytes"], 2 * 256 * 512 * 4);
    assert!(json["memory"]["sbuf_peak_bytes_per_partition"].as_u64().is_some_and(|n| n >= 2 * 512 * 4));
    assert_eq!(json["memory"]["psum_peak_banks"], 0);
    let stalls = json["stalls"].as_array().expect("stalls");
    assert!(stalls.iter().all(|s| s["engine"].is_string() && s["cause"].is_string() && s["us"].is_number()));
    assert_eq!(json["findings"], serde_json::json!([]));
}

#[test]
fn a_wrong_kernel_exits_with_1_and_shows_the_line() {
    let s = Session::new();
    s.write("k.py", ADD_ONE.replace("    nisa.dma_copy(dst=t, src=x)\n", ""));
    s.write("bad.py", "import nki\n\n@nki.jit\ndef k(x):\n    return x +\n");
    s.run(&["run", "bad.py", "--arg", "x=float32[128,4]"]).exits(1).says("bad.py:5").says("return x +");
    s.run(&["check", "bad.py", "--arg", "x=float32[128,4]"]).exits(1);
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]"]).says("uninitialized-read");
}

#[test]
fn endless_loops_end() {
    let s = Session::new();
    s.write("k.py", "import nki\n\n@nki.jit\ndef k(x):\n    n = 0\n    while True:\n        n += 1\n    return x\n");
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--max-steps", "1000"])
        .exits(1)
        .says("k.py:")
        .says("--max-steps");
}

#[test]
fn lowered_kernels_run_the_same() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let x = ["--arg", "x=float32[128,4]"];
    s.run(&["lower", "k.py", x[0], x[1], "-o", "k.nkir"]).exits(0);
    s.run(&["run", "k.py", x[0], x[1], "--out", "a", "--json", "a.json"]).exits(0);
    s.run(&["run", "k.nkir", x[0], x[1], "--out", "b", "--json", "b.json"]).exits(0);
    let read = |name: &str| std::fs::read(s.path(name)).expect("written");
    assert_eq!(read("a/out.npy"), read("b/out.npy"));
    assert_eq!(String::from_utf8_lossy(&read("a.json")), String::from_utf8_lossy(&read("b.json")));
    s.run(&["run", "k.nkir"]).exits(2).says("`x`");
    s.run(&["run", "k.nkir", "--arg", "x=float32[64,4]"]).exits(2).says("(128, 4)");
    s.write("bad.nkir", "not a program");
    s.run(&["run", "bad.nkir"]).exits(2).says("bad.nkir");
}

#[test]
fn a_lowered_kernel_for_the_older_compiler_keeps_its_latency_with_the_flag() {
    let s = Session::new();
    s.write(
        "k.py",
        "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n@nki.jit\ndef k(x):\n    \
         out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    nl.store(out, nl.exp(nl.load(x)))\n    return out\n",
    );
    let x = ["--arg", "x=float32[128,512]"];
    s.run(&["lower", "k.py", x[0], x[1], "-o", "k.nkir"]).exits(0).says("give --beta1 to the commands that read it");
    let latency = |file: &str, more: &[&str]| -> f64 {
        s.run(&[&["run", file, x[0], x[1], "--json", "r.json"], more].concat()).exits(0);
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("r.json")).unwrap()).unwrap();
        json["latency_us"].as_f64().unwrap()
    };
    let source = latency("k.py", &[]);
    assert_eq!(latency("k.nkir", &["--beta1"]), source);
    assert_ne!(latency("k.nkir", &[]), source);
}

#[test]
fn numerics_can_be_left_out() {
    let s = Session::new();
    let softmax = example("softmax.py");
    let x = ["--arg", "x=float32[256,512]"];
    let latency = |name: &str| -> f64 {
        let text = std::fs::read(s.path(name)).expect("report");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        json["latency_us"].as_f64().unwrap_or(-1.0)
    };
    s.run(&["run", &softmax, x[0], x[1], "--json", "with.json"]).exits(0);
    s.run(&["run", &softmax, x[0], x[1], "--json", "without.json", "--no-numerics"]).exits(0);
    assert_eq!(latency("with.json"), latency("without.json"));
    s.run(&["run", &softmax, x[0], x[1], "--no-numerics", "--out", "o"]).exits(2);
}

#[test]
fn explain_prints_pages() {
    let s = Session::new();
    s.run(&["explain", "uninitialized-read"]).exits(0).says("# uninitialized-read").says("memset");
    s.run(&["explain"]).exits(0).says("uninitialized-read");
    // Tables of a run name hazards: `semaphore from vector (RAW)`.
    s.run(&["explain", "RAW"]).exits(0).says("# semaphore").says("it reads what the other one writes");
    s.run(&["explain", "uninitialised-read"]).exits(2).says("did you mean `uninitialized-read`?");
}

#[test]
fn timing_parameters_can_be_changed() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let run = |more: &[&str]| {
        let mut args = vec!["run", "k.py", "--arg", "x=float32[128,4]", "--json", "r.json"];
        args.extend(more);
        s.run(&args).exits(0);
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(s.path("r.json")).unwrap()).unwrap();
        report["latency_us"].as_f64().unwrap()
    };
    let plain = run(&[]);
    let tail = run(&["--set", "kernel.tail_us=11.735"]);
    assert!((tail - plain - 10.0).abs() < 1e-9, "{plain} {tail}");
    s.write("p.toml", "[kernel]\ntail_us = 21.735\n");
    assert!((run(&["--params", "p.toml"]) - plain - 20.0).abs() < 1e-9);
    assert!((run(&["--params", "p.toml", "--set", "kernel.tail_us=1.735"]) - plain).abs() < 1e-9);
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--set", "kernel.tail=1"]).exits(2).says("kernel.tail_us");
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--params", "none.toml"]).exits(2).says("none.toml");
}

#[test]
fn the_program_order_can_be_kept() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--schedule", "program"]).exits(0);
    s.run(&["run", "k.py", "--arg", "x=float32[128,4]", "--schedule", "random"]).exits(2).says("program");
}

/// docs/options.md shows the output of `--help` for each command. `BLESS=1 cargo test --test cli`
/// rewrites it.
#[test]
fn the_page_of_options_is_what_help_prints() {
    let session = Session::new();
    let help = |words: &[&str]| {
        let ran = session.run(words);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    let whole = help(&["--help"]);
    let listed = whole.split("Commands:\n").nth(1).and_then(|t| t.split("\n\n").next()).expect("a list of commands");
    // Lines of the list that name a command are indented by two spaces.
    let names = listed.lines().filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|l| l.split_whitespace().next()).filter(|&n| n != "help").collect();
    assert!(names.contains(&"run") && names.contains(&"sweep"), "{names:?}");
    let mut page = format!(
        "# Options\n\nWhat `nki-sim --help` and `nki-sim COMMAND --help` print. [Commands](cli.md) explains arguments, outputs \
         and limits.\n\nGenerated: `BLESS=1 cargo test --test cli` rewrites this file.\n\n```text\n{whole}\n```\n"
    );
    for name in names {
        page += &format!("\n## `{name}`\n\n```text\n{}\n```\n", help(&[name, "--help"]));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/options.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("writable");
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(have == page, "docs/options.md is stale: run BLESS=1 cargo test --test cli");
}
