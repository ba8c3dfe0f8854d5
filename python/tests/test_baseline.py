"""`--nki-baseline`: tests fail if their kernels become slower than in a file of the repository."""

import json

import pytest

KERNEL = """
    import nki
    import nki.isa as nisa
    import nki.language as nl
    import nki_sim
    import numpy as np
    import pytest

    COPIES = {copies}

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for _ in range(COPIES):
            tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            nisa.dma_copy(dst=out, src=tile)
        return out

    @pytest.mark.parametrize("columns", [64, 128])
    def test_time(columns):
        nki_sim.profile(kernel)(np.zeros((128, columns), np.float32))

    def test_nothing():
        pass
"""


@pytest.fixture
def run(pytester):
    plugin = [] if "nki_sim" in pytester._request.config.pluginmanager._name2plugin else ["-p", "nki_sim.pytest_plugin"]

    def run(*options, copies=2):
        pytester.makepyfile(test_kernels=KERNEL.format(copies=copies))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, *plugin)

    return run


def held(pytester):
    return json.loads((pytester.path / "base.json").read_text())


def test_slower_kernels_fail(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update").assert_outcomes(passed=3)
    before = held(pytester)
    assert sorted(before["tests"]) == ["test_kernels.py::test_time[128]", "test_kernels.py::test_time[64]"]
    run("--nki-baseline", "base.json").assert_outcomes(passed=3)
    slower = run("--nki-baseline", "base.json", copies=4)
    slower.assert_outcomes(passed=1, failed=2)
    slower.stdout.fnmatch_lines(["*kernel takes * us, +*% (baseline * us, at most 2% more)*"])
    run("--nki-baseline", "base.json", "--nki-tolerance", "300", copies=4).assert_outcomes(passed=3)
    assert held(pytester) == before


def test_faster_and_new_kernels_are_reported(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update", "-k", "64", copies=4)
    faster = run("--nki-baseline", "base.json", copies=2)
    faster.assert_outcomes(passed=3)
    faster.stdout.fnmatch_lines(["kernel * -> * us (test_kernels.py::test_time[[]64[]])", "test_kernels.py::test_time[[]128[]]", "--nki-update writes these"])
    # Tests that did not run keep their times.
    run("--nki-baseline", "base.json", "--nki-update", "-k", "128", copies=2)
    assert len(held(pytester)["tests"]) == 2


def test_the_project_names_the_file(run, pytester):
    pytester.makeini("[pytest]\nnki_baseline = base.json\nnki_tolerance = 0\n")
    run("--nki-update").assert_outcomes(passed=3)
    run().assert_outcomes(passed=3)
    run(copies=3).assert_outcomes(passed=1, failed=2)
    run("-n", "2", "--nki-update", copies=3).assert_outcomes(passed=3)
    run(copies=3).assert_outcomes(passed=3)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"form": 1}', '{"form": 1, "tests": {"a": [["k", "fast"]]}}', '{"form": 1, "tests": {"a": [["k", 0]]}}', '{"form": 1, "tests": {"a": [["k", NaN]]}}', '{"form": 2, "tests": {}}'],
)
def test_another_file_is_refused(text, run, pytester):
    (pytester.path / "base.json").write_text(text)
    result = run("--nki-baseline", "base.json", "--nki-update")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (pytester.path / "base.json").read_text() == text


def test_usage(run):
    for options, words in [
        (["--nki-update"], "needs --nki-baseline"),
        (["--nki-baseline", "none.json"], "no such file; --nki-update writes it"),
        (["--nki-baseline", "none.json", "--nki-update", "--nki-tolerance", "-1"], "at least 0"),
    ]:
        result = run(*options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*{words}*"])


def test_another_kernel_in_the_test(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update")
    text = (pytester.path / "base.json").read_text().replace('"kernel"', '"other"')
    (pytester.path / "base.json").write_text(text)
    result = run("--nki-baseline", "base.json")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*profiles other kernels than in base.json (kernel; there other): --nki-update*"])
