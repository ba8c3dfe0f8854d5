"""The table of left-out errors from which the simulator takes the error bar of a run.

One entry for each group of rows: its errors when it was left out of the fit, and the features by which a run finds its closest group. A
run compares only with groups whose yes-or-no features and target are its own, and among them takes the one at the least distance in
shares and in the logarithm of the latency; without such a group it takes the entry `other`.
"""

import math
from statistics import median

from accuracy_groups import error, grouped, quantile

HEAD = """# Errors of predictions of kernels that were left out of the fit, by group. Written by tools/accuracy.py --leave-out all --errors FILE.
# rows: measured rows in the group. bias: median of predicted / measured - 1. error_90: 90% of the rows have |ln(predicted / measured)| of
# at most this; with fewer than ten rows, the largest.
# The other entries are features of the group's runs, as a run of the simulator reports them too: target, cores, the dtype of the largest
# input, whether DMA addresses depend on data, whether ranks communicate; as medians the share of the latency in which the tensor engine
# and the DMA engines are active, and the latency.
"""


def error_90(rows):
    logs = [abs(math.log(r["predicted_us"] / r["measured_us"])) for r in rows]
    return quantile(logs, 0.9) if len(logs) >= 10 else max(logs)


def entry(group, rows):
    """The entry of one group of results."""
    features = [r["features"] for r in rows]
    common = lambda name: max((f[name] for f in features), key=[f[name] for f in features].count)
    return {
        "group": group,
        "rows": len(rows),
        "bias": round(median(error(r) for r in rows), 4),
        "error_90": round(error_90(rows), 4),
        **{name: common(name) for name in ("target", "cores", "dtype", "indirect_dma", "collectives")},
        **{name: round(median(f[name] for f in features), 3) for name in ("tensor_share", "dma_share")},
        "latency_us": round(median(r["predicted_us"] for r in rows), 1),
    }


def entries(results):
    """The entries of all groups, and `other`: the group of all rows, each group with the same weight."""
    groups = grouped(results)
    out = [entry(group, rows) for group, rows in groups.items()]
    weighted = sorted((abs(math.log(r["predicted_us"] / r["measured_us"])), 1 / len(rows)) for rows in groups.values() for r in rows)
    reached, other = 0.0, 0.0
    for size, weight in weighted:
        reached, other = reached + weight, size
        if reached >= 0.9 * len(groups):
            break
    return [*out, {"group": "other", "rows": len(weighted), "bias": round(median(e["bias"] for e in out), 4), "error_90": round(other, 4)}]


def value(v):
    return str(v).lower() if isinstance(v, bool) else f'"{v}"' if isinstance(v, str) else str(v)


def text(results):
    """The table as TOML."""
    tables = ["\n".join(["[[group]]", *(f"{'name' if k == 'group' else k} = {value(v)}" for k, v in e.items())]) for e in entries(results)]
    return HEAD + "\n" + "\n\n".join(tables) + "\n"
