"""`str.format`, and the errors of built-in functions."""


class Point:
    def __init__(self):
        self.x = 3
        self.rows = [[1, 2], [3, 4]]
        self.names = {"a": {"b": 5}, "0": 6}


def outcome(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def main():
    p = Point()
    print("{0[0][1]} {0[1][0]}".format(p.rows))
    print("{.x} {.x:>4} {p.rows[1][1]}".format(p, p, p=p))
    print("{p.names[a][b]} {p.names[a]!r:>12}".format(p=p))
    print("{0.rows[1]} {0.rows}".format(p))
    print("{{}} {{{0}}} }}".format(1))
    print("{:{width}.{digits}f}|".format(2.5, width=8, digits=3))
    for text in ["}", "a } b", "{", "{0", "{0.}", "{0[}", "{0[]}", "{0[0]x}", "{0.y}", "{0[5]}", "{1}", "{name}", "{0!z}"]:
        print(text, outcome(lambda: text.format(p)), outcome(lambda: text.format(p.rows)))
    print(hex(255), bin(5), oct(8), outcome(lambda: bin("a")), outcome(lambda: oct(1, 2)))
    print(list(enumerate("ab", 3)), list(enumerate("ab", start=True)), outcome(lambda: list(enumerate("ab", "c"))))
    print(outcome(lambda: list(enumerate("ab", 1.0))), outcome(lambda: list(zip("ab", "cd", strong=True))))
    print(sorted([3, 1, 2], reverse=True), outcome(lambda: sorted([3, 1], order=1)), outcome(lambda: [2, 1].sort(1)))
    print(1, 2, sep="-", end="!\n", flush=True)
    print(1, 2, sep=None, end=None)
    print(outcome(lambda: print(1, sep=2)), outcome(lambda: print(1, until="")), outcome(lambda: print(1, end=0)))
