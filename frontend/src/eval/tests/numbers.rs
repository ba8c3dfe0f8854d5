//! NumPy numbers. tests/python.rs compares Python numbers with CPython.

use super::*;

#[track_caller]
fn check_numpy(expr: &str, expected: &str) {
    check(&format!("import numpy as np\nprint(repr(({expr})))"), expected);
}

#[test]
fn arrays_divide_as_numpy() {
    check_numpy("(np.array([7.0, -7.0, 1.0, -1.0]) // 0.1).tolist()", "[69.0, -70.0, 9.0, -10.0]");
    check_numpy("(np.array([1.0, -0.0, -5.0]) % 0.5).tolist()", "[0.0, 0.0, 0.0]");
    check_numpy("(np.array([-5.0, 5.0]) // float('inf')).tolist()", "[-1.0, 0.0]");
    check_numpy("(np.array([-5.0, 5.0]) % float('inf')).tolist()", "[inf, 5.0]");
    check_numpy("(np.array([1.0, -1.0]) // 0.0).tolist()", "[inf, -inf]");
    // In float32, 10 times 0.1 is slightly more than 1.
    check_numpy("(np.array([1.0], dtype=np.float32) // np.array([0.1], dtype=np.float32)).tolist()", "[9.0]");
}

#[test]
fn round_of_numpy_scales() {
    check_numpy(
        "np.round(2.675, 2), np.round(2.5), np.round(-2.5), np.round(1234.5, -2)",
        "(np.float64(2.68), np.float64(2.0), np.float64(-2.0), np.float64(1200.0))",
    );
    check_numpy(
        "np.round(1234, -2), np.round(1250, -2), np.round(7), np.round(7, 2)",
        "(np.int64(1200), np.int64(1200), np.int64(7), np.int64(7))",
    );
    check_numpy("np.round(np.array([0.5, 1.5, 2.675]), 2).tolist()", "[0.5, 1.5, 2.68]");
    check_numpy("np.round(np.array([15, 25, 31]), decimals=-1).tolist()", "[20, 20, 30]");
}

#[test]
fn numbers_of_numpy_have_the_range_and_precision_of_their_type() {
    check_numpy(
        "np.float16(2049), np.float16(70000), np.float16(1e-9)",
        "(np.float16(2.048e+03), np.float16(inf), np.float16(0.0))",
    );
    // Rounding to float32 first would create a tie.
    check_numpy("np.float16(2049 + 1e-9), np.float16(2051 - 1e-9)", "(np.float16(2.05e+03), np.float16(2.05e+03))");
    check_numpy(
        "np.float32(0.1), np.float32(3.5e38), np.float32(1e-50)",
        "(np.float32(0.1), np.float32(inf), np.float32(0.0))",
    );
    check_numpy("np.float32(2**24 + 1), np.float64(0.1)", "(np.float32(1.6777216e+07), np.float64(0.1))");
    check_numpy(
        "np.int8(-128), np.uint8(255), np.uint32(2**32 - 1), np.int32(-3.9)",
        "(np.int8(-128), np.uint8(255), np.uint32(4294967295), np.int32(-3))",
    );
    check_numpy("np.bool_(2), np.bool_(0.0)", "(np.True_, np.False_)");
    check_numpy("np.uint8(np.array([250, 300])).tolist()", "[250, 44]");
    for (call, message) in [
        ("np.uint8(256)", "256 is out of bounds for uint8"),
        ("np.uint32(-1)", "-1 is out of bounds for uint32"),
        ("np.int8(300.5)", "300.5 is out of bounds for int8"),
        ("np.int32(float('nan'))", "nan is out of bounds for int32"),
    ] {
        check(&format!("import numpy as np\ntry:\n    {call}\nexcept OverflowError as e:\n    print(e)"), message);
    }
}

#[test]
fn powers_beyond_real_floats_are_errors() {
    check_kernel(
        "(-8) ** (1 / 3)",
        "value-error: -8.0 ** 0.3333333333333333 is a complex number, which a kernel cannot use",
    );
    check_kernel("2.0 ** 1024", "float-overflow: 2.0 ** 1024.0 is too large for a float");
}

#[test]
fn reductions_round_as_numpy() {
    let x = "import numpy as np\nx = np.array([0.1 * i for i in range(1000)], dtype=np.float32)\n";
    for (expr, expected) in [
        (
            "float(np.mean(x)), float(np.sum(x)), float(np.mean(x[:100])), float(np.sum(x[:7])), float(np.sum(x[:300])), float(np.prod(x[1:60]))",
            "(49.95000076293945, 49950.0, 4.949999809265137, 2.0999999046325684, 4485.0, 1.386831573115541e+21)",
        ),
        (
            "float(np.mean(x.astype(np.float16))), float(np.sum(x.astype(np.float16)[:200])), float(np.mean(np.array([1, 2, 4])))",
            "(49.9375, 1990.0, 2.3333333333333335)",
        ),
        (
            "float(np.sum([0.1] * 1000)), float(np.mean([0.1] * 999)), float(np.sum(np.array([0.1] * 1000)))",
            "(100.00000000000001, 0.1, 100.00000000000001)",
        ),
        (
            "float(np.min(np.array([1.0, float('nan')]))), float(np.max(np.array([float('nan'), 1.0]))), float(np.minimum(np.array([1.0]), np.array([float('nan')]))[0]), int(np.max(np.array([2**62 + 1, 2**62])))",
            "(nan, nan, nan, 4611686018427387905)",
        ),
        (
            "float(np.mean(np.array([3.0, 1.0], dtype=np.float32))), float(np.mean(np.array([16777216.0, 1.0, 1.0], dtype=np.float32)))",
            "(2.0, 5592405.5)",
        ),
    ] {
        check(&format!("{x}print(({expr}))"), expected);
    }
}

#[test]
fn numpys_roundings_give_floats() {
    let check = |expr: &str, expected: &str| {
        check(&format!("import numpy as np\nprint(repr(({expr})))"), expected);
        check_kernel(&format!("import numpy as np\nprint(repr(({expr})))"), expected);
    };
    check(
        "np.ceil(2.5), np.floor(-2.5), np.trunc(2.5), np.ceil(3)",
        "(np.float64(3.0), np.float64(-3.0), np.float64(2.0), np.int64(3))",
    );
    check("np.ceil([1.5, -1.5]).tolist(), int(np.ceil(7 / 2))", "([2.0, -1.0], 4)");
    check(
        "np.argsort([3, 1, 2]).tolist(), np.argsort([[3, 1], [1, 3]], axis=0).tolist()",
        "([1, 2, 0], [[1, 0], [0, 1]])",
    );
    check("np.argsort([2, 1, 2], kind='stable').tolist(), np.array([5, 6, 7])[[2, 0]].tolist()", "([1, 0, 2], [7, 5])");
    check(
        "np.cumsum([1, 2, 3]).tolist(), np.cumsum(np.ones((2, 2)), axis=1).tolist()",
        "([1, 3, 6], [[1.0, 2.0], [1.0, 2.0]])",
    );
    check(
        "np.cumsum(np.array([100, 100], dtype=np.int8)).tolist(), np.array([1.5, 1]).cumsum().tolist()",
        "([100, 200], [1.5, 2.5])",
    );
    check_kernel(
        "import numpy as np\nnp.argsort([1, 1])",
        "value-error: np.argsort of equal elements, whose order NumPy does not define",
    );
}

#[test]
fn what_the_host_computes_is_no_empty_list() {
    let source = "import nki, torch\nSIZES = list(torch.arange(3))\n@nki.jit\ndef k():\n    print(len(SIZES))\n";
    let refused = "host-value: `SIZES` belongs to the host program and has no value in a kernel";
    assert_eq!(run(source), refused);
}

#[test]
fn ranges_of_floats_are_numpys_to_the_last_bit() {
    for (expr, expected) in [
        (
            "np.arange(5, 1, -0.7)",
            "[5.0, 4.3, 3.5999999999999996, 2.8999999999999995, 2.1999999999999993, 1.4999999999999991]",
        ),
        ("np.arange(0, 1, 0.1, dtype=np.float32)[8:]", "[0.800000011920929, 0.9000000357627869]"),
        ("np.arange(1, 3, 0.37, dtype=np.float16)[4:]", "[2.48046875, 2.8515625]"),
        ("np.arange(0, 5, 1.5, dtype=np.int32)", "[0, 1, 2, 3]"),
        ("np.arange(1e3, 1e3 + 1, 0.25)", "[1000.0, 1000.25, 1000.5, 1000.75]"),
        ("np.arange(0.5, 1)", "[0.5]"),
    ] {
        let expr = format!("import numpy as np\nprint(({expr}).tolist())");
        check(&expr, expected);
        check_kernel(&expr, expected);
    }
}

#[test]
fn operators_of_bool_and_narrow_arrays_are_numpys() {
    let of = |expr: &str| {
        format!("import numpy as np\nb = np.array([True, False])\nu = np.array([3], dtype=np.uint8)\nprint(({expr}))")
    };
    for (expr, expected) in [
        ("(u / -1).tolist(), (300 / u).tolist(), (u / 300).tolist()", "([-3.0], [100.0], [0.01])"),
        (
            "(1 - b).tolist(), (b * b).tolist(), (b + b).tolist(), (~b).tolist()",
            "([0, 1], [True, False], [True, False], [False, True])",
        ),
        ("(b ** b).tolist(), (b << b).tolist(), (b ** b).dtype == np.int8", "([1, 1], [2, 0], True)"),
    ] {
        check(&of(expr), expected);
    }
    for (expr, message) in [
        ("b - b", "type-error: `-` of bool arrays"),
        ("True - b", "type-error: `-` of bool arrays"),
        ("-b", "type-error: `-` of a bool array"),
        ("u * -1", "integer-overflow: -1 is out of bounds for uint8"),
    ] {
        check(&of(expr), message);
    }
}

#[test]
fn functions_of_numpy_beyond_methods() {
    let of = |expr: &str| format!("import numpy as np\nx = np.arange(6).reshape(2, 3)\nprint(({expr}))");
    for (expr, expected) in [
        ("np.outer([1, 2], [3, 4]).tolist()", "[[3, 4], [6, 8]]"),
        ("np.repeat(x, 2, axis=1).tolist()", "[[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]"),
        ("np.repeat([7, 8, 9], [2, 0, 1]).tolist()", "[7, 7, 9]"),
        ("np.tile([1, 2], (2, 2)).tolist(), np.tile(x, 2).shape", "([[1, 2, 1, 2], [1, 2, 1, 2]], (2, 6))"),
        ("np.stack([x, x + 1], axis=-1)[1].tolist()", "[[3, 4], [4, 5], [5, 6]]"),
        ("np.vstack([[1, 2], [3, 4]]).tolist(), np.hstack([x, x]).shape", "([[1, 2], [3, 4]], (2, 6))"),
        (
            "np.clip(x, 1, None).tolist(), np.clip(7, 0, 3), np.clip(x, 0, 2.5)[1].tolist()",
            "([[1, 1, 2], [3, 4, 5]], np.int64(3), [2.5, 2.5, 2.5])",
        ),
        (
            "np.dot([1, 2, 3], [4, 5, 6]), np.dot(x, 2)[1].tolist(), (x @ x.T).tolist()",
            "(np.int64(32), [6, 8, 10], [[5, 14], [14, 50]])",
        ),
        ("np.matmul(x, [1, 1, 1]).tolist(), np.matmul([1, 2], x).tolist()", "([3, 12], [6, 9, 12])"),
        (
            "np.argmax([1, 5, 5]), x.argmin(axis=0).tolist(), np.argmax([1.0, float('nan'), 2.0])",
            "(np.int64(1), [0, 0, 0], np.int64(1))",
        ),
        (
            "np.mod(-7, 3), np.remainder(x, 4)[1].tolist(), np.power(2, 3), np.divide(1, 4)",
            "(np.int64(2), [3, 0, 1], np.int64(8), np.float64(0.25))",
        ),
        ("np.expand_dims(x, -1).shape, np.maximum([1, 5], [3, 2]).tolist()", "((2, 3, 1), [3, 5])"),
        (
            "x.sum(axis=0).tolist(), np.max(x, axis=1, keepdims=True).tolist(), np.sum(x, keepdims=True).shape",
            "([3, 5, 7], [[2], [5]], (1, 1))",
        ),
        (
            "np.mean(x, axis=1).tolist(), np.any(x > 4, axis=1).tolist(), np.sum([[1, 2], [3, 4]])",
            "([1.0, 4.0], [False, True], np.int64(10))",
        ),
        ("np.sqrt([4.0, 9.0]).tolist()", "[2.0, 3.0]"),
    ] {
        check(&of(expr), expected);
        check_kernel(&of(expr), expected);
    }
    for (expr, message) in [
        ("np.dot(x, x)", "value-error: `@` of arrays of shapes (2, 3) and (2, 3): 3 columns do not match 2 rows"),
        (
            "np.tile(x, 10**9)",
            "value-error: np.tile: an array of shape [2, 3000000000] is too large for a constant (4194304 elements)",
        ),
        ("np.stack([x, x[0]])", "value-error: np.stack: all arrays must have the same shape"),
        ("np.repeat(x, [1, 2, 3], axis=0)", "value-error: np.repeat: 3 counts for an axis of extent 2"),
        ("x.sum(axis=2)", "value-error: axis 2 of an array of 2 dimensions"),
        ("np.argmax([])", "value-error: argmax of an array without elements"),
    ] {
        check_kernel(&of(expr), message);
    }
}
