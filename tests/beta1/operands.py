"""Operands that the older language took and the current one does not."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def narrow_vectors(x):
    """Operands with one element in each partition, of 16 bits."""
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
