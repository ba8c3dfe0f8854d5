"""Kernels that are compiled to a file, for test harnesses."""

from nki_sim._compiled import (
    CompileKernel,
    NirResult,
    StandaloneKernel,
    compile_kernel_to_nir,
    compile_to_bir,
    run_from_bir,
)

__all__ = ["CompileKernel", "NirResult", "StandaloneKernel", "compile_kernel_to_nir", "compile_to_bir", "run_from_bir"]
