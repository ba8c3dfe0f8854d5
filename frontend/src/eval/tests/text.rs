//! String formatting: format specifications, `repr`, and functions that only write messages.

use super::*;

#[test]
fn format_specifications_are_pythons() {
    for (expr, expected) in [
        // Separators are only between digits, and padding zeros count as digits.
        ("f'{1.5:,.0%} {2.0:,.0e} {1234567.5:,.2f} {1e20:,}'", "'150% 2e+00 1,234,567.50 1e+20'"),
        ("f'{1234:010,} {-0.5:012,.3f} {1:05,} {12:=+012_}'", "'00,001,234 -000,000.500 0,001 +000_000_012'"),
        ("f'{65535:_x} {255:#010_b} {0xabcdef:012_X}'", "'ffff 0b1111_1111 00_00AB_CDEF'"),
        ("f'{1234:*>10,} {1234:<08,}|'", "'*****1,234 1,234000|'"),
        // Without a presentation type, a float keeps a digit after the point.
        ("f'{2.0:.0} {25.0:.2} {25.0:.3} {2.5:.1}'", "'2e+00 2.5e+01 25.0 2e+00'"),
        // With a format specification, a bool is formatted as an int.
        ("f'{True:5}|{False:d}|{True}|{True:<3}|'", "'    1|0|True|1  |'"),
        ("'{:{}}|{:>{w}}'.format(3, 5, 'a', w=3)", "'    3|  a'"),
        ("'%c%c%5c' % ('x', 65, 'y')", "'xA    y'"),
    ] {
        check_expr(expr, expected);
    }
    check("f'{255:,x}'", "value-error: `,x` does not format an int");
    check("f'{True:.2}'", "value-error: `.2` does not format an int");
}

#[test]
fn an_exception_of_a_kernels_class_is_shown_as_python_shows_it() {
    let class = "class Bad(ValueError):\n    def __init__(self, a):\n        super().__init__(f'bad {a}')\n        self.a = a\n";
    check(
        &format!("{class}try:\n    raise Bad(3)\nexcept Bad as e:\n    print(repr(e), str(e), e.a)"),
        "Bad('bad 3') bad 3 3",
    );
}

#[test]
fn a_whole_float_is_in_a_range() {
    check_expr(
        "2.0 in range(3), 2.5 in range(3), 3.0 in range(3), True in range(2), 1e300 in range(3), -2.0 in range(0, -5, -2)",
        "(True, False, False, True, False, True)",
    );
}

#[test]
fn slices_give_the_indices_of_a_length() {
    check_expr(
        "slice(1, 5, 2).indices(3), slice(None).indices(4), slice(None, None, -1).indices(4), slice(-3, -1).indices(10), slice(9).indices(0)",
        "((1, 3, 2), (0, 4, 1), (3, -1, -1), (7, 9, 1), (0, 0, 1))",
    );
    check("class V:\n    def __getitem__(self, key):\n        return key.indices(8)\nprint(V()[2:100:3])", "(2, 8, 3)");
    check("slice(1).indices(-1)", "value-error: indices() needs a length that is not negative, got -1");
    check("slice(1).indexes(1)", "no-attribute: a slice has no method `indexes`");
}

#[test]
fn namespaces_are_pythons() {
    let of = "from types import SimpleNamespace\n";
    check(
        &format!(
            "{of}s = SimpleNamespace(tile=64, d={{'a': 1}})\ns.n = s.tile * 2\nprint(s, s.n, s == SimpleNamespace(**vars(s)), s == 1)"
        ),
        "namespace(tile=64, d={'a': 1}, n=128) 128 True False",
    );
    let body = "s = types.SimpleNamespace(x=2)\nprint(s.x, hasattr(s, 'y'))";
    check(&format!("import types\n{body}"), "2 False");
    check(&format!("{of}SimpleNamespace(x=1).y"), "no-attribute: a SimpleNamespace has no attribute `y`");
}

#[test]
fn messages_of_a_kernel_are_skipped() {
    let file = "import logging, warnings\nimport nki\nlogger = logging.getLogger(__name__)\n@nki.jit\ndef k():\n    ";
    let run = |body: &str| run_files(&[("k.py", &format!("{file}{body}\n"))], &[], &Options::default());
    assert_eq!(run("logger.info('shape %s', (1, 2)); logging.warning('x'); warnings.warn('y'); print(1)"), "1");
    assert!(
        run("print(logger.name)").starts_with("host-value: `logging.getLogger(...)`"),
        "{}",
        run("print(logger.name)")
    );
    assert!(run("warnings.simplefilter('x')").starts_with("host-value"), "{}", run("warnings.simplefilter('x')"));
}
