//! Where Python's semantics are easily missed.

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
    // Set before the import, it is there; and a module may try.
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
        format!(
            "dynamic-loop: nl.dynamic_range: {what} is {n}; a loop counts in a register of 32 bits, up to 2147483647"
        )
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
