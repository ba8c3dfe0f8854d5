"""Runs a kernel as a function of NumPy arrays, as test harnesses do."""

from nki_sim._errors import ArgumentTypeError
from nki_sim._kernel import simulate

__all__ = ["simulate_kernel"]


def simulate_kernel(func, args=(), kwargs=None, lnc=None):
    """The result of `func(*args, **kwargs)` on `lnc` physical cores (a number or a tuple of one; by
    default NEURON_LOGICAL_NC_CONFIG, else 1). Arrays that the kernel writes are changed in place,
    views of other memory too."""
    if not isinstance(args, (tuple, list)):
        raise ArgumentTypeError(f"simulate_kernel(func, args): the arguments are a tuple, got {type(args).__name__}; for one argument write (x,)")
    if not isinstance(kwargs, (dict, type(None))):
        raise ArgumentTypeError(f"simulate_kernel(func, args, kwargs): a dict of arguments by name, got {type(kwargs).__name__}")
    kernel = simulate(func)
    if lnc is not None:
        kernel = kernel[lnc]
    return kernel(*args, **(kwargs or {}))
