"""The names of `neuronxcc.nki.isa`, from the registry of the simulator."""

import sys as _sys

from nki_sim import _native, _objects

globals().update(_objects.MODULES["neuronxcc.nki.isa"])
__all__ = list(_objects.MODULES["neuronxcc.nki.isa"])
_native.register(_sys.modules[__name__], "neuronxcc.nki.isa")
__getattr__ = _objects.names_of("neuronxcc.nki.isa")

from . import constants  # noqa: E402, F401
