"""Kernels without a reference in this repository: runs the kernel repository's own check with our
`nki` instead of the official one.

A check is the kernel's file itself, or a file that imports it, if it compares something: tests, or
a program. A pass requires a check that calls the kernel and finds no error.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NEEDS = ["numpy", "ml_dtypes", "nki_sim", "pytest"]
TOOLS = pathlib.Path(__file__).resolve().parent.parent
COMPARES = re.compile(r"\bassert\b|allclose|assert_")
MOST = 3


def run(one: dict, sources: pathlib.Path, timeout: float) -> tuple[str, str]:
    """The first check with a result for the kernel decides."""
    why = f"no reference for {one['kernel']} of {one['file']}, and no check of its own"
    for check in checks(sources / one["repo"], sources / one["file"], one["kernel"]):
        status, reason = run_check(check, sources / one["repo"], one, timeout)
        if status != "skipped":
            return status, f"{reason} ({check.name})"
        why = f"no reference for {one['kernel']}, and its own check {check.name} says nothing here: {reason}"
    return "skipped", why


def checks(root: pathlib.Path, file: pathlib.Path, kernel: str) -> list[pathlib.Path]:
    """The file itself, then the files that import it and name the kernel; at most a few."""
    found = []
    others = sorted(path for path in root.rglob("*.py") if path != file) if file.suffix == ".py" else []
    for path in [file, *others]:
        text = path.read_text(errors="replace")
        runs = re.search(r"^def test_|^class Test|__main__", text, re.M)
        imports = path == file or re.search(rf"(import|from)\s.*\b{re.escape(file.stem)}\b", text)
        if runs and imports and COMPARES.search(text) and re.search(rf"\b{re.escape(kernel)}\b", text):
            found.append(path)
    return found[:MOST]


def run_check(check: pathlib.Path, root: pathlib.Path, one: dict, timeout: float) -> tuple[str, str]:
    environment = dict(os.environ, NEURON_PLATFORM_TARGET_OVERRIDE=one.get("target") or "trn2")
    packages = sorted(path for path in root.glob("**/src") if path.is_dir())
    places = [TOOLS, root, *packages, check.parent, (root.parent / one["file"]).parent]
    environment["PYTHONPATH"] = os.pathsep.join(map(str, [*places, os.environ.get("PYTHONPATH", "")]))
    with tempfile.TemporaryDirectory(prefix="nki-corpus-") as folder:
        answer = pathlib.Path(folder) / "answer.json"
        command = [sys.executable, "-m", "corpus_suite.own", str(check), one["kernel"], str(answer)]
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return "failed", f"took more than {timeout:.0f} s"
        if not answer.exists():
            return "skipped", (done.stderr.strip().splitlines() or ["the process ended without an answer"])[-1][:200]
        status, reason = json.loads(answer.read_text())
    return status, reason


# --- within the process that runs the check ---------------------------------------------------


class Outcomes:
    """A pytest plugin: collects the outcomes of the tests that call the kernel."""

    def __init__(self, called: set, kernel: str):
        self.called, self.kernel = called, kernel
        self.passed, self.failed, self.other = 0, "", "no test of it calls the kernel"

    def pytest_runtest_logstart(self):
        self.called.clear()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            text = str(report.longrepr)
            lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
            line = " ".join([one for one in lines or text.splitlines() if one][:3])
            if self.kernel in self.called or "error[" in text:
                found = re.search(r"error\[[^\n]*", text)
                self.failed = found.group(0) if found else line
            else:
                self.other = line
        elif report.when == "call" and report.passed and self.kernel in self.called:
            self.passed += 1

    def pytest_collectreport(self, report):
        if report.failed:
            self.other = str(report.longrepr).strip().splitlines()[-1].removeprefix("E").strip()


def judge(file: str, kernel: str) -> tuple[str, str]:
    import nki_sim

    nki_sim.install()
    called: set[str] = set()
    call = nki_sim.Kernel.__call__

    def noting(self, *arguments, **named):
        # A kernel that another kernel calls is part of it.
        if not nki_sim._native.is_tracing():
            called.add(getattr(self.func, "__name__", ""))
        return call(self, *arguments, **named)

    nki_sim.Kernel.__call__ = noting
    if re.search(r"^def test_|^class Test", pathlib.Path(file).read_text(errors="replace"), re.M):
        import pytest

        outcomes = Outcomes(called, kernel)
        pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", ".", file], plugins=[outcomes])
        if outcomes.failed:
            return "failed", outcomes.failed[:300]
        return ("passed", f"{outcomes.passed} tests of its own") if outcomes.passed else ("skipped", outcomes.other[:300])
    import runpy

    sys.argv = [file]
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0) and kernel in called:
            return "failed", f"its own program ends with {end.code}"
    except (AssertionError, nki_sim.KernelError) as error:
        if kernel in called:
            return "failed", (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        return "skipped", f"{type(error).__name__}: {error}"[:300]
    except Exception as error:
        return "skipped", f"{type(error).__name__}: {error}"[:300]
    return ("passed", "its own program") if kernel in called else ("skipped", "it does not call the kernel")


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_text(json.dumps(judge(sys.argv[1], sys.argv[2])))
