"""Operands that the older language accepts and the current one does not."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def narrow_vectors(x):
    """16-bit operands with one element in each partition."""
    out = nl.ndarray((3, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    half = nl.copy(t[:, 0:1], dtype=nl.float16)
    brain = nl.copy(t[:, 1:2], dtype=nl.bfloat16)
    nl.store(out[0], nisa.tensor_scalar(t, nl.multiply, half, op1=nl.add, operand1=brain))
    nl.store(out[1], nisa.scalar_tensor_tensor(data=t, op0=nl.subtract, operand0=brain, op1=nl.multiply, operand1=t))
    nl.store(out[2], nisa.tensor_tensor_scan(t, t, half, np.multiply, np.add))
    return out


@nki.jit
def filled_parts(x):
    """A number is stored to parts of HBM that are not contiguous."""
    rows, columns = x.shape
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    grid = nl.mgrid[0:128, 0:512]
    for i in nl.affine_range((rows + 127) // 128):
        for j in nl.affine_range((columns + 511) // 512):
            inside = (i * 128 + grid.p < rows) & (j * 512 + grid.x < columns)
            nl.store(out[i * 128 + grid.p, j * 512 + grid.x], value=3 + j, mask=inside)
    nl.store(out[5:7, 10:20], nl.load(x[5:7, 10:20]))
    return out


@nki.jit
def vectors_of_all_types(x, wide, small):
    """Operands with one element in each partition, in every type, for functions, operators and instructions."""
    out = nl.ndarray((9, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    exact = nl.ndarray(wide.shape, dtype=nl.int32, buffer=nl.shared_hbm)
    t = nl.load(x, dtype=nl.bfloat16)
    mean = nl.mean(t, axis=1)
    assert mean.dtype == nl.bfloat16
    nl.store(out[0], nl.copy(t - mean, dtype=nl.float32))
    nl.store(out[1], nl.divide(mean, t, dtype=nl.float32))
    u, v = nl.load(wide), nl.load(small)
    byte = nl.copy(v[:, 0:1], dtype=nl.int8)
    nl.store(out[2], nl.copy(nl.maximum(u, v[:, 0:1]), dtype=nl.float32))
    nl.store(out[3], nl.add(t, u[:, 0:1], dtype=nl.float32))
    nl.store(out[4], nl.copy(u * byte, dtype=nl.float32))
    nl.store(out[5], nisa.tensor_scalar(t, nl.subtract, u[:, 0:1], reverse0=True, dtype=nl.float32))
    nl.store(out[6], nl.copy(nisa.tensor_scalar(u, nl.bitwise_and, v[:, 1:2], dtype=nl.int32), dtype=nl.float32))
    nl.store(out[7], nl.copy(nl.less(u, v[:, 0:1]), dtype=nl.float32))
    nl.store(out[8], nisa.scalar_tensor_tensor(data=t, op0=nl.multiply, operand0=byte, op1=nl.add, operand1=t, dtype=nl.float32))
    nl.store(exact, nl.add(u * 65536, u[:, 0:1]))
    return out, exact


@nki.jit
def repeated_vectors(x, w):
    """Index tiles of two axes name a vector, which is repeated along the second axis."""
    rows, columns = x.shape
    out = nl.ndarray((2, rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:rows, 0:columns]
    t, v = nl.load(x), nl.load(w)
    result = nisa.tensor_scalar(t[i, j], nl.add, v[i, 0], op1=nl.multiply, operand1=v[i, 1])
    result[i, j] = nisa.activation(nl.exp, result[i, j], bias=v[i, 0], scale=0.1)
    nl.store(out[0], result)
    sums = nl.zeros((rows, 1), dtype=nl.float32)
    squares = nl.zeros((rows, columns), dtype=nl.float32)
    squares[i, j] = nisa.activation_reduce(nl.square, t, reduce_op=nl.add, reduce_res=sums[i, 0], mask=j < 20)
    nl.store(out[1], squares)
    nl.store(total, sums)
    return out, total
