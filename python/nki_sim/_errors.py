"""The exceptions of nki_sim."""

import builtins
import json
import os
import sys
import types


class SimError(Exception):
    """Base of all exceptions of nki_sim."""


class NkiValidationError(Exception):
    """An operand or operation that the machine does not support. Also `nisa.NkiValidationError`."""


class KernelError(SimError):
    """A kernel has an error. The message is the rendered diagnostic.

    The exception also belongs to the class that Python or the SDK has for the same error. A failed
    `assert` of the kernel is a `KernelError` and an `AssertionError`; an unsupported operand is a
    `nisa.NkiValidationError`.
    """

    #: All findings as dicts: id, severity, message, file, line, column, notes, help, labels.
    diagnostics = ()
    #: The exception of Python that ended the kernel, if one did.
    original = None
    #: Whether the kernel, when Python executed it, had changed an argument or something outside of it.
    _changed = False
    _python_class = ""

    def __reduce__(self):
        # These classes are created dynamically; another process has to create its own.
        return kernel_error, (str(self.args[0]), self._python_class, json.dumps(self.diagnostics))

    @property
    def _first(self):
        return next((d for d in self.diagnostics if d["severity"] == "error"), {})

    @property
    def slug(self):
        """The slug of the first error, for `nki-sim explain`."""
        return self._first.get("id")

    @property
    def text(self):
        """One sentence that states the error."""
        return self._first.get("message")

    @property
    def file(self):
        """File of the first error."""
        return self._first.get("file")

    @property
    def line(self):
        """Line of the first error."""
        return self._first.get("line")


class ArgumentError(SimError, ValueError):
    """An argument that kernels do not support, for example an empty array."""


class ArgumentTypeError(SimError, TypeError):
    """An argument of a type that kernels do not support."""


class NoSourceError(SimError, OSError):
    """The source text of a kernel cannot be found."""


class OutsideKernelError(SimError, RuntimeError):
    """An instruction was called outside a kernel."""


class KernelWarning(UserWarning):
    """A finding about a kernel that is not an error."""


_classes = {}

#: The files of the frames that read input at a prompt, and that call a kernel.
_PROMPT = os.path.join(os.path.dirname(os.__file__), "cmd.py")
_TRACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_trace.py")

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: The base class of exception groups (Python 3.11).
GROUP = getattr(builtins, "BaseExceptionGroup", ())


def _of_cause(name):
    return property(lambda self: getattr(self.original or self.__cause__, name, None))


#: Unicode errors take four or five arguments and derive their text from them. These classes take
#: the rendered text, and forward the attributes of their cause.
_OF_UNICODE = {
    "__init__": lambda self, rendered: None,
    "__str__": lambda self: self.args[0],
    **{name: _of_cause(name) for name in ("encoding", "object", "start", "end", "reason")},
}


def kernel_error(rendered, python_class, diagnostics):
    """The exception for diagnostics in JSON; `python_class` is the name of Python's class for the
    error."""
    base = NkiValidationError if python_class == "NkiValidationError" else getattr(builtins, python_class, None)
    usable = isinstance(base, type) and issubclass(base, Exception) and base is not Exception
    # An exception group cannot be constructed without its exceptions.
    if not usable or issubclass(base, GROUP):
        cls = KernelError
    elif python_class not in _classes:
        further = _OF_UNICODE if issubclass(base, UnicodeError) else {}
        cls = _classes[python_class] = type(f"Kernel{python_class}", (KernelError, base), {"__module__": "nki_sim", **further})
    else:
        cls = _classes[python_class]
    if _at_prompt():
        rendered = _message(json.loads(diagnostics)) or rendered
    # KeyError shows the repr of its argument; the other classes show its text.
    error = cls(rendered) if base is not KeyError else cls(_Text(rendered))
    error.diagnostics = tuple(json.loads(diagnostics))
    error._python_class = python_class
    return error


def _at_prompt():
    """Whether this was called from an expression typed at a debugger's prompt in a kernel. Such a
    call has no position in the kernel."""
    frame, prompt = sys._getframe(1), False
    while frame is not None:
        prompt = prompt or frame.f_code.co_filename == _PROMPT
        if frame.f_code.co_filename == _TRACE:
            return prompt
        frame = frame.f_back
    return False


def _message(diagnostics):
    """The first error as text, without the source excerpt."""
    for each in diagnostics:
        if each["severity"] == "error":
            return "\n".join([f"error[{each['id']}]: {each['message']}", *(f"  = help: {text}" for text in each["help"])])
    return None


def extend(error, rendered, diagnostics):
    """Replaces the text and the diagnostics of an exception of `kernel_error` with those of all
    findings."""
    error.args = (rendered if not isinstance(error, KeyError) else _Text(rendered),)
    error.diagnostics = tuple(json.loads(diagnostics))


class _Text(str):
    def __repr__(self):
        return str(self)


def _entries(at):
    """The entries of a traceback, outermost first."""
    while at is not None:
        yield at
        at = at.tb_next


def _of_users(at):
    """The entries of a traceback that are outside this package."""
    return [entry for entry in _entries(at) if not entry.tb_frame.f_code.co_filename.startswith((_PACKAGE, "<frozen"))]


def leave_out_ours(error):
    """Reduces the traceback of an exception that leaves the package to the user's frames: the calls
    that led to the kernel, which Python adds, then those in the kernel. Call it in an `except`
    block that ends with `raise`."""
    entries = list(_entries(error.__traceback__))
    frames = _of_users(error.__traceback__)
    if entries[-1:] != frames[-1:] and not isinstance(error, (SimError, ValueError, TypeError, ImportError, OSError)):
        # A bug in this package: show where.
        frames.append(entries[-1])
    if isinstance(error, KernelError) and error.__cause__ is not None:
        error.original = cause = error.__cause__
        frames += _of_users(cause.__traceback__)
        # Keep the kernel's own `raise ... from`.
        error.__cause__, error.__context__ = cause.__cause__, cause.__context__
        error.__suppress_context__ = cause.__suppress_context__
    elif isinstance(error, SimError) and error.__context__ is not None and not _of_users(error.__context__.__traceback__):
        error.__suppress_context__ = True
    following = None
    for entry in reversed(frames):
        following = types.TracebackType(following, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = following
