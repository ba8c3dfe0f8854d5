"""Ports of kernels that need the older interface (tests/ports), and the rows that they predict.

A port has the shapes, the tiling and the instructions of the measured kernel, but its source is our own.
"""

import re

DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def whole(row, names):
    """The `--arg` values for the tensors of a row, under the port's parameter names."""
    return [f"{name}={i['dtype']}[{','.join(map(str, i['shape']))}]" for name, i in zip(names, row["inputs"])]


def vector_add(row):
    p = row.get("params") or {}
    tile = {"partitions": p["ROW_CHUNK"], "width": 1} if "ROW_CHUNK" in p else {"partitions": 128, "width": p["FREE_DIM"]}
    return [*whole(row, "ab"), *(f"{k}={v}" for k, v in tile.items())]


# Pattern of row ids, file, kernel (None: the group `kernel` of the pattern), function from row to arguments, settings.
PORTS = [
    (r"accelopt-silu", "silu.py", "silu", lambda row: whole(row, ["x"]), {}),
    (r"accelopt-adamw", "adamw.py", "adamw", lambda row: whole(row, ["weight", "gradient", "moment", "variance"]), {}),
    (r"accelopt-rmsnorm_matmul", "rmsnorm_matmul.py", "rmsnorm_matmul", lambda row: whole(row, "xw"), {}),
    (r"fusion-attn-(?P<kernel>fused|baseline)-\w+-s\d+", "attention.py", None, lambda row: whole(row, "qkv"), {}),
    # The program was built for two cores, which takes 7 us more before the first instruction (DeltaNet captures: 12.6 to 13.1 us).
    (r"fusion-prof-(?P<kernel>fused|baseline)_\w+_s\d+", "attention.py", None, lambda row: whole(row, "qkv"), {"kernel.head_us": 12.9}),
    (r"cs149t[12]-vadd-(stream|tiled-rc128).*", "vector_add.py", "vector_add", vector_add, {}),
]
NAMES = {"fused": "fused", "baseline": "three_phases"}


def words(row, folder):
    """The words after `nki-sim run` for a row that has a port; None for other rows."""
    for pattern, file, kernel, arguments, settings in PORTS:
        match = re.fullmatch(pattern, row["id"])
        if match:
            out = [str(folder / file), "--kernel", kernel or NAMES[match["kernel"]]]
            out += [w for a in arguments(row) for w in ("--arg", a)]
            return out + [w for name, value in settings.items() for w in ("--set", f"{name}={value}")]
    return None
