//! Diagnostics of the language: syntax, Python that NKI does not have, calls with wrong arguments.

super::slugs! {
    "syntax-error", "the file is not valid Python", "
The parser could not read the file. The message says what it expected; all errors of a file are
reported at once.";
}
