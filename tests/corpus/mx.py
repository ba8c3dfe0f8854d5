"""MX blocks: quantize_mx, nc_matmul_mx and copies of packed elements."""

import nki
import nki.isa as nisa
import nki.language as nl


def load(x, dtype=None):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def quantize(x, dtype, scale_dtype, start):
    """Scales from partition `start` of each quadrant; the rest of their tile stays zero."""
    P, F = x.shape
    tile = load(x)
    data = nl.ndarray((P, F // 4), dtype=dtype, buffer=nl.sbuf)
    scale = nl.ndarray((128, F // 4), dtype=scale_dtype, buffer=nl.sbuf)
    nisa.memset(dst=data, value=0)
    nisa.memset(dst=scale.view(nl.uint8), value=0)
    nisa.quantize_mx(dst=data, src=tile, dst_scale=scale[start:, :])
    packed = store(data)
    scales = store(scale)
    return packed, scales


@nki.jit
def quantize_strided(x, dtype):
    """Elements from four blocks of columns, written to every second column of three-dimensional tiles."""
    P, F = x.shape
    N = F // 4
    tile = load(x)
    data = nl.ndarray((P, N, 2), dtype=dtype, buffer=nl.sbuf)
    scale = nl.ndarray((P, N, 2), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.memset(dst=data, value=0)
    nisa.memset(dst=scale, value=0)
    nisa.quantize_mx(
        dst=data[:, :, 1], src=tile.ap(pattern=[[F, P], [1, N], [N, 4]], offset=0), dst_scale=scale[:, :, 0]
    )
    packed = store(data)
    scales = store(scale)
    return packed, scales


@nki.jit
def matmul(stationary, moving, stationary_scale, moving_scale, start, moving_start, dst, position, size):
    """The scales are passed in their SBUF layout."""
    K, M = stationary.shape
    _, N = moving.shape
    s, m = load(stationary), load(moving)
    ss, ms = load(stationary_scale), load(moving_scale)
    product = nl.ndarray((M, N), dtype=dst, buffer=nl.psum)
    nisa.nc_matmul_mx(
        dst=product,
        stationary=s,
        moving=m,
        stationary_scale=ss[start:, :],
        moving_scale=ms[moving_start:, :],
        tile_position=position,
        tile_size=size,
    )
    result = nl.ndarray((M, N), dtype=dst, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    out = store(result)
    return out


@nki.jit
def quantize_and_multiply(a, b, dtype):
    """Tiles of 128 partitions of both operands, quantized with scales that share a tile, and accumulated."""
    tiles, K, M4 = a.shape
    _, _, N4 = b.shape
    M, N = M4 // 4, N4 // 4
    product = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    scales = nl.ndarray((K, max(M, N)), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
    for i in nl.static_range(tiles):
        x = load(a[i])
        y = load(b[i])
        xq = nl.ndarray((K, M), dtype=dtype, buffer=nl.sbuf)
        yq = nl.ndarray((K, N), dtype=dtype, buffer=nl.sbuf)
        nisa.quantize_mx(dst=xq, src=x, dst_scale=scales[0:, :M])
        nisa.quantize_mx(dst=yq, src=y, dst_scale=scales[8:, :N])
        nisa.nc_matmul_mx(
            dst=product,
            stationary=xq,
            moving=yq,
            stationary_scale=scales[0:, :M],
            moving_scale=scales[8:, :N],
            accumulate=i > 0,
        )
    result = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    out = store(result)
    return out


@nki.jit
def move(x, scales):
    """Packed elements through every copy that supports them, and a view of their bits."""
    P, F = x.shape
    tile = load(x)
    copied = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=copied[:, F // 2 : F], src=tile[:, 0 : F // 2])
    nisa.tensor_copy(dst=copied[:, 0 : F // 2], src=tile[:, F // 2 : F], engine=nisa.engine.gpsimd)
    swapped = store(copied)
    bytes = store(tile.view(nl.uint8))
    s = load(scales)
    numbers = nl.ndarray(s.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=numbers, src=s)
    again = nl.ndarray(s.shape, dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=again, data=numbers, op0=nl.multiply, operand0=1.375)
    values = store(numbers)
    rounded = store(again)
    return swapped, bytes, values, rounded
