//! NumPy scalars and printed arrays; the expected texts are from NumPy 2.4.
//! python/tests/test_expressions.py compares random expressions.

use super::*;

#[track_caller]
fn check_numpy(expr: &str, expected: &str) {
    let code = format!("import numpy as np\nimport ml_dtypes\nprint(repr(({expr})))");
    check(&code, expected);
    check_kernel(&code, expected);
}

#[test]
fn scalars_compute_in_their_type() {
    check_numpy(
        "np.float32(1) / 3, np.float32(0.1) * 3, 2 - np.float16(0.1)",
        "(np.float32(0.33333334), np.float32(0.3), np.float16(1.9))",
    );
    check_numpy("np.int8(5) + 2, 5 // np.int16(2), np.int32(3) / 2", "(np.int8(7), np.int16(2), np.float64(1.5))");
    check_numpy("np.uint8(200) + np.int8(100), np.int64(3) + np.float32(1)", "(np.int16(300), np.float64(4.0))");
    check_numpy("np.bool_(True) + 1, ~np.bool_(True), -np.float32(2)", "(np.int64(2), np.False_, np.float32(-2.0))");
    check_numpy("ml_dtypes.bfloat16(0.1) * 3, ml_dtypes.bfloat16(1) + 1.5", "(0.300781, np.float32(2.5))");
    check_numpy(
        "np.array([1, 2]) * np.float32(0.5), np.arange(2, dtype=np.int32) + np.float32(1)",
        "(array([0.5, 1. ]), array([1., 2.]))",
    );
    check_numpy("np.float32(0.1) == 0.1, np.int8(1) < 300, np.float32(1) in [1]", "(np.True_, np.True_, True)");
    check_numpy(
        "np.array([1.5, 2], dtype=np.float32)[0], np.arange(3).sum(), np.sqrt(2)",
        "(np.float32(1.5), np.int64(3), np.float64(1.4142135623730951))",
    );
    check_numpy(
        "sum([np.int8(1), 2]), max(np.float32(1), 2), round(np.float32(2.567), 2), abs(np.int8(-3))",
        "(np.int8(3), 2, np.float32(2.57), np.int8(3))",
    );
}

#[test]
fn scalars_count_as_numbers() {
    check_numpy(
        "[10, 20][np.int8(1)], list(range(np.int64(2))), np.zeros(np.int32(1)), [1] * np.int64(2)",
        "(20, [0, 1], array([0.]), [1, 1])",
    );
    check_numpy(
        "int(np.float32(2.5)), float(np.float32(0.1)), bool(np.float32(0)), np.float32(2).item()",
        "(2, 0.10000000149011612, False, 2.0)",
    );
    check_numpy(
        "f'{np.float32(0.1)} {np.float32(0.1):.2f}', '%d %s' % (np.int8(3), np.float32(0.1)), hash(np.int8(3))",
        "('0.10000000149011612 0.10', '3 0.1', 3)",
    );
    check_numpy("{1: 'a'}[np.int64(1)], np.float32(2) in {2}, [np.float32(2)].index(2)", "('a', True, 0)");
    check_numpy("np.float32(1) is True, np.array([1]).any() is True, np.float32(1) == None", "(False, False, False)");
}

#[test]
fn scalars_have_types() {
    check_numpy(
        "type(np.float32(1)), type(np.float32(1)) == np.float32, np.float32(1).dtype, str(np.float32(1).dtype)",
        "(<class 'numpy.float32'>, True, dtype('float32'), 'float32')",
    );
    check_numpy(
        "isinstance(np.float32(1), float), isinstance(np.float64(1), float), isinstance(np.int64(1), int)",
        "(False, True, False)",
    );
    check_numpy(
        "isinstance(np.int8(1), np.integer), isinstance(1, np.integer), isinstance(np.zeros(1), np.ndarray)",
        "(True, False, True)",
    );
    check_numpy(
        "issubclass(np.float32, np.floating), issubclass(np.float64, float), np.issubdtype(np.int8, np.unsignedinteger)",
        "(True, True, False)",
    );
    check_numpy(
        "np.zeros(1).dtype, np.zeros(1).dtype == float, np.float64 == float, np.arange(1).dtype == np.int64",
        "(dtype('float64'), True, False, True)",
    );
}

#[test]
fn what_has_no_result_is_refused() {
    check_numpy_error("np.int8(1) + 300", "OverflowError 300 is out of bounds for int8");
    check_numpy_error("np.int32(2) ** -1", "ValueError integers to negative integer powers are not allowed");
    check_numpy_error(
        "[1] * np.float32(2)",
        "TypeError can't multiply a sequence by a float32, which is not an integer",
    );
    check_numpy_error(
        "np.uint64(1) - np.uint64(2)",
        "OverflowError a number of uint64 above 2^63 - 1, which the evaluator does not hold",
    );
    check_numpy_error(
        "np.float32(1e20).astype(np.int32)",
        "OverflowError 100000002004087730000 is out of bounds for int32",
    );
    check_numpy_error(
        "np.arange(3)[True]",
        "TypeError a bool as an index of an array, which NumPy takes for a mask of all elements",
    );
}

#[track_caller]
fn check_numpy_error(expr: &str, expected: &str) {
    check(
        &format!("import numpy as np\ntry:\n    print({expr})\nexcept Exception as e:\n    print(type(e).__name__, e)"),
        expected,
    );
}

#[test]
fn overflows_are_reported() {
    check_kernel(
        "import numpy as np\nx = np.int8(100) + np.int8(100)\nprint(x)",
        "-56\nscalar-overflow: `+` of scalars of int8 gives -56",
    );
    check_kernel(
        "import numpy as np\nprint(np.float32(1) / 0)",
        "inf\nscalar-overflow: `/` of scalars of float32 gives inf",
    );
}

#[test]
fn arrays_are_printed_as_numpy_prints_them() {
    let check = |expr: &str, expected: &str| check(&format!("import numpy as np\nprint({expr})"), expected);
    check("np.array([0.5, 1, 1.5])", "[0.5 1.  1.5]");
    check("np.array([[1, -20], [3, 4]])", "[[  1 -20]\n [  3   4]]");
    check("np.array([1e-5, 1, 1e9])", "[1.e-05 1.e+00 1.e+09]");
    check("np.array([np.nan, 1, -np.inf])", "[ nan   1. -inf]");
    check("np.array([True, False]), np.array(2.5), np.zeros((0, 3))", "[ True False] 2.5 []");
    check("np.array([1 / 3, 2], dtype=np.float32), np.array([0.1], dtype=np.float16)", "[0.33333334 2.        ] [0.1]");
    check("np.arange(2000)", "[   0    1    2 ... 1997 1998 1999]");
    check("[np.array(2.5), np.arange(2, dtype=np.int8)]", "[array(2.5), array([0, 1], dtype=int8)]");
    check("repr(np.zeros((0, 3)))", "array([], shape=(0, 3), dtype=float64)");
    check(
        "np.arange(40)",
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]",
    );
}
