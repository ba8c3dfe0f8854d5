"""The Python blocks of README.md and docs/python.md run unmodified, in order, with one process per page."""

import importlib.util
import linecache
import pathlib
import re
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(name):
    """The blocks of a page: line of the first statement, text."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return [(text[: m.start(1)].count("\n"), m[1]) for m in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)]


@pytest.mark.parametrize("name, least", [("README.md", 1), ("docs/python.md", 7)])
def test_blocks_run(name, least, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope, found = {"__name__": "page"}, blocks(name)
    assert len(found) >= least
    for line, text in found:
        needed = [m for m in ("torch", "jax") if re.search(rf"^import {m}$", text, re.M)]
        if any(importlib.util.find_spec(m) is None for m in needed):
            continue
        # Line numbers as in the page, for messages and for the sources of kernels.
        text, file = "\n" * line + text, f"{ROOT / name}:block{line}"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Without an installed plugin, pytest does not know the marker.
            warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
            exec(compile(text, file, "exec"), scope)


def test_the_last_block_of_the_page_is_a_test(pytester):
    """Blocks with tests are run by pytest with the plugin, after the first block."""
    found = [text for _, text in blocks("docs/python.md")]
    pytester.makepyfile(found[0] + found[-1])
    plugin = [] if "nki_sim" in pytester._request.config.pluginmanager._name2plugin else ["-p", "nki_sim.pytest_plugin"]
    result = pytester.runpytest("--nki-report", *plugin)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*us  kernel on trn2  (*test_kernel)"])
