"""NumPy references of the kernels here, on small shapes."""

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def attention(q, k, v):
    s = q.astype(np.float64).T @ k.astype(np.float64)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64).T


def heads(q, k, v):
    """softmax(q @ k.T / sqrt(d)) @ v of each head of [n, heads, d]."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = np.einsum("nhd,mhd->hnm", q, k) / np.sqrt(q.shape[2])
    e = np.exp(s - s.max(axis=2, keepdims=True))
    return np.einsum("hnm,mhd->nhd", e / e.sum(axis=2, keepdims=True), v).astype(np.float32)


def product(lhs_t, rhs, block):
    """lhs_t.T @ rhs whose sums are rounded to the dtype of lhs_t after each `block` rows of the contraction."""
    dtype = lhs_t.dtype
    out = np.zeros((lhs_t.shape[1], rhs.shape[1]), dtype)
    for i in range(0, lhs_t.shape[0], block):
        part = lhs_t[i : i + block].astype(np.float64).T @ rhs[i : i + block].astype(np.float64)
        out = (out.astype(np.float64) + part).astype(dtype)
    return out


def adamw(weight, gradient, moment, variance):
    weight, gradient, moment, variance = (x.astype(np.float64) for x in (weight, gradient, moment, variance))
    new_moment = 0.9 * moment + 0.1 * gradient
    new_variance = 0.999 * variance + 0.001 * gradient**2
    return weight - 1e-5 * weight - 0.01 * new_moment / (np.sqrt(1000 * new_variance) + 1e-8)


def cases():
    x = normal((128, 3, 1024), 1)
    yield dict(
        name="silu",
        file="silu.py",
        args=dict(x=x, load_width=512, compute_width=256),
        expect=dict(out=(x / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)),
    )

    matrices = [normal((200, 512), seed) for seed in (2, 3, 4, 5)]
    matrices[3] = np.abs(matrices[3])
    yield dict(
        name="adamw",
        file="adamw.py",
        args=dict(zip(("weight", "gradient", "moment", "variance"), matrices), load_width=512, compute_width=256),
        expect=dict(out=adamw(*matrices).astype(np.float32)),
    )

    x, w = normal((2, 128, 512), 6), normal((4, 128, 1024), 7)
    rows = x.reshape(256, 512).astype(np.float64)
    rows /= np.sqrt((rows**2).mean(axis=1, keepdims=True))
    yield dict(
        name="rmsnorm-matmul",
        file="rmsnorm_matmul.py",
        args=dict(x=x, w=w, block=2, columns=512),
        expect=dict(out=(rows @ w.reshape(512, 1024)).reshape(2, 128, 1024).astype(np.float32)),
        atol=1e-3,
    )

    for dtype in (np.float32, bfloat16):
        q, k, v = (normal((128, 512), seed, dtype) / np.array(4, dtype) for seed in (8, 9, 10))
        for kernel in ("fused", "three_phases"):
            yield dict(
                name=f"attention-{kernel}-{np.dtype(dtype).name}",
                file="attention.py",
                kernel=kernel,
                args=dict(q=q, k=k, v=v),
                expect=dict(out=attention(q, k, v).astype(dtype)),
                atol=1e-5 if dtype == np.float32 else 1e-2,
            )

    a, b = normal(2560, 11), normal(2560, 12)
    for partitions, width in ((128, 4), (128, 20), (1, 64)):
        yield dict(
            name=f"vector-add-{partitions}x{width}",
            file="vector_add.py",
            args=dict(a=a, b=b, partitions=partitions, width=width),
            expect=dict(out=a + b),
        )

    for n, d in ((128, 64), (64, 128), (96, 32), (8, 16)):
        q, k, v = (normal((n, d), seed) for seed in (13, 14, 15))
        for kernel in ("v0", "v0_pinned", "v1", "v2", "v5", "v6"):
            yield dict(
                name=f"single-head-{kernel}-{n}x{d}",
                file="single_head.py",
                kernel=kernel,
                args=dict(q=q, k=k, v=v),
                expect=dict(output0=heads(q[:, None], k[:, None], v[:, None])[:, 0]),
                atol=2e-2 if kernel in ("v2", "v6") else 1e-5,
            )

    for n, count, d in ((128, 16, 64), (96, 8, 32), (128, 32, 128), (64, 12, 32)):
        q, k, v = (normal((n, count, d), seed) for seed in (16, 17, 18))
        for kernel, lnc in (("loop", 1), ("chunks", 1), ("chunks", 2)):
            yield dict(
                name=f"multi-head-{kernel}-lnc{lnc}-{n}x{count}x{d}",
                file="multi_head.py",
                kernel=kernel,
                lnc=lnc,
                args=dict(q=q, k=k, v=v),
                expect=dict(out=heads(q, k, v)),
                atol=1e-5,
            )

    for dtype in (np.float32, bfloat16):
        name, tolerance = np.dtype(dtype).name, 1e-3 if dtype == np.float32 else 0.25
        lhs_t, rhs = normal((512, 512), 19, dtype), normal((512, 2048), 20, dtype)
        for m, n, k in ((1, 1, 1), (4, 1, 2), (2, 4, 4)):
            yield dict(
                name=f"blocked-matmul-{name}-m{m}n{n}k{k}",
                file="blocked_matmul.py",
                kernel="blocked_matmul",
                args=dict(lhs_t=lhs_t, rhs=rhs, m=m, n=n, k=k),
                expect=dict(output0=product(lhs_t, rhs, 128 * k)),
                atol=tolerance,
            )

    m, n, k = 2, 1, 2
    x = normal((256, 512), 21)
    half = x.astype(bfloat16)
    w_gate, w_up, w_down = (
        normal(shape, seed, bfloat16) / np.array(16, bfloat16)
        for shape, seed in (((512, 1024), 22), ((512, 1024), 23), ((1024, 512), 24))
    )
    gate, up = (product(np.ascontiguousarray(half.T), w, 128 * k).astype(np.float32) for w in (w_gate, w_up))
    hidden = (gate / (1 + np.exp(-gate))).astype(bfloat16).astype(np.float32) * up
    down = product(np.ascontiguousarray(hidden.astype(bfloat16).T), w_down, 128 * k)
    yield dict(
        name="feed-forward",
        file="blocked_matmul.py",
        kernel="feed_forward",
        args=dict(x=x, w_gate=w_gate, w_up=w_up, w_down=w_down, m=m, n=n, k=k, columns=256),
        expect=dict(output0=(half.astype(np.float32) + down.astype(np.float32)).mean(axis=0, keepdims=True)),
        atol=5e-3,
    )

    h, weights = normal((512, 512), 25), normal((3, 512, 512), 26) / np.float32(16)
    last = h
    for weight in weights:
        last = product(last, weight, 512)
    yield dict(
        name="stack",
        file="blocked_matmul.py",
        kernel="stack",
        args=dict(h=h, weights=weights, m=4, n=1, k=4),
        expect=dict(h=last),
        atol=1e-3,
    )

    part, whole = normal(512, 27), normal(512, 28)
    for ranks in (2, 4):
        sums = (ranks * whole).reshape(ranks, -1)
        for kernel, x, results in (
            ("all_gather", part, ranks * [np.tile(part, ranks)]),
            ("all_reduce", whole, ranks * [ranks * whole]),
            ("reduce_scatter", whole, sums),
        ):
            yield dict(
                name=f"{kernel}-{ranks}",
                file="collectives.py",
                kernel=kernel,
                ranks=ranks,
                args=dict(x=x, ranks=ranks),
                expect={f"out@{rank}": result for rank, result in enumerate(results)},
            )
