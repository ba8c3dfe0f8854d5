"""Levels of findings in Python: arguments, `configure`, variables, the project file, pytest's options, scripts, sweeps."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from findings import warned

import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim


@nki.jit
def half(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64], src=x[0:64])
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def into(x, y):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=y, src=t)


X = np.ones((128, 16), np.float32)
SLUG = "uninitialized-output"
ALL = ["bug", "suspicious"]


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for level in ("DENY", "WARN", "ALLOW"):
        monkeypatch.delenv(f"NKI_SIM_{level}", raising=False)
    yield
    nki_sim.configure(deny=None, warn=None, allow=None)


def test_a_call_warns_and_deny_raises():
    assert SLUG in warned(lambda: half(X))[0]
    with pytest.raises(nki_sim.KernelError) as info:
        nki.simulate(half, deny="bug")(X)
    assert info.value.slug == SLUG and {d["class"] for d in info.value.diagnostics if d["severity"] == "error"} == {"bug"}
    assert f"denied: {SLUG} (1) by deny= of nki.simulate: bug" in str(info.value)
    assert warned(lambda: nki.simulate(half, allow=ALL)(X)) == []
    # The kernel itself is unchanged, and the program is shared.
    assert warned(lambda: half(X))
    with pytest.raises(nki_sim.KernelError):
        nki.simulate(half, deny=["strict", "warnings"])(X)
    assert warned(lambda: nki.simulate(half, deny="bug", warn=SLUG)(X))


def test_nothing_is_written_by_a_call_that_is_denied():
    y = np.full_like(X, 7)
    with pytest.raises(nki_sim.KernelError):
        nki.simulate(into, deny="bug")(X, y)
    assert (y == 7).all()


def test_profile_and_ranks_have_levels():
    with pytest.raises(nki_sim.KernelError):
        nki_sim.profile(half, deny="bug")(X)
    _, report = nki_sim.profile(half, allow=ALL)(X)
    assert report.findings == [] and report["denied"] == [] and report["nki_sim_version"] == nki_sim.__version__
    _, report = nki_sim.profile(nki.simulate(half))(X)
    assert report.findings[0]["severity"] == "warning"
    ranks = nki_sim.simulate_ranks(half, 2)
    with pytest.raises(nki_sim.KernelError, match="on rank 0"):
        nki_sim.profile(ranks, deny="bug")(X)
    with pytest.raises(nki_sim.KernelError):
        nki_sim.simulate_ranks(nki.simulate(half, deny="bug"), 2)(X)
    _, report = nki_sim.profile(ranks, allow=ALL)(X)
    assert report.findings == []


def test_assert_close_denies_bugs():
    want = np.vstack([X[:64], np.full((64, 16), np.nan, np.float32)])
    with pytest.raises(nki_sim.KernelError, match="default in assert_close") as info:
        nki_sim.assert_close(half, want, (X,))
    assert 'nki.simulate(kernel, warn="uninitialized-output")' in str(info.value)
    with pytest.raises(nki_sim.KernelError):
        nki_sim.assert_close(nki_sim.profile(half), want, (X,))
    assert warned(lambda: nki_sim.assert_close(nki.simulate(half, warn="bug"), want, (X,)))
    nki_sim.assert_close(nki.simulate(half, allow="bug"), want, (X,))
    # Only there.
    assert warned(lambda: half(X))


def test_sources_beat_each_other_in_order(monkeypatch):
    monkeypatch.setenv("NKI_SIM_DENY", "bug")
    with pytest.raises(nki_sim.KernelError, match="NKI_SIM_DENY: bug"):
        half(X)
    nki_sim.configure(warn="bug")
    assert warned(lambda: half(X))
    with pytest.raises(nki_sim.KernelError, match="nki.simulate"):
        nki.simulate(half, deny=SLUG)(X)
    # Omitted settings are kept.
    nki_sim.configure(allow="suspicious")
    assert warned(lambda: half(X))
    nki_sim.configure(warn=None)
    with pytest.raises(nki_sim.KernelError):
        half(X)
    nki_sim.configure(allow=ALL)
    assert warned(lambda: half(X)) == []
    monkeypatch.setenv("NKI_SIM_DENY", "bugs")
    with pytest.raises(ValueError, match="did you mean `bug`"):
        half(X)


def test_wrong_words_are_refused():
    for wrong, why in (
        ({"deny": "bugs"}, "did you mean `bug`"),
        ({"allow": "sbuf-overflow"}, "is an error"),
        ({"deny": "bug", "allow": ["bug"]}, "given twice"),
    ):
        with pytest.raises(ValueError, match=why):
            nki_sim.configure(**wrong)
        with pytest.raises(ValueError, match=why):
            nki.simulate(half, **wrong)(X)
    for wrong in (3, [3], {"bug": 1, 2: 3}):
        with pytest.raises(nki_sim.ArgumentTypeError, match="string"):
            nki_sim.configure(deny=wrong)
    # None of them has an effect.
    assert warned(lambda: half(X))


def test_strict_findings_are_looked_for_if_they_are_wanted():
    @nki.jit
    def loose(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        t = nl.ndarray(x.shape, dtype=x.dtype, buffer="sbuf")
        nisa.dma_copy(dst=t, src=x)
        nisa.dma_copy(dst=out, src=t)
        return out

    assert warned(lambda: loose(X)) == []
    assert "strict-language" in warned(lambda: nki.simulate(loose, warn="strict")(X))[0]
    with pytest.raises(nki_sim.KernelError, match="strict-language"):
        nki.simulate(loose, deny="strict")(X)
    assert warned(lambda: loose(X)) == []


SOURCE = '''
import numpy as np
import nki_sim
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def half(x, rows=64):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    if rows > 0:
        nisa.dma_copy(dst=t[0:rows], src=x[0:rows])
        if rows == 128:
            nisa.dma_copy(dst=out, src=t)
    return out

def test_half():
    half(np.ones((128, 16), np.float32))

if __name__ == "__main__":
    test_half()
    print("ran")
'''


def python(folder, *words, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NKI_SIM_", "PYTEST"))} | variables
    return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_half.py").write_text(SOURCE)
    return tmp_path


def test_the_project_file_beside_the_kernel_counts(folder):
    (folder / "pyproject.toml").write_text("[tool.nki-sim]\ndeny = ['bug']\n")
    ran = python(pathlib.Path("/"), str(folder / "test_half.py"))
    assert ran.returncode == 1 and "pyproject.toml: bug" in ran.stderr, ran
    (folder / "pyproject.toml").write_text("[tool.nki-sim]\ndenied = ['bug']\n")
    ran = python(folder, "test_half.py")
    assert ran.returncode == 1 and "unknown key `denied`" in ran.stderr, ran


def test_a_script_is_run_with_the_levels_of_the_command(folder):
    def run(*more, **variables):
        return python(folder, "-m", "nki_sim", "run", "test_half.py", *more, **variables)

    ran = run()
    assert ran.returncode == 0 and "ran" in ran.stdout and "output-not-written" in ran.stderr, ran
    ran = run("--deny", "warnings")
    assert ran.returncode == 1 and "output-not-written (1) by --deny warnings" in ran.stderr, ran
    ran = run("--allow", "bug,suspicious", NKI_SIM_DENY="bug")
    assert ran.returncode == 0 and "output-not-written" not in ran.stderr, ran


def test_pytest_has_options_and_settings(folder):
    plugin = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if "nki_sim" not in {e.name for e in __import__("importlib.metadata").metadata.entry_points(group="pytest11")}:
        plugin += ["-p", "nki_sim.pytest_plugin"]

    def run(*more):
        return python(folder, *plugin, *more, "test_half.py")

    assert run().returncode == 0
    ran = run("--nki-sim-deny", "bug")
    assert ran.returncode == 1 and "by --nki-sim-deny bug" in ran.stdout, ran.stdout
    (folder / "pytest.ini").write_text("[pytest]\nnki_sim_deny = bug strict\n")
    ran = run()
    assert ran.returncode == 1 and "nki_sim_deny of pytest's ini file: bug" in ran.stdout, ran.stdout
    assert run("--nki-sim-warn", "bug").returncode == 0
    ran = run("--nki-sim-deny", "bugs")
    assert ran.returncode == 4 and "did you mean `bug`?" in ran.stderr, ran


def test_a_sweep_has_levels(folder):
    args = {"x": nki_sim.TensorSpec((128, 16), "float32")}
    path, grid = folder / "test_half.py", {"rows": [32, 128]}
    points = nki_sim.sweep(path, args, grid=grid)
    assert [p.point["rows"] for p in points] == [128, 32]
    assert points[1].latency_us is None and points[1].denied[0]["id"] == "output-not-written" and "output-not-written" in points[1].error
    points = nki_sim.sweep(path, args, grid=grid, warn="bug")
    assert [p.point["rows"] for p in points] == [128, 32] and "output-not-written" in points[1].warnings and not points[0].warnings
    nki_sim.configure(allow="bug,suspicious")
    points = nki_sim.sweep(path, args, grid=grid)
    assert points[0].latency_us and not points[0].findings
