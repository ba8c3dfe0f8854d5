"""Sum of two [256, 1024] tensors in tiles of [128, 512]: the first kernel of the manual."""

import nki as nki
import nki.language as nl
import nki.isa as nisa


@nki.jit(platform_target="trn1")
def nki_tensor_add(a_input, b_input):
    """Element-wise sum; the sizes are multiples of the tile."""
    c_output = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.shared_hbm)
    M, N = a_input.shape
    TILE_M = 128
    TILE_N = 512
    assert a_input.shape == b_input.shape, f"Expected shapes {a_input.shape} and {b_input.shape} to match"
    assert a_input.dtype == b_input.dtype, f"Expected data types {a_input.dtype} and {b_input.dtype} to match"
    assert M % TILE_M == 0, f"Expected partition dimension ({M}) to be divisible by {TILE_M}"
    assert N % TILE_N == 0, f"Expected free dimension ({N}) to be divisible by {TILE_N}"

    for m in nl.affine_range(M // TILE_M):
        for n in nl.affine_range(N // TILE_N):
            a_tile = nl.ndarray(shape=(TILE_M, TILE_N), dtype=a_input.dtype, buffer=nl.sbuf)
            b_tile = nl.ndarray(shape=(TILE_M, TILE_N), dtype=b_input.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a_tile,
                          src=a_input[m * TILE_M:(m + 1) * TILE_M,
                                      n * TILE_N:(n + 1) * TILE_N])
            nisa.dma_copy(dst=b_tile,
                          src=b_input[m * TILE_M:(m + 1) * TILE_M,
                                      n * TILE_N:(n + 1) * TILE_N])
            c_tile = nl.ndarray(shape=(TILE_M, TILE_N), dtype=a_input.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=c_tile, data1=a_tile, data2=b_tile, op=nl.add)
            nisa.dma_copy(dst=c_output[m * TILE_M:(m + 1) * TILE_M,
                                       n * TILE_N:(n + 1) * TILE_N],
                          src=c_tile)
    return c_output
