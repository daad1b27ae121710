"""Answers that outlive the process: texts by key in one SQLite file, or in memory without one.

This part knows keys and texts, nothing of classifiers. Every entry is committed as it comes
(write-ahead log), so that a killed process loses nothing it has written, and several threads
and processes may share one file.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

from slalom.errors import FileError

TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID"
WAIT_FOR_OTHERS = 30.0  # seconds another process may hold the file


def key_of(*parts: str) -> str:
    """One short key for several texts, which cannot be read back from it."""
    digest = sha256()
    for part in parts:
        content = part.encode()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


class DiskCache:
    """`path=None` keeps the entries in memory, for as long as this object lives."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        try:
            self.path = None if path is None else Path(path).expanduser()
        except (RuntimeError, TypeError) as problem:
            raise FileError(f"cannot use the cache {path!r}: {problem}") from problem
        with self._open():  # fails before anything is paid for if the file cannot be used
            pass

    def __repr__(self) -> str:
        return f"DiskCache({str(self.path) if self.path else None!r})"

    def read(self, keys: Iterable[str]) -> dict[str, str]:
        """The stored answers for these keys."""
        wanted = "SELECT value FROM json_each(?)"  # values of a statement are limited in number
        with self._open() as connection:
            sql = f"SELECT key, answer FROM answers WHERE key IN ({wanted})"
            return dict(connection.execute(sql, (json.dumps(list(keys)),)))

    def write(self, key: str, answer: str) -> None:
        """Store one entry, which is in the file when this returns."""
        with self._open() as connection, connection:
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))

    def __len__(self) -> int:
        with self._open() as connection:
            return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file; the next use opens it again. Entries in memory are lost."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None or self._owner != os.getpid():
                    self._connection, self._owner = self._connect(), os.getpid()  # or after a fork
                yield self._connection
            except sqlite3.Error as problem:
                raise FileError(
                    f"cannot use the cache {self.path or 'in memory'}: {problem}; "
                    "name another file, or one that slalom made"
                ) from problem

    def _connect(self) -> sqlite3.Connection:
        name = ":memory:" if self.path is None else str(self.path)
        connection = sqlite3.connect(name, timeout=WAIT_FOR_OTHERS, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            with connection:
                connection.execute(TABLE)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]
