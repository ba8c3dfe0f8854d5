"""Two physical cores of one logical core: launch with kernel[2], or --lnc 2."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: x=float32[96,512]
@nki.jit
def row_norms(x):
    """out[P, N] = x / sqrt(sum of squares of each row); x of shape [P <= 128, N], N even.

    Each core has half of the columns. The cores exchange their partial sums with sendrecv, so that both have the sum of the row.
    """
    p, n = x.shape
    cores = nl.num_programs(0)
    core = nl.program_id(0)
    width = n // cores
    mine = nl.ds(core * width, width)

    tile = nl.ndarray((p, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, mine])
    squares = nl.ndarray((p, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=squares, data1=tile, data2=tile, op=nl.multiply)
    total = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, data=squares, op=nl.add, axis=1)

    if cores > 1:
        theirs = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.sendrecv(
            src=total,
            dst=theirs,
            send_to_rank=1 - core,
            recv_from_rank=1 - core,
            pipe_id=0,
            dma_engine=nisa.dma_engine.gpsimd_dma,
        )
        nisa.tensor_tensor(dst=total, data1=total, data2=theirs, op=nl.add)

    scale = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=scale, op=nl.rsqrt, data=total)
    result = nl.ndarray((p, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=scale)
    out = nl.ndarray((p, n), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[:, mine], src=result)
    return out


# nki-sim: a_t=float32[64,128] b=float32[64,512]
@nki.jit
def matmul_two_cores(a_t, b):
    """out[M, N] = (a_t[K, M].T @ b[K, N]) with the columns of each row divided by the row's largest; K <= 128, M <= 128.

    Core 0 has the first half of the columns, core 1 the second. Each writes its half to shared memory; after a barrier, each processes half
    of the rows, with all columns.
    """
    k, m = a_t.shape
    n = b.shape[1]
    cores = nl.num_programs(0)
    core = nl.program_id(0)
    width = n // cores
    rows = m // cores
    mine = nl.ds(core * width, width)

    product = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm, name="product")
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)

    left = nl.ndarray((k, m), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a_t)
    right = nl.ndarray((k, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=right, src=b[:, mine])
    acc = nl.ndarray((m, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    half = nl.ndarray((m, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=half, src=acc)
    nisa.dma_copy(dst=product[:, mine], src=half)

    if cores > 1:
        nisa.core_barrier(data=product, cores=(0, 1))

    whole = nl.ndarray((rows, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=whole, src=product[nl.ds(core * rows, rows), :])
    largest = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, data=whole, op=nl.maximum, axis=1)
    inverse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=largest)
    result = nl.ndarray((rows, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=whole, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out[nl.ds(core * rows, rows), :], src=result)
    return out
