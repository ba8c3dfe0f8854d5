"""Files that the package writes: atomically, and never over a source file of the program."""

import os
import secrets
import stat
import sys
import types

from . import _source


def write(path, data):
    """Writes bytes, or text as UTF-8. A reader sees the old file or the new one, and an interrupt
    leaves the old one.

    As with the command's files, a symbolic link is kept, a file keeps its mode, and anything but a
    regular file (a pipe, `/dev/stdout`) is written directly.

    :raises ValueError: if the file is a source file of this program (`check`).
    """
    path = os.fsdecode(os.fspath(path))
    data = data.encode() if isinstance(data, str) else data
    try:
        known = os.stat(path)
    except OSError:
        known = None
    if path in ("/dev/stdout", "/dev/stderr") or known is not None and not stat.S_ISREG(known.st_mode):
        with open(path, "ab") as file:
            file.write(data)
        return
    check(path)
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".nki-sim-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if known is not None:
            os.chmod(temporary, stat.S_IMODE(known.st_mode))
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            # The caller knows the name of the file, not of the temporary file.
            raise OSError(error.errno, error.strerror, path) from None
        raise


def check(path):
    """Checks that a file may be written.

    :raises ValueError: if the file is, by any path or link, a source file of this program: that of
        a kernel or of an imported module.
    """
    try:
        known = os.stat(path)
    except OSError:
        return
    for source in _sources():
        try:
            same = os.path.samestat(known, os.stat(source))
        except (OSError, ValueError):
            continue
        if same:
            raise ValueError(f"{path}: this would replace a source file of this program; give another file name")


def _sources():
    """The files from which kernels were compiled, and those of the imported modules. Some names of
    texts are not files."""
    # Not getattr: a lazy module may import others when an attribute is read.
    modules = [vars(module).get("__file__") for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
    return {*_source.names(), *(name for name in modules if isinstance(name, str))}
