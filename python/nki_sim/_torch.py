"""Kernels inside graphs of `torch.compile`.

This module is imported together with torch's compiler (see `_watch`). Every kernel is allowed in
graphs: Dynamo calls it with fake tensors and receives the results of the custom operator
`nki_sim::kernel`. The fake implementation of the operator takes shapes and dtypes from a program
compiled for these inputs. Unsupported calls (written arguments, tensors inside objects, invalid
arguments) break the graph, and the kernel is called as without a compiler.
"""

import contextlib
import contextvars
import hashlib
import threading

import torch
import torch._dynamo
from torch._subclasses.fake_tensor import FakeTensor, UnsupportedOperatorException
from torch._subclasses.functional_tensor import FunctionalTensor

from . import _arrays, _kernel, _watch
from ._errors import SimError

#: Kernels stay in the graph with torch 2.4 or later; with earlier versions the graph breaks at each
#: kernel.
_IN_GRAPHS = hasattr(torch.library, "custom_op")


class _Slot:
    """The position of a tensor among the arguments of a call."""

    def __init__(self, index):
        self.index = index

    def __repr__(self):
        return f"tensor {self.index}"


class _Call:
    """A call of a kernel in a graph: its arguments with slots for tensors, and its results."""

    def __init__(self, kernel, arguments, outputs):
        self.kernel = kernel
        self.arguments = arguments
        #: Shape and dtype of each new tensor, in the order in which the kernel returns them.
        self.outputs = outputs


#: Calls by key. They stay until the process ends, because torch does not report when it releases a
#: graph.
_calls = {}
_lock = threading.Lock()
#: Whether calls with fake tensors only compute shapes, without a node in the graph.
_shapes_only = contextvars.ContextVar("shapes only", default=False)


@contextlib.contextmanager
def shapes_only():
    """Makes calls with fake tensors compute shapes only: torch has its own node for the function
    that calls the kernel."""
    token = _shapes_only.set(True)
    try:
        yield
    finally:
        _shapes_only.reset(token)


def allow(kernel):
    """Allows a kernel as a node in graphs."""
    if _IN_GRAPHS:
        torch._dynamo.allow_in_graph(kernel)


def run(kernel, args, kwargs):
    """Like `Kernel._run` without timing; adds a node to the graph if torch is tracing."""
    arguments = kernel.bind(*args, **kwargs)
    values = [value for _, value in arguments]
    if _IN_GRAPHS and any(isinstance(t, (FakeTensor, FunctionalTensor)) for t in _arrays.leaves(values, objects=False)):
        return _stage(kernel, arguments), None
    return _run_eagerly(kernel, arguments)


@torch._dynamo.disable
def _run_eagerly(kernel, arguments):
    return kernel._run_bound(arguments, False)


def _map(value, change):
    """The value with `change` applied to everything in it that is not a container."""
    if isinstance(value, tuple):
        items = [_map(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [_map(item, change) for item in value]
    if type(value) is dict:
        return {key: _map(item, change) for key, item in value.items()}
    return change(value)


def _slots(arguments, tensors):
    """The arguments with slots in place of the tensors, which are collected."""

    def change(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return _Slot(len(tensors) - 1)
        # A kernel is compiled for concrete numbers, so torch has to trace again for another number.
        if isinstance(value, torch.SymInt):
            return int(value)
        if isinstance(value, torch.SymFloat):
            return float(value)
        if isinstance(value, torch.SymBool):
            return bool(value)
        return value

    return _map(arguments, change)


def _break(kernel, why):
    """Makes Dynamo call the kernel outside the graph."""
    raise UnsupportedOperatorException(f"{kernel.__name__}: {why}")


def _stage(kernel, arguments):
    """Adds a call to the graph that torch is tracing; returns the results of the kernel as tensors
    of the graph."""
    tensors = []
    try:
        template = _slots(arguments, tensors)
    except RecursionError:
        _break(kernel, "an argument is nested too deeply")
    specs = [_spec(kernel, t) for t in tensors]
    try:
        compiled = kernel._compile(_map(template, lambda v: specs[v.index] if isinstance(v, _Slot) else v))
        operands = [next((i for i, spec in enumerate(specs) if spec is o), None) for o in compiled.operands()]
    except (SimError, TypeError, ValueError, RecursionError) as error:
        # The call outside the graph raises the error at the line of the call.
        _break(kernel, str(error))
    if compiled.written() and not _shapes_only.get():
        _break(kernel, f"it writes its argument `{compiled.written()[0]}`")
    if None in operands:
        _break(kernel, "a tensor is inside of an object")
    leaves, known = [], compiled.outputs()
    _kernel._shaped(compiled.returned(), lambda _how, index, same: leaves.append(index) if same is None else None)
    outputs = [(tuple(known[i][1]), _dtype(kernel, known[i][2])) for i in leaves]
    # As outside graphs, a result has no gradient.
    inputs = [t.detach() for t in tensors]
    if _shapes_only.get():
        results = iter(_empty(inputs, outputs))
    else:
        key = _key(kernel, compiled, template)
        with _lock:
            _calls.setdefault(key, _Call(kernel, template, outputs))
        results = iter(torch.ops.nki_sim.kernel(inputs, key))
    shaped = _kernel._shaped(compiled.returned(), lambda _how, _index, same: next(results) if same is None else tensors[operands[same]])
    return kernel._restored(compiled, shaped)


def _spec(kernel, tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "xla"):
        _break(kernel, f"a tensor is not dense on the CPU, but {tensor.layout} on {tensor.device}")
    try:
        # A dynamic extent is specialised to its current number; torch traces again for another
        # number.
        return _arrays.TensorSpec([int(d) for d in tensor.shape], dtype)
    except (TypeError, ImportError) as error:
        _break(kernel, str(error))


def _dtype(kernel, name):
    dtype = getattr(torch, "float32" if name == "tfloat32" else name, None)
    if dtype is None:
        _break(kernel, f"an output has dtype {name}, which torch does not have")
    return dtype


def _key(kernel, compiled, template):
    """A name for the call that is unique across processes: torch caches graphs on disk."""
    # The pickle state of a kernel distinguishes it from others; its bound arguments are in the
    # template.
    module, name, options = kernel.__reduce__()[1]
    said = (module, name, {key: value for key, value in options.items() if key != "_fixed"}, template, compiled.text())
    return f"{kernel.__name__}:{hashlib.sha256(repr(said).encode()).hexdigest()[:32]}"


def _call(key):
    call = _calls.get(key)
    if call is None:
        raise RuntimeError(f"the NKI kernel {key} is not known in this process: the graph was made in another one; trace the function again")
    return call


def _run_in_graph(inputs: list[torch.Tensor], key: str) -> list[torch.Tensor]:
    call = _call(key)
    arguments = _map(call.arguments, lambda v: inputs[v.index] if isinstance(v, _Slot) else v)
    result, outcome = _run_eagerly(call.kernel, arguments)
    call.kernel._warn(_kernel.findings_of(outcome))
    given = {id(t) for t in inputs}
    results = []
    _map(result, lambda v: results.append(v) if isinstance(v, torch.Tensor) and id(v) not in given else None)
    if [(tuple(t.shape), t.dtype) for t in results] != call.outputs:
        raise RuntimeError(
            f"kernel {call.kernel.__name__} returns different tensors than when torch.compile traced it, since something that it reads has changed "
            f"(a global, say); call torch.compiler.reset() after such a change"
        )
    return results


def _fake(inputs, key):
    return _empty(inputs, _call(key).outputs)


def _empty(inputs, outputs):
    """Tensors of these shapes and dtypes."""
    device = inputs[0].device if inputs else "cpu"
    return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in outputs]


if _IN_GRAPHS:
    torch.library.custom_op("nki_sim::kernel", _run_in_graph, mutates_args=()).register_fake(_fake)
for _known in list(_watch.kernels):
    allow(_known)
