"""Explanations as Arrow tables: one row per document for corpora, one row per unit for analysis.

Knows the columns that files and data frames share, and how an Explanation fills them. A row
that could not be explained keeps its text and says why in `problem`; everything else is null.
Numbers that belong to units are lists as long as `units`, by name in a struct, so that a
query engine reads `scores.removal` without touching the rest of the file.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slalom.classifiers.base import Target
from slalom.document import Text
from slalom.errors import DamageError, FileError, InputError, SlalomError, needing
from slalom.explanation import Explanation
from slalom.files import write_by
from slalom.scales import LOG_ODDS, on_scale
from slalom.schema import read_as

if TYPE_CHECKING:
    import pandas
    import pyarrow

SCHEMA_VERSION = 1
ROWS_AT_A_TIME = 256
SCORES = (  # a fixed list: every file of a corpus has the same columns
    "alone",
    "removal",
    "shapley",
    "importance",
    "share",
    "gradient",
    "value",
    "linearised",
    "score",
)
AS_THEY_ARE = (  # columns that are fields of an Explanation
    *("units", "features", "identified", "whole", "base", "logits", "labels", "target"),
    *("target_index", "method", "seed", "classifier"),
)


@dataclass(frozen=True)
class Failed:
    """A text that could not be explained, and why."""

    text: Text | None  # None: there was no text to read
    problem: str


def arrow() -> Any:
    """The pyarrow package, or the command that installs it."""
    with needing("pyarrow", "corpus"):
        import pyarrow
    return pyarrow


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """What pyarrow says of a file that is damaged, or gone: a sentence with its name."""
    of_numbers = (LookupError, OverflowError, TypeError, ValueError)
    errors = (arrow().ArrowException, DamageError, OSError, *of_numbers)
    try:
        yield
    except errors as problem:
        said = getattr(problem, "strerror", None) or str(problem).partition("\n")[0]
        raise FileError(f"cannot read {path}: {said}") from problem


def document_schema() -> "pyarrow.Schema":
    """The columns of one explained document; 32 bits hold more digits than any score has."""
    pa = arrow()
    numbers, marks = pa.list_(pa.float32()), pa.list_(pa.bool_())
    span = pa.struct([("side", pa.int32()), ("start", pa.int32()), ("end", pa.int32())])
    quality = pa.struct(
        [
            ("r2", pa.float64()),
            ("rmse", pa.float64()),
            ("two_scores", pa.float64()),
            ("trust", pa.string()),
            ("n_queries", pa.int64()),
            ("n_tokens", pa.int64()),
            ("seconds", pa.float64()),
            ("notes", pa.list_(pa.string())),
        ]
    )
    return pa.schema(
        [
            ("text", pa.string()),
            ("second_text", pa.string()),  # of a pair
            ("problem", pa.string()),  # why there is no explanation
            ("units", pa.list_(pa.string())),
            ("spans", pa.list_(span)),  # in characters; side 1 is the second text of a pair
            ("features", pa.list_(pa.int32())),  # equal numbers share their scores
            ("identified", marks),
            ("scores", pa.struct([(name, numbers) for name in SCORES])),
            ("errors", pa.struct([(name, numbers) for name in SCORES])),
            ("measured", pa.struct([(name, marks) for name in SCORES])),
            ("anchor", pa.struct([("value", pa.float64()), ("importance", pa.float64())])),
            ("log_odds", pa.float64()),  # of the target, as the classifier says it
            ("whole", pa.float64()),  # the same as the fit says it
            ("base", pa.float64()),  # of the empty text
            ("logits", pa.list_(pa.float64())),
            ("labels", pa.list_(pa.string())),
            ("target", pa.string()),
            ("target_index", pa.int32()),
            ("quality", quality),
            ("method", pa.string()),
            ("seed", pa.int64()),
            ("classifier", pa.string()),
            ("schema_version", pa.int32()),
        ]
    )


def document_table(results: Sequence[Explanation | Failed]) -> "pyarrow.Table":
    """One row per document, explained or not."""
    return arrow().Table.from_pylist(
        [document_row(result) for result in results], schema=document_schema()
    )


def document_row(result: Explanation | Failed) -> dict[str, Any]:
    """The cells of one document; those left out are null."""
    first, second = _sides(result.text)
    row: dict[str, Any] = {"text": first, "second_text": second, "schema_version": SCHEMA_VERSION}
    if isinstance(result, Failed):
        return row | {"problem": result.problem}
    if result.target_index is None:
        raise InputError(
            "rows of documents have one target: explain with a label or its number instead of "
            f"'all' ({', '.join(result.labels)})"
        )
    row |= {name: getattr(result, name) for name in AS_THEY_ARE}
    return row | {
        "spans": [
            dict(zip(("side", "start", "end"), (0, *span)[-3:], strict=True))
            for span in result.spans
        ],
        "scores": _by_name(result.scores),
        "errors": _by_name(result.errors),
        "measured": _by_name(result.measured),
        "anchor": result.anchor and vars(result.anchor),
        "log_odds": float(result.target_scores(result.logits[None])[0]),
        "quality": vars(result.quality),
    }


def documents_in(path: str | os.PathLike[str]) -> Iterator[Explanation | SlalomError]:
    """The rows of a file of documents as explanations, or as errors that say why there is none.

    A table keeps no model: what is read back shows its scores and predicts nothing.
    """
    with reading(path):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            if not {"text", "units", "scores", "schema_version"} <= set(file.schema_arrow.names):
                raise FileError(f"{path} is Parquet, but none that slalom explain --out wrote")
            for batch in file.iter_batches(batch_size=ROWS_AT_A_TIME):
                yield from map(_document_of, batch.to_pylist())


def _document_of(row: Mapping[str, Any]) -> Explanation | SlalomError:
    """The inverse of `document_row`."""
    if row["problem"] is not None:
        return InputError(row["problem"])
    pair, logits = row["second_text"] is not None, np.array(row["logits"])
    target = Target(row["target_index"], row["target"])
    competing = target.scores(logits[None], independent=False)[0]
    places = ("side", "start", "end") if pair else ("start", "end")
    columns = {
        name: {key: column for key, column in row[name].items() if column is not None}
        for name in ("scores", "errors", "measured")
    }
    record = {
        **row,
        **columns,
        "text": (row["text"], row["second_text"]) if pair else row["text"],
        "spans": [[span[place] for place in places] for span in row["spans"]],
        "independent": len(logits) == 1 or not np.isclose(competing, row["log_odds"]),
    }
    return read_as(Explanation, record)


def write_words(documents: str | os.PathLike[str], path: Path) -> None:
    """A file of documents as one row per unit, .csv or .parquet, batch after batch.

    All batches have the columns of those scores that any document has.
    """
    pa = arrow()
    from pyarrow import csv, parquet

    schema = _unit_schema(documents)
    found = documents_in(documents)

    def fill(file: Any) -> None:
        is_csv = path.suffix.lower() == ".csv"
        writer = (csv.CSVWriter if is_csv else parquet.ParquetWriter)(file, schema)
        with writer:
            for first in count(0, ROWS_AT_A_TIME):
                batch = list(islice(found, ROWS_AT_A_TIME))
                if not batch:
                    break
                for columns in _columns_by_document(batch, first):
                    parts = [schema.empty_table(), pa.table(columns)]
                    rows = pa.concat_tables(parts, promote_options="default")
                    writer.write_table(rows.combine_chunks())  # an empty one is a second heading

    write_by(path, fill)


def write_unit_table(explanation: Explanation, path: Path) -> None:
    """One explanation as one row per unit, .csv or .parquet."""
    arrow()
    from pyarrow import csv, parquet

    table = unit_table([explanation])
    write = csv.write_csv if path.suffix.lower() == ".csv" else parquet.write_table
    write_by(path, lambda file: write(table, file))


def _unit_schema(documents: str | os.PathLike[str]) -> "pyarrow.Schema":
    """The columns that any document of the file needs."""
    pa = arrow()
    columns: dict[str, Any] = {}
    for document in documents_in(documents):
        for one in _columns_by_document([document]):
            for name, column in one.items():
                columns.setdefault(name, pa.array(column).type)
    last = columns.pop("identified", None)
    columns |= {} if last is None else {"identified": last}
    return pa.schema(list((columns or {"document": pa.int64(), "unit": pa.string()}).items()))


def unit_table(explanations: Sequence[Explanation]) -> "pyarrow.Table":
    """One row per unit: document, unit, its place, every score, its error, whether measured.

    Explanations of all classes have a column per class, such as `removal: positive`.
    """
    pa = arrow()
    parts = [pa.table(columns) for columns in _columns_by_document(explanations)]
    if not parts:
        return pa.table({"document": pa.array([], pa.int64()), "unit": pa.array([], pa.string())})
    return pa.concat_tables(parts, promote_options="default")


def to_frame(explanations: Sequence[Explanation], scale: str = LOG_ODDS) -> "pandas.DataFrame":
    """One row per unit as a pandas data frame, the document's place in the list first.

    `scale="probability"` tells scores as changes of the predicted probability.
    """
    with needing("pandas", "frames"):
        import pandas
    _check_several(explanations)
    scaled = [on_scale(e, scale) if isinstance(e, Explanation) else e for e in explanations]
    parts = [pandas.DataFrame(columns) for columns in _columns_by_document(scaled)]
    if not parts:
        return pandas.DataFrame({"document": np.zeros(0, dtype=int), "unit": []})
    return pandas.concat(parts, ignore_index=True)


def _check_several(explanations: object) -> None:
    if isinstance(explanations, Explanation) or not isinstance(explanations, Iterable):
        raise InputError(
            "to_frame takes a list of explanations: for a single one, call e.to_frame()"
        )


def _columns_by_document(
    explanations: Sequence[Explanation | SlalomError], first: int = 0
) -> list[dict[str, Any]]:
    """Texts that could not be explained leave no rows; the others keep their numbers."""
    _check_several(explanations)
    found = [(n, e) for n, e in enumerate(explanations, first) if isinstance(e, Explanation)]
    measured = {name for _, explanation in found for name in explanation.measured}
    return [_unit_columns(number, explanation, measured) for number, explanation in found]


def _unit_columns(number: int, explanation: Explanation, measured: Set[str]) -> dict[str, Any]:
    """The columns of one document; `measured` names those that any document of the table has."""
    n_units = len(explanation.units)
    places = np.array([(0, *span)[-3:] for span in explanation.spans]).reshape(n_units, 3)
    columns: dict[str, Any] = {
        "document": np.full(n_units, number),
        "unit": list(explanation.units),
    }
    if not isinstance(explanation.text, str):
        columns["side"] = places[:, 0]
    columns |= {"start": places[:, 1], "end": places[:, 2]}
    for name, scores in explanation.scores.items():
        errors = explanation.errors.get(name)
        for label, column in _per_class(name, scores, explanation.labels):
            columns[label] = column
        if errors is not None:
            for label, column in _per_class(f"{name}_error", errors, explanation.labels):
                columns[label] = column
        if name in measured:
            columns[f"{name}_measured"] = explanation.is_measured(name)
    return columns | {"identified": explanation.identified}


def _per_class(
    name: str, numbers: np.ndarray[Any, Any], labels: Sequence[str]
) -> list[tuple[str, Any]]:
    if numbers.ndim == 1:
        return [(name, numbers)]
    return [(f"{name}: {label}", numbers[:, at]) for at, label in enumerate(labels)]


def _by_name(arrays: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in arrays if name not in SCORES]
    if unknown:
        raise InputError(
            f"a table of documents has no column for the score {unknown[0]!r}: "
            f"its scores are {', '.join(SCORES)}"
        )
    return {name: arrays.get(name) for name in SCORES}


def _sides(text: Text | None) -> tuple[str | None, str | None]:
    if text is None or isinstance(text, str):
        return text, None
    return text
