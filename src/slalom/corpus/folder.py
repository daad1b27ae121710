"""The folder of a run, consistent whoever is killed, and the columns of its files.

    OUTPUT/part-000000.parquet   rows of documents, one file per finished shard
    OUTPUT/run.json              settings that all rows share; another run is refused
    OUTPUT/.slalom/pieces/       finished parts of unfinished shards: no query is made twice
    OUTPUT/.slalom/words/        sums per word, one file per shard

Every file is written under a temporary name and then moved, so that a file that exists is complete.
Two workers on one shard write the same content; the later one replaces the earlier. A row of the
output holds the place of its row in the input, the other columns of that row, and the explanation.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from slalom.classifiers.base import checked_text
from slalom.corpus.plan import cell_as
from slalom.document import Text
from slalom.errors import FileError, InputError
from slalom.explanation import Explanation
from slalom.files import unless_broken, write_by, write_json
from slalom.records import Record, problem_of
from slalom.tables import Failed, arrow, document_row, document_schema
from slalom.temporary import PREFIX, SUFFIX, locked

RUN = "run.json"
FORMAT, VERSION = "slalom-corpus", 1


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run are; knows their names, not their content."""

    path: Path

    @property
    def hidden(self) -> Path:
        return self.path / ".slalom"

    def shard(self, name: str) -> Path:
        return self.path / f"{name}.parquet"

    def words(self, name: str) -> Path:
        return self.hidden / "words" / f"{name}.parquet"

    def pieces(self, name: str) -> Path:
        return self.hidden / "pieces" / name

    def finished(self) -> set[str]:
        """Names of the finished shards."""
        return {path.stem for path in self.path.glob("part-*.parquet")}

    def holds_rows(self) -> bool:
        """Whether anything was explained here."""
        return bool(self.finished()) or any((self.hidden / "pieces").glob("*/*.arrow"))

    def finished_pieces(self, name: str) -> list[tuple[Path, int]]:
        """The pieces from the shard's beginning without a gap, each with its number of rows."""
        folder, found, begin = self.pieces(name), [], 0
        lengths: dict[int, int] = {}
        for path in folder.glob("[0-9]*-*.arrow") if folder.is_dir() else ():
            first, _, length = path.stem.partition("-")
            lengths[int(first)] = max(int(length), lengths.get(int(first), 0))
        while begin in lengths:
            found.append((folder / f"{begin}-{lengths[begin]}.arrow", lengths[begin]))
            begin += lengths[begin]
        return found

    def rows_at_work(self) -> int:
        """Explained rows of unfinished shards."""
        folder = self.hidden / "pieces"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        at_work = [name for name in names if not self.shard(name).exists()]
        return sum(length for name in at_work for _, length in self.finished_pieces(name))

    def drop_pieces(self, name: str) -> None:
        folder = self.pieces(name)
        if folder.is_dir():
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            with suppress(OSError):  # another worker may be writing there
                folder.rmdir()

    def settings(self) -> dict[str, Any] | None:
        """What an earlier run stored; None: there was none."""
        path = self.path / RUN
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except NotADirectoryError as problem:
            file = next(path for path in (self.path, *self.path.parents) if path.is_file())
            raise FileError(f"{file} is a file: name a folder") from problem
        except (OSError, ValueError) as problem:
            raise FileError(f"cannot read {path}: {problem}") from problem
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise FileError(f"{path} was not written by slalom corpus: name another folder")
        if record.get("version") != VERSION:
            raise FileError(
                f"{path} has format version {record.get('version')!r}, this slalom reads {VERSION}"
            )
        n_each = record.get("rows_per_file")
        if not isinstance(record.get("settings"), dict) or not isinstance(n_each, int):
            raise FileError(f"{path} is damaged: name another folder, or delete this one")
        return record

    def keep_settings(self, record: dict[str, Any]) -> None:
        write_json(self.path / RUN, {"format": FORMAT, "version": VERSION, **record})

    def open(self) -> None:
        """Make the folders, unless they hold something else."""
        if not (self.path / RUN).exists() and any(self.path.glob("*.parquet")):
            raise FileError(
                f"{self.path} holds Parquet files but no {RUN}, so they belong to something "
                "else: name another folder"
            )
        with unless_broken(f"cannot write to {self.path}"):
            for name in ("pieces", "words"):
                (self.hidden / name).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder for one run at a time; the lock ends with the process."""
        with unless_broken(f"cannot write to {self.path}"):
            file = (self.hidden / "lock").open("w")
        with file:
            with suppress(OSError):  # without locks, two runs waste time but do no harm
                if not locked(file):
                    raise FileError(
                        f"another run is writing to {self.path}: wait until it finishes, or stop it"
                    )
            self._clear()
            yield

    def _clear(self) -> None:
        """Remove half-written files of killed runs, and pieces of finished shards."""
        for folder in (self.path, self.hidden):
            for path in folder.glob(f".{PREFIX}*{SUFFIX}"):
                path.unlink(missing_ok=True)
        for folder in (self.hidden / "pieces").iterdir():
            if self.shard(folder.name).exists():
                self.drop_pieces(folder.name)

    def write(self, path: Path, fill: Callable[[IO[bytes]], None]) -> None:
        """Write a file completely or not at all."""
        with suppress(OSError):  # then the file cannot be written either, which is reported
            path.parent.mkdir(exist_ok=True)
        write_by(path, fill, temporary=self.hidden)


OWN = ("id", "source", "line")


@dataclass(frozen=True)
class Carried:
    """A column of the input that is copied to the output."""

    name: str
    kind: str  # of its cells: bool, int, float, string or json
    output_name: str


@dataclass(frozen=True)
class RowLayout:
    """From a row of the input to a row of the output."""

    text_column: str
    id_column: str | None
    carried: tuple[Carried, ...]
    folder: Path  # of all files: rows without an id are named by their file's path from here

    def schema(self) -> Any:
        pa = arrow()
        kinds = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
        own = [("id", pa.string()), ("source", pa.string()), ("line", pa.int64())]
        carried = [(one.output_name, kinds.get(one.kind, pa.string())) for one in self.carried]
        return pa.schema([*own, *carried, *document_schema()])

    def text(self, record: Record) -> Text:
        """The text of a row; an InputError says why there is none."""
        if problem := problem_of(record, self.text_column):
            raise InputError(problem)
        text = record.cells[self.text_column]
        return checked_text(tuple(text) if isinstance(text, list) else text)

    def row(self, source: str, record: Record, result: Explanation | Failed) -> dict[str, Any]:
        name = None if self.id_column is None else record.cells.get(self.id_column)
        own = {
            "id": f"{Path(source).relative_to(self.folder)}:{record.line}"
            if name is None
            else str(name),
            "source": source,
            "line": record.line,
        }
        carried = {
            one.output_name: cell_as(one.kind, record.cells.get(one.name)) for one in self.carried
        }
        return own | carried | document_row(result)


def layout_of(
    columns: Mapping[str, str], text_column: str, id_column: str | None, *, folder: Path
) -> RowLayout:
    """The layout of the output; without an id column named, `id` is used if there is one."""
    named = id_column or ("id" if "id" in columns else None)
    carried = tuple(
        Carried(name, kind, _output_name(name, columns))
        for name, kind in columns.items()
        if name not in (text_column, named)
    )
    return RowLayout(text_column, named, carried, folder)


def _output_name(name: str, columns: Mapping[str, str]) -> str:
    """The column's own name, prefixed if the output has a column of that name."""
    found = name
    while found in OWN or found in document_schema().names or (found != name and found in columns):
        found = f"input_{found}"
    return found
