"""Several writes to one element"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def copy_into_a_broadcast(x):
    """A row sum by copying 64 columns into one: the broadcast is on the wrong side."""
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    column = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(dst=column.broadcast(1, 64), src=tile)  # plant: overlapping-write
    nisa.dma_copy(dst=out, src=column)
    return out


@nki.jit
def copy_into_a_broadcast_fixed(x):
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    column = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=column, op=nl.add, data=tile, axis=1)
    nisa.dma_copy(dst=out, src=column)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def windows_overlap(x):
    """Windows of 16 columns are stored 8 apart with one access pattern."""
    out = nl.ndarray((128, 40), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    joined = nl.ndarray((128, 40), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(  # plant: overlapping-write
        dst=joined.ap(pattern=[[40, 128], [8, 4], [1, 16]], offset=0), src=tile.reshape((128, 4, 16))
    )
    nisa.dma_copy(dst=out, src=joined)
    return out


@nki.jit
def windows_overlap_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    joined = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_copy(
        dst=joined.ap(pattern=[[64, 128], [16, 4], [1, 16]], offset=0), src=tile.reshape((128, 4, 16))
    )
    nisa.dma_copy(dst=out, src=joined)
    return out


# args: x=float32[64,32]
# seen-by: run
@nki.jit
def scatter_hits_a_row_twice(x):
    """Row p goes to row p // 2 of the table: two sources share each destination."""
    table = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    rows = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.iota(rows, [[1, 1]], 0, 1)
    nisa.tensor_scalar(dst=rows, data=rows, op0=nl.right_shift, operand0=1)
    nisa.dma_copy(  # plant: overlapping-write
        dst=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=rows, indirect_dim=0), src=tile
    )
    return table


@nki.jit
def scatter_hits_a_row_twice_fixed(x):
    table = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    rows = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.iota(rows, [[1, 1]], 0, 1)
    nisa.dma_copy(
        dst=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=rows, indirect_dim=0), src=tile
    )
    return table


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def rows_of_an_output_collapse(x):
    """The row stride of the destination pattern is 0: all 128 rows of a store go to the first."""
    out = nl.ndarray((1, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out.ap(pattern=[[0, 128], [1, 64]], offset=0), src=tile)  # plant: overlapping-write
    return out


@nki.jit
def rows_of_an_output_collapse_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out.ap(pattern=[[64, 128], [1, 64]], offset=0), src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def sum_into_the_result(x):
    """The sum of each row is written to the first column of the elements that are summed."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation_reduce(  # plant: overlapping-write
        dst=result, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=result[:, 0:1]
    )
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def sum_into_the_result_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    wide = nl.ndarray((128, 65), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(dst=wide[:, 1:65], op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=wide[:, 0:1])
    nisa.tensor_copy(dst=result, src=wide[:, 0:64])
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[256,64]
# seen-by: run
@nki.jit
def store_step_too_small(x):
    """The tiles of the output are 64 rows apart instead of 128; the last rows are filled afterwards."""
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128:(i + 1) * 128])
        nisa.activation(dst=tile, op=nl.tanh, data=tile)
        nisa.dma_copy(dst=out[i * 64:i * 64 + 128], src=tile)  # plant: overlapping-store
    rest = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=rest, value=0.0)
    nisa.dma_copy(dst=out[192:256], src=rest)
    return out


@nki.jit
def store_step_too_small_fixed(x):
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(2):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128:(i + 1) * 128])
        nisa.activation(dst=tile, op=nl.tanh, data=tile)
        nisa.dma_copy(dst=out[i * 128:i * 128 + 128], src=tile)
    return out


# args: x=float32[192,64]
# seen-by: run
@nki.jit
def last_tile_starts_too_early(x):
    """The last tile is moved up so that it has 128 rows, but its rows are loaded from elsewhere."""
    out = nl.ndarray((192, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in (0, 64):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[0:128])
        nisa.dma_copy(dst=out[start:start + 128], src=tile)  # plant: overlapping-store
    return out


@nki.jit
def last_tile_starts_too_early_fixed(x):
    out = nl.ndarray((192, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for start in (0, 64):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[start:start + 128])
        nisa.dma_copy(dst=out[start:start + 128], src=tile)
    return out
