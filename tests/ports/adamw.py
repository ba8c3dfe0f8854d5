"""One step of AdamW, every operation an instruction of its own.

The original leaves the engine of the scalings open. The scalar engine was active for the time of eight instructions for each tile, so it had them
as well as the square root.
"""

import nki
import nki.isa as nisa
import nki.language as nl

DECAY = 1e-5  # learning rate * weight decay
RATE = 0.01
BETA1, BETA2 = 0.9, 0.999
EPSILON = 1e-8
# What the first step's bias correction makes of the square root: 1 / (1 - BETA2).
CORRECTION = 1000.0


def scaled(tile, factor):
    """A new tile: tile * factor."""
    out = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=out, data=tile, op0=nl.multiply, operand0=factor, engine=nisa.engine.scalar)
    return out


def combined(left, right, op):
    """A new tile: left op right."""
    out = nl.ndarray(left.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=out, data1=left, data2=right, op=op)
    return out


def update(weight, moment, variance, gradient, zero, result):
    """result = the new weights, for tiles of one shape."""
    kept = combined(weight, scaled(weight, DECAY), nl.subtract)
    new_moment = combined(scaled(moment, BETA1), scaled(gradient, 1 - BETA1), nl.add)
    step = scaled(new_moment, RATE)
    square = combined(scaled(gradient, 1 - BETA2), gradient, nl.multiply)
    new_variance = combined(scaled(variance, BETA2), square, nl.add)
    root = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=root, op=nl.sqrt, data=new_variance, scale=CORRECTION, bias=zero)
    divisor = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=divisor, data=root, op0=nl.add, operand0=EPSILON, engine=nisa.engine.scalar)
    inverse = nl.ndarray(weight.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=divisor)
    nisa.tensor_tensor(dst=result, data1=kept, data2=combined(step, inverse, nl.multiply), op=nl.subtract)


@nki.jit
def adamw(weight, gradient, moment, variance, load_width=1024, compute_width=512):
    """The new weights for four matrices of one shape; rows in tiles of 128, the last one cut."""
    rows, width = weight.shape
    assert width % load_width == 0 and load_width % compute_width == 0
    out = nl.ndarray(weight.shape, dtype=weight.dtype, buffer=nl.shared_hbm)
    zero = nl.ndarray((nl.tile_size.pmax, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=zero, value=0.0)
    for tile in nl.affine_range((rows + nl.tile_size.pmax - 1) // nl.tile_size.pmax):
        first = tile * nl.tile_size.pmax
        count = min(nl.tile_size.pmax, rows - first)
        for load in nl.affine_range(width // load_width):
            columns = nl.ds(load * load_width, load_width)
            tiles = []
            for matrix in (weight, moment, variance, gradient):
                data = nl.ndarray((count, load_width), dtype=matrix.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=data, src=matrix[first : first + count, columns])
                tiles.append(data)
            result = nl.ndarray((count, load_width), dtype=weight.dtype, buffer=nl.sbuf)
            for part in nl.affine_range(load_width // compute_width):
                here = nl.ds(part * compute_width, compute_width)
                w, m, v, g = tiles
                update(w[:, here], m[:, here], v[:, here], g[:, here], zero[0:count, :], result[:, here])
            nisa.dma_copy(dst=out[first : first + count, columns], src=result)
    return out
