"""The drop-in package: NKI kernels, simulated. See nki_sim."""

from nki_sim import _native, _objects
from nki_sim._framework import FrameworkKernel
from nki_sim._kernel import Kernel, cpu_simulate, jit, simulate, trace

from . import builtin, collectives, compiler, dtype, isa, language, simulator, tensor, typing  # noqa: F401
from ._version import __version__  # noqa: F401

__all__ = ["FrameworkKernel", "Kernel", "cpu_simulate", "jit", "simulate", "trace"]

for _name in __all__:
    _native.register(globals()[_name], f"nki.{_name}") if _name not in ("FrameworkKernel", "Kernel") else None
import sys as _sys

_native.register(_sys.modules[__name__], "nki")
# Assigned rather than defined with `def`: with a `def`, type checkers would accept every name.
globals()["__getattr__"] = _objects.hints_of(
    "nki",
    {
        "baremetal": "call the kernel, or nki.simulate(kernel)(...); neuronxcc.nki has it",
        "benchmark": "nki_sim.profile(kernel)(...) returns the results and a report with the latency; neuronxcc.nki has it",
        "profile": "nki_sim.profile(kernel)(...) returns the results and a report; neuronxcc.nki has it",
        "simulate_kernel": "write nki.simulate(kernel)(...); neuronxcc.nki has it",
    },
)
