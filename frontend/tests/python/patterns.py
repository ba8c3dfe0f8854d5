"""`match`: every kind of pattern."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: int
    y: int = 0


class Size(NamedTuple):
    rows: int
    columns: int


class Custom:
    __match_args__ = ("second", "first")

    def __init__(self, first, second):
        self.first, self.second = first, second


class Plain:
    def __init__(self):
        self.a = 1


LIMIT = 7


class Names:
    LIMIT = 9


def kind(v):
    match v:
        case 0 | 1:
            return "bit"
        case -3:
            return "minus three"
        case 2.5:
            return "float"
        case "one" | "two" as word:
            return "word " + word
        case None:
            return "none"
        case True:
            return "true"
        case Names.LIMIT:
            return "limit"
        case Color.RED:
            return "red"
        case Color():
            return "color"
        case []:
            return "empty"
        case [x]:
            return f"one {x}"
        case [1, *rest]:
            return f"one and {rest}"
        case [first, *_, last] if first == last:
            return f"same ends {first}"
        case (a, (b, c)):
            return f"nested {a} {b} {c}"
        case [*start, "end"]:
            return f"to the end {start}"
        case {"op": "add", "args": [p, q]}:
            return p + q
        case {"op": str(name), **rest}:
            return f"{name} {sorted(rest)}"
        case {}:
            return "mapping"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=n) | Point(n, 0):
            return f"axis {n}"
        case Point(x, y):
            return f"point {x} {y}"
        case Custom(s, first=f):
            return f"custom {s} {f}"
        case Plain(a=1, b=_):
            return "has b"
        case Plain(a=value):
            return f"plain {value}"
        case int(n) if n > 100:
            return f"large {n}"
        case int() | float():
            return "number"
        case str(s):
            return f"str {s}"
        case _:
            return "other"


def trap(f):
    try:
        return f()
    except TypeError as e:
        return type(e).__name__


def too_many(v):
    match v:
        case Point(1, 2, 3):
            return 1


def walk(tree):
    match tree:
        case (left, value, right):
            yield from walk(left)
            yield value
            yield from walk(right)
        case None:
            pass
        case leaf:
            yield leaf


def guards():
    log = []

    def note(x, result):
        log.append(x)
        return result

    match 3:
        case x if note("a", False):
            log.append("first")
        case x if note("b", True):
            log.append(x)
        case x if note("c", True):
            log.append("never")
    return log, x


def main():
    values = [0, 1, True, False, -3, 2.5, "one", "two", "three", None, 9, 7, 101, 5, 1.5, Color.RED, Color.BLUE, [], (), [5], (5,)]
    values += [[1, 2, 3], (1, 2), [4, 0, 4], (2, (3, 4)), [2, (3, 4)], ["a", "b", "end"], [2, 3], range(3), "ab"]
    values += [{"op": "add", "args": [1, 2]}, {"op": "neg", "x": 1}, {"op": 3}, {}, {"z": 1}]
    values += [Point(0, 0), Point(0, 4), Point(4), Point(2, 3), Size(2, 2), Size(1, 5), Custom(1, 2), Plain(), {1, 2}, lambda: 1]
    for v in values:
        print(kind(v))
    print(trap(lambda: too_many(Point(1, 2))))
    print(list(walk(((None, 1, None), 2, (3, 4, None)))))
    print(guards())
    match (1, 2), 3:
        case (a, b), c if (d := a + b) == c:
            print(a, b, c, d)
    match 5:
        case 6:
            print("no")
    s = Plain()
    s.b = 2
    print(kind(s))
    match {"a": 1, "b": 2}:
        case {"a": x, **others} if not others:
            print("alone")
        case {"a": x, **others}:
            print(x, others)
    match [1, [2, [3, 4]]]:
        case [_, [_, [*_, last]]]:
            print(last)
    for item in [1, "a", None]:
        match item:
            case int():
                continue
            case str():
                print("str")
            case _:
                break
    match "x":
        case str() as whole:
            print(whole)
