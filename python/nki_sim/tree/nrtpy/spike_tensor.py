"""Arrays in the memory of the device, by the former name of the module."""

from nki_sim._nrtpy import NrtpyTensor as SpikeTensor

__all__ = ["SpikeTensor"]
