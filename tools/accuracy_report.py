"""Figures and text of docs/accuracy.md, computed from the results of tools/accuracy.py."""

import math
import pathlib
import re
from statistics import median

import accuracy_laws
from common.page import paragraph

# The report keeps the hand-written notes between these lines.
BEGIN, END = "<!-- notes -->", "<!-- end of notes -->"

INTRODUCTION = (
    "This page compares predicted with measured latency. `python tools/accuracy.py ROWS.jsonl --sources DIR` regenerates it and keeps the notes. "
    "DIR holds checkouts of the repositories that the rows name. No prediction reads a measurement. However, some parameters were fitted to these rows "
    "(see the notes), so the errors are errors of fit, not of held-out rows."
)
DEFINITIONS = "\n".join(
    paragraph(line, "- ")
    for line in [
        "clean rows: the hardware moved as many bytes as the source specifies",
        "error: |predicted / measured - 1|",
        "residual: the median error of the latency minus the ideal time of the tensor engine (4 cycles for each fp32 column at 2.4 GHz)",
        "tensor active, DMA active: the median difference of the active fractions in percentage points",
    ]
)


def error(r):
    return r["predicted_us"] / r["measured_us"] - 1


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in order[at : end + 1]:
            out[i] = (at + end) / 2
        at = end + 1
    return out


def spearman(xs, ys):
    a, b = ranks(xs), ranks(ys)
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    cov = sum((x - ma) * (y - mb) for x, y in zip(a, b))
    size = math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))
    return cov / size if size else 1.0


def grids(rows):
    """Groups of at least four rows with the same kernel and shape: grid name to rows."""
    out = {}
    for r in rows:
        out.setdefault(r["grid"], []).append(r)
    return {g: rs for g, rs in sorted(out.items()) if len(rs) >= 4}


def of_group(rows):
    """Error statistics of a group of rows that ran; fractions and points are between 0 and 1. None without rows."""
    if not rows:
        return None
    errors = [abs(error(r)) for r in rows]
    over = [r for r in rows if r["ideal_us"] and r["measured_us"] > r["ideal_us"]]
    residual = [abs((r["predicted_us"] - r["ideal_us"]) / (r["measured_us"] - r["ideal_us"]) - 1) for r in over]
    exact = lambda name: [r[f"measured_{name}"] == r[f"predicted_{name}"] for r in rows if r[f"measured_{name}"] is not None]
    points = lambda name: [
        abs(r[f"measured_{name}"] - r[f"predicted_{name}"]) for r in rows if r[f"measured_{name}"] is not None
    ]
    return {
        "rows": len(rows),
        "error_median": median(errors),
        "error_worst": max(errors),
        "bias_median": median(error(r) for r in rows),
        "residual_median": median(residual) if residual else None,
        "bytes_exact": [sum(exact("dma_bytes")), len(exact("dma_bytes"))],
        "transfers_exact": [sum(exact("dma_transfers")), len(exact("dma_transfers"))],
        "tensor_active_median_points": median(points("tensor_active")) if points("tensor_active") else None,
        "dma_active_median_points": median(points("dma_active")) if points("dma_active") else None,
        "rank_correlation": {
            g: spearman([r["measured_us"] for r in rs], [r["predicted_us"] for r in rs]) for g, rs in grids(rows).items()
        },
    }


def figures(results):
    ran = [r for r in results if r["predicted_us"] is not None]
    clean = [r for r in ran if r["traffic"] == "clean"]
    families = {}
    for r in ran:
        if r["traffic"] != "clean":
            families.setdefault(f"{r['family']}, our port" if r["port"] else r["family"], []).append(r)
    return {
        "clean": of_group(clean),
        "other": {f: of_group(rs) for f, rs in sorted(families.items())},
        "ran": len(ran),
        "left_out": len(results) - len(ran),
    }


def percent(x, digits=1):
    return "-" if x is None else f"{100 * x:.{digits}f}%"


def summary(f, laws=None):
    lines = [f"{f['ran']} rows ran, {f['left_out']} left out"]
    for name, g in [("clean", f["clean"]), *f["other"].items()]:
        if g:
            worst = min(g["rank_correlation"].values(), default=None)
            lines.append(
                f"{name}: {g['rows']} rows, |error| median {percent(g['error_median'], 2)}, worst {percent(g['error_worst'])}, "
                f"bias {percent(g['bias_median'], 2)}, residual {percent(g['residual_median'])}, "
                f"bytes exact {g['bytes_exact'][0]}/{g['bytes_exact'][1]}, transfers exact {g['transfers_exact'][0]}/{g['transfers_exact'][1]}, "
                f"rank correlation at least {'-' if worst is None else f'{worst:.3f}'}"
            )
    if laws:
        errors = [abs(accuracy_laws.error(law)) for law in laws[0]]
        lines.append(f"single instructions: {len(errors)} laws, |error| median {percent(median(errors))}, worst {percent(max(errors))}")
    return "\n".join(lines)


def reason(r):
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
        colour = "#1f6fb4" if r["traffic"] == "clean" else "#d1722a"
        x, y = at(r["measured_us"]), size - at(r["predicted_us"])
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.6"><title>{r["id"]} {percent(error(r))}</title></circle>')
    out.append(f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">measured</text>')
    out.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">predicted</text>')
    out.append(f'<text x="{margin + 8}" y="{margin + 14}" fill="#1f6fb4">clean rows</text>')
    out.append(f'<text x="{margin + 8}" y="{margin + 30}" fill="#d1722a">other rows</text></svg>')
    return "\n".join(out) + "\n"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |", *("| " + " | ".join(r) + " |" for r in rows)])


def pair(r, name):
    m, p = r[f"measured_{name}"], r[f"predicted_{name}"]
    show = (lambda v: percent(v, 0)) if name.endswith("active") else (lambda v: f"{v:,}")
    return "-" if m is None else show(m) if m == p else f"{show(m)} / {show(p)}"


def row_table(rows):
    return table(
        ["row", "measured us", "predicted us", "error", "tensor active", "DMA active", "DMA bytes", "transfers"],
        [
            [r["id"], f"{r['measured_us']:.1f}", f"{r['predicted_us']:.1f}", f"{100 * error(r):+.1f}%"]
            + [pair(r, n) for n in ("tensor_active", "dma_active", "dma_bytes", "dma_transfers")]
            for r in rows
        ],
    )


def write(path, results, f, laws=None):
    path = pathlib.Path(path)
    picture = path.with_suffix(".svg")
    old = path.read_text() if path.exists() else ""
    notes = re.search(re.escape(BEGIN) + r"\n(.*?)" + re.escape(END), old, re.S)
    ran = [r for r in results if r["predicted_us"] is not None]
    clean = [r for r in ran if r["traffic"] == "clean"]
    other = [r for r in ran if r["traffic"] != "clean"]
    groups = [("clean rows", f["clean"]), *((f"other: {n}", g) for n, g in f["other"].items())]
    out = [
        "# Accuracy",
        paragraph(INTRODUCTION),
        table(
            ["", "rows", "median error", "worst", "bias", "residual", "bytes exact", "transfers exact", "tensor active off by", "DMA active off by"],
            [
                [name, str(g["rows"]), percent(g["error_median"], 2), percent(g["error_worst"]), f"{100 * g['bias_median']:+.2f}%", percent(g["residual_median"])]
                + [f"{g[k][0]}/{g[k][1]}" if g[k][1] else "-" for k in ("bytes_exact", "transfers_exact")]
                + [percent(g[k]) for k in ("tensor_active_median_points", "dma_active_median_points")]
                for name, g in groups
                if g
            ],
        ),
        DEFINITIONS,
    ]
    if ran:
        picture.write_text(scatter(ran))
        out.append(f"![predicted against measured]({picture.name})")
    out.append(BEGIN + "\n" + (notes.group(1) if notes else "") + END)
    if f["clean"] and f["clean"]["rank_correlation"]:
        out += [
            "## Order within each shape's grid",
            "Spearman's rank correlation of predicted and measured latency over the variants of one shape.",
            table(["grid", "rows", "rank correlation"], [[g, str(len(grids(clean)[g])), f"{c:.3f}"] for g, c in f["clean"]["rank_correlation"].items()]),
        ]
    worst = sorted(clean, key=lambda r: -abs(error(r)))[:10]
    if worst:
        out += [
            "## Worst clean rows",
            table(["row", "error", "largest stall"], [[r["id"], f"{100 * error(r):+.1f}%", reason(r)] for r in worst]),
        ]
    out += ["## All clean rows", "If a cell has two values, the first is measured and the second predicted.", row_table(clean)] if clean else []
    ports = [r for r in other if r["port"]]
    other = [r for r in other if not r["port"]]
    out += ["## Other rows", row_table(other)] if other else []
    if ports:
        out += [
            "## Rows of other families",
            paragraph("The measurements are from kernels that need the older interface. The predictions use ports of these kernels, in `tests/ports`."),
            row_table(ports),
        ]
    if laws:
        out.append(accuracy_laws.section(*laws))
    left = [r for r in results if r["predicted_us"] is None]
    if left:
        reasons = {}
        for r in left:
            reasons.setdefault(r["reason"], []).append(r["id"])
        out += [
            "## Rows left out",
            table(["reason", "rows", "example"], [[why.replace("|", "\\|"), str(len(ids)), ids[0]] for why, ids in sorted(reasons.items(), key=lambda x: -len(x[1]))]),
        ]
    path.write_text("\n\n".join(out) + "\n")
