"""Scalar and vector dynamic access with access patterns."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def indirect_scalar_dynamic_dma(A):
    """A[3*128:, 0:256] of a (4*128, 512) tensor; the row comes from SBUF."""
    assert A.shape == (512, 512)
    batch_idx = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.memset(batch_idx, value=3 * 128)
    result = nl.ndarray((128, 256), A.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(
        src=A.ap(pattern=[[512, 128], [1, 256]], offset=0, scalar_offset=batch_idx, indirect_dim=0),
        dst=result[...],
    )
    return result


@nki.jit
def indirect_vector_dynamic_dma(A):
    """Every other row of a (128, 512) tensor; the rows come from SBUF, one per partition."""
    dynamic_idx_legal = nl.ndarray((64, 1), nl.int32, nl.sbuf)
    nisa.iota(dynamic_idx_legal, [[1, 1]], 0, 2)
    result_sb = nl.ndarray((64, 512), nl.float32, buffer=nl.sbuf)
    result_hbm = nl.ndarray((64, 512), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(
        src=A.ap([[512, 64], [1, 512]], 0, vector_offset=dynamic_idx_legal, indirect_dim=0),
        dst=result_sb,
        name="inst0",
    )
    nisa.dma_copy(result_hbm, result_sb, name="copy1")
    return result_hbm
