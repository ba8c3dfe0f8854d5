"""Generators: laziness, values sent and returned, exceptions, delegation, cleaning up."""


def numbers(n):
    for i in range(n):
        print("make", i)
        yield i
    return "done"


def echo():
    got = []
    while True:
        x = yield got
        if x is None:
            return got
        got.append(x)


def guarded(log):
    try:
        log.append("in")
        yield 1
        yield 2
    except ValueError as e:
        log.append(f"caught {e}")
        yield "handled"
    else:
        log.append("else")
    finally:
        log.append("out")
        yield "finally"
        log.append("after")


class Guard:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, *args):
        self.log.append("exit")


def nested(depth):
    if depth == 0:
        yield "leaf"
        return 0
    below = yield from nested(depth - 1)
    yield depth
    return below + depth


def expressions():
    a = (yield 1) + (yield 2) * (yield 3)
    b = [(yield a), *(yield "list"), len((yield "len"))]
    c = (yield "left") and (yield "right") or (yield "last")
    d = (yield "if") if (yield "test") else (yield "else")
    e = 1 < (yield "lt") < (yield "chain")
    f = f"{(yield 'f')}-{(yield 'g')!r}"
    g = {(yield "k"): (yield "v"), "z": 1}
    h = dict(p=(yield "kw"))["p"]
    return b, c, d, e, f, g, h


def order():
    log = []

    def note(x):
        log.append(x)
        return x

    r = note(1) + note((yield "a")) + note(3) * (yield "b")
    log.append((yield [note(5), note((yield "c"))]))
    t = [0, 0]
    t[note(0)] += (yield "d")
    n = 10
    n += (yield "e")
    return r, log, t, n


def loops():
    for i in (yield "iter"):
        for j in range(2):
            if (yield i, j):
                break
        else:
            yield "else"
    n = 0
    while (yield n) < 2:
        n += 1
        if n == 5:
            break
    with Guard([]) as g:
        yield g.log
        yield g.log + [0]
    assert (yield "assert"), "never"
    try:
        raise (yield "raise")
    except KeyError:
        yield "key"


def drive(g, values):
    out = []
    try:
        out.append(next(g))
        for v in values:
            out.append(g.send(v))
    except StopIteration as e:
        out.append(("stop", e.value))
    return out


def trap(f):
    try:
        return f()
    except (ValueError, TypeError, RuntimeError, StopIteration, KeyError) as e:
        return type(e).__name__


def stops_inside():
    yield 1
    next(iter([]))


def ignores_exit():
    try:
        yield 1
    except GeneratorExit:
        yield 2


def calls_itself(box):
    yield 1
    yield next(box[0])


def main():
    g = numbers(3)
    print("made", next(g), next(g))
    print(list(g), next(g, "empty"))
    print(drive(numbers(1), [None]))
    print(drive(echo(), ["a", "b", None]))
    open_ones = []
    for sends in ([], [0], [0, 0, 0, 0]):
        log = []
        open_ones.append(guarded(log))
        print(drive(open_ones[-1], sends), log)
    log = []
    g = guarded(log)
    print(next(g), g.throw(ValueError("x")), next(g), log)
    print(trap(lambda: next(g)), log)
    log = []
    g = guarded(log)
    next(g)
    print(trap(lambda: g.close()), log)
    open_ones.clear()
    print(drive(nested(3), [None] * 9))
    print(drive(expressions(), [1, 2, 3, 4, [5, 6], "xyz", 0, 8, 9, True, 3, 7, "F", "G", "K", "V", "W", None]))
    print(drive(order(), [2, 4, 6, 7, 8, 9]))
    print(drive(loops(), [[1, 2], 0, 0, None, 1, 0, 1, 5, 0, 0, True, KeyError("k"), None, None]))
    print(trap(lambda: list(stops_inside())))
    g = ignores_exit()
    next(g)
    print(trap(lambda: g.close()))
    box = []
    box.append(calls_itself(box))
    print(next(box[0]), trap(lambda: next(box[0])), trap(lambda: next(box[0])))
    print(trap(lambda: numbers(2).send(1)))
    g = numbers(2)
    print(trap(lambda: g.throw(KeyError("unstarted"))), trap(lambda: next(g)))
    log = []

    def closing():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    for x in closing():
        log.append(x)
        break
    print(log)
    total = []

    def captured():
        nonlocal total
        for i in range(3):
            total = total + [i]
            yield lambda: (i, len(total))

    fs = list(captured())
    print([f() for f in fs])
    many = (lambda: (yield 5))()
    print(next(many), next(many, "lambda"))
    with_args = lambda *a, k=2, **kw: (yield (a, k, kw))
    print(list(with_args(1, 2, k=3, z=4)))

    class Tree:
        def __init__(self, value, *children):
            self.value, self.children = value, children

        def __iter__(self):
            yield self.value
            for child in self.children:
                yield from child

    tree = Tree(1, Tree(2, Tree(3)), Tree(4))
    print(list(tree), 3 in tree, max(tree), [a + b for a, b in zip(tree, tree)])
    a, b, *rest = tree
    print(a, b, rest)
    x, y = (i * i for i in range(2))
    print(x, y, trap(lambda: (lambda p, q: p)(*numbers(1))))

    def infinite():
        n = 0
        while True:
            yield n
            n += 1

    print(trap(lambda: [None for p, q in [infinite()]]))
    print(next(i for i in infinite() if i * i > 50), any(i > 3 for i in infinite()), 4 in infinite())
    first, second = infinite(), infinite()
    print([p + q for p, q, _ in zip(first, second, range(3))], next(first))
