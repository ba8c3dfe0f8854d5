"""Matrix product in tiles of the tensor engine, with operands loaded for every tile."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: a_t=float32[256,256] b=float32[256,1024]
@nki.jit
def matmul_tiled(a_t, b):
    """out[M, N] = a_t[K, M].T @ b[K, N]; K and M multiples of 128, N of 512."""
    k, m = a_t.shape
    k2, n = b.shape
    assert k == k2, f"a_t has {k} rows, b has {k2}: they are multiplied along rows"
    tile_k = nl.tile_size.pmax
    tile_m = nl.tile_size.gemm_stationary_fmax
    tile_n = nl.tile_size.gemm_moving_fmax
    assert k % tile_k == 0 and m % tile_m == 0 and n % tile_n == 0, f"[{k}, {m}] x [{k}, {n}] does not tile"
    out = nl.ndarray((m, n), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(m // tile_m):
        for j in nl.affine_range(n // tile_n):
            acc = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
            for p in nl.sequential_range(k // tile_k):
                stationary = nl.ndarray((tile_k, tile_m), dtype=a_t.dtype, buffer=nl.sbuf)
                moving = nl.ndarray((tile_k, tile_n), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=stationary, src=a_t[nl.ds(p * tile_k, tile_k), nl.ds(i * tile_m, tile_m)])
                nisa.dma_copy(dst=moving, src=b[nl.ds(p * tile_k, tile_k), nl.ds(j * tile_n, tile_n)])
                nisa.nc_matmul(dst=acc, stationary=stationary, moving=moving)
            result = nl.ndarray((tile_m, tile_n), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=acc)
            nisa.dma_copy(dst=out[nl.ds(i * tile_m, tile_m), nl.ds(j * tile_n, tile_n)], src=result)
    return out
