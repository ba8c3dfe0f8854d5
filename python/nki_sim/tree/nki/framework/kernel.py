"""The class of kernels."""

from nki_sim._kernel import Kernel

__all__ = ["Kernel"]
