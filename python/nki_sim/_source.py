"""Where the source text of a function is.

A kernel's text is kept from the moment at which its function is decorated or passed to `nki.simulate`: what happens to the file, to a variable or
to linecache afterwards does not matter. Functions that a kernel calls are found when they are first compiled, together with a check that the
text is the one from which Python made them.
"""

import importlib.machinery
import inspect
import linecache
import os
import sys
import time

from ._errors import NoSourceError

#: Texts by name: that of a file, or of code that has no file.
_texts = {}

#: Names of texts by the address of the code, which is kept.
_files = {}


def _process_start():
    """When this process started, in seconds since 1970."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):
        return time.time()


#: Files that have not changed since then are as Python read them. File systems may keep times in steps of a second or two.
_START = _process_start() - 2


def remember(filename, text):
    """Makes text the source of code that was compiled with this file name."""
    _texts[filename] = text
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)


def capture(function):
    """Keeps the text of a function as it is now, if there is one. Called when a kernel is made."""
    code = function.__code__
    if id(code) in _files or (name := _locate(function)) is None:
        return
    _files[id(code)] = (code, name)


def file_of(function):
    """The name of the text of a function, as `text_of` takes it; the file's name if there is no text, or another one."""
    code = function.__code__
    known = _files.get(id(code))
    if known is not None:
        return known[1]
    name = _locate(function)
    if name is None:
        return code.co_filename
    _files[id(code)] = (code, name)
    return name


def text_of(name):
    """The text of this name; None if there is none."""
    return _texts.get(name)


def _locate(function):
    """Finds the text of a function and keeps it; gives its name."""
    code = function.__code__
    filename = code.co_filename
    linecache.checkcache(filename)
    # With the module's globals, lines of files in archives are found, too.
    text = "".join(linecache.getlines(filename, function.__globals__))
    if text and _is_from(text, function):
        return _keep(filename, text)
    # The file was changed, and a kernel was made from it before; or the text has no file.
    known = [name for name in _texts if name == filename or name.startswith(f"{filename} (version ") or not os.path.exists(filename)]
    return next((name for name in known if _contains(_texts[name], code)), None)


def _keep(filename, text):
    """The name under which this text of a file is kept: the file's, unless that has another text already (of before a change)."""
    name, version = filename, 1
    while _texts.setdefault(name, text) != text:
        version += 1
        name = f"{filename} (version {version})"
    return name


def _is_from(text, function):
    """Whether the text of a function's file is still the one from which Python made the function."""
    filename = function.__code__.co_filename
    try:
        if os.stat(filename).st_mtime < _START:
            return True
    except OSError:
        # No file: what linecache has was put there for this code.
        return True
    loader = getattr(sys.modules.get(function.__module__), "__loader__", None)
    if loader is not None and type(loader) is not importlib.machinery.SourceFileLoader:
        # The code is not what the text compiles to, as with pytest's asserts. The evaluator compares name, line and parameters.
        return True
    return _contains(text, function.__code__)


def require(function):
    """Finds the text of a kernel.

    Code that came from `exec(text)` has no file. Tools that generate kernels have the text in a variable when they make or call them: it is
    looked for in the callers' local variables, and taken only if compiling it gives this very function.
    """
    if not search(function):
        filename = function.__code__.co_filename
        raise NoSourceError(
            f"the source of kernel `{function.__name__}` cannot be found (Python says {filename}); "
            f"define it in a file, or make it from its text with nki_sim.from_source(text)"
            + ("; the file was changed after Python had loaded it" if os.path.exists(filename) else "")
        )


def search(function):
    """Keeps the text of a function, also if only a local variable of a caller has it; gives whether it was found."""
    capture(function)
    code = function.__code__
    if id(code) in _files:
        return True
    if inspect.isfunction(function) and os.path.exists(code.co_filename):
        return False
    frame = sys._getframe(1)
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, str) and code.co_name in value and _contains(value, code):
                _files[id(code)] = (code, _keep(f"<source of {code.co_name}>", value))
                return True
        frame = frame.f_back
    return False


def _contains(text, code):
    """Whether compiling the text gives this code."""
    try:
        todo = [compile(text, code.co_filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return False
    while todo:
        one = todo.pop()
        if one == code and one.co_firstlineno == code.co_firstlineno:
            return True
        todo.extend(c for c in one.co_consts if hasattr(c, "co_code"))
    return False
