"""Several ranks: a kernel on n logical cores that communicate through collectives."""

import html
import json
import os
from typing import Any

import numpy as np

from . import _arrays, _dependencies, _files, _native
from ._errors import ArgumentError, leave_out_ours
from ._kernel import _explain, _shape, simulate
from ._profile import TRACE_NAMES, TRACES, Report, ending_of, record, write_trace


# The limit of `--ranks`.
_MOST_RANKS = 1024


class PerRank:
    """One value for each rank, starting with rank 0, for cases where a list is ambiguous: `PerRank([3, 5])`.

    A list of arrays needs no PerRank.
    """

    def __init__(self, values):
        self.values = list(values)

    def __repr__(self):
        return f"PerRank({self.values!r})"


class Ranks:
    """A kernel on several ranks; the result of `simulate_ranks`.

    A call returns a list with the result of each rank. `ranks[lnc]` has `lnc` physical cores in
    each rank.
    """

    def __init__(self, kernel, count):
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ArgumentError(f"simulate_ranks(kernel, {count!r}): the number of ranks is an integer from 1 to {_MOST_RANKS}")
        if count > _MOST_RANKS:
            raise ArgumentError(f"simulate_ranks(kernel, {count}): at most {_MOST_RANKS} ranks are simulated")
        self.kernel = simulate(kernel)
        self.count = int(count)

    def __getitem__(self, lnc):
        return Ranks(self.kernel[lnc], self.count)

    def __call__(self, *args, **kwargs) -> list[Any]:
        try:
            results, outcome = self._run(args, kwargs, False)
        except Exception as error:
            leave_out_ours(error)
            raise
        self._warn(outcome)
        return results

    def _warn(self, outcome):
        self.kernel._warn(outcome.findings().rstrip() or None)

    def __repr__(self):
        return f"<{self.kernel!r} on {self.count} ranks>"

    def _run(self, args, kwargs, timed):
        positional = [self._each(f"argument {i}", value) for i, value in enumerate(args)]
        named = {name: self._each(f"argument `{name}`", value) for name, value in kwargs.items()}
        calls = [
            self.kernel.bind(*(p[rank] for p in positional), **{n: v[rank] for n, v in named.items()}) for rank in range(self.count)
        ]
        try:
            prepared = self._prepare(calls)
            compiled = [program for program, _ in prepared]
            if any(stepping for _, stepping in prepared):
                compiled = [self.kernel._step(program, calls[rank], compiled, rank) for rank, program in enumerate(compiled)]
            outcome = _native.run_ranks(compiled, timed, self.kernel._wanted)
        except Exception as error:
            _explain(error, calls[0])
            raise
        for rank, (program, ran) in enumerate(zip(compiled, outcome.ranks)):
            for line in program.prints() + ran.prints:
                print(f"rank {rank}: {line}")
        results = [
            self.kernel._restored(program, _shape(ran.result, _kind(arguments)))
            for (program, _), ran, arguments in zip(prepared, outcome.ranks, calls)
        ]
        return results, outcome

    def _prepare(self, calls):
        """The programs of all ranks. Ranks may share an argument that the function changes for an
        earlier rank."""
        watches = [_dependencies.Watch(self.kernel.func, arguments) for arguments in calls[1:]]
        prepared = [self.kernel._prepare(calls[0])]
        for rank, (watch, arguments) in enumerate(zip(watches, calls[1:]), 1):
            watch.check(arguments, f"rank {rank}", calls[0])
            prepared.append(self.kernel._prepare(arguments))
        return prepared

    def _each(self, what, value):
        """The value of an argument on each rank."""
        if isinstance(value, PerRank):
            values = value.values
        elif isinstance(value, list) and any(_holds_array(item) for item in value):
            values = value
        else:
            return [value] * self.count
        if len(values) != self.count:
            raise ArgumentError(
                f"{what} has {len(values)} items for {self.count} ranks: a list that holds arrays has an item for each rank; "
                "for all ranks pass one array, or a tuple of arrays"
            )
        return values


def _kind(arguments):
    return _arrays.kind_of([value for _, value in arguments])


def _holds_array(value):
    return any(
        isinstance(item, np.ndarray) or _arrays.is_of_framework(item)
        for item in _arrays.leaves([value], objects=False)
    )


class RanksReport:
    """The predicted time of one run on several ranks.

    `ranks` has a `Report` for each rank. The fields are those of `nki-sim run --ranks N --json`.
    """

    def __init__(self, outcome):
        self._outcome = outcome
        self._data = json.loads(outcome.json())
        self.ranks = [Report(rank) for rank in outcome.ranks]

    @property
    def latency_us(self):
        """Time until the last rank ends, in microseconds."""
        return self._data["latency_us"]

    @property
    def latency_valid(self):
        """False if the kernel of a rank exceeds SBUF or PSUM and ran anyway."""
        return self._data["latency_valid"]

    @property
    def latency_error(self):
        """The error bar of the rank that ends last, as in its report."""
        return self._data.get("latency_error")

    @property
    def findings(self):
        """The findings of all ranks, each once, as dicts: id, severity, message, file, line, ..."""
        return self._data["findings"]

    def __getitem__(self, rank):
        return self.ranks[rank]

    def __len__(self):
        return len(self.ranks)

    def to_dict(self):
        """All fields as a dict."""
        return json.loads(json.dumps(self._data))

    def to_json(self, path=None):
        """All fields as JSON text; with a path, written to that file.

        :raises ValueError: if the file is a source file of this program.
        """
        text = self._outcome.json()
        if path is None:
            return text
        _files.write(path, text)
        return None

    def save(self, path):
        """Writes the timelines of all ranks as one Perfetto trace (open it at ui.perfetto.dev): a file
        that ends in `.perfetto-trace`, `.pftrace` or `.trace`, or in one of these and `.gz`. `to_json`
        writes the fields, and the reports in `ranks` write pages and tables.

        :raises ValueError: for another extension, and if the file is a source file of this program.
        """
        if ending_of(path) not in TRACES:
            raise ValueError(
                f"report.save({os.fspath(path)!r}): a run on several ranks is saved as a trace; give {TRACE_NAMES}. to_json(path) writes the "
                "fields, and report[rank].save(path) a page or table of one rank"
            )
        write_trace(path, self._outcome)

    def __str__(self):
        return self._outcome.table()

    def __repr__(self):
        return f"<Report of {self._data['kernel']} on {len(self.ranks)} ranks: {self.latency_us:.2f} us>"

    def _repr_html_(self):
        rows = "".join(
            f"<tr><td>{rank}</td><td>{report.latency_us:.2f}</td><td>{html.escape(str(report.verdict))}</td></tr>"
            for rank, report in enumerate(self.ranks)
        )
        return (
            f"<b>{html.escape(self._data['kernel'])}</b> on {len(self.ranks)} ranks: <b>{self.latency_us:.2f} &micro;s</b>"
            f"<table><tr><th>rank</th><th>&micro;s</th><th></th></tr>{rows}</table>"
        )


class ProfiledRanks:
    """Ranks whose calls return their results and a report."""

    def __init__(self, ranks):
        self.kernel = ranks

    def __getitem__(self, lnc):
        return ProfiledRanks(self.kernel[lnc])

    def __call__(self, *args, **kwargs) -> tuple[list[Any], RanksReport]:
        try:
            results, outcome = self.kernel._run(args, kwargs, True)
        except Exception as error:
            leave_out_ours(error)
            raise
        self.kernel._warn(outcome)
        report = RanksReport(outcome)
        record(self.kernel.kernel.__name__, report[0]["target"], report)
        return results, report


def simulate_ranks(kernel, n):
    """The kernel on `n` ranks (logical cores), which communicate through the collectives of
    `nki.collectives`.

    `simulate_ranks(kernel, n)(...)` returns a list of `n` results. An argument that is a list of
    arrays has one item for each rank. Any other argument (one array, a tuple of arrays, a number, a
    ReplicaGroup) is passed to all ranks. `simulate_ranks(kernel[2], n)` has two physical cores in
    each rank. With the time: `results, report = nki_sim.profile(nki_sim.simulate_ranks(kernel,
    n))(...)`.
    """
    return Ranks(kernel, n)
