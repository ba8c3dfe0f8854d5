"""Compound statements, and index tiles that are defined on one line."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def matched(x, mode):
    i_p = nl.arange(64)[:, None]; i_f = nl.arange(32)[None, :]
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    match mode:
        case "exp" | "sum" if x.shape[0] == 64:
            tile = nl.load(x[i_p, i_f])
            if mode == "sum":
                tile[i_p, i_f] = nisa.tensor_scalar(tile, nl.add, 1.0)
            nl.store(out[i_p, i_f], nl.exp(tile))
        case int(count):
            tile = nl.load(x[i_p, i_f])
            for _ in nl.sequential_range(count):
                tile[...] = nisa.tensor_tensor(tile, tile, nl.add)
            nl.store(out, tile)
        case _: nl.store(out, nl.load(x))
    return out


def shape(n):
    if n: i_p = nl.arange(8)[:, None]; i_f = nl.arange(8)[None, :]
    return n


def scaled(a, b, by):
    """Parameters that are tiles in all calls, and a number."""
    return a * b + a if by > 1 else a


def both(a, b):
    return a - b, a * b


def last(tiles):
    return tiles[-1]


@nki.jit
def helped(x, y):
    i_p = nl.arange(64)[:, None]
    i_f = nl.arange(32)[None, :]
    out = nl.ndarray((4, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x[i_p, i_f]), nl.load(y[i_p, i_f])
    total = scaled(a, b, 2.0)
    tiles = [a, b]
    for at, tile in enumerate(tiles):
        total = total - tile
    table = {"a": a}
    nl.store(out[0], total + table["a"])
    difference, product = both(a, b=b)
    nl.store(out[1], difference * product)
    more = []
    more.append(product)
    for left, right in zip(tiles, more):
        nl.store(out[2], left * right)
    nl.store(out[3], -last(tiles))
    return out
