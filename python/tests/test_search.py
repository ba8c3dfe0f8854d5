"""`nki_sim.sweep(search=...)` and `nki-sim sweep --search`."""

import concurrent.futures
import json
import platform
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

import nki_sim
from nki_sim import Search
from test_sweep import ARGS, SOURCE, TOO_WIDE

optuna = pytest.importorskip("optuna", reason="pip install optuna")

#: 100 does not divide the columns.
GRID = {"width": [32, 64, 100, 128, 256, 512], "SCALE": [1.0, 2.0, 3.0]}
X = np.linspace(-1, 1, 128 * 512, dtype=np.float32).reshape(128, 512)


@pytest.fixture
def kernel_file(tmp_path):
    path = tmp_path / "scaled.py"
    path.write_text(SOURCE)
    return path


def whole(kernel_file):
    return {tuple(p.point.items()): p.latency_us for p in nki_sim.sweep(kernel_file, ARGS, grid=GRID)}


@pytest.mark.parametrize("sampler", ["tpe", "random", "nsga2", "nsga3"])
def test_a_budget_as_large_as_the_grid_finds_what_the_grid_finds(kernel_file, sampler):
    points = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(100, sampler=sampler))
    assert {tuple(p.point.items()): p.latency_us for p in points} == whole(kernel_file)
    assert points.best.point["width"] == 256
    # Two transfers overlap, more take longer, and both need SBUF.
    front = points.front
    assert [p.latency_us for p in front] == sorted(p.latency_us for p in front) and front[0] is points.best
    assert len({p["sbuf_peak_bytes_per_partition"] for p in front}) == len(front) > 1
    failed = [p for p in points if p.latency_us is None]
    assert len(failed) == 3 and all("not tiles of 100" in p.error for p in failed)


def test_the_budget_is_kept(kernel_file):
    seen = []
    points = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=7, progress=lambda *done: seen.append(done))
    assert len(points) == 7 and len({tuple(p.point.items()) for p in points}) == 7 and seen[-1] == (7, 7)
    assert len(nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(seconds=1e-9))) == 0


def test_only_correct_configurations_rank(kernel_file, tmp_path):
    points = nki_sim.sweep(kernel_file, {"x": X}, grid=GRID, expect={"out": 2 * X}, search=Search(18, prune=False))
    good = [p for p in points if p.correct]
    assert {p.point["SCALE"] for p in good} == {2.0} and len(good) == 5
    assert points.best.point == {"width": 256, "SCALE": 2.0} and points[: len(good)] == good
    assert all(p.correct for p in points.front)
    points.plot(tmp_path / "front.svg")
    plot = xml.etree.ElementTree.parse(tmp_path / "front.svg").getroot()
    assert len(plot.findall("{*}circle")) == len(good)
    # Pruned points have a latency, but it is unknown whether they are correct.
    pruned = nki_sim.sweep(kernel_file, {"x": X}, grid=GRID, expect={"out": 2 * X}, search=18)
    assert pruned.best.point == points.best.point and all(p.correct is None for p in pruned if p.pruned)
    assert [p.point for p in pruned.front] == [p.point for p in points.front]
    wrong = nki_sim.sweep(kernel_file, {"x": X}, grid={"SCALE": [2.0, 3.0], "width": [512]}, expect={"out": 2 * X})
    assert [p.correct for p in wrong] == [True, False] and wrong[1].latency_us is not None
    with pytest.raises(ValueError, match="no point of the sweep"):
        nki_sim.sweep(kernel_file, {"x": X}, grid={"SCALE": [3.0], "width": [512]}, expect={"out": 2 * X}).best


def test_infeasible_configurations_are_recorded(tmp_path):
    path = tmp_path / "wide.py"
    path.write_text(TOO_WIDE)
    points = nki_sim.sweep(path, ARGS, grid={"width": [512, 1024, 100_000, 200_000]}, search=4)
    assert [p.latency_us is None for p in points] == [False, False, True, True]
    assert all("sbuf" in p.error for p in points[2:])


def test_a_storage_resumes(kernel_file, tmp_path, monkeypatch):
    from nki_sim import _batch

    asked = []
    ask = _batch.ask
    monkeypatch.setattr(_batch, "ask", lambda job, seconds: asked.append(job["point"]) or ask(job, seconds))
    storage = f"sqlite:///{tmp_path}/search.db"
    first = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(5, storage=storage))
    assert len(asked) == 5
    second = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(9, storage=storage))
    assert len(asked) == 9 and {str(p.point) for p in first} <= {str(p.point) for p in second}
    kernel_file.write_text(SOURCE.replace("SCALE = 1.0", "SCALE = 1.5"))
    with pytest.raises(ValueError, match="another kernel"):
        nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(9, storage=storage))
    assert len(nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(2, storage=storage, study="other"))) == 2


def test_configurations_that_skip_work_do_not_rank(tmp_path):
    path = tmp_path / "partly.py"
    path.write_text("\n".join(line for line in SOURCE.splitlines() if "assert" not in line))
    points = nki_sim.sweep(path, ARGS, grid={"width": [128, 384, 512]}, search=3)
    assert [(p.point["width"], p.incomplete) for p in points] == [(512, False), (128, False), (384, True)]
    assert {p.point["width"] for p in points.front} == {128, 512}


def test_a_storage_belongs_to_the_environment(kernel_file, tmp_path, monkeypatch):
    storage = f"sqlite:///{tmp_path}/search.db"
    nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(2, storage=storage))
    for name, value in [("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1"), ("NKI_PRECISE_FP", "0"), ("NKI_SIM_DENY", "suspicious")]:
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(ValueError, match="options or environment variables"):
                nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(3, storage=storage))


def test_a_storage_has_one_search_at_a_time(kernel_file, tmp_path):
    storage = f"sqlite:///{tmp_path}/search.db"
    nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(2, storage=storage))
    study = optuna.load_study(storage=storage, study_name="scaled.py")
    trial = study.ask()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        trial.set_user_attr("nki_sim_process", [platform.node(), other.pid])
        with pytest.raises(ValueError, match=f"process {other.pid} is searching in the study `scaled.py` of the storage: wait"):
            nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(3, storage=storage))
        other.communicate(b"\n")
    # The process has ended, without ending its trial.
    assert len(nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(3, storage=storage))) == 3
    states = [t.state.name for t in optuna.load_study(storage=storage, study_name="scaled.py").get_trials()]
    assert states[2] == "FAIL" and "RUNNING" not in states


def test_a_storage_has_one_grid(kernel_file, tmp_path):
    storage = f"sqlite:///{tmp_path}/search.db"
    nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(2, storage=storage))
    for width in ([64, 128], GRID["width"][::-1]):
        with pytest.raises(ValueError, match="`width` has different values than in the study `scaled.py` of the storage, which has 32, 64, 100"):
            nki_sim.sweep(kernel_file, ARGS, grid={**GRID, "width": width}, search=Search(4, storage=storage))
    # Points of a study with other axes are not points of this one.
    constant = {"SCALE": GRID["SCALE"]}
    args = {**ARGS, "width": 64}
    with pytest.raises(ValueError, match="other arguments"):
        nki_sim.sweep(kernel_file, args, grid=constant, search=Search(4, storage=storage))


def test_a_storage_that_cannot_be_opened_is_named(kernel_file, tmp_path):
    with pytest.raises(ValueError, match="^storage foo://x: .*give a URL such as sqlite:///search.db"):
        nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(2, storage="foo://x"))
    done = command(kernel_file, "--arg", "x=float32[128,512]", "--grid", "width=64,128", "--search", "--trials", "2", "--storage", "foo://x")
    assert done.returncode == 2 and "--storage foo://x: " in done.stderr, done.stderr


def test_two_worker_processes(kernel_file):
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        points = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=18, executor=executor)
        assert {tuple(p.point.items()): p.latency_us for p in points} == whole(kernel_file)
        assert executor.submit(max, 1, 2).result() == 2


def test_dask(kernel_file):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        points = nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=18, executor=client.get_executor())
        assert {tuple(p.point.items()): p.latency_us for p in points} == whole(kernel_file)


def test_what_is_refused(kernel_file, monkeypatch):
    with pytest.raises(ValueError, match="needs a budget"):
        Search()
    for trials in (0, -1, 1.5, float("nan"), True, "3"):
        with pytest.raises(ValueError, match=f"trials={trials!r} is not a budget of a search: give an integer, 1 or more"):
            Search(trials)
    for seconds in (0, float("nan"), True, "3"):
        with pytest.raises(ValueError, match=f"seconds={seconds!r} is not a budget of a search: give a number above 0"):
            Search(seconds=seconds)
    with pytest.raises(ValueError, match="`best` is not a sampler; the samplers are tpe, random"):
        nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=Search(1, sampler="best"))
    with pytest.raises(ValueError, match="heigth"):
        nki_sim.sweep(kernel_file, ARGS, grid={"heigth": [1]}, search=1)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'nki-sim\[search\]'"):
        nki_sim.sweep(kernel_file, ARGS, grid=GRID, search=1)


def command(*words):
    return subprocess.run([sys.executable, "-m", "nki_sim", "sweep", *map(str, words)], capture_output=True, text=True)


def test_the_command(kernel_file, tmp_path):
    report, plot, expected = tmp_path / "s.json", tmp_path / "s.svg", tmp_path / "e.npy"
    np.save(expected, 2 * X)
    np.save(tmp_path / "x.npy", X)
    words = [kernel_file, "--arg", f"x={tmp_path}/x.npy", "--grid", "width=64,100,512", "--grid", "SCALE=1.0,2.0"]
    done = command(*words, "--expect", f"out={expected}", "--search", "--trials", "6", "--json", report, "--plot", plot)
    assert done.returncode == 0, done.stderr
    table = json.loads(report.read_text())
    assert len(table["rows"]) == 6 and table["rows"][0]["point"] == [["width", "512"], ["SCALE", "2.0"]]
    assert table["front"][0] == 0 and "not ranked" in done.stdout and plot.read_text().startswith("<svg")
    assert "needs a budget" in command(*words, "--search").stderr
    assert "is not a sampler" in command(*words, "--search", "--trials", "1", "--sampler", "best").stderr
    assert command(*words, "--trials", "3").returncode == 2


def test_a_study_is_in_a_storage():
    with pytest.raises(ValueError, match="storage= is missing"):
        Search(2, study="other")
