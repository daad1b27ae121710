"""Rows of JSON lines, CSV and Parquet files, one after another, from any place in the file.

Knows files and rows, not what is done with them. A row that cannot be read keeps its place and
says why. Memory holds one row, or one small batch of a Parquet file, at a time.
"""

import csv
import gzip
import hashlib
import json
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from slalom.errors import FileError
from slalom.files import unless_broken
from slalom.tables import reading

KINDS = (".jsonl", ".csv", ".parquet")
BATCH = 256  # rows of a Parquet file read together
MAX_CELL = 2**24  # characters of a cell of a CSV file: a quote that is never closed ends there
MAX_LINE = 2**24  # bytes of a row of JSON lines; of a line of a CSV file four times as many
MAX_ENTRIES = 10**6  # numbers, texts, lists and objects in a row of JSON lines


@dataclass(frozen=True, slots=True)
class RowStart:
    """Where a row begins: how many rows, lines and bytes lie before it."""

    row: int = 0
    line: int = 0
    byte: int = 0


@dataclass(frozen=True)
class Record:
    """One row: its cells, or why there are none."""

    place: RowStart
    line: int  # in the file, from 1; of a Parquet file, the row
    cells: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


def kind_of(path: Path) -> str:
    """The format by the name, in capitals or not; `.gz` may follow."""
    kind = Path(path.stem).suffix.lower() if is_compressed(path) else path.suffix.lower()
    if kind not in KINDS or (kind == ".parquet" and is_compressed(path)):
        raise FileError(
            f"cannot tell what {path} is: expected .jsonl or .csv (also .gz), or .parquet"
        )
    return kind


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def problem_of(record: Record, text_column: str) -> str | None:
    """Why a row has no text to explain; None: it has one."""
    if record.problem is not None:
        return record.problem
    cell = record.cells.get(text_column)
    if cell is None:
        return f"has no {text_column!r}"
    if isinstance(cell, str):
        return None if cell.strip() else f"{text_column!r} is empty"
    if not (isinstance(cell, list) and len(cell) == 2 and all(isinstance(c, str) for c in cell)):
        return f"{text_column!r} is neither a text nor a pair of texts"
    return (
        None if any(side.strip() for side in cell) else f"{text_column!r} is a pair of empty texts"
    )


def columns_of(path: Path) -> tuple[str, ...]:
    """The columns a table has; those of JSON lines are only known row by row: ()."""
    with unless_broken(f"cannot read {path}"):
        match kind_of(path):
            case ".csv":
                with _opened(path) as file:
                    return _header(path, file)
            case ".parquet":
                return _distinct(path, parquet_file(path).schema_arrow.names)
            case _:
                return ()


def read_records(path: Path, start: RowStart = RowStart()) -> Iterator[Record]:  # noqa: B008 (frozen)
    """Every row from a place on."""
    kind = kind_of(path)
    with unless_broken(f"cannot read {path}", EOFError, zlib.error):
        if kind == ".parquet":
            with reading(path):
                yield from _parquet_rows(parquet_file(path), start)
            return
        with _opened(path) as file:
            if kind == ".csv":
                yield from _csv_records(path, file, start)
            else:
                yield from _json_records(file, start)


def _opened(path: Path) -> IO[bytes]:
    """Bytes as they were before compression; seeking in a compressed file reads up to there."""
    return gzip.open(path) if is_compressed(path) else path.open("rb")  # type: ignore[return-value]


def _json_records(file: IO[bytes], start: RowStart) -> Iterator[Record]:
    file.seek(start.byte)
    row, line, byte = start.row, start.line, start.byte
    while True:
        content, n_bytes = _line(file, MAX_LINE)
        if not n_bytes:
            return
        place = RowStart(row, line, byte)
        line, byte = line + 1, byte + n_bytes
        if not content.strip():
            continue
        row += 1
        if n_bytes > MAX_LINE:
            yield Record(place, line, problem=f"has {n_bytes} bytes, {MAX_LINE} at most are read")
            continue
        if sum(map(content.count, (b",", b"[", b"{"))) > MAX_ENTRIES:
            yield Record(place, line, problem=f"has more than {MAX_ENTRIES} entries")
            continue
        try:
            cells = json.loads(content.decode("utf-8-sig" if line == 1 else "utf-8"))
        except (ValueError, RecursionError):
            yield Record(place, line, problem="not valid JSON in UTF-8")
            continue
        if not isinstance(cells, dict):
            yield Record(place, line, problem="not a JSON object: {…}")
        elif b"\\u" in content and not _is_writable(cells):
            yield Record(place, line, problem="holds half a character, such as \\ud800")
        else:
            yield Record(place, line, cells)


def _line(file: IO[bytes], most: int) -> tuple[bytes, int]:
    """The next line and its length; of one that is longer than `most`, the beginning."""
    content = file.readline(most + 1)
    n_bytes, part = len(content), content
    while len(part) == most + 1 and not part.endswith(b"\n"):
        part = file.readline(most + 1)
        n_bytes += len(part)
    return content, n_bytes


def _is_writable(cells: dict[str, Any]) -> bool:
    """JSON may spell half of a character, which no file can hold."""
    try:
        json.dumps(cells, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


class _Lines:
    """Lines for a CSV reader, which says itself when a row ends; counts what it was given."""

    def __init__(self, file: IO[bytes], start: RowStart) -> None:
        self.file, self.line, self.byte = file, start.line, start.byte
        self.given: list[bytes] = []  # of the row that is read, MAX_CELL characters about
        self.returned: deque[bytes] = deque()

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if self.returned:
            content = self.returned.popleft()
            n_bytes = len(content)
        else:
            content, n_bytes = _line(self.file, 4 * MAX_LINE)
        if not n_bytes:
            raise StopIteration
        self.given.append(content)
        self.line, self.byte = self.line + 1, self.byte + n_bytes
        if n_bytes > 4 * MAX_LINE:
            raise csv.Error("field limit")
        return content.decode("utf-8", errors="surrogateescape")

    def take_back(self) -> None:
        """All but the row's first line will be given again; a compressed file cannot go back."""
        after = self.given[1:]
        self.returned.extendleft(reversed(after))
        self.line, self.byte = self.line - len(after), self.byte - sum(map(len, after))


def _header(path: Path, file: IO[bytes]) -> tuple[str, ...]:
    """The names of the columns; (): the file has no line at all."""
    first = file.readline()
    if not first:
        return ()
    try:
        names = next(csv.reader([first.decode("utf-8-sig")], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as problem:
        raise FileError(f"cannot read the columns of {path}: {problem}") from problem
    if not names:
        raise FileError(f"the first line of {path} is blank: it must name the columns")
    return _distinct(path, names)


def _distinct(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise FileError(f"{path} has two columns with the same name: {', '.join(names)}")
    return tuple(names)


def _csv_records(path: Path, file: IO[bytes], start: RowStart) -> Iterator[Record]:
    names = _header(path, file)
    begin = start if start.byte else RowStart(0, 1, file.tell())
    file.seek(begin.byte)
    lines = _Lines(file, begin)
    table = csv.reader(lines, strict=True)
    row = begin.row
    while True:
        place, line = RowStart(row, lines.line, lines.byte), lines.line + 1
        lines.given.clear()
        try:
            cells = _next_row(table)
        except StopIteration:
            return
        except csv.Error as problem:
            row += 1
            reason = _in_words(problem, lines.given)
            yield Record(place, line, problem=f"not a row of a table: {reason}")
            lines.take_back()  # what an open quote has swallowed may be rows of their own
            table = csv.reader(lines, strict=True)
            continue
        if cells:  # not a blank line
            row += 1
            yield _table_record(place, line, names, cells)


def _next_row(table: Iterator[list[str]]) -> list[str]:
    """The limit on cells is one for the whole process: it is left as it was."""
    before = csv.field_size_limit(MAX_CELL)
    try:
        return next(table)
    finally:
        csv.field_size_limit(before)


def _in_words(problem: csv.Error, given: Sequence[bytes]) -> str:
    if "field limit" in str(problem) and b'"' not in given[0]:
        return f"a cell has more than {MAX_CELL} characters"
    if "end of data" in str(problem) or "field limit" in str(problem) or len(given) > 1:
        return "a quote is opened and not closed"
    if "expected after" in str(problem):
        return "a cell goes on after its closing quote (inside a cell, quotes are written twice)"
    return str(problem)


def _table_record(place: RowStart, line: int, names: Sequence[str], cells: Sequence[str]) -> Record:
    if len(cells) > len(names):
        problem = f"has {len(cells)} cells, the table has {len(names)} columns"
        return Record(place, line, problem=problem)
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return Record(place, line, problem="not in UTF-8")
    return Record(place, line, dict(zip(names, cells, strict=False)))


def parquet_file(path: Path) -> Any:
    """An open Parquet file, or an error that names it."""
    with reading(path):
        from pyarrow.parquet import ParquetFile

        return ParquetFile(path)


def _parquet_rows(file: Any, start: RowStart) -> Iterator[Record]:
    before = 0
    for group in range(file.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if before + n_rows > start.row:
            row = before
            for batch in file.iter_batches(BATCH, row_groups=[group]):
                skipped = min(batch.num_rows, max(0, start.row - row))
                row += skipped
                for cells in _rows_of(batch.slice(skipped)):
                    problem = "not in UTF-8" if cells is None else None
                    yield Record(RowStart(row, row, 0), row + 1, cells or {}, problem)
                    row += 1
        before += n_rows


def _rows_of(batch: Any) -> list[dict[str, Any] | None]:
    """The cells of each row; None: they are called texts and are none."""
    try:
        return list(batch.to_pylist())
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return [None]
        return [row for at in range(batch.num_rows) for row in _rows_of(batch.slice(at, 1))]


def digest_of(path: Path) -> str:
    """Of the file as it lies on disk."""
    with unless_broken(f"cannot read {path}"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
