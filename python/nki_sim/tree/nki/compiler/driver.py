"""The compiler's driver for test harnesses, from a kernel to a compiled program."""

from nki_sim._compiled import (
    CompiledKernel,
    CompileOptions,
    _build_nki_return_value,
    _compile_bir_to_neff,
    compile_bir_to_neff,
    compile_to_bir,
    nki_ir_context,
)

__all__ = [
    "CompiledKernel",
    "CompileOptions",
    "_build_nki_return_value",
    "_compile_bir_to_neff",
    "compile_bir_to_neff",
    "compile_to_bir",
    "nki_ir_context",
]
