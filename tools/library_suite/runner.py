"""Runs the test files of the copy, one process each, and reads what tools/library_suite/plugin.py wrote about each test."""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from . import overlay

TOOLS = pathlib.Path(__file__).resolve().parent.parent

# Tests of the suite's own tools, and of several ranks on real machines, are not tests of kernels.
DEFAULT_PATHS = ["test/integration"]


@dataclasses.dataclass
class FileResult:
    """What one test file gave. `error` says why it could not be collected."""

    file: str
    collected: int = 0
    tests: list[dict] = dataclasses.field(default_factory=list)
    error: str = ""
    seconds: float = 0.0

    def line(self) -> str:
        if self.error and not self.tests:
            return f"{self.file}: not collected: {self.error}"
        passed = sum(test["status"] == "passed" for test in self.tests)
        run = sum(test["status"] != "skipped" for test in self.tests)
        return f"{self.file}: {passed} of {run} passed, {self.seconds:.0f} s"


def test_files(copy: pathlib.Path, paths: list[str]) -> list[str]:
    """The test files under the given paths of the copy, in order of name."""
    found: set[pathlib.Path] = set()
    for path in paths or DEFAULT_PATHS:
        place = copy / path
        found.update([place] if place.is_file() else place.rglob("test_*.py"))
    # test_*_common.py and the like hold helpers; pytest finds no test in them, which is no error.
    return sorted(str(file.relative_to(copy)) for file in found)


def run_file(copy: pathlib.Path, file: str, options: argparse.Namespace) -> FileResult:
    """Runs one file. A process that dies or hangs loses the test it was at; a new one goes on behind it."""
    result = FileResult(file)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nki-library-run-") as folder:
        events = pathlib.Path(folder) / "events.jsonl"
        done: set[str] = set()
        while True:
            events.write_text("")
            code, output, hung = _pytest(copy, file, options, events, done, pathlib.Path(folder))
            unfinished = _read(events, result, done)
            if unfinished is None:
                if code not in (0, 1, 5) and not result.tests:
                    result.error = _last_error(output)
                break
            reason = f"timeout after {options.timeout:.0f} s" if hung else f"the process ended with code {code}"
            result.tests.append({"id": unfinished, "status": "failed", "reason": reason, "seconds": options.timeout if hung else 0})
            done.add(unfinished)
    result.seconds = time.monotonic() - start
    return result


def _pytest(copy, file, options, events, done, folder) -> tuple[int, str, bool]:
    environment = dict(os.environ)
    more = [str(path) for path in getattr(options, "more_paths", [])]
    environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "src"), str(overlay.SHIMS), str(TOOLS), *more])
    # Sweeps draw random parameters: a fixed seed keeps the names of the tests from run to run.
    environment.update(PYTHONHASHSEED="0", NEURON_PYTHONHASHSEED="0", OMP_NUM_THREADS="1", NKI_SIM_EVENTS=str(events))
    environment["NKI_SIM_DONE"] = str(folder / "done.json")
    (folder / "done.json").write_text(json.dumps(sorted(done)))
    if options.smallest:
        environment["NKI_SIM_SMALLEST"] = str(options.smallest)
    if options.run_all:
        environment["NKILIB_SIMULATION_RUN_ALL"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "library_suite.plugin", "-p", "no:cacheprovider", "--test-mode", "simulation"]
    command += ["--platform-target", options.target, "--output-directory", str(folder / "artifacts"), "--tb=short", file]
    if getattr(options, "kernel", ""):
        environment["NKI_SIM_KERNEL"] = options.kernel
    if getattr(options, "instead", ""):
        environment["NKI_SIM_INSTEAD"] = options.instead
    if options.filter:
        command += ["-k", options.filter]
    log = folder / "output.txt"
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=copy, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        hung = _wait(process, events, options.timeout)
    return process.returncode, log.read_text(errors="replace"), hung


def _wait(process: subprocess.Popen, events: pathlib.Path, timeout: float) -> bool:
    """Waits for the process; kills it when nothing was reported for `timeout` seconds. Collection may take twice that."""
    last, size = time.monotonic(), 0
    while process.poll() is None:
        time.sleep(0.2)
        now = events.stat().st_size
        if now != size:
            last, size = time.monotonic(), now
        if time.monotonic() - last > (timeout if size else 2 * timeout):
            process.kill()
            process.wait()
            return True
    return False


def _read(events: pathlib.Path, result: FileResult, done: set[str]) -> str | None:
    """Takes over the results. Gives the test that was started and not finished, if any."""
    started = None
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "collected":
            result.collected = max(result.collected, event["count"])
        elif event["event"] == "start":
            started = event["id"]
        else:
            started = None
            done.add(event["id"])
            result.tests.append({key: event[key] for key in ("id", "status", "reason", "seconds")})
    return started


def _last_error(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith("E  ") or "Error" in line]
    return lines[-1].removeprefix("E  ").strip()[:300] if lines else "pytest could not start"
