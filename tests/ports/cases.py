"""NumPy references of the kernels here, on small shapes."""

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def attention(q, k, v):
    s = q.astype(np.float64).T @ k.astype(np.float64)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64).T


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
