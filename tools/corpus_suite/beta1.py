"""Kernels for the older interface, `neuronxcc.nki`.

- Cases of AccelOpt's NKIBench: the repository's reference gives inputs and expected outputs.
- The SDK's unit tests: the tests of the file run with a stand-in for `neuronxcc`, whose kernels call
  the command.
- Other kernels run from their file, as those of the current interface do.
"""

import ast
import importlib.util
import inspect
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import ml_dtypes
import numpy as np

from common import simulator

from . import kernel_file, references

NEEDS = ["numpy", "ml_dtypes"]
NEEDS_OF_TESTS = [*NEEDS, "pytest"]
TOOLS = pathlib.Path(__file__).resolve().parent.parent


def needs(one: dict) -> list[str]:
    return NEEDS_OF_TESTS if is_test(one) else NEEDS


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
        if "NKIBench" in one["file"]:
            return nkibench(one, file, pathlib.Path(folder), timeout)
        if is_test(one):
            return unit_tests(one, file, pathlib.Path(folder), timeout)
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


# --- NKIBench --------------------------------------------------------------------------------------------------------------------------


def nkibench(one: dict, file: pathlib.Path, folder: pathlib.Path, timeout: float) -> tuple[str, str]:
    case = file.stem.rpartition("_")[0]
    found = sorted(file.parent.parent.glob(f"reference/{case}_numpy*.py"))
    if not found:
        return "skipped", f"no reference for {case}"
    spec = importlib.util.spec_from_file_location("reference", found[0])
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    np.random.seed(0)
    inputs = reference.get_inputs()
    tiled = reference.transform_to_nki_inputs(inputs) if hasattr(reference, "transform_to_nki_inputs") else inputs
    kernel = next(node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef) and node.name == one["kernel"])
    names = [argument.arg for argument in kernel.args.args]
    try:
        outputs = list(call(file, one["kernel"], dict(zip(names, tiled)), folder, timeout, one.get("target")).values())
    except RuntimeError as error:
        return "failed", str(error).splitlines()[0]
    expected = reference.forward(*inputs)
    got = reference.transform_nki_outputs(outputs[0] if len(outputs) == 1 else tuple(outputs), expected)
    several = lambda value: list(value) if isinstance(value, (tuple, list)) else [value]
    for number, (have, want) in enumerate(zip(several(got), several(expected), strict=True)):
        error = np.linalg.norm(have.astype(np.float64) - want) / np.linalg.norm(want)
        if have.shape != want.shape or not error < 2e-5:
            return "failed", f"output {number}: relative error {error:.3g}, shape {have.shape}, expected {want.shape}"
    return "passed", ""


def call(file, kernel, arguments, folder, timeout, target=None, grid="") -> dict:
    """Runs a kernel and returns its outputs by name."""
    command = [simulator.command(), "run", str(file), "--kernel", kernel, "--target", target if target in ("trn1", "trn2", "trn3") else "trn2"]
    command += ["--json", str(folder / "report.json"), "--out", str(folder / "out")]
    command += ["--programs", grid] if grid else []
    for name, value in arguments.items():
        if isinstance(value, (np.ndarray, np.generic)) and np.ndim(value):
            path = folder / f"{name}.npy"
            kind = f":{value.dtype.name}" if value.dtype.kind == "V" or value.dtype.name.startswith(("float8", "bfloat16")) else ""
            plain = np.ascontiguousarray(value)
            np.save(path, plain.view(f"V{value.dtype.itemsize}") if kind else plain)
            value = f"{path}{kind}"
        elif isinstance(value, np.generic):
            value = value.item()
        command += ["--arg", f"{name}={value if isinstance(value, str) and value.startswith(str(folder)) else repr(value)}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RuntimeError(next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr.strip()[:300]) or "failed")
    outputs = {}
    for output in json.loads((folder / "report.json").read_text())["outputs"]:
        array = np.load(folder / "out" / f"{output['name']}.npy")
        outputs[output["name"]] = array.view(references.dtype(output["dtype"])) if array.dtype.kind == "V" else array
    return outputs


# --- unit tests, with a stand-in for neuronxcc --------------------------------------------------------------------------------------


def unit_tests(one: dict, file: pathlib.Path, folder: pathlib.Path, timeout: float) -> tuple[str, str]:
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(TOOLS), str(file.parent)]), NKI_SIM=simulator.command())
    answer = folder / "answer.json"
    command = [sys.executable, "-m", "corpus_suite.beta1", str(file), one["kernel"], str(answer)]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "failed", f"took more than {timeout:.0f} s"
    if not answer.exists():
        return "failed", (done.stderr.strip().splitlines() or ["the process ended without an answer"])[-1][:200]
    status, reason = json.loads(answer.read_text())
    return status, reason


CALLED: set[str] = set()


class Cores:
    """`nl.nc(2)`, alone or times a number."""

    def __init__(self, text):
        self.text = text

    def __mul__(self, number):
        return Cores(f"{self.text}*{number}")

    def __rmul__(self, number):
        return Cores(f"{number}*{self.text}")

    def __str__(self):
        return self.text


class Kernel:
    """A kernel that the command runs."""

    def __init__(self, func, grid=()):
        self.func, self.grid = func, grid
        self.__name__ = func.__name__

    def __getitem__(self, grid):
        return Kernel(self.func, grid if isinstance(grid, tuple) else (grid,))

    def __call__(self, *positional, **named):
        CALLED.add(self.__name__)
        bound = inspect.signature(self.func).bind(*positional, **named).arguments
        with tempfile.TemporaryDirectory() as folder:
            grid = ",".join(str(axis) for axis in self.grid)
            outputs = call(inspect.getsourcefile(self.func), self.__name__, bound, pathlib.Path(folder), None, "trn2", grid)
        if outputs and all(name in bound for name in outputs):
            for name, array in outputs.items():
                bound[name][...] = array
            return None
        return next(iter(outputs.values())) if len(outputs) == 1 else tuple(outputs.values())


def wrap(func=None, **_options):
    if func is None:
        return wrap
    return func if isinstance(func, Kernel) else Kernel(func)


class Names(types.ModuleType):
    """A module whose other names stand for themselves: only kernels use them, which do not run here."""

    __path__: list = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(ml_dtypes, name, None) or getattr(np, name, None) or types.SimpleNamespace(name=name)


class Annotation:
    def __class_getitem__(cls, _shape):
        return cls


def install():
    package = {name: Names(name) for name in (
        "neuronxcc", "neuronxcc.nki", "neuronxcc.nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.isa.constants",
        "neuronxcc.nki.typing", "neuronxcc.nki.compiler",
    )}
    nki, language = package["neuronxcc.nki"], package["neuronxcc.nki.language"]
    for name in ("jit", "trace", "baremetal", "benchmark", "profile"):
        setattr(nki, name, wrap)
    nki.simulate_kernel = lambda kernel, *positional, **named: wrap(kernel)(*positional, **named)
    language.nc = lambda cores: Cores(f"nc{cores}")
    language.spmd_dim = lambda outer, inner: Cores(f"{outer}*{inner}")
    language.static_cast = lambda array, dtype: array.astype(dtype)
    language.tile_size = types.SimpleNamespace(pmax=128, psum_fmax=512, gemm_stationary_fmax=128, gemm_moving_fmax=512, bn_stats_fmax=512)
    language.fp32 = types.SimpleNamespace(min=np.finfo(np.float32).min)
    for name in ("tensor", "mutable_tensor", "scalar"):
        setattr(package["neuronxcc.nki.typing"], name, Annotation)
    package["neuronxcc.nki.compiler"].skip_middle_end_transformations = wrap
    for path, module in package.items():
        sys.modules[path] = module
        parent, _, name = path.rpartition(".")
        if parent:
            setattr(package[parent], name, module)


def judge(file: str, kernel: str) -> tuple[str, str]:
    from .own import Outcomes

    install()
    import pytest

    class OfKernel(Outcomes):
        """The other tests of the file say nothing of the kernel."""

        def pytest_runtest_logreport(self, report):
            if kernel in CALLED:
                super().pytest_runtest_logreport(report)

    outcomes = OfKernel(CALLED, kernel)
    pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", ".", file], plugins=[outcomes])
    if outcomes.failed:
        return "failed", outcomes.failed[:300]
    return ("passed", f"{outcomes.passed} tests of its own") if outcomes.passed else ("failed", outcomes.other[:300])


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_text(json.dumps(judge(sys.argv[1], sys.argv[2])))
