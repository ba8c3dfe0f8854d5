//! Mistakes of beginners, and the advice that the message must give.

mod command;

use command::{ADD_ONE, Session};

/// The start of a kernel with two arguments in SBUF, indented by four spaces.
const LOADED: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

# nki-sim: a=float32[128,64] b=float32[128,256]
@nki.jit
def k(a, b):
    ta = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=ta, src=a)
    tb = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tb, src=b)
    out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
";

/// Checks the kernel with this ending.
#[track_caller]
fn check(end: &str, code: i32, slug: &str, advice: &str) {
    let s = Session::new();
    let end: String = end.lines().map(|line| format!("    {line}\n")).collect();
    s.write("k.py", format!("{LOADED}{end}"));
    s.run(&["check", "k.py"]).exits(code).says(&format!("[{slug}]")).says(advice);
}

#[test]
fn a_kernel_without_a_return() {
    check("nisa.dma_copy(dst=out, src=tb)", 0, "dead-store", "the kernel returns nothing: write `return out`");
    let other = "done = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=tb)
nisa.dma_copy(dst=done, src=tb)
return done";
    check(other, 0, "dead-store", "the kernel does not return it: write `return out`");
    let on_chip = "nisa.tensor_copy(dst=tb, src=tb)\nnisa.memset(dst=ta, value=1.0)";
    check(on_chip, 0, "dead-store", "remove the instruction, or check that the instruction meant");
}

#[test]
fn an_output_that_every_iteration_overwrites() {
    let end = "for i in range(2):\n    nisa.dma_copy(dst=out, src=tb)\nreturn out";
    check(end, 0, "overwritten-before-read", "index `out` with the loop variable");
}

#[test]
fn half_of_the_work_on_one_core() {
    let end = "nisa.dma_copy(dst=out[nl.ds(nl.program_id(0) * 64, 64)], src=tb[0:64])\nreturn out";
    check(end, 0, "output-partly-written", "the second core writes the other");
    check(end, 0, "output-partly-written", "launch the kernel on two cores: kernel[2](...), or --lnc 2");
}

#[test]
fn a_row_is_not_broadcast_over_partitions() {
    let end = "row = nl.ndarray((1, 256), dtype=b.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=row, src=b[0:1])
nisa.tensor_tensor(dst=tb, data1=tb, data2=row, op=nl.add)";
    check(end, 1, "partition-mismatch", "`data2` has 1 partition, `dst` has 128");
    check(end, 1, "partition-mismatch", "src=row.ap([[0, 128], [1, 256]])");
}

#[test]
fn operands_of_a_matmul() {
    let product = |shape: &str, memory: &str, operands: &str| {
        format!(
            "p = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.{memory})\nnisa.nc_matmul(dst=p, {operands})\nreturn a"
        )
    };
    let in_sbuf = product("(64, 256)", "sbuf", "stationary=ta, moving=tb");
    check(&in_sbuf, 1, "operand-memory", "make the tile with buffer=nl.psum");
    let transposed = product("(128, 256)", "psum", "stationary=ta[0:64], moving=tb");
    check(&transposed, 1, "partition-mismatch", "`stationary` is [K, M] and `moving` [K, N]");
    let chained = "p = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=ta, moving=tb)
q = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=q, stationary=ta[0:64], moving=p)";
    check(chained, 1, "operand-memory", "= help: copy the tile to SBUF with nisa.tensor_copy first");
    check(chained.split_once("q =").expect("two parts").0, 0, "dead-store", "remove the instruction");
    let stored = format!("{}nisa.dma_copy(dst=out[0:64], src=p)", chained.split_once("q =").expect("two parts").0);
    check(&stored, 1, "operand-memory", "neither DMA nor GpSimd reaches PSUM");
}

#[test]
fn names_that_no_import_binds() {
    check("print(np.pi)", 1, "undefined-name", "write `import numpy as np` at the top of the file");
    check("print(math.pi)", 1, "undefined-name", "write `import math` at the top of the file");
    let s = Session::new();
    for (import, names) in [
        ("import nki.language as nl", ["import nki.language as nl", "import nki.isa as nisa"]),
        (
            "import neuronxcc.nki.language as nl",
            ["import neuronxcc.nki.language as nl", "import neuronxcc.nki.isa as nisa"],
        ),
    ] {
        let nki = if import.contains("neuronxcc") { "import neuronxcc.nki as nki" } else { "import nki" };
        for (name, advice) in ["nl", "nisa"].into_iter().zip(names) {
            s.write("k.py", format!("{nki}\n\n@nki.jit\ndef k():\n    print({name})\n"));
            s.run(&["check", "k.py"]).exits(1).says(&format!("write `{advice}` at the top of the file"));
        }
    }
}

#[test]
fn what_numpy_has_and_a_tensor_has_not() {
    check("print(ta.T)", 1, "unknown-attribute", "nisa.nc_transpose swaps partitions and elements");
    check("print(ta.astype(nl.bfloat16))", 1, "unknown-attribute", "nisa.tensor_copy(dst=new, src=old) converts");
    check("print(ta.sum())", 1, "unknown-attribute", "nisa.tensor_reduce");
    check("print(ta.shap)", 1, "unknown-attribute", "did you mean `shape`?");
    for dtype in ["np.float64", "float"] {
        let end = format!("import numpy as np\nt = nl.ndarray((128, 4), dtype={dtype}, buffer=nl.sbuf)");
        check(&end, 1, "unsupported-dtype", "float32 is its widest type");
    }
}

#[test]
fn a_script_of_calls_is_no_kernel() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("calls.py", "import numpy as np\nfrom k import add_one\n\nadd_one(np.ones((16, 8), np.float32))\n");
    s.run(&["run", "calls.py"]).exits(2).says("runs with `python calls.py`").says("if __name__ == \"__main__\":");
}

#[test]
fn the_example_call_has_the_arguments_of_the_run_line() {
    let s = Session::new();
    let kernel = ADD_ONE
        .replace("amount=1.0", "amount")
        .replace("@nki.jit", "# nki-sim: x=bfloat16[64,32] amount=2.5\n@nki.jit");
    s.write("k.py", kernel);
    s.run(&["run", "k.py", "--arg", "x=float32[64,32]"])
        .exits(2)
        .says("example:   nki-sim run k.py --arg 'x=float32[64,32]' --arg amount=2.5");
}
