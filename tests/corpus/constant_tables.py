"""Arrays that kernels use as constants: evaluated here by NumPy, in a kernel by the simulator."""

import numpy as np

ROWS = np.arange(24).reshape(4, 6)
WAVE = np.sin(np.linspace(0, 3, 64, dtype=np.float32))
ROTATION = np.eye(8, k=2, dtype=np.float32) + np.eye(8, k=-6, dtype=np.float32)

TABLES = {
    "identity": np.identity(16, dtype=np.int8),
    "eye": np.eye(5, 7, 1, dtype=np.float16),
    "arange": np.arange(3, 40, 2).astype(np.int32).reshape(1, -1),
    "floats": np.arange(0, 1, 0.125, dtype=np.float32).reshape(2, 4),
    "literal": np.array([[1.5, -2], [3, 4e5]], dtype=np.float32),
    "bools": np.array([[True, False], [False, True]]).astype(np.uint8),
    "wraps": np.arange(250, 260).astype(np.uint8).astype(np.int8).reshape(2, 5),
    "cuts": np.array([[1.9, -1.9, 200.5]]).astype(np.int16),
    "halves": (np.arange(64, dtype=np.float32) / 3).astype(np.float16).reshape(8, 8),
    "full": np.full((3, 4), -7, dtype=np.int32),
    "ones": np.ones((2, 3), np.float32) * 0.1,
    "transposed": ROWS.T.astype(np.int32),
    "sliced": ROWS[1:, ::-2].astype(np.uint16),
    "negative": ROWS[-1, -3:].reshape(1, 3).astype(np.uint32),
    "outer": (ROWS[:, 0][:, None] * np.arange(5)[None, :]).astype(np.int32),
    "quotients": (ROWS // 5 + ROWS % 5 - 2**3).astype(np.int32),
    "true-division": (ROWS / 7).astype(np.float32),
    "negative-division": ((ROWS - 12) // 5 * 10 + (ROWS - 12) % 5).astype(np.int32),
    "bits": ((ROWS << 2) ^ (ROWS & 5) | 1).astype(np.int32),
    "compared": (ROWS[:, :1] >= ROWS[:1, :]).astype(np.float32),
    "where": np.where(ROWS > 10, 0.0, -np.inf).astype(np.float32),
    "causal": np.tril(np.ones((6, 6), np.float32), -1) + np.triu(np.full((6, 6), 2, np.float32), 2),
    "tri": np.tri(4, 6, 1, dtype=np.int32),
    "mixed": (np.ones((2, 2), np.int8) + np.float32(0.5) * np.ones((2, 2), np.float32)),
    "concatenated": np.concatenate([np.zeros((2, 3), np.int32), np.ones((2, 2), np.int32)], axis=1),
    "totals": np.array([[ROWS.sum(), ROWS.min(), np.max(ROWS), ROWS.size, len(ROWS)]]).astype(np.int32),
    "rotation": ROTATION,
    "extremes": np.maximum(np.minimum(ROWS, 20), 3).astype(np.int32),
    "listed": np.array([row.tolist() for row in ROWS[:2]], dtype=np.int16),
    "abs": np.abs(ROWS - 12).astype(np.int32),
    "square": np.transpose(ROWS.reshape(2, 3, 4), (1, 0, 2)).reshape(3, 8).astype(np.int32),
}

# NumPy and Rust round floating-point functions differently: results agree within an ulp.
NEARLY = {
    "sine": WAVE.reshape(4, 16),
    "exponential": np.exp(np.arange(32, dtype=np.float32) / 8).reshape(2, 16),
    "root": np.sqrt(ROWS).astype(np.float32),
}
