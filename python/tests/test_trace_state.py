"""Kernels that Python executes: state that the kernel itself or its caller changes."""

import argparse
import array
import collections
import contextlib
import dataclasses
import functools
import importlib.util
import pickle
import sys
import types
import warnings

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from kernels import load, scaled, store
from test_trace import Point
from test_trace_cache import traced
from tracing import frontend, ramp

import nki_sim


# State that the kernel itself or its caller changes.


@dataclasses.dataclass(slots=True)
class Slotted:
    by: float = 2.0


class Answering:
    """An object with every attribute."""

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
    """The `caught-error` findings of a call."""
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
