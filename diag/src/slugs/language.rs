//! Diagnostics of the language: syntax, Python that NKI does not have, calls with wrong arguments.

super::slugs! {
    "syntax-error", "the file is not valid Python", "
The parser could not read the file. The message names the expected syntax. All errors of a file are
reported at once.";

    "nesting-too-deep", "code is nested too deeply", "
Brackets, blocks and chained operators may nest about 1000 levels deep in total. Split the
expression into several statements, or the blocks into several functions.";

    "unsupported-syntax", "NKI does not support this Python syntax", "
A kernel is executed at specialisation, and some of Python is missing here: `async`, `type` aliases,
complex numbers, bytes, a `yield` in a default or decorator. The message names an alternative.
Outside kernels such code is allowed; it is an error only if a kernel reaches it.";

    "dynamic-control", "a jump leaves a loop or branch that runs on the device", "
`break`, `continue`, `return` and `yield` exist only at specialisation. A loop over `nl.dynamic_range`, and a
`while` or `if` on a register, remain in the program and always execute their whole body. Move the
condition into the bound or the register of the loop, or use a static loop.";

    "recursion-limit", "the recursion does not end", "
Calls are inlined at specialisation, so recursion must end there. At most 1000 calls may be active
at once.";

    "assertion-failed", "an `assert` of the kernel is false", "
The kernel checks its own conditions at specialisation; this condition is false for the given
arguments. The message is that of the kernel's author.";

    "raised-exception", "the kernel raises an exception", "
Specialisation reached a `raise` with the message shown.";

    "caught-error" (Suspicious), "the kernel catches an error of the simulator", "
An `except Exception` around an instruction also catches what the machine cannot do, and the program
then lacks that instruction:

    try:
        nisa.dma_copy(dst=tile, src=x[0:300, :])     # out-of-bounds
    except Exception:                                # wrong: the tile is never written
        pass

The compiler may find such an error only after the kernel's Python has ended, when nothing can
catch it. Test the condition before the call. Exceptions that Python or the kernel raises
(`KeyError`, `AssertionError`) are caught without a warning.";

    "undefined-name", "a name has no value", "
The name is not a local variable, a parameter, a name of the file or a built-in; or it is a local
variable without an assignment on the executed path:

    if flag:
        x = 1
    use(x)      # undefined when flag is false";

    "type-error", "an operation does not support the types of its values", "
This corresponds to Python's TypeError. Sizes must be ints: use `//` rather than `/`.";

    "value-error", "an operation is not defined for this value", "
This corresponds to Python's ValueError: the type is right and the value is wrong, as in
`math.sqrt(-1)`, `int(\"x\")`, or unpacking three values into two names. The message names the value.";

    "no-attribute", "an attribute, method or name does not exist", "
The message names the most similar one that exists.";

    "kernel-config" (Suspicious), "a kernel in a kernel has another configuration", "
A kernel that another kernel calls is inlined, and the outermost kernel's `compile_config` holds for
all of it. Give both the same configuration or none to the inner one. With
`specialization_config=SpecializationConfig(allow_nested_config_override=True)` on the outermost
kernel the difference is a warning.";

    "missing-key", "a key is not in the dict", "
Use `d.get(key, default)` or `key in d` if the key may be missing.";

    "index-out-of-range", "an index exceeds a list, tuple or string", "
Indices count from 0 at the start, or from -1 at the end.";

    "unpack-mismatch", "the number of values differs from the number of names", "
    a, b = (1, 2, 3)      # two names, three values";

    "dict-key", "a dict key or a set item is not hashable", "
As in Python, lists, dicts, sets and objects whose class defines `__eq__` without `__hash__` cannot be
keys:

    tiles[[i, j]] = t      # wrong
    tiles[i, j] = t        # right

Compilers before NKI 0.7 accept only strings as keys: `--strict` reports the others.";

    "division-by-zero", "division by zero at specialisation", "
The divisor of `//`, `/`, `%` or `divmod` is 0 for these arguments. Guard this case, or pass other
sizes.";

    "integer-overflow", "an integer exceeds its type", "
Integers of the meta-program have 64 bits. `np.uint8(300)` is an error, as in NumPy: the type does not
hold the number. So is a float that an integer type does not hold (`np.array([1e20]).astype(np.int32)`), for
which NumPy's result depends on the machine.";

    "float-overflow", "a float exceeds the range of 64 bits", "
Python raises `OverflowError` where a power or a rounded number is too large for a float; sums and
products become infinite.";

    "scalar-overflow" (Suspicious), "the result of NumPy scalars does not fit their type", "
Numbers with a type of NumPy, such as `np.int8(100)`, an element of an array or a sum, are computed in
that type: `np.int8(100) + np.int8(100)` wraps to -56, and `np.float32(3e38) * 10` is infinite. NumPy warns
of it, and so does the simulator. Compute with numbers of Python (`int(x)`, `float(x)`) or with a wider type.";

    "frozen-object", "an immutable object is changed", "
Objects of a frozen dataclass or a NamedTuple cannot be changed. Create a new one with
`dataclasses.replace` or `_replace`. NumPy arrays of the Python program around a kernel cannot be
changed by a kernel that is compiled from its source, because the program would not see it: change a
copy (`array.copy()`).";

    "host-value", "a kernel uses a value of the host program", "
Modules such as torch, and values computed by them, are not executed: a kernel is compiled from its
source and its arguments alone. Pass the values that it needs (shapes, numbers, dtypes) as
arguments, or compute them with `math`. Messages of `logging` and `warnings.warn` have no effect on a
kernel and are skipped.";

    "host-condition" (Suspicious), "a condition at module level depends on the host", "
`nki-sim run FILE.py` interprets the file instead of running it in Python. A condition at module
level that depends on the host (an environment variable, a version) is assumed to be false, a value
of the host is assumed not to be None, a variable that is read with a default
(`os.environ.get('TILE', '128')`) is assumed not to be set, and a module that is imported in a `try` is
assumed to be installed. A kernel that uses a name whose value
depends on that gets this warning. Called from Python (`import nki`), a kernel uses the values of
its module.";

    "import-error", "an imported name does not exist", "
The file or module exists but has no such name.";

    "import-cycle", "files import each other's names", "
A file that is still being imported defines only the names assigned before its own import. Python
raises ImportError:

    # a.py
    from b import V
    U = 1

    # b.py
    from a import U      # a.py is still at its first line

Move the names that both files need to a third file.";

    "no-kernel", "the file defines no kernel", "
Decorate the kernel with `@nki.jit`:

    import nki

    @nki.jit
    def kernel(a):
        ...";

    "which-kernel", "the kernel is ambiguous", "
The file has several kernels, or none of the given name. Select one with `--kernel NAME`; the
message lists them.";

    "unknown-kernel", "the file has no function of this name", "
`--kernel` names a function at the top level of the file.";

    "missing-argument", "the kernel needs more arguments", "
Pass each parameter without a default with `--arg NAME=VALUE`. VALUE is a .npy file, `dtype[d0,d1]`,
or a Python literal.";

    "unknown-argument", "the kernel has no such parameter", "
`--arg NAME=VALUE` names a parameter of the kernel; the message shows the signature of the kernel.";

    "strict-language" (Strict), "the official compiler rejects this construct", "
The simulator accepts more of Python than the NKI compiler. This construct works in the simulator
and is rejected by the compiler. `--strict` reports it.";

    "file-unreadable", "a source file cannot be read", "
The path is wrong, or the file is not text.";

    "no-thread", "the frontend could not start", "
The operating system did not provide a thread with a large stack.";
}
