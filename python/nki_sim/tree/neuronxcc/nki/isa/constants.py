"""The enums of `neuronxcc.nki.isa`."""

from nki_sim import _objects

globals().update({name: _objects.MODULES["neuronxcc.nki.isa"][name] for name in ("dge_mode", "engine", "oob_mode")})
