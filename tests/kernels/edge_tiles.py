"""A 129 x 513 tensor in tiles of 128 x 512: min() and slice objects in place of mask=."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy_edges(t):
    result = nl.ndarray(shape=(129, 513), dtype=t.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        p_start = i * 128
        p_end = min(129, p_start + 128)
        p = slice(p_start, p_end)
        for j in range(2):
            f_start = j * 512
            f_end = min(513, f_start + 512)
            f = slice(f_start, f_end)
            source = nl.ndarray((p_end - p_start, f_end - f_start), dtype=t.dtype, buffer=nl.sbuf)
            copy = nl.ndarray((p_end - p_start, f_end - f_start), dtype=t.dtype, buffer=nl.sbuf)
            nisa.dma_copy(source, t[p, f])
            nisa.tensor_copy(copy, source)
            nisa.dma_copy(result[p_start:p_end, f_start:f_end], copy)
    return result
