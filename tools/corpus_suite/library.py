"""Kernels of nki-library, run through the tests of that library that call them."""

import argparse
import ast
import functools
import pathlib
import re
import tempfile
import threading

from library_suite import overlay, runner

NEEDS = """numpy ml_dtypes torch scipy pandas pytest pytest-html pytest-metadata pytest-xdist allpairspy typing_extensions fabric2 boto3
aws-embedded-metrics filelock plotext debugpy attrs nki_sim""".split()

_lock = threading.Lock()


@functools.cache
def _copy(checkout: pathlib.Path) -> tuple[pathlib.Path, tempfile.TemporaryDirectory]:
    folder = tempfile.TemporaryDirectory(prefix="nki-library-")
    copy = pathlib.Path(folder.name) / "checkout"
    overlay.make(checkout, copy)
    return copy, folder


def copy_of(sources: pathlib.Path) -> pathlib.Path:
    """The patched copy of the library's checkout, created once."""
    with _lock:
        return _copy(sources / "nki-library")[0]


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Runs the smallest two configurations of each test function in the files that name the kernel.

    The result is a pass if at least one test passes and none fails.
    """
    copy = copy_of(sources)
    files = mentioning(copy, one)
    if files:
        return run_tests(copy, files, one, timeout)
    for caller in callers(copy, one["kernel"]):
        files = mentioning(copy, {**one, "kernel": caller})
        if files:
            status, reason = run_tests(copy, files, {**one, "kernel": caller}, timeout)
            return status, f"{reason}, through {caller}, which calls it" if status == "passed" else reason
    return "failed", f"no test of the library names {one['kernel']}, or a function that calls it"


def callers(copy: pathlib.Path, kernel: str) -> list[str]:
    """The functions of the library that call the kernel, then those that call them, and so on."""
    uses: dict[str, set[str]] = {}
    for path in (copy / "src").rglob("*.py"):
        if path.stem.endswith("_torch"):
            continue
        for function in ast.parse(path.read_text()).body:
            if isinstance(function, ast.FunctionDef):
                calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
                names = {getattr(call, "id", None) or getattr(call, "attr", None) for call in calls}
                uses.setdefault(function.name, set()).update(names - {function.name})
    found: list[str] = [kernel]
    for name in found:
        found += sorted(caller for caller, names in uses.items() if name in names and caller not in found)
    return found[1:]


def revision(one: dict, sources: pathlib.Path) -> list[str]:
    """Files of the library with another revision of a kernel from another repository: the same file
    name, kernel and parameters."""
    if one["repo"] == "nki-library" or not (sources / "nki-library").is_dir() or not one["file"].endswith(".py"):
        return []
    ours = parameters(sources / one["file"], one["kernel"])
    files = sorted((sources / "nki-library" / "src").rglob(pathlib.Path(one["file"]).name))
    return [str(file) for file in files if ours and parameters(file, one["kernel"]) == ours]


def parameters(file: pathlib.Path, kernel: str) -> list[str]:
    """The parameter names of a top-level function of a file; empty if there is no such function."""
    try:
        body = ast.parse(file.read_text()).body
    except (OSError, SyntaxError):
        return []
    found = [node.args for node in body if isinstance(node, ast.FunctionDef) and node.name == kernel]
    return [one.arg for one in found[0].args + found[0].kwonlyargs] if found else []


def run_revision(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """Runs the library's tests of its own revision with this revision in its place."""
    copy = copy_of(sources)
    stem = pathlib.Path(one["file"]).stem
    modules: dict[str, list[str]] = {}
    for path in (copy / "test" / "integration").rglob("test_*.py"):
        for module in importing(path.read_text(), one["kernel"]):
            if module.split(".")[-1] == stem:
                modules.setdefault(module, []).append(str(path.relative_to(copy)))
    if not modules:
        return "skipped", "no test of nki-library imports the library's revision of it"
    other = ".".join(pathlib.Path(one["file"]).relative_to(one["repo"]).with_suffix("").parts)
    module, files = sorted(modules.items())[0]
    more = {"instead": f"{module}:{other}", "more_paths": [sources / one["repo"]]}
    status, reason = run_tests(copy, sorted(files), one, timeout, **more)
    return status, f"{reason}, those of nki-library" if status == "passed" else reason


def run_tests(copy: pathlib.Path, files: list[str], one: dict, timeout: float, **more) -> tuple[str, str]:
    options = argparse.Namespace(
        filter="", target=one.get("target") or "trn2", smallest=2, run_all=False, timeout=timeout / 2, kernel=one["kernel"], **more
    )
    results = [runner.run_file(copy, file, options) for file in files]
    tests = [test for result in results for test in result.tests]
    passed = [test for test in tests if test["status"] == "passed"]
    failed = [test for test in tests if test["status"] == "failed"]
    if failed:
        return "failed", f"{len(failed)} of {len(failed) + len(passed)} tests: {failed[0]['reason']}"
    if passed:
        return "passed", f"{len(passed)} tests"
    error = next((result.error for result in results if result.error), None)
    if error:
        return "failed", error
    return "skipped", "the library skips all tests that call it in simulation"


def mentioning(copy: pathlib.Path, one: dict) -> list[str]:
    """The test files that call the kernel.

    These are the entry's own file if it is a test, else the files that import the kernel, else
    those that name it.
    """
    file = pathlib.Path(one["file"]).relative_to("nki-library")
    if file.parts[0] == "test":
        return [str(file)]
    tests = {path: path.read_text() for path in (copy / "test" / "integration").rglob("test_*.py")}
    name = re.compile(rf"\b{re.escape(one['kernel'])}\b")
    named = [path for path, text in tests.items() if name.search(text)]
    imported = [path for path in named if importing(tests[path], one["kernel"])]
    # Replace helpers with the test files that use them.
    helpers = [path.stem for path in imported if path.stem.endswith("_common")]
    using = [path for path, text in tests.items() if any(re.search(rf"\b{helper}\b", text) for helper in helpers)]
    chosen = [path for path in imported + using if not path.stem.endswith("_common")]
    return sorted({str(path.relative_to(copy)) for path in chosen or named})


def importing(text: str, kernel: str) -> list[str]:
    """The modules of the library from which a file imports the name. (`cumsum` is also a NumPy
    function.)"""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nkilib")]
    return [node.module for node in found if any(alias.name == kernel for alias in node.names)]
