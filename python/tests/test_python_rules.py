"""Rules of Python that kernels rely on hold in both front ends."""

import functools
import linecache
import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from findings import warned
from kernels import load, store
from tracing import frontend, ramp  # noqa: F401

import nki_sim

pytestmark = pytest.mark.usefixtures("frontend")


class Term:
    """A term in a buffer that all terms share, so that the order of the instructions matters."""

    def __init__(self, tile):
        self.tile = tile

    def __add__(self, other):
        nisa.tensor_tensor(dst=self.tile, data1=self.tile, data2=other.tile, op=nl.add)
        return self

    def __mul__(self, other):
        nisa.tensor_tensor(dst=self.tile, data1=self.tile, data2=other.tile, op=nl.multiply)
        return self


@nki.jit
def combined(x, product=False):
    tile, total = load(x), load(x)
    buffer = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)

    def term(i):
        nisa.tensor_scalar(dst=buffer, data=tile, op0=nl.multiply, operand0=float(i))
        return Term(buffer)

    terms = (term(i) for i in (1, 2))
    return store((math.prod(terms, start=Term(total)) if product else sum(terms, Term(total))).tile)


def test_sums_and_products_combine_each_item_as_it_is_drawn():
    np.testing.assert_array_equal(combined(ramp()), ramp() * 4)
    np.testing.assert_array_equal(combined(ramp(), True), 2 * ramp() ** 3)


@nki.jit
def largest(x):
    """The largest of three terms, each in the same buffer when it is compared."""
    tile = load(x)

    def scaled(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(i))
        return -i

    assert max((3, 1, 2), key=scaled) == 1 and min(iter((3, 1, 2)), key=scaled) == 3
    return store(tile)


def test_extrema_call_the_key_for_each_item():
    np.testing.assert_array_equal(largest(ramp()), ramp() + 12)


@nki.jit
def from_pairs(x, spec=("scale", 3.0, "shift", 2.0)):
    it = iter(spec)
    params = {next(it): next(it) for _ in range(2)}
    tile = load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=params["scale"], op1=nl.add, operand1=params["shift"])
    return store(tile)


def test_a_dict_comprehension_evaluates_the_key_first():
    np.testing.assert_array_equal(from_pairs(ramp()), ramp() * 3 + 2)


def stage(order, name):
    order.append(name)
    number = len(order)

    def decorate(f):
        def inner(tile):
            f(tile)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=float(number), op1=nl.add, operand1=1.0)

        return inner

    return decorate


@nki.jit
def decorated(x):
    order = []

    @stage(order, "a")
    @stage(order, "b")
    def body(tile, default=order.append("default")):
        pass

    assert order == ["a", "b", "default"]
    tile = load(x)
    body(tile)
    return store(tile)


def test_decorators_are_evaluated_from_top_to_bottom():
    np.testing.assert_array_equal(decorated(ramp()), (ramp() * 2 + 1) * 1 + 1)


class Extent:
    def __init__(self, n):
        self.n = n

    def __divmod__(self, step):
        return self.n // step, self.n % step


def as_list(value):
    try:
        return list(iter(value))
    except TypeError:
        return [value]


@functools.singledispatch
def kind(value):
    return type(value).__name__


@kind.register(nl.NkiTensor)
def _(value):
    return "a tensor"


def classes(x):
    tile, register = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf), nisa.register_alloc(1)
    step = nisa.dma_copy(dst=tile, src=x)
    grid = nl.tiles(x, tile_shape=(2, 4))
    assert divmod(Extent(16), 5) == (3, 1)
    assert len(as_list(tile) + as_list([tile, tile])) == 3 and len(as_list(nl.int8)) == 1
    assert type(tile) is type(x) is nl.NkiTensor and type(tile) == type(tile[:, 1:]) and type(tile).__name__ == "NkiTensor"
    assert type(register) is nisa.VirtualRegister and type(step) is nisa.NkiInstruction and type(grid) is nl.NkiTileGrid
    assert [isinstance(v, nl.NKIObject) for v in (tile, register, step, grid, 3)] == [True, True, True, False, False]
    assert issubclass(nl.NkiTileGrid, nl.NkiGrid) and issubclass(nl.NkiTensor, nl.NKIObject) and isinstance(grid, nl.NkiGrid)
    assert not issubclass(nl.NkiTileGrid, nl.NKIObject) and not isinstance(nl.NkiTensor, nl.NKIObject)
    assert {type(tile): 1}[type(x)] == 1
    assert x.dtype in {"float32"} and {"float32": 1}[x.dtype] == 1 and {nl.float32: 2}["float32"] == 2 and f"{x.dtype:>9}|" == "  float32|"
    return store(tile)


def test_classes_and_element_types():
    np.testing.assert_array_equal(nki.jit(classes)(ramp()), ramp())


def test_functions_dispatch_by_the_classes_of_the_api(frontend):  # noqa: F811
    def kernel(x):
        assert kind(x) == "a tensor" and kind(nisa.register_alloc(1)) == "VirtualRegister"
        return store(load(x))

    # The evaluator runs what dispatches only if it reads the file itself.
    if frontend == "tracer":
        np.testing.assert_array_equal(nki.jit(kernel)(ramp()), ramp())


def test_a_class_of_the_api_makes_no_objects():
    with pytest.raises(nki_sim.OutsideKernelError, match="made by the functions of the API"):
        nl.NkiTensor()
    assert issubclass(nisa.NkiInstruction, nl.NKIObject) and nl.tensor is nl.NkiTensor


def test_a_tensor_is_no_float():
    def kernel(x):
        return store(nl.ndarray(x.shape, dtype=float(load(x)[0, 0]), buffer=nl.sbuf))

    with pytest.raises(TypeError, match="a tensor cannot be turned into a float"):
        nki.jit(kernel)(ramp())


class State:
    def __init__(self):
        self.c = 0


@nki.jit
def counted(x, how="list"):
    tile, numbers, named, state = load(x), [0], {"c": 0, "last": None}, State()

    def body(i):
        if how == "list":
            numbers[0] += 1
        elif how == "dict":
            named["c"] += 1
        elif how == "attribute":
            state.c += 1
        elif how == "tile":
            last = named["last"]
            named["last"] = tile
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)

    nl.fori_loop(0, 3, body)
    return store(tile)


ITEMS = {"list": "`numbers[0]`", "dict": "`named['c']`", "attribute": "`state.c`", "tile": "`named['last']`"}


@pytest.mark.parametrize("how", ITEMS)
def test_items_that_the_body_of_a_loop_changes_are_reported(how):
    found = warned(lambda: counted(ramp(), how))
    assert len(found) == 1 and f"the body of this loop changes {ITEMS[how]}, of an object that was made outside of it" in found[0]


def test_a_body_that_changes_nothing_is_not_reported():
    assert warned(lambda: counted(ramp(), "none")) == []


@nki.jit
def ranged(x):
    tile, numbers = load(x), [0]
    for i in nl.dynamic_range(3):
        numbers[0] += 1
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=float(numbers[0]))
    return store(tile)


def test_items_that_a_dynamic_range_changes_are_reported():
    found = warned(lambda: ranged(ramp()))
    assert len(found) == 1 and "`numbers[0]` is assigned in a loop that reads its value from the previous iteration" in found[0]


@nki.jit
def backwards(x):
    tile = load(x)
    nl.fori_loop(4, 0, lambda i: nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0))
    return store(tile)


def test_a_loop_that_never_runs_is_reported():
    found = warned(lambda: backwards(ramp()))
    assert len(found) == 1 and "nl.fori_loop from 4 to 0 never runs" in found[0]


TEXT = """
import nki, nki.isa as nisa, nki.language as nl
def factor(): return 4.0
@nki.jit
def scaled(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor())
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def test_texts_with_the_same_kernel_have_their_own_helpers():
    for number in (4.0, 5.0, 6.0):
        text, scope = TEXT.replace("4.0", str(number)), {}
        exec(text, scope)
        np.testing.assert_array_equal(scope["scaled"](ramp()), ramp() * number)
    for number in (7.0, 8.0):
        name, text, scope = f"<factor {number}>", TEXT.replace("4.0", str(number)), {}
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), scope)
        np.testing.assert_array_equal(scope["scaled"](ramp()), ramp() * number)


def test_a_helper_without_a_text_says_what_it_needs(frontend):  # noqa: F811
    text, scope = TEXT, {}
    exec(text, scope)
    exec("def factor(): return 9.0\n", scope)
    if frontend == "tracer":
        np.testing.assert_array_equal(scope["scaled"](ramp()), ramp() * 9)
        return
    with pytest.raises(nki_sim.KernelError, match="register the text that exec\\(\\) gets in linecache"):
        scope["scaled"](ramp())
