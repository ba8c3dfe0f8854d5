"""The drop-in package of older kernels: `neuronxcc.nki`, simulated. See nki_sim."""

from nki_sim._native import __version__  # noqa: F401
