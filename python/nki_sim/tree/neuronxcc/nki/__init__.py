"""The drop-in package of older kernels, simulated: `import neuronxcc.nki as nki`. See nki_sim."""

import sys as _sys

from nki_sim import _native
from nki_sim._beta1 import baremetal, benchmark, jit, profile, simulate_kernel, trace
from nki_sim._framework import FrameworkKernel
from nki_sim._kernel import simulate
from nki_sim._objects import NkiTensor as tensor

from . import compiler, isa, language, typing  # noqa: F401

__all__ = ["FrameworkKernel", "baremetal", "benchmark", "jit", "profile", "simulate", "simulate_kernel", "tensor", "trace"]

for _name in ("baremetal", "benchmark", "jit", "profile", "trace"):
    _native.register(globals()[_name], f"neuronxcc.nki.{_name}")
_native.register(_sys.modules[__name__], "neuronxcc.nki")
