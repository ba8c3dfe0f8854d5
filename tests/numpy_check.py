"""Runs kernels through the nki-sim command with .npy files and compares the outputs with NumPy.

    python3 tests/numpy_check.py [--only NAME] DIRECTORY...

A directory has kernels and a cases.py with `cases()`. A case has name, file, kernel, args, expect,
and optionally target, lnc, programs, rtol, atol and kinds (the dtype of an argument if its array does not
determine it). The command is $NKI_SIM, else target/debug/nki-sim.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load_cases(directory):
    # The path of modules that several directories, or several files of a directory, share.
    sys.path[:0] = [str(ROOT / "tests"), str(directory)]
    spec = importlib.util.spec_from_file_location(f"cases_{directory.name}", directory / "cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.cases())


def save(path, array):
    """Like np.save, but writes 8-bit floats as raw bytes, because NumPy cannot read its own files
    of them."""
    if array.dtype.kind == "V" or array.dtype.name.startswith(("float8", "bfloat16")):
        array = np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")
    np.save(path, array)


def value(name, arg, folder, kind=None):
    if isinstance(arg, np.ndarray):
        path = folder / f"{name}.npy"
        save(path, arg)
        kind = kind or (arg.dtype.name if arg.dtype.name.startswith("float8") else None)
        return f"{path}:{kind}" if kind else str(path)
    return repr(arg)


def run(directory, case):
    """None if the case passes, else the error."""
    command = [os.environ.get("NKI_SIM", str(ROOT / "target/debug/nki-sim")), "run", str(directory / case["file"])]
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        for key in ("kernel", "target", "lnc", "programs", "ranks", "rtol", "atol"):
            if key in case:
                command += [f"--{key}", str(case[key])]
        for name, arg in case["args"].items():
            command += ["--arg", f"{name}={value(name, arg, folder, case.get('kinds', {}).get(name))}"]
        for name, array in case["expect"].items():
            path = folder / f"expected_{name}.npy"
            save(path, array)
            command += ["--expect", f"{name}={path}"]
        out = folder / "out"
        command += ["--out", str(out)]
        if directory.name in ("examples", "ports"):
            # docs/findings.md: they have no findings.
            command += ["--deny", "warnings"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return f"exit code {done.returncode}\n{' '.join(command)}\n{done.stdout}{done.stderr}"
        # Do not rely on the command's own comparison.
        for name, array in case["expect"].items():
            # NAME@RANK is the output of one rank.
            base, _, rank = name.partition("@")
            got = np.load(out / f"rank{rank}" / f"{base}.npy" if rank else out / f"{name}.npy")
            got = got.view(array.dtype) if got.dtype.kind == "V" else got
            if got.shape != array.shape or got.dtype != array.dtype:
                return f"{name}: got {got.dtype}{got.shape}, expected {array.dtype}{array.shape}"
            wide = np.float64
            default = {"bfloat16": 2e-2, "float16": 2e-3}.get(array.dtype.name, 1e-5 if array.dtype.kind == "f" else 0)
            np.testing.assert_allclose(
                got.astype(wide), array.astype(wide), rtol=case.get("rtol", default), atol=case.get("atol", default)
            )
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    parser.add_argument("directories", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    failed = 0
    for directory in options.directories:
        for case in load_cases(directory.resolve()):
            if options.only and case["name"] != options.only:
                continue
            try:
                problem = run(directory.resolve(), case)
            except AssertionError as e:
                problem = str(e)
            print(f"{'FAIL' if problem else 'ok'}  {case['name']}", flush=True)
            if problem:
                print(problem)
                failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
