"""The migration guide's replacements for block dimensions."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def sb_blocks_alive_together(inp):
    """All 8 blocks live at once: the block dimension moves into the free dimension."""
    res = nl.ndarray(shape=(8, 128, 512), dtype=inp.dtype, buffer=nl.shared_hbm)
    add_buf = nl.ndarray(shape=(128, 8, 512), dtype=inp.dtype, buffer=nl.sbuf)
    for i in range(8):
        nisa.dma_copy(add_buf[0:128, i, 0:512], inp[i])
    for i in range(8):
        nisa.dma_copy(res[i], add_buf[0:128, i, 0:512])
    return res


@nki.jit
def sb_blocks_migrated(inp):
    """One buffer per iteration: the iterations are independent and overlap."""
    res = nl.ndarray(shape=(8, 128, 512), dtype=inp.dtype, buffer=nl.shared_hbm)
    for i in range(8):
        add_buf = nl.ndarray(shape=(128, 512), dtype=inp.dtype, buffer=nl.sbuf)
        nisa.dma_copy(add_buf[0:128, 0:512], inp[i])
        nisa.dma_copy(res[i], add_buf[0:128, 0:512])
    return res


@nki.jit
def sb_blocks_migrated_incorrect(inp):
    """One buffer for all iterations: each load waits for the store before it."""
    res = nl.ndarray(shape=(8, 128, 512), dtype=inp.dtype, buffer=nl.shared_hbm)
    add_buf = nl.ndarray(shape=(128, 512), dtype=inp.dtype, buffer=nl.sbuf)
    for i in range(8):
        nisa.dma_copy(add_buf[0:128, 0:512], inp[i])
        nisa.dma_copy(res[i], add_buf[0:128, 0:512])
    return res


@nki.jit
def blocks_as_list(inp):
    """The block dimension as a list of tensors."""
    res = nl.ndarray(shape=(8, 128, 512), dtype=inp.dtype, buffer=nl.shared_hbm)
    t_lst = []
    for i in range(8):
        t_lst.append(nl.ndarray((128, 512), dtype=inp.dtype, buffer=nl.sbuf))
    for i in range(8):
        nisa.dma_copy(dst=t_lst[i], src=inp[i])
    for i in range(8):
        nisa.dma_copy(dst=res[i], src=t_lst[i])
    return res


@nki.jit
def blocks_assigned(inp):
    """The same with an index of a tensor as a target: HBM to SBUF, SBUF to PSUM and back, SBUF to HBM."""
    res = nl.ndarray(shape=(8, 128, 512), dtype=inp.dtype, buffer=nl.shared_hbm)
    add_buf = nl.ndarray(shape=(128, 8, 512), dtype=inp.dtype, buffer=nl.sbuf)
    through = nl.ndarray(shape=(128, 512), dtype=inp.dtype, buffer=nl.psum)
    for i in range(8):
        add_buf[0:128, i, 0:512] = inp[i] if i % 2 else nl.load(inp[i])
    for i in range(8):
        through[...] = inp[i] if i == 7 else add_buf[:, i, :]
        res[i] = through if i < 4 else nl.copy(through)
    return res
