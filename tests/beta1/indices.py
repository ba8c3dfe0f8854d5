"""Index tiles and masks."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def strides(x):
    """Even and odd columns separated, rows reversed, elements repeated."""
    p, f = x.shape
    out = nl.ndarray((3, p, f), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p = nl.arange(p)[:, None]
    i_h = nl.arange(f // 2)[None, :]
    tile = nl.load(x[i_p, nl.arange(f)[None, :]])
    split = nl.ndarray((nl.par_dim(p), f), dtype=x.dtype)
    split[i_p, i_h] = nl.copy(tile[i_p, 2 * i_h])
    split[i_p, i_h + f // 2] = nl.copy(tile[i_p, 2 * i_h + 1])
    nl.store(out[0, i_p, nl.arange(f)[None, :]], value=split[i_p, nl.arange(f)[None, :]])
    nl.store(out[1, i_p, nl.arange(f)[None, :]], value=tile[i_p, -1 * nl.arange(f)[None, :] + f - 1])
    repeated = nisa.tensor_copy(tile[nl.arange(p)[:, None, None], nl.arange(f // 2)[None, :, None] + 0 * nl.arange(2)[None, None, :]])
    assert repeated.shape == (p, f // 2, 2)
    nl.store(out[2, nl.arange(p)[:, None, None], 2 * nl.arange(f // 2)[None, :, None] + nl.arange(2)[None, None, :]], repeated)
    return out


@nki.jit
def transposing_load(x):
    """Any axis of HBM can be the partitions of a tile."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[nl.arange(rows)[None, :], nl.arange(columns)[:, None]])
    i, j = nl.mgrid[0:columns, 0:rows]
    nl.store(out[i, j], tile[i, j])
    return out


@nki.jit
def as_blocks(x):
    """A tile of two dimensions written as one of three; an integer between index tiles."""
    p, f = x.shape
    out = nl.ndarray((p, f), dtype=x.dtype, buffer=nl.shared_hbm)
    grid = nl.mgrid[0:p, 0:8, 0 : f // 8]
    tile = nl.ndarray((nl.par_dim(p), f), dtype=x.dtype)
    tile[grid.p, (f // 8) * grid.x + grid.y] = nl.load(x.reshape((p, 8, f // 8))[grid.p, grid.x, grid.y])
    table = nl.ndarray((nl.par_dim(p), 8, f // 8), dtype=x.dtype)
    i_p, i_f = nl.arange(p)[:, None], nl.arange(f // 8)[None, :]
    for j in nl.affine_range(8):
        table[i_p, 7 - j, i_f] = nisa.tensor_scalar(data=tile[i_p, i_f + j * (f // 8)], op0=np.multiply, operand0=np.float32(j), op1=np.add, operand1=1)
    nl.store(out.reshape((p, 8, f // 8))[grid.p, grid.x, grid.y], value=table)
    return out


@nki.jit
def ragged(x, y):
    """Masked loads, arithmetic and stores of a tensor whose shape is not a multiple of any tile."""
    m, n = x.shape
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range((m + 127) // 128):
        for j in nl.affine_range((n + 511) // 512):
            i_p, i_f = nl.mgrid[0:128, 0:512]
            inside = (i * 128 + i_p < m) & (j * 512 + i_f < n)
            a = nl.load(x[i * 128 + i_p, j * 512 + i_f], mask=inside)
            b = nl.load(y[i * 128 + i_p, j * 512 + i_f], mask=inside)
            c = nl.add(a, b, mask=inside)
            c[i_p, i_f] = nisa.tensor_tensor(c[i_p, i_f], a, op=nl.multiply, mask=-128 * i + -1 * i_p + (m - 1) >= 0)
            nl.store(out[i * 128 + i_p, j * 512 + i_f], value=c, mask=inside)
    return out


@nki.jit
def outside_stays(x):
    """A masked instruction writes nothing outside the mask, also if its result is assigned."""
    p, f = x.shape
    out = nl.ndarray((2, p, f), dtype=x.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(p)[:, None], nl.arange(f)[None, :]
    tile = nl.load(x)
    kept = nl.full((p, f), 7.0, dtype=x.dtype)
    kept[i_p, i_f] = nl.exp(tile, mask=i_f >= 10)
    kept[i_p, i_f] = nisa.activation(nl.copy, tile, mask=(i_f < 3) & (i_p < 32))
    kept[i_p, i_f] = nl.negative(tile, mask=i_p > p)
    nl.store(out[0], kept)
    total = nl.zeros((p, f), dtype=nl.float32, buffer=nl.psum)
    total[i_p, i_f] += nisa.nc_matmul(tile[i_p, nl.arange(p)[None, :]], tile, mask=i_f < 20)
    nl.store(out[1], total)
    return out


@nki.jit
def completed(x):
    """A masked result that is completed before it is assigned."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = x.shape
    i_p, i_f = nl.arange(p)[:, None], nl.arange(f)[None, :]
    tile = nl.load(x)
    result = nl.exp(tile, mask=i_f < 10)
    result[:, 10:f] = nl.negative(tile[:, 10:f])
    kept = nl.zeros((p, f), dtype=x.dtype)
    kept[...] = result
    nl.store(out, kept)
    return out


@nki.jit
def triangle(x):
    """Selection by an inequality of two axes, and the numbers of an index tile."""
    p, f = x.shape
    out = nl.ndarray((3, p, f), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(p)[:, None], nl.arange(f)[None, :]
    tile = nl.load(x)
    nl.store(out[0], nisa.affine_select(pred=i_p >= i_f, on_true_tile=tile, on_false_value=-5.0))
    nl.store(out[1], nl.where(2 * i_p + 3 < i_f, tile, 1.0))
    nl.store(out[2], nl.copy(nisa.iota(3 * i_f - i_p + 4, dtype=nl.int32), dtype=nl.float32))
    return out


@nki.jit
def gathered(data, idx, rows):
    """Rows of HBM by a column of indices, loaded and stored."""
    n, f = data.shape
    out = nl.ndarray((n, f), dtype=data.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(rows)[:, None], nl.arange(f)[None, :]
    where = nl.load(idx[i_p, 0])
    picked = nl.load(data[where[i_p, 0], i_f])
    nl.store(out[where[i_p, 0], i_f], value=nl.multiply(picked, 2.0))
    return out


@nki.jit
def transposed(x):
    out = nl.ndarray((x.shape[1], x.shape[0]), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load_transpose2d(x))
    return out


@nki.jit
def reductions(x):
    """Reductions of middle axes, and kept dimensions."""
    p, a, b = x.shape
    out = nl.ndarray((p, b + a + 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    result = nl.ndarray((p, b + a + 1), dtype=nl.float32)
    result[:, 0:b] = nisa.tensor_reduce(np.max, tile, axis=[1])
    result[:, b : b + a] = nl.mean(tile, axis=2)
    assert nl.sum(tile, axis=[1, 2], keepdims=True).shape == (p, 1, 1)
    result[:, b + a] = nl.sum(tile, axis=[1, 2])
    nl.store(out, result)
    return out


@nki.jit
def searched(x):
    """A mask only on the data, and a vector-engine transpose larger than 32 x 32."""
    p, f = x.shape
    out = nl.ndarray((p, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    where = nl.ndarray((p, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
    turned = nl.ndarray((f, p), dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:p, 0:f]
    tile = nl.load(x)
    best = nisa.max8(src=tile[i, j], mask=i < p and j < f // 2)
    index = nisa.nc_find_index8(data=tile[i, j], vals=best, mask=(j < f // 2))
    nl.store(out, best)
    nl.store(where, index)
    nl.store(turned, nisa.nc_transpose(tile, engine=nisa.vector_engine))
    return out, where, turned


@nki.jit
def added_by_dma(x):
    """Rows to which DMA adds."""
    n, f = x.shape
    out = nl.ndarray((2 * n, f), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nisa.memset(shape=(2 * n, f), value=1, dtype=x.dtype))
    i, j = nl.mgrid[0:n, 0:f]
    rows = nisa.iota(2 * nl.arange(n)[:, None], dtype=np.int32)
    nisa.dma_copy(dst=out[rows, j], src=nl.load(x[i, j]), dst_rmw_op=np.add)
    return out


@nki.jit
def programs(x):
    """A grid of programs that share the output."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(axis=1)
    assert nl.num_programs() == 8 and nl.num_programs(1) == 2 and nl.program_ndim() == 2
    nl.store(out[i, j], nl.multiply(nl.load(x[i, j]), 1.0 + i + 10 * j))
    return out


@nki.jit
def chosen_rows(x, y):
    """A column as the condition of nl.where selects whole rows, of tiles or of a number."""
    p, f = x.shape
    out = nl.ndarray((2, p, f), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    column = nl.less(b[:, 0:1], 0.0)
    nl.store(out[0], nl.where(column, a, b))
    nl.store(out[1], nl.where(column, a, 2.0, dtype=nl.float32))
    return out
