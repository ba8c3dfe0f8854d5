"""The action and the hook for other repositories: their shell commands work as described."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

import nki_sim

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl


# nki-sim: x=float32[128,64]
@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
TEST = """import numpy as np
import nki_sim
from kernels.good import copied

def test_time():
    nki_sim.profile(copied)(np.zeros((128, 64), np.float32))
"""


@pytest.fixture
def repository(tmp_path):
    """A repository with a correct kernel, a wrong one, and a file without kernels; `nki-sim` and `python` of this environment."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("nki-sim", [sys.executable, "-m", "nki_sim"]), ("python", [sys.executable])):
        (programs / name).write_text("#!/bin/sh\nexec " + shlex.join(words) + ' "$@"\n')
        (programs / name).chmod(0o755)
    folder = tmp_path / "work"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels/good.py").write_text(KERNEL)
    (folder / "kernels/wrong.py").write_text(KERNEL.replace("src=x)", "src=x[0:64, :])"))
    (folder / "kernels/other.py").write_text("print('not a kernel')\n")
    (folder / "test_time.py").write_text(TEST)
    environment = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}

    def run(words, **variables):
        return subprocess.run(
            words, cwd=folder, env={**environment, **variables}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )

    run.folder = folder
    return run


def steps():
    """The scripts of the action, by the name of the step."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    found = {}
    for step in text.split("    - name: ")[1:]:
        script = re.search(r"^      run: \|\n((?:        .*\n?|\n)+)", step, re.M)
        if script:
            found[step.split("\n", 1)[0]] = re.sub(r"^        ", "", script[1], flags=re.M)
    return found


@pytest.mark.parametrize("name", ["action.yml", ".pre-commit-hooks.yaml"])
def test_the_files_are_yaml(name):
    yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
    assert yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_action_checks(repository):
    script = ["bash", "-e", "-c", steps()["Check"]]
    good = repository(script, KERNELS="kernels/g*.py", DENY="bug", SARIF="findings")
    assert good.returncode == 0, good.stdout
    log = json.loads((repository.folder / "findings/nki-sim.sarif").read_text())
    assert log["runs"][0]["automationDetails"]["id"] == "nki-sim check/kernels/good.py/copied/"
    wrong = repository(script, KERNELS="kernels/good.py kernels/wr*.py", DENY="bug", SARIF="")
    assert wrong.returncode == 1
    assert "::error file=kernels/wrong.py,line=11" in wrong.stdout
    folder = repository(script, KERNELS="kernels", DENY="bug", SARIF="findings")
    assert folder.returncode == 1 and "2 kernels in 2 files checked: 1 error, 0 warnings" in folder.stdout
    (run,) = json.loads((repository.folder / "findings/nki-sim.sarif").read_text())["runs"]
    assert run["automationDetails"]["id"] == "nki-sim check/kernels/" and len(run["results"]) == 1
    nothing = repository(script, KERNELS="kernls/**/*.py", DENY="bug", SARIF="")
    assert nothing.returncode == 1 and "no file matches" in nothing.stdout
    other = repository(script, KERNELS="kernels/other.py", DENY="bug", SARIF="")
    assert other.returncode == 1 and "no file that matches has a comment" in other.stdout


def test_the_action_installs_its_own_version(tmp_path):
    stub = tmp_path / "python"
    stub.write_text('#!/bin/sh\necho "$@"\n')
    stub.chmod(0o755)
    environment = {**os.environ, "PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]]), "ACTION": str(ROOT)}
    words = ["bash", "-e", "-c", steps()["Install"]]
    installs = lambda package: subprocess.run(words, env={**environment, "PACKAGE": package}, text=True, capture_output=True, check=True).stdout
    assert f" nki-sim=={nki_sim.__version__} " in installs("")
    assert " ./wheel.whl " in installs("./wheel.whl")


def test_the_action_tests(repository):
    script = ["bash", "-e", "-c", steps()["Test"]]
    update = repository([sys.executable, "-m", "pytest", "-q", "--nki-baseline", "latency.json", "--nki-update", "."])
    assert update.returncode == 0, update.stdout
    assert repository(script, TESTS=".", BASELINE="latency.json", TOLERANCE="2").returncode == 0
    good = repository.folder / "kernels/good.py"
    good.write_text(KERNEL.replace("    nisa.dma_copy(dst=out", "    nisa.dma_copy(dst=out, src=tile)\n    nisa.dma_copy(dst=out"))
    slower = repository(script, TESTS=".", BASELINE="latency.json", TOLERANCE="2")
    assert slower.returncode == 1 and "baseline" in slower.stdout


def test_the_hook(repository):
    entry = re.search(r"^  entry: (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"), re.M)[1]
    words = shlex.split(entry)
    assert repository([*words, "kernels/good.py", "kernels/other.py"]).returncode == 0
    wrong = repository([*words, "kernels/wrong.py", "kernels/good.py"])
    assert wrong.returncode == 1 and "shape-mismatch" in wrong.stdout
    assert repository(words).returncode == 0
