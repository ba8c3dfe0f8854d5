"""`nki.FrameworkKernel`: the custom call's config, for known frameworks and for an unknown one."""

import base64
import json

import kernels
import nki
import nki.language as nl
import numpy as np
import pytest

import nki_sim


def config(text):
    return json.loads(base64.b64decode(text))


class Grid(nki.FrameworkKernel):
    """A framework whose tensors are pairs of text and extents."""

    def is_framework_tensor(self, t):
        return isinstance(t, tuple) and isinstance(t[0], str)

    def map_framework_tensor(self, t):
        return t[1], t[0]

    def translate_to_neuron_dtype(self, _dtype):
        return {"half": nl.float16, "single": np.float32}[_dtype]


def test_a_config_for_a_framework_of_ones_own():
    kernel = Grid(func_name="adder", func=kernels.add)
    text, inputs, outputs = kernel.dump_config(("half", [4, 8]), y=("half", [4, 8]))
    assert (inputs, outputs) == (["x", "y"], ["output0"])
    got = config(text)
    assert got["func_name"] == "adder" and got["grid"] == [] and got["has_collectives"] is False
    assert got["klir_binary"]["input_names"] == inputs and got["klir_binary"]["output_names"] == outputs
    with pytest.raises(KeyError):
        kernel.dump_config(("quarter", [4, 8]), ("half", [4, 8]))
    with pytest.raises(AssertionError, match="5 rows"):
        Grid(func=kernels.checked).dump_config(("half", [5, 8]))


def test_tensors_inside_of_arguments_and_constants():
    @nki.jit
    def weighted(pair, options):
        a, b = kernels.load(pair[0]), kernels.load(pair[1])
        kernels.nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        kernels.nisa.tensor_scalar(dst=a, data=a, op0=nl.multiply, operand0=options["scale"])
        return kernels.store(a)

    kernel, tensor = Grid(func=weighted), ("single", (4, 8))
    texts = [kernel.dump_config([tensor, tensor], {"scale": scale})[0] for scale in (1.0, 2.0, 1.0)]
    assert texts[0] == texts[2] != texts[1]


def test_written_arguments_are_outputs():
    tensor = ("single", (4, 8))
    assert Grid(func=kernels.add_into).dump_config(tensor, tensor, out=tensor)[1:] == (["a", "b"], ["out"])
    assert Grid(func=kernels.increment_quietly).dump_config(tensor)[1:] == (["x"], ["x"])


def test_the_cache():
    """A config comes from the cache if everything is unchanged; without the cache the kernel is compiled each time."""
    tensor = ("single", (4, 8))
    kernel = Grid(func=kernels.scale, enable_cache=True)
    first = kernel.dump_config(tensor, 2.0)
    assert kernel.dump_config(("single", [4, 8]), factor=2.0) is first
    others = [kernel.dump_config(("single", (8, 8)), 2.0), kernel.dump_config(("half", (4, 8)), 2.0), kernel.dump_config(tensor, 3.0)]
    others.append(Grid(func=kernels.scale, grid=2).dump_config(tensor, 2.0))
    others.append(Grid(func=kernels.scale, platform_target="trn3").dump_config(tensor, 2.0))
    assert len({first[0], *(text for text, _, _ in others)}) == 6
    fresh = Grid(func=kernels.scale, enable_cache=False)
    again = fresh.dump_config(tensor, 2.0)
    assert again == fresh.dump_config(tensor, 2.0) == first and fresh.dump_config(tensor, 2.0) is not again


def test_compiling_counts(capsys):
    tensor = ("single", (4, 8))
    for enable_cache, times in ((True, 1), (False, 3)):
        # A separate kernel, which has not been compiled yet; it prints when it is compiled.
        kernel = Grid(func=nki.jit(kernels.talkative.func), enable_cache=enable_cache)
        for _ in range(3):
            kernel.dump_config(tensor)
        compiled = kernel.kernel._cache
        assert len(compiled) == (1 if enable_cache else 0), times
    monkey = Grid(func=kernels.with_global)
    first = monkey.dump_config(tensor)
    kernels.FACTOR, old = 7.0, kernels.FACTOR
    try:
        assert monkey.dump_config(tensor)[0] != first[0]
    finally:
        kernels.FACTOR = old


def test_grids():
    tensor = ("single", (4, 8))
    assert config(Grid(func=kernels.cores, grid=(2,)).dump_config(tensor)[0])["grid"] == [2]
    large = Grid(func=kernels.add, grid=(16, 8))
    with pytest.warns(nki_sim.KernelWarning, match=r"add has grid \(16, 8\): a logical core runs 1 or 2 programs"):
        assert config(large.dump_config(tensor, tensor)[0])["grid"] == [16, 8]
    with pytest.raises(TypeError, match=r"grid \(16, 8\): a logical core has 1 or 2"):
        large(np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32))
    with pytest.raises(TypeError, match="a grid is a number of programs"):
        Grid(func=kernels.add, grid=(0,))
    with pytest.raises(TypeError, match="needs func="):
        Grid(func_name="add")


@pytest.mark.parametrize("method", ["is_framework_tensor", "map_framework_tensor", "translate_to_neuron_dtype"])
def test_methods_that_a_subclass_must_have(method):
    with pytest.raises(NotImplementedError, match=method):
        getattr(nki.FrameworkKernel(func=kernels.add), method)(None)


def check(kernel, tensor, dtype, nki_dtype):
    """The results of the three methods for a tensor, and that the kernel runs on it."""
    assert kernel.is_framework_tensor(tensor) and not kernel.is_framework_tensor("this is not a tensor")
    shape, got = kernel.map_framework_tensor(tensor)
    assert tuple(shape) == (4, 8) and got == dtype
    assert kernel.translate_to_neuron_dtype(dtype) == nki_dtype
    text, inputs, outputs = kernel.dump_config(tensor, tensor)
    assert (inputs, outputs) == (["x", "y"], ["output0"]) and config(text)["func_name"] == "add"
    result = kernel(tensor, tensor)
    assert type(result) is type(tensor) and result.dtype == tensor.dtype and bool((result == tensor + tensor).all())


def test_numpy():
    import ml_dtypes

    kernel = nki_sim.NumpyFrameworkKernel(func_name="add", func=kernels.add)
    check(kernel, np.ones((4, 8), np.float16), np.float16, nl.float16)
    check(kernel, np.ones((4, 8), ml_dtypes.bfloat16), ml_dtypes.bfloat16, nl.bfloat16)
    with pytest.raises(TypeError, match="NumPy's dtype float64 is not a device type"):
        kernel.dump_config(np.ones((4, 8)), np.ones((4, 8)))


def test_torch():
    torch = pytest.importorskip("torch")
    kernel = nki_sim.PyTorchFrameworkKernel(func_name="add", func=kernels.add)
    check(kernel, torch.ones((4, 8)), torch.float32, nl.float32)
    check(kernel, torch.ones((4, 8), dtype=torch.bfloat16), torch.bfloat16, nl.bfloat16)
    assert kernel.map_framework_tensor(torch.rand((2, 3), dtype=torch.bfloat16)) == (torch.Size([2, 3]), torch.bfloat16)
    # Values are ignored, so a tensor may be on any device.
    meta = torch.ones((4, 8), device="meta")
    assert kernel.dump_config(meta, meta) == kernel.dump_config(torch.ones((4, 8)), torch.ones((4, 8)))


def test_jax():
    jax = pytest.importorskip("jax")
    kernel = nki_sim.JaxFrameworkKernel(func_name="add", func=kernels.add)
    check(kernel, jax.numpy.ones((4, 8)), jax.numpy.float32, nl.float32)
    check(kernel, jax.numpy.ones((4, 8), dtype="bfloat16"), jax.numpy.bfloat16, nl.bfloat16)
    shape = jax.ShapeDtypeStruct((4, 8), "float32")
    assert kernel.dump_config(shape, shape) == kernel.dump_config(jax.numpy.ones((4, 8)), jax.numpy.ones((4, 8)))


def test_what_the_compiler_finds_is_reported():
    @nki.jit
    def given_a_list(items):
        return kernels.store(kernels.load(items[0]))

    tensor = ("single", (4, 8))
    strict = nki.simulate(given_a_list, warn="strict")
    with pytest.warns(nki_sim.KernelWarning, match="strict-language"):
        Grid(func=strict).dump_config([tensor])
    with pytest.raises(nki_sim.KernelError, match="denied: strict-language"):
        Grid(func=nki.simulate(given_a_list, deny="strict")).dump_config([tensor])
