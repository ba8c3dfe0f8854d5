"""Positions in HBM that only the device knows: a page by its number, rows by an index each."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def page_by_number(pages, number):
    """out[R, W / 2] = the right half of page `number`; pages[N * R, W] with R = 80, number int32[1, 1]."""
    rows, width = 80, pages.shape[1]
    half = width // 2
    first = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=first, src=number)
    nisa.tensor_scalar(dst=first, data=first, op0=nl.multiply, operand0=rows)
    out = nl.ndarray((rows, half), pages.dtype, buffer=nl.shared_hbm)
    right = pages.ap(pattern=[[width, rows], [1, half]], offset=half, scalar_offset=first, indirect_dim=0)
    nisa.dma_copy(dst=out[...], src=right)
    return out


@nki.jit
def every_third_row_upwards(x):
    """out[i] = x[117 - 3 * i] for 40 rows; the device generates the indices, one per partition."""
    index = nl.ndarray((40, 1), nl.int32, nl.sbuf)
    nisa.iota(index, [[1, 1]], 117, -3)
    tile = nl.ndarray((40, x.shape[1]), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(tile, x.ap([[x.shape[1], 40], [1, x.shape[1]]], 0, vector_offset=index, indirect_dim=0), name="gather")
    out = nl.ndarray(tile.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(out, tile, name="store")
    return out
