"""Stands in for KLR's Python package: what its language tests import. Kernels go to the simulator's compiler."""

from nki.language import NKIObject  # noqa: F401
