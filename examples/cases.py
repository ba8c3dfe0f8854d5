"""NumPy references and inputs of the example kernels."""

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype: type = np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def softmax(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rmsnorm(x, weight, epsilon):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + epsilon) * weight.astype(np.float64)


def attention(q_t, k_t, v, scale, causal):
    s = scale * (q_t.astype(np.float64).T @ k_t.astype(np.float64))
    if causal:
        s = np.where(np.arange(s.shape[0])[:, None] >= np.arange(s.shape[1])[None, :], s, -np.inf)
    return softmax(s) @ v.astype(np.float64)


def cases():
    """Each case: name, file, kernel, args (arrays or Python literals), expect, and tolerances other than the default."""
    a, b = normal((256, 1024), 1), normal((256, 1024), 2)
    yield dict(name="elementwise", file="elementwise.py", args=dict(a=a, b=b), expect=dict(out=a + b))
    a, b = normal((129, 513), 3, bfloat16), normal((129, 513), 4, bfloat16)
    yield dict(name="elementwise-edges-bf16", file="elementwise.py", args=dict(a=a, b=b), expect=dict(out=a + b))

    a_t, b = normal((256, 256), 5), normal((256, 1024), 6)
    yield dict(
        name="matmul-tiled", file="matmul_tiled.py", args=dict(a_t=a_t, b=b), expect=dict(out=a_t.T @ b), atol=1e-4
    )
    a_t, b = normal((512, 512), 7), normal((512, 1024), 8)
    yield dict(
        name="matmul-blocked",
        file="matmul_blocked.py",
        args=dict(a_t=a_t, b=b, block_m=2, block_n=1),
        expect=dict(out=a_t.T @ b),
        atol=2e-4,
    )
    a_t, b = normal((512, 512), 7, bfloat16), normal((512, 1024), 8, bfloat16)
    yield dict(
        name="matmul-blocked-bf16",
        file="matmul_blocked.py",
        args=dict(a_t=a_t, b=b),
        expect=dict(out=(a_t.astype(np.float32).T @ b.astype(np.float32)).astype(bfloat16)),
    )

    x = normal((256, 512), 9)
    yield dict(name="softmax", file="softmax.py", args=dict(x=x), expect=dict(out=softmax(x).astype(np.float32)))
    x = normal((256, 512), 10, bfloat16)
    yield dict(
        name="softmax-bf16", file="softmax.py", args=dict(x=x), expect=dict(out=softmax(x).astype(bfloat16))
    )

    x, w = normal((200, 768), 11), normal((1, 768), 12)
    yield dict(
        name="rmsnorm",
        file="rmsnorm.py",
        args=dict(x=x, weight=w, epsilon=1e-4),
        expect=dict(out=rmsnorm(x, w, 1e-4).astype(np.float32)),
    )

    for causal in (False, True):
        q_t, k_t, v = normal((64, 512), 13), normal((64, 1024 if not causal else 512), 14), None
        v = normal((k_t.shape[1], 64), 15)
        yield dict(
            name="flash-attention-causal" if causal else "flash-attention",
            file="flash_attention.py",
            args=dict(q_t=q_t, k_t=k_t, v=v, scale=0.125, causal=causal),
            expect=dict(out=attention(q_t, k_t, v, 0.125, causal).astype(np.float32)),
        )

    table = normal((1000, 256), 16)
    indices = np.random.default_rng(17).integers(0, 1000, (256, 1)).astype(np.int32)
    yield dict(
        name="gather", file="gather.py", args=dict(table=table, indices=indices), expect=dict(out=table[indices[:, 0]])
    )

    x = normal((8, 128, 256), 18)
    yield dict(
        name="dynamic-loop",
        file="dynamic_loop.py",
        args=dict(x=x, count=np.array([[5]], dtype=np.int32)),
        expect=dict(out=x[:5].sum(axis=0)),
    )

    a_t, b = normal((128, 256), 19), normal((128, 2048), 20)
    yield dict(
        name="direct-allocation",
        file="direct_allocation.py",
        args=dict(a_t=a_t, b=b),
        expect=dict(out=a_t.T @ b),
        atol=1e-4,
    )

    x = normal((96, 512), 21)
    norms = x / np.sqrt((x.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    a_t, b = normal((64, 128), 22), normal((64, 512), 23)
    product = a_t.astype(np.float64).T @ b.astype(np.float64)
    scaled = product / product.max(axis=1, keepdims=True)
    for lnc in (1, 2):
        yield dict(
            name=f"row-norms-lnc{lnc}",
            file="two_cores.py",
            kernel="row_norms",
            lnc=lnc,
            args=dict(x=x),
            expect=dict(out=norms.astype(np.float32)),
        )
        yield dict(
            name=f"matmul-two-cores-lnc{lnc}",
            file="two_cores.py",
            kernel="matmul_two_cores",
            lnc=lnc,
            args=dict(a_t=a_t, b=b),
            expect=dict(out=scaled.astype(np.float32)),
            atol=1e-4,
        )

    ranks = 4
    a_t, b = normal((ranks * 64, 96), 24), normal((ranks * 64, 256), 25)
    parts = [slice(r * 64, r * 64 + 64) for r in range(ranks)]
    # Two groups of two: each sums its own half of the contraction.
    for name, groups in (("one-group", [[0, 1, 2, 3]]), ("two-groups", [[0, 1], [3, 2]])):
        of = {r: sum(a_t[parts[q]].T @ b[parts[q]] for q in group) for group in groups for r in group}
        yield dict(
            name=f"tensor-parallel-matmul-{name}",
            file="collectives.py",
            kernel="tensor_parallel_matmul",
            ranks=ranks,
            args={"groups": groups}
            | {f"a_t@{r}": a_t[parts[r]] for r in range(ranks)}
            | {f"b@{r}": b[parts[r]] for r in range(ranks)},
            expect={f"out@{r}": of[r] for r in range(ranks)},
            atol=1e-4,
        )

    x = normal((ranks, 64, 128), 26, bfloat16)
    yield dict(
        name="ring-gather",
        file="collectives.py",
        kernel="ring_gather",
        ranks=ranks,
        args={"ranks": ranks} | {f"x@{r}": x[r] for r in range(ranks)},
        expect={f"out@{r}": x for r in range(ranks)},
    )

    x = normal((ranks, 8, 32), 27)
    expect = {}
    for r in range(ranks):
        part = slice(r * 2, r * 2 + 2)
        expect[f"gathered@{r}"] = x.reshape(-1, 32)
        expect[f"scattered@{r}"] = x[:, part].sum(axis=0)
        expect[f"transposed@{r}"] = x[:, part].reshape(-1, 32)
        expect[f"swapped@{r}"] = x[r ^ 1]
    for lnc in (1, 2):
        yield dict(
            name=f"exchange-lnc{lnc}",
            file="collectives.py",
            kernel="exchange",
            lnc=lnc,
            ranks=ranks,
            args={"ranks": ranks} | {f"x@{r}": x[r] for r in range(ranks)},
            expect=expect,
            atol=1e-6,
        )

    x = normal((640, 384), 28)
    centered = x - x.mean(axis=0, dtype=np.float64)
    squares = (centered**2).sum(axis=1).reshape(5, 128).T
    yield dict(
        name="center-columns",
        file="arena.py",
        args=dict(x=x),
        expect=dict(out=centered.astype(np.float32), total=squares.astype(np.float32)),
        atol=2e-4,
    )
