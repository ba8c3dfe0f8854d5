"""Kernels for neuronxcc.nki of which every construct has a mechanical replacement."""

import neuronxcc.nki.typing as nt
import numpy as np
from neuronxcc import nki
from neuronxcc.nki import isa as nisa
from neuronxcc.nki import language as nl
from neuronxcc.nki.language import par_dim


@nki.jit(mode="trace")
def scaled(tile, factor):
    """A helper."""
    result = nisa.tensor_scalar(tile, np.multiply, factor)  # kept comment
    return result


@nki.compiler.skip_middle_end_transformations
@nki.baremetal
@nki.jit
def ragged(x, y):
    """Masks of both axes, for tiles that do not divide the tensor."""
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.hbm)
    for i in nl.affine_range((m + 127) // 128):
        for j in nl.affine_range((n + 511) // 512):
            i_p, i_f = nl.mgrid[0:128, 0:512]
            inside = (i * 128 + i_p < m) & (j * 512 + i_f < n)
            a = nl.load(x[i * 128 + i_p, j * 512 + i_f], mask=inside)
            b = nl.load(y[i * 128 + i_p, j * 512 + i_f], mask=inside)
            c = nl.add(a, b, mask=inside)
            nl.store(out[i * 128 + i_p, j * 512 + i_f], value=c, mask=inside)
    return out


@nki.jit
def generated(x):
    """As generators write it: tables of tiles, masks as inequalities, imports inside."""
    import neuronxcc.nki.language as nl
    import numpy as np

    out = nl.ndarray((3, 100, 64), dtype=np.float32, buffer=nl.shared_hbm)
    table = nl.ndarray((3, 2, par_dim(128), 64), dtype=np.float32, name="table", buffer=nl.sbuf)
    sums = nl.ndarray((3, par_dim(128), 1), dtype=np.float32, name="", buffer=nl.sbuf)
    zero = nl.ndarray((par_dim(128), 1), dtype=np.float32, buffer=nl.sbuf)
    zero[nl.arange(128)[:, None], 0] = nisa.memset(shape=(128, 1), value=np.dtype(np.uint16).type(0), dtype=np.float32, mask=None)
    for i0 in nl.affine_range(3):
        for i1 in nl.affine_range(2):
            table[i0, i1, nl.arange(128)[:, None], nl.arange(64)[None, :]] = nl.load(
                x[i0, i1, nl.arange(128)[:, None], nl.arange(64)[None, :]],  # the rows that there are
                dtype=np.float32,
                mask=-1 * nl.arange(128)[:, None] + 99 >= 0,
            )
            table[i0, i1, nl.arange(128)[:, None], nl.arange(64)[None, :]] = nisa.activation(
                op=nl.exp,
                data=table[i0, i1, nl.arange(128)[:, None], nl.arange(64)[None, :]],
                bias=zero[nl.arange(128)[:, None], 0],
                scale=1.0,
                mask=-1 * nl.arange(128)[:, None] + 99 >= 0,
                dtype=np.float32,
            )
            sums[i0, nl.arange(100)[:, None], 0] = nl.loop_reduce(
                nl.sum(table[i0, i1, nl.arange(100)[:, None], nl.arange(64)[None, :]], axis=[1]), op=np.add, loop_indices=[i1]
            )
            " end loop i1 "
        both = nl.ndarray((par_dim(128), 64), dtype=table.dtype, buffer=nl.sbuf)
        both[nl.arange(128)[:, None], nl.arange(64)[None, :]] = nl.add(
            table[i0, 0, nl.arange(128)[:, None], nl.arange(64)[None, :]],
            table[i0, 1, nl.arange(128)[:, None], nl.arange(64)[None, :]],
            mask=-1 * nl.arange(128)[:, None] + 99 >= 0,
        )
        nl.store(
            out[i0, nl.arange(100)[:, None], nl.arange(64)[None, :]],
            value=nl.multiply(both[nl.arange(100)[:, None], nl.arange(64)[None, :]], sums[i0, nl.arange(100)[:, None], 0]),
        )
        " end loop i0 "
    return out


@nki.jit
def parts(x):
    """Strided and merged index tiles, nested calls, operators, updates in place."""
    i_p, i_h = nl.arange(128)[:, None], nl.arange(32)[None, :]
    out = nl.ndarray((2, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile: nt.tensor[128, 64] = nl.load(x)
    split = nl.ndarray((par_dim(128), 64), dtype=nl.float32)
    split[i_p, i_h] = nl.copy(tile[i_p, 2 * i_h])
    split[i_p, i_h + 32] = nl.copy(tile[i_p, 2 * i_h + 1])
    blocks = nl.ndarray((par_dim(128), 8, 8), dtype=nl.float32)
    b_p, b_i, b_j = nl.mgrid[0:128, 0:8, 0:8]
    blocks[b_p, b_i, b_j] = nisa.tensor_copy(split[b_p, 8 * b_i + b_j])
    split += scaled(split, 2.0)
    split[0:64, :] *= 0.5
    nl.store(out[0], value=nl.exp(nisa.tensor_scalar(split, nl.multiply, 0.25)) - 1.0)
    nl.store(out[1, b_p, 8 * b_i + b_j], value=blocks)
    return out


@nki.jit
def product(lhs_t, rhs):
    """Accumulation into tables in PSUM, by name, and on top of zeros."""
    k, m = lhs_t.shape
    n = rhs.shape[1]
    out = nl.ndarray((3, m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    table = nl.zeros((1, par_dim(m), n), dtype=nl.float32, buffer=nl.psum, lazy_initialization=True)
    acc = nl.zeros((m, n), nl.float32, buffer=nl.psum)
    partly = nl.zeros((m, n), nl.float32, buffer=nl.psum)
    last = nl.ndarray((m, n), nl.float32, buffer=nl.sbuf)
    for i in nl.affine_range(k // 128):
        left = nl.load(lhs_t[nl.ds(i * 128, 128), 0:m])
        right = nl.load(rhs[i * 128 : (i + 1) * 128, 0:n])
        table[0, nl.arange(m)[:, None], nl.arange(n)[None, :]] += nisa.nc_matmul(left, right)
        acc += nl.matmul(left, right, transpose_x=True)
        partly[:, 0:16] += nisa.nc_matmul(left, right[:, 0:16])
        last[...] = nisa.nc_matmul(left, right)
    nl.store(out[0], value=nl.add(table[0], last))
    nl.store(out[1], value=acc)
    nl.store(out[2], value=partly)
    return out


@nki.jit
def sums_of_products(a, b):
    """A product that `nl.matmul` writes, and to which another one is added, in PSUM and by way of SBUF."""
    out = nl.ndarray((2, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    total = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    total[...] = nl.matmul(x, y, transpose_x=True)
    total += nisa.nc_matmul(y, x)
    nl.store(out[0], total)
    other = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    other[...] = nl.matmul(x, y)
    other += nl.matmul(x, y, transpose_x=True)
    nl.store(out[1], other)
    return out
