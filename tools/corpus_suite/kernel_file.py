"""Runs kernels from their file without importing it, because many files import frameworks that are
not installed."""

import ast
import json
import pathlib
import re
import subprocess
import tempfile
import textwrap

import numpy as np

from common import simulator

from . import references

NEEDS = ["numpy", "ml_dtypes"]


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    for case in references.cases(one["repo"], pathlib.Path(one["file"]).stem, one["kernel"]):
        with tempfile.TemporaryDirectory(prefix="nki-corpus-") as folder:
            problem = run_case(one, sources / one["file"], case, pathlib.Path(folder), timeout)
        if problem:
            return "failed", problem
    return "passed", ""


def run_case(one: dict, file: pathlib.Path, case: "references.Case", folder: pathlib.Path, timeout: float) -> str:
    """Returns the error, or an empty string."""
    try:
        file, names = locate(file, one["kernel"], folder)
    except (SyntaxError, LookupError) as error:
        if case.refused:
            return ""
        return f"{type(error).__name__}: {error}"
    command = [simulator.command(), "run", str(file), "--kernel", one["kernel"], "--target", one.get("target") or "trn2"]
    if command[-1] not in ("trn1", "trn2", "trn3"):
        command[-1] = "trn2"
    command += ["--json", str(folder / "report.json"), "--out", str(folder / "out")]
    # Some use the style of the older interface, but import the current one.
    command += ["--beta1"] if one["api"] == "Beta1" else []
    for name, value in [*zip(names, case.inputs), *case.named.items()]:
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            value = folder / f"{name}.npy"
        command += ["--arg", f"{name}={value}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"took more than {timeout:.0f} s"
    first_error = next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr.strip()[:200])
    if case.refused:
        return "" if done.returncode == 1 and re.search(case.refused, done.stderr) else f"expected an error ({case.refused}): {first_error or 'accepted'}"
    if done.returncode != 0:
        return first_error or f"exit code {done.returncode}"
    return compare(case, folder)


def locate(file: pathlib.Path, kernel: str, folder: pathlib.Path) -> tuple[pathlib.Path, list[str]]:
    """The file to run and the parameters of the kernel. A kernel within another function gets its
    own file, with the imports."""
    text = file.read_text()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            names = [argument.arg for argument in node.args.args]
            if node in tree.body:
                return file, names
            imports = [one for one in ast.walk(tree) if isinstance(one, (ast.Import, ast.ImportFrom)) and "nki" in ast.unparse(one).split()[1]]
            alone = folder / file.name
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            body = textwrap.dedent("\n".join(text.splitlines()[first - 1 : node.end_lineno]))
            lines = [ast.unparse(one) for one in imports if "nkipy" not in ast.unparse(one) and "neuronxcc" not in ast.unparse(one)]
            alone.write_text("\n".join([*lines, "", body, ""]))
            return alone, names
    raise LookupError(f"{file.name} has no function {kernel}")


def compare(case: "references.Case", folder: pathlib.Path) -> str:
    outputs = json.loads((folder / "report.json").read_text())["outputs"]
    expected = case.reference(*case.inputs, *case.named.values())
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for output, want in zip(outputs, expected):
        got = np.load(folder / "out" / f"{output['name']}.npy")
        if got.dtype.kind == "V":
            got = got.view(references.dtype(output["dtype"]))
        if got.shape != want.shape:
            return f"{output['name']} has shape {got.shape}, expected {want.shape}"
        got, want = got.astype(np.float64), want.astype(np.float64)
        if not np.allclose(got, want, rtol=case.rtol, atol=case.atol, equal_nan=True):
            return f"{output['name']} differs from the reference by up to {np.nanmax(np.abs(got - want)):.3g}"
    return ""
