"""Draws the timeline of a run as an SVG picture: a row for each engine and DMA queue.

    nki-sim run examples/flash_attention.py --csv t.csv && python3 tools/timeline_picture.py t.csv docs/timeline.svg

Neighbouring instructions of a row are drawn as one bar where the picture could not show the gap.
"""

import argparse
import csv
import pathlib

WIDTH, LEFT, ROW, TOP = 960, 110, 22, 8
COLOURS = {"tensor": "#4269d0", "vector": "#3ca951", "scalar": "#efb118", "gpsimd": "#ff725c", "sync": "#9498a0"}


def rows(events):
    """By row: name and bars (start, end) in microseconds. A transfer is on two: the engine that triggers it, and its queue."""
    bars = {}
    for event in events:
        start, end = int(event["start_ts"]) / 1e3, int(event["end_ts"]) / 1e3
        bars.setdefault(event["engine"], []).append((start, end))
        if event["timeline_track"] != event["engine"]:
            times = event["dma_trigger_end_ts"] or event["completion_ts"]
            bars.setdefault(event["timeline_track"], []).append((end, int(times) / 1e3))
    order = [*COLOURS, *(f"dma-{name}" for name in COLOURS)]
    return [(name, sorted(bars[name])) for name in order if name in bars]


def merged(bars, gap):
    out = []
    for start, end in bars:
        if out and start - out[-1][1] < gap:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return out


def picture(events):
    shown = rows(events)
    end = max(bar[1] for _, bars in shown for bar in bars)
    scale = (WIDTH - LEFT - 10) / end
    height = TOP + ROW * len(shown) + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for n, (name, bars) in enumerate(shown):
        y = TOP + n * ROW
        colour = next((c for key, c in COLOURS.items() if name.startswith(key)), "#7a5195")
        out.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end" fill="#333">{name}</text>')
        path = "".join(
            f"M{LEFT + a * scale:.1f} {y + 3}h{max((b - a) * scale, 0.4):.1f}v{ROW - 6}h-{max((b - a) * scale, 0.4):.1f}z"
            for a, b in merged(bars, 0.3 / scale)
        )
        out.append(f'<path d="{path}" fill="{colour}"/>')
    step = 10 ** len(str(int(end / 5))) / 2
    for k in range(int(end / step) + 1):
        x = LEFT + k * step * scale
        out.append(f'<text x="{x:.0f}" y="{height - 6}" text-anchor="middle" fill="#666">{k * step:g} us</text>')
        out.append(f'<path d="M{x:.1f} {TOP}V{height - 20}" stroke="#0002"/>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("events", type=pathlib.Path, metavar="FILE.csv", help="what `run --csv` wrote")
    parser.add_argument("picture", type=pathlib.Path, metavar="FILE.svg")
    arguments = parser.parse_args()
    with arguments.events.open(newline="", encoding="utf-8") as file:
        arguments.picture.write_text(picture(csv.DictReader(file)), encoding="utf-8")


if __name__ == "__main__":
    main()
