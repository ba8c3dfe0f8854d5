"""Device scalars (`NkiScalar`): loads, stores, wrapping arithmetic, offsets, loop bounds and loop variables."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def arithmetic(a, b):
    """a + b, a - b, a * b, -a, 3 * a + 100 and 7 - b, each stored in a separate element."""
    out = nl.ndarray((6, 1), dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nisa.scalar_load(a), nisa.scalar_load(b)
    assert x.dtype == a.dtype
    results = [x + y, x - y, x * y, -x, 3 * x + 100, 7 - +y]
    for i, value in enumerate(results):
        nisa.scalar_store(out[i:i + 1, 0:1], value)
    return out


@nki.jit
def picked_row(x, number):
    """The row after twice `number`, of x in HBM, through an int64 offset; its half through an int32 offset on chip."""
    rows, width = x.shape
    row = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.shared_hbm)
    part = nl.ndarray((1, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    wide = nisa.scalar_load(number) * 2 + 1
    narrow = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(narrow, 1)
    column = nisa.scalar_load(narrow) + 1
    t = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x.ap([[width, 1], [1, width]], 0, scalar_offset=wide, indirect_dim=0))
    nisa.dma_copy(dst=row, src=t)
    pair = nl.ndarray((1, 2), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=pair, src=t[0:1, nl.ds(column, 2)])
    nisa.dma_copy(dst=part, src=pair)
    return row, part


@nki.jit
def triangle(x, count):
    """Adds row i of x to the sum i times, for i below `count` + 1: the loop variable and the bounds of the inner loop are scalars."""
    rows, width = x.shape
    out = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
    row = nl.ndarray((1, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(total, 0.0)
    limit = nisa.scalar_load(count)

    def add(j):
        nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)

    def body(i):
        last = i * 2 - i
        nisa.dma_copy(dst=row, src=x.ap([[width, 1], [1, width]], 0, scalar_offset=last, indirect_dim=0))
        nl.fori_loop(0, last, add)

    nl.fori_loop(0, limit + 1, body)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def copied_wide(x):
    """An int64 tensor through SBUF."""
    out = nl.ndarray(x.shape, dtype=nl.int64, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out[:, 1::2], src=t[:, 1::2])
    nisa.dma_copy(dst=out[:, 0::2], src=t[:, 0::2])
    return out
