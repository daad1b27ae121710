"""A folder of results that survives interrupts and full disks; the same command resumes it.

settings.json   what every row has in common; a folder with other settings is refused
rows.jsonl      one line per finished row, written as soon as it is there
table.parquet   the same as a table (needs pyarrow)
report.md, report.html   see report.py
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from slalom.errors import FileError, MissingExtraError
from slalom.evaluation.rows import COSTS, Row
from slalom.files import write_whole


class Store:
    """Rows on disk; opening one finds what earlier runs have finished."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._check_settings(settings)
            self._rows = {row.key: row for row in self._finished()}
        except OSError as problem:
            raise FileError(f"cannot write to {folder}: {problem.strerror or problem}") from problem

    @property
    def rows(self) -> list[Row]:
        """One per document, method and budget: the last that was made."""
        return list(self._rows.values())

    def add(self, row: Row) -> None:
        """Keep a row: once this returns it is on disk."""
        try:
            with (self.folder / "rows.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row.to_json(), allow_nan=False) + "\n")
                lines.flush()
                os.fsync(lines.fileno())
        except OSError as problem:
            raise FileError(
                f"cannot write to {self.folder}: {problem.strerror or problem}; the "
                f"{len(self._rows)} finished rows are kept, the same command goes on from there"
            ) from problem
        self._rows[row.key] = row

    def write(self, name: str, content: str | bytes) -> Path:
        """A report, complete or not there at all."""
        path = self.folder / name
        write_whole(path, content)
        return path

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Write them to a new folder; refuse a folder that was made with others."""
        path = self.folder / "settings.json"
        if not path.exists():
            self.write(path.name, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = None
        if not isinstance(before, dict):
            raise FileError(f"{path} is damaged: name another folder, or delete this one")
        other = [n for n in before | settings if before.get(n) != settings.get(n)]
        if other:
            raise FileError(
                f"{self.folder} holds an evaluation with another {', '.join(other)}: "
                "name another folder, or delete this one"
            )

    def _finished(self) -> list[Row]:
        """Rows of earlier runs; a last line that was cut off is dropped, a damaged one skipped."""
        path = self.folder / "rows.jsonl"
        if not path.exists():
            return []
        *lines, cut_off = path.read_bytes().split(b"\n")
        if cut_off:
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size - len(cut_off))
        rows = []
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                rows.append(Row.from_json(json.loads(line)))
        return rows


def parquet(rows: Sequence[Row], metrics: Sequence[str]) -> bytes:
    """Documents × methods × budgets as one flat table."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet as files
    except ImportError as problem:
        raise MissingExtraError("pyarrow", "corpus") from problem
    plain = ("document", "method", "budget", "n_units", *COSTS, "r2", "correct", "problem")
    columns = {name: [getattr(row, name) for row in rows] for name in plain}
    columns |= {name: [row.values.get(name) for row in rows] for name in metrics}
    kinds = {"method": arrow.string(), "problem": arrow.string(), "correct": arrow.bool_()}
    numbers = {name: arrow.int64() for name in ("document", "budget", "n_units", *COSTS[:2])}
    typed = {
        name: arrow.array(column, type={**kinds, **numbers}.get(name, arrow.float64()))
        for name, column in columns.items()
    }
    sink = arrow.BufferOutputStream()
    files.write_table(arrow.table(typed), sink)
    return bytes(sink.getvalue())
