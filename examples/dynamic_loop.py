"""A loop whose trip count is known only on the device."""

import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: x=float32[8,128,256] count=int32[1,1]:ones
@nki.jit
def sum_first_tiles(x, count):
    """out = x[0] + x[1] + ... + x[count - 1], for x[T, 128, W] and count int32[1, 1] with a value of 1..T."""
    tiles, rows, width = x.shape
    out = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    count_tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count_tile, src=count)
    stop = nisa.register_alloc()
    nisa.register_load(stop, count_tile)

    total = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    piece = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.dynamic_range(0, stop):
        # i is a register: it selects the tile when the loop runs.
        nisa.dma_copy(
            dst=piece, src=x.ap(pattern=[[width, rows], [1, width]], offset=0, scalar_offset=i, indirect_dim=0)
        )
        nisa.tensor_tensor(dst=total, data1=total, data2=piece, op=nl.add)
    result = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out, src=result)
    return out
