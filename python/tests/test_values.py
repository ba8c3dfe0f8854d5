"""Intermediates of a run: `nki_sim.trace_values`."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
import nki_sim
from nki.collectives import ReplicaGroup

X = np.random.default_rng(3).standard_normal((64, 32)).astype(np.float32)


@nki.jit
def rounded(x):
    """Three steps of adding 1 in bfloat16."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(3):
        low = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=low, data=t, op0=nl.add, operand0=1.0)
        nisa.tensor_copy(dst=t, src=low, name=f"widen{i}")
    nisa.dma_copy(dst=out, src=t)
    return out


def line_of(kernel, text):
    """The line in a kernel's file that contains this text."""
    lines = open(kernel.func.__code__.co_filename, encoding="utf-8").read().splitlines()
    first = kernel.func.__code__.co_firstlineno
    return next(n for n, line in enumerate(lines[first:], first + 1) if text in line)


@pytest.fixture(params=["tracer", "parser"])
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)


def test_a_value_is_found_by_name_line_and_iteration(frontend):
    out, values = nki_sim.trace_values(rounded)(X)
    np.testing.assert_array_equal(out, rounded(X))
    assert values.names == ["t", "low", "out"] and len(values) == 1 + 2 * 3 + 1
    want, copy = X, line_of(rounded, "tensor_copy")
    np.testing.assert_array_equal(values.find("t", line=line_of(rounded, "src=x)")), X)
    for i in range(3):
        low = (want + np.float32(1)).astype(ml_dtypes.bfloat16)
        want = low.astype(np.float32)
        for found in (
            values.find("low", iteration=i),
            values.find("low", iteration=i - 3),
            values.find("low", iteration={"i": i}),
            values.find(line=line_of(rounded, "op0=nl.add"), file="test_values.py", iteration=i),
        ):
            assert found.array.dtype == ml_dtypes.bfloat16
            np.testing.assert_array_equal(found.array, low)
        at = values.find("t", line=copy, iteration=i)
        np.testing.assert_array_equal(at, want)
        assert at is values.find(name=f"widen{i}") and at.iterations == {"i": i} and at.execution == i
    assert values["t"] is values.find(name="widen2") and (values["t"].line, values["t"].instruction) == (copy, "tensor_copy")
    assert f"float32[64, 32] t at {rounded.func.__code__.co_filename}:{copy} (i=2), core 0>" in repr(values["t"])
    assert [v.execution for v in values.all("low")] == [0, 1, 2] and values.find("out").nans == 0


def test_a_missing_value_says_what_there_is():
    _, values = nki_sim.trace_values(rounded)(X)
    copy = line_of(rounded, "tensor_copy")
    for where, says in [
        ({"tensor": "u"}, "`t`, `low`, `out`"),
        ({"tensor": "t", "line": 1}, rf"`t` with line=1; `t` is written at line \d+ \(1 times\), line {copy} \(3 times\)"),
        ({"tensor": "t", "iteration": 3}, "iteration=3"),
        ({"tensor": "t", "iteration": {"j": 0}}, "iteration={'j': 0}"),
        ({"tensor": "t", "core": 1}, "core=1"),
        ({"tensor": "t", "file": "s.py"}, "file='s.py'"),
    ]:
        with pytest.raises(LookupError, match=says):
            values.find(**where)
    with pytest.raises(LookupError, match="no value of `u`"):
        values["u"]


def test_only_what_is_named_is_kept():
    copy = line_of(rounded, "tensor_copy")
    assert len(nki_sim.trace_values(rounded, "low")(X)[1]) == 3
    assert len(nki_sim.trace_values(rounded, ["low", "out"])(X)[1]) == 4
    assert [v.line for v in nki_sim.trace_values(rounded, lines=copy)(X)[1]] == [copy] * 3
    assert len(nki_sim.trace_values(rounded, "t", f"test_values.py:{copy}")(X)[1]) == 3
    with pytest.raises(nki_sim.ArgumentError, match="no instruction writes a tensor `x`; they write `low`, `out`, `t`"):
        nki_sim.trace_values(rounded, "x")(X)
    with pytest.raises(nki_sim.ArgumentError, match="no instruction at line 1 writes a tensor"):
        nki_sim.trace_values(rounded, lines=[copy, 1])(X)
    with pytest.raises(nki_sim.ArgumentError, match=f"no instruction at line {copy} of other.py"):
        nki_sim.trace_values(rounded, lines=f"other.py:{copy}")(X)
    for wrong in (0, "k.py", "k.py:x", [None]):
        with pytest.raises(nki_sim.ArgumentError, match="is not a line"):
            nki_sim.trace_values(rounded, lines=wrong)
    with pytest.raises(nki_sim.ArgumentTypeError, match="names of tensors"):
        nki_sim.trace_values(rounded, [3])


def test_values_are_those_that_the_command_dumps(tmp_path):
    copy = line_of(rounded, "tensor_copy")
    np.save(tmp_path / "x.npy", X)
    words = ["run", __file__, "--kernel", "rounded", "--arg", f"x={tmp_path / 'x.npy'}"]
    for i in range(3):
        words += ["--dump", f"t@{copy}:{i}={tmp_path / f't{i}.npy'}"]
    done = subprocess.run([sys.executable, "-m", "nki_sim", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, values = nki_sim.trace_values(rounded)(X)
    for i in range(3):
        np.testing.assert_array_equal(values.find("t", line=copy, iteration=i), np.load(tmp_path / f"t{i}.npy"))


@nki.jit
def repeated(x):
    """Adds 1 four times in a device loop, inside an unrolled loop."""
    t = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=t, src=x)
    for step in range(2):

        def body(_):
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0, name=f"add{step}")

        nl.fori_loop(0, 4, body)
    nisa.dma_copy(dst=out, src=t)
    return out


def test_the_device_repeats(frontend):
    _, values = nki_sim.trace_values(repeated)(X)
    for step in range(2):
        adds = values.all("t", name=f"add{step}")
        assert len(adds) == 4
        for i, value in enumerate(adds):
            assert value.execution == 4 * step + i
            [(loop, iteration)] = [(k, v) for k, v in value.iterations.items() if k != "step"]
            assert loop.startswith("line ") and iteration == i
            np.testing.assert_allclose(value, X + 1 + 4 * step + i, rtol=1e-6)


@nki.jit
def halves(x):
    """Each core scales its half of the rows by its core number."""
    rows, n = x.shape
    mine = rows // nl.num_programs(0)
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((mine, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[core * mine : (core + 1) * mine, :])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=float(core + 1))
    nisa.dma_copy(dst=out[core * mine : (core + 1) * mine, :], src=t)
    return out


def test_two_cores_have_values_of_their_own(frontend):
    _, values = nki_sim.trace_values(halves)[2](X)
    for core in range(2):
        np.testing.assert_array_equal(values.find("t", core=core), X[32 * core : 32 * core + 32] * (core + 1))
    with pytest.raises(LookupError, match="cores 0 and 1 have values of `t`; pass core=0 or core=1"):
        values["t"]
    _, values = nki_sim.trace_values(halves)(X)
    np.testing.assert_array_equal(values["t"], X)


@nki.jit
def summed(x, scale, group):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=scale)
    total = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    ncc.all_reduce(srcs=[tile], dsts=[total], replica_group=group, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    return out


def test_each_rank_has_values(frontend):
    xs = [X, X + 1, X * 2]
    ranks = nki_sim.simulate_ranks(summed, 3)
    results, values = nki_sim.trace_values(ranks, ["tile", "total"])(xs, 2.0, ReplicaGroup([[0, 1, 2]]))
    assert len(values) == 3
    for rank, (result, of) in enumerate(zip(results, values)):
        np.testing.assert_array_equal(of["tile"], xs[rank] * 2)
        np.testing.assert_array_equal(of["total"], result)
        assert of.names == ["tile", "total"]
    np.testing.assert_allclose(values[0]["total"], sum(2 * x for x in xs), rtol=1e-5)


@nki.jit
def partly(x, i):
    """Writes half of two tiles."""
    t = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    k = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[:, 0:16], src=x[:, 0:16])
    nisa.dma_copy(dst=k[:, 0:16], src=i[:, 0:16])
    out = nl.ndarray((64, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.tensor_tensor(dst=t[:, 0:16], data1=t[:, 0:16], data2=k[:, 0:16], op=nl.add)
    nisa.dma_copy(dst=out, src=t[:, 0:16])
    return out


def test_nan_and_what_is_not_written_are_said(frontend):
    x, k = X.copy(), np.arange(64 * 32, dtype=np.int32).reshape(64, 32)
    x[3, 4] = np.nan
    _, values = nki_sim.trace_values(partly)(x, k)
    for name in ("t", "k"):
        value = values.all(name)[0]
        assert value.unwritten[:, 16:].all() and not value.unwritten[:, :16].any()
        assert value.nans == (name == "t") and "1024 not written" in repr(value)
        with pytest.warns(nki_sim.KernelWarning, match="1024 of 2048 elements are not written yet"):
            got = value.array
        np.testing.assert_array_equal(got[:, :16], (x if name == "t" else k)[:, :16])
        with pytest.warns(nki_sim.KernelWarning, match="not written"):
            np.asarray(value)
    assert "1 NaN, 1024 not written" in repr(values.all("t")[0])
    assert not values["out"].unwritten.any() and values["out"].nans == 1


@nki.jit
def doubled(x):
    """A kernel that writes its argument."""
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    nisa.dma_copy(dst=x, src=t)
    return x


def test_values_need_memory():
    nki_sim.configure(max_memory="1MiB")
    x = np.ones((128, 160), np.float32)
    with pytest.raises(nki_sim.ArgumentError, match=r"take more than 512 KiB, after 7 of them; name the tensors"):
        nki_sim.trace_values(rounded)(x)
    assert len(nki_sim.trace_values(rounded, "low")(x)[1]) == 3
    # The caller's array is unchanged.
    with pytest.raises(nki_sim.ArgumentError, match="after 2 of them"):
        nki_sim.trace_values(doubled)(wide := np.ones((128, 400), np.float32))
    assert (wide == 1).all()
    nki_sim.configure(max_memory=None)
    assert (nki_sim.trace_values(doubled)(wide)[1]["x"].array == 2).all() and (wide == 2).all()


def test_a_failing_kernel_and_a_second_shape():
    traced = nki_sim.trace_values(rounded, "low")
    with pytest.raises(nki_sim.KernelError):
        traced(np.zeros((129, 4), np.float32))
    assert traced(X[:8])[1]["low"].shape == (8, 32)
    assert traced(X)[1]["low"].shape == (64, 32)


@nki.jit(platform_target="trn3")
def packed(x):
    t = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    q = nl.ndarray((128, 128), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    s = nl.ndarray((128, 128), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=q, src=t, dst_scale=s)
    out = nl.ndarray((128, 128), dtype=nl.float8_e4m3fn_x4, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=q)
    return out


def test_packed_elements_are_those_of_the_result():
    out, values = nki_sim.trace_values(packed, ["q", "s"])(np.ones((128, 512), ml_dtypes.bfloat16))
    assert values["q"].array.dtype == out.dtype and values["q"].array.tobytes() == out.tobytes() and values["q"].nans == 0
    # Only four rows of each quadrant have scales.
    assert values["s"].unwritten[31].all() and not values["s"].unwritten[0].any()


def test_arrays_are_of_the_type_of_the_arguments():
    torch = pytest.importorskip("torch")
    out, values = nki_sim.trace_values(rounded)(torch.from_numpy(X))
    assert torch.equal(values["t"].array, out) and values["low"].array.dtype == torch.bfloat16
