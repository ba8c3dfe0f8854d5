"""The compiler's driver for test harnesses: programs are written to files, run and timed."""

from nki_sim._compiled import (
    CompilationMode,
    CompiledKernel,
    CompileOptions,
    compile_bir_to_neff,
    extract_perf_metrics,
)

__all__ = ["CompilationMode", "CompiledKernel", "CompileOptions", "compile_bir_to_neff", "extract_perf_metrics"]
