"""Operands whose values or layout contradict the call"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: a=float32[128,128] b=float32[128,128]
# seen-by: run
@nki.jit
def transpose_mode_for_a_product(a, b):
    """`is_transpose` is mistaken for the transpose of an operand; it moves `stationary` through an identity."""
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, is_transpose=True)  # plant: unexpected-values
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def transpose_mode_for_a_product_fixed(a, b):
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


# args: a=float32[128,128] b=float32[128,128]
# seen-by: run
@nki.jit
def weights_are_no_ones(a, b):
    """The hint of a mask of ones and zeros remains after the mask was replaced by weights."""
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, is_moving_onezero=True)  # plant: unexpected-values
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def weights_are_no_ones_fixed(a, b):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    loaded = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=loaded, src=b)
    nisa.tensor_scalar(dst=right, data=loaded, op0=nl.greater, operand0=0.0)
    acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right, is_moving_onezero=True)
    result = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def dropout_of_a_percentage(x):
    """The probability is given in percent."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dropout(dst=result, data=tile, prob=25.0)  # plant: operand-value
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def dropout_of_a_percentage_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dropout(dst=result, data=tile, prob=0.25)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def dropout_of_a_negative_rate(x):
    """A tile of probabilities holds a negative number."""
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    rate = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=rate, value=-0.5)
    nisa.dropout(dst=result, data=tile, prob=rate)  # plant: unexpected-values
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def dropout_of_a_negative_rate_fixed(x):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    rate = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=rate, value=0.5)
    nisa.dropout(dst=result, data=tile, prob=rate)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: table=float32[100,32]
# seen-by: check run
@nki.jit
def indices_in_one_partition(table):
    """The 64 indices of a gather are in one partition instead of 64."""
    out = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((1, 64), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=index, pattern=[[1, 64]], offset=0, channel_multiplier=0)
    tile = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(  # plant: index-layout
        dst=tile, src=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=index, indirect_dim=0)
    )
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def indices_in_one_partition_fixed(table):
    out = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=index, pattern=[[1, 1]], offset=0, channel_multiplier=1)
    tile = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(
        dst=tile, src=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=index, indirect_dim=0)
    )
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[2,64,32]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def exchange_with_itself(x):
    """The rank of the partner is computed modulo the wrong number: each core names itself."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile, dst=theirs, send_to_rank=core, recv_from_rank=core, pipe_id=0)  # plant: unexpected-values
    nisa.dma_copy(dst=out[core], src=theirs)
    return out


@nki.jit
def exchange_with_itself_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.dma_copy(dst=out[core], src=theirs)
    return out


# args: table=float32[100,32]
# seen-by: check run
@nki.jit
def rows_of_another_length(table):
    """A gather takes the indices for rows of 48 elements, as the pattern has them; the table's rows have 32."""
    out = nl.ndarray((64, 48), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=index, pattern=[[1, 1]], offset=0, channel_multiplier=1)
    tile = nl.ndarray((64, 48), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=table.ap(pattern=[[48, 64], [1, 48]], vector_offset=index))  # plant: row-crossing
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def rows_of_another_length_fixed(table):
    out = nl.ndarray((64, 48), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=index, pattern=[[1, 1]], offset=0, channel_multiplier=48)
    tile = nl.ndarray((64, 48), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=table.reshape((3200,)).ap(pattern=[[1, 64], [1, 48]], vector_offset=index))
    nisa.dma_copy(dst=out, src=tile)
    return out
