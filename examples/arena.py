"""Buffers that share bytes at different times: one arena of SBUF, laid out by the kernel."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128
FLOAT32_BYTES = 4


class Arena(nl.NKIObject):
    """Allocates the bytes of a partition from the bottom up, and frees the last ones."""

    top: int = 0

    def take(self, count):
        """The address of the next `count` numbers; aligned to 32 bytes."""
        address = self.top
        self.top = address + -(-count * FLOAT32_BYTES // 32) * 32
        assert self.top <= nl.tile_size.total_available_sbuf_size, "the arena is full"
        return (0, address)

    def give_back(self, address):
        self.top = address[1]


def tile(shape, address, name):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf, address=address, name=name)


# nki-sim: x=float32[640,384]
@nki.jit
def center_columns(x):
    """out[M, N] = x minus the mean of each column; M a multiple of 128, N <= 512.

    The rows are loaded twice, once for the mean and once to be centered. Each block of rows has its own tile, and every second tile
    shares one place. Tiles live from the first pass to the second and overlap, but are never needed at the same time.
    """
    m, n = x.shape
    blocks = m // ROWS
    assert m % ROWS == 0 and n <= nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)

    arena = Arena()
    places = [arena.take(n), arena.take(n)]
    rows = [tile((ROWS, n), places[i % 2], f"rows{i}") for i in range(blocks)]
    mean = tile((ROWS, n), arena.take(n), "mean")

    # Ones times the rows yields the column sums in all partitions. Only the first pass needs the ones.
    below = arena.take(ROWS)
    ones = tile((ROWS, ROWS), below, "ones")
    nisa.memset(dst=ones, value=1.0)
    sums = nl.ndarray((ROWS, n), dtype=nl.float32, buffer=nl.psum, address=(0, 0), name="sums")
    for i in range(blocks):
        nisa.dma_copy(dst=rows[i], src=x[nl.ds(i * ROWS, ROWS), :])
        nisa.nc_matmul(dst=sums, stationary=ones, moving=rows[i], accumulate=i > 0)
    arena.give_back(below)
    nisa.tensor_scalar(dst=mean, data=sums, op0=nl.multiply, operand0=1.0 / m)

    # Reuses the place of the ones.
    squares = tile((ROWS, 1), arena.take(1), "squares")
    total = nl.ndarray((ROWS, blocks), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(blocks):
        nisa.dma_copy(dst=rows[i], src=x[nl.ds(i * ROWS, ROWS), :])
        # In place: a second name for the same bytes.
        centered = tile((ROWS, n), places[i % 2], f"centered{i}")
        nisa.tensor_tensor(dst=centered, data1=rows[i], data2=mean, op=nl.subtract)
        nisa.dma_copy(dst=out[nl.ds(i * ROWS, ROWS), :], src=centered)
        nisa.tensor_tensor(dst=centered, data1=centered, data2=centered, op=nl.multiply)
        nisa.tensor_reduce(dst=squares, data=centered, op=nl.add, axis=1)
        nisa.dma_copy(dst=total[:, nl.ds(i, 1)], src=squares)
    return out, total
