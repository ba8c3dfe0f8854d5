"""Masked reductions, and reductions of tiles with three dimensions."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def masked(x):
    """Masks that bound a reduced axis, one that stays, or both."""
    n, d = x.shape
    out = nl.ndarray((n, 3), dtype=nl.float32, buffer=nl.shared_hbm)
    for block in nl.affine_range((n + 127) // 128):
        i, j, one = nl.arange(128)[:, None], nl.arange(64)[None, :], nl.arange(1)[None, :]
        t = nl.load(x[block * 128 + i, j], mask=(block * 128 + i < n) & (j < d))
        fresh = nisa.tensor_reduce(nl.add, t[i, j], axis=[1], mask=(block * 128 + i < n) & (j < d))
        part = nl.zeros((128, 2), dtype=nl.float32)
        part[:, 0:1] = nisa.tensor_reduce(nl.max, t[i, j], axis=[1], keepdims=True, mask=(block * 128 + i < n) & (j < d))
        part[i, one + 1] = nisa.tensor_reduce(nl.min, t[i, j], axis=1, mask=(block * 128 + i < n) & (j < d))
        nl.store(out[block * 128 + i, one], fresh, mask=block * 128 + i < n)
        nl.store(out[block * 128 + i, nl.arange(2)[None, :] + 1], part, mask=block * 128 + i < n)
    return out


@nki.jit
def of_three_axes(x):
    """What nl.var and nl.mean leave of three dimensions, with and without those that they reduce."""
    out = nl.ndarray((4, 64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x.reshape((64, 8, 5)))
    variance = nl.var(t, axis=2)
    mean = nl.mean(t, axis=[-1])
    nl.store(out[0], nl.add(variance, mean))
    part = nl.ndarray((64, 8), dtype=nl.float32)
    part[...] = nl.var(t, axis=[2])
    nl.store(out[1], part)
    kept = nl.subtract(t, nl.var(t, axis=2, keepdims=True))
    nl.store(out[2], nl.sum(kept, axis=2))
    i, j, k = nl.arange(64)[:, None, None], nl.arange(8)[None, :, None], nl.arange(5)[None, None, :]
    few = nisa.tensor_reduce(nl.add, t[i, j, k], axis=[2], mask=k < 3)
    nl.store(out[3], few)
    return out


@nki.jit
def of_two_axes(x):
    n, d = x.shape
    out = nl.ndarray((n, d), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    mean, variance = nl.mean(t, axis=1), nl.var(t, axis=1)
    nl.store(out, nl.multiply(nl.subtract(t, mean), nl.rsqrt(variance + 1e-5)))
    return out


@nki.jit
def of_middle_axes(x):
    """Reductions of dimensions that are not the last, which the current language does not have."""
    out = nl.ndarray((5, 64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x.reshape((64, 5, 8)))
    nl.store(out[0], nl.sum(t, axis=1))
    nl.store(out[1], nl.max(t + 1.0, axis=-2))
    variance = nl.var(t, axis=[1])
    assert variance.shape == (64, 8)
    nl.store(out[2], variance)
    part = nl.ndarray((64, 8), dtype=nl.float32)
    part[...] = nl.mean(t, axis=1)
    nl.store(out[3], part)
    whole = nl.var(t, axis=[1, 2])
    assert whole.shape == (64, 1)
    nl.store(out[4], part * whole)
    return out


@nki.jit
def of_four_axes(x):
    out = nl.ndarray((2, 64, 5), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x.reshape((64, 2, 5, 4)))
    nl.store(out[0], nl.sum(t, axis=(1, 3)))
    nl.store(out[1], nl.sum(nl.min(t, axis=1), axis=2))
    return out


@nki.jit
def of_numpy(x):
    """NumPy's functions of tiles; those of numbers of the host stay."""
    n, d = x.shape
    out = nl.ndarray((n, d), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x[0:n, 0:d])
    largest = np.amax(t, axis=1, keepdims=True)
    e = np.exp(np.subtract(t, largest))
    share = np.multiply(e, np.reciprocal(np.sum(e, axis=[1], keepdims=True)))
    least = float(np.sqrt(0.0001))
    nl.store(out, np.maximum(share, least))
    return out
