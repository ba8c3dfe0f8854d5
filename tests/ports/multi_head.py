"""softmax(q @ k.T / sqrt(d)) @ v for each head of q, k, v[n, heads, d] in fp32, n and d at most 128, measured in two versions.

`loop` is V0 of single_head.py for each head. `chunks` loads several heads with one transfer, lets heads share a PSUM bank,
and splits the heads over the cores.
"""

import nki
import nki.isa as nisa
import nki.language as nl

BANK = 2048  # bytes of a PSUM bank in a partition, and of a row from which a transfer is efficient
ROW_LIMIT = 16384  # bytes of a row of a chunk


def tile(shape, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=nl.float32, buffer=buffer)


@nki.jit
def loop(q, k, v):
    n, heads, d = q.shape
    c = 1.0 / d**0.5
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    for h in nl.affine_range(heads):
        q_tile = tile((n, d))
        k_tile = tile((n, d))
        v_tile = tile((n, d))
        nisa.dma_copy(dst=q_tile, src=q[:, h, :])
        nisa.dma_copy(dst=k_tile, src=k[:, h, :])
        nisa.dma_copy(dst=v_tile, src=v[:, h, :])
        q_psum = tile((d, n), buffer=nl.psum)
        k_psum = tile((d, n), buffer=nl.psum)
        nisa.nc_transpose(dst=q_psum, data=q_tile)
        nisa.nc_transpose(dst=k_psum, data=k_tile)
        q_t = tile((d, n))
        k_t = tile((d, n))
        nisa.tensor_copy(dst=q_t, src=q_psum, engine=nisa.engine.vector)
        nisa.tensor_copy(dst=k_t, src=k_psum, engine=nisa.engine.vector)
        scores = tile((n, n), buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=q_t, moving=k_t)
        maximum = tile((n, 1))
        nisa.tensor_reduce(dst=maximum, op=nl.maximum, data=scores, axis=1)
        bias = tile((n, 1))
        nisa.tensor_scalar(dst=bias, data=maximum, op0=nl.multiply, operand0=-c)
        powers = tile((n, n))
        total = tile((n, 1))
        nisa.activation(dst=powers, op=nl.exp, data=scores, scale=c, bias=bias)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
        powers_psum = tile((n, n), buffer=nl.psum)
        nisa.nc_transpose(dst=powers_psum, data=powers)
        powers_t = tile((n, n))
        nisa.tensor_copy(dst=powers_t, src=powers_psum, engine=nisa.engine.vector)
        product = tile((n, d), buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=powers_t, moving=v_tile)
        inverse = tile((n, 1))
        nisa.reciprocal(dst=inverse, data=total)
        result = tile((n, d))
        nisa.tensor_scalar(dst=result, data=product, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[:, h, :], src=result)
    return out


def divisors(count):
    return [i for i in range(1, count + 1) if count % i == 0]


def chunk_of(heads, d):
    """Heads per transfer: as few as fill a row of 2 KiB, otherwise as many as the row limit allows."""
    legal = [i for i in divisors(heads) if i * 4 * d <= ROW_LIMIT]
    long = [i for i in legal if i * 4 * d >= BANK]
    return long[0] if long else legal[-1]


def group_of(chunk, n, d):
    """The number of heads whose scores, and whose products, share a PSUM bank."""
    return [i for i in divisors(chunk) if i <= min(BANK // (4 * n), BANK // (4 * d))][-1]


def score(q, k, scores, c):
    """scores[n, n] in PSUM of q and k[n, d]: both are transposed into one PSUM tile, and q is scaled when it is copied out."""
    n, d = q.shape
    both = tile((d, 2 * n), buffer=nl.psum)
    nisa.nc_transpose(dst=both[:, nl.ds(0, n)], data=q)
    nisa.nc_transpose(dst=both[:, nl.ds(n, n)], data=k)
    q_t = tile((d, n))
    nisa.activation(dst=q_t, op=nl.copy, data=both[:, nl.ds(0, n)], scale=c)
    k_t = tile((d, n))
    nisa.tensor_copy(dst=k_t, src=both[:, nl.ds(n, n)], engine=nisa.engine.vector)
    nisa.nc_matmul(dst=scores, stationary=q_t, moving=k_t)


def weigh(scores, bias, v, total, product):
    """product[n, d] in PSUM = exp(scores + bias) @ v, and the row sums of the exponentials in total[n, 1]."""
    n, _ = scores.shape
    powers = tile((n, n))
    nisa.activation(
        dst=powers, op=nl.exp, data=scores, bias=bias, reduce_op=nl.add, reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    powers_psum = tile((n, n), buffer=nl.psum)
    nisa.nc_transpose(dst=powers_psum, data=powers)
    powers_t = tile((n, n))
    nisa.tensor_copy(dst=powers_t, src=powers_psum, engine=nisa.engine.vector)
    nisa.nc_matmul(dst=product, stationary=powers_t, moving=v)


def move(dst, src, trigger):
    nisa.dma_copy(dst=dst, src=src, dge_mode=nisa.dge_mode.hwdge, engine=trigger)


@nki.jit
def chunks(q, k, v):
    n, heads, d = q.shape
    c = 1.0 / d**0.5
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    share = heads // nl.num_programs(0)
    chunk = chunk_of(share, d)
    group = group_of(chunk, n, d)
    for i in nl.affine_range(share // chunk):
        here = nl.ds(nl.program_id(0) * share + i * chunk, chunk)
        q_tile = tile((n, chunk, d))
        k_tile = tile((n, chunk, d))
        v_tile = tile((n, chunk, d))
        move(q_tile, q[:, here, :], nisa.engine.sync)
        move(k_tile, k[:, here, :], nisa.engine.scalar)
        move(v_tile, v[:, here, :], nisa.engine.sync)
        result = tile((n, chunk, d))
        total = tile((n, chunk))
        inverse = tile((n, chunk))
        for g in nl.affine_range(chunk // group):
            first = g * group
            scores = tile((n, group, n), buffer=nl.psum)
            for j in nl.affine_range(group):
                score(q_tile[:, first + j, :], k_tile[:, first + j, :], scores[:, j, :], c)
            bias = tile((n, group))
            nisa.tensor_reduce(dst=bias, op=nl.maximum, data=scores, axis=2, negate=True)
            product = tile((n, group, d), buffer=nl.psum)
            for j in nl.affine_range(group):
                head = nl.ds(first + j, 1)
                weigh(scores[:, j, :], bias[:, nl.ds(j, 1)], v_tile[:, first + j, :], total[:, head], product[:, j, :])
            nisa.reciprocal(dst=inverse[:, nl.ds(first, group)], data=total[:, nl.ds(first, group)])
            for j in nl.affine_range(group):
                nisa.tensor_scalar(
                    dst=result[:, first + j, :], data=product[:, j, :], op0=nl.multiply,
                    operand0=inverse[:, nl.ds(first + j, 1)],
                )
        move(out[:, here, :], result, nisa.engine.sync)
    return out
