"""The drop-in `jax_neuronx`: kernels of the older dialect that write their results to arguments."""

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

import neuronxcc.nki as nki  # noqa: E402
import neuronxcc.nki.language as nl  # noqa: E402
from jax_neuronx import nki_call  # noqa: E402

Shape = jax.ShapeDtypeStruct


def add_(a, b, out):
    i = nl.arange(a.shape[0])[:, None]
    j = nl.arange(a.shape[1])[None, :]
    nl.store(out[i, j], nl.load(a[i, j]) + nl.load(b[i, j]))


def add_on_grid_(a, b, out):
    i = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    j = nl.program_id(1) * 64 + nl.arange(64)[None, :]
    nl.store(out[i, j], nl.load(a[i, j]) + nl.load(b[i, j]))


def scaled_(factor, a, out, sums, offset=0.0):
    for t in nl.affine_range(a.shape[0] // 128):
        i = t * 128 + nl.arange(128)[:, None]
        j = nl.arange(a.shape[1])[None, :]
        x = nl.load(a[i, j])
        nl.store(out[i, j], nl.multiply(x, factor) + offset)
        nl.store(sums[i, nl.arange(1)[None, :]], nl.sum(x, axis=1, keepdims=True))


@pytest.fixture(params=["parser", "tracer"], autouse=True)
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)


def test_a_kernel_writes_the_results_of_these_shapes():
    for shape, dtype in (((128, 64), jnp.float32), ((5, 3), jnp.bfloat16), ((1, 1), jnp.int32)):
        a = jnp.arange(np.prod(shape)).reshape(shape).astype(dtype)
        got = nki_call(add_, a, a, out_shape=Shape(shape, dtype))
        assert isinstance(got, jax.Array) and got.dtype == dtype and jnp.array_equal(got, a + a)
    a = jnp.ones((128, 4))
    assert jnp.array_equal(nki_call(nki.jit(add_), a, a, out_shape=Shape(a.shape, a.dtype)), a + a)


def test_a_grid():
    a = jnp.arange(256.0 * 128).reshape(256, 128)
    assert jnp.array_equal(nki_call(add_on_grid_, a, a, grid=(2, 2), out_shape=Shape(a.shape, a.dtype)), a + a)


def test_the_values_of_a_partial_are_constants():
    a = jnp.arange(256.0 * 3).reshape(256, 3)
    shapes = {"scaled": Shape(a.shape, jnp.float32), "sums": Shape((256, 1), jnp.float32)}
    for factor, offset in ((2.0, 0.0), (2, 1.0), (-1.0, 1.0)):
        func = functools.partial(functools.partial(scaled_, factor), offset=offset)
        got = nki_call(func, a, out_shape=list(shapes.values()))
        assert isinstance(got, list) and jnp.array_equal(got[0], a * factor + offset)
    assert jnp.array_equal(got[1], a.sum(axis=1, keepdims=True))
    assert set(nki_call(functools.partial(scaled_, 1.0), a, out_shape=shapes)) == {"scaled", "sums"}


def test_in_a_graph():
    f = jax.jit(lambda x: nki_call(add_, x, 2 * x, out_shape=Shape(x.shape, x.dtype)) + 1)
    for n in (8, 3):
        x = jnp.arange(128.0 * n).reshape(128, n)
        assert jnp.array_equal(f(x), 3 * x + 1)


def test_errors():
    a = jnp.ones((4, 4))
    for out_shape in (None, (), 3):
        with pytest.raises(TypeError, match="nki_call needs out_shape="):
            nki_call(add_, a, a, out_shape=out_shape)
    with pytest.raises(TypeError, match="nki_call needs a kernel, not 3"):
        nki_call(3, a, out_shape=Shape((4, 4), jnp.float32))
    with pytest.raises(TypeError, match="takes 3 positional arguments but 4 were given"):
        nki_call(add_, a, a, a, out_shape=Shape((4, 4), jnp.float32))
