"""The dependencies of a compiled kernel, and what is recorded while its function runs."""

import array
import builtins
import collections
import contextlib
import dis
import enum
import functools
import hashlib
import inspect
import io
import os
import sys
import threading
import types
import warnings
import weakref

import numpy as np

from . import _native
from ._arrays import is_of_framework, package_of
from ._errors import ArgumentTypeError, KernelWarning

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Packages that do not change while kernels run; neither does the standard library.
_FIXED = {"numpy", "torch", "jax", "jaxlib", "ml_dtypes", "scipy", "pandas", "pytest", "_pytest", "nki", "nki_sim"}

_LIBRARY = os.path.dirname(os.__file__) + os.sep

#: Standard-library modules whose objects hold user values: `types.SimpleNamespace`,
#: `argparse.Namespace`, `collections.UserDict`.
_HOLDERS = {"types", "argparse", "optparse", "collections"}

#: Limit of the number of values per program; a program with more is compiled at each call.
_MOST = 200_000


def _is_fixed(name, module=None):
    """Whether the module of this name does not change while kernels run."""
    root = name.partition(".")[0]
    return root in _FIXED or root in sys.stdlib_module_names and root != "__main__" and _is_standard(module or sys.modules.get(root))


def _is_standard(module):
    """Whether a module with a standard-library name is the standard one. A user's file may be called `code.py` or `profile.py`."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module is None or getattr(getattr(module, "__spec__", None), "origin", None) in ("built-in", "frozen")
    return file.startswith(_LIBRARY) and "site-packages" not in file and "dist-packages" not in file


class _TooMany(Exception):
    pass


class _Iterator(Exception):
    """Raised for an iterator among the values: its remaining items are unknown."""


class _Missing:
    pass


class _Frozen:
    """Converts values to comparable forms."""

    _count = 0

    def _freeze(self, value, active, tensors):
        """A value in a form that can be compared later. With `tensors` (for arguments), arrays are
        skipped: their shapes and dtypes are compared elsewhere."""
        self._count += 1
        if self._count > 4 * _MOST:
            raise _TooMany
        cls = type(value)
        if cls is float:
            return "float", value.hex()
        if cls in _PLAIN:
            return cls, value
        if issubclass(cls, _native.Handle):
            return _TILE
        if tensors and _is_tensor(value):
            return _TENSOR
        if isinstance(value, (type, types.FunctionType, types.ModuleType)):
            return "is", _Same(value)
        own = _of_member(value) if isinstance(value, enum.Enum) else None
        if own == {}:
            return "is", _Same(value)
        if id(value) in active:
            return "cycle", active[id(value)]
        slots, has_dict, contains, is_array = _shape(cls)
        active = {**active, id(value): len(active)}
        if own is not None:
            return "member", _Same(value), _Pairs((name, self._freeze(item, active, tensors)) for name, item in own.items())
        if is_array:
            return self._array(value, active, tensors)
        content = self._content(value, active, tensors) if contains else None
        if slots or has_dict:
            own = _own(value, slots, has_dict)
            fields = _Pairs([(name, self._freeze(item, active, tensors)) for name, item in own.items()])
            return "fields", _Same(cls), content, fields
        if content is not None:
            return cls, content
        if hasattr(cls, "__next__") and not isinstance(value, io.IOBase):
            raise _Iterator
        return "is", _Same(value)

    def _array(self, value, active, tensors):
        array = np.ascontiguousarray(value)
        if array.dtype.hasobject:
            content = tuple(self._freeze(item, active, tensors) for item in array.ravel().tolist())
        else:
            # Keep only the hash: a kernel must not keep copies of the arrays of its module alive.
            content = hashlib.blake2b(array.view(np.uint8).data if array.size else b"").digest()
        return "array", array.dtype.str, np.shape(value), content

    def _content(self, value, active, tensors):
        """The comparable form of a container's items; None if the value is not a container."""
        if isinstance(value, (list, tuple)):
            return tuple(self._freeze(item, active, tensors) for item in value)
        if isinstance(value, (dict, types.MappingProxyType)):
            return _Pairs((self._freeze(k, active, tensors), self._freeze(v, active, tensors)) for k, v in value.items())
        if isinstance(value, (set, frozenset)):
            return frozenset(self._freeze(item, active, tensors) for item in value)
        if isinstance(value, collections.deque):
            return value.maxlen, tuple(self._freeze(item, active, tensors) for item in value)
        if isinstance(value, (bytearray, array.array)):
            return getattr(value, "typecode", None), len(value), hashlib.blake2b(value).digest()
        if isinstance(value, functools.partial):
            return tuple(self._freeze(part, active, tensors) for part in (value.func, value.args, value.keywords))
        if isinstance(value, types.MethodType):
            return _Same(value.__func__), self._freeze(value.__self__, active, tensors)
        return None


class _Dependencies(_Frozen):
    """The dependencies of a traced kernel: the code that it can reach, the globals and closure
    cells that the code names, defaults, and arguments. `holds` tells whether all of them are
    unchanged.

    They are recorded before the function runs, because the function may change them.
    """

    def __init__(self, function, arguments):
        self._checks = []
        # Entries of dictionaries, which are unchanged if they hold the same object; and the checks
        # to run for those that hold another object.
        self._entries, self._entry_checks = [], []
        self._seen = {}
        self._names = set()
        self._modules = {}
        self._read_names = set()
        self._arguments = []
        #: Whether the program may be reused.
        self.reusable = True
        with self._limits():
            self._function(function)
            self._arguments = [(name, self._freeze(value, {}, True)) for name, value in arguments]
            for _, value in arguments:
                self._follow(value)
            self._read_modules()

    @contextlib.contextmanager
    def _limits(self):
        try:
            yield
        except (_TooMany, _Iterator, RecursionError):
            self.reusable = False

    def finish(self, arguments, met):
        """Adds code that was met while the function ran. If the function changed what it depends on, the program is not
        reusable: a cached call would not repeat the change."""
        with self._limits():
            self._count = 0
            self.reusable = self.reusable and self._unchanged(arguments)
            for code, globals_ in met:
                self._met(code, globals_)
            self._read_modules()
        if not self.reusable:
            self._checks, self._entries, self._entry_checks, self._arguments, self._seen = [], [], [], [], {}

    def _unchanged(self, arguments):
        """Whether the function changed nothing, except that it stored tiles. A tile is unusable
        after its kernel, so a cached call need not store it."""
        for (_, frozen), (_, value) in zip(self._arguments, arguments):
            if not _left_tiles(frozen, self._freeze(value, {}, True)):
                return False
        for module in self._modules.values():
            if any((id(module.__dict__), name) not in self._read_names for name in self._names & module.__dict__.keys()):
                return False
        return all(check(True) for check in (*self._entry_checks, *self._checks))

    def _met(self, code, globals_):
        """Adds code that is reachable only dynamically. The state of its globals before the run is unknown, so the program is not
        reusable if the code assigns one."""
        if any((id(globals_), name) not in self._read_names for name in _stored_globals(code)):
            self.reusable = False
        self._code(code, globals_)

    def holds(self, arguments):
        """Whether the program is valid for these arguments."""
        if not self.reusable:
            return False
        self._count = 0
        try:
            for (name, frozen), (given, value) in zip(self._arguments, arguments):
                # Shape and dtype of plain NumPy arrays have already been compared with the last
                # call.
                is_array = type(value) is np.ndarray and frozen is _TENSOR
                if name != given or not is_array and self._freeze(value, {}, True) != frozen:
                    return False
            for changed in _native.changed(self._entries, _Missing):
                if not self._entry_checks[changed]():
                    return False
            for check in self._checks:
                if not check():
                    return False
        except (_TooMany, _Iterator, RecursionError):
            return False
        return True

    def _function(self, function):
        while isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
        if not isinstance(function, types.FunctionType) or id(function) in self._seen:
            return
        self._seen[id(function)] = function
        if function.__module__ is not None and _is_fixed(function.__module__):
            return
        code = function.__code__
        self._check(lambda: function.__code__, code)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._follow(value)
        if function.__defaults__ or function.__kwdefaults__:
            self._check(lambda: (function.__defaults__, function.__kwdefaults__), (function.__defaults__, function.__kwdefaults__))
        if function.__dict__:
            self._check(lambda: function.__dict__, function.__dict__)
        for cell in function.__closure__ or ():
            self._check(functools.partial(_contents, cell), _contents(cell))
        self._code(code, function.__globals__)
        if hasattr(function, "__wrapped__"):
            self._follow(function.__wrapped__)

    def _code(self, code, globals_):
        if (id(code), id(globals_)) in self._seen:
            return
        self._seen[id(code), id(globals_)] = code, globals_
        for name in names(code):
            self._names.add(name)
            # A name found nowhere is an attribute, or a global that does not exist yet.
            if name in globals_ or not hasattr(builtins, name):
                self._read(globals_, name)

    def _read(self, namespace, name):
        self._read_names.add((id(namespace), name))
        read = functools.partial(dict.get, namespace, name, _Missing)
        self._check(read, read(), (namespace, name))

    def _read_modules(self):
        """Records the attributes of modules that the code names."""
        before = -1
        while before != len(self._read_names):
            before = len(self._read_names)
            for module in list(self._modules.values()):
                for name in self._names & module.__dict__.keys():
                    if (id(module.__dict__), name) not in self._read_names:
                        self._read(module.__dict__, name)

    def _check(self, read, value, entry=None):
        """Records that `read()` returns this value, and follows the value. `entry` is the
        dictionary and the key that `read` accesses."""
        self._count += 1
        if self._count > _MOST:
            raise _TooMany
        plain = type(value) in _PLAIN
        frozen = None if plain else self._freeze(value, {}, False)
        same = frozen == ("is", _Same(value))

        # With `left`, a tile may have replaced the value: see `_unchanged`.
        def check(left=False):
            now = read()
            if now is value and (plain or same):
                return True
            if plain and type(now) is type(value) and now == value and repr(now) == repr(value):
                return True
            if left and isinstance(now, _native.Handle):
                return True
            if plain or same:
                return False
            made = self._freeze(now, {}, False)
            return made == frozen or left and _left_tiles(frozen, made)

        if entry is not None and (plain or same):
            self._entries.append((*entry, value))
            self._entry_checks.append(check)
        else:
            self._checks.append(check)
        if not plain:
            self._follow(value)

    def _follow(self, value):
        """Records the dependencies of functions and classes in a value."""
        if type(value) in _PLAIN or id(value) in self._seen:
            return
        if isinstance(value, (types.FunctionType, staticmethod, classmethod)):
            self._function(value)
            return
        self._count += 1
        if self._count > _MOST:
            raise _TooMany
        if isinstance(value, types.MethodType):
            self._follow(value.__func__)
            self._follow(value.__self__)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._follow(part)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                self._follow(part)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.ModuleType):
            # A test may replace functions of `nki`.
            if value.__name__.partition(".")[0] == "nki" or not _is_fixed(value.__name__, value):
                self._modules[id(value)] = value
        else:
            self._follow_object(value)

    def _follow_object(self, value):
        slots, has_dict, *_ = _shape(type(value))
        own, wrapped = None, None
        if slots or has_dict:
            own = _own(value, slots, has_dict)
        if isinstance(value, (dict, types.MappingProxyType)):
            items = value.values()
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            items = value
        elif isinstance(value, np.ndarray) and np.asarray(value).dtype.hasobject:
            items = np.asarray(value).ravel().tolist()
        else:
            items = ()
            wrapped = _wrapped(value) if own is None else None
        self._seen[id(value)] = value
        if own is not None:
            self._class(type(value))
            self._follow(own)
        for item in list(items):
            self._follow(item)
        if wrapped is not None:
            self._follow(wrapped)

    def _class(self, cls):
        for base in cls.__mro__:
            if _is_fixed(base.__module__) or id(base) in self._seen:
                continue
            self._seen[id(base)] = base
            for name, value in list(base.__dict__.items()):
                if name.startswith("__") and not callable(value):
                    continue
                self._check(functools.partial(_attribute, base, name), value)
        if type(cls) is not type:
            self._class(type(cls))


class Watch(_Frozen):
    """Detects whether a call of a function changed the arguments of the next call."""

    def __init__(self, function, arguments):
        self._name = function.__name__
        self._before = {name: self._state(value) for name, value in arguments}
        self._reported = set()

    def _state(self, value):
        self._count = 0
        try:
            return self._freeze(value, {}, True)
        except _Iterator:
            return _Iterator
        except (_TooMany, RecursionError):
            return _TooMany

    def check(self, arguments, now, earlier=None):
        """Reports arguments that changed before the call for `now`. An iterator is an error if an
        `earlier` call received the same one; by default, the earlier call received all of these
        arguments."""
        for name, value in arguments:
            before = self._before[name]
            if before is _Iterator:
                if earlier is None or any(value is other for _, other in earlier):
                    raise ArgumentTypeError(
                        f"{self._name}: argument `{name}` ({type(value).__name__}) is or holds an iterator, which can be read only once, but the "
                        f"function is called again for {now}; pass a list or a tuple"
                    )
            elif before is not _TooMany and name not in self._reported and not _left_tiles(before, self._state(value)):
                self._reported.add(name)
                warnings.warn(
                    f"{self._name} changes its argument `{name}`: the function is called again for {now}, which gets the changed argument; "
                    f"change a copy of it",
                    KernelWarning,
                    stacklevel=depth(),
                )


def depth():
    """The `stacklevel` of a warning that points at the nearest caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


class Specialisation:
    """The dependencies of a program and the named tuples that its function returns, collected while the function runs."""

    def __init__(self, function, next_call):
        self.function = function
        self._next_call = next_call
        self.snapshot = None
        self.structure = None
        self._watch = None
        self._arguments = None
        self._calls = 0

    def begin(self, arguments):
        """Records the arguments when the function is about to be called."""
        if self.snapshot is None:
            self._watch = Watch(self.function, arguments)
            self._arguments = arguments
            self.snapshot = _Dependencies(self.function, arguments)
        else:
            self._watch.check(arguments, self._next_call)

    def has_changed(self):
        """Whether the function, which ended with an error, changed an argument or something outside
        of it. False if its dependencies are too many to compare."""
        if self.snapshot is None or not self.snapshot.reusable:
            return False
        self.snapshot.finish(self._arguments, ())
        return not self.snapshot.reusable

    def returned(self, result):
        """Records the result of the function's first call."""
        if self._calls == 0:
            self.structure = structure(result)
        self._calls += 1


_local = threading.local()


def current():
    """The `Specialisation` of the function being compiled in this thread; None outside
    `specialising`."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


@contextlib.contextmanager
def specialising(function, next_call):
    """Collects the `Specialisation` of a function that is compiled in this block. `next_call`
    describes the purpose of its second call."""
    if not hasattr(_local, "stack"):
        _local.stack = []
    _local.stack.append(Specialisation(function, next_call))
    try:
        yield _local.stack[-1]
    finally:
        _local.stack.pop()


class Snapshot:
    """The dependencies of a kernel that has just been traced. `holds(arguments)` tells whether they are unchanged."""

    def __init__(self, function, arguments, met):
        noted = current()
        is_noted = noted is not None and noted.function is function and noted.snapshot is not None
        made = noted.snapshot if is_noted else _Dependencies(function, arguments)
        made.finish(arguments, met)
        self.reusable, self.holds = made.reusable, made.holds


def structure(result):
    """The classes of the named tuples in the return value of a kernel; None if there are none."""
    if isinstance(result, dict):
        items = {key: structure(item) for key, item in result.items()}
        return (None, items) if any(item is not None for item in items.values()) else None
    if not isinstance(result, (tuple, list)):
        return None
    items = {i: structure(item) for i, item in enumerate(result)}
    named = type(result) if isinstance(result, tuple) and hasattr(type(result), "_make") else None
    return (named, items) if named is not None or any(item is not None for item in items.values()) else None


def restored(made, result):
    """A result with the named tuples of `structure`."""
    if made is None:
        return result
    named, items = made
    if isinstance(result, dict):
        return {key: restored(items.get(key), item) for key, item in result.items()}
    values = [restored(items.get(i), item) for i, item in enumerate(result)]
    return named._make(values) if named is not None else type(result)(values)


class _Same:
    """Equal only to itself. Keeps the object alive, so that its address is not reused."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


class _Pairs(tuple):
    """Keys or attribute names, with their values."""


_TILE = ("tile",)
_TENSOR = ("tensor",)


def _left_tiles(before, now):
    """Whether the frozen value `now` differs from `before` only in tiles that were added or replaced other values."""
    if now == _TILE or before == now:
        return True
    if type(before) is not type(now) or not isinstance(now, tuple):
        return False
    if type(now) is _Pairs:
        old = dict(before)
        return old.keys() <= {key for key, _ in now} and all(_left_tiles(old.get(key), value) for key, value in now)
    return len(before) == len(now) and all(map(_left_tiles, before, now))


_PLAIN = {int, float, bool, str, bytes, type(None), complex, type(Ellipsis), range}


def _contents(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return _Missing


def _attribute(cls, name):
    return cls.__dict__.get(name, _Missing)


_CONTAINERS = (list, tuple, dict, types.MappingProxyType, set, frozenset, collections.deque, bytearray, array.array)
_CONTAINERS += (functools.partial, types.MethodType)

#: Results of `_shape` by class.
_shapes = weakref.WeakKeyDictionary()


def _shape(cls):
    """Where objects of a class keep their state: its slots, whether it has a `__dict__`, and
    whether it is a container or an array. A class of a fixed module has neither slots nor a
    `__dict__` here. The class decides, because an object's `__getattr__` may answer every name."""
    known = _shapes.get(cls)
    if known is None:
        slots, has_dict = [], False
        if not _is_fixed(cls.__module__) or cls.__module__.partition(".")[0] in _HOLDERS:
            has_dict = cls.__dictoffset__ != 0
            for base in reversed(cls.__mro__):
                slots += [(name, slot) for name, slot in base.__dict__.items() if isinstance(slot, types.MemberDescriptorType)]
        known = _shapes[cls] = tuple(slots), has_dict, issubclass(cls, _CONTAINERS), hasattr(cls, "__array_interface__")
    return known


def _own(value, slots, has_dict):
    """The attributes stored in the object itself."""
    if not slots:
        return object.__getattribute__(value, "__dict__")
    own = dict(object.__getattribute__(value, "__dict__")) if has_dict else {}
    for name, slot in slots:
        try:
            own[name] = slot.__get__(value)
        except AttributeError:
            pass
    return own


def _wrapped(value):
    return inspect.getattr_static(value, "__wrapped__", None)


def _is_tensor(value):
    """Whether an argument is a device tensor or a NumPy scalar, which the comparison of arguments
    handles."""
    known = is_of_framework(value) or package_of(value) in ("numpy", "nki_sim")
    return known and hasattr(value, "shape") and hasattr(value, "dtype")


def _of_member(member):
    """What can change in a member of an enum: a value that is an object, and other attributes."""
    fixed = ("_name_", "__objclass__", "_sort_order_")
    own = object.__getattribute__(member, "__dict__")
    return {name: item for name, item in own.items() if name not in fixed and not (name == "_value_" and type(item) in _PLAIN)}


def _stored_globals(code):
    """The globals that code assigns or deletes."""
    changing = {dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]}
    if changing.isdisjoint(code.co_code[::2]):
        return set()
    return {one.argval for one in dis.get_instructions(code) if one.opcode in changing}


def names(code):
    """The names of globals and attributes in code, and in the functions that it defines."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names(constant)
    return found
