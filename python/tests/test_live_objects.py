"""Decorated live functions and classes in kernels that the evaluator compiles: the same results as in Python."""

import collections
import contextlib
import enum
import functools
import types
from dataclasses import InitVar, dataclass, field

import numpy as np
import pytest

import nki
import nki.isa as nisa
import nki.language as nl
import nki_sim


@dataclass
class Layout:
    rows: int
    note: str = field(default="", compare=False, repr=False)


@dataclass(eq=False)
class Node:
    kind: str


@dataclass(order=True)
class Priority:
    level: int


@dataclass(repr=False)
class Silent:
    level: int


@dataclass(unsafe_hash=True)
class Hashed:
    level: int


class Base:
    def __init__(self, n):
        self.n = n + 1


@dataclass(init=False)
class Derived(Base):
    level: int = 3


@dataclass
class Started:
    level: int
    start: InitVar[int] = 3

    def __post_init__(self, start):
        self.end = self.level + start


class Digit:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number % 10 == other.number % 10

    def __hash__(self):
        return self.number % 10


@functools.total_ordering
class Version:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number

    def __lt__(self, other):
        return self.number < other.number


calls = []


class Helper:
    def __init__(self):
        self.base = 5

    @functools.cached_property
    def once(self):
        calls.append("once")
        return [self.base]

    @property
    def part(self):
        return self._part if hasattr(self, "_part") else -1

    @part.setter
    def part(self, value):
        self._part = value * 2

    @part.deleter
    def part(self):
        del self._part

    @functools.lru_cache  # noqa: B019
    def method(self, x):
        calls.append(x)
        return x + self.base

    @staticmethod
    @functools.cache
    def static(x):
        return [x]

    @classmethod
    @functools.cache
    def of_class(cls, x):
        return [cls.__name__, x]

    partial = functools.partialmethod(lambda self, x, y: x * 10 + y, 4)

    @functools.singledispatchmethod
    def dispatched(self, x):
        return 0


class Mode(enum.Enum):
    A = 1

    @functools.cached_property
    def once(self):
        return [self.value]

    @functools.cache  # noqa: B019
    def method(self, x):
        return [x]


class Name(str, enum.Enum):
    A = "a"


class Option(enum.Flag):
    A = 1
    B = 2
    BOTH = 3


@functools.lru_cache(maxsize=1)
def small(n):
    calls.append(n)
    return n * 2


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def times(factor):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * factor

        return wrapper

    return decorate


@times(3)
def added(a, b=1):
    return a + b


def tagged(function):
    function.factor = 7
    return function


@tagged
def helper():
    """What it does."""


@contextlib.contextmanager
def noting(log):
    log.append("in")
    yield 4
    log.append("out")


def new_calls(run):
    before = len(calls)
    return [*run(), len(calls) - before]


def part_of(helper):
    helper.part = 4
    before = helper.part
    del helper.part
    return before, helper.part


def noted():
    log = []
    with noting(log) as value:
        log.append(value)
    return log


CASES = {
    "compare": lambda: (Layout(4, "a") == Layout(4, "b"), Layout(4) == Layout(5)),
    "shown": lambda: (repr(Layout(1)), "level=" in repr(Silent(1))),
    "identity": lambda: Node("q") == Node("q"),
    "order": lambda: (Priority(1) < Priority(2), max(Priority(1), Priority(3)).level),
    "hash": lambda: (len({Hashed(1), Hashed(1)}), len({Digit(1), Digit(11), Digit(2)})),
    "constructor": lambda: (Derived(4).n, Derived(4).level),
    "init only": lambda: (Started(1).end, Started(1, 7).end, repr(Started(1)), Started(1, 2) == Started(1, 3)),
    "total ordering": lambda: (Version(1) <= Version(1), Version(2) >= Version(3), Version(2) > Version(1)),
    "cached property": lambda: new_calls(lambda h=Helper(): (h.once is h.once,)),
    "property": lambda: part_of(Helper()),
    "cached method": lambda: new_calls(lambda h=Helper(): (h.method(1), h.method(1))),
    "cached static method": lambda: Helper.static(7) is Helper().static(7),
    "cached class method": lambda: (Helper.of_class(7), Helper.of_class(7) is Helper.of_class(7)),
    "members": lambda: (Mode.A.once is Mode.A.once, Mode.A.method(1) is Mode.A.method(1)),
    "mixed members": lambda: (Name.A == "a", Name.A.upper(), (Option.A | Option.B) is Option.BOTH, Option.A in Option.BOTH, list(Option) == [Option.A, Option.B]),
    "cache of one": lambda: new_calls(lambda: (small(1), small(1), small(2), small(1), small.cache_info().maxsize)),
    "recursion": lambda: fibonacci(40),
    "context": noted,
    "wrapper": lambda: (added(1), added(1, b=5), added.__name__, added.__wrapped__(1)),
    "attributes": lambda: (helper.factor, helper.__name__, helper.__doc__, hasattr(helper, "other")),
}


@nki.jit
def kernel(x, case="compare"):
    print(CASES[case]())
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


@pytest.fixture(autouse=True)
def parser(monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")


@pytest.mark.parametrize("case", CASES)
def test_decorators_do_what_they_do_in_python(case, capsys):
    small.cache_clear()
    print(CASES[case]())
    expected = capsys.readouterr().out
    kernel(np.ones((4, 4), np.float32), case)
    assert capsys.readouterr().out == expected


@nki.jit
def refused(x, name):
    print(getattr(Helper(), name)(2))
    return x


@pytest.mark.parametrize("name", ["partial", "dispatched"])
def test_what_cannot_be_honoured_is_refused(name):
    with pytest.raises(nki_sim.SimError, match=f"{name}|partialmethod|singledispatchmethod"):
        refused(np.ones((4, 4), np.float32), name)


SETTINGS = types.SimpleNamespace(factor=4, inner=types.SimpleNamespace(values=[1, 2]), step=lambda n: n + 1)
COUNTS, GROUPS = collections.defaultdict(int), collections.defaultdict(lambda: [7], {"known": [1]})


@functools.singledispatch
def kind_of(value):
    return "any"


@nki.jit
def of_the_module(x, case):
    if case == "namespace":
        made = types.SimpleNamespace(a=1, **vars(SETTINGS.inner))
        made.b = SETTINGS.step(SETTINGS.factor)
        print(made.a, made.b, made.values, SETTINGS.inner == types.SimpleNamespace(values=[1, 2]), made == SETTINGS)
    elif case == "counts":
        COUNTS["k"] += 2
        print(COUNTS["k"], COUNTS["new"], len(COUNTS))
    elif case == "groups":
        print(GROUPS["known"], GROUPS["made"], "other" in GROUPS)
    else:
        print(kind_of(3))
    return x


@pytest.mark.parametrize("case, shown", [
    ("namespace", "1 5 [1, 2] True False"), ("counts", "2 0 2"), ("groups", "[1] [7] False"),
])
@pytest.mark.parametrize("frontend", ["tracer", "parser"])
def test_containers_of_the_module(frontend, case, shown, capsys, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
    COUNTS.clear()
    GROUPS.pop("made", None)
    of_the_module(np.ones((4, 4), np.float32), case)
    assert capsys.readouterr().out.splitlines()[0] == shown


def test_a_function_with_variants_is_refused():
    with pytest.raises(nki_sim.SimError, match="functools.singledispatch dispatches on Python classes"):
        of_the_module(np.ones((4, 4), np.float32), "variants")


@functools.cache
def scratch(name, shape):
    return nl.zeros(shape, dtype=nl.float32, buffer=nl.sbuf)


@nki.jit
def accumulate(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for _ in range(3):
        acc = scratch("acc", x.shape)
        nisa.tensor_tensor(dst=acc, data1=acc, data2=t, op=nl.add)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=scratch("acc", x.shape))
    return out


def test_a_cached_tile_is_one_tile():
    x = np.ones((4, 8), np.float32)
    np.testing.assert_array_equal(accumulate(x), 3 * x)
    # Another compilation creates its own.
    np.testing.assert_array_equal(accumulate(np.ones((8, 4), np.float32)), np.full((8, 4), 3, np.float32))


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@nki.jit
@traced
def wrapped(x, scale=2.0):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=scale)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out


def test_a_kernel_under_a_wrapper_takes_the_arguments_of_what_it_wraps():
    x = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(wrapped(x), 2 * x)
    np.testing.assert_array_equal(wrapped(x=x), 2 * x)
    np.testing.assert_array_equal(wrapped(x, scale=3.0), 3 * x)
    with pytest.raises(TypeError, match="wrapped"):
        wrapped(x, factor=3.0)
