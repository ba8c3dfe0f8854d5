"""Random number generators and dropout."""

import nki
import nki.isa as nisa
import nki.language as nl


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def bits(seed, shape, dtype):
    """Two tiles after a seed, and a third after the same seed again."""
    s = nl.ndarray((1, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s, src=seed)
    tiles = []
    for i in nl.static_range(3):
        if i != 1:
            nisa.set_rng_seed(src_seeds=s)
        tile = nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf)
        nisa.rng(dst=tile)
        tiles.append(tile)
    first = store(tiles[0])
    second = store(tiles[1])
    again = store(tiles[2])
    return first, second, again


@nki.jit
def state(words, n, engine):
    """Sets the state, draws, reads the state back."""
    where = nisa.engine.vector if engine == "vector" else nisa.engine.gpsimd
    w = nl.ndarray(words.shape, dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=w, src=words)
    nisa.rand_set_state(src_seeds=w, engine=where)
    tile = nl.ndarray((words.shape[0], n), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.rng(dst=tile, engine=where)
    after = nl.ndarray(words.shape, dtype=nl.uint32, buffer=nl.sbuf)
    nisa.rand_get_state(dst=after, engine=where)
    drawn = store(tile)
    left = store(after)
    return drawn, left


@nki.jit
def uniform(seed, low, high, n):
    s = nl.ndarray((1, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s, src=seed)
    nisa.set_rng_seed(src_seeds=s)
    P, _ = low.shape
    ends = []
    for end in (low, high):
        e = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=e, src=end)
        ends.append(e)
    tile = nl.ndarray((P, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.rand2(dst=tile, min=ends[0], max=ends[1])
    half = nl.ndarray((P, n), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.rand2(dst=half, min=-2.0, max=2.0)
    drawn = store(tile)
    rounded = store(half)
    return drawn, rounded


@nki.jit
def drop(seed, x, prob):
    s = nl.ndarray((1, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=s, src=seed)
    nisa.set_rng_seed(src_seeds=s)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    p = nl.ndarray(prob.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=p, src=prob)
    by_row = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dropout(dst=by_row, data=tile, prob=p)
    by_number = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dropout(dst=by_number, data=tile, prob=0.25)
    everything = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dropout(dst=everything, data=tile, prob=1.0)
    rows = store(by_row)
    quarter = store(by_number)
    none = store(everything)
    return rows, quarter, none
