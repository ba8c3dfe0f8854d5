"""Conversion of host arrays."""

from neuronxcc.nki.language import static_cast  # noqa: F401
