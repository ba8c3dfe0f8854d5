"""A pytest plugin: keeps the tests whose parameter is the function $NKI_SIM_FUNCTION, and writes how they went."""

import json
import os

import klr.frontend

WANTED = os.environ["NKI_SIM_FUNCTION"]
outcomes: dict[str, tuple[str, str]] = {}


def pytest_collection_modifyitems(items):
    def wanted(item):
        parameters = getattr(item, "callspec", None)
        functions = [getattr(value, "__name__", None) for value in parameters.params.values()] if parameters else []
        return WANTED in functions or item.name == WANTED or item.name == f"test_{WANTED}"

    items[:] = [item for item in items if wanted(item)]


def pytest_runtest_setup(item):
    klr.frontend.errors.clear()


def pytest_runtest_logreport(report):
    refused = klr.frontend.errors
    if report.when == "call" and report.passed and refused and "fail" not in report.nodeid.split("::")[-1].split("[")[0]:
        # The test does not look at the result: a refusal fails it all the same.
        outcomes[report.nodeid] = ("failed", refused[0].strip().splitlines()[0][:300])
        return
    if report.failed:
        lines = [line.removeprefix("E").strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        outcomes[report.nodeid] = ("failed", (lines or ["failed"])[0][:300])
    elif report.when == "call":
        outcomes.setdefault(report.nodeid, ("passed" if report.passed else "skipped", ""))


def pytest_sessionfinish():
    with open(os.environ["NKI_SIM_RESULTS"], "w") as file:
        json.dump(outcomes, file)
