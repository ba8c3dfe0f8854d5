"""Kernels for neuronxcc.nki: masks over several axes, blocks initialised with zeros, bits, and loop-carried names."""

import warnings

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nki_sim


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@nki.jit
def of_two_axes(x, n, how):
    """A tile of -1, in which the elements selected by a mask over both axes are replaced."""
    out = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.full((8, 4), -1.0, dtype=x.dtype)
    p, f = nl.arange(8)[:, None], nl.arange(4)[None, :]
    u = nl.load(x)
    if how == "load":
        t[p, f] = nl.load(x[p, f], mask=(p * 4 + f < n))
    elif how == "add":
        t[p, f] = nl.add(u[p, f], 1.0, mask=(p * 4 + f < n))
    elif how == "tensor_scalar":
        t[p, f] = nisa.tensor_scalar(u[p, f], np.multiply, 2.0, mask=(p * 4 + f < n))
    elif how == "triangle":
        t[p, f] = nl.load(x[p, f], mask=(p + f < n))
    elif how == "joined":
        t[p, f] = nl.load(x[p, f], mask=(p * 4 + f < n) & (p > 0) & (f < 3))
    elif how == "lower":
        t[p, f] = nl.load(x[p, f], mask=(f - p >= n))
    elif how == "store":
        nl.store(out, t)
        nl.store(out[p, f], u[p, f], mask=(p * 4 + f < n))
        return out
    nl.store(out, t)
    return out


@pytest.mark.parametrize("how", ["load", "add", "tensor_scalar", "store", "triangle", "joined", "lower"])
@pytest.mark.parametrize("n", [-3, 0, 1, 3, 4, 5, 11, 12, 30, 31, 32, 40])
@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_masks_of_two_axes(n, how):
    x = normal(8, 4)
    p, f = np.arange(8)[:, None], np.arange(4)[None, :]
    flat = p * 4 + f < n
    left = {"triangle": p + f < n, "joined": flat & (p > 0) & (f < 3), "lower": f - p >= n}.get(how, flat)
    value = {"add": x + 1, "tensor_scalar": x * 2}.get(how, x)
    np.testing.assert_array_equal(of_two_axes(x, n, how), np.where(left, value, np.float32(-1)))


@nki.jit
def of_a_flat_tensor(x, n):
    out = nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(4)[None, :]
    t = nl.zeros((128, 4), dtype=x.dtype)
    t[p, f] = nl.load(x[p * 4 + f], mask=(p * 4 + f < n))
    nl.store(out, t)
    return out


@pytest.mark.parametrize("n", [512, 500, 498, 0])
@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_masks_of_the_elements_of_a_flat_tensor(n):
    x = normal(512)
    np.testing.assert_array_equal(of_a_flat_tensor(x, n).ravel(), np.where(np.arange(512) < n, x, np.float32(0)))


@nki.jit
def along_rows(x, how, n):
    """Operations that combine the elements of a row."""
    p, f = nl.arange(8)[:, None], nl.arange(4)[None, :]
    out = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    t, mask = nl.load(x), p * 4 + f < n
    if how == "sum":
        made = nl.sum(t[p, f], axis=1, keepdims=True, mask=mask)
    elif how == "softmax":
        made = nl.softmax(t[p, f], axis=1, mask=mask)
    elif how == "scan":
        made = nisa.tensor_tensor_scan(t[p, f], t[p, f], initial=0.0, op0=np.multiply, op1=np.add, mask=mask)
    else:
        made = nisa.activation_reduce(np.exp, t[p, f], reduce_op=np.add, reduce_res=nl.ndarray((8, 1), dtype=x.dtype), mask=mask)
    nl.store(out[0:8, 0 : made.shape[1]], made)
    return out


@pytest.mark.parametrize("how", ["sum", "softmax", "scan", "activation_reduce"])
@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_what_combines_elements_takes_one_rectangle(how):
    with pytest.raises(nki_sim.KernelError, match="leaves 2 rectangles, but this operation takes one"):
        along_rows(normal(8, 4), how, 30)
    along_rows(normal(8, 4), how, 32)


@nki.jit
def zero_blocks(x, rows, how):
    """Blocks initialised with zeros, each of which a masked instruction writes first."""
    out = nl.ndarray((3, 128, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.zeros((3, nl.par_dim(128), 8), dtype=x.dtype)
    p, f = nl.arange(128)[:, None], nl.arange(8)[None, :]
    for i in nl.affine_range(3):
        mask = p + i * 128 < rows
        if how == "load":
            t[i, p, f] = nl.load(x[p + i * 128, f], mask=mask)
        elif how == "add":
            t[i, p, f] = nl.add(nl.load(x[p, f]), 1, mask=mask)
        else:
            t[i] = nl.copy(nl.load(x[p, f]), mask=mask)
    for i in nl.affine_range(3):
        nl.store(out[i], t[i])
    return out


@pytest.mark.parametrize("how", ["load", "add", "copy"])
@pytest.mark.parametrize("rows", [0, 5, 128, 200, 384])
@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_a_masked_write_leaves_the_zeros_of_a_block(rows, how):
    x = normal(384, 8)
    left = (np.arange(384) < rows).reshape(3, 128, 1)
    value = x.reshape(3, 128, 8) if how == "load" else np.broadcast_to(x[:128] + (how == "add"), (3, 128, 8))
    np.testing.assert_array_equal(zero_blocks(x, rows, how), np.where(left, value, np.float32(0)))


@nki.jit
def rows_that_are_there(table, order):
    out = nl.ndarray((2, 128, 8), dtype=table.dtype, buffer=nl.shared_hbm)
    t = nl.zeros((2, nl.par_dim(128), 8), dtype=table.dtype)
    p, f = nl.arange(128)[:, None], nl.arange(8)[None, :]
    for i in nl.affine_range(2):
        places = nl.load(order[i])
        t[i, p, f] = nl.load(table[places[p, 0], f], mode=nisa.oob_mode.skip)
        nl.store(out[i], t[i])
    return out


def test_rows_out_of_bounds_leave_the_zeros_of_a_block():
    table, order = normal(64, 8), np.arange(256, dtype=np.int32).reshape(2, 128, 1) % 80
    inside = order < 64
    want = np.where(inside, table[np.minimum(order[..., 0], 63)], np.float32(0))
    np.testing.assert_array_equal(rows_that_are_there(table, order), want)


@nki.jit
def psum_blocks(a, b):
    out = nl.ndarray((2, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.zeros((2, nl.par_dim(128), 64), dtype=nl.float32, buffer=nl.psum)
    x, y = nl.load(a), nl.load(b)
    for i in nl.affine_range(2):
        t[i] = nisa.nc_matmul(x, y)
        t[i] += nisa.nc_matmul(x, y)
    for i in nl.affine_range(2):
        nl.store(out[i], t[i])
    return out


def test_blocks_in_psum():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, size=(128, n)).astype(np.float32) for n in (128, 64))
    np.testing.assert_array_equal(psum_blocks(a, b), np.broadcast_to(2 * (a.T @ b), (2, 128, 64)))


@nki.jit
def bits(x, y):
    out = nl.ndarray((7, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
    t, u = nl.load(x), nl.load(y)
    nl.store(out[0], ~t)
    nl.store(out[1], t & 15)
    nl.store(out[2], nl.bitwise_or(t, 3))
    w = nl.copy(t)
    w <<= 1
    nl.store(out[3], w)
    nl.store(out[4], t ^ u)
    nl.store(out[5], nisa.tensor_tensor(t, u, np.bitwise_and))
    nl.store(out[6], nl.invert(t))
    return out


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int32", "uint32"])
def test_bits_have_the_type_of_the_tile(dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, np.iinfo(dtype).max, size=(16, 8), endpoint=True).astype(dtype) for _ in range(2))
    one = x.dtype.type
    for got, want in zip(bits(x, y), (~x, x & one(15), x | one(3), x << one(1), x ^ y, x & y, ~x)):
        np.testing.assert_array_equal(got, want)


@nki.jit
def truths(x):
    out = nl.ndarray((3, *x.shape), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    nl.store(out[0], nl.where(~(t > 0), 0.0, t))
    nl.store(out[1], nl.where(~((t > 0) & (t < 2)), 0.0, t))
    nl.store(out[2], -t)
    return out


def test_the_complement_of_a_comparison_is_the_other_truth():
    x = np.array([[-1, 2, 0, 4, 1, 0.5]], np.float32).repeat(4, 0)
    np.testing.assert_array_equal(truths(x), [np.where(x > 0, x, 0), np.where((x > 0) & (x < 2), x, 0), -x])


@nki.jit
def overwritten_truth(x):
    out = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
    t = nl.load(x) > 0
    t[...] = nl.full(x.shape, 5, dtype=nl.uint8)
    nl.store(out, ~t)
    return out


@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_what_is_written_over_a_comparison_has_bits():
    assert (overwritten_truth(normal(4, 8)) == 250).all()


@nki.jit
def negated_matmul(x, y):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nisa.nc_matmul(-nl.load(x, dtype=nl.bfloat16), nl.load(y, dtype=nl.bfloat16)))
    return out


def test_a_negated_tile_keeps_its_type():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, size=(128, n)).astype(np.float32) for n in (64, 32))
    np.testing.assert_array_equal(negated_matmul(x, y), -(x.T @ y))


@nki.jit
def wide(x, y):
    """Arithmetic in float32, as the manual specifies for `nisa.tensor_scalar`; a store to integers of the same size keeps the bits."""
    out = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    nl.store(out, nisa.tensor_scalar(nl.load(x), nl.add, nl.load(y), dtype=nl.uint32))
    return out


@pytest.mark.filterwarnings("ignore::nki_sim.KernelWarning")
def test_tensor_scalar_computes_in_float32():
    x = np.array([[4294967295], [7], [2**24 + 1]], np.uint32)
    assert wide(x, np.array([[64], [1], [2]], np.int32)).ravel().tolist() == [-1, 8, 2**24 + 2]


@nki.jit
def program(x):
    out = nl.ndarray((2, 1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    i = nl.program_id(0)
    nl.store(out[i], nisa.iota(3 * i, dtype=nl.int32))
    return out


def test_iota_of_a_number():
    assert program[2](normal(1, 1)).ravel().tolist() == [0, 3]


@nki.jit
def carried(x, how):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    last, name, pair = None, "a", (0, "a")
    for i in nl.affine_range(4):
        t = nl.load(x[i * 32 : (i + 1) * 32])
        if how == "tile":
            if last is not None:
                t = t + last
            last = t
        elif how == "text":
            t = t + (name == "b")
            name = "b"
        elif how == "tuple":
            t = t + pair[0]
            pair = (pair[0] + 1, "b")
        nl.store(out[i * 32 : (i + 1) * 32], t)
    return out


@nki.jit
def counted(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = 0
    for i in nl.affine_range(4):
        nl.store(out[i * 32 : (i + 1) * 32], nl.load(x[i * 32 : (i + 1) * 32]))
        count += 1
    return out


@nki.jit
def offset(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    start = 0
    for i in nl.affine_range(4):
        nl.store(out[i * 32 : (i + 1) * 32], nl.load(x[start : start + 32]))
        start += 32
    return out


def said(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, " ".join(str(one.message) for one in found)


@pytest.mark.parametrize("how", ["tile", "text", "tuple"])
def test_names_begin_each_iteration_as_before_the_loop(how):
    x = normal(128, 8)
    got, warned = said(lambda: carried(x, how))
    np.testing.assert_array_equal(got, x)
    assert "loop-carried" in warned


def test_numbers_begin_each_iteration_as_before_the_loop():
    x = normal(128, 8)
    got, warned = said(lambda: offset(x))
    np.testing.assert_array_equal(got, np.tile(x[:32], (4, 1)))
    assert "loop-carried" in warned
    got, warned = said(lambda: counted(x))
    np.testing.assert_array_equal(got, x)
    assert "loop-carried" not in warned


def test_a_grid_has_a_positive_number_of_programs():
    with pytest.raises(nki_sim.ArgumentTypeError, match="0 programs"):
        nl.spmd_dim(0, nl.nc(2))


@nki.jit
def of_the_loaded_rows(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
    t = nl.load(x[p, f], mask=(p < x.shape[0]))
    nl.store(out[p, f], nl.softmax(t, axis=1), mask=(p < x.shape[0]))
    return out


@nki.jit
def by_way_of_accumulators(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    p, f = nl.arange(128)[:, None], nl.arange(x.shape[1])[None, :]
    t, ones = nl.load(x[p, f], mask=(p < x.shape[0])), nl.ones((128, 4), dtype=nl.float32)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(op=nl.copy, data=t, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.activation(op=nl.copy, data=ones, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reduce)
    nl.store(out, total)
    return out


def test_unwritten_rows_are_reported_if_they_reach_a_result():
    x = normal(72, 4)
    got, warned = said(lambda: of_the_loaded_rows(x))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert "uninitialized-read" not in warned
    _, warned = said(lambda: by_way_of_accumulators(x))
    assert "uninitialized-read" in warned
