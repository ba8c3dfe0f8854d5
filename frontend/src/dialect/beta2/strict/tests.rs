//! Findings of `--strict`: the lists of constructs that the official compiler's reader rejects.

use crate::Options;
use crate::eval::tests::run_files;

#[test]
fn strict_reports_what_the_compiler_refuses() {
    let source = "import nki\n@nki.jit\ndef k():\n    a = [x for x in range(3)]\n    b = lambda: 0\n    print(a is None, f'{1:d}')\n    for i in range(2):\n        c = [y for y in a]\n";
    let options = Options { strict: true, ..Options::default() };
    let out = run_files(&[("k.py", source)], &[], &options);
    let found: Vec<&str> = out.lines().filter_map(|l| l.strip_prefix("strict-language: ")).collect();
    let what = |w: &str| format!("{w} is not accepted by the NKI compiler");
    assert_eq!(
        found,
        [
            what("a comprehension"),
            what("`lambda`"),
            what("`is`"),
            what("a format specification"),
            what("a comprehension")
        ]
    );
}

#[test]
fn strict_reports_the_target_of_a_decorator() {
    let source = "import nki\n@nki.jit(platform_target='trn2')\ndef k():\n    pass\n";
    for strict in [true, false] {
        let out = run_files(&[("k.py", source)], &[], &Options { strict, ..Options::default() });
        assert_eq!(
            out.contains("strict-language: `platform_target=` of nki.jit is an error since NKI 0.3"),
            strict,
            "{out}"
        );
    }
}

#[test]
fn strict_names_each_construct_that_the_compiler_lacks() {
    let rules: &[(&str, &str)] = &[
        ("x = {1, 2}", "a set"),
        ("x = {**{'a': 1}}", "`**` in a dict"),
        ("x = [*range(3)]", "`*` in front of a value or target"),
        ("a, *b = [1, 2, 3]", "`*` in front of a value or target"),
        ("x = max(*[1, 2])", "`*` in a call"),
        ("x = dict(**{'a': 1})", "`**` in a call"),
        ("x = (y := 3)", "`:=`"),
        ("x = sum(y for y in range(3))", "a comprehension"),
        ("x = {y: 1 for y in 'ab'}", "a comprehension"),
        ("for i, j in [(1, 2)]:\n    pass", "a `for` with several variables"),
        ("x = sorted([2, 1])", "the built-in `sorted`"),
        ("x = any([1])", "the built-in `any`"),
        ("x = [2, 1]\nx.sort()", "the method `list.sort`"),
        ("x = [2, 1]\nx.insert(0, 1)", "the method `list.insert`"),
        ("x = {'a': 1}\nx.update({'b': 2})", "the method `dict.update`"),
        ("x = WithKeyword()", "a keyword in a class statement"),
        ("with nki.language.no_reorder() as c:\n    pass", "`as` of a `with`"),
        ("def f(*a): return a\nf(1)", "`*args`"),
        ("def f(**a): return a\nf(b=1)", "`**kwargs`"),
        ("def f(*, a=1): return a\nf()", "a keyword-only parameter"),
        ("def f(a, /): return a\nf(1)", "a positional-only parameter"),
        ("try:\n    x = 1\nexcept ValueError:\n    x = 2", "`try`"),
        ("if 1 > 2:\n    raise ValueError('never run')", "`raise`"),
        ("for i in range(2):\n    pass\nelse:\n    pass", "`else` of a loop"),
        ("while False:\n    pass\nelse:\n    pass", "`else` of a loop"),
        ("import math", "an import inside a function"),
        ("from math import pi", "an import inside a function"),
        ("x = 1\ndel x", "`del`"),
        ("global shared\nshared = 1", "`global`"),
        ("x = 1\ndef f():\n    nonlocal x\n    x = 2\nf()", "`nonlocal`"),
        ("class Local:\n    pass", "a class inside a function"),
        ("x = Child()", "the base class `Base`"),
        ("with Context() as c:\n    pass", "this `with`"),
        ("helper()", "the decorator `cache`"),
        ("sub()", "a call of a decorated kernel"),
        ("x = Plain()", "the class `Plain`, which derives from nothing,"),
        ("x = np.zeros((2, 2))", "a call of `np.zeros`"),
        ("x = math.exp(1.0)", "a call of `math.exp`"),
        ("x = set([1])", "a set"),
        ("f = lambda x: x", "`lambda`"),
        ("x = [y for y in range(3)]", "a comprehension"),
        ("x = {y for y in range(3)}", "a comprehension"),
        ("x = sum(y for y in range(3))", "a comprehension"),
        ("def f():\n    yield 1\nfor i in f():\n    pass", "`yield`"),
        ("match 1:\n    case 1:\n        pass", "`match`"),
        ("r = nisa.register_alloc(1)\nif r:\n    pass", "`if` on a register"),
        ("r = nisa.register_alloc(0)\nwhile r:\n    pass", "`while` on a register"),
        ("for i in nl.dynamic_range(3):\n    pass", "nl.dynamic_range"),
        ("def f(i):\n    if i:\n        pass\nnl.fori_loop(0, 3, f)", "`if` on a loop variable"),
        ("x = 1 is None", "`is`"),
        ("x = {1: 2}", "a dict key of type int"),
        ("x = {}\nx[(1, 2)] = 2", "a dict key of type tuple"),
        ("x = {}\nx.setdefault(None, 2)", "a dict key of type None"),
        ("x = f'{1:d}'", "a format specification"),
        ("x = Matrix() @ 1", "`@`"),
        ("x = Matrix()\nx @= 1", "`@=`"),
        ("t = nl.ndarray((128, 64), nl.float32)\nu = t[0:64][:, 0:8]", "an index of an index"),
        ("t = nl.ndarray((128, 64), nl.float32)\nu = t[0:64].ap([[64, 64], [1, 8]])", "`ap` of a view of `t`"),
        ("t = nl.ndarray((128, 64), nl.float32)\nu = t[:, None, :]", "`None` in an index"),
        ("t = nl.ndarray((1,), nl.float32)", "a tensor of one dimension on chip"),
        ("t = nl.ndarray((4, 4), nl.float32, buffer='sbuf')", "a buffer given as a string"),
        ("t = nl.ndarray((4, 4), nl.float32, address=(8, 0))", "an address that starts at partition 8"),
    ];
    let head = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\nimport math\nimport numpy as np\nfrom functools import cache\nclass Base(nki.NKIObject):\n    a: int = 1\nclass Child(Base):\n    b: int = 2\n\
                class WithKeyword(nki.NKIObject, kind=1):\n    pass\n\
                class Context(nki.NKIObject):\n    def __enter__(self):\n        return self\n    def __exit__(self, a, b, c):\n        pass\n\
                @cache\ndef helper():\n    return 1\n\
                class Plain:\n    pass\nclass Matrix(nki.NKIObject):\n    def __matmul__(self, other):\n        return self\n\
                @nki.jit\ndef sub():\n    pass\n@nki.jit\ndef k():\n";
    let kernel = Some("k".to_owned());
    let options = Options { strict: true, kernel: kernel.clone(), ..Options::default() };
    let loose = Options { kernel, ..Options::default() };
    for (code, what) in rules {
        let body: String = code.lines().map(|l| format!("    {l}\n")).collect();
        let source = format!("{head}{body}");
        let out = run_files(&[("k.py", &source)], &[], &options);
        // A decorator is outside its function's text, before the head.
        if what.starts_with("the decorator") {
            assert!(out.contains(what), "{code}: {out}");
            continue;
        }
        assert!(out.contains(&format!("strict-language: {what} is not accepted by the NKI compiler")), "{code}: {out}");
        let out = run_files(&[("k.py", &source)], &[], &loose);
        assert!(!out.contains("strict"), "{code}: {out}");
    }
    // Rejected by the simulator too, so there is no finding that the simulator accepts them.
    let refused: &[(&str, &str)] = &[
        ("async def f():\n    pass\nf()", "unsupported-syntax"),
        ("type T = int", "unsupported-syntax"),
        ("t = nl.ndarray((128, 64), nl.float32)\nu = t[[0, 1]]", "bad-index"),
    ];
    for (code, slug) in refused {
        let body: String = code.lines().map(|l| format!("    {l}\n")).collect();
        let out = run_files(&[("k.py", &format!("{head}{body}"))], &[], &options);
        assert!(out.starts_with(slug) && out.lines().count() == 1, "{code}: {out}");
    }
    // Constructs that the compiler supports are not reported.
    let fine = "    x = [1, 2]\n    y = {'a': x, 'b': (1, len(x))}\n    for pair in enumerate(zip(x, x)):\n        i, v = pair\n        if i in x and v != 3:\n            x.append(sum(x))\n    \
                c = Base(a=3)\n    print(f'{c.a} {y}', min(x), isinstance(c, Base))\n";
    let out = run_files(&[("k.py", &format!("{head}{fine}"))], &[], &options);
    assert!(!out.contains("strict"), "{out}");
}

#[test]
fn strict_reports_numbers_of_another_kind_than_the_tile() {
    let copy = |dtype: &str, arguments: &str| {
        let source = format!(
            "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n@nki.jit\ndef k():\n    \
             t = nl.ndarray((128, 64), nl.{dtype}, nl.sbuf)\n    u = nl.ndarray((128, 64), nl.{dtype}, nl.sbuf)\n    p = nl.ndarray((128, 64), nl.uint8, nl.sbuf)\n    \
             nisa.memset(t, 0)\n    nisa.memset(p, 1)\n    nisa.tensor_copy_predicated(t, {arguments})\n"
        );
        run_files(&[("k.py", &source)], &[], &Options { strict: true, ..Options::default() })
    };
    for (dtype, arguments, what) in [
        ("float32", "3, p", "the integer 3 as `src` for a `dst` of float32"),
        ("int32", "3.0, p", "the float 3.0 as `src` for a `dst` of int32"),
        ("float32", "u, p, reverse_pred=True", "`reverse_pred=True` with a tile as `src`"),
    ] {
        let out = copy(dtype, arguments);
        assert!(
            out.contains(&format!("strict-language: nisa.tensor_copy_predicated: {what} is not accepted")),
            "{out}"
        );
    }
    for (dtype, arguments) in [
        ("float32", "3.0, p"),
        ("int32", "3, p"),
        ("bfloat16", "float('-inf'), p"),
        ("float32", "u, p"),
        ("float32", "3.0, p, reverse_pred=True"),
    ] {
        let out = copy(dtype, arguments);
        assert!(!out.contains("strict"), "{dtype} {arguments}: {out}");
    }
    let out = copy("float32", "t, reverse_pred=True, predicate=p if True else");
    assert!(!out.contains("strict"), "{out}");
}
