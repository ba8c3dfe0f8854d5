//! Classes, decorators and protocols of objects; the texts are those that CPython 3.12 prints.

use super::*;

const SUPPRESS: &str = "class Suppress:\n    def __init__(self, kind):\n        self.kind = kind\n    \
     def __enter__(self):\n        return self\n    def __exit__(self, kind, value, trace):\n        \
     print(kind is not None and kind.__name__, value)\n        return kind is not None and issubclass(kind, self.kind)\n";

#[test]
fn a_context_may_end_an_exception() {
    let with = |body: &str| format!("{SUPPRESS}{body}");
    check(&with("with Suppress(ValueError):\n    raise ValueError('x')\nprint('after')"), "ValueError x\nafter");
    check(
        &with(
            "try:\n    with Suppress(KeyError):\n        raise ValueError('x')\nexcept ValueError as e:\n    print('out', e)",
        ),
        "ValueError x\nout x",
    );
    check(&with("with Suppress(ValueError):\n    pass\nprint('after')"), "False None\nafter");
    check(
        &with("with Suppress(LookupError), Suppress(IndexError):\n    [][1]\nprint('after')").replace(", value)", ")"),
        "IndexError\nFalse\nafter",
    );
    check(
        &with(
            "def f():\n    for i in range(3):\n        with Suppress((TypeError, ValueError)):\n            if i == 1:\n                \
             raise TypeError(i)\n            yield i\nprint(list(f()))",
        ),
        "False None\nTypeError 1\nFalse None\n[0, 2]",
    );
}

#[test]
fn members_of_an_enum_of_strings_are_strings() {
    let mode = "from enum import *\nclass Mode(str, Enum):\n    A = 'a'\n    B = 'bb'\nclass S(StrEnum):\n    A = auto()\n    Bx = auto()\nm = Mode.A\n";
    for (expr, expected) in [
        ("m == 'a', 'a' == m, m != 'a', m == 'b', m is 'a', m is Mode.A", "(True, True, False, False, False, True)"),
        (
            "m in ['a'], 'a' in [m], m in {'a': 1}, {'a': 1}[m], {m: 2}['a'], 'a' in {m}",
            "(True, True, True, 1, 2, True)",
        ),
        (
            "str(m), f'{m}', f'{m:>7}', '%s' % m, '{}'.format(m), repr(m)",
            "('Mode.A', 'Mode.A', ' Mode.A', 'Mode.A', 'Mode.A', \"<Mode.A: 'a'>\")",
        ),
        (
            "m.upper(), m + 'x', 'x' + m, m * 2, len(Mode.B), Mode.B[1:], ','.join([m, 'z'])",
            "('A', 'ax', 'xa', 'aa', 2, 'b', 'a,z')",
        ),
        (
            "m.value, m.name, Mode('bb'), Mode['B'].value, m < 'b', m < Mode.B, sorted([Mode.B, m])[0].name",
            "('a', 'A', <Mode.B: 'bb'>, 'bb', True, True, 'A')",
        ),
        (
            "isinstance(m, str), isinstance(m, Enum), isinstance(m, StrEnum), m.startswith('a'), 'b' in Mode.B",
            "(True, True, False, True, True)",
        ),
        (
            "'abc'.startswith(m), 'abc'.count(m), 'abc'.replace(m, 'z'), 'x' in m, m in 'cab'",
            "(True, 1, 'zbc', False, True)",
        ),
        (
            "S.A == 'a', S.Bx.value, str(S.Bx), f'{S.Bx:>4}', repr(S.A), isinstance(S.A, StrEnum)",
            "(True, 'bx', 'bx', '  bx', \"<S.A: 'a'>\", True)",
        ),
        ("'a' in Mode, 'z' in Mode, m in Mode, S.A in Mode", "(True, False, True, True)"),
    ] {
        check(&format!("{mode}print(repr(({expr})))"), expected);
    }
    check(&format!("{mode}class R(str, Enum):\n    A = auto()\nprint(repr(R.A), Mode.A == S.A)"), "<R.A: '1'> True");
    check(&format!("{mode}try:\n    Mode('z')\nexcept ValueError as e:\n    print(e)"), "'z' is not a valid Mode");
    check(
        "import enum\n@enum.unique\nclass U(enum.Enum):\n    A = 1\n    B = 1\n",
        "value-error: duplicate values found in U: B -> A",
    );
}

#[test]
fn members_of_an_enum_of_numbers_are_numbers() {
    let kinds = "from enum import *\nclass N(int, Enum):\n    A = 1\n    B = 2\nclass I(IntEnum):\n    A = 1\n    Z = 0\n\
                 class X(float, Enum):\n    H = 0.5\nclass E(Enum):\n    Z = 0\n    A = auto()\n    B = 7\n    C = auto()\n    ALSO = 7\n";
    for (expr, expected) in [
        (
            "str(N.A), f'{N.A}', str(I.A), f'{I.A:3d}', repr(N.A), repr(I.A)",
            "('N.A', 'N.A', '1', '  1', '<N.A: 1>', '<I.A: 1>')",
        ),
        (
            "N.A + 1, 3 - N.B, N.A < N.B, N.A == 1, -N.B, N.A == I.A, N.A is I.A, bool(I.Z)",
            "(2, 1, True, True, -2, True, False, False)",
        ),
        ("[5, 6][N.A], {1: 'x'}[N.A], list(range(N.B)), N.B.bit_length()", "(6, 'x', [0, 1], 2)"),
        (
            "X.H * 2, X.H < 1, isinstance(N.A, int), isinstance(I.A, IntEnum), isinstance(N.A, IntEnum)",
            "(1.0, True, True, True, False)",
        ),
        (
            "bool(E.Z), E.Z == 0, list(E), E['ALSO'], list(E.__members__)",
            "(True, False, [<E.Z: 0>, <E.A: 1>, <E.B: 7>, <E.C: 8>], <E.B: 7>, ['Z', 'A', 'B', 'C', 'ALSO'])",
        ),
    ] {
        check(&format!("{kinds}print(repr(({expr})))"), expected);
    }
}

#[test]
fn flags_combine() {
    let kinds = "from enum import *\nclass F(Flag):\n    A = auto()\n    B = auto()\n    C = auto()\n    RW = 3\nclass G(IntFlag):\n    \
                 A = auto()\n    B = auto()\n    C = auto()\nclass Q(Flag):\n    A = auto()\n    B = 8\n    C = auto()\n";
    for (expr, expected) in [
        ("[m.value for m in F], len(F), list(Q)", "([1, 2, 4], 3, [<Q.A: 1>, <Q.B: 8>, <Q.C: 16>])"),
        (
            "F.A | F.B, F.A | F.C, F.RW & F.B, F.A ^ F.RW, ~F.A, F.A & F.B",
            "(<F.RW: 3>, <F.A|C: 5>, <F.B: 2>, <F.B: 2>, <F.B|C: 6>, <F: 0>)",
        ),
        (
            "bool(F.A & F.B), bool(F.A), F.A in F.RW, F.C in F.RW, (F.A | F.C) == (F.C | F.A), (F.A | F.C) is F(5)",
            "(False, True, True, False, True, True)",
        ),
        (
            "str(F.A | F.C), str(F(0)), f'{F.RW}', (F.A | F.C).name, (F.A & F.B).name, (F.A | F.C).value",
            "('F.A|C', 'F(0)', 'F.RW', 'A|C', None, 5)",
        ),
        (
            "list(F.RW), len(F.A | F.C), {F.A | F.C: 1}[F.C | F.A], F.RW in [F.A | F.B]",
            "([<F.A: 1>, <F.B: 2>], 2, 1, True)",
        ),
        (
            "G.A | G.B, G.A | 8, 1 | G.C, G.A & 1, ~G.A, G.A + 1, str(G.A | G.C), (G.A | G.B) == 3",
            "(<G.A|B: 3>, <G.A|8: 9>, <G.A|C: 5>, <G.A: 1>, <G.B|C: 6>, 2, '5', True)",
        ),
        (
            "isinstance(F.A, Flag), isinstance(G.A | G.B, int), bool((G.A | G.B) & G.C), type(G.A | 2).__name__",
            "(True, True, False, 'G')",
        ),
    ] {
        check(&format!("{kinds}print(repr(({expr})))"), expected);
    }
    check(&format!("{kinds}F.A | 1"), "type-error: `|` does not work between a F and an int");
    check(&format!("{kinds}F(8)"), "value-error: 8 is no combination of flags of F");
    check(&format!("{kinds}x = F.A\nx |= F.C\nprint(x)"), "F.A|C");
}
