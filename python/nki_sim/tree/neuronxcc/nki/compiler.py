"""Decorators of the older compiler, and direct allocation."""

import sys as _sys

from nki_sim import _beta1, _native

skip_middle_end_transformations = _beta1.skip_middle_end_transformations
enable_stack_allocator = _beta1.enable_stack_allocator
force_auto_alloc = _beta1.force_auto_alloc
sbuf = _sys.modules[f"{__name__}.sbuf"] = _beta1.memory_module("sbuf")
psum = _sys.modules[f"{__name__}.psum"] = _beta1.memory_module("psum")
__all__ = ["enable_stack_allocator", "force_auto_alloc", "multi_buffer", "no_reorder", "psum", "sbuf", "skip_middle_end_transformations"]

for _name in ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc"):
    _native.register(globals()[_name], f"neuronxcc.nki.compiler.{_name}")
_native.register(_sys.modules[__name__], "neuronxcc.nki.compiler")


def __getattr__(name):
    from nki_sim._objects import function_of

    if name not in ("multi_buffer", "no_reorder"):
        raise AttributeError(f"module 'neuronxcc.nki.compiler' has no attribute {name!r}")
    return function_of("neuronxcc.nki.compiler")(name)
