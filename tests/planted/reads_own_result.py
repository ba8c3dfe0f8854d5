"""Instructions that read their own result"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def shifts_a_tile_in_place(x):
    """A delay by one column, in place: each element is overwritten before it is read."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=tile[:, 1:64], src=tile[:, 0:63])  # plant: overlapping-operands
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def shifts_a_tile_in_place_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    late = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=late[:, 0:1], src=tile[:, 0:1])
    nisa.tensor_copy(dst=late[:, 1:64], src=tile[:, 0:63])
    nisa.dma_copy(dst=out, src=late)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def sums_prefixes_in_place(x):
    """Prefix sums by doubling, each step in place: the second operand is already partly overwritten."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=sums, src=x)
    for step in (1, 2, 4, 8, 16, 32):
        nisa.tensor_tensor(  # plant: overlapping-operands
            dst=sums[:, step:64], data1=sums[:, step:64], data2=sums[:, 0 : 64 - step], op=nl.add
        )
    nisa.dma_copy(dst=out, src=sums)
    return out


@nki.jit
def sums_prefixes_in_place_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=sums, src=x)
    for step in (1, 2, 4, 8, 16, 32):
        more = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=more[:, 0:step], src=sums[:, 0:step])
        nisa.tensor_tensor(dst=more[:, step:64], data1=sums[:, step:64], data2=sums[:, 0 : 64 - step], op=nl.add)
        sums = more
    nisa.dma_copy(dst=out, src=sums)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def rotates_a_cache_in_memory(x):
    """One transfer moves the rows of a cache in HBM up by one, within the same tensor."""
    cache = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=cache, src=tile)
    nisa.dma_copy(dst=cache[0:127, :], src=cache[1:128, :])  # plant: overlapping-operands
    return cache


@nki.jit
def rotates_a_cache_in_memory_fixed(x):
    cache = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=cache[127:128, :], src=tile[127:128, :])
    nisa.dma_copy(dst=cache[0:127, :], src=tile[1:128, :])
    return cache


# args: x=float32[64,64]
# seen-by: check run
@nki.jit
def transposes_in_place(x):
    """A square tile is transposed onto itself by DMA."""
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_transpose(dst=tile, src=tile)  # plant: overlapping-operands
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def transposes_in_place_fixed(x):
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=turned, src=tile)
    nisa.dma_copy(dst=out, src=turned)
    return out
