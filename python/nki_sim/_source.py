"""Finds the source text of functions.

The text of a kernel is kept from the moment at which its function is decorated or passed to
`nki.simulate`. Later changes of the file, of a variable or of linecache have no effect. Functions
that a kernel calls are located when they are first compiled, with a check that the text is the one
from which Python created them.
"""

import functools
import importlib.machinery
import inspect
import linecache
import os
import sys
import time
import types
import warnings

from . import _dependencies, _objects
from ._errors import KernelWarning, NoSourceError

#: Texts by name: the name of a file, or of code that has no file.
_texts = {}

#: Names of texts by the address of the code, which stays alive.
_files = {}

#: The names of the texts that contain a code, by first line and code: equal texts have equal code.
#: `_unsearched` names the texts that are not compiled for it yet.
_codes = {}
_unsearched = []

#: The addresses of code without a file for which the variables of the callers have been searched.
_searched = set()


def _process_start():
    """When this process started, in seconds since 1970."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):
        return time.time()


#: Files that have not been modified since this time are as Python read them. File systems may round
#: times to a second or two.
_START = _process_start() - 2


def remember(filename, text):
    """Registers the source text of code that was compiled with this file name."""
    if _texts.get(filename, text) != text:
        for known_names in _codes.values():
            known_names[:] = [name for name in known_names if name != filename]
    _texts[filename] = text
    _unsearched.append(filename)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)


def capture(function):
    """Keeps the current text of a function, if there is one. Called when a kernel is created.

    Warns if the file no longer has this function, which also happens if Python reuses the bytecode
    of an earlier version.
    """
    code, globals_ = function.__code__, function.__globals__
    if id(code) in _files:
        return
    current = _current(code, globals_)
    name = _locate(code, globals_, current)
    if current and globals_.get("__file__") == code.co_filename and not _is_from(current, _module_of(code, globals_), globals_):
        warnings.warn(
            f"Python runs an earlier version of kernel `{code.co_name}` than the one in {code.co_filename}: the file was changed after it "
            f"was loaded, or within the same second without a change of its length, which Python's bytecode cache does not notice. "
            f"Write each version to a file of its own, or call nki_sim.from_source(text)",
            KernelWarning,
            stacklevel=_dependencies.depth(),
        )
    if name is not None:
        _files[id(code)] = (code, name)


def file_of(function):
    """The name of the text of a function, for `text_of`; the name of the file if the text is
    missing or another one."""
    return of_code(function.__code__, function.__globals__)[0]


def of_code(code, globals_):
    """The name of the text of code that runs with these globals, and the text; the name of the file
    and None if the text is missing or another one."""
    known = _files.get(id(code))
    if known is None:
        name = _locate(code, globals_, _current(code, globals_))
        if name is None:
            return code.co_filename, None
        known = _files[id(code)] = (code, name)
    return known[1], _texts.get(known[1])


def text_of(name):
    """The text with this name; None if there is none."""
    return _texts.get(name)


#: The folder of the kernel's file, absolute and as the user gave it; None outside the command.
_given = None


def give(path):
    """Notes the path of the kernel's file as the user gave it, for `shown`."""
    global _given
    _given = (os.path.dirname(os.path.abspath(path)), os.path.dirname(path))


def shown(name):
    """The name of a text as the command's reports show it. A file in the folder of the kernel's
    file is shown with the folder that the user gave, another file below the working directory with
    a relative path. Outside the command, the name is unchanged."""
    if _given is None or not os.path.isabs(name):
        return name
    folder, given = _given
    for start, prefix in ((folder, given), (os.getcwd(), "")):
        if name.startswith(os.path.join(start, "")):
            return os.path.join(prefix, name[len(os.path.join(start, "")) :])
    return name


def names():
    """The names of all texts: those of files, and of code that has no file."""
    return list(_texts)


def _current(code, globals_):
    """The text that the file of code has now; empty if there is none."""
    linecache.checkcache(code.co_filename)
    # The module's globals are needed to find lines of files in archives.
    return "".join(linecache.getlines(code.co_filename, globals_))


def _locate(code, globals_, text):
    """Finds and keeps the text of code, whose file has this text; returns its name."""
    filename = code.co_filename
    if text and _is_from(text, code, globals_):
        return _keep(filename, text)
    # The file changed after a kernel was created from it, or the text has no file.
    while _unsearched:
        name = _unsearched.pop()
        for one in _codes_of(_texts[name], name):
            _codes.setdefault((one.co_firstlineno, one), []).append(name)
    with_code = lambda one: _codes.get((one.co_firstlineno, one), ())
    has_file = os.path.exists(filename)
    found = [name for name in with_code(code) if not has_file or name == filename or name.startswith(f"{filename} (version ")]
    # Several texts may define this function: the one of the other functions of the namespace, rather than a file that happens to have it.
    others = [value.__code__ for value in globals_.values() if isinstance(value, types.FunctionType) and value.__globals__ is globals_]
    others = [one for one in others if one.co_filename == filename and one is not code]
    shared = {name: sum(name in with_code(one) for one in others) for name in found}
    found = [name for name in found if shared[name] or not others or name == filename or not os.path.exists(name)]
    return max(found, key=lambda name: (shared[name], not os.path.exists(name)), default=None)


def _keep(filename, text):
    """The name under which the text of a file is kept: that of the file, unless another text (from
    before a change) has it."""
    name, version = filename, 1
    while _texts.get(name, text) != text:
        version += 1
        name = f"{filename} (version {version})"
    if name not in _texts:
        _texts[name] = text
        _unsearched.append(name)
    return name


def _is_from(text, code, globals_):
    """Whether the text of a file is still the one from which Python created the code."""
    filename = code.co_filename
    try:
        if os.stat(filename).st_mtime < _START:
            return True
    except OSError:
        # No file: the linecache entry was made for this code.
        return True
    loader = globals_.get("__loader__")
    if loader is not None and type(loader) is not importlib.machinery.SourceFileLoader:
        # The code differs from the compiled text, as with pytest's asserts. The evaluator compares
        # name, line and parameters.
        return True
    return _contains(text, code)


def _module_of(code, globals_):
    """The code of the module that Python is running with these globals; the given code outside it."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is globals_ and frame.f_code.co_name == "<module>":
            return frame.f_code
        frame = frame.f_back
    return code


def require(function):
    """Finds the text of a kernel. Raises `NoSourceError` if there is none.

    Code from `exec(text)` has no file. Tools that generate kernels have the text in a variable when
    they create or call them. The local variables of the callers are therefore searched, and a text
    is used only if compiling it yields exactly this function.
    """
    if not search(function):
        filename = function.__code__.co_filename
        raise NoSourceError(
            f"the source of kernel `{function.__name__}` cannot be found (Python says {filename}); "
            f"define it in a file, make it from its text with nki_sim.from_source(text), or register the text of exec() in linecache"
            + ("; the file was changed after Python loaded it" if os.path.exists(filename) else "")
        )


def search(function):
    """Keeps the text of a function, even if only a local variable of a caller has it; returns
    whether it was found."""
    capture(function)
    code = function.__code__
    has_file = os.path.exists(code.co_filename) or bool(linecache.getlines(code.co_filename, function.__globals__))
    if id(code) in _files and (has_file or id(code) in _searched):
        return True
    if inspect.isfunction(function) and os.path.exists(code.co_filename):
        return False
    # All texts that have the function: it may be in several, of which only one has what it calls.
    found, frame = False, sys._getframe(1)
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, str) and code.co_name in value and _contains(value, code):
                _keep(f"<source of {code.co_name}>", value)
                found = True
        frame = frame.f_back
    name = _locate(code, function.__globals__, _current(code, function.__globals__)) if found else None
    if name is not None:
        _files[id(code)] = (code, name)
    if id(code) in _files:
        _searched.add(id(code))
    return id(code) in _files


def _contains(text, code):
    """Whether the compiled text contains this code."""
    return any(one == code and one.co_firstlineno == code.co_firstlineno for one in _codes_of(text, code.co_filename))


@functools.lru_cache(maxsize=8)
def _codes_of(text, filename):
    """The code of a text and of all functions and classes in it; nothing if it cannot be compiled."""
    try:
        found = [compile(text, filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return ()
    for one in found:
        found.extend(c for c in one.co_consts if hasattr(c, "co_code"))
    return tuple(found)


def warn_of_replaced(function, chosen):
    """Warns that the evaluator, which reads the source, does not call the functions with which a test has replaced those of `nki`. `chosen` tells
    whether the environment chooses the evaluator."""
    replaced = _objects.replaced()
    own = _dependencies.names(function.__code__) if replaced else ()
    names = [name for name in replaced if name.rpartition(".")[2] in own]
    if names:
        text = f"{function.__name__}: the built-in evaluator reads the source of this kernel and does not see that {', '.join(names)} has been replaced"
        if chosen:
            text += "; unset NKI_COMPILER_FRONTEND, so that Python executes the kernel"
        warnings.warn(text, KernelWarning, stacklevel=_dependencies.depth())
