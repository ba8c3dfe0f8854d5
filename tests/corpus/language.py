"""Functions of nl that expand to several instructions."""

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


@nki.jit
def convert(x, dtype, how):
    """The array converted to another type, by an engine's copy or by DMA."""
    kind = getattr(nl, dtype)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    other = nl.ndarray(x.shape, kind, buffer=nl.sbuf)
    if how == "dma":
        nisa.dma_copy(dst=other, src=tile)
    else:
        nisa.tensor_copy(dst=other, src=tile, engine=nisa.engine.gpsimd if how == "gpsimd" else nisa.engine.vector)
    out = nl.ndarray(x.shape, kind, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=other)
    return out
