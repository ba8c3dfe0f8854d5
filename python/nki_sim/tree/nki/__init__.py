"""The drop-in package: NKI kernels, simulated. See nki_sim."""

from nki_sim import _native
from nki_sim._framework import FrameworkKernel
from nki_sim._kernel import Kernel, cpu_simulate, jit, simulate, trace

from . import builtin, collectives, compiler, dtype, isa, language, simulator, tensor, typing  # noqa: F401

__all__ = ["FrameworkKernel", "Kernel", "cpu_simulate", "jit", "simulate", "trace"]

for _name in __all__:
    _native.register(globals()[_name], f"nki.{_name}") if _name not in ("FrameworkKernel", "Kernel") else None
import sys as _sys

_native.register(_sys.modules[__name__], "nki")
