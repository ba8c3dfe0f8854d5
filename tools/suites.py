#!/usr/bin/env python3
"""Runs test suites of other projects unchanged, with this package as `nki`.

    python tools/suites.py CHECKOUT TESTS... [--json OUT]

CHECKOUT is a clone; TESTS are folders or files in it. The suite runs under this Python, which needs
nki_sim, pytest and the packages that the suite imports. The results are appended to OUT, which may
hold those of other suites.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

TOOLS = pathlib.Path(__file__).resolve().parent

#: Replaces modules that exist only on a machine with the hardware: importing works, and every name
#: is an empty class.
PLUGIN = """
import sys, types
for name in {modules!r}:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        try:
            __import__(path)
        except ImportError:
            module = sys.modules[path] = types.ModuleType(path)
            module.__path__ = []
            module.__getattr__ = lambda attribute: type(attribute, (), {{}})
"""


def run(options) -> dict:
    """Runs one suite and returns its entry for the page."""
    with tempfile.TemporaryDirectory() as scratch:
        results = pathlib.Path(scratch, "results.xml")
        pathlib.Path(scratch, "absent_modules.py").write_text(PLUGIN.format(modules=options.absent))
        ours = [str(TOOLS / "shims"), str(TOOLS)] if options.plugin else []
        path = os.pathsep.join([scratch, *ours, str(options.checkout), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "absent_modules", "--continue-on-collection-errors"]
        if options.plugin:
            # A configuration of its own: that of the suite would find its own package before the shim.
            configuration = pathlib.Path(scratch, "pytest.ini")
            configuration.write_text("[pytest]\n")
            command += ["-c", str(configuration), "--rootdir", str(options.checkout), "-p", options.plugin]
        command += ["-m", options.mark] if options.mark else []
        command += [f"--junitxml={results}", *options.tests]
        environment = {**os.environ, "PYTHONPATH": path}
        if options.capacity:
            environment["NKI_SIM_CAPACITY"] = options.capacity
        if options.frontend:
            environment["NKI_COMPILER_FRONTEND"] = options.frontend
        subprocess.run(command, cwd=options.checkout, env=environment, check=False)
        cases = list(tree.parse(results).getroot().iter("testcase"))
    count, reasons = collections.Counter(), collections.Counter()
    for case in cases:
        status = next((kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None), "passed")
        count[status] += 1
        if status in ("failure", "error"):
            reasons[reason(case.find(status))] += 1
    commit = subprocess.run(["git", "-C", options.checkout, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "name": options.checkout.resolve().name,
        "commit": commit.stdout.strip(),
        "tests": options.tests,
        "mark": options.mark,
        "absent": options.absent,
        "plugin": options.plugin,
        "capacity": options.capacity,
        "frontend": options.frontend,
        "passed": count["passed"],
        "failed": count["failure"] + count["error"],
        "skipped": count["skipped"],
        "failed_by_reason": dict(reasons.most_common()),
    }


def reason(failure) -> str:
    """The reason for the failure of a test: the slug of a diagnostic, or the first line."""
    text = (failure.get("message") or "") + (failure.text or "")
    _, found, slug = text.partition("error[")
    return slug.partition("]")[0] if found else text.strip().splitlines()[0][:70]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("tests", nargs="+", help="folders or files of the checkout")
    parser.add_argument("--mark", help="only tests with this mark, as for `pytest -m`")
    parser.add_argument("--absent", nargs="*", default=[], metavar="MODULE", help="modules for the hardware that the suite imports and does not need")
    parser.add_argument("--plugin", metavar="MODULE", help="a plugin of pytest in tools/, with the modules of tools/shims before those of the suite")
    parser.add_argument("--capacity", choices=["warn", "error"], help="NKI_SIM_CAPACITY of the run")
    parser.add_argument("--frontend", choices=["tracer", "parser"], help="who executes kernels, as NKI_COMPILER_FRONTEND says (default tracer: Python)")
    parser.add_argument("--json", type=pathlib.Path, help="where results are appended")
    options = parser.parse_args()
    entry = run(options)
    print(json.dumps(entry, indent=2))
    if options.json is not None:
        known = json.loads(options.json.read_text()) if options.json.exists() else []
        options.json.write_text(json.dumps([*known, entry], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
