"""Random numbers: properties that hold for every draw."""

import nki
import nki.isa as nisa
import nki.language as nl


def stored(tile):
    result = nl.ndarray(tile.shape, nl.float32, buffer=nl.shared_hbm)
    nl.store(result, tile)
    return result


@nki.jit
def uniform(seed_value):
    seed = nl.load(seed_value)
    nl.random_seed(seed)
    first = nl.rand((128, 512), dtype=nl.float32)
    second = nl.rand((128, 512), dtype=nl.float32)
    nl.random_seed(seed)
    again = nl.rand((128, 512), dtype=nl.float32)
    repeats = stored(nl.subtract(first, again))
    # Two draws agree in few positions, if any.
    differ = stored(nl.mean(nl.not_equal(first, second, dtype=nl.float32), axis=1))
    inside = stored(nl.multiply(nl.greater_equal(first, 0.0), nl.less(first, 1.0)))
    mean = stored(nl.mean(first, axis=1))
    variance = stored(nl.var(first, axis=1))
    in_hbm = nl.rand((300, 200), dtype=nl.float32, buffer=nl.hbm)
    hbm_mean = stored(nl.mean(nl.load(in_hbm.reshape((100, 600))), axis=1))
    return repeats, differ, inside, mean, variance, hbm_mean


@nki.jit
def dropped(x):
    tile = nl.load(x)
    kept = stored(nl.dropout(tile, 0.0))
    gone = stored(nl.dropout(tile, 1))
    rates = nl.zeros((tile.shape[0], 1), nl.float32)
    nisa.memset(rates[0:32], value=1.0)
    by_partition = stored(nl.dropout(tile, rates))
    quarter = nl.dropout(tile, 0.25)
    # Elements that are kept are not changed: d * (d - x) is 0 everywhere.
    changed = stored(nl.multiply(quarter, nl.subtract(quarter, tile)))
    share = stored(nl.mean(nl.not_equal(quarter, 0.0, dtype=nl.float32), axis=1))
    return kept, gone, by_partition, changed, share
