"""Kernels that Python executes: the cache, the choice of the frontend, and the interface of values in a kernel."""

import enum
import functools
import types

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from kernels import load, scaled, store
from test_trace import Base, Derived, by_core, classes, generators
from tracing import frontend, parser, ramp

import nki_sim


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
    """The result, and whether the kernel was traced for this call."""
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


# The interface of values.


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

    # The manual's defaults are equivalent to no configuration.
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


class Mode(enum.Enum):
    FAST = 1
    LISTED = [2.0]


class Registry(type):
    pass


class Registered(metaclass=Registry):
    pass


def of_itself():
    return of_itself.by


OBJECTS = np.empty(2, dtype=object)


def factor_of(holder):
    return {
        "function": lambda: of_itself(),
        "member": lambda: Mode.FAST.by,
        "value": lambda: Mode.LISTED.value[0],
        "objects": lambda: OBJECTS[1][0],
        "metaclass": lambda: Registered.by,
    }[holder]


@pytest.mark.parametrize("holder", ["function", "member", "value", "objects", "metaclass"])
def test_a_change_in_any_object_is_traced_again(holder):
    def hold(by):
        of_itself.by = Mode.FAST.by = Registry.by = Mode.LISTED.value[0] = by
        if OBJECTS[1] is None:
            OBJECTS[1] = [by]
        OBJECTS[1][0] = by

    factor = factor_of(holder)
    kernel = nki.jit(lambda x: store(scaled(load(x), factor())))
    hold(2.0)
    assert traced(kernel, ramp()) == (2, True)
    assert traced(kernel, ramp()) == (2, False)
    hold(3.0)
    assert traced(kernel, ramp()) == (3, True)
    assert traced(kernel, ramp()) == (3, False)


def test_iterations_are_those_of_the_evaluator(monkeypatch):
    """Whatever code an iteration skips."""

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


def test_the_program_that_was_not_used_for_longest_is_dropped(frontend):
    kernel = nki.jit(uses_a_global)

    def program(columns):
        return kernel._compile(kernel.bind(np.ones((4, columns), np.float32))).serial()

    first, second = program(1), program(2)
    for columns in range(3, 65):
        program(columns)
    assert program(1) == first
    program(65)
    assert program(1) == first and program(2) != second
