#!/usr/bin/env python3
"""Writes docs/compatibility.md from the results of tools/library.py, tools/corpus.py and
tools/suites.py.

    python tools/compatibility.py --library LIBRARY.json... --corpus CORPUS.json --suites SUITES.json [--note TEXT]
"""

import argparse
import collections
import datetime
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import files  # noqa: E402
from common.page import paragraph  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"

HEAD = """# Compatibility with public kernels

Public kernels of other authors run unchanged against their own references.
`tools/compatibility.py` generates this page. To regenerate it:

    python tools/library.py CHECKOUT --smallest 1 --sample 2 --timeout 60 --target trn2 --json trn2.json     # nki-library's own test suite
    python tools/library.py CHECKOUT --smallest 1 --sample 2 --timeout 60 --target trn3 --json trn3.json
    python tools/corpus.py CORPUS.jsonl --sources DIR --json corpus.json
    python tools/suites.py CHECKOUT TESTS... --json suites.json     # test suites of other projects, see below
    python tools/compatibility.py --library trn2.json trn3.json --corpus corpus.json --suites suites.json

"""


def folder(test: str) -> str:
    """The part of the library that a test covers, for example `core/attention`."""
    parts = pathlib.PurePosixPath(test.split("::")[0]).parts
    return "/".join(parts[3:5]) if len(parts) > 5 else "/".join(parts[3:4])


# Failures with a known cause outside the simulator or under examination: part of the test's name,
# part of the reason, explanation.
KNOWN = [
    (
        "test_cross_entropy_forward",
        "timeout",
        "up to 4 GB of logits. The suite spends 57% of the time of such a test on random inputs, 27% on its reference and 5% on the simulation "
        "(measured on the configuration with 256 positions and 151936 words)",
    ),
    (
        "test_rmsnorm_mx_quantize_tkg",
        "result differs",
        "the kernel writes 16 of the 128 rows of `out_scale`, and the test compares the others with zero. Unwritten elements are 4, as in the official "
        "simulator, and are reported (output-partly-written)",
    ),
    (
        "test_quantize_mx_hw",
        "result differs",
        "the test's reference scales by 2^(floor(log2 max) - E), the manual by twice that (docs/numerics.md, quantize_mx). The test also compares "
        "unwritten rows of scales with zero",
    ),
    (
        "test_mxfp_load_performance",
        "Cannot cast",
        "the test declares the packed output as float32; only a NumPy extension type of AWS can be cast to it",
    ),
    (
        "test_moe_tkg_",
        "result differs",
        "NaN: the kernel reads unwritten rows of its tiles (uninitialized-read names them); the device has finite numbers there",
    ),
    ("test_moe_bwmm_mx", "timeout", "the suite generates up to 9 million blocks of MX weights and multiplies them again in NumPy. In the configuration that was examined, the simulation itself ended within the limit"),
    (
        "bwmm_shard_on_block_mx",
        "result differs",
        "with 384 intermediate columns some elements are NaN and all others agree; not examined further. The library itself skips most tests of this "
        "kernel as broken",
    ),
    ("test_output_proj_cte_bf16_sweep", "sbuf-overflow", "not examined yet"),
    ("test_attn_blk", "result differs", "not examined yet"),
    ("test_attn_blk", "assertion-failed", "the kernel's own check rejects the arguments of the test; not examined further"),
    ("test_moe_block_kernel_model", "None has no attribute", "the kernel reads gate_up_bias.dtype, and this configuration has no bias"),
    ("test_qkv_cte_mx_bf16_static_dequant", "is_input_swizzled", "the test passes an argument that the kernel does not have"),
]


def why(test: dict) -> str:
    """The reason, with its explanation if there is one."""
    known = [text for name, reason, text in KNOWN if name in test["id"] and reason in test["reason"]]
    return ": ".join([test["reason"], *known])


def short(test: str) -> str:
    """A test without the folders before its file."""
    return test.rsplit("/", 1)[-1]


def library(reports: list[dict]) -> str:
    lines = ["## nki-library", ""]
    for report in reports:
        lines += [
            f"### {report['target']}: {report['selection']}",
            "",
            paragraph(
                f"Collected {report['collected']}, run {report['run']}, **passed {report['passed']}**, failed {report['failed']}, "
                f"skipped {report['skipped']} (by the library's own rules), {report['seconds']:.0f} s on {report['cores']} cores. "
                f"{drawn(report)}The limit for a test is {report.get('timeout', 60):.0f} s of one core."
            ),
            "",
            "| part | passed | failed | skipped | seconds | simulator seconds |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        parts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        for test in report["tests"]:
            part = parts[folder(test["id"])]
            part[test["status"]] += 1
            part["seconds"] += test["seconds"]
            part["simulated"] += test.get("simulated") or 0
        measured = all("simulated" in test for test in report["tests"])
        for name in sorted(parts):
            part = parts[name]
            simulated = f"{part['simulated']:.0f}" if measured else "not measured"
            lines.append(f"| {name} | {part['passed']} | {part['failed']} | {part['skipped']} | {part['seconds']:.0f} | {simulated} |")
        if report["failed_by_reason"]:
            lines += ["", "| tests | reason |", "| --- | --- |"]
            lines += [f"| {count} | {cell(reason)} |" for reason, count in report["failed_by_reason"].items()]
            failed = [test for test in report["tests"] if test["status"] == "failed"]
            lines += ["", "| test | reason |", "| --- | --- |"]
            lines += [f"| {cell(short(test['id']))} | {cell(why(test))} |" for test in sorted(failed, key=lambda test: test["id"])]
        if report["files_not_collected"]:
            lines += ["", "Not collected:", ""]
            lines += [f"- `{file}`: {cell(error)}" for file, error in sorted(report["files_not_collected"].items())]
        lines.append("")
    lines += ["The published repository cannot be tested unchanged. A temporary copy has these patches:", ""]
    patches = {(patch["file"], patch["reason"]): None for report in reports for patch in report["patches"]}
    lines += [paragraph(f"`{file}`: {reason}", "- ") for file, reason in patches]
    return "\n".join(lines) + "\n\n"


def drawn(report: dict) -> str:
    """The outcomes of the smallest and of the randomly drawn tests; empty without both kinds."""
    count = collections.Counter((test.get("drawn", False), test["status"]) for test in report["tests"])
    if len({chance for chance, _ in count}) < 2:
        return ""
    parts = [f"{count[chance, 'passed']} of {count[chance, 'passed'] + count[chance, 'failed']}" for chance in (False, True)]
    return f"Of the smallest tests {parts[0]} passed, of those drawn {parts[1]}. "


def corpus(entries: list[dict]) -> str:
    lines = ["## Corpus of public kernels", ""]
    for api in sorted({entry["api"] for entry in entries}):
        count = collections.Counter(entry["status"] for entry in entries if entry["api"] == api)
        lines.append(f"- {api}: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    lines += ["", "| kernel | interface | result | seconds | reason |", "| --- | --- | --- | --- | --- |"]
    for entry in entries:
        lines.append(f"| {entry['id']} | {entry['api']} | {entry['status']} | {entry['seconds']} | {cell(why(entry))} |")
    return "\n".join(lines) + "\n"


ENVIRONMENTS = (
    "Environments: nki-autotune needs torch and networkx. triton-viz needs torch, triton, pyarrow, z3-solver, anytree, cairocffi and flask, and its "
    "setup.py must write `triton_viz/version.py` first. `--absent` names modules for the hardware that files of a suite import without needing them. "
    "The failing test of triton-viz passes `nl.tfloat32` and expects a TypeError; in the simulator it is a dtype that equals NumPy's float32. "
    "`psum-capacity` and `sbuf-overflow` mark kernels that exceed the memories of the device."
)


def suites(entries: list[dict]) -> str:
    lines = ["", "## Test suites of other projects", "", "| suite | passed | failed | skipped | failures | command |", "| --- | --- | --- | --- | --- | --- |"]
    for entry in entries:
        words = ["tools/suites.py", entry["name"], *entry["tests"]]
        words += ["--mark", entry["mark"]] if entry["mark"] else []
        words += ["--absent", *entry["absent"]] if entry["absent"] else []
        words += ["--capacity", entry["capacity"]] if entry["capacity"] else []
        why_not = ", ".join(f"{count} {reason}" for reason, count in entry["failed_by_reason"].items())
        numbers = f"{entry['passed']} | {entry['failed']} | {entry['skipped']}"
        lines.append(f"| {entry['name']} {entry['commit']} | {numbers} | {cell(why_not)} | `{' '.join(words)}` |")
    return "\n".join([*lines, "", paragraph(ENVIRONMENTS), ""])


def cell(text: str) -> str:
    """Text for one cell of a table."""
    return text.replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")[:300]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, nargs="+", required=True, help="results of tools/library.py")
    parser.add_argument("--corpus", type=pathlib.Path, required=True, help="results of tools/corpus.py")
    parser.add_argument("--suites", type=pathlib.Path, required=True, help="results of tools/suites.py")
    parser.add_argument("--note", default="", help="remarks on these runs")
    options = parser.parse_args()
    try:
        reports = [json.loads(path.read_text()) for path in options.library]
        entries = json.loads(options.corpus.read_text())
        others = json.loads(options.suites.read_text())
    except (OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    made = paragraph(f"Last generated: {datetime.date.today().isoformat()}. {options.note}".rstrip()) + "\n\n"
    files.write_whole(PAGE, HEAD + made + library(reports) + corpus(entries) + suites(others))
    return 0


if __name__ == "__main__":
    sys.exit(main())
