"""Files that people keep: written whole or not at all, read with a clear word on what is wrong.

Knows versioned JSON records, not what is in them.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from slalom.errors import DamageError, FileError
from slalom.temporary import temporary_file

Kept = TypeVar("Kept")
MAX_FILE = 2**30  # bytes; a device may have no end


@dataclass(frozen=True)
class Format(Generic[Kept]):
    """One kind of JSON file: how it names itself, and how its record becomes an object."""

    name: str  # as the file says it: "slalom-explanation"
    version: int  # the newest that is understood
    kind: str  # for people: "an explanation"
    parse: Callable[[dict[str, Any]], Kept]  # raises DamageError

    def stamped(self, record: dict[str, Any]) -> dict[str, Any]:
        return {"format": self.name, "version": self.version, **record}

    def read(self, path: str | os.PathLike[str]) -> Kept:
        try:
            with unless_broken(f"cannot read {path}"), Path(path).open("rb") as file:
                content = file.read(MAX_FILE + 1)
            if len(content) > MAX_FILE:
                raise FileError(f"{path} is not {self.kind} file: it is larger than 1 GB")
            record = json.loads(content)  # also as Windows may write it: UTF-16, byte order marks
        except TypeError as problem:
            raise FileError(f"cannot read {path!r}: {problem}") from problem
        except (ValueError, RecursionError) as problem:  # also a name that no file can have
            raise FileError(f"{path} is not {self.kind} file: it is not valid JSON") from problem
        return self.parsed(record, str(path))

    def parsed(self, record: object, path: str) -> Kept:
        """What a file holds, given its JSON; `path` is its name in sentences."""
        if not isinstance(record, dict) or record.get("format") != self.name:
            raise FileError(f"{path} is not {self.kind} file: expected one written by save()")
        version = record.get("version")
        if type(version) is not int or version < 1:
            raise FileError(f"{path} is {self.kind} file, but damaged: version {version!r}")
        if version > self.version:
            raise FileError(
                f"{path} has format version {version!r}, this slalom reads up to {self.version}: "
                "upgrade with  pip install -U slalom-xai"
            )
        try:
            return self.parse(record)
        except DamageError as problem:
            raise FileError(f"{path} is {self.kind} file, but damaged: {problem}") from problem


@contextmanager
def unless_broken(what: str, *others: type[Exception], more: str = "") -> Iterator[None]:
    """What the system, or one of these errors, says of a file: a FileError that begins so."""
    errors: tuple[type[Exception], ...] = (OSError, *others)
    try:
        yield
    except errors as problem:
        why = getattr(problem, "strerror", None) or problem
        raise FileError(f"{what}: {why}{more}") from problem


def write_json(path: str | os.PathLike[str], record: dict[str, Any]) -> None:
    write_whole(path, json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Replace a file by this content in one step; a device or a pipe is written to as it is."""
    with unless_broken(f"cannot write {path}", TypeError, ValueError):  # no file has such a name
        data = content.encode() if isinstance(content, str) else content
        place = resolved(path)
        if is_device(place):
            place.write_bytes(data)
        else:
            _replace(place, lambda file: _all(file, data))


def write_by(
    path: Path, fill: Callable[[IO[bytes]], None], *, temporary: Path | None = None
) -> None:
    """As `write_whole`, piece by piece; until it is complete it lies in the folder `temporary`."""
    with unless_broken(f"cannot write {path}", ValueError):
        _replace(resolved(path), fill, temporary)


def resolved(path: str | os.PathLike[str]) -> Path:
    """Where it leads; a link to itself stays one, where `Path.resolve` raises a RuntimeError."""
    return Path(os.path.realpath(path))


def is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _all(file: IO[bytes], data: bytes) -> None:
    file.write(data)


def _replace(path: Path, fill: Callable[[IO[bytes]], None], folder: Path | None = None) -> None:
    """A file that is there as a whole or not at all, also after a power cut."""
    with temporary_file(folder or path.parent) as (file, temporary):
        fill(file)
        file.flush()
        os.fsync(file.fileno())
        file.close()
        temporary.chmod(_rights(path))  # temporary files are private, results are not
        temporary.replace(path)


def _rights(path: Path) -> int:
    """Those of the file that is replaced, else those that new files get here."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
