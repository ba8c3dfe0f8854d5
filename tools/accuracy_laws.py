"""Compares durations of single instructions in public profiles with the same instruction simulated alone.

The directory of profiles has `*instr_stats.csv` (engine, opcode, operands_normalised, count, min_ns, median_ns, max_ns) and `*dma_stats.csv` (queue_type,
packet_bytes, count, min_ns, median_ns, max_ns).
"""

import csv
import pathlib
import re
import subprocess
import tempfile
from statistics import median

from common.page import paragraph

HEAD = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def probe(x):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    half = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    result = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    column = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    bank = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=a, value=1.0)
    nisa.memset(dst=half, value=1.0)
    nisa.memset(dst=column, value=1.0)
    nisa.memset(dst=bank, value=1.0)
    nisa.memset(dst=result, value=1.0)
"""
VECTOR, SCALAR = "nisa.engine.vector", "nisa.engine.scalar"

# Each law: the line of a profile (engine, opcode, part of the operands), the simulated instruction, the compared duration, and a label.
# A profile does not distinguish PSUM and SBUF; in these kernels, copies read PSUM.
LAWS = [
    ("Vector", "COPY", "[512,1,1,1] dst", "nisa.tensor_copy(dst=result, src=bank, engine=%s)" % VECTOR, "complete", "copy of 512 from PSUM"),
    ("Vector", "COPY", "[128,1,1,1] dst", "nisa.tensor_copy(dst=result[:, 0:128], src=bank[:, 0:128], engine=%s)" % VECTOR, "complete", "copy of 128 from PSUM"),
    ("Vector", "CAST", "[128,1,1,1] dst", "nisa.tensor_copy(dst=half[:, 0:128], src=bank[:, 0:128], engine=%s)" % VECTOR, "complete", "copy of 128 from PSUM to bf16"),
    ("Vector", "RECIPROCAL", "[4,1,1,1] dst", "nisa.reciprocal(dst=result[:, 0:4], data=a[:, 0:4])", "complete", "reciprocal of 4"),
    ("Vector", "TENSOR_REDUCE", "op=MAX dim=X src=fp32@[1,1,1,1][512", "nisa.tensor_reduce(dst=column, op=nl.maximum, data=a, axis=1)", "complete", "reduce of 512, maximum"),
    ("Vector", "TENSOR_REDUCE", "op=ADD dim=X src=fp32@[1,1,1,1][512", "nisa.tensor_reduce(dst=column, op=nl.add, data=a, axis=1)", "complete", "reduce of 512, sum"),
    ("Vector", "TENSOR_REDUCE", "op=MAX dim=X negated=1", "nisa.tensor_reduce(dst=column, op=nl.maximum, data=a[:, 0:1], axis=1, negate=True)", "complete", "reduce of 1, maximum"),
    ("Vector", "TENSOR_REDUCE", "op=ADD dim=X src=fp32@[1,1,1,1][1,4", "nisa.tensor_reduce(dst=column, op=nl.add, data=a[:, 0:1], axis=1)", "complete", "reduce of 1, sum"),
    ("Vector", "TENSOR_SCALAR", "[512,1,1] dst", "nisa.tensor_scalar(dst=result, data=a, op0=nl.multiply, operand0=column, engine=%s)" % VECTOR, "complete", "tensor_scalar of 512 by a column"),
    ("Vector", "TENSOR_SCALAR", "[128,1,1] dst", "nisa.tensor_scalar(dst=result[:, 0:128], data=bank[:, 0:128], op0=nl.multiply, operand0=column, engine=%s)" % VECTOR, "complete", "tensor_scalar of 128 from PSUM by a column"),
    ("Scalar", "COPY", "[512,1,1,1] dst", "nisa.tensor_copy(dst=result, src=bank, engine=%s)" % SCALAR, "complete", "copy of 512 from PSUM"),
    ("Scalar", "COPY", "[128,1,1,1] dst", "nisa.tensor_copy(dst=result[:, 0:128], src=bank[:, 0:128], engine=%s)" % SCALAR, "complete", "copy of 128 from PSUM"),
    ("Scalar", "CAST", "dst=bfloat16", "nisa.tensor_copy(dst=half[:, 0:128], src=bank[:, 0:128], engine=%s)" % SCALAR, "complete", "copy of 128 from PSUM to bf16"),
    ("Scalar", "ACTIVATE", "EXP", "nisa.activation(dst=result, op=nl.exp, data=a, bias=column)", "complete", "activation of 512, exp with a bias"),
    ("Scalar", "ACT_TABLE_LOAD", "", "nisa.activation(dst=result, op=nl.exp, data=a)", "table", "function table"),
    ("Tensor", "MATMUL", "bfloat16@[1,0,0][512", "{two}nisa.nc_matmul(dst=bank, stationary=half[:, 0:128], moving=half)", "complete", "bf16 matmul of 512 columns, cold"),
    ("Tensor", "MATMUL", "bfloat16@[1,0,0][128", "{two}nisa.nc_matmul(dst=bank[:, 0:128], stationary=half[:, 0:128], moving=half[:, 0:128])", "complete", "bf16 matmul of 128 columns, cold"),
    ("Tensor", "MATMUL", "fp32@[1,0,0][512", "{two}nisa.nc_matmul(dst=bank, stationary=a[:, 0:128], moving=a)", "pass", "fp32 matmul of 512 columns, one of two passes, cold"),
    ("Tensor", "MATMUL", "fp32@[1,0,0][512", "{two}nisa.nc_matmul(dst=bank, stationary=a[:, 0:128], moving=a)", "pass warm", "the same, warm"),
    ("Tensor", "MATMUL", "fp32@[1,0,0][128", "{two}nisa.nc_matmul(dst=bank[:, 0:128], stationary=a[:, 0:128], moving=a[:, 0:128])", "pass warm", "fp32 matmul of 128 columns, one of two passes, warm"),
    ("Sync", "DMA_DIRECT2D", "src_elem_size=2048", "nisa.dma_copy(dst=out, src=a, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.sync)", "occupancy", "trigger of a transfer of 2 KiB rows"),
    ("Sync", "DMA_DIRECT2D", "src_elem_size=512", "nisa.dma_copy(dst=a[:, 0:128], src=x[:, 0:128], dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.sync)", "occupancy", "trigger of a transfer of 512-byte rows"),
    ("Scalar", "DMA_DIRECT2D", "src_elem_size=2048", "nisa.dma_copy(dst=a, src=x, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)", "occupancy", "trigger of a transfer of 2 KiB rows"),
    ("GpSimd", "DMA_DIRECT2D", "src_elem_size=2048", "nisa.dma_copy(dst=a, src=x, dge_mode=nisa.dge_mode.swdge)", "occupancy", "trigger of a transfer of 2 KiB rows"),
]


def events(binary, text, folder, settings=()):
    """The rows of nki-sim's CSV for a kernel that contains the probe `text`. Raises RuntimeError if the run fails."""
    source, table = folder / "probe.py", folder / "probe.csv"
    source.write_text(HEAD + "    " + text.replace("{two}", text.replace("{two}", "") + "\n    ") + "\n    nisa.dma_copy(dst=out, src=result)\n    return out\n")
    words = [*binary, "run", str(source), "--arg", "x=float32[128,512]", "--no-numerics", "--schedule", "program", "--csv", str(table)]
    for s in settings:
        words += ["--set", s]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{text}: {done.stderr.strip().splitlines()[0]}")
    with table.open() as file:
        return list(csv.DictReader(file))


def predicted(binary, text, what, folder):
    # Warm: the power limiter is off. Cold: it always limits.
    settings = ["tensor.limiter_rate=1"] if what.endswith("warm") else ["tensor.limiter_release=1"]
    if what == "table":
        # The table load starts at time 0, so the operands must be ready by then.
        settings = ["vector.cycles.memset=0", "vector.fixed_ns.memset=0"]
    rows = events(binary, text, folder, settings)
    wanted = re.search(r"nisa\.(\w+)\(", text).group(1)
    own = [r for r in rows if r["opcode"] == wanted]
    # The last copy writes the result to HBM; it is not the probe.
    row = own[0] if wanted == "dma_copy" else own[-1]
    start, end, complete = (float(row[k]) for k in ("start_ts", "end_ts", "completion_ts"))
    if what == "table":
        return start - min(float(r["start_ts"]) for r in rows)
    if what == "occupancy":
        return end - start
    if what.startswith("pass"):
        return (end - start) / 2 + complete - end
    return complete - start


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def laws(binary, directory, parameters):
    """The compared instructions and packets, as dicts (engine, opcode, label, min, median and
    predicted in ns, against), and the opcodes without a law."""
    directory = pathlib.Path(directory)
    out, seen = [], set()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in sorted(directory.glob("*instr_stats.csv")):
            lines = read(path)
            for engine, opcode, part, text, what, label in LAWS:
                found = [r for r in lines if r["engine"] == engine and r["opcode"] == opcode and part in r["operands_normalised"]]
                if not found:
                    continue
                row = found[0]
                seen.add((row["engine"], row["opcode"]))
                against = "min_ns" if what.endswith("warm") else "median_ns"
                out.append([engine.lower(), opcode, label, float(row["min_ns"]), float(row["median_ns"]), predicted(binary, text, what, folder), against])
            for row in lines:
                if row["opcode"] == "TENSOR_LOAD" and "[0,0]" in row["operands_normalised"]:
                    seen.add((row["engine"], "TENSOR_LOAD"))
                    value = parameters["control.register_load_ns"]
                    out.append([row["engine"].lower(), "TENSOR_LOAD", "one register from memory", float(row["min_ns"]), float(row["median_ns"]), value, "median_ns"])
            left = sorted({f"{r['engine']} {r['opcode']}" for r in lines if (r["engine"], r["opcode"]) not in seen})
        for path in sorted(directory.glob("*dma_stats.csv")):
            for row in read(path):
                size = float(row["packet_bytes"])
                if row["queue_type"] == "instruction":
                    continue
                value = parameters["dma.descriptor_ns"] + size / parameters["dma.bytes_per_ns"]
                out.append(["dma", row["queue_type"], f"packet of {size:.0f} bytes", float(row["min_ns"]), float(row["median_ns"]), value, "median_ns"])
    return [dict(zip(("engine", "opcode", "label", "min", "median", "predicted", "against"), row)) for row in out], left


def error(law):
    return law["predicted"] / (law["min"] if law["against"] == "min_ns" else law["median"]) - 1


def section(rows, left):
    """The section of docs/accuracy_rows.md."""
    lines = [
        "## Single instructions",
        "",
        paragraph(
            "The table compares durations of instructions and DMA packets from public profiles of fused attention on trn2 with the same instruction "
            f"simulated alone. The median error is {100 * median(abs(error(r)) for r in rows):.1f}% over {len(rows)} laws, the worst "
            f"{100 * max(abs(error(r)) for r in rows):.0f}%. A warm instruction is compared with the shortest measured duration, any other with the median."
        ),
        "",
        "| engine | opcode | what | shortest ns | median ns | predicted ns | error |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {r['engine']} | {r['opcode']} | {r['label']} | {r['min']:.0f} | {r['median']:.0f} | {r['predicted']:.0f} | {100 * error(r):+.1f}% |"
            for r in rows
        ),
        "",
        paragraph(
            "The following are not compared, because the simulator does not model them or models them as part of other instructions: "
            f"{', '.join(left)}, and packets of instruction fetch."
        ),
    ]
    return "\n".join(lines)
