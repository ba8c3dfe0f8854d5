"""Options of the decorators: `nki.jit`, and those of `neuronxcc.nki`."""

import difflib
import warnings

from ._dependencies import depth
from ._errors import KernelWarning

#: Options that code passes to the decorators. Some have no effect here: docs/python.md names them.
KNOWN = (
    "additional_compile_opt",
    "artifacts_dir",
    "compile_config",
    "config",
    "debug_kernel",
    "disable_allocation_opt",
    "enable_out_of_bound_check",
    "experimental_flags",
    "grid",
    "iters",
    "kernel_return",
    "mode",
    "num_execs",
    "overwrite",
    "platform_target",
    "profile_nth",
    "save_neff_name",
    "save_trace_name",
    "show_compiler_tb",
    "specialization_config",
    "strict",
    "target",
    "warmup",
    "working_directory",
)


def warn_of_unknown(decorator, options):
    """Warns of options that no decorator has: a misspelled one would have no effect."""
    for name in options:
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            warnings.warn(f"{decorator} has no parameter `{name}`{meant}", KernelWarning, stacklevel=depth())
