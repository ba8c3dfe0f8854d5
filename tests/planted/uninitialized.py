"""Uninitialized values"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[4,128,64]
# seen-by: check run
@nki.jit
def accumulator_without_zero(x):
    """A sum over tiles starts from whatever SBUF holds."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    for t in range(x.shape[0]):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def accumulator_without_zero_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for t in range(x.shape[0]):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[100,48]
# seen-by: check run
@nki.jit
def short_tile_in_full_instruction(x):
    """100 rows are loaded into a tile of 128, and all 128 are reduced."""
    out = nl.ndarray((100, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 48), dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:100, :], src=x)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=largest[0:100, :])
    return out


@nki.jit
def short_tile_in_full_instruction_fixed(x):
    out = nl.ndarray((100, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 48), dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:100, :], src=x)
    nisa.tensor_reduce(dst=largest[0:100, :], op=nl.maximum, data=tile[0:100, :], axis=1)
    nisa.dma_copy(dst=out, src=largest[0:100, :])
    return out


# args: x=float32[128,90]
# seen-by: check run
@nki.jit
def row_sum_over_padding(x):
    """The tile is padded to 96 columns; the padding is part of the mean."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    squares = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:90], src=x)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def row_sum_over_padding_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 96), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    squares = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[:, 0:90], src=x)
    nisa.memset(dst=tile[:, 90:96], value=0.0)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: q=float32[64,128] k=float32[64,256]
# seen-by: check run
@nki.jit
def running_maximum_not_set(q, k):
    """The running maximum of an online softmax needs a first value."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    q_tile = nl.ndarray((64, 128), dtype=q.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=q_tile, src=q)
    running = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    for b in range(2):
        k_tile = nl.ndarray((64, 128), dtype=k.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=k_tile, src=k[:, nl.ds(b * 128, 128)])
        scores = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=q_tile, moving=k_tile)
        largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_tensor(dst=running, data1=running, data2=largest, op=nl.maximum)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=running)
    return out


@nki.jit
def running_maximum_not_set_fixed(q, k):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    q_tile = nl.ndarray((64, 128), dtype=q.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=q_tile, src=q)
    running = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=running, value=-1e30)
    for b in range(2):
        k_tile = nl.ndarray((64, 128), dtype=k.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=k_tile, src=k[:, nl.ds(b * 128, 128)])
        scores = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=scores, stationary=q_tile, moving=k_tile)
        largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_tensor(dst=running, data1=running, data2=largest, op=nl.maximum)
    nisa.dma_copy(dst=out, src=running)
    return out


# args: x=float32[128,60]
# seen-by: run
@nki.jit
def padding_reaches_the_output(x):
    """The output has 64 columns; only 60 of the tile that is stored were computed."""
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)  # plant: uninitialized-output
    tile = nl.ndarray((128, 60), dtype=x.dtype, buffer=nl.sbuf)
    padded = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=padded[:, 0:60], op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=padded)
    return out


@nki.jit
def padding_reaches_the_output_fixed(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 60), dtype=x.dtype, buffer=nl.sbuf)
    padded = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=padded, value=0.0)
    nisa.activation(dst=padded[:, 0:60], op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=padded)
    return out


# args: x=float32[128,64] bias=None
# seen-by: check run
@nki.jit
def bias_only_if_given(x, bias):
    """Without a bias the tile that is added was never filled."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    if bias is not None:
        nisa.dma_copy(dst=shift, src=bias)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=shift)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def bias_only_if_given_fixed(x, bias):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    if bias is not None:
        shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=shift, src=bias)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=shift)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def running_sum_not_reset(x):
    """A running sum continues from accumulators that no instruction has set."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar_cumulative(  # plant: uninitialized-read
        dst=result, src=tile, op0=nl.multiply, op1=nl.add, imm0=1.0, reduce_cmd=nisa.reduce_cmd.reduce
    )
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def running_sum_not_reset_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar_cumulative(
        dst=result, src=tile, op0=nl.multiply, op1=nl.add, imm0=1.0, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def accumulators_read_out_too_early(x):
    """The accumulators of the scalar engine are read out without a sum."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.exp, data=tile, reduce_res=total)  # plant: uninitialized-read
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def accumulators_read_out_too_early_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    command = nisa.reduce_cmd.reset_reduce
    nisa.activation(dst=tile, op=nl.exp, data=tile, reduce_op=nl.add, reduce_cmd=command)
    nisa.activation(dst=tile, op=nl.exp, data=tile, reduce_res=total)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,64] p=uint8[128,64]:ones
# seen-by: check run
@nki.jit
def accumulators_after_an_idle_instruction(x, p):
    """`select_reduce` runs idle between two parts of a maximum; the manual says that it may change the accumulators."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    chosen = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    mask = nl.ndarray(p.shape, dtype=p.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=mask, src=p)
    with nl.no_reorder():
        nisa.tensor_scalar_reduce(dst=tile, data=tile, op0=nl.add, operand0=1.0, reduce_op=nl.maximum)
        nisa.select_reduce(dst=tile, predicate=mask, on_true=tile, on_false=0.0)
        command = nisa.reduce_cmd.reduce
        nisa.tensor_scalar_reduce(  # plant: uninitialized-read
            dst=tile, data=tile, op0=nl.multiply, operand0=0.5, reduce_op=nl.maximum, reduce_cmd=command, reduce_res=total
        )
    nisa.dma_copy(dst=out, src=total)
    nisa.dma_copy(dst=chosen, src=tile)
    return out, chosen


@nki.jit
def accumulators_after_an_idle_instruction_fixed(x, p):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    chosen = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    mask = nl.ndarray(p.shape, dtype=p.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=mask, src=p)
    with nl.no_reorder():
        nisa.select_reduce(dst=tile, predicate=mask, on_true=tile, on_false=0.0)
        nisa.tensor_scalar_reduce(dst=tile, data=tile, op0=nl.add, operand0=1.0, reduce_op=nl.maximum)
        command = nisa.reduce_cmd.reduce
        nisa.tensor_scalar_reduce(
            dst=tile, data=tile, op0=nl.multiply, operand0=0.5, reduce_op=nl.maximum, reduce_cmd=command, reduce_res=total
        )
    nisa.dma_copy(dst=out, src=total)
    nisa.dma_copy(dst=chosen, src=tile)
    return out, chosen


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def accumulators_of_half_the_partitions(x):
    """The first part resets and adds 64 partitions, the second continues in 128."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    command = nisa.reduce_cmd
    nisa.activation(dst=tile[0:64, :], op=nl.exp, data=tile[0:64, :], reduce_op=nl.add, reduce_cmd=command.reset_reduce)
    nisa.activation(  # plant: uninitialized-read
        dst=tile, op=nl.exp, data=tile, reduce_op=nl.add, reduce_cmd=command.reduce, reduce_res=total
    )
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def accumulators_of_half_the_partitions_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    command = nisa.reduce_cmd
    for half in (slice(0, 64), slice(64, 128)):
        nisa.activation(dst=tile[half, :], op=nl.exp, data=tile[half, :], reduce_op=nl.add, reduce_cmd=command.reset_reduce)
    nisa.activation(dst=tile, op=nl.exp, data=tile, reduce_op=nl.add, reduce_cmd=command.reduce, reduce_res=total)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[4,64,32]
# seen-by: check run
@nki.jit
def tile_of_an_earlier_iteration(x):
    """The tile is allocated in the body of a device loop, and its second half is written after the read."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(4):
        tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:16], src=x.ap(pattern=[[32, 64], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0))
        there = out.ap(pattern=[[32, 64], [1, 32]], offset=0, scalar_offset=i, indirect_dim=0)
        nisa.dma_copy(dst=there, src=tile)  # plant: uninitialized-read uninitialized-output
        nisa.memset(dst=tile[:, 16:32], value=0.0)
    return out


@nki.jit
def tile_of_an_earlier_iteration_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(4):
        tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[:, 0:16], src=x.ap(pattern=[[32, 64], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0))
        nisa.memset(dst=tile[:, 16:32], value=0.0)
        there = out.ap(pattern=[[32, 64], [1, 32]], offset=0, scalar_offset=i, indirect_dim=0)
        nisa.dma_copy(dst=there, src=tile)
    return out
