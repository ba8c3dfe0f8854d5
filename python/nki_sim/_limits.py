"""Settings of this process: memory, steps, the capacity of SBUF and PSUM, levels of findings."""

import operator
from typing import Any

from . import _levels, _native

_set = {"max_memory": None, "capacity": None, "max_steps": None}
_lists = {"deny": None, "warn": None, "allow": None}


def capacity():
    """The capacity set with `configure` for kernels that do not fit into SBUF or PSUM, or None."""
    return _set["capacity"]


def _steps(value):
    """A valid limit of steps, or None."""
    if value is None:
        return None
    try:
        steps = operator.index(value)
    except TypeError:
        steps = 0
    if isinstance(value, bool) or not 1 <= steps < 2**64:
        raise ValueError(f"max_steps={value!r}: the limit of steps is an integer, at least 1")
    return steps


def configure(*, max_memory: Any = ..., max_steps: Any = ..., capacity: Any = ..., deny: Any = ..., warn: Any = ..., allow: Any = ...):
    """Sets defaults for all kernels of this process. Omitted settings keep their value; None
    restores the default.

    :param max_memory: the most memory that compiling a kernel, and its tensors during a run, may
        use: "8GiB", "50%" or a number of bytes. By default NKI_SIM_MAX_MEMORY decides, else half of
        the available memory.
    :param max_steps: statements, iterations and calls of the built-in evaluator after which a kernel is aborted, and
        instructions in dynamic loops; by default 50 million and 4 million.
    :param capacity: "warn" runs kernels that exceed SBUF or PSUM, and warns; their latencies are
        not valid. "error" rejects them. By default NKI_SIM_CAPACITY decides, else "error".
    :param deny: findings that raise: slugs, classes (`bug`, `suspicious`, `strict`) or `warnings`,
        as a comma-separated string or a list.
    :param warn: findings that are warnings.
    :param allow: findings that are dropped.
    :raises ValueError: for an unknown limit or entry, for an entry that allows an error, and for an
        entry in two lists. No setting is changed then.
    """
    lists = {name: old if new is ... else new for (name, old), new in zip(_lists.items(), (deny, warn, allow))}
    _levels.check("configure", **lists)
    new = dict(_set)
    if max_memory is not ...:
        new["max_memory"] = None if max_memory is None else str(max_memory)
    if capacity is not ...:
        new["capacity"] = capacity
    if max_steps is not ...:
        new["max_steps"] = _steps(max_steps)
    _native.set_limits(new["max_memory"], new["capacity"], new["max_steps"])
    _set.update(new)
    _levels.set_source("configure", **lists)
    _lists.update(lists)
