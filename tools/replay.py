#!/usr/bin/env python3
"""Replays hardware profiles with the model of the machine and prints a table of the errors.

    python tools/replay.py PROFILE.json... [--params FILE.toml] [--leave-out]

A profile is the file of `neuron-profile view --output-format json`. `nki-sim replay` reads it and
times its instruction stream; this tool collects the figures of several profiles. With --leave-out
each profile is also replayed with parameters that `nki-sim calibrate` fits to the others.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import simulator  # noqa: E402

HEAD = ["profile", "parameters", "recorded", "replayed", "error", "starts: median", "starts: worst", "by law", "limiter"]


def run(words: list[str]) -> str:
    """Standard output of the command; exits with its message if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"error: cannot run {words[0]} ({error.strerror}); set NKI_SIM to the path of nki-sim")
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{words[0]} exits with {done.returncode}")
    return done.stdout


def replay(binary: str, profile: pathlib.Path, params: pathlib.Path | None, folder: pathlib.Path) -> dict:
    """The figures of one replay."""
    out = folder / "figures.json"
    changes = ["--params", str(params)] if params else []
    run([binary, "replay", str(profile), "--json", str(out), *changes])
    return json.loads(out.read_text())


def limiter(figures: dict) -> str:
    """How many of the recorded changes of the rate the replay has within a period of each other."""
    hits = total = 0
    for core in figures["limiter"]:
        replayed = [tuple(change) for change in core["replayed_us"]]
        for at, full in core["recorded_us"]:
            total += 1
            hits += any(full == other and abs(at - when) < 1.7 for when, other in replayed)
    return f"{hits} of {total}"


def percent(value: float | None, digits: str) -> str:
    """A share in percent; none of a total of 0."""
    return "-" if value is None else f"{value:{digits}}%"


def row(name: str, parameters: str, figures: dict) -> list[str]:
    """A row of the table."""
    total, drift, covered = figures["total_us"], figures["drift"], figures["coverage"]
    return [
        name,
        parameters,
        f"{total['recorded']:.2f} us",
        f"{total['replayed']:.2f} us",
        percent(total["error_percent"], "+.1f"),
        percent(drift["median_percent"], ".2f"),
        percent(drift["worst_percent"], ".1f"),
        f"{covered['by_law'] / max(covered['instructions'], 1):.1%}",
        limiter(figures),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profiles", nargs="+", type=pathlib.Path, metavar="PROFILE.json")
    parser.add_argument("--params", type=pathlib.Path, metavar="FILE.toml", help="timing parameters")
    parser.add_argument("--leave-out", action="store_true", help="also fit to all profiles but the one replayed")
    args = parser.parse_args()
    if args.leave_out and len({profile.resolve() for profile in args.profiles}) < 2:
        sys.exit("--leave-out needs two different profiles or more")
    binary = simulator.command()
    rows = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for profile in args.profiles:
            rows.append(row(profile.stem, "given" if args.params else "default", replay(binary, profile, args.params, folder)))
            if args.leave_out:
                fitted = folder / "fitted.toml"
                others = [str(p) for p in args.profiles if p.resolve() != profile.resolve()]
                start = ["--params", str(args.params)] if args.params else []
                run([binary, "calibrate", *others, "-o", str(fitted), *start])
                rows.append(row(profile.stem, "fitted to the others", replay(binary, profile, fitted, folder)))
    for cells in [HEAD, ["---"] * len(HEAD), *rows]:
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
