"""The arguments of a row's kernel. Shapes and types are those of the row, otherwise those of the
kernel's signature or benchmark. Index inputs are generated as in the kernels' benchmarks."""

import json
import math
import random
import re
import struct

import accuracy_bench

TYPES = {"bf16": "bfloat16", "fp32": "float32", "f32": "float32", "fp16": "float16", "f16": "float16"}
TYPE = re.compile(r"\b(bfloat16|bf16|float32|fp32|f32|float16|fp16|f16|u?int(?:8|16|32)|float8\w*)\b")

# Minimum size, in elements, of tensors whose values no router reads: weights of experts, caches,
# operands.
LARGE = 1 << 20


class Unknown(Exception):
    """The reason why an argument cannot be created."""


# --- shapes


def documented(definition, source, known=None):
    """(shape, dtype or None) by parameter, from the comment after each parameter of a signature:
    `Wq,  # [H, Hq_tp*d] = [2048, 1024] bf16` or `# [E=128, H=2048] bf16`. Named sizes get their
    values from other comments and from the shapes of `known` parameters; parameters with other
    sizes are omitted."""
    lines = source.splitlines()
    comments = {p.arg: lines[p.lineno - 1].partition("#")[2] for p in parameters(definition)}
    sizes = {}
    for name, comment in comments.items():
        for brackets in re.findall(r"\[([^\[\]]+)\]", comment):
            terms = [term.strip() for term in brackets.split(",")]
            shape = (known or {}).get(name, [None])[0]
            if shape and len(terms) == len(shape):
                sizes |= {term: n for term, n in zip(terms, shape) if term.isidentifier()}
            sizes |= {n: int(value) for n, value in re.findall(r"([A-Za-z_]\w*)\s*=\s*(\d+)", brackets)}
    out = {}
    for name, comment in comments.items():
        dtype = TYPE.search(comment)
        for brackets in reversed(re.findall(r"\[([^\[\]]+)\]", comment)):
            shape = [evaluated(term.rpartition("=")[2].strip(), sizes) for term in brackets.split(",")]
            if all(shape):
                out[name] = shape, dtype and TYPES.get(dtype.group(), dtype.group())
                break
    return out


def evaluated(term, sizes):
    """The value of a product of numbers and named sizes; None if one is unknown."""
    factors = [int(f) if f.isdigit() else sizes.get(f) for f in re.split(r"\s*\*\s*", term)]
    return math.prod(factors) if all(factors) else None


def parameters(definition):
    a = definition.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs]


def required(definition):
    """The parameters without a default."""
    a = definition.args
    positional = [*a.posonlyargs, *a.args]
    count = len(positional) - len(a.defaults)
    return [p.arg for p in positional[:count]] + [p.arg for p, default in zip(a.kwonlyargs, a.kw_defaults) if default is None]


def size(shape):
    return math.prod(shape)


def tensors(row, definition, source, bench):
    """The shape and dtype of each tensor argument, by parameter name.

    The row takes precedence, except that the signature determines the order of the axes, which rows
    sometimes take from another version of the kernel. Missing values come from the signature or the
    benchmark.
    """
    names = [p.arg for p in parameters(definition)]
    inputs = row.get("inputs") or []
    given = [i.get("name") for i in inputs]
    if not set(given) <= set(names):
        given = names[: len(inputs)]
    out = {name: (list(i["shape"]), i["dtype"]) for name, i in zip(given, inputs)}
    for name, (shape, dtype) in documented(definition, source).items():
        if name in out and sorted(out[name][0]) == sorted(shape):
            out[name] = shape, out[name][1]
    missing = lambda: [name for name in required(definition) if name not in out and name not in (row.get("params") or {})]
    complete = lambda: {name: found for name, found in documented(definition, source, out).items() if name in missing() and found[1]}
    out |= complete()
    if missing():
        called = accuracy_bench.call(bench, definition.name, names) or {}
        out |= {name: called[name] for name in missing() if name in called}
        out |= complete()
    if missing():
        raise Unknown(f"the row, the signature and the benchmark leave the shape of {', '.join(missing())} open")
    return {name: out[name] for name in names if name in out}


# --- values


def distinct(count, bound, seed):
    """`count` distinct indices below `bound`, like torch.randperm(bound)[:count] in the benchmarks;
    repeated if there are too few."""
    order = list(range(bound))
    random.Random(seed).shuffle(order)
    return [order[i % bound] for i in range(count)]


def entries(shapes):
    """The number of experts: the first axis of the largest input."""
    return max(shapes.values(), key=lambda s: size(s[0]))[0][0]


def cache(shapes):
    """The shape of the K cache, or of the input that most resembles one."""
    named = [shape for name, (shape, _) in shapes.items() if "cache" in name.lower() and len(shape) > 1]
    return named[0] if named else max((s[0] for s in shapes.values()), key=size)


# How the benchmarks of a family generate their index inputs: pattern of the name, source, values
# from the shape and all shapes.
INDICES = [
    (
        r"expert|top_?k",
        "nki-moe-megakernel, kernels/moe_tkg/agents, _make_sparse_inputs: randperm(E)[:K] for each token",
        lambda shape, shapes: [i for token in range(size(shape[:-1])) for i in distinct(shape[-1], entries(shapes), token)],
    ),
    (
        r"pos|len|offset|start",
        "nki-moe-megakernel, kernels/attn_tkg/agents, bench_*.py: position 320 of a cache of 640",
        lambda shape, shapes: [cache(shapes)[-2] // 2] * size(shape),
    ),
    (
        r"block|page|slot|table|ind|idx",
        "nki-library, test/integration, attention with a block cache: a permutation of the blocks",
        lambda shape, shapes: distinct(size(shape), cache(shapes)[0], 0),
    ),
]


def npy(path, shape, dtype, values):
    """Writes integers to a file in NumPy's format."""
    kind, code = {"int8": ("|i1", "b"), "uint8": ("|u1", "B"), "int16": ("<i2", "h"), "uint16": ("<u2", "H"), "int32": ("<i4", "i"), "uint32": ("<u4", "I")}[dtype]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}{code}", *values))


def stated(row, name):
    """The value of an input that the row gives, flattened: `position_ids=[[320]]` in the notes, or
    a list among the parameters."""
    value = (row.get("params") or {}).get(name)
    found = re.search(rf"\b{name}\s*=\s*(\[[\d\s,\[\]]*\])", str(row.get("notes")))
    if found and value is None:
        value = json.loads(found.group(1))
    flat = lambda v: [x for part in v for x in flat(part)] if isinstance(v, list) else [v]
    return None if value is None else flat(value)


def indices(row, name, shapes):
    """The values of an integer input that is an index, or None if it is unknown how to generate
    them."""
    shape = shapes[name][0]
    values = stated(row, name)
    if values and size(shape) % len(values) == 0:
        return values * (size(shape) // len(values))
    for pattern, _, make in INDICES:
        if re.search(pattern, name.lower()):
            return make(shape, shapes)
    return None


def arguments(row, definition, source, bench, folder):
    """The `--arg` words of a row."""
    shapes = tensors(row, definition, source, bench)
    words = []
    for name, (shape, dtype) in shapes.items():
        values = indices(row, name, shapes) if re.fullmatch(r"u?int(16|32)", dtype) else None
        if values is None:
            # Only routers and indices determine what is read. Zeros take no time to generate.
            kind = ":zeros" if size(shape) > LARGE else ""
            words.append(f"{name}={dtype}[{','.join(map(str, shape))}]{kind}")
        else:
            file = folder / f"{name}.npy"
            npy(file, shape, dtype, values)
            words.append(f"{name}={file}")
    names = [p.arg for p in parameters(definition)]
    params = row.get("params") or {}
    return words + [f"{name}={value!r}" for name, value in params.items() if name in names and name not in shapes]
