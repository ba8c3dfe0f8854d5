"""Tensor indirection according to the docstring of NkiTensor.indirect: each group of partitions has its own offsets."""

import mx_reference as mx
import numpy as np
from ml_dtypes import bfloat16


def offsets(index, n, group):
    """[P, n]: offset i of a partition is index[i % G, i // G] of its group."""
    i = np.arange(n)
    first = np.arange(index.shape[0])[:, None] // group * group
    return index[first + i % group, i // group].astype(np.int64)


def draw(r, partitions, n, group, bound, dtype, distinct=False):
    """An index with n offsets in each group."""
    columns = -(-n // group)
    index = np.zeros((partitions, columns), dtype)
    for first in range(0, partitions, group):
        picked = r.permutation(bound)[:n] if distinct else r.integers(0, bound, n)
        flat = np.zeros(columns * group, dtype)
        flat[:n] = picked
        index[first : first + group] = flat.reshape(columns, group).T
    return index


def case(name, kernel, args, expect, rtol=0, atol=0, **more):
    return dict(
        name=name, file="indirection.py", kernel=kernel, target="trn3", args=args, expect=expect, rtol=rtol, atol=atol, **more
    )


def cases():
    for seed, (p, f, n, engine, dtype) in enumerate(
        [(16, 40, 33, "vector", np.float32), (128, 100, 7, "scalar", bfloat16), (64, 300, 150, "vector", np.int32)]
    ):
        r = np.random.default_rng(seed + 800)
        x = r.integers(-100, 100, (p, f)).astype(dtype)
        index = draw(r, p, n, 16, f, (np.uint16, np.int32, np.uint32)[seed], distinct=True)
        at = offsets(index, n, 16)
        out = np.take_along_axis(x, at, axis=1)
        back = np.zeros_like(x)
        np.put_along_axis(back, at, out, axis=1)
        yield case(
            f"indirect-copies-{p}x{f}-{engine}", "copies", dict(x=x, index=index, n=n, engine=engine), dict(out=out, same=out, back=back)
        )
    r = np.random.default_rng(810)
    x, other = r.standard_normal((48, 64), dtype=np.float32), r.standard_normal((48, 20), dtype=np.float32)
    index = draw(r, 48, 20, 16, 64, np.uint16, distinct=True)
    at = offsets(index, 20, 16)
    g = np.take_along_axis(x, at, axis=1)
    sums = np.full_like(x, -5)
    np.put_along_axis(sums, at, g + other, axis=1)
    yield case(
        "indirect-arithmetic",
        "arithmetic",
        dict(x=x, other=other, index=index, n=20),
        dict(
            difference=g - other,
            scaled=g * np.float32(3) + np.float32(1),
            negative=np.maximum(-g, 0),
            running=np.maximum.accumulate(g, axis=1),
            shifted=g + np.float32(2),
            sums=sums,
            largest=g.max(axis=1, keepdims=True),
            highest=(g + np.float32(2)).max(axis=1, keepdims=True),
        ),
    )
    r = np.random.default_rng(820)
    s, x = (r.standard_normal((96, f)).astype(bfloat16) for f in (50, 200))
    rows, columns = draw(r, 96, 40, 32, 50, np.int32), draw(r, 96, 120, 32, 200, np.int32)
    a, b = (np.take_along_axis(v, offsets(i, n, 32), axis=1).astype(np.float64) for v, i, n in ((s, rows, 40), (x, columns, 120)))
    args = dict(stationary=s, moving=x, rows=rows, columns=columns, m=40, n=120)
    yield case("indirect-matmul", "products", args, dict(out=(a.T @ b).astype(np.float32)), rtol=1e-5, atol=1e-4)

    kind = "float8_e4m3fn_x4"
    s, x = (mx.pack((r.standard_normal((64, 4 * f)) * 20).astype(np.float32), kind) for f in (16, 90))
    s_codes, x_codes = (r.integers(120, 130, (8, f)).astype(np.uint8) for f in (16, 90))
    columns = draw(r, 64, 30, 32, 90, np.uint16)
    at = offsets(columns, 30, 32)
    picked = mx.numbers(x, x_codes, kind)[np.arange(64)[:, None], at]
    # The scales of a quadrant are selected like its data.
    scaled = mx.matmul(mx.numbers(s, s_codes, kind), picked)
    args = dict(
        stationary=s,
        moving=x,
        stationary_scale=mx.spread(s_codes, 64),
        moving_scale=mx.spread(x_codes, 64),
        columns=columns,
        n=30,
    )
    yield case(
        "indirect-mx",
        "blocks",
        args,
        dict(out=scaled.astype(np.float32)),
        rtol=1e-5,
        atol=3e-6 * np.abs(scaled).max(),
        kinds=dict(stationary=kind, moving=kind),
    )
