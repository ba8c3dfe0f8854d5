"""Partial tiles in the last row and column: bounds by min(), and slice objects as indices."""

import nki
import nki.isa as nisa
import nki.language as nl


def pieces(size, step):
    """Slices of at most `step` elements that cover 0 to `size`."""
    found = []
    for start in range(0, size, step):
        found.append(slice(start, min(start + step, size)))
    return found


@nki.jit
def negated(x):
    """out = -x, in tiles of 96 x 256."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for r in pieces(x.shape[0], 96):
        for c in pieces(x.shape[1], 256):
            tile = nl.ndarray((r.stop - r.start, c.stop - c.start), x.dtype, nl.sbuf)
            nisa.dma_copy(tile, x[r, c])
            nisa.tensor_scalar(tile, tile, nl.multiply, -1.0)
            nisa.dma_copy(out[r, c.start:c.stop], tile)
    return out
