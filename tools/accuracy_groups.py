"""How predictions are evaluated: groups of rows, the two formulas that a model has to beat, errors,
and ordered pairs.

A result is a dict with `id`, `group`, `lineage`, `measured_us`, `predicted_us` (None for a row that
cannot run) and a value for each formula.
"""

import math
import re
from statistics import mean, median

# Two latencies form a pair to be ordered if they differ on hardware by more than this: single
# captures of decode kernels repeat within 5%, medians of several captures within 1%.
PAIR_MARGIN, DECODE_PAIR_MARGIN = 0.03, 0.05
# Sources of which only ratios between latencies count: those of kda imply twice the peak rates of
# one core.
RATIOS = r"kda-for-trainium"
WITHIN = 0.10

# Peak rates of one physical core: tensor clock in GHz, bytes per ns of its DMA engines (documented,
# sim/src/timing/params).
CLOCKS = {"trn1": 2.8, "trn2": 2.4, "trn3": 2.4}
DMA_BYTES_PER_NS = {"trn1": 435.2, "trn2": 435.2, "trn3": 614.4}
# Bytes per ns of a rank's share of its chip's links (documented, as above).
LINK_BYTES_PER_NS = {"trn1": 192.0, "trn2": 320.0, "trn3": 640.0}
FORMULAS = {"ideal_us": "ideal", "ideal_plus_us": "ideal + 10 us + 3%"}


# --- groups


def inputs(row):
    return {i.get("name"): i for i in row.get("inputs") or []}


def shapes(row):
    return [i["shape"] for i in row.get("inputs") or [] if "shape" in i]


def is_blocked(row):
    return "TILES_IN_BLOCK_M" in (row.get("params") or {})


def matmul_group(row):
    if re.search(r"feed-forward", str(row.get("kernel"))):
        return "bf16 feed-forward"
    if "graph" in str(row.get("stat")) or re.match(r"adapter|\d+-layer stack", str(row.get("kernel"))):
        return "matmuls in graphs"
    dtypes = {i["dtype"] for i in row.get("inputs") or []}
    if is_blocked(row):
        (k, m), (_, n) = shapes(row)
        return f"matmul K{k} M{m} N{n}" + ("" if dtypes == {"float32"} else f" {'/'.join(sorted(dtypes))}")
    return "bf16 matmul" if dtypes == {"bfloat16"} else "tutorial matmuls"


def attention_group(row):
    if any("cache" in str(name).lower() for name in inputs(row)) or not shapes(row):
        return "attention decode"
    return "multi-head attention" if len(shapes(row)[0]) == 3 else "single-head attention"


def suite_of(row):
    """The repository that measured a row for the older interface; None for other rows."""
    older = str(row.get("api", "")).startswith("beta1")
    return (str(row.get("url")).rstrip("/").rpartition("/")[2] + f", {row.get('hw')}") if older else None


def is_ratio(row):
    return re.search(RATIOS, str(row.get("source"))) is not None


def group_of(row):
    """The group of a row: rows that a user would consider one kind of kernel, and that are left out
    of a fit together."""
    family, target = str(row.get("family")), str(row.get("hw") or "trn2").split()[0]
    if str(row.get("api", "")).startswith("beta1"):
        return f"beta-1 {family}" + (", ratios" if is_ratio(row) else "")
    if target == "trn3":
        return "trn3"
    if family == "matmul":
        return matmul_group(row)
    if family == "attention":
        return attention_group(row)
    if family == "moe":
        return "sparse MoE" if any("indices" in str(name) for name in inputs(row)) else "fused MoE bf16"
    if family == "collective":
        return f"{row.get('kernel_fn')} of {row['params']['ranks']} ranks"
    return {"moe-fp8": f"FP8 MoE {target}", "attention-prefill": "attention prefill"}.get(family, family)


def lineage_of(row):
    """The lineage of a row. Rows with the same lineage are versions or settings of one kernel for
    one problem, measured in one session; only these are paired. The problem is the shape of the
    first input, the session the folder with the results. For sources of which only ratios count, a
    group on one target is a lineage."""
    if is_ratio(row):
        return f"{group_of(row)}, {row.get('hw')}"
    problem = "x".join(map(str, (shapes(row) or [[]])[0]))
    repository, _, path = re.sub(r"@\w+", "", str(row.get("source"))).partition(" + ")[0].rpartition(":")
    return f"{group_of(row)}, {row.get('family')}, {row.get('hw')}, {problem}, {repository} {path.strip().rpartition('/')[0]}".rstrip()


def pair_margin(row):
    return DECODE_PAIR_MARGIN if is_ratio(row) or re.match(r"moe|attention", str(row.get("family"))) else PAIR_MARGIN


# --- the plain formulas


def tensor_us(row, flops):
    """The tensor engine's time at its documented rate: 128 x 128 multiplications a cycle, a quarter
    of that for fp32. For a matrix product the operations follow from its shapes; for other kernels
    they are those that the simulator counted over all cores."""
    target = str(row.get("hw") or "trn2").split()[0]
    own = shapes(row)
    dtype = row["inputs"][0]["dtype"] if own else "bfloat16"
    passes = 4 if dtype == "float32" else 1
    if row.get("family") in ("matmul", "gemm") and len(own) == 2 and all(len(s) == 2 for s in own) and "block" not in str(row.get("kernel")).split("/")[0]:
        (k, m), (_, n) = own
        flops = 2 * k * m * n
    return flops * passes / 2 / 128**2 / CLOCKS.get(target, 2.4) / 1e3


def sent_by_rank(row):
    """The number of bytes that each rank of a collective has to send: an all-reduce is a
    reduce-scatter followed by an all-gather."""
    size, ranks = row["params"]["size_bytes"], row["params"]["ranks"]
    return (2 if row["kernel_fn"] == "all_reduce" else 1) * size * (ranks - 1) / ranks


def formulas(row, flops, moved, cores):
    """The two formulas: one without a model, and one with a constant for start and end and a
    fraction of the DMA time.

    ideal: the slower of tensor engine and DMA engines at their documented rates; for a collective,
    the bytes that a rank sends at the documented rate of the links. For matrix products that is the
    time of the tensor engine. `flops` and `moved` (bytes) are the simulator's counts over all
    cores.
    """
    target = str(row.get("hw") or "trn2").split()[0]
    tensor = tensor_us(row, flops) / cores
    if row.get("family") == "collective":
        dma = sent_by_rank(row) / LINK_BYTES_PER_NS.get(target, 320.0) / 1e3
    else:
        dma = moved / cores / DMA_BYTES_PER_NS.get(target, 435.2) / 1e3
    ideal = max(tensor, dma)
    return {"ideal_us": ideal, "ideal_plus_us": ideal + 10 + 0.03 * dma}


# --- judgement


def error(r, key="predicted_us"):
    return r[key] * r.get("scale", {}).get(key, 1.0) / r["measured_us"] - 1


def with_scales(results):
    """The results. Those of which only ratios count get a scale for each prediction: the median of
    measured to predicted in the group."""
    keys = ("predicted_us", *FORMULAS)
    scales = {g: {k: median(r["measured_us"] / r[k] for r in rows) for k in keys} for g, rows in grouped(results).items() if rows[0]["ratios"]}
    return [r | {"scale": scales[r["group"]]} if r["group"] in scales else r for r in results]


def quantile(values, q):
    """The q-quantile, interpolated linearly; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def pairs(results, key="predicted_us"):
    """(correctly ordered pairs, pairs), over all pairs within a lineage that hardware
    distinguishes."""
    lineages = {}
    for r in results:
        lineages.setdefault(r["lineage"], []).append(r)
    right = total = 0
    for rows in lineages.values():
        for i, a in enumerate(rows):
            for b in rows[i + 1 :]:
                slow, fast = (a, b) if a["measured_us"] > b["measured_us"] else (b, a)
                if slow["measured_us"] > fast["measured_us"] * (1 + a["pair_margin"]):
                    total += 1
                    right += slow[key] > fast[key]
    return right, total


def wrong_pairs(results):
    """The wrongly ordered pairs: ids, and by how much the first is slower on hardware and in the
    prediction; the largest discrepancies first."""
    out = []
    for i, a in enumerate(results):
        for b in results[i + 1 :]:
            slow, fast = (a, b) if a["measured_us"] > b["measured_us"] else (b, a)
            if a["lineage"] == b["lineage"] and pairs([a, b]) == (0, 1):
                ratios = [slow[key] / fast[key] - 1 for key in ("measured_us", "predicted_us")]
                out.append({"slow": slow["id"], "fast": fast["id"], "measured": ratios[0], "predicted": ratios[1]})
    return sorted(out, key=lambda p: p["predicted"] - p["measured"])


def judged(results, key="predicted_us"):
    """The figures of a set of rows that ran, for a prediction or formula."""
    errors = [error(r, key) for r in results]
    logs = [math.log(1 + error(r, key)) for r in results]
    return {
        "rows": len(results),
        "median": median(map(abs, errors)),
        "mean": mean(map(abs, errors)),
        "worst": max(map(abs, errors)),
        "bias": median(errors),
        "within": mean(abs(e) <= WITHIN for e in errors),
        "log_p90": quantile([abs(x) for x in logs], 0.9),
        "pairs": pairs(results, key),
    }


def grouped(results):
    """The rows that ran, by group; larger families first, otherwise in the order of the file."""
    out = {}
    for r in results:
        if r["predicted_us"] is not None:
            out.setdefault(r["group"], []).append(r)
    return out


def by_suite(results):
    """The figures of kernels for neuronxcc.nki by the repository that measured them, followed by
    those of all rows whose absolute times count."""
    older = [r for r in results if r.get("suite") and r["predicted_us"] is not None]
    out = {}
    for r in older:
        out.setdefault(r["suite"] + (", ratios" if r["ratios"] else ""), []).append(r)
    absolute = [r for r in older if not r["ratios"]]
    if absolute:
        out["all with absolute times"] = absolute
    return {suite: judged(rows) for suite, rows in out.items()}


def by_group(results):
    """The figures by group, for the model and the formulas."""
    return {
        group: {"model": judged(rows), **{key: judged(rows, key) for key in FORMULAS}, "wrong_pairs": wrong_pairs(rows)}
        for group, rows in grouped(results).items()
    }
