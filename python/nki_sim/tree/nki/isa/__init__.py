"""The names of `nki.isa`, from the registry of the simulator."""

import sys as _sys

from nki_sim import _native, _objects

globals().update(_objects.MODULES["nki.isa"])
__all__ = list(_objects.MODULES["nki.isa"])
_native.register(_sys.modules[__name__], "nki.isa")
__getattr__ = _objects.names_of("nki.isa")

from . import constants  # noqa: E402, F401
