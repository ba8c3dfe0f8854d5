"""NumPy references of the kernels here."""

import numpy as np
from ml_dtypes import bfloat16


def normal(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def cases():
    a, b = normal((256, 1024), 1), normal((256, 1024), 2)
    yield dict(
        name="tensor-add", file="tensor_add.py", args=dict(a_input=a, b_input=b), expect=dict(c_output=a + b), rtol=0, atol=0
    )

    inp = normal((8, 128, 512), 3)
    for kernel in ("sb_blocks_alive_together", "sb_blocks_migrated", "sb_blocks_migrated_incorrect", "blocks_as_list"):
        yield dict(name=kernel, file="sb_blocks.py", kernel=kernel, args=dict(inp=inp), expect=dict(res=inp), rtol=0, atol=0)

    t = normal((129, 513), 4)
    yield dict(name="edge-tiles", file="edge_tiles.py", args=dict(t=t), expect=dict(result=t), rtol=0, atol=0)

    A = normal((512, 512), 5)
    yield dict(
        name="scalar-dynamic-access",
        file="dynamic_access.py",
        kernel="indirect_scalar_dynamic_dma",
        args=dict(A=A),
        expect=dict(result=A[384:512, 0:256]),
        rtol=0,
        atol=0,
    )
    A = normal((128, 512), 6)
    yield dict(
        name="vector-dynamic-access",
        file="dynamic_access.py",
        kernel="indirect_vector_dynamic_dma",
        args=dict(A=A),
        expect=dict(result_hbm=A[0:128:2]),
        rtol=0,
        atol=0,
    )

    x = normal((128, 64), 7)
    yield dict(
        name="dynamic-loop-static-bounds", file="loops.py", kernel="static_bounds", args=dict(x=x), expect=dict(out=x + 10)
    )
    for bound, trips in ((12, 4), (5, 0), (6, 1)):
        yield dict(
            name=f"dynamic-loop-register-bounds-{bound}",
            file="loops.py",
            kernel="register_bounds",
            args=dict(x=x, bound=np.array([[bound]], dtype=np.int32)),
            expect=dict(out=x + trips),
        )
    yield dict(name="register-while", file="loops.py", kernel="register_while", args=dict(x=x), expect=dict(out=x * 32))
    x3 = normal((6, 128, 64), 8)
    yield dict(
        name="fori-loop", file="loops.py", kernel="loop_functions", args=dict(x=x3), expect=dict(out=x3), rtol=0, atol=0
    )

    x = normal((8, 128, 256), 9, bfloat16)
    yield dict(name="modular-allocation", file="allocation.py", args=dict(x=x), expect=dict(out=x), rtol=0, atol=0)

    x = normal((200, 96), 10)
    want = x
    for _ in range(3):
        want = want * np.float32(3.0) + np.float32(-1.5)
    yield dict(
        name="metaprogram", file="language.py", args=dict(x=x, amounts=(3.0, -1.5), repeat=3), expect=dict(out=want)
    )

    x, w, y = normal((128, 64), 20), normal((128, 64), 21), normal((128, 64), 22)
    e = np.exp(x - x.max(1, keepdims=True))
    yield dict(
        name="nl-operations",
        file="nl_operations.py",
        args=dict(x=x, w=w, y=y),
        expect=dict(
            softmax=e / e.sum(1, keepdims=True),
            norm=x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w,
            floor=np.floor(x),
            ceil=np.ceil(x),
            trunc=np.trunc(x),
            variance=x.var(1, keepdims=True),
            mean=x.mean(1, keepdims=True),
            chosen=np.where(x > y, x, np.float32(0.5)),
            product=x.T @ y,
            turned=x @ y.T,
            difference=1 - x,
            root=1 / np.sqrt(abs(x)),
            row=x + w[0:1],
            column=np.minimum(x, y[:, 0:1]),
            cosine=np.cos(x),
            identity=np.eye(128, dtype=np.float32),
            zeros=np.zeros((300, 70), np.float32),
        ),
        atol=1e-4,
    )
