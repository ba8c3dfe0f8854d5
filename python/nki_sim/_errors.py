"""What can go wrong, as exceptions."""

import builtins
import json


class SimError(Exception):
    """Base of all exceptions of nki_sim."""


class NkiValidationError(Exception):
    """A kernel asks for what the machine cannot do: `nisa.NkiValidationError`, which code written for the SDK catches."""


class KernelError(SimError):
    """A kernel is wrong. The message is the rendered diagnostic.

    If Python or the SDK has a class for the same mistake, the exception is of that class, too: an `assert` of the kernel that
    fails is a `KernelError` and an `AssertionError`, an operand that the machine does not take a `nisa.NkiValidationError`.
    """

    #: All findings as dicts: id, severity, message, file, line, column, notes, help, labels.
    diagnostics = ()
    _python_class = ""

    def __reduce__(self):
        # The classes are made here; another process makes its own.
        return kernel_error, (str(self.args[0]), self._python_class, json.dumps(self.diagnostics))

    @property
    def _first(self):
        return next((d for d in self.diagnostics if d["severity"] == "error"), {})

    @property
    def slug(self):
        """The kind of the first error, for `nki-sim explain`."""
        return self._first.get("id")

    @property
    def text(self):
        """One sentence: what is wrong."""
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
    """An argument that no kernel can take: an empty array, say."""


class ArgumentTypeError(SimError, TypeError):
    """An argument of a type that no kernel can take."""


class NoSourceError(SimError, OSError):
    """A kernel whose source text cannot be found."""


class OutsideKernelError(SimError, RuntimeError):
    """An instruction was called outside of a kernel."""


class KernelWarning(UserWarning):
    """A finding about a kernel that is no error."""


_classes = {}


def kernel_error(rendered, python_class, diagnostics):
    """The exception for these diagnostics (JSON text); `python_class` is Python's name for the mistake."""
    base = NkiValidationError if python_class == "NkiValidationError" else getattr(builtins, python_class, None)
    usable = isinstance(base, type) and issubclass(base, Exception) and base is not Exception
    if not usable or issubclass(base, UnicodeError):
        cls = KernelError
    elif python_class not in _classes:
        cls = _classes[python_class] = type(f"Kernel{python_class}", (KernelError, base), {"__module__": "nki_sim"})
    else:
        cls = _classes[python_class]
    # KeyError shows the repr of its argument; the others their text.
    error = cls(rendered) if base is not KeyError else cls(_Text(rendered))
    error.diagnostics = tuple(json.loads(diagnostics))
    error._python_class = python_class
    return error


class _Text(str):
    def __repr__(self):
        return str(self)
