"""The names of `neuronxcc.nki.language.constants` that kernels use."""

import numpy as _np

from nki_sim import _native


def sizeinbytes(dtype):
    """The size of an element in bytes."""
    return _np.dtype(dtype).itemsize


_native.register(sizeinbytes, "neuronxcc.nki.language.constants.sizeinbytes")
