"""What an experiment gives: a table with the paper's numbers beside ours, and a figure.

Knows numbers and words, nothing of models. `to_json` and `from_json` are inverse to each other.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Number:
    """One of ours, with its standard error and the paper's where there are any."""

    value: float | None
    error: float | None = None
    paper: float | str | None = None
    digits: int = 3


Cell = str | Number


@dataclass(frozen=True)
class Series:
    """Points that belong together: a line, or a cloud where `joined` is False."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    joined: bool = True
    marks: tuple[str, ...] = ()  # a word beside each point


@dataclass(frozen=True)
class Boxes:
    """Repeated measurements, one box at x = 0, 1, …"""

    label: str
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    boxes: Boxes | None = None
    log: bool = False  # the y axis


@dataclass(frozen=True)
class Map:
    """Numbers as colours, one row per name in `y_marks`."""

    title: str
    x_marks: tuple[str, ...]
    y_marks: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Table:
    """Rows under columns; what differs from the paper's set-up; what the reader should see."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    differs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    panels: tuple[Panel | Map, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Table":
        rows = tuple(
            tuple(Number(**cell) if isinstance(cell, dict) else cell for cell in row)
            for row in record["rows"]
        )
        panels = tuple(_panel(panel) for panel in record["panels"])
        words = {name: tuple(record[name]) for name in ("columns", "differs", "notes")}
        return cls(title=record["title"], rows=rows, panels=panels, **words)


def _panel(record: dict[str, Any]) -> Panel | Map:
    if "values" in record:
        marks = {name: tuple(record[name]) for name in ("x_marks", "y_marks")}
        return Map(title=record["title"], values=_rows(record["values"]), **marks)
    series = tuple(
        Series(**{name: tuple(v) if isinstance(v, list) else v for name, v in one.items()})
        for one in record["series"]
    )
    boxes = record.get("boxes")
    if boxes is not None:
        boxes = Boxes(boxes["label"], _rows(boxes["values"]))
    return Panel(**{**record, "series": series, "boxes": boxes})


def _rows(values: Any) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values)


def mean_of(
    values: Sequence[float | None], *, paper: float | str | None = None, digits: int = 3
) -> Number:
    """The mean with its standard error; values that are missing are left out."""
    found = np.array([value for value in values if value is not None and np.isfinite(value)])
    if not len(found):
        return Number(None, None, paper, digits)
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else None
    return Number(float(found.mean()), error, paper, digits)


def points(label: str, x: Any, y: Any, *, joined: bool = True) -> Series:
    return Series(label, tuple(rounded(x)), tuple(rounded(y)), joined)


def rounded(values: Any) -> list[float]:
    """Numbers short enough to be kept in a file."""
    return [float(f"{value:.5g}") for value in np.asarray(values, dtype=float).ravel()]
