//! Inheritance, and Python's rules that a program must not violate; the expected texts are from
//! CPython 3.12.

use super::*;

const DATACLASSES: &str = "from dataclasses import dataclass, field, fields, replace, asdict, is_dataclass\n";

fn check_dataclasses(source: &str, expected: &str) {
    check(&format!("{DATACLASSES}{source}"), expected);
}

#[test]
fn bases_have_an_order() {
    let classes = "class O: pass\nclass A(O): v = 'A'\nclass B(O): v = 'B'\nclass C(A): pass\nclass D(C, B): pass\n";
    check(&format!("{classes}print(D.v, [c.__name__ for c in D.__mro__])"), "A ['D', 'C', 'A', 'B', 'O', 'object']");
    check(
        "class A: pass\nclass B(A): pass\nclass C(A, B): pass",
        "type-error: the bases `A`, `B` of C have no common method resolution order",
    );
    check(
        "class X: pass\nclass Y: pass\nclass P(X, Y): pass\nclass Q(Y, X): pass\ntry:\n    class Z(P, Q): pass\nexcept TypeError:\n    print('TE')",
        "TE",
    );
    check(
        "class A: pass\nclass B(A, A): pass",
        "type-error: the bases `A`, `A` of B have no common method resolution order",
    );
}

#[test]
fn fields_come_from_dataclasses_alone() {
    check_dataclasses(
        "class Base:\n    q: int = 1\n    def __repr__(self): return 'base'\n@dataclass\nclass D(Base):\n    x: int = 2\n\
         print(D(), D(5), [f.name for f in fields(D)], D.q)\n@dataclass\nclass E(D):\n    y: int = 3\nclass Mid(E):\n    z: int = 4\n\
         @dataclass\nclass F(Mid):\n    w: int = 5\n\
         print(F(), Mid(7), [f.name for f in fields(Mid)], replace(Mid(1), y=9), asdict(Mid(1)), is_dataclass(Mid), Mid(1) == Mid(1))",
        "D(x=2) D(x=5) ['x'] 1\nF(x=2, y=3, w=5) Mid(x=7, y=3) ['x', 'y'] Mid(x=1, y=9) {'x': 1, 'y': 3} True True",
    );
    check_dataclasses(
        "@dataclass\nclass A:\n    a: int = 1\n    s: int = 0\n@dataclass\nclass B:\n    b: int = 2\n    s: int = 5\n\
         @dataclass\nclass C(A, B):\n    c: int = 3\n    b: int = 7\nprint(C(), [f.name for f in fields(C)])",
        "C(b=7, s=0, a=1, c=3) ['b', 's', 'a', 'c']",
    );
    check_dataclasses(
        "@dataclass\nclass A: x: int\n@dataclass(kw_only=True)\nclass B(A): y: int\nprint(B(1, y=2))",
        "B(x=1, y=2)",
    );
    check(
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 2\nclass Q(P):\n    z: int = 3\n\
         print(Q(1), Q._fields, Q(1) == (1, 2), Q.z)",
        "Q(x=1, y=2) ('x', 'y') True 3",
    );
}

#[test]
fn what_derives_from_a_dataclass_keeps_its_rules() {
    check_dataclasses(
        "@dataclass(frozen=True)\nclass P: x: int\nclass Q(P): pass\nq = Q(1)\nq.other = 4\ntry: q.x = 3\nexcept AttributeError: print('AE')\n\
         try: del q.x\nexcept AttributeError: print('AE')\nprint(q, q.other, q == Q(1), q == P(1), hash(q) == hash(Q(1)))",
        "AE\nAE\nQ(x=1) 4 True False True",
    );
    check_dataclasses(
        "@dataclass(frozen=True)\nclass P: x: int\np = P(1)\ndel p.x",
        "frozen-object: `x` of a P cannot be deleted",
    );
    check_dataclasses(
        "@dataclass(order=True)\nclass P: x: int\nclass Q(P): pass\n@dataclass\nclass R(P): y: int = 0\n\
         print(Q(1) < Q(2), R(1, 5) < R(2, 1), R(1, 5) <= R(1, 1))\nmatch Q(3):\n    case Q(x): print(x)",
        "True True True\n3",
    );
    check_dataclasses(
        "@dataclass(frozen=True)\nclass P: x: int\n@dataclass\nclass Q(P): pass",
        "type-error: the dataclass Q is not frozen, but its base P is frozen",
    );
    check_dataclasses(
        "@dataclass(unsafe_hash=True)\nclass A:\n    x: int\n    y: int = field(default=0, hash=False)\n\
         print(hash(A(1)) == hash(A(1, 5)), A(1) == A(1, 5))",
        "True False",
    );
}

#[test]
fn dataclasses_refuse_what_python_refuses() {
    for (body, expected) in [
        ("x: list = []", "value-error: the default of the field `x` is a list, which all objects would share"),
        ("x: object = U()", "value-error: the default of the field `x` is a U, which all objects would share"),
        ("x: int = 1\n    y: int", "type-error: the field `y` without a default follows `x`, which has one"),
    ] {
        check_dataclasses(&format!("@dataclass\nclass U: v: int = 1\n@dataclass\nclass A:\n    {body}"), expected);
    }
    check_dataclasses("@dataclass\nclass A:\n    c = 5\n    x: int = 1\nA(c=3)", "arguments: A() has no field `c`");
}

#[test]
fn slots_limit_the_attributes() {
    let classes = "class A:\n    __slots__ = ('x', '__p')\n    def __init__(self):\n        self.x = 1\n        self.__p = 2\n\
                   class B(A): pass\nclass C(A):\n    __slots__ = 'w'\na = A()\n";
    check(
        &format!(
            "{classes}b = B()\nb.z = 3\nc = C()\nc.w = 5\nprint(a.x, b.z, c.w, c.x, hasattr(a, '__dict__'), hasattr(b, '__dict__'))"
        ),
        "1 3 5 1 False True",
    );
    check(&format!("{classes}a.z = 1"), "no-attribute: `z` is not in the `__slots__` of A");
    check(&format!("{classes}C().q = 1"), "no-attribute: `q` is not in the `__slots__` of C");
    check(
        "from dataclasses import dataclass\n@dataclass(slots=True)\nclass S: x: int = 0\ns = S(2)\ns.x = 3\nprint(s)\ns.q = 1",
        "S(x=3)\nno-attribute: `q` is not in the `__slots__` of S",
    );
    check(
        "class A:\n    __slots__ = ('x',)\n    x = 1",
        "value-error: `x` in `__slots__` of A is also a class variable",
    );
}

#[test]
fn private_names_belong_to_their_class() {
    check(
        "class A:\n    __x = 1\n    def __init__(self): self.__y = 2\n    def get(self): return self.__x, self.__y\n    \
         def __priv(self): return 'A'\n    def call(self): return self.__priv()\nclass B(A):\n    __x = 10\n    \
         def __init__(self):\n        super().__init__()\n        self.__y = 20\n    def getb(self): return self.__x, self.__y\n    \
         def __priv(self): return 'B'\nb = B()\nprint(b.get(), b.getb(), b.call(), b._A__y, A._A__x, sorted(b.__dict__))\n\
         class _G:\n    __v = 3\n    def f(self, __a=4): return self.__v, __a\nprint(_G._G__v, _G().f())",
        "(1, 2) (10, 20) A 2 1 ['_A__y', '_B__y']\n3 (3, 4)",
    );
    check("class A:\n    def __init__(self): self.__y = 2\nprint(hasattr(A(), '__y'))", "False");
}

#[test]
fn comprehensions_do_not_see_the_names_of_the_class() {
    check(
        "x = 'global'\nclass A:\n    x = 'class'\n    n = 2\n    same = [x for _ in range(n)]\n    chars = [c for c in x]\nprint(A.same, A.chars)",
        "['global', 'global'] ['c', 'l', 'a', 's', 's']",
    );
}

#[test]
fn members_of_an_enum_stay() {
    let color = "from enum import Enum\nclass C(Enum):\n    RED = 1\n";
    check(&format!("{color}C.RED = 3"), "no-attribute: the member `RED` of the Enum C cannot be changed");
    check(&format!("{color}class D(C): X = 2"), "type-error: D derives from the Enum C, which has members");
}

#[test]
fn special_methods_return_what_they_must() {
    for (method, expr, expected) in [
        ("__len__(self): return -1", "len(A())", "value-error: __len__() should return >= 0"),
        ("__len__(self): return 2.0", "len(A())", "type-error: __len__() should return an int, not a float"),
        ("__bool__(self): return 3", "bool(A())", "type-error: __bool__ should return bool, returned int"),
        ("__str__(self): return None", "str(A())", "type-error: __str__ returned None, not a str"),
        ("__repr__(self): return 5", "repr(A())", "type-error: __repr__ returned an int, not a str"),
        ("__int__(self): return 1.5", "int(A())", "type-error: __int__ returned a float"),
        ("__init__(self): return 3", "A()", "type-error: __init__() should return None, not an int"),
        ("f(self): pass", "f'{A():>5}'", "type-error: an A takes no format specification, got `>5`"),
        ("f(self): pass", "A[int]", "type-error: the class A takes no index"),
    ] {
        check(&format!("class A:\n    def {method}\n{expr}"), expected);
    }
    check("print(f'{[1]:>5}')", "type-error: a list takes no format specification, got `>5`");
    check(
        "class A:\n    def __class_getitem__(cls, k): return cls.__name__, k\nclass B(A): pass\nprint(A[3], B[1, 2])",
        "('A', 3) ('B', (1, 2))",
    );
    check(
        "class N: pass\nclass A(N, tag=1): pass",
        "type-error: the class A has the keyword `tag=`, which none of its bases takes",
    );
}
