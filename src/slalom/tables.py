"""Explanations as Arrow tables: one row per document for corpora, one row per unit for analysis.

Knows the columns that files and data frames share, and how an Explanation fills them. A row
that could not be explained keeps its text and says why in `problem`; everything else is null.
Numbers that belong to units are lists as long as `units`, by name in a struct, so that a
query engine reads `scores.removal` without touching the rest of the file.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slalom.classifiers.base import Target
from slalom.document import Text
from slalom.errors import InputError, MissingExtraError
from slalom.explanation import Explanation

if TYPE_CHECKING:
    import pandas
    import pyarrow

SCHEMA_VERSION = 1
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


@dataclass(frozen=True)
class Failed:
    """A text that could not be explained, and why."""

    text: Text | None  # None: there was no text to read
    problem: str


def arrow() -> Any:
    """The pyarrow package, or the command that installs it."""
    try:
        import pyarrow
    except ImportError as problem:
        raise MissingExtraError("pyarrow", "corpus") from problem
    return pyarrow


def document_schema() -> "pyarrow.Schema":
    """The columns of one explained document; 32 bits hold more digits than any score has."""
    pa = arrow()
    numbers, marks = pa.list_(pa.float32()), pa.list_(pa.bool_())
    span = pa.struct([("side", pa.int32()), ("start", pa.int32()), ("end", pa.int32())])
    quality = pa.struct(
        [
            ("r2", pa.float64()),
            ("rmse", pa.float64()),
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
            ("determined", numbers),
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
    row: dict[str, Any] = {
        "text": first,
        "second_text": second,
        "schema_version": SCHEMA_VERSION,
    }
    if isinstance(result, Failed):
        return row | {"problem": result.problem}
    _check_one_target(result)
    target = Target(result.target_index, result.target)
    log_odds = target.scores(result.logits[None, :], independent=result.independent)[0]
    quality = result.quality
    return row | {
        "units": list(result.units),
        "spans": [
            dict(zip(("side", "start", "end"), (0, *span)[-3:], strict=True))
            for span in result.spans
        ],
        "features": result.features,
        "identified": result.identified,
        "determined": result.determined,
        "scores": _by_name(result.scores),
        "errors": _by_name(result.errors),
        "measured": _by_name(result.measured),
        "anchor": result.anchor
        and {"value": result.anchor.value, "importance": result.anchor.importance},
        "log_odds": float(log_odds),
        "whole": _number(result.whole),
        "base": _number(result.base),
        "logits": result.logits,
        "labels": list(result.labels),
        "target": result.target,
        "target_index": result.target_index,
        "quality": {
            "r2": quality.r2,
            "rmse": quality.rmse,
            "trust": quality.trust,
            "n_queries": quality.n_queries,
            "n_tokens": quality.n_tokens,
            "seconds": quality.seconds,
            "notes": list(quality.notes),
        },
        "method": result.method,
        "seed": result.seed,
        "classifier": result.classifier,
    }


def unit_table(explanations: Sequence[Explanation]) -> "pyarrow.Table":
    """One row per unit: document, unit, its place, every score, its error, whether measured.

    Explanations of all classes have a column per class, such as `removal: positive`.
    """
    pa = arrow()
    parts = [pa.table(columns) for columns in _columns_by_document(explanations)]
    if not parts:
        return pa.table({"document": pa.array([], pa.int64()), "unit": pa.array([], pa.string())})
    return pa.concat_tables(parts, promote_options="default")


def to_frame(explanations: Sequence[Explanation]) -> "pandas.DataFrame":
    """One row per unit as a pandas data frame, the document's place in the list first."""
    try:
        import pandas
    except ImportError as problem:
        raise MissingExtraError("pandas", "frames") from problem
    parts = [pandas.DataFrame(columns) for columns in _columns_by_document(explanations)]
    if not parts:
        return pandas.DataFrame({"document": np.zeros(0, dtype=int), "unit": []})
    return pandas.concat(parts, ignore_index=True)


def _columns_by_document(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """Texts that could not be explained leave no rows; the others keep their numbers."""
    if isinstance(explanations, Explanation):
        raise InputError("to_frame takes a list of explanations: one has a method, e.to_frame()")
    found = [(n, e) for n, e in enumerate(explanations) if isinstance(e, Explanation)]
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


def _check_one_target(explanation: Explanation) -> None:
    if explanation.target_index is None:
        raise InputError(
            "rows of documents have one target: explain with a label or its number instead of "
            f"'all' ({', '.join(explanation.labels)})"
        )


def _sides(text: Text | None) -> tuple[str | None, str | None]:
    if text is None or isinstance(text, str):
        return text, None
    return text


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
