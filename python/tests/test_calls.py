import copy
import functools
import gc
import importlib
import importlib.util
import inspect
import linecache
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import typing
import warnings
import weakref

import helpers
import kernels
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nki_sim


def ramp(rows=4, columns=8, dtype=np.float32):
    return np.arange(rows * columns).reshape(rows, columns).astype(dtype)


@pytest.mark.parametrize("frontend", ["tracer", "parser"])
def test_the_text_of_an_exception_begins_with_the_error(monkeypatch, frontend):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)

    @nki.jit
    def kernel(x):
        t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x)
        nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.divide)
        nisa.tensor_tensor(dst=t, data1=t, data2=t[:, 0:3], op=nl.add)
        return t

    with pytest.raises(nki_sim.KernelError, match=r"^error\[shape-mismatch\](.|\n)*warning\[divide-operator\]") as info:
        kernel(ramp())
    assert [d["id"] for d in info.value.diagnostics] == ["divide-operator", "shape-mismatch"]


@pytest.mark.parametrize(("factor", "shown"), [(2**63, "9223372036854775808"), (10**400, "an integer of 1329 bits")])
def test_an_integer_beyond_64_bits_is_no_operand(factor, shown):
    @nki.jit
    def kernel(x):
        return kernels.store(kernels.scaled(kernels.load(x), factor))

    with pytest.raises(nki_sim.KernelError, match=f"got `{shown}`, which has no value.*\n(.|\n)*does not fit in 64"):
        kernel(ramp())


class Operands(typing.NamedTuple):
    left: np.ndarray
    right: np.ndarray
    factor: float = 2.0


class Results(typing.NamedTuple):
    total: object
    parts: tuple


@pytest.mark.parametrize("frontend", ["tracer", "parser"])
def test_a_named_tuple_holds_arrays_and_results(monkeypatch, frontend):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)

    @nki.jit
    def kernel(pairs):
        first, second = pairs["first"], pairs["rest"][0]
        a, b = kernels.load(first.left), kernels.load(second.right)
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        kernels.scaled(b, first.factor * second.factor)
        return Results(kernels.store(a), (kernels.store(b),))

    for x in (ramp(), ramp() + 5):
        operands = Operands(x, x + 1), Operands(x + 2, x + 3, 0.5)
        total, (part,) = kernel({"first": operands[0], "rest": list(operands[1:])})
        np.testing.assert_array_equal(total, x + (x + 3))
        np.testing.assert_array_equal(part, x + 3)


def test_a_kernel_is_called_in_every_way():
    x, y = ramp(), ramp() + 1
    want = x + y
    for result in (
        kernels.add(x, y),
        kernels.add(y=y, x=x),
        kernels.add[1](x, y),
        kernels.add[(1,)](x, y),
        nki.simulate(kernels.add)(x, y),
        nki.simulate(kernels.add[2])(x, y),
        nki.cpu_simulate(kernels.add)[1](x=x, y=y),
        nki.simulate(kernels.add.func)(x, y),
        nki.jit()(kernels.add.func)(x, y),
        functools.partial(kernels.add, y=y)(x),
        nki_sim.jit(functools.partial(kernels.add.func, y=y))(x),
    ):
        assert isinstance(result, np.ndarray) and result.dtype == np.float32
        np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2, np.int32])
def test_dtypes(dtype):
    got = kernels.scale(ramp(dtype=dtype), 1)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), ramp(dtype=dtype).astype(np.float32))


def test_two_cores_see_their_ids():
    np.testing.assert_array_equal(kernels.cores[2](ramp()), ramp() + np.array([[0], [0], [1], [1]]))
    np.testing.assert_array_equal(kernels.cores(ramp()), ramp())
    with pytest.raises(ValueError, match="1 or 2 physical cores"):
        kernels.cores[3]


def test_a_kernel_looks_like_its_function():
    assert kernels.add.__name__ == "add" and kernels.add.__doc__ == "x + y"
    assert list(inspect.signature(kernels.add).parameters) == ["x", "y"]
    assert kernels.add.func is kernels.add.__wrapped__ is inspect.unwrap(kernels.add)
    assert "nisa.tensor_tensor" in inspect.getsource(kernels.add.func)
    again = pickle.loads(pickle.dumps(nki.cpu_simulate(nki.jit(platform_target="trn3")(kernels.add.func))[2]))
    assert (again.func, again.lnc, again.target) == (kernels.add.func, 2, "trn3")
    configured = nki.jit(kernels.add.func, compile_config=nki.compiler.CompileConfig(prefetch_auto=True), strict=True)
    again = pickle.loads(pickle.dumps(configured))
    assert (again.compile_config, again.strict) == (configured.compile_config, True)
    assert copy.deepcopy(kernels.make_kernel(1.0)) is not None
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        kernels.add(ramp())
    with pytest.raises(nki_sim.ArgumentTypeError, match="z"):
        kernels.add(ramp(), ramp(), z=1)


def test_defaults_and_globals_come_from_live_python(monkeypatch):
    np.testing.assert_array_equal(kernels.scale(ramp()), ramp() * 3)
    np.testing.assert_array_equal(kernels.scale(ramp(), 2.0), ramp() * 2)
    np.testing.assert_array_equal(kernels.with_global(ramp()), ramp() * 8)
    monkeypatch.setattr(kernels, "FACTOR", 10.0)
    np.testing.assert_array_equal(kernels.with_global(ramp()), ramp() * 22)
    monkeypatch.setitem(kernels.TABLE, "double", 1.0)
    np.testing.assert_array_equal(kernels.with_global(ramp()), ramp() * 12)
    monkeypatch.setattr(helpers, "OFFSET", 16.0)
    np.testing.assert_array_equal(kernels.with_global(ramp()), ramp() * 14)
    # The default was evaluated when the kernel was defined.
    np.testing.assert_array_equal(kernels.scale(ramp()), ramp() * 3)


def test_arrays_that_are_no_arguments_are_constants(monkeypatch, tmp_path):
    np.testing.assert_array_equal(kernels.with_constant(ramp()), (ramp() + kernels.ROWS) * 3)
    # A strided array, modified in place and of another type: compiled anew each time.
    changed = np.asfortranarray(kernels.ROWS + 1)
    monkeypatch.setattr(kernels, "ROWS", changed)
    np.testing.assert_array_equal(kernels.with_constant(ramp()), (ramp() + changed) * 4)
    changed[0, 1] = 7
    np.testing.assert_array_equal(kernels.with_constant(ramp()), (ramp() + changed) * 7)
    monkeypatch.setattr(kernels, "ROWS", changed.astype(np.float64))
    with pytest.raises(nki_sim.KernelError, match="float64"):
        kernels.with_constant(ramp())

    path = tmp_path / "constant.npy"
    np.save(path, kernels.ROWS.astype(np.float32))
    np.testing.assert_array_equal(kernels.with_file(ramp(), str(path)), ramp() + changed)
    np.save(path, np.ones_like(changed))
    np.testing.assert_array_equal(kernels.with_file(ramp(), str(path)), ramp() + 1)
    with pytest.raises(nki_sim.KernelError, match="cannot read"):
        kernels.with_file(ramp(), str(tmp_path / "other.npy"))


def test_closures_see_their_variables():
    one, five = kernels.make_kernel(1.0), kernels.make_kernel(5.0)
    np.testing.assert_array_equal(one(ramp()), ramp() + 2)
    np.testing.assert_array_equal(five(ramp()), ramp() + 10)


def test_objects_as_arguments():
    x, y = ramp(), ramp() + 1
    box = kernels.Box(tensor=y)
    assert box.bias == 0.5
    got = kernels.with_config(x, kernels.Config(2.0), box, kernels.Pair(1))
    np.testing.assert_array_equal(got, (x + y) * 7.5)
    got = kernels.with_config(x, kernels.Config(1.0, kernels.Mode.MUL), kernels.Box(y, 1.0), kernels.Pair(0, 0))
    np.testing.assert_array_equal(got, (x * y) * 3)


def test_results_keep_their_shape():
    got = kernels.several(ramp())
    assert list(got) == ["first", "rest"] and isinstance(got["rest"], list) and isinstance(got["rest"][1], tuple)
    assert got["rest"][1][1] is None
    for array in (got["first"], got["rest"][0], got["rest"][1][0]):
        np.testing.assert_array_equal(array, ramp())


def test_results_outlive_everything_else():
    kernel = nki_sim.jit(kernels.add.func)
    got = kernel(ramp(), ramp())
    del kernel
    gc.collect()
    got += 1
    np.testing.assert_array_equal(got, ramp() * 2 + 1)


@nki.jit
def writes_a_row(table, row, where):
    at = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=where)
    rows = table.ap(pattern=[[8, 1], [1, 8]], offset=0, scalar_offset=at, indirect_dim=0)
    nisa.dma_copy(dst=rows, src=row, oob_mode=nisa.oob_mode.skip)
    return table


def test_an_argument_may_be_returned_that_the_run_does_not_write():
    table, row = ramp(), np.ones((1, 8), np.float32)
    for at, rows in ((7, [0, 1, 2, 3]), (2, [0, 1, 3])):
        result = writes_a_row(table, row, np.array([[at]], np.int32))
        assert result is table
        np.testing.assert_array_equal(table[rows], ramp()[rows])
    np.testing.assert_array_equal(table[2], row[0])


def test_inputs_are_written_in_place():
    x = ramp()
    assert kernels.increment(x) is x
    np.testing.assert_array_equal(x, ramp() + 1)
    assert kernels.increment_quietly(x) is None
    np.testing.assert_array_equal(x, ramp() + 2)


def test_a_read_only_array_is_refused_before_the_run():
    x = ramp()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="`x`, which is read-only"):
        kernels.increment(x)
    np.testing.assert_array_equal(kernels.scale(x, 1.0), x)
    base = ramp()
    with pytest.raises(ValueError, match="share memory"):
        nki_sim.jit(write_first)(base, base[1:])
    np.testing.assert_array_equal(base, ramp())


def write_first(x, y):
    t = kernels.load(y)
    nisa.dma_copy(dst=x[0:3, :], src=t)


def test_a_failure_leaves_the_arrays_alone():
    x = ramp()
    with pytest.raises(nki_sim.KernelError):
        kernels.write_then_fail(x, np.array([[100]], np.int32))
    np.testing.assert_array_equal(x, ramp())


@pytest.mark.parametrize(
    "value, error, text",
    [
        (ramp(dtype=np.float64), TypeError, r"float64, which is not a device type; pass x.astype\(np.float32\)"),
        (ramp(dtype=np.uint64), TypeError, "uint64"),
        (ramp(dtype=np.complex64), TypeError, "complex64"),
        (ramp(dtype=">f4"), TypeError, r"not a device type; pass x.astype\(x.dtype.newbyteorder\(.=.\)\)"),
        (np.zeros((0, 3), np.float32), ValueError, "empty"),
        (np.ma.array(ramp(), mask=ramp() > 3), TypeError, "masked array"),
        (np.array(3, np.float32), ValueError, "without dimensions"),
        (np.array(3.0), ValueError, "without dimensions; pass a number"),
    ],
)
def test_arrays_that_no_kernel_takes(value, error, text):
    with pytest.raises(error, match=text):
        kernels.scale(value)
    with pytest.raises(nki_sim.SimError, match="argument `x`"):
        kernels.scale(value)


def test_a_list_is_no_tensor():
    with pytest.raises(nki_sim.KernelError, match=r"argument `x` is a list of numbers, not a tensor; pass np.asarray\(x"):
        kernels.scale([[1.0, 2.0]])


def test_a_wrong_kernel_raises_what_python_would():
    with pytest.raises(AssertionError, match="5 rows") as info:
        kernels.checked(ramp(5))
    error = info.value
    assert isinstance(error, nki_sim.KernelError)
    assert error.slug == "assertion-failed" and error.file.endswith("kernels.py")
    assert "assert x.shape[0] <= limit" in str(error)
    assert inspect.getsourcelines(kernels.checked.func)[1] + 2 == error.line
    with pytest.raises(ValueError, match="limit is too large"):
        kernels.checked(ramp(), 1001)
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error) and str(other) == str(error) and other.line == error.line


def test_what_the_machine_refuses_is_a_validation_error():
    with pytest.raises(nisa.NkiValidationError, match="partition") as info:
        nki_sim.jit(too_tall)(ramp())
    assert isinstance(info.value, nki_sim.KernelError) and info.value.slug == "partition-size"
    with pytest.raises(nisa.NkiValidationError, match="only for small ones"):
        nki_sim.jit(picky)(ramp())
    np.testing.assert_array_equal(nki_sim.jit(careful)(ramp()), ramp())


def too_tall(x):
    nl.ndarray((200, 4), dtype=nl.float32, buffer=nl.sbuf)


def picky(x):
    if x.shape[1] > 4:
        raise nisa.NkiValidationError("only for small ones")


def careful(x):
    try:
        nl.ndarray((200, 4), dtype=nl.float32, buffer=nl.sbuf)
    except nisa.NkiValidationError:
        return kernels.store(kernels.load(x))


def test_instructions_need_a_kernel():
    with pytest.raises(nki_sim.OutsideKernelError, match="nki.isa.tensor_copy was called outside of a kernel"):
        nisa.tensor_copy(dst=None, src=None)
    with pytest.raises(nki_sim.OutsideKernelError, match="It returns the target of the kernel that is compiled"):
        nisa.get_nc_version()


def test_findings_are_warnings():
    with pytest.warns(nki_sim.KernelWarning, match="never written"):
        nki_sim.jit(forgetful)(ramp())


def test_a_profiled_call_warns_of_findings_and_its_report_can_be_copied():
    with pytest.warns(nki_sim.KernelWarning, match="never written"):
        _, report = nki_sim.profile(nki_sim.jit(forgetful))(ramp())
    again = pickle.loads(pickle.dumps(report))
    assert again.to_dict() == report.to_dict() == copy.deepcopy(report).to_dict()
    assert str(again) == str(report) and again.latency_us == report.latency_us
    with pytest.raises(ValueError, match="pickled or copied"):
        again.save("page.html")


def forgetful(x):
    return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)


def test_what_a_kernel_prints_is_printed(capsys, monkeypatch):
    for _ in range(2):
        nki.jit(kernels.talkative.func)(ramp())
        assert capsys.readouterr().out == "compiling for (4, 8)\n"
    # The evaluator keeps it with the program.
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    kernels.talkative(ramp())
    assert capsys.readouterr().out == "compiling for (4, 8)\n"
    for call in (kernels.talkative.compile, nki.trace(kernels.talkative).specialize):
        call(ramp())
        assert capsys.readouterr().out == "compiling for (4, 8)\n"
    kernel = nki_sim.NumpyFrameworkKernel(func=kernels.talkative)
    for _ in range(2):
        kernel.dump_config(ramp())
        assert capsys.readouterr().out == "compiling for (4, 8)\n"
    # Also up to the error.
    with pytest.raises(nki_sim.KernelError):
        nki_sim.simulate(talks_and_fails)(ramp())
    assert capsys.readouterr().out == "so far\n"


def talks_and_fails(x):
    print("so far")
    assert x.shape[0] == 5


def test_a_trace_compiles_for_arguments():
    traced = nki.trace(kernels.cores, grid=(2,), platform_target="trn3").specialize(ramp())
    assert traced.outputs() == kernels.cores[2].compile(ramp()).outputs()
    assert traced.text() == nki.jit(kernels.cores.func, platform_target="trn3")[2].compile(ramp()).text()
    assert nki.trace(kernels.add.func).specialize(ramp(), y=ramp()).inputs() == ["x", "y"]
    with pytest.raises(AssertionError, match="5 rows"):
        nki.trace(kernels.checked, grid=None, platform_target="trn1").specialize(ramp(5))
    with pytest.warns(nki_sim.KernelWarning, match=r"checked has grid \(4, 4\): a logical core runs 1 or 2 programs"):
        nki.trace(kernels.checked, grid=(4, 4)).specialize(ramp())
    with pytest.raises(TypeError, match="a grid is a number of programs"):
        nki.trace(kernels.checked, grid=(0,))


def test_a_schedule_makes_named_instructions_wait():
    x = np.ones((128, 8), np.float32)
    scheduled = kernels.named_steps.with_schedule([("two", ["one"])])
    for kernel in (kernels.named_steps, scheduled, pickle.loads(pickle.dumps(scheduled))):
        assert (kernel(x) == 3).all()
    assert kernels.named_steps.compile(x).text() != scheduled.compile(x).text()
    with pytest.raises(nki_sim.KernelError, match="with_schedule names `three`, but no instruction"):
        kernels.named_steps.with_schedule([("three", "one")])(x)
    with pytest.raises(nki_sim.KernelError, match="`one` must wait for `two`, which comes after it"):
        kernels.named_steps.with_schedule([("one", "two")])(x)
    with pytest.raises(TypeError, match="pairs of instruction names"):
        kernels.named_steps.with_schedule([("one", [2])])


def test_targets(monkeypatch):
    x = ramp()
    assert kernels.version(x)[0, 0] == 4
    kernel = nki.jit(kernels.version.func)
    assert kernel(x)[0, 0] == 3
    monkeypatch.setenv("NKI_NC_VERSION", "gen2")
    assert kernel(x)[0, 0] == 2 and nki_sim.target() == "trn1"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert kernel(x)[0, 0] == 4
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn9")
    with pytest.raises(ValueError, match="trn9"):
        kernel(x)


def test_precision(monkeypatch):
    third = nki_sim.jit(through_bfloat16)
    x = np.full((1, 1), 1 / 3, np.float32)
    assert third(x)[0, 0] != x[0, 0]
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    assert third(x)[0, 0] == x[0, 0]


@nki.jit
def viewed(x, dtype, columns):
    out = nl.ndarray((x.shape[0], columns), dtype=dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=out, src=t.view(dtype))
    return out


@pytest.mark.parametrize(
    "given, dtype, columns", [(np.float32, nl.bfloat16, 32), (ml_dtypes.bfloat16, nl.uint16, 16), (np.int8, nl.uint8, 16), (np.float32, nl.int32, 16)]
)
def test_bits_of_other_types_without_precision(monkeypatch, given, dtype, columns):
    """Values kept in fp32 have no bytes of the narrower type, and none are invented."""
    x = np.arange(-32, 32).reshape(4, 16).astype(given)
    bits = np.asarray(viewed(x, dtype, columns)).view(np.uint8)
    np.testing.assert_array_equal(bits, x.view(np.uint8))
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    if dtype == nl.int32:
        np.testing.assert_array_equal(np.asarray(viewed(x, dtype, columns)).view(np.uint8), bits)
    else:
        with pytest.raises(nki_sim.KernelError, match="NKI_PRECISE_FP=0 keeps the elements of `t`"):
            viewed(x, dtype, columns)


def through_bfloat16(x):
    t = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    u = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=u, src=t)
    return kernels.store(u)


TEXT = """
import nki.isa as nisa
import nki.language as nl

def from_text(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=shift)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def test_source_from_text_linecache_and_callers():
    kernel = nki_sim.from_source(TEXT, globals={"shift": 2.0})
    np.testing.assert_array_equal(kernel(ramp()), ramp() + 2)

    linecache.cache["<made up>"] = (len(TEXT), None, TEXT.splitlines(True), "<made up>")
    scope = {"shift": 3.0}
    exec(compile(TEXT, "<made up>", "exec"), scope)
    np.testing.assert_array_equal(nki.simulate(scope["from_text"])(ramp()), ramp() + 3)

    # Like tools that generate kernels: the text is in a variable here.
    text, scope = TEXT.replace("add", "multiply"), {"shift": 5.0}
    exec(text, scope)
    np.testing.assert_array_equal(nki.simulate(scope["from_text"])(ramp()), ramp() * 5)


def test_a_kernel_is_found_among_many_texts(monkeypatch):
    """The time to find a text does not grow with the number of texts before it."""
    compiled = []
    for factor in range(40):
        text, scope = TEXT.replace("add", "multiply") + f"# {factor}\n", {"shift": float(factor)}
        exec(text, scope)
        monkeypatch.setattr("builtins.compile", lambda *args, **kwargs: (compiled.append(args), COMPILE(*args, **kwargs))[1])
        np.testing.assert_array_equal(nki.simulate(scope["from_text"])(ramp()), ramp() * factor)
        monkeypatch.undo()
    assert len([args for args in compiled if args[0].startswith(TEXT[:20])]) <= 3 * 40


COMPILE = compile


@pytest.mark.parametrize("frontend", ["parser", "tracer"])
def test_a_kernel_that_nothing_refers_to_is_collected(tmp_path, monkeypatch, frontend):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
    file = tmp_path / "candidate.py"
    file.write_text("import nki\nshift = 1.0\n" + TEXT.replace("def from_text", "@nki.jit\ndef from_text"))
    spec = importlib.util.spec_from_file_location("candidate", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    nki_sim.profile(module.from_text)(ramp())
    kernel = weakref.ref(module.from_text.func)
    del module
    gc.collect()
    assert kernel() is None


def test_a_text_is_given_kernels():
    given = nki_sim.from_source(TEXT, globals={"shift": 2.0})
    scope = {"kernel": given, "plain": given.func}
    twice = nki_sim.from_source("def twice(x): return kernel(kernel(x))", globals=scope)
    np.testing.assert_array_equal(twice(ramp()), ramp() + 4)
    decorated = "import nki\n@nki.jit\ndef twice(x): return plain(plain(x))\ndef helper(x): return x"
    np.testing.assert_array_equal(nki_sim.from_source(decorated, globals=scope)(ramp()), ramp() + 4)
    with pytest.raises(nki_sim.ArgumentTypeError, match="the text defines no function"):
        nki_sim.from_source("x = 1", globals=scope)


def test_names_that_no_import_binds():
    for name, advice in [("np", "import numpy as np"), ("nisa", "import nki.isa as nisa")]:
        kernel = nki_sim.from_source(f"def k(x): return {name}.copy(x)")
        with pytest.raises(nki_sim.KernelError, match=f"write `{advice}` at the top of the file"):
            kernel(ramp())


def test_a_kernel_without_source(monkeypatch):
    scope = {"shift": 1.0}
    exec("".join(TEXT).replace("from_text", "lost"), scope)
    np.testing.assert_array_equal(nki.simulate(scope["lost"])(ramp()), ramp() + 1)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    with pytest.raises(nki_sim.NoSourceError, match="source of kernel `lost` cannot be found"):
        nki.simulate(scope["lost"])(ramp())


def generated():
    """Like tools that generate kernels: when the kernel is called, the text no longer exists."""
    text, scope = TEXT.replace("add", "subtract"), {"shift": 5.0}
    exec(text, scope)
    return nki.simulate(scope["from_text"])


def test_source_is_taken_when_a_kernel_is_made():
    np.testing.assert_array_equal(generated()(ramp()), ramp() - 5)

    def decorated():
        text, scope = TEXT.replace("def from_text", "import nki\n@nki.jit\ndef decorated_text"), {"shift": 6.0}
        exec(text, scope)
        return scope["decorated_text"]

    np.testing.assert_array_equal(decorated()(ramp()), ramp() + 6)

    def cell(number, shift):
        """Like a notebook: each cell has a name, and its text is in linecache."""
        name, text, scope = f"<cell {number}>", f"shift = {shift}\n" + TEXT, {}
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), scope)
        kernel = nki.jit(scope["from_text"])
        del linecache.cache[name]
        return kernel

    first, second = cell(1, 1.0), cell(2, 2.0)
    np.testing.assert_array_equal(first(ramp()), ramp() + 1)
    np.testing.assert_array_equal(second(ramp()), ramp() + 2)
    # A cell that is run again under its old name.
    again = cell(1, 7.0)
    np.testing.assert_array_equal(again(ramp()), ramp() + 7)
    np.testing.assert_array_equal(first(ramp(8)), ramp(8) + 1)


MODULE = """
import nki
import nki.isa as nisa
import nki.language as nl

def change(t):
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)

@nki.jit
def kernel(x):
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    change(t)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out

def plain(x):
    return kernel(x)
"""


def test_a_file_that_changes_after_its_import(tmp_path, monkeypatch):
    path = tmp_path / "changes_later.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("changes_later")
    old = module.kernel
    path.write_text(MODULE.replace("1.0", "2.0"))
    # Python runs the version that it imported, and so do kernels: also for a second shape, and in functions that they call.
    np.testing.assert_array_equal(old(ramp()), ramp() + 1)
    np.testing.assert_array_equal(nki.simulate(module.plain)(ramp(8)), ramp(8) + 1)
    importlib.reload(module)
    np.testing.assert_array_equal(module.kernel(ramp()), ramp() + 2)
    np.testing.assert_array_equal(old(ramp(16)), ramp(16) + 2)
    path.write_text("# nothing left")
    np.testing.assert_array_equal(module.kernel(ramp(2)), ramp(2) + 2)


def test_a_version_that_python_takes_from_its_cache_is_announced(tmp_path, monkeypatch):
    path = tmp_path / "candidate.py"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    second = int(time.time()) + 1

    def load(value, fraction):
        path.write_text(MODULE.replace("1.0", value))
        os.utime(path, (second, second + fraction))
        spec = importlib.util.spec_from_file_location("candidate", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    np.testing.assert_array_equal(load("1.0", 0.25)(ramp()), ramp() + 1)
    with pytest.warns(nki_sim.KernelWarning, match="earlier version of kernel `kernel`"):
        earlier = load("2.0", 0.75)
    np.testing.assert_array_equal(earlier(ramp()), ramp() + 1)


def test_a_changed_file_without_kernels_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "changed_helper.py"
    path.write_text(MODULE.replace("@nki.jit", ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    module = importlib.import_module("changed_helper")
    path.write_text(MODULE.replace("@nki.jit", "").replace("1.0", "2.0"))
    # Only the body of `change` differs: no line has moved.
    with pytest.raises(nki_sim.SimError, match="changed"):
        nki.jit(calls_helper)(ramp(), module.change)
    os.utime(path, (1e9, 1e9))
    path.unlink()
    with pytest.raises(nki_sim.NoSourceError, match="cannot be found"):
        nki.simulate(module.kernel)(ramp())


def calls_helper(x, change):
    t = kernels.load(x)
    change(t)
    return kernels.store(t)


def in_child(x, queue):
    queue.put(kernels.add(x, x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_calls_in_a_forked_process():
    """A child that multiprocessing forks does not have the parent's threads."""
    x = np.random.default_rng(0).standard_normal((128, 2048)).astype(np.float32)
    kernels.add(x, x)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(x, queue))
    child.start()
    try:
        np.testing.assert_array_equal(queue.get(timeout=60), x + x)
        child.join(60)
        assert child.exitcode == 0
    finally:
        child.kill()


def test_calls_from_several_threads():
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)
        for _ in range(5):
            if not np.array_equal(kernels.add(x, x), x + x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_other_threads_run_while_a_kernel_does(counter):
    """The interpreter's lock is released during a run: a counting thread makes progress."""
    x = np.ones((128, 8192), np.float32)
    counter.advances_during(lambda: kernels.add(x, x))


def test_programs_are_cached_by_what_they_depend_on(monkeypatch):
    kernel = nki_sim.jit(kernels.scale.func)
    cache = kernel._cache
    for _ in range(3):
        kernel(ramp(), 2.0)
    assert len(cache) == 1
    kernel(ramp(), 3.0)
    kernel(ramp(8), 2.0)
    kernel(ramp(dtype=np.float16), 2.0)
    kernel[2](ramp(), 2.0)
    assert len(cache) == 5
    kernel(ramp() * 2, 2.0)
    assert len(cache) == 5
    kernel(ramp(), 0.0)
    assert np.signbit(kernel(ramp(), -0.0)[0, 1])
    assert len(cache) == 7

    shared = nki_sim.jit(kernels.with_config.func)
    for _ in range(3):
        # Equal objects, created anew.
        shared(ramp(), kernels.Config(2.0), kernels.Box(tensor=ramp()), kernels.Pair(1))
    assert len(shared._cache) == 1
    live = nki_sim.jit(kernels.with_global.func)
    live(ramp())
    monkeypatch.setattr(helpers, "OFFSET", 9.0)
    live(ramp())
    live(ramp())
    assert len(live._cache) == 2


def test_a_large_array_is_not_copied():
    """A kernel that reads one row of 256 MiB does not touch the rest: memory use does not grow by the size of the array."""
    resource = pytest.importorskip("resource")
    x = np.zeros((8192, 8192), np.float32)
    kernel = nki_sim.jit(first_row)
    kernel(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got = kernel(x)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert got.shape == (1, 8192)
    # np.zeros has not touched the memory either. The units are kilobytes on Linux and bytes on macOS: both far below 256 MiB.
    assert after - before < 64 * 1024


def first_row(x):
    t = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0:1, :])
    return kernels.store(t)


STRIDED = {
    "columns": lambda: ramp(4, 16)[:, ::2],
    "rows": lambda: ramp(8, 8)[1::2],
    "transposed": lambda: ramp(8, 4).T,
    "backwards": lambda: ramp()[::-1, ::-1],
    "broadcast": lambda: np.broadcast_to(ramp(1), (4, 8)),
    "bfloat16": lambda: ramp(4, 16).astype(ml_dtypes.bfloat16)[:, 1::2],
    "three dimensions": lambda: np.moveaxis(ramp(4, 16).reshape(4, 2, 8), 1, 0)[1],
    "field of a record": lambda: np.array([tuple(r) for r in ramp(32, 2)], [("a", "f4"), ("b", "f4")])["b"].reshape(4, 8),
}


@pytest.mark.parametrize("make", STRIDED.values(), ids=STRIDED)
def test_arrays_that_are_not_contiguous_are_copied(make):
    x = make()
    before = x.copy()
    for kernel in (kernels.add, nki.cpu_simulate(kernels.add)[1], kernels.add[2]):
        got = kernel(x, x)
        assert got.flags.c_contiguous and np.array_equal(got, before + before)
    assert np.array_equal(x, before)
    result, _ = nki_sim.profile(kernels.scale)(x, 2.0)
    assert np.array_equal(result, before + before)
    assert kernels.add.compile(x, x).outputs()[0][1] == list(x.shape)


def test_strided_arrays_get_what_a_kernel_writes():
    wide = ramp(4, 16)
    view = wide[::-1, ::2]
    assert kernels.increment(view) is view
    want = ramp(4, 16)
    want[:, ::2] += 1
    assert np.array_equal(wide, want)
    # Interleaved: the arrays share no element.
    kernels.add_into(wide[:, ::2].copy(), wide[:, ::2].copy(), wide[:, 1::2])
    kernels.add_into(wide[:, ::2], wide[:, ::2], wide[:, 1::2])
    assert np.array_equal(wide[:, 1::2], want[:, ::2] * 2) and np.array_equal(wide[:, ::2], want[:, ::2])
    before = wide.copy()
    with pytest.raises(ValueError, match="arguments `out` and `a` share memory"):
        kernels.add_into(wide[:, ::2], np.ones((4, 8), np.float32), wide[:, :8])
    with pytest.raises(ValueError, match=r"the kernel writes its argument `x`, several elements of which share one address"):
        kernels.increment(np.lib.stride_tricks.as_strided(wide, (4, 8), (0, 4)))
    with pytest.raises(ValueError, match="share one address"):
        kernels.increment(np.lib.stride_tricks.as_strided(wide, (4, 8), (4, 4)))
    with pytest.raises(ValueError, match="`x`, which is read-only"):
        kernels.increment(np.broadcast_to(ramp(1), (4, 8)))
    with pytest.raises(nki_sim.KernelError):
        kernels.write_then_fail(wide[:, ::2], np.array([[100]], np.int32))
    assert np.array_equal(wide, before)


@nki.jit(platform_target="trn3")
def repeat_first_rows(x):
    """Copies rows 0 to 3 to rows 4 to 7 of the argument."""
    t = nl.ndarray((4, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[0:4, :])
    nisa.dma_copy(dst=x[4:8, :], src=t)
    return x


@pytest.mark.parametrize("name", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_packed_elements_are_arguments_like_others(name):
    """NumPy's C interface does not describe the memory of structured arrays, as which packed types are stored on the host."""
    dtype = np.dtype(getattr(nl, name))
    bits = np.random.default_rng(0).integers(0, 256, (8, 16, dtype.itemsize), np.uint8)
    for x in (bits.copy().view(dtype)[..., 0], bits.copy().view(dtype)[:, ::2, 0], bits.copy().view(dtype)[:, ::-1, 0]):
        before = x.copy()
        assert repeat_first_rows(x) is x
        assert x[:4].tobytes() == before[:4].tobytes() == x[4:].tobytes()
    fixed = bits.view(dtype)[..., 0]
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="`x`, which is read-only"):
        repeat_first_rows(fixed)


def test_strided_arrays_on_several_ranks():
    wide = ramp(4, 16)
    got = nki_sim.simulate_ranks(kernels.increment, 2)([wide[:, ::2], wide[:, 1::2]])
    assert np.array_equal(got[1], wide[:, 1::2]) and np.array_equal(wide, ramp(4, 16) + 1)
    with pytest.raises(ValueError, match="rank 0's array shares memory with `x` of rank 1"):
        nki_sim.simulate_ranks(kernels.increment, 2)([wide[:, ::2], wide[:, :8]])


def cyclic():
    """Arguments that contain themselves."""
    one, two, pair, held = [], [], [], {}
    one.append(one)
    two.append([two])
    pair.append((pair,))
    held["self"] = held
    thing = kernels.Box(tensor=None)
    thing.tensor = [thing]
    return {"list": one, "two lists": two, "through a tuple": pair, "dict": held, "object": thing}


def unused(x, what):
    return kernels.store(kernels.load(x))


def as_operand(x, what):
    t = kernels.load(x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=what)
    return kernels.store(t)


def as_tensor(x, what):
    nisa.dma_copy(dst=what, src=x)


def printed(x, what):
    print(what)
    assert what == what
    return kernels.store(kernels.load(x))


@pytest.mark.parametrize("name", cyclic())
def test_arguments_that_hold_themselves(name, capsys):
    what = cyclic()[name]
    for kernel in (unused, printed):
        # The second time from the cache.
        made = nki_sim.jit(kernel)
        for _ in range(2):
            assert np.array_equal(made(ramp(), what), ramp())
        assert len(made._cache) == 1
    for kernel in (as_operand, as_tensor):
        with pytest.raises(nki_sim.KernelError) as info:
            nki_sim.jit(kernel).compile(ramp(), what)
        assert len(info.value.diagnostics) == 1 and info.value.slug == "operand-kind"
    with pytest.raises(nki_sim.KernelError):
        nki_sim.simulate(unused)(what, what)


def test_deeply_nested_arguments():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    assert np.array_equal(nki_sim.simulate(unused)(ramp(), deep), ramp())
    with pytest.raises(nki_sim.KernelError):
        nki_sim.simulate(as_operand)(ramp(), deep)
    twice = (1, 2)
    for _ in range(60):
        twice = (twice, twice)
    with pytest.raises(ValueError, match="among more than 1048576 values nested in one another"):
        nki_sim.simulate(unused)(ramp(), twice)


@pytest.mark.parametrize("frontend", ["tracer", "parser"])
def test_fields_of_a_dataclass_that_is_an_nki_object_may_be_left_out(frontend, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", frontend)
    x = ramp()
    assert np.array_equal(kernels.add_if_set(x), x + 1)


@nki.jit
def long_on_the_device(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in nl.dynamic_range(100_000_000):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def long_to_compile(x):
    n = 0
    while True:
        n += 1
    return x


class Rang(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("kernel", [long_on_the_device, long_to_compile])
def test_a_signal_ends_a_long_call(kernel):
    """Ctrl-C is such a signal. The handler's exception leaves the call before the limit on steps ends it, and arrays are unchanged."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("Python hears signals on its main thread only")

    rung = []

    def ring(*_):
        # If signals were checked only once, this one would be handled after the call.
        rung.append(True)
        if len(rung) == 3:
            raise Rang

    x = np.ones((128, 64), np.float32)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        with pytest.raises(Rang):
            kernel(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (x == 1).all()


def test_unknown_options_of_decorators():
    import neuronxcc.nki as older

    def kernel(x):
        return x

    for decorator in (nki.jit, older.jit):
        with pytest.warns(nki_sim.KernelWarning, match=r"^nki.jit has no parameter `platform_taget`; did you mean `platform_target`\?$") as warned:
            decorator(platform_taget="trn1")(kernel)
        assert [w.filename for w in warned] == [__file__]
    with pytest.warns(nki_sim.KernelWarning, match=r"^nki.benchmark has no parameter `iter`; did you mean `iters`\?$"):
        older.benchmark(iter=3)(kernel)
    with pytest.warns(nki_sim.KernelWarning, match="^nki.trace has no parameter `nothing_like_it`$"):
        nki.trace(nki.jit(kernel), nothing_like_it=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nki.jit(kernel, mode="trace", kernel_return=True, debug_kernel=True, show_compiler_tb=True, experimental_flags="", enable_out_of_bound_check=False)
        older.baremetal(artifacts_dir=".", additional_compile_opt="-O1")(kernel)


@pytest.mark.parametrize("shape", ["ab", b"ab", 3, None])
def test_a_shape_is_a_tuple_of_numbers(shape):
    with pytest.raises(nki_sim.ArgumentTypeError, match="a shape is a tuple of numbers"):
        nki_sim.TensorSpec(shape, "float32")


def test_cores_are_whole_and_eager_is_a_bool():
    @nki.jit
    def kernel(x):
        return x

    with pytest.raises(ValueError, match="1 or 2 physical cores"):
        kernel[2.0]
    with pytest.raises(nki_sim.ArgumentTypeError, match="eager='x' is neither True nor False"):
        nki.simulate(kernel, eager="x")


def test_arguments_of_the_wrong_kind_are_named():
    from nki.simulator import simulate_kernel

    for call, text in [
        (lambda: simulate_kernel(kernels.add, ramp()), "the arguments are a tuple, got ndarray; for one argument write"),
        (lambda: simulate_kernel(kernels.add, (ramp(),), 3), "a dict of arguments by name, got int"),
        (lambda: nki.jit(kernels.add.func).with_schedule("ab"), "pairs of instruction names"),
        (lambda: nki.jit(kernels.add.func).with_schedule([("a", 3)]), "got \\('a', 3\\)"),
        (lambda: nki_sim.profile(kernels.add, settings=3), "a dict of timing parameters by name"),
    ]:
        with pytest.raises(nki_sim.ArgumentTypeError, match=text):
            call()
    for options, text in [({"args": (1,)}, "args is a dict by name, got tuple"), ({"grid": [1]}, "grid is a dict"), ({"executor": 3}, "has no submit")]:
        with pytest.raises(ValueError, match=text):
            nki_sim.sweep(kernels.add, **{"grid": {"n": [1]}, **options})
