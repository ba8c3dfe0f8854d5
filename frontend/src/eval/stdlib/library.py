"""Parts of Python's library that the evaluator runs as Python: it makes a module of this file when a kernel first uses one of the names.

Each follows the documentation of Python. What is left out raises AttributeError or TypeError.
"""


class deque:
    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        self._items = []
        self.maxlen = maxlen
        self.extend(iterable)

    def append(self, x):
        self._items.append(x)
        if self.maxlen is not None and len(self._items) > self.maxlen:
            self._items.pop(0)

    def appendleft(self, x):
        self._items.insert(0, x)
        if self.maxlen is not None and len(self._items) > self.maxlen:
            self._items.pop()

    def extend(self, iterable):
        for x in list(iterable):
            self.append(x)

    def extendleft(self, iterable):
        for x in list(iterable):
            self.appendleft(x)

    def pop(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop()

    def popleft(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop(0)

    def rotate(self, n=1):
        if self._items:
            n %= len(self._items)
            cut = len(self._items) - n
            self._items = self._items[cut:] + self._items[:cut]

    def clear(self):
        self._items = []

    def copy(self):
        return deque(self._items, self.maxlen)

    def __copy__(self):
        return deque(self._items, self.maxlen)

    def count(self, x):
        return self._items.count(x)

    def index(self, x, *bounds):
        at = self._items[slice(*bounds)].index(x) if bounds and len(bounds) == 2 else self._items.index(x, *bounds)
        return at + range(len(self._items))[bounds[0] :].start if len(bounds) == 2 else at

    def insert(self, i, x):
        if self.maxlen is not None and len(self._items) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        self._items.insert(i, x)

    def remove(self, x):
        if x not in self._items:
            raise ValueError("deque.remove(x): x not in deque")
        self._items.remove(x)

    def reverse(self):
        self._items.reverse()

    def _at(self, i):
        if isinstance(i, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        if not -len(self._items) <= i < len(self._items):
            raise IndexError("deque index out of range")
        return i

    def __getitem__(self, i):
        return self._items[self._at(i)]

    def __setitem__(self, i, x):
        self._items[self._at(i)] = x

    def __delitem__(self, i):
        del self._items[self._at(i)]

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def __reversed__(self):
        return reversed(self._items)

    def __contains__(self, x):
        return x in self._items

    def __eq__(self, other):
        return self._items == other._items if isinstance(other, deque) else NotImplemented

    def __lt__(self, other):
        return self._items < other._items if isinstance(other, deque) else NotImplemented

    def __le__(self, other):
        return self._items <= other._items if isinstance(other, deque) else NotImplemented

    def __gt__(self, other):
        return self._items > other._items if isinstance(other, deque) else NotImplemented

    def __ge__(self, other):
        return self._items >= other._items if isinstance(other, deque) else NotImplemented

    def __add__(self, other):
        if not isinstance(other, deque):
            raise TypeError("can only concatenate deque to deque")
        return deque(self._items + other._items, self.maxlen)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, n):
        return deque(self._items * n, self.maxlen)

    def __rmul__(self, n):
        return deque(self._items * n, self.maxlen)

    def __repr__(self):
        end = "" if self.maxlen is None else f", maxlen={self.maxlen}"
        return f"deque({self._items!r}{end})"


class ListBase:
    """What `class C(list)` derives from."""

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

    def clear(self):
        self._base_value.clear()

    def reverse(self):
        self._base_value.reverse()

    def sort(self, *, key=None, reverse=False):
        self._base_value.sort(key=key, reverse=reverse)

    def copy(self):
        return self._base_value.copy()

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

    def __len__(self):
        return len(self._base_value)

    def __iter__(self):
        return iter(self._base_value)

    def __reversed__(self):
        return reversed(self._base_value)

    def __contains__(self, x):
        return x in self._base_value

    def __eq__(self, other):
        return self._base_value == _value_of(other) if isinstance(other, list) else NotImplemented

    def __ne__(self, other):
        return self._base_value != _value_of(other) if isinstance(other, list) else NotImplemented

    def __lt__(self, other):
        return self._base_value < _value_of(other) if isinstance(other, list) else NotImplemented

    def __le__(self, other):
        return self._base_value <= _value_of(other) if isinstance(other, list) else NotImplemented

    def __gt__(self, other):
        return self._base_value > _value_of(other) if isinstance(other, list) else NotImplemented

    def __ge__(self, other):
        return self._base_value >= _value_of(other) if isinstance(other, list) else NotImplemented

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

    def __repr__(self):
        return repr(self._base_value)

    __hash__ = None


class DictBase:
    """What `class C(dict)` derives from."""

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

    def __contains__(self, key):
        return key in self._base_value

    def __len__(self):
        return len(self._base_value)

    def __iter__(self):
        return iter(self._base_value)

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

    def clear(self):
        self._base_value.clear()

    def copy(self):
        return dict(self._base_value)

    def __eq__(self, other):
        return self._base_value == _value_of(other) if isinstance(other, dict) else NotImplemented

    def __ne__(self, other):
        return self._base_value != _value_of(other) if isinstance(other, dict) else NotImplemented

    def __or__(self, other):
        return self._base_value | _value_of(other) if isinstance(other, dict) else NotImplemented

    def __ror__(self, other):
        return _value_of(other) | self._base_value if isinstance(other, dict) else NotImplemented

    def __ior__(self, other):
        self._base_value.update(_value_of(other))
        return self

    def __repr__(self):
        return repr(self._base_value)

    __hash__ = None


class IntBase:
    """What `class C(int)` derives from."""

    def __init__(self, *args, **kwargs):
        object.__setattr__(self, "_base_value", int(*[_value_of(arg) for arg in args]))

    def bit_length(self):
        return self._base_value.bit_length()

    def bit_count(self):
        return self._base_value.bit_count()

    def __index__(self):
        return self._base_value

    def __int__(self):
        return self._base_value

    def __float__(self):
        return float(self._base_value)

    def __bool__(self):
        return self._base_value != 0

    def __hash__(self):
        return hash(self._base_value)

    def __repr__(self):
        return repr(self._base_value)

    def __format__(self, spec):
        return format(self._base_value, spec)

    def __round__(self, *digits):
        return round(self._base_value, *digits)

    def __neg__(self):
        return -self._base_value

    def __pos__(self):
        return self._base_value

    def __abs__(self):
        return abs(self._base_value)

    def __invert__(self):
        return ~self._base_value

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

    def __sub__(self, other):
        return self._base_value - _value_of(other)

    def __rsub__(self, other):
        return _value_of(other) - self._base_value

    def __mul__(self, other):
        return self._base_value * _value_of(other)

    def __rmul__(self, other):
        return _value_of(other) * self._base_value

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


def _value_of(x):
    return x._base_value if isinstance(x, (ListBase, DictBase, IntBase)) else x


class Counter(DictBase):
    def __init__(self, iterable=None, **kwargs):
        super().__init__()
        self.update(iterable, **kwargs)

    def __missing__(self, key):
        return 0

    def __delitem__(self, key):
        if key in self:
            super().__delitem__(key)

    def _change(self, sign, iterable, kwargs):
        if isinstance(iterable, dict):
            for key, n in iterable.items():
                self[key] = self[key] + sign * n
        elif iterable is not None:
            for key in iterable:
                self[key] = self[key] + sign
        for key, n in kwargs.items():
            self[key] = self[key] + sign * n

    def update(self, iterable=None, **kwargs):
        self._change(1, iterable, kwargs)

    def subtract(self, iterable=None, **kwargs):
        self._change(-1, iterable, kwargs)

    def elements(self):
        for key, n in self.items():
            for _ in range(n):
                yield key

    def most_common(self, n=None):
        found = sorted(self.items(), key=lambda item: item[1], reverse=True)
        return found if n is None else found[:n]

    def total(self):
        return sum(self.values())

    def copy(self):
        return Counter(self)

    def __eq__(self, other):
        if not isinstance(other, Counter):
            return super().__eq__(other)
        return all(self[key] == other[key] for both in (self, other) for key in both)

    def __ne__(self, other):
        return not self == other if isinstance(other, Counter) else super().__ne__(other)

    def _combine(self, other, of):
        result = Counter()
        for both in (self, other):
            for key in both:
                n = of(self[key], other[key])
                if n > 0:
                    result[key] = n
        return result

    def __add__(self, other):
        return self._combine(other, lambda a, b: a + b) if isinstance(other, Counter) else NotImplemented

    def __sub__(self, other):
        return self._combine(other, lambda a, b: a - b) if isinstance(other, Counter) else NotImplemented

    def __or__(self, other):
        return self._combine(other, max) if isinstance(other, Counter) else NotImplemented

    def __and__(self, other):
        return self._combine(other, min) if isinstance(other, Counter) else NotImplemented

    def __iadd__(self, other):
        return self + other

    def __isub__(self, other):
        return self - other

    def __pos__(self):
        return self + Counter()

    def __neg__(self):
        return Counter() - self

    def __repr__(self):
        if not self:
            return "Counter()"
        items = ", ".join(f"{key!r}: {n!r}" for key, n in self.most_common())
        return "Counter({" + items + "})"


def groupby(iterable, key=None):
    items = iter(iterable)
    end = object_of_its_own()
    state = {"item": next(items, end), "group": 0}

    def key_of(item):
        return item if key is None else key(item)

    def group(number, own):
        while state["group"] == number and state["item"] is not end:
            item = state["item"]
            if state["key"] != own:
                return
            yield item
            if state["group"] == number:
                advance()

    def advance():
        state["item"] = next(items, end)
        if state["item"] is not end:
            state["key"] = key_of(state["item"])

    if state["item"] is not end:
        state["key"] = key_of(state["item"])
    while state["item"] is not end:
        state["group"] += 1
        own = state["key"]
        yield own, group(state["group"], own)
        while state["item"] is not end and state["key"] == own:
            advance()


def compress(data, selectors):
    return (x for x, chosen in zip(data, selectors) if chosen)


class object_of_its_own:
    pass


def itemgetter(first, *others):
    def get(obj):
        return tuple(obj[i] for i in (first, *others)) if others else obj[first]

    return get


def attrgetter(first, *others):
    def one(obj, path):
        for name in path.split("."):
            obj = getattr(obj, name)
        return obj

    def get(obj):
        return tuple(one(obj, path) for path in (first, *others)) if others else one(obj, first)

    return get


def methodcaller(name, *args, **kwargs):
    def call(obj):
        return getattr(obj, name)(*args, **kwargs)

    return call


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        return None

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, self._exceptions)


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, *args):
        return None


class ExitStack:
    def __init__(self):
        self._exits = []

    def enter_context(self, context):
        value = enter_context(context)
        self._exits.append(lambda *error: exit_context(context, *error))
        return value

    def push(self, exit):
        if hasattr(exit, "__exit__"):
            self._exits.append(lambda *error: exit.__exit__(*error))
        else:
            self._exits.append(exit)
        return exit

    def callback(self, function, /, *args, **kwargs):
        def call(*error):
            function(*args, **kwargs)

        self._exits.append(call)
        return function

    def pop_all(self):
        other = type(self)()
        other._exits, self._exits = self._exits, []
        return other

    def close(self):
        self.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        given = error
        while self._exits:
            exit = self._exits.pop()
            try:
                if exit(None if error is None else type(error), error, None):
                    error = None
            except BaseException as new:
                error = new
        if error is not None and error is not given:
            raise error
        return given is not None and error is None


class singledispatch:
    def __init__(self, function):
        self._functions = [(object, function)]
        self.__name__ = getattr(function, "__name__", "")
        self.__wrapped__ = function

    def register(self, kind, function=None):
        if function is None:
            if not is_type(kind):
                kinds = types_of_first_parameter(kind)
                for one in kinds:
                    self.register(one, kind)
                return kind
            return lambda function: self.register(kind, function)
        self._functions = [(known, f) for known, f in self._functions if known is not kind] + [(kind, function)]
        return function

    def dispatch(self, kind):
        best, found = None, None
        for known, function in self._functions:
            if issubclass(kind, known) and (best is None or issubclass(known, best)):
                best, found = known, function
        return found

    def __call__(self, first, *args, **kwargs):
        best, found = None, None
        for known, function in self._functions:
            if isinstance(first, known) and (best is None or issubclass(known, best)):
                best, found = known, function
        return found(first, *args, **kwargs)
