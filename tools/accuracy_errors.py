"""The table of left-out errors, from which the simulator takes the error bar of a run
(sim/src/analysis/error_bar.rs).

There is an entry for each group of rows, with its errors when it was left out of the fit and the
features by which a run finds its most similar group; and one with the errors of all groups
together.
"""

import math
from statistics import median

from accuracy_groups import grouped, quantile

HEAD = """# Errors of predictions of kernels that were left out of the fit, by group. Written by tools/accuracy.py --leave-out all --errors FILE.
# rows: measured rows in the group. error_90: 90% of the rows have |ln(predicted / measured)| of at most this; with fewer than ten rows,
# the largest. The other entries are features as `features` in the JSON report of a run has them: of the names and the yes-or-no features
# the most frequent, of the numbers the median of the group. `other` is all groups together, each with the same weight.
"""


def error_90(rows):
    logs = [abs(math.log(r["predicted_us"] / r["measured_us"])) for r in rows]
    return quantile(logs, 0.9) if len(logs) >= 10 else max(logs)


def entry(group, rows):
    """The entry of one group of results."""
    features = [r["features"] for r in rows]
    common = lambda name: max((f[name] for f in features), key=[f[name] for f in features].count)
    return {
        "name": group,
        "rows": len(rows),
        "error_90": round(error_90(rows), 4),
        **{name: common(name) for name in ("target", "cores", "indirect_dma", "ranks")},
        **{name: round(median(f[name] for f in features), 3) for name in ("tensor_share", "dma_share")},
        "latency_us": round(median(r["predicted_us"] for r in rows), 1),
    }


def entries(results):
    """The entries of all groups, and the entry of all groups together, in which each group has the
    same weight."""
    groups = grouped(results)
    weighted = sorted((abs(math.log(r["predicted_us"] / r["measured_us"])), 1 / len(rows)) for rows in groups.values() for r in rows)
    reached, other = 0.0, 0.0
    for size, weight in weighted:
        reached, other = reached + weight, size
        if reached >= 0.9 * len(groups):
            break
    return [entry(group, rows) for group, rows in groups.items()], {"rows": len(weighted), "error_90": round(other, 4)}


def value(v):
    return str(v).lower() if isinstance(v, bool) else f'"{v}"' if isinstance(v, str) else str(v)


def text(results):
    """The table as TOML."""
    groups, other = entries(results)
    tables = [("[[group]]", e) for e in groups] + [("[other]", other)]
    return HEAD + "".join("\n" + "\n".join([head, *(f"{k} = {value(v)}" for k, v in e.items())]) + "\n" for head, e in tables)
