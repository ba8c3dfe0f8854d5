"""Values that instructions return, and where they are written. No index tiles, blocks or masks."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np


@nki.jit
def softmax_rows(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(rows // 128):
        tile = nl.load(x[nl.ds(i * 128, 128), :])
        low = nisa.tensor_reduce(np.max, tile, axis=1, negate=True)
        total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32)
        e = nisa.activation(nl.exp, tile, bias=low, reduce_op=np.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        scaled = nl.ndarray((nl.par_dim(128), columns), dtype=x.dtype)
        scaled[...] = nisa.tensor_scalar(e, nl.multiply, nisa.reciprocal(total))
        nl.store(out[i * 128 : (i + 1) * 128, :], value=scaled)
    return out


@nki.jit(mode="simulation", platform_target="trn2")
def accumulate(lhs_t, rhs):
    """The contraction in PSUM, by name and by slice; the last product is added by the vector engine."""
    k, m = lhs_t.shape
    _, n = rhs.shape
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.hbm)
    acc = nl.zeros((nl.par_dim(m), n), nl.float32, buffer=nl.psum)
    table = nl.zeros((nl.par_dim(m), n), nl.float32, buffer=nl.psum)
    for i in nl.affine_range(k // 128):
        left: nt.tensor[128, m] = nl.load(lhs_t[i * 128 : (i + 1) * 128, :])
        right = nl.load(rhs[i * 128 : (i + 1) * 128, :])
        acc += nl.matmul(left, right, transpose_x=True)
        table[:, 0:n] += nisa.nc_matmul(left, right)
    both = nl.copy(acc) + table
    nl.store(out, both / 2)
    return out


@nki.jit
def kept_names(x):
    """A result is used after it was assigned elsewhere, and after the destination changed."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    place = nl.ndarray(x.shape, dtype=x.dtype)
    doubled = nisa.tensor_scalar(tile, np.multiply, 2.0)
    place[...] = doubled
    place[...] = nisa.tensor_scalar(place, np.add, 100.0)
    nl.store(out, nl.subtract(place, doubled) + doubled)
    return out


@nki.jit
def zeros_and_sums(x):
    """A tile of zeros in PSUM that a copy reads before all of it is written, and one that other instructions also write."""
    out = nl.ndarray((2, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    half = nl.zeros((nl.par_dim(128), 128), nl.float32, buffer=nl.psum)
    half[:, 0:64] += nisa.nc_matmul(tile, tile[:, 0:64])
    nl.store(out[0], half)
    mixed = nl.zeros((nl.par_dim(128), 128), nl.float32, buffer=nl.psum)
    mixed[:, 0:32] = nisa.tensor_copy(tile[:, 0:32])
    mixed += nisa.nc_matmul(tile, tile)
    mixed += nisa.nc_matmul(tile, tile)
    nl.store(out[1], nl.copy(mixed))
    return out


@nki.jit
def columns(x):
    """A vector in HBM is a column on chip; columns of a tile receive results of reductions; narrow values are repeated."""
    n = x.shape[0]
    out = nl.ndarray((n,), dtype=nl.float32, buffer=nl.shared_hbm)
    v = nl.load(x)
    wide = nl.ndarray((n, 8), dtype=nl.float32)
    wide[...] = v
    sums = nl.ndarray((n, 2), dtype=nl.float32)
    sums[:, 0] = nl.sum(wide, axis=1)
    sums[:, 1] = nisa.tensor_reduce(nl.add, data=wide[:, 0:4], axis=[1])
    sums[:, 1] += 1.0
    sums[0:32, 0] = 5
    nl.store(out, nisa.tensor_tensor(sums[:, 0], sums[:, 1], op=nl.add))
    return out


@nki.jit
def operators(x, y, scale):
    out = nl.ndarray((3, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    nl.store(out[0], -(a - b) * scale + 2 / (1 + a * a))
    more = nl.maximum(a, 0.0) * (a > b)
    more *= 3.0
    more -= a
    nl.store(out[1], more)
    nl.store(out[2], nl.add(a, b[0:1, :]))
    return out


@nki.jit
def of_numpy(x, y):
    """NumPy's functions and operators on tiles correspond to those of the language."""
    out = nl.ndarray((5, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    nl.store(out[0], a - np.mean(a * b, axis=[1]))
    nl.store(out[1], np.exp(np.minimum(a, b)) / np.sum(np.square(b), axis=1, keepdims=True))
    nl.store(out[2], np.where(np.greater(a, b), a, np.negative(b)))
    nl.store(out[3], np.float32(2) - np.add(a, np.max(b, axis=1, keepdims=True)))
    nl.store(out[4], np.multiply(a, 3.0) * np.float64(0.5))
    return out


@nki.jit
def widened(x):
    """A row broadcast over all partitions, and types of results."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x, dtype=nl.bfloat16)
    row = nl.load(x[0:1, :])
    assert (tile * 1.5).dtype == nl.float32
    assert nl.add(tile, tile).dtype == nl.bfloat16
    assert nisa.tensor_scalar(tile, nl.add, 1.5).dtype == nl.bfloat16
    assert row.broadcast_to((128, x.shape[1])).shape == x.shape
    nl.store(out, row.broadcast_to((128, x.shape[1])) + tile.astype(nl.float32))
    return out


@nki.jit
def written_into(x, out):
    """An argument as the output."""
    nl.store(out, nl.exp(nl.load(x)))


@nki.compiler.skip_middle_end_transformations
@nki.jit
def streams(a, b):
    """dma_copy between vectors in HBM and columns; a reshaped output."""
    n = a.shape[0]
    x = a.reshape((n // 128, 128))
    out = nl.ndarray((n // 128, 128), dtype=a.dtype, buffer=nl.hbm)
    for i in range(n // 128):
        left = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(src=x[i], dst=left)
        right = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(src=b[i * 128 : (i + 1) * 128], dst=right)
        nisa.dma_copy(src=nisa.tensor_scalar(left, nl.add, right), dst=out[i])
        " end of the loop "
    return out.reshape((n,))


@nki.jit
def attention(q, k, v):
    d, n = q.shape
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    scores = nl.matmul(nl.load(q), nl.load(k), transpose_x=True)
    weights = nl.softmax(scores, axis=1)
    nl.store(out, nl.matmul(weights, nl.transpose(nl.load(v))))
    return out


@nki.jit
def psum_in_place(x):
    """In-place operators whose target and value are both in PSUM."""
    p, f = x.shape
    out = nl.ndarray((p, p), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    square = nl.zeros((p, p), dtype=nl.float32, buffer=nl.psum)
    square += nisa.nc_matmul(tile, tile)
    other = nisa.nc_matmul(tile, tile)
    square *= other
    square -= nl.matmul(tile, tile, transpose_x=True)
    square += nisa.nc_transpose(tile, engine=nisa.tensor_engine)
    square[:, 0:32] += other[:, 32:64]
    nl.store(out, square)
    return out


@nki.jit
def narrow_sums(x, y):
    """Sums of products in 16-bit PSUM tiles, which round each time."""
    k, m = x.shape
    out = nl.ndarray((2, m, m), dtype=x.dtype, buffer=nl.shared_hbm)
    named = nl.zeros((m, m), x.dtype, buffer=nl.psum)
    indexed = nl.zeros((m, m), nl.bfloat16, buffer=nl.psum)
    i, j = nl.mgrid[0:m, 0:m]
    for part in nl.affine_range(2):
        left = nl.load(x[nl.ds(part * (k // 2), k // 2), :])
        right = nl.load(y[nl.ds(part * (k // 2), k // 2), :])
        named += nl.matmul(left, right, transpose_x=True)
        indexed[i, j] += nisa.nc_matmul(left, right)
    nl.store(out[0], named)
    nl.store(out[1], indexed)
    return out


@nki.jit
def shapes_of_results(x):
    """A variance drops the axes that it reduces; several axes are summed at once."""
    p, a, b = x.shape
    out = nl.ndarray((p, a), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    spread = nl.var(tile, axis=2)
    assert spread.shape == (p, a)
    assert nl.expand_dims(spread, axis=(2, 3)).shape == (p, a, 1, 1)
    assert nl.expand_dims(spread, axis=[1, -1]).shape == (p, 1, a, 1)
    assert nl.expand_dims(spread, -1).shape == (p, a, 1)
    nl.store(out, spread)
    return out
