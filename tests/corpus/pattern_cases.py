"""Cases of patterns.py."""

import numpy as np
from ml_dtypes import bfloat16


def case(name, kernel, args, expect):
    return dict(name=name, file="patterns.py", kernel=kernel, args=args, expect=expect, rtol=0, atol=0)


def cases():
    r = np.random.default_rng(61)
    for p, f, n, dtype in ((128, 96, 48, np.float32), (33, 64, 10, bfloat16)):
        x, y = (r.integers(-60, 60, (p, columns)).astype(dtype) for columns in (f, n))
        out = x.copy()
        out[:, f - n :] += y
        back = out[:, f // 2 : f // 2 + n][:, ::-1][:, ::2]
        yield case(f"pattern-slices-{p}x{f}", "slices", dict(x=x, y=y), dict(out=out, back=np.ascontiguousarray(back)))
    x = r.standard_normal((6, 5, 1, 40), dtype=np.float32)
    for index in (0, 3, 4):
        args = dict(x=x, index=np.array([[index]], np.int32))
        yield case(f"pattern-pick-{index}", "pick", args, dict(out=x[:, index, 0]))
    x, a, c = (r.integers(-100, 100, (rows, 50_000)).astype(bfloat16) for rows in (128, 64, 64))
    yield case("tight", "tight", dict(x=x, a=a, c=c), dict(out=np.concatenate([a + a, c, x])))
