"""Names of the compiler that scripts import. nki_sim compiles kernels when they are called."""

import sys as _sys

from nki_sim import _native
from nki_sim._config import AddressRotation, CompileConfig, SpecializationConfig  # noqa: F401

from . import frontend  # noqa: F401

_native.register(_sys.modules[__name__], "nki.compiler")


def __getattr__(name):
    from nki_sim._objects import function_of

    return function_of("nki.compiler")(name)
