"""A pytest plugin for KLR's language tests: a test fails if a kernel is rejected and the test
ignores the rejection.

With $NKI_SIM_FUNCTION, it keeps the tests whose parameter is that function, and writes their
outcomes. A function without a test is compiled directly: with $NKI_SIM_REFUSED it must be rejected,
otherwise accepted.
"""

import inspect
import json
import os

import klr.frontend
import pytest

WANTED = os.environ.get("NKI_SIM_FUNCTION")
outcomes: dict[str, tuple[str, str]] = {}


def pytest_collection_modifyitems(items):
    """Keeps the tests whose parameter is the function (or its name); if there are none, those with
    that name; if there are none of these either, for a class, those whose function uses it."""
    if WANTED is None:
        return

    def taken(item):
        parameters = getattr(item, "callspec", None)
        values = parameters.params.values() if parameters else []
        return [value if isinstance(value, str) else getattr(value, "__name__", None) for value in values]

    def uses(item):
        functions = [value for value in item.callspec.params.values() if inspect.isfunction(value)] if hasattr(item, "callspec") else []
        return any(WANTED in function.__code__.co_names for function in functions)

    takes = [item for item in items if WANTED in taken(item)]
    called = [item for item in items if item.originalname in (WANTED, f"test_{WANTED}")]
    modules = [item.module for item in items[:1]]
    items[:] = takes or called or [item for item in items if uses(item)]
    function = getattr(modules[0], WANTED, None) if modules and not items else None
    if inspect.isfunction(function):
        answer = json.loads(klr.frontend.Kernel(function).specialize())
        if os.environ.get("NKI_SIM_REFUSED"):
            outcomes[WANTED] = ("passed", "") if answer["errors"] else ("failed", "expected an error: accepted")
        else:
            outcomes[WANTED] = ("failed", answer["errors"][0].splitlines()[0]) if answer["errors"] else ("passed", "")


def pytest_runtest_setup(item):
    klr.frontend.errors.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    refused = klr.frontend.errors
    if report.when == "call" and report.passed and refused and "fail" not in item.originalname:
        report.outcome, report.longrepr = "failed", refused[0].strip()


def pytest_runtest_logreport(report):
    if report.failed:
        text = str(report.longrepr).splitlines()
        lines = [line.removeprefix("E").strip() for line in text if line.startswith("E ")]
        outcomes[report.nodeid] = ("failed", (lines or text or ["failed"])[0][:300])
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, ("passed" if report.passed else "skipped", ""))


def pytest_sessionfinish():
    if WANTED is None:
        return
    with open(os.environ["NKI_SIM_RESULTS"], "w") as file:
        json.dump(outcomes, file)
