"""Kernels as custom calls in the graph of a framework."""

import base64
import hashlib
import json
import sys
import warnings

import numpy as np

from . import _native
from ._arrays import TensorSpec
from ._errors import ArgumentError, ArgumentTypeError, KernelWarning
from ._inspect import show
from ._kernel import Kernel, grid_programs, warn_of_grid
from ._objects import MODULES, DType


class FrameworkKernel:
    """A kernel in the graph of a framework, as the custom call `AwsNeuronCustomNativeKernel`.

    Subclasses describe the tensors of their framework with `is_framework_tensor`,
    `map_framework_tensor` and `translate_to_neuron_dtype`. `dump_config` returns the
    `backend_config` of the custom call for given arguments.

    :param func_name: the name of the kernel in the config.
    :param func: the kernel, decorated or not.
    :param grid: number of programs, 1 or 2 physical cores of a logical core, as an int or a tuple.
        A larger grid (older code) is written into the config, and the kernel is compiled for one
        core; it cannot be called.
    :param enable_cache: whether a config is cached for the same arguments.
    :param platform_target: trn1, trn2 or trn3; by default the environment decides.
    """

    def __init__(self, func_name=None, func=None, grid=(), enable_cache=True, platform_target=None):
        if func is None:
            raise ArgumentTypeError("FrameworkKernel needs func=, the kernel")
        self.programs = grid_programs(grid)
        self.grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        self.func = func
        self.func_name = func_name or getattr(func, "__name__", "kernel")
        self.enable_cache = enable_cache
        made = func if isinstance(func, Kernel) else Kernel(func)
        self.kernel = made._with(_lnc=(2 if self.programs == 2 else 1) if grid else made._lnc, target=platform_target or made.target)
        self._configs = {}

    def is_framework_tensor(self, t) -> bool:
        """Whether `t` is a tensor. Any other value is a compile-time constant."""
        raise NotImplementedError(f"{type(self).__name__} does not say which arguments are tensors: is_framework_tensor(t)")

    def map_framework_tensor(self, t):
        """Shape and dtype of a tensor of the framework, in the framework's own types."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a tensor's shape and dtype are: map_framework_tensor(t)")

    def translate_to_neuron_dtype(self, _dtype):
        """The NumPy or `nki.language` dtype that corresponds to a dtype of the framework."""
        raise NotImplementedError(f"{type(self).__name__} does not translate dtypes: translate_to_neuron_dtype(dtype)")

    def dump_config(self, *args, **kwargs) -> tuple[str, list[str], list[str]]:
        """The custom call for these arguments: `(backend_config, input names, output names)`.
        Values of tensors are ignored.

        An argument that the kernel writes is an output; it is also an input if the kernel reads it.
        With `enable_cache`, the config comes from the cache if the arguments, the grid and
        everything that the kernel was compiled from are unchanged.

        A finding of the compiler is a warning, or an error if its level is deny, as in a call.
        """
        try:
            arguments = [(name, self._spec(value)) for name, value in self.kernel.bind(*args, **kwargs)]
        except RecursionError:
            raise ArgumentError(f"{self.func_name}: an argument holds itself, or is nested too deeply") from None
        # Without the cache, the kernel is compiled again.
        kernel = self.kernel if self.enable_cache else self.kernel._with(_cache=_native.Cache())
        compiled = kernel._compile(arguments)
        show(compiled.prints())
        findings = compiled.warnings()[0]
        if findings:
            warnings.warn(findings.rstrip(), KernelWarning, stacklevel=2)
        if self.programs > 2:
            warn_of_grid(self.func_name, self.grid)
        if not self.enable_cache:
            return backend_config(kernel, compiled, self.func_name, self.grid)
        key = compiled.serial()
        if key not in self._configs:
            self._configs[key] = backend_config(kernel, compiled, self.func_name, self.grid)
        return self._configs[key]

    def _spec(self, value):
        """The argument with shapes and dtypes in place of its tensors."""
        if self.is_framework_tensor(value):
            shape, dtype = self.map_framework_tensor(value)
            return TensorSpec(shape, self.translate_to_neuron_dtype(dtype))
        if isinstance(value, tuple):
            items = [self._spec(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return [self._spec(item) for item in value]
        if isinstance(value, dict):
            return {key: self._spec(item) for key, item in value.items()}
        return value

    def __call__(self, *args, **kwargs):
        """Runs the kernel on tensors of NumPy, torch or jax."""
        if self.programs > 2:
            raise ArgumentTypeError(f"{self.func_name} has grid {self.grid}: a logical core has 1 or 2 physical cores")
        return self.kernel(*args, **kwargs)

    def __repr__(self):
        return f"<{type(self).__name__} of {self.func_name}{list(self.grid) if self.grid else ''}>"


def backend_config(kernel, compiled, func_name=None, grid=None):
    """The contents of the custom call for a compiled kernel:
    `(backend_config, input names, output names)`.

    The config is base64-encoded JSON with the keys of the Neuron compiler's config.
    `klir_binary.binary` is not the path of a compiled file, but a name made from the hash of the
    program's text.
    """
    only_written = compiled.only_written()
    inputs = [name for name in compiled.inputs() if name not in only_written]
    outputs = [name for name, _, _ in compiled.outputs()] + compiled.unreturned()
    config = {
        "kernel_version": 1,
        "klir_binary": {
            "binary": f"{func_name or kernel.__name__}-{hashlib.sha256(compiled.text().encode()).hexdigest()}.nkir",
            "input_names": inputs,
            "output_names": outputs,
        },
        "func_name": func_name or kernel.__name__,
        "grid": list(([] if kernel.lnc == 1 else [kernel.lnc]) if grid is None else grid),
        "has_collectives": compiled.has_collectives(),
    }
    return base64.b64encode(json.dumps(config).encode()).decode(), inputs, outputs


def _named(name, framework):
    found = MODULES["nki.language"].get(name if name != "bool" else "bool_")
    if not isinstance(found, DType):
        raise ArgumentTypeError(f"{framework}'s dtype {name} is not a device type")
    return found


class PyTorchFrameworkKernel(FrameworkKernel):
    """A kernel in a graph of PyTorch."""

    def is_framework_tensor(self, t) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(t, torch.Tensor)

    def map_framework_tensor(self, t):
        return t.shape, t.dtype

    def translate_to_neuron_dtype(self, _dtype):
        return _named(str(_dtype).removeprefix("torch."), "torch")


class JaxFrameworkKernel(FrameworkKernel):
    """A kernel in a graph of jax. `jax.ShapeDtypeStruct` counts as a tensor."""

    def is_framework_tensor(self, t) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(t, (jax.Array, jax.ShapeDtypeStruct))

    def map_framework_tensor(self, t):
        return t.shape, t.dtype

    def translate_to_neuron_dtype(self, _dtype):
        return _named(np.dtype(_dtype).name, "jax")


class NumpyFrameworkKernel(FrameworkKernel):
    """A kernel on NumPy arrays."""

    def is_framework_tensor(self, t) -> bool:
        return isinstance(t, np.ndarray)

    def map_framework_tensor(self, t):
        return t.shape, t.dtype

    def translate_to_neuron_dtype(self, _dtype):
        from ._arrays import packed_name

        dtype = np.dtype(_dtype)
        return _named(packed_name(dtype) or dtype.name, "NumPy")
