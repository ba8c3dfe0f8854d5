"""A pytest plugin: latency budgets and a report at the end.

    @pytest.mark.nki_latency(max_us=20)
    def test_softmax():
        out, report = nki_sim.profile(softmax)(x)

The marker fails the test if a kernel that the test profiles takes longer on the device.
`--nki-report` lists all profiled kernels at the end.
"""

import sys

import pytest

#: The name of the test property with a kernel and its time.
_PROPERTY = "nki_latency_us"


def pytest_addoption(parser):
    group = parser.getgroup("nki_sim")
    group.addoption("--nki-report", action="store_true", help="list the kernels that tests profiled, with their time on the device")
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


def _set_levels(which, lists):
    if any(lists):
        # Imported only here: tests may use no kernel.
        from . import _levels

        try:
            _levels.set_source(which, *(several or None for several in lists))
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    start = len(_recorded())
    outcome = yield
    rows = _recorded()[start:]
    # Properties are part of the test report, which pytest-xdist transfers from its workers.
    item.user_properties.extend((_PROPERTY, [name, us]) for name, us in rows)
    marker = item.get_closest_marker("nki_latency")
    if marker is None or outcome.excinfo is not None:
        return
    budget = marker.kwargs.get("max_us", marker.args[0] if marker.args else None)
    if budget is None:
        outcome.force_exception(pytest.UsageError("the marker nki_latency needs max_us"))
    elif not rows:
        outcome.force_exception(AssertionError("the test has a latency budget but profiles no kernel (nki_sim.profile)"))
    else:
        slow = [f"{name} takes {us:.2f} us" for name, us in rows if us > budget]
        if slow:
            outcome.force_exception(AssertionError(f"latency budget of {budget} us: {'; '.join(slow)}"))


def pytest_terminal_summary(terminalreporter, config):
    reports = [r for several in terminalreporter.stats.values() for r in several if getattr(r, "when", None) == "call"]
    rows = [(r.nodeid, *what) for r in reports for name, what in r.user_properties if name == _PROPERTY]
    if rows and config.getoption("--nki-report"):
        terminalreporter.section("nki-sim: time on the device")
        for nodeid, name, us in rows:
            terminalreporter.write_line(f"{us:12.2f} us  {name}  ({nodeid})")


def _recorded():
    # Tests that use no kernel do not import it.
    profile = sys.modules.get("nki_sim._profile")
    return profile.recorded if profile else []
