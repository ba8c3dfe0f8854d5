"""The runtime of the device for test harnesses: `nrtpy`, by its former name."""

from nki_sim._nrtpy import (
    BenchmarkResult,
    NrtError,
    configure,
    reset,
)
from nki_sim._nrtpy import NrtpyError as SpikeError
from nki_sim._nrtpy import NrtpyModel as SpikeModel
from nki_sim._nrtpy import NrtpyTensor as SpikeTensor
from nki_sim._nrtpy import get_nrtpy_singleton as get_spike_singleton

__all__ = ["BenchmarkResult", "NrtError", "SpikeError", "SpikeModel", "SpikeTensor", "configure", "get_spike_singleton", "reset"]
