"""Operations of integers for neuronxcc.nki, whose results are wider than in the current language: Python's ints count as int32, a quotient is float32."""

from neuronxcc import nki
from neuronxcc.nki import language as nl


@nki.jit
def known(x, y):
    """Tiles whose types the source shows."""
    out = nl.ndarray((10, 128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x, dtype=nl.int8), nl.load(y, dtype=nl.uint8)
    w = nl.load(y, dtype=nl.uint32)
    nl.store(out[0], a + 100)
    nl.store(out[1], 3 * a)
    nl.store(out[2], 1 - b)
    nl.store(out[3], nl.multiply(b, 100))
    nl.store(out[4], a / b)
    nl.store(out[5], b / 4)
    nl.store(out[6], -b)
    nl.store(out[7], a << 3)
    nl.store(out[8], w - 1)
    nl.store(out[9], (a + 100) * 2 - b)
    return out


@nki.jit
def unknown(x, y):
    """Tiles of the types of the arguments: what depends on them is listed."""
    out = nl.ndarray((3, 128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    nl.store(out[0], -a)
    nl.store(out[1], -a + b)
    nl.store(out[2], a + b)
    return out


@nki.jit
def listed(x, y):
    out = nl.ndarray((2, 128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    nl.store(out[0], a * 2)
    nl.store(out[1], a / b)
    return out
