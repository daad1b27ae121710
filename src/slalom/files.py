"""Writing a file whole or not at all: nothing half-written is left, nothing of the user's lost."""

import os
import tempfile
from pathlib import Path

from slalom.errors import FileError


def write_whole(path: str | os.PathLike[str], content: str) -> None:
    """Replace a file by this text in one step; a device or a pipe is written to as it is."""
    place = Path(path).resolve()
    try:
        if is_device(place):
            place.write_text(content, encoding="utf-8")
        else:
            _replace(place, content)
    except OSError as problem:
        raise FileError(f"cannot write {path}: {problem.strerror or problem}") from problem


def is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _replace(path: Path, content: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)  # temporary files are private, results are not
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
