"""The functions of `torch_neuronx` that call NKI kernels from torch."""

import functools

import torch
import torch.utils._pytree as pytree

from . import _options
from ._beta1 import jit
from ._errors import ArgumentTypeError
from ._kernel import Kernel
from ._kernel import jit as current_jit


def nki_jit(func=None, mode="torchxla", **options):
    """Makes a function a kernel for torch tensors: `@nki_jit`, or `nki_jit()(function)`. This is the
    name of `neuronxcc.nki.jit` in torch_neuronx until SDK 2.23."""
    if func is None:
        return lambda f: nki_jit(f, mode=mode, **options)
    return func if isinstance(func, Kernel) else jit(func, mode=mode, **options)


def wrap_nki(kernel, **options):
    """The kernel, which can be called with torch tensors, also in the graphs of `torch.compile`;
    `wrap_nki(kernel)[2]` runs on two cores."""
    if not callable(kernel):
        raise ArgumentTypeError(f"wrap_nki needs a kernel, not {kernel!r}")
    _options.warn_of_unknown("wrap_nki", options)
    return kernel if isinstance(kernel, Kernel) else current_jit(kernel)


def nki_op(name, fn=None, mutates_args=()):
    """Makes a function that calls kernels an operator of torch (`torch.library.custom_op`).

    Results have the shapes for which the kernels compile, so the operator needs no other
    implementation to be traced. A result that is also an argument is returned as a copy, because
    operators of torch cannot return their arguments.

    :param name: `namespace::name`.
    :param fn: the function, with annotations; without it, `nki_op` is a decorator.
    :param mutates_args: the names of the arguments that the function writes.
    """
    if fn is None:
        return lambda f: nki_op(name, f, mutates_args=mutates_args)
    # This imports torch's compiler, which takes seconds.
    from . import _torch

    @functools.wraps(fn)
    def run(*args, **kwargs):
        result = fn(*args, **kwargs)
        given = {id(t) for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        return pytree.tree_map(lambda t: t.clone() if id(t) in given else t, result)

    def shaped(*args, **kwargs):
        with _torch.shapes_only():
            return run(*args, **kwargs)

    # In a decorator's argument, `{}` is an empty set of names.
    mutates_args = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)
    schema = torch.library.infer_schema(fn, mutates_args=mutates_args)
    operator = torch.library.custom_op(name, run, mutates_args=mutates_args, schema=schema)
    operator.register_fake(shaped)
    return operator
