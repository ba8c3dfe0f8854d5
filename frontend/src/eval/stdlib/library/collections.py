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


class OrderedDict(DictBase):
    def move_to_end(self, key, last=True):
        value = self.pop(key)
        others = [] if last else list(self.items())
        if not last:
            self.clear()
        self[key] = value
        for other, kept in others:
            self[other] = kept

    def popitem(self, last=True):
        if not self:
            raise KeyError("dictionary is empty")
        key = next(reversed(self)) if last else next(iter(self))
        return key, self.pop(key)

    def copy(self):
        return type(self)(self)

    def __eq__(self, other):
        same = super().__eq__(other)
        return same and list(self) == list(other) if isinstance(other, OrderedDict) else same

    def __ne__(self, other):
        return not self == other if isinstance(other, dict) else NotImplemented

    def __repr__(self):
        return f"OrderedDict({self._base_value!r})" if self else "OrderedDict()"


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for mapping in self.maps:
            if key in mapping:
                return mapping[key]
        return self.__missing__(key)

    def __missing__(self, key):
        raise KeyError(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def _merged(self):
        merged = {}
        for mapping in reversed(self.maps):
            merged.update(mapping)
        return merged

    def __len__(self):
        return len(self._merged())

    def __iter__(self):
        return iter(self._merged())

    def __contains__(self, key):
        return any(key in mapping for mapping in self.maps)

    def __bool__(self):
        return any(self.maps)

    def keys(self):
        return self._merged().keys()

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]

    def new_child(self, m=None, **kwargs):
        return type(self)({**(m or {}), **kwargs} if m is None or kwargs else m, *self.maps)

    @property
    def parents(self):
        return type(self)(*self.maps[1:])

    def copy(self):
        return type(self)(self.maps[0].copy(), *self.maps[1:])

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        del self.maps[0][key]

    def update(self, *args, **kwargs):
        self.maps[0].update(*args, **kwargs)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key, *default):
        return self.maps[0].pop(key, *default)

    def __eq__(self, other):
        return dict(self) == dict(other) if isinstance(other, (dict, ChainMap)) else NotImplemented

    def __repr__(self):
        return f"ChainMap({', '.join(map(repr, self.maps))})"


class SimpleNamespace:
    def __init__(self, mapping=(), /, **kwargs):
        for key, value in {**dict(mapping), **kwargs}.items():
            setattr(self, key, value)

    def __eq__(self, other):
        return self.__dict__ == other.__dict__ if isinstance(other, SimpleNamespace) else NotImplemented

    def __repr__(self):
        return "namespace(" + ", ".join(f"{key}={value!r}" for key, value in self.__dict__.items()) + ")"

    __hash__ = None
