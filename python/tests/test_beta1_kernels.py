"""Kernels in the style of the old course assignments, tutorials and generated kernels, compared with NumPy."""

import functools

import ml_dtypes
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest
from neuronxcc.nki.language import arange as range_of
from neuronxcc.nki.language import par_dim

import nki_sim

#: Both frontends build the same program from each of these kernels.
pytestmark = pytest.mark.usefixtures("both_frontends")

BF16 = ml_dtypes.bfloat16


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def close(got, want, tolerance=1e-5):
    got = np.asarray(got, np.float64)
    assert got.shape == want.shape
    error = np.abs(got - want).max() / max(np.abs(want).max(), 1e-30)
    assert error <= tolerance, f"relative error {error:.3g}"


# --- masks ------------------------------------------------------------------------------------------------------------------------------


@nki.jit
def ragged_matmul(lhs_t, rhs):
    """Tiles that exceed all three dimensions; the operands of the last ones are masked."""
    k, m = lhs_t.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    i_k, i_m = nl.mgrid[0:128, 0:128]
    _, i_n = nl.mgrid[0:128, 0:512]
    for mm in nl.affine_range((m + 127) // 128):
        for nn in nl.affine_range((n + 511) // 512):
            acc = nl.zeros((par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
            for kk in nl.affine_range((k + 127) // 128):
                left = nl.zeros((128, 128), dtype=lhs_t.dtype)
                right = nl.zeros((128, 512), dtype=rhs.dtype)
                inside = kk * 128 + i_k < k
                left[i_k, i_m] = nl.load(lhs_t[kk * 128 + i_k, mm * 128 + i_m], mask=inside & (mm * 128 + i_m < m))
                right[nl.arange(128)[:, None], i_n] = nl.load(
                    rhs[kk * 128 + nl.arange(128)[:, None], nn * 512 + i_n],
                    mask=(kk * 128 + nl.arange(128)[:, None] < k) & (nn * 512 + i_n < n),
                )
                acc += nisa.nc_matmul(left, right)
            rows, columns = nl.arange(128)[:, None], nl.arange(512)[None, :]
            copy = nl.copy(acc, mask=(-128 * mm + -1 * rows + (m - 1) >= 0))
            nl.store(out[mm * 128 + rows, nn * 512 + columns], copy, mask=(mm * 128 + rows < m) & (nn * 512 + columns < n))
    return out


@pytest.mark.parametrize("m, k, n", [(128, 128, 512), (100, 200, 700), (129, 1, 513)])
def test_ragged_matmul(m, k, n):
    a, b = normal(k, m), normal(k, n, seed=1)
    close(ragged_matmul(a, b), a.astype(np.float64).T @ b, 1e-5)


@nki.jit
def masked_products(a, b):
    """A masked matmul, a masked transposing load and a masked reduction; masked-out elements keep their values."""
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    turned = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:512]
    result = nl.full((128, 512), -1.0, dtype=nl.float32)
    rows = nl.arange(128)[None, :]
    result[i_p, i_f] = nl.matmul(nl.load(a)[rows < 100], nl.load(b), transpose_x=True, mask=i_f < 300)
    nl.store(out, result)
    columns = nl.full((64, 128), 5.0, dtype=nl.float32)
    r, c = nl.mgrid[0:128, 0:64]
    columns[nl.arange(64)[:, None], nl.arange(128)[None, :]] = nl.load_transpose2d(a[r, c], mask=r < 40)
    nl.store(turned, columns)
    return out, turned


def test_masked_products_leave_the_rest():
    a, b = normal(128, 128), normal(128, 512, seed=1)
    out, turned = masked_products(a, b)
    want = np.full((128, 512), -1.0)
    want[:100, :300] = (a.astype(np.float64).T @ b)[:100, :300]
    close(out, want)
    want = np.full((64, 128), 5.0)
    want[:, :40] = a[:40, :64].T
    np.testing.assert_array_equal(turned, want)


@nki.jit
def selections(x, y):
    out = nl.ndarray((4, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:128, 0:128]
    tile, other = nl.load(x), nl.load(y)
    nl.store(out[0], nisa.affine_select(pred=(i >= j) & (i - j < 16), on_true_tile=tile, on_false_value=-9.0))
    kept = nl.copy(other)
    kept[i, j] = nisa.affine_select(pred=i >= j, on_true_tile=tile, on_false_value=0, mask=j < 64)
    nl.store(out[1], kept)
    nl.store(out[2], nl.where(i + j <= 100, tile, other))
    numbers = nl.full((128, 128), 7, dtype=nl.int32)
    numbers[i, j] = nisa.iota(2 * i - j, dtype=nl.int32, mask=i < 32)
    nl.store(out[3], nl.copy(numbers, dtype=nl.float32))
    return out


def test_selections_by_index():
    x, y = normal(128, 128), normal(128, 128, seed=1)
    i, j = np.mgrid[0:128, 0:128]
    got = selections(x, y)
    np.testing.assert_array_equal(got[0], np.where((i >= j) & (i - j < 16), x, -9))
    np.testing.assert_array_equal(got[1], np.where(j < 64, np.where(i >= j, x, 0), y))
    np.testing.assert_array_equal(got[2], np.where(i + j <= 100, x, y))
    np.testing.assert_array_equal(got[3], np.where(i < 32, 2 * i - j, 7))


# --- index tiles ------------------------------------------------------------------------------------------------------------------------


@nki.jit
def strided_windows(x, size=3, step=2):
    """Maxima and sums of overlapping windows, read through one access of five dimensions."""
    channels, height, width = x.shape
    rows, columns = (height - size) // step + 1, (width - size) // step + 1
    largest = nl.ndarray((channels, rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((channels, rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    c, r, q, y, z = nl.mgrid[0:channels, 0:rows, 0:columns, 0:size, 0:size]
    windows = tile[c, step * r + y, step * q + z]
    nl.store(largest, nl.max(windows, axis=[3, 4]))
    nl.store(sums, nisa.tensor_reduce(np.add, windows, axis=[3, 4], dtype=np.float32))
    return largest, sums


def test_windows():
    x = normal(40, 17, 21)
    view = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::2, ::2]
    largest, sums = strided_windows(x)
    np.testing.assert_array_equal(largest, view.max((3, 4)))
    close(sums, view.astype(np.float64).sum((3, 4)))


@nki.jit
def views_of_memory(x):
    """Transposing, reversing, even-odd and repeating accesses; a whole grid as an index."""
    rows, columns = x.shape
    out = nl.ndarray((5, columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = nl.arange(columns)[:, None], nl.arange(rows)[None, :]
    nl.store(out[0], nl.load(x[f, p]))
    nl.store(out[1], nl.load(x[rows - 1 - f, -1 * p + (columns - 1)]))
    tile = nl.load(x[nl.mgrid[0:rows, 0:columns]])
    even = tile[nl.arange(rows)[:, None], 2 * nl.arange(columns // 2)[None, :]]
    both = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
    r, h = nl.arange(rows)[:, None], nl.arange(columns // 2)[None, :]
    both[r, h] = nl.copy(even)
    both[r, columns // 2 + h] = tile[r, 2 * h + 1]
    nl.store(out[2, p, f], nl.transpose(both))
    i, a, b = nl.arange(rows)[:, None, None], nl.arange(4)[None, :, None], nl.arange(columns // 4)[None, None, :]
    turned = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
    turned[i, columns // 4 * a + b] = nl.copy(tile[i, a + 4 * b])
    nl.store(out[3, p, f], nl.transpose(turned))
    last = nl.load(x[rows - 1, nl.arange(columns)[:, None]])
    nl.store(out[4, p, f], last.broadcast_to((columns, rows)))
    return out


def test_views_of_memory():
    x = normal(48, 64)
    got = views_of_memory(x)
    np.testing.assert_array_equal(got[0], x.T)
    np.testing.assert_array_equal(got[1], x[::-1, ::-1].T)
    np.testing.assert_array_equal(got[2], np.concatenate([x[:, ::2], x[:, 1::2]], 1).T)
    np.testing.assert_array_equal(got[3], x.reshape(48, 16, 4).transpose(0, 2, 1).reshape(48, 64).T)
    np.testing.assert_array_equal(got[4], np.repeat(x[-1][:, None], 48, 1))


@nki.jit
def picked(table, order, shifts, x):
    """Gather and scatter of HBM rows by a column of indices, with a mask; a tile's column at a position that only the device knows."""
    n, width = order.shape[0], table.shape[1]
    gathered = nl.ndarray((n, width), dtype=table.dtype, buffer=nl.shared_hbm)
    scattered = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    moved = nl.ndarray((128, 2 * shifts.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(scattered, nl.zeros(table.shape, dtype=table.dtype))
    f = nl.arange(width)[None, :]
    for t in nl.affine_range((n + 63) // 64):
        p = nl.arange(64)[:, None]
        rows = nl.load(order[t * 64 + p, nl.arange(1)[None, :]], mask=t * 64 + p < n)
        tile = nl.load(table[rows[p, 0], f], mask=t * 64 + p < n)
        nl.store(gathered[t * 64 + p, f], tile, mask=t * 64 + p < n)
        nl.store(scattered[rows, f], tile, mask=t * 64 + p < n)
        nl.atomic_rmw(scattered[rows, f], value=tile, op=np.add, mask=t * 64 + p < n)
    tile, places = nl.load(x), nl.load(shifts)
    part = nl.ndarray((128, 2 * shifts.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    i_p, i_f = nl.mgrid[0:128, 0:2]
    for s in nl.affine_range(shifts.shape[1]):
        part[i_p, 2 * s + i_f] = nisa.tensor_copy_dynamic_src(tile[i_p, places[0, s] + i_f])
    nl.store(moved, part)
    return gathered, scattered, moved


def test_indices_of_the_device():
    table, x = normal(100, 32), normal(128, 40, seed=2)
    order = np.random.default_rng(0).permutation(100)[:90].astype(np.int32)
    shifts = np.array([[3, 38, 0]], np.int32)
    gathered, scattered, moved = picked(table, order[:, None].copy(), shifts, x)
    np.testing.assert_array_equal(gathered, table[order])
    want = np.zeros_like(table)
    want[order] = 2 * table[order]
    np.testing.assert_array_equal(scattered, want)
    np.testing.assert_array_equal(moved, np.concatenate([x[:, s : s + 2] for s in shifts[0]], 1))
    with pytest.raises(nki_sim.KernelError, match="out of bounds"):
        picked(table, order[:, None].copy(), np.array([[39]], np.int32), x)


# --- blocks, accumulation, reductions over loops ----------------------------------------------------------------------------------------


@nki.jit
def blocked_product(a, b):
    """Tables of tiles with two block dimensions; sums in PSUM over two nested loops; sums in SBUF over a third."""
    k, m = a.shape
    n = b.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((k // 128, m // 128, par_dim(128), 128), dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray((k // 128, nl.par_dim(128), n), dtype=b.dtype, buffer=nl.sbuf)
    for kk in nl.affine_range(k // 128):
        right[kk] = nl.load(b[nl.ds(kk * 128, 128), :])
        for mm in nl.affine_range(m // 128):
            left[kk, mm, :, :] = nl.load(a[kk * 128 : (kk + 1) * 128, mm * 128 : (mm + 1) * 128])
    total = nl.zeros((m // 128, par_dim(128), n), dtype=np.float32, buffer=nl.sbuf)
    for outer in nl.affine_range(2):
        for mm in nl.affine_range(m // 128):
            part = nl.zeros((2, par_dim(128), n // 2), dtype=np.float32, buffer=nl.psum, lazy_initialization=True)
            for half in nl.affine_range(2):
                for inner in nl.affine_range(k // 256):
                    kk = outer * (k // 256) + inner
                    i_p, i_n = nl.arange(128)[:, None], nl.arange(n // 2)[None, :]
                    part[half, i_p, i_n] += nisa.nc_matmul(left[kk, mm], right[kk, i_p, half * (n // 2) + i_n])
                total[mm, :, half * (n // 2) : (half + 1) * (n // 2)] = nl.loop_reduce(
                    part[half], op=np.add, loop_indices=[outer], dtype=np.float32
                )
    for mm in nl.affine_range(m // 128):
        nl.store(out[nl.ds(mm * 128, 128), :], total[mm])
    return out


def test_blocks():
    a, b = normal(512, 256), normal(512, 384, seed=1)
    close(blocked_product(a, b), a.astype(np.float64).T @ b)


@nki.jit
def running(x):
    """Sums and maxima carried through loops: in place by name, by index, and with nl.loop_reduce by name."""
    tiles, rows, columns = x.shape
    out = nl.ndarray((3, rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((rows, columns), dtype=nl.float32, buffer=nl.sbuf)
    highest = nl.full((nl.par_dim(rows), columns), fill_value=nl.fp32.min, dtype=nl.float32, buffer=nl.sbuf)
    for t in nl.sequential_range(tiles):
        tile: nt.tensor[rows, columns] = nl.load(x[t])
        total += tile
        highest[...] = nl.maximum(highest, tile)
        most = nl.loop_reduce(tile, op=np.min, loop_indices=[t])
    total /= tiles
    nl.store(out[0], total)
    nl.store(out[1], highest)
    nl.store(out[2], most)
    return out


def test_carried_tiles():
    x = normal(5, 96, 40)
    got = running(x)
    close(got[0], x.astype(np.float64).mean(0))
    np.testing.assert_array_equal(got[1], x.max(0))
    np.testing.assert_array_equal(got[2], x.min(0))


# --- direct allocation ------------------------------------------------------------------------------------------------------------------


def at(index, partitions, size, start, banks=None):
    return (start, 0, 0) if banks is None else (banks[index], 0, 0)


@ncc.skip_middle_end_transformations
@nki.jit
def placed(x, w):
    out = nl.ndarray((4, 128, 512), dtype=nl.float32, buffer=nl.hbm)
    weights = nl.ndarray((par_dim(128), 128), dtype=w.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(1,)))
    weights[...] = nl.load(w)
    moving = nl.ndarray((4, par_dim(128), 512), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2,)))
    products = nl.ndarray(
        (4, par_dim(128), 512), dtype=nl.float32, buffer=ncc.psum.alloc(functools.partial(at, start=0, banks={(i,): i % 2 + 3 for i in range(4)}))
    )
    results = nl.ndarray((4, par_dim(128), 512), dtype=nl.float32, buffer=ncc.sbuf.alloc(lambda idx, pdim, fdim: (0, 8192 + idx[0] % 2 * fdim)))
    for i in nl.affine_range(4):
        moving[i] = nl.load(x[i])
        products[i] = nisa.nc_matmul(weights, moving[i])
        results[i] = nisa.activation(np.square, products[i], bias=nl.zeros((128, 1), dtype=nl.float32))
        nl.store(out[i], results[i])
    return out


def test_direct_allocation():
    x, w = normal(4, 128, 512), normal(128, 128, seed=1)
    close(placed(x, w), (w.astype(np.float64).T @ x) ** 2)


# --- NumPy's names, types, composites ---------------------------------------------------------------------------------------------------


@nki.jit
def numpys_names(x):
    out = nl.ndarray((6, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    scale = np.dtype(np.float32).type(0.125)
    nl.store(out[0], nisa.tensor_scalar(tile, np.multiply, scale, op1=np.subtract, operand1=1.0, reverse1=True))
    nl.store(out[1], nisa.activation(np.exp, tile, scale=0.5))
    nl.store(out[2], nisa.tensor_tensor(tile, nl.abs(tile), np.minimum))
    nl.store(out[3], nisa.tensor_scalar(tile, np.maximum, nisa.tensor_reduce(np.amin, tile, axis=(1,))))
    nl.store(out[4], nisa.scalar_tensor_tensor(data=tile, op0=np.add, operand0=2.0, op1=np.multiply, operand1=tile))
    nl.store(out[5], nisa.tensor_tensor_scan(tile, tile, initial=0.0, op0=np.multiply, op1=np.add))
    return out


def test_numpys_names():
    x = normal(128, 64)
    got = numpys_names(x)
    scan, state = np.zeros((128, 64)), np.zeros(128)
    for t in range(64):
        state = state * x[:, t] + x[:, t]
        scan[:, t] = state
    wanted = [1 - x * 0.125, np.exp(x / 2), np.minimum(x, np.abs(x)), np.maximum(x, x.min(1, keepdims=True)), (x + 2) * x, scan]
    for have, want in zip(got, wanted, strict=True):
        close(have, np.asarray(want, np.float64), 1e-5)


@nki.jit
def in_bf16(x, w):
    rows, columns = x.shape
    out = nl.ndarray((6, rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, weight = nl.load(x), nl.load(w.reshape((1, columns)))
    nl.store(out[0], nl.softmax(tile, axis=1, dtype=nl.float32))
    nl.store(out[1], nl.rms_norm(tile, weight, axis=1, n=columns))
    nl.store(out[2], tile - nl.mean(tile, axis=[1], dtype=nl.float32))
    nl.store(out[3], nl.var(tile, axis=1, dtype=nl.float32).broadcast_to((rows, columns)))
    nl.store(out[4], nl.multiply(nl.silu(tile), nl.sigmoid(tile), dtype=nl.float32))
    nl.store(out[5], tile * 1.25 + nl.rsqrt(nl.add(nl.square(tile), 1.0)))
    return out


def test_composites_in_bf16():
    x, w = normal(120, 256).astype(BF16), normal(256, seed=1).astype(BF16)
    got = in_bf16(x, w)
    x, w = x.astype(np.float64), w.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    s = 1 / (1 + np.exp(-x))
    wanted = [
        e / e.sum(1, keepdims=True),
        x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w,
        x - x.mean(1, keepdims=True),
        np.repeat(x.var(1, keepdims=True), 256, 1),
        x * s * s,
        x * 1.25 + 1 / np.sqrt(x * x + 1),
    ]
    for have, want in zip(got, wanted, strict=True):
        close(have, want, 1e-2)


@nki.jit
def whole_numbers(x):
    out = nl.ndarray((3, 64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    n = nl.load(x)
    nl.store(out[0], n / 3)
    nl.store(out[1], nl.floor(n / 3, dtype=nl.int32) * 3 + nl.mod(n, 3))
    mixed = nl.zeros((64, 32), dtype=nl.float32, buffer=nl.sbuf)
    for i in nl.static_range(64):
        mixed[i, 0] = i
        mixed[i : i + 1, 1:3] = nl.copy(n[0:1, 1:3])
    nl.store(out[2], mixed)
    return out


def test_whole_numbers_and_single_rows():
    x = np.random.default_rng(0).integers(-50, 50, (64, 32)).astype(np.int32)
    got = whole_numbers(x)
    close(got[0], x / 3.0)
    np.testing.assert_array_equal(got[1], x)
    want = np.zeros((64, 32))
    want[:, 0], want[:, 1:3] = np.arange(64), x[0, 1:3]
    np.testing.assert_array_equal(got[2], want)


# --- grids, outputs, two languages ------------------------------------------------------------------------------------------------------


@nki.jit
def halves(x, scale):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(axis=0), nl.program_id(1)
    i_p, i_f = nl.mgrid[0:128, 0:100]
    rows, columns = i * 128 + i_p, j * 100 + i_f
    inside = (rows < x.shape[0]) & (columns < x.shape[1])
    tile = nl.load(x[rows, columns], mask=inside)
    nl.store(out[rows, columns], nl.multiply(tile, scale * (1 + j), mask=inside), mask=inside)
    return out


@pytest.mark.parametrize("grid", [(4, 3), (nl.nc(2) * 2, 3), (4, nl.nc(2) * 2), (2 * nl.nc(2), 3)])
def test_grids_with_edges(grid):
    x = normal(500, 260)
    want = x * 2 * np.repeat(1 + np.arange(3), 100)[:260]
    np.testing.assert_allclose(halves[grid](x, 2.0), want, rtol=1e-6)


@nki.jit(mode="simulation")
def tiles_returned(x):
    tile = nl.load(x)
    kept = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    nl.store(kept, nl.exp(tile))
    return kept, nisa.tensor_reduce(np.max, tile, axis=1, keepdims=True)


def test_tiles_are_returned():
    x = normal(64, 100)
    kept, largest = tiles_returned(x)
    close(kept, np.exp(x.astype(np.float64)))
    np.testing.assert_array_equal(largest, x.max(1, keepdims=True))


# --- a course assignment ----------------------------------------------------------------------------------------------------------------


@nki.compiler.skip_middle_end_transformations
@nki.jit
def convolution(images, filters, bias, pool_size=1):
    """Shifted matmuls that accumulate in PSUM, one row of windows at a time, and a maximum over the pool."""
    batch, channels, height, width = images.shape
    features, _, size, _ = filters.shape
    rows, columns = height - size + 1, width - size + 1
    out = nl.ndarray((batch, features, rows // pool_size, columns // pool_size), dtype=images.dtype, buffer=nl.hbm)
    tiles_in, tiles_out = channels // 128, features // 128
    turned = nl.ndarray((size, size, tiles_out, tiles_in, par_dim(128), 128), dtype=filters.dtype, buffer=nl.sbuf)
    offsets = nl.ndarray((tiles_out, par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)
    for o in nl.affine_range(tiles_out):
        offsets[o] = nl.load(bias[o * 128 : (o + 1) * 128], dtype=nl.float32)
        for c in nl.affine_range(tiles_in):
            loaded = nl.load(filters[o * 128 : (o + 1) * 128, c * 128 : (c + 1) * 128, :, :])
            for y in nl.affine_range(size):
                for z in nl.affine_range(size):
                    turned[y, z, o, c] = nl.copy(nisa.nc_transpose(nl.copy(loaded[:, :, y, z])))
    at_once = pool_size
    for b in nl.affine_range(batch):
        for r in nl.affine_range(rows // at_once):
            strips = nl.ndarray((tiles_in, par_dim(128), at_once + size - 1, width), dtype=images.dtype, buffer=nl.sbuf)
            for c in nl.affine_range(tiles_in):
                strips[c] = nl.load(images[b, c * 128 : (c + 1) * 128, r * at_once : r * at_once + at_once + size - 1, :])
            for o in nl.affine_range(tiles_out):
                result = nl.zeros((par_dim(128), at_once, columns), dtype=nl.float32, buffer=nl.psum)
                for line in nl.affine_range(at_once):
                    for y in nl.affine_range(size):
                        for z in nl.affine_range(size):
                            for c in nl.affine_range(tiles_in):
                                result[:, line, :] += nisa.nc_matmul(turned[y, z, o, c], strips[c, :, line + y, z : z + columns])
                p, i, j, u, v = nl.mgrid[0:128, 0 : at_once // pool_size, 0 : columns // pool_size, 0:pool_size, 0:pool_size]
                best = nisa.tensor_reduce(np.max, result[p, pool_size * i + u, pool_size * j + v], axis=[3, 4])
                biased = nisa.tensor_scalar(best, np.add, offsets[o], dtype=images.dtype)
                nl.store(out[b, o * 128 : (o + 1) * 128, r, :], biased.reshape((128, columns // pool_size)))
    return out


@pytest.mark.parametrize("pool, of", [(1, np.float32), (2, np.float32), (2, np.float16)])
def test_convolution(pool, of):
    x, w, bias = normal(2, 256, 10, 8).astype(of), normal(128, 256, 3, 3, seed=1).astype(of), normal(128, seed=2).astype(of)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(2, 3))
    want = np.einsum("bchwyz,ocyz->bohw", windows, w.astype(np.float64)) + bias.astype(np.float64)[:, None, None]
    want = want.reshape(2, 128, 8 // pool, pool, 6 // pool, pool).max((3, 5))
    close(convolution(x, w, bias, pool_size=pool), want, 1e-6 if of == np.float32 else 2e-3)
    close(nki.simulate_kernel(convolution, x, w, bias, pool_size=pool), want, 1e-6 if of == np.float32 else 2e-3)


# --- what the old compiler did on its own -----------------------------------------------------------------------------------------------


@nki.jit
def read_once(x):
    """Addresses that a loop's body advances: each iteration starts at the same address."""
    out = nl.ndarray((4, 128, 64), dtype=x.dtype, buffer=nl.hbm)
    address, unrolled = 0, 0
    for i in nl.affine_range(4):
        first = nl.ndarray((par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))
        address += 64 * 4
        second = nl.ndarray((par_dim(128), 64), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))
        first[...] = nl.load(x)
        second[...] = nisa.tensor_scalar(first, np.add, float(address))
        nl.store(out[i], second)
    for _ in nl.static_range(3):
        unrolled += 1
    assert address == 256 and unrolled == 3
    return out


def test_bodies_of_affine_loops_are_read_once():
    x = normal(128, 64)
    np.testing.assert_array_equal(read_once(x), np.repeat((x + np.float32(256))[None], 4, 0))


@nki.jit
def annotated(x, rows):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile: nt.tensor[rows, 64] = nl.load(x)
    nl.store(out, tile)
    return out


def test_annotations_are_compared(monkeypatch):
    """The evaluator evaluates annotations of local variables; Python does not."""
    x = normal(128, 64)
    np.testing.assert_array_equal(annotated(x, 128), x)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    np.testing.assert_array_equal(annotated(x, 128), x)
    with pytest.raises(nki_sim.KernelError, match=r"shape \(128, 64\) is annotated with shape \(64, 64\)"):
        annotated(x, 64)


@nki.jit
def operands_in_psum(x):
    """A transposed tile is passed to a matmul unchanged."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    turned = nisa.nc_transpose(tile, engine=nisa.tensor_engine)
    nl.store(out, nisa.nc_matmul(turned, turned))
    return out


def test_operands_in_psum():
    x = normal(64, 128)
    close(operands_in_psum(x), x.astype(np.float64) @ x.T)


@nki.jit(platform_target="trn2")
def two_rows_at_once(a, b):
    out = nl.ndarray((a.shape[2], b.shape[2]), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nisa.nc_matmul(nl.load(a), nl.load(b), perf_mode="double_row_gen3"))
    return out


def test_two_rows_at_once():
    a, b = (normal(128, 2, n).astype(ml_dtypes.float8_e5m2) for n in (32, 64))
    want = np.einsum("kti,ktj->ij", a.astype(np.float64), b.astype(np.float64))
    close(two_rows_at_once(a, b), want, 1e-6)


def test_an_argument_without_values():
    argument = nt.tensor[[250, 512], nl.bfloat16]
    assert argument.shape == (250, 512) and argument.dtype == BF16
    bench = nki.benchmark(warmup=1, iters=1)(numpys_names)
    bench(nt.tensor[[128, 64], nl.float32])
    assert bench.benchmark_result.nc_latency.get_latency_percentile(50) > 0


def test_limits_of_types_on_the_host():
    assert nl.fp32.min == np.finfo(np.float32).min == nisa.fp32.min
    assert nl.finfo(nl.bfloat16).max == ml_dtypes.finfo(BF16).max
    assert nl.finfo(np.float16).min == np.finfo(np.float16).min


@nki.jit
def many_dimensions(x):
    """Accesses with more dimensions than an instruction supports: read, combined, and written."""
    out = nl.ndarray((2, 64, 2, 2, 2, 2, 3, 3), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    p, a, b, c, d, e, f = nl.mgrid[0:64, 0:2, 0:2, 0:2, 0:2, 0:3, 0:3]
    access = 81 * a + 40 * b + 20 * c + 9 * d + 4 * e + f
    nl.store(out[0], tile[p, access] * 2.0 + tile[p, access + 1])
    sums = nl.ndarray((64, 2, 2, 2, 2, 3, 3), dtype=x.dtype, buffer=nl.sbuf)
    sums[p, 1 - a, b, 1 - c, d, 2 - e, f] = nisa.tensor_scalar(tile[p, access], np.add, 1.0)
    nl.store(out[1], sums)
    return out


def test_more_dimensions_than_an_access_pattern_has():
    x = normal(64, 200)
    a, b, c, d, e, f = np.mgrid[0:2, 0:2, 0:2, 0:2, 0:3, 0:3]
    access = 81 * a + 40 * b + 20 * c + 9 * d + 4 * e + f
    got = many_dimensions(x)
    close(got[0], x[:, access].astype(np.float64) * 2 + x[:, access + 1])
    np.testing.assert_array_equal(got[1], (x[:, access] + 1)[:, ::-1, :, ::-1, :, ::-1])


@nki.jit
def parametrised(x, op=nl.add, engine=nisa.vector_engine, dtype=nl.float32, function=np.exp, command=nisa.reduce_cmd.reset_reduce):
    out = nl.ndarray(x.shape, dtype=dtype, buffer=nl.shared_hbm)
    assert command == nisa.reduce_cmd.reset_reduce
    nl.store(out, nisa.activation(function, nisa.tensor_scalar(nl.load(x), op, 2.0, engine=engine)))
    return out


def test_names_of_the_language_as_arguments():
    x = normal(128, 64)
    close(parametrised(x), np.exp(x.astype(np.float64) + 2), 1e-6)
    close(parametrised(x, nl.multiply, nisa.scalar_engine, nl.bfloat16, np.square), (2 * x.astype(np.float64)) ** 2, 1e-2)


@nki.jit
def cumulative(x, start=None, command=nisa.reduce_cmd.reset_reduce):
    """Cumulative sums along the columns, in two halves; the second starts where the first ended, or at `start`."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    begin = nl.load(start) if start is not None else None
    sums = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    half = x.shape[1] // 2
    nisa.tensor_scalar_cumulative(src=tile[:, :half], dst=sums[:, :half], op0=nl.add, op1=nl.add, imm0=0.0, imm1=begin, reduce_cmd=command)
    nisa.tensor_scalar_cumulative(src=tile[:, half:], dst=sums[:, half:], op0=nl.add, op1=nl.add, imm0=0.0, reduce_cmd=nisa.reduce_cmd.reduce)
    nl.store(out, sums)
    return out


def test_cumulative_sums_begin_with_a_number_of_each_partition():
    x, start = normal(128, 64), normal(128, 1, seed=1)
    sums = np.add.accumulate(x.astype(np.float64), axis=1)
    close(cumulative(x), sums)
    close(cumulative(x, start, nisa.reduce_cmd.load_reduce), sums + start)


@nki.jit
def experts(x, w, chosen):
    """Matrices at positions that only the device knows: an index in a tile selects a matrix."""
    out = nl.ndarray((chosen.shape[1], *w.shape[1:]), dtype=x.dtype, buffer=nl.shared_hbm)
    places = nl.load(chosen)
    scale = nl.load(x).as_tile()
    for i in nl.affine_range(chosen.shape[1]):
        matrix = nl.load(w[places[0, i], :, :])
        nl.store(out[i, :, :], matrix * scale)
    return out


def test_an_index_of_the_device_selects_a_matrix():
    w, x = normal(5, 128, 48), normal(128, 1, seed=1)
    for chosen in ([4, 0, 3], [2]):
        got = experts(x, w, np.array([chosen], np.int32))
        np.testing.assert_array_equal(got, w[chosen] * x)
    with pytest.raises(nki_sim.KernelError, match="out of bounds"):
        experts(x, w, np.array([[5]], np.int32))


@nki.jit
def rows_in_bounds(table, order, mode, rows=None):
    """Rows whose index is out of bounds are skipped, if `mode` says so."""
    n = order.shape[0]
    out = nl.ndarray((n, table.shape[1]), dtype=table.dtype, buffer=nl.shared_hbm)
    back = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.zeros(out.shape, dtype=out.dtype))
    nl.store(back, nl.zeros(back.shape, dtype=back.dtype))
    p, f = nl.arange(n)[:, None], nl.arange(table.shape[1])[None, :]
    places = nl.load(order)
    if rows is None:
        tile = nl.load(table[places[p, 0], f], mode=mode)
    else:
        tile = nl.load(table[places[p, 0], f], mode=mode, mask=p < rows)
    nl.store(back[places[p, 0], f], tile, mode=mode)
    nl.store(out, tile)
    return out, back


def test_rows_out_of_bounds_are_left_out(monkeypatch):
    monkeypatch.setenv("NKI_SIM_UNWRITTEN", "zero")
    table = normal(20, 16)
    order = np.array([3, 19, 20, 7, 300, 0], np.int32)
    inside = order < 20
    want, want_back = np.zeros((6, 16), np.float32), np.zeros((20, 16), np.float32)
    want[inside] = table[order[inside]]
    want_back[order[inside]] = table[order[inside]]
    got, back = rows_in_bounds(table, order[:, None].copy(), nisa.oob_mode.skip)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(back, want_back)
    got, _ = rows_in_bounds(table, order[:, None].copy(), nisa.oob_mode.skip, 2)
    want[2:] = 0
    np.testing.assert_array_equal(got, want)
    with pytest.raises(nki_sim.KernelError, match="out of bounds"):
        rows_in_bounds(table, order[:, None].copy(), nisa.oob_mode.error)
    with pytest.raises(nki_sim.KernelError, match="oob_mode.error or oob_mode.skip"):
        rows_in_bounds(table, order[:, None].copy(), 1)


@nki.jit
def with_other_keywords(x):
    tile = nl.load(x, dtype=nl.float32, unheard_of=3)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.exp(tile, precise=True, mode="fast"))
    return out


def test_keywords_that_a_function_does_not_have_are_ignored_and_reported():
    x = normal(128, 16)
    out, report = nki_sim.profile(with_other_keywords)(x)
    found = [f["message"] for f in report.findings if f["id"] == "ignored-argument"]
    assert len(found) == 2, found
    assert "`unheard_of=` has no effect" in found[0] and "`precise=`, `mode=` have no effect" in found[1], found
    close(out, np.exp(x.astype(np.float64)), 1e-6)


#: Index tiles created once on the host, for several kernels.
ROWS, COLUMNS = nl.arange(128)[:, None], nl.arange(32)[None, :]
GRID_P, GRID_F = nl.mgrid[0:128, 0:32]
EVEN_ROWS = range_of(64)[:, None] * 2


@nki.jit
def with_indices_of_the_host(x):
    out = nl.ndarray((3, 128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0, ROWS, COLUMNS], nl.load(x[ROWS, 2 * COLUMNS + 1]))
    nl.store(out[1, GRID_P, GRID_F], nl.load(x[GRID_P, 31 + GRID_F]))
    nl.store(out[2, range_of(64)[:, None], COLUMNS], nl.load(x[EVEN_ROWS, COLUMNS]))
    nl.store(out[2, 64 + range_of(64)[:, None], COLUMNS], nl.load(x[EVEN_ROWS + 1, COLUMNS]))
    return out


def test_index_tiles_of_the_host():
    x = normal(128, 64)
    np.testing.assert_array_equal(with_indices_of_the_host(x), np.stack([x[:, 1::2], x[:, 31:63], np.concatenate([x[::2, :32], x[1::2, :32]])]))
