"""Element-wise sum of two matrices of any size: min() bounds the edge tiles."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: a=float32[256,1024] b=float32[256,1024]
@nki.jit
def elementwise_add(a, b):
    """out = a + b, tile by tile, for two-dimensional a and b of the same shape."""
    assert a.shape == b.shape, f"a is {a.shape}, b is {b.shape}"
    rows, columns = a.shape
    row_tile = nl.tile_size.pmax
    column_tile = 512
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for r in nl.affine_range((rows + row_tile - 1) // row_tile):
        r0 = r * row_tile
        r1 = min(r0 + row_tile, rows)
        for c in nl.affine_range((columns + column_tile - 1) // column_tile):
            c0 = c * column_tile
            c1 = min(c0 + column_tile, columns)
            left = nl.ndarray((r1 - r0, c1 - c0), dtype=a.dtype, buffer=nl.sbuf)
            right = nl.ndarray((r1 - r0, c1 - c0), dtype=b.dtype, buffer=nl.sbuf)
            total = nl.ndarray((r1 - r0, c1 - c0), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=left, src=a[r0:r1, c0:c1])
            nisa.dma_copy(dst=right, src=b[r0:r1, c0:c1])
            nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
            nisa.dma_copy(dst=out[r0:r1, c0:c1], src=total)
    return out
