"""The drop-in package `nrtpy`: compiled programs, simulated. See nki_sim."""

from nki_sim._native import __version__  # noqa: F401
from nki_sim._nrtpy import (  # noqa: F401
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
