"""Explicit buffer placement: a ring of SBUF buffers and two alternating PSUM banks."""

import nki
import nki.isa as nisa
import nki.language as nl

PSUM_BANK_BYTES = 2048
FLOAT32_BYTES = 4


# nki-sim: a_t=float32[128,256] b=float32[128,2048]
@nki.jit
def matmul_ring(a_t, b, buffers=2):
    """out[M, N] = a_t[128, M].T @ b[128, N]; M a multiple of 128, N of 512.

    `buffers` is the length of the ring: with 1, each load waits for the preceding product; with 2, loads are prefetched.
    """
    k, m = a_t.shape
    n = b.shape[1]
    tile_m = 128
    tile_n = 512
    assert k == 128 and m % tile_m == 0 and n % tile_n == 0
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)

    # Layout of a partition: a_t, then the ring of b tiles, then the ring of results. Offsets are in bytes.
    left_bytes = m * FLOAT32_BYTES
    tile_bytes = tile_n * FLOAT32_BYTES
    left = nl.ndarray((k, m), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0), name="left")
    nisa.dma_copy(dst=left, src=a_t)

    for j in range(n // tile_n):
        right = nl.ndarray(
            (k, tile_n),
            dtype=nl.float32,
            buffer=nl.sbuf,
            address=(0, left_bytes + (j % buffers) * tile_bytes),
            name=f"right{j}",
        )
        nisa.dma_copy(dst=right, src=b[:, nl.ds(j * tile_n, tile_n)])
        for i in range(m // tile_m):
            step = j * (m // tile_m) + i
            acc = nl.ndarray(
                (tile_m, tile_n),
                dtype=nl.float32,
                buffer=nl.psum,
                address=(0, (step % 2) * PSUM_BANK_BYTES),
                name=f"acc{step}",
            )
            nisa.nc_matmul(dst=acc, stationary=left[:, nl.ds(i * tile_m, tile_m)], moving=right)
            result = nl.ndarray(
                (tile_m, tile_n),
                dtype=nl.float32,
                buffer=nl.sbuf,
                address=(0, left_bytes + (buffers + step % buffers) * tile_bytes),
                name=f"result{step}",
            )
            nisa.tensor_copy(dst=result, src=acc)
            nisa.dma_copy(dst=out[nl.ds(i * tile_m, tile_m), nl.ds(j * tile_n, tile_n)], src=result)
    return out
