"""Constants of the host in HBM."""

import constant_tables
import nki
import nki.isa as nisa
import nki.language as nl
from constant_tables import NEARLY, TABLES


def copied(constant):
    out = nl.ndarray(constant.shape, constant.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=constant)
    return out


@nki.jit
def table(which):
    out = copied(nl.shared_constant(TABLES[which]))
    return out


@nki.jit
def nearly(which):
    out = copied(nl.shared_constant(NEARLY[which]))
    return out


@nki.jit
def from_file(path):
    out = copied(nl.shared_constant(path))
    return out


@nki.jit
def numbers(scale):
    """Elements of an array as numbers of the meta-program."""
    rows = constant_tables.ROWS
    out = nl.ndarray((1, rows.shape[0]), nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((1, rows.shape[0]), nl.float32, buffer=nl.sbuf)
    for i, row in enumerate(rows):
        nisa.memset(dst=tile[:, i : i + 1], value=float(row[-1] * scale))
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def identity(n, dtype):
    tile = nl.shared_identity_matrix(n, dtype=getattr(nl, dtype))
    out = nl.ndarray((n, n), tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
