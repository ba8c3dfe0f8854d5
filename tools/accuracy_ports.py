"""Our versions of kernels whose sources need the older interface (tests/ports), and the rows that they stand for.

A port has the shapes, the tiling and the instructions of the kernel that was measured; it is written anew.
"""

import re

DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def whole(row, names):
    """--arg for the tensors of a row, by our names."""
    return [f"{name}={i['dtype']}[{','.join(map(str, i['shape']))}]" for name, i in zip(names, row["inputs"])]


def vector_add(row):
    p = row.get("params") or {}
    tile = {"partitions": p["ROW_CHUNK"], "width": 1} if "ROW_CHUNK" in p else {"partitions": 128, "width": p["FREE_DIM"]}
    return [*whole(row, "ab"), *(f"{k}={v}" for k, v in tile.items())]


# Rows (a pattern of the id), file, kernel (or the pattern's group `kernel`), arguments from the row, and settings.
PORTS = [
    (r"accelopt-silu", "silu.py", "silu", lambda row: whole(row, ["x"]), {}),
    (r"accelopt-adamw", "adamw.py", "adamw", lambda row: whole(row, ["weight", "gradient", "moment", "variance"]), {}),
    (r"accelopt-rmsnorm_matmul", "rmsnorm_matmul.py", "rmsnorm_matmul", lambda row: whole(row, "xw"), {}),
    (r"fusion-attn-(?P<kernel>fused|baseline)-\w+-s\d+", "attention.py", None, lambda row: whole(row, "qkv"), {}),
    # A capture of a program built for two cores: 7 us more before the first instruction (DeltaNet captures: 12.6 to 13.1 us).
    (r"fusion-prof-(?P<kernel>fused|baseline)_\w+_s\d+", "attention.py", None, lambda row: whole(row, "qkv"), {"kernel.head_us": 12.9}),
    (r"cs149t[12]-vadd-(stream|tiled-rc128).*", "vector_add.py", "vector_add", vector_add, {}),
]
NAMES = {"fused": "fused", "baseline": "three_phases"}


def words(row, folder):
    """What follows `nki-sim run` for a row that has a port, else None."""
    for pattern, file, kernel, arguments, settings in PORTS:
        match = re.fullmatch(pattern, row["id"])
        if match:
            out = [str(folder / file), "--kernel", kernel or NAMES[match["kernel"]]]
            out += [w for a in arguments(row) for w in ("--arg", a)]
            return out + [w for name, value in settings.items() for w in ("--set", f"{name}={value}")]
    return None
