"""nki-sim: run NKI kernels on a software NeuronCore, with NumPy, torch or jax arrays.

    import nki_sim
    out = kernel(x)                                # a kernel decorated with @nki.jit
    out, report = nki_sim.profile(kernel)(x)       # with its time on the device
    nki_sim.assert_close(kernel, reference, (x,))
    outs = nki_sim.simulate_ranks(kernel, 2)([x0, x1])      # two ranks with collectives

`import nki` imports the drop-in package unless the real one is installed. `nki_sim.install()`
gives the drop-in package precedence.
"""

from . import _objects, _tree, _watch
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    KernelError,
    KernelWarning,
    NoSourceError,
    OutsideKernelError,
    SimError,
)
from ._arrays import TensorSpec
from ._batch import batch
from ._framework import FrameworkKernel, JaxFrameworkKernel, NumpyFrameworkKernel, PyTorchFrameworkKernel
from ._limits import configure
from ._kernel import Kernel, cpu_simulate, from_source, jit, simulate, trace
from ._native import __version__, target
from ._profile import Report, assert_close, profile
from ._ranks import PerRank, RanksReport, simulate_ranks
from ._search import Search
from ._sweep import Sweep, SweepPoint, sweep
from ._tree import install
from ._values import Value, Values, trace_values

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "FrameworkKernel",
    "JaxFrameworkKernel",
    "Kernel",
    "KernelError",
    "KernelWarning",
    "NoSourceError",
    "NumpyFrameworkKernel",
    "OutsideKernelError",
    "PerRank",
    "PyTorchFrameworkKernel",
    "RanksReport",
    "Report",
    "Search",
    "SimError",
    "Sweep",
    "SweepPoint",
    "TensorSpec",
    "Value",
    "Values",
    "__version__",
    "assert_close",
    "batch",
    "configure",
    "cpu_simulate",
    "from_source",
    "install",
    "jit",
    "profile",
    "simulate",
    "simulate_ranks",
    "sweep",
    "target",
    "trace",
    "trace_values",
]

# Assigned rather than defined with `def`: with a `def`, type checkers would accept every name.
globals()["__getattr__"] = _objects.hints_of(
    "nki_sim",
    {
        "benchmark": "profile(kernel)(...) returns the results and a report with the latency",
        "check": "kernel.compile(...) compiles and checks without running; the command is `nki-sim check`",
        "compile": "kernel.compile(...) compiles without running",
        "run": "call the kernel, simulate(kernel)(...), or profile(kernel)(...) for a report",
    },
)

_tree.offer()
_watch.watch()
