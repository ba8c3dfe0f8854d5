"""The drop-in package of older kernels: `neuronxcc.nki`, simulated. See nki_sim."""

from nki_sim._native import __version__  # noqa: F401

import logging as _logging

# The older package added a level above all others, which harnesses pass to logging.disable.
if not hasattr(_logging, "OFF"):
    _logging.OFF = _logging.CRITICAL + 10
