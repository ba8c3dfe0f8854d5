"""Kernels with more tiles in PSUM than it has banks: the older compiler reordered them."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def many_sums(lhs_t, rhs):
    """Each tile of `rhs` is loaded once for all rows of the result, each of which accumulates in its own bank."""
    k, m = lhs_t.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f, i_n = nl.arange(128)[:, None], nl.arange(128)[None, :], nl.arange(512)[None, :]
    for c in nl.affine_range(n // 512):
        sums = nl.zeros((m // 128, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(k // 128):
            right = nl.load(rhs[128 * j + i_p, 512 * c + i_n])
            for i in nl.affine_range(m // 128):
                left = nl.load(lhs_t[128 * j + i_p, 128 * i + i_f])
                sums[i, i_p, i_n] += nisa.nc_matmul(left[i_p, i_f], right[i_p, i_n])
        for i in nl.affine_range(m // 128):
            nl.store(out[128 * i + i_p, 512 * c + i_n], nl.copy(sums[i, i_p, i_n]))
    return out


@nki.jit
def separate_loops(q, k):
    """Softmax of q.T @ k, with a separate loop over all rows for each step, and the scores in PSUM."""
    rows = q.shape[1]
    columns = k.shape[1]
    out = nl.ndarray((rows, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    q_tile, k_tile = nl.load(q), nl.load(k)
    scores = nl.ndarray((rows // 128, columns // 512, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(rows // 128):
        for j in nl.affine_range(columns // 512):
            scores[i, j] = nisa.nc_matmul(q_tile[:, nl.ds(i * 128, 128)], k_tile[:, nl.ds(j * 512, 512)])
    largest = nl.ndarray((nl.par_dim(128), rows // 128), dtype=nl.float32)
    for i in nl.affine_range(rows // 128):
        of_part = nl.ndarray((nl.par_dim(128), columns // 512), dtype=nl.float32)
        for j in nl.affine_range(columns // 512):
            of_part[:, j] = nisa.tensor_reduce(op=nl.max, data=scores[i, j], axis=1)
        largest[:, i] = nisa.tensor_reduce(op=nl.max, data=of_part, axis=1)
    for i in nl.affine_range(rows // 128):
        e = nl.ndarray((nl.par_dim(128), columns), dtype=nl.float32)
        for j in nl.affine_range(columns // 512):
            shifted = nisa.tensor_scalar(scores[i, j], nl.subtract, largest[:, i])
            e[:, nl.ds(j * 512, 512)] = nisa.activation(nl.exp, shifted)
        total = nisa.tensor_reduce(op=nl.add, data=e, axis=1)
        nl.store(out[nl.ds(i * 128, 128), :], nisa.tensor_scalar(e, nl.multiply, nisa.reciprocal(total)))
    return out


@nki.jit
def last_first(x):
    """The last product is needed first, so the first ones leave PSUM."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    total = nl.copy(tile)
    products = nl.ndarray((11, nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.psum)
    for i in nl.static_range(11):
        products[i] = nisa.nc_matmul(tile[:, nl.ds(i * 32, 128)], tile)
    for i in nl.static_range(11):
        total[...] = nl.maximum(total, products[10 - i])
        total[...] = total * 0.5
    nl.store(out, total)
    return out
