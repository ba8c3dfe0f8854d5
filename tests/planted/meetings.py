"""Deadlocks between cores, and mismatched exchanges"""

import nki
import nki.isa as nisa
import nki.language as nl


# args: x=float32[2,128,64]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def barrier_in_a_branch(x):
    """Only the core that publishes the table reaches the barrier."""
    core = nl.program_id(0)
    table = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm, name="table")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    if core == 0:
        nisa.dma_copy(dst=tile, src=x[1])
        nisa.dma_copy(dst=table, src=tile)
        nisa.core_barrier(data=table, cores=(0, 1))  # plant: deadlock
    nisa.dma_copy(dst=tile, src=table)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def barrier_in_a_branch_fixed(x):
    core = nl.program_id(0)
    table = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm, name="table")
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    if core == 0:
        nisa.dma_copy(dst=tile, src=x[1])
        nisa.dma_copy(dst=table, src=tile)
    nisa.core_barrier(data=table, cores=(0, 1))
    nisa.dma_copy(dst=tile, src=table)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[2,64,32]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def fewer_rounds_on_one_core(x):
    """Core 0 exchanges two partial sums, core 1 only one."""
    core = nl.program_id(0)
    rounds = 2 if core == 0 else 1
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    for r in range(rounds):
        theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.sendrecv(src=tile, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)  # plant: deadlock
        nisa.tensor_tensor(dst=tile, data1=tile, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def fewer_rounds_on_one_core_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    for r in range(2):
        theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.sendrecv(src=tile, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[2,64,48]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def exchange_of_two_widths(x):
    """The cores split 48 columns unevenly, and each sends its own width."""
    core = nl.program_id(0)
    width = 32 if core == 0 else 16
    out = nl.ndarray((2, 64, 48), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 48), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 48), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=theirs, value=0.0)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile[:, :width], dst=theirs[:, :width], send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)  # plant: meeting-mismatch
    nisa.tensor_tensor(dst=theirs, data1=tile, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=theirs)
    return out


@nki.jit
def exchange_of_two_widths_fixed(x):
    core = nl.program_id(0)
    width = 24
    out = nl.ndarray((2, 64, 48), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 48), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 48), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=theirs[:, width:], value=0.0)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile[:, :width], dst=theirs[:, :width], send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.tensor_tensor(dst=theirs, data1=tile, data2=theirs, op=nl.add)
    nisa.dma_copy(dst=out[core], src=theirs)
    return out


# args: x=float32[2,64,32] counts=int32([[4,2]])
# flags: --lnc 2
# seen-by: run
@nki.jit
def own_trip_counts(x, counts):
    """Each core iterates as often as its own count says."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    numbers = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=numbers, src=counts)
    end = nisa.register_alloc()
    nisa.register_load(end, numbers[:, core : core + 1])

    def body(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)

    nl.fori_loop(0, end, body)  # plant: uneven-trips
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def own_trip_counts_fixed(x, counts):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    numbers = nl.ndarray((1, 2), dtype=nl.int32, buffer=nl.sbuf)
    larger = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.dma_copy(dst=numbers, src=counts)
    nisa.tensor_reduce(dst=larger, op=nl.maximum, data=numbers, axis=1)
    end = nisa.register_alloc()
    nisa.register_load(end, larger)

    def body(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)

    nl.fori_loop(0, end, body)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[2,64,32]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def trip_counts_of_the_core_number(x):
    """Core 1 has one iteration more than core 0, known when the kernel is compiled."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])

    def body(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)

    nl.fori_loop(0, 2 + core, body)  # plant: uneven-trips
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def trip_counts_of_the_core_number_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])

    def body(i):
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)

    nl.fori_loop(0, 3, body)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[2,64,32]
# flags: --lnc 2
# seen-by: run
@nki.jit
def pipes_in_two_orders(x):
    """One scratch tile receives both exchanges, and the cores take the pipes in different orders."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    inbox = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    for step in range(2):
        pipe = step if core == 0 else 1 - step
        nisa.sendrecv(src=tile, dst=inbox, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=pipe)  # plant: deadlock
        nisa.tensor_tensor(dst=tile, data1=tile, data2=inbox, op=nl.maximum)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


@nki.jit
def pipes_in_two_orders_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    inbox = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    for step in range(2):
        nisa.sendrecv(src=tile, dst=inbox, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=step)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=inbox, op=nl.maximum)
    nisa.dma_copy(dst=out[core], src=tile)
    return out


# args: x=float32[2,64,32]
# flags: --lnc 2
# seen-by: check run
@nki.jit
def both_send_to_core_one(x):
    """A hand-written pair of ranks: core 1 names itself as the receiver."""
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile, dst=theirs, send_to_rank=1, recv_from_rank=1 - core, pipe_id=0)  # plant: meeting-mismatch
    nisa.dma_copy(dst=out[core], src=theirs)
    return out


@nki.jit
def both_send_to_core_one_fixed(x):
    core = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    theirs = nl.ndarray((64, 32), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core])
    nisa.sendrecv(src=tile, dst=theirs, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.dma_copy(dst=out[core], src=theirs)
    return out
