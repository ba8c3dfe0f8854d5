//! NumPy functions on host arrays; the expected texts are from NumPy 2.

use super::*;

#[track_caller]
fn check_numpy(expr: &str, expected: &str) {
    let setup = "import numpy as np\na = np.arange(6).reshape(2, 3)\n";
    check(&format!("{setup}r = {expr}\nprint(r.tolist() if hasattr(r, 'tolist') else r)"), expected);
}

#[track_caller]
fn check_lists(expr: &str, expected: &str) {
    check_numpy(&format!("[x.tolist() for x in {expr}]"), expected);
}

#[test]
fn elements_are_found() {
    check_lists("np.nonzero(a > 2)", "[[1, 1, 1], [0, 1, 2]]");
    check_lists("np.where(a % 2)", "[[0, 1, 1], [1, 0, 2]]");
    check_numpy("np.flatnonzero([0, 3, 0, 0.5])", "[1, 3]");
    check_numpy("np.argwhere(a == 4)", "[[1, 1]]");
    check_numpy("np.count_nonzero(a), np.count_nonzero([True, False])", "(np.int64(5), np.int64(1))");
    check_numpy("np.unique([3, 1, 2, 1])", "[1, 2, 3]");
    check_numpy("np.unique(np.array([[1.5, 0], [1.5, np.nan]]))", "[0.0, 1.5, nan]");
}

#[test]
fn elements_are_taken_in_another_order() {
    check_numpy("np.sort(np.array([[3, 1], [0, 2]]))", "[[1, 3], [0, 2]]");
    check_numpy("np.sort(np.array([[3, 1], [0, 2]]), axis=0)", "[[0, 1], [3, 2]]");
    check_numpy("np.sort([[3, 1], [0, 2]], axis=None)", "[0, 1, 2, 3]");
    check_numpy("np.take(a, [0, -1])", "[0, 5]");
    check_numpy("np.take(a, [[2, 0]], axis=1)", "[[[2, 0]], [[5, 3]]]");
    check_numpy("np.take(a, 1, axis=0)", "[3, 4, 5]");
    check_numpy("np.take(a, 6)", "index-out-of-range: np.take: index 6 of an axis of extent 6");
    check_numpy("np.diff(a)", "[[1, 1], [1, 1]]");
    check_numpy("np.diff([1, 4, 9, 16], n=2)", "[2, 2]");
    check_numpy("np.diff(a, axis=0)", "[[3, 3, 3]]");
    check_numpy("np.roll(a, 1)", "[[5, 0, 1], [2, 3, 4]]");
    check_numpy("np.roll(a, -1, axis=1)", "[[1, 2, 0], [4, 5, 3]]");
    check_numpy("np.roll(a, (1, 1), axis=(0, 1))", "[[5, 3, 4], [2, 0, 1]]");
    check_numpy("np.roll(a, (), axis=(0,))", "[[0, 1, 2], [3, 4, 5]]");
    check_numpy("np.roll(a, 1, axis=())", "[[0, 1, 2], [3, 4, 5]]");
    check_numpy("np.append(a, 7)", "[0, 1, 2, 3, 4, 5, 7]");
    check_numpy("np.append(a, [[0.5, 1, 2]], axis=0)", "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [0.5, 1.0, 2.0]]");
}

#[test]
fn parts_and_reversed_arrays_share_elements() {
    check_numpy("np.flip(a)", "[[5, 4, 3], [2, 1, 0]]");
    check_numpy("np.flip(a, axis=(1,))", "[[2, 1, 0], [5, 4, 3]]");
    check_numpy("np.flipud(a)", "[[3, 4, 5], [0, 1, 2]]");
    check_numpy("np.fliplr(a)", "[[2, 1, 0], [5, 4, 3]]");
    check_lists("np.split(a, 3, axis=1)", "[[[0], [3]], [[1], [4]], [[2], [5]]]");
    check_lists("np.split(np.arange(6), [2, 5])", "[[0, 1], [2, 3, 4], [5]]");
    check_lists("np.array_split(np.arange(6), 4)", "[[0, 1], [2, 3], [4], [5]]");
    check_numpy("np.split(np.arange(6), 4)", "value-error: np.split: an axis of extent 6 has no 4 equal parts");
    let shared = "import numpy as np\na = np.arange(4)\nnp.split(a, 2)[1][0] = 9\nnp.flip(a)[0] = 8\nprint(a.tolist())";
    check(shared, "[0, 1, 9, 8]");
}

#[test]
fn arrays_are_padded() {
    check_numpy("np.pad([[1, 2], [3, 4]], 1)", "[[0, 0, 0, 0], [0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0]]");
    check_numpy(
        "np.pad([[1, 2], [3, 4]], ((1, 0), (0, 2)), constant_values=9)",
        "[[9, 9, 9, 9], [1, 2, 9, 9], [3, 4, 9, 9]]",
    );
    check_numpy("np.pad([1, 2, 3], (2, 1), mode='edge')", "[1, 1, 1, 2, 3, 3]");
    check_numpy(
        "np.pad([1, 2, 3], 2, mode='reflect')",
        "value-error: np.pad: the modes are \"constant\" and \"edge\", whose values are those of the edge",
    );
}
