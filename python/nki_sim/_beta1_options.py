"""Options of the decorators of `neuronxcc.nki`: validation, and combination where decorators are
nested."""

import operator
import os
import types

from . import _dependencies
from ._errors import ArgumentTypeError

#: What a call does, by the `mode=` of `jit`.
MODES = {
    **dict.fromkeys(("auto", "baremetal", "simulation", "jax", "torchxla", "trace"), "run"),
    "benchmark": "benchmark",
    "profile": "profile",
}

#: Options that are counts, with their minimum.
_COUNTS = {"warmup": 0, "iters": 1, "profile_nth": 1, "num_execs": 1}


def mode_of(name):
    """What a call does with this `mode=` of `jit`.

    :raises ArgumentTypeError: for another mode.
    """
    try:
        return MODES[name]
    except (KeyError, TypeError):
        raise ArgumentTypeError(f"nki.jit(mode={name!r}): the modes are {', '.join(MODES)}") from None


def nested(name, mode, options, inner):
    """The mode and the options of a decorator applied to a kernel that already has one.

    A benchmark or a profile keeps its mode under `jit`, `trace` and `baremetal`, which only mark
    the function as a kernel. If both decorators have an option, the outer value counts.

    :raises ArgumentTypeError: for a benchmark of a profile, and vice versa.
    """
    if mode != "run" and inner._mode not in ("run", mode):
        raise ArgumentTypeError(
            f"nki.{mode}(nki.{inner._mode}({name})): a call measures a kernel in one way, so one of the two would have no effect; "
            f"leave nki.{inner._mode} out, or make two kernels of the function"
        )
    return (mode if mode != "run" else inner._mode), {**inner._options, **options}


def check(mode, options):
    """Checks the options that are counts.

    :raises ArgumentTypeError: for a value that is not a number.
    :raises ValueError: for a number below the minimum.
    """
    decorator = f"nki.{mode}" if mode != "run" else "neuronxcc.nki"
    for name, least in _COUNTS.items():
        value = options.get(name)
        if value is None:
            continue
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is None:
            raise ArgumentTypeError(f"{decorator}: {name}={value!r} is of type {type(value).__name__}; give an integer, {least} or more")
        if number < least:
            raise ValueError(f"{decorator}: {name}={number} is below {least}; give an integer, {least} or more")


def executions(options):
    """The numbers of the executions that are profiled: each `profile_nth`-th of `num_execs`.

    :raises ValueError: if there is none.
    """
    nth, count = options.get("profile_nth") or 1, options.get("num_execs")
    if count is not None and count < nth:
        raise ValueError(f"nki.profile: num_execs={count} ends before execution profile_nth={nth}, so none is profiled; give num_execs={nth} or more")
    return range(nth, (nth if count is None else count) + 1, nth)


def files_of(options):
    """The files of a profile: of the program, of the profiles, and of their reports, each a list of
    paths.

    :raises ValueError: for a directory that is missing or relative, if two contents would go to one
        file, or if a file exists that must not be overwritten.
    """
    folder = options.get("working_directory")
    if folder is None:
        raise ValueError("nki.profile needs working_directory=, the absolute path of a directory for its files")
    if not isinstance(folder, (str, os.PathLike)) or not os.path.isabs(folder):
        raise ValueError(f"nki.profile: working_directory={folder!r} is not an absolute path; give one, as os.path.abspath({folder!r}) makes it")
    neff = os.path.join(folder, options.get("save_neff_name") or "file.neff")
    stem, ending = os.path.splitext(options.get("save_trace_name") or "profile.ntff")
    stems = [stem if n == 1 else f"{stem}_exec_{n}" for n in executions(options)]
    traces = [os.path.join(folder, one + ending) for one in stems]
    reports = [os.path.join(folder, "json_reports", f"{one}_profile.json") for one in stems]
    different(neff, *traces)
    if options.get("overwrite") is False:
        present = [file for file in (neff, *traces, *reports) if os.path.exists(file)]
        if present:
            raise FileExistsError(f"nki.profile: {present[0]} exists; pass overwrite=True to replace it")
    return neff, traces, reports


def different(neff, *traces):
    """Checks that the program and the profiles go to different files.

    :raises ValueError: if one would overwrite the other.
    """
    for trace in traces:
        if neff and trace and os.path.realpath(neff) == os.path.realpath(trace):
            raise ValueError(f"save_neff_name={neff!r} and save_trace_name={trace!r} are one file: the profile would replace the program")


def is_older_of_both(func):
    """Whether the file of a kernel imports both languages, but the kernel itself uses only modules of
    `neuronxcc.nki`."""
    globals_, code = getattr(func, "__globals__", {}), getattr(func, "__code__", None)
    package_of = lambda value: value.__name__.partition(".")[0] if isinstance(value, types.ModuleType) else None
    if code is None or not any(package_of(value) == "nki" for value in globals_.values()):
        return False
    used = {package_of(globals_.get(name)) for name in _dependencies.names(code)}
    return "neuronxcc" in used and "nki" not in used
