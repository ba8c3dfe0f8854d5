"""A call reports the same as `nki-sim run` for kernels of tests/planted: all modes share one pipeline."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import nki_sim

FOLDER = pathlib.Path(__file__).parents[2] / "tests/planted"
HEADER = re.compile(r"((?:# .*\n)+)@nki\.jit\ndef (\w+)\(")
TENSOR = re.compile(r"(\w+)=float32\[([\d,]+)\]")


def planted(name):
    """Kernels of a file whose arguments are float32 tensors: name, shapes by argument, physical cores."""
    for comments, kernel in HEADER.findall((FOLDER / name).read_text()):
        words = re.search(r"# args: (.*)", comments)
        shapes = [TENSOR.fullmatch(word) for word in words[1].split()] if words else [None]
        if all(shapes) and "# flags: --strict" not in comments and "--max-steps" not in comments:
            yield kernel, {m[1]: [int(n) for n in m[2].split(",")] for m in shapes}, 2 if "# flags: --lnc 2" in comments else 1


def of_command(file, kernel, shapes, lnc, folder):
    """Lines and slugs that `nki-sim run` reports for zeros; None if the kernel has an error."""
    words = [word for name, shape in shapes.items() for word in ("--arg", f"{name}=float32[{','.join(map(str, shape))}]:zeros")]
    report = folder / f"{kernel}.json"
    command = [sys.executable, "-m", "nki_sim", "run", str(file), "--kernel", kernel, "--lnc", str(lnc), *words, "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return {(f["line"], f["id"]) for f in json.loads(report.read_text())["findings"]}


@pytest.mark.parametrize("name", ["uninitialized.py", "outputs.py", "lifetimes.py", "races.py"])
def test_a_call_reports_what_the_command_reports(name, tmp_path):
    spec = importlib.util.spec_from_file_location(f"planted_{name[:-3]}", FOLDER / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compared = 0
    for kernel, shapes, lnc in planted(name):
        wanted = of_command(FOLDER / name, kernel, shapes, lnc, tmp_path)
        if wanted is None:
            continue
        arrays = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        _, report = nki_sim.profile(getattr(module, kernel)[lnc])(**arrays)
        assert {(f["line"], f["id"]) for f in report.findings} == wanted, kernel
        compared += 1
    assert compared >= 3
