//! Subtle points of Python's semantics.

use super::*;

#[test]
fn sorting_asks_the_classes_of_the_items() {
    let class = "class Tile:\n    def __init__(self, n):\n        self.n = n\n    def __lt__(self, other):\n        return self.n > other.n\n\
                 \n    def __repr__(self):\n        return f'T{self.n}'\n";
    let tiles = "ts = [Tile(n) for n in (2, 3, 1, 3)]";
    for (expr, expected) in [
        ("sorted(ts)", "[T3, T3, T2, T1]"),
        ("sorted(ts, reverse=True)", "[T1, T2, T3, T3]"),
        ("min(ts), max(ts)", "(T3, T1)"),
        ("sorted([('b', ts[0]), ('a', ts[0]), ('a', ts[1])])", "[('a', T3), ('a', T2), ('b', T2)]"),
        ("sorted(range(4), key=lambda i: ts[i])", "[1, 3, 0, 2]"),
        ("sorted(range(3), key=[3, 1, 2].__getitem__)", "[1, 2, 0]"),
        ("list(map({'a': 1}.__getitem__, 'aa')), 'xyz'.__getitem__(slice(1, None))", "([1, 1], 'yz')"),
        ("(1, ts[1]) < (1, ts[0])", "True"),
        ("sorted([2.5, 1, True, 3])", "[1, True, 2.5, 3]"),
        ("sorted(['b', 'B', 'a'], key=lambda s: s.lower(), reverse=True)", "['b', 'B', 'a']"),
    ] {
        check(&format!("{class}{tiles}\nprint(repr(({expr})))"), expected);
    }
    check(&format!("{class}{tiles}\nts.sort()\nprint(ts)"), "[T3, T3, T2, T1]");
    let plain = "class Plain:\n    pass\nsorted([Plain(), Plain()])";
    check(plain, "type-error: `<` does not work between a Plain and a Plain");
}

#[test]
fn strings_are_padded_to_any_width() {
    check_expr("len('x'.ljust(10**6)), len('x'.zfill(10**6)), len('x'.rjust(20000, '.'))", "(1000000, 1000000, 20000)");
    check_expr("'abc'.center(2), 'abc'.ljust(-5), '-7'.zfill(4)", "('abc', 'abc', '-007')");
    check_kernel(
        "'x'.ljust(10**15)",
        "value-error: str.ljust(1000000000000000) makes a string of more than 50000000 characters",
    );
    check_kernel("'x'.zfill('3')", "type-error: str.zfill() needs a width, an int");
}

#[test]
fn files_that_import_each_other_get_pythons_error() {
    let cycle = [
        ("k.py", "import nki\nfrom a import V\n@nki.jit\ndef k():\n    print(V)\n"),
        ("a.py", "from b import V\nU = 1\n"),
        ("b.py", "from a import U\nV = U + 1\n"),
    ];
    let expected = "import-cycle: `U` cannot be imported from a.py, which is still being imported";
    assert_eq!(run_files(&cycle, &[], &Options::default()), expected);
    // A name that is set before the import can be imported; and a module may use `try`.
    let mut early = cycle;
    early[1].1 = "U = 1\nfrom b import V\n";
    assert_eq!(run_files(&early, &[], &Options::default()), "2");
    let mut tried = cycle;
    tried[2].1 = "try:\n    from a import U\nexcept ImportError:\n    U = 5\nV = U + 1\n";
    assert_eq!(run_files(&tried, &[], &Options::default()), "6");
    let mut late = cycle;
    late[2].1 = "import a\ndef f():\n    from a import U\n    return U\nV = 7\n";
    assert_eq!(run_files(&late, &[], &Options::default()), "7");
}

#[test]
fn loops_of_the_device_count_in_32_bits() {
    let body = |range: &str| format!("import nki.language as nl\nfor i in nl.dynamic_range({range}):\n    pass");
    let refused = |what: &str, n: i64| {
        format!("dynamic-loop: nl.dynamic_range: {what} is {n}; a loop counts in a 32-bit register, up to 2147483647")
    };
    check_kernel(&body("2**32 + 1, 2**32 + 3"), &refused("the bound", (1 << 32) + 1));
    check_kernel(&body("0, 2**31"), &refused("the bound", 1 << 31));
    check_kernel(&body("-2**31 - 1, 0"), &refused("the bound", -(1 << 31) - 1));
    check_kernel(&body("0, 4, 2**40"), &refused("the step", 1 << 40));
    check_kernel(&body("-2**31, 2**31 - 1, 2**31 - 1"), "");
}

#[test]
fn dicts_and_sets_change_in_place() {
    check(
        "s = {1, 2}\nt = s\ns |= {3}\ns &= {2, 3}\ns ^= {3}\nprint(t, s is t)\ns -= {2}\nprint(t)",
        "{2} True\nset()",
    );
    check("d = {'a': 1}\ne = d\nd |= {'b': 2}\nd |= [('c', 3)]\nprint(e, e is d)", "{'a': 1, 'b': 2, 'c': 3} True");
    check("def f(s):\n    s |= {1}\ns = set()\nf(s)\nprint(s)", "{1}");
    check("{1} | [1]", "type-error: `|` does not work between a set and a list");
}

#[test]
fn nan_is_in_a_list_that_holds_it() {
    let head = "nan = float('nan')\n";
    for (expr, expected) in [
        ("nan == nan, nan is nan, nan != nan", "(False, True, True)"),
        ("nan in [nan], nan in (1.0, nan), nan in {nan}, nan in [1.0]", "(True, True, True, False)"),
        ("[nan] == [nan], (1, nan) == (1, nan), {'a': nan} == {'a': nan}, [nan] == [1.0]", "(True, True, True, False)"),
        ("[0, nan].index(nan), (nan, nan).count(nan), (nan, 1) < (nan, 2)", "(1, 2, True)"),
    ] {
        check(&format!("{head}print(({expr}))"), expected);
    }
}

#[test]
fn a_wrapper_has_the_name_of_what_it_wraps() {
    let wrap = "import functools\ndef log(f):\n    @functools.wraps(f)\n    def inner(*args):\n        return f(*args)\n    return inner\n\
                @log\ndef scale(x):\n    return 2 * x\n";
    let show = "print(scale.__name__, scale.__qualname__, scale.__wrapped__(4), scale(3))";
    check(&format!("{wrap}{show}"), "scale scale 8 6");
    check(&format!("{wrap}again = log(log(scale))\nprint(again.__name__, again(1))"), "scale 2");
    let cycle = "import functools\ndef a(): pass\ndef b(): pass\nfunctools.update_wrapper(a, b)\nfunctools.update_wrapper(b, a)\n\
                 functools.update_wrapper(a, a)\nprint(a.__name__, b.__name__)";
    check(cycle, "b b");
    // A partial function has no name to copy.
    let partial =
        "import functools\n@functools.wraps(functools.partial(max, 1))\ndef own():\n    pass\nprint(own.__name__)";
    check(partial, "own");
}

#[test]
fn a_module_may_compute_integers_that_no_kernel_uses() {
    let kernel = "import nki\nBIG = 10**30\nMASK = (1 << 64) - 1\nSMALL = 10**18\n@nki.jit\ndef k():\n    print(";
    let run = |text: &str| run_files(&[("k.py", &format!("{kernel}{text})\n"))], &[], &Options::default());
    assert_eq!(run("SMALL"), "1000000000000000000");
    assert!(run("BIG % 7").contains("`10 ** 30` belongs to the host program"), "{}", run("BIG % 7"));
    assert!(run("MASK & 255").contains("`1 << 64` belongs to the host program"), "{}", run("MASK & 255"));
    assert!(run("10**30").starts_with("integer-overflow: 10 ** 30 does not fit"), "{}", run("10**30"));
}

#[test]
fn errors_of_tensors_and_operators_have_pythons_classes() {
    let caught = |code: &str, class: &str| {
        let body = format!(
            "t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\ntry:\n    {code}\nexcept {class}:\n    print('caught')"
        );
        let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
        run(&format!("import nki\nimport nki.language as nl\n@nki.jit\ndef k():\n{body}"))
    };
    assert_eq!(caught("t.nothing", "AttributeError"), "caught");
    assert_eq!(caught("t + 1", "TypeError"), "caught");
}

#[test]
fn generators_are_contexts() {
    let head = "from contextlib import contextmanager\n@contextmanager\ndef scope(log, name, catch=ValueError):\n    log.append('+' + name)\n    \
                try:\n        yield name.upper()\n    except catch as e:\n        log.append(str(e))\n    finally:\n        log.append('-' + name)\n\
                log = []\n";
    for (body, expected) in [
        (
            "with scope(log, 'a') as a, scope(log, 'b') as b:\n    log.append(a + b)\nprint(log)",
            "['+a', '+b', 'AB', '-b', '-a']",
        ),
        ("with scope(log, 'a'):\n    raise ValueError('no')\nprint(log)", "['+a', 'no', '-a']"),
        (
            "try:\n    with scope(log, 'a'):\n        {}['k']\nexcept KeyError:\n    log.append('key')\nprint(log)",
            "['+a', '-a', 'key']",
        ),
        (
            "def f():\n    for i in range(3):\n        with scope(log, str(i)):\n            if i == 1:\n                return i\nprint(f(), log)",
            "1 ['+0', '-0', '+1', '-1']",
        ),
        (
            "def g():\n    with scope(log, 'a') as a:\n        yield a\n        log.append('on')\nprint(list(g()), log)",
            "['A'] ['+a', 'on', '-a']",
        ),
        (
            "class Pool:\n    depth = 0\n    @contextmanager\n    def nested(self, by=1):\n        self.depth += by\n        yield self\n        self.depth -= by\n\
             p = Pool()\nwith p.nested() as q, q.nested(by=2):\n    print(p.depth, p is q)\nprint(p.depth)",
            "3 True\n0",
        ),
    ] {
        check(&format!("{head}{body}"), expected);
    }
    check(
        "from contextlib import contextmanager\n@contextmanager\ndef none():\n    if False:\n        yield\nwith none():\n    pass",
        "raised-exception: RuntimeError: generator didn't yield",
    );
    check(
        "from contextlib import contextmanager\n@contextmanager\ndef twice():\n    yield 1\n    yield 2\nwith twice():\n    pass",
        "raised-exception: RuntimeError: generator didn't stop",
    );
    check_kernel(
        "def g():\n    yield\nwith g():\n    pass",
        "unsupported-syntax: `with` cannot be used on a generator",
    );
}

#[test]
fn sets_are_compared_as_sets_and_not_added() {
    check_expr(
        "{1} < {1, 2}, {1, 2} <= {2, 1}, {1, 2} > {3}, {1, 2} >= {2}, {1} < {1}",
        "(True, True, False, True, False)",
    );
    check_kernel("{1} + {2}", "type-error: `+` does not work between a set and a set");
}

#[test]
fn named_tuples_are_added_as_tuples() {
    let class = "from typing import NamedTuple\nclass T(NamedTuple):\n    a: int\n    b: int = 3\n";
    check(
        &format!("{class}print(T(1) + (5,), (0,) + T(1), T(1) + T(2), T(1) * 2)"),
        "(1, 3, 5) (0, 1, 3) (1, 3, 2, 3) (1, 3, 1, 3)",
    );
    let own = "    def __add__(self, other):\n        return T(self.a + other.a, 0)\n";
    check(&format!("{class}{own}print(T(1) + T(2))"), "T(a=3, b=0)");
    check(&format!("{class}try:\n    T(1) - T(2)\nexcept TypeError:\n    print('no')"), "no");
}

#[test]
fn what_python_refuses_before_it_runs_is_refused() {
    for (source, message) in [
        ("def f():\n    nonlocal x\n    x = 1", "no binding for nonlocal `x` found"),
        ("x = 1\ndef f():\n    nonlocal x", "no binding for nonlocal `x` found"),
        (
            "def f():\n    class K:\n        y = 1\n        def m(self):\n            nonlocal y",
            "no binding for nonlocal `y` found",
        ),
        ("def f():\n    global z\n    def g():\n        nonlocal z", "no binding for nonlocal `z` found"),
        ("nonlocal x", "nonlocal declaration not allowed at module level"),
        ("def f():\n    x = 1\n    global x", "name `x` is assigned to before global declaration"),
        ("def f():\n    for i in range(3):\n        global i", "name `i` is assigned to before global declaration"),
        ("def f():\n    print(x)\n    global x", "name `x` is used prior to global declaration"),
        ("def f(x):\n    global x", "name `x` is parameter and global"),
        ("def f(a, a):\n    return a", "duplicate argument `a` in function definition"),
        ("f = lambda a, *a: a", "duplicate argument `a` in function definition"),
        ("print(end='', end='')", "keyword argument repeated: `end`"),
        ("for i in range(3):\n    def g():\n        break", "`break` outside of a loop"),
        ("while False:\n    pass\nelse:\n    continue", "`continue` outside of a loop"),
        ("class A:\n    return 1", "`return` outside of a function"),
        ("*a = [1]", "a starred target must be in a list or tuple"),
        ("(*a, *b) = [1]", "two starred targets in an assignment"),
        ("x = *[1]", "a starred expression must be in a list or tuple"),
    ] {
        // The evaluator may continue and report the same error again.
        let said = run(&format!("{source}\ndef k():\n    pass\n"));
        assert!(said.starts_with(&format!("syntax-error: {message}")), "{said}\nin\n{source}");
    }
    for source in [
        "def f():\n    y = 1\n    def g():\n        def h():\n            nonlocal y\n            y = 2\n        return h\n    g()()\n    print(y)",
        "def f():\n    def g():\n        nonlocal v\n        v = 2\n    v = 1\n    g()\n    print(v)",
        "def f():\n    global x\n    global x\n    x = 2\n    print(x)",
        "def f():\n    [x for x in range(3)]\n    global x\n    x = 2\n    print(x)",
    ] {
        check(&format!("{source}\nf()"), "2");
    }
}

#[test]
fn sums_and_extrema_combine_each_item_as_it_is_drawn() {
    let class = "class Term:\n    def __init__(self, n):\n        self.n = n\n    def __add__(self, o):\n        print('+', o.n)\n        return Term(self.n + o.n)\n    \
                 def __radd__(self, o):\n        return self\n    def __mul__(self, o):\n        print('*', o.n)\n        return self\n    \
                 def __gt__(self, o):\n        print('>', self.n, o.n)\n        return self.n > o.n\n    \
                 def __lt__(self, o):\n        print('<', self.n, o.n)\n        return self.n < o.n\n\
                 def made(n):\n    print('made', n)\n    return Term(n)\n";
    for (call, expected) in [
        ("sum((made(i) for i in (1, 2)), Term(0)).n", "made 1\n+ 1\nmade 2\n+ 2\n3"),
        ("math.prod((made(i) for i in (1, 2)), start=Term(0)).n", "made 1\n* 1\nmade 2\n* 2\n0"),
        ("max(made(i) for i in (1, 2, 3)).n", "made 1\nmade 2\n> 2 1\nmade 3\n> 3 2\n3"),
        ("min((3, 1, 2), key=made)", "made 3\nmade 1\n< 1 3\nmade 2\n< 2 1\n1"),
        ("max(map(made, (2, 1)), key=lambda t: t).n, min(4, 2.5), max('ab', 'b')", "made 2\nmade 1\n> 1 2\n2 2.5 b"),
    ] {
        check(&format!("import math\n{class}print({call})"), expected);
    }
    check_kernel("max([])", "value-error: max() of an empty sequence");
    check_kernel("print(max([], default=3), sum([]), math.prod([2, 3], start=4), math.prod(iter([])))", "3 0 24 1");
}

#[test]
fn a_dict_comprehension_evaluates_the_key_first() {
    check("it = iter(('a', 1, 'b', 2))\nprint({next(it): next(it) for _ in range(2)})", "{'a': 1, 'b': 2}");
}

#[test]
fn decorators_are_evaluated_from_top_to_bottom_and_applied_from_bottom_to_top() {
    let make = "def at(n):\n    print('made', n)\n    def apply(f):\n        print('applied', n)\n        return f\n    return apply\n\
                def default():\n    print('default')\n    return 1\n";
    check(
        &format!("{make}@at(1)\n@at(2)\ndef f(x=default()):\n    pass"),
        "made 1\nmade 2\ndefault\napplied 2\napplied 1",
    );
    check(
        &format!("{make}def base():\n    print('base')\n    return object\n@at(1)\n@at(2)\nclass C(base()):\n    pass"),
        "made 1\nmade 2\nbase\napplied 2\napplied 1",
    );
}

#[test]
fn divmod_asks_the_class() {
    let class = "class Extent:\n    def __init__(self, n):\n        self.n = n\n    def __divmod__(self, o):\n        return NotImplemented if o == 0 else (self.n // o, 'rest')\n    \
                 def __rdivmod__(self, o):\n        return o // self.n, 'reflected'\n";
    check(&format!("{class}print(divmod(Extent(16), 5), divmod(20, Extent(3)))"), "(3, 'rest') (6, 'reflected')");
    check(&format!("{class}divmod(Extent(1), 0)"), "type-error: `divmod()` does not work between an Extent and an int");
    check_expr("divmod(-7, 2), divmod(7.5, 2), divmod(True, 2)", "((-4, 1), (3.0, 1.5), (0, 1))");
}

/// A kernel with a tensor `t`, of which `u` is another one.
fn with_tensors(body: &str) -> String {
    let body: String = body.lines().map(|l| format!("    {l}\n")).collect();
    format!(
        "import functools\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n@nki.jit\ndef k():\n    \
         t = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)\n    u = nl.ndarray((4, 2), nl.bfloat16, buffer=nl.sbuf)\n{body}"
    )
}

#[track_caller]
fn check_tensors(body: &str, expected: &str) {
    assert_eq!(run(&with_tensors(body)), expected, "in\n{body}");
}

#[test]
fn device_values_have_the_classes_of_the_api() {
    check_tensors(
        "print(type(t) is type(u), type(t) == type(t[:, 1:]), type(t) is nl.NkiTensor, type(t) is nl.tensor, type(t).__name__)",
        "True True True True NkiTensor",
    );
    check_tensors(
        "r = nisa.register_alloc(1)\nprint(type(r) is nisa.VirtualRegister, type(r) is type(t), type(r).__qualname__, type(type(r)) is type)",
        "True False VirtualRegister True",
    );
    check_tensors(
        "i = nisa.memset(t, 0.0)\ng = nl.tiles(t, tile_shape=(4, 4))\n\
         print([isinstance(v, nl.NKIObject) for v in (t, nisa.register_alloc(1), i, g, 3, nl.NkiTensor)], isinstance(g, nl.NkiGrid))",
        "[True, True, True, False, False, False] True",
    );
    check_tensors(
        "class Own(nl.NKIObject):\n    pass\n\
         print(issubclass(nl.NkiTileGrid, nl.NkiGrid), issubclass(nl.NkiBlockGrid, (int, nl.NkiGrid)), issubclass(nl.NkiGrid, nl.NkiTileGrid))\n\
         print(issubclass(nl.NkiTensor, nl.NKIObject), issubclass(Own, nl.NKIObject), issubclass(nl.NkiTileGrid, nl.NKIObject))",
        "True True False\nTrue True False",
    );
    check_tensors(
        "print(nl.NkiTensor, {type(t): 1}[type(u)], type(nl.float32) is type(nl.int8), type(nisa.engine.vector) is nisa.engine)",
        "<class 'nki.language.NkiTensor'> 1 True True",
    );
}

#[test]
fn functions_dispatch_by_the_classes_of_the_api() {
    let functions = "@functools.singledispatch\ndef kind(v):\n    return type(v).__name__\n@kind.register(float)\ndef _(v):\n    return 'a float'\n\
                     @kind.register(nl.NkiTensor)\ndef _(v):\n    return 'a tensor'\n@kind.register(nl.NkiGrid)\ndef _(v):\n    return 'a grid'\n";
    check_tensors(
        &format!(
            "{functions}print(kind(t), kind(1.5), kind(nl.tiles(t, tile_shape=(4, 4))), kind(nisa.register_alloc(1)))"
        ),
        "a tensor a float a grid VirtualRegister",
    );
}

#[test]
fn tensors_and_element_types_have_no_items_for_python() {
    for expr in [
        "iter(t)",
        "list(t)",
        "[row for row in t]",
        "iter(nl.int8)",
        "len(nl.int8)",
        "nl.int8[0]",
        "3 in nl.int8",
        "len(nl.add)",
    ] {
        check_tensors(&format!("try:\n    {expr}\nexcept TypeError:\n    print('refused')"), "refused");
    }
}

#[test]
fn element_types_are_hashed_by_their_names() {
    check_tensors(
        "dt = u.dtype\nprint(dt in {'bfloat16'}, {'bfloat16': 1}[dt], 'bfloat16' in {dt}, {dt: 2}['bfloat16'], hash(dt) == hash('bfloat16'))",
        "True 1 True 2 True",
    );
    check_tensors("print(f'{u.dtype:>10}|', {nl.float32, 'float32'})", "  bfloat16| {float32}");
}

#[test]
fn there_is_no_float64() {
    let help = |source: &str| {
        let files = [("k.py", source)];
        let compiled = crate::compile(Path::new("k.py"), &Files(&files), &[], &Options::default());
        compiled.diagnostics.iter().flat_map(|d| d.help.clone()).collect::<Vec<_>>().join("; ")
    };
    for dtype in ["nl.float64", "'float64'", "float"] {
        let text = help(&with_tensors(&format!("nl.ndarray((4, 4), {dtype}, buffer=nl.sbuf)")));
        assert!(text.contains("float32 is its widest type"), "{dtype}: {text}");
    }
    assert!(help("import nki\nfrom nki.language import float64\n").contains("float32 is its widest type"));
    let text = help(&with_tensors("nisa.activation(dst=t, op=nl.exp, src=t)"));
    assert!(text.contains("did you mean `data`?"), "{text}");
    check_tensors(
        "nisa.activation(t, nl.exp, (t, u))",
        "operand-kind: nisa.activation: `data` takes a tensor, got a sequence of 2 values",
    );
    check_tensors(
        "nisa.activation(t, nl.exp, [t])",
        "operand-kind: nisa.activation: `data` takes a tensor, got a sequence of 1 values",
    );
}

#[test]
fn items_that_the_body_of_a_device_loop_changes_are_reported() {
    let state = "class State:\n    c = 0\n    def step(self, i):\n        self.c += 1\n\
                 s, d, obj, new = [0, t], {'c': 0, 'prev': t, 'none': None}, State(), {}\n";
    let refused = |item: &str| {
        format!("loop-carried: the body of this loop changes `{item}`, of an object that was made outside of it")
    };
    for (body, item) in [
        ("s[0] += 1", "s[0]"),
        ("s[-2] = s[-2] * 2 + 1", "s[-2]"),
        ("d['c'] += 1", "d['c']"),
        ("obj.c = obj.c + 1", "obj.c"),
        ("nisa.tensor_copy(u, d['prev'][:, 0:2]); d['prev'] = u", "d['prev']"),
        ("old = d.get('none'); d['none'] = u", "d['none']"),
        ("s[1], s[0] = u, s[1]", "s[1]"),
    ] {
        check_tensors(&format!("{state}obj.c = 0\ndef body(i):\n    {body}\nnl.fori_loop(0, 4, body)"), &refused(item));
        let looped =
            format!("loop-carried: `{item}` is assigned in a loop that reads its value from the previous iteration");
        check_tensors(&format!("{state}obj.c = 0\nfor i in nl.dynamic_range(4):\n    {body}"), &looped);
    }
    check_tensors(&format!("{state}obj.c = 0\nnl.fori_loop(0, 4, obj.step)"), &refused("self.c"));
    // Neither items of objects that the body makes, nor items that it writes before it reads them.
    for body in [
        "m = [0]; m[0] += 1",
        "d['c'] = 5; v = u.shape[d['c'] - 4]",
        "new['k'] = new.get('k', u)",
        "d['none'] = u; nisa.memset(d['none'], 0.0)",
        "s[0] += 0",
        "obj.i = i; v = obj.i",
    ] {
        check_tensors(&format!("{state}def body(i):\n    {body}\nnl.fori_loop(0, 4, body)"), "");
        check_tensors(&format!("{state}for i in nl.dynamic_range(4):\n    {body}"), "");
    }
}

#[test]
fn device_loops_whose_bounds_are_in_the_wrong_order_are_reported() {
    check_tensors("nl.fori_loop(4, 0, lambda i: None)", "empty-loop: nl.fori_loop from 4 to 0 never runs");
    check_tensors("for i in nl.dynamic_range(4, 0):\n    pass", "empty-loop: nl.dynamic_range from 4 to 0 never runs");
    check_tensors("for i in nl.dynamic_range(0):\n    pass\nnl.fori_loop(2, 2, lambda i: None)", "");
}
