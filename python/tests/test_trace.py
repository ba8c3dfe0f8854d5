"""Kernels that Python executes: what only Python can run, what is refused, and that both frontends
build the same program."""

import abc
import argparse
import array
import collections
import contextlib
import dataclasses
import enum
import functools
import importlib.util
import itertools
import json
import math
import pickle
import sys
import threading
import types
import typing
import warnings
from functools import partial

import cases
import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from findings import warned
from kernels import load, scaled, store
from nki.isa import dma_copy as copy_alias

import nki_sim

from conftest import ROOT, statements


def ramp(rows=4, columns=8, dtype=np.float32):
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


@pytest.fixture(params=["tracer", "parser"])
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)
    return request.param


@pytest.fixture
def parser(monkeypatch):
    """Compiles with the evaluator."""

    def compile(kernel, *args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setenv("NKI_COMPILER_FRONTEND", "parser")
            return kernel.compile(*args, **kwargs)

    return compile


# Both frontends.


def kernel_of(case):
    path = ROOT / "examples" / case["file"]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {k: v for k, v in vars(module).items() if isinstance(v, nki_sim.Kernel) and v.func.__module__ == path.stem}
    kernel = found[case["kernel"]] if "kernel" in case else next(iter(found.values()))
    return kernel[case.get("lnc", 1)]


@pytest.mark.parametrize("case", list(cases.cases()), ids=lambda case: case["name"])
def test_examples_are_the_same_program(case, parser):
    if case.get("ranks"):
        pytest.skip("arguments differ by rank")
    kernel = kernel_of(case)
    if case.get("target"):
        kernel = kernel._with(target=case["target"])
    assert kernel.compile(**case["args"]).text() == parser(kernel, **case["args"]).text()


def comprehensions(x):
    tiles = [load(x) for _ in range(2)]
    by_name = {name: tile for name, tile in zip("ab", tiles)}
    return store(scaled(by_name["a"], sum(n * n for n in range(4))))


def closures(x):
    factor = 2.0

    def inner(tile):
        return scaled(tile, factor)

    factor = 3.0
    return store(inner(load(x)))


def unpacking(x, *, by=2.0):
    def call(*args, **kwargs):
        return scaled(*args, **kwargs)

    tile, *rest = [load(x), 1, 2]
    return store(call(tile, **{"by": by + len(rest)}))


def operators(x):
    tile = load(x)
    width = (n := x.shape[1]) // 2
    nisa.tensor_copy(dst=tile[:, 0:width], src=tile[:, width:n])
    text = f"{width:03d}"
    return store(scaled(tile, float(text) + math.sqrt(16) + (0.5 if width else 1.5)))


class Base:
    factor = 2.0

    def run(self, tile):
        return scaled(tile, self.factor)


class Derived(Base):
    factor = 5.0

    def run(self, tile):
        return super().run(super().run(tile))


def classes(x):
    return store(Derived().run(load(x)))


class Mode(enum.Enum):
    HALF = 0.5
    TWICE = 2.0


@dataclasses.dataclass(frozen=True)
class Config:
    mode: Mode
    steps: tuple = (1, 2)


class Point(typing.NamedTuple):
    x: int
    y: int = 3


def records(x):
    config = Config(Mode.TWICE)
    assert config == Config(Mode.TWICE, (1, 2)) and Point(1) == (1, 3)
    tile = load(x)
    for step in config.steps:
        scaled(tile, step * config.mode.value)
    return store(tile)


def errors_are_caught(x):
    tile = load(x)
    try:
        nisa.tensor_copy(dst=tile[0:2, :], src=tile[0:4, :])
    except nisa.NkiValidationError:
        scaled(tile, 7.0)
    try:
        assert x.shape[0] > 100
    except AssertionError:
        scaled(tile, 2.0)
    return store(tile)


def dynamic_loops(x):
    tile = load(x)
    total = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(total, value=0.0)
    seen = []

    def body(i):
        seen.append(i)
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, nl.ds(i, 1)], op=nl.add)

    nl.fori_loop(0, 8, body)
    assert len(seen) == 1
    return store(total)


def a_counted_loop(x):
    tile = load(x)
    total = nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(total, value=0.0)
    for i in nl.dynamic_range(8):
        nisa.tensor_tensor(dst=total, data1=total, data2=tile[:, nl.ds(i, 1)], op=nl.add)
    return store(total)


def in_order(x):
    tile = load(x)
    with nl.no_reorder():
        first = nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, name="first")
        second = nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0, name="second")
        second.depends_on(first)
    return store(tile)


@nki.jit
def inner_kernel(tile):
    return scaled(tile, 3.0)


def nested(x):
    return store(inner_kernel(load(x)))


def by_core(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = x.shape[0] // nl.num_programs()
    rows = nl.ds(nl.program_id(0) * half, half)
    tile = load(x[rows, :])
    if nl.program_id(0) == 1:
        scaled(tile, 10.0)
    nisa.dma_copy(dst=out[rows, :], src=tile)
    return out


BOTH = [
    comprehensions, closures, unpacking, operators, classes, records, errors_are_caught, dynamic_loops, a_counted_loop, in_order, nested,
    by_core,
]  # fmt: skip


@pytest.mark.parametrize("kernel", BOTH, ids=lambda kernel: kernel.__name__)
def test_what_both_frontends_accept_is_the_same_program(kernel, parser):
    made = nki.jit(kernel)[2 if kernel is by_core else 1]
    assert statements(made.compile(ramp()).text()) == statements(parser(made, ramp()).text())


@pytest.mark.parametrize(
    "name, args",
    [("add", (ramp(), ramp())), ("scale", (ramp(), 2.0)), ("with_global", (ramp(),)), ("several", (ramp(),)), ("increment", (ramp(),))],
)
def test_kernels_of_the_tests_are_the_same_program(name, args, parser):
    kernel = getattr(kernels, name)
    assert kernel.compile(*args).text() == parser(kernel, *args).text()


# What only Python can run.


def tiles_of(x, width):
    for start in range(0, x.shape[1], width):
        yield start, load(x[:, start : start + width])


def generators(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start, tile in tiles_of(x, 4):
        scaled(tile, 2.0)
        nisa.dma_copy(dst=out[:, start : start + 4], src=tile)
    return out


class Registry(type):
    known = {}

    def __new__(mcs, name, bases, namespace):
        made = super().__new__(mcs, name, bases, namespace)
        mcs.known[name] = made
        return made


class Doubling(metaclass=Registry):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)

    @functools.cached_property
    def by(self):
        return 2.0

    def __call__(self, tile):
        return scaled(tile, self.by)


def metaclasses(x):
    return store(Registry.known["Doubling"]()(load(x)))


def libraries(x):
    weights = np.linalg.inv(np.diag(np.full(4, 0.5)))
    names = collections.Counter(json.loads('["a", "b", "a"]'))
    by = weights.trace() / 4 * names["a"] / next(itertools.islice(itertools.count(2), 1))
    return store(scaled(load(x), by))


def matching(x):
    match x.shape:
        case (4, n) if n % 2 == 0:
            by = 2.0
        case _:
            by = 1.0
    return store(scaled(load(x), by))


@contextlib.contextmanager
def doubled_afterwards(tile):
    yield tile
    scaled(tile, 2.0)


def managers(x):
    with contextlib.ExitStack() as stack:
        tile = stack.enter_context(doubled_afterwards(load(x)))
    return store(tile)


class Step(abc.ABC):
    @abc.abstractmethod
    def __matmul__(self, tile): ...


class Twice(Step):
    def __matmul__(self, tile):
        return scaled(tile, 2.0)


def overloads(x):
    return store(Twice() @ load(x))


def partials(x):
    twice = partial(nisa.tensor_scalar, op0=nl.multiply, operand0=2.0)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    copy_alias(dst=tile, src=x)
    twice(dst=tile, data=tile)
    return store(tile)


STARS = {"nisa": nisa, "scaled": scaled, "store_tile": store}
exec(
    """
from nki.language import *
def star_imports(x):
    tile = ndarray(x.shape, x.dtype, buffer=sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return store_tile(scaled(tile, 2))
""",
    STARS,
)
star_imports = STARS["star_imports"]

ONLY_PYTHON = [generators, metaclasses, libraries, matching, managers, overloads, partials, star_imports]


@pytest.mark.parametrize("kernel", ONLY_PYTHON, ids=lambda kernel: kernel.__name__)
def test_what_python_can_run(kernel):
    np.testing.assert_array_equal(nki.jit(kernel)(ramp()), ramp() * 2)


def test_no_source_is_needed():
    space = {"nl": nl, "nisa": nisa, "store": store, "load": load, "scaled": scaled}
    exec("def made(x):\n    return store(scaled(load(x), 2.0))", space)
    np.testing.assert_array_equal(nki.jit(space["made"])(ramp()), ramp() * 2)
    np.testing.assert_array_equal(nki.jit(lambda x: store(scaled(load(x), 2.0)))(ramp()), ramp() * 2)
    exec("def wrong(x):\n    t = load(x)\n    nisa.tensor_copy(dst=t, src=3)", space)
    with pytest.raises(nki_sim.KernelError, match="operand-kind") as info:
        nki.jit(space["wrong"])(ramp())
    assert (info.value.file, info.value.line) == ("<string>", 3)


def test_wrappers_take_any_arguments():
    def wrap(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    kernel = nki.jit(wrap(partials))
    np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    np.testing.assert_array_equal(kernel(x=ramp()), ramp() * 2)


def test_arguments_hold_tensors():
    @dataclasses.dataclass(frozen=True)
    class Held:
        tensor: object
        others: dict

    def kernel(held, pair):
        tile = load(held.tensor)
        for other in (held.others["a"], pair[1]):
            nisa.tensor_tensor(dst=tile, data1=tile, data2=load(other), op=nl.add)
        return store(tile)

    held = Held(ramp(), {"a": ramp() + 1, "n": 3})
    np.testing.assert_array_equal(nki.jit(kernel)(held, (0, ramp() * 2)), ramp() * 4 + 1)
    # The caller's object is as it was.
    assert isinstance(held.tensor, np.ndarray)


# Values of the device have none.


def used(how):
    def kernel(x):
        tile = load(x)
        register = nisa.register_alloc(3)
        how(tile, register)
        return store(tile)

    return nki.jit(kernel)


@pytest.mark.parametrize(
    "how",
    [
        lambda tile, register: bool(register),
        lambda tile, register: int(register),
        lambda tile, register: range(register),
        lambda tile, register: [0, 1][register],
        lambda tile, register: list(register),
        lambda tile, register: float(register),
        lambda tile, register: register + 1,
        lambda tile, register: 1 - register,
        lambda tile, register: register < 3,
        lambda tile, register: tile * 2,
        lambda tile, register: np.float32(2) * tile,
        lambda tile, register: np.asarray(tile),
        lambda tile, register: -tile,
        lambda tile, register: list(tile),
        lambda tile, register: int(tile),
    ],
)
def test_values_of_the_device_are_no_values_of_python(how):
    with pytest.raises(TypeError) as info:
        used(how)(ramp())
    assert isinstance(info.value, nki_sim.KernelError) and info.value.file == __file__


def test_a_register_is_no_bound_of_range():
    with pytest.raises(TypeError, match="nl.fori_loop takes it as a bound"):
        used(lambda tile, register: range(register))(ramp())


def test_a_register_is_no_condition_of_python():
    def kernel(x):
        if nisa.register_alloc(1):
            return store(load(x))

    with pytest.raises(TypeError, match="while_loop"):
        nki.jit(kernel)(ramp())


def test_attributes_and_classes():
    def kernel(x):
        tile = load(x)
        assert tile.shape == (4, 8) and tile.dtype == nl.float32 == np.float32 and tile.buffer == nl.sbuf
        assert x.buffer == nl.hbm and tile.buffer is not nl.psum and tile.ndim == 2
        assert isinstance(tile, nl.NkiTensor) and not isinstance(nisa.register_alloc(), nl.NkiTensor)
        assert not hasattr(tile, "nothing") and getattr(tile, "nothing", 3) == 3
        assert isinstance(nisa.register_alloc(), nisa.VirtualRegister)
        assert tile in [tile] and tile != load(x) and {tile: 1}[tile] == 1
        assert nisa.get_nc_version() >= nisa.nc_version.gen3
        assert nl.tile_size.pmax == 128 and callable(nl.ndarray)
        assert not isinstance(3, nl.NkiTensor) and repr(tile).startswith("<tensor tile")
        assert tile.reshape((4, 2, 4)).shape == (4, 2, 4) and tile[0:2, 0].shape == (2, 1)
        return store(tile)

    np.testing.assert_array_equal(nki.jit(kernel)(ramp()), ramp())


def test_an_unknown_attribute_names_the_nearest():
    with pytest.raises(AttributeError, match="did you mean `reshape`"):
        used(lambda tile, register: tile.reshap((4, 8)))(ramp())
    with pytest.raises(AttributeError, match="tensor_copy"):
        used(lambda tile, register: nisa.tensor_cpy)(ramp())


# Errors.


def test_a_place_is_that_of_the_call():
    def kernel(x):
        tile = load(x)
        for i in range(2):
            nisa.tensor_copy(
                dst=tile[0:2, :],
                src=tile[0:4, :],
            )

    with pytest.raises(nisa.NkiValidationError) as info:
        nki.jit(kernel)(ramp())
    first = kernel.__code__.co_firstlineno
    # At the operand, which is on a line of its own.
    assert info.value.line == first + 4 and "dst=tile[0:2, :]" in str(info.value)


def test_an_exception_of_python_is_a_finding_with_its_place():
    def helper(x):
        return [1, 2][x.shape[0]]

    def kernel(x):
        return helper(x)

    with pytest.raises(IndexError, match="list index out of range") as info:
        nki.jit(kernel)(ramp())
    assert info.value.slug == "index-out-of-range" and info.value.line == helper.__code__.co_firstlineno + 1
    assert "in this call of `helper`" in str(info.value) and isinstance(info.value.original, IndexError)
    # One traceback: this function, then the kernel and what it calls.
    assert info.value.__cause__ is None and [entry.name for entry in info.traceback] == ["test_an_exception_of_python_is_a_finding_with_its_place", "kernel", "helper"]


class OwnError(Exception):
    def __init__(self, number, text):
        super().__init__(text)
        self.number = number


def test_an_exception_of_ones_own_passes():
    def kernel(x):
        raise OwnError(3, "mine")

    with pytest.raises(OwnError, match="mine"):
        nki.jit(kernel)(ramp())


def test_an_exception_leaves_a_clean_state():
    def kernel(x, fails):
        tile = load(x)

        def body(i):
            if fails:
                raise KeyError("in the body")
            nisa.tensor_copy(dst=tile, src=tile)

        nl.fori_loop(0, 2, body)
        return store(tile)

    made = nki.jit(kernel)
    want = made.compile(ramp(), False).text()
    made = nki.jit(kernel)
    for _ in range(2):
        with pytest.raises(KeyError, match="in the body"):
            made(ramp(), True)
        assert made.compile(ramp(), False).text() == want
        assert not nki_sim._native.is_tracing()


def test_a_dynamic_loop_ends_where_it_ends():
    def leaves(x):
        tile = load(x)
        for i in nl.dynamic_range(8):
            nisa.tensor_copy(dst=tile, src=tile)
            break
        return store(tile)

    with pytest.raises(nki_sim.KernelError, match="left before the end of its body"):
        nki.jit(leaves)(ramp())

    def raises(x):
        tile = load(x)
        try:
            for i in nl.dynamic_range(8):
                scaled(tile, 3.0)
                raise ValueError
        except ValueError:
            pass
        return store(tile)

    # What failed leaves nothing.
    np.testing.assert_array_equal(nki.jit(raises)(ramp()), ramp())


def test_what_a_device_loop_does_not_carry():
    def kernel(x):
        old, new = load(x), nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
        count = total = unread = 0
        for i in nl.dynamic_range(3):
            count += 1
            unread += 1
            nisa.tensor_scalar(dst=new, data=old, op0=nl.add, operand0=float(count))
            old, new = new, old

        def body(i):
            nonlocal total
            total += 2
            nisa.tensor_scalar(dst=old, data=old, op0=nl.add, operand0=float(total))

        nl.fori_loop(0, 3, body)
        return store(old)

    said = "".join(warned(lambda: nki.jit(kernel)(ramp())))
    assert all(said.count(f"`{name}` {what}") == 1 for name, what in [
        ("count", "is assigned in a loop"), ("old", "is assigned in a loop"), ("total", "of a function around it")
    ])
    assert "`unread`" not in said


def test_what_escapes_a_kernel_says_so():
    kept = []

    def kernel(x):
        tile = load(x)
        kept.extend([tile, tile.reshape, nisa.register_alloc()])
        return store(tile)

    nki.jit(kernel)(ramp())
    for use in (
        lambda: kept[0].shape,
        lambda: kept[0][0:1],
        lambda: kept[1]((2, 4)),
        lambda: kept[2] + 1,
        lambda: bool(kept[2]),
        lambda: isinstance(kept[0], nl.NkiTensor),
    ):
        with pytest.raises(nki_sim.OutsideKernelError, match="outside of the kernel"):
            use()
    assert "specialised" in repr(kept[0])

    def again(x):
        return store(kept[0])

    with pytest.raises(nki_sim.OutsideKernelError):
        nki.jit(again)(ramp())


def test_an_instruction_outside_of_a_kernel_is_refused():
    with pytest.raises(nki_sim.OutsideKernelError, match="nki.isa.dma_copy was called outside of a kernel"):
        nisa.dma_copy(dst=None, src=None)
    with pytest.raises(nki_sim.OutsideKernelError):
        nl.NkiTensor()


def test_odd_arguments():
    def kernel(tile, register):
        nisa.memset(tile, value=float("nan"))

    assert np.isnan(used(kernel)(ramp())).all()
    cyclic = []
    cyclic.append(cyclic)
    for value in (1 << 80, cyclic, object(), [object()], {1, 2}, "x" * 100, 1j):
        with pytest.raises(nki_sim.KernelError, match="operand0"):
            used(lambda tile, register: scaled(tile, value))(ramp())
    with pytest.raises(nki_sim.ArgumentError):
        nki.jit(partials)(np.zeros((0, 4), np.float32))
    np.testing.assert_array_equal(used(lambda tile, register: scaled(tile, np.float32(2)))(ramp()), ramp() * 2)
    np.testing.assert_array_equal(used(lambda tile, register: scaled(tile, np.int64(2)))(ramp()), ramp() * 2)


# Threads and traces inside of traces.


def test_threads_trace_at_once():
    results = {}
    meet = threading.Barrier(4)

    def run(number):
        def kernel(x):
            tile = load(x)
            for _ in range(20):
                meet.wait(30)
                scaled(tile, 1.0)
            return store(scaled(tile, float(number)))

        results[number] = nki.jit(kernel)(ramp())

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(results[number], ramp() * number)


def test_a_value_belongs_to_the_thread_of_its_kernel():
    def kernel(x):
        tile = load(x)
        caught = []

        def use():
            try:
                scaled(tile, 2.0)
            except nki_sim.OutsideKernelError as error:
                caught.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert caught
        return store(tile)

    np.testing.assert_array_equal(nki.jit(kernel)(ramp()), ramp())


def test_a_trace_inside_of_a_trace():
    texts = []

    def inner(x):
        return store(scaled(load(x), 3.0))

    def outer(x):
        tile = load(x)
        texts.append(nki.trace(nki.jit(inner)).specialize(ramp(2, 2)).text())
        return store(scaled(tile, 2.0))

    np.testing.assert_array_equal(nki.jit(outer)(ramp()), ramp() * 2)
    assert texts == [nki.jit(inner).compile(ramp(2, 2)).text()]


# The cache.

SCALE = 2.0
TABLE = {"scale": [2.0]}


def uses_a_global(x):
    return store(scaled(load(x), SCALE))


def uses_a_table(x):
    return store(scaled(load(x), TABLE["scale"][0]))


def helper_with_a_default(tile, by=2.0):
    return scaled(tile, by)


def calls_a_helper(x):
    return store(helper_with_a_default(load(x)))


def traced(kernel, *args):
    """The result, and whether the kernel was traced for it."""
    before = len(kernel._cache)
    result = kernel(*args)
    return result[0, 1], len(kernel._cache) > before


def test_a_changed_global_is_traced_again(monkeypatch):
    kernel = nki.jit(uses_a_global)
    assert traced(kernel, ramp()) == (2, True)
    assert traced(kernel, ramp()) == (2, False)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert traced(kernel, ramp()) == (3, True)
    kernel = nki.jit(uses_a_table)
    assert traced(kernel, ramp()) == (2, True)
    monkeypatch.setitem(TABLE, "scale", [2.0])
    assert traced(kernel, ramp()) == (2, False)
    TABLE["scale"][0] = 5.0
    assert traced(kernel, ramp()) == (5, True)


def test_a_changed_closure_is_traced_again():
    by = 2.0

    def kernel(x):
        return store(scaled(load(x), by))

    made = nki.jit(kernel)
    assert traced(made, ramp()) == (2, True)
    assert traced(made, ramp()) == (2, False)
    by = 4.0
    assert traced(made, ramp()) == (4, True)


def test_changed_code_is_traced_again(monkeypatch):
    kernel = nki.jit(calls_a_helper)
    assert traced(kernel, ramp()) == (2, True)
    monkeypatch.setattr(helper_with_a_default, "__defaults__", (3.0,))
    assert traced(kernel, ramp()) == (3, True)
    monkeypatch.setattr(helper_with_a_default, "__code__", (lambda tile, by=1: scaled(tile, 6.0)).__code__)
    assert traced(kernel, ramp()) == (6, True)
    monkeypatch.setattr(Base, "factor", 3.0)
    monkeypatch.setattr(Derived, "factor", 3.0)
    kernel = nki.jit(classes)
    assert traced(kernel, ramp()) == (9, True)
    monkeypatch.setattr(Derived, "factor", 4.0)
    assert traced(kernel, ramp()) == (16, True)
    monkeypatch.setattr(Derived, "run", lambda self, tile: scaled(tile, 7.0))
    assert traced(kernel, ramp()) == (7, True)


def test_a_module_is_read_attribute_by_attribute():
    module = types.ModuleType("settings_of_a_test")
    module.by, module.other = 2.0, 1

    def kernel(x):
        return store(scaled(load(x), module.by))

    made = nki.jit(kernel)
    assert traced(made, ramp()) == (2, True)
    module.other = 2
    assert traced(made, ramp()) == (2, False)
    module.by = 3.0
    assert traced(made, ramp()) == (3, True)


def test_arguments_are_part_of_the_key():
    def kernel(x, by):
        return store(scaled(load(x), by if isinstance(by, float) else by()))

    made = nki.jit(kernel)
    assert traced(made, ramp(), 2.0) == (2, True)
    assert traced(made, ramp(), 3.0) == (3, True)
    assert traced(made, ramp(), 2.0) == (2, False)
    two = functools.partial(float, 2)
    assert traced(made, ramp(), two) == (2, True)
    assert traced(made, ramp(), two) == (2, False)
    assert made(ramp(dtype=np.float16), 2.0).dtype == np.float16


def test_a_name_that_appears_is_seen(monkeypatch):
    def kernel(x):
        try:
            by = LATER  # noqa: F821
        except NameError:
            by = 2.0
        return store(scaled(load(x), by))

    made = nki.jit(kernel)
    assert traced(made, ramp()) == (2, True)
    monkeypatch.setitem(globals(), "LATER", 3.0)
    assert traced(made, ramp()) == (3, True)


# Choice of the frontend.


def test_the_variable_chooses_the_frontend(monkeypatch):
    kernel = nki.jit(generators)
    for name in ("custom", "parser"):
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", name)
        made = nki.jit(lambda_free)
        np.testing.assert_array_equal(made(ramp()), ramp())
        assert made._has_source
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "tracer")
    np.testing.assert_array_equal(kernel(ramp()), ramp() * 2)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "other")
    with pytest.raises(ValueError, match="custom"):
        kernel(ramp())


def lambda_free(x):
    return store(load(x))


def test_printing_happens_while_the_kernel_is_traced(capsys):
    def kernel(x):
        tile = load(x)
        print(tile, "of", x.shape)
        return store(tile)

    made = nki.jit(kernel)
    for _ in range(2):
        made(ramp())
    assert capsys.readouterr().out == "<tensor tile (4, 8) float32 sbuf> of (4, 8)\n"


# The surface.


def test_simulate_kernel_as_harnesses_call_it():
    import nki.simulator

    def increments(x, by, out=None):
        tile = load(x)
        scaled(tile, by)
        nisa.dma_copy(dst=x, src=tile)
        return x, store(tile)

    shapes = nki.simulator.simulate_kernel(nki.jit(increments), (), {"x": np.ones((4, 8), np.float32), "by": 2.0}, lnc=1)
    assert [a.shape for a in shapes] == [(4, 8), (4, 8)]
    memory = ramp().astype(np.float32).view(np.uint8)
    view = memory.view(np.float32)
    changed, copy = nki.simulator.simulate_kernel(increments, (view,), {"by": 2.0}, lnc=(1,))
    assert changed is view
    np.testing.assert_array_equal(memory.view(np.float32), ramp() * 2)
    np.testing.assert_array_equal(copy, ramp() * 2)


def test_the_variable_gives_the_number_of_cores(monkeypatch):
    kernel = nki.jit(by_core)
    assert kernel.lnc == 1
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    want = ramp() * np.array([[1], [1], [10], [10]])
    np.testing.assert_array_equal(kernel(ramp()), want)
    np.testing.assert_array_equal(kernel[1](ramp()), ramp())
    assert nki.trace(kernel).specialize(ramp()).text().count("core {") == 2
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "3")
    with pytest.raises(ValueError, match="NEURON_LOGICAL_NC_CONFIG"):
        kernel(ramp())


def test_the_configurations_of_nested_kernels_agree(frontend):
    from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig

    one = CompileConfig(prefetch_auto=True, address_rotation=AddressRotation.enabled)

    @nki.jit(compile_config=CompileConfig(prefetch_auto=True, address_rotation=AddressRotation.enabled))
    def inner(tile):
        return scaled(tile, 2.0)

    def outer(x):
        return store(inner(load(x)))

    np.testing.assert_array_equal(nki.jit(outer, compile_config=one)(ramp()), ramp() * 2)
    for other in (CompileConfig(), None, CompileConfig(prefetch_auto=True)):
        with pytest.raises(nki_sim.KernelError, match="compile_config") as caught:
            nki.jit(outer, compile_config=other)(ramp())
        assert caught.value.slug == "kernel-config"
    assert "address_rotation" in str(caught.value) and "prefetch_auto" not in str(caught.value).splitlines()[0]
    lenient = nki.jit(compile_config=CompileConfig(), specialization_config=SpecializationConfig(allow_nested_config_override=True))(outer)
    with pytest.warns(nki_sim.KernelWarning, match="compile_config"):
        np.testing.assert_array_equal(lenient(ramp()), ramp() * 2)

    # The defaults of the manual are what no configuration has.
    @nki.jit(compile_config=CompileConfig(prefetch_auto=False, nki_alloc_fallback=True))
    def default(tile):
        return scaled(tile, 3.0)

    @nki.jit
    def plain(x):
        return store(default(load(x)))

    np.testing.assert_array_equal(plain(ramp()), ramp() * 3)


WEIGHTS = np.ones((4, 8), np.float32)


def uses_an_array(x):
    tile = load(x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=load(nl.shared_constant(WEIGHTS)), op=nl.add)
    return store(tile)


def test_a_changed_array_is_traced_again(monkeypatch):
    kernel = nki.jit(uses_an_array)
    assert traced(kernel, ramp()) == (2, True)
    assert traced(kernel, ramp()) == (2, False)
    monkeypatch.setitem(globals(), "WEIGHTS", WEIGHTS.copy())
    assert traced(kernel, ramp()) == (2, False)
    WEIGHTS[0, 1] = 5.0
    assert traced(kernel, ramp()) == (6, True)
    monkeypatch.setitem(globals(), "WEIGHTS", np.broadcast_to(np.float32(2), (4, 8)))
    assert traced(kernel, ramp()) == (3, True)


def test_iterations_are_those_of_the_evaluator(monkeypatch):
    """Whatever an iteration jumps over."""

    def kernel(x):
        tile, other = load(x), load(x)
        for i in range(6):
            nisa.tensor_copy(tile[0:1], other[0:1]) if i % 2 else nisa.tensor_copy(other[0:1], tile[0:1])
            if i == 1:
                continue
            try:
                if i == 2:
                    raise ValueError
                nisa.tensor_copy(dst=tile[0:2], src=(other if i % 3 else tile)[0:2])
            except ValueError:
                nisa.tensor_copy(dst=other[0:2], src=tile[0:2])
            for j in range(2):
                if i > 3 and j:
                    break
                nisa.tensor_copy(tile, other)
                nisa.tensor_copy(other[0:1, 0:1], tile[0:1, 0:1])
            if i == 4:
                nisa.tensor_copy(other, tile)
        return store(tile)

    texts = []
    for frontend in ("tracer", "parser"):
        monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
        texts.append(nki.jit(kernel).compile(ramp()).text())
    assert texts[0] == texts[1]


# State that the kernel itself or its caller changes.


@dataclasses.dataclass(slots=True)
class Slotted:
    by: float = 2.0


class Answering:
    """Has every attribute."""

    def __init__(self, by):
        self.by = by

    def __getattr__(self, name):
        return 0.0

    def get(self):
        return self.by


class Attributes(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


class Sequence(list):
    by = 2.0


def set_by(holder, value):
    holder.by = value


def set_item(holder, value):
    holder[0] = type(holder[0])(value)


HOLDERS = {
    "namespace": (types.SimpleNamespace(by=2.0), lambda h: h.by, set_by),
    "arguments": (argparse.Namespace(by=2.0), lambda h: h.by, set_by),
    "slots": (Slotted(), lambda h: h.by, set_by),
    "answers every name": (Answering(2.0), lambda h: h.by, set_by),
    "dict with attributes": (Attributes(by=2.0), lambda h: h.by, set_by),
    "list with attributes": (Sequence(), lambda h: h.by, set_by),
    "user list": (collections.UserList([2.0]), lambda h: h[0], set_item),
    "deque": (collections.deque([2.0]), lambda h: h[0], set_item),
    "array": (array.array("d", [2.0]), lambda h: h[0], set_item),
    "bytearray": (bytearray([2]), lambda h: float(h[0]), set_item),
    "partial": (functools.partial(max, [2.0]), lambda h: h(), lambda h, value: set_item(h.args[0], value)),
    "bound method": (Answering(2.0).get, lambda h: h(), lambda h, value: set_by(h.__self__, value)),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_a_changed_object_is_traced_again(name):
    holder, get, change = HOLDERS[name]

    def of_a_closure(x):
        return store(scaled(load(x), get(holder)))

    def of_an_argument(x, given):
        return store(scaled(load(x), get(given)))

    for made, more in ((nki.jit(of_a_closure), ()), (nki.jit(of_an_argument), (holder,))):
        change(holder, 2.0)
        assert traced(made, ramp(), *more) == (2, True)
        assert traced(made, ramp(), *more) == (2, False)
        change(holder, 3.0)
        assert traced(made, ramp(), *more) == (3, True)


def test_a_read_only_view_shows_changes():
    table = {"by": 2.0}
    view = types.MappingProxyType(table)
    made = nki.jit(lambda x: store(scaled(load(x), view["by"])))
    assert traced(made, ramp()) == (2, True)
    table["by"] = 3.0
    assert traced(made, ramp()) == (3, True)


def test_a_file_may_have_the_name_of_a_module_of_the_library(tmp_path, monkeypatch):
    (tmp_path / "colorsys.py").write_text("BY = 2.0\n\ndef factor():\n    return BY\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    module = importlib.import_module("colorsys")
    try:
        made = nki.jit(lambda x: store(scaled(load(x), module.factor())))
        assert traced(made, ramp()) == (2, True)
        assert traced(made, ramp()) == (2, False)
        module.BY = 3.0
        assert traced(made, ramp()) == (3, True)
    finally:
        sys.modules.pop("colorsys", None)


COUNT = 0


def counts_in_a_global(x):
    global COUNT
    COUNT += 1
    return store(scaled(load(x), float(COUNT)))


def test_a_kernel_that_changes_a_global_runs_at_each_call(monkeypatch):
    made = nki.jit(counts_in_a_global)
    for before in (0, 1, 1, 7, 0):
        monkeypatch.setitem(globals(), "COUNT", before)
        assert made(ramp())[0, 1] == COUNT == before + 1
    assert len(made._cache) == 0


def test_a_kernel_that_changes_what_it_reads_runs_at_each_call():
    cell, items, attribute = 0, [0.0], Answering(0.0)

    def of_a_cell(x):
        nonlocal cell
        cell += 1
        return store(scaled(load(x), float(cell)))

    def of_a_list(x):
        items[0] += 1
        return store(scaled(load(x), items[0]))

    def of_an_object(x, given):
        given.by += 1
        return store(scaled(load(x), given.by))

    def of_a_default(x, seen=[]):  # noqa: B006
        seen.append(1)
        return store(scaled(load(x), float(len(seen))))

    kernels_and_more = ((of_a_cell, ()), (of_a_list, ()), (of_an_object, (attribute,)), (of_a_default, ()))
    for kernel, more in kernels_and_more:
        made = nki.jit(kernel)
        assert [made(ramp(), *more)[0, 1] for _ in range(3)] == [1, 2, 3]
    cell, items[0], attribute.by = 1, 1.0, 1.0
    for kernel, more in kernels_and_more[:3]:
        assert nki.jit(kernel)(ramp(), *more)[0, 1] == 2

    todo = [2.0, 3.0]

    def takes_all(x):
        tile = load(x)
        while todo:
            scaled(tile, todo.pop())
        return store(tile)

    made = nki.jit(takes_all)
    assert made(ramp())[0, 1] == 6 and made(ramp())[0, 1] == 1
    todo.append(5.0)
    assert made(ramp())[0, 1] == 5


def test_an_iterator_is_read_at_each_call():
    def kernel(x, factors):
        tile = load(x)
        for by in factors:
            scaled(tile, by)
        return store(tile)

    made, factors = nki.jit(kernel), iter([2.0, 3.0])
    assert [made(ramp(), factors)[0, 1] for _ in range(2)] == [6, 1]
    assert made(ramp(), (by for by in [5.0]))[0, 1] == 5


def test_a_tile_may_be_left_in_an_argument():
    def in_an_attribute(x, holder):
        holder.tile = scaled(load(x), holder.by)
        return store(holder.tile)

    def in_a_dict(x, holder):
        holder["tile"] = load(x)
        return store(scaled(holder["tile"], 2.0))

    def in_a_list(x, holder):
        holder.append(load(x))
        return store(scaled(holder[-1], 2.0))

    for kernel, make in ((in_an_attribute, lambda: types.SimpleNamespace(by=2.0, tile=None)), (in_a_dict, dict), (in_a_list, list)):
        made, kept = nki.jit(kernel), make()
        for _ in range(3):
            assert made(ramp(), make())[0, 1] == made(ramp(), kept)[0, 1] == 2
    made, kept = nki.jit(in_an_attribute), types.SimpleNamespace(by=2.0)
    assert traced(made, ramp(), kept)[0] == 2
    made(ramp(), kept)
    assert traced(made, ramp(), kept) == (2, False)
    kept.by = 3.0
    assert traced(made, ramp(), kept) == (3, True)
    np.testing.assert_array_equal(nki.jit(in_a_dict)[2](ramp(), {}), ramp() * 2)


def test_both_cores_get_the_same_arguments():
    def takes_one(x, factors):
        return store(scaled(load(x), factors.pop()))

    def takes_all(x, factors):
        tile = load(x)
        for by in factors:
            scaled(tile, by)
        return store(tile)

    with pytest.warns(nki_sim.KernelWarning, match="takes_one changes its argument `factors`: .* core 1"):
        nki.jit(takes_one)[2](ramp(), [2.0, 3.0])
    for factors in (iter([2.0]), (by for by in [2.0]), map(float, [2])):
        with pytest.raises(nki_sim.ArgumentTypeError, match="argument `factors` .* iterator, .* core 1; pass a list"):
            nki.jit(takes_all)[2](ramp(), factors)
    np.testing.assert_array_equal(nki.jit(takes_all)[2](ramp(), [2.0]), ramp() * 2)


def test_named_tuples_come_back():
    def kernel(x):
        return Point(store(load(x)), [Point(store(load(x)), (store(load(x)),)), {"a": Point(store(load(x)), None)}])

    made = nki.jit(kernel)
    for caller in (made, made, nki.simulate(made), nki.simulate(made, eager=True), lambda x: nki_sim.simulate_ranks(made, 1)(x)[0]):
        got = caller(ramp())
        assert type(got) is Point and type(got.y) is list and type(got.y[0]) is Point and type(got.y[0].y) is tuple
        assert type(got.y[1]["a"]) is Point and got.y[1]["a"].y is None
        np.testing.assert_array_equal(got.y[0].x, ramp())


def test_exceptions_whose_classes_take_other_arguments():
    def decodes(x):
        b"a\xff".decode()

    with pytest.raises(UnicodeDecodeError, match="can't decode byte 0xff") as info:
        nki.jit(decodes)(ramp())
    assert isinstance(info.value, nki_sim.KernelError) and info.value.start == 1 and info.value.encoding == "utf-8"
    assert info.value.line == decodes.__code__.co_firstlineno + 1
    again = pickle.loads(pickle.dumps(info.value))
    assert type(again) is type(info.value) and str(again) == str(info.value)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no exception groups")
def test_a_group_of_exceptions_passes():
    def raises(x):
        raise ExceptionGroup("both", [ValueError("a"), KeyError("b")])  # noqa: F821

    with pytest.raises(ExceptionGroup, match="both") as info:  # noqa: F821
        nki.jit(raises)(ramp())
    assert [type(one) for one in info.value.exceptions] == [ValueError, KeyError]


def caught(kernel):
    """Findings `caught-error` of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = nki.jit(kernel)(ramp())
    return result, [str(w.message) for w in found if "caught-error" in str(w.message)]


def catches_a_refusal(x):
    tile = load(x)
    for first in (0, 6):
        try:
            nisa.tensor_copy(dst=tile[:, nl.ds(first, 4)], src=tile[:, 0:4])
        except Exception:
            pass
    return store(tile)


def catches_its_own(x):
    try:
        {}["k"]
    except KeyError:
        by = 2.0
    try:
        raise RuntimeError("mine")
    except RuntimeError:
        by *= 2
    tile = load(x)
    if not hasattr(tile, "nothing") and getattr(tile, "none", None) is None:
        scaled(tile, by)
    return store(tile)


def test_a_refusal_that_a_kernel_catches_is_a_warning(frontend):
    result, found = caught(catches_a_refusal)
    assert len(found) == 1 and "out-of-bounds" in found[0] and "nl.ds(first, 4)" in found[0], found
    np.testing.assert_array_equal(result, ramp())
    result, found = caught(catches_its_own)
    assert not found
    np.testing.assert_array_equal(result, 4 * ramp())
    with pytest.raises(nki_sim.KernelError, match="caught-error"):
        nki.simulate(catches_a_refusal, deny="caught-error")(ramp())


@contextlib.contextmanager
def scratch(shape, value):
    tile = nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=value)
    yield tile


def uses_contexts(x):
    tiles = {}
    with scratch(x.shape, 3.0) as tile, scratch(x.shape, 2.0) as other:
        tiles[0], tiles[1, "b"] = tile, other
    nisa.tensor_tensor(dst=tiles[0], data1=tiles[0], data2=tiles[1, "b"], op=nl.multiply)
    return store(tiles[0])


def test_generators_are_contexts_and_keys_are_any(frontend):
    np.testing.assert_array_equal(nki.jit(uses_contexts)(ramp()), np.full((4, 8), 6.0, np.float32))


@pytest.mark.parametrize("function, instead", [(abs, "nl.abs"), (round, "nl.floor"), (lambda tile: round(tile, 2), "nl.floor")])
def test_functions_of_numbers_name_what_a_tile_has(function, instead):
    def kernel(x):
        return function(nl.load(x))

    with pytest.raises(TypeError, match=instead.replace(".", r"\.")):
        nki.jit(kernel)(ramp())
    with pytest.warns(UserWarning, match="`grid=` has no effect"):
        nki.jit(grid=[2])(kernel)
