"""Scans, reductions into accumulators and batch-norm statistics."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scan(data0, data1, initial, op0, op1, reverse0, reverse1):
    P, F = data0.shape
    out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.ndarray((P, F), dtype=data0.dtype, buffer=nl.sbuf)
    b = nl.ndarray((P, F), dtype=data1.dtype, buffer=nl.sbuf)
    start = nl.ndarray((P, 1), dtype=initial.dtype, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=data0)
    nisa.dma_copy(dst=b, src=data1)
    nisa.dma_copy(dst=start, src=initial)
    ops = {"add": nl.add, "multiply": nl.multiply, "maximum": nl.maximum, "subtract": nl.subtract}
    nisa.tensor_tensor_scan(
        dst=result,
        data0=a,
        data1=b,
        initial=start,
        op0=ops[op0],
        op1=ops[op1],
        reverse0=reverse0,
        reverse1=reverse1,
    )
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def cumulative(src, scale):
    """Two tiles, one row after the other: the accumulators continue."""
    P, F = src.shape
    out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=src.dtype, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=src)
    half = F // 2
    nisa.tensor_scalar_cumulative(
        dst=result[:, 0:half], src=tile[:, 0:half], op0=nl.multiply, op1=nl.maximum, imm0=scale
    )
    nisa.tensor_scalar_cumulative(
        dst=result[:, half:F],
        src=tile[:, half:F],
        op0=nl.multiply,
        op1=nl.maximum,
        imm0=scale,
        reduce_cmd=nisa.reduce_cmd.reduce,
    )
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def scale_and_reduce(data):
    P, F = data.shape
    scaled = nl.ndarray((P, F), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    lowest = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=data.dtype, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.bfloat16, buffer=nl.sbuf)
    reduced = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    nisa.tensor_scalar_reduce(
        result, data=tile, op0=nl.subtract, operand0=1.5, reduce_op=nl.minimum, reduce_res=reduced, reduce_res_negate=True
    )
    nisa.dma_copy(dst=scaled, src=result)
    nisa.dma_copy(dst=lowest, src=reduced)
    return scaled, lowest


@nki.jit
def sum_of_products(data, weight):
    """The sum of `data * 2 * weight`, in two parts: the second continues the sum of the first."""
    P, F = data.shape
    products = nl.ndarray((P, F), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=data.dtype, buffer=nl.sbuf)
    factors = nl.ndarray((P, F), dtype=weight.dtype, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.bfloat16, buffer=nl.sbuf)
    added = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    nisa.dma_copy(dst=factors, src=weight)
    half = F // 2
    nisa.scalar_tensor_tensor(
        dst=result[:, 0:half],
        data=tile[:, 0:half],
        op0=nl.multiply,
        operand0=2.0,
        op1=nl.multiply,
        operand1=factors[:, 0:half],
        reduce_op=nl.add,
    )
    nisa.scalar_tensor_tensor(
        dst=result[:, half:F],
        data=tile[:, half:F],
        op0=nl.multiply,
        operand0=2.0,
        op1=nl.multiply,
        operand1=factors[:, half:F],
        reduce_cmd=nisa.reduce_cmd.reduce,
        reduce_op=nl.add,
        reduce_res=added,
    )
    nisa.dma_copy(dst=products, src=result)
    nisa.dma_copy(dst=total, src=added)
    return products, total


@nki.jit
def mean_and_variance(data):
    """The statistics of a row longer than the limit of bn_stats."""
    P, F = data.shape
    out = nl.ndarray((P, 2), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=data.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    most = nl.tile_size.bn_stats_fmax
    count = (F + most - 1) // most
    stats = nl.ndarray((P, 6 * count), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(count):
        end = min(F, (i + 1) * most)
        nisa.bn_stats(dst=stats[:, 6 * i : 6 * i + 6], data=tile[:, i * most : end])
    result = nl.ndarray((P, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_aggr(dst=result, data=stats)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def softmax_numerator(data):
    P, F = data.shape
    out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=data.dtype, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    added = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
    nisa.exponential(
        dst=result, src=tile, max_value=largest, reduce_res=added, reduce_cmd=nisa.reduce_cmd.reset_reduce
    )
    nisa.dma_copy(dst=out, src=result)
    nisa.dma_copy(dst=total, src=added)
    return out, total


@nki.jit
def reduction(data, op, axis, step, negate):
    """`data` reduced over `axis`, using every `step`-th element of the last dimension."""
    tile = nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    shape = data.shape[: axis[0]]
    out = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
    result = nl.ndarray(shape if len(shape) > 1 else (shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=getattr(nl, op), data=tile[..., ::step], axis=axis, negate=negate)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def activate2(data, bias):
    P, F = data.shape
    out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
    peak = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((P, F), dtype=data.dtype, buffer=nl.sbuf)
    shift = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    result = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    reduced = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=data)
    nisa.dma_copy(dst=shift, src=bias)
    nisa.activate2(
        dst=result,
        op=nl.square,
        data=tile,
        imm0=0.5,
        imm1=shift,
        op0=nl.multiply,
        op1=nl.subtract,
        reverse1=True,
        reduce_op=nl.maximum,
        reduce_res=reduced,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.dma_copy(dst=out, src=result)
    nisa.dma_copy(dst=peak, src=reduced)
    return out, peak
