"""The nki-sim command: $NKI_SIM, an existing build, or a new build."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@functools.cache
def command() -> str:
    """Path of the command. Exits with 2 if there is none and it cannot be built."""
    named = os.environ.get("NKI_SIM")
    if named:
        return named
    if shutil.which("cargo"):
        # Always build: checking an up-to-date build takes a second, and a stale build must not be
        # used.
        print("Building nki-sim", flush=True)
        built = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT)
        if built.returncode == 0:
            return str(ROOT / "target" / "release" / "nki-sim")
    installed = shutil.which("nki-sim")
    if installed:
        return installed
    print("error: there is no nki-sim command, and cargo could not build it; set NKI_SIM to its path", file=sys.stderr)
    sys.exit(2)
