//! Diagnostics of a run: arguments, comparison with expected values.

super::slugs! {
    "result-mismatch", "an output differs from the expected array by more than the tolerance", "
`--expect NAME=FILE.npy` compares an output with an array, element by element: it passes when
`|got - expected| <= atol + rtol * |expected|`, or both are NaN. The defaults depend on the output's
dtype (docs/cli.md); `--rtol` and `--atol` override them.";
}
