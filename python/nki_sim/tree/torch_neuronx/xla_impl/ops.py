"""NKI kernels on XLA tensors."""

from nki_sim._torch_neuronx import nki_jit

__all__ = ["nki_jit"]
