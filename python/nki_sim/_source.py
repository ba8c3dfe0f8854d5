"""Where the source text of a function is."""

import linecache
import sys

from ._errors import NoSourceError

#: Texts by file name, of code that has no file.
_texts = {}


def remember(filename, text):
    """Makes text the source of code that was compiled with this file name."""
    _texts[filename] = text
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)


#: The file of each function's code seen so far, by the address of the code, which is kept.
_files = {}


def file_of(function):
    """The file of a function, as `text_of` takes it."""
    code = function.__code__
    known = _files.get(id(code))
    if known is None:
        known = _files[id(code)] = (code, _locate(function))
    return known[1]


def _locate(function):
    code = function.__code__
    filename = code.co_filename
    # With the module's globals, lines of files in archives are found, too.
    if filename in _texts or linecache.getlines(filename, function.__globals__):
        return filename
    return next((name for name, text in list(_texts.items()) if _contains(text, code)), filename)


def text_of(filename):
    """The text of a file; None if there is none."""
    if filename in _texts:
        return _texts[filename]
    linecache.checkcache(filename)
    return "".join(linecache.getlines(filename)) or None


def require(function):
    """Finds the text of a kernel.

    Code that came from `exec(text)` has no file. Tools that generate kernels have the text in a variable when they call them: it is looked
    for in the callers' local variables, and taken only if compiling it gives this very function.
    """
    filename = file_of(function)
    if text_of(filename) is not None:
        return
    code = function.__code__
    frame = sys._getframe(1)
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, str) and code.co_name in value and _contains(value, code):
                name = f"<source of {code.co_name} {len(_texts)}>"
                _texts[name] = value
                _files[id(code)] = (code, name)
                return
        frame = frame.f_back
    raise NoSourceError(
        f"the source of kernel `{function.__name__}` cannot be found (Python says {filename}); "
        f"define it in a file, or make it from its text with nki_sim.from_source(text)"
    )


def _contains(text, code):
    """Whether compiling the text gives this code."""
    try:
        todo = [compile(text, code.co_filename, "exec")]
    except (SyntaxError, ValueError):
        return False
    while todo:
        one = todo.pop()
        if one == code and one.co_firstlineno == code.co_firstlineno:
            return True
        todo.extend(c for c in one.co_consts if hasattr(c, "co_code"))
    return False
