"""Arrays of torch and jax come back as what went in."""

import kernels
import ml_dtypes
import numpy as np
import pytest


def ramp(dtype=np.float32):
    return np.arange(32).reshape(4, 8).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2, np.int32])
def test_numpy(dtype):
    got = kernels.scale(ramp(dtype), 1)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.astype(np.float32), ramp(dtype).astype(np.float32))


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.float8_e5m2):
        x = torch.from_numpy(ramp()).to(dtype)
        got = kernels.scale(x, 1)
        assert isinstance(got, torch.Tensor) and got.dtype == dtype and torch.equal(got.float(), x.float())
    x = torch.from_numpy(ramp())
    assert kernels.increment(x) is x and x[0, 0] == 1
    needs_grad = torch.from_numpy(ramp()).requires_grad_()
    assert torch.equal(kernels.scale(needs_grad, 2.0), needs_grad.detach() * 2)
    with pytest.raises(ValueError, match="not contiguous"):
        kernels.scale(x.T)
    with pytest.raises(TypeError, match=r"torch.float64, which is not a device type; pass x.to\(torch.float32\)"):
        kernels.scale(x.double())
    with pytest.raises(ValueError, match="device meta"):
        kernels.scale(x.to("meta"))


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32):
        x = jnp.asarray(ramp()).astype(dtype)
        got = kernels.scale(x, 1)
        assert isinstance(got, jax.Array) and got.dtype == dtype and jnp.array_equal(got, x)
    x = jnp.asarray(ramp())
    # Arrays of jax do not change: what is returned is a new one.
    got = kernels.increment(x)
    assert jnp.array_equal(got, x + 1) and x[0, 0] == 0
    with pytest.raises(ValueError, match="a jax array, which cannot be written"):
        kernels.increment_quietly(x)
