"""The input: which files, how many rows, where to cut them into shards.

Every file is read once before the work begins, so that missing columns, broken lines and the number
of rows are known in time, and a later run notices if the input changed. A *shard* is a range of
rows of one file that becomes one Parquet file; its number depends only on the input and the size.
"""

import glob
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from slalom.errors import FileError, Setting, counted
from slalom.files import resolved
from slalom.records import (
    KINDS,
    Record,
    RowStart,
    columns_of,
    digest_of,
    is_compressed,
    problem_of,
    read_records,
)

MAX_MARKS = 256  # positions remembered per file; with more, every second one is dropped
MAX_STEP = 512  # rows between two positions, the only places where shards are cut
MAX_NAMED = 5  # broken lines that are named
NUMBER_KINDS = {bool: "bool", int: "int", float: "float", str: "string"}


@dataclass(frozen=True)
class Shard:
    """Rows of one input file that become one output file."""

    number: int
    path: str
    start: RowStart
    n_rows: int

    @property
    def name(self) -> str:
        return f"part-{self.number:06d}"

    def records(self) -> Iterator[Record]:
        return islice(read_records(Path(self.path), self.start), self.n_rows)


@dataclass(frozen=True)
class Indexed:
    """One input file, read through once."""

    path: str
    sha256: str
    n_rows: int
    step: int  # rows between two marks
    marks: tuple[RowStart, ...]
    columns: dict[str, str]  # name → kind of its cells: bool, int, float, string or json
    broken: tuple[tuple[int, str], ...]  # the first few: line and reason
    n_broken: int


def find_files(given: str, output: Path) -> list[Path]:
    """A file, the files of a folder, or those that match a pattern; sorted by name.

    Files in the output folder are not input.
    """
    path = Path(given)
    if not _is_utf8(path):
        raise FileError(f"the name of {given!r} is not in UTF-8: rename it")
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [inside for inside in sorted(path.rglob("*")) if _is_input(inside, path)]
        missing = f"it holds no file named {', '.join(KINDS)} (the first two also .gz)"
    else:
        names = glob.glob(given, recursive=True)  # noqa: PTH207 (a pattern may be absolute)
        found = sorted(Path(name) for name in names if Path(name).is_file())
        missing = "nothing matches" if glob.has_magic(given) else "no such file or folder"
    if not found:
        raise FileError(f"cannot read {given}: {missing}")
    own = resolved(output)
    outside = [path for path in found if own not in path.resolve().parents]
    if not outside:
        raise FileError(
            f"all files of {given} lie in the output folder {output}, where nothing is read: "
            "name another folder for the output"
        )
    for path in outside:
        if not _is_utf8(path):
            raise FileError(f"the name of {str(path)!r} is not in UTF-8: rename it")
    return outside


def folder_of(files: Sequence["Indexed"]) -> Path:
    """The common folder of all files, from which their paths are given."""
    return Path(os.path.commonpath([Path(file.path).parent for file in files]))


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_input(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    plain = path.with_suffix("") if is_compressed(path) else path
    return path.is_file() and not hidden and plain.suffix.lower() in KINDS


def index_file(path: Path, text_column: str, id_column: str | None) -> Indexed:
    """Read a whole file: its rows (there may be none), columns, broken lines, fingerprint."""
    table = columns_of(path)
    if table:
        _check_columns(path, table, text_column, id_column)
    marks: list[RowStart] = []
    step, n_rows = 1, 0
    columns: dict[str, str] = {}
    broken: list[tuple[int, str]] = []
    n_broken = 0
    for record in read_records(path):
        if n_rows % step == 0:
            marks.append(record.place)
            if len(marks) > MAX_MARKS and 2 * step <= MAX_STEP:
                marks, step = marks[::2], 2 * step
        n_rows += 1
        if problem := problem_of(record, text_column):
            n_broken += 1
            broken += [(record.line, problem)][: MAX_NAMED - len(broken)]
        for name, cell in record.cells.items():
            columns[name] = _common(columns.get(name), cell)
    if not table and columns:  # JSON lines have the columns that their rows have
        _check_columns(path, tuple(columns), text_column, id_column)
    names = {name: columns.get(name) or "string" for name in (table or columns)}
    digest = digest_of(path)
    return Indexed(str(path), digest, n_rows, step, tuple(marks), names, tuple(broken), n_broken)


def shards_of(files: Sequence[Indexed], rows_per_file: int) -> list[Shard]:
    """Ranges of about this many rows, none across two files."""
    shards: list[Shard] = []
    for file in files:
        stride = max(1, rows_per_file // file.step)
        for at in range(0, len(file.marks), stride):
            start = file.marks[at]
            n_rows = min(stride * file.step, file.n_rows - start.row)
            shards.append(Shard(len(shards), file.path, start, n_rows))
    return shards


def columns_together(files: Sequence[Indexed]) -> dict[str, str]:
    """The columns of all files, each of a kind that fits all its cells."""
    together: dict[str, str] = {}
    for file in files:
        for name, kind in file.columns.items():
            together[name] = _wider(together.get(name), kind)
    return together


def broken_lines(files: Sequence[Indexed]) -> list[str]:
    """One sentence per file with lines that cannot be used."""
    sentences = []
    for file in files:
        if file.n_broken:
            named = ", ".join(f"line {line} ({reason})" for line, reason in file.broken)
            more = ", …" if file.n_broken > len(file.broken) else ""
            what = counted(file.n_broken, "line")
            sentences.append(f"{what} of {file.path} cannot be explained: {named}{more}")
    return sentences


def cell_as(kind: str, cell: Any) -> Any:
    """A cell as its column stores it: lists and the like as JSON, dates as text."""
    if cell is None or kind in ("bool", "int"):
        return cell
    if kind == "float":
        return float(cell)
    if isinstance(cell, bool | int | float | list | dict):
        return json.dumps(cell, ensure_ascii=False, default=str)
    return str(cell)


def _check_columns(
    path: Path, columns: Sequence[str], text_column: str, id_column: str | None
) -> None:
    if (
        len(columns) == 1
        and any(sign in columns[0] for sign in ";\t|")
        and text_column not in columns
    ):
        raise FileError(f"{path} has one column, {columns[0]!r}: put commas between its cells")
    for option, name in (("text_column", text_column), ("id_column", id_column)):
        if name is not None and name not in columns:
            raise FileError(
                f"{path} has no column {name!r}: its columns are {', '.join(columns)}; name it by ",
                Setting(option),
            )


def _common(before: str | None, cell: Any) -> str:
    if cell is None:
        return before or ""
    kind = NUMBER_KINDS.get(type(cell), "json")
    if kind == "int" and not -(2**63) <= cell < 2**63:
        kind = "json"
    return _wider(before, kind)


def _wider(before: str | None, kind: str) -> str:
    if not before or before == kind:
        return kind
    if not kind:
        return before
    return "float" if {before, kind} == {"int", "float"} else "json"
