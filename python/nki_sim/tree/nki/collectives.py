"""Collectives: functions for kernels, and the groups of ranks they work on."""

import sys as _sys

from nki_sim import _native
from nki_sim._objects import ReplicaGroup, function_of

_native.register(ReplicaGroup, "nki.collectives.ReplicaGroup")
_native.register(_sys.modules[__name__], "nki.collectives")
__getattr__ = function_of("nki.collectives")
