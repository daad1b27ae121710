"""Mean values and importances of words over a corpus, from sums that are added up shard by shard.

Every document has its own fit: a value v and an importance s (relative to the anchor's) per word,
with standard errors e. The table's entry is their mean, weighted by w = 1/(e² + 1) (documents may
differ by one log-odds anyway), then shrunk towards the mean of all words, the more the larger its
standard error is relative to the spread of words. Only Σw, Σwx, Σw², Σw²x and Σw²x² are kept per
word, so tables of shards add up in any order, on any number of machines.

This is a mean of local fits, not one fit to all answers like that of `explain_vocabulary`: it needs
no query, and has not been judged on unseen documents.
"""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slalom.document import Document, FloatArray
from slalom.explainers.vocabulary import Vocabulary
from slalom.explanation import Explanation, Quality
from slalom.surrogates.slalom.model import Anchor
from slalom.tables import arrow, reading

QUANTITIES = ("value", "importance")
MOMENTS = ("w", "wx", "ww", "wwx", "wwxx")
SPREAD = 1.0  # log-odds: how far documents may differ about one word
ANCHOR = "anchor"  # its row in the table of sums; no word's key looks like this


@dataclass
class WordSums:
    """Sums per word; those of two shards can be added."""

    rows: dict[str, int] = field(default_factory=dict)  # key, as JSON → row
    tokens: list[str] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    sums: FloatArray = field(default_factory=lambda: np.zeros((64, len(QUANTITIES), len(MOMENTS))))

    def add_document(self, explanation: Explanation, document: Document) -> None:
        """Add one document's fit; methods without values and importances add nothing."""
        if not set(QUANTITIES) <= set(explanation.scores) or explanation.target_index is None:
            return
        first = np.unique(document.features, return_index=True)[1]
        first = first[explanation.identified[first]]
        keys = [json.dumps(document.keys[unit]) for unit in first]
        at = self._rows_of(keys, [document.units[unit] for unit in first])
        anchored = 0.0 if explanation.anchor is None else explanation.anchor.importance
        for column, (name, zero) in enumerate(zip(QUANTITIES, (0.0, anchored), strict=True)):
            found = explanation.scores[name][first] - zero
            errors = explanation.errors.get(name)
            self._add(at, column, found, 0.0 * found if errors is None else errors[first])
        for row in at.tolist():
            self.documents[row] += 1
        if explanation.anchor is not None:
            anchor = self._rows_of([ANCHOR], [ANCHOR])
            value = np.array([float(explanation.anchor.value)])  # type: ignore[arg-type]
            self._add(anchor, 0, value, np.zeros(1))
            self.documents[int(anchor[0])] += 1

    def merge(self, other: "WordSums") -> None:
        """Add the sums of another shard."""
        at = self._rows_of(list(other.rows), other.tokens)
        self.sums[at] += other.sums[: len(at)]
        for row, n in zip(at.tolist(), other.documents, strict=True):
            self.documents[row] += n

    def _add(self, at: Any, column: int, found: FloatArray, errors: FloatArray) -> None:
        w = 1 / (errors**2 + SPREAD**2)
        moments = np.stack([w, w * found, w * w, w * w * found, (w * found) ** 2], axis=1)
        self.sums[at, column] += moments  # keys of one document differ, so no row comes twice

    def _rows_of(self, keys: Sequence[str], tokens: Sequence[str]) -> Any:
        for key, token in zip(keys, tokens, strict=True):
            if key not in self.rows:
                self.rows[key] = len(self.rows)
                self.tokens.append(token)
                self.documents.append(0)
        while len(self.sums) < len(self.rows):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
        return np.array([self.rows[key] for key in keys], dtype=np.intp)

    def table(self) -> Any:
        """As an Arrow table, one row per word."""
        n = len(self.rows)
        columns: dict[str, Any] = {
            "key": list(self.rows),
            "token": self.tokens,
            "documents": self.documents,
        }
        for at, quantity in enumerate(QUANTITIES):
            for moment, name in enumerate(MOMENTS):
                columns[f"{quantity}_{name}"] = self.sums[:n, at, moment]
        pa = arrow()
        kinds = [("key", pa.string()), ("token", pa.string()), ("documents", pa.int64())]
        numbers = [(name, pa.float64()) for name in list(columns)[3:]]
        return pa.table(columns, schema=pa.schema([*kinds, *numbers]))

    @classmethod
    def from_table(cls, table: Any) -> "WordSums":
        keys = table["key"].to_pylist()
        columns = [
            np.stack([table[f"{quantity}_{name}"].to_numpy() for name in MOMENTS], axis=1)
            for quantity in QUANTITIES
        ]
        return cls(
            {key: row for row, key in enumerate(keys)},
            table["token"].to_pylist(),
            table["documents"].to_pylist(),
            np.stack(columns, axis=1),
        )


def vocabulary_of(
    sums: WordSums, least_documents: int, quality: Quality, about: Mapping[str, Any]
) -> Vocabulary | None:
    """Weighted means with sandwich errors, shrunk towards the mean of all words; None: no word is
    in enough documents. `about` has the descriptive fields of a Vocabulary."""
    n = len(sums.rows)
    counts = np.array(sums.documents)
    keys = list(sums.rows)
    is_anchor = np.array([key == ANCHOR for key in keys], dtype=bool)
    kept = np.flatnonzero((counts >= least_documents) & ~is_anchor)
    order = kept[np.argsort(-counts[kept], kind="stable")]
    if not len(order):
        return None
    means, errors = _means(sums.sums[order], counts[order])
    means = _shrunk(means, errors)
    rare = np.flatnonzero((counts < least_documents) & ~is_anchor)
    others = sums.sums[rare, :, :2].sum(axis=0)  # Σw, Σwx of all other words together
    anchor = sums.sums[:n][is_anchor, 0]
    return Vocabulary(
        keys=tuple(_hashable(json.loads(keys[row])) for row in order),
        tokens=tuple(sums.tokens[row] for row in order),
        scores={name: means[:, at] for at, name in enumerate(QUANTITIES)},
        errors={name: errors[:, at] for at, name in enumerate(QUANTITIES)},
        counts=counts[order].astype(np.int32),
        rare=Anchor(*(others[:, 1] / others[:, 0]).tolist()) if len(rare) else None,
        anchor=Anchor(float(anchor[0, 1] / anchor[0, 0]), 0.0) if len(anchor) else None,
        quality=quality,
        **about,
    )


def sums_in(paths: Iterable[Path]) -> WordSums:
    """The sums of shards, read from their files and added up."""
    return merged(map(_sums_in, paths))


def _sums_in(path: Path) -> WordSums:
    with reading(path):
        from pyarrow import parquet

        return WordSums.from_table(parquet.read_table(path))


def merged(parts: Iterable[WordSums]) -> WordSums:
    """The sums of several, added up."""
    together = WordSums()
    for part in parts:
        together.merge(part)
    return together


def _means(sums: FloatArray, counts: Any) -> tuple[FloatArray, FloatArray]:
    w, wx, ww, wwx, wwxx = (sums[..., at] for at in range(len(MOMENTS)))
    means = wx / w
    scatter = np.maximum(0.0, wwxx - 2 * means * wwx + means**2 * ww) / w**2
    several = counts[:, None] > 1
    bessel = counts[:, None] / np.maximum(1, counts[:, None] - 1)
    errors = np.sqrt(np.where(several, bessel * scatter, 1 / w))
    return means, np.asarray(errors)


def _shrunk(means: FloatArray, errors: FloatArray) -> FloatArray:
    if len(means) < 3:
        return means
    centre = means.mean(axis=0)
    spread = np.maximum(0.0, means.var(axis=0, ddof=1) - (errors**2).mean(axis=0))
    kept = spread / np.maximum(spread + errors**2, 1e-300)
    return np.asarray(centre + kept * (means - centre))


def _hashable(key: Any) -> Hashable:
    return tuple(_hashable(part) for part in key) if isinstance(key, list) else key
