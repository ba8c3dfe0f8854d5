"""A pytest plugin: selects tests, and writes the start and the outcome of each test as a line of
JSON to $NKI_SIM_EVENTS.

$NKI_SIM_PHASE is a file with the current phase of the running test, for a process that has to stop
it. With $NKI_SIM_ALSO, the other frontend specialises each kernel, too, and its program is compared.
"""

import contextlib
import functools
import importlib
import itertools
import json
import os
import pathlib
import random
import re
import time

import numpy
import pytest

EVENTS = os.environ["NKI_SIM_EVENTS"]
PHASE = pathlib.Path(os.environ["NKI_SIM_PHASE"])
KERNEL = os.environ.get("NKI_SIM_KERNEL", "")


def emit(**event) -> None:
    with open(EVENTS, "a") as file:
        file.write(json.dumps(event) + "\n")


def pytest_configure(config):
    random.seed(0)
    numpy.random.seed(0)


def pytest_collectreport(report):
    """Reports a file that cannot be collected, where all of them are collected."""
    if report.failed and "NKI_SIM_COLLECT" in os.environ:
        emit(event="refused", id=report.nodeid, reason=classify(report))


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector):
    """Sweeps draw random parameters: the names of a file's tests must not depend on other files."""
    if isinstance(collector, pytest.Module):
        random.seed(0)
        numpy.random.seed(0)


def size(item) -> tuple:
    """The sort key of the configurations of one test function: the product of the numbers in the
    name, then the name."""
    product = 1.0
    for number in re.findall(r"\d+", item.name):
        product *= max(int(number), 1)
    return product, item.name


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    collected = len(items)
    if "NKI_SIM_COLLECT" in os.environ:
        emit(event="collected", count=collected, candidates=[item.nodeid for item in items if not item.get_closest_marker("skip")])
        items.clear()
        return
    if "NKI_SIM_CHOSEN" in os.environ:
        with open(os.environ["NKI_SIM_CHOSEN"]) as file:
            _drawn.update(json.load(file))
        items[:] = [item for item in items if item.nodeid in _drawn]
    smallest, sample = int(os.environ.get("NKI_SIM_SMALLEST", "0")), int(os.environ.get("NKI_SIM_SAMPLE", "0"))
    if smallest or sample:
        items[:] = choose(items, smallest, sample, os.environ.get("NKI_SIM_SEED", "0"))
    emit(event="collected", count=collected, chosen={item.nodeid: item.nodeid in _drawn for item in items})
    with open(os.environ["NKI_SIM_DONE"]) as file:
        done = set(json.load(file))
    items[:] = [item for item in items if item.nodeid not in done]


def choose(items: list, smallest: int, sample: int, seed: str) -> list:
    """The `smallest` smallest configurations of each test function, and `sample` further ones drawn
    at random.

    The draw depends only on the seed, the function and the names of its configurations.
    """
    functions: dict[str, list] = {}
    for item in items:
        if not item.get_closest_marker("skip"):
            functions.setdefault(item.nodeid.split("[")[0], []).append(item)
    chosen: set[str] = set()
    for name, group in functions.items():
        group.sort(key=size)
        rest = group[smallest:]
        drawn = random.Random(f"{seed} {name}").sample(rest, min(sample, len(rest)))
        _drawn.update(item.nodeid for item in drawn)
        chosen.update(item.nodeid for item in group[:smallest] + drawn)
    return [item for item in items if item.nodeid in chosen]


def pytest_sessionstart(session):
    """With $NKI_SIM_KERNEL, omits tests that do not call that kernel from the results: a file may
    test several kernels.

    With $NKI_SIM_INSTEAD="MODULE:OTHER", tests that import that kernel from MODULE get it from
    module OTHER.
    """
    instead = os.environ.get("NKI_SIM_INSTEAD")
    if instead:
        module, other = (importlib.import_module(name) for name in instead.split(":"))
        setattr(module, KERNEL, getattr(other, KERNEL))
    measure()
    if "NKI_SIM_ALSO" in os.environ:
        compare(os.environ["NKI_SIM_ALSO"])
    if not KERNEL:
        return
    import nki

    simulate = nki.cpu_simulate

    def noting(kernel):
        _called.add(getattr(kernel, "__name__", ""))
        function = getattr(kernel, "func", kernel)
        _called.update(getattr(getattr(function, "__code__", None), "co_names", ()))
        return simulate(kernel)

    nki.cpu_simulate = noting


def measure() -> None:
    """Records when the suite simulates a kernel, and for how long."""
    from test.utils import simulation_setup

    from library_suite import ranks

    def timed(run):
        @functools.wraps(run)
        def simulate(*arguments, **named):
            PHASE.write_text("in the simulation")
            start = time.monotonic()
            try:
                return run(*arguments, **named)
            finally:
                _simulated.append(time.monotonic() - start)
                PHASE.write_text("after the simulation, in the test's own reference")

        return simulate

    simulation_setup.simulate_kernel = timed(simulation_setup.simulate_kernel)
    ranks.run = timed(ranks.run)


def compare(other: str) -> None:
    """Lets the frontend `other` specialise each kernel, too, and reports whether the programs are
    equal, as an event: if they are, so are their results."""
    from nki_sim._kernel import Kernel

    compile_ = Kernel._compile

    def attempt(kernel, arguments):
        start = time.process_time()
        try:
            compiled, error = compile_(kernel, arguments), None
        except Exception as raised:
            compiled, error = None, raised
        return compiled, error, round(time.process_time() - start, 3)

    def compile_with_both(kernel, arguments):
        compiled, error, seconds = attempt(kernel, arguments)
        with frontend(other):
            of_other, error_of_other, seconds_of_other = attempt(kernel, arguments)
        if compiled is None or of_other is None:
            found = [describe(error), describe(error_of_other)]
        else:
            found = first_difference(statements(compiled.text()), statements(of_other.text()))
        emit(event="compared", id=_running[-1], same=found[0] == found[1], found=found, seconds=[seconds, seconds_of_other])
        if error is not None:
            raise error
        return compiled

    Kernel._compile = compile_with_both


@contextlib.contextmanager
def frontend(name: str):
    """Selects the frontend that specialises kernels."""
    before = os.environ.get("NKI_COMPILER_FRONTEND")
    os.environ["NKI_COMPILER_FRONTEND"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["NKI_COMPILER_FRONTEND"]
        else:
            os.environ["NKI_COMPILER_FRONTEND"] = before


def describe(error: Exception | None) -> str:
    """What a specialisation ended with: the slug of a diagnostic, or the class of an exception."""
    if error is None:
        return "a program"
    return f"error {getattr(error, 'slug', None) or type(error).__name__}"


def statements(text: str) -> list[str]:
    """The lines of a program without calls and iterations around each instruction: the frontends
    count those of comprehensions differently."""
    return [line.partition("  # ")[0] for line in text.splitlines() if not line.startswith(("file ", "trail "))]


def first_difference(one: list[str], other: list[str]) -> list[str]:
    """The first lines in which two programs differ; twice the same text if they are equal."""
    for line, line_of_other in itertools.zip_longest(one, other, fillvalue="the end"):
        if line != line_of_other:
            return [line.strip()[:200], line_of_other.strip()[:200]]
    return ["the same program"] * 2


def pytest_runtest_logstart(nodeid, location):
    PHASE.write_text("before the simulation, in the test's own inputs")
    _simulated.clear()
    _running[:] = [nodeid]
    emit(event="start", id=nodeid, drawn=nodeid in _drawn)


_outcome: dict[str, tuple[str, str]] = {}
_called: set[str] = set()
# The tests of the random sample, as opposed to the smallest ones.
_drawn: set[str] = set()
# The running test.
_running: list[str] = [""]
# Seconds of each simulation of the running test.
_simulated: list[float] = []


def pytest_runtest_logreport(report):
    status, reason = _outcome.get(report.nodeid, ("passed", ""))
    if report.skipped:
        status, reason = "skipped", str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else "skipped"
    elif report.failed and status != "failed":
        status, reason = "failed", classify(report)
    _outcome[report.nodeid] = (status, reason)
    if report.when == "teardown":
        if KERNEL and _called and KERNEL not in _called:
            status, reason = "skipped", "calls another kernel"
        _called.clear()
        seconds = {"seconds": round(getattr(report, "duration", 0.0), 3), "simulated": round(sum(_simulated), 3)}
        emit(event="finish", id=report.nodeid, status=status, reason=reason, **seconds)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    # The time of the whole test, not only of its teardown.
    item.stash.setdefault(_seconds, 0.0)
    item.stash[_seconds] += call.duration
    if call.when == "teardown":
        report.duration = item.stash[_seconds]


_seconds = pytest.StashKey[float]()


def classify(report) -> str:
    """One line that groups failures: the slug of a diagnostic, a mismatch, or the last line of the
    exception."""
    text = str(report.longrepr)
    diagnostic = re.search(r"error\[([a-z0-9-]+)\]: ([^\n]*)", text)
    if diagnostic:
        return f"{diagnostic.group(1)}: {_general(diagnostic.group(2))}"
    if re.search(r"Validation failed for|allclose|AllClose", text):
        return "result differs from the reference"
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.startswith("E ")]
    return _general(lines[-1] if lines else text.strip().splitlines()[-1])[:200]


def _general(message: str) -> str:
    """The message without numbers, so that the same rejection at other sizes is the same reason."""
    return re.sub(r"\d+", "N", message)[:200]
