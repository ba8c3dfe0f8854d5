//! The order of sets; the expected lists are from CPython 3.11. python/tests/test_expressions.py
//! compares random expressions.

use super::*;

#[test]
fn sets_of_numbers_are_in_the_order_of_their_table() {
    check("print(list({64, 32, 8, 1}), [x for x in {64, 32, 8, 1}])", "[64, 8, 32, 1] [64, 8, 32, 1]");
    check("print(list(set([64, 32, 8, 1])), {9, 8, 16}, {2.0, True, -1})", "[64, 8, 32, 1] {8, 9, 16} {True, 2.0, -1}");
    check("print({(1, 0), (0, 1)}, frozenset([5, 40, 33]))", "{(1, 0), (0, 1)} frozenset({40, 33, 5})");
    check(
        "a = set(range(9))\na.discard(0)\na.add(64)\na.add(0)\nprint(a, a.pop(), a)",
        "{1, 2, 3, 4, 5, 6, 7, 8, 0} 64 {1, 2, 3, 4, 5, 6, 7, 8, 0}",
    );
}

#[test]
fn operations_of_sets_make_the_tables_of_cpython() {
    check(
        "a, b = set(range(0, 90, 7)), {3, 21, 700, 56}\nprint(a | b, b | a)",
        "{0, 700, 35, 3, 70, 7, 42, 77, 14, 49, 84, 21, 56, 28, 63} {0, 3, 70, 7, 77, 14, 84, 21, 28, 35, 42, 49, 56, 700, 63}",
    );
    check(
        "a, b = set(range(0, 90, 7)), {3, 21, 700, 56}\nprint(a & b, a - b, b - a, a ^ b)",
        "{56, 21} {0, 35, 70, 7, 42, 77, 14, 49, 84, 28, 63} {3, 700} {0, 3, 35, 70, 7, 42, 77, 14, 28, 49, 84, 700, 63}",
    );
    check(
        "a = set(range(0, 90, 7))\na -= set(range(0, 60, 7))\nprint(a, a.copy())",
        "{70, 77, 84, 63} {84, 77, 70, 63}",
    );
    check(
        "print({1: 0, 70: 0, 8: 0}.keys() | {16}, {*range(20, 0, -3), 64})",
        "{8, 1, 70, 16} {64, 2, 5, 8, 11, 14, 17, 20}",
    );
}

#[test]
fn other_sets_keep_the_order_of_insertion() {
    check("print({'b', 'a'}, list({'z': 1}.keys() | {'y'}), {3, 'x', 1})", "{'b', 'a'} ['z', 'y'] {3, 'x', 1}");
}
