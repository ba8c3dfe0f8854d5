import enum
import pickle
import subprocess
import sys

import ml_dtypes
import nki
import nki.collectives as ncc
import nki.dtype
import nki.isa as nisa
import nki.isa.constants
import nki.language as nl
import nki.language.dtypes
import nki.tensor
import nki.typing
import numpy as np
import pytest

import nki_sim


def test_collectives():
    assert "replica_group" in ncc.all_reduce.__signature__.parameters and "ranks" in ncc.all_reduce.__doc__
    assert not hasattr(nisa, "all_reduce") and not hasattr(ncc, "nothing")
    with pytest.raises(nki_sim.OutsideKernelError, match="nki.collectives.rank_id"):
        ncc.rank_id()


@pytest.mark.parametrize(
    "module, name, hint",
    [
        (nki, "benchmark", "nki_sim.profile"),
        (nki, "simulate_kernel", r"write nki.simulate\(kernel\)"),
        (nki_sim, "compile", "kernel.compile"),
        (nki, "nothing", "has no attribute 'nothing'$"),
    ],
)
def test_a_missing_name_says_what_to_write(module, name, hint):
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=hint) as error:
        getattr(module, name)
    assert error.value.name == name


def test_modules_share_their_objects():
    assert nki.isa.constants.dge_mode is nisa.dge_mode
    # Without importing submodules themselves, as test suites use them.
    assert run("import nki.isa as nisa, nki.language as nl; print(nisa.constants.oob_mode.skip.name, nl.dtypes.int8)") == "skip int8"
    assert nki.dtype.float8_e4m3 is nl.float8_e4m3 is nki.language.dtypes.float8_e4m3
    assert nki.typing.tensor is nl.NkiTensor is nki.tensor.NkiTensor


def test_modules_of_newer_releases():
    """The names that test suites of nki-library and vllm-neuron import."""
    script = (
        "from nki.language.buffers import is_hbm, shared_hbm; from nki.language.tensor import NkiTensor; import nki.language as nl; import nki._version; "
        "from nki.compiler.target import resolve_target, target_to_nc_version as version; from nki.runtime import BenchmarkResult; "
        "print(is_hbm is nl.is_hbm, shared_hbm is nl.shared_hbm, NkiTensor is nl.NkiTensor is nl.tensor, resolve_target('gen3'), resolve_target(), "
        "[version(name) for name in ('trn1', 'trn2', 'trn3')], nki._version.__version__ == nki.__version__)"
    )
    assert run(script, NEURON_PLATFORM_TARGET_OVERRIDE="trn3") == "True True True trn2 trn3 [2, 3, 4] True"


def test_a_tensor_without_storage_is_an_argument_without_values():
    made = nl.NkiTensor(name="x", shape=(4, 8), dtype="bfloat16", storage=None, buffer=nl.shared_hbm)
    assert made.shape == (4, 8) and made.dtype == ml_dtypes.bfloat16 and not made.any()
    for wrong in ({"shape": (4, 8)}, {"shape": (4, 8), "dtype": nl.float32, "buffer": nl.sbuf}, {"shape": (4, 8), "dtype": nl.float32, "storage": 1}):
        with pytest.raises(nki_sim.OutsideKernelError, match="made by the functions of the API"):
            nl.NkiTensor(**wrong)


def test_the_other_package_is_the_same():
    import nki_cpu_simulator.nki as other
    import nki_cpu_simulator.nki.builtin
    import nki_cpu_simulator.nki.isa.constants
    import nki_cpu_simulator.nki.language.dtypes

    assert other.isa.engine is nisa.engine and other.jit is nki.jit
    assert nki_cpu_simulator.nki.builtin.len is len


def test_enums():
    assert issubclass(nisa.engine, enum.Enum)
    assert nisa.engine.vector.name == "vector" and nisa.engine["vector"] is nisa.engine.vector
    assert nl.hbm is nl.private_hbm and nl.sbuf.name == "sbuf"
    assert nisa.nc_version.gen3.value == 3
    assert {nisa.dge_mode.none: 1}[nisa.dge_mode.none] == 1
    assert pickle.loads(pickle.dumps(nisa.oob_mode.skip)) is nisa.oob_mode.skip


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float8_e4m3, nl.int32, nl.bool_], ids=str)
def test_dtypes_are_numpy_dtypes(dtype):
    assert np.zeros(2, dtype=dtype).dtype == dtype
    assert np.dtype(dtype).itemsize == dtype.itemsize
    assert {dtype: 1}[str(dtype)] == 1 and {str(dtype): 1}[dtype] == 1 and f"{dtype:>12}" == str(dtype).rjust(12)
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_dtypes_compare():
    assert nl.bfloat16 == ml_dtypes.bfloat16 and nl.bfloat16 != nl.float16 and nl.float32 == "float32"
    assert nl.float32 == np.float32 and nl.float32 != np.float16 and (nl.float32 == None) is False  # noqa: E711
    assert nl.float32 != object()
    # NumPy has no tfloat32; arrays of it are float32.
    assert nl.tfloat32 != np.dtype("float32") and nl.tfloat32 != nl.float32 and nl.tfloat32 == "tfloat32"
    assert len({nl.tfloat32, nl.float32, "float32"}) == 2


def test_limits_follow_the_target(monkeypatch):
    assert nl.tile_size.pmax == 128 and "pmax" in dir(nl.tile_size)
    small = nl.tile_size.total_available_sbuf_size
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    assert nl.tile_size.total_available_sbuf_size > small
    with pytest.raises(AttributeError):
        nl.tile_size.nothing


def test_instructions_are_documented():
    text = nisa.nc_matmul.__doc__
    assert ":param dst:" in text and "Engines: tensor" in text
    assert list(__import__("inspect").signature(nisa.tensor_copy).parameters)[:2] == ["dst", "src"]


def test_objects():
    class Thing(nl.NKIObject):
        a: int
        b: float = 2.0

    assert Thing(1) == Thing(a=1, b=2.0) and Thing().a is None and repr(Thing(1)) == "Thing(a=1, b=2.0)"
    with pytest.raises(TypeError, match="no field `c`; it has a, b"):
        Thing(c=1)
    assert ncc.ReplicaGroup([[0, 1]]) == ncc.ReplicaGroup([[0, 1]])
    ops = ncc.rg_partition_op
    for op, operand, groups in [
        (ops.bitwise_and, 0, [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (ops.bitwise_and, 5, [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (ops.div, 4, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (ops.mod, 4, [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ]:
        assert ncc.ReplicaGroup.from_partition_op(8, op, operand) == ncc.ReplicaGroup(groups)
    with pytest.raises(ValueError, match="`operand` is 0"):
        ncc.ReplicaGroup.from_partition_op(8, ops.div, 0)
    with pytest.raises(ValueError, match="`world_size` is 0; it must be 1 to 65536"):
        ncc.ReplicaGroup.from_partition_op(0, ops.mod, 2)
    with pytest.raises(TypeError, match="not a member of rg_partition_op: bitwise_and, div, mod"):
        ncc.ReplicaGroup.from_partition_op(8, "div", 2)


def run(code, **env):
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**__import__("os").environ, **env})
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


NUMPY_ALONE = """
import sys
sys.modules["ml_dtypes"] = None
import kernels, nki_sim, numpy as np, nki.language as nl
x = np.ones((4, 8), np.float32)
assert (kernels.add(x, x) == 2).all() and nki_sim.profile(kernels.add)(x, x)[1].latency_us > 1
assert {nl.bfloat16: 1}[nl.bfloat16] and nl.bfloat16 == "bfloat16" and nl.bfloat16 != np.float32 and nl.float32 == np.float32
try:
    kernels.add.compile(nki_sim.TensorSpec((4, 8), nl.bfloat16), x)
except ImportError as error:
    print(error)
"""


def test_the_package_needs_numpy_alone():
    import kernels

    path = __import__("os").path.dirname(kernels.__file__)
    assert run(NUMPY_ALONE, PYTHONPATH=path) == "arrays of bfloat16 need the package ml_dtypes: pip install ml_dtypes"


def test_the_real_package_comes_first(tmp_path):
    (tmp_path / "nki").mkdir()
    (tmp_path / "nki" / "__init__.py").write_text("real = True\n")
    show = "import nki; print(getattr(nki, 'real', False))"
    path = {"PYTHONPATH": str(tmp_path)}
    assert run(f"import nki_sim; {show}", **path) == "True"
    assert run(f"import nki_sim; nki_sim.install(); {show}", **path) == "False"
    assert run(f"import nki, nki_sim; nki_sim.install(); {show}", **path) == "False"
    assert run(f"import nki_sim; {show}", NKI_SIM_OVERRIDE="1", **path) == "False"
    assert run("import nki_cpu_simulator.nki as n; print(hasattr(n, 'real'))", **path) == "False"


def test_the_frontend_traces():
    import kernels
    from nki.compiler.frontend import ParserFrontend

    x = np.zeros((4, 8), np.float32)
    result = ParserFrontend().compile(kernels.scale, inputs={"x.must_alias_input": x}, target="trn2", lnc=1)
    assert result.inputs == ["x"] and "tensor_scalar" in result.text
    with pytest.raises(AssertionError):
        ParserFrontend().compile(kernels.checked, inputs={"x": np.zeros((5, 8), np.float32)})


def test_names_of_the_registry_are_all_there():
    import importlib

    from nki_sim import _native

    for module, name, *_ in _native.api_names():
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
    assert nki_sim.__version__


def test_the_version_of_the_package_names_the_language_and_the_simulator():
    import nki

    assert nki.__version__ == f"0.7.0+sim.{nki_sim.__version__}"


def test_stubs_are_fresh():
    import importlib.util
    import pathlib

    path = pathlib.Path(__file__).resolve().parents[1] / "stubs.py"
    spec = importlib.util.spec_from_file_location("stubs", path)
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    for file, text in stubs.stubs().items():
        assert file.read_text(encoding="utf-8") == text, f"{file} is stale: run python python/stubs.py"
        compile(text, str(file), "exec")


@pytest.mark.parametrize("name", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_the_dtype_of_packed_arrays_has_the_name_of_its_type(name):
    """Libraries recognise packed arrays by the text of their dtype."""
    dtype = np.dtype(getattr(nl, name))
    assert name in str(dtype)
    assert dtype == getattr(nl, name) and dtype.itemsize == (2 if "float4" in name else 4)
