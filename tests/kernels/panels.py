"""Ten panels, doubled and reversed: several ways to keep tiles."""

import nki
import nki.isa as nisa
import nki.language as nl

PANELS, ROWS, WIDTH = 10, 112, 384


def doubled(dst, src):
    nisa.activation(dst, nl.copy, src, scale=2.0)


@nki.jit
def side_by_side(x):
    """One tile holds all panels: their number is a free dimension."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    wide = nl.ndarray((ROWS, PANELS, WIDTH), x.dtype, buffer=nl.sbuf)
    for n in range(PANELS):
        nisa.dma_copy(wide[:, n, :], x[n])
    doubled(wide, wide)
    for n in range(PANELS):
        nisa.dma_copy(out[PANELS - 1 - n], wide[:, n])
    return out


@nki.jit
def tile_of_its_own(x):
    """A tile for each panel, created in the loop: the panels overlap in time."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for n in range(PANELS):
        panel = nl.ndarray((ROWS, WIDTH), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(panel, x[n])
        doubled(panel, panel)
        nisa.dma_copy(out[PANELS - 1 - n], panel)
    return out


@nki.jit
def tile_in_common(x):
    """One tile for all panels: each load waits for the store of the previous panel."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    panel = nl.ndarray((ROWS, WIDTH), x.dtype, buffer=nl.sbuf)
    for n in range(PANELS):
        nisa.dma_copy(panel, x[n])
        doubled(panel, panel)
        nisa.dma_copy(out[PANELS - 1 - n], panel)
    return out


@nki.jit
def tiles_in_a_list(x):
    """The tiles are created first, in a list, and used from its end."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    waiting = []
    for n in range(PANELS):
        waiting.append(nl.ndarray((ROWS, WIDTH), x.dtype, buffer=nl.sbuf))
        nisa.dma_copy(src=x[n], dst=waiting[n])
    for n in range(PANELS):
        last = waiting.pop()
        doubled(last, last)
        nisa.dma_copy(src=last, dst=out[n])
    return out


@nki.jit
def assigned(x):
    """Indexed tensors as targets of assignments: HBM to SBUF, HBM and SBUF to PSUM, PSUM and SBUF to HBM."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    wide = nl.ndarray((ROWS, PANELS, WIDTH), x.dtype, buffer=nl.sbuf)
    bank = nl.ndarray((ROWS, WIDTH), x.dtype, buffer=nl.psum)
    for n in range(1, PANELS):
        wide[0:ROWS, n, 0:WIDTH] = nl.load(x[n]) if n > 6 else x[n]
    for n in range(PANELS):
        bank[...] = wide[:, n, :] if n else x[n]
        doubled(bank, bank)
        out[PANELS - 1 - n] = nl.copy(bank) if n % 3 else bank
    return out
