"""One collective of the runtime on a buffer in HBM, with all ranks in one group."""

import nki
import nki.collectives as ncc
import nki.language as nl
from nki.collectives import ReplicaGroup


def group(ranks):
    return ReplicaGroup([list(range(ranks))])


@nki.jit
def all_gather(x, ranks):
    """x[N] of every rank, concatenated: [ranks * N]."""
    out = nl.ndarray((x.shape[0] * ranks,), dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_gather(srcs=[x], dsts=[out], replica_group=group(ranks), collective_dim=0)
    return out


@nki.jit
def reduce_scatter(x, ranks):
    """This rank's part of the sum of x[N]: [N / ranks]."""
    out = nl.ndarray((x.shape[0] // ranks,), dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.reduce_scatter(srcs=[x], dsts=[out], replica_group=group(ranks), collective_dim=0, op=nl.add)
    return out


@nki.jit
def all_reduce(x, ranks):
    """The sum of x[N] over the ranks."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_reduce(srcs=[x], dsts=[out], replica_group=group(ranks), op=nl.add)
    return out
