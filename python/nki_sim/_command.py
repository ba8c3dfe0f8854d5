"""The console script `nki-sim`: the same command as the binary."""

import os
import signal
import sys


def main():
    from . import _native

    # `nki-sim run script.py` runs scripts with this interpreter.
    os.environ.setdefault("NKI_SIM_PYTHON", sys.executable)
    # Python would handle Ctrl-C only when the command ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command_line([sys.argv[0], *sys.argv[1:]]))
