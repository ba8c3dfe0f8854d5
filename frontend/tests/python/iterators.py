"""Iterators and the functions that give them: each item is made when it is asked for, and once."""

import functools
import itertools
from itertools import accumulate, chain, count, cycle, islice, takewhile


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Sequence:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return i * 10


def shout(x):
    print("item", x)
    return x


def trap(f):
    try:
        return f()
    except (ValueError, TypeError, StopIteration) as e:
        return type(e).__name__


def main():
    m = map(shout, [1, 2, 3])
    print("lazy")
    print(next(m), list(m), list(m))
    f = filter(lambda x: shout(x) % 2, range(5))
    print(next(f), next(f))
    print(list(filter(None, [0, 1, "", "a"])), list(itertools.filterfalse(None, [0, 1, ""])))
    z = zip([1, 2, 3], "ab")
    print(next(z), list(z))
    print(trap(lambda: list(zip([1], [1, 2], strict=True))), trap(lambda: list(zip([1, 2], [1], strict=True))))
    print(list(zip([1], [2], strict=True)), list(zip()))
    e = enumerate("abc", 5)
    print(next(e), list(e), list(e))
    it = iter([1, 2, 3])
    print([(a, b) for a in it for b in it], next(it, None))
    items = [1, 2, 3]
    it = iter(items)
    next(it)
    items.append(4)
    print(list(it))
    print(list(Countdown(3)), sum(Countdown(4)), list(Sequence()), 20 in Sequence())
    c = Countdown(2)
    print(next(c), next(c), trap(lambda: next(c)))
    print(list(iter(lambda: items.pop(), 2)), items)
    print(trap(lambda: next([1])), trap(lambda: len(zip([1]))), trap(lambda: zip([1])[0]))
    print(list(reversed([1, 2])), next(reversed("ab")))
    print(list(islice(count(3), 4)), list(islice(count(), 2, 9, 3)), list(islice("abc", None)))
    it = iter(range(10))
    print(list(islice(it, 2)), list(islice(it, 1, 3)), next(it))
    print(list(chain("ab", [1], range(2))), list(chain.from_iterable([[1], [2, 3]])))
    print(list(islice(cycle("ab"), 5)), list(cycle([])), list(itertools.repeat(7, 2)))
    print(list(takewhile(lambda x: x < 3, [1, 2, 5, 1])), list(itertools.dropwhile(lambda x: x < 3, [1, 2, 5, 1])))
    print(list(accumulate([1, 2, 3])), list(accumulate([1, 2, 3], lambda a, b: a * b)), list(accumulate([1], initial=5)))
    print(list(itertools.pairwise("abcd")), list(itertools.starmap(pow, [(2, 3), (3, 2)])))
    print(list(itertools.product("ab", repeat=2)) == [(a, b) for a in "ab" for b in "ab"])
    print(list(itertools.combinations(range(3), 2)), len(list(itertools.permutations("abc"))))
    print(list(itertools.zip_longest("abc", [1], fillvalue="-")), functools.reduce(lambda a, b: a + b, count_to(4), 10))
    g = (shout(x) for x in [1, 2])
    print("not yet")
    print(list(g), list(g))
    n = 3
    late = (x * n for x in range(3))
    n = 5
    print(list(late), tuple(y := x for x in (1, 2)), y)
    print([list(i for i in range(n)) for n in range(3)])
    print(sum(x * y for x in range(4) if x % 2 for y in range(x)), {k: v for k, v in zip("ab", count())})
    print(max((len(w), w) for w in ["a", "bcd", "ef"]), all(x for x in []), sorted(x % 3 for x in range(5)))
    print("".join(c for c in "abc"), dict((str(i), i * i) for i in range(3)), set(i % 2 for i in range(4)) == {0, 1})
    print(bool(iter([])), iter(it) is it, it == iter(it))


def count_to(n):
    for i in range(n):
        yield i
