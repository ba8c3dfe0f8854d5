"""Cases of cores.py."""

import numpy as np

HELD = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def cases():
    generator = np.random.default_rng(61)
    kinds = [
        ("uint8", 1, "trn2"),
        ("float8_e5m2", 1, "trn2"),
        ("bfloat16", 2, "trn2"),
        ("int32", 4, "trn2"),
        ("float8_e4m3fn_x4", 4, "trn3"),
        ("float8_e5m2_x4", 4, "trn3"),
        ("float4_e2m1fn_x4", 2, "trn3"),
    ]
    for i, (dtype, size, target) in enumerate(kinds):
        shape = [(2, 128, 64), (2, 32, 200), (2, 1, 7)][i % 3]
        x = generator.integers(0, 2 ** (8 * size), shape, dtype=np.uint64).astype(HELD[size])
        for step, gpsimd in ((1, False), (3, True)):
            yield dict(
                name=f"exchange-{dtype}-{step}",
                file="cores.py",
                kernel="exchange",
                lnc=2,
                target=target,
                args=dict(x=x, dtype=dtype, step=step, gpsimd=gpsimd),
                expect=dict(out=x[::-1].copy()),
            )
    for i, (op, function) in enumerate([("add", np.add), ("maximum", np.maximum), ("minimum", np.minimum)]):
        for dtype in (np.float32, np.int32):
            x = (generator.standard_normal((2, 128, 40)) * 100).astype(dtype)
            both = function(x[0], x[1])
            yield dict(
                name=f"reduce-with-other-{op}-{np.dtype(dtype).name}",
                file="cores.py",
                kernel="reduce_with_other",
                lnc=2,
                target=("trn2", "trn3")[i % 2],
                args=dict(x=x, op=op, on_chip=bool((i + (dtype == np.int32)) % 2)),
                expect=dict(out=np.stack([both, both])),
            )
