"""tools/corpus.py on small synthetic checkouts: kernels with their own check, and a language test in KLR's format."""

import json
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "corpus.py"

SCALE = """
import nki
import nki.language as nl

@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), 2.0))
    return out

@nki.jit
def unchanged(x):
    return doubled(x)

@nki.jit
def alone(x):
    return doubled(x)
"""

CHECK = """
import numpy as np
import nki
from scale import doubled, unchanged

X = np.ones((128, 8), np.float32)

def test_doubled():
    assert (nki.simulate(doubled)(X) == 2).all()

def test_unchanged():
    np.testing.assert_allclose(nki.simulate(unchanged)(X), X)
"""

LANGUAGE = """
import json
import pytest
from klr.frontend import Kernel

def accepted(t):
    assert t.shape == (10, 10)
    assert f"{[1, 2]}" == "[1,2]"

def wrong():
    assert 1 == 2

def refused():
    undefined_thing

def listed_nowhere():
    sbuf[1:2, 0:4]

@pytest.mark.parametrize("f", [accepted, wrong])
def test_succeed(f):
    Kernel(f).specialize(())

@pytest.mark.parametrize("f", [refused])
def test_fails(f):
    with pytest.raises(Exception):
        Kernel(f)()
"""


def entry(repo, file, kernel, api="Beta2", **more):
    name = pathlib.PurePosixPath(file).stem
    return {"id": f"{repo}:{name}:{kernel}", "repo": repo, "file": f"{repo}/{file}", "kernel": kernel, "api": api, "target": "trn2", **more}


@pytest.mark.parametrize(
    "one, status, reason",
    [
        (entry("other", "scale.py", "doubled"), "passed", "1 tests of its own (test_scale.py)"),
        (entry("other", "scale.py", "unchanged"), "failed", "Not equal to tolerance"),
        (entry("other", "scale.py", "alone"), "skipped", "no check of its own"),
        (entry("KLR", "test_words.py", "accepted", "lang-only"), "passed", ""),
        (entry("KLR", "test_words.py", "wrong", "lang-only"), "failed", "assertion failed: 1 == 2"),
        (entry("KLR", "test_words.py", "refused", "lang-only"), "passed", ""),
        (entry("KLR", "test_words.py", "listed_nowhere", "lang-only"), "failed", "starts at partition 1"),
        (entry("KLR", "test_words.py", "listed_nowhere", "lang-only", reference="NEGATIVE: must fail"), "passed", ""),
        (entry("absent", "x.py", "k"), "skipped", "no checkout absent"),
    ],
)
def test_entries(one, status, reason, tmp_path):
    if not TOOL.exists():
        pytest.skip("the tools are not installed with the package")
    for file, text in [("other/scale.py", SCALE), ("other/test_scale.py", CHECK), ("KLR/test_words.py", LANGUAGE)]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "corpus.jsonl").write_text(json.dumps(one))
    command = [sys.executable, str(TOOL), str(tmp_path / "corpus.jsonl"), "--sources", str(tmp_path), "--json", str(tmp_path / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads((tmp_path / "out.json").read_text())
    assert result["status"] == status, result
    assert reason in result["reason"], result
