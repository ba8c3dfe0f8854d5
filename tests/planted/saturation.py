"""Numbers that exceed the range or precision of their dtype"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def int8_without_scale(x):
    """Quantisation with a fixed scale that is too large for the data."""
    out = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    quantized = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=quantized, data=tile, op0=nl.multiply, operand0=127.0)  # plant: saturated-store
    nisa.dma_copy(dst=out, src=quantized)
    return out


@nki.jit
def int8_without_scale_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    quantized = nl.ndarray(x.shape, dtype=nl.int8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=quantized, data=tile, op0=nl.multiply, operand0=32.0)
    nisa.dma_copy(dst=out, src=quantized)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def negative_into_uint8(x):
    """Signed differences are stored as bytes without an offset."""
    out = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    pixels = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=pixels, data=tile, op0=nl.multiply, operand0=30.0)  # plant: saturated-store
    nisa.dma_copy(dst=out, src=pixels)
    return out


@nki.jit
def negative_into_uint8_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    pixels = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=pixels, data=tile, op0=nl.multiply, operand0=30.0, op1=nl.add, operand1=128.0)
    nisa.dma_copy(dst=out, src=pixels)
    return out


# args: x=float32[128,64]:uniform
# seen-by: run
@nki.jit
def fixed_point_too_wide(x):
    """32 fractional bits in an int32."""
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    fixed_point = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=fixed_point, data=tile, op0=nl.multiply, operand0=4294967296.0)  # plant: saturated-store
    nisa.dma_copy(dst=out, src=fixed_point)
    return out


@nki.jit
def fixed_point_too_wide_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    fixed_point = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=fixed_point, data=tile, op0=nl.multiply, operand0=65536.0)
    nisa.dma_copy(dst=out, src=fixed_point)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def fp8_without_scale(x):
    """Activations around 1000 are cast to float8_e4m3, whose largest number is 240."""
    out = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    small = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=small, op=nl.copy, data=tile, scale=1000.0)  # plant: non-finite
    nisa.dma_copy(dst=out, src=small)
    return out


@nki.jit
def fp8_without_scale_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    small = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=small, op=nl.copy, data=tile, scale=10.0)
    nisa.dma_copy(dst=out, src=small)
    return out


# args: row=int32[128,16]
# seen-by: run
@nki.jit
def counter_through_fp32(row):
    """Keys of 27 bits are summed on the vector engine, which computes in fp32."""
    out = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    key = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.sbuf)
    low = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=low, src=row)
    nisa.tensor_scalar(dst=key, data=low, op0=nl.left_shift, operand0=20)
    nisa.tensor_tensor(dst=key, data1=key, data2=low, op=nl.add, engine=nisa.vector_engine)  # plant: inexact-integer
    nisa.dma_copy(dst=out, src=key)
    return out


@nki.jit
def counter_through_fp32_fixed(row):
    out = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    key = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.sbuf)
    low = nl.ndarray(row.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=low, src=row)
    nisa.tensor_scalar(dst=key, data=low, op0=nl.left_shift, operand0=20)
    nisa.tensor_tensor(dst=key, data1=key, data2=low, op=nl.bitwise_or)
    nisa.dma_copy(dst=out, src=key)
    return out


# args: x=int32[128,64]
# seen-by: run
@nki.jit
def largest_key_as_a_float(x):
    """Keys of 31 bits are compared as float32: neighbours become equal."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    keys = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    floats = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=keys, src=x)
    nisa.tensor_scalar(dst=keys, data=keys, op0=nl.left_shift, operand0=18, op1=nl.bitwise_or, operand1=1)
    nisa.tensor_copy(dst=floats, src=keys)  # plant: inexact-integer
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=floats, axis=1)
    nisa.dma_copy(dst=out, src=largest)
    return out


@nki.jit
def largest_key_as_a_float_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    keys = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    floats = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=keys, src=x)
    nisa.tensor_scalar(dst=keys, data=keys, op0=nl.left_shift, operand0=10, op1=nl.bitwise_or, operand1=1)
    nisa.tensor_copy(dst=floats, src=keys)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=floats, axis=1)
    nisa.dma_copy(dst=out, src=largest)
    return out


# args: count=float32[1,1]:ones x=float32[4,128,16]
# seen-by: run
@nki.jit
def trip_count_as_a_float(count, x):
    """A float32 count is loaded into a register, which receives its bits: 1.0 becomes 1065353216."""
    out = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    count_tile = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count_tile, src=count)
    stop = nisa.register_alloc()
    nisa.register_load(stop, count_tile)  # plant: float-register
    row = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=row, value=0.0)
    nisa.register_store(count_tile.view(nl.int32), stop)
    nisa.dma_copy(dst=row[0:1, 0:1], src=count_tile)
    nisa.dma_copy(dst=out, src=row)
    return out


# args: count=int32[1,1]:ones x=float32[4,128,16]
@nki.jit
def trip_count_as_a_float_fixed(count, x):
    out = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    count_tile = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=count_tile, src=count)
    stop = nisa.register_alloc()
    nisa.register_load(stop, count_tile)
    row = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 16), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for i in nl.dynamic_range(0, stop):
        nisa.dma_copy(dst=row, src=x.ap(pattern=[[16, 128], [1, 16]], offset=0, scalar_offset=i, indirect_dim=0))
        nisa.tensor_tensor(dst=total, data1=total, data2=row, op=nl.add)
    nisa.dma_copy(dst=out, src=total)
    return out


# args: x=int32[128,64]
# seen-by: check run
@nki.jit
def function_rounded_to_integers(x):
    """tanh of integers is stored as -1, 0 or 1."""
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.tanh, data=tile)  # plant: integer-function
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def function_rounded_to_integers_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.tanh, data=tile)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=float32[128,1]
# seen-by: check run
@nki.jit
def positions_in_bfloat16(x):
    """Positions up to 511 in bfloat16, which represents integers up to 256."""
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    shift = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=shift, src=x)
    positions = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.iota(dst=positions, pattern=[[1, 512]], offset=0)  # plant: inexact-integer
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=positions, op0=nl.add, operand0=shift)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def positions_in_bfloat16_fixed(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    shift = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=shift, src=x)
    positions = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=positions, pattern=[[1, 512]], offset=0)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=positions, op0=nl.add, operand0=shift)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=uint8[128,64]:ones
# seen-by: run
@nki.jit
def constant_beyond_the_type(x):
    """A floor of 300 for bytes: every element becomes 255."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.maximum, operand0=300.0)  # plant: saturated-store
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def constant_beyond_the_type_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.maximum, operand0=200.0)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=int32[128,64]:ones
# seen-by: run
@nki.jit
def mask_of_integers_with_infinity(x):
    """Integers masked with minus infinity, which becomes the lowest integer."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.affine_select(  # plant: saturated-store
        dst=result,
        pattern=[[-1, 64]],
        channel_multiplier=1,
        on_true_tile=tile,
        on_false_value=float("-inf"),
        cmp_op=nl.greater_equal,
    )
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def mask_of_integers_with_infinity_fixed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.affine_select(
        dst=result,
        pattern=[[-1, 64]],
        channel_multiplier=1,
        on_true_tile=tile,
        on_false_value=-1000000,
        cmp_op=nl.greater_equal,
    )
    nisa.dma_copy(dst=out, src=result)
    return out


# args: x=uint8[128,64]:ones
# seen-by: run
@nki.jit
def negative_maximum_of_bytes(x):
    """The negated maximum of bytes is stored as a byte, which has no negative numbers."""
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=nl.maximum, data=tile, axis=1, negate=True)  # plant: saturated-store
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def negative_maximum_of_bytes_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    result = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=nl.maximum, data=tile, axis=1, negate=True)
    nisa.dma_copy(dst=out, src=result)
    return out


# args: ids=int32[128,64]
# seen-by: run
@nki.jit
def ids_in_bfloat16(ids):
    """Token ids are converted to bfloat16, which holds each integer up to 256 only."""
    out = nl.ndarray(ids.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    large = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    numbers = nl.ndarray(ids.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=ids)
    nisa.tensor_scalar(dst=large, data=tile, op0=nl.bitwise_or, operand0=257)
    nisa.tensor_copy(dst=numbers, src=large)  # plant: inexact-integer
    nisa.dma_copy(dst=out, src=numbers)
    return out


@nki.jit
def ids_in_bfloat16_fixed(ids):
    out = nl.ndarray(ids.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    large = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    numbers = nl.ndarray(ids.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=ids)
    nisa.tensor_scalar(dst=large, data=tile, op0=nl.bitwise_or, operand0=257)
    nisa.tensor_copy(dst=numbers, src=large)
    nisa.dma_copy(dst=out, src=numbers)
    return out


# args: ids=int32[128,64]:zeros
# seen-by: run
@nki.jit
def clamped_sentinel(ids):
    """The sentinel 2^25 - 1 is larger than the limit, but float32 rounds it before the lower limit is applied."""
    out = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    shifted = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    clamped = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=ids)
    nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.bitwise_or, operand0=33554431)
    nisa.tensor_scalar(dst=clamped, data=shifted, op0=nl.maximum, operand0=63)  # plant: inexact-integer
    nisa.dma_copy(dst=out, src=clamped)
    return out


@nki.jit
def clamped_sentinel_fixed(ids):
    out = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    tile = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    shifted = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    clamped = nl.ndarray(ids.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=ids)
    nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.bitwise_or, operand0=33554431)
    nisa.tensor_scalar(dst=clamped, data=shifted, op0=nl.minimum, operand0=63)
    nisa.dma_copy(dst=out, src=clamped)
    return out
