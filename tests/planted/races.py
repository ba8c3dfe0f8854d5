"""Races between the two cores of a logical core"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[2,128,64]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def no_barrier(x):
    """Each core publishes its tile and adds the other core's to it."""
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="board")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mine = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=mine, src=x[core])
    nisa.dma_copy(dst=board[core], src=mine)
    nisa.dma_copy(dst=theirs, src=board[1 - core])  # plant: shared-memory-race
    nisa.tensor_tensor(dst=mine, data1=mine, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=mine)
    return out


@nki.jit
def no_barrier_fixed(x):
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="board")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    mine = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=mine, src=x[core])
    nisa.dma_copy(dst=board[core], src=mine)
    nisa.core_barrier(data=board, cores=(0, 1))
    nisa.dma_copy(dst=theirs, src=board[1 - core])
    nisa.tensor_tensor(dst=mine, data1=mine, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=mine)
    return out


# args: x=float32[128,96]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def barrier_before_the_write(x):
    """The barrier stands before the store that it should order."""
    core = nl.program_id(0)
    half = nl.ds(core * 48, 48)
    other = nl.ds((1 - core) * 48, 48)
    sums = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.shared_hbm, name="sums")
    out = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 48), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, half])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.core_barrier(data=sums, cores=(0, 1))
    nisa.dma_copy(dst=sums[:, half], src=tile)
    nisa.dma_copy(dst=tile, src=sums[:, other])  # plant: shared-memory-race
    nisa.dma_copy(dst=out[:, half], src=tile)
    return out


@nki.jit
def barrier_before_the_write_fixed(x):
    core = nl.program_id(0)
    half = nl.ds(core * 48, 48)
    other = nl.ds((1 - core) * 48, 48)
    sums = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.shared_hbm, name="sums")
    out = nl.ndarray((128, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 48), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[:, half])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=sums[:, half], src=tile)
    nisa.core_barrier(data=sums, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=sums[:, other])
    nisa.dma_copy(dst=out[:, half], src=tile)
    return out


# args: x=float32[192,32]
# flags: --lnc 2
# seen-by: run
@nki.jit
def halves_overlap(x):
    """Core 0 scales 97 rows, core 1 the rest from row 96: row 96 belongs to both."""
    rows, columns = x.shape
    core = nl.program_id(0)
    half = rows // 2
    count = half + 1 if core == 0 else half
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((count, columns), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(core * half, count), :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0 + core)
    nisa.dma_copy(dst=out[nl.ds(core * half, count), :], src=tile)  # plant: shared-memory-race
    return out


@nki.jit
def halves_overlap_fixed(x):
    rows, columns = x.shape
    core = nl.program_id(0)
    half = rows // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((half, columns), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(core * half, half), :])
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0 + core)
    nisa.dma_copy(dst=out[nl.ds(core * half, half), :], src=tile)
    return out


# args: x=float32[4,128,32]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def mailbox_reused(x):
    """Two rounds through one mailbox: the second round's write overtakes the first round's read."""
    rounds = 2
    core = nl.program_id(0)
    mailbox = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm, name="mailbox")
    out = nl.ndarray((rounds, 128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(rounds):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        if core == 0:
            nisa.dma_copy(dst=tile, src=x[r])
            nisa.dma_copy(dst=mailbox, src=tile)
        nisa.core_barrier(data=mailbox, cores=(0, 1))
        if core == 1:
            nisa.dma_copy(dst=tile, src=mailbox)  # plant: shared-memory-race
            nisa.dma_copy(dst=out[r], src=tile)
    return out


@nki.jit
def mailbox_reused_fixed(x):
    rounds = 2
    core = nl.program_id(0)
    mailbox = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm, name="mailbox")
    out = nl.ndarray((rounds, 128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(rounds):
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        if core == 0:
            nisa.dma_copy(dst=tile, src=x[r])
            nisa.dma_copy(dst=mailbox, src=tile)
        nisa.core_barrier(data=mailbox, cores=(0, 1))
        if core == 1:
            nisa.dma_copy(dst=tile, src=mailbox)
            nisa.dma_copy(dst=out[r], src=tile)
        nisa.core_barrier(data=mailbox, cores=(0, 1))
    return out


# args: x=float32[2,128,64]
# flags: --lnc 2
# seen-by: run
@nki.jit
def both_write_the_total(x):
    """A row sum over two cores: both store their own part to the same column."""
    core = nl.program_id(0)
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.dma_copy(dst=out, src=total)  # plant: shared-memory-race
    return out


@nki.jit
def both_write_the_total_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    theirs = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
    nisa.sendrecv(src=total, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    if core == 0:
        nisa.tensor_tensor(dst=total, data1=total, data2=theirs, op=nl.add)
        nisa.dma_copy(dst=out, src=total)
    return out


# args: x=float32[2,128,64]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def board_without_a_name(x):
    """The cores exchange tiles through a tensor that the compiler does not link."""
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=board[core], src=tile)
    nisa.core_barrier(data=board, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=board[1 - core])  # plant: unnamed-shared-hbm
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def board_without_a_name_fixed(x):
    core = nl.program_id(0)
    board = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm, name="board")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=board[core], src=tile)
    nisa.core_barrier(data=board, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=board[1 - core])
    nisa.dma_copy(dst=out[core], src=tile)
    return out
