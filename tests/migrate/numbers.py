"""Types of results that the languages choose differently, operands that both repeat, and modes by generation."""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def choices(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.where(nl.load(x) > 0.0, 1.0, -1.0))
    return out


@nki.jit
def numpy_numbers(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((64, 32), dtype=nl.bfloat16, buffer=nl.sbuf)
    t[...] = nl.load(x)
    nl.store(out, t + np.float32(2))
    return out


@nki.jit
def mean_of_integers(x):
    out = nl.ndarray((64, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((64, 32), dtype=nl.int32, buffer=nl.sbuf)
    t[...] = nl.load(x)
    nl.store(out, nl.mean(t, axis=1))
    return out


@nki.jit
def both_repeat(x, y):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x[0:64, 0:1])
    b = nl.load(y[0:1, 0:32])
    nl.store(out, nl.add(a, b))
    return out


@nki.jit
def double_rows(x, y):
    import neuronxcc.nki.isa as nisa

    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x)
    b = nl.load(y)
    c = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    c += nisa.nc_matmul(a[0:128, 0:2, 0:128], b[0:128, 0:2, 0:512], perf_mode="double_row_gen3")
    nl.store(out, nl.copy(c))
    return out


@nki.jit
def in_parts(x):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.zeros((64, 32), dtype=nl.float32)
    for i in nl.static_range(2):
        t[32 * i : 32 * i + 32, 0:16] = i + 1.5
    nl.store(out, t)
    return out
