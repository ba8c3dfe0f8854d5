"""The built-in evaluator computes the same values of random expressions as Python."""

import functools
import importlib.util
import itertools
import math
import random
import re
import warnings

import numpy as np
import pytest

#: Expressions by type of their value; `<int>` stands for any expression of that type.
LEAVES = {
    "int": ["0", "1", "2", "3", "7", "-1", "-5", "10", "128", "255", "2**40", "True", "1000003"],
    "float": ["0.0", "-0.0", "1.5", "2.5", "-3.25", "1e-7", "1e20", "0.1", "1 / 3", "123456.789", "5e-324", "-1e300", "float('inf')", "float('nan')"],
    "str": ["'a'", "'abc'", "'Hello World'", "''", "'x1y2'", "' pad '", "'12'", "'A_b-C'", "'tab\\tq'", "'é'", "'a,b,,c'", "'l\\r\\nm'"],
    "bool": ["True", "False", "not 0"],
    "list": ["[]", "[1]", "[3, 1, 2]", "[0, 0]", "[5, -1, 5, 2]", "list(range(5))"],
    "tuple": ["()", "(1,)", "(3, 0, -1)"],
    "dict": ["{}", "{1: 2}", "{'a': 1, 'b': [2]}", "{0: 0, 1: 1, 2: 8}"],
    "set": ["set()", "{1}", "{1, 2, 3}", "{64, 32, 8, 1}", "{40, 3, -9, 11, 25, 33}", "set(range(0, 90, 7))", "frozenset([2, 5])"],
    "scalar": [
        "np.float32(0.1)", "np.float32(-2.5)", "np.float32(7)", "np.float32(3e-5)", "np.float32(16777216)", "np.float64(0.1)", "np.float64(-3)", "np.float16(1.5)",
        "np.int8(5)", "np.int8(-3)", "np.uint8(7)", "np.int32(100)", "np.int64(3)", "np.bool_(True)", "np.arange(4)[2]",
    ],
    "array": [
        "np.arange(5)", "np.array([1.5, -2.0, 3.25])", "np.array([[1, 2], [3, 4]])", "np.array([0.1, 0.2], dtype=np.float32)", "np.array([1, 2, 3], dtype=np.int8)",
        "np.linspace(0, 1, 7)", "np.eye(3)", "np.array([True, False])", "np.array([1e-5, 1, 1e9])", "np.array([np.nan, 1.0, -np.inf])", "np.arange(1200)", "np.zeros((0, 3))",
        "np.arange(60).reshape(3, 20)", "np.arange(6, dtype=np.float16).reshape(1, 2, 3)", "np.array(2.5)",
    ],
}
FORMS = {
    "int": [
        "(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> // <int>)", "(<int> % <int>)", "(<int> & <int>)", "(<int> ^ <int>)",
        "(<int> << 3)", "(<int> >> 1)", "(<int> ** 2)", "(-<int>)", "(~<int>)", "abs(<int>)", "len(<list>)", "len(<str>)", "sum(<list>)", "int(<float>)",
        "round(<float>)", "max(<int>, <int>)", "min(<list>, default=3)", "<list>.count(<int>)", "<str>.find(<str>)", "(<int> if <bool> else <int>)",
        "int(str(<int>))", "(<int>).bit_length()", "math.gcd(<int>, <int>)", "math.isqrt(abs(<int>))", "math.floor(<float>)", "math.ceil(<float>)",
        "pow(<int>, 3, 1000)", "divmod(<int>, <int>)[1]", "<dict>.get(<int>, 4)", "round(<int>, -1)", "(lambda x, y=2: x * y)(<int>)", "(<int> or <int>)",
        "functools.reduce(lambda a, b: a * 3 + b, <list>, 1)", "math.prod(<list>)", "hash(<tuple>)", "hash(frozenset(<list>))", "len(<set>)",
    ],
    "float": [
        "(<float> + <float>)", "(<float> * <int>)", "(<float> // <float>)", "(<float> % <float>)", "(<int> / <int>)", "round(<float>, 2)", "round(<float>, -1)",
        "math.sqrt(<float>)", "math.exp(<float>)", "math.log(<float>)", "math.log2(<float>)", "math.tanh(<float>)", "math.erf(<float>)", "math.log1p(<float>)",
        "math.pow(<float>, <int>)", "math.fmod(<float>, <float>)", "math.copysign(<float>, <float>)", "math.hypot(<float>, <float>)", "math.ldexp(<float>, <int>)",
        "math.fsum([<float>, <float>, <float>, <float>])", "math.dist([<float>, <float>], [<float>, 1])", "math.remainder(<float>, <float>)",
        "math.nextafter(<float>, <float>)", "max(<float>, <int>)", "(<float> ** 2)", "(<int> ** -1)",
    ],
    "str": [
        "(<str> + <str>)", "(<str> * 2)", "str(<list>)", "repr(<float>)", "repr(<dict>)", "repr(<str>)", "ascii(<str>)", "<str>.upper()", "<str>.title()",
        "<str>.swapcase()", "<str>.capitalize()", "<str>.strip(<str>)", "<str>.replace(<str>, <str>)", "<str>.center(8)", "<str>.center(7, '*')", "<str>.rjust(5)",
        "<str>.zfill(6)", "<str>[1:]", "<str>[::-1]", "<str>[-1:-4:-1]", "','.join(map(str, <list>))", "<str>.partition('b')[2]", "<str>.removeprefix(<str>)",
        "<str>.expandtabs(4)", "<str>.translate({97: 'Z', 98: None, 99: 100})", "str(<str>.split())", "str(<str>.split(',', 1))", "str(<str>.splitlines(True))",
        "str(<scalar>)", "str(<array>)", "f'{<scalar>}'", "f'{<scalar>:.3f}'", "('%s %r' % (<scalar>, <scalar>))", "repr(<scalar>.dtype)", "repr(type(<scalar>))",
        "hex(<int>)", "bin(<int>)", "f'{<int>:+08d}'", "f'{<int>:#x}'", "f'{<int>:,}'", "f'{<float>:.3g}'", "f'{<float>:#.3g}'", "f'{<float>:z.1f}'",
        "f'{<float>:,.2f}'", "f'{<float>:.1%}'", "f'{<float>:e}'", "f'{<float>:n}'", "f'{<float>!r:>9}'", "('%5d|%-6s|%+.2f' % (<int>, <str>, <float>))",
        "('%x %r %g' % (abs(<int>), <list>, <float>))", "'{1}-{0!a:>6}'.format(<str>, <int>)", "type(<set>).__name__", "type(<tuple>).__name__",
    ],
    "bool": [
        "(<int> < <int>)", "(<int> <= <int> < <int>)", "(<float> == <int>)", "(<str> > <str>)", "(<list> <= <list>)", "(<tuple> < <tuple>)", "(not <list>)",
        "bool(<bool> and <str>)", "(<int> in <list>)", "(<str> not in <str>)", "any(<list>)", "all(<list>)", "<str>.isdigit()", "<str>.istitle()",
        "<str>.isidentifier()", "<str>.startswith(<str>)", "isinstance(<int>, (int, str))", "isinstance(<set>, frozenset)", "(<set> <= <set>)", "(<set> == <set>)",
        "(<dict> == <dict>)", "math.isclose(<float>, <float>)", "math.isnan(<float>)", "(<int> in <dict>)",
        "isinstance(<scalar>, np.floating)", "isinstance(<scalar>, (int, float))", "isinstance(<scalar>, np.integer)", "(<scalar> in <list>)", "(<scalar> in <set>)",
    ],
    "list": [
        "[<int>, <int>]", "(<list> + <list>)", "(<list> * 2)", "<list>[::2]", "<list>[::-1]", "<list>[-2:]", "sorted(<list>, reverse=True)", "sorted(<list>, key=abs)",
        "[x * <int> for x in <list>]", "[x for x in <list> if x > <int>]", "[i * x for i, x in enumerate(<list>, 1)]", "[a - b for a, b in zip(<list>, <list>)]",
        "list(range(10, max(<int>, -20), -3))", "[*<list>, *<list>]", "list(<tuple>)", "[y for x in <list> for y in range(x % 4)]", "sorted(<set>)",
        "list(<set>)", "[x for x in {9, 8, 1, 0, 64, 33}]", "[x for x in <set> if x % 2]", "<array>.tolist()", "list(range(<scalar>))",
        "list(itertools.accumulate(<list>))", "list(dict.fromkeys(<list>))", "(lambda *a, **k: list(a) + list(k.values()))(*<list>, z=1)", "[ord(c) for c in <str>]",
    ],
    "tuple": ["tuple(<list>)", "(<int>, <int>)", "(<tuple> + <tuple>)", "<tuple>[::-1]", "divmod(<int>, <int>)", "(*<list>, <int>)"],
    "dict": [
        "{x: x + 2 for x in <list>}", "dict(zip(<list>, <list>))", "{**<dict>, <int>: <int>}", "(<dict> | <dict>)", "dict(a=<int>, b=<str>)", "dict(enumerate(<list>))",
    ],
    "set": ["set(<list>)", "frozenset(<list>)", "(<set> | <set>)", "(<set> & <set>)", "(<set> - <set>)", "(<set> ^ <set>)", "{x % 4 for x in <list>}", "set(<tuple>)", "{*<list>, <int>}", "<set>.union(<list>, <set>)", "{x * 7 for x in <set>}"],
    "scalar": [
        "(<scalar> + <scalar>)", "(<scalar> - <scalar>)", "(<scalar> * <scalar>)", "(<scalar> / <scalar>)", "(<scalar> * <int>)", "(<float> + <scalar>)", "(<int> - <scalar>)",
        "(<scalar> < <scalar>)", "(<scalar> == <int>)", "(<scalar> >= <float>)", "(-<scalar>)", "abs(<scalar>)", "round(<scalar>, 1)", "np.sqrt(abs(<scalar>))", "np.maximum(<scalar>, <scalar>)",
        "np.float32(<scalar>)", "np.int32(7 + <scalar>)", "np.int8(<int>)", "np.float16(<float>)", "sum([<scalar>, <scalar>])", "max(<scalar>, <scalar>)", "<scalar>.astype(np.float64)",
        "<array>.sum()", "<array>.mean()", "<array>.max()", "<array>.prod()", "<array>.any()", "<array>[0]", "np.prod(<tuple>)", "np.sum(<list>)", "np.abs(<int>)", "np.floor(<float>)",
    ],
    "array": [
        "(<array> * <scalar>)", "(<scalar> - <array>)", "(<array> + <array>)", "(<array> / 3)", "(<array> < <scalar>)", "(<array> * <float>)", "<array>.astype(np.float32)", "<array>.reshape(-1, 1)",
        "np.array([<scalar>, <scalar>])", "np.array([<scalar>, <int>])", "np.full(3, <scalar>)", "np.stack([<array>, <array>])", "np.where(<array> > 1, <array>, <scalar>)", "np.clip(<array>, <scalar>, 5)",
    ],
}  # fmt: skip
IS_RECENT_NUMPY = np.lib.NumpyVersion(np.__version__) >= "2.3.0"
ERRORS = (TypeError, ValueError, ZeroDivisionError, IndexError, KeyError, OverflowError)
PROLOGUE = """
import functools
import itertools
import math

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def show(x):
"""
EPILOGUE = """
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""


def expression(draw, kind, depth):
    if depth == 0:
        return draw.choice(LEAVES[kind])
    return re.sub("<([a-z]+)>", lambda part: expression(draw, part[1], draw.randrange(depth)), draw.choice(FORMS[kind]))


def is_syntax(text):
    try:
        compile(text, "<expression>", "eval")
    except SyntaxError:
        return False
    return True


def expected(text):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return repr(repr(eval(text, {"math": math, "np": np, "functools": functools, "itertools": itertools})))
    except ERRORS as error:
        return type(error).__name__
    except (Warning, MemoryError):
        return None


def evaluated(texts, path, capsys, monkeypatch):
    """The output of the built-in evaluator for each, or the name of the exception that it raises."""
    lines = [
        f"    try:\n        print('value {i}', repr(repr({text})))\n"
        f"    except ({', '.join(e.__name__ for e in ERRORS)}) as error:\n        print('value {i}', type(error).__name__)\n"
        for i, text in enumerate(texts)
    ]
    path.write_text(PROLOGUE + "".join(lines) + EPILOGUE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    module.show(np.zeros((2, 2), np.float32))
    printed = re.findall(r"^value (\d+) (.*)$", capsys.readouterr().out, re.M)
    assert [int(i) for i, _ in printed] == list(range(len(texts)))
    return [value for _, value in printed]


def is_near(ours, python):
    """Whether two texts differ only in the last digits of floats: the math libraries differ."""
    number = r"-?\d+\.\d+(?:e[-+]\d+)?"
    mine, theirs = re.findall(number, ours), re.findall(number, python)
    same_frame = re.sub(number, "#", ours) == re.sub(number, "#", python)
    return same_frame and all(math.isclose(float(a), float(b), rel_tol=1e-14) for a, b in zip(mine, theirs))


@pytest.mark.parametrize("seed", range(6))
def test_the_evaluator_gives_expressions_the_value_of_python(seed, tmp_path, capsys, monkeypatch):
    draw = random.Random(seed)
    # Earlier releases of NumPy print other digits.
    kinds = [kind for kind in FORMS if IS_RECENT_NUMPY or kind not in ("scalar", "array")]
    values = {}
    while len(values) < 250:
        text = expression(draw, draw.choice(kinds), draw.randint(1, 3))
        # Older versions of Python do not allow quotes and backslashes in the fields of an f-string.
        if len(text) > 300 or "np." in text and not IS_RECENT_NUMPY or not is_syntax(text):
            continue
        # The evaluator reports what Python warns of, too.
        if (value := expected(text)) is None or len(value) > 1000:
            continue
        # The position of a NaN in a set depends on its address.
        if "{" not in value or "nan" not in value:
            values[text] = value
    too_large = 0
    for (text, python), ours in zip(values.items(), evaluated(list(values), tmp_path / "expressions.py", capsys, monkeypatch)):
        # Integers of the language have 64 bits.
        too_large += ours == "OverflowError" != python
        assert ours in (python, "OverflowError") or is_near(ours, python), f"{text}\n  Python: {python}\n  ours:   {ours}"
    assert too_large < 25
