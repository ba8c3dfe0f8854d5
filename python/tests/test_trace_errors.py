"""Kernels that Python executes: rejected code, threads, and nested traces."""

import threading

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from findings import warned
from kernels import load, scaled, store
from test_trace import partials, used
from tracing import ramp

import nki_sim


# Errors.


def test_a_place_is_that_of_the_call():
    def kernel(x):
        tile = load(x)
        for i in range(2):
            nisa.tensor_copy(
                dst=tile[0:2, :],
                src=tile[0:4, :],
            )

    with pytest.raises(nisa.NkiValidationError) as info:
        nki.jit(kernel)(ramp())
    first = kernel.__code__.co_firstlineno
    # At the operand, which is on a separate line.
    assert info.value.line == first + 4 and "dst=tile[0:2, :]" in str(info.value)


def test_an_exception_of_python_is_a_finding_with_its_place():
    def helper(x):
        return [1, 2][x.shape[0]]

    def kernel(x):
        return helper(x)

    with pytest.raises(IndexError, match="list index out of range") as info:
        nki.jit(kernel)(ramp())
    assert info.value.slug == "index-out-of-range" and info.value.line == helper.__code__.co_firstlineno + 1
    assert "in this call of `helper`" in str(info.value) and isinstance(info.value.original, IndexError)
    # One traceback: this function, then the kernel and the functions that it calls.
    assert info.value.__cause__ is None and [entry.name for entry in info.traceback] == ["test_an_exception_of_python_is_a_finding_with_its_place", "kernel", "helper"]


class OwnError(Exception):
    def __init__(self, number, text):
        super().__init__(text)
        self.number = number


def test_an_exception_of_ones_own_passes():
    def kernel(x):
        raise OwnError(3, "mine")

    with pytest.raises(OwnError, match="mine"):
        nki.jit(kernel)(ramp())


def test_an_exception_leaves_a_clean_state():
    def kernel(x, fails):
        tile = load(x)

        def body(i):
            if fails:
                raise KeyError("in the body")
            nisa.tensor_copy(dst=tile, src=tile)

        nl.fori_loop(0, 2, body)
        return store(tile)

    made = nki.jit(kernel)
    want = made.compile(ramp(), False).text()
    made = nki.jit(kernel)
    for _ in range(2):
        with pytest.raises(KeyError, match="in the body"):
            made(ramp(), True)
        assert made.compile(ramp(), False).text() == want
        assert not nki_sim._native.is_tracing()


def test_a_dynamic_loop_ends_where_it_ends():
    def leaves(x):
        tile = load(x)
        for i in nl.dynamic_range(8):
            nisa.tensor_copy(dst=tile, src=tile)
            break
        return store(tile)

    with pytest.raises(nki_sim.KernelError, match="left before the end of its body"):
        nki.jit(leaves)(ramp())

    def raises(x):
        tile = load(x)
        try:
            for i in nl.dynamic_range(8):
                scaled(tile, 3.0)
                raise ValueError
        except ValueError:
            pass
        return store(tile)

    # A failure leaves nothing behind.
    np.testing.assert_array_equal(nki.jit(raises)(ramp()), ramp())


def test_what_a_device_loop_does_not_carry():
    def kernel(x):
        old, new = load(x), nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
        count = total = unread = 0
        for i in nl.dynamic_range(3):
            count += 1
            unread += 1
            nisa.tensor_scalar(dst=new, data=old, op0=nl.add, operand0=float(count))
            old, new = new, old

        def body(i):
            nonlocal total
            total += 2
            nisa.tensor_scalar(dst=old, data=old, op0=nl.add, operand0=float(total))

        nl.fori_loop(0, 3, body)
        return store(old)

    said = "".join(warned(lambda: nki.jit(kernel)(ramp())))
    assert all(said.count(f"`{name}` {what}") == 1 for name, what in [
        ("count", "is assigned in a loop"), ("old", "is assigned in a loop"), ("total", "of an enclosing function")
    ])
    assert "`unread`" not in said


def test_what_escapes_a_kernel_says_so():
    kept = []

    def kernel(x):
        tile = load(x)
        kept.extend([tile, tile.reshape, nisa.register_alloc()])
        return store(tile)

    nki.jit(kernel)(ramp())
    for use in (
        lambda: kept[0].shape,
        lambda: kept[0][0:1],
        lambda: kept[1]((2, 4)),
        lambda: kept[2] + 1,
        lambda: bool(kept[2]),
    ):
        with pytest.raises(nki_sim.OutsideKernelError, match="outside of the kernel"):
            use()
    assert "specialised" in repr(kept[0])

    def again(x):
        return store(kept[0])

    with pytest.raises(nki_sim.OutsideKernelError):
        nki.jit(again)(ramp())


def test_an_instruction_outside_of_a_kernel_is_refused():
    with pytest.raises(nki_sim.OutsideKernelError, match="nki.isa.dma_copy was called outside of a kernel"):
        nisa.dma_copy(dst=None, src=None)
    with pytest.raises(nki_sim.OutsideKernelError):
        nl.NkiTensor()


def test_odd_arguments():
    def kernel(tile, register):
        nisa.memset(tile, value=float("nan"))

    assert np.isnan(used(kernel)(ramp())).all()
    cyclic = []
    cyclic.append(cyclic)
    for value in (1 << 80, cyclic, object(), [object()], {1, 2}, "x" * 100, 1j):
        with pytest.raises(nki_sim.KernelError, match="operand0"):
            used(lambda tile, register: scaled(tile, value))(ramp())
    with pytest.raises(nki_sim.ArgumentError):
        nki.jit(partials)(np.zeros((0, 4), np.float32))
    np.testing.assert_array_equal(used(lambda tile, register: scaled(tile, np.float32(2)))(ramp()), ramp() * 2)
    np.testing.assert_array_equal(used(lambda tile, register: scaled(tile, np.int64(2)))(ramp()), ramp() * 2)


# Threads and nested traces.


def test_threads_trace_at_once():
    results = {}
    meet = threading.Barrier(4)

    def run(number):
        def kernel(x):
            tile = load(x)
            for _ in range(20):
                meet.wait(30)
                scaled(tile, 1.0)
            return store(scaled(tile, float(number)))

        results[number] = nki.jit(kernel)(ramp())

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(results[number], ramp() * number)


def test_a_value_belongs_to_the_thread_of_its_kernel():
    def kernel(x):
        tile = load(x)
        caught = []

        def use():
            try:
                scaled(tile, 2.0)
            except nki_sim.OutsideKernelError as error:
                caught.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert caught
        return store(tile)

    np.testing.assert_array_equal(nki.jit(kernel)(ramp()), ramp())


def test_a_trace_inside_of_a_trace():
    texts = []

    def inner(x):
        return store(scaled(load(x), 3.0))

    def outer(x):
        tile = load(x)
        texts.append(nki.trace(nki.jit(inner)).specialize(ramp(2, 2)).text())
        return store(scaled(tile, 2.0))

    np.testing.assert_array_equal(nki.jit(outer)(ramp()), ramp() * 2)
    assert texts == [nki.jit(inner).compile(ramp(2, 2)).text()]
