"""Atomic replacement of files."""

import os
import pathlib
import tempfile


def write_whole(path: pathlib.Path, text: str) -> None:
    """Writes `text` to a temporary file next to `path` and renames it, so that readers never see a
    partial file."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
