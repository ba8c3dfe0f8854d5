"""Names for annotations."""

import sys as _sys

from nki_sim import _native
from nki_sim._objects import NkiTensor, function_of

tensor = mutable_tensor = NkiTensor
# `nt.tensor[nt.mutable]` is `nt.mutable_tensor`.
mutable = NkiTensor
scalar = function_of("neuronxcc.nki.typing")("scalar")
_native.register(_sys.modules[__name__], "neuronxcc.nki.typing")
