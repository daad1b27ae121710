"""The columns of the output: which row it is, what came with it, what was found out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slalom.classifiers.base import checked_text
from slalom.corpus.plan import cell_as
from slalom.corpus.records import Record, problem_of
from slalom.document import Text
from slalom.errors import InputError
from slalom.explanation import Explanation
from slalom.tables import Failed, arrow, document_row, document_schema

OWN = ("id", "source", "line")


@dataclass(frozen=True)
class Carried:
    """A column of the input that comes out again."""

    name: str
    kind: str  # of its cells: bool, int, float, string or json
    output_name: str


@dataclass(frozen=True)
class Layout:
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
) -> Layout:
    """Without an `id` named, a column of that name is taken; the text is not kept twice."""
    named = id_column or ("id" if "id" in columns else None)
    carried = tuple(
        Carried(name, kind, _output_name(name, columns))
        for name, kind in columns.items()
        if name not in (text_column, named)
    )
    return Layout(text_column, named, carried, folder)


def _output_name(name: str, columns: Mapping[str, str]) -> str:
    """The column's own name, unless the output has one of that name."""
    found = name
    while found in OWN or found in document_schema().names or (found != name and found in columns):
        found = f"input_{found}"
    return found
