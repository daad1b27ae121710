"""One row per document, method and budget; means with confidence intervals; storage of rows.

A folder of results survives interrupts and full disks; the same command resumes it:

    settings.json   what all rows share; a folder with other settings is refused
    rows.jsonl      one line per finished row, written at once
    table.parquet   the same as a table (needs pyarrow)
    report.md, report.html   see report.py
"""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.errors import DamageError, FileError, needing
from slalom.files import unless_broken, write_whole
from slalom.metrics.table import METRICS
from slalom.schema import plain, read_as

N_RESAMPLES = 2000
COVERAGE = 0.95
GRID = tuple(step / 20 for step in range(1, 21))  # shares of the units at which curves are kept
COSTS = ("n_queries", "n_tokens", "seconds")
Key = tuple[int, str, int | None]  # document, method, budget


@dataclass(frozen=True)
class Row:
    """The result of one method on one document at one budget, and its cost."""

    document: int
    method: str
    budget: int | None  # None: the method's own choice
    values: dict[str, float | None] = field(default_factory=dict)  # None: does not apply
    weights: dict[str, float] = field(default_factory=dict)  # in means over documents; else 1
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)  # probabilities on GRID
    correct: bool | None = None  # whether the classifier is right; None: unknown
    n_units: int = 0
    n_queries: int = 0
    n_tokens: int = 0
    seconds: float = 0.0
    r2: float | None = None
    problem: str | None = None  # why there are no values

    @property
    def key(self) -> Key:
        return self.document, self.method, self.budget


@dataclass(frozen=True)
class Mean:
    """A mean over documents with its bootstrap interval."""

    value: float
    low: float
    high: float
    n_documents: int

    def __str__(self) -> str:
        if self.n_documents == 1:
            return _short(self.value)
        width = max(self.high - self.value, self.value - self.low)
        return f"{_short(self.value)} ±{_short(width)}"


def mean_of(rows: Sequence[Row], name: str) -> Mean | None:
    """The weighted mean of the known numbers, with a bootstrap interval over documents."""
    known = [
        (value, row.weights.get(name, 1.0))
        for row in rows
        if (value := row.values.get(name)) is not None and np.isfinite(value)
    ]
    values, weights = np.array(known, dtype=np.float64).reshape(-1, 2).T
    if not weights.sum() > 0:
        return None
    drawn = np.random.default_rng(0).integers(0, len(values), size=(N_RESAMPLES, len(values)))
    total = weights[drawn].sum(axis=1)
    means = (values * weights)[drawn].sum(axis=1) / np.where(total > 0, total, 1.0)
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    mean = float(values @ weights / weights.sum())
    return Mean(mean, float(low), float(high), len(values))


def mean_curve(rows: Sequence[Row], name: str) -> FloatArray | None:
    """The mean over documents of a curve, on GRID."""
    known = [row.curves[name] for row in rows if name in row.curves]
    return np.mean(known, axis=0) if known else None


def groups(rows: Iterable[Row]) -> dict[tuple[str, int | None], list[Row]]:
    """Rows by method and budget, in the order in which they first come."""
    found: dict[tuple[str, int | None], list[Row]] = {}
    for row in rows:
        found.setdefault((row.method, row.budget), []).append(row)
    return found


def markdown(rows: Sequence[Row], metrics: Sequence[str]) -> str:
    """A table of quality and cost with one line per method and budget."""
    heads, lines = table(rows, metrics)
    bars = ["| " + " | ".join(cells) + " |" for cells in (heads, *lines)]
    return "\n".join([bars[0], "|" + "---|" * len(heads), *bars[1:]])


def table(rows: Sequence[Row], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells, one line per method and budget."""
    lines = []
    for (method, budget), members in groups(rows).items():
        done = [row for row in members if row.problem is None]
        means = [mean_of(done, name) for name in metrics]
        cost = [np.mean([getattr(row, name) for row in done]) if done else 0.0 for name in COSTS]
        cells = [
            method,
            "auto" if budget is None else str(budget),
            *("–" if mean is None else str(mean) for mean in means),
            f"{cost[0]:.0f}",
            f"{cost[1]:.0f}",
            f"{cost[2]:.2f}",
            f"{len(done)} of {len(members)}",
        ]
        lines.append(cells)
    titles = [METRICS[name].title if name in METRICS else name for name in metrics]
    return ["method", "budget", *titles, "queries", "tokens", "seconds", "documents"], lines


def _short(number: float) -> str:
    return f"{number:.3f}" if abs(number) < 100 else f"{number:.3g}"


class Store:
    """Rows on disk, including those of earlier runs."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        with unless_broken(f"cannot write to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            self._check_settings(settings)
            self._rows = {row.key: row for row in self._finished()}

    @property
    def rows(self) -> list[Row]:
        """The latest row for each document, method and budget."""
        return list(self._rows.values())

    def add(self, row: Row) -> None:
        """Store a row, which is on disk when this returns."""
        kept = f"; the {len(self._rows)} finished rows are kept: repeat the command to continue"
        with (
            unless_broken(f"cannot write to {self.folder}", more=kept),
            (self.folder / "rows.jsonl").open("a", encoding="utf-8") as lines,
        ):
            lines.write(json.dumps(plain(row), allow_nan=False) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        self._rows[row.key] = row

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a report completely or not at all."""
        path = self.folder / name
        write_whole(path, content)
        return path

    def _check_settings(self, settings: dict[str, Any]) -> None:
        """Write settings to a new folder; refuse a folder with other settings."""
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
        """Rows of earlier runs; a truncated last line is dropped, a damaged line skipped."""
        path = self.folder / "rows.jsonl"
        if not path.exists():
            return []
        *lines, cut_off = path.read_bytes().split(b"\n")
        if cut_off:
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size - len(cut_off))
        rows = []
        for line in lines:
            with suppress(ValueError, DamageError):
                rows.append(read_as(Row, json.loads(line)))
        return rows


def parquet(rows: Sequence[Row], metrics: Sequence[str]) -> bytes:
    """Documents × methods × budgets as one flat table."""
    with needing("pyarrow", "corpus"):
        import pyarrow as arrow
        from pyarrow import parquet as files
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
