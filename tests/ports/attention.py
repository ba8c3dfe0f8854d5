"""Attention of one head of 128 dimensions in two ways: with the scores in HBM between its three phases, or without."""

import nki
import nki.isa as nisa
import nki.language as nl

# What the compiler leaves open in the original it gave to the scalar engine, mostly: 37 of 48 copies out of PSUM in the captured profiles. Four
# transposes share a PSUM bank and a copy.
P = 128
KEYS = 512  # keys whose scores one matmul computes


def loaded(matrix):
    """The whole of a matrix of 128 rows in SBUF."""
    tile = nl.ndarray(matrix.shape, dtype=matrix.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=matrix)
    return tile


def turned(tile):
    """tile[128, n] with each 128 columns turned: [128, n / 128, 128] in fp32."""
    count = tile.shape[1] // P
    out = nl.ndarray((P, count, P), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(count // 4):
        product = nl.ndarray((P, 4, P), dtype=tile.dtype, buffer=nl.psum)
        for j in nl.affine_range(4):
            nisa.nc_transpose(dst=product[:, j, :], data=tile[:, nl.ds((4 * i + j) * P, P)])
        nisa.tensor_copy(dst=out[:, nl.ds(4 * i, 4), :], src=product, engine=nisa.engine.scalar)
    return out


def scores_of(q, k, block, scores):
    """scores[128, keys] of 128 queries."""
    for j in nl.affine_range(k.shape[1] // KEYS):
        product = nl.ndarray((P, KEYS), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=q[:, nl.ds(block * P, P)], moving=k[:, nl.ds(j * KEYS, KEYS)])
        nisa.tensor_copy(dst=scores[:, nl.ds(j * KEYS, KEYS)], src=product, engine=nisa.engine.scalar)


def exponentials(scores):
    """exp(scores - their maximum) and the inverse of its sum, by row."""
    parts = scores.shape[1] // KEYS
    maxima = nl.ndarray((P, parts), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(parts):
        nisa.tensor_reduce(dst=maxima[:, nl.ds(j, 1)], op=nl.maximum, data=scores[:, nl.ds(j * KEYS, KEYS)], axis=1)
    lowest = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=lowest, op=nl.maximum, data=maxima, axis=1, negate=True)
    powers = nl.ndarray(scores.shape, dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((P, parts), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(parts):
        here = nl.ds(j * KEYS, KEYS)
        nisa.activation(dst=powers[:, here], op=nl.exp, data=scores[:, here], bias=lowest)
        nisa.tensor_reduce(dst=sums[:, nl.ds(j, 1)], op=nl.add, data=powers[:, here], axis=1)
    total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
    inverse = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)
    return powers, inverse


def weighted(weights, values_t):
    """weights[128, keys] @ values, in PSUM; the contraction is over keys, so the weights are turned."""
    weights_t = turned(weights)
    out = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(weights.shape[1] // P):
        nisa.nc_matmul(dst=out, stationary=weights_t[:, i, :], moving=values_t[:, i, :])
    return out


@nki.jit
def fused(q, k, v):
    """out[S, 128] = softmax(q.T @ k) @ v.T for q, k, v[128, S]; divides by the row's sum at the end."""
    keys = k.shape[1]
    out = nl.ndarray((q.shape[1], P), dtype=q.dtype, buffer=nl.shared_hbm)
    q_all, k_all, v_all = loaded(q), loaded(k), loaded(v)
    values_t = turned(v_all)
    for block in nl.affine_range(q.shape[1] // P):
        scores = nl.ndarray((P, keys), dtype=nl.float32, buffer=nl.sbuf)
        scores_of(q_all, k_all, block, scores)
        powers, inverse = exponentials(scores)
        product = weighted(powers, values_t)
        result = nl.ndarray((P, P), dtype=q.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=product, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(block * P, P), :], src=result)
    return out


@nki.jit
def three_phases(q, k, v):
    """The same; the scores and then the weights go through HBM."""
    keys = k.shape[1]
    blocks = q.shape[1] // P
    out = nl.ndarray((q.shape[1], P), dtype=q.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray((blocks, P, keys), dtype=nl.float32, buffer=nl.hbm)
    q_all, k_all, v_all = loaded(q), loaded(k), loaded(v)
    for block in nl.affine_range(blocks):
        scores = nl.ndarray((P, keys), dtype=nl.float32, buffer=nl.sbuf)
        scores_of(q_all, k_all, block, scores)
        nisa.dma_copy(dst=between[block], src=scores)
    for block in nl.affine_range(blocks):
        scores = loaded(between[block])
        powers, inverse = exponentials(scores)
        weights = nl.ndarray((P, keys), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(keys // KEYS):
            here = nl.ds(j * KEYS, KEYS)
            nisa.tensor_scalar(dst=weights[:, here], data=powers[:, here], op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=between[block], src=weights)
    values_t = turned(v_all)
    for block in nl.affine_range(blocks):
        product = weighted(loaded(between[block]), values_t)
        result = nl.ndarray((P, P), dtype=q.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product)
        nisa.dma_copy(dst=out[nl.ds(block * P, P), :], src=result)
    return out
