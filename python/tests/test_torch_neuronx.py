"""The drop-in `torch_neuronx`: kernels as functions and operators of torch."""

import sys

import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.library")
if not hasattr(torch.library, "infer_schema"):
    pytest.skip("torch is too old for custom operators", allow_module_level=True)

import torch_neuronx  # noqa: E402
from torch_neuronx import nki_jit, nki_op, wrap_nki  # noqa: E402


@nki.jit
def doubled(x):
    return kernels.store(kernels.scaled(kernels.load(x), 2.0))


@nki.jit
def added_to(x, out):
    sums = kernels.load(out)
    nisa.tensor_tensor(dst=sums, data1=sums, data2=kernels.load(x), op=nl.add)
    nisa.dma_copy(dst=out, src=sums)
    return out


@nki_op("nki_sim_tests::doubled", mutates_args={})
def doubled_op(x: torch.Tensor) -> torch.Tensor:
    return wrap_nki(doubled)(x)


@nki_op("nki_sim_tests::plus_doubled", mutates_args={})
def plus_doubled_op(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    out = torch.full_like(x, scale)
    added_to(doubled(x), out)
    return out


@nki_op("nki_sim_tests::added_to", mutates_args={"out"})
def added_to_op(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return added_to(x, out)


@nki_op("nki_sim_tests::added_to_quietly", mutates_args=("out",))
def added_to_quietly_op(x: torch.Tensor, out: torch.Tensor) -> None:
    added_to(x, out)


@pytest.fixture
def x():
    return torch.arange(128.0 * 4).reshape(128, 4)


def test_nki_and_its_functions_are_those_of_the_drop_in_packages(monkeypatch):
    from torch_neuronx import nki as named
    from torch_neuronx.nki_hop import wrap_nki as of_graphs
    from torch_neuronx.xla_impl.ops import nki_jit as of_xla

    assert (named, of_graphs, of_xla) == (nki, wrap_nki, nki_jit)
    from torch_neuronx.utils import get_platform_target

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    assert get_platform_target() == "trn1"
    with pytest.raises(AttributeError, match="it compiles a model for the hardware"):
        torch_neuronx.trace


def test_a_wrapped_kernel_is_called_with_tensors(x):
    wrapped = wrap_nki(doubled)
    assert torch.equal(wrapped(x), 2 * x)
    assert torch.equal(wrapped(x=x.bfloat16()), 2 * x.bfloat16())
    assert torch.equal(wrapped[2](x), 2 * x)
    assert torch.equal(wrap_nki(doubled[2])(x), 2 * x)
    assert torch.equal(torch.compile(lambda t: wrapped(t) + 1, backend="aot_eager", fullgraph=True)(x), 2 * x + 1)
    with pytest.raises(TypeError, match="wrap_nki needs a kernel, not 3"):
        wrap_nki(3)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_operator_runs_its_kernels(x, compiled):
    def model(t, scale):
        return doubled_op(t) + plus_doubled_op(t, scale=scale)

    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    for n in (4, 7, 1):
        t = torch.arange(128.0 * n).reshape(128, n)
        assert torch.equal(run(t, 3.0), 4 * t + 3)
    assert run(x.half(), 0.5).dtype == torch.float16


@pytest.mark.parametrize("compiled", [False, True])
def test_an_operator_writes_the_arguments_that_it_names(x, compiled):
    def model(t, out):
        copy = added_to_op(t, out)
        added_to_quietly_op(t, out)
        return copy + 1

    run = torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model
    out = torch.ones_like(x)
    first = run(x, out)
    assert torch.equal(first, x + 2) and torch.equal(out, 2 * x + 1)
    run(x, out)
    assert torch.equal(out, 4 * x + 1)


def test_the_shapes_of_an_operator_are_known_without_a_run():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        t = torch.empty(128, 9, dtype=torch.bfloat16)
        assert (doubled_op(t).shape, plus_doubled_op(t).dtype) == ((128, 9), torch.bfloat16)
    torch.library.opcheck(doubled_op, (torch.ones(128, 3),))
    torch.library.opcheck(added_to_op, (torch.ones(128, 3), torch.ones(128, 3)))


def test_an_operator_takes_a_gradient_from_its_author(x):
    @nki_op("nki_sim_tests::differentiable", mutates_args={})
    def op(t: torch.Tensor) -> torch.Tensor:
        return doubled(t)

    op.register_autograd(lambda _ctx, g: op(g))
    t = x.clone().requires_grad_()
    op(t).sum().backward()
    assert torch.equal(t.grad, torch.full_like(x, 2))


def test_nki_jit_makes_kernels_of_the_older_dialect(tmp_path, monkeypatch, x):
    (tmp_path / "older_torch_kernels.py").write_text(
        """
import neuronxcc.nki.language as nl
from torch_neuronx import nki_jit

@nki_jit
def add_(a, b, out):
    i = nl.arange(128)[:, None]
    j = nl.arange(4)[None, :]
    nl.store(out[i, j], nl.load(a[i, j]) + nl.load(b[i, j]))

def plain(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a) * nl.load(b))
    return out
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    import older_torch_kernels as older

    out = torch.zeros_like(x)
    older.add_(x, 2 * x, out)
    assert torch.equal(out, 3 * x)
    assert torch.equal(nki_jit()(older.plain)(x, x), x * x)
    assert nki_jit(mode="torchxla")(doubled) is doubled
    np.testing.assert_array_equal(nki_jit(older.plain)(x.numpy(), x.numpy()), (x * x).numpy())
    del sys.modules["older_torch_kernels"]
