"""Kernels of nki-library, through the tests of that library which call them."""

import argparse
import ast
import functools
import pathlib
import re
import tempfile
import threading

from library_suite import overlay, runner

NEEDS = """numpy ml_dtypes torch scipy pandas pytest pytest-html pytest-metadata allpairspy typing_extensions fabric2 boto3
aws-embedded-metrics filelock plotext debugpy attrs nki_sim""".split()

_lock = threading.Lock()


@functools.cache
def _copy(checkout: pathlib.Path) -> tuple[pathlib.Path, tempfile.TemporaryDirectory]:
    folder = tempfile.TemporaryDirectory(prefix="nki-library-")
    copy = pathlib.Path(folder.name) / "checkout"
    overlay.make(checkout, copy)
    return copy, folder


def copy_of(sources: pathlib.Path) -> pathlib.Path:
    """The patched copy of the library's checkout, made once."""
    with _lock:
        return _copy(sources / "nki-library")[0]


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """The smallest two configurations of each test function in the files that name the kernel. One that passes and none that fails is a pass."""
    copy = copy_of(sources)
    files = mentioning(copy, one)
    if not files:
        return "failed", f"no test of the library names {one['kernel']}"
    return run_tests(copy, files, one, timeout)


# Kernels of other repositories that are another revision of one of the library's, with the same parameters: the library's tests are theirs.
# By repository and file: module of the library, module of the other.
REVISIONS = {
    ("nki-moe-megakernel", "nki_kernels/attention/attention_block_tkg.py"): (
        "nkilib_src.nkilib.experimental.transformer.attention_block_tkg",
        "nki_kernels.attention.attention_block_tkg",
    ),
}


def revision(one: dict) -> tuple[str, str] | None:
    """The modules of a kernel that is another revision of one of the library's."""
    return REVISIONS.get((one["repo"], one["file"].removeprefix(one["repo"] + "/")))


def run_revision(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """The library's tests of its own revision, with this one in its place."""
    if not (sources / "nki-library").is_dir():
        return "skipped", "its tests are those of nki-library, which is not among the sources"
    copy = copy_of(sources)
    module, other = revision(one)
    files = [path.relative_to(copy) for path in (copy / "test" / "integration").rglob("test_*.py") if f"from {module} import" in path.read_text()]
    if not files:
        return "failed", f"no test of the library imports {module}"
    more = {"instead": f"{module}:{other}", "more_paths": [sources / one["repo"]]}
    status, reason = run_tests(copy, sorted(map(str, files)), one, timeout, **more)
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
    return "skipped", "the tests that call it are all left out by the library in simulation"


def mentioning(copy: pathlib.Path, one: dict) -> list[str]:
    """The test files that call the kernel: the entry's own file if it is a test, else those that import it, else those that name it."""
    file = pathlib.Path(one["file"]).relative_to("nki-library")
    if file.parts[0] == "test":
        return [str(file)]
    tests = {path: path.read_text() for path in (copy / "test" / "integration").rglob("test_*.py")}
    name = re.compile(rf"\b{re.escape(one['kernel'])}\b")
    named = [path for path, text in tests.items() if name.search(text)]
    imported = [path for path in named if imports(tests[path], one["kernel"])]
    # Helpers of several test files: those are meant.
    helpers = [path.stem for path in imported if path.stem.endswith("_common")]
    using = [path for path, text in tests.items() if any(re.search(rf"\b{helper}\b", text) for helper in helpers)]
    chosen = [path for path in imported + using if not path.stem.endswith("_common")]
    return sorted({str(path.relative_to(copy)) for path in chosen or named})


def imports(text: str, kernel: str) -> bool:
    """Whether a file imports the name from the library: `cumsum` is also NumPy's."""
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nkilib")]
    return any(alias.name == kernel for node in found for alias in node.names)
