"""Kernels that Python executes: both frontends build the same program, and some kernels only Python can run."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import importlib.util
import itertools
import json
import math
import typing
from functools import partial

import cases
import kernels
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from kernels import load, scaled, store
from nki.isa import dma_copy as copy_alias
from tracing import parser, ramp

import nki_sim

from conftest import ROOT, statements


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


# Kernels that only Python can run.


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
    # The caller's object is unchanged.
    assert isinstance(held.tensor, np.ndarray)


# Device data has no values while a kernel is specialised.


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
