"""`jax_neuronx.nki_call`, with which jax called kernels of `neuronxcc.nki` until SDK 2.22."""

import functools

import jax
import numpy as np

from ._errors import ArgumentTypeError
from ._kernel import Kernel, from_source

#: A kernel that returns the arrays which `kernel` writes.
_TEXT = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def {name}({inputs}):
{declarations}
    kernel(*first, {operands}, **constants)
    return {outputs}
"""


def nki_call(func, *args, out_shape, grid=None):
    """Calls a kernel that writes its results to its last arguments, also while jax traces a function.

    :param func: the function, a kernel or a `functools.partial` of one; the values of a partial are
        constants of the kernel.
    :param args: the arrays before the results.
    :param out_shape: shape and dtype of each result, as a `jax.ShapeDtypeStruct` or a structure of
        them.
    :param grid: the extents of the launch grid.
    :returns: the results in the structure of `out_shape`.
    """
    shapes, structure = jax.tree_util.tree_flatten(out_shape)
    if not shapes or not all(hasattr(s, "shape") and hasattr(s, "dtype") for s in shapes):
        raise ArgumentTypeError(f"nki_call needs out_shape=, the jax.ShapeDtypeStruct of each result, not {out_shape!r}")
    kernel = _returning(func, len(args), [(tuple(map(int, s.shape)), np.dtype(s.dtype).name) for s in shapes])
    results = (kernel if grid is None else kernel[grid])(*(jax.numpy.asarray(a) for a in args))
    return jax.tree_util.tree_unflatten(structure, results if isinstance(results, tuple) else [results])


def _returning(func, inputs, results):
    """A kernel with this number of arguments, which returns the results of `func`."""
    first, constants = (), {}
    while isinstance(func, functools.partial):
        first, constants, func = func.args + first, {**func.keywords, **constants}, func.func
    if not callable(func):
        raise ArgumentTypeError(f"nki_call needs a kernel, not {func!r}")
    names = [f"a{i}" for i in range(inputs)]
    outputs = [f"out{i}" for i in range(len(results))]
    declared = [
        f"    {name} = nl.ndarray({shape}, dtype=nl.{'bool_' if dtype == 'bool' else dtype}, buffer=nl.shared_hbm)"
        for name, (shape, dtype) in zip(outputs, results)
    ]
    name = getattr(func, "__name__", "kernel")
    text = _TEXT.format(
        name=name if name.isidentifier() and name not in ("kernel", "first", "constants", "nl", "nki") else "call",
        inputs=", ".join(names),
        declarations="\n".join(declared),
        operands=", ".join(names + outputs),
        outputs=", ".join(outputs),
    )
    return from_source(text, globals={"kernel": func.func if isinstance(func, Kernel) else func, "first": first, "constants": constants})
