"""Times a kernel at the points of a grid, all or those that a search selects, on any executor."""

import ast
import concurrent.futures
import inspect
import itertools
import json
import math
import numbers
import os
import pathlib
import tempfile
from collections.abc import Mapping

import numpy as np

from . import _batch, _files, _levels, _limits, _native
from ._arrays import TensorSpec
from ._kernel import Kernel

#: The smallest memory limit, in bytes.
_LEAST_MEMORY = 1 << 20
#: Limit of a point in seconds if none is given; never reached.
_NO_LIMIT = 1e9


class SweepPoint:
    """One point of a grid with its result.

    :ivar point: dict of the names of the grid and their values at this point.
    :ivar latency_us: total time of the kernel in microseconds; None if the kernel has an error at
        this point.
    :ivar latency_valid: False if the kernel exceeds SBUF or PSUM at this point
        (NKI_SIM_CAPACITY=warn). Such points follow the valid ones.
    :ivar incomplete: True if elements of an output are never written: the point does less work than
        the others, and follows them.
    :ivar error: the first error at this point, or None.
    :ivar findings: all findings as dicts: id, severity, message, file, line.
    :ivar denied: the denied findings as dicts: id, count, by. A point with a denied finding has no
        latency.
    :ivar max_abs_error: the largest error of an output that is compared (`expect=`); None without
        a comparison, or if it is not finite.
    :ivar pruned: a search has not computed its values, because a correct point is as good in
        latency and SBUF.
    :ivar correct: False if an output differs from what is expected, None without a comparison.
    """

    def __init__(self, point, row):
        self.point = point
        self.latency_us = row.get("latency_us")
        self.latency_valid = row.get("latency_valid", True)
        self.incomplete = row.get("incomplete", False)
        self.error = row.get("error")
        self.findings = row.get("findings", [])
        self.denied = row.get("denied", [])
        compared = row.get("expected", [])
        self.correct = all(c["passed"] for c in compared) if compared else None
        errors = [c["max_abs_error"] for c in compared]
        self.max_abs_error = max(errors) if errors and None not in errors else None
        self.pruned = row.get("pruned", False)
        self._row = row

    def __getitem__(self, key):
        """A figure of the row: bound, dma_bytes, dma_transfers, sbuf_peak_bytes_per_partition,
        psum_peak_banks."""
        return self._row[key]

    @property
    def _rank(self):
        # The order in which `nki-sim sweep` ranks points.
        if self.latency_us is None:
            return 4
        if self.pruned or self.correct is False:
            return 3
        if self.error is not None:
            return 4
        return 2 if self.incomplete else 0 if self.latency_valid else 1

    @property
    def warnings(self):
        """Slugs of the findings that are warnings."""
        return [f["id"] for f in self.findings if f["severity"] == "warning"]

    def __repr__(self):
        named = ", ".join(f"{k}={v!r}" for k, v in self.point.items())
        warned = f", warnings: {', '.join(dict.fromkeys(self.warnings))}" if self.warnings else ""
        return f"<{named}: {self.error or f'{self.latency_us:.2f} us'}{warned}>"


class Sweep(list):
    """The points of a sweep: the fastest first, then those with wrong outputs, failed points last.
    """

    @property
    def best(self):
        """The fastest point.

        :raises ValueError: if every point failed or leaves elements of an output unwritten, with the
            first diagnostic.
        """
        if self and self[0]._rank == 2:
            raise ValueError("every point of the sweep leaves elements of an output unwritten; allow=['output-partly-written'] ranks such points, too")
        if not self or self[0]._rank > 1:
            raise ValueError(f"no point of the sweep could be timed: {self[0].error if self else 'the grid is empty'}")
        return self[0]

    @property
    def front(self):
        """The Pareto-optimal points in latency, peak SBUF and, if outputs are compared, error;
        fastest first."""
        return [self[i] for i in _native.pareto(self._json())[0]]

    def plot(self, path):
        """Writes a plot of latency and peak SBUF, in which the front is marked, as SVG.

        :raises ValueError: for another extension than `.svg`.
        """
        if not os.fsdecode(os.fspath(path)).lower().endswith(".svg"):
            raise ValueError(f"plot({os.fspath(path)!r}): a plot is an SVG file; give a name that ends in .svg")
        _files.write(path, _native.pareto(self._json())[1])

    def _json(self):
        return json.dumps([row_of(p) for p in self])

    def to_pandas(self):
        """One row for each point, as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas() needs the package pandas: pip install pandas") from None
        return pandas.DataFrame([{**p.point, "latency_us": p.latency_us, "error": p.error, "warnings": len(p.warnings)} for p in self])


def sweep(
    kernel, args=None, *, grid, search=None, expect=None, rtol=None, atol=None, executor=None, name=None, target=None, lnc=None, settings=None,
    progress=None, deny=None, warn=None, allow=None, capacity=None, max_seconds=None,
):
    """Compiles and times a kernel for every combination of the grid's values, or for those that a
    search chooses. Tensor values are computed only for `expect=`.

    :param kernel: a file, or a kernel or function that is defined in a file. Its source is sent to
        the workers, which do not need the file; modules that it imports must be available there. The
        options of a kernel (its grid, `nki.jit`, `nki.simulate`) apply, unless the call gives others.
    :param args: arguments by name: arrays or `TensorSpec`s (without `expect=` only shape and dtype
        are used), or Python literals.
    :param grid: values by name: the name of an argument of the kernel that `args` does not give, or
        of a constant that the file assigns at its top level. A value that is there twice is one point;
        without `expect=`, arrays of one shape and dtype are one value.
    :param search: a `Search`, or a number of configurations: Optuna chooses which points are timed.
    :param expect: arrays by output. Only points whose outputs are equal to them rank.
    :param rtol: tolerance of `expect`, as `atol`; the default depends on the dtype.
    :param executor: any `concurrent.futures` executor: a pool of threads or processes, Dask's
        `client.get_executor()`. It is not shut down. The default is a pool of threads, one for each
        CPU. Each worker runs its points in a warm process of its own. The processes of the default
        pool share the memory that kernels may use (`nki_sim.configure`); those of another executor
        use the limit of their machine.
    :param name: the name of the kernel, if the file has several.
    :param target: trn1, trn2 or trn3.
    :param lnc: physical cores; by default those of the kernel, for a file NEURON_LOGICAL_NC_CONFIG, or 1.
    :param settings: timing parameters by name, as in `--set`.
    :param progress: called with (finished points, all points) after each point.
    :param deny: findings that make a point fail, as in `nki.simulate`; `bug` by default. `warn` and
        `allow` likewise.
    :param capacity: "warn" also times points that do not fit into SBUF or PSUM; their latencies are
        not valid. The default is that of `nki_sim.configure` or NKI_SIM_CAPACITY, otherwise such a
        point fails.
    :param max_seconds: limit of one point; a point beyond it fails.
    :return: a `Sweep`.
    :raises ValueError: for an empty grid, an argument that is not a literal or that the grid gives, too, a
        name that the kernel does not have, or a limit or tolerance that is no number; and for a kernel that
        differs from its file: one with bound arguments or a schedule, or whose module has changed a constant.
    """
    for given, what in ((args, "args"), (grid, "grid")):
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{what} is a dict by name, got {type(given).__name__}: {what}={{'x': ...}}")
    if executor is not None and not hasattr(executor, "submit"):
        raise ValueError(f"executor={executor!r} is no concurrent.futures executor: it has no submit()")
    path, text, found = _source(kernel)
    own = kernel if isinstance(kernel, Kernel) else None
    options = {} if own is None else _options_of(own)
    axes = {key: _axis(key, values) for key, values in grid.items()}
    if found is not None:
        _check_constants(kernel, text, axes)
    if not axes or not all(axes.values()):
        raise ValueError("the grid needs at least one name, and each name at least one value")
    for key in axes.keys() & (args or {}).keys():
        raise ValueError(f"`{key}` is in the grid and in args, and can have one of these values only; leave it out of args")
    if max_seconds is not None:
        _check_number("max_seconds", max_seconds, "above 0", "give a number of seconds, or leave it out: then a point has no limit")
    for tolerance, value in (("rtol", rtol), ("atol", atol)):
        if value is not None:
            _check_number(tolerance, value, "of at least 0", "give a tolerance, or leave it out: then the dtype decides")
    with tempfile.TemporaryDirectory() as folder:
        job = {"file": path, "source": text, **_levels.of_job(deny, warn, allow, own)}
        job["args"] = {key: _written(key, value, folder if expect else None) for key, value in (args or {}).items()}
        job["set"] = {**options.pop("set", {}), **(settings or {})}
        given = {"kernel": name or found, "target": target, "lnc": lnc, "capacity": capacity, "rtol": rtol, "atol": atol}
        given = {key: value for key, value in given.items() if value is not None}
        job |= {"capacity": _limits.capacity()} | options | given
        job = {key: value for key, value in job.items() if value is not None}
        if expect:
            job["expect"] = {key: _written(key, value, folder) for key, value in expect.items()}
        else:
            job["no_numerics"] = True
        values = {}
        for key, axis in axes.items():
            values[key] = {}
            for value in axis:
                values[key].setdefault(_written(key, value, folder if expect else None), value)
        space = {key: list(texts) for key, texts in values.items()}
        with workers(executor, job, max_seconds) as run:
            if search is not None:
                from ._search import searched

                rows = searched(search, job, space, run, progress)
            else:
                points = [dict(zip(space, point)) for point in itertools.product(*space.values())]
                rows = run.all([{**job, "point": point} for point in points], progress)
    result = Sweep(SweepPoint({k: values[k][v] for k, v in row["point"]}, row) for row in rows)
    result.sort(key=lambda p: (p._rank, p.latency_us or 0.0))
    return result


class workers:
    """Runs jobs on an executor, within a `with` statement.

    :param executor: the executor; None for a pool of threads.
    :param job: the fields that all jobs share; receives the memory limit of a job.
    :param count: threads of the pool, by default one for each CPU.
    """

    def __init__(self, executor, job, max_seconds=None, count=None):
        self.count = count or os.cpu_count() or 1
        self.own = None
        self._seconds = _NO_LIMIT if max_seconds is None else max_seconds
        if executor is None:
            executor = self.own = concurrent.futures.ThreadPoolExecutor(self.count)
            job.setdefault("max_memory", str(max(_native.memory_limit() // self.count, _LEAST_MEMORY)))
        else:
            # The number of workers that the executor has; Dask's executor and others do not expose
            # it.
            self.count = getattr(executor, "_max_workers", None) or self.count
        self._executor = executor

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.own is not None:
            self.own.shutdown(cancel_futures=True)
            _batch.end_idle()

    def submit(self, job):
        """A future for the row of a job."""
        return self._executor.submit(_timed, job, self._seconds)

    def all(self, jobs, progress):
        """The rows of the jobs, in order."""
        futures = [self.submit(job) for job in jobs]
        try:
            for done, _ in enumerate(concurrent.futures.as_completed(futures), 1):
                if progress is not None:
                    progress(done, len(futures))
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


def row_of(point):
    """A point in the form that `nki-sim` writes."""
    return {**point._row, "point": [[name, str(value)] for name, value in point.point.items()]}


def _source(kernel):
    """(path, text, name or None) of a kernel."""
    if isinstance(kernel, (str, os.PathLike)):
        path = pathlib.Path(kernel).resolve()
        return str(path), path.read_text(encoding="utf-8"), None
    function = inspect.unwrap(getattr(kernel, "func", kernel))
    try:
        path = pathlib.Path(inspect.getsourcefile(function)).resolve()
        text = path.read_text(encoding="utf-8")
    except (TypeError, OSError):
        raise ValueError(f"{function!r} is not in a file; give sweep the path of one") from None
    return str(path), text, function.__name__


def _options_of(kernel):
    """The options of a `Kernel` as fields of a job.

    :raises ValueError: if a job cannot have them.
    """
    if kernel._schedule or any(kernel._fixed):
        what = "schedule" if kernel._schedule else "bound arguments"
        raise ValueError(f"sweep compiles {kernel.__name__} from its file, without the {what} of this kernel: give sweep the kernel without them")
    fields = {
        "target": kernel.target,
        "lnc": kernel._lnc or _native.logical_cores(),
        "capacity": kernel.capacity,
        "as_written": kernel.as_written,
        "set": dict(kernel._settings),
        **kernel._fields_of_job(),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _check_constants(kernel, text, axes):
    """Checks that the constants of a kernel's module are those of its file.

    :raises ValueError: naming the first one that has another value.
    """
    module = inspect.unwrap(getattr(kernel, "func", kernel)).__globals__
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return
    assigned = [target.id for node in body for target in ast.walk(node) if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)]
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name) or len(node.targets) > 1:
            continue
        constant = node.targets[0].id
        try:
            value = ast.literal_eval(node.value)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            continue
        now = module.get(constant, value)
        if assigned.count(constant) == 1 and constant not in axes and type(now) is type(value) and now != value:
            raise ValueError(
                f"`{constant}` is {now!r} in the module of the kernel, but its file assigns {value!r}, and sweep compiles the file: "
                f"put it into the grid, grid={{'{constant}': [{now!r}], ...}}"
            )


def _axis(key, values):
    """The values of the grid for a name."""
    try:
        if not isinstance(values, (str, bytes)):
            return list(values)
    except TypeError:
        pass
    raise ValueError(f"the grid gives `{key}` the one value {values!r}; give a list of values, [{values!r}]")


def _check_number(name, value, least, advice):
    """Checks a limit or a tolerance; `least` is "above 0" or "of at least 0".

    :raises ValueError: for any other number, including NaN and infinity, and for a value that is not a number.
    """
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0 or least == "above 0" and value == 0:
        raise ValueError(f"{name}={value!r} is not a finite number {least}; {advice}")


def _written(name, value, folder):
    """A value in the syntax of the command line; with a folder, an array with its values."""
    value = _batch.plain(value)
    if folder is not None and not isinstance(value, TensorSpec) and hasattr(value, "shape") and hasattr(value, "dtype"):
        return _batch.value_of(name, value, folder)
    if isinstance(value, (np.ndarray, TensorSpec)) or hasattr(value, "shape") and hasattr(value, "dtype"):
        return _batch.spec(value)
    if isinstance(value, (bool, int, float, str, type(None), tuple, list)):
        return repr(value)
    raise ValueError(f"`{name}`: a {type(value).__name__} is neither a tensor nor a literal")


def _timed(job, max_seconds):
    """The row of a job. Runs on any machine of the executor."""
    row = _batch.ask(job, max_seconds)
    if row["status"] == "refused":
        raise ValueError(row["error"])
    return {"point": list(job["point"].items()), **row}
