"""Functions of nl that are several instructions."""

import nki
import nki.isa as nisa
import nki.language as nl

FUNCTIONS = {"sin": nl.sin, "cos": nl.cos, "tan": nl.tan, "floor": nl.floor, "ceil": nl.ceil, "trunc": nl.trunc}


@nki.jit
def unary(x, name):
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    nl.store(out, FUNCTIONS[name](tile, dtype=nl.float32))
    return out
