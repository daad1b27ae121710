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
from collections.abc import Hashable, Iterable, Mapping
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
SUMS = [f"{quantity}_{moment}" for quantity in QUANTITIES for moment in MOMENTS]
SPREAD = 1.0  # log-odds: how far documents may differ about one word
ANCHOR = "anchor"  # its row in the table of sums; no word's key looks like this
WordSums = Any  # an Arrow table, one row per word: its key as JSON, its token, documents, SUMS


def sums_of(explanation: Explanation, document: Document) -> WordSums:
    """One document's fit; methods without values and importances have no rows."""
    if not set(QUANTITIES) <= set(explanation.scores) or explanation.target_index is None:
        return _schema().empty_table()
    units = np.unique(document.features, return_index=True)[1]
    units = units[explanation.identified[units]]
    keys = [json.dumps(document.keys[unit]) for unit in units]
    tokens = [document.units[unit] for unit in units]
    anchor, exact = explanation.anchor, np.zeros(document.n_units)
    zeros = (0.0, 0.0 if anchor is None else anchor.importance)
    moments = [
        _moments(explanation.scores[name][units] - zero, explanation.errors.get(name, exact)[units])
        for name, zero in zip(QUANTITIES, zeros, strict=True)
    ]
    sums = np.hstack(moments)  # (n_words, 10)
    if anchor is not None:
        keys, tokens = [*keys, ANCHOR], [*tokens, ANCHOR]
        value = _moments(np.array([float(anchor.value)]), np.zeros(1))  # type: ignore[arg-type]
        sums = np.vstack([sums, np.append(value[0], np.zeros(len(MOMENTS)))])
    columns = dict(zip(SUMS, sums.T, strict=True))
    counted = {"key": keys, "token": tokens, "documents": np.ones(len(keys), dtype=np.int64)}
    return arrow().table({**counted, **columns}, schema=_schema())


def added(*parts: WordSums) -> WordSums:
    """The sums of documents, pieces or shards; words in the order in which they first come."""
    together = arrow().concat_tables([_schema().empty_table(), *parts])
    steps = [("token", "first"), *((name, "sum") for name in ("documents", *SUMS))]
    found = together.group_by("key", use_threads=False).aggregate(steps)
    named = found.select(["key", *map("_".join, steps)])
    return named.rename_columns(_schema().names)


def sums_in(paths: Iterable[Path]) -> WordSums:
    """The sums of shards, read from their files and added up."""
    return added(*map(_sums_in, paths))


def _sums_in(path: Path) -> WordSums:
    with reading(path):
        from pyarrow import parquet

        return parquet.read_table(path)


def _schema() -> Any:
    pa = arrow()
    about = [("key", pa.string()), ("token", pa.string()), ("documents", pa.int64())]
    return pa.schema([*about, *((name, pa.float64()) for name in SUMS)])


def _moments(found: FloatArray, errors: FloatArray) -> FloatArray:
    """(n, 5) of each number and its standard error."""
    w = 1 / (errors**2 + SPREAD**2)
    return np.stack([w, w * found, w * w, w * w * found, (w * found) ** 2], axis=1)


def vocabulary_of(
    sums: WordSums, least_documents: int, quality: Quality, about: Mapping[str, Any]
) -> Vocabulary | None:
    """Weighted means with sandwich errors, shrunk towards the mean of all words; None: no word is
    in enough documents. `about` has the descriptive fields of a Vocabulary."""
    keys, tokens = sums["key"].to_pylist(), sums["token"].to_pylist()
    counts = sums["documents"].to_numpy()
    numbers = np.array([sums[name].to_numpy() for name in SUMS]).T
    numbers = numbers.reshape(len(keys), len(QUANTITIES), len(MOMENTS))
    is_anchor = np.array([key == ANCHOR for key in keys], dtype=bool)
    kept = np.flatnonzero((counts >= least_documents) & ~is_anchor)
    order = kept[np.argsort(-counts[kept], kind="stable")]
    if not len(order):
        return None
    means, errors = _means(numbers[order], counts[order])
    means = _shrunk(means, errors)
    rare = np.flatnonzero((counts < least_documents) & ~is_anchor)
    others = numbers[rare, :, :2].sum(axis=0)  # Σw, Σwx of all other words together
    anchor = numbers[is_anchor, 0]
    return Vocabulary(
        keys=tuple(_hashable(json.loads(keys[row])) for row in order),
        tokens=tuple(tokens[row] for row in order),
        scores={name: means[:, at] for at, name in enumerate(QUANTITIES)},
        errors={name: errors[:, at] for at, name in enumerate(QUANTITIES)},
        counts=counts[order].astype(np.int32),
        rare=Anchor(*(others[:, 1] / others[:, 0]).tolist()) if len(rare) else None,
        anchor=Anchor(float(anchor[0, 1] / anchor[0, 0]), 0.0) if len(anchor) else None,
        quality=quality,
        **about,
    )


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
