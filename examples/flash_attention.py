"""Attention forward for one head, one pass over the keys with a running maximum and sum."""

import nki
import nki.isa as nisa
import nki.language as nl


def keep_past(scores, masked, query, key):
    """Copies scores to masked, with -1e30 where the key follows the query (query and key: first indices)."""
    nisa.affine_select(
        dst=masked,
        pattern=[[-1, scores.shape[1]]],
        offset=query - key,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=-1e30,
        cmp_op=nl.greater_equal,
    )


# nki-sim: q_t=float32[64,512] k_t=float32[64,512] v=float32[512,64] scale=0.125 causal=True
@nki.jit
def flash_attention(q_t, k_t, v, scale=1.0, causal=False):
    """out[S, D] = softmax(scale * q @ k.T) @ v, with q_t[D, S], k_t[D, T] (both transposed) and v[T, D].

    S is a multiple of 128, T of 512, D at most 128.
    """
    d, queries = q_t.shape
    keys = k_t.shape[1]
    assert d <= 128, f"head dimension {d} exceeds 128"
    tile_q = nl.tile_size.pmax
    tile_k = nl.tile_size.gemm_moving_fmax
    part = nl.tile_size.pmax
    assert queries % tile_q == 0 and keys % tile_k == 0
    out = nl.ndarray((queries, d), dtype=v.dtype, buffer=nl.shared_hbm)

    # Every block of queries uses all keys and values: load them once.
    k_all = nl.ndarray((d, keys), dtype=k_t.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=k_all, src=k_t)
    v_all = nl.ndarray((part, keys // part, d), dtype=v.dtype, buffer=nl.sbuf)
    for p in nl.affine_range(keys // part):
        nisa.dma_copy(dst=v_all[:, p, :], src=v[nl.ds(p * part, part), :])

    for iq in nl.affine_range(queries // tile_q):
        q_tile = nl.ndarray((d, tile_q), dtype=q_t.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=q_tile, src=q_t[:, nl.ds(iq * tile_q, tile_q)])
        running_max = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
        running_sum = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
        acc = nl.ndarray((tile_q, d), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=running_max, value=-1e30)
        nisa.memset(dst=running_sum, value=0.0)
        nisa.memset(dst=acc, value=0.0)

        for ik in nl.sequential_range(keys // tile_k):
            first_key = ik * tile_k
            if causal and first_key > iq * tile_q + tile_q - 1:
                continue
            product = nl.ndarray((tile_q, tile_k), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=product, stationary=q_tile, moving=k_all[:, nl.ds(first_key, tile_k)])
            scores = nl.ndarray((tile_q, tile_k), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=scores, op=nl.copy, data=product, scale=scale)
            if causal and first_key + tile_k - 1 > iq * tile_q:
                masked = nl.ndarray((tile_q, tile_k), dtype=nl.float32, buffer=nl.sbuf)
                keep_past(scores, masked, iq * tile_q, first_key)
                scores = masked

            block_max = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=block_max, op=nl.maximum, data=scores, axis=1)
            new_max = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=new_max, data1=running_max, data2=block_max, op=nl.maximum)
            negative_max = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=negative_max, data=new_max, op0=nl.multiply, operand0=-1.0)
            weights = nl.ndarray((tile_q, tile_k), dtype=v.dtype, buffer=nl.sbuf)
            block_sum = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=weights, op=nl.exp, data=scores, bias=negative_max, reduce_op=nl.add, reduce_res=block_sum
            )
            decay = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=decay, op=nl.exp, data=running_max, bias=negative_max)
            nisa.scalar_tensor_tensor(
                dst=running_sum, data=running_sum, op0=nl.multiply, operand0=decay, op1=nl.add, operand1=block_sum
            )

            # weights @ v: the contraction is over keys, so the weights are transposed, 128 keys at a time.
            update = nl.ndarray((tile_q, d), dtype=nl.float32, buffer=nl.psum)
            for p in range(tile_k // part):
                turned = nl.ndarray((part, tile_q), dtype=v.dtype, buffer=nl.psum)
                nisa.nc_transpose(dst=turned, data=weights[:, nl.ds(p * part, part)])
                weights_t = nl.ndarray((part, tile_q), dtype=v.dtype, buffer=nl.sbuf)
                nisa.tensor_copy(dst=weights_t, src=turned)
                nisa.nc_matmul(dst=update, stationary=weights_t, moving=v_all[:, first_key // part + p, :])
            nisa.scalar_tensor_tensor(
                dst=acc, data=acc, op0=nl.multiply, operand0=decay, op1=nl.add, operand1=update
            )
            nisa.tensor_copy(dst=running_max, src=new_max)

        inverse = nl.ndarray((tile_q, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=running_sum)
        result = nl.ndarray((tile_q, d), dtype=v.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=acc, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(iq * tile_q, tile_q), :], src=result)
    return out
