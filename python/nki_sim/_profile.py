"""Profiling a kernel, and comparing it with a reference."""

import html
import json

import numpy as np

from ._kernel import Kernel, simulate


class Report:
    """The time of one run on the device, and why.

    The numbers are those of `nki-sim run --json`: latency, engines, DMA, memory, stalls, critical path, findings.
    """

    def __init__(self, outcome):
        self._outcome = outcome
        self._data = json.loads(outcome.json())

    @property
    def latency_us(self):
        """Whole time of the kernel in microseconds."""
        return self._data["latency_us"]

    @property
    def engines(self):
        """By engine: active_us, active_percent, instructions."""
        return self._data["engines"]

    @property
    def stalls(self):
        """Dicts with engine, cause and us, longest first within an engine."""
        return self._data["stalls"]

    @property
    def findings(self):
        """What was found, as dicts: id, severity, message, file, line, ..."""
        return self._data["findings"]

    @property
    def verdict(self):
        """What bounds the kernel."""
        return self._data["verdict"]

    def __getitem__(self, key):
        return self._data[key]

    def to_dict(self):
        """All of it."""
        return json.loads(json.dumps(self._data))

    def to_json(self, path=None):
        """All of it as text, or written to a file."""
        text = self._outcome.json()
        if path is None:
            return text
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return None

    def to_pandas(self):
        """The engines as a pandas.DataFrame, one row each."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas() needs the package pandas: pip install pandas") from None
        return pandas.DataFrame.from_dict(self.engines, orient="index")

    def save(self, path):
        """Writes the timeline as a Perfetto trace (open it at ui.perfetto.dev)."""
        with open(path, "wb") as file:
            file.write(self._outcome.trace())

    def __str__(self):
        return self._outcome.table()

    def __repr__(self):
        return f"<Report of {self._data['kernel']}: {self.latency_us:.2f} us>"

    def _repr_html_(self):
        data = self._data
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{e['instructions']}</td><td>{e['active_us']:.2f}</td>"
            f"<td><div style='background:#4a7;height:0.8em;width:{min(e['active_percent'], 100):.0f}px;"
            f"display:inline-block'></div> {e['active_percent']:.1f}%</td>"
            f"<td>{html.escape(_stalls(data['stalls'], name))}</td></tr>"
            for name, e in data["engines"].items()
        )
        found = "".join(f"<li>{html.escape(f['severity'])}: {html.escape(f['message'])}</li>" for f in data["findings"])
        return (
            f"<b>{html.escape(data['kernel'])}</b> on {html.escape(data['target'])}: <b>{data['latency_us']:.2f} &micro;s</b>"
            f"<p>{html.escape(str(data['verdict']))}</p>"
            "<table><tr><th>engine</th><th>instructions</th><th>active &micro;s</th><th>active</th><th>stalled by</th></tr>"
            f"{rows}</table>" + (f"<ul>{found}</ul>" if found else "")
        )


def _stalls(stalls, engine):
    mine = [s for s in stalls if s["engine"] == engine or s["engine"].startswith(f"{engine}/")]
    return ", ".join(f"{s['cause']} {s['us']:.2f}" for s in mine[:3])


#: Reports of this process, for the pytest plugin.
recorded = []


class Profiled:
    """A kernel whose calls give their results and a report."""

    def __init__(self, kernel):
        self.kernel = simulate(kernel)

    def __getitem__(self, lnc):
        return Profiled(self.kernel[lnc])

    def __call__(self, *args, **kwargs):
        result, outcome = self.kernel._run(args, kwargs, True)
        report = Report(outcome)
        recorded.append((self.kernel.__name__, report.latency_us))
        return result, report


def profile(kernel):
    """The kernel with its time on the device: `outputs, report = nki_sim.profile(kernel)(...)`."""
    return Profiled(kernel)


#: Tolerances by dtype, relative and absolute: a few roundings of the type.
TOLERANCES = {
    "float32": (1e-5, 1e-6),
    "float16": (2e-3, 1e-4),
    "bfloat16": (1.6e-2, 1e-3),
    "float8_e4m3": (0.13, 1e-2),
    "float8_e4m3fn": (0.13, 1e-2),
    "float8_e5m2": (0.26, 1e-2),
}


def assert_close(kernel, reference, args=(), rtol=None, atol=None, **kwargs):
    """Runs the kernel and the reference on the same arguments and compares their results element by element.

    :param reference: a function of the same arguments, or the expected results themselves.
    :param args: positional arguments; others by keyword.
    :param rtol: relative tolerance; by default that of the output's dtype.
    :param atol: absolute tolerance, likewise.
    :return: what the kernel returned.
    :raises AssertionError: with the number of wrong elements, the first one and the largest error.
    """
    kernel = kernel if isinstance(kernel, (Kernel, Profiled)) else simulate(kernel)
    # The reference first: the kernel may write to its arguments.
    want = reference(*args, **kwargs) if callable(reference) else reference
    got = kernel(*args, **kwargs)
    results = got[0] if isinstance(kernel, Profiled) else got
    got_list, want_list = _flat(results), _flat(want)
    if len(got_list) != len(want_list):
        raise AssertionError(f"{_name(kernel)} returns {len(got_list)} arrays, the reference {len(want_list)}")
    for index, (one, other) in enumerate(zip(got_list, want_list)):
        _compare(_name(kernel), index, one, other, rtol, atol)
    return got


def _name(kernel):
    return getattr(kernel, "__name__", None) or kernel.kernel.__name__


def _flat(value):
    if value is None:
        return []
    if isinstance(value, dict):
        return [x for v in value.values() for x in _flat(v)]
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in _flat(v)]
    return [value]


def _numbers(value):
    if type(value).__module__.split(".")[0] == "torch":
        value = value.detach().float() if value.is_floating_point() else value.detach()
    array = np.asarray(value)
    return array.astype(np.float64), str(array.dtype)


def _compare(name, index, got, want, rtol, atol):
    dtype = str(getattr(got, "dtype", "float32")).removeprefix("torch.")
    default = TOLERANCES.get(dtype, (0.0, 0.0))
    rtol = default[0] if rtol is None else rtol
    atol = default[1] if atol is None else atol
    (got, _), (want, _) = _numbers(got), _numbers(want)
    if got.shape != want.shape:
        raise AssertionError(f"{name}: output {index} has shape {got.shape}, the reference {want.shape}")
    with np.errstate(invalid="ignore"):
        close = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return
    wrong = np.argwhere(~close)
    first = tuple(int(i) for i in wrong[0])
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want)
    worst = np.nanmax(error) if np.isfinite(error).any() else float("nan")
    raise AssertionError(
        f"{name}: output {index}: {len(wrong)} of {got.size} elements differ (rtol={rtol:g}, atol={atol:g}); "
        f"first at {list(first)}: got {got[first]:.9g}, want {want[first]:.9g}; largest error {worst:.3g}"
    )
