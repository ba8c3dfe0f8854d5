"""NaN and infinity from finite numbers"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def log_of_a_negative(x):
    """Logarithm of data that is assumed to be positive."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.log, data=tile)  # plant: non-finite
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def log_of_a_negative_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.square, data=tile)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1e-6)
    nisa.activation(dst=tile, op=nl.log, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def softmax_without_maximum(x):
    """Large logits overflow in exp, because the row maximum is not subtracted."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=100.0)
    nisa.activation_reduce(dst=tile, op=nl.exp, data=tile, reduce_op=nl.add, reduce_res=total)  # plant: non-finite
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def softmax_without_maximum_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=100.0)
    nisa.tensor_reduce(dst=shift, op=nl.maximum, data=tile, axis=1, negate=True)
    nisa.activation_reduce(dst=tile, op=nl.exp, data=tile, bias=shift, reduce_op=nl.add, reduce_res=total)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def masked_row_with_infinity(x):
    """Row 0 of a strictly causal mask has no key: its maximum is -inf, and -inf - -inf is NaN."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    scores = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    masked = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=scores, src=x)
    nisa.affine_select(
        dst=masked,
        pattern=[[-1, 64]],
        offset=-1,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=float("-inf"),
        cmp_op=nl.greater_equal,
    )
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=masked, axis=1)
    nisa.tensor_scalar(dst=masked, data=masked, op0=nl.subtract, operand0=largest)  # plant: non-finite
    nisa.activation(dst=masked, op=nl.exp, data=masked)
    nisa.dma_copy(dst=out, src=masked)
    return out


@nki.jit
def masked_row_with_infinity_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    scores = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    masked = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=scores, src=x)
    nisa.affine_select(
        dst=masked,
        pattern=[[-1, 64]],
        offset=-1,
        channel_multiplier=1,
        on_true_tile=scores,
        on_false_value=-1e30,
        cmp_op=nl.greater_equal,
    )
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=masked, axis=1)
    nisa.tensor_scalar(dst=masked, data=masked, op0=nl.subtract, operand0=largest)
    nisa.activation(dst=masked, op=nl.exp, data=masked)
    nisa.dma_copy(dst=out, src=masked)
    return out


# args: x=float32[128,64]:zeros
# seen-by: run
@nki.jit
def zero_by_zero(x):
    """The mean over the valid entries of a row that has none."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    valid = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    count = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=valid, data=tile, op0=nl.not_equal, operand0=0.0)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.tensor_reduce(dst=count, op=nl.add, data=valid, axis=1)
    mean = nl.divide(total, count)  # plant: non-finite
    nisa.dma_copy(dst=out, src=mean)
    return out


@nki.jit
def zero_by_zero_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    valid = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    count = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=valid, data=tile, op0=nl.not_equal, operand0=0.0)
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.tensor_reduce(dst=count, op=nl.add, data=valid, axis=1)
    nisa.tensor_scalar(dst=count, data=count, op0=nl.maximum, operand0=1.0)
    mean = nl.divide(total, count)
    nisa.dma_copy(dst=out, src=mean)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def half_precision_overflows(x):
    """Squares of values around 1000 do not fit float16."""
    out = nl.ndarray(x.shape, dtype=nl.float16, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    small = nl.ndarray(x.shape, dtype=nl.float16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1000.0)
    nisa.tensor_tensor(dst=small, data1=tile, data2=tile, op=nl.multiply)  # plant: non-finite
    nisa.dma_copy(dst=out, src=small)
    return out


@nki.jit
def half_precision_overflows_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    small = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=1000.0)
    nisa.tensor_tensor(dst=small, data1=tile, data2=tile, op=nl.multiply)
    nisa.dma_copy(dst=out, src=small)
    return out


# args: x=float32[128,64]:zeros
# seen-by: run
@nki.jit
def reciprocal_of_a_zero_norm(x):
    """A row of zeros has norm 0: no epsilon."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.activation(dst=total, op=nl.sqrt, data=total)
    nisa.reciprocal(dst=total, data=total)  # plant: non-finite
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def reciprocal_of_a_zero_norm_fixed(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=total)
    nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=1e-6)
    nisa.activation(dst=total, op=nl.sqrt, data=total)
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=tile)
    return out


# args: x=float32[128,64]
# seen-by: run
@nki.jit
def variance_by_cancellation(x):
    """E[x^2] - E[x]^2 with a large mean is negative in fp32, and its square root NaN."""
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    mean = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    second = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=30000.0)
    nisa.tensor_reduce(dst=mean, op=nl.add, data=tile, axis=1)
    nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / 64)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=second)
    nisa.tensor_scalar(dst=second, data=second, op0=nl.multiply, operand0=1.0 / 64)
    nisa.tensor_tensor(dst=mean, data1=mean, data2=mean, op=nl.multiply)
    nisa.tensor_tensor(dst=second, data1=second, data2=mean, op=nl.subtract)
    nisa.activation(dst=second, op=nl.sqrt, data=second)  # plant: non-finite
    nisa.dma_copy(dst=out, src=second)
    return out


@nki.jit
def variance_by_cancellation_fixed(x):
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    mean = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    second = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=30000.0)
    nisa.tensor_reduce(dst=mean, op=nl.add, data=tile, axis=1)
    nisa.tensor_scalar(dst=mean, data=mean, op0=nl.multiply, operand0=1.0 / 64)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.subtract, operand0=mean)
    nisa.activation_reduce(dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=second)
    nisa.tensor_scalar(dst=second, data=second, op0=nl.multiply, operand0=1.0 / 64)
    nisa.activation(dst=second, op=nl.sqrt, data=second)
    nisa.dma_copy(dst=out, src=second)
    return out


# args: x=float32[128,128]
# seen-by: run
@nki.jit
def infinity_in_a_product(x):
    """Operands are scaled close to the largest float32, and the product is NaN."""
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    big = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=big, data=tile, op0=nl.multiply, operand0=3e38)  # plant: non-finite
    product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=big, moving=tile)
    nisa.tensor_copy(dst=big, src=product)
    nisa.dma_copy(dst=out, src=big)
    return out


@nki.jit
def infinity_in_a_product_fixed(x):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    big = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=big, data=tile, op0=nl.multiply, operand0=3e8)
    product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=big, moving=tile)
    nisa.tensor_copy(dst=big, src=product)
    nisa.dma_copy(dst=out, src=big)
    return out
