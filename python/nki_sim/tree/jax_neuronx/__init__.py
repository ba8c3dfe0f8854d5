"""The drop-in package `jax_neuronx`, with the function that calls NKI kernels from jax. See nki_sim."""

from nki_sim._jax_neuronx import nki_call

__all__ = ["nki_call"]
