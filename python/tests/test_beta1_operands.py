"""Kernels for neuronxcc.nki: operands of other shapes than the result, index tiles as numbers, and masked transposes."""

import warnings

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

import nki_sim


@pytest.fixture(autouse=True, params=["tracer", "parser"])
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("error", nki_sim.KernelWarning)
        yield request.param


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@nki.jit
def added(x, y, rows, how):
    a, b = nl.load(x), nl.load(y)
    if how == "instruction":
        made = nisa.tensor_tensor(a, b, nl.add)
    elif how == "function":
        made = nl.add(a, b)
    else:
        made = a + b
    out = nl.ndarray(made.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, made)
    return out


@pytest.mark.parametrize("how", ["instruction", "function", "operator"])
@pytest.mark.parametrize(
    "x, y, as_if",
    [
        ((4, 1, 8), (4, 8, 1), (4, 8, 1)),
        ((4, 8, 1), (4, 1, 8), (4, 1, 8)),
        ((4, 1, 8), (4, 3, 1), (4, 3, 1)),
        ((4, 3, 8), (4, 3, 8), (4, 3, 8)),
        # Missing axes come first, as in NumPy, or last if only that fits.
        ((4, 3, 8), (4, 8), (4, 1, 8)),
        ((4, 3, 8), (4, 3), (4, 3, 1)),
        ((1, 8, 4, 2), (1, 8, 4), (1, 8, 4, 1)),
        ((4, 3, 3), (4, 3), (4, 1, 3)),
    ],
)
def test_operands_repeat(x, y, as_if, how):
    x, y = normal(*x), normal(*y)
    np.testing.assert_array_equal(added(x, y, 4, how), x + y.reshape(as_if))


@nki.jit
def with_reduced(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nl.store(out, t - nisa.tensor_reduce(np.max, t, axis=(3,)))
    return out


def test_the_result_of_a_reduction_lacks_the_last_axis():
    x = normal(2, 8, 4, 2)
    np.testing.assert_array_equal(with_reduced(x), x - x.max(-1, keepdims=True))


def test_shapes_that_do_not_fit():
    with pytest.raises(nki_sim.KernelError, match=r"\(4, 3, 8\) and `b` of shape \(4, 5\)"):
        added(normal(4, 3, 8), normal(4, 5), 4, "operator")


@nki.jit
def predicated(x, p):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    to = nl.full(x.shape, -1.0, dtype=x.dtype)
    nisa.tensor_copy_predicated(src=nl.load(x), dst=to, predicate=nl.load(p))
    nl.store(out, to)
    return out


@pytest.mark.parametrize("x, p, as_if", [((4, 8), (4, 1), (4, 1)), ((4, 8, 2), (4, 8), (4, 8, 1)), ((4, 3, 2), (4, 1, 2), (4, 1, 2))])
def test_predicates_repeat(x, p, as_if):
    x, p = normal(*x), (normal(*p) > 0).astype(np.uint8)
    np.testing.assert_array_equal(predicated(x, p), np.where(p.reshape(as_if), x, np.float32(-1)))


@nki.jit
def of_indices(n, how):
    rows, columns = nl.arange(16)[:, None], nl.arange(8)[None, :]
    wide = how in ("columns", "both")
    out = nl.ndarray((16, 8 if wide else 1), dtype=nl.int32, buffer=nl.shared_hbm)
    if how == "rows":
        made = nl.mod(nl.add(rows, nl.int32(5)), nl.int32(7))
        nl.store(out, made)
        return out
    t = nl.broadcast_to(nl.load(n), shape=(16, 1))
    if how == "columns":
        made = nl.add(columns, t)
    elif how == "both":
        made = nl.maximum(rows * 2 - columns, t)
    elif how == "sum":
        made = nl.multiply(t + rows, 3)
    elif how == "stored":
        made = t + rows
    else:
        made = nl.copy(nl.less(rows + 3, t), dtype=nl.int32)
    nl.store(out, made)
    return out


@pytest.mark.parametrize("how", ["rows", "columns", "both", "sum", "stored", "less"])
def test_index_tiles_are_numbers(how):
    rows, columns = np.arange(16)[:, None], np.arange(8)[None, :]
    expected = {
        "rows": (rows + 5) % 7,
        "columns": columns + 9 + 0 * rows,
        "both": np.maximum(rows * 2 - columns, 9),
        "sum": (rows + 9) * 3,
        "stored": rows + 9,
        "less": rows + 3 < 9,
    }
    np.testing.assert_array_equal(of_indices(np.array([[9]], np.int32), how), expected[how].astype(np.int32))


@nki.jit
def transposed_in_tiles(x, by_dma):
    """The transpose of [64, n], in tiles of 64 columns of which the last is masked."""
    rows, n = x.shape
    out = nl.ndarray((n, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0:rows, 0:64]
    q, g = nl.mgrid[0:64, 0:rows]
    if not by_dma:
        t = nl.load(x)
    for h in nl.affine_range((n + 63) // 64):
        if by_dma:
            made = nisa.dma_transpose(x[p, h * 64 + f], mask=h * 64 + f < n)
        else:
            made = nisa.nc_transpose(t[p, h * 64 + f], mask=h * 64 + f < n)
        turned = nisa.tensor_copy(made, mask=h * 64 + q < n)
        nl.store(out[h * 64 + q, g], turned[q, g], mask=h * 64 + q < n)
    return out


@pytest.mark.parametrize("by_dma", [False, True])
@pytest.mark.parametrize("columns", [64, 96, 65, 128])
def test_masked_transposes(columns, by_dma):
    x = normal(64, columns)
    np.testing.assert_array_equal(transposed_in_tiles(x, by_dma), x.T)


@nki.jit
def padded(x):
    out = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0:16, 0:32]
    t = nl.load(x[p, f], mask=f < 20)
    nl.store(out, nl.where(f < 20, t, nl.full((16, 32), -1e30, dtype=x.dtype), dtype=np.float32))
    return out


def test_elements_that_a_condition_leaves_out_may_be_unwritten():
    x = normal(16, 20)
    np.testing.assert_array_equal(padded(x), np.pad(x, ((0, 0), (0, 12)), constant_values=np.float32(-1e30)))


@nki.jit
def partly_selected(x):
    """Selects elements of two columns more than are loaded."""
    out = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0:16, 0:32]
    t = nl.load(x[p, f], mask=f < 20)
    nl.store(out, nl.where(f < 22, t, nl.full((16, 32), 0.0, dtype=x.dtype), dtype=np.float32))
    return out


def test_selected_elements_that_are_unwritten_are_reported():
    with pytest.warns(nki_sim.KernelWarning, match="(?s)uninitialized-read.*uninitialized-output.* 32 of 512"):
        partly_selected(normal(16, 20))


@nki.jit
def out_of_bounds(x):
    t = nl.load(x)
    return t[:, 3].reshape((16, 8))


def test_a_view_of_an_access_out_of_bounds():
    with pytest.raises(nki_sim.KernelError, match="out-of-bounds.*index 3 to 3"):
        out_of_bounds(normal(16, 2, 8))


@nki.jit
def looped(x, n):
    t = nl.load(x)
    for _ in range(nt.scalar(nl.load(n))):
        t[...] = nl.add(t, 1.0)
    return t


def test_loops_over_numbers_of_the_device():
    with pytest.raises(nki_sim.KernelError, match="nt.scalar: loops .* are not supported"):
        looped(normal(16, 8), np.array([[3]], np.int32))


def test_specialised_kernels():
    made = added.specialize(nt.tensor[(4, 8), np.float32], nt.tensor[(4, 8), np.float32])
    x = normal(4, 8)
    np.testing.assert_array_equal(made(x, x, 4, "operator"), 2 * x)


@nki.jit
def multiplied(x, y, by_instruction):
    out = nl.ndarray((16, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    a, b = nl.load(x), nl.load(y)
    made = nisa.nc_matmul(a, b) if by_instruction else nl.matmul(a, b, transpose_x=True)
    nl.store(out, nl.copy(made))
    return out


@pytest.mark.parametrize("by_instruction", [False, True])
@pytest.mark.parametrize("types", [(np.float32, ml_dtypes.bfloat16), (ml_dtypes.bfloat16, np.float32), (np.float16, np.float32)])
def test_matmuls_of_float32_by_narrower_types(types, by_instruction):
    x, y = (np.random.default_rng(n).normal(size=(8, 16 * n)).astype(dtype) for n, dtype in zip((1, 2), types))
    expected = x.astype(np.float32).T @ y.astype(np.float32)
    np.testing.assert_allclose(multiplied(x, y, by_instruction), expected, rtol=1e-5, atol=1e-6)


@nki.jit
def pooled(x, size, stride, padding, by_instruction):
    channels, height, width = x.shape
    rows, columns = ((n + 2 * padding - size) // stride + 1 for n in (height, width))
    out = nl.ndarray((channels, rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    c = nl.arange(channels)[:, None, None, None, None]
    i, j = nl.arange(rows)[None, :, None, None, None], nl.arange(columns)[None, None, :, None, None]
    a, b = nl.arange(size)[None, None, None, :, None], nl.arange(size)[None, None, None, None, :]
    t = nl.load(x)
    y, z = stride * i - padding + a, stride * j - padding + b
    inside = (y >= 0) & (z >= 0) & (y < height) & (z < width)
    if by_instruction:
        made = nisa.tensor_reduce(np.max, t[c, y, z], axis=[3, 4], mask=inside)
    else:
        made = nl.max(t[c, y, z], axis=[3, 4], mask=inside)
    nl.store(out, made)
    return out


@pytest.mark.parametrize("by_instruction", [False, True])
@pytest.mark.parametrize("size, stride, padding", [(3, 1, 1), (4, 2, 1), (2, 2, 0), (3, 2, 1)])
def test_reductions_of_windows_with_borders(size, stride, padding, by_instruction):
    x = normal(4, 9, 11)
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    np.testing.assert_array_equal(pooled(x, size, stride, padding, by_instruction), windows.max((3, 4)))


@nki.jit
def of_a_band(x):
    """Sums over what a mask leaves of each row in two pieces."""
    p, f = nl.arange(8)[:, None], nl.arange(16)[None, :]
    t = nl.load(x)
    return nl.sum(t[p, f], axis=[1], mask=(f - p >= 3))


def test_reductions_of_a_triangle_over_partitions():
    with pytest.raises(nki_sim.KernelError, match="mask= leaves 8 rectangles, but this operation takes one"):
        of_a_band(normal(8, 16))


@nki.jit
def with_axes(x):
    t = nl.load(x)
    out = nl.ndarray((4, 8, 1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, t.expand_dims((2, 3)))
    return out


def test_several_new_axes():
    x = normal(4, 8)
    np.testing.assert_array_equal(with_axes(x), x[:, :, None, None])


@nki.jit
def misspelt(x):
    return nl.load(x).astyp(nl.bfloat16)


def test_unknown_attributes_are_compared_with_the_methods_of_the_dialect():
    with pytest.raises(nki_sim.KernelError, match="did you mean `astype`"):
        misspelt(normal(4, 8))


@nki.jit
def transposed(x, how, dtype):
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    if how == "nisa":
        turned = nisa.nc_transpose(t, dtype=dtype)
    elif how == "vector":
        turned = nisa.nc_transpose(t, dtype=dtype, engine=nisa.vector_engine)
    elif how == "slice":
        turned = nl.ndarray((columns, rows), dtype=x.dtype)
        turned[...] = nisa.nc_transpose(t)
    elif how == "nl":
        turned = nl.transpose(t, dtype=dtype)
    else:
        turned = nisa.dma_transpose(t, dtype=dtype)
    assert turned.dtype == (dtype or x.dtype)
    nl.store(out, nl.copy(turned, dtype=nl.float32))
    return out


@pytest.mark.parametrize("target", ["trn1", "trn2"])
def test_a_transpose_casts_and_takes_8_bit_floats(target):
    """With another `dtype` a copy casts the result (SDK 2.26.1, nc_transpose). A returned tile of 8-bit floats needs no stride in the source."""
    on_target = nki.jit(platform_target=target)(transposed.func)
    f32, bf16, fp8 = np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2
    for size, dtype, how, to in [
        *[(64, fp8, how, None) for how in ("nisa", "slice", "nl")],
        *[(64, fp8, "nisa", nl.bfloat16), (64, fp8, "nl", nl.float32), (32, fp8, "vector", None)],
        *[(64, f32, "nisa", nl.bfloat16), (64, bf16, "nisa", nl.float32), (64, f32, "vector", nl.bfloat16)],
        *[(32, bf16, "vector", nl.float32), (64, bf16, "dma", nl.float32), (64, f32, "dma", nl.bfloat16)],
    ]:
        x = normal(size, size).astype(dtype)
        want = x.T.astype(bf16).astype(f32) if to is nl.bfloat16 else x.T.astype(f32)
        np.testing.assert_array_equal(on_target(x, how, to), want, err_msg=f"{dtype} {how} {to}")


@nki.jit
def product(x, y):
    out = nl.ndarray((x.shape[0], y.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.matmul(nl.load(x), nl.load(y)))
    return out


def test_a_matmul_transposes_8_bit_floats():
    x, y = (normal(64, 64).astype(ml_dtypes.float8_e5m2) for _ in range(2))
    np.testing.assert_allclose(product(x, y), x.astype(np.float32) @ y.astype(np.float32), rtol=1e-6, atol=1e-5)


@nki.jit
def dropped_out(x):
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    nl.store(out, nisa.dropout(nl.load(x), prob=0.0, dtype=nl.bfloat16))
    return out


def test_dropout_casts():
    x = normal(64, 32)
    np.testing.assert_array_equal(dropped_out(x), x.astype(ml_dtypes.bfloat16))


@nki.jit
def masked_sum(x, rows, columns):
    out = nl.ndarray((1, x.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.arange(x.shape[0])[:, None], nl.arange(x.shape[1])[None, :]
    zero, k = nl.arange(1)[:, None], nl.arange(x.shape[1])[None, :]
    nl.store(out, nl.zeros((1, x.shape[1]), dtype=nl.float32))
    sums = nisa.tensor_partition_reduce(nl.add, nl.load(x)[i, j], mask=(i < rows) & (j < columns))
    nl.store(out[zero, k], sums[zero, k], mask=k < columns)
    return out


def test_a_mask_of_a_reduction_over_partitions():
    x = np.round(normal(64, 32) * 8)
    for rows, columns in [(64, 32), (50, 20), (1, 32)]:
        want = np.zeros((1, 32), np.float32)
        want[:, :columns] = x[:rows, :columns].sum(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(masked_sum(x, rows, columns), want)


@nki.jit
def where_mask(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mask = nl.broadcast_to(nl.arange(x.shape[1])[None, :] < 5, shape=x.shape)
    nl.store(out, nl.where(mask, nl.load(x), nl.zeros(x.shape, dtype=x.dtype)))
    return out


def test_a_broadcast_mask_is_a_tile():
    x = normal(16, 8)
    np.testing.assert_array_equal(where_mask(x), np.where(np.arange(8) < 5, x, 0))


@nki.jit
def with_dst(x):
    t = nl.load(x)
    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out


def test_dst_is_reported():
    x = normal(16, 8)
    with pytest.warns(nki_sim.KernelWarning, match=r"ignored-argument.*nisa.tensor_tensor: `dst=` has no effect"):
        np.testing.assert_array_equal(with_dst(x), x)
