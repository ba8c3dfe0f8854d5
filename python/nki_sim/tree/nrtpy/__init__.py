"""The drop-in package `nrtpy`: compiled programs, simulated. See nki_sim."""

from nki_sim._native import __version__  # noqa: F401
from nki_sim._nrtpy import (
    BenchmarkResult,
    NrtError,
    NrtpyError,
    NrtpyModel,
    NrtpyTensor,
    TensorMetadata,
    configure,
    get_nrtpy_singleton,
    reset,
)

#: Names of the first releases.
SpikeModel, SpikeTensor = NrtpyModel, NrtpyTensor

__all__ = [
    "BenchmarkResult",
    "NrtError",
    "NrtpyError",
    "NrtpyModel",
    "NrtpyTensor",
    "SpikeModel",
    "SpikeTensor",
    "TensorMetadata",
    "configure",
    "get_nrtpy_singleton",
    "reset",
]
