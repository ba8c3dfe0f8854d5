"""Where the source text of a function is."""

import linecache
import sys

_texts = {}


def remember(filename, text):
    """Makes text the source of code that was compiled with this file name."""
    _texts[filename] = text
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)


def locate(function):
    """The file of a function and the file's text; the text is None if there is none."""
    code = function.__code__
    filename = code.co_filename
    if filename in _texts:
        return filename, _texts[filename]
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)
    if lines:
        return filename, "".join(lines)
    return _from_callers(function)


def _from_callers(function):
    """The text that `exec` was given, if a caller still has it.

    Code that came from `exec(text)` has no file. Tools that generate kernels have the text in a variable when they call
    them. It is taken only if compiling it gives this very function.
    """
    code = function.__code__
    frame = sys._getframe(1)
    depth = 0
    while frame is not None and depth < 50:
        for value in list(frame.f_locals.values()):
            if isinstance(value, str) and "def " in value and code.co_name in value and _contains(value, code):
                name = f"<source of {code.co_name}>"
                _texts.setdefault(name, value)
                if _texts[name] != value:
                    name = f"<source of {code.co_name} {len(_texts)}>"
                    _texts[name] = value
                return name, value
        frame = frame.f_back
        depth += 1
    return code.co_filename, None


def _contains(text, code):
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
