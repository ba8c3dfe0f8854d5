"""Times a kernel at every point of a grid, on any executor."""

import concurrent.futures
import inspect
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from . import _levels, _limits, _native
from ._arrays import TensorSpec, packed_name

#: The least limit of memory that there is, in bytes.
_LEAST_MEMORY = 1 << 20


class SweepPoint:
    """One point of a grid with its result.

    :ivar point: dict of the names of the grid and their values at this point.
    :ivar latency_us: total time of the kernel in microseconds; None if the kernel has an error at
        this point.
    :ivar latency_valid: False if the kernel exceeds SBUF or PSUM at this point
        (NKI_SIM_CAPACITY=warn). Such points follow the valid ones.
    :ivar error: its first error, or None.
    :ivar findings: all findings as dicts: id, severity, message, file, line.
    :ivar denied: the denied findings as dicts: id, count, by. A point with a denied finding has no
        latency.
    """

    def __init__(self, point, row):
        self.point = point
        self.latency_us = row["latency_us"]
        self.latency_valid = row.get("latency_valid", True)
        self.error = row["error"]
        self.findings = row["findings"]
        self.denied = row["denied"]
        self._row = row

    def __getitem__(self, key):
        """A figure of the row: bound, dma_bytes, dma_transfers, sbuf_peak_bytes_per_partition,
        psum_peak_banks."""
        return self._row[key]

    @property
    def warnings(self):
        """Slugs of the findings that are warnings."""
        return [f["id"] for f in self.findings if f["severity"] == "warning"]

    def __repr__(self):
        named = ", ".join(f"{k}={v!r}" for k, v in self.point.items())
        warned = f", warnings: {', '.join(dict.fromkeys(self.warnings))}" if self.warnings else ""
        return f"<{named}: {self.error or f'{self.latency_us:.2f} us'}{warned}>"


class Sweep(list):
    """The points of a sweep: the fastest first, failed points last."""

    @property
    def best(self):
        """The fastest point.

        :raises ValueError: if every point failed, with the first diagnostic.
        """
        if not self or self[0].latency_us is None:
            raise ValueError(f"no point of the sweep could be timed: {self[0].error if self else 'the grid is empty'}")
        return self[0]

    def to_pandas(self):
        """One row for each point, as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas() needs the package pandas: pip install pandas") from None
        return pandas.DataFrame([{**p.point, "latency_us": p.latency_us, "error": p.error, "warnings": len(p.warnings)} for p in self])


def sweep(kernel, args=None, *, grid, executor=None, name=None, target=None, lnc=1, settings=None, progress=None, deny=None, warn=None, allow=None, capacity=None):
    """Compiles and times a kernel for every combination of the grid's values, without computing
    tensor values.

    :param kernel: a file, or a kernel or function that is defined in a file. Its source is sent to
        the workers, which do not need the file; modules that it imports must be available there.
    :param args: arguments by name: arrays or `TensorSpec`s (only shape and dtype are used), or
        Python literals.
    :param grid: values by name: the name of an argument of the kernel, or of a constant that the
        file assigns at its top level.
    :param executor: any `concurrent.futures` executor: a pool of threads or processes, Dask's
        `client.get_executor()`. It is not shut down. The default is a pool of threads, one for each
        CPU. Each point always runs in its own process. The processes of the default pool share the
        memory that kernels may use (`nki_sim.configure`); those of another executor use the limit
        of their machine.
    :param name: the name of the kernel, if the file has several.
    :param target: trn1, trn2 or trn3.
    :param lnc: physical cores.
    :param settings: timing parameters by name, as in `--set`.
    :param progress: called with (finished points, all points) after each point.
    :param deny: findings that make a point fail, as in `nki.simulate`; `bug` by default. `warn` and
        `allow` likewise.
    :param capacity: "warn" also times points that do not fit into SBUF or PSUM; their latencies are
        not valid. The default is that of `nki_sim.configure` or NKI_SIM_CAPACITY, otherwise such a
        point fails.
    :return: a `Sweep`.
    :raises ValueError: for an empty grid, an argument that is not a literal, or a name that the
        kernel does not have.
    """
    path, text, found = _source(kernel)
    axes = {key: list(values) for key, values in grid.items()}
    if not axes or not all(axes.values()):
        raise ValueError("the grid needs at least one name, and each name at least one value")
    words = []
    if name or found:
        words += ["--kernel", name or found]
    for key, value in (args or {}).items():
        words += ["--arg", f"{key}={_written(key, value)}"]
    if target:
        words += ["--target", target]
    if lnc != 1:
        words += ["--lnc", str(lnc)]
    for key, value in (settings or {}).items():
        words += ["--set", f"{key}={value}"]
    if capacity or _limits.capacity():
        words += ["--capacity", capacity or _limits.capacity()]
    words += _levels.flags(deny, warn, allow)
    points = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    workers = min(os.cpu_count() or 1, len(points))
    if executor is None:
        words += ["--max-memory", str(max(_native.memory_limit() // workers, _LEAST_MEMORY))]
    tasks = [[*words, *_flat(("--grid", f"{k}={_written(k, v)}") for k, v in point.items())] for point in points]

    own = concurrent.futures.ThreadPoolExecutor(workers) if executor is None else None
    try:
        futures = [(own or executor).submit(_timed, path, text, task) for task in tasks]
        for done, _ in enumerate(concurrent.futures.as_completed(futures), 1):
            if progress is not None:
                progress(done, len(futures))
        rows = [future.result() for future in futures]
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)
    result = Sweep(SweepPoint(point, row) for point, row in zip(points, rows))
    result.sort(key=lambda p: (p.latency_us is None, not p.latency_valid, p.latency_us or 0.0))
    return result


def _flat(pairs):
    return [word for pair in pairs for word in pair]


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


def _written(name, value):
    """A value in the syntax of the command line."""
    if isinstance(value, (np.ndarray, TensorSpec)) or hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = value.dtype
        kind = (packed_name(dtype) or dtype.name) if isinstance(dtype, np.dtype) else str(dtype).rsplit(".", 1)[-1]
        return f"{kind}[{','.join(str(n) for n in value.shape)}]"
    if isinstance(value, (bool, int, float, str, type(None), tuple, list)):
        return repr(value)
    raise ValueError(f"`{name}`: a {type(value).__name__} is neither a tensor nor a literal")


def _timed(path, text, words):
    """Times one point in its own process and returns its row. Runs on any machine of the executor.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, report = pathlib.Path(path), pathlib.Path(folder, "row.json")
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file = pathlib.Path(folder, file.name)
            file.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "nki_sim", "sweep", str(file), *words, "--jobs", "1", "--json", str(report)]
        done = subprocess.run(command, capture_output=True, text=True)
        if not report.is_file():
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise ValueError(said[0])
        return json.loads(report.read_text(encoding="utf-8"))["rows"][0]
