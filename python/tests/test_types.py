"""The types of the package: pyright (as basedpyright) and mypy accept the examples and the documentation, and find mistakes."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest
from test_documents import ROOT, blocks

NAMES = ["mypy", "basedpyright"]
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NAMES), reason="pip install mypy basedpyright"
)

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim
import numpy as np


@nki.jit
def kernel(x: nl.tensor, scale: float = 1.0):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=scale)
    {body}
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


array = np.ones((128, 8), np.float32)
"""

#: Statements in the kernel and after it that are correct.
RIGHT = [
    ("tile.reshape((128, 2, 4)).permute((0, 2, 1))[0:64, :, nl.ds(0, 1)].shape[0]", ""),
    ("nisa.tensor_reduce(dst=tile[:, 0:1], op=nl.add, data=tile, axis=1)", ""),
    ("nisa.activation(tile, nl.exp, tile, scale=2.0, reduce_cmd=nisa.reduce_cmd.reset_reduce).depends_on()", ""),
    ("for i in nl.affine_range(4): nisa.memset(tile[:, i], 0.0, engine=nisa.engine.vector)", ""),
    ("for grid in [nl.tiles(tile, tile_shape=(64, 8))]: grid[0, 0].data.dtype.itemsize", ""),
    ("nl.softmax(tile, axis=-1, dtype=nl.bfloat16).strides", ""),
    ("nl.ndarray((128, 8), np.float32); nl.ndarray((128, 8), 'float32', nl.psum)", ""),
    ("", "kernel(array)"),
    ("", "kernel[2](array, scale=2.0).astype(np.float32)"),
    ("", "kernel.compile(array).text()"),
    ("", "kernel.with_schedule([('a', 'b')])[1](array)"),
    ("", "nki.simulate(kernel, deny='bug')(array, 2.0); nki.simulate(kernel.func)(array)"),
    ("", "nki_sim.profile(kernel)(array)[1].latency_us + 1"),
    ("", "nki_sim.trace_values(kernel)(array)[1]['tile'].array.shape"),
    ("", "nki_sim.simulate_ranks(kernel, 2)([array, array])[0]"),
]

#: The same, each with a mistake.
WRONG = [
    ("tile.shpe", ""),
    ("tile.reshap((128, 8))", ""),
    ("nisa.tensor_copy(dst=3, src=tile)", ""),
    ("nisa.tensor_copy(dst=tile)", ""),
    ("nisa.tensor_copy(dst=tile, src=tile, engin=nisa.engine.vector)", ""),
    ("nisa.tensor_copy(dst=tile, src=tile, engine=nisa.reduce_cmd.idle)", ""),
    ("nisa.engine.matrix", ""),
    ("nl.softmx(tile)", ""),
    ("nl.zeros((128, 8), nl.float32, buffer='sbuf')", ""),
    ("tile.shape[0].bits", ""),
    ("for i in nl.affine_range('4'): pass", ""),
    ("", "kernel()"),
    ("", "kernel(array, 1.0, 2.0)"),
    ("", "kernel[2](array, factor=2.0)"),
    ("", "kernel['2'](array)"),
    ("", "nki.simulate(kernel)(array, scale='2')"),
    ("", "nki_sim.profile(kernel)(array)[1].latency_ms"),
]


def files(folder, statements):
    """A numbered file for each pair of statements."""
    for number, (body, after) in enumerate(statements):
        (folder / f"case{number}.py").write_text(HEAD.format(body=body or "pass") + after + "\n")


def mypy(folder):
    """The files in which mypy finds errors, with these errors."""
    # Check the bodies of kernels although they have no annotations.
    words = ["-m", "mypy", "--check-untyped-defs", "--cache-dir", os.devnull, "--no-error-summary", "--output", "json", "."]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    out = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            out.setdefault(pathlib.Path(found["file"]).stem, []).append(f"{found['line']}: {found['message']}")
    return out


def pyright(folder):
    """The files in which pyright finds errors, with these errors."""
    settings = {"include": ["."], "typeCheckingMode": "standard", "extraPaths": ["."]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    words = ["-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", "pyrightconfig.json"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    out = {}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        if found["severity"] == "error":
            line = found["range"]["start"]["line"] + 1
            out.setdefault(pathlib.Path(found["file"]).stem, []).append(f"{line}: {found['message']}")
    return out


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@CHECKERS
def test_examples_and_documents_have_no_errors(checker, tmp_path):
    for path in (ROOT / "examples").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    for page in ("README.md", "docs/python.md"):
        lines = []
        for line, text in blocks(page):
            if any(f"import {module}\n" in text and importlib.util.find_spec(module) is None for module in ("torch", "jax")):
                continue
            lines += [""] * (line - len(lines)) + text.splitlines()
        (tmp_path / (pathlib.Path(page).stem + "_page.py")).write_text("\n".join(lines) + "\n")
    assert checker(tmp_path) == {}


@CHECKERS
def test_what_is_right_is_accepted(checker, tmp_path):
    files(tmp_path, RIGHT)
    assert checker(tmp_path) == {}


@CHECKERS
def test_mistakes_are_found(checker, tmp_path):
    files(tmp_path, WRONG)
    found = checker(tmp_path)
    missed = [statements for number, statements in enumerate(WRONG) if f"case{number}" not in found]
    assert missed == []
    assert all(len(errors) == 1 for errors in found.values()), found
