"""Replaces KLR's Python package for its language tests. The simulator compiles the kernels."""

from nki.language import NKIObject  # noqa: F401
