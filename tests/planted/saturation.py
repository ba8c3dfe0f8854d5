"""Numbers that do not fit their dtype"""

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


# args: row=int32[128,1]
# seen-by: run
@nki.jit
def flat_index_through_fp32(row):
    """row * stride + 1 is computed in fp32: above 2^24 the odd numbers are gone."""
    out = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=row)
    nisa.tensor_scalar(dst=index, data=index, op0=nl.multiply, operand0=1000000, op1=nl.add, operand1=1)  # plant: inexact-integer
    nisa.dma_copy(dst=out, src=index)
    return out


@nki.jit
def flat_index_through_fp32_fixed(row):
    out = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=row)
    nisa.tensor_scalar(dst=index, data=index, op0=nl.multiply, operand0=1000, op1=nl.add, operand1=1)
    nisa.dma_copy(dst=out, src=index)
    return out


# args: a=int32[128,64] b=int32[128,64]
# seen-by: run
@nki.jit
def packed_keys_added(a, b):
    """Two 16-bit keys packed by an addition: the sum of large int32 is rounded to fp32."""
    out = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    high = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.sbuf)
    low = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=high, src=a)
    nisa.dma_copy(dst=low, src=b)
    nisa.tensor_scalar(dst=high, data=high, op0=nl.left_shift, operand0=20)
    nisa.tensor_tensor(dst=high, data1=high, data2=low, op=nl.add)  # plant: inexact-integer
    nisa.dma_copy(dst=out, src=high)
    return out


@nki.jit
def packed_keys_added_fixed(a, b):
    out = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    high = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.sbuf)
    low = nl.ndarray(a.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=high, src=a)
    nisa.dma_copy(dst=low, src=b)
    nisa.tensor_scalar(dst=high, data=high, op0=nl.left_shift, operand0=20)
    nisa.tensor_tensor(dst=high, data1=high, data2=low, op=nl.bitwise_or)
    nisa.dma_copy(dst=out, src=high)
    return out
