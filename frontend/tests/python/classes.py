"""Classes: derived from built-in types, Enums with `__init__`, dataclasses, deletion and indices, methods without a receiver."""

import operator
from dataclasses import KW_ONLY, InitVar, dataclass, field, fields
from enum import Enum, IntEnum


def attempt(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


class Shapes(list):
    def __init__(self, items=(), name="shapes"):
        super().__init__(items)
        self.name = name

    def total(self):
        return sum(self)

    def append(self, x):
        super().append(x * 10)


class Table(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]

    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value)


class Config(dict):
    __getattr__ = dict.get

    def __setattr__(self, key, value):
        self[key] = value


class Bytes(int):
    def kib(self):
        return self / 1024

    def __repr__(self):
        return f"Bytes({int(self)})"


def lists():
    s = Shapes([3, 1, 2], name="n")
    s.append(4)
    print(s, len(s), s[0], s[-1], s[1:3], s.total(), s.name, 40 in s, isinstance(s, list), type(s).__name__, isinstance([], Shapes))
    s[0] = 7
    s[1:2] = [8, 9]
    del s[-1]
    s.sort(reverse=True)
    print(s, list(s), [x + 1 for x in s], s == [9, 8, 7, 2], [9, 8, 7, 2] == s, s + [1], [1] + s, s * 2, sorted(s), max(s), bool(Shapes()))
    s += [5]
    a, b, *rest = s
    print(a, b, rest, s.index(5), s.count(9), s.pop(), s.copy(), s.name, list(reversed(s)), list(enumerate(s)), s < [10], tuple(s), f"{s}", "%s" % s)
    print([*s], [x for x in zip(s, s)], attempt(lambda: s[99]), attempt(lambda: hash(s)), issubclass(Shapes, list), s != [1])


def dicts():
    t = Table(a=1)
    print(t["a"], t["new"], t, "x" in t, len(t), isinstance(t, dict), list(t), sorted(t.items()), t.get("q"), t == {"a": 1, "new": 1})
    t.update({"z": 3}, y=4)
    del t["a"]
    print(t, t.pop("z"), t.pop("q", 0), t.setdefault("w", 5), dict(t), {**t}, t | {"v": 1}, list(t.values()), attempt(lambda: Config()["k"]), bool(Table()))
    c = Config(depth=2)
    c.width = 3
    print(c.depth, c.width, c.missing, c["width"], "%(depth)d and %(width)s" % c, {k: v for k, v in c.items()}, "{depth}".format(**c), issubclass(Config, dict))

    def take(**kw):
        return sorted(kw)

    print(take(**c), {**c} == c, c.copy() == c)


def ints():
    n = Bytes(2048)
    print(n, n.kib(), n + 1, 1 + n, n * 2, n // 3, n % 100, -n, n == 2048, n > 5, 5 < n, 2 * n, n / 4, n**2, n & 7, n | 1, n << 1, abs(Bytes(-3)), int(n), float(n))
    print([0] * Bytes(3), list(range(Bytes(3))), "abc"[Bytes(1)], [1, 2, 3][: Bytes(2)], isinstance(n, int), hash(n) == hash(2048), f"{n:d}", max(n, 1), divmod(7, 2), bool(Bytes(0)))
    print({Bytes(1): "x"}[Bytes(1)], Bytes("12").kib(), Bytes(3.7), sum([Bytes(1), Bytes(2)]), round(n), n.bit_length(), sorted([Bytes(3), Bytes(1), 2], key=int))


class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.42e23, 3.39e6)

    def __init__(self, mass, radius):
        self.mass = mass
        self.radius = radius

    @property
    def gravity(self):
        return round(6.67e-11 * self.mass / self.radius**2, 2)


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"

    def __init__(self, text):
        self.label = text.upper()
        self.rank = len(text)


class Level(IntEnum):
    LOW = 1
    HIGH = 2

    def __init__(self, n):
        self.double = n * 2


def enums():
    print(Planet.EARTH.gravity, Planet.MARS.mass, Planet.EARTH.value, Planet["MARS"] is Planet.MARS, [p.name for p in Planet], Planet((5.97e24, 6.37e6)))
    print(Mode.FAST.label, Mode("slow").rank, Mode.SLOW, Level.HIGH.double, Level.HIGH + 1, Level(1).double, attempt(lambda: Mode.FAST.nothing))
    Mode.FAST.extra = 1
    print(Mode.FAST.extra, attempt(lambda: Mode.SLOW.extra))


@dataclass
class Tile:
    rows: int
    _: KW_ONLY
    cols: int = 4
    dtype: str = "f32"


@dataclass
class Plan:
    size: int
    factor: InitVar[int]
    tiles: list = field(default_factory=list)
    extra: InitVar[int] = 0
    total: int = field(init=False)

    def __post_init__(self, factor, extra):
        self.total = self.size * factor + extra


@dataclass
class Derived(Plan):
    more: int = 1


def dataclasses():
    print(Tile(1), Tile(1, cols=2), Tile(rows=3, dtype="x"), attempt(lambda: Tile(1, 2)), Tile(1) == Tile(1, cols=4), [f.name for f in fields(Tile)])
    print(Plan(3, 4), Plan(3, 4, [1], 5).total, Plan(size=2, factor=2, extra=1), [f.name for f in fields(Plan)], attempt(lambda: Plan(3)), Derived(1, 2, more=3))
    print(Plan(3, 4) == Plan(4, 3), attempt(lambda: Plan(3, 4).factor), Plan(3, 4).extra)


class Sparse:
    def __init__(self):
        self.items = {}

    def __setitem__(self, i, x):
        self.items[i] = x

    def __delitem__(self, i):
        if isinstance(i, slice):
            self.items = {k: v for k, v in self.items.items() if k not in range(*i.indices(100))} if hasattr(i, "indices") else {}
        else:
            del self.items[i]


class At:
    def __init__(self, n):
        self.n = n

    def __index__(self):
        return self.n


def deletions():
    s = Sparse()
    s[1] = s[2, 3] = s["x"] = 0
    del s[2, 3]
    print(s.items, attempt(lambda: operator.getitem(s.items, 9)))
    del s["x"], s[1]
    print(s.items)
    x = list(range(10))
    print(x[At(3)], x[At(1) : At(9) : At(3)], list(range(At(3))), [0] * 2, "abc"[At(-1)], (5, 6)[At(1)], attempt(lambda: x[At("y")]), int(At(4)), hex(255))
    x[::2] = "abcde"
    print(x)
    x[8:2:-3] = ["p", "q"]
    print(x, attempt(lambda: operator.setitem(x, slice(0, 9, 2), [1])) if hasattr(operator, "setitem") and False else None)
    del x[::3]
    print(x)
    del x[5:0:-2]
    print(x)
    try:
        x[::2] = [1]
    except ValueError as e:
        print(e)
    y = list(range(6))
    print(y[slice(2)], y[slice(2, None)], y[slice(None, 2)], y[slice(1, 5, 2)], y[slice(None, None, -2)], slice(3), slice(3, None), y[slice(None)])
    x[At(0)] = "first"
    x[1:1] = [At(1).n]
    print(x)


def methods():
    words = ["b", "A", "c"]
    print(sorted(words, key=str.lower), list(map(str.upper, words)), max(words, key=str.lower), str.join("-", words), sorted([[2, 1], [1]], key=len))
    print(list(map(str.strip, [" a ", "b "])), str.startswith("abc", "ab"), list.count([1, 1], 1), dict.get({"a": 1}, "a"), attempt(lambda: str.lower(5)), attempt(lambda: str.lower()))
    lower = str.lower
    print(lower("ABC"), int.bit_length(8), list(map(dict.copy, [{"a": 1}])), dict.fromkeys("ab"))
    items = []
    list.append(items, 3)
    list.extend(items, [4])
    print(items, list(filter(str.isdigit, "a1b2")), [*map(str.split, ["a b", "c"])], float.is_integer(2.0), set.union({1}, {2}))


def percents():
    d = {"a": 1, "b": 2.5, "name": "x", "k(1)": 3}
    print("%(a)s %(b).2f %(name)r %(a)05d %% %(name)-4s|" % d, "%(k(1))d" % d, "plain" % d, "%s" % d, "%d%%" % 5)
    print(attempt(lambda: "%(a)s" % 3), attempt(lambda: "%(q)s" % d), attempt(lambda: "%d" % (1, 2)), attempt(lambda: "%d %d" % (1,)), attempt(lambda: "x" % 1), "x" % (), "%x %o %e %g" % (255, 8, 0.5, 1e10))


@dataclass
class Initial:
    x: int = 1
    y: int = 2

    def __post_init__(self):
        self.z = self.x * 10 + self.y


class Defined(Initial):
    def __init__(self, x):
        super().__init__(x, y=5)
        self.own = True


class Undecorated(Initial):
    w: int = 7


class Explicit:
    def __init__(self, s):
        self.s = s * 2


@dataclass
class Generated(Explicit):
    s: int = 3


class FromGenerated(Generated):
    def __init__(self):
        super().__init__(4)


class Post(Initial):
    def __post_init__(self):
        super().__post_init__()
        self.z += 1000


class Mixed(Explicit, Initial):
    def __init__(self):
        super().__init__(6)


def constructors():
    d = Defined(4)
    print(d.x, d.y, d.z, d.own, Undecorated(3).z, Undecorated(3, 4).w, attempt(lambda: Undecorated(1, 2, 3)))
    print(Generated().s, Generated(5).s, FromGenerated().s, Post().z, Post(2, 3).z, Mixed().s, attempt(lambda: Mixed().z))
    Initial.__init__(d, 8)
    Explicit.__init__(d, 9)
    print(d.x, d.y, d.z, d.s, attempt(lambda: Initial.__init__(d, 1, 2, 3)))


def main():
    constructors()
    lists()
    dicts()
    ints()
    enums()
    dataclasses()
    deletions()
    methods()
    percents()
