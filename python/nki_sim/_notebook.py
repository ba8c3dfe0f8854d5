"""The notebook view of a report: an HTML fragment with its own styles and without scripts."""

import html

#: Columns of the timeline. Each shows the busy fraction of a row in its part of the time.
_COLUMNS = 240
_COLOURS = {"tensor": "#c0504d", "vector": "#4a7ebb", "scalar": "#71893f", "gpsimd": "#7d60a0", "sync": "#888888"}


def page(report):
    """The fragment: latency, verdict, timeline, engines, lines, possible gains, findings."""
    parts = [
        f"<div><b>{_text(report['kernel'])}</b> on {_text(report['target'])}: <b>{report.latency_us:.2f} &micro;s</b>",
        f"<p>{_text(report.verdict)}</p>",
        _timeline(report),
        _table(
            ("engine", "instructions", "active &micro;s", "active", "stalled by (&micro;s)"),
            [
                (_text(name), e["instructions"], f"{e['active_us']:.2f}", _bar(e["active_percent"]), _text(_stalls(report.stalls, name)))
                for name, e in report.engines.items()
            ],
        ),
        "<p>Lines that cost most (time on the critical path)</p>",
        _table(
            ("line", "instruction", "times", "&micro;s", "share", "waits for"),
            [
                (_text(f"{x['file']}:{x['line']}"), _text(x["instruction"]), x["count"], f"{x['critical_us']:.2f}",
                 _bar(x["critical_percent"]), _text(x["wait_cause"]))
                for x in report.lines[:8]
            ],
        ),
    ]  # fmt: skip
    gains = [r for r in report.remedies if r["gain_us"] > 0]
    if gains:
        parts.append("<p>What could be gained (the kernel timed again with each change alone)</p>")
        rows = [(_text(r["what"]), f"{r['gain_us']:.2f}", _bar(r["gain_percent"])) for r in gains[:6]]
        parts.append(_table(("change", "&micro;s", "gain"), rows))
    if report.findings:
        items = "".join(f"<li>{_text(f['severity'])}: {_text(f['message'])} ({_text(f['file'])}:{f['line']})</li>" for f in report.findings)
        parts.append(f"<ul>{items}</ul>")
    return "".join(parts) + "</div>"


def _text(value):
    return html.escape(str(value))


def _table(head, rows):
    cells = "".join(f"<th style='text-align:left'>{h}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"


def _bar(percent):
    width = max(0.0, min(percent, 100.0))
    return f"<div style='background:#4a7;height:0.8em;width:{width:.0f}px;display:inline-block'></div> {percent:.1f}%"


def _stalls(stalls, engine):
    mine = [s for s in stalls if s["engine"] == engine and s["cause"] not in ("start-up", "finished")]
    return ", ".join(f"{s['cause']} {s['us']:.2f}" for s in sorted(mine, key=lambda s: -s["us"])[:3])


def _timeline(report):
    """An image with a strip for each row that was busy; a darker strip is busier."""
    total, strips = report.latency_us, []
    for entry in report["intervals"]:
        busy = [0.0] * _COLUMNS
        for start, end, what, *_ in entry["intervals"]:
            if what == "busy" and total > 0:
                _fill(busy, start / total * _COLUMNS, end / total * _COLUMNS)
        if any(busy):
            strips.append((entry["row"], busy))
    out = []
    for at, (row, busy) in enumerate(strips):
        colour = _COLOURS.get(row.split("/")[0], "#b08030")
        out.append(f"<text x='0' y='{at * 16 + 11}' font-size='10' fill='currentColor'>{_text(row)}</text>")
        for x, width, level in _runs(busy):
            place = f"x='{90 + 2 * x}' y='{at * 16 + 2}' width='{2 * width}' height='12'"
            out.append(f"<rect {place} fill='{colour}' fill-opacity='{level:.2f}'/>")
    return f"<svg width='{90 + 2 * _COLUMNS}' height='{16 * len(strips)}' role='img' aria-label='timeline'>{''.join(out)}</svg>"


def _fill(busy, start, end):
    """Adds the interval between two positions to the columns that it overlaps."""
    column = int(start)
    while column < _COLUMNS and column < end:
        busy[column] += min(end, column + 1) - max(start, column)
        column += 1


def _runs(busy):
    """Columns with the same busy fraction, rounded to a tenth, as (first, count, fraction)."""
    levels = [round(min(b, 1.0), 1) if b < 0.05 or b > 0.1 else 0.1 for b in busy]
    start = 0
    for at in range(1, len(levels) + 1):
        if at == len(levels) or levels[at] != levels[start]:
            if levels[start] > 0:
                yield start, at - start, levels[start]
            start = at
