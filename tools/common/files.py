"""Files that are replaced whole or not at all."""

import os
import pathlib
import tempfile


def write_whole(path: pathlib.Path, text: str) -> None:
    """Writes `text` beside `path` and moves it there, so that a reader never sees half of it."""
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
