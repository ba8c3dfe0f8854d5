# Classes that derive from types whose objects do not change, and from set; attributes of functions and exceptions.

import math
from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field
from functools import partial
from typing import Generic, NamedTuple, TypeVar


class Name(str):
    kind = "name"

    def shout(self):
        return self.upper() + "!"


class Tag(str):
    def __init__(self, text):
        self.length = len(text)


class Seconds(float):
    def twice(self):
        return Seconds(self * 2)


class Shape(tuple):
    @property
    def rows(self):
        return self[0]

    def volume(self):
        n = 1
        for d in self:
            n *= d
        return n


class Bag(set):
    def add_all(self, items):
        for item in items:
            self.add(item)
        return self


def texts():
    s = Name("abc")
    print(s, s.shout(), s + "d", "x" + s, len(s), s == "abc", "abc" == s, isinstance(s, str), s[1:], s[0], s.kind)
    print({s: 1}["abc"], {"abc": 2}[s], s in {"abc"}, s in ["abc"], "b" in s, f"{s:>5}|{s!r}|{s}", "-".join([s, "z"]))
    print(sorted([Name("b"), "a", Name("c")]), s * 2, [c for c in s], s.replace("a", "q"), s.split("b"), s < "abd", bool(Name()))
    print(hash(s) == hash("abc"), str(s), type(s).__name__, s.startswith("a"), "%s" % s, Tag("four").length, Tag("four") == "four")
    print(int(Name("12")), float(Name("1.5")), s.find("c"), max(s), list(enumerate(s)), dict(a=s))


def numbers():
    f = Seconds(1.5)
    print(f, f + 1, 2 * f, f.twice(), type(f.twice()).__name__, isinstance(f, float), f < 2, f == 1.5, f"{f:.2f}", round(f), int(f))
    print({f: 1}[1.5], sum([f, f]), max(f, 1.0), abs(Seconds(-2.5)), -f, f.is_integer(), f // 1, f % 1, f**2, float(f), bool(Seconds()))


def sequences():
    t = Shape((3, 4))
    print(t, t.rows, t.volume(), len(t), t + (5,), (1,) + t, t == (3, 4), tuple(t), t[0], t[-1], t[:1], isinstance(t, tuple))
    a, b = t
    print(a, b, [*t], {t: 1}[(3, 4)], 3 in t, t.index(4), t.count(3), t < (3, 5), max(t), sorted(t, reverse=True), hash(t) == hash((3, 4)))
    print(list(zip(t, "ab")), dict([t]), t * 2, Shape(), Shape([1]), Shape(x for x in range(3)))


def sets():
    s = Bag([1, 2]).add_all([3])
    print(sorted(s), 3 in s, len(s), isinstance(s, set), sorted(s | {9}), sorted({9} | s), sorted(s & {1}), sorted(s - {1}), sorted(s ^ {1, 7}))
    s |= {5}
    s.discard(1)
    print(sorted(s), s == {2, 3, 5}, {2} <= s, s.issubset({2, 3, 5, 6}), type(s.copy()).__name__, bool(Bag()), Bag([4]), Bag())


@dataclass
class Tile:
    rows: int
    cols: tuple = (1, 2)
    parts: list = field(default_factory=list)


class Pair(NamedTuple):
    a: object
    b: int = 4


@dataclass(frozen=True)
class Fixed:
    n: int = 1


def conversions():
    tile = Tile(1, parts=[Tile(2), {"k": Tile(3)}])
    print(astuple(tile), asdict(tile), asdict(Tile(1, Pair(Tile(5)))), astuple(Tile(2), tuple_factory=list))
    print(Pair(1)._fields, Pair._fields, asdict(tile)["parts"] is tile.parts)
    try:
        Fixed().n = 2
    except FrozenInstanceError as e:
        print(type(e).__name__, isinstance(e, AttributeError))


def counted(f):
    def inner(*args):
        inner.calls += 1
        return f(*args)

    inner.calls = 0
    inner.table = {}
    return inner


@counted
def plus_one(x):
    return x + 1


def functions():
    print(plus_one(1), plus_one(2), plus_one.calls, hasattr(plus_one, "nothing"), getattr(plus_one, "nothing", 7))
    plus_one.table["a"] = 3
    plus_one.label = "p"
    print(plus_one.table, plus_one.label)


class Rounded:
    def __round__(self, digits=None):
        return ("rounded", digits)


    def __floor__(self):
        return "floor"

    def __ceil__(self):
        return "ceil"


T = TypeVar("T")


class Box(Generic[T]):
    def __init__(self, value: T):
        self.value = value


class Code(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


def chain():
    try:
        try:
            raise ValueError("a")
        except ValueError as e:
            raise Code("b", 3) from e
    except Code as e:
        print(repr(e.__cause__), repr(e.__context__), e.__suppress_context__, e.code)
    try:
        try:
            1 // 0
        except ZeroDivisionError:
            raise KeyError("k")
    except KeyError as e:
        print(e.__cause__, type(e.__context__).__name__, e.__suppress_context__, e.args)
    try:
        try:
            raise ValueError(1)
        except ValueError:
            [][1]
    except IndexError as e:
        print(type(e.__context__).__name__, e.__cause__)
    try:
        raise RuntimeError("r") from None
    except RuntimeError as e:
        print(e.__cause__, e.__context__, e.__suppress_context__)
        e.extra = 5
        print(e.extra, e.with_traceback(None) is e)
    try:
        raise RuntimeError from KeyError
    except RuntimeError as e:
        print(repr(e.__cause__))
    error = None
    for i in range(3):
        try:
            if error is not None:
                raise ValueError(i) from error
            raise ValueError(i)
        except ValueError as e:
            error = e
    print(error.args, error.__cause__.args, error.__cause__.__cause__.args, error.__cause__.__cause__.__cause__)


def main():
    texts()
    numbers()
    sequences()
    sets()
    conversions()
    functions()
    print(round(Rounded()), round(Rounded(), 2), math.floor(Rounded()), math.ceil(Rounded()), Box[int](3).value)
    p = partial(pow, 2, mod=5)
    print(p(3), p.func is pow, p.args, p.keywords)
    chain()
