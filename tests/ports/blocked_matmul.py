"""A product in three levels of blocks, alone and in two larger programs. The original specifies neither engines nor a descriptor mode."""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128  # rows of the result, or of the contraction, in a tile
COLUMNS = 512  # columns of the result in a tile


def load(matrix, first_row, tiles, first_column, columns):
    """Rows and columns of `matrix` as [128, tiles, columns] in SBUF, with one transfer per 128 rows."""
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
    """lhs_t.T @ rhs for lhs_t[K, M], rhs[K, N] in blocks of m, n and k tiles; sums across blocks have the result's dtype."""
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


def transpose(tiles, matrix, first):
    """Writes the transposes of tiles [128, columns], one below the other, to the rows of `matrix` starting at `first`: 256 rows per transfer."""
    tokens = len(tiles) * P
    for pair in nl.affine_range(tiles[0].shape[1] // (2 * P)):
        block = nl.ndarray((P, 2, tokens), dtype=matrix.dtype, buffer=nl.sbuf)
        for i in range(2):
            bank = nl.ndarray((P, tokens), dtype=matrix.dtype, buffer=nl.psum)
            for row in range(len(tiles)):
                nisa.nc_transpose(dst=bank[:, nl.ds(row * P, P)], data=tiles[row][:, nl.ds((2 * pair + i) * P, P)])
            nisa.tensor_copy(dst=block[:, i, :], src=bank)
        rows = matrix.ap(pattern=[[tokens, P], [P * tokens, 2], [1, tokens]], offset=(first + 2 * pair * P) * tokens)
        nisa.dma_copy(dst=rows, src=block)


def part(matrix, row, column, columns):
    """128 rows of some columns of a matrix, in SBUF; `row` and `column` count such parts."""
    tile = nl.ndarray((P, columns), dtype=matrix.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=matrix[nl.ds(row * P, P), nl.ds(column * columns, columns)])
    return tile


def cast(tile, dtype):
    out = nl.ndarray(tile.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=out, src=tile)
    return out


def gated(gate, up):
    """silu(gate) * up, for tiles."""
    active = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.sbuf)
    out = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.sbuf)
    nisa.activation(dst=active, op=nl.silu, data=gate)
    nisa.tensor_tensor(dst=out, data1=active, data2=up, op=nl.multiply)
    return out


def mean(tiles):
    """The mean over all rows of fp32 tiles [128, columns], as a row in HBM: the rows of a tile are summed by a product with 1 / rows."""
    columns = tiles[0].shape[1]
    out = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.shared_hbm)
    share = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=share, value=1.0 / (P * len(tiles)))
    row = nl.ndarray((1, columns), dtype=nl.float32, buffer=nl.sbuf)
    for column in nl.affine_range(columns // COLUMNS):
        bank = nl.ndarray((1, COLUMNS), dtype=nl.float32, buffer=nl.psum)
        for tile in tiles:
            nisa.nc_matmul(dst=bank, stationary=share, moving=tile[:, nl.ds(column * COLUMNS, COLUMNS)])
        nisa.tensor_copy(dst=row[:, nl.ds(column * COLUMNS, COLUMNS)], src=bank)
    nisa.dma_copy(dst=out, src=row)
    return out


@nki.jit
def feed_forward(x, w_gate, w_up, w_down, m, n, k, columns=2048):
    """A feed-forward block in bf16 and the mean of its result over the tokens: x[T, D] in fp32, w_gate and w_up[D, F], w_down[F, D].

    Between the products is what the graph has there, one after the other: x is cast and transposed,
    silu(gate) * up is transposed, the result is added to x. What one kernel of the graph passes to
    another is in shared HBM, as every kernel's results are. How the compiler does the steps in
    between is not known; its profile has 128 to 130 transfers and 58 MB more than the products,
    this has 129 and 63 MB.
    """
    tokens, width = x.shape
    inner, dtype = w_gate.shape[1], w_gate.dtype
    rows = range(tokens // P)
    x_t = nl.ndarray((width, tokens), dtype=dtype, buffer=nl.shared_hbm)
    for column in nl.affine_range(width // columns):
        transpose([cast(part(x, row, column, columns), dtype) for row in rows], x_t, column * columns)
    gate = product(x_t, w_gate, m, n, k)
    up = product(x_t, w_up, m, n, k)
    hidden_t = nl.ndarray((inner, tokens), dtype=dtype, buffer=nl.shared_hbm)
    for column in nl.affine_range(inner // columns):
        hidden = [gated(part(gate, row, column, columns), part(up, row, column, columns)) for row in rows]
        transpose(hidden, hidden_t, column * columns)
    down = product(hidden_t, w_down, m, n, k)
    results = []
    for row in rows:
        total = nl.ndarray((P, width), dtype=nl.float32, buffer=nl.sbuf)
        residual = cast(part(x, row, 0, width), dtype)
        nisa.tensor_tensor(dst=total, data1=residual, data2=part(down, row, 0, width), op=nl.add)
        results.append(total)
    return mean(results)


@nki.jit
def stack(h, weights, m, n, k):
    """Multiplies by each of `weights`[layers, D, D] in turn; each result is directly the next transposed operand."""
    for layer in range(weights.shape[0]):
        h = product(h, weights[layer], m, n, k)
    return h
