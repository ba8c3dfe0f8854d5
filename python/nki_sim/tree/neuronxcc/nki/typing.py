"""Names for annotations."""

import sys as _sys

from nki_sim import _native
from nki_sim._objects import NkiTensor

tensor = mutable_tensor = scalar = NkiTensor
# `nt.tensor[nt.mutable]` is `nt.mutable_tensor`.
mutable = NkiTensor
_native.register(_sys.modules[__name__], "neuronxcc.nki.typing")
