#!/usr/bin/env python3
"""Writes docs/compatibility.md from the results of tools/library.py and tools/corpus.py.

    python tools/compatibility.py --library LIBRARY.json... --corpus CORPUS.json
"""

import argparse
import collections
import datetime
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import files  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"

HEAD = """# Compatibility: public kernels that run here

Kernels that nobody here wrote, run unchanged against their own references. Made by `tools/compatibility.py`; to make it again:

    python tools/library.py CHECKOUT --json library.json          # nki-library's own test suite
    python tools/corpus.py CORPUS.jsonl --sources DIR --json corpus.json
    python tools/compatibility.py --library library.json --corpus corpus.json

"""


def folder(test: str) -> str:
    """The part of the library that a test is about: `core/attention`, say."""
    parts = pathlib.PurePosixPath(test.split("::")[0]).parts
    return "/".join(parts[3:5]) if len(parts) > 5 else "/".join(parts[3:4])


# Why tests fail that fail for no reason of the simulator, where that was looked into.
KNOWN = [
    (
        "test_cross_entropy_forward",
        "timeout",
        "4 GB of logits. The suite's own making of random inputs takes 57% of such a test's time and its reference 27%, the simulation 5% "
        "(measured on the configuration with 256 positions and 151936 words)",
    ),
    (
        "test_rmsnorm_mx_quantize_tkg",
        "result differs",
        "the kernel writes 16 of the 128 rows of `out_scale`, and the test compares the others with zero; what a kernel does not write is 4 here, as "
        "in the official simulator, and is reported (output-not-written)",
    ),
]


def why(test: dict) -> str:
    """The reason, and what is known of it."""
    known = [text for file, reason, text in KNOWN if file in test["id"] and reason in test["reason"]]
    return ": ".join([test["reason"], *known])


def short(test: str) -> str:
    """A test without the folders before its file, which the page has in a table of its own."""
    return test.rsplit("/", 1)[-1]


def library(reports: list[dict]) -> str:
    lines = ["## nki-library", ""]
    for report in reports:
        lines += [
            f"Target {report['target']}, {report['selection']}: collected {report['collected']}, run {report['run']}, "
            f"**passed {report['passed']}**, failed {report['failed']}, skipped {report['skipped']} (by the library's own rules), "
            f"{report['seconds']:.0f} s on {report['cores']} cores.",
            "",
            "| part | passed | failed | skipped | seconds |",
            "| --- | --- | --- | --- | --- |",
        ]
        parts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        for test in report["tests"]:
            part = parts[folder(test["id"])]
            part[test["status"]] += 1
            part["seconds"] += test["seconds"]
        for name in sorted(parts):
            part = parts[name]
            lines.append(f"| {name} | {part['passed']} | {part['failed']} | {part['skipped']} | {part['seconds']:.0f} |")
        if report["failed_by_reason"]:
            lines += ["", "| tests | why they fail |", "| --- | --- |"]
            lines += [f"| {count} | {cell(reason)} |" for reason, count in report["failed_by_reason"].items()]
            failed = [test for test in report["tests"] if test["status"] == "failed"]
            lines += ["", "| test | why it fails |", "| --- | --- |"]
            lines += [f"| {cell(short(test['id']))} | {cell(why(test))} |" for test in sorted(failed, key=lambda test: test["id"])]
        if report["files_not_collected"]:
            lines += ["", "Not collected:", ""]
            lines += [f"- `{file}`: {cell(error)}" for file, error in sorted(report["files_not_collected"].items())]
        lines.append("")
    lines += ["The published repository cannot be tested as it is. Patched in a copy at run time:", ""]
    patches = {(patch["file"], patch["reason"]): None for report in reports for patch in report["patches"]}
    lines += [f"- `{file}`: {reason}" for file, reason in patches]
    return "\n".join(lines) + "\n\n"


def corpus(entries: list[dict]) -> str:
    lines = ["## Corpus of public kernels", ""]
    for api in sorted({entry["api"] for entry in entries}):
        count = collections.Counter(entry["status"] for entry in entries if entry["api"] == api)
        lines.append(f"- {api}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    lines += ["", "| kernel | interface | result | seconds | reason |", "| --- | --- | --- | --- | --- |"]
    for entry in entries:
        lines.append(f"| {entry['id']} | {entry['api']} | {entry['status']} | {entry['seconds']} | {cell(why(entry))} |")
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """Text for one cell of a table."""
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")[:300]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, nargs="+", required=True, help="results of tools/library.py")
    parser.add_argument("--corpus", type=pathlib.Path, required=True, help="results of tools/corpus.py")
    options = parser.parse_args()
    try:
        reports = [json.loads(path.read_text()) for path in options.library]
        entries = json.loads(options.corpus.read_text())
    except (OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    made = f"Last made {datetime.date.today().isoformat()}.\n\n"
    files.write_whole(PAGE, HEAD + made + library(reports) + corpus(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
