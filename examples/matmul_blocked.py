"""Matrix product in blocks: each operand block is loaded once and reused from SBUF.

Block sizes are in tiles (128 rows of the result, 512 columns of the result). The whole contraction dimension of a
block stays in SBUF, so a_t is read N / (block_n * 512) times and b is read M / (block_m * 128) times.
"""

import nki
import nki.isa as nisa
import nki.language as nl


def load_panel(source, first, width):
    """All rows of `source`, columns first..first+width, as [128, rows / 128, width] in SBUF."""
    pmax = nl.tile_size.pmax
    slabs = source.shape[0] // pmax
    panel = nl.ndarray((pmax, slabs, width), dtype=source.dtype, buffer=nl.sbuf)
    for s in nl.affine_range(slabs):
        nisa.dma_copy(dst=panel[:, s, :], src=source[nl.ds(s * pmax, pmax), nl.ds(first, width)])
    return panel


# nki-sim: a_t=bfloat16[512,512] b=bfloat16[512,1024]
@nki.jit
def matmul_blocked(a_t, b, block_m=4, block_n=2):
    """out[M, N] = a_t[K, M].T @ b[K, N], with M a multiple of 128 * block_m and N of 512 * block_n."""
    k, m = a_t.shape
    k2, n = b.shape
    assert k == k2, f"a_t has {k} rows, b has {k2}"
    tile_m = nl.tile_size.gemm_stationary_fmax
    tile_n = nl.tile_size.gemm_moving_fmax
    slabs = k // nl.tile_size.pmax
    width_m = block_m * tile_m
    width_n = block_n * tile_n
    assert m % width_m == 0 and n % width_n == 0, f"[{m}, {n}] is not made of blocks of [{width_m}, {width_n}]"
    out = nl.ndarray((m, n), dtype=a_t.dtype, buffer=nl.shared_hbm)
    for bn in nl.affine_range(n // width_n):
        moving = load_panel(b, bn * width_n, width_n)
        for bm in nl.affine_range(m // width_m):
            stationary = load_panel(a_t, bm * width_m, width_m)
            for i in range(block_m):
                row = nl.ndarray((tile_m, width_n), dtype=out.dtype, buffer=nl.sbuf)
                for j in range(block_n):
                    acc = nl.ndarray((tile_m, tile_n), dtype=nl.float32, buffer=nl.psum)
                    for s in range(slabs):
                        nisa.nc_matmul(
                            dst=acc,
                            stationary=stationary[:, s, nl.ds(i * tile_m, tile_m)],
                            moving=moving[:, s, nl.ds(j * tile_n, tile_n)],
                        )
                    nisa.tensor_copy(dst=row[:, nl.ds(j * tile_n, tile_n)], src=acc)
                nisa.dma_copy(dst=out[nl.ds(bm * width_m + i * tile_m, tile_m), nl.ds(bn * width_n, width_n)], src=row)
    return out
