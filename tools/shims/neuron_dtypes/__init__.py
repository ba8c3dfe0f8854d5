"""Replaces AWS's package of the same name, which is not public, as far as nki-library's tests use
it.

Element types are NumPy dtypes, from ml_dtypes if NumPy lacks them. The packed x4 types are those of
`nki.language`.
"""

import ml_dtypes
import nki.language as nl
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3fn_x4 = np.dtype(nl.float8_e4m3fn_x4)
float8_e5m2_x4 = np.dtype(nl.float8_e5m2_x4)
float4_e2m1fn_x4 = np.dtype(nl.float4_e2m1fn_x4)

_ELEMENT = {
    float8_e4m3fn_x4: float8_e4m3fn,
    float8_e5m2_x4: float8_e5m2,
    float4_e2m1fn_x4: np.dtype(ml_dtypes.float4_e2m1fn),
}


def static_cast(array, dtype):
    """`array` as `dtype`. To a packed type the last dimension shrinks by four; from one it grows by four."""
    array, dtype = np.asarray(array), np.dtype(dtype)
    if array.dtype == dtype:
        return array
    if array.dtype in _ELEMENT:
        array = _unpack(array)
    return _pack(array, dtype) if dtype in _ELEMENT else array.astype(dtype)


def _unpack(array):
    element = _ELEMENT[array.dtype]
    if array.dtype == float4_e2m1fn_x4:
        packed = np.ascontiguousarray(array).view(np.uint16)
        parts = np.stack([(packed >> shift) & 0xF for shift in (0, 4, 8, 12)], axis=-1).astype(np.uint8)
        values = parts.view(element)
    else:
        values = np.ascontiguousarray(array).view(np.uint8).view(element)
    return values.reshape(*array.shape[:-1], array.shape[-1] * 4).astype(np.float32)


def _pack(array, dtype):
    element = np.ascontiguousarray(array.astype(np.float32).astype(_ELEMENT[dtype]))
    shape = (*array.shape[:-1], array.shape[-1] // 4)
    if dtype != float4_e2m1fn_x4:
        return element.view(np.uint8).view(dtype).reshape(shape)
    parts = element.view(np.uint8).reshape(*shape, 4).astype(np.uint16)
    packed = sum(parts[..., lane] << (4 * lane) for lane in range(4)).astype(np.uint16)
    return packed.view(dtype).reshape(shape)


def sizeinbytes(dtype):
    return np.dtype(dtype).itemsize


def is_float_type(dtype):
    dtype = np.dtype(dtype)
    return dtype in _ELEMENT or np.issubdtype(dtype, np.floating) or dtype.kind == "V" or dtype in (bfloat16, float8_e4m3, float8_e4m3fn, float8_e5m2)


class finfo:
    """Limits of a floating-point type, from ml_dtypes if it has the type."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        if self.dtype not in _ELEMENT:
            limits = ml_dtypes.finfo(self.dtype)
            self.max, self.min, self.eps, self.tiny = limits.max, limits.min, limits.eps, limits.tiny
