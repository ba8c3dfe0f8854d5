"""Python objects for the names of the API. Each name has one object, regardless of the module that
exports it."""

import enum
import inspect
import sys
import types
import typing

from . import _native
from ._errors import NkiValidationError, OutsideKernelError

if typing.TYPE_CHECKING:
    import numpy


class NKIObject:
    """Base class of objects that kernels use: configuration, helpers.

    The constructor takes the annotated fields, by position or by name, unless the class defines a
    constructor or is a dataclass. A missing field has its default, or None without a default. In a
    dataclass, too, values without an annotation are fields.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # `@dataclass` runs after this, and uses the fields and defaults that are set here.
        annotations = dict(inspect.get_annotations(cls))
        for name, value in list(cls.__dict__.items()):
            if not name.startswith("__") and name not in annotations and _is_value(value) and not isinstance(value, (list, dict, set)):
                annotations[name] = typing.Any
        for name, annotation in annotations.items():
            if name not in cls.__dict__ and "ClassVar" not in str(annotation) and not hasattr(cls, name):
                setattr(cls, name, None)
        cls.__annotations__ = annotations

    def __init__(self, *args, **kwargs):
        fields = field_names(type(self))
        names = [name for name, _, _ in fields]
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__}() takes {len(names)} arguments, {len(args)} given")
        values = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in values:
                raise TypeError(f"{type(self).__name__}() got `{name}` twice")
            if name not in names and not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__}() has no field `{name}`; it has {', '.join(names)}")
            values[name] = value
        for name, has_default, default in fields:
            setattr(self, name, values.pop(name, default if has_default else None))
        for name, value in values.items():
            setattr(self, name, value)
        post = getattr(self, "__post_init__", None)
        if post is not None:
            post()

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self):
        return hash((type(self), tuple(sorted(self.__dict__))))

    def __repr__(self):
        fields = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


def field_names(cls):
    """The fields of an NKIObject class: name, whether it has a default, default."""
    out = {}
    for base in reversed(cls.__mro__):
        if base is object or base is NKIObject:
            continue
        for name, annotation in inspect.get_annotations(base).items():
            if "ClassVar" not in str(annotation):
                out[name] = (name in base.__dict__, base.__dict__.get(name))
        for name, value in base.__dict__.items():
            if not name.startswith("__") and name not in out and _is_value(value):
                out[name] = (True, value)
    return [(name, has, value) for name, (has, value) in out.items()]


def _is_value(value):
    return not callable(value) and not isinstance(value, (property, staticmethod, classmethod)) and not hasattr(value, "__get__")


class DType:
    """An element type of the device, such as `nl.bfloat16`. It equals the corresponding NumPy
    dtype."""

    __slots__ = ("name", "itemsize", "_dtype")

    def __init__(self, name, itemsize):
        self.name = name
        self.itemsize = itemsize
        self._dtype = None

    @property
    def dtype(self) -> "numpy.dtype[typing.Any]":
        """The NumPy dtype. NumPy uses this attribute to convert the object to a dtype."""
        if self._dtype is None:
            from ._arrays import numpy_dtype

            self._dtype = numpy_dtype(self.name)
        return self._dtype

    @property
    def __name__(self):
        return self.name

    def __eq__(self, other):
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return self.name == other
        if other is None or self.name == "tfloat32":
            # NumPy has no tfloat32; float32 holds its values.
            return False
        try:
            import numpy

            return self.dtype == numpy.dtype(other)
        except TypeError:
            return NotImplemented
        except ImportError:
            # NumPy has this dtype only with ml_dtypes.
            return False

    def __hash__(self):
        # It equals its name, which is what an element type is in the language.
        return hash(self.name)

    def __repr__(self):
        return self.name

    __str__ = __repr__

    def __format__(self, spec):
        return format(self.name, spec)

    def __reduce__(self):
        return _dtype_named, (self.name,)

    def __call__(self, value=0):
        return self.dtype.type(value)


def _dtype_named(name):
    return MODULES["nki.language"][name]


class ApiFunction(_native.Function):
    """A function of the API, which a kernel can call while it is specialised."""

    def __init__(self, module, name, doc=None, signature=None):
        self.__module__ = module
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        if signature is not None:
            self.__signature__ = signature

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"

    def __reduce__(self):
        return _named, (self.__module__, self.__name__)


def _named(module, name):
    return MODULES[module][name]


class TileSize:
    """Limits of the target that the environment selects: `nl.tile_size.pmax` and others."""

    def __init__(self, names):
        self._names = tuple(names)

    def __getattr__(self, name):
        value = None if name.startswith("_") else _native.tile_size(name)
        if value is None:
            raise AttributeError(f"nl.tile_size has no attribute `{name}`")
        return value

    def __dir__(self):
        return list(self._names)

    def __repr__(self):
        return "nl.tile_size"


class _ApiClass(type):
    """The metaclass of the API's classes: their instances are device values, which the native module
    makes."""

    def __call__(cls, *args, shape=None, dtype=None, storage=None, buffer=None, name=None, **kwargs):
        """Outside of kernels, a tensor in HBM without storage is an argument without values: an array of zeros."""
        plain = cls is NkiTensor and not args and not kwargs and storage is None and not _native.is_tracing()
        if plain and shape is not None and dtype is not None and (buffer is None or _is_hbm(buffer)):
            return _zeros(shape, dtype)
        raise OutsideKernelError(f"{cls.__module__}.{cls.__name__} objects are made by the functions of the API, in kernels")

    def __getitem__(cls, item):
        """The class, for annotations. With a list of extents and a dtype, `tensor[[250, 512],
        nl.float32]`, an argument of zeros for a kernel whose values do not matter."""
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], (list, tuple)):
            return _zeros(*item)
        return cls


def _zeros(shape, dtype):
    """An argument without values."""
    import numpy as np

    from ._arrays import numpy_dtype

    return np.zeros(tuple(shape), numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype))


class ApiIndex:
    """A name of the API that is used by indexing: `nl.mgrid[0:128, 0:512]`."""

    def __init__(self, module, name):
        self.__module__ = module
        self.__name__ = name

    def __getitem__(self, item):
        known = _native.attribute_of_module(self.__module__, self.__name__)
        if known is None:
            raise OutsideKernelError(f"{self.__module__}.{self.__name__}[...] was used outside of a kernel: its tiles are values of the device")
        return known[item]

    def __repr__(self):
        return f"{self.__module__}.{self.__name__}"


class ApiEnum(enum.Enum):
    """Members equal their values, memories equal their names, and kinds of HBM equal each other, as
    in kernels."""

    def __eq__(self, other):
        if isinstance(other, ApiEnum):
            return self is other or _is_hbm(self) and _is_hbm(other)
        return NotImplemented if not isinstance(other, (int, str)) or isinstance(other, bool) else self._equals(other)

    def _equals(self, other):
        if type(self).__name__ == "MemoryRegion" and other == "hbm":
            return _is_hbm(self)
        return self.value == other

    def __hash__(self):
        return hash("hbm") if _is_hbm(self) else hash(self.value)

    def __lt__(self, other):
        return self._order(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._order(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._order(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._order(other, lambda a, b: a >= b)

    def _order(self, other, test):
        value = other.value if type(other) is type(self) else other
        return test(self.value, value) if isinstance(value, int) and isinstance(self.value, int) else NotImplemented


def _is_hbm(member):
    return isinstance(member, enum.Enum) and isinstance(member.value, str) and member.value.endswith("hbm")


def _signature(operands):
    parameters = []
    optional = False
    for operand in operands:
        default = inspect.Parameter.empty
        if operand["default"] is not None:
            optional = True
            default = _Default(operand["default"])
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if optional and default is inspect.Parameter.empty:
            kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(operand["name"], kind, default=default))
    keyword_only = False
    for index, parameter in enumerate(parameters):
        keyword_only = keyword_only or parameter.kind is inspect.Parameter.KEYWORD_ONLY
        if keyword_only:
            parameters[index] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if not any(p.name == "name" for p in parameters):
        kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter("name", kind, default=None))
    return inspect.Signature(parameters)


def _signature_of(parameters):
    """The signature for parameters as (name, type, default); types and defaults remain text."""
    made, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, annotation, default in parameters:
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        given = _Default(default) if default else inspect.Parameter.empty
        made.append(inspect.Parameter(name, kind, default=given, annotation=annotation or inspect.Parameter.empty))
    return inspect.Signature(made)


class _Default:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def document(schema):
    """The documentation of an instruction, generated from its schema."""
    lines = [schema["doc"].strip(), "", f"Engines: {', '.join(schema['engines'])}.", ""]
    for operand in schema["operands"]:
        what = operand["kind"]
        if operand["members"]:
            what += ": " + ", ".join(operand["members"])
        if operand["spaces"]:
            what += " in " + ", ".join(operand["spaces"])
        default = "" if operand["default"] is None else f" Default {operand['default']}."
        written = " Written." if operand["writes"] else ""
        lines.append(f":param {operand['name']}: ({what}) {operand['doc'].strip()}{default}{written}")
    return "\n".join(lines)


def _build():
    schemas = {s["name"]: s for s in _native.instructions()}
    modules = {"nki.language": {"NKIObject": NKIObject}, "nki.isa": {}, "nki.collectives": {}}
    modules |= {"neuronxcc.nki.language": {}, "neuronxcc.nki.isa": {}}
    functions = {m: {name: (p, doc) for name, p, _, doc in _native.api_functions(m)} for m in ("nki.language", "nki.isa", "nki.collectives")}
    classes = {(m, name): (base, doc) for m, name, base, doc, _ in _native.api_classes()}
    _native.register(NKIObject, "nki.language.NKIObject")
    for module, name, kind, details in _native.api_names():
        names = modules[module]
        if name in names:
            continue
        path = f"{module}.{name}"
        if kind == "enum":
            # Members may have names such as `none`; the values are those of the SDK's enums.
            value = ApiEnum(name, [(n, n if name == "MemoryRegion" else v) for n, v in details], module=module)
            for member in value:
                _native.register(member, f"{path}.{member.name}")
        elif kind == "member":
            value = names[details[0]][details[1]]
        elif kind == "dtype":
            # Both versions of the language share their element types.
            value = modules["nki.language"].get(details[0]) or DType(*details)
        elif kind == "tile_size":
            value = TileSize(details)
        elif kind == "lowest":
            value = types.SimpleNamespace(min=details)
        elif name == "mgrid":
            value = ApiIndex(module, name)
        elif kind == "class":
            # `tensor` is an older name.
            value = NkiValidationError if name == "NkiValidationError" else _api_class(module, "NkiTensor" if name == "tensor" else name, names, classes)
        elif module != "nki.language" and name in schemas:
            schema = schemas[name]
            value = ApiFunction(module, name, document(schema), _signature(schema["operands"]))
        else:
            # The older language has the functions of the current one with additional arguments.
            parameters, doc = functions.get(module, {}).get(name) or (None, functions["nki.language"].get(name, (None, None))[1])
            value = ApiFunction(module, name, doc, None if parameters is None else _signature_of(parameters))
        names[name] = value
        known = name == "tensor" or kind == "dtype" and (name != details[0] or module != "nki.language")
        if kind != "member" and not known:
            _native.register(value, path)
    memories = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")
    modules["neuronxcc.nki.language"] |= {name: modules["nki.language"][name] for name in memories}
    return modules


def _api_class(module, name, names, classes):
    """The class of this name, whose objects are values of the device."""
    if name not in names:
        base, doc = classes.get((module, name), ("", None))
        bases = (_native.Handle, NKIObject) if base == "NKIObject" else (names.get(base, _native.Handle),)
        names[name] = _ApiClass(name, bases, {"__module__": module, "__doc__": doc})
        _native.register(names[name], f"{module}.{name}")
    return names[name]


#: The names of `nki.language`, `nki.isa`, `nki.collectives`, and of the older `neuronxcc.nki.language` and `neuronxcc.nki.isa`.
MODULES = _build()

#: The entries of these modules, as `_native.changed` compares them; by module, once it is imported.
_entries = {}


def replaced():
    """The names of the language that hold another object than at their import, such as `nki.isa.dma_copy`: a test may have replaced them."""
    found = []
    for name, own in MODULES.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        entries = _entries.setdefault(name, [])
        if not entries:
            entries += [(module.__dict__, key, value) for key, value in own.items()]
        found += [f"{name}.{entries[at][1]}" for at in _native.changed(entries, None)]
    return found


#: The class of tensors.
NkiTensor = MODULES["nki.language"]["NkiTensor"]

#: The classes of device values by their type names; the native module makes their objects.
CLASSES = {"tensor": NkiTensor, "register": MODULES["nki.isa"]["VirtualRegister"]}
CLASSES |= {name: MODULES["nki.language"][name] for name in ("NkiTileGrid", "NkiBlockGrid")}
CLASSES |= {name: MODULES["nki.isa"][name] for name in ("NkiScalar", "NkiInstruction")}


class ReplicaGroup:
    """The ranks that take part in a collective: a list of groups of ranks."""

    def __init__(self, groups=None, **kwargs):
        self.groups = groups if groups is not None else kwargs.get("replica_groups")

    @classmethod
    def from_partition_op(cls, world_size, op, operand):
        """The ranks below `world_size`, grouped by `op(rank, operand)`, in the order of its results.

        :param world_size: The number of ranks.
        :param op: A member of `rg_partition_op`: bitwise_and, div or mod.
        :param operand: The second operand; at least 1 for div and mod.
        """
        ops = MODULES["nki.collectives"]["rg_partition_op"]
        if not isinstance(op, ops):
            raise TypeError(f"ReplicaGroup.from_partition_op: `op` is {op!r}, not a member of rg_partition_op: {', '.join(one.name for one in ops)}")
        return cls(_native.partition(world_size, op.name, operand))

    def __nki_arguments__(self):
        return (self.groups,)

    def __eq__(self, other):
        return isinstance(other, ReplicaGroup) and self.groups == other.groups

    def __hash__(self):
        return hash(repr(self.groups))

    def __repr__(self):
        return f"ReplicaGroup({self.groups!r})"


def names_of(module):
    """A `__getattr__` for a module. In a kernel that is being specialised, the error for a missing
    name suggests a replacement."""

    def getattr_(name):
        if not name.startswith("_"):
            value = _native.attribute_of_module(module, name)
            if value is not None:
                return value
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return getattr_


def hints_of(module, hints):
    """A `__getattr__` for a module that has none of these names: the error suggests a
    replacement."""

    def getattr_(name):
        hint = f": {hints[name]}" if name in hints else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules.get(module))

    return getattr_


def function_of(module):
    """A `__getattr__` for a module with functions that the registry does not list."""
    made = MODULES.setdefault(module, {})

    def getattr_(name):
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name not in made:
            made[name] = ApiFunction(module, name)
            _native.register(made[name], f"{module}.{name}")
        return made[name]

    return getattr_
