"""What `neuronxcc.nki.language.constants` has for kernels."""

import numpy as _np

from nki_sim import _native


def sizeinbytes(dtype):
    """Bytes of an element."""
    return _np.dtype(dtype).itemsize


_native.register(sizeinbytes, "neuronxcc.nki.language.constants.sizeinbytes")
