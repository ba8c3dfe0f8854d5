//! Classes, decorators and object protocols; the expected texts are from CPython 3.12.

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
    check(&format!("{kinds}F(8)"), "value-error: 8 is not a combination of flags of F");
    check(&format!("{kinds}x = F.A\nx |= F.C\nprint(x)"), "F.A|C");
    for (class, expected) in [
        ("N(IntFlag):\n        A = -1", "the flag A of N is negative, which is not supported"),
        (
            "N(IntFlag, boundary=CONFORM):\n        A = 1",
            "the Enum N has the keyword `boundary=`, which is not supported",
        ),
    ] {
        let said = run(&format!("{kinds}def k():\n    class {class}\n"));
        assert_eq!(said, format!("unsupported-syntax: {expected}"));
    }
}

const KEY: &str = "class Key:\n    def __init__(self, r, c=0):\n        self.r, self.c = r, c\n    def __eq__(self, other):\n        \
                   if not isinstance(other, Key):\n            return NotImplemented\n        return (self.r, self.c) == (other.r, other.c)\n    \
                   def __hash__(self):\n        return hash((self.r, self.c))\n    def __repr__(self):\n        return f'K{self.r}'\na, b, c = Key(0), Key(0), Key(1)\n";

#[test]
fn containers_ask_the_classes_of_their_items() {
    for (expr, expected) in [
        ("b in [a], c in [a], b in (c, a), b in {'x': a}.values()", "(True, False, True, True)"),
        ("[c, a, b].count(a), [c, a].index(b), (c, a).index(b)", "(2, 1, 1)"),
        (
            "b in {a}, b in {a: 1}, {a: 1}[b], len({a, b, c}), {a} == {b}, (b, 2) in {(a, 2)}",
            "(True, True, 1, 2, True, True)",
        ),
        (
            "a == 5, a != 5, 5 == a, a == None, a == b, a != b, NotImplemented",
            "(False, True, False, False, True, False, NotImplemented)",
        ),
    ] {
        check(&format!("{KEY}print(repr(({expr})))"), expected);
    }
    check(
        &format!(
            "{KEY}l = [c, a]\nl.remove(b)\nprint(l, [a] == [b], (a, c) == (b, c), {{'x': a}} == {{'x': b}}, [[a]] == [[b]])"
        ),
        "[K1] True True True True",
    );
    // Inside containers, identical objects are equal, whatever their class defines.
    check(
        "class N:\n    def __eq__(self, other):\n        return False\nn = N()\nprint(n in [n], [n] == [n], n == n)",
        "True True False",
    );
    check(
        "class E:\n    def __eq__(self, other):\n        return True\n{E()}",
        "dict-key: an E cannot be a dict key or a set item",
    );
}

#[test]
fn operators_that_do_not_know_an_operand_leave_it_to_the_other() {
    let classes = "class A:\n    def __add__(self, o):\n        return NotImplemented\n    def __lt__(self, o):\n        return NotImplemented\n\
                   class B:\n    def __radd__(self, o):\n        return 'radd'\n    def __gt__(self, o):\n        return 'gt'\n\
                   class C(A):\n    def __radd__(self, o):\n        return 'derived'\n";
    check(&format!("{classes}print(A() + B(), A() < B(), A() + C())"), "radd gt derived");
    check(&format!("{classes}A() + 1"), "type-error: `+` does not work between an A and an int");
    check(&format!("{classes}A() < 1"), "type-error: `<` does not work between an A and an int");
}

#[test]
fn dataclasses_compare_as_their_decorator_says() {
    let head = "from dataclasses import dataclass, field\n";
    for (body, expected) in [
        (
            "@dataclass(eq=False)\nclass B:\n    rows: int\na, b = B(1), B(1)\nprint(a == b, a == a, a in [b], len({a, b}))",
            "False True False 2",
        ),
        (
            "@dataclass(order=True)\nclass V:\n    a: int\n    b: str = field(default='x', compare=False, repr=False)\nprint(V(1) < V(2), V(1, 'y') == V(1), V(3), sorted([V(2), V(1)]))",
            "True True V(a=3) [V(a=1), V(a=2)]",
        ),
        (
            "@dataclass(frozen=True)\nclass F:\n    a: int\nprint({F(1): 2}[F(1)], (1,) in {F(1): 2}, hash(F(1)) == hash((1,)))",
            "2 False True",
        ),
        (
            "@dataclass\nclass P:\n    a: int\nclass Q(P):\n    pass\nprint(Q(1) == Q(1), Q(1) == P(1), P(1) == (1,))",
            "True False False",
        ),
        ("@dataclass\nclass P:\n    a: int\n    def __post_init__(self):\n        self.z = 1\nprint(P(1))", "P(a=1)"),
        (
            "@dataclass\nclass P:\n    a: int\ntry:\n    hash(P(1))\nexcept TypeError:\n    print('TypeError')",
            "TypeError",
        ),
        (
            "from collections import namedtuple\nA, B = namedtuple('A', 'x'), namedtuple('B', 'y')\nprint(A(1) == B(1), A(1) == (1,))",
            "True True",
        ),
    ] {
        check(&format!("{head}{body}"), expected);
    }
}

#[test]
fn hashes_of_numbers_are_those_of_python() {
    for (expr, expected) in [
        ("hash(5), hash(-1), hash(True), hash(2**61 - 1), hash(2**61 + 3), hash(-(2**62))", "(5, -2, 1, 0, 4, -2)"),
        (
            "hash(2.5), hash(-2.75), hash(1e300), hash(float('-inf')), hash(3.0), hash(0.1), hash(5e-324)",
            "(1152921504606846978, -1729382256910270466, 1224995262755759164, -314159, 3, 230584300921369408, 16777216)",
        ),
        (
            "hash((1, 2, 3)), hash(()), hash((1, (2, -3)))",
            "(529344067295497451, 5740354900026072187, -4756762804368748558)",
        ),
    ] {
        check(&format!("print(repr(({expr})))"), expected);
    }
    check("class O:\n    pass\na, b = O(), O()\nprint(hash(a) == hash(b), hash(a) == hash(a))", "False True");
    check(&format!("{KEY}print(hash(a) == hash(b) == hash((0, 0)))"), "True");
    check("try:\n    hash([1])\nexcept TypeError:\n    print('TypeError')", "TypeError");
}

#[test]
fn a_cached_property_is_computed_once() {
    let class = "import functools\nclass T:\n    @functools.cached_property\n    def acc(self):\n        print('made')\n        return [1]\nt = T()\n";
    check(&format!("{class}t.acc.append(2)\nprint(t.acc, t.acc is t.acc)"), "made\n[1, 2] True");
    check(
        &format!("{class}t.acc = 5\nprint(t.acc)\ndel t.acc\nprint(t.acc)\nt.acc.append(3)\nprint(t.acc)"),
        "5\nmade\n[1]\n[1, 3]",
    );
    check(&format!("{class}u = T()\nprint(t.acc is u.acc, list(t.__dict__))"), "made\nmade\nFalse ['acc']");
}

#[test]
fn a_cached_property_of_a_member_is_computed_once() {
    let class = "import enum, functools\nclass E(enum.Enum):\n    A = 1\n    @functools.cached_property\n    def acc(self):\n        print('made')\n        return [self.value]\n";
    check(&format!("{class}print(E.A.acc, E.A.acc is E.A.acc)"), "made\n[1] True");
}

#[test]
fn a_dataclass_without_a_constructor_or_a_text_of_its_own() {
    let head = "from dataclasses import dataclass\n";
    check(
        &format!(
            "{head}class B:\n    def __init__(self, n):\n        self.n = n\n@dataclass(init=False)\nclass C(B):\n    a: int = 3\nc = C(4)\nprint(c.n, c.a)"
        ),
        "4 3",
    );
    check(&format!("{head}@dataclass(repr=False)\nclass R:\n    a: int\nprint('a=' in repr(R(1)))"), "False");
}

#[test]
fn a_property_has_a_deleter() {
    let class = "class C:\n    def __init__(self):\n        self.v = 1\n    @property\n    def p(self):\n        return self.v\n    @p.setter\n    def p(self, v):\n        self.v = v\n    @p.deleter\n    def p(self):\n        del self.v\n        print('gone')\nc = C()\n";
    check(&format!("{class}c.p = 4\nprint(c.p)\ndel c.p\nprint(hasattr(c, 'v'))"), "4\ngone\nFalse");
    let class = "class C:\n    @property\n    def p(self):\n        return 1\n";
    check(&format!("{class}del C().p"), "no-attribute: the property `p` has no deleter");
}

#[test]
fn an_attribute_error_of_a_class_says_that_there_is_no_attribute() {
    let class = "class O:\n    def __getattr__(self, name):\n        if name == 'scale':\n            return 2\n        if name == 'odd':\n            raise ValueError(name)\n        raise AttributeError(name)\n    @property\n    def part(self):\n        return self.missing\no = O()\n";
    check(&format!("{class}print(hasattr(o, 'scale'), hasattr(o, 'bias'), hasattr(o, 'part'))"), "True False False");
    check(&format!("{class}print(getattr(o, 'scale', 3), getattr(o, 'bias', 3), getattr(o, 'part', 4))"), "2 3 4");
    check(
        &format!("{class}try:\n    hasattr(o, 'odd')\nexcept ValueError as e:\n    print('raised', e)"),
        "raised odd",
    );
    check(&format!("{class}getattr(o, 'bias')"), "raised-exception: AttributeError: bias");
}

#[test]
fn cached_functions_keep_their_results() {
    let head = "import functools\nn = 0\n";
    for (body, expected) in [
        (
            "@functools.cache\ndef f(*a, **k):\n    print(a, k)\n    return [a]\nprint(f(1) is f(1.0), f(True) is f(1.0), f(1, 2) is f(1.0, 2), f(1) is f(2))\nprint(f(a=1) is f(a=1))",
            "(1,) {}\n(1.0,) {}\n(1, 2) {}\n(2,) {}\nFalse True True False\n() {'a': 1}\nTrue",
        ),
        (
            "@functools.lru_cache(maxsize=None)\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(80), fib.cache_info())\nfib.cache_clear()\nprint(fib.cache_info(), fib.__name__)",
            "23416728348467685 CacheInfo(hits=78, misses=81, maxsize=None, currsize=81)\nCacheInfo(hits=0, misses=0, maxsize=None, currsize=0) fib",
        ),
        (
            "@functools.lru_cache\ndef f(x):\n    return x\nprint(f(1), f.cache_info())",
            "1 CacheInfo(hits=0, misses=1, maxsize=128, currsize=1)",
        ),
        (
            "@functools.lru_cache(2)\ndef f(x):\n    print('f', x)\n    return x\nprint(f(1), f(2), f(1), f(3), f(1), f(2))",
            "f 1\nf 2\nf 3\nf 2\n1 2 1 3 1 2",
        ),
        ("@functools.lru_cache(maxsize=0)\ndef f(x):\n    print('f')\nf(1)\nf(1)", "f\nf"),
        ("@functools.lru_cache(typed=True)\ndef f(x):\n    return [x]\nprint(f(1) is f(1.0))", "False"),
        (
            "@functools.cache\ndef f(x):\n    return x\ntry:\n    f([1])\nexcept TypeError:\n    print('TypeError')",
            "TypeError",
        ),
        (
            "class C:\n    @functools.cache\n    def m(self, x):\n        print('m', x)\n        return [x]\n    @staticmethod\n    @functools.cache\n    def s(x):\n        return [x]\nc, d = C(), C()\nprint(c.m(1) is c.m(1), c.m(1) is d.m(1), c.s(2) is d.s(2))",
            "m 1\nm 1\nTrue False True",
        ),
    ] {
        check(&format!("{head}{body}"), expected);
    }
}

#[test]
fn total_ordering_derives_the_other_comparisons() {
    for (name, op) in [("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")] {
        let class = format!(
            "import functools\n@functools.total_ordering\nclass V:\n    def __init__(self, v):\n        self.v = v\n    \
             def __eq__(self, o):\n        return self.v == o.v\n    def __{name}__(self, o):\n        return self.v {op} o.v\n"
        );
        check(
            &format!(
                "{class}for a, b in ((1, 2), (2, 2), (3, 2)):\n    a, b = V(a), V(b)\n    print(a < b, a <= b, a > b, a >= b)"
            ),
            "True True False False\nFalse True False True\nFalse False True True",
        );
    }
    check(
        "import functools\n@functools.total_ordering\nclass V:\n    pass\n",
        "value-error: must define at least one ordering operation: < > <= >=",
    );
}

#[test]
fn what_dispatches_by_type_in_a_way_that_is_not_supported_is_refused() {
    let refused = "unsupported-syntax: functools.singledispatchmethod is not supported by the built-in evaluator";
    check_kernel("import functools\n@functools.singledispatchmethod\ndef f(v):\n    return 1", refused);
    check_kernel(
        "import functools\n@functools.singledispatch\ndef f(v):\n    return 1\n@f.register\ndef _(v: list[int]):\n    return 2",
        "unsupported-syntax: register(): the annotation `list[int]` is not a class of this module",
    );
}

#[test]
fn a_local_is_not_its_global() {
    let unbound = "undefined-name: `x` is used before it is assigned";
    for body in [
        "    print(x)\n    x = 2",
        "    x += 1",
        "    print(x)\n    if (x := 3):\n        pass",
        "    print(x)\n    y = [x := i for i in range(2)]",
        "    for x in []:\n        pass\n    print(x)",
        "    if False:\n        x = 1\n    print(x)",
        "    print(x)\n    import math as x",
        "    print(x)\n    with E() as x:\n        pass",
        "    def g():\n        return x\n    g()\n    x = 1",
        "    del x",
        "    x = 1\n    del x\n    print(x)",
        "    try:\n        raise ValueError\n    except ValueError as x:\n        pass\n    print(x)",
        "    print(x)\n    def x():\n        pass",
        "    print(x)\n    match 1:\n        case x:\n            pass",
        "    lambda: x\n    print(x)\n    while (x := False):\n        pass",
        "    print(x)\n    f'{(x := 1)}'",
    ] {
        check(
            &format!(
                "x = 1\ndef f():\n{body}\n@lambda g: g()\ndef go():\n    try:\n        f()\n    except NameError:\n        print('unbound')"
            ),
            "unbound",
        );
        assert_eq!(run(&format!("import nki\nx = 1\ndef f():\n{body}\n@nki.jit\ndef k():\n    f()\n")), unbound);
    }
    check("x = 1\nclass C:\n    print(x)\n    x = 2\nprint(C.x, x)", "1\n2 1");
    check("x = 1\ndef f():\n    return [x for x in range(2)], x\nprint(f())", "([0, 1], 1)");
}

#[test]
fn views_show_their_dict() {
    let dict = "d = {'a': 1, 'b': 2}\nk, v, i = d.keys(), d.values(), d.items()\n";
    for (body, expected) in [
        ("print(k, v, i)", "dict_keys(['a', 'b']) dict_values([1, 2]) dict_items([('a', 1), ('b', 2)])"),
        ("d['c'] = 3\nprint(len(k), list(v), ('c', 3) in i, 'c' in k, bool({}.keys()))", "3 [1, 2, 3] True True False"),
        (
            "print(k == {'b': 0, 'a': 0}.keys(), k == {'a', 'b'}, i == {'b': 2, 'a': 1}.items(), i == {'a': 1}.items(), v == v, v == d.values())",
            "True True True False True False",
        ),
        (
            "for x in d:\n    d[x] = 5\nprint(d, sum(v), max(i), sorted(k), [*v], dict(i))",
            "{'a': 5, 'b': 5} 10 ('b', 5) ['a', 'b'] [5, 5] {'a': 5, 'b': 5}",
        ),
        ("print(k & ['b'], k - {'b'}, {'a'} | {'a': 2}.keys(), i & {('a', 1)})", "{'b'} {'a'} {'a'} {('a', 1)}"),
        ("for x, y in i:\n    d['b'] = 7\nprint(y)", "7"),
    ] {
        check(&format!("{dict}{body}"), expected);
    }
    for (walk, kind) in [("d", "dictionary"), ("d.items()", "dictionary"), ("d.values()", "dictionary"), ("s", "Set")] {
        let body = format!(
            "{dict}s = {{1, 2}}\ntry:\n    for x in {walk}:\n        d['c'] = 1\n        s.add(5)\nexcept RuntimeError as e:\n    print(e)"
        );
        check(&body, &format!("{kind} changed size during iteration"));
    }
    check_kernel(
        "d = {'a': 1}\nfor x in d:\n    d[x + 'b'] = 1",
        "raised-exception: RuntimeError: dictionary changed size during iteration",
    );
}

#[test]
fn members_that_count_up_can_be_used_in_the_body() {
    let head = "from enum import Flag, IntFlag, Enum, IntEnum, auto\n";
    for (body, expected) in [
        (
            "class P(Flag):\n    A = auto()\n    B = auto()\n    C = A | B\n    D = auto()\nprint(P.C.value, P.D.value, P.C == P.A | P.B, list(P.C))",
            "3 4 True [<P.A: 1>, <P.B: 2>]",
        ),
        (
            "class P(IntFlag):\n    A = auto()\n    B = auto()\n    ALL = A | B\nprint(int(P.ALL), P.A in P.ALL)",
            "3 True",
        ),
        ("class E(Enum):\n    A = auto()\n    B = A + 10\n    C = auto()\nprint([e.value for e in E])", "[1, 11, 12]"),
        ("class E(IntEnum):\n    A = 5\n    B = auto()\n    LAST = B\nprint(E.LAST is E.B, E.B)", "True 6"),
        (
            "class E(Enum):\n    def _generate_next_value_(name, start, count, last):\n        return name.lower() + str(count)\n    A = auto()\n    B = auto()\n    AB = A + B\nprint([e.value for e in E])",
            "['a0', 'b1', 'a0b1']",
        ),
    ] {
        check(&format!("{head}{body}"), expected);
    }
}

#[test]
fn the_dict_of_an_object_is_its_attributes() {
    for (body, expected) in [
        (
            "class C:\n    tile = 64\n    def __init__(self, **kw):\n        self.__dict__.update(kw)\nprint(C(tile=32).tile, C().tile)",
            "32 64",
        ),
        (
            "class C:\n    a = 1\nc = C()\nvars(c)['a'] = 2\nd = c.__dict__\nc.b = 3\nd['e'] = 4\ndel d['a']\nprint(c.a, c.b, c.e, vars(c))",
            "1 3 4 {'b': 3, 'e': 4}",
        ),
        (
            "class C:\n    pass\nc = C()\nc.a = 1\nd = c.__dict__.copy()\nd['a'] = 2\nprint(c.a, d)\nc.__dict__ = {'z': 5}\nprint(c.z, hasattr(c, 'a'))",
            "1 {'a': 2}\n5 False",
        ),
    ] {
        check(body, expected);
    }
}

#[test]
fn classes_say_how_attributes_are_set() {
    for (body, expected) in [
        (
            "class F:\n    def __setattr__(self, n, v):\n        super().__setattr__(n, v + 1)\nf = F()\nf.a = 1\nsetattr(f, 'b', 5)\nprint(f.a, f.b)",
            "2 6",
        ),
        (
            "class F:\n    def __setattr__(self, n, v):\n        object.__setattr__(self, n, v * 2)\nf = F()\nf.a = 4\nprint(f.a)",
            "8",
        ),
        (
            "class V:\n    def __set_name__(self, o, n):\n        self.n = '_' + n\n    def __get__(self, o, t=None):\n        return self if o is None else getattr(o, self.n, 0) + 1\n    \
             def __set__(self, o, v):\n        setattr(o, self.n, v * 10)\nclass H:\n    x = V()\nh = H()\nh.x = 3\nprint(h.x, h._x, H().x)",
            "31 30 1",
        ),
        (
            "class D:\n    def __get__(self, o, t=None):\n        return 42\nclass Y:\n    d = D()\ny = Y()\nprint(y.d)\ny.d = 1\nprint(y.d)",
            "42\n1",
        ),
    ] {
        check(body, expected);
    }
}

#[test]
fn a_base_class_learns_of_derived_classes() {
    let base = "class Base:\n    known = {}\n    def __init_subclass__(cls, tag=None, **kw):\n        super().__init_subclass__(**kw)\n        Base.known[cls.__name__] = tag\n";
    check(
        &format!("{base}class A(Base, tag='a'):\n    pass\nclass B(A):\n    pass\nprint(Base.known)"),
        "{'A': 'a', 'B': None}",
    );
    check(
        &format!("{base}class A(Base, tug='a'):\n    pass"),
        "type-error: object.__init_subclass__() takes no keyword arguments",
    );
    check_kernel(
        "class A:\n    def __new__(cls):\n        return 5\nA()",
        "unsupported-syntax: the class A has a `__new__`, which is not supported",
    );
    check_kernel(
        "class A:\n    def __delattr__(self, name):\n        pass\nA()",
        "unsupported-syntax: the class A has a `__delattr__`, which is not supported",
    );
    check_kernel(
        "class M(type):\n    pass\nclass A(metaclass=M):\n    pass",
        "unsupported-syntax: the class A has the metaclass M, which is not supported",
    );
}

#[test]
fn classes_say_how_their_objects_are_copied() {
    let class = "import copy\nclass A:\n    def __init__(self, n):\n        self.n = n\n    def __copy__(self):\n        return A(self.n + 1)\n    \
                 def __deepcopy__(self, memo):\n        return A(copy.deepcopy(self.n, memo) + 10)\n";
    check(&format!("{class}print(copy.copy(A(1)).n, copy.deepcopy([A(1)])[0].n, copy.copy([A(1)])[0].n)"), "2 11 1");
}

#[test]
fn print_ends_lines_as_it_is_told() {
    check("print('a', end='')\nprint('b', 'c', sep='-', end='!\\n')\nprint()\nprint('d', end=' ')", "ab-c!\n\nd ");
    check("def f():\n    'Says it.'\nprint(f.__doc__, (lambda: 0).__doc__)", "Says it. None");
}

#[test]
fn abstract_classes_have_no_objects() {
    let classes = "from abc import ABC, ABCMeta, abstractmethod\nclass Base(ABC):\n    @abstractmethod\n    def f(self):\n        pass\n    @property\n    \
                   @abstractmethod\n    def g(self):\n        pass\nclass Half(Base):\n    def f(self):\n        return 1\nclass Whole(Half):\n    g = 2\n\
                   class Free:\n    @abstractmethod\n    def f(self):\n        return 3\n";
    check(&format!("{classes}print(Whole().f(), Whole().g, Free().f())"), "1 2 3");
    for (call, missing) in [("Base()", "`f`, `g`"), ("Half()", "`g`")] {
        let name = call.trim_end_matches("()");
        check_kernel(
            &format!("{classes}{call}"),
            &format!("type-error: {name} is an abstract class without an implementation of {missing}"),
        );
    }
    check("class A:\n    pass\nclass B(A):\n    pass\nprint([c.__name__ for c in B.__mro__])", "['B', 'A', 'object']");
    check_kernel(&format!("{classes}Half.__mro__"), "no-attribute: class `Half` has no attribute `__mro__`");
}
