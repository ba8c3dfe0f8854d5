"""Rows of kernels for neuronxcc.nki: the source of the kernel with the row's settings, and the
launches whose latencies add up to the row's.

The launches are those of the repositories' own benchmarks.
"""

import ast
import re

import accuracy_inputs
import accuracy_nkibench

# The header that the harness of autocomp prepends to a candidate (harnesses/*/2_gemm_test.py).
HEADER = "import neuronxcc.nki as nki\nimport neuronxcc.nki.isa as nisa\nimport neuronxcc.nki.language as nl\nimport neuronxcc.nki.typing as nt\nimport numpy as np\n\n"


def is_older(row):
    return str(row.get("api", "")).startswith("beta1")


# --- source


def traced_block(row):
    """(path, line) of a search trace in which the kernel is the last code block before the line, or
    None."""
    where = re.search(r":([\w./-]+\.py):(\d+)$", str(row.get("source")))
    return (where.group(1), int(where.group(2))) if where and "code block ending before line" in str(row.get("kernel")) else None


def code_block(path, line, folder):
    """A file with the last code block before a line of a trace: the value of a keyword `code`,
    completed as by the harness."""
    blocks = [k.value for k in ast.walk(ast.parse(path.read_text())) if isinstance(k, ast.keyword) and k.arg == "code" and k.value.end_lineno < line]
    if not blocks:
        return None
    out = folder / f"{path.stem}_{line}.py"
    out.write_text(HEADER + max(blocks, key=lambda value: value.end_lineno).value)
    return out


def kernel_named(wanted, kernels):
    """The kernel whose name contains all words of `wanted` and the fewest others; if there is only
    one kernel, that one regardless of its name."""
    words = set(re.split(r"[_\W]+", wanted))
    fitting = [name for name in kernels if words <= set(name.split("_"))]
    return min(fitting, key=len) if fitting else kernels[0] if len(kernels) == 1 else None


def with_constants(path, kernel, params, folder):
    """The file, or a copy in `folder` in which the kernel assigns the row's values: `FREE_DIM = 2`
    in the file is replaced if the row has 200."""
    text = path.read_text()
    definition = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == kernel)
    lines, changed = text.splitlines(), False
    for node in ast.walk(definition):
        name = node.targets[0].id if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None
        if name in params and isinstance(node.value, ast.Constant) and node.value.value != params[name]:
            lines[node.lineno - 1] = lines[node.lineno - 1][: node.col_offset] + f"{name} = {params[name]!r}"
            changed = True
    if not changed:
        return path
    out = folder / path.name
    out.write_text("\n".join(lines) + "\n")
    return out


# --- launches


def gemm_and_gelu(row):
    """benchmarks/mlp_benchmark.py of trainium-kernel-fusion: x is passed transposed, the bias as a
    row; the baseline consists of two kernels."""
    ((m, k), (_, n)), dtype = (i["shape"] for i in row["inputs"]), row["inputs"][0]["dtype"]
    product = {"lhsT": ([k, m], dtype), "rhs": ([k, n], dtype), "bias": ([1, n], dtype)}
    if row["kernel_fn"] == "baseline":
        return [("gemm_kernel", product), ("gelu_kernel", {"y": ([m, n], dtype)})]
    return [(None, product)]


# The path of the kernel, and what its benchmark launches: kernels (None for the row's own) with
# their tensors.
LAUNCHES = [(r"/kernels/(?:baseline/mlp_gemm|fused/mlp)\.py$", gemm_and_gelu)]


def launches(row, path, kernels, folder):
    """(file, kernel, its tensors or None) for each launch; None if the file has no such kernel."""
    benchmark = next((launch for pattern, launch in LAUNCHES if re.search(pattern, str(path))), None)
    out = []
    for name, tensors in benchmark(row) if benchmark else [(None, None)]:
        name = name or kernel_named(row.get("kernel_fn") or "", kernels)
        if name not in kernels:
            return None
        out.append((with_constants(path, name, row.get("params") or {}, folder), name, tensors))
    return out


def arguments(row, definition, tensors, path, sources, folder):
    """The `--arg` words of a launch: from the benchmark, otherwise from the row, otherwise from the
    NKIBench case."""
    names = [p.arg for p in accuracy_inputs.parameters(definition)]
    if tensors is None and len(row.get("inputs") or []) < len(accuracy_inputs.required(definition)):
        reference = accuracy_nkibench.case(row.get("family"), sources)
        if reference:
            values = accuracy_nkibench.inputs(reference)[1]
            return [f"{name}={described(value)}" for name, value in zip(names, values)]
    if tensors is None:
        return accuracy_inputs.arguments(row, definition, path.read_text(), path, folder)
    return [f"{name}={dtype}[{','.join(map(str, shape))}]" for name, (shape, dtype) in tensors.items()]


def described(value):
    return repr(value) if getattr(value, "ndim", 0) == 0 else f"{value.dtype.name}[{','.join(map(str, value.shape))}]"


# Repositories whose harness passes this flag to the compiler (AccelOpt: accelopt/kernel_wrapper.py;
# kda: adapter/nkibench_case.py).
DISABLES_DGE = r"AccelOpt|kda-for-trainium"


def compiler_flags(row):
    """Options of the run for the compiler flags of the row: those in `stat`, or those of the
    harness."""
    return ["--disable-dge"] if "--disable-dge" in str(row.get("stat")) or re.search(DISABLES_DGE, str(row.get("source"))) else []
