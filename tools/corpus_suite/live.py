"""Kernels that import nki-library, run in a Python process with that library against a NumPy
reference."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from . import library, references

# nki_sim is for the kernel; the other packages are for the library's modules.
NEEDS = ["numpy", "ml_dtypes", "nki_sim"]
TOOLS = pathlib.Path(__file__).resolve().parent.parent


def is_for(file: pathlib.Path) -> bool:
    """Whether a kernel's file imports nki-library."""
    return bool(re.search(r"^\s*(from|import) nkilib", file.read_text(errors="replace"), re.M)) if file.is_file() else False


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Runs every case of the kernel in its own process."""
    file = pathlib.Path(one["file"])
    if not (sources / "nki-library").is_dir():
        return "skipped", "it imports nki-library, which is not among the sources"
    copy = library.copy_of(sources)
    environment = dict(os.environ, NEURON_PLATFORM_TARGET_OVERRIDE=one.get("target") or "trn2")
    environment["PYTHONPATH"] = os.pathsep.join([str(TOOLS), str(copy / "src"), str(sources / one["repo"])])
    module = ".".join(file.relative_to(one["repo"]).with_suffix("").parts)
    with tempfile.TemporaryDirectory(prefix="nki-corpus-") as folder:
        answer = pathlib.Path(folder) / "answer.json"
        command = [sys.executable, "-m", "corpus_suite.live", one["repo"], file.stem, module, one["kernel"], str(answer)]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return "failed", f"took more than {timeout:.0f} s"
        if not answer.exists():
            lines = done.stderr.strip().splitlines() or ["the process ended without an answer"]
            return "failed", next((line for line in lines if line.startswith("error")), lines[-1])[:300]
        problems = json.loads(answer.read_text())
    return ("failed", problems[0]) if problems else ("passed", "")


def compare(case: "references.Case", results) -> list[str]:
    import numpy as np

    got = list(results) if isinstance(results, (list, tuple)) else [results]
    want = case.reference(*case.inputs, *case.named.values())
    want = list(want) if isinstance(want, tuple) else [want]
    if len(got) != len(want):
        return [f"{len(got)} outputs, expected {len(want)}"]
    problems = []
    for index, (one, other) in enumerate(zip(got, want)):
        if one.shape != other.shape:
            problems.append(f"output {index} has shape {one.shape}, expected {other.shape}")
            continue
        one, other = one.astype(np.float64), other.astype(np.float64)
        if not np.allclose(one, other, rtol=case.rtol, atol=case.atol, equal_nan=True):
            problems.append(f"output {index} differs from the reference by up to {np.nanmax(np.abs(one - other)):.3g}")
    return problems


def main(repository: str, file: str, module: str, kernel: str, answer: str) -> None:
    import importlib

    import nki_sim

    function = getattr(importlib.import_module(module), kernel)
    problems = []
    for case in references.cases(repository, file, kernel):
        results = nki_sim.simulate(function)[case.lnc](*case.inputs, **case.named)
        problems += compare(case, results)
    pathlib.Path(answer).write_text(json.dumps(problems))


if __name__ == "__main__":
    main(*sys.argv[1:])
