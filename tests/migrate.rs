//! `nki-sim migrate`: both versions of a kernel give the same bits.

mod command;

use std::path::Path;

use command::Session;

/// Runs a kernel and returns its outputs by name.
fn outputs(s: &Session, file: &str, kernel: &str, args: &[&str]) -> Vec<(String, Vec<u8>)> {
    let folder = format!("out-{kernel}-{}", file.replace(['/', '.'], "-"));
    let mut words = vec!["run", file, "--kernel", kernel, "--out", &folder];
    for arg in args {
        words.extend(["--arg", arg]);
    }
    s.run(&words).exits(0);
    let mut found: Vec<(String, Vec<u8>)> = std::fs::read_dir(s.path(&folder))
        .expect("outputs")
        .map(|e| e.expect("entry").path())
        .map(|p| (p.file_name().expect("name").to_string_lossy().into_owned(), std::fs::read(&p).expect("readable")))
        .collect();
    found.sort();
    std::fs::remove_dir_all(s.path(&folder)).expect("removable");
    found
}

#[track_caller]
fn same(file: &str, code: i32, kernels: &[(&str, &[&str])]) {
    let s = Session::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    let old = old.to_str().expect("UTF-8");
    s.run(&["migrate", old, "--output", "new.py"]).exits(code);
    for (kernel, args) in kernels {
        let (before, after) = (outputs(&s, old, kernel, args), outputs(&s, "new.py", kernel, args));
        assert!(!before.is_empty(), "{kernel}");
        for ((name, a), (_, b)) in before.iter().zip(&after) {
            assert!(a == b, "{kernel}: {name} differs");
        }
        assert_eq!(before.len(), after.len(), "{kernel}");
    }
}

#[test]
fn mechanical_changes_keep_every_bit() {
    same(
        "migrate/kernels.py",
        0,
        &[
            ("ragged", &["x=float32[300,1100]", "y=float32[300,1100]"]),
            ("ragged", &["x=float32[128,512]", "y=bfloat16[128,512]"]),
            ("ragged", &["x=float32[1,513]", "y=float32[1,513]"]),
            ("generated", &["x=float32[3,2,128,64]"]),
            ("parts", &["x=float32[128,64]"]),
            ("product", &["lhs_t=float32[256,96]", "rhs=float32[256,200]"]),
            ("sums_of_products", &["a=float32[64,64]", "b=float32[64,64]"]),
        ],
    );
}

#[test]
fn reductions() {
    same(
        "migrate/reductions.py",
        0,
        &[
            ("masked", &["x=float32[200,50]"]),
            ("masked", &["x=float32[64,64]"]),
            ("of_three_axes", &["x=float32[64,40]"]),
            ("of_two_axes", &["x=float32[64,40]"]),
            ("of_middle_axes", &["x=float32[64,40]"]),
            ("of_four_axes", &["x=float32[64,40]"]),
            ("of_numpy", &["x=float32[64,40]"]),
        ],
    );
}

#[test]
fn numbers() {
    same(
        "migrate/numbers.py",
        0,
        &[
            ("choices", &["x=float32[64,32]"]),
            ("numpy_numbers", &["x=float32[64,32]"]),
            ("mean_of_integers", &["x=int32[64,32]:arange"]),
            ("both_repeat", &["x=float32[64,1]", "y=float32[1,32]"]),
            ("double_rows", &["x=float8_e4m3[128,2,128]", "y=float8_e4m3[128,2,512]"]),
            ("in_parts", &["x=float32[64,32]"]),
        ],
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let s = Session::new();
    let old = "\u{feff}import neuronxcc.nki as nki, neuronxcc.nki.language as nl\n@nki.jit\ndef k(x):\n    \
               o = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)\n    nl.store(o, nl.exp(nl.load(x)))\n    return o\n";
    s.write("old.py", old);
    s.run(&["migrate", "old.py", "--output", "new.py"]).exits(0);
    let x = ["x=float32[8,8]"];
    assert_eq!(outputs(&s, "old.py", "k", &x), outputs(&s, "new.py", "k", &x));
}

#[test]
fn what_has_no_mechanical_replacement_is_announced() {
    let s = Session::new();
    let head = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n@nki.jit\ndef k(x):\n";
    for (body, said) in [
        ("c = [1]\n    c.t = nl.load(x)\n    r = nl.exp(c.t)", "a new tile in a list, dict or object"),
        ("d = {}\n    d['a'] = nl.load(x)\n    r = nl.exp(d['a'])", "a new tile in a list, dict or object"),
        ("d = [None] * 4\n    d[1] = nl.load(x)\n    r = nl.exp(d[1])", "a new tile in a list, dict or object"),
        (
            "r = nl.zeros((8, 8), dtype=nl.float32)\n    for i in nl.static_range(8):\n        r[i, 0] = i * 5",
            "may start at any number",
        ),
        (
            "t = nl.ndarray((8, 4, 16), dtype=nl.float32, buffer=nl.sbuf)\n    t[...] = nl.load(x)\n    r = t - nl.max(t, axis=2)",
            "nl.subtract of tiles with 3 and 2 dimensions",
        ),
    ] {
        s.write("old.py", format!("{head}    {body}\n    o = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)\n    nl.store(o, r)\n    return o\n"));
        s.run(&["migrate", "old.py"]).exits(1).says(said);
    }
}

#[test]
fn comparisons_and_rows() {
    let kernels: &[(&str, &[&str])] =
        &[("comparisons", &["x=float32[64,32]"]), ("rows", &["x=float32[64,32]", "y=float32[1,32]"])];
    same("migrate/truths.py", 0, kernels);
}

#[test]
fn statements_of_a_match() {
    let x = "x=float32[64,32]";
    let kernels: &[(&str, &[&str])] = &[
        ("matched", &[x, "mode='exp'"]),
        ("matched", &[x, "mode='sum'"]),
        ("matched", &[x, "mode=2"]),
        ("matched", &[x, "mode='none'"]),
        ("helped", &[x, "y=float32[64,32]"]),
    ];
    same("migrate/flow.py", 0, kernels);
}

#[test]
fn definitions_that_go_from_one_line_leave_one_statement() {
    let s = Session::new();
    let old = "import neuronxcc.nki.language as nl\ndef f(n):\n    \
               i = nl.arange(n)[:, None]; j = nl.arange(n)[None, :]\n    return n\n\
               if True: i = nl.arange(4)[:, None]; j = nl.arange(4)[None, :]\n";
    s.write("old.py", old);
    let ran = s.run(&["migrate", "old.py"]).exits(0);
    assert!(ran.stdout.contains("def f(n):\n    return n\nif True: pass\n"), "{}", ran.stdout);
}

#[test]
fn a_name_that_is_bound_again_keeps_its_operand() {
    let args: &[&str] = &["x=float32[64,64]", "y=float32[64,64]"];
    same("migrate/rebound.py", 0, &[("elementwise", &["t=float32[64,64]", "u=float32[64,64]"]), ("shapes", args)]);
}

#[test]
fn operands_in_another_form() {
    same(
        "migrate/operands.py",
        0,
        &[
            ("permuted", &["x=float32[64,64]"]),
            ("convolution", &["x=float32[16,9,9]", "w=float32[3,16,32]"]),
            ("transposes", &["x=float32[100,60]"]),
            ("in_psum", &["x=float32[64,64]", "y=float32[64,64]"]),
            ("types", &["x=float32[64,64]", "y=float32[64,1]"]),
            ("on_one_line", &["x=float32[64,64]", "y=float32[64,64]"]),
            ("named_slices", &["x=float32[64,64]", "w=float32[4,64]"]),
            ("chosen", &["x=float32[64,64]"]),
            ("called_once", &["x=float32[64,64]"]),
        ],
    );
}

#[test]
fn calls_of_functions_in_operands_are_not_repeated() {
    let s = Session::new();
    let old = "from neuronxcc import nki\nimport neuronxcc.nki.isa as nisa\nimport neuronxcc.nki.language as nl\n\
               def f(t):\n    return t\n@nki.jit\ndef k(x):\n    t = nl.load(x)\n    \
               a = nisa.tensor_scalar(f(t)[:, 0:4], nl.add, 1.0)\n    return a\n";
    s.write("old.py", old);
    let ran = s.run(&["migrate", "old.py"]);
    assert_eq!(ran.stdout.matches("f(t)").count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("f_1 = f(t)\n"), "{}", ran.stdout);
}

#[test]
fn code_of_the_host_stays() {
    same("migrate/host.py", 0, &[("kernel", &["x=float32[64,32]", "y=float32[64,32]"])]);
    let s = Session::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrate/host.py");
    let ran = s.run(&["migrate", old.to_str().expect("UTF-8")]).exits(0);
    for kept in [
        "IS_TRN1 = nisa.get_nc_version() < nisa.nc_version.gen3\n",
        "    if nisa.get_nc_version() >= nisa.nc_version.gen3:\n",
        "    sizes: Sizes = Sizes()\n    rows: int = 64\n",
        "        return self.rows - step\n",
        "    return a[0] * b if a[0] > b else a[1] + b\n",
        "    return largest(a.shape, 2) * b\n",
        "    weight: object = None\n",
        "def first(*tiles, rows: int):\n",
        "def kernel(x, y):\n",
    ] {
        assert!(ran.stdout.contains(kept), "`{kept}` is not in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("nt."), "{}", ran.stdout);
}

#[test]
fn names_that_the_current_package_does_not_have_are_left_to_do() {
    let s = Session::new();
    let text = "import neuronxcc.nki as nki\nfrom neuronxcc.nki._private import utilities\n\
                from neuronxcc.nki._private_kernels.mlp import mlp_kernel\n@nki.jit\ndef k(x):\n    return x\n";
    s.write("old.py", text);
    let ran = s.run(&["migrate", "old.py"]).exits(1);
    ran.says("in place of utilities").says("in place of mlp_kernel");
}

#[test]
fn integers_are_promoted() {
    let args: &[&str] = &["x=int8[128,16]", "y=uint8[128,16]"];
    same(
        "migrate/integers.py",
        1,
        &[("known", args), ("unknown", args), ("unknown", &["x=uint32[128,16]", "y=int32[128,16]"])],
    );
    let s = Session::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrate/integers.py");
    let ran = s.run(&["migrate", old.to_str().expect("UTF-8")]).exits(1);
    let listed: Vec<&str> = ran.stderr.lines().filter(|l| l.contains("by hand: ")).collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].contains("nl.multiply of a tile and an int") && listed[1].contains("nl.divide of two tiles"));
}

#[test]
fn kernels_of_files_with_work_left_run_where_nothing_of_theirs_is_left() {
    same(
        "beta1/values.py",
        1,
        &[
            ("softmax_rows", &["x=float32[256,192]"]),
            ("accumulate", &["lhs_t=float32[384,96]", "rhs=float32[384,256]"]),
            ("accumulate", &["lhs_t=bfloat16[128,128]", "rhs=bfloat16[128,512]"]),
            ("kept_names", &["x=float32[128,64]"]),
            ("zeros_and_sums", &["x=float32[128,128]"]),
            ("operators", &["x=float32[128,96]", "y=float32[128,96]", "scale=0.5"]),
            ("widened", &["x=float32[128,700]"]),
            ("streams", &["a=float32[512]", "b=float32[512]"]),
            ("attention", &["q=float32[128,128]", "k=float32[128,128]", "v=float32[128,128]"]),
        ],
    );
    same(
        "beta1/indices.py",
        1,
        &[
            ("strides", &["x=float32[64,32]"]),
            ("transposing_load", &["x=float32[100,60]"]),
            ("as_blocks", &["x=float32[128,64]"]),
            ("completed", &["x=float32[64,24]"]),
            ("transposed", &["x=float32[200,36]"]),
        ],
    );
    same(
        "beta1/tables.py",
        1,
        &[
            ("blocked_matmul", &["lhs=float32[256,384]", "rhs=float32[384,320]"]),
            ("row_maxima", &["x=float32[5,96,48]"]),
        ],
    );
}

const OLD: &str = "\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    r = nl.exp(t, mask=nl.arange(64)[:, None] >= 3)  # from row 3
    nl.store(out, r)
    return out
";

#[test]
fn each_construct_is_one_line_and_inputs_stay() {
    let s = Session::new();
    s.write("old.py", OLD);
    let ran = s.run(&["migrate", "old.py"]).exits(1);
    assert!(ran.stderr.contains("old.py:8:5: t = nl.load(x) -> t = nl.ndarray(x.shape"), "{}", ran.stderr);
    assert!(ran.stderr.contains("old.py:9:24: by hand: ") && ran.stderr.contains("start the slice"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("1 left to do by hand\n"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("nisa.dma_copy(dst=t, src=x)") && ran.stdout.contains("# from row 3"),
        "{}",
        ran.stdout
    );
    s.run(&["migrate", "old.py", "-o", "old.py"]).exits(2).says("would overwrite");
    s.run(&["migrate", "old.py", "-o", "nowhere/new.py"]).exits(2).says("there is no directory");
    assert_eq!(std::fs::read_to_string(s.path("old.py")).expect("readable"), OLD);
    s.run(&["migrate", "missing.py"]).exits(2).says("missing.py");
    s.write("broken.py", "def k(:\n");
    s.run(&["migrate", "broken.py", "-o", "new.py"]).exits(1).says("syntax-error");
    assert!(!s.path("new.py").exists(), "nothing is written");
    s.write("new_already.py", "import nki\n");
    let ran = s.run(&["migrate", "new_already.py"]).exits(0).says("nothing of neuronxcc.nki");
    assert_eq!(ran.stdout, "import nki\n");
}

#[test]
fn old_calls_under_the_new_name() {
    let s = Session::new();
    s.write(
        "mixed.py",
        "import nki
from nki import isa as nisa
import nki.language as nl

@nki.jit
def double(x):
    i = nl.arange(64)[:, None]
    j = nl.arange(8)[None, :]
    out = nl.ndarray((64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nisa.tensor_scalar(nl.load(x[i, j]), nl.multiply, 2.0)
    nl.store(out[i, j], value=t)
    return out
",
    );
    s.run(&["migrate", "mixed.py"]).exits(0).says("mixed.py: nothing of neuronxcc.nki (--beta1 also reads");
    s.run(&["migrate", "mixed.py", "--beta1", "-o", "new.py"]).exits(0).says("nothing is left to do by hand");
    let new = std::fs::read_to_string(s.path("new.py")).expect("readable");
    assert!(new.starts_with("import nki\nfrom nki import isa as nisa\nimport nki.language as nl\n\n"), "{new}");
    s.run(&["run", "new.py", "--arg", "x=float32[64,8]", "--deny", "warnings"]).exits(0);
}

#[test]
fn what_means_something_else_is_left_to_do() {
    let cases = [
        ("    i = nl.program_id(0)", "nl.program_id of a launch grid"),
        ("    t = nl.ndarray((128,), dtype=nl.float32, buffer=nl.sbuf)", "two dimensions, (partitions, 1)"),
        ("    t = nl.zeros(shape=(nl.par_dim(128),), dtype=nl.float32)", "two dimensions, (partitions, 1)"),
        ("    t = nl.zeros((4, 128, 8), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0))", "address="),
        ("    t = nl.load(x, mask=nl.arange(64)[:, None] >= 3)", "start the slice where the mask begins"),
        ("    t = nl.load(x[rows, nl.arange(8)[None, :]])", "vector_offset=index"),
        ("    t = nl.load_transpose2d(x, mask=m)", "mask="),
        ("    nisa.dma_copy(dst=x, src=x, dst_rmw_op=np.add)", "nisa.dma_compute"),
        ("    p = nl.nc(2)", "kernel[lnc]"),
        ("    p = nisa.nc_matmul(rows, rows, mask=nl.arange(64)[:, None] < 9)", "the contraction"),
        ("    t = nl.load(x.reshape((64, 4, 4)))\n    t = nl.sum(t, axis=1, keepdims=True)", "t.permute((0, 2, 1))"),
        ("    t = nl.load(x)\n    t = nl.sum(t, axis=1)", "a tile that may have more than 2 dimensions"),
        ("    t = nl.load(x)\n    t = nisa.tensor_reduce(np.add, t, axis=[1])", "t.permute((0, 2, 1))"),
        ("    t = nl.multiply(nl.load(x), nl.load(m))", "one may be of a single partition"),
        ("    t = nl.rms_norm(nl.exp(rows), nl.load(m), axis=1, n=1)", "of an expression and a row"),
        ("    t = [nl.load(x[0:64, i:i + 1]) for i in range(4)]", "an instruction in a comprehension"),
        ("    t = ~nl.load(x)", "nl.logical_not(t, dtype=nl.uint8) of a comparison"),
        ("    return rows", "a tile as the output"),
        ("    t = nl.load(x[7].reshape((1, 8)).broadcast_to((64, 8)))", "broadcast_to of a tensor in HBM"),
        ("    t = nl.exp(rows) if m else nl.load(x)", "an `if` statement, with the instruction in its body"),
        ("    a, (b, n) = rows, (m, 2)\n    t = a if n else b\n    t = t + 1.0", "an operator on what may be a tile"),
        (
            "    n = 0\n    for i in nl.affine_range(4):\n        n += 8\n    t = nl.load(x[0:n])",
            "each iteration started with the value from before the loop",
        ),
        (
            "    for i in nl.affine_range(4):\n        t = nl.load(x[0:n])\n        return x",
            "a `return` behind the loop",
        ),
        ("    t = nl.load(m)\n    t = t / 2", "dtype=nl.float32 if the tile is of integers"),
        (
            "    t = nl.zeros((64, 8), nl.bfloat16, buffer=nl.psum)\n    t += nisa.nc_matmul(rows, rows)",
            "accumulate in a tile of float32",
        ),
        (
            "    t = nl.zeros((64, 8), nl.bfloat16, buffer=nl.psum)\n    t += nl.matmul(rows, rows, transpose_x=True)",
            "accumulate in a tile of float32",
        ),
        (
            "    t, n = nl.zeros((64, 8), dtype=nl.bfloat16, buffer=nl.psum), 1\n    t += nisa.nc_matmul(rows, rows)",
            "accumulate in a tile of float32",
        ),
        (
            "    i = nl.arange(64)[:, None, None]\n    j = nl.arange(4)[None, None, :]\n    \
             t = nl.add(rows, nl.sum(m, axis=2, keepdims=True), mask=j < 3)",
            "bound the slice",
        ),
        (
            "    n = 3\n    i = n + nl.arange(8)[:, None]\n    n = 4\n    t = nl.load(x[i, nl.arange(8)[None, :]])",
            "index tile",
        ),
    ];
    for (body, text) in cases {
        let s = Session::new();
        let head = "import neuronxcc.nki as nki\nimport neuronxcc.nki.compiler as ncc\nimport neuronxcc.nki.isa as nisa\n\
                    import neuronxcc.nki.language as nl\nimport numpy as np\n@nki.jit\ndef k(x, m):\n    rows = nl.load(x[0:64, 0:1])\n";
        s.write("old.py", format!("{head}{body}\n    return x\n"));
        let ran = s.run(&["migrate", "old.py"]).exits(1);
        assert!(ran.stderr.contains("by hand: ") && ran.stderr.contains(text), "{body}:\n{}", ran.stderr);
    }
}

#[test]
fn hosts_call_the_kernel() {
    let s = Session::new();
    let old = "import neuronxcc.nki as nki\nfrom neuronxcc.nki import baremetal, simulate_kernel\nimport neuronxcc.nki.language as nl\n\
               @nki.jit(mode=\"baremetal\")\ndef k(x):\n    return x\n\
               def main(a):\n    one = baremetal(k, save_neff_name=\"f.neff\")(a)\n    two = simulate_kernel(k, a)\n    \
               three = nki.baremetal()(k)(a)\n    nki.benchmark(warmup=1)(k)(a)\n    k[4, 2](a)\n";
    s.write("old.py", old);
    let ran = s.run(&["migrate", "old.py"]).exits(1).says("report has the latency").says("a launch grid");
    for text in ["@nki.jit\ndef k", "one = k(a)", "two = nki.simulate(k)(a)", "three = k(a)"] {
        assert!(ran.stdout.contains(text), "`{text}` is not in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("import neuronxcc") && !ran.stdout.contains("from neuronxcc"), "{}", ran.stdout);
}

#[test]
fn accumulators_need_no_zeros() {
    let s = Session::new();
    for target in ["acc", "acc[...]", "acc[:, :]", "acc[i_p, i_f]", "acc[0:64, 0:32]"] {
        let old = format!(
            "from neuronxcc import nki\nimport neuronxcc.nki.language as nl\n@nki.jit\ndef product(a, b):\n    \
             out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)\n    \
             i_p, i_f = nl.arange(64)[:, None], nl.arange(32)[None, :]\n    \
             acc = nl.zeros((64, 32), dtype=nl.float32, buffer=nl.psum)\n    \
             for k in nl.affine_range(2):\n        \
             {target} += nl.matmul(nl.load(a[k]), nl.load(b[k]), transpose_x=True)\n    \
             nl.store(out[i_p, i_f], acc[i_p, i_f])\n    return out\n"
        );
        s.write("old.py", &old);
        s.run(&["migrate", "old.py", "--output", "new.py"]).exits(0);
        let (a, b) = ("a=float32[2,128,64]", "b=float32[2,128,32]");
        let ran = s.run(&["run", "new.py", "--kernel", "product", "--arg", a, "--arg", b]).exits(0);
        assert!(!ran.stderr.contains("foreign-accumulation"), "{target}: {}", ran.stderr);
        assert_eq!(outputs(&s, "old.py", "product", &[a, b]), outputs(&s, "new.py", "product", &[a, b]));
    }
}

#[test]
fn a_new_file_is_utf8_and_keeps_the_line_ends() {
    let s = Session::new();
    let old = "# -*- coding: latin-1 -*-\r\n# caf\u{e9}\r\nfrom neuronxcc import nki\r\nimport neuronxcc.nki.language as nl\r\n\
               @nki.jit\r\ndef copy(a):\r\n    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\r\n    \
               nl.store(out, nl.load(a))\r\n    return out\r\n";
    s.write("old.py", old.chars().map(|c| c as u8).collect::<Vec<u8>>());
    s.run(&["migrate", "old.py", "--output", "new.py"]).exits(0);
    let new = std::fs::read_to_string(s.path("new.py")).expect("UTF-8");
    assert!(new.starts_with("# -*- coding: utf-8 -*-\r\n# caf\u{e9}\r\n"), "{new}");
    assert!(new.contains("import nki.isa") && new.matches('\n').count() == new.matches("\r\n").count(), "{new:?}");
    assert_eq!(
        outputs(&s, "old.py", "copy", &["a=float32[128,4]"]),
        outputs(&s, "new.py", "copy", &["a=float32[128,4]"])
    );
}
