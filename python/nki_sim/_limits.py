"""Settings of this process: memory, the capacity of SBUF and PSUM, levels of findings."""

from . import _levels, _native

_set = {"max_memory": None, "capacity": None}
_lists = {"deny": None, "warn": None, "allow": None}


def configure(*, max_memory=..., capacity=..., deny=..., warn=..., allow=...):
    """Settings for all kernels of this process. What is not given stays; None restores the default.

    :param max_memory: most memory that a kernel may use while it is compiled, and its tensors while it runs: "8GiB", "50%" or a number of
        bytes. Without it NKI_SIM_MAX_MEMORY decides, else half of the memory that is available.
    :param capacity: "warn" runs kernels that do not fit into SBUF or PSUM, and warns; their latencies are not valid. "error" refuses them.
        Without it NKI_SIM_CAPACITY decides, else it is an error.
    :param deny: findings that raise: slugs, classes (`bug`, `suspicious`, `strict`) or `warnings`, as a string (with commas) or a list.
    :param warn: findings that are warnings.
    :param allow: findings that are dropped.
    :raises ValueError: for a limit or a word that is unknown, an error that is to be allowed, a word in two lists. Nothing is set then.
    """
    lists = {name: old if new is ... else new for (name, old), new in zip(_lists.items(), (deny, warn, allow))}
    _levels.check("configure", **lists)
    new = dict(_set)
    if max_memory is not ...:
        new["max_memory"] = None if max_memory is None else str(max_memory)
    if capacity is not ...:
        new["capacity"] = capacity
    _native.set_limits(new["max_memory"], new["capacity"])
    _set.update(new)
    _levels.set_source("configure", **lists)
    _lists.update(lists)
