"""The tracer's interface to Python: source texts of code, arguments and exceptions. Called by the
native module; not a user interface."""

import ast
import builtins
import copy
import ctypes
import dis
import functools
import os
import sys
import types

import numpy as np

from . import _native, _objects, _source
from ._dependencies import Snapshot, current  # noqa: F401  (the native half takes Snapshot here)
from ._errors import GROUP

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Code whose frames do not count as positions in a kernel: this package's, Python's machinery around
#: it, and NumPy's.
_OURS = (_PACKAGE, functools.__file__, "<frozen", os.path.dirname(os.path.abspath(np.__file__)) + os.sep)


def about_code(code, globals_):
    """About code: whether its frames count as no position in a kernel, the name of its text as reports
    show it, the text, the number of lines, the modules that it uses, the start and end of each
    instruction in the text, and the possible jump targets, in order."""
    filename = code.co_filename
    if filename.startswith(_OURS):
        return True, filename, None, 0, [], [], []
    name, text = _source.of_code(code, globals_)
    if hasattr(code, "co_positions"):
        positions = [(line, column, end, end_column) for line, end, column, end_column in code.co_positions()]
    else:
        positions = [(None, None, None, None)] * (len(code.co_code) // 2)
        for start, stop, line in code.co_lines():
            positions[start // 2 : stop // 2] = [(line, None, None, None)] * ((stop - start) // 2)
    lines = max((line for line, *_ in positions if line is not None), default=1)
    return False, _source.shown(name), text, lines, modules_of(globals_), positions, _targets(code)


#: The packages of the NKI language.
_API = {"nki", "neuronxcc"}


def modules_of(globals_):
    """The names of the modules among the globals, and of the modules of API functions among the
    globals. If none is part of the API, also the API modules among the globals of those modules."""
    modules = {value.__name__ for value in globals_.values() if isinstance(value, types.ModuleType)}
    modules |= {value.module for value in globals_.values() if isinstance(value, _native.Function)}
    if not any(name.split(".")[0] in _API for name in modules):
        known = [value for value in globals_.values() if isinstance(value, types.ModuleType)]
        within = {value.__name__ for module in known for value in vars(module).values() if isinstance(value, types.ModuleType)}
        modules |= {name for name in within if name.split(".")[0] in _API}
    return sorted(modules)


def _targets(code):
    """The offsets of instructions that may be jumped to, also by an exception; all offsets if the
    targets are not known."""
    targets = set(dis.findlabels(code.co_code))
    if sys.version_info >= (3, 11):
        parse = getattr(dis, "_parse_exception_table", None)
        if parse is None:
            return list(range(0, len(code.co_code), 2))
        targets.update(entry.target for entry in parse(code))
    return sorted(targets)


def parameters(code):
    """The names of the parameters of code."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return list(code.co_varnames[:count])


def read_once(values, names, carry):
    """The values of a loop whose body the older compiler evaluated once. `carry` gives the values
    of the variables with these names at the start of an iteration, and after the loop."""
    before = None
    for value in values:
        if before is None:
            before = _held(sys._getframe(1), names)
        else:
            _carry(sys._getframe(1), before, carry, False)
        yield value
    if before:
        _carry(sys._getframe(1), before, carry, True)


def _held(frame, names):
    """The values of those names and items (`s[0]`, `obj.name`) of a frame that the tracer can
    compare."""
    variables, held = frame.f_locals, {}
    for name in names:
        if name.isidentifier():
            found = (variables[name],) if name in variables else ()
        else:
            base, by, key = _parts(name)
            found = _item(variables.get(base, frame.f_globals.get(base)), by, key)
        if found and (found[0] is None or isinstance(found[0], (int, float, str, tuple, _native.Handle))):
            held[name] = found[0]
    return held


def _carry(frame, before, carry, ended):
    after = {name: carry(name, before[name], value, ended) for name, value in _held(frame, before).items()}
    _store(frame, {name: value for name, value in after.items() if name.isidentifier()})


@functools.lru_cache(maxsize=4096)
def _parts(text):
    """The base of an item, whether it is an attribute, an index or a key, and which."""
    item = ast.parse(text, mode="eval").body
    if isinstance(item, ast.Attribute):
        return item.value.id, "attribute", item.attr
    key = ast.literal_eval(item.slice)
    return item.value.id, "index" if isinstance(key, int) else "key", key


def _item(value, by, key):
    """An item or attribute that a list, a dict or an object holds, as a tuple; empty if there is
    none. Calls no code of the object."""
    if by == "attribute":
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return ()
        return (own[key],) if isinstance(own, (dict, types.MappingProxyType)) and key in own else ()
    if isinstance(value, dict):
        return (dict.__getitem__(value, key),) if dict.__contains__(value, key) else ()
    if by == "index" and isinstance(value, list) and -len(value) <= key < len(value):
        return (list.__getitem__(value, key),)
    return ()


def definition(function):
    """The name of the text of a function as reports show it, its name, its first line, and the
    names of its parameters; None for other callables."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return None
    code = function.__code__
    return _source.shown(_source.file_of(function)), code.co_name, code.co_firstlineno, parameters(code)


def items_of(function, wanted):
    """The items `(base, by, key)` of objects that a function uses, each as a tuple that is empty if
    there is none. The base is a variable of an enclosing function, a global, or a parameter with a
    default or the object of the method."""
    receiver, function = getattr(function, "__self__", None), getattr(function, "__func__", function)
    names = parameters(function.__code__)
    held = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            held[name] = cell.cell_contents
        except ValueError:
            pass
    defaults = function.__defaults__ or ()
    held.update(zip(function.__code__.co_varnames[function.__code__.co_argcount - len(defaults) :], defaults))
    held.update(function.__kwdefaults__ or {})
    if receiver is not None and names:
        held[names[0]] = receiver
    return [_item(held.get(base), by, key) for base, by, key in wanted]


def _store(frame, values):
    """Assigns these values to local variables of a frame."""
    variables = frame.f_locals
    variables.update(values)
    if sys.version_info < (3, 13):
        # Before Python 3.13, f_locals is a copy.
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def held_by_target(frame):
    """A list with the current value of the variable to which the result of the frame's current call
    is assigned, empty if it has none yet; None if the result is not assigned to a variable."""
    stored = _stored_after(frame.f_code, frame.f_lasti)
    if stored is None:
        return None
    name, is_global = stored
    variables = frame.f_globals if is_global else frame.f_locals
    return [variables[name]] if name in variables else []


@functools.lru_cache(maxsize=4096)
def _stored_after(code, offset):
    """The variable that the instruction after this offset assigns, and whether it is a global; None
    if it assigns none. Cached, because a kernel's loops query the same few instructions thousands
    of times."""
    after = next((one for one in dis.get_instructions(code) if one.offset > offset), None)
    if after is None or not after.opname.startswith(("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL")):
        return None
    # Python may fuse two stores into one instruction: the first name is that of the result.
    name = after.argval[0] if isinstance(after.argval, tuple) else after.argval
    return name, after.opname == "STORE_GLOBAL"


def named(module, name):
    """The Python object for a name of the API, in a module or an enum."""
    known = _objects.MODULES.get(module)
    if known is not None:
        return known[name]
    module, _, owner = module.rpartition(".")
    return _objects.MODULES[module][owner][name]


def run(function, arguments, inputs):
    """Calls a kernel's function with device tensors in place of the arrays among its arguments,
    which are pairs of parameter and value."""
    specialisation = current()
    if specialisation is None or specialisation.function is not function:
        return _call(function, arguments, inputs)
    specialisation.begin(arguments)
    result = _call(function, arguments, inputs)
    specialisation.returned(result)
    return result


def _call(function, arguments, inputs):
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    only = set(code.co_varnames[: code.co_posonlyargcount])
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    star = parameters(code)[len(names) :]
    values = {name: lend(value, name, inputs) for name, value in arguments}
    args, kwargs = [], {}
    rest = values.pop(star[0], ()) if code.co_flags & 4 else ()
    if code.co_flags & 8:
        kwargs.update(values.pop(star[-1], {}))
    # A wrapper's parameters may differ from those of the function whose signature it shows.
    takes_names = code.co_flags & 8
    for name in list(values):
        if name in only or name in positional and rest or name not in names and not takes_names:
            args.append(values.pop(name))
    return function(*args, *rest, **values, **kwargs)


def lend(value, name, inputs):
    """An argument with device tensors in place of its arrays; the argument itself if it contains
    none."""
    if name in inputs:
        return inputs[name]
    if not any(known.startswith(f"{name}.") for known in inputs):
        return value
    return _lend(value, name, inputs, {})


def _lend(value, name, inputs, done):
    if name in inputs:
        return inputs[name]
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, tuple):
        # The arrays of a NamedTuple have the names of its fields, as those of any other object.
        keys = getattr(value, "_fields", range(len(value)))
        items = [_lend(item, f"{name}.{key}", inputs, done) for key, item in zip(keys, value)]
        return value._make(items) if hasattr(value, "_make") else tuple(items)
    if isinstance(value, list):
        made = done[id(value)] = []
        made.extend(_lend(item, f"{name}.{i}", inputs, done) for i, item in enumerate(value))
        return made
    if isinstance(value, dict):
        made = done[id(value)] = copy.copy(value)
        for key, item in value.items():
            made[key] = _lend(item, f"{name}.{key}", inputs, done)
        return made
    fields = [known[len(name) + 1 :].split(".")[0] for known in inputs if known.startswith(f"{name}.")]
    if not fields:
        return value
    made = done[id(value)] = copy.copy(value)
    for field in dict.fromkeys(fields):
        # `setattr` fails for a frozen dataclass.
        object.__setattr__(made, field, _lend(getattr(value, field), f"{name}.{field}", inputs, done))
    return made


#: Diagnostics for Python's own exceptions; all others are `raised-exception`.
_SLUGS = {
    "IndexError": "index-out-of-range",
    "KeyError": "missing-key",
    "AttributeError": "no-attribute",
    "NameError": "undefined-name",
    "UnboundLocalError": "undefined-name",
    "ZeroDivisionError": "division-by-zero",
    "OverflowError": "integer-overflow",
    "ImportError": "import-error",
    "ModuleNotFoundError": "import-error",
    "TypeError": "type-error",
    "ValueError": "value-error",
    "RecursionError": "recursion-limit",
}

_RAISE = dis.opmap["RAISE_VARARGS"]


def about_error(error, at):
    """The kind of an exception with this traceback, its class, its text, and the frames that it
    passed, each (frame, instruction, name), outermost first. None if the exception is not an error
    of the kernel, is of a user-defined class, or is a group, which `except*` must be able to
    split."""
    cls = type(error)
    if not isinstance(error, Exception) or getattr(builtins, cls.__name__, None) is not cls or issubclass(cls, GROUP):
        return None
    entries = []
    while at is not None:
        frame = at.tb_frame
        if not frame.f_code.co_filename.startswith(_PACKAGE) and (not entries or not _is_library(frame.f_code)):
            entries.append((frame, at.tb_lasti, frame.f_code.co_name))
            last = at
        at = at.tb_next
    slug = _SLUGS.get(cls.__name__, "raised-exception")
    if cls is AssertionError:
        slug = "assertion-failed"
    elif entries and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE:
        slug = "raised-exception"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return slug, cls.__name__, text, entries


def _is_library(code):
    return code.co_filename.startswith((os.path.dirname(os.__file__) + os.sep, "<frozen"))
