"""Every function of nki.language that returns a tile, by name."""

import nki
import nki.isa as nisa
import nki.language as nl


def stored(tile):
    result = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nl.store(result, tile)
    return result


@nki.jit
def unary(x, functions):
    tile = nl.load(x)
    return {name: stored(getattr(nl, name)(tile)) for name in functions}


@nki.jit
def binary(x, y, functions):
    a, b = nl.load(x), nl.load(y)
    return {name: stored(getattr(nl, name)(a, b)) for name in functions}


@nki.jit
def reductions(x, functions):
    tile = nl.load(x)
    return {name: stored(getattr(nl, name)(tile, axis=1)) for name in functions}


@nki.jit
def moves(x, indices, order):
    tile = nl.load(x)
    which = nl.load(indices)
    gathered = stored(nl.gather_flattened(tile, which))
    as_float = stored(nl.gather_flattened(tile, which, dtype=nl.bfloat16))
    turned = stored(nl.load_transpose2d(x))
    turned_wide = stored(nl.load_transpose2d(order, dtype=nl.float32))
    expanded = nl.expand_dims(tile, axis=1)
    middle = stored(nl.copy(expanded, dtype=nl.bfloat16).reshape(tile.shape))
    alike = nl.zeros_like(tile)
    nisa.tensor_copy(alike[:, 0:3], nl.ones((tile.shape[0], 3), nl.float32))
    marked = stored(alike)
    filled = nl.empty_like(which, buffer=nl.sbuf)
    nisa.memset(filled, value=7)
    sevens = stored(filled)
    with nl.no_reorder():
        last = stored(nl.full((4, 5), 2.5, nl.float32))
    return gathered, as_float, turned, turned_wide, middle, marked, sevens, last


@nki.jit
def constants():
    table = nl.load(nl.shared_constant([[1.5, -2.0, 0.25], [4.0, 5.0, 6.0]]))
    floats = stored(table)
    whole = stored(nl.load(nl.shared_constant([[1, 2], [3, 70000]])))
    small = nl.ndarray((64, 64), nl.bfloat16)
    nl.shared_identity_matrix(64, dtype=nl.bfloat16, dst=small)
    identity = stored(small)
    default = stored(nl.shared_identity_matrix(32))
    return floats, whole, identity, default
