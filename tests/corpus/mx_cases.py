"""MX blocks."""

import ml_dtypes
import mx_reference as mx
import numpy as np
from ml_dtypes import bfloat16

E8M0 = ml_dtypes.float8_e8m0fnu


def wide(shape, seed, dtype):
    """Numbers whose blocks differ in magnitude, with zeros, a block of zeros and a subnormal one."""
    r = np.random.default_rng(seed)
    p, n = shape
    blocks = r.integers(-14, 14, (p // 8, n // 4))
    x = r.standard_normal(shape) * np.exp2(blocks).repeat(8, axis=0).repeat(4, axis=1)
    x[r.random(shape) < 0.1] = 0
    x[:8, :4] = 0
    x[8:16, :4] = np.float64(np.finfo(dtype).smallest_subnormal) if dtype is np.float16 else 2.0**-130
    return x.astype(dtype)


def quantizations():
    r = np.random.default_rng(50)
    for i in range(8):
        p, n = 32 * (1 + i % 4), 4 * int(r.integers(1, 90))
        source = (bfloat16, np.float16)[i // 2 % 2]
        dtype = ("float8_e4m3fn_x4", "float8_e5m2_x4")[i % 2]
        scale = (np.uint8, E8M0)[i // 4]
        start = 4 * (i % 4)
        x = wide((p, n), 60 + i, source)
        packed, codes = mx.quantize(x, dtype)
        yield dict(
            name=f"quantize-mx-{p}x{n}-{np.dtype(source).name}-{dtype}",
            file="mx.py",
            kernel="quantize",
            target="trn3",
            args=dict(x=x, dtype=dtype, scale_dtype=np.dtype(scale).name, start=start),
            expect=dict(packed=packed, scales=mx.spread(codes, p, start, 128).view(scale)),
            rtol=0,
            atol=0,
        )
    x = wide((64, 48), 70, bfloat16)
    packed, codes = mx.quantize(x.reshape(64, 4, 12).transpose(0, 2, 1).reshape(64, 48), "float8_e5m2_x4")
    zeros = np.zeros_like(packed)
    yield dict(
        name="quantize-mx-strided",
        file="mx.py",
        kernel="quantize_strided",
        target="trn3",
        args=dict(x=x, dtype="float8_e5m2_x4"),
        expect=dict(
            packed=np.stack([zeros, packed], axis=2),
            scales=np.stack([mx.spread(codes, 64), zeros.astype(np.uint8)], axis=2),
        ),
        rtol=0,
        atol=0,
    )


def block(r, p, n, dtype):
    """Packed elements and scales with arbitrary sizes."""
    largest = float(ml_dtypes.finfo(mx.ELEMENT[dtype][0]).max)
    x = np.clip(r.standard_normal((p, 4 * n)) * largest / 4, -largest, largest)
    return mx.pack(x.astype(np.float32), dtype), r.integers(110, 140, (p // 8, n)).astype(np.uint8)


def products():
    r = np.random.default_rng(51)
    dtypes = list(mx.ELEMENT)
    for i in range(9):
        a, b = dtypes[i % 3], dtypes[i // 3]
        p = 32 * int(r.integers(1, 5))
        m, n = 2 * int(r.integers(1, 65)), int(r.integers(1, 700))
        s, s_codes = block(r, p, m, a)
        x, x_codes = block(r, p, n, b)
        if i == 4:
            x_codes[0, 0] = 255
        start, moving_start = 4 * int(r.integers(0, 4)), 4 * int(r.integers(0, 4))
        scale = (np.uint8, E8M0)[i % 2]
        dst, out_dtype = [("float32", np.float32), ("bfloat16", bfloat16)][i % 4 == 3]
        want = mx.matmul(mx.numbers(s, s_codes, a), mx.numbers(x, x_codes, b))
        tile = dict(position=(32 * (i % 4), 0), size=(32, 128)) if p == 32 else dict(position=None, size=None)
        yield dict(
            name=f"matmul-mx-{a}-{b}",
            file="mx.py",
            kernel="matmul",
            target="trn3",
            args=dict(
                stationary=s,
                moving=x,
                stationary_scale=mx.spread(s_codes, p, start, 128).view(scale),
                moving_scale=mx.spread(x_codes, p, moving_start, 128),
                start=start,
                moving_start=moving_start,
                dst=dst,
                **tile,
            ),
            kinds=dict(stationary=a, moving=b),
            expect=dict(out=want.astype(np.float32).astype(out_dtype)),
            rtol=1e-2 if out_dtype is bfloat16 else 1e-5,
            # fp32 sums in a different order than the reference.
            atol=3e-6 * np.nanmax(np.abs(want)),
        )
    for i, dtype in enumerate(("float8_e4m3fn_x4", "float8_e5m2_x4")):
        a, b = wide((256, 4 * 36), 80 + i, bfloat16), wide((256, 4 * 100), 90 + i, bfloat16)
        a, b = a.reshape(2, 128, -1), b.reshape(2, 128, -1)
        parts = [mx.numbers(*mx.quantize(x, dtype), dtype) for x in (*a, *b)]
        want = mx.matmul(parts[0], parts[2]) + mx.matmul(parts[1], parts[3])
        yield dict(
            name=f"quantize-and-multiply-{dtype}",
            file="mx.py",
            kernel="quantize_and_multiply",
            target="trn3",
            args=dict(a=a, b=b, dtype=dtype),
            expect=dict(out=want.astype(np.float32)),
            rtol=1e-5,
            atol=3e-6 * np.abs(want).max(),
        )


def moves():
    r = np.random.default_rng(52)
    codes = r.integers(0, 256, (16, 9)).astype(np.uint8).view(E8M0)
    values = codes.astype(np.float32)
    for dtype in mx.ELEMENT:
        bits = np.uint16 if dtype.startswith("float4") else np.uint32
        x = r.integers(0, 2**31, (16, 10)).astype(bits)
        yield dict(
            name=f"copies-of-{dtype}",
            file="mx.py",
            kernel="move",
            target="trn3",
            args=dict(x=x, scales=codes),
            kinds=dict(x=dtype),
            expect=dict(
                swapped=np.roll(x, 5, axis=1),
                bytes=x.view(np.uint8),
                values=values,
                rounded=(values * np.float32(1.375)).astype(E8M0),
            ),
            rtol=0,
            atol=0,
        )


def cases():
    yield from quantizations()
    yield from products()
    yield from moves()
