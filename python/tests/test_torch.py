"""Kernels in torch: tensors, and custom autograd functions."""

import kernels
import numpy as np
import pytest

import nki_sim

torch = pytest.importorskip("torch")


def ramp(dtype=np.float32):
    return np.arange(32).reshape(4, 8).astype(dtype)


def test_tensors():
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.float8_e5m2):
        x = torch.from_numpy(ramp()).to(dtype)
        got = kernels.scale(x, 1)
        assert isinstance(got, torch.Tensor) and got.dtype == dtype and torch.equal(got.float(), x.float())
    x = torch.from_numpy(ramp())
    assert kernels.increment(x) is x and x[0, 0] == 1
    needs_grad = torch.from_numpy(ramp()).requires_grad_()
    assert torch.equal(kernels.scale(needs_grad, 2.0), needs_grad.detach() * 2)
    # Not contiguous: transposed, expanded, every second column.
    for strided in (x.T, x[:1].expand(4, 8), x[:, ::2], x.to(torch.bfloat16)[:, 1::2]):
        assert torch.equal(kernels.scale(strided, 2.0), strided * 2)
    columns = x.T[::2]
    assert kernels.increment(columns) is columns and x[0].tolist() == [2, 2, 4, 4, 6, 6, 8, 8]
    with pytest.raises(ValueError, match="share one address"):
        kernels.increment(torch.ones(1, 8).expand(4, 8))
    with pytest.raises(TypeError, match=r"torch.float64, which is not a device type; pass x.to\(torch.float32\)"):
        kernels.scale(x.double())
    with pytest.raises(TypeError, match=r"torch.complex64, which is not a device type; pass x.real and x.imag"):
        kernels.scale(x.to(torch.complex64))
    with pytest.raises(ValueError, match="meta tensor, which has no values"):
        kernels.scale(x.to("meta"))


class Tanh(torch.autograd.Function):
    """A kernel for the forward pass and one for the backward pass."""

    @staticmethod
    def forward(ctx, x):
        y = kernels.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return kernels.tanh_backward(y, dy)


class Add(torch.autograd.Function):
    """The gradients of a sum are propagated."""

    @staticmethod
    def forward(ctx, a, b):
        return kernels.add(a, b)

    @staticmethod
    def backward(ctx, dy, *args):
        return dy, dy


def test_a_kernel_in_an_autograd_function():
    torch.manual_seed(0)
    a = torch.randn(128, 64).detach().requires_grad_()
    b = torch.randn(128, 64).detach().requires_grad_()
    loss = (a * b * Add.apply(a, b)).sum()
    loss.backward()
    torch.testing.assert_close(loss.detach(), (a * b * (a + b)).sum().detach())
    torch.testing.assert_close(a.grad, (2 * a * b + b * b).detach())
    torch.testing.assert_close(b.grad, (2 * a * b + a * a).detach())


def test_forward_and_backward_are_kernels():
    torch.manual_seed(0)
    layer = torch.nn.Linear(32, 64)
    x = torch.randn(16, 32)

    def gradients(function):
        layer.zero_grad()
        (function(layer(x)) ** 2).sum().backward()
        return [p.grad.clone() for p in layer.parameters()]

    for got, want in zip(gradients(Tanh.apply), gradients(torch.tanh)):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_compiled_functions_call_kernels():
    compiled = torch.compile(lambda x: Tanh.apply(x * 2) + 1, backend="eager")
    x = torch.randn(8, 16, requires_grad=True)
    y = compiled(x)
    torch.testing.assert_close(y, torch.tanh(x * 2) + 1, rtol=1e-4, atol=1e-5)
    y.sum().backward()
    torch.testing.assert_close(x.grad, (2 * (1 - torch.tanh(x * 2) ** 2)).detach(), rtol=1e-4, atol=1e-4)


def test_torch_is_told_of_tensors_that_a_kernel_writes():
    x = torch.ones(4, 8, requires_grad=True)
    with pytest.raises(ValueError, match="writes its argument `x`, which requires a gradient"):
        kernels.increment(x)
    assert torch.equal(x, torch.ones(4, 8))
    y = x * 2
    z = y * y
    with torch.no_grad():
        kernels.increment(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with torch.inference_mode():
        assert kernels.increment(torch.zeros(4, 8))[0, 0] == 1


def test_transformations_of_functions_are_refused():
    with pytest.raises(TypeError, match="argument `x` is a tensor inside of torch.func.vmap"):
        torch.func.vmap(lambda x: kernels.scale(x, 2.0))(torch.ones(3, 4, 8))
    with pytest.raises(nki_sim.ArgumentTypeError, match="dense"):
        kernels.scale(torch.ones(4, 8).to_sparse())
