"""Limits of this process: memory, and the capacity of SBUF and PSUM."""

from . import _native

_set = {"max_memory": None, "capacity": None}


def configure(*, max_memory=..., capacity=...):
    """Sets limits for all kernels of this process. What is not given stays; None restores the default.

    :param max_memory: most memory that a kernel may use while it is compiled, and its tensors while it runs: "8GiB", "50%" or a number of
        bytes. Without it NKI_SIM_MAX_MEMORY decides, else half of the memory that is available.
    :param capacity: "warn" runs kernels that do not fit into SBUF or PSUM, and warns; their latencies are not valid. "error" refuses them.
        Without it NKI_SIM_CAPACITY decides, else it is an error.
    """
    new = dict(_set)
    if max_memory is not ...:
        new["max_memory"] = None if max_memory is None else str(max_memory)
    if capacity is not ...:
        new["capacity"] = capacity
    _native.set_limits(new["max_memory"], new["capacity"])
    _set.update(new)
