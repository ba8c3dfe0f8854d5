"""Statements for neuronxcc.nki that bind the name of an operand again."""

import numpy as np
from neuronxcc import nki
from neuronxcc.nki import isa as nisa
from neuronxcc.nki import language as nl


@nki.jit
def elementwise(t, u):
    """Positional and keyword operands, the name of the keyword, nested calls."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    data = nl.load(t)
    u = nl.load(u)
    data = nisa.tensor_scalar(data, np.multiply, 0.5)
    data = nisa.activation(np.tanh, data=data, scale=0.5)
    data = nisa.tensor_tensor(u, data, np.add)
    data = nisa.scalar_tensor_tensor(data=u, op0=np.multiply, operand0=data[:, 3:4], op1=np.add, operand1=data)
    data = nisa.tensor_copy(nisa.reciprocal(nisa.tensor_scalar(data, np.add, 9.0)), dtype=nl.bfloat16)
    data = nisa.tensor_copy(data, dtype=nl.float32)
    for i in nl.static_range(3):
        data = nisa.tensor_scalar(data, np.add, 1.0)
        data = nisa.activation(np.tanh, data=data)
    nl.store(out, data)
    return out


@nki.jit
def shapes(x, y):
    """Results of other shapes, types and memories."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    u = nl.load(y)
    i_p = nl.arange(64)[:, None]
    i_f = nl.arange(64)[None, :]
    t = nisa.affine_select(pred=(i_p >= i_f), on_true_tile=t[i_p, i_f], on_false_value=nl.fp32.min)
    t = nisa.activation(np.exp, t)
    t = nisa.tensor_tensor_scan(t, u, initial=0.0, op0=np.multiply, op1=np.add, dtype=nl.float32)
    t = nisa.nc_matmul(nisa.tensor_copy(t), u)
    t = nl.copy(t)
    t = nl.matmul(t, u, transpose_x=True)
    t = nl.copy(t, dtype=nl.float32)
    t = nl.transpose(t)
    t = nisa.tensor_reduce(np.add, t, axis=[-1], keepdims=True)
    t = u + t
    part = nl.load(y[0:64, 0:64])
    part = nl.exp(part, mask=i_f < 40)
    nl.store(out[:, 0:40], part[:, 0:40])
    nl.store(out[:, 40:64], t[:, 40:64])
    return out
