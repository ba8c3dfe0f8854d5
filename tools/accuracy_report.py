"""Text of docs/accuracy.md and docs/accuracy_rows.md, and the summary that tools/accuracy.py prints."""

import math
import pathlib
import re

import accuracy_groups
import accuracy_laws
from accuracy_groups import DECODE_PAIR_MARGIN, FORMULAS, PAIR_MARGIN, WITHIN, error
from common.page import paragraph

# The report keeps the hand-written notes between these markers.
BEGIN, END = "<!-- notes -->", "<!-- end of notes -->"

INTRODUCTION = (
    "This page compares predicted with measured latency. `python tools/accuracy.py ROWS.jsonl --sources DIR --leave-out all` regenerates it and keeps the "
    "notes. DIR holds checkouts of the repositories that the rows name. No prediction reads a measurement, but some parameters are fitted to these rows."
)
PAGES = (
    "Other pages: [every row]({rows}), [kernels found later](found_later.md), [evidence for the timing model](evidence.md), and "
    "[open questions](open_questions.md)."
)
ROWS = (
    "[Accuracy]({page}) has the figures of each group; this page has its rows, and those that are predicted worst. `python tools/accuracy.py` writes both."
)
LEFT_OUT = (
    "Each group is predicted with parameters that were fitted without it. This is the error to expect for a kernel of a similar kind that nobody has "
    "measured. Fitted parameters: {parameters}."
)
NOT_LEFT_OUT = "The parameters were not refitted for this page (no `--leave-out`), so it has no errors of groups that were left out."
IN_VIEW = "The same rows with the parameters of the simulator. Some were fitted to these rows, so this is the quality of the fit, not of a prediction."
DEFINITIONS = "\n".join(
    paragraph(line, "- ")
    for line in [
        "error: |predicted / measured - 1|; bias: the median of predicted / measured - 1",
        f"within: the share of rows with an error of at most {100 * WITHIN:.0f}%",
        f"pairs: of the pairs of versions or settings of one kernel that differ by more than {100 * PAIR_MARGIN:.0f}% on hardware "
        f"({100 * DECODE_PAIR_MARGIN:.0f}% for attention and mixture of experts), the share that the prediction orders correctly",
        "ideal: the slower of the tensor engine (128 x 128 multiplications a cycle, a quarter for fp32) and the DMA engines at their documented rates; "
        "operations and bytes as the source issues them",
        "ideal + 10 us + 3%: the same with a constant for start and end and 3% of the DMA time",
    ]
)
FIGURES = ["rows", "median", "mean", "worst", "bias", "within 10%", "pairs"]


def percent(x, digits=1):
    return "-" if x is None else f"{100 * x:.{digits}f}%"


def share(pair):
    right, total = pair
    return f"{percent(right / total)} of {total}" if total else "-"


def figures(g):
    """The cells of a group: rows, median, mean, worst, bias, within 10%, pairs."""
    return [
        str(g["rows"]),
        percent(g["median"]),
        percent(g["mean"]),
        percent(g["worst"]),
        f"{100 * g['bias']:+.1f}%",
        percent(g["within"], 0),
        share(g["pairs"]),
    ]


def group_cells(groups):
    """A row of cells for each group: the model, then median, worst and pairs of each formula."""
    return [
        [name, *figures(g["model"]), *(cell for key in FORMULAS for cell in (percent(g[key]["median"]), percent(g[key]["worst"]), share(g[key]["pairs"])))]
        for name, g in groups.items()
    ]


OLDER = (
    "Kernels for `neuronxcc.nki` run from the published sources, with the inputs and compiler flags of the repositories' own benchmarks. Of `ratios` "
    "only the relation between the rows of a family counts, since their absolute times imply twice the peak rates of one core: each family's "
    "predictions are multiplied by one factor, and pairs are all pairs of a family that differ by more than "
    f"{100 * DECODE_PAIR_MARGIN:.0f}%."
)


def suite_table(results):
    """The figures of kernels for neuronxcc.nki by repository; None if there are none."""
    suites = accuracy_groups.by_suite(results)
    return table(["measured by", *FIGURES], [[name, *figures(f)] for name, f in suites.items()]) if suites else None


GROUP_HEAD = ["group", *FIGURES, *(f"{name}: {what}" for name in FORMULAS.values() for what in ("median", "worst", "pairs"))]


def left_out(results):
    """The ids of the rows that did not run, by reason; the most frequent reason first."""
    reasons = {}
    for r in results:
        if r["predicted_us"] is None:
            reasons.setdefault(r["reason"], []).append(r["id"])
    return dict(sorted(reasons.items(), key=lambda x: -len(x[1])))


def summary(results, groups):
    """The figures by group as text, with the reasons for omitted rows."""
    ran = sum(r["predicted_us"] is not None for r in results)
    cells = [GROUP_HEAD, *group_cells(groups)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(GROUP_HEAD))]
    lines = [f"{ran} rows ran, {len(results) - ran} left out"]
    lines += ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))) for row in cells]
    older = suite_table(results)
    lines += ["", older] if older else []
    for why, ids in left_out(results).items():
        lines.append(f"left out, {len(ids)}: {why[:150]} ({ids[0]}{', ...' if len(ids) > 1 else ''})")
    return "\n".join(lines)


def stall(r):
    """The longest predicted stall of the tensor engine, or of any engine if the tensor engine has none; empty without stalls."""
    causes = [s for s in r["stalls"] if s["cause"] not in ("finished", "start-up")]
    waits = [s for s in causes if s["engine"] == "tensor"] or causes
    longest = max(waits, key=lambda s: s["us"], default=None)
    return f"{longest['engine']} waits {longest['us']:.0f} us for {longest['cause']}" if longest else ""


def scatter(rows):
    """An SVG of predicted against measured latency on logarithmic axes."""
    size, margin = 480, 56
    values = [v for r in rows for v in (r["measured_us"], r["predicted_us"])]
    low, high = math.floor(math.log10(min(values)) * 2) / 2, math.ceil(math.log10(max(values)) * 2) / 2
    at = lambda v: (math.log10(v) - low) / (high - low) * (size - 2 * margin) + margin
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">',
        f'<rect width="{size}" height="{size}" fill="white"/>',
        f'<path d="M{margin} {size - margin}L{size - margin} {margin}" stroke="#888" fill="none"/>',
    ]
    for e in range(math.ceil(low), math.floor(high) + 1):
        p = at(10.0**e)
        out.append(f'<path d="M{p:.1f} {margin}V{size - margin}M{margin} {size - p:.1f}H{size - margin}" stroke="#ddd" fill="none"/>')
        label = f"{10**e:g} us" if e < 3 else f"{10 ** (e - 3):g} ms"
        out.append(f'<text x="{p:.1f}" y="{size - margin + 16}" text-anchor="middle">{label}</text>')
        out.append(f'<text x="{margin - 6}" y="{size - p + 4:.1f}" text-anchor="end">{label}</text>')
    for r in sorted(rows, key=lambda r: r["id"]):
        colour = "#1f6fb4" if "matmul" in r["group"] else "#d1722a"
        x, y = at(r["measured_us"]), size - at(r["predicted_us"])
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.6"><title>{r["id"]} {percent(error(r))}</title></circle>')
    out.append(f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">measured</text>')
    out.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">predicted</text>')
    out.append(f'<text x="{margin + 8}" y="{margin + 14}" fill="#1f6fb4">matrix products</text>')
    out.append(f'<text x="{margin + 8}" y="{margin + 30}" fill="#d1722a">other kernels</text></svg>')
    return "\n".join(out) + "\n"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |", *("| " + " | ".join(r) + " |" for r in rows)])


def counter(r, name):
    m, p = r["counters"][name]["measured"], r["counters"][name]["predicted"]
    show = (lambda v: percent(v, 0)) if name.endswith("active") else (lambda v: f"{v:,.0f}")
    return "-" if m is None else show(m) if m == p else f"{show(m)} / {show(p)}"


def row_cells(r, left):
    """The cells of a row: the measured value, the predictions with the row left out and included,
    counters."""
    without = left.get(r["id"])
    return [
        r["id"] + (", port" if r["port"] else ""),
        r["measure"],
        f"{r['measured_us']:.1f}",
        f"{100 * error(without):+.1f}%" if without else "-",
        f"{r['predicted_us']:.1f}",
        f"{100 * error(r):+.1f}%",
        *(counter(r, n) for n in ("tensor_active", "dma_active", "dma_bytes", "dma_transfers")),
    ]


ROW_HEAD = ["row", "timed by", "measured us", "error, left out", "in view: us", "error", "tensor active", "DMA active", "DMA bytes", "transfers"]


def write(path, results, groups, fit=None, laws=None):
    """Writes the page, the picture and the page of rows next to it.

    `groups` are the figures in view by group, and `fit` is what accuracy_fit.fits returns.
    """
    path = pathlib.Path(path)
    picture, by_row = path.with_suffix(".svg"), path.with_name(f"{path.stem}_rows.md")
    old = path.read_text() if path.exists() else ""
    notes = re.search(re.escape(BEGIN) + r"\n(.*?)" + re.escape(END), old, re.S)
    ran = [r for r in results if r["predicted_us"] is not None]
    left_out_rows = fit["left_out"]["rows"] if fit and fit["left_out"] else []
    left = {r["id"]: r for r in left_out_rows}
    out = ["# Accuracy", paragraph(INTRODUCTION), paragraph(PAGES.format(rows=by_row.name)), "## Groups left out of the fit"]
    if left:
        names = ", ".join(f"`{p}`" for p in fit["parameters"])
        out += [paragraph(LEFT_OUT.format(parameters=names)), table(GROUP_HEAD, group_cells(fit["left_out"]["groups"]))]
    else:
        out.append(NOT_LEFT_OUT)
    out += [DEFINITIONS, "## The fit in view", paragraph(IN_VIEW), table(GROUP_HEAD, group_cells(groups))]
    older = suite_table(results)
    if older:
        out += ["### Kernels for neuronxcc.nki", paragraph(OLDER), older]
    if ran:
        picture.write_text(scatter(ran))
        out.append(f"![predicted against measured]({picture.name})")
    out.append(BEGIN + "\n" + (notes.group(1) if notes else "") + END)
    path.write_text("\n\n".join(out) + "\n")
    wrong_pairs = [p for g in (fit["left_out"]["groups"] if left else groups).values() for p in g["wrong_pairs"]]
    by_row.write_text("\n\n".join(rows_page(path.name, ran, groups, left, wrong_pairs, left_out(results), laws)) + "\n")


def rows_page(page, ran, groups, left, wrong_pairs, omitted, laws):
    """The parts of the page of rows: the worst rows, the pairs in wrong order, every row that ran, and why others did not."""
    out = ["# Accuracy by row", paragraph(ROWS.format(page=page))]
    worst = sorted(ran, key=lambda r: -abs(error(r)))[:15]
    if worst:
        out += [
            "## Worst rows in view",
            table(["row", "group", "error", "largest stall"], [[r["id"], r["group"], f"{100 * error(r):+.1f}%", stall(r)] for r in worst]),
        ]
    wrong = sorted(wrong_pairs, key=lambda p: p["predicted"] - p["measured"])[:20]
    if wrong:
        out += [
            "## Clearest pairs in wrong order",
            table(
                ["slower", "faster", "on hardware", "predicted"],
                [[p["slow"], p["fast"], f"{100 * p['measured']:+.1f}%", f"{100 * p['predicted']:+.1f}%"] for p in wrong],
            ),
        ]
    out += [
        "## All rows",
        paragraph(
            "If a cell has two values, the first is measured and the second predicted. A row is timed by the total of a profile, which contains the "
            "start and the end of the profiler, or on the device. Ports (`tests/ports`) stand for kernels whose source cannot run here."
        ),
    ]
    for name in groups:
        out += [f"### {name}", table(ROW_HEAD, [row_cells(r, left) for r in ran if r["group"] == name])]
    if laws:
        out.append(accuracy_laws.section(*laws))
    if omitted:
        out += ["## Rows left out", table(["reason", "rows", "example"], [[why.replace("|", "\\|"), str(len(ids)), ids[0]] for why, ids in omitted.items()])]
    return out
