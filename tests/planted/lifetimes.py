"""Contents that are overwritten before use, or never used"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[4,128,64]
# seen-by: check run
@nki.jit
def double_buffer_refilled(x):
    """Tile t + 1 is prefetched into the buffer that still holds tile t."""
    tiles = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    buffers = [nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, name=f"buffer{i}") for i in range(2)]
    nisa.dma_copy(dst=buffers[0], src=x[0])
    for t in range(tiles):
        if t + 1 < tiles:
            nisa.dma_copy(dst=buffers[t % 2], src=x[t + 1])  # plant: overwritten-before-read
        result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.square, data=buffers[t % 2])
        nisa.dma_copy(dst=out[t], src=result)
    return out


@nki.jit
def double_buffer_refilled_fixed(x):
    tiles = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    buffers = [nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, name=f"buffer{i}") for i in range(2)]
    nisa.dma_copy(dst=buffers[0], src=x[0])
    for t in range(tiles):
        if t + 1 < tiles:
            nisa.dma_copy(dst=buffers[(t + 1) % 2], src=x[t + 1])
        result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=result, op=nl.square, data=buffers[t % 2])
        nisa.dma_copy(dst=out[t], src=result)
    return out


# args: x=float32[3,128,32]
# seen-by: check run
@nki.jit
def consumer_behind_the_loop(x):
    """All tiles are loaded into one buffer, and only the last is added."""
    out = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for t in range(x.shape[0]):
        nisa.dma_copy(dst=tile, src=x[t])  # plant: overwritten-before-read
    nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def consumer_behind_the_loop_fixed(x):
    out = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for t in range(x.shape[0]):
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: a=float32[256,64] b=float32[256,128]
# seen-by: check run
@nki.jit
def product_replaced(a, b):
    """`accumulate=False` on both halves of the contraction: the first product is lost."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=False)  # plant: overwritten-before-read
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def product_replaced_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=k > 0)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,96]
# seen-by: check run
@nki.jit
def blocks_stored_in_one_place(x):
    """The offset of the store ignores the block index: three blocks go to one place."""
    out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    joined = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    for b in range(3):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(b * 32, 32)])
        nisa.activation(dst=joined, op=nl.exp, data=tile)  # plant: overwritten-before-read
    nisa.dma_copy(dst=out, src=joined)
    return out


@nki.jit
def blocks_stored_in_one_place_fixed(x):
    out = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.shared_hbm)
    joined = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
    for b in range(3):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(b * 32, 32)])
        nisa.activation(dst=joined[:, nl.ds(b * 32, 32)], op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=joined)
    return out


# args: x=float32[128,64] weight=float32[128,64]
# seen-by: check run
@nki.jit
def weight_never_used(x, weight):
    """The weight is loaded, but the data is multiplied by itself."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    scale = nl.ndarray(x.shape, dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.dma_copy(dst=scale, src=weight)  # plant: dead-load
    nisa.tensor_tensor(dst=data, data1=data, data2=data, op=nl.multiply)
    nisa.dma_copy(dst=out, src=data)
    return out


@nki.jit
def weight_never_used_fixed(x, weight):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    scale = nl.ndarray(x.shape, dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.dma_copy(dst=scale, src=weight)
    nisa.tensor_tensor(dst=data, data1=data, data2=scale, op=nl.multiply)
    nisa.dma_copy(dst=out, src=data)
    return out


# args: x=float32[128,64] mask=float32[128,64]
# seen-by: check run
@nki.jit
def mask_loaded_not_applied(x, mask):
    """A causal mask is loaded once per tile and never applied to the scores."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for half in range(2):
        rows = nl.ds(half * 64, 64)
        scores = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        keep = nl.ndarray((64, 64), dtype=mask.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=scores, src=x[rows, :])
        nisa.dma_copy(dst=keep, src=mask[rows, :])  # plant: dead-load
        nisa.activation(dst=scores, op=nl.sigmoid, data=scores)
        nisa.dma_copy(dst=out[rows, :], src=scores)
    return out


@nki.jit
def mask_loaded_not_applied_fixed(x, mask):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for half in range(2):
        rows = nl.ds(half * 64, 64)
        scores = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        keep = nl.ndarray((64, 64), dtype=mask.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=scores, src=x[rows, :])
        nisa.dma_copy(dst=keep, src=mask[rows, :])
        nisa.activation(dst=scores, op=nl.sigmoid, data=scores)
        nisa.tensor_tensor(dst=scores, data1=scores, data2=keep, op=nl.multiply)
        nisa.dma_copy(dst=out[rows, :], src=scores)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def result_left_in_its_tile(x):
    """The normalised tile is computed, but the tile before normalisation is stored."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.tensor_reduce(dst=total, op=nl.maximum, data=data, axis=1)
    nisa.tensor_scalar(dst=scaled, data=data, op0=nl.subtract, operand0=total)  # plant: dead-store
    nisa.dma_copy(dst=out, src=data)
    return out


@nki.jit
def result_left_in_its_tile_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    scaled = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.tensor_reduce(dst=total, op=nl.maximum, data=data, axis=1)
    nisa.tensor_scalar(dst=scaled, data=data, op0=nl.subtract, operand0=total)
    nisa.dma_copy(dst=out, src=scaled)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def scratch_never_read(x):
    """Statistics go to a private HBM tensor that nothing reads."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    statistics = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.private_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.tensor_reduce(dst=total, op=nl.add, data=data, axis=1)
    nisa.dma_copy(dst=statistics, src=total)  # plant: dead-store
    nisa.dma_copy(dst=out, src=data)
    return out


@nki.jit
def scratch_never_read_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    statistics = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    data = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.tensor_reduce(dst=total, op=nl.add, data=data, axis=1)
    nisa.dma_copy(dst=statistics, src=total)
    nisa.dma_copy(dst=out, src=data)
    return out, statistics


# args: x=float32[128,256]
# seen-by: check run
@nki.jit
def sum_reset_in_each_iteration(x):
    """The sum is set to 0 in each iteration instead of once: only the last term remains."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in range(4):
        nisa.memset(dst=total, value=0.0)  # plant: overwritten-before-read
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, i * 64:(i + 1) * 64], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def sum_reset_in_each_iteration_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=total, value=0.0)
    for i in range(4):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, i * 64:(i + 1) * 64], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[8,16] n=int32[1,1]:ones
# seen-by: run
@nki.jit
def result_of_an_iteration_left(x, n):
    """A loop whose trip count is an input keeps its last partial sum, which nothing reads. The trip count here is 1."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    total = nl.zeros(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    last = nl.zeros(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=count, src=n)
    end = nisa.register_alloc()
    nisa.register_load(end, count)

    def body(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
        nisa.tensor_copy(dst=last, src=total)  # plant: dead-store

    nl.fori_loop(0, end, body)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def result_of_an_iteration_left_fixed(x, n):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    total = nl.zeros(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    last = nl.zeros(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=count, src=n)
    end = nisa.register_alloc()
    nisa.register_load(end, count)

    def body(i):
        # The next iteration would read what this one leaves.
        nisa.tensor_tensor(dst=total, data1=last, data2=tile, op=nl.add)
        nisa.tensor_copy(dst=last, src=total)

    nl.fori_loop(0, end, body)
    nisa.dma_copy(dst=out, src=total)
    return out


def _rows_of_exponentials(x, first, last):
    """The sums of the exponentials of 256 columns, taken in two halves."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    copy = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    powers = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    first(powers[:, 0:128], tile[:, 0:128])
    last(powers[:, 128:256], tile[:, 128:256], total)
    nisa.dma_copy(dst=copy, src=powers)
    nisa.dma_copy(dst=out, src=total)
    return out, copy


def _begin(dst, data):
    nisa.activation(dst=dst, op=nl.exp, data=data, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)


# args: x=float32[128,256]
# seen-by: check run
@nki.jit
def sum_begun_twice(x):
    """The second half resets the sum of the first instead of continuing it."""

    def last(dst, data, total):
        nisa.activation(dst=dst, op=nl.exp, data=data, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)  # plant: overwritten-before-read

    return _rows_of_exponentials(x, _begin, last)


@nki.jit
def sum_begun_twice_fixed(x):
    def last(dst, data, total):
        nisa.activation(dst=dst, op=nl.exp, data=data, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reduce)

    return _rows_of_exponentials(x, _begin, last)


# args: x=float32[128,256]
# seen-by: check run
@nki.jit
def maximum_left_in_the_accumulators(x):
    """The maximum of each row is computed and never read out."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    shifted = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar_reduce(dst=shifted, data=tile, op0=nl.add, operand0=1.0, reduce_op=nl.maximum)  # plant: dead-store
    nisa.dma_copy(dst=out, src=shifted)
    return out


@nki.jit
def maximum_left_in_the_accumulators_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    shifted = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=shifted)
    return out


# args: x=float32[8,16]
# seen-by: check run
@nki.jit
def preset_before_a_loop(x):
    """A result is set to 1 in case the loop has no iterations; it always has two."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=result, value=1.0)  # plant: overwritten-before-read

    def body(i):
        nisa.activation(dst=result, op=nl.exp, data=tile)
        nisa.activation(dst=tile, op=nl.copy, data=result)

    nl.fori_loop(0, 2, body)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[8,16] n=int32[1,1]:ones
@nki.jit
def preset_before_a_loop_fixed(x, n):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    count = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=count, src=n)
    nisa.memset(dst=result, value=1.0)
    end = nisa.register_alloc()
    nisa.register_load(end, count)

    def body(i):
        nisa.activation(dst=result, op=nl.exp, data=tile)
        nisa.activation(dst=tile, op=nl.copy, data=result)

    nl.fori_loop(0, end, body)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[4,128,16]
# seen-by: check run
@nki.jit
def three_tiles_loaded_in_vain(x):
    """Four tiles are loaded and one is used, always the same."""
    out = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((128, 4, 16), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(4):
        nisa.dma_copy(dst=tiles[:, i, :], src=x[i])  # plant: dead-load
    nisa.dma_copy(dst=out, src=tiles.select(1, 2))
    return out


# args: x=float32[4,128,16] which=int32[1,1]:ones
@nki.jit
def three_tiles_loaded_in_vain_fixed(x, which):
    out = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray((128, 4, 16), dtype=x.dtype, buffer=nl.sbuf)
    number = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    for i in range(4):
        nisa.dma_copy(dst=tiles[:, i, :], src=x[i])
    nisa.dma_copy(dst=number, src=which)
    chosen = nisa.register_alloc()
    nisa.register_load(chosen, number)
    nisa.dma_copy(dst=out, src=tiles.select(1, chosen))
    return out


# args: table=float32[64,128] rows=int32[64,1]:zeros
# seen-by: run
@nki.jit
def filled_before_a_gather(table, rows):
    """A tile is filled for the rows that the gather skips, but without `oob_mode=skip` it skips none."""
    out = nl.ndarray((64, 128), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    tile = nl.ndarray((64, 128), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.memset(dst=tile, value=-1.0)  # plant: overwritten-before-read
    nisa.dma_copy(dst=tile, src=table.ap(pattern=[[128, 64], [1, 128]], vector_offset=index, indirect_dim=0))
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def filled_before_a_gather_fixed(table, rows):
    out = nl.ndarray((64, 128), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    tile = nl.ndarray((64, 128), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.memset(dst=tile, value=-1.0)
    nisa.dma_copy(dst=tile, src=table.ap(pattern=[[128, 64], [1, 128]], vector_offset=index, indirect_dim=0), oob_mode=nisa.oob_mode.skip)
    nisa.dma_copy(dst=out, src=tile)
    return out
