#!/usr/bin/env python3
"""Compares predicted with measured latency.

    python tools/accuracy.py ROWS.jsonl --sources DIR [--leave-out GROUP|all] [--stats DIR] [--json FILE] [--report FILE.md]

ROWS.jsonl has one measured run per line: id, kernel, kernel_fn, api, inputs, params, hw, lnc,
latency_us, stat, counters, traffic, family. DIR holds checkouts of the repositories that the rows
name. The directory of a checkout has the name of the repository (`aws-neuron-sdk`,
`aws-neuron+aws-neuron-sdk` or `aws-neuron/aws-neuron-sdk`). The tool copies nothing from them. The
report lists each row that cannot run, with the reason.

Rows whose source cannot run use a port of the kernel if tests/ports has one. --leave-out refits the
fitted parameters without a group of rows and reports the error on that group. --stats also compares
single instructions.

Writes docs/accuracy.md, docs/accuracy.svg and docs/accuracy_rows.md (or --report FILE.md and the other two next to it).
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import accuracy_errors
import accuracy_fit
import accuracy_groups
import accuracy_laws
import accuracy_ports
import accuracy_report
import accuracy_rows
from accuracy_rows import ROOT, CannotRun


def share(value):
    """A fraction, converted from a fraction or a percentage."""
    return value / 100 if value > 1.5 else value


def measured_counters(c):
    """The measured counters under this tool's names, converted from the different names in the
    rows."""
    out = {}
    for ours, theirs in {
        "tensor_active": ("tensor_engine_active_frac", "tensor_engine_active_pct", "tensor_engine_active_time_percent", "tensor"),
        "dma_active": ("dma_active_frac", "dma_active_pct", "dma_active_time_percent", "dma"),
        "dma_bytes": ("dma_bytes",),
        "dma_transfers": ("dma_transfers", "dma_transfer_count"),
    }.items():
        value = next((c[t] for t in theirs if c.get(t) is not None), None)
        if value is not None:
            out[ours] = share(value) if ours.endswith("active") else value
    return out


def predicted_counters(reports):
    """The counters over all launches: bytes and transfers are summed; fractions refer to the total
    time."""
    total = sum(report["latency_us"] for report in reports)
    part = lambda active: sum(active(report) * report["latency_us"] for report in reports) / total / 100
    return {
        "tensor_active": part(lambda report: report["engines"]["tensor"]["active_percent"]),
        "dma_active": part(lambda report: report["dma"]["active_percent"]),
        "dma_bytes": sum(report["dma"]["bytes"] for report in reports),
        "dma_transfers": sum(report["dma"]["transfers"] for report in reports),
    }


class Simulator:
    """The command, and which options it supports."""

    def __init__(self, binary, timeout):
        self.binary, self.timeout = binary, timeout
        text = subprocess.run([*binary, "run", "--help"], capture_output=True, text=True).stdout
        self.has_measure = "--measure" in text

    def execute(self, words, row, settings, report):
        """Runs a row and writes its report. `settings` are pairs of parameter and value."""
        words = [*self.binary, "run", *words, "--json", str(report)]
        if self.has_measure:
            words += ["--measure", accuracy_rows.measure_of(row)]
        for name, value in settings:
            words += ["--set", f"{name}={value}"]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise CannotRun(f"timeout after {self.timeout} s") from None
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error")] or done.stderr.splitlines()
            raise CannotRun((lines or [f"exit code {done.returncode}"])[0])


def result(simulator, row, workspace, settings, folder):
    """Everything about a row: its group, the measurement, and the prediction or the reason why
    there is none."""
    base = {
        "id": row["id"],
        "family": row.get("family"),
        "group": accuracy_groups.group_of(row),
        "lineage": accuracy_groups.lineage_of(row),
        "pair_margin": accuracy_groups.pair_margin(row),
        "measure": accuracy_rows.measure_of(row),
        "quality": row.get("quality"),
        "port": accuracy_ports.port(row) is not None,
        "ratios": accuracy_groups.is_ratio(row),
        "suite": accuracy_groups.suite_of(row),
        "traffic": row.get("traffic"),
        "hw": row.get("hw"),
        "params": row.get("params") or {},
        "measured_us": row["latency_us"],
    }
    folder = folder / base["id"].replace("/", "_")
    folder.mkdir()
    try:
        reports = []
        for words in accuracy_rows.commands(row, workspace, folder):
            simulator.execute(words, row, settings, folder / "report.json")
            reports.append(json.loads((folder / "report.json").read_text()))
    except CannotRun as e:
        return base | {"predicted_us": None, "reason": str(e)}
    finally:
        shutil.rmtree(folder)
    measured, predicted = measured_counters(row.get("counters") or {}), predicted_counters(reports)
    report = max(reports, key=lambda report: report["latency_us"])
    flops = sum(report["summary"]["hardware_flops"] for report in reports)
    return base | {
        "predicted_us": sum(report["latency_us"] for report in reports),
        **accuracy_groups.formulas(row, flops, predicted["dma_bytes"], report["lnc"]),
        "counters": {n: {"measured": measured.get(n), "predicted": v} for n, v in predicted.items()},
        "features": report.get("latency_error", {}).get("features"),
        "stalls": report["stalls"],
        "confidence": report.get("confidence", []),
    }


def find_binary(given):
    if given:
        return [given]
    for build in ("release", "debug"):
        path = ROOT / "target" / build / "nki-sim"
        if path.is_file():
            return [str(path)]
    if shutil.which("nki-sim"):
        return ["nki-sim"]
    if importlib.util.find_spec("nki_sim"):
        return [sys.executable, "-m", "nki_sim"]
    sys.exit("no nki-sim found: `cargo build --release`, or install the Python package, or give --binary")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path, metavar="ROWS.jsonl")
    parser.add_argument("--sources", type=pathlib.Path, required=True, metavar="DIR", help="checkouts by name")
    parser.add_argument("--stats", type=pathlib.Path, metavar="DIR", help="durations of single instructions, as CSV")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE.md", help="default docs/accuracy.md; `-` for none")
    parser.add_argument("--binary", help="the command; default: target/release, target/debug, PATH, python -m nki_sim")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose id or group contains this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a timing parameter")
    parser.add_argument("--leave-out", metavar="GROUP", help="refit without the rows whose group or lineage contains this; `all`: without each group in turn")
    parser.add_argument("--fit", default="", metavar="NAME[=LO:HI],...", help="parameters to fit; default: those that docs/accuracy.md names")
    parser.add_argument("--cache", type=pathlib.Path, metavar="FILE", help="keeps the latencies of --leave-out for the next call")
    parser.add_argument("--errors", type=pathlib.Path, metavar="FILE.toml", help="write the left-out errors by group, for error bars")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--timeout", type=int, default=600, metavar="SECONDS", help="for each row")
    args = parser.parse_args()
    if args.errors and args.set:
        sys.exit("--errors: an error bar is for the parameters in the files, without --set")
    if not args.sources.is_dir():
        sys.exit(f"--sources {args.sources}: no such directory")
    rows = accuracy_rows.read(args.rows)
    rows = [r for r in rows if args.only in r["id"] or args.only in accuracy_groups.group_of(r)]
    simulator = Simulator(find_binary(args.binary), args.timeout)
    settings = [tuple(s.split("=", 1)) for s in args.set]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(folder)
        workspace = accuracy_rows.Workspace(args.sources, folder)
        results = accuracy_groups.with_scales(list(pool.map(lambda r: result(simulator, r, workspace, settings, folder), rows)))
        fit = None
        if args.leave_out or args.fit:
            try:
                chosen = accuracy_fit.parameters([text for text in args.fit.split(",") if text])
                runs = accuracy_fit.Runs(simulator, rows, results, workspace, folder, args.jobs, args.cache)
                fit = accuracy_fit.fits(runs, chosen, args.leave_out, lambda line: print(line, flush=True))
            except ValueError as e:
                sys.exit(str(e))
    groups = accuracy_groups.by_group(results)
    laws = accuracy_laws.laws(simulator.binary, args.stats, {name: entry["value"] for name, entry in accuracy_fit.entries("trn2").items()}) if args.stats else None
    if args.json:
        args.json.write_text(json.dumps({"fit": fit, "groups": groups, "rows": results, "laws": laws[0] if laws else []}, indent=1) + "\n")
    if args.report != pathlib.Path("-"):
        accuracy_report.write(args.report or ROOT / "docs" / "accuracy.md", results, groups, fit, laws)
    if args.errors:
        if not (fit and fit["left_out"]):
            sys.exit("--errors needs --leave-out all")
        args.errors.write_text(accuracy_errors.text(fit["left_out"]["rows"]))
    for name in ("left_out", "in_view") if fit else ():
        if fit[name]:
            title = {"left_out": "each group left out", "in_view": "fit to all rows"}[name]
            print(f"{title}:\n{accuracy_report.summary(fit[name]['rows'], fit[name]['groups'])}\n")
    print(("present values:\n" if fit else "") + accuracy_report.summary(results, groups))


if __name__ == "__main__":
    main()
