"""Comparisons, which are numbers in the current language, and operands of one partition."""

from neuronxcc import nki
from neuronxcc.nki import language as nl


@nki.jit
def comparisons(x):
    """Operators on comparisons: sums, products, the other truth."""
    out = nl.ndarray((8, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x[0:64, 0:32], dtype=nl.float32)
    nl.store(out[0], (t > 0) * 2.0)
    nl.store(out[1], 1.0 - (t > 0))
    nl.store(out[2], (t > 0) * t)
    nl.store(out[3], (t > 0) - 3)
    nl.store(out[4], (t > 0) + (t > -0.5))
    nl.store(out[5], ~(t > 0))
    nl.store(out[6], ~((t > -0.5) & (t < 0.5)) * 1.0)
    positive = t > 0
    total = nl.copy(+t)
    total += positive * 2.0
    nl.store(out[7], total)
    return out


@nki.jit
def rows(x, y):
    """Functions repeat an operand of one partition for the other one's partitions."""
    out = nl.ndarray((8, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    t, w = nl.load(x[0:64, 0:32]), nl.load(y[0:1, 0:32])
    vector = nl.load(y[0:1, 0:32])
    t = nl.load(x[0:64, 0:32])
    nl.store(out[0], nl.multiply(t, vector))
    nl.store(out[1], nl.add(nl.exp(vector), t))
    part = nl.ndarray((64, 32), dtype=nl.float32)
    part[...] = nl.maximum(t, vector)
    nl.store(out[2], part)
    nl.store(out[3], nl.rms_norm(t, vector, axis=1, n=32))
    nl.store(out[4], nl.rms_norm(x=t, w=part, axis=[1], n=32, epsilon=1e-5))
    unknown = nl.load(y)
    nl.store(out[5], nl.rms_norm(t, unknown, axis=1, n=32))
    nl.store(out[6], nl.subtract(t, t))
    column = nl.sum(t, axis=1)
    part[...] = column
    nl.store(out[7], part)
    return out
