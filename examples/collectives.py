"""Several ranks (run with --ranks N). Each rank has its own inputs and outputs."""

import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
from nki.collectives import ReplicaGroup


# nki-sim: a_t=float32[64,96] b=float32[64,256] groups=[[0, 1, 2, 3]]
@nki.jit
def tensor_parallel_matmul(a_t, b, groups):
    """out[M, N] = sum over the ranks of a group of a_t[K, M].T @ b[K, N]; K, M <= 128, N <= 512.

    Each rank has a slice of the contraction; an all-reduce sums the partial products, and every rank receives the sum.
    """
    k, m = a_t.shape
    n = b.shape[1]
    left = nl.ndarray((k, m), dtype=a_t.dtype, buffer=nl.sbuf)
    right = nl.ndarray((k, n), dtype=b.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a_t)
    nisa.dma_copy(dst=right, src=b)
    acc = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=left, moving=right)
    part = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=part, src=acc)
    total = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
    ncc.all_reduce(srcs=[part], dsts=[total], replica_group=ReplicaGroup(groups), op=nl.add)
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    return out


# nki-sim: x=bfloat16[64,128] ranks=4
@nki.jit
def ring_gather(x, ranks):
    """out[ranks, P, N]: row r is rank r's x[P, N]; P <= 128.

    The tile moves around a ring, one step at a time, in two alternating buffers; a register holds the rank of the tile that has arrived.
    """
    p, n = x.shape
    group = ReplicaGroup([list(range(ranks))])
    out = nl.ndarray((ranks, p, n), dtype=x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.ndarray((p, n), dtype=x.dtype, buffer=nl.sbuf, name=f"tile{i}") for i in range(2)]
    nisa.dma_copy(dst=tiles[0], src=x)
    for step in range(ranks):
        here = tiles[step % 2]
        whose = ncc.collective_permute_implicit_current_processing_rank_id(iteration_id=step, replica_group=group)
        nisa.dma_copy(dst=out.ap(pattern=[[n, p], [1, n]], scalar_offset=whose, indirect_dim=0), src=here)
        if step + 1 < ranks:
            ncc.collective_permute_implicit(
                srcs_by_channel=[[here]], dsts_by_channel=[[tiles[(step + 1) % 2]]], replica_group=group
            )
    return out


# nki-sim: x=float32[8,32] ranks=4
@nki.jit
def exchange(x, ranks):
    """A sequence of collectives on HBM, on x[ranks, N]: gather, reduce-scatter, transpose between ranks, and exchange with a partner.

    Returns the gathered rows, this rank's part of the sum, the transposed rows and the data of the partner (rank 0 with 1, 2 with 3).
    """
    rows, n = x.shape
    group = ReplicaGroup([list(range(ranks))])
    mine = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=mine, src=x)
    gathered = nl.ndarray((rows * ranks, n), dtype=x.dtype, buffer=nl.shared_hbm)
    scattered = nl.ndarray((rows // ranks, n), dtype=x.dtype, buffer=nl.shared_hbm)
    transposed = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    swapped = nl.ndarray((rows, n), dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_gather(srcs=[mine], dsts=[gathered], replica_group=group, collective_dim=0)
    ncc.reduce_scatter(srcs=[mine], dsts=[scattered], replica_group=group, collective_dim=0, op=nl.add)
    ncc.all_to_all(srcs=[mine], dsts=[transposed], replica_group=group, collective_dim=0)
    pairs = [(r, r + 1 - 2 * (r % 2)) for r in range(ranks)]
    ncc.collective_permute(srcs=[mine], dsts=[swapped], source_target_pairs=pairs)
    return gathered, scattered, transposed, swapped
