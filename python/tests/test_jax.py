"""Kernels in jax: arrays, and calls in functions that jax transforms."""

import base64
import gc
import json
import subprocess
import sys
import threading

import kernels
import nki
import numpy as np
import page
import pytest

import nki_sim

jax = pytest.importorskip("jax")
jnp = jax.numpy
TARGET = "AwsNeuronCustomNativeKernel"


def ramp(dtype=np.float32):
    return np.arange(32).reshape(4, 8).astype(dtype)


def test_arrays():
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32):
        x = jnp.asarray(ramp()).astype(dtype)
        got = kernels.scale(x, 1)
        assert isinstance(got, jax.Array) and got.dtype == dtype and jnp.array_equal(got, x)
    x = jnp.asarray(ramp())
    # jax arrays are immutable: the result is a new array.
    got = kernels.increment(x)
    assert jnp.array_equal(got, x + 1) and x[0, 0] == 0
    with pytest.raises(ValueError, match="a jax array, which cannot be written"):
        kernels.increment_quietly(x)


def test_results_stay_when_others_come():
    """jax keeps the simulator's memory, which is not reused for another result."""
    x = jnp.arange(128 * 2048, dtype=jnp.float32).reshape(128, 2048)
    first = kernels.scale(x, 2.0)
    address = first.unsafe_buffer_pointer()
    others = [kernels.scale(x, float(i)) for i in range(3, 6)]
    gc.collect()
    assert len({address, *(o.unsafe_buffer_pointer() for o in others)}) == 4
    assert jnp.array_equal(first, x * 2) and all(jnp.array_equal(o, x * i) for i, o in enumerate(others, 3))


def test_a_kernel_in_a_compiled_function():
    @jax.jit
    def f(a, b):
        return kernels.add(a, b) * a * b

    a, b = jnp.asarray(ramp()), jnp.asarray(ramp() + 1)
    np.testing.assert_allclose(f(a, b), (a + b) * a * b)
    lowered = f.lower(a, b)
    assert f"stablehlo.custom_call @{TARGET}(%arg0, %arg1)" in lowered.as_text()
    hlo = lowered.compile().runtime_executable().hlo_modules()[0].to_string()
    call, run = [line for line in hlo.splitlines() if "custom_call_target" in line]
    assert f'f32[4,8]{{1,0}} custom-call(%a.1, %b.1), custom_call_target="{TARGET}"' in call and "/nki_call" in call
    # The config is the text itself, as documented, and the one that FrameworkKernel returns.
    text = call.split('backend_config="')[1].split('"')[0]
    assert text == nki_sim.JaxFrameworkKernel(func=kernels.add).dump_config(a, b)[0]
    config = json.loads(base64.b64decode(text))
    assert list(config) == ["kernel_version", "klir_binary", "func_name", "grid", "has_collectives"]
    assert list(config["klir_binary"]) == ["binary", "input_names", "output_names"]
    assert config["func_name"] == "add" and config["klir_binary"]["input_names"] == ["x", "y"]
    assert "api_version=API_VERSION_STATUS_RETURNING" in call and 'custom_call_target="nki_sim_run"' in run


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "int8", "int32", "uint16"])
def test_dtypes_in_a_compiled_function(dtype):
    x = jnp.asarray(ramp() / 4).astype(dtype)
    got = jax.jit(lambda x: kernels.scale(x, 1))(x)
    assert got.dtype == x.dtype and jnp.array_equal(got, x)


def test_options_of_the_call_count_in_a_compiled_function(monkeypatch):
    x = jnp.asarray(ramp())
    np.testing.assert_array_equal(jax.jit(lambda x: kernels.cores[2](x))(x), ramp() + np.array([[0], [0], [1], [1]]))
    np.testing.assert_array_equal(jax.jit(lambda x: kernels.scale(x, factor=2.0))(x), ramp() * 2)
    np.testing.assert_array_equal(jax.jit(lambda x: kernels.scale(x, factor=4.0))(x), ramp() * 4)
    np.testing.assert_array_equal(jax.jit(lambda x: nki.simulate(kernels.add)(x, ramp()))(x), ramp() * 2)
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    version = nki.jit(kernels.version.func)
    assert jax.jit(version)(x)[0, 0] == 2
    thirds = jnp.full((1, 1), 1 / 3)
    assert jax.jit(narrow)(thirds)[0, 0] != thirds[0, 0]
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    assert jax.jit(lambda x: narrow(x))(thirds)[0, 0] == thirds[0, 0]


@nki.jit
def narrow(x):
    t = kernels.nl.ndarray(x.shape, dtype=kernels.nl.bfloat16, buffer=kernels.nl.sbuf)
    kernels.nisa.dma_copy(dst=t, src=x)
    u = kernels.nl.ndarray(x.shape, dtype=x.dtype, buffer=kernels.nl.sbuf)
    kernels.nisa.tensor_copy(dst=u, src=t)
    return kernels.store(u)


def test_nested_arguments_and_results_in_a_compiled_function():
    @jax.jit
    def f(x, y):
        mixed = kernels.with_config(x, kernels.Config(2.0), kernels.Box(tensor=y), kernels.Pair(1))
        same, rest = kernels.same_and_double(x)
        return mixed, kernels.several(x)["rest"][1][0], same, rest["double"]

    x = ramp()
    got = f(x, x + 1)
    for one, want in zip(got, ((2 * x + 1) * 7.5, x, x, x * 2)):
        np.testing.assert_array_equal(one, want)


@jax.custom_vjp
def tanh(x):
    return kernels.tanh(x)


tanh.defvjp(lambda x: (kernels.tanh(x),) * 2, lambda y, dy: (kernels.tanh_backward(y, dy),))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_gradients_through_custom_vjp(transform):
    x = jnp.linspace(-2, 2, 32).reshape(4, 8)
    got = transform(jax.grad(lambda x: (tanh(x) ** 2).sum()))(x)
    np.testing.assert_allclose(got, jax.grad(lambda x: (jnp.tanh(x) ** 2).sum())(x), rtol=1e-4, atol=1e-5)
    value, got = transform(jax.value_and_grad(lambda x: tanh(tanh(x) * x).sum()))(x)
    np.testing.assert_allclose(got, jax.grad(lambda x: jnp.tanh(jnp.tanh(x) * x).sum())(x), rtol=1e-4, atol=1e-5)


def test_what_jax_cannot_do_with_a_kernel():
    x = jnp.asarray(ramp())
    with pytest.raises(NotImplementedError, match="`scale` has no derivative that jax knows; give it one with jax.custom_vjp"):
        jax.grad(lambda x: kernels.scale(x, 2.0).sum())(x)
    with pytest.raises(NotImplementedError, match="vmap of the kernel `scale`.*jax.lax.map"):
        jax.vmap(lambda x: kernels.scale(x, 2.0))(x[None])
    each = jax.jit(lambda xs: jax.lax.map(lambda x: kernels.scale(x, 2.0), xs))(jnp.stack([x, x + 1]))
    np.testing.assert_array_equal(each, np.stack([ramp(), ramp() + 1]) * 2)
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: kernels.scale(x, 2.0), x))(x)
    np.testing.assert_array_equal(looped, ramp() * 8)


def test_a_written_argument_is_a_result():
    x = jnp.asarray(ramp())
    got = jax.jit(lambda x: (kernels.increment(x), x))(x)
    np.testing.assert_array_equal(got[0], ramp() + 1)
    np.testing.assert_array_equal(got[1], ramp())
    with pytest.raises(ValueError, match="writes its argument `x` and does not return it"):
        jax.jit(lambda x: kernels.increment_quietly(x))(x)


def test_wrong_arguments_in_a_compiled_function():
    x = jnp.asarray(ramp())
    with pytest.raises(ValueError, match="argument `x` is a jax scalar, which has no value while jax traces"):
        jax.jit(kernels.scale)(1.0)
    with pytest.raises(AssertionError, match="5 rows") as info:
        jax.jit(kernels.checked)(jnp.zeros((5, 8)))
    assert isinstance(info.value, nki_sim.KernelError) and info.value.slug == "assertion-failed"
    with pytest.raises(TypeError, match="complex64, which is not a device type"):
        jax.jit(kernels.scale)(x.astype(jnp.complex64))
    with pytest.raises(TypeError, match="a kernel that jax traces does not run, so there is no time"):
        jax.jit(nki_sim.profile(kernels.add))(x, x)
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="argument `y` is of type Tensor; with jax, pass arrays of jax or NumPy"):
        jax.jit(lambda x: kernels.add(x, torch.ones(4, 8)))(x)


def test_shapes_are_enough_to_compile():
    compiled = kernels.add.compile(jax.ShapeDtypeStruct((4, 8), jnp.bfloat16), nki_sim.TensorSpec((4, 8), "bfloat16"))
    assert [tuple(o) for o in compiled.outputs()] == [("output0", [4, 8], "bfloat16")]
    with pytest.raises(nki_sim.ArgumentTypeError, match="`x` has a shape and a dtype, but no values"):
        kernels.scale(jax.ShapeDtypeStruct((4, 8), jnp.float32))


def test_a_fault_in_a_graph_carries_the_diagnostic():
    f = jax.jit(kernels.pick)
    x = jnp.asarray(ramp())
    np.testing.assert_array_equal(f(x, np.array([[2]], np.int32)), ramp()[2:3])
    with pytest.raises((ValueError, RuntimeError), match="dynamic index 100 of `x`") as info:
        jax.block_until_ready(f(x, np.array([[100]], np.int32)))
    assert "kernels.py" in str(info.value) and "nisa.dma_copy" in str(info.value)


def test_a_kernel_in_a_graph_prints_and_warns(capfd):
    x = jnp.asarray(ramp())
    jax.block_until_ready(jax.jit(kernels.watched)(x))
    assert "first:" in capfd.readouterr().out
    with pytest.warns(nki_sim.KernelWarning, match="are never written"):
        jax.block_until_ready(jax.jit(kernels.partly)(x))


def test_other_threads_run_while_a_graph_does(counter):
    f = jax.jit(kernels.add)
    x = jnp.ones((128, 8192))
    counter.advances_during(lambda: jax.block_until_ready(f(x, x)))


def test_compiled_functions_are_called_from_several_threads():
    f, wrong = jax.jit(kernels.add), []

    def work(seed):
        x = jnp.asarray(np.random.default_rng(seed).standard_normal((64, 64)), jnp.float32)
        for _ in range(5):
            if not jnp.array_equal(f(x, x), x + x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_graph_of_another_process_is_refused():
    """A program is named by a hash of its contents: a graph that outlives the process (jax keeps some on disk) cannot run another one."""
    x = jnp.ones((4, 8))
    jax.block_until_ready(jax.jit(kernels.add)(x, x))
    call = jax.ffi.ffi_call("nki_sim_run", jax.ShapeDtypeStruct((4, 8), jnp.float32))
    with pytest.raises((ValueError, RuntimeError), match="0f0f is not known in this process"):
        jax.block_until_ready(jax.jit(lambda x: call(x, program="0f0f"))(x))
    with pytest.raises((ValueError, RuntimeError), match="the custom call names no program"):
        jax.block_until_ready(jax.jit(lambda x: call(x))(x))
    (name,) = {word.split('"')[1] for word in jax.jit(kernels.add).lower(x, x).as_text().split("program = ")[1:]}
    with pytest.raises((ValueError, RuntimeError), match="kernel add: the custom call has 1 operands and 1 results, the program 3 and 1"):
        jax.block_until_ready(jax.jit(lambda x: call(x, program=name))(x))
    with pytest.raises((ValueError, RuntimeError), match="kernel add: `x` of the custom call is not what the program was compiled for"):
        jax.block_until_ready(jax.jit(lambda x: call(x.T, x.T, x, program=name))(x))


def test_several_outputs_in_a_compiled_function():
    x = jnp.asarray(ramp())
    first, rest = jax.jit(lambda x: (kernels.several(x)["first"], kernels.several(x)["rest"][0]))(x)
    assert jnp.array_equal(first, x) and jnp.array_equal(rest, x)


def test_strided_arrays():
    wide = np.arange(64, dtype=np.float32).reshape(4, 16)
    got = jax.jit(lambda x: kernels.add(x, wide[:, ::2]))(jnp.asarray(wide)[:, 1::2])
    np.testing.assert_array_equal(got, wide[:, ::2] + wide[:, 1::2])
    np.testing.assert_array_equal(kernels.scale(jnp.asarray(wide).T, 2.0), wide.T * 2)


CHECKS = [
    "np.testing.assert_allclose(jax_customop_tutorial(a, b), a * b * (a + b), rtol=1e-5)",
    """
np.testing.assert_allclose(c, (a + b) * a * b, rtol=1e-5)
np.testing.assert_allclose(grad_a, 2 * a * b + b * b, rtol=1e-4, atol=1e-4)
np.testing.assert_allclose(grad_b, 2 * a * b + a * a, rtol=1e-4, atol=1e-4)
""",
]


@pytest.mark.parametrize("number", [0, 1])
def test_the_page_on_custom_operators_runs_as_it_stands(number, tmp_path):
    text = page.find()
    if text is None:
        pytest.skip("no copy of the documentation's page: name its directory in NKI_DOCUMENTS")
    # The second section uses arrays of the first.
    blocks = [block for part in range(number + 1) for block in page.section(text, "JAX", part)]
    script = tmp_path / "page.py"
    script.write_text("\n\n".join([page.kernel(text), *blocks, "import numpy as np", CHECKS[number]]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # The graph on the page, except for the numbers of instructions and the s8 constant of the SDK's compiler.
    (call,) = [line for line in done.stdout.splitlines() if 'custom_call_target="AwsNeuronCustomNativeKernel"' in line]
    assert "f32[256,1024]{1,0} custom-call(" in call and "api_version=API_VERSION_STATUS_RETURNING" in call and "/nki_call" in call
    config = json.loads(base64.b64decode(call.split('backend_config="')[1].split('"')[0]))
    (theirs,) = [line for line in text.splitlines() if 'custom_call_target="AwsNeuronCustomNativeKernel"' in line and "backend_config" in line and "eyJ" in line]
    # The page truncates its text before the padding.
    documented = theirs.split('backend_config="')[1].split('"')[0]
    documented = json.loads(base64.b64decode(documented + "=" * (-len(documented) % 4)))
    assert list(config) == list(documented) and list(config["klir_binary"]) == list(documented["klir_binary"])
    assert [config[k] for k in ("kernel_version", "func_name", "grid")] == [documented[k] for k in ("kernel_version", "func_name", "grid")]
