"""A product in three levels of blocks, alone and in two larger programs. The original names no engine and no descriptor mode."""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128  # rows of the result, or of the contraction, in a tile
COLUMNS = 512  # columns of the result in a tile


def load(matrix, first_row, tiles, first_column, columns):
    """Rows and columns of `matrix` as [128, tiles, columns] in SBUF, one transfer for 128 rows."""
    block = nl.ndarray((P, tiles, columns), dtype=matrix.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(tiles):
        rows = nl.ds(first_row + i * P, P)
        nisa.dma_copy(dst=block[:, i, :], src=matrix[rows, nl.ds(first_column, columns)])
    return block


def multiply(left, right, sums):
    """Adds the product of two blocks to `sums`, a list of [128, columns / 512, 512] for each 128 rows of the result."""
    slices = left.shape[1]
    for column in nl.affine_range(right.shape[2] // COLUMNS):
        for row in nl.affine_range(left.shape[2] // P):
            product = nl.ndarray((P, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for i in nl.affine_range(slices):
                nisa.nc_matmul(
                    dst=product,
                    stationary=left[:, i, nl.ds(row * P, P)],
                    moving=right[:, i, nl.ds(column * COLUMNS, COLUMNS)],
                )
            total = sums[row][:, column, :]
            nisa.tensor_tensor(dst=total, data1=total, data2=product, op=nl.add)


def product(lhs_t, rhs, m, n, k):
    """lhs_t.T @ rhs for lhs_t[K, M], rhs[K, N] in blocks of m, n and k tiles; sums between blocks have the result's dtype."""
    contraction, height = lhs_t.shape
    width = rhs.shape[1]
    assert height % (P * m) == 0 and width % (COLUMNS * n) == 0 and contraction % (P * k) == 0
    out = nl.ndarray((height, width), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for column in nl.affine_range(width // (COLUMNS * n)):
        sums = []
        for _ in nl.affine_range(height // P):
            tile = nl.ndarray((P, n, COLUMNS), dtype=lhs_t.dtype, buffer=nl.sbuf)
            nisa.memset(dst=tile, value=0.0)
            sums.append(tile)
        for step in nl.sequential_range(contraction // (P * k)):
            right = load(rhs, step * P * k, k, column * COLUMNS * n, COLUMNS * n)
            for row in nl.affine_range(height // (P * m)):
                left = load(lhs_t, step * P * k, k, row * P * m, P * m)
                multiply(left, right, sums[row * m : (row + 1) * m])
        for row in nl.affine_range(height // P):
            nisa.dma_copy(dst=out[nl.ds(row * P, P), nl.ds(column * COLUMNS * n, COLUMNS * n)], src=sums[row])
    return out


@nki.jit
def blocked_matmul(lhs_t, rhs, m, n, k):
    return product(lhs_t, rhs, m, n, k)


@nki.jit
def feed_forward(x_t, w_gate, w_up, w_down, m, n, k):
    """The three products of a feed-forward block, without what the graph computes between them.

    x_t[D, T], w_gate and w_up[D, F], w_down[F, D]. The graph's third product has the transpose of silu(gate) * up, made by
    the compiler in a way that is not known, and starts when that is complete. Here it has the elements of `up`, read as [F, T].
    """
    gate = product(x_t, w_gate, m, n, k)
    up = product(x_t, w_up, m, n, k)
    down = product(up.reshape((w_down.shape[0], x_t.shape[1])), w_down, m, n, k)
    return gate, up, down


@nki.jit
def stack(h, weights, m, n, k):
    """A product with each of `weights`[layers, D, D] in turn; each result is the next transposed operand, as it is."""
    for layer in range(weights.shape[0]):
        h = product(h, weights[layer], m, n, k)
    return h
