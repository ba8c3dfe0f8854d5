"""Profiling of kernels, and comparison with a reference."""

import copy
import gzip
import io
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from . import _arrays, _files, _native
from ._errors import leave_out_ours
from ._kernel import Kernel, findings_of, simulate

if TYPE_CHECKING:
    from . import _ranks


#: File name extensions of Perfetto traces.
TRACES = (".perfetto-trace", ".pftrace", ".trace", ".perfetto-trace.gz", ".pftrace.gz", ".trace.gz")
#: The same for messages.
TRACE_NAMES = ".perfetto-trace, .pftrace or .trace (append .gz to compress)"


def ending_of(path):
    """The extension of a file in lower case; `.gz` includes the extension before it."""
    stem, ending = os.path.splitext(os.fsdecode(os.fspath(path)).lower())
    return os.path.splitext(stem)[1] + ending if ending == ".gz" else ending


def write_trace(path, outcome):
    """Writes the Perfetto trace of a run, compressed if the name ends in `.gz`, as the command
    does."""
    data = outcome.trace()
    _files.write(path, gzip.compress(data, mtime=0) if ending_of(path).endswith(".gz") else data)


class Report:
    """The predicted time of one run on the device, and its explanation.

    The keys are those of `nki-sim run --json` (docs/report.md): `report["lines"]`. Keys that need
    an analysis of the run (`lines`, `roofline`, `traffic`, `opcodes`, `remedies`, `critical_path`,
    `intervals`) are computed on first access.
    """

    def __init__(self, outcome):
        self._outcome = outcome
        self._data = json.loads(outcome.json(False))
        self._full = None

    @property
    def latency_us(self) -> float:
        """Total time of the kernel in microseconds."""
        return self._data["latency_us"]

    @property
    def latency_valid(self) -> bool:
        """False if the kernel exceeds SBUF or PSUM and ran with `capacity="warn"`."""
        return self._data["latency_valid"]

    @property
    def latency_error(self):
        """The error bar: a dict with group, low_us, high_us, rows and features, or None if the error is unknown."""
        return self._data.get("latency_error")

    @property
    def engines(self):
        """By engine: active_us, active_percent, instructions."""
        return self._data["engines"]

    @property
    def stalls(self):
        """Dicts with engine, kind, cause and us, longest first within an engine."""
        return self._data["stalls"]

    @property
    def findings(self):
        """The findings as dicts: id, severity, message, file, line, ..."""
        return self._data["findings"]

    @property
    def verdict(self):
        """One sentence that names the bottleneck."""
        return self._data["verdict"]

    @property
    def lines(self):
        """The cost of each source line as dicts, the most expensive first."""
        return self["lines"]

    @property
    def remedies(self):
        """The possible gains as dicts, best first. Each is measured by timing the kernel with one
        change."""
        return self["remedies"]

    @property
    def critical_path(self):
        """Each instruction on the critical path as dicts, in order of time."""
        return self["critical_path"]

    def __getitem__(self, key):
        return self._data[key] if key in self._data else self._whole()[key]

    def __contains__(self, key):
        return key in self._whole()

    def _whole(self):
        if self._full is None:
            self._full = json.loads(self._outcome.json(True))
        return self._full

    def __getstate__(self):
        return {"_data": self._data, "_full": self._whole(), "_outcome": _Copied(str(self))}

    def to_dict(self) -> dict:
        """All fields as a dict."""
        return copy.deepcopy(self._whole())

    def to_json(self, path=None):
        """All fields as JSON text; with a path, written to that file.

        :raises ValueError: if the file is a source file of this program.
        """
        text = json.dumps(self._whole(), indent=2) + "\n"
        if path is None:
            return text
        _files.write(path, text)
        return None

    def to_pandas(self, table="engines"):
        """A table of the report as a pandas.DataFrame.

        :param table: `engines` (a row for each engine), `instructions` (a row for each executed
            instruction, with the columns of `--csv`), `dma` (the instructions that move data by
            DMA), or `stalls`, `lines`, `opcodes`, `remedies`, `critical_path`, `intervals` (with
            the columns row, start_us, end_us, what, event, line).
        :raises ValueError: for another table name.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas() needs the package pandas: pip install pandas") from None
        if table == "engines":
            return pandas.DataFrame.from_dict(self.engines, orient="index")
        if table in ("instructions", "dma"):
            frame = pandas.read_csv(io.StringIO(self._outcome.csv()))
            return frame if table == "instructions" else frame[frame["dma_trigger_start_ts"].notna()].reset_index(drop=True)
        if table == "intervals":
            columns = ["row", "start_us", "end_us", "what", "event", "line"]
            rows = [[entry["row"], *interval] for entry in self["intervals"] for interval in entry["intervals"]]
            return pandas.DataFrame(rows, columns=columns)
        if table in ("stalls", "lines", "opcodes", "remedies", "critical_path"):
            return pandas.DataFrame(self[table])
        raise ValueError(
            f"to_pandas({table!r}): the tables are engines, instructions, dma, stalls, lines, opcodes, remedies, critical_path, intervals"
        )

    def save(self, path):
        """Writes the run to a file, whole or not at all. The extension selects the format.

        `.html` (`.htm`) is the page, `.csv` has one line for each instruction, `.json` is this report,
        and `.perfetto-trace`, `.pftrace` and `.trace` are a Perfetto trace (open it at
        ui.perfetto.dev), which is compressed if `.gz` follows.

        :raises ValueError: for another extension, and if the file is a source file of this program.
        """
        ending = ending_of(path)
        if ending == ".json":
            self.to_json(path)
        elif ending in (".html", ".htm"):
            _files.write(path, self._outcome.html())
        elif ending == ".csv":
            _files.write(path, self._outcome.csv())
        elif ending in TRACES:
            write_trace(path, self._outcome)
        else:
            what = f"{ending} is not a format" if ending else "this path has none"
            raise ValueError(
                f"report.save({os.fspath(path)!r}): the extension selects the format, and {what}; give .html, .htm, .csv, .json, or for a "
                f"trace {TRACE_NAMES}"
            )

    def parquet(self, directory):
        """Writes the tables of Neuron Explorer's profile schema to a directory, as `nki-sim run
        --parquet` does: `duckdb.sql("select * from 'DIRECTORY/Instruction.parquet'")`, with DuckDB
        (`pip install duckdb`).

        :raises OSError: if the directory holds a profile that is not simulated, or cannot be
            written.
        """
        self._outcome.parquet(os.fspath(directory))

    def __str__(self):
        return self._outcome.text()

    def __repr__(self):
        validity = "" if self.latency_valid else ", not valid"
        return f"<Report of {self._data['kernel']}: {self.latency_us:.2f} us{validity}>"

    def _repr_html_(self):
        from ._notebook import page

        return page(self)


class _Copied:
    """The run of a report that was pickled or copied: only its text is left."""

    def __init__(self, text):
        self._text = text

    def text(self):
        return self._text

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise ValueError("a report that was pickled or copied has its fields (to_dict, to_json), but no pages, traces and tables: save them before")


class Recorded(NamedTuple):
    """The time of a kernel that this process has profiled, for the pytest plugin."""

    kernel: str
    target: str
    us: float
    #: Whether the kernel fits into SBUF and PSUM (`capacity="warn"` also times others).
    valid: bool


recorded: list[Recorded] = []


def record(kernel, target, report):
    """Records a report of the kernel with this name; returns the record."""
    new = Recorded(kernel, target, report.latency_us, report.latency_valid)
    recorded.append(new)
    return new


class Profiled:
    """A kernel whose calls return its results and a report."""

    def __init__(self, kernel):
        self.kernel = simulate(kernel)

    def __getitem__(self, lnc):
        return Profiled(self.kernel[lnc])

    def __call__(self, *args, **kwargs) -> tuple[Any, Report]:
        try:
            result, outcome = self.kernel._run(args, kwargs, True)
        except Exception as error:
            leave_out_ours(error)
            raise
        self.kernel._warn(findings_of(outcome))
        report = Report(outcome)
        record(self.kernel.__name__, report["target"], report)
        return result, report


@overload
def profile(kernel: "_ranks.Ranks", **options: Any) -> "_ranks.ProfiledRanks": ...
@overload
def profile(kernel: Kernel[..., Any] | Callable[..., Any], **options: Any) -> Profiled: ...
def profile(kernel, *, capacity=None, settings=None, deny=None, warn=None, allow=None, as_written=None):
    """The kernel with its time on the device: `outputs, report = nki_sim.profile(kernel)(...)`.

    Accepts the result of `simulate_ranks(kernel, n)` as well.

    :param capacity: as for `nki.simulate`, like `settings`, `deny`, `warn`, `allow` and `as_written`.
    """
    from . import _ranks

    options = {"capacity": capacity, "settings": settings, "deny": deny, "warn": warn, "allow": allow, "as_written": as_written}
    if isinstance(kernel, _ranks.Ranks):
        return _ranks.ProfiledRanks(_ranks.Ranks(simulate(kernel.kernel, **options), kernel.count))
    return Profiled(simulate(kernel, **options))


def assert_close(kernel, reference, args=(), rtol=None, atol=None, **kwargs):
    """Runs the kernel and the reference on the same arguments and compares their results element by
    element.

    Findings of the class `bug` are denied unless `nki.simulate(kernel, warn="bug")` chooses another
    level.

    :param reference: a function, which gets copies of the arguments, or the expected results. If the kernel returns a dict, so must the reference, with the same keys.
    :param args: positional arguments, as a tuple; keyword arguments follow.
    :param rtol: relative tolerance; by default that of the output's dtype, as for `nki-sim run --expect`.
    :param atol: absolute tolerance; by default that of the output's dtype.
    :return: the results of the kernel.
    :raises AssertionError: with the number of wrong elements, the first one and the largest error.
    :raises KernelError: if the kernel has an error or a denied finding.
    :raises TypeError: if `args` is not a tuple or list.
    :raises ValueError: if there is nothing to compare, and for a tolerance that is negative or not finite.
    """
    from . import _ranks

    if isinstance(kernel, (_ranks.Ranks, _ranks.ProfiledRanks)):
        raise ValueError("assert_close takes the kernel of one rank; call the ranks, and compare the result of each with np.testing.assert_allclose")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not 0 <= float(value) < float("inf"):
            raise ValueError(f"assert_close({name}={value!r}): a tolerance is a finite number, 0 or more; without it the dtype decides")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"assert_close(args=...): the arguments of the kernel are a tuple, got {type(args).__name__}; for one argument write (x,)")
    if isinstance(kernel, Profiled):
        kernel = Profiled(kernel.kernel._with(_close=True))
    else:
        kernel = simulate(kernel)._with(_close=True)
    # Both may write to their arguments: the reference gets copies, and runs first.
    want = reference(*_arrays.copied(args), **_arrays.copied(kwargs)) if callable(reference) else reference
    got = kernel(*args, **kwargs)
    results = got[0] if isinstance(kernel, Profiled) else got
    got_list, want_list = flat(results), flat(_in_order(_name(kernel), results, want))
    if not got_list and not want_list:
        raise ValueError(
            f"assert_close: {_name(kernel)} returns no array, and the reference none, so there is nothing to compare; return what the kernel "
            "writes, or call it and compare its arguments with np.testing.assert_allclose"
        )
    if len(got_list) != len(want_list):
        raise AssertionError(f"{_name(kernel)} returns {len(got_list)} arrays, the reference {len(want_list)}")
    for index, (one, other) in enumerate(zip(got_list, want_list)):
        _compare(_name(kernel), index, one, other, rtol, atol)
    return got


def _name(kernel):
    return getattr(kernel, "__name__", None) or kernel.kernel.__name__


def flat(value):
    """The arrays of a result, in order."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [x for v in value.values() for x in flat(v)]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [value]


def _in_order(name, got, want):
    """The expected results, with dicts in the key order of the kernel's results."""
    if isinstance(got, dict) and isinstance(want, dict):
        if got.keys() != want.keys():
            raise AssertionError(f"{name} returns a dict of {', '.join(map(repr, got))}, the reference one of {', '.join(map(repr, want))}")
        return {key: _in_order(name, got[key], want[key]) for key in got}
    if isinstance(got, (list, tuple)) and isinstance(want, (list, tuple)) and len(got) == len(want):
        return [_in_order(name, *pair) for pair in zip(got, want)]
    return want


def _numbers(value):
    """A result as an array of float64, of integers as one of int64 or uint64: float64 cannot
    represent all of them."""
    if _arrays.package_of(value) == "torch":
        value = value.detach().float() if value.is_floating_point() else value.detach()
    array = np.asarray(value)
    if array.dtype.kind == "c":
        raise ValueError(f"assert_close: an array of {array.dtype} cannot be compared; tensors have real elements, so pass its real part")
    if array.dtype.kind in "iu":
        return array if array.dtype == np.uint64 else array.astype(np.int64)
    return array.astype(np.float64)


def _compare(name, index, got, want, rtol, atol):
    dtype = str(getattr(got, "dtype", "float32")).removeprefix("torch.")
    default = _native.tolerance(dtype) or (0.0, 0.0)
    rtol = default[0] if rtol is None else rtol
    atol = default[1] if atol is None else atol
    got, want = _numbers(got), _numbers(want)
    if got.shape != want.shape:
        raise AssertionError(f"{name}: output {index} has shape {got.shape}, the reference {want.shape}")
    # Compare as Python integers: no NumPy type holds all of int64 and uint64.
    exact = "f" not in (got.dtype.kind, want.dtype.kind)
    if exact and rtol == atol == 0:
        close = got == want if got.dtype == want.dtype else got.astype(object) == want.astype(object)
    else:
        with np.errstate(invalid="ignore"):
            close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)
    if np.all(close):
        return
    wrong = np.argwhere(~close)
    first = tuple(int(i) for i in wrong[0])
    shown = (str(got[first]), str(want[first])) if exact else (f"{got[first]:.9g}", f"{want[first]:.9g}")
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(object) - want.astype(object)).astype(np.float64) if exact else np.abs(got.astype(np.float64) - want)
    worst = np.nanmax(error) if np.isfinite(error).any() else float("nan")
    raise AssertionError(
        f"{name}: output {index}: {len(wrong)} of {got.size} elements differ (rtol={rtol:g}, atol={atol:g}); "
        f"first at {list(first)}: got {shown[0]}, want {shown[1]}; largest error {worst:.3g}"
    )
