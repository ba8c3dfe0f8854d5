"""NumPy references of the kernels for neuronxcc.nki."""

import numpy as np


def normal(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def softmax(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


def case(kernel, args, rtol=1e-5, atol=1e-5, file="values.py", output="out", name=None, **expect):
    expect = {output if key == "out" else key: value for key, value in expect.items()}
    return dict(name=name or kernel, file=file, kernel=kernel, args=args, expect=expect, rtol=rtol, atol=atol)


def values():
    x = normal((256, 192), 1)
    yield case("softmax_rows", dict(x=x), out=softmax(x))
    a, b = normal((384, 96), 2), normal((384, 256), 3)
    yield case("accumulate", dict(lhs_t=a, rhs=b), out=a.T @ b, atol=2e-4)
    x = normal((128, 64), 4)
    yield case("kept_names", dict(x=x), out=2 * x + 100, atol=1e-4)
    x = normal((128, 128), 5)
    product = x.T @ x
    first = product.copy()
    first[:, 64:] = 0
    second = 2 * product
    second[:, :32] += x[:, :32]
    yield case("zeros_and_sums", dict(x=x), out=np.stack([first, second]), atol=2e-4)
    x = normal((96,), 6)
    left = 8 * x
    left[:32] = 5
    yield case("columns", dict(x=x), out=left + 4 * x + 1, atol=1e-4)
    x, y = normal((128, 96), 7), normal((128, 96), 8)
    operators = [-(x - y) * 0.5 + 2 / (1 + x * x), np.maximum(x, 0) * (x > y) * 3 - x, x + y[:1]]
    yield case("operators", dict(x=x, y=y, scale=0.5), out=np.stack(operators).astype(np.float32), atol=1e-4)
    x, y = normal((64, 96), 71), normal((64, 96), 72)
    parts = [x - (x * y).mean(axis=1, keepdims=True), np.exp(np.minimum(x, y)) / (y * y).sum(axis=1, keepdims=True)]
    parts += [np.where(x > y, x, -y), 2 - x - y.max(axis=1, keepdims=True), 1.5 * x]
    yield case("of_numpy", dict(x=x, y=y), out=np.stack(parts), atol=1e-4)
    x = normal((128, 700), 9)
    import ml_dtypes

    yield case("widened", dict(x=x), out=x[:1] + x.astype(ml_dtypes.bfloat16).astype(np.float32))
    x = normal((64, 32), 10)
    yield case("written_into", dict(x=x, out=np.zeros_like(x)), out=np.exp(x))
    a, b = normal((512,), 11), normal((512,), 12)
    yield case("streams", dict(a=a, b=b), out=a + b, output="output0")
    q, k, v = (normal((128, 128), seed) for seed in (13, 14, 15))
    yield case("attention", dict(q=q, k=k, v=v), out=softmax(q.T @ k) @ v.T, atol=1e-3)
    x = normal((128, 40), 16)
    half, brain = x[:, :1].astype(np.float16).astype(np.float32), x[:, 1:2].astype(ml_dtypes.bfloat16).astype(np.float32)
    scan, last = np.empty_like(x), half[:, 0]
    for i in range(40):
        scan[:, i] = last = last * x[:, i] + x[:, i]
    yield case("narrow_vectors", dict(x=x), out=np.stack([x * half + brain, (x - brain) * x, scan]), file="operands.py")
    x = normal((200, 1300), 17)
    filled = np.repeat(np.float32([3, 4, 5]), 512)[None, :1300].repeat(200, axis=0)
    filled[5:7, 10:20] = x[5:7, 10:20]
    yield case("filled_parts", dict(x=x), out=filled, file="operands.py")
    rng = np.random.default_rng(19)
    x = rng.integers(1, 16, (64, 24)).astype(np.float32)
    wide, small = rng.integers(-9, 9, (64, 24)).astype(np.int32), rng.integers(-9, 9, (64, 2)).astype(np.int16)
    brain = lambda y: y.astype(ml_dtypes.bfloat16).astype(np.float32)
    mean = brain(x.mean(axis=1, keepdims=True))
    out = [brain(x - mean), mean / x, np.maximum(wide, small[:, :1]), x + wide[:, :1], wide * small[:, :1]]
    out += [wide[:, :1] - x, wide & small[:, 1:].astype(np.int32), wide < small[:, :1], x * small[:, :1] + x]
    args, expected = dict(x=x, wide=wide, small=small), np.stack(out).astype(np.float32)
    yield case("vectors_of_all_types", args, out=expected, exact=wide * 65536 + wide[:, :1], file="operands.py")
    x, w = normal((64, 40), 20), normal((64, 2), 21)
    squares = x**2 * (np.arange(40) < 20)
    out = np.stack([np.exp((x + w[:, :1]) * w[:, 1:] * np.float32(0.1) + w[:, :1]), squares])
    yield case("repeated_vectors", dict(x=x, w=w), out=out, total=squares.sum(axis=1, keepdims=True), file="operands.py")


    x = normal((64, 64), 18)
    square = x.T @ x
    total = square * square - square + x.T
    total[:, :32] += square[:, 32:]
    yield case("psum_in_place", dict(x=x), out=total, atol=1e-3)
    x, y = (normal((64, 48), seed).astype(np.float16) for seed in (19, 25))
    named, indexed = np.zeros((48, 48), np.float16), np.zeros((48, 48), ml_dtypes.bfloat16)
    for part in (slice(0, 32), slice(32, 64)):
        product = x[part].astype(np.float32).T @ y[part].astype(np.float32)
        named = (named.astype(np.float32) + product).astype(np.float16)
        indexed = (indexed.astype(np.float32) + product).astype(ml_dtypes.bfloat16)
    yield case("narrow_sums", dict(x=x, y=y), out=np.stack([named, indexed.astype(np.float16)]), rtol=2e-3, atol=2e-2)
    x = normal((32, 3, 4), 36)
    yield case("shapes_of_results", dict(x=x), out=x.var(axis=2))


def indices():
    x = normal((64, 32), 20)
    parts = [np.concatenate([x[:, ::2], x[:, 1::2]], axis=1), x[:, ::-1], np.repeat(x[:, :16], 2, axis=1)]
    yield case("strides", dict(x=x), out=np.stack(parts), file="indices.py")
    x = normal((100, 60), 21)
    yield case("transposing_load", dict(x=x), out=np.ascontiguousarray(x.T), file="indices.py")
    x = normal((128, 64), 22)
    blocks = x.reshape(128, 8, 8) * np.arange(8, dtype=np.float32)[None, :, None] + 1
    yield case("as_blocks", dict(x=x), out=np.ascontiguousarray(blocks[:, ::-1]).reshape(128, 64), file="indices.py")
    for shape in [(300, 1100), (128, 512), (1, 513)]:
        x, y = normal(shape, 23), normal(shape, 24)
        yield case("ragged", dict(x=x, y=y), out=(x + y) * x, file="indices.py", name=f"ragged-{shape}")
    square = normal((64, 64), 26)
    kept = np.where(np.arange(64) >= 10, np.exp(square), np.float32(7))
    kept[:32, :3] = square[:32, :3]
    total = np.where(np.arange(64) < 20, square.T @ square, np.float32(0))
    yield case("outside_stays", dict(x=square), out=np.stack([kept, total]), file="indices.py", atol=1e-4)
    x = normal((64, 24), 35)
    yield case("completed", dict(x=x), out=np.where(np.arange(24) < 10, np.exp(x), -x), file="indices.py")
    x, y = normal((64, 24), 36), normal((64, 24), 37)
    rows = [np.where(y[:, :1] < 0, x, other) for other in (y, np.float32(2))]
    yield case("chosen_rows", dict(x=x, y=y), out=np.stack(rows), file="indices.py")
    x = normal((64, 96), 27)
    i, j = np.arange(64)[:, None], np.arange(96)[None, :]
    parts = [np.where(i >= j, x, -5), np.where(2 * i + 3 < j, x, 1), 3 * j - i + 4]
    yield case("triangle", dict(x=x), out=np.stack(parts).astype(np.float32), file="indices.py")
    x = normal((100, 36), 28)
    yield case("transposed", dict(x=np.vstack([x, x])), out=np.ascontiguousarray(np.vstack([x, x]).T), file="indices.py")
    x = normal((32, 6, 10), 29)
    parts = [x.max(axis=1), x.mean(axis=2), x.sum(axis=(1, 2))[:, None]]
    yield case("reductions", dict(x=x), out=np.concatenate(parts, axis=1), file="indices.py", atol=1e-4)
    x, idx = normal((64, 20), 30), np.random.default_rng(31).permutation(64).astype(np.int32)[:, None]
    yield case("gathered", dict(data=x, idx=idx, rows=64), out=2 * x, file="indices.py")


def masks():
    x = normal((8, 8, 8), 60)
    out = np.zeros((8, 7, 8), np.float32)
    out[:, 0, :4] = x[:, :4, :4].sum(axis=2)
    out[:5, 1] = x[:5, :, 2:].max(axis=2)
    out[:, 2] = x[:, :, :3].mean(axis=2)
    out[:3, 3, 0] = x[:3, :4, :5].sum(axis=(1, 2))
    out[:, 4, :4] = x[:, :4, :4].var(axis=2)
    out[:, 5, :2] = x[:, :2, :3].max(axis=2)
    yield case("of_reductions", dict(x=x), out=out, file="masks.py")
    for shape in [(8, 8, 8), (64, 6, 9)]:
        x = normal(shape, 61)
        out = np.zeros((3, shape[0], shape[2]), np.float32)
        out[0, :, :5], out[1, :, :5] = x[:, :3, :5].sum(axis=1), x[:, :3, :5].min(axis=1)
        out[2, :, :5] = x[:, :3, :5].max(axis=1)
        yield case("of_middle_axes", dict(x=x), out=out, file="masks.py", name=f"of_middle_axes-{shape}")
        x = normal(shape, 62)
        v = x.sum(axis=(1, 2))[:, None, None]
        part = (np.arange(shape[1])[:, None] < 3) & (np.arange(shape[2]) >= 2)
        out = [np.where(part, y, 0) for y in (x * v, x * v + v, x * v + x, x * x, x + x[:, :1])]
        out[3] = x * x * (np.arange(shape[1]) < 3)[:, None] * (np.arange(shape[0]) < 5)[:, None, None]
        total = out[3].sum(axis=(1, 2))[:, None]
        yield case("of_vectors", dict(x=x), out=np.stack(out), total=total, file="masks.py", atol=1e-3, name=f"of_vectors-{shape}")
    x = normal((64, 48), 63)
    order = np.argsort(-x[:, :20], axis=1)[:, :8]
    best = np.take_along_axis(x, order, axis=1)
    yield case("of_searches", dict(x=x), out=best, where=order.astype(np.uint32), file="masks.py")
    x, y = normal((64, 32), 64), normal((64, 48), 65)
    out = np.zeros((3, 32, 48), np.float32)
    out[0, :21, :31] = x.T[:21] @ y[:, :31]
    out[1, :24, 10:30] = x[:40, :24].T @ y[:40, 10:30]
    out[2] = x[32:].T @ y[32:]
    yield case("of_operands", dict(x=x, y=y), out=out, file="masks.py", atol=1e-4)
    x = normal((64, 48), 66)
    out = np.full((6, 64, 48), 7, np.float32)
    out[0, :20, 5:26] = x[:20, 5:26] + 1
    out[1, :, :17] += np.exp(x[:, :17])
    out[2, :, :26] = x[:, :26]
    out[3, :, 8:11] = x[:, 8:11] ** 2
    out[4, :9] = x[:9].sum(axis=1, keepdims=True)
    out = out.reshape(6, 64, 6, 8)
    out[5, :, :, 1:3] = x[:, None, 0:2]
    yield case("of_views", dict(x=x), out=out, file="masks.py")
    x, y = normal((100, 32), 67), normal((100, 48), 68)
    out = np.zeros((3, 32, 48), np.float32)
    out[0] = x.T @ y
    out[1, :, :20] = out[0, :, :20]
    out[2, :10] = x[:64, :10].T @ y[:64]
    yield case("of_contractions", dict(x=x, y=y), out=out, file="masks.py", atol=1e-4)


def programs():
    x = normal((64, 96), 32)
    half = np.sort(x[:, :48], axis=1)[:, ::-1][:, :8]
    where = np.argsort(-x[:, :48], axis=1)[:, :8].astype(np.uint32)
    yield case("searched", dict(x=x), out=np.ascontiguousarray(half), where=where, turned=np.ascontiguousarray(x.T), file="indices.py")
    x = normal((32, 40), 33)
    expected = np.ones((64, 40), np.float32)
    expected[::2] += x
    yield case("added_by_dma", dict(x=x), out=expected, file="indices.py")
    x = normal((4, 2, 16, 24), 34)
    factor = 1 + np.arange(4, dtype=np.float32)[:, None, None, None] + 10 * np.arange(2, dtype=np.float32)[None, :, None, None]
    for grid in ["4,2", "nc2*2,2", "2*nc2,2", "4,nc2"]:
        yield dict(case("programs", dict(x=x), out=x * factor, file="indices.py", name=f"programs-{grid}"), programs=grid)


def tables():
    a, b = normal((256, 384), 40), normal((384, 320), 41)
    yield case("blocked_matmul", dict(lhs=a, rhs=b), out=a @ b, file="tables.py", atol=2e-4)
    x = normal((5, 96, 48), 42)
    best = np.stack([x.max(axis=(0, 2)), x.sum(axis=(0, 2))], axis=1)
    yield case("row_maxima", dict(x=x), out=best, file="tables.py", atol=1e-4)
    x = normal((6, 128, 200), 43)
    yield case("allocated", dict(x=x), out=x + x * x, file="tables.py", atol=1e-4)


def banks():
    a, b = normal((384, 1408), 50), normal((384, 1024), 51)
    yield case("many_sums", dict(lhs_t=a, rhs=b), out=a.T @ b, file="banks.py", atol=2e-4)
    q, k = normal((128, 512), 52) / 4, normal((128, 2048), 53)
    yield case("separate_loops", dict(q=q, k=k), out=softmax(q.T @ k), file="banks.py")
    x = normal((128, 512), 54)
    total = x
    for i in range(10, -1, -1):
        total = np.maximum(total, x[:, i * 32 : i * 32 + 128].T @ x) * np.float32(0.5)
    yield case("last_first", dict(x=x), out=total, file="banks.py", atol=2e-4)


def cases():
    yield from values()
    yield from indices()
    yield from masks()
    yield from programs()
    yield from tables()
    yield from banks()
