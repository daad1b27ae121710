"""The folder of a run, complete at every moment whoever is killed; the columns of what lies in it.

    OUTPUT/part-000000.parquet   rows of documents, one file per shard; there when it is finished
    OUTPUT/run.json              what all rows have in common; another run is refused
    OUTPUT/.slalom/pieces/       what is finished of shards at work: nothing is asked twice
    OUTPUT/.slalom/words/        sums per word, one file per shard

Every file is written beside its place and moved there whole, so a name that exists is a
promise kept. Two workers on one shard write the same; the later one replaces the earlier. A row of
the output says which row of the input it is, what came with it, and what was found out.
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
from slalom.files import write_by, write_json
from slalom.records import Record, problem_of
from slalom.tables import Failed, arrow, document_row, document_schema
from slalom.temporary import PREFIX, SUFFIX, locked

RUN = "run.json"
FORMAT, VERSION = "slalom-corpus", 1


@dataclass(frozen=True)
class RunFolder:
    """Where the files of a run lie; knows names, not what is in them."""

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
        """Names of the shards that are there."""
        return {path.stem for path in self.path.glob("part-*.parquet")}

    def holds_rows(self) -> bool:
        """Whether anything was explained here."""
        return bool(self.finished()) or any((self.hidden / "pieces").glob("*/*.arrow"))

    def finished_pieces(self, name: str) -> list[tuple[Path, int]]:
        """The unbroken row of pieces from the shard's beginning, each with its rows."""
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
        """Rows of unfinished shards that are done already."""
        folder = self.hidden / "pieces"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        at_work = [name for name in names if not self.shard(name).exists()]
        return sum(length for name in at_work for _, length in self.finished_pieces(name))

    def drop_pieces(self, name: str) -> None:
        folder = self.pieces(name)
        if folder.is_dir():
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            with suppress(OSError):  # another worker may be writing the same
                folder.rmdir()

    def settings(self) -> dict[str, Any] | None:
        """What an earlier run wrote down; None: there was none."""
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
                f"{self.path} holds Parquet files but no {RUN}: they belong to something "
                "else: name another folder"
            )
        try:
            for name in ("pieces", "words"):
                (self.hidden / name).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise self.unwritable(problem) from problem

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One run at a time; the lock goes with the process, however that ends."""
        try:
            file = (self.hidden / "lock").open("w")
        except OSError as problem:
            raise self.unwritable(problem) from problem
        with file:
            with suppress(OSError):  # without locks two runs cost time but do no harm
                if not locked(file):
                    raise FileError(
                        f"another run is writing to {self.path}: wait until it finishes, or stop it"
                    )
            self._clear()
            yield

    def _clear(self) -> None:
        """Away with what the killed left half written, and with pieces of finished shards."""
        for folder in (self.path, self.hidden):
            for path in folder.glob(f".{PREFIX}*{SUFFIX}"):
                path.unlink(missing_ok=True)
        for folder in (self.hidden / "pieces").iterdir():
            if self.shard(folder.name).exists():
                self.drop_pieces(folder.name)

    def write(self, path: Path, fill: Callable[[IO[bytes]], None]) -> None:
        """A file that is there as a whole or not at all."""
        with suppress(OSError):  # whatever it is, the file cannot be written either
            path.parent.mkdir(exist_ok=True)
        write_by(path, fill, temporary=self.hidden)

    def unwritable(self, problem: OSError) -> FileError:
        return FileError(f"cannot write to {self.path}: {problem.strerror or problem}")


OWN = ("id", "source", "line")


@dataclass(frozen=True)
class Carried:
    """A column of the input that comes out again."""

    name: str
    kind: str  # of its cells: bool, int, float, string or json
    output_name: str


@dataclass(frozen=True)
class RowLayout:
    """From a row of the input to a row of the output."""

    text_column: str
    id_column: str | None
    carried: tuple[Carried, ...]
    folder: Path  # of all files: a row without a name is called by its file's path from there

    def schema(self) -> Any:
        pa = arrow()
        kinds = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
        own = [("id", pa.string()), ("source", pa.string()), ("line", pa.int64())]
        carried = [(one.output_name, kinds.get(one.kind, pa.string())) for one in self.carried]
        return pa.schema([*own, *carried, *document_schema()])

    def text(self, record: Record) -> Text:
        """The text of a row, or an InputError that says why there is none."""
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
    """Without an `id` named, a column of that name is taken; the text is not kept twice."""
    named = id_column or ("id" if "id" in columns else None)
    carried = tuple(
        Carried(name, kind, _output_name(name, columns))
        for name, kind in columns.items()
        if name not in (text_column, named)
    )
    return RowLayout(text_column, named, carried, folder)


def _output_name(name: str, columns: Mapping[str, str]) -> str:
    """The column's own name, unless the output has one of that name."""
    found = name
    while found in OWN or found in document_schema().names or (found != name and found in columns):
        found = f"input_{found}"
    return found
