"""Kernels in functions that torch compiles return the same results as without compilation."""

import shutil
import subprocess
import sys

import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nki_sim

torch = pytest.importorskip("torch")
BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("inductor needs a C++ compiler, and there is none")
    torch._dynamo.reset()
    yield request.param
    torch._dynamo.reset()


@pytest.fixture(params=["eager", "aot_eager"])
def quick_backend(request):
    """Inductor takes seconds per graph; some tests concern things that it never sees."""
    torch._dynamo.reset()
    yield request.param
    torch._dynamo.reset()


@nki.jit
def softmax_rows(x):
    t = kernels.load(x)
    largest = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=largest, data=t, op=nl.maximum, axis=1, negate=True)
    total = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=t, data=t, op=nl.exp, bias=largest, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=total)
    return kernels.store(t)


@nki.jit
def first_column_and_all(x):
    t = kernels.load(x)
    column = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=column, src=t[:, 0:1])
    return column, kernels.store(t)


@pytest.mark.parametrize("dynamic", [None, True])
def test_several_shapes(backend, dynamic):
    """One graph without a break; another shape triggers another trace."""
    f = torch.compile(lambda x: softmax_rows(x) * 2, backend=backend, dynamic=dynamic, fullgraph=True)
    for columns in (512, 256, 128, 64):
        x = torch.randn(128, columns)
        got = f(x)
        assert got.shape == x.shape
        torch.testing.assert_close(got, softmax_rows(x) * 2)
        torch.testing.assert_close(got, torch.softmax(x, -1) * 2, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", [None, True])
def test_outputs_of_different_shapes(backend, dynamic):
    f = torch.compile(lambda x: first_column_and_all(x * 2), backend=backend, dynamic=dynamic, fullgraph=True)
    for shape in ((4, 8), (4, 16), (8, 16)):
        x = torch.randn(shape)
        column, everything = f(x)
        assert torch.equal(column, 2 * x[:, :1]) and torch.equal(everything, 2 * x)
    x = torch.randn(4, 8)
    column, everything = f(x)
    assert torch.equal(column, 2 * x[:, :1]) and torch.equal(everything, 2 * x)


def test_more_shapes_than_torch_traces(quick_backend):
    f = torch.compile(lambda x: softmax_rows(x) * 2, backend=quick_backend)
    for columns in (*range(8, 104, 8), 8):
        x = torch.randn(4, columns)
        torch.testing.assert_close(f(x), torch.softmax(x, -1) * 2, rtol=1e-4, atol=1e-5)


@nki.jit
def itself_and_double(x):
    t = kernels.load(x)
    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    double = kernels.store(t)
    return x, (double, double)


def test_a_kernel_that_returns_its_argument(backend):
    f = torch.compile(lambda x: itself_and_double(x), backend=backend, fullgraph=True)
    x = torch.randn(4, 8)
    same, (double, again) = f(x)
    assert torch.equal(same, x) and torch.equal(double, 2 * x) and torch.equal(again, 2 * x)


def test_two_kernels_in_one_graph(backend):
    f = torch.compile(lambda x, y: softmax_rows(kernels.add(x, y)) + kernels.scale(y, 2.0), backend=backend, fullgraph=True)
    for columns in (64, 32):
        x, y = torch.randn(2, 16, columns)
        torch.testing.assert_close(f(x, y), torch.softmax(x + y, -1) + 2 * y, rtol=1e-4, atol=1e-5)


def test_numbers_are_compiled_in(quick_backend):
    f = torch.compile(lambda x, n: kernels.scale(x, n) + kernels.scale(x, float(x.shape[1])), backend=quick_backend)
    for n in (2.0, 3.0, 0.5):
        for columns in (8, 16):
            x = torch.randn(4, columns)
            torch.testing.assert_close(f(x, n), x * n + x * columns)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int32])
def test_dtypes_and_strides(backend, dtype):
    f = torch.compile(lambda x: kernels.add(x.T, x[:1].expand(8, 8)), backend=backend, fullgraph=True)
    x = (torch.randn(8, 8) * 8).to(dtype)
    got = f(x)
    assert got.dtype == dtype
    torch.testing.assert_close(got, x.T + x[:1])


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = kernels.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        # The gradient of a sum has strides of 0.
        return kernels.tanh_backward(y, dy)


@pytest.mark.parametrize("dynamic", [None, True])
def test_training(backend, dynamic):
    f = torch.compile(lambda x: Tanh.apply(x * 2), backend=backend, dynamic=dynamic, fullgraph=True)
    for columns in (8, 16):
        x = torch.randn(4, columns, requires_grad=True)
        y = f(x)
        torch.testing.assert_close(y, torch.tanh(x * 2), rtol=1e-4, atol=1e-5)
        y.sum().backward()
        torch.testing.assert_close(x.grad, (2 * (1 - torch.tanh(x * 2) ** 2)).detach(), rtol=1e-4, atol=1e-4)


def test_a_result_has_no_gradient_of_its_own(quick_backend):
    x = torch.randn(4, 8, requires_grad=True)
    f = torch.compile(lambda x: kernels.scale(x, 2.0), backend=quick_backend)
    assert not kernels.scale(x, 2.0).requires_grad and not f(x).requires_grad


def test_written_arguments_break_the_graph(backend):
    f = torch.compile(lambda x: kernels.increment(x) * 3, backend=backend)
    for columns in (8, 16):
        x = torch.randn(4, columns)
        before = x.clone()
        torch.testing.assert_close(f(x), (before + 1) * 3)
        torch.testing.assert_close(x, before + 1)
    g = torch.compile(lambda a, b, out: kernels.add_into(a, b, out), backend=backend)
    a, b, out = torch.randn(3, 4, 8)
    g(a, b, out)
    assert torch.equal(out, a + b)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="increment: it writes its argument `x`"):
        torch.compile(lambda x: kernels.increment(x), backend=backend, fullgraph=True)(x)


def test_arguments_that_a_graph_cannot_hold(quick_backend):
    def f(x, y):
        mixed = kernels.with_config(x, kernels.Config(2.0), kernels.Box(tensor=y), kernels.Pair(1))
        same, rest = kernels.same_and_double(x)
        return mixed, same, rest["double"], kernels.cores[2](x), nki_sim.profile(kernels.add)(x, y)[0]

    x, y = torch.randn(2, 4, 8)
    for got, want in zip(torch.compile(f, backend=quick_backend)(x, y), f(x, y)):
        torch.testing.assert_close(got, want)


def test_numpy_arrays(quick_backend):
    f = torch.compile(lambda a: kernels.add(a, a), backend=quick_backend)
    x = np.ones((4, 8), np.float32)
    got = f(x)
    assert np.array_equal(np.asarray(got), x + x)


def test_wrong_arguments_raise_what_they_raise_without_a_compiler(quick_backend):
    f = torch.compile(lambda x: kernels.checked(x), backend=quick_backend)
    with pytest.raises(TypeError, match="float64, which is not a device type"):
        f(torch.zeros(4, 8, dtype=torch.float64))
    with pytest.raises(ValueError, match="it is empty"):
        f(torch.zeros(0, 8))
    with pytest.raises(AssertionError, match="5 rows"):
        f(torch.zeros(5, 8))
    assert torch.equal(f(torch.ones(4, 8)), torch.ones(4, 8))


def test_findings_and_prints_of_a_graph(quick_backend, capsys):
    talkative = nki.jit(kernels.talkative.func)
    f = torch.compile(lambda x: kernels.watched(talkative(x)), backend=quick_backend)
    for call in range(2):
        f(torch.ones(4, 8))
        out = capsys.readouterr().out
        # Python prints when it executes the kernel, which is once; the device prints in every call.
        assert out.count("compiling for (4, 8)") == (call == 0) and out.count("first:") == 1
    with pytest.warns(nki_sim.KernelWarning, match="are never written"):
        torch.compile(lambda x: kernels.partly(x), backend=quick_backend)(torch.ones(4, 8))


def test_a_global_that_changes(quick_backend, monkeypatch):
    f = torch.compile(lambda x: kernels.with_global(x), backend=quick_backend)
    x = torch.ones(4, 8)
    assert torch.equal(f(x), x * 8)
    monkeypatch.setattr(kernels, "FACTOR", 10.0)
    assert torch.equal(f(x), x * 22)


SHRINKS = 8


@nki.jit
def first_columns(x):
    t = kernels.load(x)
    out = nl.ndarray((x.shape[0], SHRINKS), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t[:, 0:SHRINKS])
    return out


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_a_graph_never_has_a_wrong_shape(name, monkeypatch):
    if name == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("inductor needs a C++ compiler, and there is none")
    torch._dynamo.reset()
    f = torch.compile(lambda x: first_columns(x), backend=name)
    assert f(torch.ones(4, 8)).shape == (4, 8)
    monkeypatch.setattr(sys.modules[__name__], "SHRINKS", 4)
    with pytest.raises(RuntimeError, match=r"returns different tensors than when torch.compile traced it.*torch.compiler.reset\(\)"):
        f(torch.ones(4, 8))
    torch._dynamo.reset()
    assert f(torch.ones(4, 8)).shape == (4, 4)


ALONE = """
import sys
import nki_sim._watch
# As with a torch that has not what `_torch` needs.
sys.modules["nki_sim._torch"] = None
import kernels, torch
f = torch.compile(lambda x: kernels.add(x, x) * 2, backend="aot_eager")
for n in (8, 16, 24):
    x = torch.randn(4, n)
    assert torch.equal(f(x), x * 4)
a, b = torch.compile(lambda x: kernels.several(x)["rest"], backend="aot_eager")(x)
assert torch.equal(a, x) and torch.equal(b[0], x)
"""


def test_without_the_operator_the_graph_breaks():
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ORDER = """
import sys
{imports}
assert "torch._dynamo" not in sys.modules or "{imports}".startswith("import torch._dynamo")
import kernels
import torch
f = torch.compile(lambda x: kernels.add(x, x) * 2, backend="aot_eager", fullgraph=True)
for n in (8, 16):
    assert torch.equal(f(torch.ones(4, n)), torch.full((4, n), 4.0))
"""


@pytest.mark.parametrize("imports", ["import torch, nki_sim", "import nki_sim, torch", "import torch._dynamo, nki_sim"])
def test_torch_may_come_first_or_last(imports):
    code = f"import sys; sys.path[:0] = {sys.path!r}\n" + ORDER.format(imports=imports)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
