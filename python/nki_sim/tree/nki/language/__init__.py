"""The names of `nki.language`, from the registry of the simulator."""

import sys as _sys

from nki_sim import _native, _objects

globals().update(_objects.MODULES["nki.language"])
__all__ = list(_objects.MODULES["nki.language"])
_native.register(_sys.modules[__name__], "nki.language")
__getattr__ = _objects.names_of("nki.language")

from . import dtypes  # noqa: E402, F401
