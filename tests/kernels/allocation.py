"""Explicit addresses."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def modular_allocation(x):
    """Eight blocks through a ring of four SBUF buffers, then through PSUM bank 3."""
    blocks, rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    base = 1024
    bank_id = 3
    psum_bank_size = 2048
    loaded = []
    for i in range(blocks):
        loaded.append(
            nl.ndarray(shape=(rows, width), dtype=nl.bfloat16, buffer=nl.sbuf, address=(0, base + (i % 4) * width * 2))
        )
        nisa.dma_copy(dst=loaded[i], src=x[i])
        psum_t = nl.ndarray(
            dtype=nl.bfloat16, shape=(rows, width), address=(0, bank_id * psum_bank_size), buffer=nl.psum
        )
        nisa.tensor_copy(dst=psum_t, src=loaded[i])
        back = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=back, src=psum_t)
        nisa.dma_copy(dst=out[i], src=back)
    return out
