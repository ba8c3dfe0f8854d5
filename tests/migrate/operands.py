"""Operands and destinations for neuronxcc.nki that the current language takes in another form only."""

import numpy as np
from neuronxcc import nki
from neuronxcc.nki import isa as nisa
from neuronxcc.nki import language as nl


@nki.jit
def permuted(x):
    """An index that divides and exchanges dimensions, on the left of an assignment."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    a = nl.arange(64)[:, None, None, None]
    b = nl.arange(4)[None, :, None, None]
    c = nl.arange(4)[None, None, :, None]
    d = nl.arange(4)[None, None, None, :]
    w = nl.ndarray((64, 64), nl.float32)
    v = nl.ndarray((64, 4, 4, 4), nl.float32)
    v[a, b, c, d] = nl.copy(t[a, 16 * b + 4 * c + d])
    w[a, 16 * c + 4 * d + b] = v
    nl.store(out, w)
    return out


@nki.jit
def convolution(x, w):
    """Matmuls added to a part of PSUM with two free dimensions."""
    channels, height, width = x.shape
    filters = w.shape[2]
    out = nl.ndarray((filters, height - 2, width), dtype=nl.float32, buffer=nl.shared_hbm)
    image = nl.load(x)
    sums = nl.zeros((filters, height - 2, width), dtype=nl.float32, buffer=nl.psum)
    i_c = nl.arange(channels)[:, None, None]
    i_o = nl.arange(filters)[:, None, None]
    i_h = nl.arange(height - 2)[None, :, None]
    i_w = nl.arange(width)[None, None, :]
    for i in nl.affine_range(3):
        sums[i_o, i_h, i_w] += nisa.nc_matmul(nl.load(w[i]), image[i_c, i_h + i, i_w])
    nl.store(out, sums)
    return out


@nki.jit
def transposes(x):
    """Transposes by the tensor engine into SBUF."""
    out = nl.ndarray((60, 100), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    w = nl.ndarray((60, 100), nl.float32)
    w[...] = nisa.nc_transpose(t)
    nl.store(out, w)
    return out


@nki.jit
def in_psum(x, y):
    """Two operands in PSUM, and products in narrow types."""
    out = nl.ndarray((4, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t, u = nl.load(x), nl.load(y)
    p = nl.matmul(t, u) + nl.matmul(u, t)
    q = nl.zeros((64, 64), nl.float32, buffer=nl.psum)
    q += nl.matmul(t, u, transpose_x=True)
    r = nisa.nc_matmul(t, u)
    q[...] = nl.multiply(q, r)
    nl.store(out[0], p)
    nl.store(out[1], q)
    nl.store(out[2], r)
    narrow = nl.ndarray((64, 64), nl.bfloat16, buffer=nl.psum)
    narrow[...] = nisa.nc_matmul(nl.load(x), nl.load(y))
    nl.store(out[3], nl.copy(narrow, dtype=nl.float32))
    return out


@nki.jit
def types(x, y):
    """A column assigned to several, quotients of ints, options without an effect."""
    out = nl.ndarray((3, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x)
    wide = nl.full((64, 64), 3.0, dtype=nl.float32)
    column = nl.load(y)
    wide[:, 30:40] = column
    nl.store(out[0], wide)
    whole = nl.load(x, dtype=nl.int32)
    nl.store(out[1], whole / 2)
    nl.store(out[2], nl.softmax(t, -1, compute_dtype=nl.float32))
    return out


@nki.jit
def on_one_line(x, y):
    """Several statements on a line."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x); b = nl.load(y); n = 2  # both
    for i in nl.static_range(2): b = nisa.tensor_scalar(b, np.add, 1.0); a = a + b
    for i in nl.static_range(n): a = a + float(n)
    nl.store(out, a)
    return out


@nki.jit
def named_slices(x, w):
    """Names, elements of lists and variables of loops that hold slices."""
    rows, columns = w.shape
    out = nl.ndarray((3 * rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    pieces = [nl.ds(i, 1) for i in range(rows)]
    for i in nl.affine_range(rows):
        one = nl.ds(i, 1)
        nl.store(out[one, :], nl.load(w[one, :]))
        other = slice(i, i + 1)
        nl.store(out[nl.ds(rows + i, 1), :], nl.load(w[other, :]))
    for i, piece in enumerate(pieces):
        nl.store(out[nl.ds(2 * rows + i, 1), :], nl.load(w[piece, :]))
    return out


@nki.jit
def chosen(x):
    """Results whose type the two languages choose differently."""
    out = nl.ndarray((4, 64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(x, dtype=nl.float32)
    low = nl.copy(t, dtype=nl.bfloat16)
    nl.store(out[0], nl.where(t > 0, low, t))
    nl.store(out[1], nl.where(t > 0, low, 0.1))
    nl.store(out[2], nl.softmax(low, axis=1, compute_dtype=nl.float32))
    scanned = nisa.tensor_tensor_scan(low, t, initial=0.0, op0=np.multiply, op1=np.add)
    nl.store(out[3], scanned)
    return out


def counted(calls, tile):
    calls.append(1)
    return tile


@nki.jit
def called_once(x):
    """Operands that a function returns, whose shape and dtype the new tiles have."""
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    calls = []
    t = nl.load(x)
    a = nisa.tensor_scalar(counted(calls, t), nl.add, 1.0)
    b = nisa.nc_transpose(counted(calls, a)[:, 0:64])
    nl.store(out, nisa.tensor_scalar(b, nl.multiply, 1.0 * len(calls)))
    return out
