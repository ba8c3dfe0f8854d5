"""The memories of `nki.language`, and what they have in common."""

import sys as _sys

from nki_sim import _native, _objects

_NAMES = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm", "is_hbm", "is_on_chip", "is_psum", "is_sbuf")
globals().update({name: _objects.MODULES["nki.language"][name] for name in _NAMES})
__all__ = list(_NAMES)
_native.register(_sys.modules[__name__], "nki.language")
