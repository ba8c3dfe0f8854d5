"""Tensor indirection: gathers and scatters by offsets in SBUF, in every instruction that takes them."""

import nki
import nki.isa as nisa
import nki.language as nl

ENGINES = {"vector": nisa.engine.vector, "scalar": nisa.engine.scalar, "gpsimd": nisa.engine.gpsimd}


def load(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def copies(x, index, n, engine):
    """A gather, also from every second column, and a scatter into zeros."""
    P, F = x.shape
    tile, i = load(x), load(index)
    gathered = nl.ndarray((P, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=gathered, src=tile.indirect(i, n), engine=ENGINES[engine])
    strided = nl.ndarray((P, n), dtype=x.dtype, buffer=nl.sbuf)
    wide = nl.ndarray((P, 2 * F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=wide, value=0)
    nisa.tensor_copy(dst=wide[:, 1::2], src=tile)
    nisa.tensor_copy(dst=strided, src=wide[:, 1::2].indirect(i, n), engine=ENGINES[engine])
    scattered = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=scattered, value=0)
    nisa.tensor_copy(dst=scattered.indirect(i, n), src=gathered, engine=ENGINES[engine])
    out = store(gathered)
    same = store(strided)
    back = store(scattered)
    return out, same, back


@nki.jit
def arithmetic(x, other, index, n):
    P, F = x.shape
    tile, b, i = load(x), load(other), load(index)
    view = tile.indirect(i, n)
    results = [nl.ndarray((P, n), dtype=nl.float32, buffer=nl.sbuf) for _ in range(5)]
    nisa.tensor_tensor(dst=results[0], data1=view, data2=b, op=nl.subtract)
    nisa.tensor_scalar(dst=results[1], data=view, op0=nl.multiply, operand0=3.0, op1=nl.add, operand1=1.0)
    nisa.activation(dst=results[2], op=nl.relu, data=view, scale=-1.0)
    nisa.tensor_scalar_cumulative(dst=results[3], src=view, op0=nl.multiply, op1=nl.maximum, imm0=1.0)
    nisa.memset(dst=results[4], value=0.0)
    scattered = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=scattered, value=-5.0)
    nisa.tensor_tensor(dst=scattered.indirect(i, n), data1=view, data2=b, op=nl.add)
    total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.maximum, data=view, axis=1)
    reduced = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_reduce(
        dst=results[4], data=view, op0=nl.add, operand0=2.0, reduce_op=nl.maximum, reduce_res=reduced
    )
    difference = store(results[0])
    scaled = store(results[1])
    negative = store(results[2])
    running = store(results[3])
    shifted = store(results[4])
    sums = store(scattered)
    largest = store(total)
    highest = store(reduced)
    return difference, scaled, negative, running, shifted, sums, largest, highest


@nki.jit
def products(stationary, moving, rows, columns, m, n):
    """Columns of both operands picked by offsets, in groups of 32 partitions; then the result scattered."""
    s, x, i, j = load(stationary), load(moving), load(rows), load(columns)
    result = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=result, stationary=s.indirect(i, m), moving=x.indirect(j, n))
    dst = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=dst, src=result)
    out = store(dst)
    return out


@nki.jit
def blocks(stationary, moving, stationary_scale, moving_scale, columns, n):
    """MX data and scales, picked by one index."""
    K, M = stationary.shape
    s, x, ss, xs = load(stationary), load(moving), load(stationary_scale), load(moving_scale)
    j = load(columns)
    result = nl.ndarray((M, n), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(
        dst=result,
        stationary=s,
        moving=x.indirect(j, n),
        stationary_scale=ss,
        moving_scale=xs.indirect(j, n),
    )
    dst = nl.ndarray((M, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=dst, src=result)
    out = store(dst)
    return out
