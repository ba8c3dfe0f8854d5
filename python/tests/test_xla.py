"""Kernels on tensors of an XLA device, torch_xla's CPU."""

import base64
import json
import re
import subprocess
import sys

import kernels
import neuronxcc.nki
import neuronxcc.nki.language
import numpy as np
import page
import pytest

import nki_sim

torch = pytest.importorskip("torch")
torch_xla = pytest.importorskip("torch_xla")


@pytest.fixture(scope="module")
def device():
    return torch_xla.device()


def ramp():
    return torch.arange(32, dtype=torch.float32).reshape(4, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.uint8])
def test_results_are_on_the_device_of_the_arguments(device, dtype):
    x = ramp().to(dtype)
    got = kernels.add(x.to(device), x.to(device))
    assert got.device == device and got.dtype == dtype and torch.equal(got.cpu(), x + x)


@neuronxcc.nki.jit
def doubled_in_beta1(x):
    out = neuronxcc.nki.language.ndarray(x.shape, dtype=x.dtype, buffer=neuronxcc.nki.language.shared_hbm)
    tile = neuronxcc.nki.language.load(x)
    neuronxcc.nki.language.store(out, tile + tile)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_for_neuronxcc(device, dtype):
    x = ramp().to(dtype)
    # The second call is remembered, the third has other values.
    for values in (x, x, x + 1, x[:, ::2]):
        got = doubled_in_beta1(values.to(device))
        assert got.device == device and got.dtype == dtype and torch.equal(got.cpu(), values + values)
    again = neuronxcc.nki.benchmark(warmup=1, iters=1)(doubled_in_beta1)
    again(x.to(device))
    assert again.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_several_shapes_and_outputs(device):
    for columns in (8, 16, 8):
        x = torch.randn(4, columns)
        results = kernels.several(x.to(device))
        assert all(r.device == device for r in (results["first"], *results["rest"][:1]))
        assert torch.equal(results["rest"][1][0].cpu(), x)
    same, rest = kernels.same_and_double(moved := x.to(device))
    assert same is moved and torch.equal(rest["double"].cpu(), x * 2)
    # The first tensor determines where results are.
    assert kernels.add(x, x.to(device)).device.type == "cpu" and kernels.add(x.to(device), x).device == device


def test_what_is_not_contiguous(device):
    x = ramp()
    for view in (lambda t: t.T, lambda t: t[:, ::2], lambda t: t[:1].expand(4, 8)):
        assert torch.equal(kernels.scale(view(x.to(device)), 2.0).cpu(), view(x) * 2)


def test_written_arguments(device):
    x = torch.zeros(4, 8, device=device)
    assert kernels.increment(x) is x and torch.equal(x.cpu(), torch.ones(4, 8))
    view = x[:, ::2]
    kernels.increment_quietly(view)
    assert x.cpu()[0].tolist() == [2, 1] * 4
    with pytest.raises(ValueError, match="share memory"):
        kernels.add_into(x, x, x)
    with pytest.raises(nki_sim.KernelError):
        kernels.write_then_fail(x, np.array([[100]], np.int32))
    assert x.cpu()[0].tolist() == [2, 1] * 4


def test_wrong_tensors(device):
    with pytest.raises(TypeError, match="torch.float64, which is not a device type"):
        kernels.scale(ramp().double().to(device), 2.0)
    with pytest.raises(ValueError, match="it is empty"):
        kernels.scale(torch.zeros(0, 8, device=device), 2.0)
    with pytest.raises(ValueError, match="without dimensions"):
        kernels.scale(torch.tensor(1.0, device=device), 2.0)


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = kernels.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return kernels.tanh_backward(y, dy)


def test_training(device):
    x = torch.randn(4, 8)
    moved = x.to(device).detach().requires_grad_()
    Tanh.apply(moved * 2).sum().backward()
    torch_xla.sync()
    torch.testing.assert_close(moved.grad.cpu(), 2 * (1 - torch.tanh(2 * x) ** 2), rtol=1e-4, atol=1e-4)


def test_profiles(device):
    result, report = nki_sim.profile(kernels.add)(ramp().to(device), ramp().to(device))
    assert result.device == device and report.latency_us > 0


def graphs(path):
    """The graphs in the file named by XLA_SAVE_TENSORS_FILE."""
    return re.findall(r"## BEGIN_GRAPH\n(.*?)## END_GRAPH", path.read_text(), re.S)


def test_graphs_are_written_if_the_environment_asks(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = torch.randn(2, 4, 8)
    kernels.add(x.to(device), y.to(device))
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("XLA_SAVE_TENSORS_FILE", "graph.pbtxt")
    for _ in range(2):
        kernels.add(x.to(device) * 2, y.to(device))
    kernels.add(x, y)
    assert [p.name for p in tmp_path.iterdir()] == ["graph.pbtxt.0"]
    ours = [g for g in graphs(tmp_path / "graph.pbtxt.0") if "xla::custom_call" in g]
    assert len(ours) == 2 and "aten::mul" in ours[0] and "(f32[4,8]{1,0}) xla::custom_call(" in ours[0]
    assert re.search(r"test_xla.py:\d+", (tmp_path / "graph.pbtxt.0").read_text())

    monkeypatch.delenv("XLA_SAVE_TENSORS_FILE")
    monkeypatch.setenv("NEURON_FRAMEWORK_DEBUG", "1")
    for _ in range(2):
        kernels.add(x.to(device), y.to(device))
    out = torch.zeros(4, 8, device=device)
    kernels.add_into(x.to(device), y.to(device), out)
    assert torch.equal(out.cpu(), x + y)
    files = {f"MODULE_{n}.hlo_module.pb" for n in ("add_0", "add_1", "add_into_0")}
    assert {p.name for p in tmp_path.iterdir()} == {"graph.pbtxt.0", *files}
    for name, inputs, outputs in (("add", ["x", "y"], ["output0"]), ("add_into", ["a", "b"], ["out"])):
        proto = (tmp_path / f"MODULE_{name}_0.hlo_module.pb").read_bytes()
        text = torch_xla._XLAC._xla_computation_text(torch_xla._XLAC._xla_op_computation_from_module_proto("again", proto))
        (call,) = [line for line in text.splitlines() if "custom_call_target=" in line]
        assert 'custom_call_target="AwsNeuronCustomNativeKernel"' in call and "f32[4,8]{1,0} custom-call(" in call
        config = json.loads(base64.b64decode(call.split('backend_config="')[1].split('"')[0]))
        assert config["func_name"] == name
        assert (config["klir_binary"]["input_names"], config["klir_binary"]["output_names"]) == (inputs, outputs)


CHECKS = [
    """
assert torch.allclose(out.cpu(), (a * b * (a + b)).cpu()) and out.device.type == "xla"
import pathlib
text = pathlib.Path("example1.pbtxt.0").read_text()
assert "[ScheduleSyncTensorsGraph]" in text and "aten::mul" in text
(call,) = [line for line in text.splitlines() if "xla::custom_call" in line]
assert "(f32[256,1024]{1,0}) xla::custom_call(" in call
assert pathlib.Path("MODULE_nki_tensor_add_0.hlo_module.pb").stat().st_size > 100
""",
    """
grads, (a, b) = (a.grad.cpu(), b.grad.cpu()), (a.detach().cpu(), b.detach().cpu())
assert torch.allclose(grads[0], 2 * a * b + b * b, rtol=1e-4, atol=1e-4)
assert torch.allclose(grads[1], 2 * a * b + a * a, rtol=1e-4, atol=1e-4)
""",
]


@pytest.mark.parametrize("number", [0, 1])
def test_the_page_on_custom_operators_runs_as_it_stands(number, tmp_path):
    text = page.find()
    if text is None:
        pytest.skip("no copy of the documentation's page: name its directory in NKI_DOCUMENTS")
    blocks = page.section(text, "PyTorch", number)
    if number == 0:
        # "For example, you may add the following lines to your code": at its beginning.
        blocks.insert(0, blocks.pop())
    script = tmp_path / "page.py"
    script.write_text("\n\n".join([page.kernel(text), *blocks, CHECKS[number]]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("tensor(" in done.stdout) == (number == 0)
    assert (tmp_path / "example1.pbtxt.0").exists() == (number == 0)
