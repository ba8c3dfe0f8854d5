#!/usr/bin/env python3
"""Runs the test suite of AWS's nki-library on the simulator.

    python tools/library.py CHECKOUT [-k FILTER] [--json FILE]

CHECKOUT is a checkout of nki-library; it is not modified. The suite runs in a temporary copy with
patches for the gaps of the published repository (tools/library_suite/overlay.py lists them with
reasons, and every run prints them). Each test file runs in its own process, so that a crash or an
endless test costs one test instead of the run.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import environment, files  # noqa: E402
from library_suite import overlay, runner  # noqa: E402

NEEDS = """numpy ml_dtypes torch scipy pandas pytest pytest-html pytest-metadata pytest-xdist allpairspy typing_extensions fabric2 boto3
aws-embedded-metrics filelock plotext debugpy attrs""".split()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path, help="a checkout of nki-library")
    parser.add_argument("-k", dest="filter", default="", help="pytest's expression that selects tests")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    parser.add_argument("--path", action="append", default=[], help="test files or folders inside of the checkout (default: all kernels)")
    parser.add_argument("--target", default="trn2", choices=["trn1", "trn2", "trn3"], help="platform to run for (default trn2)")
    parser.add_argument("--smallest", type=int, metavar="N", help="only the N smallest configurations of each test function")
    parser.add_argument("--sample", type=int, metavar="N", help="N further configurations of each test function, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of --sample (default 0)")
    parser.add_argument("--again", type=pathlib.Path, metavar="FILE", help="take what passed over from the results in FILE, run the rest of the selection")
    parser.add_argument("--frontend", choices=["tracer", "parser"], help="who executes kernels, as NKI_COMPILER_FRONTEND says (default tracer: Python)")
    parser.add_argument("--run-all", action="store_true", help="also the shapes that the suite itself leaves out of simulation")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one core that a test may take (default 300)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="test files run at once (default: one a core)")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    if options.frontend:
        os.environ["NKI_COMPILER_FRONTEND"] = options.frontend
    if not (options.checkout / "src" / "nkilib_src").is_dir():
        print(f"error: {options.checkout} is not a checkout of nki-library: it has no src/nkilib_src", file=sys.stderr)
        return 2
    try:
        earlier = json.loads(options.again.read_text()) if options.again else {"tests": [], "target": options.target}
    except (OSError, json.JSONDecodeError) as error:
        print(f"error: --again {options.again}: {error}", file=sys.stderr)
        return 2
    if earlier["target"] != options.target:
        print(f"error: --again {options.again}: it is of {earlier['target']}, this run is for {options.target}", file=sys.stderr)
        return 2
    options.kept = [test for test in earlier["tests"] if test["status"] == "passed"]
    environment.need(NEEDS + ["nki_sim"])

    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        copy = pathlib.Path(folder) / "checkout"
        patches = overlay.make(options.checkout, copy)
        print(f"Patched in a copy of the checkout ({len(patches)} gaps of the published repository):")
        for patch in patches:
            print(f"  {patch.file}: {patch.reason}")

        test_files = runner.test_files(copy, options.path)
        report = summarise(options, [], patches, 0.0)
        results: list[runner.FileResult] = []
        with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
            running = {pool.submit(runner.run_file, copy, file, options): file for file in test_files}
            for done in concurrent.futures.as_completed(running):
                result = done.result()
                results.append(result)
                if result.tests or result.error:
                    print(f"  {result.line()}", flush=True)
                for test in result.tests:
                    if test["status"] == "failed":
                        print(f"    {test['id'].rsplit('::', 1)[-1]}: {test['reason']}", flush=True)
                # Write after every file, so that --again can continue an interrupted run.
                report = summarise(options, results, patches, time.monotonic() - start)
                if options.json:
                    files.write_whole(options.json, json.dumps(report, indent=1))

    print_summary(report)
    return 0


def summarise(options: argparse.Namespace, results: list["runner.FileResult"], patches: list["overlay.Patch"], seconds: float) -> dict:
    """The contents of the JSON file: counts, reasons, patches, and one entry for each test."""
    results = sorted(results, key=lambda result: result.file)
    tests = [test for result in results for test in result.tests]
    count = collections.Counter(test["status"] for test in tests)
    reasons = collections.Counter(test["reason"] for test in tests if test["status"] == "failed")
    return {
        "target": options.target,
        "selection": selection(options),
        "frontend": os.environ.get("NKI_COMPILER_FRONTEND", "tracer"),
        "timeout": options.timeout,
        "cores": os.cpu_count(),
        "collected": sum(result.collected for result in results),
        "run": count["passed"] + count["failed"],
        "passed": count["passed"],
        "failed": count["failed"],
        "skipped": count["skipped"],
        "failed_by_reason": dict(reasons.most_common()),
        "files_not_collected": {result.file: result.error for result in results if result.error},
        "seconds": round(seconds, 1),
        "patches": [{"file": patch.file, "reason": patch.reason} for patch in patches],
        "tests": tests,
    }


def selection(options: argparse.Namespace) -> str:
    """A description of the selected tests."""
    kinds = [f"the {options.smallest} smallest"] if options.smallest else []
    kinds += [f"{options.sample} drawn with seed {options.seed}"] if options.sample else []
    words = [f"configurations of each test function: {' and '.join(kinds)}" if kinds else "every configuration"]
    if options.again:
        words.append("tests that passed in an earlier run are not run again")
    if options.run_all:
        words.append("large shapes too")
    if options.filter:
        words.append(f"-k '{options.filter}'")
    return ", ".join(words + [f"only {path}" for path in options.path])


def print_summary(report: dict) -> None:
    print(f"\ncollected {report['collected']}, passed {report['passed']}, failed {report['failed']}, skipped {report['skipped']}, {report['seconds']} s")
    for reason, number in report["failed_by_reason"].items():
        print(f"  {number:5} {reason}")
    for file, error in report["files_not_collected"].items():
        print(f"  not collected: {file}: {error}")


if __name__ == "__main__":
    sys.exit(main())
