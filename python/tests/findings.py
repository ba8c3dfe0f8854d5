"""The findings of a call."""

import warnings

import nki_sim


def warned(call):
    """The warnings of a call, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, nki_sim.KernelWarning)]
