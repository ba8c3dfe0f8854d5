"""The simulator's speed as ratios to NumPy, measured in one run on one machine.

    cargo build --release && python3 benches/ratio.py

Needs numpy and ml_dtypes. Thread counts: NumPy's BLAS and the simulator both use all cores that they may.
"""

import os
import pathlib
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


def line(what, ours, theirs, wanted):
    ratio = ours / theirs
    ok = ratio <= wanted
    print(f"{'ok  ' if ok else 'MISS'} {what}: {ours * 1e3:.1f} ms, {theirs * 1e3:.1f} ms, ratio {ratio:.3f} (wanted <= {wanted:g})")
    return ok


def softmax_stream(x):
    """The instruction stream of examples/softmax.py, one NumPy call per instruction and tile, values kept in x's dtype."""
    out = np.empty_like(x)
    f32 = np.float32
    for r in range(0, x.shape[0], 128):
        data = x[r : r + 128].copy()
        negative_max = -data.max(axis=1, keepdims=True).astype(f32)
        # exp with a bias: in fp32 as the engine does, rounded at the write.
        exponential = np.exp(data.astype(f32) + negative_max)
        total = exponential.sum(axis=1, keepdims=True)
        exponential = exponential.astype(x.dtype)
        inverse = np.reciprocal(total)
        result = (exponential.astype(f32) * inverse).astype(x.dtype)
        out[r : r + 128] = result
    return out


def softmax_plain(x):
    """The same with plain array operators in x's dtype: what a user of NumPy with ml_dtypes writes."""
    out = np.empty_like(x)
    for r in range(0, x.shape[0], 128):
        data = x[r : r + 128].copy()
        maximum = np.max(data, axis=1, keepdims=True)
        shifted = np.subtract(data, maximum)
        exponential = np.exp(shifted)
        total = np.sum(exponential, axis=1, keepdims=True)
        inverse = np.divide(np.ones_like(total), total)
        out[r : r + 128] = np.multiply(exponential, inverse)
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
            whole = best(command(*kernel))
            start = best(command(*kernel, "--no-numerics"))
            for label, reference in (("plain", softmax_plain), ("fp32 inside", softmax_stream)):
                results.append(line(f"softmax [4096,512] {name}, {label}: whole command", whole, best(lambda: reference(x)), wanted))
            print(f"     of which without numerics {start * 1e3:.1f} ms")

        many = best(command(ROOT / "examples/softmax.py", "--arg", f"x=float32[{128 * 16000},512]:zeros", "--no-numerics"), 3)
        results.append(line("100,000 instructions without numerics, against 1 s", many, 1.0, 1.0))
        small = best(command(ROOT / "examples/softmax.py", "--arg", "x=float32[256,512]"))
        results.append(line("small kernel end to end, against 50 ms", small, 0.05, 1.0))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
