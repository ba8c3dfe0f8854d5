"""Python's library: collections, contextlib, itertools, operator, functools."""

import collections
import contextlib
import functools
import itertools
import math
import operator
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import groupby
from operator import attrgetter, itemgetter, methodcaller


def attempt(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


def deques():
    d = deque([3, 1, 2])
    d.append(4)
    d.appendleft(0)
    print(d, len(d), d[0], d[-1], 3 in d, 9 in d, list(d), bool(d), bool(deque()))
    print(d.pop(), d.popleft(), d)
    d.rotate(1)
    print(d)
    d.rotate(-2)
    print(d, d.count(1), d.index(1), attempt(lambda: d.index(8)))
    d.extend("ab")
    d.extendleft("cd")
    print(d)
    d[0] = "x"
    del d[1]
    d.insert(1, "y")
    d.remove("a")
    d.reverse()
    print(d, d == deque(list(d)), d == list(d), d != deque(), d < deque(["z"]) if isinstance(d[0], str) and len(d) < 1 else None)
    ring = deque(maxlen=2)
    for i in range(5):
        ring.append(i)
        print(ring, ring.maxlen, end=" ")
    ring.appendleft(9)
    print(ring, attempt(lambda: ring.insert(0, 1)), attempt(lambda: deque().pop()), attempt(lambda: deque().popleft()))
    print(attempt(lambda: d[99]), attempt(lambda: deque([], -1)), deque("ab") + deque("c"), deque("ab") * 2, sum(deque([1, 2, 3])))
    first, *rest = deque(range(4))
    print(first, rest, list(reversed(deque("xyz"))), deque([1, 2]) < deque([1, 3]), sorted(deque([2, 1])), max(deque([4, 5])))
    e = d.copy()
    e.clear()
    print(len(d), len(e), isinstance(e, deque), "%s" % e, f"{e}")
    e += [1, 2]
    print(e, [a + b for a, b in zip(e, e)])
    queue = deque([(0, 3)])
    seen = []
    while queue:
        depth, n = queue.popleft()
        seen.append((depth, n))
        if n > 1:
            queue.extend([(depth + 1, n - 1), (depth + 1, n - 2)])
    print(seen)


def counters():
    c = Counter("abracadabra")
    print(c, c["a"], c["z"], "z" in c, len(c), sum(c.values()), c.total(), c.most_common(2), c.most_common())
    c["z"] += 2
    c.update("zz", b=3)
    c.subtract({"a": 1})
    print(c, sorted(c.elements()), dict(c), isinstance(c, dict), isinstance(c, Counter))
    del c["nothing"]
    del c["z"]
    print(sorted(c), sorted(c.items()), list(c.keys()) == list(c), c.get("q"), c.get("q", 5), c.pop("a"), "a" in c)
    a, b = Counter(a=3, b=1), Counter(a=1, b=2, c=0)
    print(a + b, a - b, a & b, a | b, -Counter(a=-1), +Counter(a=-1, b=2), a == Counter(b=1, a=3), a == {"a": 3, "b": 1}, Counter(a=0) == Counter())
    print(Counter(), Counter([1, 1, 2.5]), Counter({"x": 2}).most_common(1)[0][0], {**Counter("aa")}, bool(Counter()))
    shapes = Counter((i % 2, i % 3) for i in range(12))
    print(max(shapes, key=shapes.get), shapes[0, 0])


@contextmanager
def noted(log, name, swallow=False):
    log.append(f"enter {name}")
    try:
        yield name
    except ValueError as e:
        log.append(f"{name} got {e}")
        if not swallow:
            raise
    finally:
        log.append(f"exit {name}")


class Context:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"in {self.name}")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(f"out {self.name} {kind and kind.__name__} {error if kind is ValueError else None}")
        return self.swallow


def stacks():
    log = []
    with ExitStack() as stack:
        names = [stack.enter_context(noted(log, i)) for i in range(3)]
        stack.enter_context(Context(log, "c"))
        stack.callback(log.append, "callback")
        stack.callback(lambda a, b=0: log.append((a, b)), 1, b=2)
        print(names)
    print(log)
    for swallow in (False, True):
        log = []
        try:
            with ExitStack() as stack:
                stack.enter_context(Context(log, "outer"))
                stack.enter_context(noted(log, "middle", swallow))
                stack.enter_context(Context(log, "inner"))
                raise ValueError("oops")
        except ValueError as e:
            log.append(f"caught {e}")
        print(log)
    log = []
    with contextlib.ExitStack() as stack:
        stack.push(Context(log, "pushed"))
        stack.push(lambda *error: log.append(error[0]))
        kept = stack.pop_all()
    print(log)
    kept.close()
    print(log)
    log = []
    try:
        with ExitStack() as stack:
            stack.enter_context(Context(log, "a"))
            stack.callback(lambda: [][0])
    except IndexError:
        log.append("index")
    print(log)


def suppressed():
    with suppress(KeyError, ValueError):
        {}["x"]
        print("not reached")
    with contextlib.suppress(ZeroDivisionError):
        print("no error")
    try:
        with suppress(KeyError):
            [][1]
    except IndexError:
        print("IndexError passes")
    with nullcontext(5) as five:
        print(five)
    with nullcontext() as nothing, suppress():
        print(nothing)

    def first(items):
        with suppress(IndexError):
            return items[0]
        return "none"

    print(first([1]), first([]))


def groups():
    print([(k, list(g)) for k, g in groupby("aaabbca")])
    print([(k, len(list(g))) for k, g in itertools.groupby(range(10), key=lambda i: i // 4)])
    print([k for k, _ in groupby([1, 1, 2, 2, 1])], list(groupby([])))
    it = groupby([1, 1, 2, 3, 3])
    k, g = next(it)
    print(k, next(g))
    k2, g2 = next(it)
    print(k2, list(g), list(g2))
    rows = sorted([("b", 2), ("a", 1), ("b", 1)], key=itemgetter(0))
    print({k: [n for _, n in g] for k, g in groupby(rows, itemgetter(0))})


def getters():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def scaled(self, k, plus=0):
            return self.x * k + plus

    p = Point(1, Point(2, 3))
    print(itemgetter(1)([4, 5]), itemgetter(0, 2)("abc"), itemgetter("k")({"k": 7}), itemgetter(slice(1, 3))([1, 2, 3, 4]))
    print(attrgetter("x")(p), attrgetter("y.x", "x")(p), methodcaller("scaled", 3, plus=1)(p))
    print(sorted([(2, "a"), (1, "b")], key=operator.itemgetter(1)), max([p, p.y], key=operator.attrgetter("x")).x)
    print(list(map(itemgetter(0), ["ab", "cd"])), attempt(lambda: itemgetter(5)([])), attempt(lambda: attrgetter("q")(p)))


class Shape:
    pass


class Square(Shape):
    def __init__(self, side):
        self.side = side


class Unit(Square):
    pass


@functools.singledispatch
def area(x, scale=1):
    return "unknown"


@area.register
def _(x: Square, scale=1):
    return x.side**2 * scale


@area.register(int)
def area_of_int(x, scale=1):
    return x * scale


@area.register(list)
@area.register(tuple)
def _(x, scale=1):
    return sum(area(y, scale) for y in x)


@area.register
def _(x: float | str, scale=1):
    return f"text {x}"


def dispatches():
    print(area(Square(3)), area(Unit(2), 10), area(4, scale=2), area(True), area([1, Square(2), (3,)]), area(1.5), area("s"), area(None), area(Shape()))
    print(area_of_int(5), area.__name__, area.dispatch(Unit)(Unit(3)), area.dispatch(dict)({}))
    area.register(type(None), lambda x, scale=1: "none")
    print(area(None), area(2), area({}))


class Backwards:
    def __reversed__(self):
        return iter("cba")


def more():
    s = {1, 2, 3}
    print(s.isdisjoint({7}), s.isdisjoint([1]), s.issuperset({1}), s.issuperset([4]), s.symmetric_difference({1, 9}), s.issubset(range(5)))
    print(list(itertools.compress("abc", [1, 0, 1])), list(reversed(Backwards())), operator.contains([1], 1), operator.not_(0))


def ordered():
    d = collections.OrderedDict([("a", 1), ("b", 2), ("c", 3)])
    d.move_to_end("a")
    print(list(d.items()), len(d), d == {"a": 1, "b": 2, "c": 3}, isinstance(d, dict))
    d.move_to_end("c", last=False)
    print(list(d), d.popitem(last=False), d.popitem(), list(d), d["b"], d.get("q", 5), "b" in d, {**d}, dict(d))
    e, f = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
    print(e == f, e == dict(f), e != f, list(reversed(e)), list(e.copy().values()), attempt(lambda: d.move_to_end("q")))
    cache = collections.OrderedDict()
    for key in "abcab":
        cache[key] = cache.pop(key, 0) + 1
        if len(cache) > 2:
            cache.popitem(last=False)
    print(list(cache.items()))


def chained():
    a, b = {"x": 1}, {"x": 2, "y": 3}
    c = collections.ChainMap(a, b)
    print(c["x"], c["y"], "z" in c, len(c), sorted(c), c.get("q", 7), c, attempt(lambda: c["q"]))
    c["z"] = 5
    print(a, b, dict(c), c.maps, sorted(c.items()), bool(collections.ChainMap()))
    d = c.new_child({"x": 9})
    print(d["x"], d.parents["x"], d.pop("x"), d["x"], attempt(lambda: d.pop("y")))
    del c["z"]
    print(a, attempt(lambda: c.__delitem__("y")), {**c})


def exact():
    print(math.fsum([0.1] * 10), math.fsum([1e100, 1.0, -1e100]), math.perm(5, 2), math.perm(4), math.dist([0, 0], (3, 4)), math.ldexp(0.5, 4))
    print(math.ldexp(1.0, -1074), math.ldexp(2.0**-1074, 1100), sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)))


def searches():
    t = "abcabcé ab"
    print(t.find("c", 3), t.find("a", -2), t.find("ab", 1, 4), t.rfind("ab", 0, 6), t.index("b", 2), t.count("ab", 1), t.count("", 8), t.find("", 99), t.find("é", None, None))
    print(t.startswith("bc", 1), t.startswith(("x", "c"), 2, 3), t.endswith("c", 0, 3), t.endswith("ab", -2), t.startswith("", 99))
    print(attempt(lambda: t.index("a", 4, 6)), attempt(lambda: t.find("a", "1")))
    w = "  one two   three "
    print(w.split(None, 1), w.split(maxsplit=2), w.split(None, 0), w.split(), w.rsplit(None, 1), w.rsplit(maxsplit=0), w.rsplit(None, 2))
    print("a,b,c".split(sep=","), "a,b,c".split(sep=",", maxsplit=1), "a b".split(sep=None), "".split(None, 1), " ".split(maxsplit=1), " ".rsplit(None, 1))


def main():
    searches()
    more()
    ordered()
    chained()
    exact()
    deques()
    counters()
    stacks()
    suppressed()
    groups()
    getters()
    dispatches()
