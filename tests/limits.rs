//! Limits of the memory and time that a kernel may take on this machine. Each case once aborted, or
//! took minutes.

use std::path::Path;
use std::process::{Command, Output};

const HEAD: &str = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef kernel(x):\n";

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nki-sim"));
    command.args(args).current_dir(folder);
    for name in ["NKI_SIM_MAX_MEMORY", "NKI_SIM_CAPACITY", "NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION"] {
        command.env_remove(name);
    }
    command
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

/// Runs or checks a kernel with this body.
fn perform(how: &str, body: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("temporary directory");
    let indented: String = body.lines().map(|l| format!("    {l}\n")).collect();
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}{indented}")).expect("writable");
    let all: Vec<&str> = [how, "k.py", "--arg", "x=float32[128,512]"].iter().chain(args).copied().collect();
    command(folder.path(), &all).output().expect("runs")
}

/// Runs a kernel with this body, and expects one short error of this kind.
#[track_caller]
fn refused(body: &str, args: &[&str], slug: &str) {
    let out = perform("run", body, args);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("error[{slug}]")) && said.matches("error[").count() == 1, "{said}");
    assert!(out.stderr.len() < 2000, "{} bytes", out.stderr.len());
}

#[test]
fn growth_ends_at_the_limit() {
    let bodies = [
        "a = {}\nfor i in range(10_000_000):\n    a[f\"k{i}\"] = (i, i)",
        "a = set()\nfor i in range(10_000_000):\n    a.add(f\"k{i}\")",
        "a = (1, 2)\nfor i in range(64):\n    a = a + a",
        "a = [1]\nfor i in range(64):\n    a = [*a, *a]",
        "a = [1, 2]\nfor i in range(64):\n    a[1:1] = a",
        "a = 'xy'\nfor i in range(64):\n    a = '%s%s' % (a, a)",
        "a = 'xy' * 40_000_000",
        "a = []\nfor i in range(10_000_000):\n    a.append([i, i])",
        "a = {f'{i}': i for i in range(4_000_000)}",
        "a = list(zip(range(3_000_000), range(3_000_000)))",
        "for i in range(100_000):\n    print('a' * 10_000)",
    ];
    for body in bodies {
        refused(&format!("{body}\nreturn x"), &["--max-memory", "64MB"], "memory-limit");
    }
}

/// A single value becomes too large long before the machine's memory is exhausted.
#[test]
fn a_value_that_doubles_ends_early() {
    for body in [
        "a = [1]\nfor i in range(64):\n    a = a + a",
        "a = (1,)\nfor i in range(64):\n    a = a + a",
        "a = [1]\nfor i in range(64):\n    a.extend(a)",
        "a = [1]\nfor i in range(64):\n    a = a * 2",
        "a = 'x'\nfor i in range(64):\n    a = a + a",
        "a = 'x'\nfor i in range(64):\n    a = f'{a}{a}'",
        "a = list(range(1_000_000_000))",
    ] {
        let out = perform("check", &format!("{body}\nreturn x"), &["--max-memory", "4GB"]);
        let said = text(&out);
        assert!(said.contains("error[memory-limit]: a value of ") && said.contains("the limit is 256.0 MiB"), "{said}");
    }
}

/// Values nested deeper than the stack allows can be dropped.
#[test]
fn nested_values_are_dropped_in_turn() {
    for body in [
        "a = ()\nfor i in range(3_000_000):\n    a = (a,)",
        "a = []\nfor i in range(3_000_000):\n    a = [a]",
        "a = {}\nfor i in range(1_000_000):\n    a = {'a': a}",
        "a = None\nfor i in range(1_000_000):\n    a = lambda b=a: b",
    ] {
        let out = perform("check", &format!("{body}\na = 0\nreturn x"), &[]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    }
}

#[test]
fn dynamic_loops_end_at_the_limit() {
    let body = "t = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)\nfor i in nl.dynamic_range(3_000_000):\n    \
                nisa.memset(t, value=1)\nreturn x";
    refused(body, &["--max-memory", "64MB"], "memory-limit");
    refused(body, &["--max-memory", "64MB", "--no-numerics"], "memory-limit");
}

#[test]
fn reports_that_list_every_statement_need_memory_of_their_own() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let body = "    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\n    for i in range(20_000):\n        \
                nisa.memset(t, value=0.0)\n    return x\n";
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}{body}")).expect("writable");
    let plain = ["run", "k.py", "--arg", "x=float32[8,8]", "--no-numerics", "--max-memory", "24MiB"];
    let out = command(folder.path(), &plain).output().expect("runs");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let out = command(folder.path(), &[&plain[..], &["--json", "r.json"]].concat()).output().expect("runs");
    assert!(
        out.status.code() == Some(1) && text(&out).contains("timeline and reports need 29.3 MiB"),
        "{}",
        text(&out)
    );
}

#[test]
fn device_tensors_are_limited() {
    let hbm = "out = nl.ndarray((10_000, 1_000_000), dtype=nl.float32, buffer=nl.shared_hbm)\nreturn out";
    refused(hbm, &["--max-memory", "8GiB"], "memory-limit");
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}    return x\n")).expect("writable");
    let huge = ["run", "k.py", "--arg", "x=float32[200000,1000000]"];
    let out = command(folder.path(), &huge).output().expect("runs");
    assert!(out.status.code() == Some(1) && text(&out).contains("error[memory-limit]"), "{}", text(&out));
    // Without numerics, nothing of that size is allocated.
    let out = command(folder.path(), &["check", "k.py", "--arg", "x=float32[200000,1000000]"]).output().expect("runs");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
}

#[test]
fn code_outside_of_kernels_is_limited() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = "import nki\na = 'x'\nfor i in range(64):\n    a = a + a\n@nki.jit\ndef kernel(x):\n    return x\n";
    std::fs::write(folder.path().join("k.py"), source).expect("writable");
    let args = ["check", "k.py", "--arg", "x=float32[8,8]", "--max-memory", "64MB"];
    let out = command(folder.path(), &args).output().expect("runs");
    assert!(out.status.code() == Some(1) && text(&out).contains("memory-limit"), "{}", text(&out));
    let args = ["sweep", "k.py", "--grid", "x=float32[8,8]", "--max-memory", "64MB"];
    let out = command(folder.path(), &args).output().expect("runs");
    assert!(out.status.code() == Some(1) && text(&out).contains("memory-limit"), "{}", text(&out));
}

#[test]
fn files_are_measured_before_they_are_read() {
    if !cfg!(target_os = "linux") {
        return;
    }
    refused("c = nl.shared_constant('/dev/zero')\nreturn x", &[], "unreadable-constant");
    let folder = tempfile::tempdir().expect("temporary directory");
    // A sparse file of 1 TiB, with a matching header.
    let mut header = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let dict = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", (1_u64 << 40) - 128);
    header.extend(format!("{dict:<117}\n").bytes());
    let path = folder.path().join("x.npy");
    std::fs::write(&path, &header).expect("writable");
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(1 << 40)).expect("a file with holes");
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}    return x\n")).expect("writable");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.npy")).expect("a link");
    for (args, said) in [
        (["run", "k.py", "--arg", "x=x.npy"], "; the memory limit is"),
        (["run", "k.py", "--arg", "x=zero.npy"], "; the memory limit is"),
        (["run", "k.py", "--expect", "x=x.npy"], "; the memory limit is"),
        (["run", "/dev/zero", "--arg", "x=float32[8,8]"], "it has more than 256.0 MiB"),
    ] {
        let out = command(folder.path(), &args).env("NKI_SIM_MAX_MEMORY", "64MB").output().expect("runs");
        assert!(out.status.code() == Some(2) && text(&out).contains(said), "{args:?}: {}", text(&out));
    }
}

#[test]
fn counts_of_programs_are_limited() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let program = "nkir 1\nkernel k\ntarget trn2\nregisters 4294967295\ncore {\n}\n";
    std::fs::write(folder.path().join("k.nkir"), program).expect("writable");
    let out = command(folder.path(), &["run", "k.nkir"]).output().expect("runs");
    assert!(text(&out).contains("4294967295 registers are too many; the limit is 1048576"), "{}", text(&out));
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn the_limit_comes_from_option_or_variable() {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}    a = 'x' * 30_000_000\n    return x\n")).expect("ok");
    let run = |option: Option<&str>, variable: Option<&str>| {
        let mut all = vec!["check", "k.py", "--arg", "x=float32[8,8]"];
        all.extend(option.iter().flat_map(|o| ["--max-memory", *o]));
        let mut command = command(folder.path(), &all);
        command.envs(variable.map(|v| ("NKI_SIM_MAX_MEMORY", v)));
        command.output().expect("runs").status.code()
    };
    assert_eq!(run(None, None), Some(0));
    assert_eq!((run(Some("16MiB"), None), run(None, Some("16MiB"))), (Some(1), Some(1)));
    assert_eq!(run(Some("1GiB"), Some("16MiB")), Some(0));
    assert_eq!((run(Some("many"), None), run(None, Some("-1"))), (Some(2), Some(2)));
}

#[test]
fn a_sweep_shares_the_limit_and_a_point_beyond_it_harms_no_other() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let body = "    a = 'x'\n    for i in range(n):\n        a = a + a\n    t = nl.ndarray((128, 512), dtype=nl.float32, \
                buffer=nl.sbuf)\n    nisa.dma_copy(dst=t, src=x)\n    return x\n";
    std::fs::write(folder.path().join("k.py"), format!("{}{body}", HEAD.replace("(x)", "(x, n)"))).expect("writable");
    let args = ["sweep", "k.py", "--arg", "x=float32[128,512]", "--grid", "n=1,40,2", "--max-memory", "128MB"];
    let out = command(folder.path(), &args).output().expect("runs");
    let said = text(&out);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("1 point failed") && said.contains("n=40: [memory-limit]"), "{said}");
}

#[test]
fn many_diagnostics_take_little_time_and_space() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = format!("{HEAD}    return x\n{}", "x = = 1\n".repeat(20_000));
    std::fs::write(folder.path().join("k.py"), source).expect("writable");
    let out = command(folder.path(), &["check", "k.py"]).output().expect("runs");
    let said = text(&out);
    assert_eq!(out.status.code(), Some(1));
    assert!(said.contains("... and ") && said.matches("error[").count() == 100, "{}", said.len());

    let body = "    outs = [nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm) for i in range(20_000)]\n    return outs\n";
    std::fs::write(folder.path().join("o.py"), format!("{HEAD}{body}")).expect("writable");
    let out = command(folder.path(), &["run", "o.py", "--arg", "x=float32[8,8]"]).output().expect("runs");
    let said = text(&out);
    assert!(said.contains("00 more findings"), "{} bytes", said.len());

    let body = "    t = nl.ndarray([1] * 100_000, dtype=nl.float32, buffer=nl.sbuf)\n    return x\n";
    std::fs::write(folder.path().join("s.py"), format!("{HEAD}{body}")).expect("writable");
    let out = command(folder.path(), &["run", "s.py", "--arg", "x=float32[8,8]"]).output().expect("runs");
    assert!(text(&out).len() < 10_000 && out.status.code() == Some(1), "{} bytes", text(&out).len());
}

/// Tiles created in a loop without DMA.
const TILES: &str = "
@nki.jit
def products(x, n):
    a = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(n):
        psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=psum[:, 0:128], stationary=a, moving=a)
        s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=s[:, 0:128], src=psum[:, 0:128])
    nisa.dma_copy(dst=out[:, 0:128], src=s[:, 0:128])
    return out

@nki.jit
def copies(x, n):
    s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s[:, 0:128], src=x)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(n):
        t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t[:, 0:128], src=s[:, 0:128])
        s = t
    nisa.dma_copy(dst=out[:, 0:128], src=s[:, 0:128])
    return out

@nki.jit
def dynamic(x, n):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s[:, 0:128], src=x)
    for j in nl.dynamic_range(2):
        for i in range(n):
            t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=t[:, 0:128], src=s[:, 0:128])
            nisa.tensor_copy(dst=s[:, 0:128], src=t[:, 0:128])
    nisa.dma_copy(dst=out[:, 0:128], src=s[:, 0:128])
    return out
";

/// Peak memory of a command in KiB, by Python's `getrusage`.
fn peak(folder: &Path, args: &[&str]) -> u64 {
    let script = "import resource, subprocess, sys\ndone = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n\
                  print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(done.returncode)";
    let out = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_nki-sim")])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("python3 runs");
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    String::from_utf8_lossy(&out.stdout).trim().parse().expect("a number")
}

#[test]
fn dead_tiles_are_freed_in_every_kind_of_loop() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("k.py"), format!("{}{TILES}", HEAD.split("@").next().expect("imports")))
        .expect("writable");
    // 500 MiB of tiles in total, 256 KiB each.
    for kernel in ["products", "copies", "dynamic"] {
        let args = ["run", "k.py", "--kernel", kernel, "--arg", "x=float32[128,128]", "--arg", "n=2000"];
        let peak = peak(folder.path(), &args);
        assert!(peak < 200 * 1024, "{kernel}: {peak} KiB");
    }
}

const OVER: &str = "    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, 16384), dtype=nl.float32, buffer=nl.sbuf) for i in range(6)]
    banks = [nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum) for i in range(10)]
    for i in range(6):
        nisa.memset(tiles[i], value=float(i))
    for i in range(10):
        nisa.memset(banks[i], value=float(i))
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(6):
        nisa.tensor_tensor(dst=t, data1=t, data2=tiles[i][:, 0:512], op=nl.add)
    for i in range(10):
        nisa.tensor_tensor(dst=t, data1=t, data2=banks[i], op=nl.add)
    nisa.dma_copy(dst=out, src=t)
    return out
";

#[test]
fn capacity_can_be_a_warning() {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}{OVER}")).expect("writable");
    let run = |args: &[&str]| {
        let all: Vec<&str> = ["run", "k.py", "--arg", "x=float32[128,512]:ones"].iter().chain(args).copied().collect();
        command(folder.path(), &all).output().expect("runs")
    };
    assert_eq!(run(&[]).status.code(), Some(1));
    let files = ["--json", "r.json", "--csv", "r.csv", "--trace", "r.pftrace", "--html", "r.html", "--out", "."];
    let out = run(&[&["--capacity", "warn"], &files[..]].concat());
    let said = text(&out);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("warning[sbuf-overflow]") && said.contains("warning[psum-overflow]"), "{said}");
    assert!(said.contains("us (not valid: the kernel does not fit into SBUF or PSUM)"), "{said}");
    let read = |name: &str| String::from_utf8_lossy(&std::fs::read(folder.path().join(name)).expect(name)).into_owned();
    assert!(read("r.json").contains("\"latency_valid\": false"));
    assert!(!said.contains("On hardware") && !read("r.json").contains("latency_error"), "{said}");
    assert!(read("r.csv").lines().next().is_some_and(|l| l.ends_with(",latency_valid")));
    assert!(read("r.csv").lines().skip(1).all(|l| l.ends_with(",false")));
    assert!(read("r.pftrace").contains("not valid") && read("r.html").contains("not valid"));
    // 1 + (0 + ... + 5) + (0 + ... + 9)
    let values = std::fs::read(folder.path().join("out.npy")).expect("written");
    assert!(values[values.len() - 128 * 512 * 4..].chunks_exact(4).all(|c| c == 61_f32.to_le_bytes()));

    // Every kind of report tells `compare` so.
    run(&["--capacity", "warn", "--parquet", "tables"]);
    for report in ["r.json", "r.csv", "tables"] {
        let compared = command(folder.path(), &["compare", report, report]).output().expect("runs");
        assert!(text(&compared).contains(&format!("the latency of `{report}` is not valid")), "{}", text(&compared));
    }

    let checked =
        command(folder.path(), &["check", "k.py", "--arg", "x=float32[128,512]", "--capacity", "warn"]).output();
    let checked = checked.expect("runs");
    assert!(checked.status.code() == Some(0) && text(&checked).contains("2 warnings"), "{}", text(&checked));
    let none = run(&["--no-numerics", "--capacity", "warn"]);
    assert!(text(&none).contains("not valid") && text(&none).matches("warning[sbuf-overflow]").count() == 1);
    let mut by_variable = command(folder.path(), &["check", "k.py", "--arg", "x=float32[128,512]"]);
    assert_eq!(by_variable.env("NKI_SIM_CAPACITY", "warn").output().expect("runs").status.code(), Some(0));
    assert_eq!(by_variable.env("NKI_SIM_CAPACITY", "perhaps").output().expect("runs").status.code(), Some(2));
}

#[test]
fn a_kernel_that_fits_has_a_valid_latency_whatever_the_capacity_is() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let body = "    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n    nisa.dma_copy(dst=t, src=x)\n    return x\n";
    std::fs::write(folder.path().join("k.py"), format!("{HEAD}{body}")).expect("writable");
    let run = |extra: &[&str]| {
        let base = ["run", "k.py", "--arg", "x=float32[128,512]", "--json", "/dev/stdout"];
        let all: Vec<&str> = base.iter().chain(extra).copied().collect();
        text(&command(folder.path(), &all).output().expect("runs"))
    };
    assert_eq!(run(&[]), run(&["--capacity", "warn"]));
    assert!(run(&[]).contains("\"latency_valid\": true"));
}

#[test]
fn sweeps_put_points_that_do_not_fit_after_those_that_do() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let body = "    tiles = [nl.ndarray((128, 16384), dtype=nl.float32, buffer=nl.sbuf) for i in range(n)]
    for t in tiles:
        nisa.memset(t, value=0.0)
    for t in tiles:
        for i in range(8 // n):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    return x\n";
    std::fs::write(folder.path().join("k.py"), format!("{}{body}", HEAD.replace("(x)", "(x, n)"))).expect("writable");
    let args =
        ["sweep", "k.py", "--arg", "x=float32[128,512]", "--grid", "n=6,1", "--capacity", "warn", "--csv", "s.csv"];
    let out = command(folder.path(), &args).output().expect("runs");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    assert!(text(&out).contains("(latency not valid: does not fit into SBUF or PSUM)"), "{}", text(&out));
    let csv = std::fs::read_to_string(folder.path().join("s.csv")).expect("written");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].contains("latency_us,latency_valid"));
    assert!(lines[1].starts_with("1,") && lines[1].contains(",true,") && lines[2].contains(",false,"), "{csv}");
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_refused() {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("k.py"), format!("{}    return x\n", HEAD.replace("(x)", "(x, n=1)")))
        .expect("writable");
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.json")).expect("writable");
    let x = ["--arg", "x=float32[4,4]"];
    let with_x = |words: &[&'static str]| [words, &x].concat();
    for (words, what) in [
        (vec!["compare", "zero.json", "zero.json"], "`zero.json` is a device, not a file"),
        (vec!["replay", "/dev/zero"], "`/dev/zero` is a device, not a file"),
        (with_x(&["run", "k.py", "--params", "zero.json"]), "--params `zero.json`: it has more than 256.0 MiB"),
        (
            with_x(&["sweep", "k.py", "--grid", "n=1", "--state", "/dev/full"]),
            "--state `/dev/full`: it is not a regular",
        ),
    ] {
        let out = command(folder.path(), &words).output().expect("runs");
        assert_eq!(out.status.code(), Some(2), "{words:?}: {}", text(&out));
        assert!(text(&out).contains(what), "{words:?}: {}", text(&out));
    }
}

/// The message names a pipe without a writer; the pipe is read as soon as there is a writer.
#[cfg(unix)]
#[test]
fn a_pipe_without_a_writer_is_announced() {
    use std::io::{BufRead as _, BufReader};
    let folder = tempfile::tempdir().expect("temporary directory");
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let mut replay = command(folder.path(), &["replay", "pipe"]);
    let mut child = replay.stderr(std::process::Stdio::piped()).spawn().expect("runs");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut line = || said.next().expect("a line").expect("text");
    assert_eq!(line(), "waiting for a process that writes to `pipe`");
    std::fs::write(folder.path().join("pipe"), "nothing").expect("written");
    assert!(line().contains("`pipe`"));
    assert_eq!(child.wait().expect("ends").code(), Some(2));
}
