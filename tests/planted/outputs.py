"""Outputs that are not written, or only in part"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def never_stored(x):
    """The result stays in SBUF."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-not-written
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.tanh, data=tile)
    return out


@nki.jit
def never_stored_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.tanh, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def returns_the_other_tensor(x):
    """Two HBM tensors of one shape: the one that is returned is not the one that is written."""
    staging = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-not-written
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.maximum, operand0=0.0)
    nisa.dma_copy(dst=staging, src=tile)
    return result


@nki.jit
def returns_the_other_tensor_fixed(x):
    staging = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.maximum, operand0=0.0)
    nisa.dma_copy(dst=staging, src=tile)
    return staging


# args: x=float32[300,32]
# seen-by: check run
@nki.jit
def last_tile_missing(x):
    """300 rows are two tiles of 128 and one of 44, which the loop omits."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-partly-written
    for t in range(rows // 128):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(t * 128, 128), :])
        nisa.activation(dst=tile, op=nl.gelu, data=tile)
        nisa.dma_copy(dst=out[nl.ds(t * 128, 128), :], src=tile)
    return out


@nki.jit
def last_tile_missing_fixed(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range((rows + 127) // 128):
        count = min(128, rows - t * 128)
        tile = nl.ndarray((count, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(t * 128, count), :])
        nisa.activation(dst=tile, op=nl.gelu, data=tile)
        nisa.dma_copy(dst=out[nl.ds(t * 128, count), :], src=tile)
    return out


# args: x=float32[4,128,32]
# seen-by: check run
@nki.jit
def loop_stops_one_early(x):
    """`range(1, n - 1)` where every tile but the first should be visited."""
    tiles = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-partly-written
    running = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=running, src=x[0])
    nisa.dma_copy(dst=out[0], src=running)
    for t in range(1, tiles - 1):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=running, data1=running, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[t], src=running)
    return out


@nki.jit
def loop_stops_one_early_fixed(x):
    tiles = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    running = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=running, src=x[0])
    nisa.dma_copy(dst=out[0], src=running)
    for t in range(1, tiles):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=running, data1=running, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[t], src=running)
    return out


# args: x=float32[128,100]
# seen-by: check run
@nki.jit
def gap_between_columns(x):
    """Blocks of 32 columns are stored 33 apart: one column in 33 is never written."""
    out = nl.ndarray((128, 3 * 33), dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-partly-written
    for b in range(3):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(b * 32, 32)])
        nisa.dma_copy(dst=out[:, nl.ds(b * 33, 32)], src=tile)
    return out


@nki.jit
def gap_between_columns_fixed(x):
    out = nl.ndarray((128, 3 * 33), dtype=x.dtype, buffer=nl.shared_hbm)
    for b in range(3):
        tile = nl.ndarray((128, 33), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(b * 33, 33)])
        nisa.dma_copy(dst=out[:, nl.ds(b * 33, 33)], src=tile)
    return out


# args: x=float32[2,64,32]
# seen-by: check run
@nki.jit
def launched_on_one_core(x):
    """Each core stores its half, but the kernel is launched on one core."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-partly-written
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.activation(dst=tile, op=nl.sigmoid, data=tile)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def launched_on_one_core_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    cores = nl.num_programs(0)
    share = x.shape[0] // cores
    for i in range(share):
        half = nl.program_id(0) * share + i
        tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[half])
        nisa.activation(dst=tile, op=nl.sigmoid, data=tile)
        nisa.dma_copy(dst=out[half], src=tile)
    return out


# args: x=float32[6,128,16] count=int32[1,1]:ones
# seen-by: run
@nki.jit
def dynamic_count_too_small(x, count):
    """The trip count is data: nothing guarantees that it covers all tiles."""
    out = nl.ndarray((6, 128, 16), dtype=x.dtype, buffer=nl.shared_hbm)  # plant: output-partly-written
    count_tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count_tile, src=count)
    stop = nisa.register_alloc()
    nisa.register_load(stop, count_tile)
    tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.dynamic_range(0, stop):
        nisa.dma_copy(dst=tile, src=x.ap(pattern=[[16, 128], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0))
        nisa.dma_copy(dst=out.ap(pattern=[[16, 128], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0), src=tile)
    return out


@nki.jit
def dynamic_count_too_small_fixed(x, count):
    out = nl.ndarray((6, 128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.dynamic_range(0, 6):
        nisa.dma_copy(dst=tile, src=x.ap(pattern=[[16, 128], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0))
        nisa.dma_copy(dst=out.ap(pattern=[[16, 128], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0), src=tile)
    return out


# args: x=float32[128,64]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def cores_return_different_orders(x):  # plant: kernel-output
    """Core 1 returns the two tensors the other way round; the caller gets the order of core 0."""
    core = nl.program_id(0)
    half = nl.ds(64 * core, 64)
    kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    negated = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[half])
    nisa.dma_copy(dst=kept[half], src=tile)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=-1.0)
    nisa.dma_copy(dst=negated[half], src=tile)
    return (kept, negated) if core == 0 else (negated, kept)


@nki.jit
def cores_return_different_orders_fixed(x):
    core = nl.program_id(0)
    half = nl.ds(64 * core, 64)
    kept = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    negated = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[half])
    nisa.dma_copy(dst=kept[half], src=tile)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=-1.0)
    nisa.dma_copy(dst=negated[half], src=tile)
    return kept, negated
