//! Values of intermediates, and the remaining command-line options that pass text to other
//! programs.

mod command;

use command::{ADD_ONE, Session};

/// Adds in bfloat16 what float32 would keep: the second instruction is the first one that differs.
const ROUNDED: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

# nki-sim: x=float32[64,32]:uniform
@nki.jit
def rounded(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(3):
        low = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=low, data=t, op0=nl.add, operand0=1.0)
        nisa.tensor_copy(dst=t, src=low)
    nisa.dma_copy(dst=out, src=t)
    return out
";

/// The data of an array file.
fn floats(bytes: &[u8]) -> Vec<f32> {
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..].chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

#[test]
fn a_dump_is_the_tensor_as_an_execution_leaves_it() {
    let s = Session::new();
    s.write("k.py", ROUNDED);
    let read = |name: &str| std::fs::read(s.path(name)).expect("written");
    let dump = |spec: &str| s.run(&["run", "k.py", "--out", ".", "--dump", spec]);
    for spec in ["t@10=first.npy", "t@14:0=second.npy", "t@k.py:14=last.npy", "low@13:2=low.npy"] {
        dump(spec).exits(0);
    }
    assert_eq!(floats(&read("last.npy")), floats(&read("out.npy")));
    let close = |a: f32, b: f32| (a - b).abs() < 0.02;
    for ((first, second), last) in
        floats(&read("first.npy")).into_iter().zip(floats(&read("second.npy"))).zip(floats(&read("out.npy")))
    {
        assert!(close(first + 1.0, second) && close(first + 3.0, last), "{first} {second} {last}");
    }
    let low = read("low.npy");
    assert!(
        String::from_utf8_lossy(&low).contains("'<V2'")
            && low.ends_with(&read("last.npy")[read("last.npy").len() - 2..])
    );
    // The run computes the same values as without them.
    let before = read("out.npy");
    s.run(&["run", "k.py", "--out", "."]).exits(0);
    assert_eq!(before, read("out.npy"));
}

#[test]
fn unwritten_memory_reads_as_the_variable_says() {
    let s = Session::new();
    s.write(
        "k.py",
        "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    half = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(half[0:64, :], value=1.0)
    moving = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=moving, src=x)
    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, half, moving)
    count = nl.ndarray((128, 512), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(count[:, 0:256], value=1)
    res = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=res, data1=acc, data2=count, op=nl.add)
    nisa.dma_copy(dst=out, src=res)
    return out
",
    );
    let run = |value: &str, precise: &str| {
        let mut command = s.command(&["run", "k.py", "--arg", "x=float32[128,512]:ones", "--out", "."]);
        command::Ran::from(
            command.env("NKI_SIM_UNWRITTEN", value).env("NKI_PRECISE_FP", precise).output().expect("runs"),
        )
    };
    for precise in ["1", "0"] {
        run("nan", precise).exits(0).says("warning[uninitialized-output]");
        assert!(floats(&std::fs::read(s.path("out.npy")).expect("written")).iter().all(|v| v.is_nan()));
        run("zero", precise).exits(0).says("warning[uninitialized-read]");
        let out = floats(&std::fs::read(s.path("out.npy")).expect("written"));
        assert!(out.chunks_exact(512).all(|row| row[..256] == [65.0; 256] && row[256..] == [64.0; 256]));
    }
    run("perhaps", "1").exits(2).says("`perhaps` is neither nan nor zero");
}

#[test]
fn a_dump_that_cannot_be_made_says_why() {
    let s = Session::new();
    s.write("k.py", ROUNDED);
    for (spec, code, says) in [
        ("t@13=t.npy", 2, "line 13 writes `low`"),
        ("t@2=t.npy", 2, "no instruction at line 2 writes a tensor"),
        ("t@14:3=t.npy", 2, "writes `t` 3 times; iterations are 0 to 2"),
        ("t=t.npy", 2, "expected NAME@LINE"),
        ("t@10=k.py", 2, "would overwrite the kernel's file"),
        ("t@10=none/t.npy", 2, "there is no directory"),
    ] {
        s.run(&["run", "k.py", "--dump", spec]).exits(code).says(says);
        assert!(!s.path("t.npy").exists());
    }
    s.run(&["run", "k.py", "--dump", "t@10=t.npy", "--no-numerics"]).exits(2);
}

#[test]
fn a_mismatch_names_the_first_instruction_that_departs_from_fp32() {
    let s = Session::new();
    s.write("exact.py", ROUNDED.replace("bfloat16", "float32"));
    s.run(&["run", "exact.py", "--out", "."]).exits(0);
    s.write("k.py", ROUNDED);
    let ran = s.run(&["run", "k.py", "--expect", "out=out.npy", "--json", "run.json"]).exits(1);
    let ran = ran.says("first departs from fp32 at k.py:13 (i=0): tensor_scalar writes `low` (bfloat16)");
    ran.says("op0=add operand0=1");
    let report = std::fs::read_to_string(s.path("run.json")).expect("written");
    assert!(
        report.contains("\"first_departure\"") && report.contains("\"instruction\": \"tensor_scalar\""),
        "{report}"
    );
    // With a tolerance for the rounding, nothing differs; and a wrong formula is not reported as a
    // rounding error.
    s.run(&["run", "k.py", "--expect", "out=out.npy", "--rtol", "0.05"]).exits(0).keeps_quiet_about("departs");
    s.write("wrong.py", ROUNDED.replace("bfloat16", "float32").replace("operand0=1.0", "operand0=2.0"));
    let ran = s.run(&["run", "wrong.py", "--expect", "out=out.npy"]).exits(1);
    ran.says("no instruction departs from fp32 by more than the tolerance");
}

#[test]
fn shells_and_manuals_get_the_grammar() {
    let s = Session::new();
    for (shell, says) in
        [("bash", "complete -F _nki__sim"), ("zsh", "#compdef nki-sim"), ("fish", "complete -c nki-sim")]
    {
        s.run(&["completions", shell]).exits(0).says(says).says("parquet");
    }
    s.run(&["completions", "dash"]).exits(2);
    s.run(&["man"]).exits(0).says(".TH nki-sim 1").says("whatif");
    s.run(&["man", "run"]).exits(0).says(".TH nki-sim-run 1").says("critical\\-path");
    s.run(&["man", "walk"]).exits(2).says("no subcommand is called `walk`").says("compare");
}

#[test]
fn colours_are_chosen() {
    let s = Session::new();
    s.write("k.py", ADD_ONE.replace("x.shape, dtype=x.dtype, buffer=nl.sbuf", "x.shap, dtype=x.dtype, buffer=nl.sbuf"));
    let check = |color: &[&str]| s.run(&[&["check", "k.py", "--arg", "x=float32[8,8]"][..], color].concat()).exits(1);
    check(&["--color", "always"]).says("\u{1b}[");
    check(&["--color", "never"]).keeps_quiet_about("\u{1b}[");
    check(&[]).keeps_quiet_about("\u{1b}[");
    s.run(&["--color", "sometimes", "check", "k.py"]).exits(2);
}

#[test]
fn a_program_without_a_file_goes_to_standard_output() {
    let s = Session::new();
    s.write("k.py", ADD_ONE.replace("    t = nl", "    print('made')\n    t = nl"));
    let ran = s.run(&["lower", "k.py", "--arg", "x=float32[64,32]"]).exits(0);
    assert!(ran.stderr.contains("made") && !ran.stdout.contains("made"), "{}{}", ran.stdout, ran.stderr);
    s.run(&["lower", "k.py", "--arg", "x=float32[64,32]", "-o", "k.nkir"]).exits(0);
    assert_eq!(ran.stdout, std::fs::read_to_string(s.path("k.nkir")).expect("written"));
}

#[test]
fn parameters_and_columns_are_explained() {
    let s = Session::new();
    s.run(&["explain", "dma.engines"]).exits(0).says("trn2: 16").says("documented");
    s.run(&["explain", "Instruction.opcode"]).exits(0).says("MATMUL").keeps_quiet_about("OpcodeSummary");
    s.run(&["explain", "opcode"]).exits(0).says("OpcodeSummary.opcode").says("Instruction.opcode");
    s.run(&["explain", "ActiveTime"]).exits(0).says("ActiveTime.duration_ns (int64, nanoseconds)");
    s.run(&["explain", "dma.engine"])
        .exits(2)
        .says("no diagnostic, name of the API")
        .says("did you mean `dma.engines`?");
}

/// The titles of the page's tables, the columns of the CSV file, and the keys of the lists in the
/// JSON report.
#[test]
fn every_column_of_every_report_is_explained() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&["run", "k.py", "--arg", "x=float32[64,32]", "--csv", "r.csv", "--json", "r.json"]).exits(0);
    let csv = std::fs::read_to_string(s.path("r.csv")).expect("written");
    let mut names: Vec<String> = csv.lines().next().expect("header").split(',').map(str::to_owned).collect();
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(s.path("r.json")).expect("written")).expect("JSON");
    for list in ["lines", "opcodes", "remedies", "stalls"] {
        let rows = json[list].as_array().unwrap_or_else(|| panic!("no {list}"));
        assert!(!rows.is_empty(), "{list} is empty");
        names.extend(rows.iter().flat_map(|row| row.as_object().expect("an object").keys().cloned()));
    }
    names.extend(json["remedies"].as_array().expect("a list").iter().map(|r| r["kind"].as_str().expect("text").into()));
    let page = include_str!("../sim/src/report/html/tables.js");
    let titles = page
        .split("title: \"")
        .chain(page.split("timeColumn(\"").filter_map(|call| call.split_once(", \"").map(|c| c.1)));
    let titles: Vec<&str> = titles.skip(1).filter_map(|rest| rest.split('"').next()).collect();
    // Names of tabs start with a capital letter.
    names.extend(
        titles
            .iter()
            .filter(|t| !["Lines", "Instructions", "Events", "Tensors", "Engines", "Causes"].contains(t))
            .map(|t| (*t).to_owned()),
    );
    assert!(
        titles.len() > 40 && names.contains(&"utilisation".to_owned()) && names.contains(&"waits".to_owned()),
        "{titles:?}"
    );
    names.extend(["waits: limiter".to_owned(), "split-dma".to_owned(), "earlier-loads".to_owned()]);
    names.sort();
    names.dedup();
    for name in names {
        s.run(&["explain", &name]).exits(0).says(&format!("# {name}").replace("# waits: ", "# "));
    }
}

#[test]
fn names_of_the_api_and_causes_are_explained() {
    let s = Session::new();
    for (name, says) in [
        ("nl.softmax", "nl.softmax(x, axis=-1, dtype=None) -> NkiTensor"),
        ("nki.language.gelu", "x Phi(x)"),
        ("NkiTensor.reshape", "# nl.NkiTensor.reshape"),
        ("tensor.ap", "| `indirect_dim` | int | 0 |"),
        ("nl.NkiTensor", "`flatten_dims()`"),
        ("nisa.engine", "`gpsimd`"),
        ("nl.bfloat16", "2 bytes"),
        ("nl.tile_size.pmax", "trn2: 128"),
        ("dma-bandwidth", "shares the DMA engines"),
        ("nki.collectives.rank_id", "VirtualRegister"),
        ("depends_on", "nisa.NkiInstruction.depends_on"),
    ] {
        s.run(&["explain", name]).exits(0).says(says);
    }
    // Both have this name.
    s.run(&["explain", "reciprocal"]).exits(0).says("# nisa.reciprocal").says("# nl.reciprocal");
    s.run(&["explain", "nl.reciprocal"]).exits(0).keeps_quiet_about("# nisa.reciprocal");
    s.run(&["explain", "nl.softmx"]).exits(2).says("did you mean `nl.softmax`?");
    s.run(&["explain", "nl.nc_matmul"]).exits(2).says("did you mean");
    s.run(&["explain"]).exits(0).says("nl.NkiTensor.permute").says("causes of stalls:");
}
