"""NumPy references of the kernels here, on small shapes."""

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


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


def cases():
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
