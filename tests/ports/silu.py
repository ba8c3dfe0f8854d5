"""x * sigmoid(x) from its parts: exponential, sum, reciprocal and product, without the function table of the sigmoid.

The original leaves the engine of the sum open. The scalar engine was active for twice the time of the exponentials, so it had the sums, too.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def silu(x, load_width=1024, compute_width=512):
    """out = x / (1 + exp(-x)) for x[128, rows, width]; loads load_width columns at a time, computes compute_width."""
    partitions, rows, width = x.shape
    assert width % load_width == 0 and load_width % compute_width == 0
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    zero = nl.ndarray((partitions, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=zero, value=0.0)
    for row in nl.affine_range(rows):
        for load in nl.affine_range(width // load_width):
            columns = nl.ds(load * load_width, load_width)
            data = nl.ndarray((partitions, load_width), dtype=x.dtype, buffer=nl.sbuf)
            result = nl.ndarray((partitions, load_width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=data, src=x[:, row, columns])
            for part in nl.affine_range(load_width // compute_width):
                here = nl.ds(part * compute_width, compute_width)
                decay = nl.ndarray((partitions, compute_width), dtype=nl.float32, buffer=nl.sbuf)
                divisor = nl.ndarray((partitions, compute_width), dtype=nl.float32, buffer=nl.sbuf)
                inverse = nl.ndarray((partitions, compute_width), dtype=nl.float32, buffer=nl.sbuf)
                nisa.activation(dst=decay, op=nl.exp, data=data[:, here], scale=-1.0, bias=zero)
                nisa.tensor_scalar(dst=divisor, data=decay, op0=nl.add, operand0=1.0, engine=nisa.engine.scalar)
                nisa.reciprocal(dst=inverse, data=divisor)
                nisa.tensor_tensor(dst=result[:, here], data1=data[:, here], data2=inverse, op=nl.multiply)
            nisa.dma_copy(dst=out[:, row, columns], src=result)
    return out
