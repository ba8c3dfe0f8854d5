"""Stepping through kernels: detecting a debugger, hiding specialisation from it, and displaying
values."""

import contextlib
import io
import os
import sys
import threading
import types

import numpy as np

from . import _arrays, _native, _source
from ._errors import KernelError, SimError

#: Modules of debuggers that do not use `bdb`.
_DEBUGGERS = ("pydevd", "_pydevd", "debugpy", "_debugpy")

#: `sys.monitoring`; None before Python 3.12, where each failed lookup would raise and cost as much
#: as binding the arguments of a call.
_MONITORING = getattr(sys, "monitoring", None)


def attached():
    """Whether a debugger follows this thread. Coverage tools and profilers do not count."""
    function = sys.gettrace()
    if function is not None:
        bdb = sys.modules.get("bdb")
        owner = getattr(function, "__self__", None)
        if bdb is not None and isinstance(owner, bdb.Bdb):
            return True
        module = getattr(function, "__module__", None) or type(function).__module__
        if module.startswith(_DEBUGGERS):
            return True
    return _MONITORING is not None and _MONITORING.get_tool(_MONITORING.DEBUGGER_ID) is not None


def breaks(function):
    """Whether a function, or one defined in it, names `breakpoint`, and breakpoints are on."""
    return names_breakpoint(function.__code__) and breakpoints_are_on()


def names_breakpoint(code):
    """Whether code, or code defined in it, names `breakpoint`."""
    return "breakpoint" in code.co_names or any(names_breakpoint(c) for c in code.co_consts if isinstance(c, types.CodeType))


def breakpoints_are_on():
    """Whether the environment leaves breakpoints enabled."""
    return os.environ.get("PYTHONBREAKPOINT") != "0"


class _Shared:
    """A process-wide object that is replaced while at least one thread needs the replacement."""

    def __init__(self, replace, restore):
        self._replace, self._restore = replace, restore
        self._lock = threading.Lock()
        self._users = 0

    def __enter__(self):
        with self._lock:
            if self._users == 0:
                self._kept = self._replace()
            self._users += 1

    def __exit__(self, *_error):
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._restore(self._kept)


class _ThisThread(threading.local):
    #: The `Breaks` that records the breakpoints of the kernel being specialised.
    breaks = None
    #: Whether the output of this thread is dropped.
    quiet = False
    #: Buffer for the output of this thread; None if the output is not captured.
    printed = None


_this_thread = _ThisThread()


def _replace_hook():
    kept = sys.breakpointhook

    def hook(*args, **kwargs):
        breaks = _this_thread.breaks
        if breaks is None or not _native.is_tracing():
            return kept(*args, **kwargs)
        breaks.hit = breaks.hit or os.environ.get("PYTHONBREAKPOINT") != "0"
        return None

    sys.breakpointhook = hook
    return kept, hook


def _restore_hook(replaced):
    kept, hook = replaced
    if sys.breakpointhook is hook:
        sys.breakpointhook = kept


_HOOK = _Shared(_replace_hook, _restore_hook)


class Breaks:
    """Records calls of `breakpoint()` in the kernel that this thread is specialising. The calls do
    nothing, because the values are not known yet."""

    def __init__(self):
        self.hit = False

    def __enter__(self):
        _HOOK.__enter__()
        self._outer, _this_thread.breaks = _this_thread.breaks, self
        return self

    def __exit__(self, *_error):
        _this_thread.breaks = self._outer
        _HOOK.__exit__()


class _Output:
    """Standard output, except for threads whose output is dropped or captured."""

    def __init__(self, kept):
        self._kept = kept

    def write(self, text):
        if _this_thread.quiet:
            return len(text)
        if _this_thread.printed is not None:
            return _this_thread.printed.write(text)
        return self._kept.write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        # Binary output and the output of child processes cannot be captured: they go to standard
        # error.
        around = _this_thread.printed is not None and name in ("buffer", "fileno")
        return getattr(sys.stderr if around else self._kept, name)


def _replace_output():
    kept = sys.stdout
    sys.stdout = _Output(kept)
    return kept, sys.stdout


def _restore_output(replaced):
    kept, output = replaced
    if sys.stdout is output:
        sys.stdout = kept


def _replace_callbacks():
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None or monitoring.get_tool(monitoring.DEBUGGER_ID) is None:
        return {}
    return {event: monitoring.register_callback(monitoring.DEBUGGER_ID, event, None) for event in _events(monitoring)}


def _restore_callbacks(callbacks):
    for event, callback in callbacks.items():
        sys.monitoring.register_callback(sys.monitoring.DEBUGGER_ID, event, callback)


_OUTPUT = _Shared(_replace_output, _restore_output)
_CALLBACKS = _Shared(_replace_callbacks, _restore_callbacks)


@contextlib.contextmanager
def hidden():
    """Hides this thread from its debugger and drops its output while the kernel is called again,
    step by step."""
    function, quiet = sys.gettrace(), _this_thread.quiet
    with _CALLBACKS, _OUTPUT:
        sys.settrace(None)
        _this_thread.quiet = True
        try:
            yield
        finally:
            _this_thread.quiet = quiet
            sys.settrace(function)


class Printed:
    """Captures what this thread prints to standard output. Only the command knows whether standard
    output is reserved for a file."""

    def __enter__(self):
        _OUTPUT.__enter__()
        self._outer, _this_thread.printed = _this_thread.printed, io.StringIO()
        return self

    def __exit__(self, *_error):
        self._text = _this_thread.printed.getvalue()
        _this_thread.printed = self._outer
        _OUTPUT.__exit__()

    def lines(self):
        """The lines of the captured output."""
        return self._text.removesuffix("\n").split("\n") if self._text else []

    def show(self):
        """Prints the captured output to standard error."""
        sys.stderr.write(self._text)
        sys.stderr.flush()


def _events(monitoring):
    return [event for name, event in vars(monitoring.events).items() if name.isupper() and name != "NO_EVENTS"]


def array(memory, shape, dtype, unwritten):
    """The elements of a tensor: an array, in which elements that were never written are masked."""
    values = _arrays.make(memory, shape, dtype, "numpy")
    if not unwritten:
        return values
    return np.ma.MaskedArray(values, np.frombuffer(unwritten, bool).reshape(shape))


def shown(text, value):
    """The text of a device value, followed by its contents."""
    if not isinstance(value, np.ndarray):
        return f"{text}: {'not set' if value is None else value}"
    if not isinstance(value, np.ma.MaskedArray):
        return f"{text}\n{_text(value)}"
    if value.mask.all():
        return f"{text}: nothing has written it"
    items = np.asarray(value.data, object)
    items[value.mask] = _Unwritten()
    return f"{text}\n{_text(items)}\n(?: nothing has written it)"


class _Unwritten:
    def __repr__(self):
        return "?"

    __str__ = __repr__


def _text(values):
    return np.array2string(values, separator=" ", threshold=200, edgeitems=3)


class Session:
    """A pdb session on a kernel. It starts at the given execution of a line, counted from 0."""

    def __init__(self, file, line, iteration):
        import pdb

        self._debugger = pdb.Pdb(nosigint=True)
        self._where = f"{_source.shown(file)}:{line}"
        problem = self._debugger.set_break(os.path.abspath(file), line)
        if problem:
            raise ValueError(f"--break {line}: {problem}")
        (self._breakpoint,) = self._debugger.get_breaks(os.path.abspath(file), line)
        self._breakpoint.ignore = self._iteration = iteration

    def begin(self):
        """Starts the debugger in this thread."""
        self._debugger.reset()
        self._debugger.botframe = sys._getframe()
        # Stop only at breakpoints.
        self._debugger.set_continue()
        sys.settrace(self._debugger.trace_dispatch)

    def end(self):
        """Stops the debugger, and reports if the breakpoint was not reached."""
        sys.settrace(None)
        hits = self._breakpoint.hits
        if hits <= self._iteration:
            once = "is executed once; the only iteration is 0"
            times = "is not executed" if hits == 0 else once if hits == 1 else f"is executed {hits} times; iterations are 0 to {hits - 1}"
            print(f"--break: line {self._where} {times}", file=sys.stderr)


def end_of_step(error, departed):
    """Handles the end of a kernel that was stepped through. Errors of the kernel itself are
    reported by its run."""
    if type(error).__name__ == "BdbQuit":
        raise SimError("the session has been ended")
    if departed is not None:
        print(f"{departed}: the kernel called a different instruction than when it was specialised; the run is that of the specialised kernel", file=sys.stderr)
    elif error is not None and not isinstance(error, KernelError):
        raise error
