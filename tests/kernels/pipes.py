"""Exchanges over different pipes do not wait for each other; two cores receive the results in the same order but use them in opposite orders."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def crossing_pipes(x):
    """out[c] = what the other core has sent on pipe 0, minus twice what it has sent on pipe 1; x[2, 2, P, N], by core and pipe.

    Core 0 begins with pipe 0, core 1 with pipe 1.
    """
    _, _, p, n = x.shape
    core = nl.program_id(0)
    sent = [nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"sent{i}") for i in range(2)]
    got = [nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"got{i}") for i in range(2)]
    for pipe in range(2):
        nisa.dma_copy(dst=sent[pipe], src=x[core, pipe])
    for i in range(2):
        pipe = i if core == 0 else 1 - i
        nisa.sendrecv(src=sent[pipe], dst=got[pipe], send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=pipe)
        # The data sent has been read, so the tile may be overwritten.
        nisa.memset(dst=sent[pipe], value=0.0)
    result = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.scalar_tensor_tensor(dst=result, data=got[1], op0=nl.multiply, operand0=-2.0, op1=nl.add, operand1=got[0])
    out = nl.ndarray((2, p, n), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[core], src=result)
    return out


@nki.jit
def opposite_uses(x):
    """out[c] = four times what the other core has sent on pipe 0, and twice what it has sent on pipe 1, summed; x[2, 2, P, N], by core and pipe.

    Both cores exchange pipe 0, then pipe 1. Core 0 uses what came on pipe 1 first, core 1 what came on pipe 0.
    """
    _, _, p, n = x.shape
    core = nl.program_id(0)
    got = [nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"got{i}") for i in range(2)]
    for pipe in range(2):
        sent = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"sent{pipe}")
        nisa.dma_copy(dst=sent, src=x[core, pipe])
        nisa.sendrecv(src=sent, dst=got[pipe], send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=pipe)
    scaled = [nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"scaled{i}") for i in range(2)]
    for i in range(2):
        pipe = 1 - i if core == 0 else i
        nisa.tensor_scalar(dst=scaled[pipe], data=got[pipe], op0=nl.multiply, operand0=4.0 - 2.0 * pipe)
    result = nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=result, data1=scaled[0], data2=scaled[1], op=nl.add)
    out = nl.ndarray((2, p, n), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out[core], src=result)
    return out
