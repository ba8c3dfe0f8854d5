"""softmax(q @ k.T / sqrt(d)) @ v of one head in fp32, in the versions of a series that two teams measured.

q, k, v and the result are [n, d], both at most 128. V0 is the baseline; V1 scales in a copy and sums in the activation;
V2 has the second product in bf16; V5 and V6 are V1 and V2 with hardware descriptors and named engines.
"""

import nki
import nki.isa as nisa
import nki.language as nl

UNKNOWN, VECTOR = nisa.engine.unknown, nisa.engine.vector
SYNC, SCALAR = nisa.engine.sync, nisa.engine.scalar


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def move(dst, src, trigger):
    """A DMA transfer: by default, or with hardware descriptors, started by the engine `trigger`."""
    if trigger is None:
        nisa.dma_copy(dst=dst, src=src)
    else:
        nisa.dma_copy(dst=dst, src=src, dge_mode=nisa.dge_mode.hwdge, engine=trigger)


def load(q, k, v, triggers=(None, None, None)):
    q_tile = tile(q.shape)
    k_tile = tile(k.shape)
    v_tile = tile(v.shape)
    move(q_tile, q, triggers[0])
    move(k_tile, k, triggers[1])
    move(v_tile, v, triggers[2])
    return q_tile, k_tile, v_tile


def transpose_both(first, second):
    """Both [n, d] tiles transposed to [d, n], in PSUM."""
    n, d = first.shape
    first_t = tile((d, n), buffer=nl.psum)
    second_t = tile((d, n), buffer=nl.psum)
    nisa.nc_transpose(dst=first_t, data=first)
    nisa.nc_transpose(dst=second_t, data=second)
    return first_t, second_t


def baseline(q, k, v, copies):
    """V0: scores are scaled in the exponential, and summed by a reduction. `copies` is the engine that copies out of PSUM."""
    n, d = q.shape
    c = 1.0 / d**0.5
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_tile, k_tile, v_tile = load(q, k, v)
    q_psum, k_psum = transpose_both(q_tile, k_tile)
    q_t = tile((d, n))
    k_t = tile((d, n))
    nisa.tensor_copy(dst=q_t, src=q_psum, engine=copies)
    nisa.tensor_copy(dst=k_t, src=k_psum, engine=copies)
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
    nisa.tensor_copy(dst=powers_t, src=powers_psum, engine=copies)
    product = tile((n, d), buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=powers_t, moving=v_tile)
    inverse = tile((n, 1))
    nisa.reciprocal(dst=inverse, data=total)
    result = tile((n, d))
    nisa.tensor_scalar(dst=result, data=product, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out, src=result)
    return out


def fused(q, k, v, dtype, hardware):
    """V1 and its descendants; `dtype` is that of the second product's operands.

    With `hardware`, DMAs have hardware descriptors, the vector engine copies out of PSUM, and the reciprocal follows the
    second product.
    """
    n, d = q.shape
    copies = VECTOR if hardware else UNKNOWN
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_tile, k_tile, v_tile = load(q, k, v, (SYNC, SCALAR, SYNC) if hardware else (None, None, None))
    q_psum, k_psum = transpose_both(q_tile, k_tile)
    q_t = tile((d, n))
    k_t = tile((d, n))
    nisa.activation(dst=q_t, op=nl.copy, data=q_psum, scale=1.0 / d**0.5)
    nisa.tensor_copy(dst=k_t, src=k_psum, engine=copies)
    scores = tile((n, n), buffer=nl.psum)
    nisa.nc_matmul(dst=scores, stationary=q_t, moving=k_t)
    bias = tile((n, 1))
    nisa.tensor_reduce(dst=bias, op=nl.maximum, data=scores, axis=1, negate=True)
    values = v_tile
    if dtype != nl.float32:
        values = tile((n, d), dtype=dtype)
        nisa.tensor_copy(dst=values, src=v_tile, engine=copies)
    powers = tile((n, n), dtype=dtype)
    total = tile((n, 1))
    nisa.activation_reduce(dst=powers, op=nl.exp, data=scores, bias=bias, reduce_op=nl.add, reduce_res=total)
    powers_psum = tile((n, n), dtype=dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=powers_psum, data=powers)
    powers_t = tile((n, n), dtype=dtype)
    nisa.tensor_copy(dst=powers_t, src=powers_psum, engine=copies)
    inverse = tile((n, 1))
    product = tile((n, d), buffer=nl.psum)
    if hardware:
        nisa.nc_matmul(dst=product, stationary=powers_t, moving=values)
        nisa.reciprocal(dst=inverse, data=total)
    else:
        nisa.reciprocal(dst=inverse, data=total)
        nisa.nc_matmul(dst=product, stationary=powers_t, moving=values)
    result = tile((n, d))
    nisa.tensor_scalar(dst=result, data=product, op0=nl.multiply, operand0=inverse)
    move(out, result, SYNC if hardware else None)
    return out


@nki.jit
def v0(q, k, v):
    return baseline(q, k, v, UNKNOWN)


@nki.jit
def v0_pinned(q, k, v):
    """V0 with the copies out of PSUM on the vector engine."""
    return baseline(q, k, v, VECTOR)


@nki.jit
def v1(q, k, v):
    return fused(q, k, v, nl.float32, hardware=False)


@nki.jit
def v2(q, k, v):
    return fused(q, k, v, nl.bfloat16, hardware=False)


@nki.jit
def v5(q, k, v):
    return fused(q, k, v, nl.float32, hardware=True)


@nki.jit
def v6(q, k, v):
    return fused(q, k, v, nl.bfloat16, hardware=True)
