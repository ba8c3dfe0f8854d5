"""Options of the decorators: `nki.jit`, and those of `neuronxcc.nki`."""

import warnings

from . import _native
from ._dependencies import depth
from ._errors import KernelWarning


def warn_of_unknown(decorator, options):
    """Warns of options that no decorator has: a misspelled option would have no effect.
    docs/python.md lists the known ones."""
    for name in options:
        if message := _native.unknown_option(decorator, name):
            warnings.warn(message, KernelWarning, stacklevel=depth())
