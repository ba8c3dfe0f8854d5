# Arithmetic whose last digit, sign or type is easily missed.


def attempt(f):
    try:
        return repr(f())
    except (ValueError, ArithmeticError, TypeError) as e:
        return type(e).__name__


def divisions():
    inf = float("inf")
    values = [0.0, -0.0, 0.1, -0.1, 0.3, 0.7, 1.0, -1.0, 4.8, 5.0, -5.0, 6.0, 7.0, -7.5, 1e15, 2.0**53, 1e300, inf, -inf, 3, -7]
    for a in values:
        print(a, [attempt(lambda: (a // b, a % b, divmod(a, b))) for b in values])
    print(1.0 // 0.1, 0.3 // 0.1, 6.0 // 0.2, 0.9 // 0.3, 7.0 // 0.1, -1.0 // 0.1, 100 // 0.7, int(1.0 // 0.1))


def true_divisions():
    for a in [1, -1, 2**53 + 1, 2**62 + 1, 9223372036854775807, -9223372036854775807 - 1, 9007199254740993, 123456789012345678]:
        print(a, [a / b for b in [1, 2, 3, -7, 10**9 + 7, 2**53 + 1, 2**62 - 1, 9223372036854775807]])


def comparisons():
    ints = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 9223372036854775807, -9223372036854775807 - 1, True]
    floats = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.0**53, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63), 1e300, float("inf"), float("nan")]
    for a in ints:
        print(a, [(a == x, a < x, a >= x, x < a, x != a) for x in floats])
    print(2**53 + 1 in [float(2**53)], (2**53 + 1, 1) < (float(2**53), 0), max(float(2**53), 2**53 + 1))


def roundings():
    for n in [0, 1, 15, 25, 35, 1234, 1250, 1350, -1250, -1251, 99, 5, -5, 9 * 10**18]:
        print(n, [round(n, d) for d in [3, 0, -1, -2, -3, -5, -18, -25]], round(n), round(n, None))
    print(round(True), round(False, -1), round(True, 2))
    for x in [0.5, 1.5, 2.5, -2.5, 2.675, 1.15, 25.0, 35.0, 24.999999, 25.000001, 1234.5, -1250.0, 4.0, -4.0, 5.0, 15.0, 0.0, -0.0, 1e22, 123456789.125, 2.5e40, 1e300]:
        print(x, [round(x, d) for d in [0, 1, 2, 5, 22, 310, 400, -1, -2, -3, -8, -22, -40, -41, -300, -301, -400]])
    print(attempt(lambda: round(1.7e308, -308)), attempt(lambda: round(float("inf"))), attempt(lambda: round(1, 0.5)))


def powers():
    print(attempt(lambda: 2.0**1024), attempt(lambda: 1e200**2), attempt(lambda: (-10.0) ** 309), attempt(lambda: 0.0**-1))
    print(2.0**1023, 2.0**-1080, (-8.0) ** 3.0, (-2) ** -3, float("inf") ** 2.0, float("-inf") ** 0.5, 1.0 ** float("nan"), 1e308 * 10)
    print([pow(a, n, m) for a in (0, 3, -3, 2**62 + 1) for n in (0, 1, 5, 2**40) for m in (1, 7, -7, 9223372036854775807)])
    print(attempt(lambda: pow(2, 3, 0)), attempt(lambda: pow(2.0, 3, 5)), pow(2, 3, None))


def library():
    import math

    r = range(3, 20, 4)
    print(r.index(11), r.count(7), r.count(8), r.start, r.stop, r.step, attempt(lambda: r.index(4)), True.bit_length())
    print([math.modf(x) for x in (1.5, -1.5, 0.0, -0.0, 3.0, -3.0, 1e300, float("inf"), float("-inf"))])
    try:
        assert 0, "m"
    except AssertionError as e:
        print(str(e), e.args, repr(e))
    try:
        assert 1 == 2
    except AssertionError as e:
        print([str(e)], e.args)
    for f in (lambda: {"a": 1}["k"], lambda: {}[3]):
        try:
            f()
        except KeyError as e:
            print(str(e), e.args)
    try:
        raise KeyError("k")
    except KeyError as e:
        print(str(e), repr(e), f"{e}")
    try:
        raise KeyError("k", 2)
    except KeyError as e:
        print(str(e), repr(e))


def main():
    library()
    divisions()
    true_divisions()
    comparisons()
    roundings()
    powers()
