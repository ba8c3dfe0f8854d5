"""Parts of the standard library that the evaluator runs as Python. The files of this folder form one module, created when a kernel first uses one of its names.

Each class and function follows Python's documentation. Omitted features raise AttributeError or TypeError.
"""


class _Container:
    """A mutable object: `_base_value` is of `_base_type`."""

    def clear(self):
        self._base_value.clear()

    def __len__(self):
        return len(self._base_value)

    def __iter__(self):
        return iter(self._base_value)

    def __contains__(self, x):
        return x in self._base_value

    def __eq__(self, other):
        return self._base_value == _value_of(other) if isinstance(other, self._base_type) else NotImplemented

    def __ne__(self, other):
        return self._base_value != _value_of(other) if isinstance(other, self._base_type) else NotImplemented

    def __repr__(self):
        return repr(self._base_value)

    __hash__ = None


class _Ordered(_Container):
    """A list or a set."""

    def copy(self):
        return self._base_value.copy()

    def __lt__(self, other):
        return self._base_value < _value_of(other) if isinstance(other, self._base_type) else NotImplemented

    def __le__(self, other):
        return self._base_value <= _value_of(other) if isinstance(other, self._base_type) else NotImplemented

    def __gt__(self, other):
        return self._base_value > _value_of(other) if isinstance(other, self._base_type) else NotImplemented

    def __ge__(self, other):
        return self._base_value >= _value_of(other) if isinstance(other, self._base_type) else NotImplemented


class ListBase(_Ordered):
    """The base class of `class C(list)`."""

    _base_type = list

    def __init__(self, iterable=()):
        object.__setattr__(self, "_base_value", list(iterable))

    def append(self, x):
        self._base_value.append(x)

    def extend(self, iterable):
        self._base_value.extend(iterable)

    def insert(self, i, x):
        self._base_value.insert(i, x)

    def pop(self, *at):
        return self._base_value.pop(*at)

    def remove(self, x):
        self._base_value.remove(x)

    def reverse(self):
        self._base_value.reverse()

    def sort(self, *, key=None, reverse=False):
        self._base_value.sort(key=key, reverse=reverse)

    def count(self, x):
        return self._base_value.count(x)

    def index(self, x, *bounds):
        return self._base_value.index(x, *bounds)

    def __getitem__(self, i):
        return self._base_value[i]

    def __setitem__(self, i, x):
        self._base_value[i] = x

    def __delitem__(self, i):
        del self._base_value[i]

    def __reversed__(self):
        return reversed(self._base_value)

    def __add__(self, other):
        return self._base_value + _value_of(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other):
        return _value_of(other) + self._base_value if isinstance(other, list) else NotImplemented

    def __iadd__(self, other):
        self._base_value += list(other)
        return self

    def __mul__(self, n):
        return self._base_value * n

    def __rmul__(self, n):
        return self._base_value * n


class DictBase(_Container):
    """The base class of `class C(dict)`."""

    _base_type = dict

    def __init__(self, *args, **kwargs):
        object.__setattr__(self, "_base_value", dict(*[_value_of(arg) for arg in args], **kwargs))

    def __getitem__(self, key):
        if key in self._base_value:
            return self._base_value[key]
        if hasattr(type(self), "__missing__"):
            return self.__missing__(key)
        raise KeyError(key)

    def __setitem__(self, key, value):
        self._base_value[key] = value

    def __delitem__(self, key):
        del self._base_value[key]

    def __reversed__(self):
        return reversed(list(self._base_value))

    def keys(self):
        return self._base_value.keys()

    def values(self):
        return self._base_value.values()

    def items(self):
        return self._base_value.items()

    def get(self, key, default=None):
        return self._base_value.get(key, default)

    def pop(self, key, *default):
        return self._base_value.pop(key, *default)

    def popitem(self):
        return self._base_value.popitem()

    def setdefault(self, key, default=None):
        return self._base_value.setdefault(key, default)

    def update(self, *args, **kwargs):
        self._base_value.update(*[_value_of(arg) for arg in args], **kwargs)

    def copy(self):
        return dict(self._base_value)

    def __or__(self, other):
        return self._base_value | _value_of(other) if isinstance(other, dict) else NotImplemented

    def __ror__(self, other):
        return _value_of(other) | self._base_value if isinstance(other, dict) else NotImplemented

    def __ior__(self, other):
        self._base_value.update(_value_of(other))
        return self


class _Value:
    """An immutable object: `_base_value` is set before `__init__` is called."""

    def __init__(self, *args, **kwargs):
        pass

    def __hash__(self):
        return hash(self._base_value)

    def __repr__(self):
        return repr(self._base_value)

    def __eq__(self, other):
        return self._base_value == _value_of(other)

    def __ne__(self, other):
        return self._base_value != _value_of(other)

    def __lt__(self, other):
        return self._base_value < _value_of(other)

    def __le__(self, other):
        return self._base_value <= _value_of(other)

    def __gt__(self, other):
        return self._base_value > _value_of(other)

    def __ge__(self, other):
        return self._base_value >= _value_of(other)

    def __add__(self, other):
        return self._base_value + _value_of(other)

    def __radd__(self, other):
        return _value_of(other) + self._base_value

    def __mul__(self, other):
        return self._base_value * _value_of(other)

    def __rmul__(self, other):
        return _value_of(other) * self._base_value


class _Number(_Value):
    def __bool__(self):
        return self._base_value != 0

    def __format__(self, spec):
        return format(self._base_value, spec)

    def __int__(self):
        return int(self._base_value)

    def __float__(self):
        return float(self._base_value)

    def __round__(self, *digits):
        return round(self._base_value, *digits)

    def __neg__(self):
        return -self._base_value

    def __pos__(self):
        return self._base_value

    def __abs__(self):
        return abs(self._base_value)

    def __divmod__(self, other):
        return divmod(self._base_value, _value_of(other))

    def __sub__(self, other):
        return self._base_value - _value_of(other)

    def __rsub__(self, other):
        return _value_of(other) - self._base_value

    def __truediv__(self, other):
        return self._base_value / _value_of(other)

    def __rtruediv__(self, other):
        return _value_of(other) / self._base_value

    def __floordiv__(self, other):
        return self._base_value // _value_of(other)

    def __rfloordiv__(self, other):
        return _value_of(other) // self._base_value

    def __mod__(self, other):
        return self._base_value % _value_of(other)

    def __rmod__(self, other):
        return _value_of(other) % self._base_value

    def __pow__(self, other):
        return self._base_value ** _value_of(other)

    def __rpow__(self, other):
        return _value_of(other) ** self._base_value


class IntBase(_Number):
    """The base class of `class C(int)`."""

    def bit_length(self):
        return self._base_value.bit_length()

    def bit_count(self):
        return self._base_value.bit_count()

    def __index__(self):
        return self._base_value

    def __invert__(self):
        return ~self._base_value

    def __and__(self, other):
        return self._base_value & _value_of(other)

    def __rand__(self, other):
        return _value_of(other) & self._base_value

    def __or__(self, other):
        return self._base_value | _value_of(other)

    def __ror__(self, other):
        return _value_of(other) | self._base_value

    def __xor__(self, other):
        return self._base_value ^ _value_of(other)

    def __rxor__(self, other):
        return _value_of(other) ^ self._base_value

    def __lshift__(self, other):
        return self._base_value << _value_of(other)

    def __rlshift__(self, other):
        return _value_of(other) << self._base_value

    def __rshift__(self, other):
        return self._base_value >> _value_of(other)

    def __rrshift__(self, other):
        return _value_of(other) >> self._base_value


class FloatBase(_Number):
    """The base class of `class C(float)`."""

    def is_integer(self):
        return self._base_value.is_integer()


class _Sequence(_Value):
    def __getitem__(self, i):
        return self._base_value[i]

    def __len__(self):
        return len(self._base_value)

    def __iter__(self):
        return iter(self._base_value)

    def __contains__(self, x):
        return _value_of(x) in self._base_value

    def __getattr__(self, name):
        if name == "_base_value":
            raise AttributeError(name)
        return getattr(self._base_value, name)


class StrBase(_Sequence):
    """The base class of `class C(str)`."""

    def __int__(self):
        return int(self._base_value)

    def __float__(self):
        return float(self._base_value)

    def __str__(self):
        return self._base_value

    def __format__(self, spec):
        return format(self._base_value, spec)

    def __mod__(self, values):
        return self._base_value % values


class TupleBase(_Sequence):
    """The base class of `class C(tuple)`."""

    def count(self, x):
        return self._base_value.count(x)

    def index(self, x, *bounds):
        return self._base_value.index(x, *bounds)


class SetBase(_Ordered):
    """The base class of `class C(set)`."""

    _base_type = set

    def __init__(self, iterable=()):
        object.__setattr__(self, "_base_value", set(iterable))

    def add(self, x):
        self._base_value.add(x)

    def discard(self, x):
        self._base_value.discard(x)

    def remove(self, x):
        self._base_value.remove(x)

    def pop(self):
        return self._base_value.pop()

    def update(self, *others):
        self._base_value.update(*[_value_of(other) for other in others])

    def union(self, *others):
        return self._base_value.union(*[_value_of(other) for other in others])

    def intersection(self, *others):
        return self._base_value.intersection(*[_value_of(other) for other in others])

    def difference(self, *others):
        return self._base_value.difference(*[_value_of(other) for other in others])

    def symmetric_difference(self, other):
        return self._base_value.symmetric_difference(_value_of(other))

    def issubset(self, other):
        return self._base_value.issubset(_value_of(other))

    def issuperset(self, other):
        return self._base_value.issuperset(_value_of(other))

    def isdisjoint(self, other):
        return self._base_value.isdisjoint(_value_of(other))

    def __or__(self, other):
        return self.union(other) if isinstance(other, set) else NotImplemented

    def __and__(self, other):
        return self.intersection(other) if isinstance(other, set) else NotImplemented

    def __sub__(self, other):
        return self.difference(other) if isinstance(other, set) else NotImplemented

    def __xor__(self, other):
        return self.symmetric_difference(other) if isinstance(other, set) else NotImplemented

    def __ror__(self, other):
        return other | self._base_value if isinstance(other, set) else NotImplemented

    def __rand__(self, other):
        return other & self._base_value if isinstance(other, set) else NotImplemented

    def __rsub__(self, other):
        return other - self._base_value if isinstance(other, set) else NotImplemented

    def __ior__(self, other):
        self.update(other)
        return self

    def __repr__(self):
        text = repr(self._base_value) if self._base_value else ""
        return f"{type(self).__name__}({text})"


def _value_of(x):
    return x._base_value if isinstance(x, (ListBase, DictBase, IntBase, FloatBase, StrBase, TupleBase, SetBase)) else x
