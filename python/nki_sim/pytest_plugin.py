"""A pytest plugin: latency budgets and a report at the end.

    @pytest.mark.nki_latency(max_us=20)
    def test_softmax():
        out, report = nki_sim.profile(softmax)(x)

The marker fails the test if a kernel that the test profiles takes longer than this on the device.
`--nki-report` lists all profiled kernels at the end. `--nki-baseline FILE` compares their times with those in
a file kept in the repository, which `--nki-update` writes; latencies that are not valid
(`capacity="warn"`) are left out. A run of all tests also finds the entries of
tests that are no longer there.
"""

import json
import math
import numbers
import pathlib
import sys

import pytest

#: The name of the test property that holds a kernel and its time.
_PROPERTY = "nki_latency_us"
#: The version of the baseline's format.
_FORM = 2


def pytest_addoption(parser):
    group = parser.getgroup("nki_sim")
    group.addoption("--nki-report", action="store_true", help="list the kernels that tests profiled, with their time on the device")
    group.addoption("--nki-baseline", metavar="FILE", help="fail tests whose kernels are slower than in this file")
    group.addoption("--nki-update", action="store_true", help="write the times of passing tests to the baseline instead")
    group.addoption(
        "--nki-tolerance", metavar="PERCENT", type=float, help="how much slower than the baseline a kernel may be (default 2)"
    )
    parser.addini("nki_baseline", "the file of --nki-baseline, relative to the project's root")
    parser.addini("nki_tolerance", "the percentage of --nki-tolerance")
    for level, what in (("deny", "make a call raise"), ("warn", "are warnings"), ("allow", "are dropped")):
        text = f"findings of nki_sim that {what}: slugs, classes (bug, suspicious, strict) or warnings, with commas"
        group.addoption(f"--nki-sim-{level}", action="append", metavar="LIST", help=text)
        parser.addini(f"nki_sim_{level}", text, type="args", default=[])


def pytest_configure(config):
    levels = ("deny", "warn", "allow")
    _set_levels("pytest", [config.getoption(f"nki_sim_{level}") for level in levels])
    _set_levels("ini", [config.getini(f"nki_sim_{level}") for level in levels])
    config.addinivalue_line(
        "markers", "nki_latency(max_us): fail if a kernel that the test profiles takes longer than max_us on the device"
    )
    config.stash[_baseline] = _read_baseline(config)
    config.stash[_collection] = _Collection(config)
    config.pluginmanager.register(config.stash[_collection])


#: For the baseline: the file, the kernels and times of each test in the order in which it profiles
#: them, and the tolerance in percent.
_baseline = pytest.StashKey[tuple]()

#: The tests that a run collected.
_collection = pytest.StashKey["_Collection"]()


class _Collection:
    """The tests of a run, and whether they are all the tests there are."""

    #: Options that select tests.
    _CHOICES = ("keyword", "markexpr", "ignore", "ignore_glob", "deselect", "lf")

    def __init__(self, config):
        self._config = config
        self._tests = set()
        self._chosen = any(config.getoption(name, None) for name in self._CHOICES)
        #: Files and folders whose tests are unknown.
        self._unknown = []

    def pytest_deselected(self, items):
        self._chosen = self._chosen or bool(items)

    def pytest_collectreport(self, report):
        if not report.passed:
            self._unknown.append(report.nodeid)

    def pytest_collection_finish(self, session):
        self._tests = {item.nodeid for item in session.items}

    def missing(self, tests):
        """Those of the tests that no longer exist; none if the run selected tests or cannot know
        all of them."""
        # With pytest-xdist, the workers collect. Its plugin is registered only after this one is configured.
        if self._chosen or self._config.pluginmanager.hasplugin("dsession"):
            return []
        return [test for test in tests if test not in self._tests and self._covers(test)]

    def _covers(self, test):
        """Whether the run would have collected a test: its file is among pytest's arguments and
        could be read."""
        folder = self._config.invocation_params.dir
        places = [(folder / argument).resolve() for argument in self._config.args]
        file = (self._config.rootpath / test.split("::")[0]).resolve()
        return any(place == file or place in file.parents for place in places) and not any(test.startswith(name) for name in self._unknown)


def _read_baseline(config):
    name, update = config.getoption("--nki-baseline") or config.getini("nki_baseline"), config.getoption("--nki-update")
    if not name:
        for option, given in (("--nki-update", update), ("--nki-tolerance", config.getoption("--nki-tolerance") is not None)):
            if given:
                raise pytest.UsageError(f"{option} needs --nki-baseline FILE")
        return None, {}, 0.0
    file = pathlib.Path(name)
    if not config.getoption("--nki-baseline"):
        file = config.rootpath / file
    tolerance = config.getoption("--nki-tolerance")
    if tolerance is None:
        try:
            tolerance = float(config.getini("nki_tolerance") or 2.0)
        except ValueError:
            raise pytest.UsageError(f"nki_tolerance = {config.getini('nki_tolerance')!r} is not a percentage") from None
    if not (tolerance >= 0 and math.isfinite(tolerance)):
        raise pytest.UsageError(f"--nki-tolerance {tolerance}: the percentage must be at least 0, and finite")
    if file.exists() and not file.is_file():
        raise pytest.UsageError(f"--nki-baseline {file}: it is not a regular file")
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not update:
            raise pytest.UsageError(f"--nki-baseline {file}: no such file; --nki-update writes it") from None
        return file, {}, tolerance
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--nki-baseline {file}: it cannot be read ({error})") from None
    try:
        return file, _tests_of(text), tolerance
    except (ValueError, RecursionError) as error:
        raise pytest.UsageError(
            f"--nki-baseline {file}: not a baseline of nki-sim: {error}; correct the file, or delete it and write a new one with --nki-update"
        ) from None


def _tests_of(text):
    """The times of a baseline: the names, targets and times of kernels, by test.

    :raises ValueError: naming the key and the value that are wrong.
    """
    held = json.loads(text, object_pairs_hook=_without_repeats)
    if not isinstance(held, dict) or not {"form", "tests"} <= held.keys():
        raise ValueError('it is not an object with the keys "form" and "tests"')
    if held["form"] != _FORM or type(held["form"]) is not int:
        raise ValueError(f'"form" is {_shown(held["form"])}; this version of nki-sim reads form {_FORM}')
    if not isinstance(held["tests"], dict):
        raise ValueError(f'"tests" is {_shown(held["tests"])}, not an object with the kernels of each test')
    tests = {}
    for test, rows in held["tests"].items():
        where = f'"tests", {_shown(test)}'
        if not isinstance(rows, list):
            raise ValueError(f"{where}: {_shown(rows)} is not a list of kernels, each [name, target, microseconds]")
        for row in rows:
            if not isinstance(row, list) or len(row) != 3 or not all(isinstance(text, str) for text in row[:2]):
                raise ValueError(f"{where}: {_shown(row)} is not a kernel, which is [name, target, microseconds]")
            if not _is_time(row[2]):
                raise ValueError(f"{where}, kernel {_shown(row[0])}: the time {_shown(row[2])} is not a finite number of microseconds above 0")
        tests[test] = [(name, target, float(us)) for name, target, us in rows]
    return tests


def _without_repeats(pairs):
    """A JSON object. A duplicate key, as after a merge, is an error: it is unclear which value is
    right."""
    held = dict(pairs)
    if len(held) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {_shown(next(key for key in keys if keys.count(key) > 1))} occurs twice")
    return held


def _is_time(value):
    """Whether a value is a finite number above 0 and not a bool."""
    try:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < math.inf
    except OverflowError:
        return False


def _shown(value):
    """A value as JSON, shortened to 60 characters."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _compared(config, test, rows):
    """The kernels that are slower than in the baseline, as text."""
    file, tests, tolerance = config.stash[_baseline]
    held = tests.get(test)
    if file is None or config.getoption("--nki-update") or held is None:
        return []
    now = _valid(rows)
    if [row[:2] for row in now] != [row[:2] for row in held]:
        names, was = (", ".join(f"{name} on {target}" for name, target, _ in of) or "no kernel" for of in (now, held))
        why = "".join(f"; the latency of {row.kernel} is not valid: it exceeds SBUF or PSUM" for row in rows if not row.valid)
        return [f"the test profiles {names}, but {file} has {was}{why}; --nki-update replaces it"]
    return [
        f"{name} takes {us:.2f} us, {us / was - 1:+.1%} (baseline {was:.2f} us, at most {tolerance:g}% more)"
        for (name, _, us), (_, _, was) in zip(now, held)
        if not us <= was * (1 + tolerance / 100)
    ]


def _valid(rows):
    """The kernels with a valid latency: name, target and time."""
    return [(row.kernel, row.target, row.us) for row in rows if row.valid]


def _set_levels(which, lists):
    if any(lists):
        # Imported here because tests may use no kernel.
        from . import _levels

        try:
            _levels.set_source(which, *(several or None for several in lists))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None


def _fail(outcome, message):
    """Fails a test with only this message: no line of the test is at fault."""
    outcome.force_exception(pytest.fail.Exception(message, pytrace=False))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    start = len(_recorded())
    outcome = yield
    rows = _recorded()[start:]
    # Properties are part of the test report, which pytest-xdist transfers from its workers.
    item.user_properties.extend((_PROPERTY, list(row)) for row in rows)
    if outcome.excinfo is not None:
        return
    if slower := _compared(item.config, item.nodeid, rows):
        _fail(outcome, "; ".join(slower))
        return
    marker = item.get_closest_marker("nki_latency")
    if marker is None:
        return
    budget = marker.kwargs.get("max_us", marker.args[0] if marker.args else None)
    if budget is None:
        _fail(outcome, "the marker nki_latency needs max_us")
    elif not _is_time(budget):
        _fail(outcome, f"the marker nki_latency: max_us={budget!r} is not a finite number of microseconds above 0, such as max_us=20")
    elif not rows:
        _fail(outcome, "the test has a latency budget but profiles no kernel (nki_sim.profile); kernels that a fixture profiles do not count")
    else:
        invalid = [row.kernel for row in rows if not row.valid]
        slow = [f"{row.kernel} takes {row.us:.2f} us" for row in rows if row.us > budget]
        if invalid:
            _fail(outcome, f"latency budget of {budget} us: the latency of {', '.join(invalid)} is not valid, because the kernel exceeds SBUF or PSUM")
        elif slow:
            _fail(outcome, f"latency budget of {budget} us: {'; '.join(slow)}")


def pytest_sessionfinish(session):
    """Fails a run whose baseline has none of its tests: it compares nothing."""
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    file, held, _ = config.stash[_baseline]
    if reporter is None or not held or config.getoption("--nki-update") or session.exitstatus != pytest.ExitCode.OK:
        return
    profiled = {r.nodeid for r in _calls(reporter) if any(name == _PROPERTY for name, _ in r.user_properties)}
    if profiled and not profiled & held.keys():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("")
        reporter.write_line(
            f"nki-sim: {file} has none of these tests, so nothing was compared; it names {next(iter(held))}, the run {min(profiled)}: run pytest "
            "from the folder in which the baseline was written, or pass --nki-update",
            red=True,
        )


def _calls(reporter):
    """The reports of the tests' calls."""
    return [r for several in reporter.stats.values() for r in several if getattr(r, "when", None) == "call"]


def pytest_terminal_summary(terminalreporter, config):
    # A worker of pytest-xdist knows a part of the tests only.
    if hasattr(config, "workerinput"):
        return
    reports = _calls(terminalreporter)
    rows = [(r.nodeid, *what) for r in reports for name, what in r.user_properties if name == _PROPERTY]
    if rows and config.getoption("--nki-report"):
        terminalreporter.section("nki-sim: time on the device")
        for nodeid, name, target, us, valid in rows:
            remark = "" if valid else ", not valid: exceeds SBUF or PSUM"
            terminalreporter.write_line(f"{us:12.2f} us  {name} on {target}  ({nodeid}{remark})")
    file, held, tolerance = config.stash[_baseline]
    if file is None:
        return
    measured, without = {}, set()
    for report in reports:
        # As lists: pytest-xdist transfers properties as JSON.
        of = [tuple(what[:3]) for name, what in report.user_properties if name == _PROPERTY and what[3]]
        if of and report.passed:
            measured[report.nodeid] = of
        elif report.passed and report.nodeid in held:
            without.add(report.nodeid)
    new = sorted(set(measured) - set(held))
    missing = sorted(config.stash[_collection].missing(held))
    if config.getoption("--nki-update"):
        # Another run may have written other tests in the meantime.
        held = _read_baseline(config)[1]
        _write_baseline(file, {**{test: of for test, of in held.items() if test not in without and test not in missing}, **measured})
        removed = f"; {len(without)} removed, which no longer profile a kernel with a valid latency" if without else ""
        removed += f"; {len(missing)} removed, which no longer exist" if missing else ""
        terminalreporter.write_line(f"nki-sim: {file}: {len(measured)} tests written, {len(new)} of them new{removed}")
        return
    faster = [
        f"{name} {was:.2f} -> {us:.2f} us ({test})"
        for test, of in sorted(measured.items())
        for (name, _, us), (_, _, was) in zip(of, held.get(test, []))
        if us < was * (1 - tolerance / 100)
    ]
    for text, several in (("faster than in", faster), ("not in", new)):
        if several:
            terminalreporter.section(f"nki-sim: {text} {file}")
            for line in several:
                terminalreporter.write_line(line)
    if faster or new:
        terminalreporter.write_line("--nki-update writes these")
    if missing:
        terminalreporter.section(f"nki-sim: stale entries in {file}: there is no such test")
        for line in missing:
            terminalreporter.write_line(line)
        terminalreporter.write_line("--nki-update in a run of all tests removes these")


def _write_baseline(file, tests):
    # Imported here because tests may use no kernel.
    from . import _files

    file.parent.mkdir(parents=True, exist_ok=True)
    rows = {test: [[name, target, round(us, 6)] for name, target, us in of] for test, of in sorted(tests.items())}
    _files.write(file, json.dumps({"form": _FORM, "tests": rows}, indent=1) + "\n")


def _recorded():
    # Tests that use no kernel do not import it.
    profile = sys.modules.get("nki_sim._profile")
    return profile.recorded if profile else []
