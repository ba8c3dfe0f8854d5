"""Ports of kernels of which only a description is public (tests/ports), and the rows that each port
predicts.

A port has the shapes, the tiling and the instructions of the measured kernel, but its source was
written for this repository.
"""

import re


def whole(row, names):
    """The `--arg` values for the tensors of a row, under the port's parameter names."""
    return [argument(name, i["shape"], i["dtype"]) for name, i in zip(names, row["inputs"])]


def argument(name, shape, dtype):
    return f"{name}={dtype}[{','.join(map(str, shape))}]"


def blocks(row):
    return [f"{axis.lower()}={row['params'][f'TILES_IN_BLOCK_{axis}']}" for axis in "MNK"]


def blocked_product(row):
    return [*whole(row, ["lhs_t", "rhs"]), *blocks(row)]


def feed_forward(row):
    """The row gives the first of three products: x transposed, [D, T], and a weight [D, F]."""
    (d, t), (_, f) = (i["shape"] for i in row["inputs"])
    dtype = row["inputs"][0]["dtype"]
    weights = {"w_gate": (d, f), "w_up": (d, f), "w_down": (f, d)}
    return [argument("x", (t, d), "float32"), *(argument(name, shape, dtype) for name, shape in weights.items()), *blocks(row)]


def collective(row):
    """The row gives the bytes of the whole buffer; a rank's part depends on the collective."""
    size, ranks, dtype = row["params"]["size_bytes"], row["params"]["ranks"], row["inputs"][0]["dtype"]
    elements = size // (2 if dtype == "bfloat16" else 4)
    own = elements // ranks if row["kernel_fn"] == "all_gather" else elements
    return [argument("x", [own], dtype), f"ranks={ranks}"]


def stack(row):
    """The row gives one of the 36 products."""
    shape, dtype = row["inputs"][0]["shape"], row["inputs"][0]["dtype"]
    layers = int(re.match(r"(\d+)-layer", row["kernel"]).group(1))
    return [argument("h", shape, dtype), argument("weights", [layers, *shape], dtype), *blocks(row)]


def q_k_v(row):
    return whole(row, "qkv")


# The field of a row, its pattern, file, kernel, arguments. In the kernel's name, {0} is the
# pattern's first group in lower case.
PORTS = [
    ("kernel", r"V0 \(seat 68\)", "single_head.py", "v0_pinned", q_k_v),
    ("kernel", r"(V\d+)", "single_head.py", "{0}", q_k_v),
    ("kernel", r"M0", "multi_head.py", "loop", q_k_v),
    ("kernel", r"mha fast", "multi_head.py", "chunks", q_k_v),
    ("kernel", r"blocked product|adapter", "blocked_matmul.py", "blocked_matmul", blocked_product),
    ("kernel", r"feed-forward block", "blocked_matmul.py", "feed_forward", feed_forward),
    ("id", r"nccom-([a-z_]+)-.*", "collectives.py", "{0}", collective),
    ("kernel", r"\d+-layer stack", "blocked_matmul.py", "stack", stack),
]
# Ports that run on all physical cores of the logical core: kernels that were launched on such a
# grid (without a grid, a kernel runs on one core), and collectives. Of the ranks of a collective,
# only one is simulated: the others do the same at the same time.
ON_GRID = {"chunks", "all_gather", "reduce_scatter", "all_reduce"}


def port(row):
    """(file, kernel, arguments) of the port for a row, or None."""
    for field, pattern, file, kernel, arguments in PORTS:
        match = re.fullmatch(pattern, str(row.get(field)))
        if match:
            return file, kernel.format(*(g.lower() for g in match.groups())), arguments
    return None


def words(row, folder):
    """The words after `nki-sim run` for a row that has a port; None for other rows."""
    found = port(row)
    if found is None or not (folder / found[0]).is_file():
        return None
    file, kernel, arguments = found
    out = [str(folder / file), "--kernel", kernel]
    if kernel in ON_GRID and str(row.get("lnc", 1)).startswith("2"):
        out += ["--lnc", "2"]
    return out + [w for a in arguments(row) for w in ("--arg", a)]
