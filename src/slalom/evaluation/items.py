"""Texts to evaluate on, read from a file; lines that cannot be used are skipped with a reason.

JSON lines (`.jsonl`) or a table (`.csv`), also compressed (`.gz`). A line has `text` (for a
pair, a list of two) and may have `label`, one of the model's labels or its number, and
`rationales`, the spans people marked: [[start, end], …], for a pair [[side, start, end], …].
For the answers of language models a JSON line has `sources`, a list of documents or one text, and
may have `question` and `answer`.
"""

import csv
import gzip
import io
import json
import operator
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from slalom.classifiers.base import checked_text
from slalom.document import Span, Text
from slalom.errors import FileError, InputError

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


@dataclass(frozen=True)
class SkippedLine:
    """A line that was skipped, and why."""

    number: int
    reason: str


def read_items(path: Path, labels: Sequence[str]) -> tuple[list[Item], list[SkippedLine]]:
    """The usable lines of a file, and the skipped ones with their reasons."""
    return _read(path, lambda number, record: _item(number, record, labels))


def read_answer_items(path: Path) -> tuple[list[AnswerItem], list[SkippedLine]]:
    """The same of questions about sources; what is wrong with one is found when it is asked."""
    if ".csv" in path.suffixes:
        raise FileError(f"questions about sources come as JSON lines (.jsonl), not as {path}")
    return _read(path, _answer_item)


def _read(path: Path, made: Callable[[int, Any], Line]) -> tuple[list[Line], list[SkippedLine]]:
    items: list[Line] = []
    skipped: list[SkippedLine] = []
    for number, record in _records(path):
        try:
            items.append(made(number, record))
        except InputError as problem:
            skipped.append(SkippedLine(number, str(problem)))
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


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    """Line numbers and records; an InputError in place of a record that cannot be read."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind not in (".jsonl", ".csv"):
        raise FileError(f"cannot tell what {path} is: expected a file named .jsonl or .csv (.gz)")
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise FileError(f"cannot read {path}: {reason}") from problem
    if kind == ".csv":
        yield from _table_records(path, content)
        return
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, InputError("not valid JSON in UTF-8")


def _table_records(path: Path, content: bytes) -> Iterator[tuple[int, Any]]:
    text = io.StringIO(content.decode("utf-8-sig", errors="surrogateescape"), newline="")
    table = csv.DictReader(text, strict=True)
    try:
        columns = table.fieldnames or ()
    except csv.Error as problem:
        raise FileError(f"cannot read the first line of {path}: {problem}") from problem
    if "text" not in columns:
        names = ", ".join(columns) or "none"
        raise FileError(f"{path} has no column 'text': its columns are {names}")
    for row in _rows(table):
        if isinstance(row, InputError):
            yield table.line_num, row
            continue
        if None in row:
            yield table.line_num, InputError("has more cells than the table has columns")
            continue
        record = {name: value for name, value in row.items() if value not in (None, "")}
        if not _is_text(record):
            yield table.line_num, InputError("not in UTF-8")
            continue
        if isinstance(record.get("rationales"), str):
            try:
                record["rationales"] = json.loads(record["rationales"])
            except ValueError:
                record["rationales"] = ()
        yield table.line_num, record


def _rows(table: "csv.DictReader[str]") -> Iterator[dict[Any, Any] | InputError]:
    while True:
        try:
            yield next(table)
        except StopIteration:
            return
        except csv.Error as problem:  # a quote that is never closed, for example
            yield InputError(f"not a row of a table: {problem}")


def _is_text(record: dict[Any, Any]) -> bool:
    """Whether all cells were valid UTF-8: invalid bytes were read as lone surrogates."""
    try:
        "".join(record.values()).encode()
    except UnicodeEncodeError:
        return False
    return True


def _answer_item(number: int, record: Any) -> AnswerItem:
    if isinstance(record, InputError):
        raise record
    if not isinstance(record, dict) or "sources" not in record:
        raise InputError("has no 'sources'")
    return AnswerItem(number, record["sources"], record.get("question", ""), record.get("answer"))


def _item(number: int, record: Any, labels: Sequence[str]) -> Item:
    if isinstance(record, InputError):
        raise record
    if not isinstance(record, dict) or "text" not in record:
        raise InputError("has no 'text'")
    text = record["text"]
    text = checked_text(tuple(text) if isinstance(text, list) else text)
    spans = _spans(record.get("rationales"), text)
    return Item(number, text, _label(record.get("label"), labels), spans)


def _label(label: Any, labels: Sequence[str]) -> int | None:
    if label is None:
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
    if spans is None:
        return None
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
