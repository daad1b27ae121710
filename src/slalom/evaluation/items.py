"""Texts to evaluate on, read from a file; lines that cannot be used are skipped with a reason.

A line of a file that records.py reads has `text` (for a pair, a list of two) and may have `label`,
one of the model's labels or its number, and `rationales`, the spans people marked:
[[start, end], …], for a pair [[side, start, end], …].
For the answers of language models a JSON line has `sources`, a list of documents or one text, and
may have `question`, `answer` and `by`.
"""

import json
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from slalom.classifiers.base import checked_text
from slalom.document import Span, Text
from slalom.errors import FileError, InputError
from slalom.records import columns_of, kind_of, read_records

Line = TypeVar("Line")


@dataclass(frozen=True)
class Item:
    """One text to explain; `number` is its line in the file."""

    number: int
    text: Text
    label: int | None = None
    rationales: tuple[Span, ...] | None = None


@dataclass(frozen=True)
class AnswerItem:
    """One question about sources."""

    number: int
    sources: Any  # as slalom.attribute takes them
    question: Any = ""
    answer: Any = None
    by: Any = None


@dataclass(frozen=True)
class SkippedLine:
    """A line that was skipped, and why."""

    number: int
    reason: str


def read_items(path: Path, labels: Sequence[str]) -> tuple[list[Item], list[SkippedLine]]:
    """The usable lines of a file, and the skipped ones with their reasons."""
    columns = columns_of(path)
    if columns and "text" not in columns:
        names = ", ".join(columns)
        raise FileError(f"{path} has no column 'text': its columns are {names}")
    return _read(path, lambda number, cells: _item(number, cells, labels))


def read_answer_items(path: Path) -> tuple[list[AnswerItem], list[SkippedLine]]:
    """The same for questions about sources, which are checked only when they are used."""
    if kind_of(path) != ".jsonl":
        raise FileError(f"questions about sources must be JSON lines (.jsonl), not {path}")
    return _read(path, _answer_item)


def _read(
    path: Path, made: Callable[[int, dict[str, Any]], Line]
) -> tuple[list[Line], list[SkippedLine]]:
    items: list[Line] = []
    skipped: list[SkippedLine] = []
    for record in read_records(path):
        try:
            if record.problem is not None:
                raise InputError(record.problem)
            items.append(made(record.line, record.cells))
        except InputError as problem:
            skipped.append(SkippedLine(record.line, str(problem)))
    if not items:
        reason = f"line {skipped[0].number}: {skipped[0].reason}" if skipped else "it is empty"
        raise FileError(f"{path} has no line that can be used: {reason}")
    return items, skipped


def summary_of(skipped: Sequence[SkippedLine]) -> list[str]:
    """One sentence per reason, with the lines it concerns."""
    by_reason: dict[str, list[int]] = {}
    for line in skipped:
        by_reason.setdefault(line.reason, []).append(line.number)
    sentences = []
    for reason, lines in by_reason.items():
        shown = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
        what = f"line {shown}" if len(lines) == 1 else f"{len(lines)} lines ({shown})"
        sentences.append(f"left out {what}: {reason}")
    return sentences


def _answer_item(number: int, cells: dict[str, Any]) -> AnswerItem:
    if "sources" not in cells:
        raise InputError("has no 'sources'")
    question, answer, by = (cells.get(name) for name in ("question", "answer", "by"))
    return AnswerItem(number, cells["sources"], question or "", answer, by)


def _item(number: int, cells: dict[str, Any], labels: Sequence[str]) -> Item:
    text = cells.get("text")
    if text is None:
        raise InputError("has no 'text'")
    text = checked_text(tuple(text) if isinstance(text, list) else text)
    spans = _spans(cells.get("rationales"), text)
    return Item(number, text, _label(cells.get("label"), labels), spans)


def _label(label: Any, labels: Sequence[str]) -> int | None:
    if label is None or label == "":  # a cell of a table
        return None
    if str(label) in labels:
        return list(labels).index(str(label))
    number = str(label).removesuffix(".0")  # what pandas makes of a column with gaps
    if not isinstance(label, bool) and number.isdecimal() and int(number) < len(labels):
        return int(number)
    raise InputError(
        f"the label {label!r} is not one of the model's: {', '.join(labels)} (or their numbers)"
    )


def _spans(spans: Any, text: Text) -> tuple[Span, ...] | None:
    if spans is None or spans == "":
        return None
    if isinstance(spans, str):
        with suppress(ValueError):
            spans = json.loads(spans)
    sides = (text,) if isinstance(text, str) else text
    form = "start, end" if len(sides) == 1 else "side, start, end"
    try:
        read = tuple(tuple(operator.index(at) for at in span) for span in spans)
    except TypeError as problem:
        raise InputError(f"rationales must be spans: [[{form}], …]") from problem
    if not read or any(len(span) != 1 + len(sides) for span in read):
        raise InputError(f"rationales must be spans: [[{form}], …]")
    if not all(_is_inside(span, sides) for span in read):
        raise InputError("rationales must lie in the text: 0 ≤ start < end ≤ its length")
    return read


def _is_inside(span: Span, sides: Sequence[str]) -> bool:
    side, start, end = span if len(sides) > 1 else (0, *span)
    return 0 <= side < len(sides) and 0 <= start < end <= len(sides[side])
