#!/usr/bin/env python3
"""Writes docs/compatibility.md from the results of tools/library.py, tools/corpus.py and
tools/suites.py.

    python tools/compatibility.py [--library LIBRARY.json] [--corpus CORPUS.json] [--suites SUITES.json] [--note TEXT]

A part of the page whose results are not given remains as it is.
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
from library_suite.runner import ZERO  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "compatibility.md"

HEAD = """# Compatibility with public kernels

This page shows how many public kernels of other authors pass their own tests here, unchanged, and
why the others fail. It is generated, except for the later trials. One command runs nki-library's
own test suite and writes its part:

    python tools/library.py CHECKOUT --target trn2 trn3 --random 300 --seed 1 --frontend both --timeout 120 --page

The other parts come from the corpus of public kernels and from test suites of other projects (commands below):

    python tools/corpus.py CORPUS.jsonl --sources DIR --json corpus.json
    python tools/suites.py CHECKOUT TESTS... --json suites.json
    python tools/compatibility.py --corpus corpus.json --suites suites.json

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
        "the test compares unwritten rows of scales with zero",
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
        "with 384 intermediate columns some elements are NaN and all others agree: the kernel multiplies rows of its tiles that it has not written with "
        "weights of zero. With unwritten memory as zero it passes. The library itself skips most tests of this kernel as broken",
    ),
    (
        "test_output_proj_cte_bf16_sweep",
        "sbuf-overflow",
        "tiles of 56 partitions, 17 with weights and 17 with attention, are alive with 4 of results: 232448 of 229376 bytes. The kernel's budget for weights "
        "counts the bytes of all partitions. They would fit in the two halves of the partitions, which the simulator does not find (open)",
    ),
    (
        "test_attn_blk",
        "result differs",
        "an FP8 kernel against a reference in float32, with a softmax that depends on the last bits: in the configuration that was examined stage by stage the cosine "
        "of `X_out` is 0.984 to 0.991, for at least 0.99. The test's own reference has 0.985 against itself when it rounds where the kernel rounds (hidden states, keys "
        "and values to FP8, projections and rotated heads to bfloat16), 0.990 with the hidden states alone. All other comparisons pass",
    ),
    (
        "test_attn_blk",
        "size of tensor",
        "the test makes the scales of static quantisation for row quantisation, too (128 x 3, where the kernel takes one for each column): its own "
        "reference in torch fails",
    ),
    (
        "hi-3072_ha-2880",
        "result differs",
        "NaN: the kernel reads unwritten rows of its tiles (uninitialized-read names them); the device has finite numbers there. Examined with 360 and 720 "
        "intermediate columns",
    ),
    (
        "hi-7168_ha-None",
        "result differs",
        "an FP8 kernel at the limit of its tolerance: 5.1% to 5.6% for 5% in those that were examined. With the norm rounded to bfloat16, as in the kernel, the test's own "
        "reference differs by 3.5% from itself. Of 1024 tokens, 5 get another expert (logits of the router differ by up to 0.0045), the others are within 4.8%. Two of six pass since the "
        "reference has the scale of NKI 0.6 (run again)",
    ),
    ("test_moe_block_kernel_model", "Kernel validation", "the kernel's own check rejects the arguments of the test"),
    ("test_moe_tkg_dynamic", "register-arithmetic", "`while register:`, which needed the built-in frontend at that time; it passes now"),
    ("test_moe_blockwise_mm_kernel_lnc2", "psum-overflow", "12 sums over the intermediate size are alive at once, and PSUM has 8 banks"),
    (
        "test_attn_blk",
        "assertion-failed",
        "the kernel's own check rejects the arguments of the test, which makes the scales of static quantisation for row quantisation, too (128 x 3, "
        "where the kernel takes one for each column), in 537 of its 2,724 configurations",
    ),
    ("test_moe_", "'NoneType' object has no attribute 'dtype'", "the kernel reads gate_up_bias.dtype, and this configuration has no bias"),
    ("test_moe_block_kernel_model", "None has no attribute", "the kernel reads gate_up_bias.dtype, and this configuration has no bias"),
    ("test_qkv_cte_mx_bf16_static_dequant", "is_input_swizzled", "the test passes an argument that the kernel does not have"),
    ("test_moe_", "weight_dtype", "the test passes an argument that the kernel does not have"),
    ("", "code -9", "the inputs of the test and its reference exceed the memory of this machine"),
]

# The marker in the names of nki-library's model configurations.
WIP = "MODEL_WIP"


def why(test: dict) -> str:
    """The reason for a failure, with its explanation if known."""
    known = [text for name, reason, text in KNOWN if name in test["id"] and reason in test["reason"]]
    if test.get(ZERO, {}).get("status") == "passed":
        known.insert(0, "passes with NKI_SIM_UNWRITTEN=zero")
    return ": ".join([test["reason"], *known])


def short(test: str) -> str:
    """The name of a test without the folders before its file."""
    return test.rsplit("/", 1)[-1]


def library(reports: list[dict]) -> str:
    lines = ["## nki-library", ""]
    for report in reports:
        lines += [
            f"### {report['target']}: {report['selection']}",
            "",
            paragraph(
                f"Collected {report['collected']}, run {report['run']}, **passed {report['passed']}**, failed {report['failed']}, "
                f"skipped {report['skipped']} (by the library's own rules): **{rate(report['passed'], report['failed'])}** pass; "
                f"{report['seconds']:.0f} s on {report['cores']} cores. {drawn(report)}The limit for a test is {report.get('timeout', 60):.0f} s of one core."
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
        lines += of_models(report)
        lines += unwritten(report)
        lines += frontends(report)
        if report["files_not_collected"]:
            lines += ["", "Not collected:", ""]
            lines += [f"- `{file}`: {cell(error)}" for file, error in sorted(report["files_not_collected"].items())]
        lines.append("")
    lines += ["The published repository cannot be tested unchanged. A temporary copy has these patches:", ""]
    patches = {(patch["file"], patch["reason"]): None for report in reports for patch in report["patches"]}
    lines += [paragraph(f"`{file}`: {reason}", "- ") for file, reason in patches]
    return "\n".join(lines) + "\n\n"


def rate(passed: int, failed: int) -> str:
    """The percentage of tests that pass."""
    return f"{100 * passed / max(passed + failed, 1):.1f}%"


def of_models(report: dict) -> list[str]:
    """The contributions of the model configurations and of the other tests to the figures."""
    ran = [test for test in report["tests"] if test["status"] in ("passed", "failed")]
    counts = collections.Counter((WIP in test["id"], test["status"]) for test in ran)
    if not counts[True, "passed"] + counts[True, "failed"]:
        return []

    def passed(of: bool) -> str:
        return f"{counts[of, 'passed']} of {counts[of, 'passed'] + counts[of, 'failed']}"

    text = (
        f"The names of configurations that the library takes from models, for weekly regression runs, begin with `{WIP}`: {passed(True)} pass. "
        f"Of the other tests, {passed(False)} pass (**{rate(counts[False, 'passed'], counts[False, 'failed'])}**)."
    )
    return ["", paragraph(text)]


def unwritten(report: dict) -> list[str]:
    """The number of tests that differ from their reference, but pass if unwritten memory is
    zero."""
    zero = [test for test in report["tests"] if ZERO in test]
    if not zero:
        return []
    passed = sum(test[ZERO]["status"] == "passed" for test in zero)
    share = rate(report["passed"] + passed, report["failed"] - passed)
    text = (
        f"Of the {len(zero)} tests whose result differs, {passed} pass with `NKI_SIM_UNWRITTEN=zero`: they depend on memory that "
        f"nothing has written, which holds finite numbers on a device. With them, **{share}** pass."
    )
    return ["", paragraph(text)]


def frontends(report: dict) -> list[str]:
    """The results of the second frontend, and where they differ."""
    lines = []
    for other in report["frontends"][1:]:
        count = collections.Counter(test[other]["status"] for test in report["tests"])
        programs = [one for test in report["tests"] for one in test["compared"]]
        made = [one["seconds"] for one in programs if one["found"] == ["the same program"] * 2]
        slower = sorted(mine / max(others, 1e-3) for mine, others in made if mine > 0.5)
        speed = f" Where Python needs more than 0.5 s, the built-in frontend needs {slower[len(slower) // 2]:.1f} times as long in the median (at most {slower[-1]:.1f})." if slower else ""
        lines += [
            "",
            paragraph(
                f"With the built-in frontend (`NKI_COMPILER_FRONTEND={other}`) {count['passed']} pass and {count['failed']} fail: "
                f"**{rate(count['passed'], count['failed'])}**. Both frontends agree on {sum(one['same'] for one in programs)} of {len(programs)} kernels: "
                f"{len(made)} programs are equal to the last instruction, the others are the same error. Tests for which the programs differ ran with both.{speed}"
            ),
        ]
        differing = [test for test in report["tests"] if any(not one["same"] for one in test["compared"]) or test[other]["status"] != test["status"]]
        if differing:
            lines += ["", "| test | Python | built-in | first difference |", "| --- | --- | --- | --- |"]
        for test in differing:
            found = next((one["found"] for one in test["compared"] if not one["same"]), ["", ""])
            outcome = f"{test[other]['status']}: {test[other]['reason']}" if test[other]["reason"] else test[other]["status"]
            lines.append(f"| {cell(short(test['id']))} | {test['status']} | {cell(outcome)} | {cell(f'{found[0]} / {found[1]}')} |")
    return lines


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


#: The headings of the page's parts that are generated.
PARTS = ("## nki-library", "## Corpus of public kernels", "## Test suites of other projects")

#: The heading of the part that is written by hand, before the others.
BY_HAND = "## Later trials"


def present(page: str, heading: str) -> str:
    """A part of the page in its current form."""
    begin = page.index(f"\n{heading}\n") + 1
    ends = [page.find(f"\n{other}\n", begin) for other in (BY_HAND, *PARTS)]
    return page[begin : min((end + 1 for end in ends if end >= 0), default=len(page))].rstrip() + "\n"


def regenerate(of_library: list | None, of_corpus: list | None = None, of_suites: list | None = None, note: str = "") -> None:
    """Writes the page with these results. A part without results is left unchanged, and so is the part written by hand."""
    page = PAGE.read_text()
    given = zip(PARTS, (of_library, of_corpus, of_suites), (library, corpus, suites))
    parts = [present(page, BY_HAND)]
    parts += [write(results).strip() + "\n" if results is not None else present(page, heading) for heading, results, write in given]
    made = paragraph(f"Last generated: {datetime.date.today().isoformat()}. {note}".rstrip()) + "\n\n"
    files.write_whole(PAGE, HEAD + made + "\n".join(parts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, help="results of tools/library.py")
    parser.add_argument("--corpus", type=pathlib.Path, help="results of tools/corpus.py")
    parser.add_argument("--suites", type=pathlib.Path, help="results of tools/suites.py")
    parser.add_argument("--note", default="", help="remarks on these runs")
    options = parser.parse_args()
    try:
        results = [json.loads(path.read_text()) if path else None for path in (options.library, options.corpus, options.suites)]
        regenerate(*results, note=options.note)
    except (OSError, json.JSONDecodeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
