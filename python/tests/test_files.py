"""Files that reports write: the extension selects the format, and a file is written atomically, and never over a source file."""

import gzip
import importlib.util
import json
import os
import pathlib
import stat

import numpy as np
import pytest

import nki_sim
from nki_sim import _files
from nki_sim._profile import ending_of

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl
from {helper} import SCALE

@nki.jit
def scaled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=SCALE)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A kernel in a file that imports another file, neither of them in the folder of the test's outputs."""
    folder = tmp_path / "sources"
    folder.mkdir()
    helper = f"helper_of_{abs(hash(str(tmp_path)))}"
    (folder / f"{helper}.py").write_text("SCALE = 2.0\n")
    (folder / "kernel_file.py").write_text(KERNEL.format(helper=helper))
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("kernel_file", folder / "kernel_file.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.helper = folder / f"{helper}.py"
    return made


@pytest.fixture
def report(module):
    return nki_sim.profile(module.scaled)(np.ones((128, 64), np.float32))[1]


@pytest.mark.parametrize("name", ["x.py", "x", "x.txt", "x.gz", "x.json.gz", ".json", "x.trace.py"])
def test_an_extension_that_is_no_format_is_refused(name, report, tmp_path):
    with pytest.raises(ValueError, match=r"extension selects the format.*\.html, \.htm, \.csv, \.json.*\.perfetto-trace"):
        report.save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_path_without_an_extension_is_refused(report, tmp_path):
    with pytest.raises(ValueError, match="the extension selects the format, and this path has none"):
        report.save(tmp_path / "x")


def test_a_trace_is_compressed_as_by_the_command(report, tmp_path):
    for ending in ("perfetto-trace", "pftrace", "TRACE"):
        report.save(tmp_path / f"t.{ending}")
        report.save(os.fsencode(tmp_path / f"t.{ending}.gz"))
        assert gzip.decompress((tmp_path / f"t.{ending}.gz").read_bytes()) == (tmp_path / f"t.{ending}").read_bytes()
    assert ending_of("a.b/T.PFTRACE.GZ") == ".pftrace.gz"


def test_a_source_file_is_never_replaced(module, report, tmp_path):
    """The kernel's file and a module that it imports, under any name that leads to them."""
    source = pathlib.Path(module.__file__)
    (tmp_path / "link.json").symlink_to(source)
    os.link(module.helper, tmp_path / "hard.csv")
    before = source.read_bytes(), module.helper.read_bytes()
    for write, path in (
        (report.to_json, source),
        (report.to_json, source.parent / ".." / "sources" / source.name),
        (report.to_json, module.helper),
        (report.save, tmp_path / "link.json"),
        (report.save, tmp_path / "hard.csv"),
    ):
        with pytest.raises(ValueError, match="would replace a source file of this program; give another"):
            write(path)
    assert (source.read_bytes(), module.helper.read_bytes()) == before


def test_a_failed_write_leaves_the_old_file(report, tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("old")

    def failed(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(_files.os, "replace", failed)
        with pytest.raises(OSError, match="No space left") as caught:
            report.save(path)
    assert caught.value.filename == str(path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.glob(".nki-sim-*")] == []
    with pytest.raises(FileNotFoundError) as caught:
        report.save(tmp_path / "none" / "r.csv")
    assert caught.value.filename == str(tmp_path / "none" / "r.csv")


@pytest.mark.skipif(os.name == "nt", reason="modes and devices are those of POSIX")
def test_modes_links_and_devices(report, tmp_path):
    mask = os.umask(0o027)
    try:
        report.save(tmp_path / "new.json")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640
    kept = tmp_path / "kept.json"
    kept.write_text("old")
    kept.chmod(0o600)
    (tmp_path / "link.json").symlink_to(kept)
    report.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text()) == report.to_dict()
    report.to_json("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(IsADirectoryError):
        report.to_json(tmp_path)


def test_a_run_on_ranks_is_saved_as_a_trace(module, tmp_path):
    report = nki_sim.profile(nki_sim.simulate_ranks(module.scaled, 2))(np.ones((128, 64), np.float32))[1]
    for name in ("r.json", "r.html", "r.py"):
        with pytest.raises(ValueError, match=r"saved as a trace; give \.perfetto-trace.*to_json\(path\)"):
            report.save(tmp_path / name)
    report.save(tmp_path / "r.pftrace.gz")
    assert gzip.decompress((tmp_path / "r.pftrace.gz").read_bytes())
    with pytest.raises(ValueError, match="source file"):
        report.to_json(module.__file__)
    report.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text()) == report.to_dict()


def test_a_plot_is_svg(tmp_path):
    points = nki_sim.Sweep()
    with pytest.raises(ValueError, match=r"ends in \.svg"):
        points.plot(tmp_path / "front.py")
    assert not (tmp_path / "front.py").exists()
