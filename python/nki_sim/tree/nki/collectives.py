"""The names of `nki.collectives`, from the registry of the simulator, and replica groups."""

import sys as _sys

from nki_sim import _native, _objects
from nki_sim._objects import ReplicaGroup

globals().update(_objects.MODULES["nki.collectives"])
__all__ = ["ReplicaGroup", *_objects.MODULES["nki.collectives"]]
_native.register(ReplicaGroup, "nki.collectives.ReplicaGroup")
_native.register(_sys.modules[__name__], "nki.collectives")
