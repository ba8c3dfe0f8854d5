"""Kernels inside jax transformations: a custom call in the graph, which the simulator serves on the
CPU.

A kernel that is called while jax traces a function receives tracers, which have shapes and dtypes
but no values. The kernel is compiled for them, and the primitive `nki_call` is added to the graph.
It is lowered to two custom calls. The first is the one that the Neuron compiler expects; its
operands, results and `backend_config` follow the documentation. The second takes the results of the
first and computes them: XLA's foreign function interface calls the simulator when the graph runs,
without the interpreter.

Two calls are necessary because the documented config is a text. A typed call, which can fail with a
message and has the shapes of its operands, needs a dictionary instead.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from . import _arrays, _native
from ._errors import ArgumentError, ArgumentTypeError, KernelWarning

try:
    import jax.ffi
    from jax.extend.core import Primitive
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
except ImportError:
    raise ImportError(f"kernels inside of jax.jit need jax 0.5 or later; this is {jax.__version__}") from None

#: The target of the custom call for the Neuron compiler.
TARGET = "AwsNeuronCustomNativeKernel"
#: The target of the call that runs the program.
RUN = "nki_sim_run"
#: XLA's API_VERSION_STATUS_RETURNING, which the Neuron compiler uses.
_STATUS_RETURNING = 2


@dataclasses.dataclass(frozen=True)
class _Program:
    """The parameters of the primitive."""

    name: str
    kernel: str = dataclasses.field(compare=False)
    config: str = dataclasses.field(compare=False)
    results: tuple = dataclasses.field(compare=False)

    def __repr__(self):
        return f"{self.kernel}:{self.name[:8]}"


nki_call = Primitive("nki_call")
nki_call.multiple_results = True


@nki_call.def_abstract_eval
def _abstract(*_operands, program):
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in program.results]


@functools.lru_cache(maxsize=None)
def _jitted(program):
    return jax.jit(lambda *operands: nki_call.bind(*operands, program=program))


@nki_call.def_impl
def _run(*operands, program):
    return _jitted(program)(*operands)


def _no_derivative(_primals, _tangents, *, program):
    raise NotImplementedError(
        f"the kernel `{program.kernel}` has no derivative that jax knows; "
        f"give it one with jax.custom_vjp: a function that calls the kernel, and its forward and backward"
    )


def _no_batch(_operands, _dims, *, program):
    raise NotImplementedError(
        f"jax.vmap of the kernel `{program.kernel}`: a kernel is compiled for the shapes of its arguments and cannot get an additional dimension; "
        f"write the batch into the kernel, or call it once for each element with jax.lax.map"
    )


def _header_version():
    """The version of XLA's foreign function interface in the installed jax."""
    path = pathlib.Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    text = path.read_text(encoding="utf-8")
    return tuple(int(re.search(rf"#define XLA_FFI_API_{part} (\d+)", text)[1]) for part in ("MAJOR", "MINOR"))


ad.primitive_jvps[nki_call] = _no_derivative
batching.primitive_batchers[nki_call] = _no_batch
jax.ffi.register_ffi_target(RUN, _native.ffi_handler(*_header_version()), platform="cpu")
jax.ffi.register_ffi_target(TARGET, _native.documented_call(), platform="cpu", api_version=0)
_lowering = jax.ffi.ffi_lowering(RUN)


def _type(aval):
    return ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(np.dtype(aval.dtype)))


def _layouts(avals):
    """Row-major layouts."""
    index = ir.IndexType.get()
    orders = [np.arange(len(aval.shape) - 1, -1, -1) for aval in avals]
    return ir.ArrayAttr.get([ir.DenseIntElementsAttr.get(order, type=index) for order in orders])


def _lower(ctx, *operands, program):
    documented = stablehlo.CustomCallOp(
        [_type(aval) for aval in ctx.avals_out],
        operands,
        call_target_name=ir.StringAttr.get(TARGET),
        has_side_effect=ir.BoolAttr.get(False),
        backend_config=ir.StringAttr.get(program.config),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _STATUS_RETURNING),
        operand_layouts=_layouts(ctx.avals_in),
        result_layouts=_layouts(ctx.avals_out),
    )
    both = ctx.replace(avals_in=[*ctx.avals_in, *ctx.avals_out])
    return _lowering(both, *operands, *documented.results, program=program.name)


mlir.register_lowering(nki_call, _lower, platform="cpu")

#: Programs by the number of the compiled program and whether floats are rounded.
_programs = {}


def _program(kernel, compiled):
    precise = os.environ.get("NKI_PRECISE_FP", "1").strip() != "0"
    key = compiled.serial(), precise
    if key not in _programs:
        from ._framework import backend_config

        results = []
        for name, shape, dtype in compiled.outputs():
            if dtype.endswith("_x4"):
                raise ArgumentTypeError(f"{kernel.__name__}: output `{name}` has dtype {dtype}, which jax does not have")
            results.append((tuple(shape), _arrays.numpy_dtype(dtype)))
        name = hashlib.sha256(f"{precise}\n{compiled.text()}".encode()).hexdigest()
        _programs[key] = _Program(name, kernel.__name__, backend_config(kernel, compiled)[0], tuple(results))
    # The levels of findings are those of the last trace.
    _native.serve(_programs[key].name, compiled)
    return _programs[key]


def stage(kernel, compiled):
    """Adds a call of the compiled kernel to the graph that jax is tracing. Returns the results and
    the inputs that the kernel returns."""
    unreturned = compiled.unreturned()
    if unreturned:
        raise ArgumentError(
            f"{kernel.__name__} writes its argument `{unreturned[0]}` and does not return it; arrays of jax do not change: "
            f"return the argument from the kernel, and take the result"
        )
    operands = compiled.operands()
    for name, operand in zip(compiled.inputs(), operands):
        if not isinstance(operand, (jax.Array, np.ndarray)):
            raise ArgumentTypeError(f"argument `{name}` is of type {type(operand).__name__}; with jax, pass arrays of jax or NumPy")
    results = nki_call.bind(*(jnp.asarray(x) for x in operands), program=_program(kernel, compiled))
    return results, operands


def tell(prints, findings):
    """Prints the output and the warnings of a kernel that ran in a graph. The native module calls
    it."""
    for line in prints:
        print(line)
    if findings:
        warnings.warn(findings, KernelWarning, stacklevel=1)
