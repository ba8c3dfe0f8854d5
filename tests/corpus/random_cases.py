"""Random numbers. Where the manual leaves behaviour open (seeding, the order of generators), docs/numerics.md applies."""

import numpy as np
from ml_dtypes import bfloat16

M64 = 2**64 - 1


def seeded(seed, streams):
    """[streams, 6] words: splitmix64 from the seed and the stream number."""
    out = np.empty((streams, 6), np.uint32)
    for stream in range(streams):
        at = stream << 32 | seed
        for i in range(6):
            at = (at + 0x9E3779B97F4A7C15) & M64
            z = ((at ^ at >> 30) * 0xBF58476D1CE4E5B9) & M64
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
            out[stream, i] = (z ^ z >> 31) >> 32
        out[stream, 0] |= 1
    return out


class Lanes:
    """Generators of `lanes` lanes, `each` per lane: Marsaglia's XORWOW."""

    def __init__(self, words, each):
        self.words = words.reshape(-1, each, 6).copy()

    def draw(self, partitions, n):
        out = np.empty((partitions, n), np.uint32)
        each = self.words.shape[1]
        for i in range(n):
            g = self.words[:partitions, i % each]
            x, v = g[:, 0].copy(), g[:, 4].copy()
            t = x ^ x >> np.uint32(2)
            new = v ^ v << np.uint32(4) ^ t ^ t << np.uint32(1)
            counter = g[:, 5] + np.uint32(362437)
            g[:, 0:4] = g[:, 1:5].copy()
            g[:, 4], g[:, 5] = new, counter
            out[:, i] = new + counter
        return out


def vector(seed):
    return Lanes(seeded(seed, 128 * 4), 4)


def case(name, kernel, args, expect, target="trn3"):
    return dict(
        name=name, file="random_numbers.py", kernel=kernel, target=target, args=args, expect=expect, rtol=0, atol=0
    )


def cases():
    for seed, shape, dtype in ((0, (128, 37), "uint32"), (123456789, (5, 64), "int16"), (2**32 - 1, (64, 9), "uint8")):
        lanes = vector(seed)
        first, second = (lanes.draw(*shape).astype(dtype) for _ in range(2))
        if dtype == "uint32":
            # Each of the 32 bits is set in half of the numbers (3 sigma is 0.011), and the tiles are independent.
            set_bits = (first[..., None] >> np.arange(32, dtype=np.uint32) & 1).mean(axis=(0, 1))
            assert np.abs(set_bits - 0.5).max() < 0.03 and (first == second).mean() < 1e-3
        args = dict(seed=np.array([[seed]], np.uint32), shape=shape, dtype=dtype)
        yield case(f"rng-{dtype}", "bits", args, dict(first=first, second=second, again=first), "trn2")

    r = np.random.default_rng(3)
    for engine, each, target in (("gpsimd", 1, "trn2"), ("gpsimd", 1, "trn3"), ("vector", 4, "trn3")):
        words = r.integers(0, 2**32, (48, 6 * each), dtype=np.uint32)
        lanes = Lanes(words, each)
        drawn = lanes.draw(48, 21)
        left = lanes.words.reshape(48, -1)
        yield case(
            f"rand-state-{engine}-{target}", "state", dict(words=words, n=21, engine=engine), dict(drawn=drawn, left=left), target
        )

    low, high = (r.standard_normal((128, 1)).astype(np.float32) + np.float32(k) for k in (-5, 5))
    lanes = vector(7)
    unit = [(lanes.draw(128, 50) >> np.uint32(8)).astype(np.float32) / np.float32(2**24) for _ in range(2)]
    assert abs(unit[0].mean() - 0.5) < 0.012 and abs(unit[0].var() - 1 / 12) < 0.004
    rounded = (np.float32(-2) + np.float32(4) * unit[1]).astype(bfloat16)
    args = dict(seed=np.array([[7]], np.uint32), low=low, high=high, n=50)
    yield case("rand2", "uniform", args, dict(drawn=low + (high - low) * unit[0], rounded=rounded))

    for dtype in (np.float32, bfloat16, np.int8):
        x = r.integers(1, 100, (128, 80)).astype(dtype)
        prob = r.random((128, 1)).astype(np.float32)
        prob[0] = 0
        lanes = vector(11)
        drawn = [lanes.draw(128, 80) for _ in range(2)]
        rows = np.where(drawn[0] < prob.astype(np.float64) * 2**32, 0, x).astype(dtype)
        quarter = np.where(drawn[1] < 2**30, 0, x).astype(dtype)
        assert (rows[0] == x[0]).all() and abs((quarter == 0).mean() - 0.25) < 0.013
        assert np.abs((rows == 0).mean(axis=1) - prob[:, 0]).max() < 0.2
        args = dict(seed=np.array([[11]], np.uint32), x=x, prob=prob)
        yield case(f"dropout-{np.dtype(dtype).name}", "drop", args, dict(rows=rows, quarter=quarter, none=np.zeros_like(x)), "trn2")
