"""Limits of memory, and kernels that do not fit into SBUF or PSUM."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim


@nki.jit
def doubling(x):
    a = "x"
    for _ in range(64):
        a = a + a
    return x


@nki.jit
def large(x):
    out = nl.ndarray((60_000, 1_000), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0:128, 0:512], src=x)
    return out


@nki.jit
def over(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((128, 16384), dtype=nl.float32, buffer=nl.sbuf) for _ in range(6)]
    for i in range(6):
        nisa.memset(tiles[i], value=float(i))
    t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(6):
        nisa.tensor_tensor(dst=t, data1=t, data2=tiles[i][:, 0:512], op=nl.add)
    nisa.dma_copy(dst=out, src=t)
    return out


X = np.ones((128, 512), dtype=np.float32)


@pytest.fixture(autouse=True)
def restored():
    yield
    nki_sim.configure(max_memory=None, capacity=None, max_steps=None)


@pytest.mark.parametrize("kernel", [doubling, large])
def test_memory_is_limited(kernel, monkeypatch):
    if kernel is doubling:
        # Memory for Python's own values is not limited here.
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    nki_sim.configure(max_memory="64MB")
    with pytest.raises(nki_sim.KernelError) as error:
        kernel(X)
    assert error.value.slug == "memory-limit" and "61.0 MiB" in str(error.value)


def test_a_kernel_below_the_limit_runs():
    nki_sim.configure(max_memory=1 << 30)
    assert nki_sim.simulate(large)(X).shape == (60_000, 1_000)


def test_the_variable_limits_memory():
    program = "import test_limits as t\ntry:\n    t.doubling(t.X)\nexcept Exception as e:\n    print(e.slug)"
    env = {"NKI_SIM_MAX_MEMORY": "64MB", "NKI_COMPILER_FRONTEND": "parser", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "memory-limit", done.stderr


@pytest.mark.parametrize("wrong", [{"max_memory": "many"}, {"max_memory": "-1"}, {"capacity": "perhaps"}])
def test_what_is_no_limit_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        nki_sim.configure(**wrong)


def test_capacity_is_an_error_unless_asked_for():
    with pytest.raises(nki_sim.KernelError) as error:
        over(X)
    assert error.value.slug == "sbuf-overflow"


@pytest.mark.parametrize("how", ["simulate", "configure"])
def test_capacity_as_a_warning(how):
    kernel = over
    if how == "configure":
        nki_sim.configure(capacity="warn")
    else:
        kernel = nki.simulate(over, capacity="warn")
    with pytest.warns(nki_sim.KernelWarning, match="sbuf-overflow"):
        out = kernel(X)
    assert (out == 1 + sum(range(6))).all()
    # A program compiled with the setting is not used without it.
    nki_sim.configure(capacity=None)
    with pytest.raises(nki_sim.KernelError):
        over(X)


def test_the_latency_of_a_kernel_that_does_not_fit_is_not_valid():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, report = nki_sim.profile(over, capacity="warn")(X)
        assert not report.latency_valid and "not valid" in repr(report) and "not valid" in str(report)
        assert [f["id"] for f in report.findings] == ["sbuf-overflow"]
    nki_sim.configure(max_memory="2GiB")
    _, report = nki_sim.profile(large)(X)
    assert report.latency_valid and "not valid" not in str(report)


@nki.jit
def counting(x):
    n = 0
    while n < 10_000:
        n += 1
    return x


def test_steps_are_limited(monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    nki_sim.configure(max_steps=5_000)
    with pytest.raises(nki_sim.KernelError, match=r"does not end within 5000 steps(.|\n)*nki_sim.configure\(max_steps=N\)") as error:
        counting.compile(X)
    assert error.value.slug == "step-limit"
    nki_sim.configure(max_steps=100_000)
    counting.compile(X)
    for wrong in (0, -1, "many", 1.5, True):
        with pytest.raises(ValueError, match="the limit of steps is an integer, at least 1"):
            nki_sim.configure(max_steps=wrong)
