"""Kernels for the older interface, `neuronxcc.nki`, run with nki_sim's package of that name.

- Cases of AccelOpt's NKIBench: the repository's reference provides inputs and expected outputs.
- The SDK's unit tests: the tests of the file that call the kernel.
- Other kernels run from their file, like those for the current interface.
"""

import ast
import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import kernel_file, references

# nki_sim contains the package `neuronxcc`.
NEEDS = ["numpy", "ml_dtypes", "nki_sim"]
NEEDS_OF_TESTS = [*NEEDS, "pytest"]
TOOLS = pathlib.Path(__file__).resolve().parent.parent

#: The relative error (L2) that NKIBench tolerates.
NKIBENCH_ERROR = 2e-5


def needs(one: dict) -> list[str]:
    if is_test(one):
        return NEEDS_OF_TESTS
    return NEEDS if "NKIBench" in one["file"] else kernel_file.NEEDS


def is_test(one: dict) -> bool:
    return pathlib.Path(one["file"]).name.startswith("test_")


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    root = sources / one["repo"]
    if not root.is_dir():
        return "skipped", f"there is no checkout {one['repo']} among the sources"
    with tempfile.TemporaryDirectory(prefix="nki-corpus-") as folder:
        file = source(one, sources, pathlib.Path(folder))
        if file is None:
            return "failed", f"the checkout has no file {one['file']}"
        if unfinished(file, one["kernel"]):
            return "skipped", "an exercise: the published kernel raises an exception that asks for the missing code"
        if "NKIBench" in one["file"] or is_test(one):
            return in_python(one, file, pathlib.Path(folder), timeout)
        return kernel_file.run(one, sources, timeout) if references.known(one) else ("skipped", f"no reference for {one['kernel']}")


def source(one: dict, sources: pathlib.Path, folder: pathlib.Path) -> pathlib.Path | None:
    """The file in the checkout, or in the last revision that has it."""
    file = sources / one["file"]
    if file.is_file():
        return file
    root, path = sources / one["repo"], pathlib.PurePosixPath(one["file"]).relative_to(one["repo"])
    tags = subprocess.run(["git", "tag", "--sort=-creatordate"], cwd=root, capture_output=True, text=True).stdout.split()
    for tag in tags:
        shown = subprocess.run(["git", "show", f"{tag}:{path}"], cwd=root, capture_output=True, text=True)
        if shown.returncode == 0:
            copy = folder / path.name
            copy.write_text(shown.stdout)
            return copy
    return None


def unfinished(file: pathlib.Path, kernel: str) -> bool:
    """Whether the kernel has a loop that only raises an exception: an unsolved exercise."""
    found = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef) and node.name == kernel]
    return any(isinstance(node, ast.For) and isinstance(node.body[0], ast.Raise) for one in found for node in ast.walk(one))


def in_python(one: dict, file: pathlib.Path, folder: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Tests the kernel in a separate process."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(TOOLS), str(file.parent), *filter(None, [os.environ.get("PYTHONPATH")])]))
    if is_test(one):
        # The tests expect the results of the old simulator, which computed in fp32.
        environment["NKI_PRECISE_FP"] = "0"
    target = one.get("target")
    environment["NEURON_PLATFORM_TARGET_OVERRIDE"] = target if target in ("trn1", "trn2", "trn3") else "trn2"
    answer = folder / "answer.json"
    how = "tests" if is_test(one) else "nkibench"
    command = [sys.executable, "-m", "corpus_suite.beta1", how, str(file), one["kernel"], str(answer)]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "failed", f"took more than {timeout:.0f} s"
    if not answer.exists():
        lines = done.stderr.strip().splitlines() or ["the process ended without an answer"]
        return "failed", next((line for line in lines if "error[" in line), lines[-1])[:200]
    status, reason = json.loads(answer.read_text())
    return status, reason


# --- in the process that tests a kernel ------------------------------------------------------------------------------------------------


def load(file: pathlib.Path):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def nkibench(file: str, kernel: str) -> tuple[str, str]:
    import neuronxcc.nki as nki
    import numpy as np

    path = pathlib.Path(file)
    case = path.stem.rpartition("_")[0]
    found = sorted(path.parent.parent.glob(f"reference/{case}_numpy*.py"))
    if not found:
        return "skipped", f"no reference for {case}"
    reference = load(found[0])
    np.random.seed(0)
    inputs = reference.get_inputs()
    tiled = reference.transform_to_nki_inputs(inputs) if hasattr(reference, "transform_to_nki_inputs") else inputs
    outputs = nki.baremetal(getattr(load(path), kernel))(*tiled)
    expected = reference.forward(*inputs)
    got = reference.transform_nki_outputs(outputs, expected)
    several = lambda value: list(value) if isinstance(value, (tuple, list)) else [value]
    for number, (have, want) in enumerate(zip(several(got), several(expected), strict=True)):
        error = np.linalg.norm(have.astype(np.float64) - want) / np.linalg.norm(want)
        if have.shape != want.shape or not error < NKIBENCH_ERROR:
            return "failed", f"output {number}: relative error {error:.3g}, shape {have.shape}, expected {want.shape}"
    return "passed", ""


def tests(file: str, kernel: str) -> tuple[str, str]:
    import pytest
    from nki_sim._beta1 import Beta1Kernel

    from .own import Outcomes

    called: set[str] = set()
    call = Beta1Kernel.__call__

    @functools.wraps(call)
    def noted(self, *args, **kwargs):
        called.add(self.__name__)
        return call(self, *args, **kwargs)

    Beta1Kernel.__call__ = noted

    class OfKernel(Outcomes):
        """Ignores the tests of the file that do not call the kernel."""

        def pytest_runtest_logreport(self, report):
            if kernel in called:
                super().pytest_runtest_logreport(report)

    outcomes = OfKernel(called, kernel)
    pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", ".", file], plugins=[outcomes])
    if outcomes.failed:
        return "failed", outcomes.failed[:300]
    return ("passed", f"{outcomes.passed} tests of its own") if outcomes.passed else ("failed", outcomes.other[:300])


if __name__ == "__main__":
    how, file, kernel, answer = sys.argv[1:]
    pathlib.Path(answer).write_text(json.dumps({"tests": tests, "nkibench": nkibench}[how](file, kernel)))
