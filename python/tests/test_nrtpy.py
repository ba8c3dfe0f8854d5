"""The package `nrtpy`, and the programs that NKI_ARTIFACTS_DIR keeps: the tutorials of SDK 2.32, on simulated programs."""

import json
import os
import subprocess
import sys

import kernels
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import nrtpy
import pytest

import nki_sim
from nki_sim import _neuron_profile


@nki.jit
def adds(a_input, b_input):
    a = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.sbuf)
    b = nl.ndarray(b_input.shape, dtype=b_input.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=a_input)
    nisa.dma_copy(dst=b, src=b_input)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
    out = nl.ndarray(a_input.shape, dtype=a_input.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out


@nki.jit
def gathers(table, rows):
    index = nl.ndarray(rows.shape, dtype=rows.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=rows)
    found = nl.ndarray((rows.shape[0], table.shape[1]), dtype=table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=found, src=table.ap(pattern=[[table.shape[1], rows.shape[0]], [1, table.shape[1]]], vector_offset=index, indirect_dim=0))
    out = nl.ndarray(found.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=found)
    return out


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path / "built"))
    yield tmp_path / "built"
    nrtpy.reset()


def loaded(folder, kernel, *arguments, **options):
    kernel(*arguments)
    return nrtpy.NrtpyModel.load_from_neff(folder / "kernel.neff", **options)


def tensors(**arrays):
    return {name: nrtpy.NrtpyTensor.from_numpy(array, name=name) for name, array in arrays.items()}


def ramp(dtype=np.float16):
    return np.arange(12).reshape(4, 3).astype(dtype)


def test_a_program_runs_on_other_values(folder):
    model = loaded(folder, adds, ramp(), ramp())
    assert {name: (info.shape, info.size) for name, info in model.input_tensors_info.items()} == {"a_input": ([4, 3], 24), "b_input": ([4, 3], 24)}
    assert list(model.output_tensors_info) == ["output_0"] and model.name == "kernel"
    for a, b in ((ramp(), -ramp()), (np.full((4, 3), 1000, np.float16), ramp())):
        outputs = model(inputs=tensors(a_input=a, b_input=b))
        np.testing.assert_array_equal(outputs["output_0"].numpy().view(np.float16), a + b)
    given = tensors(output_0=np.zeros((4, 3), np.float16))
    assert model(inputs=tensors(a_input=ramp(), b_input=ramp()), outputs=given) is None
    np.testing.assert_array_equal(given["output_0"].numpy(), ramp() * 2)


def test_times_are_those_of_a_device_benchmark(folder):
    model = loaded(folder, adds, ramp(), ramp())
    inputs = tensors(a_input=ramp(), b_input=ramp())
    times = model.benchmark(inputs=inputs, warmup_iter=2, benchmark_iter=7)
    _, report = nki_sim.profile(adds, settings={"kernel.measure": "device"})(ramp(), ramp())
    assert times.mean_ms == times.min_ms == times.max_ms == pytest.approx(report.latency_us / 1000)
    assert (times.iterations, times.warmup_iterations, times.std_dev_ms, len(times.durations_ms)) == (7, 2, 0, 7)
    with pytest.warns(nki_sim.KernelWarning, match="the host is not simulated"):
        assert model.benchmark(inputs=inputs, mode="host").iterations == 5
    for wrong in ({"mode": "wall"}, {"benchmark_iter": 0}):
        with pytest.raises(ValueError):
            model.benchmark(inputs=inputs, **wrong)


def test_an_index_out_of_bounds_is_the_error_of_the_device(folder):
    table, rows = np.ones((16, 8), np.float32), np.full((4, 1), 99999, np.int32)
    with pytest.raises(nki_sim.KernelError):
        gathers(table, rows)
    model = nrtpy.NrtpyModel.load_from_neff(str(folder / "kernel.neff"))
    with pytest.raises(nrtpy.NrtError, match=r"^NRT Error NRT_EXEC_OOB\(1006\): Failed to execute model\n") as error:
        model(inputs=tensors(table=table, rows=rows))
    assert isinstance(error.value, RuntimeError) and "99999" in str(error.value)
    np.testing.assert_array_equal(model(inputs=tensors(table=table, rows=rows % 16))["output_0"].numpy(), table[:4])


def test_a_written_argument_is_the_tensor_of_the_caller(folder):
    model = loaded(folder, kernels.adds_in_place, ramp(np.float32), ramp(np.float32))
    inputs = tensors(total=ramp(np.float32), x=np.ones((4, 3), np.float32))
    for times in (1, 2):
        model(inputs=inputs)
        np.testing.assert_array_equal(inputs["total"].numpy(), ramp(np.float32) + times)


def test_two_cores_and_bytes_of_other_types(folder):
    x = ramp(ml_dtypes.bfloat16)
    model = loaded(folder, adds[2], x, x)
    outputs = model(inputs=tensors(a_input=x.view(np.uint16), b_input=x.view(np.uint16)))
    np.testing.assert_array_equal(outputs["output_0"].numpy(), x + x)
    with pytest.warns(nki_sim.KernelWarning, match="reads a_input, which is float16, as bfloat16"):
        model(inputs=tensors(a_input=ramp(), b_input=x))


def test_what_does_not_fit_is_refused(folder):
    model = loaded(folder, adds, ramp(), ramp())
    with pytest.raises(nrtpy.NrtError, match="the inputs are a_input, b_input, not a_input"):
        model(inputs=tensors(a_input=ramp()))
    with pytest.raises(nrtpy.NrtError, match="the tensor for b_input has 48 bytes, not 24"):
        model(inputs=tensors(a_input=ramp(), b_input=ramp(np.float32)))
    with pytest.raises(nrtpy.NrtError, match="the outputs are output_0, not out"):
        model(inputs=tensors(a_input=ramp(), b_input=ramp()), outputs=tensors(out=ramp()))
    with pytest.raises(nrtpy.NrtError, match=r"NRT_FAILURE\(1\): Failed to load model"):
        nrtpy.NrtpyModel.load_from_neff(folder / "other.neff")
    (folder / "other.neff").write_text(json.dumps({"format": "nki-sim neff 1", "program": "?", "outputs": 1, "older_compiler": False, "kernel": "k"}))
    with pytest.raises(nrtpy.NrtError, match="not a valid program"):
        nrtpy.NrtpyModel.load_from_neff(folder / "other.neff")
    (folder / "other.neff").write_text(json.dumps({"format": "nki-sim neff 1", "program": "?", "kernel": "k"}))
    with pytest.raises(nrtpy.NrtError, match="of another version"):
        nrtpy.NrtpyModel.load_from_neff(folder / "other.neff")
    with pytest.raises(ValueError, match="the array has 4 bytes, the tensor 24"):
        tensors(a=ramp())["a"].write_from_numpy(np.zeros(1, np.float32))


def test_the_runtime_is_configured_before_its_use(folder, monkeypatch):
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "7")
    nrtpy.configure(visible_cores=range(2))
    assert os.environ["NEURON_RT_VISIBLE_CORES"] == "0,1"
    for wrong, error in ((3, TypeError), ([-1], ValueError), (["x"], TypeError)):
        with pytest.raises(error):
            nrtpy.configure(visible_cores=wrong)
    tensor = nrtpy.NrtpyTensor.from_numpy(ramp())
    with pytest.raises(nrtpy.NrtpyError, match="nrtpy.reset"):
        nrtpy.configure(visible_cores=[0])
    nrtpy.get_nrtpy_singleton().free_tensor(tensor)
    with pytest.raises(nrtpy.NrtpyError, match="was freed"):
        tensor.numpy()
    other = nrtpy.NrtpyTensor.from_numpy(ramp())
    nrtpy.reset()
    with pytest.raises(nrtpy.NrtpyError, match="closed by nrtpy.reset"):
        other.numpy()
    nrtpy.configure(visible_cores=[0])


def test_a_trace_is_a_profile_of_the_program(folder, capsys):
    model = loaded(folder, adds, ramp(), ramp())
    neff, ntff = folder / "kernel.neff", folder / "kernel.ntff"
    model(inputs=tensors(a_input=ramp(), b_input=ramp()), save_trace=True)
    assert _neuron_profile.main(["view", "-n", str(neff), "-s", str(ntff), "--output-format", "summary-json"]) == 0
    with pytest.raises(ValueError, match="would overwrite the program"):
        model(inputs=tensors(a_input=ramp(), b_input=ramp()), save_trace=True, ntff_name=neff)
    seen = json.loads(capsys.readouterr().out)["adds"]["total_time"]
    _, report = nki_sim.profile(adds)(ramp(), ramp())
    assert seen == pytest.approx(report.latency_us * 1e-6, rel=1e-6)
    captured = folder / "captured.ntff"
    assert _neuron_profile.main(["capture", "-n", str(neff), "-s", str(captured)]) == 0
    assert json.loads(captured.read_text())["summary"]["total_time"] == pytest.approx(seen)


def test_another_process_runs_the_program(folder, tmp_path):
    loaded(folder, adds, ramp(), ramp())
    text = "import numpy as np, nrtpy\nm = nrtpy.SpikeModel.load_from_neff('kernel.neff')\nt = nrtpy.SpikeTensor.from_numpy(np.ones((4, 3), np.float16))\nprint(m({'a_input': t, 'b_input': t})['output_0'].numpy().sum())"
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == "24.0\n"


def test_a_folder_that_cannot_be_made_is_named_with_its_variable(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path / "file"))
    with pytest.raises(OSError, match="NKI_ARTIFACTS_DIR: File exists"):
        adds(ramp(), ramp())
    assert (tmp_path / "file").read_text() == ""


def test_without_the_variable_nothing_is_written(folder, monkeypatch):
    monkeypatch.delenv("NKI_ARTIFACTS_DIR")
    adds(ramp(), ramp())
    assert not folder.exists()
