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


# args: x=float32[128,64] y=float32[128,64]
# seen-by: check run
@nki.jit
def scans_into_the_next_column(x, y):
    """The running sum is meant to be exclusive: it goes to the next column of the tile that it reads."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    factors = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((128, 65), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=factors, src=y)
    nisa.dma_copy(dst=tile[:, 0:64], src=x)
    nisa.tensor_tensor_scan(  # plant: overlapping-operands
        dst=tile[:, 1:65], data0=factors, data1=tile[:, 0:64], initial=0.0, op0=nl.multiply, op1=nl.add
    )
    nisa.dma_copy(dst=out, src=tile[:, 1:65])
    return out


@nki.jit
def scans_into_the_next_column_fixed(x, y):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    factors = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=factors, src=y)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor_scan(dst=tile, data0=factors, data1=tile, initial=0.0, op0=nl.multiply, op1=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def cumulates_into_the_next_column(x):
    """The running maximum goes to the next column of the tile that it reads."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 65), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:64], src=x)
    nisa.tensor_scalar_cumulative(  # plant: overlapping-operands
        dst=tile[:, 1:65], src=tile[:, 0:64], op0=nl.multiply, op1=nl.maximum, imm0=2.0
    )
    nisa.dma_copy(dst=out, src=tile[:, 1:65])
    return out


@nki.jit
def cumulates_into_the_next_column_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar_cumulative(dst=tile, src=tile, op0=nl.multiply, op1=nl.maximum, imm0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[32,64]
# seen-by: check run
@nki.jit
def shuffles_into_the_next_column(x):
    """Partitions are reversed and shifted by one column at once, in one tile."""
    out = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((32, 65), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:64], src=x)
    mask = [31 - i for i in range(32)]
    nisa.nc_stream_shuffle(dst=tile[:, 1:65], src=tile[:, 0:64], shuffle_mask=mask)  # plant: overlapping-operands
    nisa.dma_copy(dst=out, src=tile[:, 1:65])
    return out


@nki.jit
def shuffles_into_the_next_column_fixed(x):
    out = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((32, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    mask = [31 - i for i in range(32)]
    nisa.nc_stream_shuffle(dst=tile, src=tile, shuffle_mask=mask)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def gathers_in_place(x):
    """The columns of a tile are reversed in place: the last ones are overwritten before they are read."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    order = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.iota(dst=order, pattern=[[-1, 64]], offset=63)
    nisa.nc_n_gather(dst=tile, data=tile, indices=order)  # plant: overlapping-operands
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def gathers_in_place_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    reversed_tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    order = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.iota(dst=order, pattern=[[-1, 64]], offset=63)
    nisa.nc_n_gather(dst=reversed_tile, data=tile, indices=order)
    nisa.dma_copy(dst=out, src=reversed_tile)
    return out


# args: x=float32[2,128,64]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def exchanges_in_place(x):
    """Each core receives into the tile that it sends."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(  # plant: overlapping-operands
        src=tile[:, 0:48], dst=tile[:, 16:64], send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0
    )
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def exchanges_in_place_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    received = nl.ndarray((128, 48), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile[:, 0:48], dst=received, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.tensor_copy(dst=tile[:, 16:64], src=received)
    nisa.dma_copy(dst=out[core], src=tile)
    return out
