"""Kernels of `neuronxcc.nki` in Python: decorators, grids, files of profiles, host names."""

import json
import pickle
import subprocess
import sys
import warnings

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest
from neuronxcc.starfish.support.util import allclose

import nki_sim
from nki_sim import _beta1, _neuron_profile

#: Both frontends build the same program from each of these kernels.
pytestmark = pytest.mark.usefixtures("both_frontends")

RNG = np.random.default_rng(3)
X = RNG.random((256, 512), dtype=np.float32)

window = nki.compiler.sbuf.mod_alloc(base_addr=64)


@nki.jit
def total(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
    for i in nl.affine_range(a.shape[0] // 128):
        rows, columns = i * 128 + nl.arange(128)[:, None], nl.arange(a.shape[1])[None, :]
        nl.store(out[rows, columns], nl.load(a[rows, columns]) + nl.load(b[rows, columns]))
    return out


@nki.jit
def quadrants(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(1)
    rows, columns = i * 64 + nl.arange(64)[:, None], j * 256 + nl.arange(256)[None, :]
    nl.store(out[rows, columns], nl.load(a[rows, columns]) * (1 + i + 10 * j))
    return out


@nki.compiler.skip_middle_end_transformations
@nki.jit
def allocated(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
    tile = nl.ndarray((nl.par_dim(128), 512), dtype=a.dtype, buffer=window)
    tile[...] = nl.load(a)
    nl.store(out, tile)
    return out


@nki.jit(mode="simulation", platform_target="trn1")
def statistics(a: nt.tensor):
    powers = nisa.activation(op=np.exp, data=nl.load(a))
    sums = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    out = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    nl.store(sums, nisa.tensor_reduce(np.add, data=powers, axis=(1,)))
    nl.store(out, powers)
    return out, sums


def tripled(a, out):
    nl.store(out[...], nl.load(a[...]) * 3.0)


@nki.jit
def read_twice(a):
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    first = nl.load(a[0:128, :])
    second = nl.load(a[0:128, :])
    nl.store(out, first * 2.0 + second)
    return out


def test_results_of_every_wrapper():
    want = X + X[::-1]
    args = X, np.ascontiguousarray(X[::-1])
    for kernel in (total, nki.baremetal(total), nki.baremetal()(total.func), nki.trace(total.func), nki.baremetal(nki.benchmark(total))):
        np.testing.assert_array_equal(kernel(*args), want)
    np.testing.assert_array_equal(nki.simulate_kernel(total, *args), want)
    np.testing.assert_array_equal(nki.simulate_kernel(nki.benchmark(total), *args), want)
    assert total == total and total.__name__ == "total" and nki.baremetal(total).func is total.func


def test_grids():
    factors = np.kron(np.array([[1 + i + 10 * j for j in range(2)] for i in range(4)], np.float32), np.ones((64, 256), np.float32))
    for grid in [(4, 2), (nl.nc(2) * 2, 2), (2 * nl.nc(2), 2), (nl.spmd_dim(nl.nc(2), 2), 2)]:
        np.testing.assert_array_equal(quadrants[grid](X), X * factors, err_msg=str(grid))
    with pytest.raises(nki_sim.KernelError, match="axis 0 of a grid with 0 axes"):
        quadrants(X)
    for bad in [(0,), (-1, 2), (True,), ("4",), (nl.nc(2), nl.nc(2))]:
        with pytest.raises(TypeError):
            quadrants[bad]
    with pytest.raises(TypeError):
        nl.nc(3)


def test_direct_allocation_and_several_outputs():
    np.testing.assert_array_equal(allocated(X[:128].copy()), X[:128])
    assert allocated.as_written
    out, sums = statistics(X[:128].copy())
    assert out.dtype == np.dtype(nl.bfloat16)
    assert allclose(out, np.exp(X[:128]), rtol=1e-2)
    np.testing.assert_allclose(sums[:, 0], np.exp(X[:128]).sum(axis=1), rtol=1e-5)


def test_outputs_that_are_arguments():
    out = np.zeros((128, 512), np.float32)
    assert nki.simulate_kernel(tripled, X[:128].copy(), out) is None
    np.testing.assert_allclose(out, 3 * X[:128])
    # A second call with other values is a new run.
    nki.simulate_kernel(tripled, np.full((128, 512), np.nan, np.float32), out)
    assert np.isnan(out).all()


@nki.trace
def masked_square(x, out):
    rows, columns = nl.arange(128)[:, None], nl.arange(512)[None, :]
    tile = nl.load(x[rows, columns])
    square = nl.square(tile)
    nl.store(out[rows, columns], square, mask=rows < 64)
    # The argument is read again after the store.
    nl.store(out[128 + rows, columns], nl.load(x[rows, columns]))


@pytest.mark.parametrize("strided", [False, True])
def test_an_array_may_be_read_and_written(strided):
    x = np.repeat(X, 2, axis=1)[:, ::2] if strided else X.copy()
    nki.simulate_kernel(masked_square, x, x)
    np.testing.assert_array_equal(x, np.concatenate([np.square(X[:64]), X[64:128], X[:128]]))


def test_an_array_is_written_through_one_argument_only():
    @nki.trace
    def twice(x, out, other):
        nl.store(out[0:128], nl.load(x[0:128]))
        nl.store(other[0:127], nl.load(x[128:255]))

    x, y = X.copy(), X.copy()
    with pytest.raises(nki_sim.ArgumentError, match="share memory"):
        nki.simulate_kernel(twice, y, x, x)
    with pytest.raises(nki_sim.ArgumentError, match="share memory"):
        nki.simulate_kernel(twice, x[:255], x[1:], y)
    np.testing.assert_array_equal(x, X)


def test_benchmark(capsys):
    bench = nki.benchmark(warmup=1, iters=3)(total)
    assert bench.benchmark_result is None
    bench(X, X)
    latency = bench.benchmark_result.nc_latency
    device = latency.get_latency_percentile(99)
    assert all(latency.get_latency_percentile(p) == device for p in _beta1.PERCENTILES)
    profile = nki_sim.profile(total)(X, X)[1].latency_us
    assert 1 < device < profile
    with pytest.raises(ValueError, match="percentile"):
        latency.get_latency_percentile(95)
    assert f"{device:.3f}" in capsys.readouterr().out


def test_a_flag_has_descriptors_made_before_the_run(monkeypatch):
    def latency(**options):
        bench = nki.benchmark(warmup=1, iters=1, **options)(total)
        np.testing.assert_array_equal(bench(X, X), 2 * X)
        return bench.benchmark_result.nc_latency.get_latency_percentile(50)

    made_by_software, made_before = latency(), latency(additional_compile_opt="--disable-dge --logical-nc-config=1")
    assert made_before < made_by_software
    monkeypatch.setenv("NEURON_CC_FLAGS", "--target=trn2 --disable-dge")
    assert latency() == made_before


def test_a_result_that_is_remembered_belongs_to_the_caller():
    args = X.copy(), X.copy()
    first = nki.baremetal(total)(*args)
    first[:] = 0
    again = nki.baremetal(total)(*args)
    np.testing.assert_array_equal(again, 2 * X)
    args[0][0, 0] += 1
    assert nki.baremetal(total)(*args)[0, 0] == 2 * X[0, 0] + 1


@nki.jit
def in_order(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.sequential_range(x.shape[0] // 128, body_no_reorder=True):
        for j in nl.affine_range(1, directives=None):
            nl.store(out[128 * i : 128 * i + 128], nl.add(nl.load(x[128 * i : 128 * i + 128]), 1.0))
    return out


def test_advice_for_the_scheduler_has_no_effect():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(nki.simulate_kernel(in_order, X), X + 1)
    np.testing.assert_array_equal(nki.simulate(in_order)(X), X + 1)


def test_files_of_a_profile(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nki.baremetal(total, save_neff_name="k.neff", save_trace_name="k.ntff", additional_compile_opt="--logical-nc-config=1")(X, X)
    assert _neuron_profile.main(["view", "--output-format", "summary-json", "-n", "k.neff", "-s", "k.ntff"]) == 0
    summary = json.loads(capsys.readouterr().out)["total"]
    assert summary["total_time"] == pytest.approx(nki_sim.profile(total)(X, X)[1].latency_us * 1e-6)
    assert summary["hbm_read_bytes"] == 2 * X.nbytes and summary["spill_save_bytes"] == 0
    assert 0 < summary["vector_engine_active_time_percent"] < 1
    assert _neuron_profile.main(["capture", "-n", "k.neff", "-s", "again.ntff", "--profile-nth-exec", "2"]) == 0
    assert (tmp_path / "again_exec_2.ntff").read_bytes() == (tmp_path / "again.ntff").read_bytes()
    assert _neuron_profile.main(["view", "--output-format", "json", "-n", "k.neff", "-s", "again.ntff", "--output-file", "full.json"]) == 0
    # Two sums, and one transfer for the two iterations of each load and of the store (merged transfers).
    assert len(json.loads((tmp_path / "full.json").read_text())["instruction"]) == 5
    # Options of neuron-explorer.
    assert _neuron_profile.main(["capture", "--neff=k.neff", "-s", "more.ntff", "--enable-dge-notifs", "--num-exec=3", "--ignore-exec-errors"]) == 0
    capsys.readouterr()
    assert _neuron_profile.main(["view", "--disable-ui", "-d", "data", "--output-format=summary-json", "-n", "k.neff", "-s", "more.ntff"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == summary
    assert _neuron_profile.main(["view", "--output-format=parquet", "-n", "k.neff", "-s", "k.ntff"]) == 1
    assert "nki-sim run kernel.py --parquet DIR" in capsys.readouterr().err
    before = (tmp_path / "k.neff").read_bytes()
    for words in (["-n", "k.ntff", "-s", "k.ntff"], ["-n", "missing", "-s", "k.ntff"], ["-n", "k.neff", "-s", "k.ntff", "--output-file", "k.neff"]):
        assert _neuron_profile.main(["view", *words]) == 1
    assert _neuron_profile.main(["capture", "-n", "k.neff", "-s", "k.neff"]) == 1
    assert (tmp_path / "k.neff").read_bytes() == before


def test_a_working_directory(tmp_path):
    kernel = nki.profile(working_directory=str(tmp_path / "p"), save_neff_name="k.neff", save_trace_name="k.ntff", profile_nth=2)(total)
    np.testing.assert_array_equal(kernel(X, X), 2 * X)
    names = {str(f.relative_to(tmp_path / "p")) for f in (tmp_path / "p").rglob("*") if f.is_file()}
    assert names == {"k.neff", "k_exec_2.ntff", "json_reports/k_exec_2_profile.json"}
    kernel(X, X)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        nki.profile(working_directory=str(tmp_path / "p"), save_neff_name="k.neff", overwrite=False)(total)(X, X)
    for folder, words in [("p", r"working_directory='p' is not an absolute path; give one"), (5, "is not an absolute path"), (None, "needs working_directory=")]:
        with pytest.raises(ValueError, match=words):
            nki.profile(working_directory=folder)(total)(X, X)
    # The report of a profile is not overwritten either.
    again = tmp_path / "again"
    (again / "json_reports").mkdir(parents=True)
    (again / "json_reports" / "profile_profile.json").write_text("old")
    with pytest.raises(FileExistsError, match="profile_profile.json exists"):
        nki.profile(working_directory=str(again), overwrite=False)(total)(X, X)
    with pytest.raises(ValueError, match="num_execs=1 ends before execution profile_nth=5, so none is profiled; give num_execs=5"):
        nki.profile(working_directory=str(again), profile_nth=5, num_execs=1)(total)(X, X)
    with pytest.raises(ValueError, match="are one file"):
        nki.profile(working_directory=str(again), save_neff_name="k", save_trace_name="../again/k")(total)(X, X)
    nki.profile(working_directory=again, profile_nth=2, num_execs=5)(total)(X, X)
    assert {f.name for f in again.glob("*.ntff")} == {"profile_exec_2.ntff", "profile_exec_4.ntff"}


def test_one_file_for_two_contents(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for decorator in (nki.baremetal, nki.benchmark):
        with pytest.raises(ValueError, match="'k' and save_trace_name='./k' are one file"):
            decorator(total, save_neff_name="k", save_trace_name="./k")(X, X)
    assert list(tmp_path.iterdir()) == []


def test_a_benchmark_stays_one(capsys, tmp_path):
    """`jit`, `trace` and `baremetal`, which only mark a kernel, used to disable it."""
    bench = nki.benchmark(iters=7, additional_compile_opt="--disable-dge")(total)
    outer = [nki.jit, nki.trace, nki.baremetal, nki.jit(mode="simulation"), nki.compiler.enable_stack_allocator, nki_sim.jit, nki_sim.jit(strict=False)]
    for decorator in outer:
        kernel = decorator(bench)
        np.testing.assert_array_equal(kernel(X, X), 2 * X)
        assert kernel.benchmark_result.nc_latency.get_latency_percentile(50) > 1 and kernel.static_descriptors
        assert "in each of 7 iterations" in capsys.readouterr().out
    assert nki.benchmark(iters=2)(bench)._options == {"iters": 2, "additional_compile_opt": "--disable-dge"}
    assert bench._options["iters"] == 7
    profiled = nki.jit(nki.profile(working_directory=str(tmp_path / "p"))(total))
    profiled(X, X)
    assert (tmp_path / "p" / "profile.ntff").exists()
    for one, other in [("benchmark", "profile"), ("profile", "benchmark")]:
        with pytest.raises(TypeError, match=rf"nki.{one}\(nki.{other}\(total\)\): .* leave nki.{other} out"):
            getattr(nki, one)(getattr(nki, other)(total))
    # A grid is kept, too.
    np.testing.assert_array_equal(nki_sim.jit(quadrants[4, 2])(X), quadrants[4, 2](X))
    with pytest.raises(TypeError, match="mode='bench'.*the modes are auto, .*benchmark, profile"):
        nki.jit(total, mode="bench")


@pytest.mark.parametrize("name, least", [("iters", 1), ("warmup", 0), ("profile_nth", 1), ("num_execs", 1)])
def test_options_that_count(name, least):
    for value in (least - 1, -5, np.int64(least - 1)):
        with pytest.raises(ValueError, match=rf"{name}={value} is below {least}; give an integer, {least} or more"):
            nki.benchmark(total, **{name: value})
    for value in (True, "3", 2.0, float("nan"), [1]):
        with pytest.raises(TypeError, match=rf"{name}=.* is of type {type(value).__name__}; give an integer, {least} or more"):
            nki.jit(mode="benchmark", **{name: value})(total)
    nki.benchmark(total, **{name: np.int32(least)})
    nki.benchmark(total, **{name: None})


def test_a_pickled_kernel_keeps_its_grid_and_its_benchmark():
    copy = pickle.loads(pickle.dumps(quadrants[4, 2]))
    np.testing.assert_array_equal(copy(X), quadrants[4, 2](X))
    copy = pickle.loads(pickle.dumps(nki.benchmark(iters=4)(total)))
    copy(X, X)
    assert copy.benchmark_result is not None and copy._options == {"iters": 4}


def test_the_profile_of_a_kernel_that_spills_counts_the_bytes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def chain(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.hbm)
        # 13 tiles of 20,000 bytes per partition; SBUF has 196,608.
        tiles = [nl.load(a)]
        for _ in range(12):
            tiles.append(tiles[-1] + tiles[0])
        sums = tiles[0]
        for tile in tiles[1:]:
            sums = sums + tile
        nl.store(out, sums)
        return out

    a = np.ones((128, 5000), np.float32)
    out = nki.baremetal(chain, save_neff_name="k.neff", save_trace_name="k.ntff")(a)
    np.testing.assert_array_equal(out, a * sum(range(1, 14)))
    assert _neuron_profile.main(["view", "--output-format", "summary-json", "-n", "k.neff", "-s", "k.ntff"]) == 0
    summary = json.loads(capsys.readouterr().out)["chain"]
    saved, reloaded = summary["spill_save_bytes"], summary["spill_reload_bytes"]
    assert saved > 0 and saved % a.nbytes == 0 and reloaded >= saved and reloaded % a.nbytes == 0
    assert summary["hbm_write_bytes"] == a.nbytes + saved


def test_a_run_repeats_only_what_the_same_settings_gave(monkeypatch):
    @nki.jit(mode="simulation")
    def unwritten(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.ndarray((nl.par_dim(128), 64), dtype=a.dtype, buffer=nl.sbuf))
        return out

    a = np.ones((128, 64), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value, reads in (("zero", 0.0), ("nan", np.nan), ("zero", 0.0)):
            monkeypatch.setenv("NKI_SIM_UNWRITTEN", value)
            np.testing.assert_array_equal(unwritten(a), np.full_like(a, reads))


def test_the_middle_end_drops_a_repeated_load():
    """A load of bytes that are already in SBUF is dropped, unless the kernel must stay as written; the results are the same."""
    written = nki.compiler.skip_middle_end_transformations(read_twice)
    traffic = {}
    for kernel in (read_twice, written):
        out, report = nki_sim.profile(kernel)(X)
        np.testing.assert_array_equal(out, X[:128] * 2 + X[:128])
        traffic[kernel.as_written] = report["traffic"]["hbm_read_bytes"]
        assert ("compiler_changes" in report) != kernel.as_written
    assert traffic == {False: X.nbytes // 2, True: X.nbytes}


@nki.compiler.skip_middle_end_transformations
@nki.jit
def turned(x):
    out = nl.ndarray((512, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        square = nl.load(x[:, i * 128 : (i + 1) * 128])
        nl.store(out[i * 128 : (i + 1) * 128, :], nisa.tensor_copy(nisa.nc_transpose(square)))
    return out


def test_who_copies_is_chosen_without_the_middle_end_too():
    """The decorator keeps loads and copies unchanged; if the kernel leaves the engine open, it is still the one that finishes first."""
    x = np.arange(128 * 512, dtype=np.float32).reshape(128, 512)
    out, report = nki_sim.profile(turned)(x)
    np.testing.assert_array_equal(out, x.T)
    assert [report["engines"][engine]["instructions"] for engine in ("scalar", "vector")] == [4, 0]


def test_host_names():
    assert np.dtype(nl.bfloat16).itemsize == 2 and nl.static_cast(X, nl.float16).dtype == np.float16
    assert nl.tile_size.pmax == 128 and nisa.dge_mode.none.value == 0
    with pytest.raises(nki_sim.OutsideKernelError, match="neuronxcc.nki.language.load"):
        nl.load(X)
    with pytest.raises(AttributeError):
        nl.no_such_name
    with pytest.raises(nki_sim.KernelError, match="out of bounds"):
        total(X, X[:128].copy())


def test_the_program_neuron_profile_is_installed():
    found = subprocess.run([sys.executable, "-m", "nki_sim._neuron_profile", "view", "-n", "no.neff", "-s", "no.ntff"], capture_output=True, text=True)
    assert found.returncode == 1 and found.stderr == "neuron-profile: cannot open `no.neff`: No such file or directory\n"


@nki.jit
def types_of_results(x):
    """Type promotion to float32, and truth values."""
    out = nl.ndarray((5, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    low = nl.copy(tile, dtype=nl.bfloat16)
    made = [
        nl.where(tile > 0, low, tile),
        nl.where(tile > 0, low, 0.1),
        nisa.tensor_tensor_scan(low, tile, initial=0.0, op0=np.multiply, op1=np.add),
        nl.softmax(low, axis=1, compute_dtype=nl.float32),
        nl.copy(nl.logical_not(nl.relu(tile)) & (tile < 0), dtype=nl.float32),
    ]
    for i, tile in enumerate(made):
        assert tile.dtype == nl.float32
        nl.store(out[i], tile)
    truths = nl.all(nl.relu(made[4] + 1), axis=1)
    assert truths.dtype == nl.uint8
    return out


def test_results_have_the_types_of_the_old_manual():
    x = np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)
    low = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    got = types_of_results(x)
    np.testing.assert_array_equal(got[0], np.where(x > 0, low, x))
    np.testing.assert_array_equal(got[1], np.where(x > 0, low, np.float32(0.1)))
    weights = np.exp(low - low.max(1, keepdims=True))
    np.testing.assert_allclose(got[3], weights / weights.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(got[4], x < 0)


def add_block(a, out, total, block):
    for i in nl.affine_range(2):
        total += nisa.nc_matmul(nl.load(a[i * 128 : (i + 1) * 128, block * 128 : (block + 1) * 128]), nl.load(a[i * 128 : (i + 1) * 128]))
    nl.store(out[block], total)


@nki.jit
def independent_blocks(a):
    """The sum in PSUM is made once, for both blocks of the result."""
    out = nl.ndarray((2, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    for block in nl.affine_range(2):
        add_block(a, out, total, block)
    return out


@nki.jit
def sequential_blocks(a):
    out = nl.ndarray((2, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    for block in nl.sequential_range(2):
        add_block(a, out, total, block)
    return out


def test_a_sum_that_one_iteration_reads_and_the_next_continues():
    left = [X[:, block * 128 : (block + 1) * 128].T @ X for block in range(2)]
    with pytest.warns(nki_sim.KernelWarning, match="in iteration block = 1 of an affine_range reads elements of `total` that iteration block = 0"):
        got = nki.simulate_kernel(independent_blocks, X)
    np.testing.assert_allclose(got[1], left[0] + left[1], rtol=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nki.simulate_kernel(sequential_blocks, X)


def test_the_kernels_of_the_sdk_are_named_as_absent():
    with pytest.raises(ModuleNotFoundError, match="nki-samples"):
        from neuronxcc.nki.kernels.attention import flash_fwd  # noqa: F401


def test_a_misspelt_name_has_a_suggestion():
    @nki.jit(mode="simulation")
    def misspelt(a):
        return nl.sotfmax(nl.load(a), axis=1)

    with pytest.raises(nki_sim.KernelError, match=r"`neuronxcc.nki.language` has no `sotfmax`(?s:.)*did you mean `softmax`"):
        misspelt(X[:128])
    with pytest.raises(AttributeError, match="no attribute 'sotfmax'"):
        nl.sotfmax  # noqa: B018
