"""Wrong results that no finding detects: compare with a reference (`--expect`, `nki_sim.assert_close`)"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,66]
# undetected: the slice is within the tensor, and only the author knows which columns are intended
@nki.jit
def slice_off_by_one(x):
    """The window of an average starts one column too late."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=total, data1=tile[:, 1:65], data2=tile[:, 2:66], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def slice_off_by_one_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=total, data1=tile[:, 0:64], data2=tile[:, 1:65], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: a=float32[128,128] b=float32[128,128]
# undetected: both orders of the operands have the same shapes
@nki.jit
def operands_exchanged(a, b):
    """a.T @ b is intended, b.T @ a is computed."""
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=right, moving=left)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def operands_exchanged_fixed(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,16,16]
# undetected: the free dimensions have the same size, so both axes yield the shape of the result
@nki.jit
def reduced_over_the_wrong_axis(x):
    """The maximum over the rows of each image is intended, that over its columns is computed."""
    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=2)
    nisa.dma_copy(dst=out, src=largest)
    return out


@nki.jit
def reduced_over_the_wrong_axis_fixed(x):
    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile.permute((0, 2, 1)), axis=2)
    nisa.dma_copy(dst=out, src=largest)
    return out


# args: x=float32[300,32]
# undetected: the preceding iteration has written the stale rows
@nki.jit
def stale_rows_of_the_last_tile(x):
    """One tile serves all iterations: the last one loads 44 rows into it, and all 128 are summed."""
    rows, columns = x.shape
    out = nl.ndarray((3, 1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
    for t in range(3):
        count = min(128, rows - t * 128)
        nisa.dma_copy(dst=tile[0:count, :], src=x[nl.ds(t * 128, count), :])
        acc = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=ones, moving=tile)
        total = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=total, src=acc)
        nisa.dma_copy(dst=out[t], src=total)
    return out


@nki.jit
def stale_rows_of_the_last_tile_fixed(x):
    rows, columns = x.shape
    out = nl.ndarray((3, 1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
    for t in range(3):
        count = min(128, rows - t * 128)
        nisa.dma_copy(dst=tile[0:count, :], src=x[nl.ds(t * 128, count), :])
        acc = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=ones[0:count, :], moving=tile[0:count, :])
        total = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=total, src=acc)
        nisa.dma_copy(dst=out[t], src=total)
    return out


# args: a=float32[384,64] b=float32[384,128]
# undetected: every operand is used, but not every part of the inputs
@nki.jit
def last_tile_of_the_contraction_missing(a, b):
    """384 rows are three tiles, and only two are multiplied."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for k in range(384 // 128 - 1):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def last_tile_of_the_contraction_missing_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    for k in range(384 // 128):
        left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * 128, 128), :])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * 128, 128), :])
        nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,128]
# undetected: both directions of the comparison are valid masks
@nki.jit
def mask_of_the_future(x):
    """The causal mask keeps the keys after the query instead of the keys before it."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    scores = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    masked = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=scores, src=x)
    nisa.affine_select(
        dst=masked,
        pattern=[[-1, 128]],
        offset=0,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=0.0,
        cmp_op=nl.less_equal,
    )
    nisa.dma_copy(dst=out, src=masked)
    return out


@nki.jit
def mask_of_the_future_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    scores = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    masked = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=scores, src=x)
    nisa.affine_select(
        dst=masked,
        pattern=[[-1, 128]],
        offset=0,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=0.0,
        cmp_op=nl.greater_equal,
    )
    nisa.dma_copy(dst=out, src=masked)
    return out


def shifted(tile, amount, history=[]):  # noqa: B006
    history.append(amount)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(sum(history)))


def shifted_fixed(tile, amount):
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(amount))


# args: x=float32[2,128,32]
# undetected: Python keeps a mutable default between calls, and so does the simulator
@nki.jit
def mutable_default(x):
    """The shift of the first tile is applied to the second as well."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(2):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        shifted(tile, t + 1)
        nisa.dma_copy(dst=out[t], src=tile)
    return out


@nki.jit
def mutable_default_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(2):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        shifted_fixed(tile, t + 1)
        nisa.dma_copy(dst=out[t], src=tile)
    return out


# args: x=float32[128,64]
# undetected: a loss of precision by rounding is not an error in itself
@nki.jit
def statistics_in_bfloat16(x):
    """A running sum is kept in bfloat16, which has 8 bits: small terms vanish."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.bfloat16, buffer=nl.sbuf)
    wide = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=total, value=300.0)
    for c in range(64):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, c : c + 1], op=nl.add)
    nisa.tensor_copy(dst=wide, src=total)
    nisa.dma_copy(dst=out, src=wide)
    return out


@nki.jit
def statistics_in_bfloat16_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=total, value=300.0)
    for c in range(64):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, c : c + 1], op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[2,128,32]
# flags: --lnc 2
# undetected: a barrier of another tensor orders the cores, which the simulator accepts and the device does not guarantee
# expect: same
@nki.jit
def barrier_of_another_tensor(x):
    """The barrier names `out`, but the cores exchange `board`."""
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="board")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=board[core], src=tile)
    nisa.core_barrier(data=out, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=board[1 - core])
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def barrier_of_another_tensor_fixed(x):
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="board")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=board[core], src=tile)
    nisa.core_barrier(data=board, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=board[1 - core])
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[128,64]
# undetected: a kernel without epsilon is right for generated inputs; run it with realistic data
# expect: same
@nki.jit
def norm_without_epsilon(x):
    """A row of zeros would divide by zero, but the input has no such row."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.activation(dst=total, op=nl.rsqrt, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def norm_without_epsilon_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1e-6)
    nisa.activation(dst=total, op=nl.rsqrt, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,256]
# undetected: a scan may begin with 0, and only the author knows that the chunks belong together
@nki.jit
def scan_restarts_in_each_chunk(x):
    """The scan of the second chunk begins with 0 instead of the last sum of the first."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    ones = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=ones, value=1.0)
    for i in range(2):
        part = slice(i * 128, (i + 1) * 128)
        initial = 0.0
        nisa.tensor_tensor_scan(
            dst=sums[:, part], data0=ones[:, part], data1=tile[:, part], initial=initial, op0=nl.multiply, op1=nl.add
        )
    nisa.dma_copy(dst=out, src=sums)
    return out


@nki.jit
def scan_restarts_in_each_chunk_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    ones = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=ones, value=1.0)
    for i in range(2):
        part = slice(i * 128, (i + 1) * 128)
        initial = sums[:, 127:128] if i else 0.0
        nisa.tensor_tensor_scan(
            dst=sums[:, part], data0=ones[:, part], data1=tile[:, part], initial=initial, op0=nl.multiply, op1=nl.add
        )
    nisa.dma_copy(dst=out, src=sums)
    return out


# args: x=float32[128,256]
# undetected: kernels compute values that only some iterations use
@nki.jit
def last_partial_sum_missed(x):
    """Four partial sums are computed, and three are added."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in range(4):
        nisa.tensor_reduce(dst=sums[:, i:i + 1], op=nl.add, data=tile[:, i * 64:(i + 1) * 64], axis=1)
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums[:, 0:3], axis=1)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def last_partial_sum_missed_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    sums = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in range(4):
        nisa.tensor_reduce(dst=sums[:, i:i + 1], op=nl.add, data=tile[:, i * 64:(i + 1) * 64], axis=1)
    nisa.tensor_reduce(dst=total, op=nl.add, data=sums, axis=1)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,128]
# undetected: any number is a valid value of masked elements
@nki.jit
def masked_with_zero(x):
    """Masked scores are 0 before exp, so each has the weight 1."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    e = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.affine_select(
        dst=tile, pattern=[[-1, 128]], channel_multiplier=1, on_true_tile=tile, on_false_value=0.0, cmp_op=nl.greater_equal
    )
    nisa.activation_reduce(dst=e, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=e)
    return out


@nki.jit
def masked_with_zero_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    e = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.affine_select(
        dst=tile, pattern=[[-1, 128]], channel_multiplier=1, on_true_tile=tile, on_false_value=-1.0e30, cmp_op=nl.greater_equal
    )
    nisa.activation_reduce(dst=e, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=e)
    return out


# args: x=float32[256,64]
# flags: --lnc 2
# undetected: cores may read the same input, and need not read all of it
@nki.jit
def both_cores_load_the_first_half(x):
    """Core 1 loads the rows of core 0."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[0:128])
    nisa.activation(dst=tile, op=nl.tanh, data=tile)
    nisa.dma_copy(dst=out[core * 128:(core + 1) * 128], src=tile)
    return out


@nki.jit
def both_cores_load_the_first_half_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core * 128:(core + 1) * 128])
    nisa.activation(dst=tile, op=nl.tanh, data=tile)
    nisa.dma_copy(dst=out[core * 128:(core + 1) * 128], src=tile)
    return out
