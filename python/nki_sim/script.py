"""Runs a script with our `nki` in the place of any other: `python -m nki_sim.script FILE [ARGUMENT...]`, which `nki-sim run FILE` calls."""

import os
import runpy
import sys

from . import _errors, install


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: python -m nki_sim.script FILE [ARGUMENT...]")
    path = sys.argv[1]
    sys.argv = sys.argv[1:]
    install()
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except _errors.KernelError as error:
        # The diagnostic says where; the calls that led to the kernel are in the traceback of Python.
        print(error, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
