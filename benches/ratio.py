"""The simulator's speed as ratios to NumPy, measured in one run on one machine.

    cargo build --release && python3 benches/ratio.py

Needs numpy and ml_dtypes. Thread counts: NumPy's BLAS and the simulator both use all cores that they may.
"""

import os
import pathlib
import re
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


def best(run, repeat=REPEAT):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def command(*args):
    def run():
        subprocess.run([NKI_SIM, "run", *map(str, args)], check=True, stdout=subprocess.DEVNULL)

    return run


def execution(*args, repeat=REPEAT):
    """Seconds of numerics alone: what the command's own log says of its stage `execute`."""
    env = dict(os.environ, NKI_SIM_LOG="debug", NO_COLOR="1")
    times = []
    for _ in range(repeat):
        log = subprocess.run([NKI_SIM, "run", *map(str, args)], check=True, capture_output=True, text=True, env=env).stderr
        times.append(int(re.search(r'stage="execute" us=(\d+)', re.sub(r"\x1b\[[0-9;]*m", "", log))[1]) * 1e-6)
    return min(times)


def line(what, ours, theirs, wanted):
    ratio = ours / theirs
    ok = ratio <= wanted
    print(f"{'ok  ' if ok else 'MISS'} {what}: {ours * 1e3:.1f} ms, {theirs * 1e3:.1f} ms, ratio {ratio:.3f} (wanted <= {wanted:g})")
    return ok


def softmax_stream(x):
    """The instructions of examples/softmax.py, one NumPy call each, tile by tile, in x's dtype."""
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
    print(f"{THREADS} threads, best of {REPEAT}; ours, then NumPy")
    results = []
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        a = rng.standard_normal((2048, 2048), dtype=np.float32)
        b = rng.standard_normal((2048, 2048), dtype=np.float32)
        np.save(folder / "a_t.npy", np.ascontiguousarray(a.T))
        np.save(folder / "b.npy", b)
        matmul = ["examples/matmul_blocked.py", "--arg", f"a_t={folder}/a_t.npy", "--arg", f"b={folder}/b.npy"]
        a @ b
        results.append(line("matmul 2048^3 float32, whole command", best(command(ROOT / matmul[0], *matmul[1:])), best(lambda: a @ b), 1.5))

        for dtype, wanted in ((np.float32, 1 / 2), (ml_dtypes.bfloat16, 1 / 5)):
            x = rng.standard_normal((4096, 512), dtype=np.float32).astype(dtype)
            np.save(folder / "x.npy", x)
            name = np.dtype(dtype).name
            kernel = [ROOT / "examples/softmax.py", "--arg", f"x={folder}/x.npy"]
            results.append(
                line(f"softmax [4096,512] {name}, numerics", execution(*kernel), best(lambda: softmax_stream(x)), wanted)
            )
            whole = best(command(*kernel))
            print(f"     the whole command takes {whole * 1e3:.1f} ms")

        many = best(command(ROOT / "examples/softmax.py", "--arg", f"x=float32[{128 * 16000},512]:zeros", "--no-numerics"), 3)
        results.append(line("100,000 instructions without numerics, against 1 s", many, 1.0, 1.0))
        small = best(command(ROOT / "examples/softmax.py", "--arg", "x=float32[256,512]"))
        results.append(line("small kernel end to end, against 50 ms", small, 0.05, 1.0))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
