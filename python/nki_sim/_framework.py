"""Kernels as custom calls of a framework: what the graph's compiler is told about them."""

import base64
import hashlib
import json
import sys

import numpy as np

from ._arrays import TensorSpec
from ._errors import ArgumentError, ArgumentTypeError
from ._inspect import show
from ._kernel import Kernel, grid_programs, warn_of_grid
from ._objects import MODULES, DType


class FrameworkKernel:
    """A kernel in the graph of a framework, as the custom call `AwsNeuronCustomNativeKernel`.

    Subclasses say what a tensor of their framework is: `is_framework_tensor`, `map_framework_tensor`, `translate_to_neuron_dtype`.
    `dump_config` then gives the custom call's `backend_config` for given arguments.

    :param func_name: the kernel's name in the config.
    :param func: the kernel, decorated or not.
    :param grid: programs that run it: 1 or 2 physical cores of a logical core, as an int or a tuple. A larger grid (older code) is
        written into the config, and the kernel is compiled for one core; it cannot be called.
    :param enable_cache: whether a config is kept and given again for the same arguments.
    :param platform_target: trn1, trn2 or trn3; without it the environment decides.
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
        self.kernel = made._with(lnc=2 if self.programs == 2 else 1, target=platform_target or made.target)
        self._configs = {}

    def is_framework_tensor(self, t) -> bool:
        """Whether `t` is a tensor. What is none is a constant that is known when the kernel is compiled."""
        raise NotImplementedError(f"{type(self).__name__} does not say which arguments are tensors: is_framework_tensor(t)")

    def map_framework_tensor(self, t):
        """Shape and dtype of a tensor of the framework, in the framework's own types."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a tensor's shape and dtype are: map_framework_tensor(t)")

    def translate_to_neuron_dtype(self, _dtype):
        """The dtype of NumPy or `nki.language` that a dtype of the framework is."""
        raise NotImplementedError(f"{type(self).__name__} does not translate dtypes: translate_to_neuron_dtype(dtype)")

    def dump_config(self, *args, **kwargs) -> tuple[str, list[str], list[str]]:
        """The custom call for these arguments, whose values do not matter: `(backend_config, input names, output names)`.

        An argument that the kernel writes is an output; one that it also reads is an input, too. With `enable_cache`, the config comes
        from the cache if the arguments, the grid and all that the kernel was compiled from are the same.
        """
        try:
            arguments = [(name, self._spec(value)) for name, value in self.kernel.bind(*args, **kwargs)]
        except RecursionError:
            raise ArgumentError(f"{self.func_name}: an argument holds itself, or is nested too deep") from None
        # Without the cache the kernel is compiled anew.
        kernel = self.kernel if self.enable_cache else Kernel(self.kernel.func)._with(lnc=self.kernel.lnc, target=self.kernel.target, _given=self.kernel._given)
        compiled = kernel._compile(arguments)
        show(compiled.prints())
        if self.programs > 2:
            warn_of_grid(self.func_name, self.grid)
        if not self.enable_cache:
            return backend_config(kernel, compiled, self.func_name, self.grid)
        key = compiled.serial()
        if key not in self._configs:
            self._configs[key] = backend_config(kernel, compiled, self.func_name, self.grid)
        return self._configs[key]

    def _spec(self, value):
        """The argument with its tensors replaced by their shapes and dtypes."""
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
    """What the custom call says of a compiled kernel: `(backend_config, input names, output names)`.

    The config is JSON in base64, with the keys that the Neuron compiler's own has; instead of a compiled file it names our program by the
    hash of its text.
    """
    only_written = compiled.only_written()
    inputs = [name for name in compiled.inputs() if name not in only_written]
    outputs = [name for name, _, _ in compiled.outputs()] + compiled.unreturned()
    config = {
        "kernel_version": 1,
        "nkir_program": {
            "sha256": hashlib.sha256(compiled.text().encode()).hexdigest(),
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
    """A kernel in a graph of jax. `jax.ShapeDtypeStruct` is a tensor, too."""

    def is_framework_tensor(self, t) -> bool:
        jax = sys.modules.get("jax")
        return jax is not None and isinstance(t, (jax.Array, jax.ShapeDtypeStruct))

    def map_framework_tensor(self, t):
        return t.shape, t.dtype

    def translate_to_neuron_dtype(self, _dtype):
        return _named(np.dtype(_dtype).name, "jax")


class NumpyFrameworkKernel(FrameworkKernel):
    """A kernel on arrays of NumPy."""

    def is_framework_tensor(self, t) -> bool:
        return isinstance(t, np.ndarray)

    def map_framework_tensor(self, t):
        return t.shape, t.dtype

    def translate_to_neuron_dtype(self, _dtype):
        from ._arrays import packed_name

        dtype = np.dtype(_dtype)
        return _named(packed_name(dtype) or dtype.name, "NumPy")
