"""Names of the compiler that scripts import. nki_sim compiles kernels when they are called."""

import importlib as _importlib
import sys as _sys

from nki_sim import _native
from nki_sim._config import AddressRotation, CompileConfig, SpecializationConfig  # noqa: F401

_native.register(_sys.modules[__name__], "nki.compiler")


def __getattr__(name):
    if name in ("driver", "frontend", "ncc_driver", "target"):
        return _importlib.import_module(f"{__name__}.{name}")
    from nki_sim._objects import function_of

    return function_of("nki.compiler")(name)
