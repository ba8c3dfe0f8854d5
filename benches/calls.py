"""Calls of kernels from Python against the same computation in NumPy, by turns in one process.

    pip install . && python3 benches/calls.py            # idle, then while other processes keep one core busy
    python3 benches/calls.py --short                     # one thread; fails if a ratio is 30% above the recorded one
    python3 benches/calls.py --short --record            # writes the ratios of --short to benches/calls.json

The record is that of the wheel of tests/python (profile dev), on a busy machine. The short version compares processor time, the best of many, so that other work on the machine hardly
matters. A processor without a record of its own is held to twice the worst of all records. The comparison is skipped
where the vector units are others than those of the records: NumPy's library and the simulator gain
different amounts from them.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import sys

SHORT = "--short" in sys.argv
THREADS = "1" if SHORT else str(len(os.sched_getaffinity(0)))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = THREADS

import resource
import runpy
import time

import ml_dtypes
import nki_sim  # noqa: F401  (gives `import nki` to the examples)
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "benches/calls.json"
# A ratio may exceed the recorded one by this factor; a larger one must be confirmed by this number
# of further measurements. Ratios of different processors differ by up to 1.9.
SLACK, OTHERS, ATTEMPTS = 1.3, 2.0, 5


def kernel(file, name):
    return runpy.run_path(str(ROOT / "examples" / file))[name]


def attention(q_t, k_t, v):
    scores = (q_t / np.sqrt(np.float32(len(q_t)))).T @ k_t
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


def softmax(x):
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def cases():
    """Name, whether the case is in the short version, calls per round, kernel, NumPy."""
    rng = np.random.default_rng(0)
    normal = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    tiled, blocked = kernel("matmul_tiled.py", "matmul_tiled"), kernel("matmul_blocked.py", "matmul_blocked")
    flash, rows = kernel("flash_attention.py", "flash_attention"), kernel("softmax.py", "softmax_rows")
    for size in (1024, 2048):
        a, b = normal(size, size), normal(size, size)
        product = lambda a=a, b=b: a.T @ b
        yield f"matmul_tiled {size}^3 float32", size == 1024, 1, lambda a=a, b=b: tiled(a, b), product
        yield f"matmul_blocked {size}^3 float32", size == 1024, 1, lambda a=a, b=b: blocked(a, b), product
    low_a, low_b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    yield "matmul_blocked 2048^3 bfloat16, NumPy float32", False, 1, lambda: blocked(low_a, low_b), product
    # Scaled as in real models. Without the scale, most weights are denormal numbers, which
    # processors handle slowly.
    q, k, v = normal(128, 2048), normal(128, 2048), normal(2048, 128)
    ours = lambda: flash(q, k, v, scale=128**-0.5)
    yield "flash_attention 2048 x 128 float32, scaled", True, 1, ours, lambda: attention(q, k, v)
    x = normal(128, 64)
    yield "softmax_rows [128, 64] float32, small", True, 50, lambda: rows(x), lambda: softmax(x)
    add, left, right = kernel("elementwise.py", "elementwise_add"), normal(4, 8), normal(4, 8)
    yield "elementwise_add [4, 8] float32, small", False, 200, lambda: add(left, right), lambda: left + right


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_minflt


def measure(calls, run):
    """Wall time, processor time and page faults per call."""
    start, (cpu, faults) = time.perf_counter(), used()
    for _ in range(calls):
        run()
    wall, (cpu_after, faults_after) = time.perf_counter() - start, used()
    return wall / calls, (cpu_after - cpu) / calls, (faults_after - faults) / calls


def wait_for_threads():
    """Waits until this process uses no processor time, for at most two seconds: the threads of
    NumPy's library keep polling for work for a while after a call."""
    for _ in range(100):
        before = time.process_time()
        time.sleep(0.02)
        if time.process_time() - before < 0.002:
            return


def compare(calls, ours, theirs, rounds, pause=False):
    """For each side, the minimum of wall time, processor time and page faults per call. With a
    `pause`, both sides wait before each round, and their first call after that is not measured."""
    for run in (ours, theirs):
        run(), run()
    sides = [[], []]
    for _ in range(rounds):
        for side, run in zip(sides, (ours, theirs)):
            if pause:
                wait_for_threads()
                run()
            side.append(measure(calls, run))
    return [[min(column) for column in zip(*side)] for side in sides]


def after_a_pause(ours, theirs, rounds):
    """For each side, the minimum of the wall time of the first call after a pause."""
    times = [[], []]
    for _ in range(rounds):
        for side, run in zip(times, (ours, theirs)):
            wait_for_threads()
            side.append(measure(1, run)[0])
    return [min(side) for side in times]


def vector_units():
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "") if sys.platform == "linux" else ""
    return [unit for unit in ("avx2", "avx512f") if unit in flags.split()]


def processor():
    """Vendor, family and model: NumPy's kernels are better on some processors than on others."""
    if sys.platform != "linux":
        return ""
    lines = [line.split(":", 1) for line in open("/proc/cpuinfo") if ":" in line]
    of = {key.strip(): value.strip() for key, value in reversed(lines)}
    return " ".join(of.get(key, "?") for key in ("vendor_id", "cpu family", "model"))


def short(record):
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    records = known.get("processors", {})
    # A processor without a record is compared with the worst of all records.
    every = [known.get("ratios", {}), *records.values()]
    worst = {name: max(r[name] for r in every if name in r) for name in set().union(*every)}
    own = records.get(processor(), {})
    highest = {name: OTHERS * ratio for name, ratio in worst.items()} | {name: SLACK * ratio for name, ratio in own.items()}
    if not record and known.get("vector_units") != vector_units():
        print(f"skipped: recorded with {known.get('vector_units')}, here {vector_units()}")
        return True
    ratios, good = {}, True
    for name, chosen, calls, ours, theirs in cases():
        if not chosen:
            continue
        limit = highest.get(name, float("inf"))
        measured = []
        for _ in range(ATTEMPTS):
            (_, cpu, _), (_, theirs_cpu, _) = compare(calls, ours, theirs, 15)
            measured.append(round(cpu / theirs_cpu, 3))
            if not record and measured[-1] <= limit:
                break
        # Record the value for a busy machine.
        ratios[name] = max(measured) if record else min(measured)
        fine = record or ratios[name] <= limit
        good &= fine
        print(f"{'ok  ' if fine else 'MISS'} {name}: {ratios[name]:.3f} of NumPy's processor time" + ("" if record else f" (at most {limit:.3f})"))
    if record:
        # `ratios` belongs to a processor whose name was not recorded.
        both = {"ratios": ratios, **known, "vector_units": vector_units(), "processors": {**known.get("processors", {}), processor(): ratios}}
        RECORD.write_text(json.dumps(both, indent=2) + "\n")
    return good


def burn():
    while True:
        pass


def full():
    for busy in (0, 1):
        others = [multiprocessing.get_context("spawn").Process(target=burn, daemon=True) for _ in range(busy)]
        for other in others:
            other.start()
        print(f"{THREADS} threads, {busy} other processes busy; ours, then NumPy")
        for name, _, calls, ours, theirs in cases():
            large = calls == 1
            (wall, cpu, faults), (theirs_wall, theirs_cpu, _) = compare(3 if large else calls, ours, theirs, 10, pause=large)
            line = (
                f"{name}: {wall * 1e3:.4f} ms, {theirs_wall * 1e3:.4f} ms, ratio {wall / theirs_wall:.2f};"
                f" processor time {cpu * 1e3:.3f} ms, {theirs_cpu * 1e3:.3f} ms, ratio {cpu / theirs_cpu:.2f}; {faults:.0f} page faults"
            )
            if large:
                first, theirs_first = after_a_pause(ours, theirs, 10)
                line += f"; first call after a pause {first * 1e3:.1f} ms, {theirs_first * 1e3:.1f} ms, ratio {first / theirs_first:.2f}"
            print(line)
        for other in others:
            other.kill()
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    sys.exit(0 if (short(options.record) if options.short else full()) else 1)
