#!/usr/bin/env python3
"""Compares the DMA traffic of kernels for neuronxcc.nki with measured counters.

    python tools/accuracy_beta1.py ROWS --sources DIR [--numerics] [--json FILE]

ROWS is a .tsv file; a row of it has the columns id, family, hw, latency_us, kernel, traffic, source_rd_MB,
measured_rd_MB, source_wr_MB and measured_wr_MB. `kernel` is a file under DIR, or under one of its
folders. A row whose family is a case of NKIBench (in a checkout of AccelOpt under DIR) takes that case's inputs;
other rows are skipped.

ROWS may also be a file of results that AccelOpt's evaluator writes (`profile_results.csv` of an experiment),
measured on trn1. What the hardware moved is printed beside what is simulated.

Rows with the traffic `clean` moved exactly the bytes that their source asks for: the tool reports
whether the simulated bytes are those, and for every row simulated and measured latency. `--numerics`
also compares the outputs with the reference of the case. The exit code is 1 if a clean row differs
or no row could run.
"""

import argparse
import ast
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import accuracy_nkibench  # noqa: E402
from common import environment, files, simulator  # noqa: E402


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path, help="tab-separated rows, or results of AccelOpt's evaluator (.csv)")
    parser.add_argument("--sources", type=pathlib.Path, required=True, help="folder that holds the checkouts by name")
    parser.add_argument("--numerics", action="store_true", help="compute values and compare them with the reference")
    parser.add_argument("--json", type=pathlib.Path, help="write the results here")
    parser.add_argument("-k", dest="filter", default="", help="only rows whose id contains this")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one row may take (default 600)")
    return parser.parse_args()


def read(path: pathlib.Path) -> list[dict]:
    """The rows of a file."""
    with path.open() as text:
        if path.suffix != ".csv":
            return with_columns(path, csv.DictReader(text, delimiter="\t"), ["id", "family", "hw", "kernel", "latency_us", "traffic"])
        return [row_of_result(result) for result in with_columns(path, csv.DictReader(text), ["problem", "kernel", "profile"])]


def with_columns(path: pathlib.Path, rows: csv.DictReader, columns: list[str]) -> list[dict]:
    """All rows of a file, which must have these columns."""
    missing = [column for column in columns if column not in (rows.fieldnames or [])]
    if missing:
        sys.exit(f"error: {path} has no column {missing[0]!r}")
    return list(rows)


def row_of_result(result: dict) -> dict:
    """The row of a result of AccelOpt's evaluator."""
    profile = json.loads(result["profile"])
    return {
        "id": result["problem"],
        "family": result["problem"],
        "hw": "trn1",
        "kernel": f"NKIBench/kernels/{pathlib.PurePosixPath(result['kernel']).name}",
        "latency_us": profile["latency"] * 1000,
        "traffic": "measured",
        "measured_rd_MB": profile["hbm_read_bytes"] / 1e6,
        "measured_wr_MB": profile["hbm_write_bytes"] / 1e6,
    }


def source(row: dict, sources: pathlib.Path) -> pathlib.Path | None:
    path = row["kernel"].rpartition(":")[2]
    return next((file for root in [sources, *sorted(sources.iterdir())] if (file := root / path).is_file()), None)


def run(row: dict, file: pathlib.Path, module, options: argparse.Namespace) -> dict:
    import numpy as np

    inputs, tiled = accuracy_nkibench.inputs(module)
    function = next(n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef) and n.name == "kernel")
    with tempfile.TemporaryDirectory(prefix="nki-beta1-") as name:
        folder = pathlib.Path(name)
        command = [simulator.command(), "run", str(file), "--kernel", "kernel", "--target", row["hw"], "--disable-dge", "--json", str(folder / "report.json")]
        command += ["--out", str(folder / "out")] if options.numerics else ["--no-numerics"]
        for parameter, value in zip((a.arg for a in function.args.args), tiled):
            if np.ndim(value) == 0:
                text = repr(np.asarray(value).item())
            elif options.numerics:
                np.save(folder / f"{parameter}.npy", np.ascontiguousarray(value))
                text = str(folder / f"{parameter}.npy")
            else:
                text = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
            command += ["--arg", f"{parameter}={text}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
        if done.returncode:
            return {"error": next((line for line in done.stderr.splitlines() if line.startswith("error")), done.stderr.strip()[:200])}
        report = json.loads((folder / "report.json").read_text())
        result = {"latency_us": report["latency_us"], **traffic(report)}
        if options.numerics:
            outputs = [np.load(folder / "out" / f"{output['name']}.npy") for output in report["outputs"]]
            expected = module.forward(*inputs)
            got = module.transform_nki_outputs(outputs[0] if len(outputs) == 1 else tuple(outputs), expected)
            several = lambda value: list(value) if isinstance(value, (tuple, list)) else [value]
            result["relative_error"] = max(
                float(np.linalg.norm(have.astype(np.float64) - want) / np.linalg.norm(want)) for have, want in zip(several(got), several(expected), strict=True)
            )
        return result


def traffic(report: dict) -> dict:
    """Megabytes read from and written to HBM."""
    moved = report["traffic"]
    return {"read_MB": moved["hbm_read_bytes"] / 1e6, "written_MB": moved["hbm_write_bytes"] / 1e6}


def judge(row: dict, result: dict) -> str:
    """The discrepancies in the traffic of a clean row, to the precision of its columns."""
    if row["traffic"] != "clean":
        return ""
    wrong = []
    for have, want in (("read_MB", "source_rd_MB"), ("written_MB", "source_wr_MB")):
        if abs(result[have] - float(row[want])) > 0.0501:
            wrong.append(f"{have} {result[have]:.1f}, expected {row[want]}")
    return "; ".join(wrong)


def measured(row: dict) -> str:
    """The bytes that the hardware read and wrote, and the time that it took."""
    moved = [row.get("measured_rd_MB"), row.get("measured_wr_MB")]
    # `-` stands for a missing count.
    text = " / ".join(f"{float(n):.1f}" for n in moved) + " MB, " if not {None, "", "-"} & set(moved) else ""
    return f"{text}{float(row['latency_us']):.0f} us"


def main() -> int:
    options = arguments()
    environment.need(["numpy", "ml_dtypes"])
    rows = [row for row in read(options.rows) if options.filter in row["id"]]
    results, differing = [], 0
    for row in rows:
        file, module = source(row, options.sources), accuracy_nkibench.case(row["family"], options.sources)
        if file is None or module is None:
            print(f"skipped  {row['id']}: {'no file' if file is None else 'no case of NKIBench'}", flush=True)
            continue
        try:
            result = run(row, file, module, options)
        except subprocess.TimeoutExpired:
            result = {"error": f"took more than {options.timeout:.0f} s"}
        result |= {"id": row["id"], "traffic": row["traffic"], "measured_us": float(row["latency_us"])}
        problem = result.get("error") or judge(row, result)
        differing += bool(problem) and row["traffic"] == "clean"
        shown = "" if "error" in result else f"{result['read_MB']:9.1f} MB read, {result['written_MB']:8.1f} written, {result['latency_us']:9.0f} us (measured {measured(row)})"
        shown += f", relative error {result['relative_error']:.1e}" if "relative_error" in result else ""
        print(f"{'differs' if problem else 'same' if row['traffic'] == 'clean' else row['traffic']:12} {row['id']:45} {shown} {problem}", flush=True)
        results.append(result)
    clean = [r for r in results if r["traffic"] == "clean"]
    print(f"{len(clean) - differing} of {len(clean)} clean rows move the bytes of their source")
    if options.json:
        files.write_whole(options.json, json.dumps(results, indent=1))
    return 1 if differing or not results else 0


if __name__ == "__main__":
    sys.exit(main())
