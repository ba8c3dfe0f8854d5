"""Cooperation of the two cores of a logical core."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def exchange(x, dtype, step, gpsimd):
    """out[c] = x[1 - c], sent as elements of `dtype` from every `step`-th column of a tile to the first ones of another."""
    _, P, F = x.shape
    core = nl.program_id(0)
    kind = getattr(nl, dtype)
    wide = nl.ndarray((P, F * step), x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=wide, value=0)
    nisa.dma_copy(dst=wide[:, step - 1 :: step], src=x[core])
    got = nl.ndarray((P, F + 1), x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=got, value=1)
    nisa.sendrecv(
        src=wide.view(kind)[:, step - 1 :: step],
        dst=got.view(kind)[:, 1:],
        send_to_rank=1 - core,
        recv_from_rank=1 - core,
        pipe_id=0,
        dma_engine=nisa.dma_engine.gpsimd_dma if gpsimd else nisa.dma_engine.dma,
    )
    nisa.core_barrier(x, (0, 1))
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[core], src=got[:, 1:])
    return out


@nki.jit
def reduce_with_other(x, op, on_chip):
    """out[c] = op(x[c], x[1 - c]), from SBUF or from private HBM."""
    _, P, F = x.shape
    core = nl.program_id(0)
    memory = nl.sbuf if on_chip else nl.private_hbm
    mine = nl.ndarray((P, F), x.dtype, buffer=memory)
    reduced = nl.ndarray((P, F), x.dtype, buffer=memory)
    nisa.dma_copy(dst=mine, src=x[core])
    nisa.sendrecv_compute(
        src=mine, dst=reduced, send_to_rank=1 - core, recv_from_rank=1 - core, reduce_op=getattr(nl, op)
    )
    nisa.core_barrier(x, (0, 1))
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[core], src=reduced)
    return out
