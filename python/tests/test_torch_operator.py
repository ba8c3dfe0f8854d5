"""Kernels behind an operator of torch's higher-order kind, as inference engines wrap them: shapes come from a run on ones, and graphs
hold one node for each kernel."""

import kernels
import nki
import nki.simulator
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch._higher_order_ops")

from torch._C import DispatchKey  # noqa: E402
from torch._ops import HigherOrderOperator  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily  # noqa: E402
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, disable_proxy_modes_tracing, track_tensor_tree  # noqa: E402
from torch.utils._pytree import tree_map  # noqa: E402

ml_dtypes = pytest.importorskip("ml_dtypes")

#: Kernels by the number that represents them in a graph.
known = []
#: The shapes of the arrays of ones with which shapes were inferred.
asked = []


class Operator(HigherOrderOperator):
    def __init__(self):
        super().__init__("nki_sim_test_operator")

    def __call__(self, *, number, lnc, kwargs):
        return super().__call__(number=number, lnc=lnc, kwargs=kwargs)


operator = Operator()
operator.fallthrough(DispatchKey.AutogradCPU)
operator.fallthrough(DispatchKey.ADInplaceOrView)
operator.fallthrough(DispatchKey.BackendSelect)


def simulated(number, lnc, kwargs):
    arrays = {
        # bfloat16 as a view of the tensor's memory.
        name: value.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if value.dtype is torch.bfloat16 else value.numpy()
        for name, value in kwargs.items()
        if isinstance(value, torch.Tensor)
    }
    result = np.asarray(nki.simulator.simulate_kernel(known[number], (), {**kwargs, **arrays}, lnc=lnc))
    if result.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


@operator.py_impl(DispatchKey.CPU)
def on_the_cpu(*, number, lnc, kwargs):
    return simulated(number, lnc, kwargs)


@operator.py_impl(FakeTensorMode)
def shapes(mode, *, number, lnc, kwargs):
    with unset_fake_temporarily():
        ones = {name: torch.ones(tuple(v.shape), dtype=v.dtype) if isinstance(v, torch.Tensor) else v for name, v in kwargs.items()}
        asked.append({name: tuple(v.shape) for name, v in ones.items() if isinstance(v, torch.Tensor)})
        made = simulated(number, lnc, ones)
    with mode:
        return torch.empty(made.shape, dtype=made.dtype)


@operator.py_impl(ProxyTorchDispatchMode)
def node(mode, **call):
    with disable_proxy_modes_tracing():
        made = operator(**call)
    proxy = mode.tracer.create_proxy("call_function", operator, (), tree_map(mode.tracer.unwrap_proxy, call))
    return track_tensor_tree(made, proxy, constant=None, tracer=mode.tracer)


@operator.py_functionalize_impl
def functional(context, *, number, lnc, kwargs):
    inner = context.unwrap_tensors(kwargs)
    with context.redispatch_to_next():
        return context.wrap_tensors(operator(number=number, lnc=lnc, kwargs=inner))


@torch.compiler.allow_in_graph
def launch(number, lnc, kwargs):
    return operator(number=number, lnc=lnc, kwargs=kwargs)


class Caller:
    """`caller[grid](**kwargs)`"""

    def __init__(self, number, lnc=1):
        self.number, self.lnc = number, lnc

    def __getitem__(self, grid):
        return Caller(self.number, grid[0])

    def __call__(self, **kwargs):
        return launch(self.number, self.lnc, kwargs)


def wrapped(kernel):
    known.append(kernel)
    return Caller(len(known) - 1)


X = torch.arange(32, dtype=torch.float32).reshape(4, 8)


@pytest.mark.parametrize("lnc", [1, 2])
def test_eager(lnc):
    caller = wrapped(kernels.scale.func)
    assert torch.equal(caller[(lnc,)](x=X, factor=2.0), X * 2)
    assert torch.equal(caller[(lnc,)](x=X.bfloat16(), factor=2.0), X.bfloat16() * 2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled(backend):
    torch._dynamo.reset()
    asked.clear()
    caller = wrapped(kernels.scale)
    graphs = []

    def counted(graph, inputs):
        graphs.append([n.target for n in graph.graph.nodes if n.op == "call_function"])
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    compiled = torch.compile(lambda x: caller[(1,)](x=x + 1, factor=2.0) * 3, backend=counted, fullgraph=True, dynamic=False)
    for x in (X, X - 5, X.bfloat16(), X[:2]):
        assert torch.equal(compiled(x), (x + 1) * 2 * 3)
    # The second call uses the graph of the first.
    assert len(graphs) == 3 and all(launch in targets for targets in graphs)
    assert {"x": (4, 8)} in asked and {"x": (2, 8)} in asked


def test_a_wrong_kernel_is_an_error_in_the_graph():
    torch._dynamo.reset()

    def kernel(x):
        raise ValueError("no such shape")

    caller = wrapped(kernel)
    with pytest.raises(Exception, match="no such shape"):
        torch.compile(lambda x: caller[(1,)](x=x), backend="eager", fullgraph=True)(X)
    with pytest.raises(ValueError, match="no such shape"):
        caller[(1,)](x=X)
