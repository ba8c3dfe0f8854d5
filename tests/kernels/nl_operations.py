"""The operations of nki.language that return tiles."""

import nki
import nki.isa as nisa
import nki.language as nl


def stored(tile):
    result = nl.ndarray(tile.shape, nl.float32, buffer=nl.shared_hbm)
    nl.store(result, tile)
    return result


@nki.jit
def nl_operations(x, w, y):
    a, weight, b = nl.load(x), nl.load(w), nl.load(y)
    softmax = stored(nl.softmax(a, axis=1))
    norm = stored(nl.rms_norm(a, weight, axis=1, n=a.shape[1]))
    floor = stored(nl.floor(a))
    ceil = stored(nl.ceil(a))
    trunc = stored(nl.trunc(a))
    variance = stored(nl.var(a, axis=1))
    mean = stored(nl.mean(a, axis=1, keepdims=True))
    chosen = stored(nl.where(nl.greater(a, b), a, 0.5))
    product = stored(nl.matmul(a, b, transpose_x=True))
    turned = stored(nl.matmul(a, nl.copy(nl.transpose(b))))
    difference = stored(nl.subtract(1.0, a))
    root = stored(nl.rsqrt(nl.abs(a)))
    row = stored(nl.add(a, nl.broadcast_to(weight[0:1, :], (128, 64))))
    column = stored(nl.minimum(a, b[:, 0:1]))
    cosine = stored(nl.cos(a))
    identity = stored(nl.shared_identity_matrix(128, dtype=nl.float32))
    zeros = nl.zeros((300, 70), nl.float32, buffer=nl.shared_hbm)
    return (softmax, norm, floor, ceil, trunc, variance, mean, chosen, product, turned, difference, root, row, column,
            cosine, identity, zeros)


@nki.jit
def nl_choices(x, y):
    """nl.where with a condition, a branch and a row of each shape that broadcasts."""
    a, b = nl.load(x), nl.load(y)
    column = nl.greater(b[:, 0:1], 0.0)
    rows = stored(nl.where(column, a, b))
    branch = stored(nl.where(column, a, 2.0))
    single = stored(nl.where(nl.greater(a, b), a[:, 0:1], b))
    return rows, branch, single


@nki.jit
def nl_rows(x, w):
    """Operations on a tile of one partition and one of 128: NumPy's broadcasting. `x` is (128, 64), `w` is (1, 64)."""
    a, row = nl.load(x), nl.load(w)
    product = stored(nl.multiply(a, row))
    difference = stored(nl.subtract(row, a))
    power = stored(nl.power(nl.abs(row), nl.abs(a[:, 0:1])))
    single = stored(nl.add(row[:, 0:1], a))
    outer = stored(nl.multiply(a[:, 0:1], row))
    own = stored(nl.maximum(a[5:6, :], a))
    norm = stored(nl.rms_norm(a, row, axis=1, n=a.shape[1]))
    condition = stored(nl.where(nl.greater(row, 0.0), a, 0.5))
    branch = stored(nl.where(nl.greater(a, 0.0), row, a))
    rows = stored(nl.where(nl.greater(row, 0.0), row, a))
    return product, difference, power, single, outer, own, norm, condition, branch, rows
