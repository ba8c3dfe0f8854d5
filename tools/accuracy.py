#!/usr/bin/env python3
"""Compares predicted with measured latency.

    python tools/accuracy.py ROWS.jsonl --sources DIR [--stats DIR] [--json FILE] [--report FILE.md]

ROWS.jsonl has one measured run per line: id, kernel, kernel_fn, api, inputs, params, hw, lnc,
latency_us, counters, traffic, family. DIR holds checkouts of the repositories that the rows name.
The directory of a checkout has the name of the repository (`aws-neuron-sdk`,
`aws-neuron+aws-neuron-sdk` or `aws-neuron/aws-neuron-sdk`). The tool copies nothing from them. The
report lists each row that cannot run, with the reason.

Rows that need the older interface run a port of the kernel if tests/ports has one. --stats also
compares single instructions.

Writes docs/accuracy.md and docs/accuracy.svg (or --report FILE.md and the .svg next to it).
"""

import argparse
import ast
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib

import accuracy_laws
import accuracy_ports
import accuracy_report

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The note of a row whose kernel was compiled without the scheduler.
UNSCHEDULED = "enable-instruction-scheduling=false"
FILE = re.compile(r"[\w.+/-]+\.(?:py|rst|md)\b")


class CannotRun(Exception):
    """The reason why a row is left out."""


# --- source of a row's kernel


def checkouts(sources):
    """Checkout directories by repository name, without the owner."""
    found = {}
    for child in sorted(p for p in sources.iterdir() if p.is_dir()):
        found.setdefault(re.split(r"[+]|__", child.name)[-1], child)
        # DIR/owner/name
        if not (child / ".git").exists():
            for inner in sorted(p for p in child.iterdir() if p.is_dir() and (p / ".git").exists()):
                found.setdefault(inner.name, inner)
    return found


def candidates(row):
    """(repository or None, path, function or None) for each file that `kernel` of the row names, as
    written."""
    text = row.get("kernel") or ""
    named = [re.split(r"[:@]", row.get(key) or "")[0].rstrip("/").split("/")[-1] for key in ("url", "source")]
    for match in FILE.finditer(text):
        path, before, after = match.group(), text[: match.start()], text[match.end() :]
        function = re.match(r"(?:@\w+)?:(\w+)", after)
        repository = re.search(r"(?:^|\s|/)([\w.-]+):$", before)
        if repository:
            yield repository.group(1), path, function and function.group(1)
        else:
            for name in named:
                yield name, path, function and function.group(1)
            # `aws-neuron-sdk/nki/...`, or `nki/...` without a repository
            first, _, rest = path.partition("/")
            yield first, rest, function and function.group(1)
            yield None, path, function and function.group(1)


def locate(row, found):
    tried = []
    for repository, path, function in candidates(row):
        roots = [found[repository]] if repository in found else list(found.values()) if repository is None else []
        for root in roots:
            if (root / path).is_file():
                return root / path, function
        tried.append(f"{repository}/{path}" if repository else path)
    wanted = row.get("kernel_fn")
    raise CannotRun(f"no source: {', '.join(dict.fromkeys(tried)) or wanted or 'the row names no file'} is not in --sources")


def code_block(path, row, function):
    """The code block of a document that defines the function. Of several, the last one before the
    document shows the row's variant."""
    text = path.read_text()
    label = re.search(r"code block for (v\d+)", row["kernel"])
    end = text.find(f"/{label.group(1)}-") if label else len(text)
    blocks = re.finditer(r"^( *)\.\. code-block:: python\n((?:\1 +.*\n|\s*\n)+)", text[: end if end > 0 else len(text)], re.M)
    with_it = [textwrap.dedent(b.group(2)) for b in blocks if re.search(rf"def {function}\b", b.group(2))]
    if not with_it:
        raise CannotRun(f"no code block in {path.name} defines {function}")
    # Until release 0.3 a kernel could return a tensor in private HBM, and the manual's pages about
    # speed still do. The latency is the same.
    return with_it[-1].replace("buffer=nl.hbm)", "buffer=nl.shared_hbm)")


def kernels_of(text):
    """Functions of a file: name -> (parameter names, whether it is a kernel)."""
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        raise CannotRun(f"not Python: {e}") from None
    functions = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
            functions[node.name] = names, any("jit" in ast.unparse(d) for d in node.decorator_list)
    return functions


# --- one run


def command(binary, row, found, folder):
    """The command for a row. Files that it needs are written to `folder`."""
    common = ["--no-numerics", "--target", row.get("hw", "trn2")]
    port = accuracy_ports.words(row, ROOT / "tests" / "ports")
    if port:
        return [*binary, "run", *port, *common]
    if not str(row.get("api", "")).startswith("beta2"):
        raise CannotRun(f"needs the older interface ({row.get('api')})")
    path, function = locate(row, found)
    function = function or row.get("kernel_fn") or ""
    if path.suffix != ".py":
        text = code_block(path, row, function)
        path = folder / (re.sub(r"\W", "_", row["id"]) + ".py")
        path.write_text(text)
    functions = kernels_of(path.read_text())
    if function not in functions:
        kernels = [name for name, (_, kernel) in functions.items() if kernel]
        if len(kernels) != 1:
            raise CannotRun(f"{path.name} has no function {function}")
        function = kernels[0]
    names = functions[function][0]
    inputs, params = row.get("inputs") or [], row.get("params") or {}
    given = [i.get("name") for i in inputs]
    if not set(given) <= set(names):
        given = names[: len(inputs)]
    words = [*binary, "run", str(path), "--kernel", function, *common]
    if UNSCHEDULED in str(row.get("notes")):
        # The transfers are in program order.
        words += ["--set", "compiler.late_share=0"]
    if str(row.get("lnc", 1)).startswith("2"):
        words += ["--lnc", "2"]
    for name, i in zip(given, inputs):
        words += ["--arg", f"{name}={i['dtype']}[{','.join(map(str, i['shape']))}]"]
    for name, value in params.items():
        if name in names:
            words += ["--arg", f"{name}={value!r}"]
    return words


def run(binary, row, found, more, timeout):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        report = folder / "report.json"
        words = [*command(binary, row, found, folder), "--json", str(report), *more]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise CannotRun(f"timeout after {timeout} s") from None
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("error")] or done.stderr.splitlines()
            raise CannotRun((lines or [f"exit code {done.returncode}"])[0])
        return json.loads(report.read_text())


def share(value):
    """A fraction, converted from a fraction or a percentage."""
    return value / 100 if value > 1.5 else value


def measured_counters(c):
    """The measured counters under this tool's names, converted from the different names in the
    rows."""
    out = {}
    for ours, theirs in {
        "tensor_active": ("tensor_engine_active_frac", "tensor_engine_active_pct", "tensor_engine_active_time_percent"),
        "dma_active": ("dma_active_frac", "dma_active_pct", "dma_active_time_percent"),
        "dma_bytes": ("dma_bytes",),
        "dma_transfers": ("dma_transfers", "dma_transfer_count"),
    }.items():
        value = next((c[t] for t in theirs if c.get(t) is not None), None)
        if value is not None:
            out[ours] = share(value) if ours.endswith("active") else value
    return out


def predicted_counters(report):
    return {
        "tensor_active": report["engines"]["tensor"]["active_percent"] / 100,
        "dma_active": report["dma"]["active_percent"] / 100,
        "dma_bytes": report["dma"]["bytes"],
        "dma_transfers": report["dma"]["transfers"],
    }


def ideal_us(row):
    """Time of the tensor engine alone at its documented rate, in us, for a matrix product; None for
    other kernels."""
    shapes = [i["shape"] for i in row.get("inputs") or []]
    if row.get("family") not in ("matmul", "gemm") or len(shapes) != 2 or any(len(s) != 2 for s in shapes):
        return None
    (k, m), (_, n) = shapes
    cycles = {"float32": 4}.get(row["inputs"][0]["dtype"], 1)
    clock = 2.8 if row.get("hw") == "trn1" else 2.4
    return k * m * n * cycles / (128 * 128) / clock / 1e3


def result(binary, row, found, more, timeout):
    port = accuracy_ports.words(row, ROOT) is not None
    base = {"id": row["id"], "family": row.get("family"), "port": port, "traffic": row.get("traffic"), "measured_us": row["latency_us"]}
    measured = measured_counters(row.get("counters") or {})
    try:
        report = run(binary, row, found, more, timeout)
    except CannotRun as e:
        return base | {"predicted_us": None, "reason": str(e)}
    predicted = predicted_counters(report)
    flat = {}
    for name, value in predicted.items():
        flat[f"measured_{name}"] = measured.get(name)
        flat[f"predicted_{name}"] = value
    shapes = ",".join("x".join(map(str, i["shape"])) + i["dtype"] for i in row.get("inputs") or [])
    return base | {
        "predicted_us": report["latency_us"],
        **flat,
        "counters": {n: {"measured": measured.get(n), "predicted": v} for n, v in predicted.items()},
        "hw": row.get("hw"),
        "ideal_us": ideal_us(row),
        "grid": f"{row.get('hw')} {row.get('kernel_fn')} {shapes}",
        "params": row.get("params") or {},
        "stalls": report["stalls"],
        "confidence": report.get("confidence", []),
    }


def parameters(target):
    """Values of the timing parameters by name."""
    out = {}

    def walk(prefix, table):
        for key, entry in table.items():
            if "value" in entry:
                out[prefix + key] = entry["value"]
            else:
                walk(f"{prefix}{key}.", entry)

    walk("", tomllib.loads((ROOT / "sim/src/timing/params" / f"{target}.toml").read_text()))
    return out


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
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose id contains this")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a timing parameter")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--timeout", type=int, default=600, metavar="SECONDS", help="for each row")
    args = parser.parse_args()
    if not args.sources.is_dir():
        sys.exit(f"--sources {args.sources}: no such directory")
    rows = []
    for number, line in enumerate(args.rows.read_text().splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as e:
                sys.exit(f"{args.rows}:{number}: {e}")
    rows = [r for r in rows if args.only in r["id"]]
    binary, found = find_binary(args.binary), checkouts(args.sources)
    more = [word for s in args.set for word in ("--set", s)]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda r: result(binary, r, found, more, args.timeout), rows))
    figures = accuracy_report.figures(results)
    laws = accuracy_laws.laws(binary, args.stats, parameters("trn2")) if args.stats else None
    if args.json:
        args.json.write_text(json.dumps({"summary": figures, "rows": results, "laws": laws[0] if laws else []}, indent=1) + "\n")
    if args.report != pathlib.Path("-"):
        accuracy_report.write(args.report or ROOT / "docs" / "accuracy.md", results, figures, laws)
    print(accuracy_report.summary(figures, laws))


if __name__ == "__main__":
    main()
