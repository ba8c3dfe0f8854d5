"""Element-wise instructions, products, moves and registers, on views of larger tiles."""

import nki
import nki.isa as nisa
import nki.language as nl

ENGINES = {
    "vector": nisa.engine.vector,
    "scalar": nisa.engine.scalar,
    "gpsimd": nisa.engine.gpsimd,
    "tensor": nisa.engine.tensor,
    "unknown": nisa.engine.unknown,
}
OPS = {
    name: getattr(nl, name)
    for name in (
        "add subtract multiply divide maximum minimum abs_max abs_min power mod fmod equal not_equal less less_equal greater "
        "greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift "
        "copy square sigmoid relu prelu gelu gelu_dx gelu_apprx_tanh gelu_apprx_sigmoid gelu_apprx_sigmoid_dx silu silu_dx tanh "
        "softplus mish erf erf_dx exp log sin arctan sqrt rsqrt reciprocal sign abs"
    ).split()
}


def load(x, step=1):
    """The array, stored in every `step`-th column of a tile."""
    P, F = x.shape
    tile = nl.ndarray((P, F * step), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    view = tile[:, step - 1 :: step]
    nisa.dma_copy(dst=view, src=x)
    return view


def make(shape, dtype, step=1):
    """Every `step`-th column of a new tile, as a destination."""
    P, F = shape
    tile = nl.ndarray((P, F * step), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0)
    return tile[:, ::step]


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def two_tensors(a, b, op, dtype, engine, steps):
    dst = make(a.shape, dtype, steps[2])
    nisa.tensor_tensor(
        dst=dst, data1=load(a, steps[0]), data2=load(b, steps[1]), op=OPS[op], engine=ENGINES[engine]
    )
    out = store(dst)
    return out


@nki.jit
def tensor_and_scalars(data, first, second, op0, op1, reverse0, reverse1, dtype, engine, step):
    """`first` is a column, `second` a number."""
    dst = make(data.shape, dtype, step)
    nisa.tensor_scalar(
        dst=dst,
        data=load(data, step),
        op0=OPS[op0],
        operand0=load(first),
        reverse0=reverse0,
        op1=OPS[op1],
        operand1=second,
        reverse1=reverse1,
        engine=ENGINES[engine],
    )
    out = store(dst)
    return out


@nki.jit
def scalar_and_tensors(data, first, other, op0, op1, reverse0, reverse1, dtype, step):
    dst = make(data.shape, dtype, step)
    nisa.scalar_tensor_tensor(
        dst=dst,
        data=load(data, step),
        op0=OPS[op0],
        operand0=load(first),
        op1=OPS[op1],
        operand1=load(other),
        reverse0=reverse0,
        reverse1=reverse1,
    )
    out = store(dst)
    return out


@nki.jit
def copy(x, dtype, engine, steps):
    dst = make(x.shape, dtype, steps[1])
    nisa.tensor_copy(dst=dst, src=load(x, steps[0]), engine=ENGINES[engine])
    out = store(dst)
    return out


@nki.jit
def copy_where(x, old, predicate, step):
    dst = load(old, step)
    nisa.tensor_copy_predicated(dst=dst, src=load(x), predicate=load(predicate, step))
    out = store(dst)
    return out


@nki.jit
def set_where(number, old, predicate, step):
    """A number where the predicate does not hold."""
    dst = load(old, step)
    nisa.tensor_copy_predicated(dst=dst, src=number, predicate=load(predicate, step), reverse_pred=True)
    out = store(dst)
    return out


@nki.jit
def invert(x, step):
    dst = make(x.shape, nl.float32, step)
    nisa.reciprocal(dst=dst, data=load(x, step))
    out = store(dst)
    return out


@nki.jit
def activate(x, bias, scale, op, dtype, step):
    dst = make(x.shape, dtype, step)
    nisa.activation(dst=dst, op=OPS[op], data=load(x, step), bias=load(bias), scale=scale)
    out = store(dst)
    return out


@nki.jit
def activate_and_sum(x, bias, op):
    """With both instructions, the first one in two pieces that share the accumulators."""
    P, F = x.shape
    tile = load(x)
    column = load(bias)
    pieces = make((P, F), nl.float32)
    half = F // 2
    total = make((P, 1), nl.float32)
    nisa.activation(
        dst=pieces[:, :half],
        op=OPS[op],
        data=tile[:, :half],
        bias=column,
        reduce_op=nl.add,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.activation(
        dst=pieces[:, half:],
        op=OPS[op],
        data=tile[:, half:],
        bias=column,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reduce,
    )
    again = make((P, 1), nl.float32)
    whole = make((P, F), nl.float32)
    nisa.activation_reduce(dst=whole, op=OPS[op], data=tile, reduce_op=nl.add, reduce_res=again, bias=column)
    out = store(pieces)
    sum_of_pieces = store(total)
    sum_of_all = store(again)
    return out, sum_of_pieces, sum_of_all


@nki.jit
def positions(shape, pattern, offset, multiplier, dtype):
    dst = make(shape, dtype)
    nisa.iota(dst=dst, pattern=pattern, offset=offset, channel_multiplier=multiplier)
    out = store(dst)
    return out


@nki.jit
def select(x, pattern, offset, multiplier, value, op):
    dst = make(x.shape, x.dtype)
    nisa.affine_select(
        dst=dst,
        pattern=pattern,
        channel_multiplier=multiplier,
        on_true_tile=load(x),
        on_false_value=value,
        cmp_op=OPS[op],
        offset=offset,
    )
    out = store(dst)
    return out


@nki.jit
def product(stationary, moving, tiles, perf_mode):
    """The rows of the contraction in `tiles` equal parts, whose products are summed."""
    K, M, N = stationary.shape[0], stationary.shape[-1], moving.shape[-1]
    result = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    part = K // tiles
    for i in nl.static_range(tiles):
        s = nl.ndarray((part,) + stationary.shape[1:], dtype=stationary.dtype, buffer=nl.sbuf)
        m = nl.ndarray((part,) + moving.shape[1:], dtype=moving.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=s, src=stationary[i * part : (i + 1) * part])
        nisa.dma_copy(dst=m, src=moving[i * part : (i + 1) * part])
        mode = nisa.matmul_perf_mode.double_row if perf_mode == "double_row" else nisa.matmul_perf_mode.none
        nisa.nc_matmul(dst=result, stationary=s, moving=m, perf_mode=mode, accumulate=i > 0)
    dst = make((M, N), nl.float32)
    nisa.tensor_copy(dst=dst, src=result)
    out = store(dst)
    return out


@nki.jit
def transpose(x, engine):
    P, F = x.shape
    tile = load(x)
    where = nl.sbuf if engine == "vector" else nl.psum
    turned = nl.ndarray((F, P), dtype=x.dtype, buffer=where)
    nisa.nc_transpose(dst=turned, data=tile, engine=ENGINES[engine])
    dst = nl.ndarray((F, P), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=dst, src=turned)
    by_dma = nl.ndarray((F, P), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=by_dma, src=x)
    out = store(dst)
    other = store(by_dma)
    return out, other


@nki.jit
def add_by_dma(a, b, c):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_compute(dst=out, srcs=[a, b, c], reduce_op=nl.add)
    return out


@nki.jit
def registers(table, which):
    """Rows selected by numbers in memory, through registers; the registers are written back to memory."""
    P, F = table.shape
    _, n = which.shape
    numbers = load(which)
    back = make((1, n), nl.int32)
    out = nl.ndarray((n, F), dtype=table.dtype, buffer=nl.shared_hbm)
    r = nisa.register_alloc()
    for i in nl.static_range(n):
        nisa.register_load(r, numbers[0:1, i : i + 1])
        nisa.dma_copy(dst=out[i : i + 1], src=table.ap(pattern=[[F, 1], [1, F]], scalar_offset=r, indirect_dim=0))
        nisa.register_store(back[0:1, i : i + 1], r)
    nisa.register_move(r, 7)
    last = make((1, 1), nl.int32)
    nisa.register_store(last, r)
    nl.device_print("picked", back)
    seen = store(back)
    moved = store(last)
    return out, seen, moved
