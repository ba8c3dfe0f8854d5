"""The console script `nki-sim`: the same command as the binary."""

import sys


def main():
    from . import _native

    sys.exit(_native.command_line([sys.argv[0], *sys.argv[1:]]))
