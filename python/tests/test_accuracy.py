"""The parts of tools/accuracy.py that need no simulator: groups, formulas, pairs, fits, arguments, and the information in benchmarks."""

import ast
import math
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import accuracy_bench
import accuracy_errors
import accuracy_fit
import accuracy_groups
import accuracy_inputs
import accuracy_neuronxcc
import accuracy_ports
import accuracy_report
import accuracy_rows


def tensor(name, *shape, dtype="float32"):
    return {"name": name, "shape": list(shape), "dtype": dtype}


BLOCKED = {
    "id": "b",
    "kernel": "matmul.py",
    "family": "matmul",
    "api": "beta2",
    "hw": "trn2",
    "latency_us": 1000.0,
    "params": {"TILES_IN_BLOCK_M": 1, "TILES_IN_BLOCK_N": 2, "TILES_IN_BLOCK_K": 4},
    "inputs": [tensor("lhsT", 4096, 512), tensor("rhs", 4096, 1024)],
}


def result(name, measured, predicted, lineage="one", group="g"):
    return {
        "id": name,
        "group": group,
        "lineage": lineage,
        "pair_margin": 0.03,
        "measured_us": measured,
        "predicted_us": predicted,
        "ideal_us": measured / 2,
        "ideal_plus_us": measured / 2 + 10,
        "features": {
            "target": "trn2", "cores": 1, "indirect_dma": False, "ranks": 0, "tensor_share": 0.5, "dma_share": 0.25,
        },
    }  # fmt: skip


# --- groups and formulas


def test_groups_come_from_the_fields_of_a_row():
    group = accuracy_groups.group_of
    assert group(BLOCKED) == "matmul K4096 M512 N1024"
    assert group(BLOCKED | {"kernel": "feed-forward block"}) == "bf16 feed-forward"
    assert group(BLOCKED | {"stat": "one capture, total_time of the graph"}) == "matmuls in graphs"
    assert group(BLOCKED | {"api": "beta1-nl"}) == "beta-1 matmul"
    moe = {"family": "moe", "api": "beta2", "hw": "trn2", "inputs": [tensor("inp", 1, 8)]}
    assert group(moe) == "fused MoE bf16"
    assert group(moe | {"inputs": [tensor("expert_indices", 1, 8, dtype="int32")]}) == "sparse MoE"
    assert group(moe | {"hw": "trn3"}) == "trn3"
    attention = {"family": "attention", "api": "beta2", "hw": "trn2"}
    assert group(attention | {"inputs": [tensor("q", 128, 64)]}) == "single-head attention"
    assert group(attention | {"inputs": [tensor("q", 128, 8, 64)]}) == "multi-head attention"
    assert group(attention | {"inputs": [tensor("q", 128, 8, 64), tensor("K_cache", 1, 1, 640, 128)]}) == "attention decode"


def test_formulas():
    # 4096 x 512 x 1024 multiplications in 128 x 128 lanes at 2.4 GHz, four cycles each.
    tensor_us = 4096 * 512 * 1024 * 4 / 128**2 / 2.4e3
    formulas = accuracy_groups.formulas(BLOCKED, 1, 435200, 1)
    assert formulas["ideal_us"] == pytest.approx(tensor_us)
    assert formulas["ideal_plus_us"] == pytest.approx(tensor_us + 10 + 0.03)
    # A kernel without a matrix product: operations and bytes of both cores.
    decode = {"family": "moe", "hw": "trn2", "inputs": [tensor("inp", 1, 8, dtype="bfloat16")]}
    assert accuracy_groups.formulas(decode, 0, 870400, 2)["ideal_us"] == pytest.approx(1)


def test_pairs_are_of_one_lineage_and_further_apart_than_the_margin():
    rows = [result("a", 100, 100), result("b", 102, 90), result("c", 110, 105), result("d", 200, 50, "other")]
    # a-b is within the margin; a-c and b-c count.
    assert accuracy_groups.pairs(rows) == (2, 2)
    assert accuracy_groups.pairs([*rows, result("e", 120, 101)]) == (4, 5)
    # Equal predictions do not count as ordered.
    assert accuracy_groups.pairs([result("a", 100, 7), result("b", 200, 7)]) == (0, 1)


def test_figures_of_a_group():
    g = accuracy_groups.judged([result("a", 100, 110.1), result("b", 100, 95), result("c", 100, 99)])
    assert (g["median"], g["worst"], g["bias"]) == pytest.approx((0.05, 0.101, -0.01))
    assert g["within"] == pytest.approx(2 / 3)
    assert accuracy_groups.quantile([1, 2, 3, 4, 5], 0.9) == pytest.approx(4.6)
    assert "66.7% of 3" in accuracy_report.share((2, 3))


def test_rows_that_did_not_run_have_no_group():
    ran, failed = result("a", 100, 110), result("b", 100, None) | {"reason": "no source"}
    groups = accuracy_groups.by_group([ran, failed])
    assert groups["g"]["model"]["rows"] == 1
    assert "left out, 1: no source (b)" in accuracy_report.summary([ran, failed], groups)


# --- rows


def test_how_a_row_was_timed():
    measure = lambda stat: accuracy_rows.measure_of({"stat": stat})
    assert measure("runtime device benchmark, mean of 2000 iterations; NOT explorer total_time") == "device"
    assert measure("nki.benchmark p50 nc_latency") == "device"
    assert measure("median of 5 neuron-explorer captures, total_time") == "profile"
    assert measure("bar of the plot (label = total_time), one device profile after 10 warm-ups") == "profile"


def test_rows_of_quality_d_are_left_out(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"id": "a", "quality": "A-"}\n\n{"id": "d", "quality": "D"}\n')
    assert [r["id"] for r in accuracy_rows.read(file)] == ["a"]


def test_ports_follow_the_kernel_of_a_row():
    row = {"id": "x", "kernel": "V5", "inputs": [tensor(n, 128, 64) for n in "qkv"]}
    file, kernel, arguments = accuracy_ports.port(row)
    assert (file, kernel) == ("single_head.py", "v5") and arguments(row)[0] == "q=float32[128,64]"
    block = BLOCKED | {"kernel": "feed-forward block"}
    assert accuracy_ports.port(block)[2](block)[3:] == ["w_down=float32[1024,4096]", "m=1", "n=2", "k=4"]
    assert accuracy_ports.port(BLOCKED) is None


# --- kernels for neuronxcc.nki

OLDER = """
import neuronxcc.nki as nki

@nki.jit
def add_tiled(a):
    WIDTH = 2
    return WIDTH

@nki.jit
def add_tiled_bad(a):
    WIDTH = 2

@nki.jit
def gelu(y):
    pass
"""


def test_a_row_names_a_kernel_by_its_words():
    kernels = ["add_tiled", "add_tiled_bad", "gelu"]
    named = accuracy_neuronxcc.kernel_named
    assert [named("add_tiled", kernels), named("tiled_bad", kernels), named("gelu entry", kernels)] == ["add_tiled", "add_tiled_bad", None]
    assert named("whatever", ["only"]) == "only"


def test_a_row_s_settings_are_constants_of_its_kernel(tmp_path):
    file = tmp_path / "sources" / "k.py"
    file.parent.mkdir()
    file.write_text(OLDER)
    row = {"kernel_fn": "add_tiled", "params": {"WIDTH": 64, "M": 5}}
    [(copy, kernel, tensors)] = accuracy_neuronxcc.launches(row, file, ["add_tiled", "add_tiled_bad", "gelu"], tmp_path)
    assert kernel == "add_tiled" and tensors is None
    assert copy.read_text().count("WIDTH = 64") == 1 and copy.read_text().count("WIDTH = 2") == 1
    assert accuracy_neuronxcc.launches(row | {"params": {}}, file, ["add_tiled"], tmp_path)[0][0] == file
    assert accuracy_neuronxcc.launches({"kernel_fn": "none"}, file, ["add_tiled", "gelu"], tmp_path) is None


def test_the_launches_of_a_product_and_its_activation():
    row = {"kernel_fn": "baseline", "inputs": [tensor("x", 256, 512), tensor("w", 512, 1024)]}
    product, activation = accuracy_neuronxcc.gemm_and_gelu(row)
    assert product == ("gemm_kernel", {"lhsT": ([512, 256], "float32"), "rhs": ([512, 1024], "float32"), "bias": ([1, 1024], "float32")})
    assert activation == ("gelu_kernel", {"y": ([256, 1024], "float32")})
    assert accuracy_neuronxcc.gemm_and_gelu(row | {"kernel_fn": "fused_pwl"})[0][0] is None


def test_a_code_block_of_a_trace_is_the_last_one_before_the_line(tmp_path):
    trace = tmp_path / "trace.py"
    trace.write_text("C(C(code='one',\nscore=1),\ncode='two',\nscore=2)\n")
    block = lambda line: accuracy_neuronxcc.code_block(trace, line, tmp_path)
    assert block(2).read_text().endswith("one") and block(4).read_text().endswith("two") and block(1) is None
    row = {"source": "ucb-bar/autocomp:examples/t.py:54", "kernel": "code block ending before line 54 of the trace file"}
    assert accuracy_neuronxcc.traced_block(row) == ("examples/t.py", 54)


def test_flags_are_those_of_the_row_or_of_the_harness():
    flags = accuracy_neuronxcc.compiler_flags
    assert flags({"stat": "p50, --disable-dge"}) == flags({"source": "zhang677/AccelOpt:x.csv"}) == ["--disable-dge"]
    assert flags({"stat": "p50", "source": "a/b"}) == []


def test_where_only_ratios_count_a_family_has_one_factor():
    ratios = [result(n, m, p, group="r") | {"ratios": True} for n, m, p in (("a", 100, 200), ("b", 200, 400), ("c", 300, 900))]
    rows = accuracy_groups.with_scales([*ratios, result("d", 100, 150) | {"ratios": False}])
    assert [round(accuracy_groups.error(r), 3) for r in rows] == [0, 0, 0.5, 0.5]
    assert accuracy_groups.is_ratio({"source": "Jerry2423/kda-for-trainium:x"}) and not accuracy_groups.is_ratio({"source": "a/b"})


def test_a_kernel_is_in_the_work_tree_or_in_the_commit_that_the_row_names(tmp_path):
    repository = tmp_path / "sources" / "kernels"
    (repository / "src").mkdir(parents=True)
    git = lambda *words: subprocess.run(["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True, text=True).stdout
    git("init", "-q")
    (repository / "src" / "old.py").write_text("x = 1")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "HEAD").strip()[:7]
    (repository / "src" / "old.py").rename(repository / "src" / "new.py")
    folder = tmp_path / "workspace"
    folder.mkdir()
    workspace = accuracy_rows.Workspace(tmp_path / "sources", folder)
    locate = lambda text: accuracy_rows.locate({"kernel": text, "url": "https://github.com/owner/kernels"}, workspace)[0]
    assert locate("src/new.py (branch x)") == folder / "kernels" / "src" / "new.py"
    assert locate(f"src/old.py@{commit}").read_text() == "x = 1"
    with pytest.raises(accuracy_rows.CannotRun, match="no source: kernels/src/none.py"):
        locate(f"src/none.py@{commit}")


# --- arguments

SOURCE = """
def kernel(
    hidden,     # [B, H] bf16
    w,          # [H, D] = [64, 32] bf16, transposed
    scale,      # [D=32, 1] fp32
    ids,        # [1, 4]
    mask,       # [2*H, B] bf16, 0 or -1e9
    more=None,
):
    pass
"""


def definition(source):
    return ast.parse(source).body[0]


def test_shapes_of_a_signature():
    stated = accuracy_inputs.documented(definition(SOURCE), SOURCE)
    assert accuracy_inputs.documented(definition(SOURCE), SOURCE, {"hidden": ([3, 64], "bfloat16")})["mask"] == ([128, 3], "bfloat16")
    assert stated == {"w": ([64, 32], "bfloat16"), "scale": ([32, 1], "float32"), "ids": ([1, 4], None)}


def test_a_row_s_shape_takes_the_order_of_axes_of_the_signature(tmp_path):
    row = {"inputs": [tensor("hidden", 1, 64), tensor("w", 32, 64), tensor("ids", 1, 4, dtype="int32")], "notes": "ids=[[5, 6, 7, 8]]"}
    shapes = accuracy_inputs.tensors(row, definition(SOURCE), SOURCE, tmp_path / "none.py")
    assert shapes["w"] == ([64, 32], "float32") and shapes["scale"] == ([32, 1], "float32") and "more" not in shapes
    assert shapes["mask"] == ([128, 1], "bfloat16")
    assert accuracy_inputs.indices(row, "ids", shapes) == [5, 6, 7, 8]


def test_index_inputs_are_distinct():
    shapes = {"w": ([16, 64, 64], "bfloat16"), "expert_indices": ([2, 8], "int32"), "K_cache": ([4, 640, 2], "bfloat16"), "position": ([1], "int32")}
    experts = accuracy_inputs.indices({}, "expert_indices", shapes)
    assert all(len(set(experts[token : token + 8])) == 8 for token in (0, 8)) and max(experts) < 16
    assert accuracy_inputs.indices({}, "position", shapes) == [320]


def test_a_file_of_indices(tmp_path):
    numpy = pytest.importorskip("numpy")
    accuracy_inputs.npy(tmp_path / "a.npy", [2, 3], "int32", [1, 2, 3, 4, 5, -6])
    read = numpy.load(tmp_path / "a.npy")
    assert read.dtype == numpy.int32 and read.tolist() == [[1, 2, 3], [4, 5, -6]]


BENCH = """
import os, torch, numpy as np
from benchmark import wrap_benchmark
from kernel_a import inner
os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = "trn3"
P = 128

@nki.jit
def wrapper(x, w, ids):
    return inner(x, w, ids)

kernel = wrap_benchmark(wrapper[2], warmup=5)
rng = np.random.default_rng(0)
w = torch.from_numpy((rng.standard_normal((4 * P, 8)) * 0.1).astype(np.float32)).bfloat16()
w = w.reshape(4, P, 8).permute(0, 2, 1).reshape(-1, P).contiguous()
kernel((torch.randn(2, P)[:1]).to(torch.bfloat16), w, torch.tensor([[3]], dtype=torch.int32))
open("/never", "w")
"""


def test_the_arguments_of_a_benchmark(tmp_path):
    bench = tmp_path / "bench_a.py"
    bench.write_text("import nki\n" + BENCH)
    called = accuracy_bench.call(bench, "wrapper", ["x", "w", "ids"])
    assert called == {"x": ([1, 128], "bfloat16"), "w": ([32, 128], "bfloat16"), "ids": ([1, 1], "int32")}
    assert accuracy_bench.call(bench, "another", ["x"]) is not None  # the first kernel that is called
    bench.write_text("raise SystemExit")
    assert accuracy_bench.call(bench, "wrapper", []) is None


def test_the_benchmark_beside_a_kernel(tmp_path):
    (tmp_path / "kernel_a.py").write_text("def inner(x, w, ids): pass\n")
    (tmp_path / "kernel_b.py").write_text("")
    both = "from kernel_a import inner\nimport kernel_b\n"
    (tmp_path / "bench_0.py").write_text(both + 'os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = "trn3"')
    (tmp_path / "bench_a.py").write_text("import nki\n" + BENCH)
    (tmp_path / "test_a.py").write_text("import kernel_a")
    kernel = tmp_path / "kernel_a.py"
    assert accuracy_bench.beside(kernel, "trn3").name == "bench_a.py"
    assert accuracy_bench.beside(tmp_path / "bench_a.py", "trn3") is None
    folder = tmp_path / "run"
    folder.mkdir()
    path, name, own, _, bench = accuracy_rows.entry(kernel, "inner_*", "trn3", folder)
    assert (name, bench.name) == ("wrapper", "bench_a.py")
    text = path.read_text()
    assert "P = 128" in text and "wrap_benchmark(" not in text and (folder / "kernel_a.py").exists()
    assert accuracy_rows.cores_of({"lnc": 2}, path, name, bench) == 2
    assert accuracy_rows.cores_of({"lnc": 2}, kernel, "inner", None) == 1


# --- fits


class Runs:
    """Rows whose latency is a + b * size."""

    def __init__(self, a, b):
        sizes = {f"r{i}": 10.0 * (i + 1) for i in range(6)}
        self.sizes = sizes
        self.rows = {n: result(n, a + b * s, 1.0, group=f"g{i // 2}") | {"log": math.log(a + b * s)} for i, (n, s) in enumerate(sizes.items())}
        self.calls = 0

    def concerns(self, parameter, name):
        return True

    def latencies(self, settings, names=None):
        values = {p.name: v for p, v in settings}
        names = list(self.rows) if names is None else names
        self.calls += len(names)
        return {n: values["a"] + values["b"] * self.sizes[n] for n in names}


class Parameter:
    def __init__(self, name, low, high):
        self.name, self.low, self.high = name, low, high

    at = accuracy_fit.Parameter.at


def test_a_fit_finds_the_parameters_with_and_without_a_group():
    chosen, told = [Parameter("a", 1, 64), Parameter("b", 0.5, 8)], []
    runs = Runs(a=chosen[0].at(17), b=chosen[1].at(9))
    fit = accuracy_fit.fits(runs, chosen, None, told.append)
    assert fit["in_view"]["values"] == pytest.approx({"a": chosen[0].at(17), "b": chosen[1].at(9)}, rel=0.25)
    one = runs.calls
    # A row that no fit can explain does not change the fit to the other rows.
    runs.rows["r5"]["log"] += 2
    runs.rows["r5"]["measured_us"] *= math.exp(2)
    fit = accuracy_fit.fits(runs, chosen, "all", told.append)
    folds = {f["group"]: f for f in fit["left_out"]["folds"]}
    assert set(folds) == {"g0", "g1", "g2"} and folds["g2"]["loss"] < folds["g0"]["loss"]
    assert {r["id"] for r in fit["left_out"]["rows"]} == set(runs.rows)
    assert runs.calls < 3 * one
    with pytest.raises(ValueError, match="no row that runs has such a group"):
        accuracy_fit.folds(runs.rows, "nothing")


def test_parameters_have_a_range():
    chosen = accuracy_fit.parameters(["tensor.clock_ghz=1:4"])
    assert (chosen[0].low, chosen[0].high) == (1, 4) and chosen[0].at(12) == pytest.approx(2, rel=1e-3)
    with pytest.raises(ValueError, match="no timing parameter"):
        accuracy_fit.parameters(["nothing"])
    with pytest.raises(ValueError, match="0 < LO < HI"):
        accuracy_fit.parameters(["tensor.clock_ghz=4:1"])


# --- the table of errors


def test_the_table_of_errors():
    tomllib = pytest.importorskip("tomllib")
    rows = [result("a", 100, 110), result("b", 100, 80), *(result(f"c{i}", 100, 101, group="h") for i in range(10))]
    whole = tomllib.loads(accuracy_errors.text(rows))
    table = [*whole["group"], whole["other"]]
    assert [(g.get("name"), g["rows"]) for g in table] == [("g", 2), ("h", 10), (None, 12)]
    assert table[0]["error_90"] == pytest.approx(math.log(100 / 80), abs=1e-4)
    assert table[1]["error_90"] == pytest.approx(math.log(1.01), abs=1e-4)
    assert table[2]["error_90"] == pytest.approx(math.log(100 / 80), abs=1e-4)
    assert table[0]["indirect_dma"] is False and table[0]["target"] == "trn2"
