"""Runs the test files of the copy, one process each, and reads the results that
tools/library_suite/plugin.py writes."""

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

# Only tests of kernels: neither tests of the suite's own tools nor tests of several ranks on real
# machines.
DEFAULT_PATHS = ["test/integration"]


@dataclasses.dataclass
class FileResult:
    """The result of one test file. `error` is the reason if the file could not be collected."""

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
    """The test files under the given paths of the copy, sorted by name."""
    found: set[pathlib.Path] = set()
    for path in paths or DEFAULT_PATHS:
        place = copy / path
        found.update([place] if place.is_file() else place.rglob("test_*.py"))
    # test_*_common.py and similar files hold helpers; a file without tests is not an error.
    return sorted(str(file.relative_to(copy)) for file in found)


#: Seconds of one core for collecting the tests of all files.
COLLECTION = 900


def candidates(copy: pathlib.Path, files: list[str], options: argparse.Namespace) -> tuple[dict[str, list[str]], int, dict[str, str]]:
    """The tests of each file that the suite does not skip, the number of all tests, and why a file
    could not be collected."""
    found: dict[str, list[str]] = {file: [] for file in files}
    errors: dict[str, str] = {}
    count = 0
    with tempfile.TemporaryDirectory(prefix="nki-library-run-") as folder:
        events = pathlib.Path(folder) / "events.jsonl"
        events.write_text("")
        patient = argparse.Namespace(**{**vars(options), "timeout": COLLECTION})
        variables = {"NKI_SIM_COLLECT": "1", "PYTEST_ADDOPTS": "--continue-on-collection-errors"}
        _, output, _ = _pytest(copy, files, patient, events, set(), pathlib.Path(folder), variables)
        collected = [json.loads(line) for line in events.read_text().splitlines()]
    for event in collected:
        if event["event"] == "refused":
            errors[f"test/{event['id'].split('::')[0]}"] = event["reason"]
            continue
        count += event["count"]
        for test in event["candidates"]:
            found[f"test/{test.split('::')[0]}"].append(test)
    if not any(event["event"] == "collected" for event in collected):
        errors["all files"] = _last_error(output)
    return found, count, errors


def run_file(copy: pathlib.Path, file: str, options: argparse.Namespace) -> FileResult:
    """Runs one file. If a process dies or hangs, its current test fails, and a new process
    continues after that test.

    With a second frontend (`options.also`), each test tells whether that one makes the same program;
    if it does not, the test runs with it, too. A test whose result differs runs once more with
    unwritten memory as zero, which tells whether it depends on memory that the kernel never writes.
    """
    result = _run(copy, file, options, {})
    also = getattr(options, "also", None)
    if also is not None:
        again = _again(copy, file, options, [test for test in result.tests if not _agrees(test)], {"NKI_COMPILER_FRONTEND": also})
        for test in result.tests:
            test[also] = _outcome(test) if _agrees(test) else again[test["id"]]
    differing = [test for test in result.tests if test["reason"] == DIFFERS]
    again = _again(copy, file, options, differing, {"NKI_SIM_UNWRITTEN": "zero"})
    for test in differing:
        test[ZERO] = again[test["id"]]
    return result


#: The reason of a test whose kernel runs and whose result is not that of the reference
#: (plugin.py::classify).
DIFFERS = "result differs from the reference"

#: The entry of a test with its outcome with unwritten memory as zero.
ZERO = "unwritten as zero"


def _again(copy: pathlib.Path, file: str, options: argparse.Namespace, tests: list[dict], variables: dict[str, str]) -> dict[str, dict]:
    """The outcomes of these tests with these environment variables."""
    if not tests:
        return {}
    chosen = argparse.Namespace(**{**vars(options), "kept": [], "also": None, "chosen": {test["id"] for test in tests}})
    found = {test["id"]: _outcome(test) for test in _run(copy, file, chosen, variables).tests}
    return {test["id"]: found.get(test["id"], {"status": "failed", "reason": "not run"}) for test in tests}


def _outcome(test: dict) -> dict[str, str]:
    return {"status": test["status"], "reason": test["reason"]}


def _agrees(test: dict) -> bool:
    """Whether the outcome of a test is that of the other frontend, too: the programs are equal, or the
    test ended before it came to a kernel."""
    if test["compared"]:
        return all(one["same"] for one in test["compared"])
    return test["status"] == "skipped" or "before the simulation" in test["reason"]


def _run(copy: pathlib.Path, file: str, options: argparse.Namespace, variables: dict[str, str]) -> FileResult:
    """Runs one file with these environment variables."""
    result = FileResult(file)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nki-library-run-") as folder:
        events = pathlib.Path(folder) / "events.jsonl"
        # Reuse the results of another run for tests that this run selects, too.
        kept = {test["id"]: test for test in getattr(options, "kept", []) if test["id"].split("::")[0] == file.removeprefix("test/")}
        done: set[str] = set(kept)
        while True:
            events.write_text("")
            code, output, hung = _pytest(copy, [file], options, events, done, pathlib.Path(folder), variables)
            unfinished, drawn, compared = _read(events, result, done, kept)
            if unfinished is None:
                if code not in (0, 1, 5) and not result.tests:
                    result.error = _last_error(output)
                break
            at = (pathlib.Path(folder) / "phase.txt").read_text()
            reason = f"timeout after {options.timeout:.0f} s, {at}" if hung else f"the process ended with code {code}, {at}"
            seconds = {"seconds": options.timeout if hung else 0, "simulated": 0}
            result.tests.append({"id": unfinished, "drawn": drawn, "status": "failed", "reason": reason, "compared": compared, **seconds})
            done.add(unfinished)
    result.seconds = time.monotonic() - start
    return result


def _pytest(copy, test_files, options, events, done, folder, variables) -> tuple[int, str, bool]:
    environment = {**os.environ, **variables}
    more = [str(path) for path in getattr(options, "more_paths", [])]
    environment["PYTHONPATH"] = os.pathsep.join([str(copy), str(copy / "src"), str(overlay.SHIMS), str(TOOLS), *more])
    # Sweeps draw random parameters: a fixed seed keeps the names of the tests from run to run.
    environment.update(PYTHONHASHSEED="0", NEURON_PYTHONHASHSEED="0", NKI_SIM_EVENTS=str(events))
    # Files that run concurrently share the cores: one thread each. Processor time then equals the
    # time on an idle machine.
    environment.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")
    environment["NKI_SIM_DONE"] = str(folder / "done.json")
    (folder / "done.json").write_text(json.dumps(sorted(done)))
    environment["NKI_SIM_PHASE"] = str(folder / "phase.txt")
    environment["NKI_SIM_SMALLEST"] = str(options.smallest or 0)
    environment["NKI_SIM_SAMPLE"] = str(getattr(options, "sample", None) or 0)
    environment["NKI_SIM_SEED"] = str(getattr(options, "seed", 0))
    if getattr(options, "chosen", None) is not None:
        environment["NKI_SIM_CHOSEN"] = str(folder / "chosen.json")
        (folder / "chosen.json").write_text(json.dumps(sorted(options.chosen)))
    if getattr(options, "also", None):
        environment["NKI_SIM_ALSO"] = options.also
    if options.run_all:
        environment["NKILIB_SIMULATION_RUN_ALL"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "library_suite.plugin", "-p", "no:cacheprovider", "--test-mode", "simulation"]
    command += ["--platform-target", options.target, "--output-directory", str(folder / "artifacts"), "--force-local-cleanup", "--tb=short", *test_files]
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
    """Waits for the process, and kills it if a test exceeds its limit. Collection may take twice as
    long. Returns whether it was killed.

    The limit applies to processor time, so that other load on the machine fails no test. A process
    that uses no processor time gets ten times as long.
    """
    start, used, size = time.monotonic(), 0.0, 0
    while process.poll() is None:
        time.sleep(0.2)
        now, spent = events.stat().st_size, _processor_seconds(process)
        if now != size:
            start, used, size = time.monotonic(), spent, now
        limit = timeout if size else 2 * timeout
        if spent - used > limit or time.monotonic() - start > 10 * limit:
            process.kill()
            process.wait()
            return True
    return False


def _processor_seconds(process: subprocess.Popen) -> float:
    """Processor time of the process over all cores; the time of day on systems other than Linux,
    which do not report it."""
    try:
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read(events: pathlib.Path, result: FileResult, done: set[str], kept: dict[str, dict]) -> tuple[str | None, bool, list[dict]]:
    """Adds the results, and those of `kept` that are selected. Returns the test that was started
    and not finished, if any, whether it was drawn, and its programs of both frontends."""
    started, drawn, compared = None, False, []
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "collected":
            result.collected = max(result.collected, event["count"])
            for chosen, drawn in event["chosen"].items():
                if chosen in kept:
                    result.tests.append({**kept.pop(chosen), "drawn": drawn})
        elif event["event"] == "start":
            started, drawn, compared = event["id"], event["drawn"], []
        elif event["event"] == "compared":
            compared.append({key: event[key] for key in ("same", "found", "seconds")})
        else:
            started = None
            done.add(event["id"])
            finished = {key: event[key] for key in ("id", "status", "reason", "seconds", "simulated")}
            result.tests.append({"drawn": drawn, **finished, "compared": compared})
    return started, drawn, compared


def _last_error(output: str) -> str:
    lines = [line for line in output.splitlines() if line.startswith("E  ") or "Error" in line]
    return lines[-1].removeprefix("E  ").strip()[:300] if lines else "pytest could not start"
