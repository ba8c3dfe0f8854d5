import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from softmax import softmax_rows

import nki_sim
from nki_sim import _native

X = np.random.default_rng(0).standard_normal((256, 512)).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_profile(tmp_path):
    out, report = nki_sim.profile(softmax_rows)(X)
    np.testing.assert_allclose(out, softmax(X), rtol=1e-5)
    assert report.latency_us > 1
    assert report.latency_error["low_us"] < report.latency_us < report.latency_error["high_us"]
    assert report.engines["vector"]["instructions"] > 0
    assert report.stalls and report.findings == []
    assert json.loads(report.to_json()) == report.to_dict()
    assert "vector" in str(report) and "softmax_rows" in repr(report)
    again = nki_sim.profile(softmax_rows)[1](X)[1]
    assert again.latency_us == report.latency_us


def test_settings_are_those_of_the_call():
    """Timing parameters of one call change neither another call nor the results."""
    default = nki_sim.profile(softmax_rows)(X)[1].latency_us
    device_out, device = nki_sim.profile(softmax_rows, settings={"kernel.measure": "device"})(X)
    slow = nki_sim.profile(nki_sim.simulate(softmax_rows, settings={"kernel.head_us": 100}), settings={"kernel.tail_us": 50})(X)[1]
    assert device.latency_us < default < slow.latency_us - 100
    assert slow.latency_error is None
    np.testing.assert_array_equal(device_out, softmax_rows(X))
    assert nki_sim.profile(softmax_rows)(X)[1].latency_us == default
    with pytest.raises(ValueError, match=r"^settings\['kernel.hed_us'\]: no timing parameter `kernel.hed_us`"):
        nki_sim.profile(softmax_rows, settings={"kernel.hed_us": 1})(X)


def test_a_report_has_all_that_the_command_writes(tmp_path):
    """The same kernel through the command and through Python."""
    command = [sys.executable, "-m", "nki_sim", "run", softmax_rows.func.__code__.co_filename, "--arg", "x=float32[256,512]"]
    files = {ending: tmp_path / f"command.{ending}" for ending in ("json", "csv", "html", "trace")}
    done = subprocess.run([*command, *(w for e, f in files.items() for w in (f"--{e}", str(f)))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    want = json.loads(files["json"].read_text())
    _, report = nki_sim.profile(softmax_rows)(X)
    assert report.to_dict() == want
    assert report.lines[0]["critical_us"] == max(line["critical_us"] for line in want["lines"]) > 0
    assert any("semaphore" in line["wait_cause"] for line in report.lines)
    assert report.remedies == want["remedies"] and report.critical_path == want["critical_path"] and "roofline" in report
    assert str(report) == done.stdout
    for ending in ("json", "csv", "html"):
        report.save(tmp_path / f"python.{ending}")
        got = (tmp_path / f"python.{ending}").read_text()
        assert got == files[ending].read_text() or json.loads(got) == want
    report.save(tmp_path / "python.perfetto-trace")
    assert (tmp_path / "python.perfetto-trace").read_bytes() == files["trace"].read_bytes()
    with pytest.raises(KeyError):
        report["nothing"]


def test_a_report_shows_itself_in_notebooks():
    text = nki_sim.profile(softmax_rows)(X)[1]._repr_html_()
    for part in ("softmax_rows", "<svg", "softmax.py:22", "dma_copy", "vector", "fill='#4a7ebb'", "lower precision"):
        assert part in text, part
    # The page is well-formed: every tag is closed, and text from the kernel is escaped.
    xml.etree.ElementTree.fromstring(text.replace("&micro;", "u"))
    with pytest.warns(nki_sim.KernelWarning):
        kernels.partly(X)
    text = nki_sim.profile(kernels.partly)(X)[1]._repr_html_()
    assert "elements of output `out` are never written" in text
    xml.etree.ElementTree.fromstring(text.replace("&micro;", "u"))


def test_pandas():
    pandas = pytest.importorskip("pandas")
    _, report = nki_sim.profile(softmax_rows)(X)
    frame = report.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.loc["vector", "active_us"] > 0
    instructions = report.to_pandas("instructions")
    assert len(instructions) == sum(e["instructions"] for e in report.engines.values())
    assert instructions["end_ts"].max() <= report.latency_us * 1000 and set(instructions["opcode"]) >= {"dma_copy", "tensor_reduce"}
    dma = report.to_pandas("dma")
    assert set(dma["opcode"]) == {"dma_copy"} and len(dma) == report["dma"]["transfers"] == 4
    assert dma["hbm_read_bytes"].sum() == dma["hbm_write_bytes"].sum() == X.nbytes
    assert report.to_pandas("lines")["critical_us"].sum() <= report.latency_us
    intervals = report.to_pandas("intervals")
    for _, row in intervals.groupby("row"):
        assert (row["end_us"] - row["start_us"]).sum() == pytest.approx(report.latency_us)
    for table in ("stalls", "opcodes", "remedies", "critical_path"):
        assert len(report.to_pandas(table)) == len(report[table])
    with pytest.raises(ValueError, match="the tables are engines, instructions, dma"):
        report.to_pandas("nothing")


def test_tolerances_are_those_of_the_command():
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "cli.md"
    table = page.read_text(encoding="utf-8").partition("| output dtype | rtol | atol |\n")[2].partition("\n\n")[0]
    held = {name: (rtol, atol) for names, rtol, atol in (re.findall(r"[^|]+", line) for line in table.splitlines()[1:]) for name in names.strip().split(", ")}
    for name in ("float32", "float16", "bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"):
        assert _native.tolerance(name) == tuple(float(text) for text in held[name])
    assert _native.tolerance("int32") == (0, 0) and _native.tolerance("float64") is None


def test_a_reference_that_writes_to_its_arguments():
    def centre(x):
        x -= x.mean(axis=1, keepdims=True)
        return x

    x = X.copy()
    with pytest.raises(AssertionError, match="elements differ"):
        nki_sim.assert_close(softmax_rows, centre, (x,))
    np.testing.assert_array_equal(x, X)
    nki_sim.assert_close(softmax_rows, lambda x: np.copyto(x, softmax(x)) or x, (x,))


def test_assert_close():
    nki_sim.assert_close(softmax_rows, softmax, (X,))
    nki_sim.assert_close(kernels.add, X[:4] * 2, (X[:4], X[:4]))
    with pytest.raises(AssertionError, match=r"add: output 0: 1 of 2048 elements differ .* first at \[1, 2\]"):
        wrong = X[:4] * 2
        wrong[1, 2] += 1
        nki_sim.assert_close(kernels.add, wrong, (X[:4], X[:4]))
    nki_sim.assert_close(kernels.add, wrong, (X[:4], X[:4]), atol=2)
    with pytest.raises(AssertionError, match="shape"):
        nki_sim.assert_close(kernels.add, X, (X[:4], X[:4]))
    # Each row of the array would become an argument.
    with pytest.raises(TypeError, match=r"the arguments of the kernel are a tuple, got ndarray; for one argument write \(x,\)"):
        nki_sim.assert_close(softmax_rows, softmax, X)


@nki.jit
def twice(x):
    """The argument, as two outputs with names."""
    first = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    second = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=first, src=tile)
    nisa.dma_copy(dst=second, src=tile)
    return {"first": first, "second": second}


@nki.jit
def written(x, y):
    """Writes `x` to `y`, and returns nothing."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=y, src=tile)


def test_a_comparison_of_nothing_or_of_other_outputs_fails():
    x = X[:4].copy()
    nki_sim.assert_close(twice, {"second": x, "first": x}, (x,))
    with pytest.raises(AssertionError, match="twice returns a dict of 'first', 'second', the reference one of 'first', 'third'"):
        nki_sim.assert_close(twice, lambda x: {"first": x, "third": x}, (x,))
    for want in ({"first": x, "second": x + 1}, {"second": x + 1, "first": x}):
        with pytest.raises(AssertionError, match="twice: output 1"):
            nki_sim.assert_close(twice, want, (x,))
    with pytest.raises(ValueError, match="written returns no array, and the reference none, so there is nothing to compare"):
        nki_sim.assert_close(written, lambda x, y: None, (x, np.zeros_like(x)))
    with pytest.raises(ValueError, match="takes the kernel of one rank"):
        nki_sim.assert_close(nki_sim.simulate_ranks(kernels.add, 2), x, (x, x))
    with pytest.raises(ValueError, match="complex64 cannot be compared"):
        nki_sim.assert_close(kernels.add, 2 * x + 1j, (x, x))
    for tolerance in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=rf"assert_close\(atol={tolerance!r}\): a tolerance is a finite number, 0 or more"):
            nki_sim.assert_close(kernels.add, 2 * x, (x, x), atol=tolerance)


@pytest.mark.parametrize("other", [np.int64, np.uint64])
def test_integers_of_64_bits_are_compared_exactly(other):
    """These two numbers are equal in float64."""
    x = np.full((4, 8), 2**60, np.int64)
    nki_sim.assert_close(twice, {"first": x.astype(other), "second": x}, (x,))
    with pytest.raises(AssertionError, match=f"32 of 32 elements differ .*got {2**60}, want {2**60 + 1}; largest error 1$"):
        nki_sim.assert_close(twice, {"first": (x + 1).astype(other), "second": x}, (x,))
    nki_sim.assert_close(twice, {"first": (x + 1).astype(other), "second": x}, (x,), rtol=1e-9)


def test_the_command_is_the_same(tmp_path):
    command = [sys.executable, "-m", "nki_sim"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and version.stdout.split()[1] == nki_sim.__version__
    wrong = subprocess.run([*command, "run", "missing.py"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "missing.py" in wrong.stderr


def test_plugin(pytester, monkeypatch):
    pytester.makeconftest("pytest_plugins = []")
    pytester.makepyfile(
        """
        import numpy as np, pytest, nki_sim
        from softmax import softmax_rows
        x = np.zeros((128, 64), np.float32)

        @pytest.mark.nki_latency(max_us=1000)
        def test_fast():
            nki_sim.profile(softmax_rows)(x)

        @pytest.mark.nki_latency(max_us=0.5)
        def test_slow():
            nki_sim.profile(softmax_rows)(x)

        @pytest.mark.nki_latency(max_us=5)
        def test_nothing():
            pass
        """
    )
    plugin = [] if "nki_sim" in pytester._request.config.pluginmanager._name2plugin else ["-p", "nki_sim.pytest_plugin"]
    result = pytester.runpytest("--nki-report", *plugin)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*latency budget of 0.5 us: softmax_rows takes*"])
    result.stdout.fnmatch_lines(["*nki-sim: time on the device*", "*us  softmax_rows on trn2  (*test_fast)", "*us  softmax_rows on trn2  (*test_slow)"])
    if importlib.util.find_spec("xdist"):
        monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(softmax_rows.func.__code__.co_filename).parent))
        result = pytester.runpytest_subprocess("--nki-report", "-n", "2", *plugin)
        result.stdout.fnmatch_lines_random(["*us  softmax_rows on trn2  (*test_fast)", "*us  softmax_rows on trn2  (*test_slow)"])


SCRIPT = """
import nki, numpy as np
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out

if __name__ == "__main__":
    print(double(np.ones((2, 2), np.float32))[0, 0], nisa.nc_version.gen3.name, nki.__file__ is not None)
    assert SHAPE
"""


def test_a_script_is_run_as_a_whole(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("SHAPE", "True"))
    command = [sys.executable, "-m", "nki_sim", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2.0 gen3 True\n"), done.stderr
    script.write_text(SCRIPT.replace("SHAPE", "False"))
    assert subprocess.run(command, capture_output=True).returncode == 1
    refused = subprocess.run([*command, "--json", "x"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--json is for one kernel" in refused.stderr
    one = subprocess.run([*command, "--kernel", "double", "--arg", "x=float32[2,2]"], capture_output=True, text=True)
    assert one.returncode == 0 and "us; DMA" in one.stdout, one.stderr


def test_a_script_without_the_package(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    other = {**__import__("os").environ, "NKI_SIM_PYTHON": "no-such-python"}
    done = subprocess.run([sys.executable, "-m", "nki_sim", "run", str(script)], capture_output=True, text=True, env=other)
    assert done.returncode == 2 and "no-such-python -m pip install DIRECTORY" in done.stderr


REPLAY = pathlib.Path(__file__).resolve().parents[2] / "tools" / "replay.py"


@pytest.mark.skipif(not REPLAY.exists(), reason="needs the repository")
@pytest.mark.parametrize("options, words", [(["p.json"], "cannot run no-such-command"), (["--leave-out", "p.json", "./p.json"], "two different profiles")])
def test_replays_that_cannot_be_made(options, words, tmp_path):
    other = {**os.environ, "NKI_SIM": "no-such-command"}
    done = subprocess.run([sys.executable, REPLAY, *options], capture_output=True, text=True, env=other, cwd=tmp_path)
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr
