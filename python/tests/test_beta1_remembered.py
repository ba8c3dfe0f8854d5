"""A cached run of a kernel of `neuronxcc.nki` behaves like the first one, and the cache key covers everything that a run depends on."""

import typing

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nki_sim
from nki_sim import _profile
from nki_sim._beta1 import Beta1Kernel

A = np.random.default_rng(5).random((128, 64), dtype=np.float32)


class Two(typing.NamedTuple):
    more: object
    less: object


@nki.jit
def noisy(a):
    """Leaves half of an output unwritten, prints, and returns a named tuple."""
    more = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    less = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    tile[...] = nl.load(a)
    nl.device_print("first", tile[0:1, 0:1])
    nl.store(more[0:64, :], nl.load(a[0:64, :]))
    nl.store(less, nl.copy(tile, dtype=nl.float32))
    return Two(more, less)


@pytest.mark.parametrize("call", [noisy, lambda a: nki.simulate_kernel(noisy, a), lambda a: nki.baremetal(noisy)(a)])
def test_a_finding_points_at_the_call(call):
    with pytest.warns(nki_sim.KernelWarning, match="output-partly-written") as caught:
        call(A)
    assert {w.filename for w in caught} == {__file__}


def test_a_remembered_run_says_what_the_first_one_said(capsys, monkeypatch):
    seen = []
    for _ in range(2):
        before = len(_profile.recorded)
        with pytest.warns(nki_sim.KernelWarning, match="output-partly-written") as caught:
            result = nki.benchmark(noisy)(A)
        assert isinstance(result, Two) and {w.filename for w in caught} == {__file__}
        seen.append((result.less.tobytes(), [str(w.message) for w in caught], capsys.readouterr().out, _profile.recorded[before:]))
    assert seen[0] == seen[1] and "first bfloat16" in seen[0][2] and len(seen[0][3]) == 1
    # Dependencies of a run besides its program and its arguments.
    with pytest.raises(nki_sim.KernelError, match="output-partly-written"):
        nki_sim.simulate(nki.benchmark(noisy), deny="warnings")(A)
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    with pytest.warns(nki_sim.KernelWarning):
        np.testing.assert_array_equal(noisy(A).less, A)


def test_a_debugger_sees_each_run(monkeypatch):
    steps = []
    step = Beta1Kernel._step
    monkeypatch.setattr(Beta1Kernel, "_step", lambda *args: steps.append(1) or step(*args))
    for n in range(1, 3):
        with pytest.warns(nki_sim.KernelWarning):
            nki_sim.simulate(nki.compiler.skip_middle_end_transformations(noisy), eager=True)(A)
        assert len(steps) == n
