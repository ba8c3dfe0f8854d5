"""MX blocks in NumPy, after the OCP Microscaling specification and the docstrings of quantize_mx
and nc_matmul_mx.

A packed array contains unsigned integers: uint32 for four 8-bit floats, uint16 for four 4-bit ones,
the first in the lowest bits. Scales are codes of float8_e8m0fnu, one row for each 8 partitions.
"""

import ml_dtypes
import numpy as np

ELEMENT = {
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8),
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 15),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 2),
}


def pack(numbers, dtype):
    """Packs [P, 4 F] numbers into [P, F] elements."""
    codes = numbers.astype(ELEMENT[dtype][0]).view(np.uint8).reshape(*numbers.shape[:-1], -1, 4).astype(np.uint32)
    bits, out = (4, np.uint16) if dtype.startswith("float4") else (8, np.uint32)
    return sum(codes[..., i] << np.uint32(bits * i) for i in range(4)).astype(out)


def unpack(packed, dtype):
    """Unpacks [P, F] packed elements to [P, F, 4] doubles."""
    bits = 4 if dtype.startswith("float4") else 8
    shifted = packed[..., None].astype(np.uint32) >> np.arange(0, 4 * bits, bits, dtype=np.uint32)
    codes = (shifted & np.uint32(2**bits - 1)).astype(np.uint8)
    return codes.view(ELEMENT[dtype][0]).astype(np.float64)


def quantize(x, dtype):
    """Packed elements and scale codes for [P, 4 F] numbers."""
    element, largest = ELEMENT[dtype]
    p, n = x.shape
    wide = x.astype(np.float64)
    blocks = np.abs(wide).reshape(p // 8, 8, n // 4, 4).max(axis=(1, 3))
    _, exponent = np.frexp(blocks)
    # frexp returns a fraction in [0.5, 1), so floor(log2) is its exponent minus one.
    code = np.where(blocks == 0, 0, np.maximum(exponent - 1 - (largest - 1) + 127, 0)).astype(np.uint8)
    scale = np.exp2(code.astype(np.float64) - 127)
    return pack((wide / scale.repeat(8, axis=0).repeat(4, axis=1)).astype(np.float32), dtype), code


def numbers(packed, codes, dtype):
    """[P, F, 4] doubles: elements times scales."""
    scale = np.where(codes == 255, np.nan, np.exp2(codes.astype(np.float64) - 127))
    return unpack(packed, dtype) * scale.repeat(8, axis=0)[..., None]


def matmul(stationary, moving):
    """The product of two results of `numbers`, contracted over partitions and over the four numbers
    of an element."""
    return np.einsum("pmi,pni->mn", stationary, moving)


def spread(codes, partitions, start=0, rows=None):
    """Scales in their SBUF layout: four rows in each quadrant of 32 partitions, from its partition
    `start`."""
    out = np.zeros((rows or partitions, codes.shape[1]), np.uint8)
    for q in range(partitions // 32):
        out[32 * q + start : 32 * q + start + 4] = codes[4 * q : 4 * q + 4]
    return out
