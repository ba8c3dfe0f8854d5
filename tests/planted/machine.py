"""Unsupported tiles, memories and dtypes"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[256,64]
# seen-by: check run
@nki.jit
def tile_of_256_partitions(x):
    """The whole input as one tile."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)  # plant: partition-size
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def tile_of_256_partitions_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in range(2):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(t * 128, 128), :])
        nisa.dma_copy(dst=out[nl.ds(t * 128, 128), :], src=tile)
    return out


# args: a=float32[128,64] b=float32[128,768]
# seen-by: check run
@nki.jit
def moving_operand_too_wide(a, b):
    """768 columns in one matmul; the tensor engine takes 512."""
    out = nl.ndarray((64, 768), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 768), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 768), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)  # plant: tile-size
    result = nl.ndarray((64, 768), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def moving_operand_too_wide_fixed(a, b):
    out = nl.ndarray((64, 768), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 768), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    for j in range(0, 768, 512):
        width = min(512, 768 - j)
        acc = nl.ndarray((64, width), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=acc, stationary=left, moving=right[:, nl.ds(j, width)])
        result = nl.ndarray((64, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=acc)
        nisa.dma_copy(dst=out[:, nl.ds(j, width)], src=result)
    return out


# args: x=float32[128,64] y=float32[64,64]
# seen-by: check run
@nki.jit
def half_the_partitions(x, y):
    """A tile of 64 rows is added to one of 128, expecting a broadcast."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((64, 64), dtype=y.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b, src=y)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)  # plant: partition-mismatch
    nisa.dma_copy(dst=out, src=a)
    return out


@nki.jit
def half_the_partitions_fixed(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    b = nl.ndarray((128, 64), dtype=y.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x)
    nisa.dma_copy(dst=b[0:64, :], src=y)
    nisa.dma_copy(dst=b[64:128, :], src=y)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=out, src=a)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def shifted_by_one_partition(x):
    """Differences of neighbouring rows, read on the vector engine from partition 1."""
    out = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    change = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=change, data1=tile[1:128, :], data2=tile[0:127, :], op=nl.subtract)  # plant: partition-start
    nisa.dma_copy(dst=out, src=change)
    return out


@nki.jit
def shifted_by_one_partition_fixed(x):
    out = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    upper = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.sbuf)
    lower = nl.ndarray((127, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=upper, src=x[1:128, :])
    nisa.dma_copy(dst=lower, src=x[0:127, :])
    nisa.tensor_tensor(dst=upper, data1=upper, data2=lower, op=nl.subtract)
    nisa.dma_copy(dst=out, src=upper)
    return out


# args: a=float32[128,64] b=float32[128,128]
# seen-by: check run
@nki.jit
def stored_from_psum(a, b):
    """DMA stores the product directly from PSUM."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    nisa.dma_copy(dst=out, src=acc)  # plant: operand-memory
    return out


@nki.jit
def stored_from_psum_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def reduced_over_partitions(x):
    """A column sum with axis=0, which is the partition dimension."""
    out = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=0)  # plant: reduce-axis
    nisa.dma_copy(dst=out, src=total[0:1, :])
    return out


@nki.jit
def reduced_over_partitions_fixed(x):
    out = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    ones = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.memset(dst=ones, value=1.0)
    acc = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=ones, moving=tile)
    total = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=total, src=acc)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: a=float32[128,64] b=bfloat16[128,128]
# seen-by: check run
@nki.jit
def product_of_two_dtypes(a, b):
    """float32 activations times bfloat16 weights."""
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)  # plant: dtype-mismatch
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def product_of_two_dtypes_fixed(a, b):
    out = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    narrow = nl.ndarray((128, 64), dtype=b.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, 128), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.tensor_copy(dst=narrow, src=left)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=narrow, moving=right)
    result = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=acc)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=bfloat16[128,128]
# seen-by: check run
@nki.jit
def transposed_into_another_dtype(x):
    """The transpose of a bfloat16 tile into a float32 bank."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=tile)  # plant: dtype-mismatch
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=turned)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def transposed_into_another_dtype_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    turned = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=tile)
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=turned)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[8,72,8192]
# seen-by: check run
@nki.jit
def everything_loaded_first(x):
    """Eight tiles of 32 KiB per partition are loaded before the first is used."""
    out = nl.ndarray((72, 8192), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = []
    for t in range(8):
        tiles.append(nl.ndarray((72, 8192), dtype=x.dtype, buffer=nl.sbuf))  # plant: sbuf-overflow
        nisa.dma_copy(dst=tiles[t], src=x[t])
    for t in range(1, 8):
        nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=tiles[t], op=nl.add)
    nisa.dma_copy(dst=out, src=tiles[0])
    return out


@nki.jit
def everything_loaded_first_fixed(x):
    out = nl.ndarray((72, 8192), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((72, 8192), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=total, src=x[0])
    for t in range(1, 8):
        tile = nl.ndarray((72, 8192), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[t])
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def bits_of_a_float(x):
    """The sign bit is masked on float data instead of on its view as integers."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.bitwise_and, operand0=0x7FFFFFFF)  # plant: bitvec-dtype
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def bits_of_a_float_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    bits = tile.view(nl.int32)
    nisa.tensor_scalar(dst=bits, data=bits, op0=nl.bitwise_and, operand0=0x7FFFFFFF)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: check run
@nki.jit
def output_in_the_wrong_memory(x):
    """The output is in private HBM, which the caller of the kernel cannot reach."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)  # plant: kernel-output
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.silu, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def output_in_the_wrong_memory_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.silu, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out
