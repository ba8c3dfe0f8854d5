"""Runs a script with the drop-in `nki`, which replaces any other. `nki-sim run FILE` calls it:

    python -m nki_sim.script [--deny|--warn|--allow LIST]... [--strict] FILE [ARGUMENT...]
"""

import os
import runpy
import sys

from . import _errors, _levels, install


def main():
    words, lists, strict = sys.argv[1:], {"deny": [], "warn": [], "allow": []}, False
    while words and words[0].startswith("--"):
        option = words.pop(0)[2:]
        if option in lists and words:
            lists[option].append(words.pop(0))
        elif option == "strict":
            strict = True
        else:
            sys.exit(f"unknown option --{option}")
    if not words:
        sys.exit("usage: python -m nki_sim.script [--deny|--warn|--allow LIST]... [--strict] FILE [ARGUMENT...]")
    _levels.set_source("command", *(several or None for several in lists.values()), strict=strict)
    path = words[0]
    sys.argv = words
    install()
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        runpy.run_path(path, run_name="__main__")
    except _errors.KernelError as error:
        # The diagnostic names the line; Python's traceback shows the calls that led to the kernel.
        print(error, file=sys.stderr)
        sys.exit(1)
    except SystemExit as ended:
        if ended.code in (None, 0):
            return
        if not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
        # The command has one exit code for a script that fails.
        sys.exit(1)


if __name__ == "__main__":
    main()
