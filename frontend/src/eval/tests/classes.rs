//! Classes, decorators and protocols of objects; the texts are those that CPython 3.12 prints.

use super::*;

const SUPPRESS: &str = "class Suppress:\n    def __init__(self, kind):\n        self.kind = kind\n    \
     def __enter__(self):\n        return self\n    def __exit__(self, kind, value, trace):\n        \
     print(kind is not None and kind.__name__, value)\n        return kind is not None and issubclass(kind, self.kind)\n";

#[test]
fn a_context_may_end_an_exception() {
    let with = |body: &str| format!("{SUPPRESS}{body}");
    check(&with("with Suppress(ValueError):\n    raise ValueError('x')\nprint('after')"), "ValueError x\nafter");
    check(
        &with("try:\n    with Suppress(KeyError):\n        raise ValueError('x')\nexcept ValueError as e:\n    print('out', e)"),
        "ValueError x\nout x",
    );
    check(&with("with Suppress(ValueError):\n    pass\nprint('after')"), "False None\nafter");
    check(
        &with("with Suppress(LookupError), Suppress(IndexError):\n    [][1]\nprint('after')").replace(", value)", ")"),
        "IndexError\nFalse\nafter",
    );
    check(
        &with(
            "def f():\n    for i in range(3):\n        with Suppress((TypeError, ValueError)):\n            if i == 1:\n                \
             raise TypeError(i)\n            yield i\nprint(list(f()))",
        ),
        "False None\nTypeError 1\nFalse None\n[0, 2]",
    );
}
