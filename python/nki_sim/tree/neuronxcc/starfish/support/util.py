"""Comparison of host arrays."""

import numpy as np


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False, **_options):
    """Whether two arrays agree within the tolerances, compared in double precision."""
    a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))
