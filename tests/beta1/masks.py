"""Masks of tiles and operands that have only some of the axes of the masked tile."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def of_reductions(x):
    """Results of three axes reduced by one or two: the mask applies to the remaining axes, even if all have the same length."""
    p, a, b = x.shape
    out = nl.ndarray((p, 7, a), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    i, j, k = nl.mgrid[0:p, 0:a, 0:b]
    result = nl.zeros((p, 7, a), dtype=nl.float32)
    result[:, 0, :] = nisa.tensor_reduce(nl.add, tile[i, j, k], axis=[2], mask=(j < 4) & (k < 4))
    result[:, 1, :] = nl.max(tile[i, j, k], axis=2, mask=(i < 5) & (k >= 2))
    fresh = nl.mean(tile, axis=[2], mask=k < 3)
    result[:, 2, :] = fresh
    result[:, 3, 0:1] = nl.sum(tile, axis=[1, 2], mask=(i < 3) & (j < 4) & (k < 5))
    result[:, 4, :] = nl.var(tile, axis=2, mask=(j < 4) & (k < 4))
    kept = nisa.tensor_reduce(np.max, tile, axis=[2], keepdims=True, mask=(j < 2) & (k < 3))
    assert kept.shape == (p, a, 1)
    result[:, 5, 0:2] = kept[:, 0:2, 0]
    nl.store(out, result)
    return out


@nki.jit
def of_middle_axes(x):
    """A reduction of a middle axis, with a mask on this axis and on a remaining one."""
    p, a, b = x.shape
    out = nl.ndarray((3, p, b), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    i, j, k = nl.mgrid[0:p, 0:a, 0:b]
    first = nl.zeros((p, b), dtype=nl.float32)
    second = nl.zeros((p, b), dtype=nl.float32)
    first[...] = nisa.tensor_reduce(nl.add, tile, axis=[1], mask=(j < 3) & (k < 5))
    second[...] = nl.min(tile, axis=[1], mask=(j < 3) & (k < 5))
    third = nl.zeros((p, b), dtype=nl.float32)
    kept = nisa.tensor_reduce(np.max, tile, axis=[1], keepdims=True, mask=(j < 3) & (k < 5))
    third[:, 0:5] = kept.reshape((p, b))[:, 0:5]
    nl.store(out[0], first)
    nl.store(out[1], second)
    nl.store(out[2], third)
    return out


@nki.jit
def of_vectors(x):
    """Operands and results with one element in each partition, and a tile that lacks an axis."""
    p, a, b = x.shape
    out = nl.ndarray((5, p, a, b), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    i, j, k = nl.mgrid[0:p, 0:a, 0:b]
    inside = (j < 3) & (k >= 2)
    factor = nl.ndarray((p, 1), dtype=nl.float32)
    factor[...] = nl.sum(tile, axis=[1, 2])
    result = nl.zeros((p, 5, a, b), dtype=nl.float32)
    result[i, 0, j, k] = nisa.tensor_scalar(tile[i, j, k], nl.multiply, factor, mask=inside)
    result[i, 1, j, k] = nisa.activation(nl.copy, tile[i, j, k], bias=factor, scale=factor, mask=inside)
    result[i, 2, j, k] = nisa.scalar_tensor_tensor(
        data=tile[i, j, k], op0=nl.multiply, operand0=factor, op1=nl.add, operand1=tile[i, j, k], mask=inside
    )
    sums = nl.zeros((p, 1), dtype=nl.float32)
    result[i, 3, j, k] = nisa.activation_reduce(
        nl.square, tile[i, j, k], reduce_op=nl.add, reduce_res=sums, mask=(i < 5) & (j < 3)
    )
    result[i, 4, j, k] = nl.add(tile[i, j, k], tile[:, 0, :], mask=inside)
    for part in nl.static_range(5):
        nl.store(out[part], result[:, part, :, :])
    nl.store(total, sums)
    return out, total


@nki.jit
def of_searches(x):
    """Results with a free axis that the operands do not have."""
    p, f = x.shape
    out = nl.ndarray((p, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    where = nl.ndarray((p, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:p, 0:f]
    tile = nl.load(x)
    best = nl.zeros((p, 8), dtype=nl.float32)
    best[...] = nisa.max8(src=tile, mask=j < 20)
    index = nl.zeros((p, 8), dtype=nl.uint32)
    index[...] = nisa.nc_find_index8(data=tile, vals=best, mask=j < 20)
    nl.store(out, best)
    nl.store(where, index)
    return out, where


@nki.jit
def of_operands(x, y):
    """A mask as an index of a matmul's operands: rows and columns of the product, and of the contraction."""
    k, m = x.shape
    k, n = y.shape
    out = nl.ndarray((3, m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    rows, i, j = nl.arange(k)[:, None], nl.arange(m)[None, :], nl.arange(n)[None, :]
    left, right = nl.load(x), nl.load(y)
    first = nl.zeros((m, n), dtype=nl.float32, buffer=nl.psum)
    first += nl.matmul(left[i <= 20], right[j <= 30], transpose_x=True)
    nl.store(out[0], first)
    second = nl.zeros((m, n), dtype=nl.float32, buffer=nl.psum)
    second[...] += nisa.nc_matmul(left[rows, i][(rows < 40) & (i < 24)], right[j >= 10], mask=nl.arange(n)[None, :] < 30)
    nl.store(out[1], second)
    third = nl.zeros((m, n), dtype=nl.float32)
    turned = nl.transpose(left)
    third[...] = nl.matmul(turned[nl.arange(k)[None, :] >= 32], right)
    nl.store(out[2], third)
    return out


@nki.jit
def of_views(x):
    """Masked results that are assigned in another shape, in part, or repeated: the mask covers the same elements."""
    p, f = x.shape
    out = nl.ndarray((6, p, 6, f // 6), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    i, j = nl.mgrid[0:p, 0:f]
    shape = (p, 6, f // 6)
    for part in nl.static_range(6):
        result = nl.full(shape, 7.0, dtype=nl.float32)
        if part == 0:
            result[...] = nisa.tensor_scalar(tile, nl.add, 1.0, mask=(i < 20) & (j >= 5) & (j < 26)).reshape(shape)
        elif part == 1:
            result += nl.exp(tile, mask=j < 17).reshape(shape)
        elif part == 2:
            result[...] = nl.load(x, mask=j < 26)
        elif part == 3:
            result[:, 1, :] = nl.square(tile, mask=j < 11)[:, 8 : 8 + f // 6]
        elif part == 4:
            result[...] = nl.sum(tile, axis=1, keepdims=True, mask=i < 9).reshape((p, 1, 1)).broadcast_to(shape)
        else:
            result[:, :, 1:3] = nl.copy(tile, mask=j < 3)[:, 0:2].reshape((p, 1, 2)).broadcast_to((p, 6, 2))
        nl.store(out[part], result)
    return out


@nki.jit
def of_contractions(x, y):
    """A mask along the partitions of a matmul's operands: masked-out rows are uninitialised and do not contribute to the sum."""
    k, m = x.shape
    k, n = y.shape
    out = nl.ndarray((3, m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    rows, columns = nl.arange(64)[:, None], nl.arange(n)[None, :]
    total = nl.zeros((m, n), dtype=nl.float32, buffer=nl.psum)
    other = nl.zeros((m, n), dtype=nl.float32, buffer=nl.psum)
    for step in nl.affine_range((k + 63) // 64):
        inside = step * 64 + rows < k
        left = nl.load(x[step * 64 + rows, nl.arange(m)[None, :]], mask=inside)
        right = nl.load(y[step * 64 + rows, columns], mask=inside)
        total += nisa.nc_matmul(left, right, mask=inside)
        other += nl.matmul(left, right, transpose_x=True, mask=inside & (columns < 20))
    nl.store(out[0], total)
    nl.store(out[1], other)
    left, right = nl.load(x[0:64, :]), nl.load(y[0:64, :])
    third = nl.zeros((m, n), dtype=nl.float32)
    third[...] = nisa.nc_matmul(left, right, mask=nl.arange(m)[None, :] < 10)
    nl.store(out[2], third)
    return out
