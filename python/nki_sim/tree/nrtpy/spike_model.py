"""Compiled programs, by the former name of the module."""

from nki_sim._nrtpy import BenchmarkResult
from nki_sim._nrtpy import NrtpyModel as SpikeModel
from nki_sim._nrtpy import parse_trace_durations as _parse_trace_durations

__all__ = ["BenchmarkResult", "SpikeModel", "_parse_trace_durations"]
