"""NKI kernels on XLA tensors."""

from . import ops

__all__ = ["ops"]
