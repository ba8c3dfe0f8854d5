//! Diagnostics of the language: syntax, Python that NKI does not have, calls with wrong arguments.

super::slugs! {
    "syntax-error", "the file is not valid Python", "
The parser could not read the file. The message says what it expected; all errors of a file are
reported at once.";

    "nesting-too-deep", "code is nested too deeply", "
Brackets, blocks and chained operators may nest about 1000 levels deep together. Split the expression over
several statements, or the blocks over several functions.";

    "unsupported-syntax", "Python that NKI does not have", "
A kernel is a program in a subset of Python that is run when it is specialised: no generators, no `async`, no
`match`, no context managers but `nl.no_reorder()`. The message says what to write instead. Outside
kernels such code does no harm: it is only an error where a kernel reaches it.";

    "dynamic-control", "a jump out of a loop or branch that runs on the device", "
`break`, `continue` and `return` exist at specialisation only. A loop over `nl.dynamic_range` and a `while` or `if`
on a register stay in the program and always run their whole body. Put the condition into the loop's bound or
register, or use a static loop.";

    "recursion-limit", "recursion that does not end", "
Calls are inlined at specialisation, so recursion must end there. At most 1000 calls may be active at once.";

    "assertion-failed", "an `assert` of the kernel is false", "
The kernel checks its own conditions at specialisation; this one does not hold for the arguments given. The message
is the kernel author's.";

    "raised-exception", "the kernel raises an exception", "
A `raise` was reached at specialisation, with the message shown.";

    "undefined-name", "a name without a value", "
The name is neither a local variable, a parameter, a name of the file nor a built-in; or it is a local variable
that no statement has assigned on the way here:

    if flag:
        x = 1
    use(x)      # undefined when flag is false";

    "type-error", "an operation on values it does not work on", "
As Python's TypeError. Sizes must be ints: use `//` rather than `/`.";

    "value-error", "an operation on a value it is not defined for", "
As Python's ValueError: the type fits, the value does not, such as `math.sqrt(-1)`, `int(\"x\")`, or unpacking three
values into two names. The message names the value.";

    "no-attribute", "an attribute, method or name that does not exist", "
The message names the nearest one that does.";

    "missing-key", "a key that is not in the dict", "
Use `d.get(key, default)` or `key in d` if it may be missing.";

    "index-out-of-range", "an index beyond the end of a list, tuple or string", "
Indices run from 0, or from -1 backwards.";

    "unpack-mismatch", "a different number of values than names", "
    a, b = (1, 2, 3)      # two names, three values";

    "dict-key", "a dict key that is not a string", "
Dicts in NKI kernels have string keys:

    tiles[i] = t           # wrong
    tiles[str(i)] = t      # right; or a list

Dicts made outside the kernel may have other keys and can be read.";

    "division-by-zero", "division by zero at specialisation", "
The divisor is 0 for these arguments: `//`, `/`, `%` and `divmod` need another one. Guard the case, or pass other sizes.";

    "integer-overflow", "an integer beyond 64 bits", "
Integers of the meta-program are machine integers.";

    "frozen-object", "a change of an object that is fixed", "
Objects of a frozen dataclass or a NamedTuple cannot be changed: make a new one, with `dataclasses.replace` or
`_replace`.";

    "host-value", "a value of the host program inside a kernel", "
Modules such as torch, and what comes out of them, are not run: a kernel is compiled from its source and its
arguments alone. Pass what it needs (shapes, numbers, dtypes) as arguments, or compute it with `math`.";

    "host-condition" (Suspicious), "a condition at module level that only a running Python knows", "
`nki-sim run FILE.py` interprets the file and does not run it. What an `if` at module level asks of the host (an environment variable, a version)
is taken as false, and a name that would have another value otherwise is told. Called from Python (`import nki`), a kernel takes the values that
its module has.";

    "import-error", "an import of something that is not there", "
The file or module exists but has no such name.";

    "import-cycle", "files import each other's names", "
A file that is being imported has only the names that were set before its own import. Python raises ImportError:

    # a.py
    from b import V
    U = 1

    # b.py
    from a import U      # a.py is still at its first line

Move what both files need to a third one.";

    "no-kernel", "the file defines no kernel", "
Decorate the kernel with `@nki.jit`:

    import nki

    @nki.jit
    def kernel(a):
        ...";

    "which-kernel", "the file has several kernels", "
The file has several kernels, or none of that name. Name one with `--kernel NAME`; the message lists them.";

    "unknown-kernel", "no function of that name", "
`--kernel` names a function at the top level of the file.";

    "missing-argument", "the kernel needs more arguments", "
Give each parameter without a default with `--arg NAME=VALUE`. VALUE is a .npy file, `dtype[d0,d1]`, or a Python literal.";

    "unknown-argument", "the kernel has no such parameter", "
`--arg NAME=VALUE` names a parameter of the kernel; the message shows the kernel's signature.";

    "strict-language" (Strict), "something the official compiler refuses", "
With `--strict`: the simulator accepts more of Python than the NKI compiler does. This construct works here and
is refused there.";

    "file-unreadable", "a source file cannot be read", "
The path is wrong, or the file is not text.";

    "no-thread", "the frontend could not start", "
The operating system gave no thread with a large stack.";
}
