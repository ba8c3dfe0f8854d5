"""Cases of language.py."""

import ml_dtypes
import numpy as np
from ml_dtypes import bfloat16


def case(name, x, want, **bounds):
    dtype = x.dtype.name
    return dict(
        name=f"nl-{name}-{dtype}-{int(np.nan_to_num(abs(x.astype(np.float32)), posinf=0).max())}",
        file="language.py",
        kernel="unary",
        args=dict(x=x, name=name),
        expect=dict(out=want.astype(np.float32)),
        **(dict(rtol=0, atol=0) | bounds),
    )


def cases():
    generator = np.random.default_rng(51)
    for dtype in (np.float32, bfloat16):
        # The engine's sine is valid on [-pi, pi]: nl.sin reduces its argument.
        for most in (3, 100, 5000):
            x = generator.uniform(-most, most, (64, 130)).astype(dtype)
            wide = x.astype(np.float64)
            yield case("sin", x, np.sin(wide), atol=1e-6)
            yield case("cos", x, np.cos(wide), atol=1e-6)
        # Near a pole, the effect of an error in the argument is unbounded.
        x = generator.uniform(-50, 50, (128, 40)).astype(dtype)
        x[np.abs(np.tan(x.astype(np.float64))) > 20] = 0
        yield case("tan", x, np.tan(x.astype(np.float64)), rtol=1e-4, atol=2e-6)
        x = generator.uniform(-9, 9, (128, 40)).astype(dtype)
        x[:, :10] = [0.5, -0.5, 3.0, -3.0, 0.0, np.inf, -np.inf, np.nan, 3e9, -3e9]
        for name in ("floor", "ceil", "trunc"):
            yield case(name, x, getattr(np, name)(x.astype(np.float32)))


FLOATS = ("float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16")


def kind(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def converted(x, dtype):
    """Conversion via float32; floats to integers round to nearest and saturate, NaN becomes 0."""
    wide = x.astype(np.float32)
    if dtype.kind not in "iu":
        return wide.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.rint(np.nan_to_num(wide.astype(np.float64), nan=0.0)), info.min, info.max).astype(dtype)


def conversions():
    """Every value of each 8-bit or 16-bit type, converted to every other type of 8, 16 or 32 bits."""
    for source in FLOATS + INTEGERS:
        source = kind(source)
        bits = np.arange(2 ** (8 * source.itemsize), dtype=np.uint32).astype(f"u{source.itemsize}")
        x = bits.view(source).reshape((128, -1))
        for i, name in enumerate(FLOATS + INTEGERS + ("float32", "int32")):
            dtype = kind(name)
            with np.errstate(all="ignore"):
                want = converted(x, dtype)
            if dtype == source:
                want = x
            how = ("vector", "gpsimd", "dma")[i % 3]
            yield dict(
                name=f"convert-{source.name}-{name}",
                file="language.py",
                kernel="convert",
                target="trn3",
                args=dict(x=x, dtype=name, how=how),
                expect=dict(out=want),
                rtol=0,
                atol=0,
            )
