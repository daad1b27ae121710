"""Files and folders for the moment, gone with the program that made them.

One that is killed leaves them behind: whoever makes the next one in the same place clears them
away. A lock says which are in use, and goes with the process that holds it, however that ends.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import time
from typing import IO, Any

PREFIX, SUFFIX = "slalom-", ".part"
LOCK = "lock"  # the file of a folder that is locked while the folder is in use
MIN_AGE = 60.0  # seconds: what is younger may be about to be locked


def locked(file: IO[Any]) -> bool:
    """Whether the file is now this process's; True as well where the system has no such locks.

    An OSError where the file system has none.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Where the system has such folders, for as long as this is open."""
    _clear_folders(Path(tempfile.gettempdir()))
    folder, maker = Path(tempfile.mkdtemp(prefix=PREFIX)), os.getpid()
    try:
        with (folder / LOCK).open("wb") as lock:
            with suppress(OSError):  # a file system may have no locks
                locked(lock)
            yield folder
    finally:
        if os.getpid() == maker:  # a forked process ends without it
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file in this folder; whoever wants to keep it gives it another name."""
    _clear_files(folder)
    handle, name = tempfile.mkstemp(prefix=f".{PREFIX}", suffix=SUFFIX, dir=folder)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            with suppress(OSError):
                locked(file)
            yield file, path
    finally:
        path.unlink(missing_ok=True)


@cache
def _clear_files(folder: Path) -> None:
    """Once per process: a folder may hold a million files."""
    for path in _own(folder, f".{PREFIX}*{SUFFIX}"):
        with suppress(OSError), path.open("rb") as file:
            if locked(file):
                path.unlink()


@cache
def _clear_folders(place: Path) -> None:
    for folder in _own(place, f"{PREFIX}*"):
        with suppress(OSError), (folder / LOCK).open("rb") as file:
            if locked(file):
                shutil.rmtree(folder)


def _own(place: Path, pattern: str) -> Iterator[Path]:
    """What this user made there, not just now; nothing where a lock could not be seen."""
    if not hasattr(os, "getuid"):
        return
    for path in place.glob(pattern):
        with suppress(OSError):
            state = path.lstat()
            if state.st_uid == os.getuid() and time() - state.st_mtime > MIN_AGE:
                yield path
