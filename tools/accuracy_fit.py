"""Fits parameters of the timing model to rows, with groups of rows left out.

The loss is the mean over groups of the mean and the median of |log(predicted / measured)|, each
group weighted by the square root of its number of rows. Each parameter has a lattice of values in
its range. Every row runs at a centre with one parameter at a time changed. From these responses,
the log latency of a row at any point is approximated as the sum of its responses along the axes. A
fit, with or without a group, is a search on that sum and needs no runs. The first centre is the
middle of each range; the next ones are the fits to all rows, with a finer grid. The reported
predictions come from runs with the fitted values.
"""

import concurrent.futures
import hashlib
import json
import math
import re
import threading
import tomllib
from statistics import mean, median

import accuracy_groups
import accuracy_neuronxcc
import accuracy_rows
from accuracy_rows import ROOT, CannotRun

PARAMS = ROOT / "sim" / "src" / "timing" / "params"
# The parameters of trn2 that are fitted to the rows.
FITTED = [
    "kernel.head_us=8:14",
    "kernel.pair_us=1:6",
    "compiler.trigger_estimate",
    "compiler.dma_latency_us=1.5:5",
    "dma.profile_trigger_ns",
    "collectives.hop_us",
    "collectives.reduction_us",
    "collectives.mesh_bytes_per_ns",
    "collectives.rdh_bytes_per_ns",
    "collectives.ring_bytes_per_ns",
]
POINTS = 25
# By round, distances from the centre of the points at which rows run; the first round starts with
# the ends of the range.
ROUNDS = [(-12, 12, -6, 6), (-3, 3, -1, 1), (-1, 1)]
STRIDES = (6, 3, 1)
# The distance by which a fit at the edge of the responses extends them.
EXTENSION = 3
# Parameters that concern only some rows, by prefix of their name: a predicate on the row and the
# features in the report of its run.
CONCERNS = {
    "collectives.": lambda row, features: features["ranks"],
    "kernel.head_us": lambda row, features: accuracy_rows.measure_of(row) == "profile" and not accuracy_neuronxcc.is_older(row),
    "kernel.pair_us": lambda row, features: str(row.get("lnc", 1)).startswith("2"),
}
# A row does not depend on a parameter if its latency changes by less than this fraction between the
# ends of the range.
SENSITIVE = 1e-4


def entries(target):
    """The timing parameters of a target by name: tables with value and confidence."""
    out = {}

    def walk(prefix, table):
        for key, entry in table.items():
            if "value" in entry:
                out[prefix + key] = entry
            else:
                walk(f"{prefix}{key}.", entry)

    walk("", tomllib.loads((PARAMS / f"{target}.toml").read_text()))
    return out


class Parameter:
    """A fitted parameter of trn2, and of the targets that inherit its value.

    `text` is NAME or NAME=LO:HI; without a range, it goes from half to double the present value.
    """

    def __init__(self, text, tables):
        self.name, _, span = text.partition("=")
        if self.name not in tables["trn2"]:
            raise ValueError(f"--fit {text}: no timing parameter `{self.name}`")
        self.value = tables["trn2"][self.name]["value"]
        self.targets = {t for t, table in tables.items() if table.get(self.name, {}).get("value") == self.value}
        low, _, high = span.partition(":")
        self.low, self.high = (float(low), float(high)) if span else (self.value / 2, self.value * 2)
        if not 0 < self.low < self.high:
            raise ValueError(f"--fit {text}: a range needs 0 < LO < HI")

    def at(self, index):
        return float(f"{self.low * (self.high / self.low) ** (index / (POINTS - 1)):.5g}")


def parameters(texts):
    """The parameters of `--fit`, or FITTED."""
    tables = {path.stem: entries(path.stem) for path in sorted(PARAMS.glob("*.toml"))}
    return [Parameter(text, tables) for text in texts or FITTED]


class Runs:
    """Latencies of rows by parameter values, cached in memory and, if given, in `file`."""

    def __init__(self, simulator, rows, results, workspace, folder, jobs, file=None):
        """`results` of `rows` are the results with all rows in the fit. Rows that did not run are
        omitted, and so are those of which only ratios count."""
        self.simulator, self.jobs, self.file, self.folder = simulator, jobs, file, folder
        self.rows = {r["id"]: r | {"log": math.log(r["measured_us"])} for r in results if r["predicted_us"] is not None and not r.get("ratios")}
        self.sources, self.words, self.known, self.lock = {}, {}, {}, threading.Lock()
        program = hashlib.sha1()
        for part in simulator.binary:
            program.update(open(part, "rb").read() if "/" in part else part.encode())
        for row in rows:
            if row["id"] in self.rows:
                own = folder / f"fit-{row['id'].replace('/', '_')}"
                own.mkdir()
                launches = accuracy_rows.commands(row, workspace, own)
                kernel = hashlib.sha1(b"".join(open(words[0], "rb").read() for words in launches) + json.dumps(row, sort_keys=True).encode() + program.digest())
                self.sources[row["id"]], self.words[row["id"]] = row, (launches, kernel.hexdigest())
        if file and file.exists():
            self.known = {tuple(key): value for key, value in map(json.loads, file.read_text().splitlines())}

    def concerns(self, parameter, name):
        """Whether a row may depend on a parameter."""
        tests = [test for start, test in CONCERNS.items() if parameter.name.startswith(start)]
        return all(test(self.sources[name], self.rows[name]["features"]) for test in tests)

    def latency(self, name, settings):
        """The latency of a row in us; None if it cannot run."""
        row = self.sources[name]
        launches, kernel = self.words[name]
        target = accuracy_rows.target_of(row)
        own = [(p.name, value) for p, value in settings if target in p.targets and self.concerns(p, name)]
        key = (kernel, json.dumps(own))
        if key not in self.known:
            report = self.folder / f"{threading.get_ident()}.json"
            try:
                value = 0.0
                for words in launches:
                    self.simulator.execute(words, row, own, report)
                    with report.open() as file:
                        value += float(re.search(r'"latency_us": *([\d.]+)', file.read(1 << 16)).group(1))
            except CannotRun:
                value = None
            with self.lock:
                self.known[key] = value
                if self.file:
                    with self.file.open("a") as file:
                        file.write(json.dumps([key, value]) + "\n")
        return self.known[key]

    def latencies(self, settings, names=None):
        names = list(self.rows) if names is None else names
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            return dict(zip(names, pool.map(lambda name: self.latency(name, settings), names)))


class Responses:
    """The log latency of each row around a centre of the lattice."""

    def __init__(self, runs, chosen, centre, sensitive=None):
        """`sensitive` has for each axis the rows that depend on its parameter; None stands for the
        rows that the parameter concerns."""
        self.runs, self.chosen, self.centre = runs, chosen, centre
        self.base = self.run(centre, list(runs.rows))
        self.along = [{at: dict.fromkeys(self.base, 0.0)} for at in centre]
        self.sensitive = sensitive or [self.concerned(parameter) for parameter in chosen]

    def concerned(self, parameter):
        """The rows that may depend on a parameter."""
        return {name for name in self.base if self.runs.concerns(parameter, name)}

    def run(self, point, names):
        latencies = self.runs.latencies(settings(self.chosen, point), names)
        return {name: math.log(us) for name, us in latencies.items() if us is not None}

    def extend(self, axis, index):
        if 0 <= index < POINTS and index not in self.along[axis]:
            point = list(self.centre)
            point[axis] = index
            logs = self.run(point, [name for name in self.base if name in self.sensitive[axis]])
            self.along[axis][index] = {name: logs.get(name, base) - base for name, base in self.base.items()}

    def find_sensitive(self, axis):
        """Drops the rows that do not respond along an axis, after its ends have been run."""
        changes = self.along[axis].values()
        self.sensitive[axis] = {name for name in self.sensitive[axis] if any(abs(change[name]) > SENSITIVE for change in changes)}

    def logs(self, point, names):
        """The log latencies at a point within the responses, interpolated linearly."""
        parts = []
        for responses, index in zip(self.along, point):
            low = max(at for at in responses if at <= index)
            high = min(at for at in responses if at >= index)
            share = (index - low) / (high - low) if high > low else 0.0
            parts.append((responses[low], responses[high], share))
        return {name: self.base[name] + sum(a[name] + (b[name] - a[name]) * share for a, b, share in parts) for name in names}

    def fit(self, names):
        """(point, loss) of the best point for `names` within the responses. If it lies at the edge
        of the responses, they are extended."""
        names = [name for name in names if name in self.base]
        while True:
            bounds = [(min(responses), max(responses)) for responses in self.along]
            point, least = search(lambda at: loss(self.logs(at, names), self.runs.rows), self.centre, bounds)
            edges = [(a, i + step) for a, (i, (low, high)) in enumerate(zip(point, bounds)) for step in [-EXTENSION] * (i == low) + [EXTENSION] * (i == high)]
            edges = [(axis, min(max(index, 0), POINTS - 1)) for axis, index in edges]
            edges = [(axis, index) for axis, index in edges if index not in self.along[axis]]
            if not edges:
                return point, least
            for axis, index in edges:
                self.extend(axis, index)


def responses(runs, chosen):
    """The responses around the fit to all rows."""
    centre, sensitive = tuple([POINTS // 2] * len(chosen)), None
    for distances in ROUNDS:
        around = Responses(runs, chosen, centre, sensitive)
        for axis in range(len(chosen)):
            for count, distance in enumerate(distances, 1):
                around.extend(axis, centre[axis] + distance)
                if distances == ROUNDS[0] and count == 2:
                    around.find_sensitive(axis)
        sensitive = around.sensitive
        point, _ = around.fit(list(runs.rows))
        if point == centre and distances != ROUNDS[0]:
            break
        centre = point
    return around


def loss(logs, rows):
    groups = {}
    for name, predicted in logs.items():
        groups.setdefault(rows[name]["group"], []).append(abs(predicted - rows[name]["log"]))
    weights = {group: math.sqrt(len(errors)) for group, errors in groups.items()}
    return sum(weights[g] * (mean(e) + median(e)) / 2 for g, e in groups.items()) / sum(weights.values())


def search(evaluate, start, bounds):
    """(point, value) of the minimum of `evaluate(point)` found by a search along one axis after the
    other, with decreasing strides. `bounds` has the lowest and highest index of each axis."""
    best = list(start)
    least = evaluate(best)
    for stride in STRIDES:
        improved = True
        while improved:
            improved = False
            for axis, (low, high) in enumerate(bounds):
                for step in (-stride, stride):
                    while True:
                        trial = list(best)
                        trial[axis] = min(max(trial[axis] + step, low), high)
                        value = evaluate(trial) if trial != best else least
                        if value >= least - 1e-6:
                            break
                        best, least, improved = trial, value, True
    return tuple(best), least


def settings(chosen, point):
    return [(p, p.at(i)) for p, i in zip(chosen, point)]


def folds(rows, wanted):
    """Groups to leave out, as name -> ids: every group, or the rows whose group or lineage contains
    `wanted`."""
    if wanted == "all":
        out = {}
        for name, row in rows.items():
            out.setdefault(row["group"], []).append(name)
        return out
    found = [name for name, row in rows.items() if wanted in row["group"] or wanted in row["lineage"]]
    if not found:
        raise ValueError(f"--leave-out {wanted}: no row that runs has such a group or lineage")
    return {wanted: found}


def again(runs, around, point, names):
    """The results of rows, with the predictions of a fit."""
    predicted = runs.latencies(settings(around.chosen, point), names)
    return [runs.rows[name] | {"predicted_us": predicted[name]} for name in names if predicted[name] is not None]


def fits(runs, chosen, wanted, tell):
    """The fit to all rows, and the fits without groups (`wanted`: a group, `all` or None).

    Both have `rows` (results with the predictions of the fits) and `groups` (their figures); `in_view` has the `values` of the fit and
    its `loss`, `left_out` has them by fold. `loss_of_runs` is the loss of the runs with these values.
    """
    left_out = folds(runs.rows, wanted) if wanted else {}
    around = responses(runs, chosen)

    def told(label, point, least):
        values = {p.name: value for p, value in settings(chosen, point)}
        tell(f"{label}: {', '.join(f'{n} = {v:g}' for n, v in values.items())}; loss {least:.4f}")
        return {"values": values, "loss": least}

    names = list(around.base)
    point, least = around.fit(names)
    rows = again(runs, around, point, names)
    out = {
        "parameters": [p.name for p in chosen],
        "in_view": told("fit to all rows", point, least)
        | {
            "loss_of_runs": loss({r["id"]: math.log(r["predicted_us"]) for r in rows}, runs.rows),
            "rows": rows,
            "groups": accuracy_groups.by_group(rows),
        },
        "left_out": None,
    }
    if left_out:
        rows, done = [], []
        for group, ids in left_out.items():
            left = set(ids)
            point, least = around.fit([name for name in names if name not in left])
            rows += again(runs, around, point, ids)
            done.append({"group": group, **told(f"without {group}", point, least)})
        out["left_out"] = {"folds": done, "rows": rows, "groups": accuracy_groups.by_group(rows)}
    return out
