//! Tests of the language, case by case. Each case is a module whose output is compared.

use std::path::Path;

use nki_diag::memory::Limit;

use crate::{Arg, Loader, Options, syntax::sym};

mod arrays;
mod classes;
mod dialects;
mod inheritance;
mod live;
mod numbers;
mod python;
mod recover;
mod scalars;
mod sets;
mod text;

/// Files in memory.
struct Files<'a>(&'a [(&'a str, &'a str)]);

impl Loader for Files<'_> {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

/// The output of a module and of its function `k`, run as a kernel, followed by the slugs and
/// messages of all findings.
pub(crate) fn run_files(files: &[(&str, &str)], args: &[(String, Arg)], options: &Options) -> String {
    let compiled = crate::compile(Path::new("k.py"), &Files(files), args, options);
    let mut lines = compiled.prints;
    // These programs have no instructions; the warning about that is not under test.
    lines.extend(
        compiled.diagnostics.iter().filter(|d| d.id != "no-output").map(|d| format!("{}: {}", d.id, d.message)),
    );
    lines.join("\n")
}

fn run(source: &str) -> String {
    run_files(&[("k.py", source)], &[], &Options::default())
}

/// Checks the output of `source` at module level and in its kernel.
#[track_caller]
fn check(source: &str, expected: &str) {
    let source = format!("{source}\ndef k():\n    pass\n");
    assert_eq!(
        run_files(&[("k.py", &source)], &[], &Options { kernel: Some("k".into()), ..Options::default() }),
        expected,
        "in\n{source}"
    );
}

/// Checks the output of statements as the body of a kernel.
#[track_caller]
fn check_kernel(body: &str, expected: &str) {
    let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
    let source = format!("import nki\nimport math\n@nki.jit\ndef k():\n{body}");
    assert_eq!(run(&source), expected, "in\n{source}");
}

/// Checks the repr of an expression, at module level and in a kernel.
#[track_caller]
fn check_expr(expr: &str, expected: &str) {
    check(&format!("print(repr(({expr})))"), expected);
    check_kernel(&format!("print(repr(({expr})))"), expected);
}

#[test]
fn symbols_are_where_their_constants_say() {
    let names = crate::syntax::Interner::new();
    assert_eq!(&**names.name(sym::init), "__init__");
    assert_eq!(&**names.name(sym::plain_len), "len");
}

#[test]
fn memories_are_regions_where_nothing_defines_their_names() {
    check_kernel(
        "p = sbuf[32:64, 0:1024]\nq = p[0:8, 512:]\nprint(sbuf.start, p.start, p.size, q.start, q.size)\n\
         t = q.view(dtype='float32', shape=(8, 64, 2))\nprint(t.shape, t.buffer == 'sbuf')",
        "(None, None) (32, 0) (32, 1024) (32, 512) (8, 512)\n(8, 64, 2) True",
    );
    check_kernel("print(psum.ptr((64, 128), offset=(0, 2048)).start)", "(0, 2048)");
    check_kernel("sbuf[1:2, 0:4]", "bad-address: a region of `sbuf` starts at partition 1");
    check_kernel("sbuf[0:130, 0:4]", "bad-address: partitions 0 to 130 of a region of `sbuf` that has 128");
    check_kernel("psum[0:4, 1:4]", "bad-address: a region of `psum` takes bytes 1 to 4: both must be even");
    check_kernel("sbuf[0]", "bad-address: a region of `sbuf` takes two indices, partitions and bytes, got 1");
    check_kernel(
        "sbuf[0:32, 0:16].view('float32', (32, 5))",
        "bad-address: view of 20 bytes in a region of `sbuf` that has 16",
    );
    check_kernel("print(sbuf.begin)", "unknown-attribute: a memory region has no attribute `begin`");
    check("sbuf = 3\nprint(sbuf)", "3");
}

#[test]
fn klr_takes_patterns_of_tensors_only() {
    let source = |import: &str| {
        format!(
            "import nki\nimport nki.language as nl\n{import}\n@nki.jit\ndef k():\n    \
             t = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)\n    u = t.ap([[4, 128], [1, 2]]).ap([[4, 128], [1, 1]])"
        )
    };
    assert_eq!(run(&source("")), "");
    assert_eq!(run(&source("import klr.frontend")), "access-pattern: `ap` of a view of `t`");
}

#[test]
fn a_dialect_applies_to_the_functions_of_its_module() {
    // For KLR, an empty dict is true, and f-strings contain no spaces around values.
    let klr = "import klr.frontend\nimport helper\ndef show(x):\n    print('klr', bool({}), f'{x}')\n    helper.show(x)\n    \
               print('klr', bool({}))";
    let helper = "def show(x):\n    print('python', bool({}), f'{x}')";
    let kernel =
        "import nki, other\n@nki.jit\ndef k():\n    print(bool({}))\n    other.show([1, 2])\n    print(bool({}))";
    assert_eq!(
        run_files(&[("k.py", kernel), ("other.py", klr), ("helper.py", helper)], &[], &Options::default()),
        "False\nklr True [1,2]\npython False [1, 2]\nklr True\nFalse"
    );
}

#[test]
fn a_schedule_makes_named_instructions_wait() {
    let run = |edges: &str| {
        let source = format!(
            "import nki, nki.isa as nisa, nki.language as nl\n@nki.jit\ndef k():\n    \
             t = nl.ndarray((128, 4), nl.float32, buffer=nl.sbuf)\n    \
             nisa.memset(t[:, 0:2], 0.0, name='a')\n    nisa.memset(t[:, 2:4], 0.0, name='b')\n\
             s = k.with_schedule({edges})\n"
        );
        let options = Options { kernel: Some("s".into()), ..Options::default() };
        let compiled = crate::compile(Path::new("k.py"), &Files(&[("k.py", &source)]), &[], &options);
        let waits = compiled.program.map(|p| p.tags.iter().map(|t| t.after.len()).sum::<usize>());
        (waits, compiled.diagnostics.into_iter().filter(|d| d.id != "no-output").map(|d| d.message).collect::<Vec<_>>())
    };
    assert_eq!(run("[('b', ['a'])]"), (Some(1), vec![]));
    assert_eq!(run("[]"), (Some(0), vec![]));
    let refused = |edges: &str, message: &str| assert_eq!(run(edges), (None, vec![message.to_owned()]));
    refused("[('b', 'c')]", "with_schedule names `c`, but no instruction of the kernel has this name");
    refused("[('a', 'b')]", "with_schedule: `a` must wait for `b`, which comes after it in the program");
    refused("[('a', 3)]", "with_schedule takes a list of pairs of instruction names, got an int");
}

#[test]
fn integers_follow_python() {
    for (expr, expected) in [
        ("7 // 2, -7 // 2, 7 // -2, -7 // -2", "(3, -4, -4, 3)"),
        ("7 % 3, -7 % 3, 7 % -3, -7 % -3", "(1, 2, -2, -1)"),
        ("2 ** 10, 2 ** -1, (-2) ** 3, 0 ** 0", "(1024, 0.5, -8, 1)"),
        ("1 << 10, 1024 >> 3, -1 >> 1, ~5", "(1024, 128, -1, -6)"),
        ("6 & 3, 6 | 3, 6 ^ 3, True & False, True + 1", "(2, 7, 5, False, 2)"),
        ("divmod(-7, 2), abs(-3), pow(2, 5)", "((-4, 1), 3, 32)"),
        ("pow(3, -1, 7), pow(10, -2, 7), pow(3, -1, -7), pow(-3, -3, 10), pow(5, -1, 1)", "(5, 4, -2, 7, 0)"),
        ("int('0x1f', 16), int('-12'), int(3.9), int(-3.9)", "(31, -12, 3, -3)"),
        ("(300).bit_length()", "9"),
        ("-2 ** 2", "-4"),
        ("0xff, 0b101, 1_000", "(255, 5, 1000)"),
    ] {
        check_expr(expr, expected);
    }
}

#[test]
fn floats_follow_python() {
    for (expr, expected) in [
        ("7 / 2, 1 / 4, 10 / 5", "(3.5, 0.25, 2.0)"),
        ("1e16, 1e-5, 0.1, 1e22, 123456789.0", "(1e+16, 1e-05, 0.1, 1e+22, 123456789.0)"),
        ("-7.5 // 2, -7.5 % 2", "(-4.0, 0.5)"),
        ("round(2.5), round(3.5), round(2.675, 2), round(1234, 1)", "(2, 4, 2.67, 1234)"),
        ("float('inf'), float('-inf'), float('nan')", "(inf, -inf, nan)"),
        ("1.0 == 1, 0.1 + 0.2 == 0.3, 1 < 1.5", "(True, False, True)"),
        ("max(1, 2.5), min([3, 1, 2]), sum([1, 2.5])", "(2.5, 1, 3.5)"),
    ] {
        check_expr(expr, expected);
    }
}

#[test]
fn strings_and_formats_follow_python() {
    for (expr, expected) in [
        ("'a' + \"b\" 'c' * 2", "'abcbc'"),
        ("f'{3:4d}|{3:<4}|{3:^5}|{-3:05d}|{255:#x}|{1000000:,}'", "'   3|3   |  3  |-0003|0xff|1,000,000'"),
        ("f'{3.14159:.2f}|{2.0}|{1e10:.3e}|{0.5:%}|{3.0:g}'", "'3.14|2.0|1.000e+10|50.000000%|3'"),
        ("f'{\"x\"!r}|{\"x\":>3}|{[1, \"a\"]}'", "\"'x'|  x|[1, 'a']\""),
        ("(lambda n: f'{n=} {n + 1:>{4}}')(3)", "'n=3    4'"),
        ("'{} {} {a:.1f}'.format(1, 2, a=0.25)", "'1 2 0.2'"),
        ("'%d-%s-%.2f-%5s' % (3, 'x', 0.5, 'r')", "'3-x-0.50-    r'"),
        ("', '.join(['a', 'b']), 'a,b,c'.split(','), ' x '.strip()", "('a, b', ['a', 'b', 'c'], 'x')"),
        ("'kernel'[0], 'kernel'[-1], 'kernel'[1:4], 'abc'[::-1]", "('k', 'l', 'ern', 'cba')"),
        (
            "'abc'.upper(), 'ABC'.lower(), 'abc'.startswith(('x', 'a')), 'abc'.replace('b', 'x')",
            "('ABC', 'abc', True, 'axc')",
        ),
        ("'b' in 'abc', 'x' not in 'abc', 'abc'.find('c'), len('abc')", "(True, True, 2, 3)"),
    ] {
        check_expr(expr, expected);
    }
}

#[test]
fn containers_follow_python() {
    for (expr, expected) in [
        ("[1, 2] + [3], (1,) + (2,), [0] * 3, (1, 2) * 2", "([1, 2, 3], (1, 2), [0, 0, 0], (1, 2, 1, 2))"),
        ("[1, 2, 3][1:], [1, 2, 3][::-1], [1, 2, 3][-2], (1, 2, 3)[:-1]", "([2, 3], [3, 2, 1], 2, (1, 2))"),
        ("[x * y for x in range(3) if x for y in (1, 10)]", "[1, 10, 2, 20]"),
        ("{str(k): k * k for k in range(3)}", "{'0': 0, '1': 1, '2': 4}"),
        ("sorted([3, 1, 2], reverse=True), sorted(['bb', 'a'], key=len)", "([3, 2, 1], ['a', 'bb'])"),
        ("list(enumerate('ab', start=1)), list(zip([1, 2], (3, 4)))", "([(1, 'a'), (2, 'b')], [(1, 3), (2, 4)])"),
        (
            "list(range(5, 0, -2)), len(range(0, 10, 3)), 4 in range(0, 10, 2), range(10)[2:8:2]",
            "([5, 3, 1], 4, True, range(2, 8, 2))",
        ),
        ("{'a': 1} == {'a': 1}, [1, [2]] == [1, [2]], (1, 2) < (1, 3)", "(True, True, True)"),
        ("list(map(lambda x: x + 1, [1, 2])), list(filter(None, [0, 1]))", "([2, 3], [1])"),
        ("any(x > 2 for x in [1, 2, 3]), all([])", "(True, True)"),
        ("[*range(2), 5], {**{'a': 1}, 'b': 2}", "([0, 1, 5], {'a': 1, 'b': 2})"),
        ("list(dict(a=1, b=2).items()), list({'a': 1}), {'a': 1}.get('b', 3)", "([('a', 1), ('b', 2)], ['a'], 3)"),
        ("[1, 2, 3].index(2), (1, 1).count(1), list(reversed([1, 2]))", "(1, 2, [2, 1])"),
    ] {
        check_expr(expr, expected);
    }
}

#[test]
fn lists_are_references() {
    check_kernel(
        "a = [1]\nb = a\nb.append(2)\na += [3]\nprint(a, b is a)\nb[0:1] = [7, 8]\nprint(a, a.pop(), a.pop(0))\na.insert(0, 5)\na.sort()\nprint(a)",
        "[1, 2, 3] True\n[8, 2] 3 7\n[2, 5, 8]",
    );
    check_kernel(
        "d = {}\nfor i in range(12):\n    d[f'k{i}'] = i\nd.pop('k3')\nd['k0'] = 'x'\nprint(len(d), d['k11'], d['k0'], 'k3' in d, d.setdefault('n', []))",
        "11 11 x False []",
    );
}

#[test]
fn conditions_and_chains() {
    for (expr, expected) in [
        ("1 < 2 < 3, 1 < 3 < 2, 1 == 1.0 != 2", "(True, False, True)"),
        ("0 or 'x', 1 and 2, not [], None or None", "('x', 2, True, None)"),
        ("'a' if 0 else 'b', None is None, 3 is not None", "('b', True, True)"),
        (
            "isinstance(1, int), isinstance(True, int), isinstance('a', (int, str)), isinstance(None, float)",
            "(True, True, True, False)",
        ),
    ] {
        check_expr(expr, expected);
    }
}

#[test]
fn loops_and_jumps() {
    check_kernel(
        "t = 0\nfor i in range(10):\n    if i == 3:\n        continue\n    if i == 6:\n        break\n    t += i\nprint(t, i)",
        "12 6",
    );
    check_kernel(
        "n = 5\nwhile n:\n    n -= 1\nelse:\n    print('end')\nfor a, (b, *c) in [(1, (2, 3, 4))]:\n    print(a, b, c)",
        "end\n1 2 [3, 4]",
    );
    check_kernel(
        "a = b = [0, 0]\n(x, y), a[1] = (1, 2), 3\nprint(x, y, b)\nx, y = y, x\nprint(x, y)",
        "1 2 [0, 3]\n2 1",
    );
}

#[test]
fn functions_take_all_kinds_of_arguments() {
    check(
        "def f(a, b=2, *rest, c, d=4, **kw):\n    print(a, b, rest, c, d, kw)\nf(1, c=3)\nf(1, 5, 6, 7, c=8, e=9)\nf(*[1, 2], **{'c': 3})",
        "1 2 () 3 4 {}\n1 5 (6, 7) 8 4 {'e': 9}\n1 2 () 3 4 {}",
    );
    check("def f(a, b):\n    pass\nf(1)", "arguments: f() is missing argument `b`");
    check("def f(a, b):\n    pass\nf(1, 2, 3)", "arguments: f() takes 2 positional arguments but 3 were given");
    check("def f(alpha):\n    pass\nf(alhpa=3)", "arguments: f() has no parameter `alhpa`");
    check("def f(a):\n    pass\nf(1, a=3)", "arguments: f() got `a` by position and by name");
}

#[test]
fn closures_see_variables_not_values() {
    check_kernel(
        "def outer():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up\nf = outer()\nf()\nprint(f(), outer()())",
        "2 1",
    );
    check_kernel(
        "fs = []\nfor i in range(3):\n    fs.append(lambda: i)\nprint([f() for f in fs], [g(1) for g in [lambda x, n=n: x + n for n in range(3)]])",
        "[2, 2, 2] [1, 2, 3]",
    );
    check("n = 1\ndef f():\n    global n\n    n = 2\nf()\nprint(n)", "2");
    check("def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(15))", "610");
    check_kernel("print([y for x in range(4) if (y := x * x) > 1], y)", "[4, 9] 9");
}

#[test]
fn classes_and_operators() {
    check(
        "class V:\n    count = 0\n    def __init__(self, x):\n        self.x = x\n        V.count += 1\n    def __add__(self, o):\n        return V(self.x + o.x)\n    def __radd__(self, o):\n        return V(o + self.x)\n    def __eq__(self, o):\n        return self.x == o.x\n    def __getitem__(self, i):\n        return self.x[i]\n    def __len__(self):\n        return 2\n    def __call__(self, y):\n        return self.x * y\n    def __repr__(self):\n        return f'V({self.x})'\n    @staticmethod\n    def make(x):\n        return V(x)\n    @classmethod\n    def one(cls):\n        return cls(1)\n    @property\n    def twice(self):\n        return self.x * 2\nprint(V(1) + V(2), 3 + V(4), V(1) == V(1), V(1) != V(2), V('ab')[1], len(V(0)), V(3)(4), V.make(5), V.one(), V(4).twice)\nm = V(6).__call__\nprint(m(2), V.count)",
        "V(3) V(7) True True b 2 12 V(5) V(1) 8\n12 16",
    );
    check(
        "class A:\n    def __init__(self, x):\n        self.x = x\n    def f(self):\n        return 'A'\nclass B(A):\n    def __init__(self):\n        super().__init__(3)\n    def f(self):\n        return super().f() + 'B'\nb = B()\nprint(b.x, b.f(), isinstance(b, A), type(b).__name__)",
        "3 AB True B",
    );
}

#[test]
fn classes_made_from_fields() {
    let head = "import nki.language as nl\nfrom dataclasses import dataclass, field\nfrom enum import Enum, IntEnum, auto\nfrom typing import NamedTuple\nfrom collections import namedtuple\n";
    let check = |body: &str, expected: &str| check(&format!("{head}{body}"), expected);
    check(
        "class A(nl.NKIObject):\n    x: int = 1\n    y: bool\n    def get(self):\n        return self.x\na = A(y=5)\nprint(a.x, a.y, a.get(), A().y, A.x, A() == A())",
        "1 5 1 None 1 True",
    );
    let base = "class Base(nl.NKIObject):\n    def __init__(self, s):\n        self.s = s * 2\n";
    check(&format!("{base}class Sub(Base):\n    s: float = 1.0\nprint(Sub(3).s, Sub(s=4).s)"), "6 8");
    let base = "class A(nl.NKIObject):\n    x: int = 1\n    y: int = 2\n    def __post_init__(self):\n        self.z = self.x * 10 + self.y\n";
    let sub = "class C(A):\n    w: int = 3\n    def __init__(self, x):\n        super().__init__(x)\n        self.v = self.w\n";
    check(&format!("{base}{sub}print(C(4).z, C(4).v, C(4).y)"), "42 3 2");
    check(&format!("{base}class D(A):\n    w: int = 3\nprint(D(4, 5, 6).z, D(w=7).w)"), "45 7");
    check(
        "class A(nl.NKIObject):\n    x: int = 1\n    def __post_init__(self):\n        self.z = self.x * 2\nprint(A(4).z)",
        "8",
    );
    check("@dataclass\nclass A(nl.NKIObject):\n    x = None\n    y = 2\na = A(x=1)\nprint(a.x, a.y)", "1 2");
    check(
        "@dataclass\nclass P:\n    a: int\n    b: list = field(default_factory=list)\n    c: int = field(default=3)\n    def __post_init__(self):\n        self.d = self.a + self.c\np, q = P(1), P(2)\np.b.append(1)\nprint(p, q.b, p.d, P(1) == P(1))",
        "P(a=1, b=[1], c=3) [] 4 True",
    );
    check("@dataclass(frozen=True)\nclass P:\n    a: int\nP(1).a = 2", "frozen-object: `a` of a P cannot be changed");
    check("@dataclass\nclass P:\n    a: int\nP()", "arguments: P() is missing its field `a`");
    check(
        "class C(Enum):\n    RED = 1\n    BLUE = auto()\n    def low(self):\n        return self.name.lower()\nprint(C.RED, C.BLUE.value, C.RED == C.RED, C(2).low(), [c.name for c in C], C['RED'] is C.RED, len(C))",
        "C.RED 2 True blue ['RED', 'BLUE'] True 2",
    );
    check("class N(IntEnum):\n    A = 3\nprint(N.A + 1, [0, 1, 2, 3][N.A], N.A == 3)", "4 3 True");
    check(
        "class T(NamedTuple):\n    m: int\n    n: int = 2\nt = T(1)\nm, n = t\nprint(m, n, t.m, t[1], len(t), t == (1, 2), t)\nU = namedtuple('U', 'a b')\nprint(U(1, b=2)._replace(a=5))",
        "1 2 1 2 2 True T(m=1, n=2)\nU(a=5, b=2)",
    );
}

#[test]
fn library_modules() {
    check(
        "import math\nimport numpy as np\nprint(math.ceil(2.1), math.floor(-2.1), math.gcd(12, 18), math.sqrt(16), math.log2(8), math.pi, np.prod([2, 3]), np.inf, math.prod((2, 5)))",
        "3 -3 6 4.0 3.0 3.141592653589793 6 inf 10",
    );
    check(
        "from functools import partial, reduce, lru_cache\nimport itertools, operator\n@lru_cache(maxsize=None)\ndef f(a, b):\n    return a - b\nprint(partial(f, 10)(3), reduce(operator.mul, [1, 2, 3]), list(itertools.product('ab', [1, 2])))",
        "7 6 [('a', 1), ('a', 2), ('b', 1), ('b', 2)]",
    );
    check(
        "from collections import defaultdict\nd = defaultdict(list)\nd['a'].append(1)\nprint(d, math if False else 0)",
        "defaultdict(<class 'list'>, {'a': [1]}) 0",
    );
    check("import math\nprint(math.sqrt(-1))", "value-error: sqrt() is not defined for this argument");
}

#[test]
fn errors_say_what_is_wrong() {
    check_kernel("print(undefined_thing)", "undefined-name: the name `undefined_thing` is not defined");
    check_kernel("if 0:\n    x = 1\nprint(x)", "undefined-name: `x` is used before it is assigned");
    check_kernel(
        "assert 1 + 1 == 3, f'one and one is {1 + 1}'",
        "assertion-failed: assertion failed: one and one is 2",
    );
    check_kernel("assert 1 > 2", "assertion-failed: assertion failed: 1 > 2");
    check_kernel(
        "d = {1: 'a', (1, 'b'): 2, None: 3}\nd[2.0] = 4\nd.setdefault(5, []).append(6)\nprint(d[True], d[2], d[(1, 'b')], d[None], d[5])",
        "a 4 2 3 [6]",
    );
    check_kernel("d = {'a': 1}\nd['b']", "missing-key: the dict has no key 'b'");
    check_kernel("[1, 2][5]", "index-out-of-range: index 5 is out of range: the list has 2 items");
    check_kernel("raise ValueError('no ' + 'good')", "raised-exception: ValueError: no good");
    check_kernel("1 // 0", "division-by-zero: division by zero");
    check_kernel("2 ** 62 * 4", "integer-overflow: 4611686018427387904 * 4 does not fit in 64 bits");
    check_kernel("a, b = [1, 2, 3]", "unpack-mismatch: 3 values cannot be unpacked into 2 names");
    check_kernel("'a' + 1", "type-error: `+` does not work between a str and an int");
    check_kernel("range(2.0)", "type-error: range() needs ints, 2.0 is a float");
    check_kernel("[].push(1)", "no-attribute: a list has no method `push`");
    check_kernel("async def f():\n    pass\nf()", "unsupported-syntax: an async function is not supported in NKI");
    check_kernel(
        "def f():\n    def g(x=(yield)):\n        pass\n    g()\nlist(f())",
        "unsupported-syntax: `yield` in this place is not supported in NKI",
    );
    check_kernel("next([1])", "type-error: a list is not an iterator");
    check_kernel("next(iter([]))", "raised-exception: StopIteration");
    check_kernel("def f():\n    return f()\nf()", "recursion-limit: `f` is called more than 1000 levels deep");
}

#[test]
fn endless_loops_end() {
    let source = "def k():\n    while True:\n        pass\n";
    let options = Options { step_limit: 1000, ..Options::default() };
    assert_eq!(
        run_files(&[("k.py", source)], &[], &options),
        "step-limit: specialisation does not end within 1000 steps"
    );
}

#[test]
fn exceptions_can_be_handled() {
    check_kernel(
        "try:\n    [1][3]\nexcept IndexError as e:\n    print('caught', e)\nfinally:\n    print('done')",
        "caught index 3 is out of range: the list has 1 item\ndone",
    );
    check(
        "class E(ValueError):\n    pass\ntry:\n    raise E('x')\nexcept KeyError:\n    pass\nexcept ValueError as e:\n    print(1)\nexcept Exception as e:\n    print(2, e)",
        "1",
    );
}

#[test]
fn host_code_does_no_harm() {
    let source = "import torch, os\nfrom torch import nn\nimport nki\nDEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n@torch.compile(mode='max')\ndef helper():\n    with open('x') as f:\n        yield f.read()\nclass M(nn.Module):\n    def forward(self, x):\n        return x @ self.w\nasync def g():\n    await g()\nmatch DEVICE:\n    case _:\n        Q = 1\nx, y = torch.randn(3, 4), 2\nx[0] = 5\nx += 1\n@nki.jit\ndef k():\n    print('kernel')\nif __name__ == '__main__':\n    k(torch.zeros(1))\n";
    assert_eq!(run(source), "kernel");
    assert_eq!(
        run("import torch\ndef k():\n    print(torch.randn(3))\n"),
        "host-value: `torch` belongs to the host program and has no value in a kernel"
    );
    let poisoned =
        run("import torch, nki\nif 1:\n    async with f(): pass\n    N = 1\n@nki.jit\ndef k():\n    print(N + 1)\n");
    assert!(poisoned.starts_with("host-value: `N` belongs"), "{poisoned}");
}

#[test]
fn what_fails_with_values_of_the_host_is_of_the_host() {
    let lines = [
        "np.array([n], np.int32)",
        "np.zeros((n, 2))",
        "np.float32(n)",
        "np.where(np.arange(3) > n, 1, 0)",
        "np.arange(4).reshape(n, 2)",
        "np.arange(4)[:n]",
        "[1, 2][n]",
        "round(n)",
    ];
    for line in lines {
        let source =
            format!("import sys\nimport numpy as np\nn = int(sys.argv[1])\ny = {line}\ndef k():\n    print(1)\n");
        assert_eq!(run(&source), "1", "{line}");
        let used = run(&source.replace("print(1)", "print(y + 1)"));
        assert!(used.starts_with("host-value: `"), "{line}: {used}");
    }
}

#[test]
fn neighbouring_files_are_imported() {
    let files = [
        (
            "pkg/k.py",
            "from .util import double, THREE as T\nfrom . import other\nimport lib.deep as deep\nfrom lib import deep as d2\nfrom lib.deep import *\nfrom .gone import thing\ndef k():\n    print(double(T), other.X, deep.Y, d2 is deep, Y)\n    thing()\n",
        ),
        ("pkg/util.py", "from .other import X\nTHREE = 3\ndef double(x):\n    return 2 * x + X\n"),
        ("pkg/other.py", "from . import util\nX = 100\n"),
        ("lib/deep.py", "Y = 7\n_z = 8\n"),
    ];
    let compiled = crate::compile(
        Path::new("pkg/k.py"),
        &Files(&files),
        &[],
        &Options { kernel: Some("k".into()), ..Options::default() },
    );
    assert_eq!(compiled.prints, ["106 100 7 True 7"]);
    let d = &compiled.diagnostics[0];
    assert_eq!(
        (d.id, d.message.as_str()),
        ("host-value", "`thing` belongs to the host program and has no value in a kernel")
    );
    assert!(d.notes[0].contains("gone.py"), "{:?}", d.notes);
}

#[test]
fn a_module_without_a_file_is_said_to_be_missing() {
    let files = [(
        "k.py",
        "import os\nfrom kit.sizes import tiles\nN = tiles(4)[0].n\ndef k():\n    print(N + 1)\ndef other():\n    print(os.sep + 1)\n",
    )];
    let notes = |kernel: &str| {
        let options = Options { kernel: Some(kernel.into()), ..Options::default() };
        let compiled = crate::compile(Path::new("k.py"), &Files(&files), &[], &options);
        let found = compiled.diagnostics.into_iter().find(|d| d.id == "host-value").expect("a host value");
        found.notes.join(" ")
    };
    assert!(notes("k").contains("no file of module `kit.sizes`"), "{}", notes("k"));
    assert_eq!(notes("other"), "");
}

#[test]
fn a_package_has_all_its_modules() {
    let files = [
        (
            "k.py",
            "import pkg.inner.deep\nfrom pkg import Z, _z\ndef max(a):\n    return a\nfrom pkg import *\ndef k():\n    print(pkg.inner.deep.Y, pkg.other.X, pkg.X, Z, _z, max(4))\n",
        ),
        ("pkg/__init__.py", "from .other import *\nfrom .listed import *\n"),
        ("pkg/other.py", "H = 99\nfrom typing import *\nX = max(H, 100 + H - H)\n_h = 5\n"),
        ("pkg/listed.py", "__all__ = ['Z', '_z']\nZ = 1\n_z = 2\nX = 3\n"),
        ("pkg/inner/__init__.py", ""),
        ("pkg/inner/deep.py", "from .. import other\nY = other.X + 7\n"),
    ];
    let options = Options { kernel: Some("k".into()), ..Options::default() };
    let compiled = crate::compile(Path::new("k.py"), &Files(&files), &[], &options);
    assert_eq!(compiled.prints, ["107 100 100 1 2 4"], "{:?}", compiled.diagnostics);
}

#[test]
fn kernels_are_found() {
    let list = |source: &str| {
        let files = [("k.py", source)];
        let listing = crate::kernels(Path::new("k.py"), &Files(&files), None, Limit::NONE);
        listing.kernels.iter().map(|k| k.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let kernel_and_demo = "import nki.language as nl\nimport numpy as np\ndef helper(x):\n    return nl.load(x)\n\
                           def kernel(x):\n    return helper(x)\ndef demo():\n    run(kernel)(np.zeros(4))\n";
    assert_eq!(list(kernel_and_demo), "kernel");
    assert_eq!(list("def a():\n    pass\ndef b():\n    pass\n"), "a b");
    assert_eq!(list("import nki\n@nki.jit\ndef a():\n    pass\ndef b():\n    pass\n"), "a");
    assert_eq!(
        list("from nki import jit as J\n@J(mode='x')\ndef a():\n    pass\ndef b():\n    pass\nc = J(b)\n"),
        "a c"
    );
    assert_eq!(list("import nki\n@nki.jit\ndef a():\n    pass\nb = a\n"), "a");
    // Without decorators, functions called by other functions are helpers.
    assert_eq!(list("def h(x):\n    return h(x)\ndef a():\n    return [h(i) for i in range(2)]\n"), "a");
    assert_eq!(
        list(
            "def h():\n    pass\ndef a():\n    def inner():\n        h()\n    return lambda: g()\ndef g():\n    pass\n"
        ),
        "a"
    );
    assert_eq!(list("def a():\n    b()\ndef b():\n    a()\n"), "a b");
    assert_eq!(list("def a():\n    pass\ndef main():\n    simulate(a)\n"), "a main");
    let files = [("k.py", "def h():\n    print('h')\ndef a():\n    h()\n")];
    let chosen = |name: &str| {
        let options = Options { kernel: Some(name.into()), ..Options::default() };
        crate::compile(Path::new("k.py"), &Files(&files), &[], &options).prints
    };
    assert_eq!(chosen("h"), ["h"]);
    assert!(chosen("g").is_empty());
    let two = run("import nki\n@nki.jit\ndef a():\n    pass\n@nki.jit\ndef b():\n    pass\n");
    assert_eq!(two, "which-kernel: k.py has 2 kernels: which one?");
}

#[test]
fn kernel_arguments_are_passed_by_name() {
    let source = "def k(x, n=2, *, flag=False):\n    print(x, n, flag)\n";
    let go = |args: &[(&str, Arg)]| {
        let args: Vec<_> = args.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect();
        run_files(&[("k.py", source)], &args, &Options::default())
    };
    assert_eq!(go(&[("flag", Arg::Bool(true)), ("x", Arg::Tuple(vec![Arg::Int(1), Arg::None]))]), "(1, None) 2 True");
    let source = "from enum import Enum\nclass Kind(Enum):\n    A = 1\n    B = 2\ndef k(kind: Kind = Kind.A):\n    print(kind, next(iter([7])))\n";
    assert_eq!(
        run_files(&[("k.py", source)], &[("kind".into(), Arg::Str("B".into()))], &Options::default()),
        "Kind.B 7"
    );
    assert_eq!(go(&[]), "missing-argument: kernel `k` needs a value for its argument `x`");
    assert_eq!(go(&[("y", Arg::None)]), "unknown-argument: kernel `k` has no parameter `y`");
}

#[test]
fn calls_lead_to_the_error() {
    let source = "def inner(x):\n    return x[3]\ndef outer(x):\n    return inner(x)\ndef k():\n    outer([1])\n";
    let compiled = crate::compile(
        Path::new("k.py"),
        &Files(&[("k.py", source)]),
        &[],
        &Options { kernel: Some("k".into()), ..Options::default() },
    );
    let labels: Vec<&str> = compiled.diagnostics[0].labels.iter().map(|l| l.text.as_str()).collect();
    assert_eq!(labels, ["index 3, length 1", "in this call of `inner`", "which is called from here (`outer`)"]);
}

#[test]
fn syntax_errors_are_all_reported() {
    let out = run("def k(:\n    pass\nx = = 3\n");
    assert!(out.lines().count() >= 2 && out.lines().all(|l| l.starts_with("syntax-error: ")), "{out}");
}

#[test]
fn deep_nesting_is_refused() {
    for source in [
        format!("x = {}1{}\n", "(".repeat(100_000), ")".repeat(100_000)),
        format!("x = {}1\n", "-".repeat(100_000)),
        format!("x = {}1\n", "not ".repeat(100_000)),
        format!("x = 1{}\n", " + 1".repeat(100_000)),
        format!("x = f{}\n", "()".repeat(100_000)),
        format!("x = f{}\n", ".a".repeat(100_000)),
        format!("x = {}1\n", "lambda: ".repeat(100_000)),
        format!("x = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000)),
        format!("x = {}1\n", "1 if 1 else ".repeat(100_000)),
        format!("x = 2{}\n", " ** 2".repeat(100_000)),
        (0..3000).map(|i| format!("{}if 1:\n", " ".repeat(i))).collect::<String>() + &" ".repeat(3000) + "pass\n",
        "f'{".repeat(1000),
    ] {
        let out = run(&source);
        assert!(out.contains("nesting-too-deep: "), "{} -> {}", &source[..20], &out[..out.len().min(200)]);
    }
    // Real code stays far below the limit.
    check(&format!("x = {}0\nprint(x)", "1 + ".repeat(300)), "300");
    check(&format!("x = [{}]\nprint(len(x))", "-1, ".repeat(5000)), "5000");
}

mod properties {
    use proptest::prelude::*;

    /// Fragments of programs, which may be invalid where they are placed.
    const TOKENS: &[&str] = &[
        "x",
        "y",
        "f",
        "self",
        "1",
        "0",
        "2.5",
        "'s'",
        "f'{x}'",
        "f'{x:",
        "}",
        "'",
        "(",
        ")",
        "[",
        "]",
        "{",
        ",",
        ":",
        ".",
        "=",
        "+=",
        "==",
        "<",
        "+",
        "-",
        "*",
        "**",
        "//",
        "/",
        "%",
        "@",
        "<<",
        "~",
        "not",
        "and",
        "or",
        "in",
        "is",
        "if",
        "elif",
        "else",
        "for",
        "while",
        "def",
        "class",
        "return",
        "lambda",
        "yield",
        "await",
        "async",
        "with",
        "as",
        "try",
        "except",
        "finally",
        "raise",
        "assert",
        "import",
        "from",
        "del",
        "global",
        "nonlocal",
        "pass",
        "break",
        "continue",
        "None",
        "True",
        "range(3)",
        "len(x)",
        "print(x)",
        "x[0]",
        "x.y",
        "f(x)",
        "[1, 2]",
        "{'a': 1}",
        "\n",
        "\n    ",
        "\n        ",
        "\n",
        ":\n    ",
        "def f(x):\n    ",
        "for x in range(2):\n    ",
        "class C:\n    ",
        ";",
        "->",
        "...",
        ":=",
        "\\",
        "#",
        "\u{e9}",
        "math",
        "super()",
        "x: int = 1",
        "sorted(x)",
        "zip(x, y)",
        "match x:",
        "case _:",
        "type",
        "*x",
        "**y",
        "if x:\n    ",
        "x = [",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// For any input, the frontend returns a value and findings.
        #[test]
        fn nothing_panics(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..60), glue in "[ ]?") {
            let source = format!("x = [1, 2]\ny = 3\nimport math\ndef f(x):\n    return x\ndef k():\n    {}\n", tokens.join(&glue));
            let options = crate::Options { step_limit: 10_000, ..Default::default() };
            super::run_files(&[("k.py", &source)], &[], &options);
            super::run_files(&[("k.py", &tokens.join(&glue))], &[], &options);
        }

        /// The frontend does not panic even on text that is not a program.
        #[test]
        fn no_text_panics(source in "\\PC{0,200}") {
            super::run(&source);
        }
    }
}
