"""NumPy references of the kernels here, which follow the documentation of each instruction."""

import constant_cases
import cores_cases
import elementwise_cases
import indirection_cases
import language_cases
import mx_cases
import numpy as np
import pattern_cases
import random_cases
from ml_dtypes import bfloat16

F32_MIN = np.finfo(np.float32).min


def rng(seed):
    return np.random.default_rng(seed)


def normal(shape, seed, dtype=np.float32):
    return rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


BINARY = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "subtract": np.subtract}


def scan(data0, data1, initial, op0, op1, reverse0, reverse1):
    f, g = BINARY[op0], BINARY[op1]
    x, y = data0.astype(np.float32), data1.astype(np.float32)
    state = initial[:, 0].astype(np.float32)
    out = np.empty(x.shape, np.float32)
    for i in range(x.shape[1]):
        state = f(state, x[:, i]) if reverse0 else f(x[:, i], state)
        state = g(y[:, i], state) if reverse1 else g(state, y[:, i])
        out[:, i] = state
    return out


def scans():
    combinations = [
        ("multiply", "add", False, False, np.float32),
        ("multiply", "add", True, True, bfloat16),
        ("add", "maximum", False, False, np.float32),
        ("subtract", "subtract", False, True, np.float32),
        ("maximum", "multiply", True, False, np.float16),
        ("subtract", "add", True, False, np.int8),
    ]
    for i, (op0, op1, reverse0, reverse1, dtype) in enumerate(combinations):
        shape = [(128, 64), (1, 512), (77, 33)][i % 3]
        args = dict(initial=normal((shape[0], 1), 100 + i), op0=op0, op1=op1, reverse0=reverse0, reverse1=reverse1)
        if dtype is np.int8:
            args |= {name: rng(i + k).integers(-128, 128, shape, dtype) for k, name in enumerate(("data0", "data1"))}
        else:
            args |= dict(data0=normal(shape, 200 + i, dtype) * dtype(0.9), data1=normal(shape, 300 + i, dtype))
        yield dict(
            name=f"scan-{op0}-{op1}-{np.dtype(dtype).name}",
            file="scans.py",
            kernel="scan",
            args=args,
            expect=dict(out=scan(**args)),
            rtol=0,
            atol=0,
        )

    src = normal((64, 200), 11, bfloat16)
    yield dict(
        name="cumulative-maximum",
        file="scans.py",
        kernel="cumulative",
        args=dict(src=src, scale=-3.0),
        expect=dict(out=np.maximum.accumulate(src.astype(np.float32) * np.float32(-3), axis=1)),
        rtol=0,
        atol=0,
    )
    data = normal((128, 300), 12)
    lower = data - np.float32(1.5)
    yield dict(
        name="scale-and-reduce",
        file="scans.py",
        kernel="scale_and_reduce",
        args=dict(data=data),
        expect=dict(scaled=lower.astype(bfloat16), lowest=-lower.min(axis=1, keepdims=True)),
        rtol=0,
        atol=0,
    )
    # Small integers, whose sums are exact in any order.
    data, weight = [np.round(normal((128, 300), seed) * 4).astype(np.float32) for seed in (14, 15)]
    products = data * np.float32(2) * weight
    yield dict(
        name="sum-of-products",
        file="scans.py",
        kernel="sum_of_products",
        args=dict(data=data, weight=weight),
        expect=dict(products=products.astype(bfloat16), total=products.sum(axis=1, keepdims=True)),
        rtol=0,
        atol=0,
    )
    for f in (7, 512, 1300):
        data = normal((100, f), f) * 3 + 5
        wide = data.astype(np.float64)
        yield dict(
            name=f"mean-and-variance-{f}",
            file="scans.py",
            kernel="mean_and_variance",
            args=dict(data=data),
            expect=dict(out=np.stack([wide.mean(axis=1), wide.var(axis=1)], axis=1).astype(np.float32)),
            rtol=1e-6,
            atol=0,
        )
    data = normal((128, 256), 13) * 4
    e = np.exp((data - data.max(axis=1, keepdims=True)).astype(np.float64))
    yield dict(
        name="softmax-numerator",
        file="scans.py",
        kernel="softmax_numerator",
        target="trn3",
        args=dict(data=data),
        expect=dict(out=e.astype(np.float32), total=e.sum(axis=1, keepdims=True).astype(np.float32)),
        rtol=1e-6,
        atol=1e-30,
    )
    bias = normal((128, 1), 14)
    squared = np.square(bias - data * np.float32(0.5))
    yield dict(
        name="activate2",
        file="scans.py",
        kernel="activate2",
        target="trn3",
        args=dict(data=data, bias=bias),
        expect=dict(out=squared, peak=squared.max(axis=1, keepdims=True)),
        rtol=0,
        atol=0,
    )


def sequential(op, x, negate):
    """The last axis of x reduced in fp32 from the first element to the last."""
    x = x.astype(np.float32)
    state = x[..., 0] if op == "subtract" else BINARY[op](x[..., 0], np.float32(op == "multiply"))
    with np.errstate(invalid="ignore"):
        for i in range(1, x.shape[-1]):
            state = BINARY[op](state, x[..., i])
    return -state if negate else state


def reductions():
    for i in range(16):
        shape = [(128, 513), (77, 5, 33), (1, 7, 3, 64), (9, 128), (128, 3, 2, 40), (64, 200, 4)][i % 6]
        op, dtype, step, negate = ("add", "add", "subtract")[i % 3], (np.float32, bfloat16)[i % 2], 1 + i % 4, i % 5 == 2
        axis = tuple(range(int(rng(i).integers(1, len(shape))), len(shape)))
        data = normal(shape, 700 + i, dtype) * np.exp2(rng(800 + i).integers(-8, 9, shape)).astype(dtype)
        if i % 4 == 3:
            data[0, ..., 0], data[-1, ..., -1] = np.inf, np.nan
        kept = shape[: axis[0]]
        yield dict(
            name=f"reduction-{op}-{np.dtype(dtype).name}-{i}",
            file="scans.py",
            kernel="reduction",
            args=dict(data=data, op=op, axis=axis, step=step, negate=negate),
            expect=dict(out=sequential(op, data[..., ::step].reshape(*kept, -1), negate)),
            rtol=0,
            atol=0,
        )
    data = 1 + normal((100, 3, 50), 716) / 64
    yield dict(
        name="reduction-multiply",
        file="scans.py",
        kernel="reduction",
        args=dict(data=data, op="multiply", axis=(1, 2), step=1, negate=False),
        expect=dict(out=sequential("multiply", data.reshape(100, 150), False)),
        rtol=0,
        atol=0,
    )


def searches():
    for shape in ((128, 100), (3, 5000)):
        x = rng(shape[1]).permuted(np.tile(np.arange(shape[1], dtype=np.float32), (shape[0], 1)), axis=1) - 50
        order = np.argsort(-x, axis=1)[:, :16]
        positions = order.astype(np.uint32)
        rest = x.copy()
        np.put_along_axis(rest, order, -np.inf, axis=1)
        yield dict(
            name=f"top16-of-{shape[1]}",
            file="searches.py",
            kernel="top16",
            args=dict(x=x),
            expect=dict(top_values=np.take_along_axis(x, order, axis=1), top_positions=positions, rest=rest),
            rtol=0,
            atol=0,
        )
    x = normal((128, 96), 21)
    low, high = (rng(22 + i).integers(0, 130, (128, 1)).astype(np.float32) for i in range(2))
    index = np.arange(96, dtype=np.float32) + 20
    selected = np.where((index >= low) & (index < high), x, F32_MIN)
    yield dict(
        name="ranges",
        file="searches.py",
        kernel="ranges",
        args=dict(x=x, low=low, high=high, start=20),
        expect=dict(out=selected, peak=selected.max(axis=1, keepdims=True)),
        rtol=0,
        atol=0,
    )
    for reverse, dtype in ((False, np.float32), (True, bfloat16)):
        x = normal((50, 70), 24, dtype)
        predicate = rng(25).integers(0, 2, x.shape).astype(np.uint8)
        otherwise = normal((50, 1), 26)
        exact = np.where((predicate != 0) != reverse, x.astype(np.float32), otherwise)
        yield dict(
            name=f"selects-{np.dtype(dtype).name}",
            file="searches.py",
            kernel="selects",
            args=dict(x=x, predicate=predicate, otherwise=otherwise, reverse=reverse),
            expect=dict(out=exact.astype(dtype), peak=exact.max(axis=1, keepdims=True)),
            rtol=0,
            atol=0,
        )
    x = normal((128, 40), 27)
    mask = tuple(int(i) for i in rng(28).integers(0, 32, 32))
    mask = mask[:5] + (255,) + mask[6:]
    quadrants = x.reshape(4, 32, 40)
    want = np.stack([q[[i if m == 255 else m for i, m in enumerate(mask)]] for q in quadrants]).reshape(x.shape)
    yield dict(
        name="shuffle", file="searches.py", kernel="shuffle", args=dict(x=x, mask=mask), expect=dict(out=want), rtol=0, atol=0
    )


def gathers():
    x = rng(31).integers(-(2**31), 2**31, (128, 300)).astype(np.int32)
    which = rng(32).integers(0, 300, (128, 77)).astype(np.uint32)
    yield dict(
        name="gather",
        file="searches.py",
        kernel="gather",
        args=dict(x=x, which=which),
        expect=dict(out=np.take_along_axis(x, which.astype(np.int64), axis=1)),
    )
    for run, valid in ((1, 50), (4, 64)):
        x = normal((128, 200), 33)
        which = rng(34).integers(0, 200 - run, (128, 4)).astype(np.uint16)
        want = np.empty((128, valid, run), np.float32)
        for p in range(128):
            core = p // 16 * 16
            flat = which[core : core + 16].flatten(order="F")[:valid]
            want[p] = np.stack([x[p, i : i + run] for i in flat])
        yield dict(
            name=f"gather-locally-{run}",
            file="searches.py",
            kernel="gather_locally",
            args=dict(x=x, which=which, run=run, valid=valid),
            expect=dict(out=want),
            rtol=0,
            atol=0,
        )
    for dtype in (np.int32, np.float32):
        ids = np.array([[0, 1, 1, 2, 2, 2, 0, 3, 3]], dtype)
        want = np.array([[[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]]], dtype)
        yield dict(
            name=f"bounds-{np.dtype(dtype).name}",
            file="searches.py",
            kernel="bounds",
            args=dict(segment_ids=ids),
            expect=dict(out=want),
            rtol=0,
            atol=0,
        )
    x = rng(35).integers(0, 2, (48, 100)).astype(np.float32)
    want = np.full((48, 101), -7, np.int32)
    for p in range(0, 48, 16):
        found = np.flatnonzero(x[p]) + 1000
        want[p] = np.concatenate([found, np.full(100 - len(found), -1), [len(found)]])
    yield dict(name="nonzero", file="searches.py", kernel="nonzero", args=dict(x=x, offset=1000), expect=dict(out=want))

    # The values are distinct, because the order of equal ones is not documented.
    n, k = 250, 20
    groups = [rng(36 + g).permutation(256).astype(np.float32) - 100 for g in range(2)]
    x = np.concatenate([g.reshape(16, 16).T for g in groups]).astype(bfloat16)
    order = [np.argsort(g[:n])[-k:] for g in groups]
    # 20 results in two columns of 16 partitions. Places without a result hold NaN and the position 2^32 - 1.
    place = lambda results, fill: np.append(results, [fill] * 12).reshape(2, 16).T
    values = np.concatenate([place(g[o], np.nan) for g, o in zip(groups, order)])
    positions = np.concatenate([place(o, 2**32 - 1) for o in order])
    yield dict(
        name="topk",
        file="searches.py",
        kernel="topk",
        args=dict(x=x, n=n, k=k),
        expect=dict(top_values=values.astype(bfloat16), top_positions=positions.astype(np.uint32)),
        rtol=0,
        atol=0,
    )
    x = normal((100, 60), 38)
    added = x[0]
    for row in x[1:]:
        added = added + row
    yield dict(
        name="across-partitions",
        file="searches.py",
        kernel="across_partitions",
        args=dict(x=x),
        expect=dict(total=added[None], average=added[None] / np.float32(100), peak=x.max(axis=0, keepdims=True)),
        rtol=1e-6,
        atol=1e-6,
    )


def cases():
    yield from scans()
    yield from reductions()
    yield from searches()
    yield from gathers()
    yield from elementwise_cases.cases()
    yield from indirection_cases.cases()
    yield from mx_cases.cases()
    yield from random_cases.cases()
    yield from constant_cases.constants()
    yield from cores_cases.cases()
    yield from language_cases.cases()
    yield from language_cases.conversions()
    yield from pattern_cases.cases()
