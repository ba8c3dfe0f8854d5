"""Indices out of bounds, and loops without a bound"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[300,32]
# seen-by: check run
@nki.jit
def last_tile_too_long(x):
    """The tile count is rounded up; the last tile is not shortened."""
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range((rows + 127) // 128):
        tile = nl.ndarray((128, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(t * 128, 128), :])  # plant: out-of-bounds
        nisa.dma_copy(dst=out[nl.ds(t * 128, 128), :], src=tile)
    return out


@nki.jit
def last_tile_too_long_fixed(x):
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range((rows + 127) // 128):
        count = min(128, rows - t * 128)
        tile = nl.ndarray((count, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(t * 128, count), :])
        nisa.dma_copy(dst=out[nl.ds(t * 128, count), :], src=tile)
    return out


# args: table=float32[100,32] rows=int32[64,1]
# seen-by: run
@nki.jit
def gather_past_the_table(table, rows):
    """Token ids up to 127 in a table of 100 rows."""
    out = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=rows.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.dma_copy(  # plant: out-of-bounds
        dst=tile, src=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=index, indirect_dim=0)
    )
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: table=float32[128,32] rows=int32[64,1]
@nki.jit
def gather_past_the_table_fixed(table, rows):
    out = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((64, 1), dtype=rows.dtype, buffer=nl.sbuf)
    tile = nl.ndarray((64, 32), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    nisa.dma_copy(
        dst=tile, src=table.ap(pattern=[[32, 64], [1, 32]], offset=0, vector_offset=index, indirect_dim=0)
    )
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[4,128,32]
# seen-by: run
@nki.jit
def dynamic_loop_one_too_far(x):
    """`dynamic_range(1, tiles + 1)` counts from 1, and indexes with the counter."""
    tiles = x.shape[0]
    out = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for i in nl.dynamic_range(1, tiles + 1):
        nisa.dma_copy(dst=tile, src=x.ap(pattern=[[32, 128], [1, 32]], offset=0, scalar_offset=i, indirect_dim=0))  # plant: out-of-bounds
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


@nki.jit
def dynamic_loop_one_too_far_fixed(x):
    tiles = x.shape[0]
    out = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for i in nl.dynamic_range(0, tiles):
        nisa.dma_copy(dst=tile, src=x.ap(pattern=[[32, 128], [1, 32]], offset=0, scalar_offset=i, indirect_dim=0))
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,64]
# flags: --max-steps 20000
# seen-by: run
@nki.jit
def loop_that_never_ends(x):
    """The register of the condition is never changed."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    going = nisa.register_alloc(3)
    while going:  # plant: step-limit
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def loop_that_never_ends_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=left, value=3)
    nisa.dma_copy(dst=tile, src=x)
    going = nisa.register_alloc(3)
    while going:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
        nisa.tensor_scalar(dst=left, data=left, op0=nl.add, operand0=-1)
        nisa.register_load(going, left)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# flags: --max-steps 20000
# seen-by: check run
@nki.jit
def search_that_never_ends(x):
    """A tile width is doubled until it divides 65: it never does."""
    width = 2
    while 65 % width != 0: width = width * 2 % 510  # noqa: E701  # plant: step-limit
    return x


@nki.jit
def search_that_never_ends_fixed(x):
    width = 2
    while 64 % width == 0 and width < 64:
        width = width * 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def bounds_beyond_a_register(x):
    """Byte offsets as loop bounds: registers have 32 bits."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in nl.dynamic_range(2**32, 2**32 + 4, 2):  # plant: dynamic-loop
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def bounds_beyond_a_register_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for i in nl.dynamic_range(0, 4, 2):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def columns_behind_the_end(x):
    """The halo of a stencil: column i + 1 of the last column."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    smooth = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=smooth, data1=tile, data2=tile[:, 1:65], op=nl.add)  # plant: out-of-bounds
    nisa.dma_copy(dst=out, src=smooth)
    return out


@nki.jit
def columns_behind_the_end_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    smooth = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=smooth[:, 0:63], data1=tile[:, 0:63], data2=tile[:, 1:64], op=nl.add)
    nisa.tensor_copy(dst=smooth[:, 63:64], src=tile[:, 63:64])
    nisa.dma_copy(dst=out, src=smooth)
    return out


# args: x=bfloat16[64,128]
# seen-by: run
@nki.jit
def gathers_padding_transposed(x):
    """The last entries of an index are padding beyond the array, in a group with valid entries."""
    out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((32, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.iota(index, [[1, 1]], 0, 3)
    turned = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=turned, value=0)
    rows = x.ap(pattern=[[128, 32], [1, 128]], vector_offset=index, indirect_dim=0)
    nisa.dma_transpose(dst=turned, src=rows, oob_mode=nisa.oob_mode.skip)  # plant: mixed-skip
    nisa.dma_copy(dst=out, src=turned)
    return out


@nki.jit
def gathers_padding_transposed_fixed(x):
    out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    index = nl.ndarray((32, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.iota(index, [[1, 1]], 0, 2)
    turned = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=turned, value=0)
    rows = x.ap(pattern=[[128, 32], [1, 128]], vector_offset=index, indirect_dim=0)
    nisa.dma_transpose(dst=turned, src=rows, oob_mode=nisa.oob_mode.skip)
    nisa.dma_copy(dst=out, src=turned)
    return out
