"""Cases of constants.py."""

import pathlib
import tempfile

import ml_dtypes
import numpy as np
from constant_tables import NEARLY, ROWS, TABLES

FILES = tempfile.TemporaryDirectory()


def case(name, kernel, want, **args):
    return dict(name=name, file="constants.py", kernel=kernel, args=args, expect=dict(out=want), rtol=0, atol=0)


def constants():
    for name, want in TABLES.items():
        yield case(f"constant-{name}", "table", want, which=name)
    for name, want in NEARLY.items():
        yield case(f"constant-{name}", "nearly", want, which=name) | dict(rtol=2e-7)
    for dtype in ("float32", "int16", "bfloat16"):
        array = np.linspace(-9, 9, 60).reshape(3, 20).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        path = pathlib.Path(FILES.name) / f"{dtype}.npy"
        np.save(path, array.view("V2") if dtype == "bfloat16" else array)
        yield case(f"constant-file-{dtype}", "from_file", array, path=str(path))
    yield case("constant-numbers", "numbers", (ROWS[:, -1] * 3).astype(np.float32).reshape(1, 4), scale=3)
    for dtype in ("uint8", "int32", "float32", "bfloat16", "float16"):
        want = np.eye(48).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        yield case(f"identity-{dtype}", "identity", want, n=48, dtype=dtype)
