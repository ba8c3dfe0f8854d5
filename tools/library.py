#!/usr/bin/env python3
"""Runs the test suite of AWS's nki-library on the simulator.

    python tools/library.py CHECKOUT --target trn2 trn3 --random 300 --seed 1 --frontend both --timeout 120 --page

runs 300 tests of each platform, drawn from all tests, under both frontends, and writes the results to
docs/compatibility.md. CHECKOUT is a checkout of nki-library; it is not modified. The suite runs in a temporary copy with
patches for the gaps of the published repository (tools/library_suite/overlay.py lists them with
reasons, and every run prints them). Each test file runs in its own process, so that a crash or an
endless test costs one test instead of the run.
"""

import argparse
import collections
import concurrent.futures
import copy
import json
import os
import pathlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import compatibility  # noqa: E402
from common import environment, files  # noqa: E402
from library_suite import overlay, runner  # noqa: E402

NEEDS = """numpy ml_dtypes torch scipy pandas pytest pytest-html pytest-metadata pytest-xdist allpairspy typing_extensions fabric2 boto3
aws-embedded-metrics filelock plotext debugpy attrs""".split()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=pathlib.Path, help="a checkout of nki-library")
    parser.add_argument("-k", dest="filter", default="", help="pytest's expression that selects tests")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here, too, after each test file")
    parser.add_argument("--page", action="store_true", help="write the results to docs/compatibility.md")
    parser.add_argument("--path", action="append", default=[], help="test files or folders inside of the checkout (default: all kernels)")
    parser.add_argument("--target", nargs="+", default=["trn2"], choices=["trn1", "trn2", "trn3"], help="platforms to run for (default trn2)")
    parser.add_argument("--smallest", type=int, metavar="N", help="only the N smallest configurations of each test function")
    parser.add_argument("--sample", type=int, metavar="N", help="N further configurations of each test function, drawn at random")
    parser.add_argument("--random", type=int, metavar="N", help="N tests drawn from all that the suite does not skip, instead of --smallest and --sample")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of --random and --sample (default 0)")
    parser.add_argument("--again", type=pathlib.Path, metavar="FILE", help="take what passed over from the results in FILE, run the rest of the selection")
    parser.add_argument(
        "--frontend",
        choices=["tracer", "parser", "both"],
        help="who executes kernels, as NKI_COMPILER_FRONTEND says (default tracer: Python). With both, the parser specialises each kernel, too; a test "
        "whose programs differ runs with both",
    )
    parser.add_argument("--run-all", action="store_true", help="also the shapes that the suite itself leaves out of simulation")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one core that a test may take (default 300)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="test files run at once (default: one a core)")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    options.also = "parser" if options.frontend == "both" else None
    if options.frontend:
        os.environ["NKI_COMPILER_FRONTEND"] = "tracer" if options.also else options.frontend
    if not (options.checkout / "src" / "nkilib_src").is_dir():
        print(f"error: {options.checkout} is not a checkout of nki-library: it has no src/nkilib_src", file=sys.stderr)
        return 2
    if options.random is not None and (options.random < 1 or options.smallest or options.sample):
        print("error: --random takes a positive number of tests, and neither --smallest nor --sample with it", file=sys.stderr)
        return 2
    try:
        earlier = json.loads(options.again.read_text()) if options.again else []
        names = ["tracer", "parser"] if options.also else [options.frontend or "tracer"]
        alike = [report for report in earlier if report["frontends"] == names]
        kept = {report["target"]: [test for test in report["tests"] if test["status"] == "passed"] for report in alike}
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        print(f"error: --again {options.again}: {error!r}", file=sys.stderr)
        return 2
    environment.need(NEEDS + ["nki_sim"])

    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        checkout = pathlib.Path(folder) / "checkout"
        patches = overlay.make(options.checkout, checkout)
        print(f"Patched in a copy of the checkout ({len(patches)} gaps of the published repository):")
        for patch in patches:
            print(f"  {patch.file}: {patch.reason}")
        reports: list[dict] = []
        for target in options.target:
            of_target = copy.copy(options)
            of_target.target, of_target.kept = target, kept.get(target, [])
            reports.append({})
            for report in run(checkout, of_target, patches):
                reports[-1] = report
                # Write after every file, so that --again can continue an interrupted run.
                if options.json:
                    files.write_whole(options.json, json.dumps(reports, indent=1))
    for report in reports:
        print_summary(report)
    if options.page:
        compatibility.regenerate(reports)
    return 0


def run(checkout: pathlib.Path, options: argparse.Namespace, patches: list["overlay.Patch"]) -> Iterator[dict]:
    """Runs the selected tests for one platform. Yields the report so far after each file."""
    start = time.monotonic()
    test_files = runner.test_files(checkout, options.path)
    collected, errors = None, {}
    if options.random is not None:
        found, collected, errors = runner.candidates(checkout, test_files, options)
        options.chosen = draw(found, options.random, options.seed)
        test_files = [file for file in test_files if options.chosen.intersection(found.get(file, []))]
    results = [runner.FileResult(file, error=error) for file, error in errors.items()]
    yield summarise(options, results, patches, time.monotonic() - start, collected)
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        running = [pool.submit(runner.run_file, checkout, file, options) for file in test_files]
        for done in concurrent.futures.as_completed(running):
            result = done.result()
            results.append(result)
            if result.tests or result.error:
                print(f"  {options.target}: {result.line()}", flush=True)
            for test in result.tests:
                if test["status"] == "failed":
                    print(f"    {test['id'].rsplit('::', 1)[-1]}: {test['reason']}", flush=True)
            yield summarise(options, results, patches, time.monotonic() - start, collected)


def draw(found: dict[str, list[str]], count: int, seed: int) -> set[str]:
    """`count` of the tests found, or all if there are fewer. Depends on the seed and the names of the
    tests only; a larger draw contains a smaller one."""
    tests = sorted(test for tests in found.values() for test in tests)
    return set(random.Random(seed).sample(tests, len(tests))[:count])


def summarise(options: argparse.Namespace, results: list["runner.FileResult"], patches: list["overlay.Patch"], seconds: float, collected: int | None) -> dict:
    """The report of one platform in the JSON file: counts, reasons, patches, and one entry for each test."""
    results = sorted(results, key=lambda result: result.file)
    tests = [test for result in results for test in result.tests]
    count = collections.Counter(test["status"] for test in tests)
    reasons = collections.Counter(test["reason"] for test in tests if test["status"] == "failed")
    return {
        "target": options.target,
        "selection": selection(options),
        "frontends": [os.environ.get("NKI_COMPILER_FRONTEND", "tracer"), *([options.also] if options.also else [])],
        "timeout": options.timeout,
        "cores": os.cpu_count(),
        "collected": collected or sum(result.collected for result in results),
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
    if options.random is not None:
        return ", ".join([f"{options.random} tests drawn with seed {options.seed} from all that the suite does not skip", *filtered(options)])
    kinds = [f"the {options.smallest} smallest"] if options.smallest else []
    kinds += [f"{options.sample} drawn with seed {options.seed}"] if options.sample else []
    words = [f"configurations of each test function: {' and '.join(kinds)}" if kinds else "every configuration"]
    if options.again:
        words.append("tests that passed in an earlier run are not run again")
    return ", ".join(words + filtered(options))


def filtered(options: argparse.Namespace) -> list[str]:
    """What else selects tests."""
    words = ["large shapes too"] if options.run_all else []
    words += [f"-k '{options.filter}'"] if options.filter else []
    return words + [f"only {path}" for path in options.path]


def print_summary(report: dict) -> None:
    print(f"\n{report['target']}: collected {report['collected']}, passed {report['passed']}, failed {report['failed']}, skipped {report['skipped']}, {report['seconds']} s")
    for reason, number in report["failed_by_reason"].items():
        print(f"  {number:5} {reason}")
    for other in report["frontends"][1:]:
        count = collections.Counter(test[other]["status"] for test in report["tests"])
        print(f"  with {other}: passed {count['passed']}, failed {count['failed']}")
    zero = [test[runner.ZERO] for test in report["tests"] if runner.ZERO in test]
    if zero:
        print(f"  with unwritten memory as zero: {sum(test['status'] == 'passed' for test in zero)} of {len(zero)} that differ from the reference pass")
    for file, error in report["files_not_collected"].items():
        print(f"  not collected: {file}: {error}")


if __name__ == "__main__":
    sys.exit(main())
