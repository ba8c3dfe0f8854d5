"""Warm calls: a call of a compiled kernel detects every change that a first call would."""

import bdb
import contextlib
import gc
import sys
import threading
import warnings

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim
from kernels import load, scaled, store

BY = 2.0
FACTORS = [2.0]
NAMED = {"by": 2.0}
ROW = np.full((4, 8), 2.0, np.float32)


def factor():
    return FACTORS[0]


def of_a_global(x):
    return store(scaled(load(x), BY))


def of_a_list(x):
    return store(scaled(load(x), FACTORS[0]))


def of_a_dict(x):
    return store(scaled(load(x), NAMED["by"]))


def of_an_array(x):
    return store(scaled(load(x), float(ROW[0, 0])))


def of_a_function(x):
    return store(scaled(load(x), factor()))


multiply = nl.multiply


def of_the_language(x):
    return store(nl.multiply(load(x), 2.0))


def tripled(tile, _factor):
    """What a test may put in the place of `nl.multiply`."""
    return multiply(tile, 3.0)


def counts_down(x, count):
    """A loop that Python cannot execute."""
    tile = load(x)
    left = load(count)
    register = nisa.register_alloc()
    nisa.register_load(dst=register, src=left)
    while register:
        nisa.tensor_copy(dst=tile, src=nl.multiply(tile, 2.0))
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(dst=register, src=left)
    return store(tile)


def ramp():
    return np.arange(32, dtype=np.float32).reshape(4, 8)


def warm(function):
    """A kernel that has been called, so that a further call is known not to compile anything."""
    kernel = nki.jit(function)
    for _ in range(3):
        np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    assert len(kernel._cache) == 1
    return kernel


@contextlib.contextmanager
def item(container, key, value):
    """Temporarily adds an item to the container."""
    before, container[key] = container[key], value
    yield
    container[key] = before


@contextlib.contextmanager
def code(function, other):
    """Temporarily gives the function the code of another one."""
    before, function.__code__ = function.__code__, other.__code__
    yield
    function.__code__ = before


CHANGES = {
    "a global": (of_a_global, lambda: item(globals(), "BY", 3.0)),
    "an item of a list": (of_a_list, lambda: item(FACTORS, 0, 3.0)),
    "an entry of a dictionary": (of_a_dict, lambda: item(NAMED, "by", 3.0)),
    "an element of an array": (of_an_array, lambda: item(ROW, (0, 0), 3.0)),
    "a function": (of_a_function, lambda: item(globals(), "factor", lambda: 3.0)),
    "code of a function": (of_a_function, lambda: code(factor, lambda: 3.0)),
    "what a function reads": (of_a_function, lambda: item(FACTORS, 0, 3.0)),
    "a function of nki.language": (of_the_language, lambda: item(vars(nl), "multiply", tripled)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name):
    function, changed = CHANGES[name]
    kernel = warm(function)
    with changed():
        for _ in range(2):
            np.testing.assert_array_equal(kernel(ramp()), ramp() * 3)
    # After the change is undone, the first program fits again.
    np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    assert len(kernel._cache) == 2


def test_replaced_instructions_are_counted_in_each_call(monkeypatch):
    """As a harness counts transfers."""
    kernel = warm(of_a_global)
    calls = []

    def counting(*args, before=nisa.dma_copy, **kwargs):
        calls.append(1)
        return before(*args, **kwargs)

    monkeypatch.setattr(nisa, "dma_copy", counting)
    for _ in range(3):
        kernel(ramp())
    assert len(calls) == 6


def test_the_parser_warns_that_it_calls_the_original(monkeypatch):
    kernel = nki.jit(of_the_language)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(ramp())
    monkeypatch.setattr(nl, "multiply", tripled)
    with pytest.warns(nki_sim.KernelWarning, match="does not see that nki.language.multiply has been replaced; unset NKI_COMPILER_FRONTEND"):
        np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)


def test_the_evaluator_warns_for_a_loop_that_python_cannot_execute(monkeypatch):
    kernel, two = nki.jit(counts_down), np.array([[2]], np.int32)
    np.testing.assert_array_equal(kernel(ramp(), two), ramp() * 4)
    monkeypatch.setattr(nl, "multiply", tripled)
    with pytest.warns(nki_sim.KernelWarning, match="does not see that nki.language.multiply has been replaced$"):
        np.testing.assert_array_equal(kernel(ramp(), two), ramp() * 4)


def test_an_argument_of_another_kind_is_noticed():
    kernel = warm(of_a_global)
    assert kernel(ramp().astype(np.float16)).dtype == np.float16
    assert kernel(ramp().reshape(8, 4)).shape == (8, 4)
    # Another memory layout uses the same program.
    for same in (np.asfortranarray(ramp()), np.repeat(ramp(), 2, axis=1)[:, ::2], ramp()[::-1][::-1]):
        np.testing.assert_array_equal(kernel(same), ramp() * 2)
    read_only = ramp()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(kernel(read_only), ramp() * 2)
    with pytest.raises(nki_sim.ArgumentTypeError, match="masked"):
        kernel(np.ma.masked_array(ramp(), ramp() > 3))
    with pytest.raises(nki_sim.ArgumentTypeError, match="float64"):
        kernel(ramp().astype(np.float64))
    with pytest.raises(nki_sim.ArgumentTypeError, match="newbyteorder"):
        kernel(ramp().astype(">f4"))
    with pytest.raises(nki_sim.ArgumentError, match="empty"):
        kernel(ramp()[:0])
    with pytest.raises(nki_sim.KernelError):
        kernel(2.0)
    np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    assert len(kernel._cache) == 3


def test_one_array_may_change_between_calls():
    kernel, x = warm(of_a_global), ramp()
    assert kernel(x).shape == (4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        x.shape = (8, 4)
    assert kernel(x).shape == (8, 4)
    x[0, 1] = 7
    assert kernel(x)[0, 1] == 14


@nki.jit
def over_all(x):
    tile = load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1e4)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=1e4)
    return store(tile)


def test_variables_of_the_environment_are_read_at_each_call(monkeypatch):
    kernel, x = over_all, (ramp() / 16).astype(np.float16)
    with monkeypatch.context() as patch:
        patch.delenv("NKI_PRECISE_FP", raising=False)
        rounded = [kernel(x) for _ in range(3)][-1]
        patch.setenv("NKI_PRECISE_FP", "0")
        assert not np.array_equal(kernel(x), rounded)
        patch.setenv("NKI_PRECISE_FP", "1")
        np.testing.assert_array_equal(kernel(x), rounded)
        for name in ("NKI_PRECISE_FP", "NKI_SIM_UNWRITTEN", "NKI_SIM_CAPACITY", "NKI_SIM_DENY", "NKI_SIM_MAX_MEMORY", "NEURON_LOGICAL_NC_CONFIG",
                     "NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_COMPILER_FRONTEND"):
            with monkeypatch.context() as wrong:
                wrong.setenv(name, "no value of this variable")
                with pytest.raises((ValueError, nki_sim.KernelError)):
                    kernel(x)
            np.testing.assert_array_equal(kernel(x), rounded)
        count = len(kernel._cache)
        patch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
        kernel(x)
        assert len(kernel._cache) == count + 1


@nki.jit
def half(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0:2], src=load(x[0:2]))
    return out


def test_levels_are_those_of_the_call(monkeypatch):
    for _ in range(3):
        with pytest.warns(nki_sim.KernelWarning, match="output-partly-written"):
            half(ramp())
    with monkeypatch.context() as patch:
        patch.setenv("NKI_SIM_DENY", "suspicious")
        with pytest.raises(nki_sim.KernelError):
            half(ramp())
    nki_sim.configure(deny="suspicious")
    with pytest.raises(nki_sim.KernelError):
        half(ramp())
    # The argument of a call takes precedence.
    with pytest.warns(nki_sim.KernelWarning):
        nki.simulate(half, warn="suspicious")(ramp())
    nki_sim.configure(deny=None, allow=["bug", "suspicious"])
    assert half(ramp()).shape == (4, 8)
    nki_sim.configure(allow=None)
    with pytest.warns(nki_sim.KernelWarning):
        half(ramp())
    assert len(half._cache) == 1


class Debugger(bdb.Bdb):
    def user_line(self, frame):
        self.set_step()


def test_a_debugger_that_is_attached_later_is_noticed(monkeypatch):
    kernel = warm(of_a_global)
    stepped = []
    step = type(kernel)._step
    monkeypatch.setattr(type(kernel), "_step", lambda self, *given: stepped.append(1) or step(self, *given))
    kernel(ramp())
    assert stepped == []
    debugger, before = Debugger(), sys.gettrace()
    debugger.reset()
    sys.settrace(debugger.trace_dispatch)
    try:
        result = kernel(ramp())
    finally:
        sys.settrace(before)
    assert stepped == [1]
    np.testing.assert_array_equal(result, ramp() * 2)
    kernel(ramp())
    assert stepped == [1]


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="Python 3.12 has sys.monitoring")
def test_a_debugger_that_monitors_is_noticed(monkeypatch):
    kernel = warm(of_a_global)
    stepped = []
    step = type(kernel)._step
    monkeypatch.setattr(type(kernel), "_step", lambda self, *given: stepped.append(1) or step(self, *given))
    sys.monitoring.use_tool_id(sys.monitoring.DEBUGGER_ID, "a test")
    try:
        kernel(ramp())
    finally:
        sys.monitoring.free_tool_id(sys.monitoring.DEBUGGER_ID)
    assert stepped == [1]


@pytest.mark.parametrize("shape", [(4, 8), (128, 64), (128, 512)])
def test_results_are_arrays_of_their_own(shape):
    kernel = nki.jit(of_a_global)
    x = np.ones(shape, np.float32)
    results = [kernel(x) for _ in range(4)]
    for i, result in enumerate(results):
        assert result.flags.c_contiguous and result.flags.writeable and result.flags.aligned and type(result) is np.ndarray
        result += i
        assert not any(np.shares_memory(result, other) for other in (x, *results[:i]))
    del kernel
    gc.collect()
    for i, result in enumerate(results):
        assert (result == 2 + i).all()
    assert (x == 1).all()


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint32", "int16", "uint16", "int8", "uint8", "bfloat16", "float8_e5m2"])
def test_results_have_the_type_of_the_output(dtype):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    kernel = nki.jit(lambda x: store(load(x)))
    x = ramp().astype(dtype)
    for _ in range(2):
        result = kernel(x)
        assert result.dtype == dtype and result.shape == (4, 8)
        np.testing.assert_array_equal(result, x)


def test_threads_call_one_kernel_with_changing_globals():
    """Each thread sees the global that it set for its own kernel, and all share a third kernel."""
    shared, failures = warm(of_a_list), []

    def work(by):
        def kernel(x):
            return store(scaled(load(x), by))

        own = nki.jit(kernel)
        for n in range(40):
            by = float(n % 4 + 1)
            if not (np.array_equal(own(ramp()), ramp() * by) and np.array_equal(shared(ramp()), ramp() * 2)):
                failures.append(n)

    threads = [threading.Thread(target=work, args=(1.0,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_call_in_a_call():
    """A compiled kernel is inlined in another one, and also runs because of a warning of its own."""
    inner = warm(of_a_global)

    @nki.jit
    def outer(x):
        return inner(x)

    for _ in range(3):
        np.testing.assert_array_equal(outer(ramp()), ramp() * 2)
        np.testing.assert_array_equal(inner(ramp()), ramp() * 2)
    seen = []

    class Array(np.ndarray):
        @property
        def dtype(self):
            # The conversion of arguments calls this.
            seen.append(inner(ramp())[0, 1])
            return np.ndarray.dtype.__get__(self)

    np.testing.assert_array_equal(inner(ramp().view(Array)), ramp() * 2)
    assert seen and set(seen) == {2.0}


def test_an_error_leaves_the_program_as_it_was():
    kernel = warm(of_a_global)
    for wrong in ((), (ramp(), ramp())):
        with pytest.raises(nki_sim.ArgumentTypeError):
            kernel(*wrong)
    with pytest.raises(nki_sim.KernelError):
        kernel(None)
    np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    assert len(kernel._cache) == 1
