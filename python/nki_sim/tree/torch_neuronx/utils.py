"""The target of the process."""

from nki_sim import _native

__all__ = ["get_platform_target"]


def get_platform_target():
    """The default target of kernels: `trn1`, `trn2` or `trn3`. The environment decides, else it is `trn2`."""
    return _native.target()
