"""The target that kernels are compiled for."""

from nki_sim import _native

__all__ = ["resolve_target", "target_to_nc_version"]

_VERSIONS = {"trn1": 2, "trn2": 3, "trn3": 4}


def resolve_target(target=None):
    """The canonical name of a target; without one, of the target that the environment selects."""
    return _native.target(target)


def target_to_nc_version(target):
    """The version of the NeuronCore: 2 for trn1, 3 for trn2, 4 for trn3."""
    return _VERSIONS[resolve_target(target)]
