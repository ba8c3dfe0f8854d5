"""The names of `neuronxcc.nki.language`, from the registry of the simulator, and those for host
code: `static_cast`, grids."""

import sys as _sys

from nki_sim import _beta1, _native, _objects

globals().update(_objects.MODULES["neuronxcc.nki.language"])
nc, spmd_dim, finfo = _beta1.nc, _beta1.spmd_dim, _beta1.finfo
static_cast = _beta1.StaticCast("neuronxcc.nki.language", "static_cast", static_cast.__doc__)
arange = _beta1.Arange("neuronxcc.nki.language", "arange", arange.__doc__)
mgrid = _beta1.Mgrid("neuronxcc.nki.language", "mgrid")
__all__ = sorted({*_objects.MODULES["neuronxcc.nki.language"], "nc", "spmd_dim", "static_cast"})
_native.register(_sys.modules[__name__], "neuronxcc.nki.language")
__getattr__ = _objects.names_of("neuronxcc.nki.language")
for _name in ("static_cast", "arange", "mgrid"):
    _native.register(globals()[_name], f"neuronxcc.nki.language.{_name}")
_objects.MODULES[__name__].update({_name: globals()[_name] for _name in ("finfo", "static_cast", "arange", "mgrid")})
