"""NKI kernels in the graphs of `torch.compile`."""

from nki_sim._torch_neuronx import nki_op, wrap_nki

__all__ = ["nki_op", "wrap_nki"]
