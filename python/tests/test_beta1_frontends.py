"""Kernels of `neuronxcc.nki` that Python executes: the same programs as those of the evaluator, also where the older compiler read the source
of a kernel."""

import importlib
import importlib.util
import re
import sys
import types

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nki_sim

from conftest import ROOT

BETA1 = ROOT / "tests" / "beta1"


def module_of(path):
    spec = importlib.util.spec_from_file_location(f"beta1_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = list(module_of(BETA1 / "cases.py").cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_kernels_of_the_repository(case, both_frontends):
    kernel = getattr(module_of(BETA1 / case["file"]), case["kernel"])
    kernel = kernel if isinstance(kernel, nki_sim.Kernel) else nki.jit(kernel)
    if "programs" in case:
        # Like `--programs nc2*2,2` on the command line.
        factors = [part.split("*") for part in case["programs"].split(",")]
        extents = [[nl.nc(int(one[2:])) if one.startswith("nc") else int(one) for one in part] for part in factors]
        kernel = kernel[tuple(nl.spmd_dim(*extent) for extent in extents)]
    kernel.compile(**case["args"])
    assert both_frontends == [case["kernel"]]


X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


@nki.jit
def numbers_do_not_add_up(x):
    """The body of an affine_range is evaluated once, that of a static_range in each iteration."""
    out = nl.ndarray((4, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    offset, steps, factor = 0, 0, 1.0
    for i in nl.affine_range(2):
        factor += 2.0
        nl.store(out[i], nl.load(x) * factor + offset)
        offset += 100
    for i in nl.static_range(2):
        steps += 10
        nl.store(out[2 + i], nl.load(x) + steps)
    return out


def test_numbers_of_a_body_that_is_read_once(both_frontends):
    got = np.asarray(numbers_do_not_add_up(X))
    np.testing.assert_array_equal(got, np.stack([X * 3, X * 3, X + 10, X + 20]))
    assert both_frontends


@nki.jit
def loops_of_a_match(x, mode):
    """Loops in a `match` statement are evaluated once, too."""
    out = nl.ndarray((3, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    offset = 0
    match mode:
        case "affine":
            for i in nl.affine_range(3):
                offset += 10
                nl.store(out[i], nl.load(x) + offset)
        case _:
            for i in nl.static_range(3):
                offset += 10
                nl.store(out[i], nl.load(x) + offset)
    return out


@pytest.mark.parametrize("mode, added", [("affine", [10, 10, 10]), ("static", [10, 20, 30])])
def test_loops_of_a_match(both_frontends, mode, added):
    np.testing.assert_array_equal(np.asarray(loops_of_a_match(X, mode)), np.stack([X + n for n in added]))
    assert both_frontends


@nki.jit
def cast_tile(x):
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    nl.store(out, nl.static_cast(nl.load(x), nl.int32))
    return out


def test_a_tile_that_is_cast(both_frontends):
    np.testing.assert_array_equal(np.asarray(cast_tile(X)), X.astype(np.int32))
    assert both_frontends


@nki.jit
def rebound_tile(x):
    """Each iteration starts with the tile from before the loop."""
    out = nl.ndarray((5, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile, count, known = nl.load(x), 1, nl.load(x)
    for i in nl.affine_range(2):
        nl.store(out[i], tile)
        for j in nl.sequential_range(2):
            known = known + 1.0
        tile = nl.exp(tile)
        count = count + 1
    nl.store(out[2], nl.load(x) + count)
    held = nl.load(x)
    for i in nl.static_range(2):
        held = held + 1.0
        nl.store(out[3 + i], held)
    return out


def test_a_tile_that_a_loop_rebinds(both_frontends):
    np.testing.assert_array_equal(np.asarray(rebound_tile(X)), np.stack([X, X, X + 2, X + 1, X + 2]))
    assert both_frontends


@nki.jit
def used_after_the_loop(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for i in nl.affine_range(1):
        tile = nl.exp(tile)
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("frontend", ["parser", "tracer"])
def test_a_tile_of_a_loop_that_has_ended(frontend, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
    with pytest.raises(nki_sim.KernelError, match="tile of a loop that has ended"):
        used_after_the_loop(X)


@nki.jit
def axes_of_products(x, w):
    """A product of several free axes fills a tile of these axes; operands of one element are repeated."""
    out = nl.ndarray((64, 4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
    weights, tile = nl.load(w), nl.load(x)
    total = nl.zeros((64, 4, 6), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(2):
        total += nisa.nc_matmul(weights, tile[:, i : i + 4, 0:6])
    part = nl.ndarray((64, 6, 8), dtype=x.dtype, buffer=nl.sbuf)
    part[:, 1:5, 2:8] = nisa.nc_matmul(weights, tile[:, 0:4, 0:6])
    scaled = nisa.tensor_tensor(total, weights[0:64, 0:1], op=nl.multiply)
    row = nl.ndarray((64, 1, 6), dtype=x.dtype, buffer=nl.sbuf)
    row[...] = nl.copy(part[:, 1, 2:8])
    nl.store(out, nisa.tensor_tensor(scaled, row, op=nl.add))
    return out


def test_axes_of_products(both_frontends):
    rng = np.random.default_rng(7)
    x, w = rng.integers(-8, 8, (96, 6, 8)).astype(np.float32), rng.integers(-8, 8, (96, 64)).astype(np.float32)
    product = [np.einsum("km,khw->mhw", w, x[:, i : i + 4, 0:6]) for i in range(2)]
    want = (product[0] + product[1]) * w[:64, 0:1, None] + product[0][:, 0:1, :]
    np.testing.assert_array_equal(np.asarray(axes_of_products(x, w)), want)
    assert both_frontends


@nki.jit
def captured_number(x):
    """The number is in a cell, because a function reads it."""
    out = nl.ndarray((3, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    step = 1.0

    def current():
        return step

    for i in nl.sequential_range(3):
        nl.store(out[i], nl.load(x) + current())
        step += 1.0
    return out


def test_a_number_that_a_function_reads(both_frontends):
    np.testing.assert_array_equal(np.asarray(captured_number(X)), np.stack([X + 1] * 3))
    assert both_frontends


@nki.jit
def reduced_over_a_loop(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=x.dtype)
    for i in nl.affine_range(3):
        tile = nl.load(x) * (i + 1)
        total = nl.loop_reduce(tile, op=np.add, loop_indices=[i])
    nl.store(out, total)
    return out


def test_a_reduction_over_a_loop(both_frontends):
    np.testing.assert_array_equal(np.asarray(reduced_over_a_loop(X)), X * 6)
    assert both_frontends


@nki.jit
def in_place(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    other = tile
    tile += 1.0
    tile *= 2.0
    tile[:, 0:32] -= 3.0
    count = 1
    count += 1
    nl.store(out, other + count)
    return out


def test_operators_in_place_change_the_tile(both_frontends):
    want = (X + 1) * 2
    want[:, :32] -= 3
    np.testing.assert_array_equal(np.asarray(in_place(X)), want + 2)
    assert both_frontends


@nki.jit
def returns_in_a_loop(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        for j in nl.sequential_range(2):
            nl.store(out[i, :, j * 32 : j * 32 + 32], nl.load(x[i, :, j * 32 : j * 32 + 32]) * 2)
            return out


def test_a_loop_that_is_read_once_goes_on_after_return(monkeypatch):
    for frontend in ("parser", "tracer"):
        x = np.arange(4 * 128 * 64, dtype=np.float32).reshape(4, 128, 64)
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
        np.testing.assert_array_equal(np.asarray(returns_in_a_loop(x)), x * 2)
        np.testing.assert_array_equal(np.asarray(returns_in_a_loop(x + 1)), x * 2 + 2)


@nki.jit
def by_program(x):
    out = nl.ndarray((4, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0)
    print("program", i)
    nl.store(out[i], nl.load(x) * (i + 1))
    return out


@pytest.mark.parametrize("grid", [4, nl.nc(2) * 2, 2 * nl.nc(2)], ids=["one core", "two cores", "in turn"])
def test_a_grid_runs_every_program(grid, both_frontends, capsys):
    np.testing.assert_array_equal(np.asarray(by_program[grid](X)), np.stack([X * k for k in (1, 2, 3, 4)]))
    assert both_frontends
    assert capsys.readouterr().out.splitlines().count("program 0") == 1


def test_a_grid_for_other_cores_is_refused(both_frontends):
    kernel = by_program[nl.nc(2) * 2]._with(_lnc=1)
    with pytest.raises(nki_sim.KernelError) as caught:
        kernel(X)
    assert caught.value.slug == "launch-grid"


@nki.jit
def scaled(tile, by):
    return nl.multiply(tile, by)


@nki.jit
def calls_a_kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, scaled(nl.load(x), 4.0))
    return out


def test_a_kernel_in_a_kernel(both_frontends):
    np.testing.assert_array_equal(np.asarray(calls_a_kernel(X)), X * 4)
    assert set(both_frontends) == {"calls_a_kernel"}


def written(tmp_path, monkeypatch, name, text):
    """Writes a module that Python can import once."""
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)


def two_languages(tmp_path, monkeypatch):
    """A module for the current language, and one for `neuronxcc.nki` that uses it."""
    current = "import nki.isa as nisa\nimport nki.language as nl\n\ndef doubled(tile):\n    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)\n"
    older = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from in_the_current_language import doubled

@nki.jit
def both(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x) + 1.0
    doubled(tile)
    tile += 1.0
    nl.store(out, tile)
    return out
"""
    written(tmp_path, monkeypatch, "in_the_current_language", current)
    written(tmp_path, monkeypatch, "in_the_older_language", older)
    return importlib.import_module("in_the_older_language").both


def test_each_module_has_its_language(tmp_path, monkeypatch, both_frontends):
    np.testing.assert_array_equal(np.asarray(two_languages(tmp_path, monkeypatch)(X)), (X + 1) * 2 + 1)
    assert both_frontends


def test_names_from_the_other_language_do_not_choose_it(tmp_path, monkeypatch, both_frontends):
    """`from nki.language import ...` of single names, in a file whose modules are those of `neuronxcc.nki`."""
    text = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from nki.language import bfloat16 as low

@nki.jit
def rounded(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.arange(x.shape[0])[:, None], nl.arange(x.shape[1])[None, :]
    nl.store(out[i, j], nl.copy(nl.load(x[i, j]), dtype=low) * 2.0)
    return out
"""
    written(tmp_path, monkeypatch, "with_a_name", text)
    import ml_dtypes

    expected = X.astype(ml_dtypes.bfloat16).astype(np.float32) * 2
    np.testing.assert_array_equal(np.asarray(importlib.import_module("with_a_name").rounded(X)), expected)
    assert both_frontends


def test_a_file_of_both_languages(tmp_path, monkeypatch, both_frontends):
    """Each kernel has the language whose modules it uses, here a port next to the original."""
    text = """import neuronxcc.nki as older
import neuronxcc.nki.language as onl
import nki
import nki.isa as nisa
import nki.language as nl

@older.jit
def original(x):
    out = onl.ndarray(x.shape, dtype=x.dtype, buffer=onl.shared_hbm)
    i, j = onl.arange(x.shape[0])[:, None], onl.arange(x.shape[1])[None, :]
    onl.store(out[i, j], helper(onl.load(x[i, j])))
    return out

def helper(tile):
    return tile * 2.0 + 1.0

@nki.jit
def port(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
    written(tmp_path, monkeypatch, "of_both_languages", text)
    module = importlib.import_module("of_both_languages")
    for kernel in (module.original, module.port, module.original, nki.benchmark(module.original)):
        got = kernel(X)
        assert got is None or np.array_equal(np.asarray(got), X * 2 + 1)
    assert both_frontends


def test_without_source_text():
    """Only Python can run it: its source text is not available."""
    text = "def kernel(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    t = nl.load(x)\n    t += 1.0\n    nl.store(out, t)\n    return out\n"
    scope = {"nl": nl, "nisa": nisa, "nki": nki}
    code = compile(text, "<no text>", "exec")
    exec(code, scope)
    np.testing.assert_array_equal(np.asarray(nki.jit(scope["kernel"])(X)), X + 1)


def tiles_of(x, width):
    for start in range(0, x.shape[1], width):
        yield start, nl.load(x[:, start : start + width])


class Scale:
    def __init_subclass__(cls, factor=1.0):
        cls.factor = factor


class Twice(Scale, factor=2.0):
    pass


@nki.jit
def only_python(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, tile in tiles_of(x, 32):
        nl.store(out[:, start : start + 32], tile * types.MappingProxyType({"by": Twice.factor})["by"])
    return out


def test_what_only_python_can_run():
    np.testing.assert_array_equal(np.asarray(only_python(X)), X * 2)


def test_the_variable_chooses_the_frontend(monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    with pytest.raises(nki_sim.KernelError):
        only_python(X[:, :32].copy())


def blocks_of(page):
    """The kernels of a page of tests/pages: (line, title, arguments, source text)."""
    lines = (ROOT / "tests" / "pages" / page).read_text().splitlines()
    title, arguments, block = None, {}, None
    for number, line in enumerate(lines, 1):
        if line == "```python":
            block = []
        elif line == "```":
            yield number - len(block), title, arguments, "\n".join(block)
            arguments, block = {}, None
        elif block is not None:
            block.append(line)
        elif line.startswith("args: "):
            for word in line.removeprefix("args: ").split():
                name, dtype, shape = re.fullmatch(r"(\w+)=(\w+)\[([\d,]+)\]", word).groups()
                arguments[name] = np.zeros([int(n) for n in shape.split(",")], dtype)
        elif line and not line.startswith("flags: "):
            title = line


OLDER_MANUAL = list(blocks_of("older_manual.md"))

# docs/beta1.md names the differences: Python compares no annotation, calls nothing of the API on the host but `nl.arange`, and knows
# extents of grids everywhere.
ONLY_THE_EVALUATOR = ("err_annotation_shape_mismatch", "err_nki_api_outside_of_nki_kernel", "A grid within a kernel")


@pytest.mark.parametrize("block", OLDER_MANUAL, ids=lambda block: f"line {block[0]}")
def test_errors_of_the_older_manual(block, tmp_path, both_frontends):
    _, title, arguments, text = block
    if title.startswith(ONLY_THE_EVALUATOR):
        pytest.skip("docs/beta1.md names the difference")
    path = tmp_path / "kernel.py"
    path.write_text(text)
    errors = re.findall(r"# error: \[([\w-]+)\]", text)
    try:
        module_of(path).kernel.compile(**arguments)
    except nki_sim.KernelError as error:
        assert error.slug in errors
    else:
        assert not errors
    assert both_frontends


def test_the_page_has_kernels():
    assert len(OLDER_MANUAL) > 50


ROWS, COLUMNS = nl.arange(64)[:, None], nl.arange(32)[None, :]
SHIFTED = 2 * COLUMNS + 1


@nki.jit
def indices_of_the_host(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[64 + ROWS, SHIFTED], mask=COLUMNS < 30)
    tile[ROWS, COLUMNS] = nl.copy(tile, mask=COLUMNS < 30)
    nl.store(out[ROWS, COLUMNS], 0)
    nl.store(out[ROWS, COLUMNS], tile, mask=COLUMNS < 30)
    return out


def test_indices_that_are_made_on_the_host():
    want = X[64:, 1::2].copy()
    want[:, 30:] = 0
    np.testing.assert_array_equal(np.asarray(indices_of_the_host(X)), want)


GRID = nl.mgrid[0:64, 0:32]
GRID_ROWS, GRID_COLUMNS = GRID


@nki.jit
def grids_of_the_host(x):
    out = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[64 + GRID_ROWS, 2 * GRID_COLUMNS + 1])
    nl.store(out[GRID.p, GRID[1]], tile, mask=GRID.x < 30)
    nl.store(out[GRID_ROWS, GRID_COLUMNS], tile, mask=GRID_COLUMNS >= 30)
    return out


def test_grids_of_indices_that_are_made_on_the_host():
    np.testing.assert_array_equal(np.asarray(grids_of_the_host(X)), X[64:, 1::2])
    assert len(GRID) == 2 and not hasattr(GRID, "y")
    with pytest.raises(IndexError):
        GRID[2]
    for wrong in (3, slice(None), (slice(0, 4), 1)):
        with pytest.raises(TypeError, match="slices with an end"):
            nl.mgrid[wrong]


@nki.jit
def one_of_four(x):
    out = nl.ndarray((4, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0], nl.load(x))
    return out


FOUR = one_of_four[4]


@nki.jit
def calls_a_grid(x):
    return FOUR(x)


def test_a_kernel_with_a_grid_is_not_called_in_a_kernel(both_frontends):
    with pytest.raises(nki_sim.KernelError) as caught:
        calls_a_grid(X)
    assert caught.value.slug == "launch-grid"
    assert both_frontends


@nki.jit
def vectors_on_chip(x):
    out = nl.ndarray((2, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((nl.par_dim(128),), dtype=x.dtype, buffer=nl.sbuf)
    zeros = nl.zeros((128,), dtype=x.dtype, buffer=nl.sbuf)
    tile[...] = nl.load(x[:, 3])
    blocks = nl.ndarray((2, nl.par_dim(128)), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(2):
        blocks[i] = nl.add(tile, zeros)
        nl.store(out[i], nl.multiply(blocks[i], i + 1))
    return out


def test_vectors_on_chip_are_columns(both_frontends):
    np.testing.assert_array_equal(np.asarray(vectors_on_chip(X)), np.stack([X[:, 3], 2 * X[:, 3]]))
    assert both_frontends


API = "from neuronxcc import nki\nfrom neuronxcc.nki import isa as nisa, language as nl\n"


@pytest.mark.parametrize(
    "imports, prefix", [("from {api} import nki, nl\n", ""), ("from {api} import *\n", ""), ("import {api} as api\n", "api.")], ids=["names", "star", "module"]
)
def test_a_module_that_gets_the_language_from_another_one(both_frontends, tmp_path, monkeypatch, imports, prefix):
    number = len(imports) + len(prefix)
    api, name = f"api_of_{number}", f"kernel_of_{number}"
    (tmp_path / f"{api}.py").write_text(API)
    kernel = """
@{p}nki.jit
def doubled(x):
    out = {p}nl.ndarray(x.shape, dtype=x.dtype, buffer={p}nl.shared_hbm)
    i, j = {p}nl.arange(128)[:, None], {p}nl.arange(64)[None, :]
    {p}nl.store(out[i, j], {p}nl.load(x[i, j]) * 2)
    return out
"""
    (tmp_path / f"{name}.py").write_text(imports.format(api=api) + kernel.format(p=prefix))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module(name)
    np.testing.assert_array_equal(np.asarray(module.doubled(X)), X * 2)
    assert both_frontends == ["doubled"]


@nki.jit
def sorted_by_numpy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, np.sort(nl.load(x)))
    return out


@nki.jit
def into_an_array(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, np.exp(nl.load(x), out=np.zeros(x.shape, np.float32)))
    return out


@nki.jit
def summed_by_a_ufunc(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, np.add.reduce(nl.load(x), axis=1))
    return out


@pytest.mark.parametrize("kernel", [sorted_by_numpy, into_an_array, summed_by_a_ufunc], ids=lambda k: k.__name__)
def test_functions_of_numpy_that_the_language_has_not(kernel):
    with pytest.raises(TypeError, match="the contents of a tensor are not known"):
        kernel(X)


@nki.jit
def facts_of_tiles(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    assert np.shape(tile) == (128, 64) and np.ndim(tile) == 2
    nl.store(out, np.float64(2) * tile + np.int32(1))
    return out


def test_facts_of_tiles_and_numbers_of_numpy():
    np.testing.assert_array_equal(np.asarray(facts_of_tiles(X)), 2 * X + 1)


@nki.jit
def scaled_by_the_next(x, scales):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x) * scales.pop(0))
    return out


@pytest.mark.parametrize("call", [lambda kernel: kernel, nki.simulate_kernel, nki.baremetal], ids=["call", "simulate_kernel", "baremetal"])
def test_a_call_executes_the_kernel_once(call):
    scales = [2.0, 3.0, 4.0]
    if call is nki.simulate_kernel:
        result = call(scaled_by_the_next, X, scales)
    else:
        result = call(scaled_by_the_next)(X, scales)
    np.testing.assert_array_equal(np.asarray(result), 2 * X)
    assert scales == [3.0, 4.0]
