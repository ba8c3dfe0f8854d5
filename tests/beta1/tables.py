"""Block dimensions, loop_reduce, direct allocation."""

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
from neuronxcc.nki.language import par_dim


@nki.jit
def blocked_matmul(lhs, rhs):
    """In the style of generated code: imports inside, tables of tiles, transposes by an identity matrix."""
    import neuronxcc.nki.isa as nisa
    import numpy as np

    m, k = lhs.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=np.float32, buffer=nl.shared_hbm)
    one = nl.shared_constant(np.identity(128, dtype=np.float32))
    identity = nl.ndarray((nl.par_dim(128), 128), dtype=np.float32, name="identity", buffer=nl.sbuf)
    right = nl.ndarray((k // 128, nl.par_dim(128), n), dtype=np.float32, buffer=nl.sbuf)
    left = nl.ndarray((m // 128, k // 128, nl.par_dim(128), 128), dtype=np.float32, buffer=nl.sbuf)
    turned = nl.zeros((m // 128, k // 128, nl.par_dim(128), 128), dtype=np.float32, buffer=nl.psum, lazy_initialization=True)
    stationary = nl.ndarray((m // 128, nl.par_dim(128), k // 128, 128), dtype=np.float32, buffer=nl.sbuf)
    product = nl.zeros((m // 128, nl.par_dim(128), n), dtype=np.float32, buffer=nl.psum, lazy_initialization=True)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(128)[None, :]
    i_n = nl.arange(n)[None, :]
    identity[i_p, i_f] = nl.load(one[i_p, i_f], dtype=np.float32, mask=None)
    for j in nl.affine_range(k // 128):
        right[j, i_p, i_n] = nl.load(rhs[i_p + 128 * j, i_n], mask=None)
        " end loop j "
    for i in nl.affine_range(m // 128):
        for j in nl.affine_range(k // 128):
            left[i, j, i_p, i_f] = nl.load(lhs[128 * i + i_p, 128 * j + i_f])
            turned[i, j, i_p, i_f] = nisa.nc_matmul(left[i, j, i_p, i_f], identity[i_p, i_f], is_stationary_onezero=False, is_moving_onezero=True, mask=None, is_transpose=True)
            stationary[i, i_p, j, i_f] = nl.copy(turned[i, j, i_p, i_f], dtype=np.float32, mask=None)
        for j in nl.affine_range(k // 128):
            product[i, i_p, i_n] += nisa.nc_matmul(stationary[i, i_p, j, i_f], right[j, i_p, i_n], mask=None)
        nl.store(out[128 * i + i_p, i_n], value=nl.copy(product[i, i_p, i_n]))
    return out


@nki.jit
def row_maxima(x):
    """Reductions over loops, into a tile without an initial value and into a name."""
    tiles, p, f = x.shape
    out = nl.ndarray((p, 2), dtype=x.dtype, buffer=nl.shared_hbm)
    parts = nl.ndarray((tiles, par_dim(p), 1), dtype=x.dtype)
    best = nl.ndarray((2, par_dim(p), 1), dtype=x.dtype)
    total = nl.zeros((par_dim(p), 1), dtype=x.dtype)
    for i in nl.affine_range(tiles):
        tile = nl.load(x[i])
        parts[i] = nisa.tensor_reduce(np.max, data=tile, axis=[1])
        best[1, nl.arange(p)[:, None], 0] = nl.loop_reduce(parts[i, nl.arange(p)[:, None], 0], op=np.max, loop_indices=[i])
        total = nl.loop_reduce(nl.sum(tile, axis=[1]), op=np.add, loop_indices=[i], dtype=nl.float32)
    nl.store(out[:, 0:1], best[1])
    nl.store(out[:, 1:2], total)
    return out


@ncc.skip_middle_end_transformations
@nki.baremetal
@nki.jit
def allocated(x):
    """Addresses by modulo and by a function; two blocks share an address."""
    tiles, p, f = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    def place(idx, pdim, fdim):
        return 0, 65536 + idx[0] % 2 * fdim

    a = nl.ndarray((tiles, par_dim(p), f), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,)))
    b = nl.ndarray((tiles, par_dim(p), f), dtype=x.dtype, buffer=ncc.sbuf.alloc(place))
    sums = nl.ndarray((tiles, par_dim(p), f), dtype=nl.float32, buffer=ncc.psum.mod_alloc(base_bank=1, num_bank_tiles=(2,)))
    for i in nl.affine_range(tiles):
        a[i] = nl.load(x[i])
        sums[i] = nisa.activation(nl.square, a[i], bias=nl.zeros((p, 1), dtype=nl.float32))
        b[i, :, :] = nisa.tensor_tensor(a[i], sums[i], op=nl.add)
        nl.store(out[i], value=b[i])
    return out
