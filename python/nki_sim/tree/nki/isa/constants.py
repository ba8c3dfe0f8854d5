"""The enums of `nki.isa` under their older module name."""

import enum as _enum
import sys as _sys

from nki_sim import _native, _objects

globals().update({k: v for k, v in _objects.MODULES["nki.isa"].items() if isinstance(v, _enum.EnumMeta)})
_native.register(_sys.modules[__name__], "nki.isa.constants")
