"""Levels of findings: `allow` drops a finding, `warn` warns of it, `deny` makes the call raise.

Sources, the strongest first: arguments of a call, the command line (`nki-sim run script.py`,
pytest), `configure`, pytest's ini file, the variables NKI_SIM_DENY, NKI_SIM_WARN and NKI_SIM_ALLOW,
the project file, the defaults.
"""

import os

from . import _native
from ._errors import ArgumentTypeError

#: User-visible name of the lists of each source of the process, the strongest first; `{}` is the
#: level.
_NAMES = {
    "command": "--{}",
    "pytest": "--nki-sim-{}",
    "configure": "{}= of nki_sim.configure",
    "ini": "nki_sim_{} of pytest's ini file",
}

#: The sources that are set, by name, and the same in order, strongest first.
_process = {}
_sources = ()

#: Whether the command line requested strict findings.
_strict = False

#: Judges by everything that they depend on except project files, which are read once per process.
_judges = {}


def lists(named, deny, warn, allow):
    """A source, as its name and three tuples of entries; None if there is no list."""
    if deny is None and warn is None and allow is None:
        return None
    return named, *(_words(level, value) for level, value in (("deny", deny), ("warn", warn), ("allow", allow)))


def _words(level, value):
    words = () if value is None else (value,) if isinstance(value, str) else value
    try:
        words = tuple(words)
    except TypeError:
        words = (value,)
    for word in words:
        if not isinstance(word, str):
            raise ArgumentTypeError(f"{level}= takes a string or a list of strings, not {word!r}")
    return words


def check(which, deny, warn, allow):
    """The source with these lists; None if there is no list. Raises if a list is invalid."""
    given = lists(_NAMES[which], deny, warn, allow)
    if given is not None:
        _native.Judge(False, False, [given])
    return given


def set_source(which, deny, warn, allow, strict=False):
    """Sets one of the process's sources: `command`, `pytest`, `configure` or `ini`."""
    global _strict, _sources
    given = check(which, deny, warn, allow)
    if given is None:
        _process.pop(which, None)
    else:
        _process[which] = given
    _sources = tuple(_process[name] for name in _NAMES if name in _process)
    _strict = _strict or strict


def folder(function):
    """The folder of a function's file, whose configuration applies to its findings. None for a
    function from a notebook or a text, to which the current directory's applies."""
    file = function.__code__.co_filename
    return os.path.dirname(os.path.abspath(file)) if os.path.isfile(file) else None


def judge(kernel):
    """The judge that decides the levels of the findings of a `Kernel`."""
    at = kernel._folder if kernel._folder is not None else os.getcwd()
    sources = _sources if kernel._given is None else (kernel._given, *_sources)
    return _judge(kernel._close, kernel.strict or _strict, sources, at)


def of_program():
    """The judge for a compiled program, which belongs to no source file."""
    return _judge(False, False, _sources, os.getcwd())


def _judge(close, strict, sources, at):
    key = close, strict, sources, _native.variables("NKI_SIM_DENY", "NKI_SIM_WARN", "NKI_SIM_ALLOW"), at
    found = _judges.get(key)
    if found is None:
        found = _judges[key] = _native.Judge(close, strict, list(sources), os.path.join(at, "kernel.py"))
    return found


def of_job(deny, warn, allow, kernel=None):
    """The fields of a job for these lists, the levels of a `Kernel` and the configuration of this process."""
    fields, seen = {"deny": [], "warn": [], "allow": []}, set()
    own = None if kernel is None else kernel._given
    for source in (lists("", deny, warn, allow), own, *(_process.get(which) for which in _NAMES)):
        if source is None:
            continue
        named = set()
        for level, several in zip(fields, source[1:]):
            for word in (w.strip() for text in several for w in text.split(",")):
                if word not in seen:
                    fields[level].append(word)
                named.add(word)
        # An entry in two lists of one source is an error, which the job reports.
        seen |= named
    return {**fields, "strict": _strict or kernel is not None and bool(kernel.strict)}
