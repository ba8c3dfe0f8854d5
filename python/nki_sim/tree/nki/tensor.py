"""The tensor class, for annotations."""

from nki_sim._objects import NkiTensor

__all__ = ["NkiTensor"]
