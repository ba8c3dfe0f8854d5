"""`--nki-baseline`: tests fail if their kernels become slower than recorded in a file of the repository."""

import json
import os

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


def kernels(rows):
    return '{"form": 2, "tests": {"a": %s}}' % rows


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "Expecting value"),
        ("[]", 'it is not an object with the keys "form" and "tests"'),
        ('{"form": 2}', 'it is not an object with the keys "form" and "tests"'),
        ('{"form": 1, "tests": {}}', '"form" is 1; this version of nki-sim reads form 2'),
        ('{"form": true, "tests": {}}', '"form" is true'),
        ('{"form": 2, "tests": []}', '"tests" is [[][]], not an object'),
        ('{"form": 2, "tests": {"a": [], "b": [], "a": []}}', 'the key "a" occurs twice'),
        (kernels('"fast"'), '"tests", "a": "fast" is not a list of kernels'),
        (kernels('["k"]'), '"tests", "a": "k" is not a kernel, which is [[]name, target, microseconds]'),
        (kernels('[[1, "trn2", 2.0]]'), '"tests", "a": [[]1, "trn2", 2.0] is not a kernel'),
        (kernels('[["k", 1.0, 2.0]]'), '"tests", "a": *is not a kernel'),
        (kernels('[["k", 2.0]]'), '"tests", "a": *is not a kernel'),
        *(
            (kernels(f'[["ok", "trn2", 1.5], ["k", "trn2", {time}]]'), f'"tests", "a", kernel "k": the time {shown} is not a finite number of microseconds above 0')
            for time, shown in [
                ('"fast"', '"fast"'), ('"12"', '"12"'), ("0", "0"), ("-1", "-1"), ("NaN", "NaN"), ("1e999", "Infinity"), ("true", "true"), ("null", "null"),
                ("[[]]", "[[][[]]]"), ("1" + 400 * "0", "1" + 56 * "0" + "..."),
            ]
        ),
    ],
)  # fmt: skip
def test_another_file_is_refused(text, words, run, pytester):
    (pytester.path / "base.json").write_text(text)
    result = run("--nki-baseline", "base.json", "--nki-update")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--nki-baseline base.json: not a baseline of nki-sim: {words}*; correct the file, or delete it and*--nki-update*"])
    assert (pytester.path / "base.json").read_text() == text


def test_usage(run):
    for options, words in [
        (["--nki-update"], "needs --nki-baseline"),
        (["--nki-tolerance", "3"], "--nki-tolerance needs --nki-baseline"),
        (["--nki-baseline", "none.json"], "no such file; --nki-update writes it"),
        (["--nki-baseline", "none.json", "--nki-update", "--nki-tolerance", "-1"], "at least 0"),
        (["--nki-baseline", "none.json", "--nki-update", "--nki-tolerance", "inf"], "and finite"),
        (["--nki-baseline", "none.json", "--nki-update", "--nki-tolerance", "nan"], "and finite"),
        (["--nki-baseline", os.devnull], "it is not a regular file"),
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
    result.stdout.fnmatch_lines(["*profiles kernel on trn2, but base.json has other on trn2; --nki-update*"])


def test_a_test_without_kernels_leaves_the_file(run, pytester):
    """Following the advice in the message fixes the problem."""
    run("--nki-baseline", "base.json", "--nki-update")
    text = (pytester.path / "base.json").read_text().replace("test_time[64]", "test_nothing")
    (pytester.path / "base.json").write_text(text)
    result = run("--nki-baseline", "base.json")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*profiles no kernel, but base.json has kernel on trn2; --nki-update*"])
    run("--nki-baseline", "base.json", "--nki-update").stdout.fnmatch_lines(["*2 tests written, 1 of them new; 1 removed, which no longer profile a kernel*"])
    run("--nki-baseline", "base.json").assert_outcomes(passed=3)


def test_entries_of_tests_that_do_not_exist(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update")
    text = (pytester.path / "base.json").read_text().replace("test_time[64]", "test_old[64]")
    # The test may be in a file that this run does not read.
    text = text.replace('"tests": {', '"tests": {"elsewhere/test_other.py::test": [["kernel", "trn2", 1.0]],')
    (pytester.path / "base.json").write_text(text)
    (pytester.path / "elsewhere").mkdir()
    words = ["*stale entries in base.json: there is no such test*", "test_kernels.py::test_old[[]64[]]", "--nki-update in a run of all tests removes these"]
    here = ("--nki-baseline", "base.json", "test_kernels.py")
    run(*here).stdout.fnmatch_lines(words)
    for partial in (["-k", "nothing"], ["-m", "not slow"], ["--deselect", "test_kernels.py::test_nothing"], ["test_kernels.py::test_nothing"]):
        run(*here[:2], *partial).stdout.no_fnmatch_line(words[0])
        run(*here[:2], *partial, "--nki-update").stdout.no_fnmatch_line("*do not exist*")
    # The tests of a file that cannot be read may still exist.
    broken = run(*here, copies="1 / 0")
    broken.stdout.no_fnmatch_line(words[0])
    run(*here, "--nki-update").stdout.fnmatch_lines(["*2 tests written, 0 of them new; 1 removed, which no longer exist"])
    assert sorted(held(pytester)["tests"]) == ["elsewhere/test_other.py::test", "test_kernels.py::test_time[128]", "test_kernels.py::test_time[64]"]
    run("--nki-baseline", "base.json", "--nki-update").stdout.fnmatch_lines(["*2 tests written, 0 of them new; 1 removed, which no longer exist"])


def test_xdist_neither_lists_nor_removes_entries(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update")
    text = (pytester.path / "base.json").read_text().replace("test_time[64]", "test_old[64]")
    (pytester.path / "base.json").write_text(text)
    parallel = ("--nki-baseline", "base.json", "-n", "2")
    run(*parallel).stdout.no_fnmatch_line("*no such test*")
    run(*parallel, "--nki-update").stdout.fnmatch_lines(["*2 tests written, 1 of them new"])
    names = ["test_old[64]", "test_time[128]", "test_time[64]"]
    assert sorted(held(pytester)["tests"]) == [f"test_kernels.py::{name}" for name in names]


def test_a_failure_is_one_line(run):
    run("--nki-baseline", "base.json", "--nki-update")
    shown = run("--nki-baseline", "base.json", copies=4).stdout
    shown.fnmatch_lines(["kernel takes * us, +*% (baseline * us, at most 2% more)"])
    shown.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.parametrize("budget", ["float('nan')", "float('inf')", "'20'", "True", "0"])
def test_a_budget_that_is_no_time_fails(budget, pytester):
    plugin = [] if "nki_sim" in pytester._request.config.pluginmanager._name2plugin else ["-p", "nki_sim.pytest_plugin"]
    text = KERNEL.format(copies=1).replace("    def test_nothing", f"    @pytest.mark.nki_latency(max_us={budget})\n    def test_nothing")
    text = text.replace("        pass\n", "        nki_sim.profile(kernel)(np.zeros((128, 64), np.float32))\n")
    pytester.makepyfile(test_kernels=text)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*the marker nki_latency: max_us=*is not a finite number of microseconds above 0, such as max_us=20*"])


def test_a_baseline_without_any_test_of_the_run_fails(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update").assert_outcomes(passed=3)
    file = pytester.path / "base.json"
    file.write_text(file.read_text().replace("test_kernels.py", "tests/test_kernels.py"))
    result = run("--nki-baseline", "base.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*has none of these tests, so nothing was compared; it names tests/test_kernels.py::*"])
    # A test that is new does not fail the run.
    entry = next(iter(held(pytester)["tests"].items()))
    file.write_text(json.dumps({"form": 2, "tests": dict([(entry[0].replace("tests/", ""), entry[1])])}))
    assert run("--nki-baseline", "base.json").ret == pytest.ExitCode.OK


def test_entries_of_a_run_at_the_same_time_stay(run, pytester):
    run("--nki-baseline", "base.json", "--nki-update")
    words = 'import json, pathlib\n\ndef test_other():\n    file = pathlib.Path("base.json")\n    held = json.loads(file.read_text())\n'
    words += '    held["tests"]["elsewhere/test_x.py::test"] = [["k", "trn2", 1.0]]\n    file.write_text(json.dumps(held))\n'
    (pytester.path / "test_while.py").write_text(words)
    run("--nki-baseline", "base.json", "--nki-update")
    assert "elsewhere/test_x.py::test" in held(pytester)["tests"]


def test_another_target_is_another_kernel(run, pytester, monkeypatch):
    run("--nki-baseline", "base.json", "--nki-update")
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    result = run("--nki-baseline", "base.json")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*profiles kernel on trn1, but base.json has kernel on trn2; --nki-update replaces it"])
    run("--nki-report").stdout.fnmatch_lines(["* us  kernel on trn1  (*"])


def test_latencies_that_are_not_valid(run, pytester, monkeypatch):
    """Of a kernel that exceeds SBUF, and that `capacity="warn"` runs nevertheless."""
    run("--nki-baseline", "base.json", "--nki-update")
    big = KERNEL.replace("zeros((128, columns)", "zeros((128, 1000 * columns)")
    monkeypatch.setitem(globals(), "KERNEL", big)
    monkeypatch.setenv("NKI_SIM_CAPACITY", "warn")
    result = run("--nki-baseline", "base.json", "--nki-report")
    result.assert_outcomes(passed=1, failed=2)
    words = "*profiles no kernel, but base.json has kernel on trn2; the latency of kernel is not valid: it exceeds SBUF or PSUM; --nki-update*"
    result.stdout.fnmatch_lines([words, "* us  kernel on trn2  (*, not valid: exceeds SBUF or PSUM)"])
    run("--nki-baseline", "base.json", "--nki-update").stdout.fnmatch_lines(["*0 tests written*; 2 removed, which no longer profile a kernel with a valid*"])
    monkeypatch.setitem(globals(), "KERNEL", big.replace("    def test_nothing", "    @pytest.mark.nki_latency(max_us=1e6)\n    def test_big").replace(
        "        pass", "        nki_sim.profile(kernel)(np.zeros((128, 64000), np.float32))"
    ))
    run().stdout.fnmatch_lines(["*latency budget of 1000000.0 us: the latency of kernel is not valid, because the kernel exceeds SBUF or PSUM"])
