"""Searches, selections, gathers and moves between partitions."""

import nki
import nki.isa as nisa
import nki.language as nl


def load(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def top16(x):
    """The 16 largest elements and their positions, in two rounds of eight."""
    P, F = x.shape
    data = load(x)
    values = nl.ndarray((P, 16), dtype=nl.float32, buffer=nl.sbuf)
    positions = nl.ndarray((P, 16), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.max8(dst=values[:, 0:8], src=data)
    nisa.nc_find_index8(dst=positions[:, 0:8], data=data, vals=values[:, 0:8])
    nisa.nc_match_replace8(dst=data, data=data, vals=values[:, 0:8], imm=float("-inf"))
    nisa.max8(dst=values[:, 8:16], src=data)
    nisa.nc_match_replace8(
        dst=data, data=data, vals=values[:, 8:16], imm=float("-inf"), dst_idx=positions[:, 8:16]
    )
    top_values = store(values)
    top_positions = store(positions)
    rest = store(data)
    return top_values, top_positions, rest


@nki.jit
def ranges(x, low, high, start):
    P, F = x.shape
    data = load(x)
    bound0 = load(low)
    bound1 = load(high)
    selected = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.sbuf)
    largest = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.range_select(
        dst=selected,
        on_true_tile=data,
        comp_op0=nl.greater_equal,
        comp_op1=nl.less,
        bound0=bound0,
        bound1=bound1,
        reduce_res=largest,
        range_start=start,
    )
    out = store(selected)
    peak = store(largest)
    return out, peak


@nki.jit
def selects(x, predicate, otherwise, reverse):
    P, F = x.shape
    data = load(x)
    mask = load(predicate)
    other = load(otherwise)
    selected = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.select_reduce(
        dst=selected,
        predicate=mask,
        on_true=data,
        on_false=other,
        reduce_res=largest,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
        reverse_pred=reverse,
    )
    out = store(selected)
    peak = store(largest)
    return out, peak


@nki.jit
def shuffle(x, mask):
    data = load(x)
    result = load(x)
    nisa.nc_stream_shuffle(dst=result, src=data, shuffle_mask=list(mask))
    out = store(result)
    return out


@nki.jit
def gather(x, which):
    data = load(x)
    indices = load(which)
    result = nl.ndarray(indices.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.nc_n_gather(dst=result, data=data, indices=indices)
    out = store(result)
    return out


@nki.jit
def gather_locally(x, which, run, valid):
    data = load(x)
    indices = load(which)
    result = nl.ndarray((x.shape[0], valid, run), dtype=x.dtype, buffer=nl.sbuf)
    nisa.local_gather(
        dst=result, src_buffer=data, index=indices, num_elem_per_idx=run, num_valid_indices=valid
    )
    out = store(result)
    return out


@nki.jit
def bounds(segment_ids):
    ids = load(segment_ids)
    result = nl.ndarray((1, 2, ids.shape[1]), dtype=segment_ids.dtype, buffer=nl.sbuf)
    nisa.sequence_bounds(dst=result, segment_ids=ids)
    out = store(result)
    return out


@nki.jit
def nonzero(x, offset):
    P, F = x.shape
    data = load(x)
    result = nl.ndarray((P, F + 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.memset(dst=result, value=-7)
    nisa.nonzero_with_count(dst=result, src=data, index_offset=offset, padding_val=-1)
    out = store(result)
    return out


@nki.jit
def topk(x, n, k):
    data = load(x)
    values = nl.ndarray((x.shape[0], k), dtype=nl.bfloat16, buffer=nl.sbuf)
    positions = nl.ndarray((x.shape[0], k), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.topk(val_dst=values, idx_dst=positions, src=data, n=n)
    columns = (k + 15) // 16
    top_values = store(values[:, 0:columns])
    top_positions = store(positions[:, 0:columns])
    return top_values, top_positions


@nki.jit
def across_partitions(x):
    P, F = x.shape
    data = load(x)
    added = nl.ndarray((1, F), dtype=x.dtype, buffer=nl.sbuf)
    mean = nl.ndarray((1, F), dtype=x.dtype, buffer=nl.sbuf)
    largest = nl.ndarray((1, F), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_partition_reduce(added, nl.add, data)
    nisa.tensor_partition_reduce(mean, nl.average, data)
    nisa.tensor_partition_reduce(largest, nl.maximum, data)
    total = store(added)
    average = store(mean)
    peak = store(largest)
    return total, average, peak
