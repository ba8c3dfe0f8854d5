"""Explicit access patterns, and tiles that fit into SBUF only if they share memory."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def slices(x, y):
    """Adds y to the columns of the right half of x from `start`, with a pattern whose partition step is that of the half."""
    P, F = x.shape
    half, n = F // 2, y.shape[1]
    tile = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    more = nl.ndarray(y.shape, dtype=y.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=more, src=y)
    right = tile[:, half:]
    some = right.ap(pattern=[[half, P], [1, n]], offset=half - n)
    nisa.tensor_tensor(dst=some, data1=some, data2=more, op=nl.add)
    # A view of a view, and every other column of it, in reverse.
    flipped = nl.ndarray((P, n // 2), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=flipped, src=right.ap(pattern=[[half, P], [1, n]]).ap(pattern=[[n, P], [-2, n // 2]], offset=n - 1))
    out = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    back = nl.ndarray((P, n // 2), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=back, src=flipped)
    return out, back


@nki.jit
def pick(x, index):
    """x[:, index], where the selected dimension has the stride and extent 1."""
    B, K, one, N = x.shape
    at = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=index)
    tile = nl.ndarray((B, N), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x.ap(pattern=[[K * N, B], [1, N]], scalar_offset=at, indirect_dim=2))
    out = nl.ndarray((B, N), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def tight(x, a, c):
    """Doubles a next to x and c. The tiles fit only if the double takes the place of a, and c is above it."""
    P, F = x.shape
    wide = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.sbuf)
    first = nl.ndarray((P // 2, F), dtype=x.dtype, buffer=nl.sbuf)
    third = nl.ndarray((P // 2, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=x)
    nisa.dma_copy(dst=first, src=a)
    nisa.dma_copy(dst=third, src=c)
    double = nl.ndarray((P // 2, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=double, data1=first, data2=first, op=nl.add)
    out = nl.ndarray((2 * P, F), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0 : P // 2], src=double)
    nisa.dma_copy(dst=out[P // 2 : P], src=third)
    nisa.dma_copy(dst=out[P:], src=wide)
    return out
