"""What kernels of NKI 0.6 and 0.7 use, with both frontends."""

import warnings

import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nki_sim


@pytest.fixture(params=["tracer", "parser"], autouse=True)
def frontend(request, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", request.param)


def ramp(rows=4, columns=8):
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


@nki.jit
def as_integers(x, returned):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    if returned == "once":
        return out.view(nl.int32).reshape((x.shape[1], x.shape[0]))
    return out.view(nl.int32), out.view(nl.int32) if returned == "twice" else out


def test_an_output_may_be_returned_as_another_dtype():
    x = ramp()
    result = as_integers(x, "once")
    assert result.dtype == np.int32 and result.shape == x.shape[::-1]
    np.testing.assert_array_equal(result.ravel(), x.view(np.int32).ravel())
    first, second = as_integers(x, "twice")
    assert first.dtype == second.dtype == np.int32
    with pytest.raises(nki_sim.KernelError, match=r"returns `out` as float32 \(.*, but it is returned or passed as int32 \("):
        as_integers(x, "with two dtypes")


@nki.jit
def doubles_while(x, count):
    """As written for NKI 0.2 to 0.6."""
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=count)
    register = nisa.register_alloc()
    nisa.register_load(dst=register, src=left)
    while register:
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(dst=register, src=left)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_a_loop_on_a_register_needs_no_switch():
    for count in (3, 0, 1):
        np.testing.assert_array_equal(doubles_while(ramp(), np.array([[count]], np.int32)), ramp() * 2**count)
    with pytest.warns(nki_sim.KernelWarning, match="strict-language"):
        nki.jit(doubles_while, strict=True)(ramp(), np.array([[1]], np.int32))


@nki.jit
def scales_while(x, count, scales):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=scales.pop(0))
    left = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=count)
    register = nisa.register_alloc()
    nisa.register_load(dst=register, src=left)
    while(register):  # fmt: skip
        nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1)
        nisa.register_load(dst=register, src=left)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_a_loop_on_a_register_after_a_change_of_an_argument_warns(monkeypatch):
    count = np.array([[2]], np.int32)
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "tracer")
    with pytest.warns(nki_sim.KernelWarning, match="scales_while changes an argument .* starts from the changed value; set NKI_COMPILER_FRONTEND=parser"):
        scales_while(ramp(), count, [2.0, 3.0])
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", "parser")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(scales_while(ramp(), count, [2.0, 3.0]), ramp() * 2)


@nki.jit
def with_a_barrier(x):
    core, cores = nl.program_id(0), nl.num_programs(0)
    rows = x.shape[0] // cores
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    here = nl.ds(core * rows, rows)
    nisa.dma_copy(dst=out[here], src=x[here])
    nisa.core_barrier(data=out, cores=(0, 1))
    return out


def test_a_barrier_of_one_core_waits_for_nothing():
    for kernel in (with_a_barrier, with_a_barrier[2]):
        np.testing.assert_array_equal(kernel(ramp()), ramp())


@nki.jit
def asks_a_tensor(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    assert x.is_hbm() and x[1:2].is_hbm() and not tile.is_hbm()
    assert x[1:2]._get_pattern_and_offset() == (x[1:2].get_pattern(), x.shape[1])
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_tensors_say_where_they_are():
    np.testing.assert_array_equal(asks_a_tensor(ramp()), ramp())


@nki.jit
def largest(x, k, n, descending):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    values = nl.ndarray((x.shape[0], k), dtype=x.dtype, buffer=nl.sbuf)
    positions = nl.ndarray((x.shape[0], k), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.topk(val_dst=values, idx_dst=positions, src=tile, n=n, sorted=descending)
    out = nl.ndarray((x.shape[0], k // 16), dtype=nl.uint32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=positions[:, 0 : k // 16])
    return out


@pytest.mark.parametrize("descending", [False, True])
def test_topk_fills_columns_of_16_partitions(descending):
    generator = np.random.default_rng(3)
    x = np.concatenate([generator.permutation(256).reshape(16, 16) for _ in range(2)]).astype(ml_dtypes.bfloat16)
    out = largest(x, 32, 250, descending)
    for group in range(2):
        elements = x[16 * group : 16 * group + 16].astype(np.float32).T.ravel()[:250]
        order = np.argsort(-elements)[:32]
        np.testing.assert_array_equal(out[16 * group : 16 * group + 16].T.ravel(), order if descending else order[::-1])


@nki.jit
def over_partitions(x, op):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    row = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_partition_reduce(row, op=op, data=tile)
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=row)
    return out


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_operators_over_partitions(monkeypatch, target):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    x = ramp()
    for op, expected in ((nl.add, x.sum(0)), (nl.max, x.max(0)), (nl.maximum, x.max(0)), (nl.mean, x.mean(0))):
        np.testing.assert_array_equal(over_partitions(x, op)[0], expected)
    bits = x.astype(np.int32)
    np.testing.assert_array_equal(over_partitions(bits, nl.bitwise_xor)[0], np.bitwise_xor.reduce(bits))


@nki.jit
def product_of_16(a, b):
    rows = a.shape[0]
    stationary = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    moving = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.sbuf)
    product = nl.ndarray((rows, b.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=stationary, src=a)
    nisa.dma_copy(dst=moving, src=b)
    nisa.nc_matmul(product, stationary, moving, tile_position=(0, 0), tile_size=(rows, rows))
    result = nl.ndarray(product.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    out = nl.ndarray(product.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=result)
    return out


@pytest.mark.parametrize("rows", [16, 48, 112])
def test_array_tiles_of_other_sizes(rows):
    a = np.random.default_rng(4).integers(-4, 5, (rows, rows)).astype(np.float32)
    np.testing.assert_array_equal(product_of_16(a, a[:, :8].copy()), a.T @ a[:, :8])


@nki.jit
def counts_from_a_register(start):
    first = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=first, src=start)
    register = nisa.register_alloc()
    nisa.register_load(dst=register, src=first)
    positions = nl.ndarray((4, 8), dtype=nl.int32, buffer=nl.sbuf)
    nisa.iota(dst=positions, pattern=[[1, 8]], offset=register, channel_multiplier=100)
    kept = nl.ndarray((4, 8), dtype=nl.int32, buffer=nl.sbuf)
    nisa.affine_select(
        dst=kept, pattern=[[-1, 8]], offset=register, channel_multiplier=1, on_true_tile=positions, on_false_value=-1, cmp_op=nl.greater_equal
    )
    out = nl.ndarray((2, 4, 8), dtype=nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[0], src=positions)
    nisa.dma_copy(dst=out[1], src=kept)
    return out


def test_positions_count_from_a_register():
    row, column = np.mgrid[0:4, 0:8]
    for start in (0, 2, -3):
        positions, kept = counts_from_a_register(np.array([[start]], np.int32))
        np.testing.assert_array_equal(positions, start + 100 * row + column)
        np.testing.assert_array_equal(kept, np.where(start + row - column >= 0, positions, -1))


@nki.jit
def quantized(x):
    tile = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    values = nl.ndarray((x.shape[0], x.shape[1] // 4), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    scales = nl.ndarray(values.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=values, src=tile, dst_scale=scales)
    out = nl.ndarray(values.shape, dtype=nl.uint8, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=scales)
    return out


def test_what_needs_another_target_says_how_to_choose_it():
    with pytest.raises(nki_sim.KernelError, match=r"quantize_mx needs trn3 \(target is trn2\)[\s\S]*NEURON_PLATFORM_TARGET_OVERRIDE in Python"):
        quantized(np.ones((128, 512), ml_dtypes.bfloat16))
