"""Traces of the runtime."""

from nki_sim._nrtpy import SystemTraceSession

__all__ = ["SystemTraceSession"]
