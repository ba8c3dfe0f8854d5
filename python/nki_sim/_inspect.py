"""Describes live Python objects to the frontend. The native module calls it; it is not a user
interface."""

import dataclasses
import enum
import functools
import importlib
import inspect
import reprlib
import sys
import types

from . import _source
from ._arrays import as_numpy, contiguous, packed_name, put_back, share_memory  # noqa: F401  (used by the native half)

_SKIPPED = {
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__annotations__",
    "__annotate__",
    "__annotate_func__",
    "__annotations_cache__",
    "__slots__",
    "__match_args__",
    "__qualname__",
    "__firstlineno__",
    "__static_attributes__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__abstractmethods__",
    "__orig_bases__",
    "__parameters__",
    "_abc_impl",
    "_is_protocol",
}


#: The type of memoised functions: `functools.cache`, `functools.lru_cache`.
_Cached = type(functools.cache(lambda: None))

#: The comparisons that `functools.total_ordering` adds to a class.
_ORDER = {"__lt__", "__le__", "__gt__", "__ge__"}


def show(lines):
    """Prints the output of a kernel's `print`."""
    for line in lines:
        print(line)


def describe(obj):
    from ._kernel import Kernel

    if isinstance(obj, Kernel):
        return _function(obj.func, [obj.compile_config, obj.specialization_config], bool(getattr(obj, "grid", ())))
    if isinstance(obj, types.FunctionType):
        return _function(obj, None)
    if isinstance(obj, types.ModuleType):
        return {
            "kind": "module",
            "name": obj.__name__,
            "file": getattr(obj, "__file__", None) or f"<module {obj.__name__}>",
            "globals": obj.__dict__,
        }
    if isinstance(obj, type):
        return _class(obj)
    if isinstance(obj, _Cached):
        told = obj.cache_parameters()
        return {"kind": "cached", "function": obj.__wrapped__, "limit": told["maxsize"], "typed": bool(told["typed"])}
    return {"kind": "opaque", "path": repr(type(obj)), "reason": None}


def _function(function, config, has_grid=False):
    while isinstance(function, staticmethod):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return {"kind": "opaque", "path": repr(function), "reason": "it is not a Python function"}
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    positional = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = list(zip(positional[len(positional) - len(values) :], values)) if values else []
    defaults += (function.__kwdefaults__ or {}).items()
    closure = []
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            closure.append((name, True, cell.cell_contents))
        except ValueError:
            closure.append((name, False, None))
    return {
        "kind": "function",
        "name": code.co_name,
        "file": _source.file_of(function),
        "line": code.co_firstlineno,
        "params": list(code.co_varnames[:count]),
        "body": _body(code) if code.co_name == "<lambda>" else None,
        "globals": function.__globals__,
        "defaults": defaults,
        "closure": closure,
        "config": config,
        "has_grid": has_grid,
    }


def _body(code):
    """The line and column at which the code of a lambda's body begins; None if Python does not
    record columns (before 3.11, and with -X no_debug_ranges)."""
    positions = getattr(code, "co_positions", tuple)()
    # Instructions that Python adds have an empty range.
    starts = [
        (line, column)
        for line, end_line, column, end in positions
        if None not in (line, column) and (line, column) != (end_line, end)
    ]
    return min(starts, default=None)


def source_text(file):
    return _source.text_of(file)


def _nki_object():
    from ._objects import NKIObject

    return NKIObject


def _is_python(cls):
    """Whether a class was written in Python, possibly for use in kernels."""
    root = cls.__module__.split(".")[0]
    return bool(cls.__flags__ & (1 << 9)) and (root not in sys.stdlib_module_names or root == "__main__")


def _kind(cls):
    if issubclass(cls, enum.Enum):
        return "enum"
    if issubclass(cls, tuple):
        return "named_tuple"
    if issubclass(cls, BaseException):
        return "exception"
    if "__dataclass_fields__" in cls.__dict__:
        return "dataclass"
    if issubclass(cls, _nki_object()):
        return "nki"
    return "plain"


def _class(cls):
    if not _is_python(cls):
        name = f"{cls.__module__}.{cls.__qualname__}"
        return {"kind": "opaque", "path": name, "reason": "the class is not written in Python, or not for kernels"}
    kind = _kind(cls)
    is_enum = kind == "enum"
    members = []
    if is_enum:
        members = [(name, m.name, m.value) for name, m in cls.__members__.items()]
    return {
        "kind": "class",
        "name": cls.__name__,
        "class_kind": kind,
        "dataclass": [bool(getattr(cls.__dataclass_params__, name)) for name in _TOLD] if kind == "dataclass" else None,
        "enum": _enum(cls) if is_enum else None,
        "total_ordering": any(_derived(name, value) for name, value in cls.__dict__.items()),
        "nki_object": issubclass(cls, _nki_object()),
        "bases": [c for c in cls.__mro__[1:] if _is_python(c) and c is not _nki_object()],
        "attributes": list(_attributes(cls, kind)),
        "fields": _fields(cls, kind),
        "members": members,
    }


#: Options of `@dataclass`, in the order of the native half.
_TOLD = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")

#: The options of a field that sets none: accepted by the constructor, keyword-only, compared,
#: shown, and only passed to `__post_init__`.
_USUAL = [True, False, True, True, False]


def _enum(cls):
    """Of an Enum: the type that it also derives from, whether it is a Flag, and whether its
    members' text is that of their values."""
    mixin = next((base.__name__ for base in (int, str, float) if issubclass(cls, base)), None)
    shown = getattr(enum, "ReprEnum", (enum.IntEnum, enum.IntFlag))
    return mixin, issubclass(cls, enum.Flag), issubclass(cls, shown)


#: What the body of an Enum may hold besides its members.
_OF_ENUMS = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property, _Cached)


def _attributes(cls, kind):
    is_enum = kind == "enum"
    for name, value in list(cls.__dict__.items()):
        if name in _SKIPPED:
            continue
        if is_enum and (name in cls.__members__ or not isinstance(value, _OF_ENUMS)):
            continue
        if is_enum and name.startswith("_") and not name.startswith("__"):
            continue
        if kind == "named_tuple" and (name.startswith("_") or name in cls._fields):
            continue
        if isinstance(value, types.FunctionType):
            # Methods generated by dataclasses and enums have no source; the evaluator creates its
            # own.
            if not _generated(value) and not _derived(name, value):
                yield name, "plain", value, None
        elif name == "__hash__":
            # `__hash__ = None` is set by Python because of an `__eq__`, which the evaluator sees.
            continue
        elif isinstance(value, staticmethod):
            yield name, "static", value.__func__, None
        elif isinstance(value, classmethod):
            if not _generated(value.__func__):
                yield name, "class", value.__func__, None
        elif isinstance(value, property):
            yield name, "property", value.fget, (value.fset, value.fdel)
        elif isinstance(value, functools.cached_property):
            yield name, "cached", value.func, None
        elif isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
            continue
        else:
            yield name, "plain", value, None


def _generated(function):
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename in ("<string>", enum.__file__, dataclasses.__file__, reprlib.__file__)


def _derived(name, value):
    """Whether a method is a comparison that `functools.total_ordering` added."""
    return name in _ORDER and isinstance(value, types.FunctionType) and value.__code__.co_filename == functools.__file__


def _fields(cls, kind):
    if kind == "named_tuple":
        defaults = getattr(cls, "_field_defaults", {})
        return [
            (name, "value" if name in defaults else "required", defaults.get(name), _USUAL)
            for name in getattr(cls, "_fields", ())
        ]
    if dataclasses.is_dataclass(cls):
        out = []
        for field in cls.__dataclass_fields__.values():
            if field._field_type is dataclasses._FIELD_CLASSVAR:
                continue
            how, value = "required", None
            if field.default is not dataclasses.MISSING:
                how, value = "value", field.default
            elif field.default_factory is not dataclasses.MISSING:
                how, value = "factory", field.default_factory
            init_only = field._field_type is dataclasses._FIELD_INITVAR
            told = [field.init, field.kw_only, field.compare and not init_only, field.repr and not init_only, init_only]
            out.append((field.name, how, value, [bool(x) for x in told]))
        return out
    if kind == "nki":
        from ._objects import field_names

        return [
            (name, "value" if has else "required", value, _USUAL) for name, has, value in field_names(cls)
        ]
    if kind == "plain":
        # These fields are not for a constructor: KLR shows them as text.
        names = [name for base in reversed(cls.__mro__) for name in inspect.get_annotations(base)]
        return [(name, "required", None, _USUAL) for name in dict.fromkeys(names)]
    return []


def instance_fields(obj):
    """The attributes of an instance of a class written in Python; None for other objects."""
    cls = type(obj)
    if cls is types.SimpleNamespace:
        return dict(vars(obj))
    if not _is_python(cls):
        return None
    if isinstance(obj, tuple):
        return dict(zip(getattr(cls, "_fields", ()), obj))
    fields = {}
    for base in reversed(cls.__mro__):
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(obj, name):
                fields[name] = getattr(obj, name)
    fields.update(getattr(obj, "__dict__", {}))
    return fields


def import_module(scope, path):
    """The module that `import path` finds in code with these globals. A path that starts with dots
    is relative."""
    if path.startswith("."):
        package = scope.get("__package__") or scope.get("__name__", "").rpartition(".")[0]
        return importlib.import_module(path, package)
    return importlib.import_module(path)
