"""The speed of the simulator relative to NumPy and to fixed targets, measured in one run on one
machine.

    cargo build --release && python3 benches/ratio.py

Needs numpy and ml_dtypes. Calls from Python, with warm memory on both sides, need the package
`nki_sim` as well (`pip install .` into the same environment; a line reports if it is missing).
NumPy's BLAS and the simulator both use all cores that are available to them. Both sides of a ratio
are measured alternately, and the best of each counts.
"""

import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
import time

THREADS = str(len(os.sched_getaffinity(0)))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, THREADS)

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
NKI_SIM = os.environ.get("NKI_SIM", str(ROOT / "target/release/nki-sim"))
REPEAT = 5
# Rounds for runs of a few milliseconds.
SHORT = 20


def timed(run):
    """A function that returns the duration of a call in seconds."""

    def seconds():
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return seconds


def in_turn(*sides, repeat=REPEAT):
    """The minimum time of each side in seconds, measured alternately."""
    rounds = [[side() for side in sides] for _ in range(repeat)]
    return [min(times) for times in zip(*rounds)]


def command(*args, verb="run"):
    """A function that runs a command and returns its duration in seconds.

    After a run, `.peak` is its peak memory in bytes (at least that of this process) and `.cpu` its
    least processor time.
    """

    def run():
        process = subprocess.Popen([NKI_SIM, verb, *map(str, args)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (verb, *args)
        run.peak = usage.ru_maxrss * 1024
        run.cpu = min(run.cpu, usage.ru_utime + usage.ru_stime)

    run.cpu = float("inf")
    return run


def execution(*args):
    """A function that returns the seconds of the numerics alone: the stage `execute` in the
    command's log."""
    env = dict(os.environ, NKI_SIM_LOG="debug", NO_COLOR="1")

    def seconds():
        log = subprocess.run([NKI_SIM, "run", *map(str, args)], check=True, capture_output=True, text=True, env=env).stderr
        return int(re.search(r'stage="execute" us=(\d+)', re.sub(r"\x1b\[[0-9;]*m", "", log))[1]) * 1e-6

    return seconds


def line(what, ours, theirs, wanted):
    ratio = ours / theirs
    ok = ratio <= wanted
    print(f"{'ok  ' if ok else 'MISS'} {what}: {ours * 1e3:.1f} ms, {theirs * 1e3:.1f} ms, ratio {ratio:.3f} (wanted <= {wanted:g})")
    return ok


def aim(what, value, unit, wanted, run=None):
    ok = value <= wanted
    cpu = f"; {run.cpu:.2f} s of processor time" if run else ""
    print(f"{'ok  ' if ok else 'MISS'} {what}: {value:.3g} {unit} (wanted <= {wanted:g}){cpu}")
    return ok


def softmax_kernel():
    """The kernel of examples/softmax.py as a function of arrays; None if the package is not
    installed."""
    try:
        import nki_sim  # noqa: F401  (gives `import nki` to the example)
    except ImportError:
        return None
    return runpy.run_path(str(ROOT / "examples/softmax.py"))["softmax_rows"]


def softmax_stream(x):
    """The instructions of examples/softmax.py, one NumPy call each, tile by tile, in x's dtype.

    Every tile is a separate array, as it is a separate tensor in the kernel; loads and stores are
    copies. NumPy has no call that computes an exponential and its sum, and none that negates a
    maximum: these are two calls, where the kernel has one instruction. Every call rounds its result
    to x's dtype, as the engines do when they write.
    """
    out = np.empty_like(x)
    for r in range(0, x.shape[0], 128):
        data = x[r : r + 128].copy()
        negative_max = np.negative(np.max(data, axis=1, keepdims=True))
        exponential = np.exp(np.add(data, negative_max))
        total = np.sum(exponential, axis=1, keepdims=True)
        inverse = np.reciprocal(total) if x.dtype == np.float32 else np.divide(np.ones_like(total), total)
        result = np.multiply(exponential, inverse)
        out[r : r + 128] = result
    return out


def main():
    print(f"{THREADS} threads, best of {REPEAT} or {SHORT}; ours, then NumPy")
    results = []
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        a = rng.standard_normal((2048, 2048), dtype=np.float32)
        b = rng.standard_normal((2048, 2048), dtype=np.float32)
        np.save(folder / "a_t.npy", np.ascontiguousarray(a.T))
        np.save(folder / "b.npy", b)
        matmul = ["examples/matmul_blocked.py", "--arg", f"a_t={folder}/a_t.npy", "--arg", f"b={folder}/b.npy"]
        ours, theirs = in_turn(timed(command(ROOT / matmul[0], *matmul[1:])), timed(lambda: a @ b))
        results.append(line("matmul 2048^3 float32, whole command", ours, theirs, 1.5))

        call = softmax_kernel()
        if not call:
            print("     nki_sim is not installed here: no calls of one process")
        for dtype, wanted in ((np.float32, 1 / 2), (ml_dtypes.bfloat16, 1 / 5)):
            x = rng.standard_normal((4096, 512), dtype=np.float32).astype(dtype)
            np.save(folder / "x.npy", x)
            name = np.dtype(dtype).name
            kernel = [ROOT / "examples/softmax.py", "--arg", f"x={folder}/x.npy"]
            ours, theirs = in_turn(execution(*kernel), timed(lambda: softmax_stream(x)), repeat=SHORT)
            results.append(line(f"softmax [4096,512] {name}, numerics of one command (its memory cold)", ours, theirs, wanted))
            if call:
                ours, theirs = in_turn(timed(lambda: call(x)), timed(lambda: softmax_stream(x)), repeat=5 * SHORT)
                results.append(line(f"softmax [4096,512] {name}, calls of one process on both sides (warm)", ours, theirs, wanted))
            [whole] = in_turn(timed(command(*kernel)))
            print(f"     the whole command takes {whole * 1e3:.1f} ms")

        def many(tiles, *options, verb="run"):
            args = [ROOT / "examples/softmax.py", "--arg", f"x=float32[{128 * tiles},512]:zeros", *options]
            return command(*args, verb=verb)

        plain = many(16000, "--no-numerics")
        report = many(16000, "--no-numerics", "--html", folder / "report.html")
        sizes = (16000, 32000, 64000)
        specialised = [many(tiles, verb="check") for tiles in sizes]
        run, html, *checks = in_turn(*map(timed, (plain, report, *specialised)))
        results.append(aim("96,000 instructions specialised, placed, timed and analysed", run, "s", 1.0, plain))
        results.append(aim("the same with --html", html, "s", 3.0, report))
        results.append(aim("96,000 instructions specialised and checked", checks[0], "s", 2.0, specialised[0]))
        results.append(aim("peak memory of that", specialised[0].peak / 2**20, "MiB", 2048))
        for tiles, check, seconds in zip(sizes, specialised, checks):
            print(f"     {6 * tiles} instructions: {seconds * 1e3:.0f} ms, peak {check.peak / 2**20:.0f} MiB")
        first, second, third = (check.peak for check in specialised)
        growth = (third - second) / max(second - first, 1)
        results.append(aim("growth of memory from 192,000 to 384,000 over that from 96,000 to 192,000", growth, "", 2.5))
        [small] = in_turn(timed(command(ROOT / "examples/softmax.py", "--arg", "x=float32[256,512]")), repeat=SHORT)
        results.append(aim("small kernel end to end", small * 1e3, "ms", 50.0))

        # The jobs must differ, so that each is actually run.
        def jobs(count):
            file = folder / f"{count}.jsonl"
            kernel = str(ROOT / "examples/softmax.py")
            file.write_text("".join(json.dumps({"file": kernel, "args": {"x": f"float32[256,512]:{n}"}}) + "\n" for n in range(count)))
            return command(file, "--jobs", "1", verb="batch")

        few, many_jobs = in_turn(timed(jobs(10)), timed(jobs(510)), repeat=3)
        per_job = (many_jobs - few) / 500
        results.append(aim("small kernels per second and core in a batch, against 100", 100 * per_job, "", 1.0))
        results.append(aim("a job of a batch against a command of its own", per_job / small, "", 0.5))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
