"""Conversion of host arrays."""

from nki_sim._beta1 import static_cast  # noqa: F401
