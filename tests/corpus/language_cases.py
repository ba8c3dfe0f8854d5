"""Cases of language.py."""

import numpy as np
from ml_dtypes import bfloat16


def case(name, x, want, **bounds):
    dtype = x.dtype.name
    return dict(
        name=f"nl-{name}-{dtype}-{int(abs(x.astype(np.float32)).max())}",
        file="language.py",
        kernel="unary",
        args=dict(x=x, name=name),
        expect=dict(out=want.astype(np.float32)),
        **(dict(rtol=0, atol=0) | bounds),
    )


def cases():
    generator = np.random.default_rng(51)
    for dtype in (np.float32, bfloat16):
        # The engine's own sine holds on [-pi, pi]: nl.sin reduces its argument.
        for most in (3, 100, 5000):
            x = generator.uniform(-most, most, (64, 130)).astype(dtype)
            wide = x.astype(np.float64)
            yield case("sin", x, np.sin(wide), atol=1e-6)
            yield case("cos", x, np.cos(wide), atol=1e-6)
        # Near a pole an error of the argument counts without bound.
        x = generator.uniform(-50, 50, (128, 40)).astype(dtype)
        x[np.abs(np.tan(x.astype(np.float64))) > 20] = 0
        yield case("tan", x, np.tan(x.astype(np.float64)), rtol=1e-4, atol=2e-6)
        x = generator.uniform(-9, 9, (128, 40)).astype(dtype)
        x[:, :5] = [0.5, -0.5, 3.0, -3.0, 0.0]
        for name in ("floor", "ceil", "trunc"):
            yield case(name, x, getattr(np, name)(x.astype(np.float32)))
