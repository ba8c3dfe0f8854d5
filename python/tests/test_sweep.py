"""`nki_sim.sweep` on several executors."""

import concurrent.futures
import importlib
import runpy
import sys

import numpy as np
import pytest

import nki
import nki_sim

SOURCE = '''
import nki
import nki.isa as nisa
import nki.language as nl

SCALE = 1.0


@nki.jit
def scaled(x, width):
    """out = SCALE * x in tiles of `width` columns."""
    assert x.shape[1] % width == 0, f"{x.shape[1]} columns are not tiles of {width}"
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[1] // width):
        tile = nl.ndarray((x.shape[0], width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * width, width)])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=SCALE)
        nisa.dma_copy(dst=out[:, nl.ds(i * width, width)], src=tile)
    return out
'''

ARGS = {"x": nki_sim.TensorSpec((128, 512), "float32")}
GRID = {"width": [64, 100, 512], "SCALE": [1.0, 2.0]}


@pytest.fixture
def kernel_file(tmp_path):
    path = tmp_path / "scaled.py"
    path.write_text(SOURCE)
    return path


def check(points):
    assert len(points) == 6
    timed, failed = points[:4], points[4:]
    assert [p.latency_us for p in timed] == sorted(p.latency_us for p in timed)
    # Few large transfers are faster than many small ones.
    assert points.best.point["width"] == 512 and timed[-1].point["width"] == 64
    assert timed[-1].latency_us > 1.1 * points.best.latency_us
    assert {(p.point["width"], p.latency_us) for p in failed} == {(100, None)}
    assert "512 columns are not tiles of 100" in failed[0].error
    assert points.best["dma_bytes"] == 2 * 128 * 512 * 4


def test_default_executor_and_progress(kernel_file):
    seen = []
    points = nki_sim.sweep(kernel_file, ARGS, grid=GRID, progress=lambda *done: seen.append(done))
    check(points)
    assert seen == [(n, 6) for n in range(1, 7)]


@pytest.mark.parametrize("pool", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_pools(kernel_file, pool):
    with pool(2) as executor:
        points = nki_sim.sweep(str(kernel_file), {"x": np.zeros((128, 512), np.float32)}, grid=GRID, executor=executor)
        check(points)
        # The executor belongs to the caller and still runs.
        assert executor.submit(max, 1, 2).result() == 2


def test_settings_and_targets_matter(kernel_file):
    time = lambda **more: nki_sim.sweep(kernel_file, ARGS, grid={"width": [512]}, **more).best.latency_us
    assert time(settings={"kernel.head_us": 111.15}) == pytest.approx(time() + 100)
    assert time(target="trn3") != time()


def test_the_source_travels(kernel_file):
    from nki_sim import _sweep

    path, text, _ = _sweep._source(kernel_file)
    kernel_file.unlink()
    row = _sweep._timed({"file": path, "source": text, "args": {"x": "float32[128,512]"}, "point": {"width": "512"}}, 60)
    assert row["error"] is None and row["latency_us"] > 0


def test_what_is_refused(kernel_file):
    with pytest.raises(ValueError, match="the grid needs"):
        nki_sim.sweep(kernel_file, ARGS, grid={"width": []})
    with pytest.raises(ValueError, match="`x`: a object is neither a tensor nor a literal"):
        nki_sim.sweep(kernel_file, {"x": object()}, grid=GRID)
    with pytest.raises(ValueError, match="heigth"):
        nki_sim.sweep(kernel_file, ARGS, grid={"heigth": [1]})
    both = {**ARGS, "width": 64}
    with pytest.raises(ValueError, match="`width` is in the grid and in args, .*; leave it out of args"):
        nki_sim.sweep(kernel_file, both, grid=GRID)
    for value, words in [("64", "'64'"), (64, "64"), (None, "None")]:
        with pytest.raises(ValueError, match=rf"the grid gives `width` the one value {words}; give a list of values, \[{words}\]"):
            nki_sim.sweep(kernel_file, ARGS, grid={"width": value})
    for limit in (0, -1, float("nan"), float("inf"), True, "60"):
        with pytest.raises(ValueError, match=f"max_seconds={limit!r} is not a finite number above 0; give a number of seconds"):
            nki_sim.sweep(kernel_file, ARGS, grid=GRID, max_seconds=limit)
    for tolerance in (-1e-3, float("nan"), float("inf"), False, "0.1"):
        with pytest.raises(ValueError, match=f"atol={tolerance!r} is not a finite number of at least 0; give a tolerance"):
            nki_sim.sweep(kernel_file, ARGS, grid=GRID, atol=tolerance)
    with pytest.raises(ValueError, match="is not in a file"):
        nki_sim.sweep(len, ARGS, grid=GRID)
    with pytest.raises(ValueError, match="no point of the sweep could be timed: .*not tiles of 100"):
        nki_sim.sweep(kernel_file, ARGS, grid={"width": [100]}).best


def test_numbers_of_numpy_are_numbers(kernel_file):
    points = nki_sim.sweep(kernel_file, ARGS, grid={"width": 64 * np.arange(1, 3), "SCALE": [np.float32(1.5)]})
    assert [(p.point["width"], p.error) for p in points] == [(128, None), (64, None)]
    assert nki_sim.sweep(kernel_file, {**ARGS, "width": np.int64(128)}, grid={"SCALE": [1.0]}).best.latency_us == points.best.latency_us


def test_a_value_that_is_there_twice_is_one_point(kernel_file):
    for search in (None, 4):
        if search is not None:
            pytest.importorskip("optuna")
        points = nki_sim.sweep(kernel_file, ARGS, grid={"width": [64, 64, np.int64(64), 128]}, search=search)
        assert [p.point["width"] for p in points] == [128, 64]


def test_arrays_of_a_grid_have_their_values(kernel_file):
    """Values that the device would not have were compared, and every point showed the last array."""
    x = np.ones((128, 512), np.float32)
    arrays = [3 * x, x, 2 * x]
    points = nki_sim.sweep(kernel_file, {"width": 512}, grid={"x": arrays}, expect={"out": 2 * x})
    assert {p.point["x"][0, 0]: p.correct for p in points} == {1.0: False, 2.0: True, 3.0: False}
    assert points.best.point["x"] is arrays[2]
    # Without a comparison, only shapes matter.
    assert len(nki_sim.sweep(kernel_file, {"width": 512}, grid={"x": arrays})) == 1


def test_as_pandas(kernel_file):
    pandas = pytest.importorskip("pandas")
    frame = nki_sim.sweep(kernel_file, ARGS, grid={"width": [128, 256]}).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["width", "latency_us", "error", "warnings"] and len(frame) == 2


def test_dask(kernel_file):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        check(nki_sim.sweep(kernel_file, ARGS, grid=GRID, executor=client.get_executor()))


TOO_WIDE = '''
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def wide(x, width):
    """A copy through a tile that has room for `width` columns."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((x.shape[0], width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:x.shape[1]], src=x)
    nisa.dma_copy(dst=out, src=tile[:, 0:x.shape[1]])
    return out
'''


def test_capacity_of_a_call_and_of_the_process(tmp_path):
    path = tmp_path / "wide.py"
    path.write_text(TOO_WIDE)
    grid = {"width": [512, 100_000]}
    points = nki_sim.sweep(path, ARGS, grid=grid)
    assert points[1].latency_us is None and "sbuf" in points[1].error
    points = nki_sim.sweep(path, ARGS, grid=grid, capacity="warn")
    assert points[1].latency_us is not None and not points[1].latency_valid
    nki_sim.configure(capacity="warn")
    try:
        assert not nki_sim.sweep(path, ARGS, grid=grid)[1].latency_valid
        assert nki_sim.sweep(path, ARGS, grid=grid, capacity="error")[1].latency_us is None
    finally:
        nki_sim.configure(capacity=None)


def test_processes_share_the_memory(kernel_file, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    asked = []
    row = lambda job: {"point": list(job["point"].items()), "latency_us": 1.0}
    monkeypatch.setattr("nki_sim._sweep._timed", lambda job, seconds: asked.append(job["max_memory"]) or row(job))
    nki_sim.configure(max_memory="8GiB")
    try:
        nki_sim.sweep(kernel_file, ARGS, grid=GRID)
        nki_sim.sweep(kernel_file, ARGS, grid={"width": [64]})
    finally:
        nki_sim.configure(max_memory=None)
    assert asked == [str(2 << 30)] * 7


def test_a_point_that_skips_work_does_not_rank(tmp_path):
    path = tmp_path / "partly.py"
    path.write_text("\n".join(line for line in SOURCE.splitlines() if "assert" not in line))
    points = nki_sim.sweep(path, ARGS, grid={"width": [128, 384, 512]})
    assert [(p.point["width"], p.incomplete) for p in points] == [(512, False), (128, False), (384, True)]
    assert points[2].latency_us < points.best.latency_us and points[2] not in points.front
    partly = nki_sim.sweep(path, ARGS, grid={"width": [384]})
    with pytest.raises(ValueError, match="leaves elements of an output unwritten; allow="):
        partly.best
    assert nki_sim.sweep(path, ARGS, grid={"width": [384]}, allow=["output-partly-written"]).best.point == {"width": 384}


KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl

WIDTH = 64


@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(x.shape[1] // WIDTH):
        tile = nl.ndarray((x.shape[0], WIDTH), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(i * WIDTH, WIDTH)])
        nisa.dma_copy(dst=out[:, nl.ds(i * WIDTH, WIDTH)], src=tile)
    return out
"""


@pytest.fixture
def copied(tmp_path, monkeypatch):
    (tmp_path / "copied_kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "copied_kernel", raising=False)
    return importlib.import_module("copied_kernel").copied


def best(kernel, **options):
    return nki_sim.sweep(kernel, grid={"x": [nki_sim.TensorSpec((128, 512), "float32")]}, **options).best.latency_us


def test_options_of_a_kernel_apply(copied):
    x = np.ones((128, 512), np.float32)
    plain = best(copied)
    for kernel in (copied[2], nki.jit(platform_target="trn1")(copied.func), nki.simulate(copied, settings={"kernel.measure": "device"})):
        _, report = nki_sim.profile(kernel)(x)
        assert best(kernel) == pytest.approx(report.latency_us, abs=1e-6) != plain
    # What the call gives is stronger.
    assert best(copied[2], lnc=1) == plain
    assert best(nki.jit(platform_target="trn1")(copied.func), target="trn2") == plain
    device = nki.simulate(copied, settings={"kernel.measure": "device"})
    assert best(device, settings={"kernel.measure": "profile"}) == plain


def test_levels_of_a_kernel_apply(copied, tmp_path):
    half = tmp_path / "half.py"
    half.write_text(KERNEL.replace("src=tile", "src=tile[:64]").replace("dst=out[:,", "dst=out[:64,"))
    kernel = runpy.run_path(str(half))["copied"]
    assert best(nki.simulate(kernel, allow="output-partly-written")) > 0
    with pytest.raises(ValueError, match="output-partly-written"):
        best(nki.simulate(kernel, deny="output-partly-written"))


def test_a_kernel_that_differs_from_its_file(copied):
    copied.func.__globals__["WIDTH"] = 256
    with pytest.raises(ValueError, match="`WIDTH` is 256 in the module of the kernel, but its file assigns 64"):
        best(copied)
    sizes = nki_sim.sweep(copied, {"x": nki_sim.TensorSpec((128, 512), "float32")}, grid={"WIDTH": [64, 256]})
    assert sizes.best.point == {"WIDTH": 256}
    copied.func.__globals__["WIDTH"] = 64
    with pytest.raises(ValueError, match="without the schedule of this kernel"):
        best(copied.with_schedule([("a", "b")]))


def test_the_grid_of_an_older_kernel(tmp_path, monkeypatch):
    text = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 128, 128)
    nl.store(out[rows, :], value=nl.load(x[rows, :]) * 2)
    return out
"""
    (tmp_path / "doubled_kernel.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    doubled = importlib.import_module("doubled_kernel").doubled
    two = importlib.import_module("neuronxcc.nki.language").nc(2)
    spec = nki_sim.TensorSpec((512, 512), "float32")
    for kernel in (doubled[4], doubled[two * 2], doubled[2 * two]):
        _, report = nki_sim.profile(kernel)(np.ones((512, 512), np.float32))
        swept = nki_sim.sweep(kernel, grid={"x": [spec]}).best
        assert swept.latency_us == pytest.approx(report.latency_us, abs=1e-6)
