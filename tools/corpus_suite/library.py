"""Kernels of nki-library, through the tests of that library which call them."""

import argparse
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


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """The smallest two configurations of each test function in the files that name the kernel. One that passes and none that fails is a pass."""
    with _lock:
        copy, _ = _copy(sources / "nki-library")
    files = mentioning(copy, one)
    if not files:
        return "failed", f"no test of the library names {one['kernel']}"
    options = argparse.Namespace(
        filter="", target=one.get("target") or "trn2", smallest=2, run_all=False, timeout=timeout / 2, kernel=one["kernel"]
    )
    results = [runner.run_file(copy, file, options) for file in files]
    tests = [test for result in results for test in result.tests]
    passed = [test for test in tests if test["status"] == "passed"]
    failed = [test for test in tests if test["status"] == "failed"]
    if failed:
        return "failed", f"{len(failed)} of {len(failed) + len(passed)} tests: {failed[0]['reason']}"
    if passed:
        return "passed", f"{len(passed)} tests"
    error = next((result.error for result in results if result.error), "the tests that call it are all left out by the library in simulation")
    return "failed", error


def mentioning(copy: pathlib.Path, one: dict) -> list[str]:
    """The test files that call the kernel: the entry's own file if it is a test, else those that import it by name."""
    file = pathlib.Path(one["file"]).relative_to("nki-library")
    if file.parts[0] == "test":
        return [str(file)]
    name = re.compile(rf"\b{re.escape(one['kernel'])}\b")
    found = [path for path in (copy / "test" / "integration").rglob("test_*.py") if name.search(path.read_text())]
    return sorted(str(path.relative_to(copy)) for path in found)
