"""The element types of `nki.language`."""

import sys as _sys

from nki_sim import _native, _objects

globals().update({k: v for k, v in _objects.MODULES["nki.language"].items() if isinstance(v, _objects.DType)})
_native.register(_sys.modules[__name__], "nki.language")
