"""What the rows of a finished run say together: sums per word, trust, failures, groups.

Rows are read a batch at a time, so memory grows with the number of different words, not with
the number of documents. A word counts once per document, by the mean over its occurrences;
words are compared without regard to case.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.corpus.folder import RunFolder
from slalom.corpus.layout import OWN
from slalom.corpus.records import parquet_file
from slalom.document import FloatArray
from slalom.errors import FileError, InputError
from slalom.tables import SCORES, document_schema

EFFECTS = ("shapley", "removal", "alone", "score", "linearised")  # the first there is counts
BATCH = 512  # rows
MAX_GROUPS = 12
GROUPING = ("source",)  # of our own columns, what tells rows apart as groups: their files
NEEDED = (
    *("id", "text", "second_text", "problem", "units", "spans", "identified"),
    *("log_odds", "quality", "scores"),
)


@dataclass
class Sums:
    """Per word: in how many documents, and sums of what it does there."""

    n: FloatArray = field(default_factory=lambda: np.zeros(64))
    effect: FloatArray = field(default_factory=lambda: np.zeros(64))
    squared: FloatArray = field(default_factory=lambda: np.zeros(64))
    size: FloatArray = field(default_factory=lambda: np.zeros(64))  # sums of |effect|
    attention: FloatArray = field(
        default_factory=lambda: np.zeros(64)
    )  # 1 in a document: an even part

    def add(self, words: NDArray[np.intp], effects: FloatArray, attentions: FloatArray) -> None:
        """One entry per word and document."""
        most = int(words.max(initial=-1)) + 1
        for name, amounts in (
            ("n", np.ones(len(words))),
            ("effect", effects),
            ("squared", effects**2),
            ("size", np.abs(effects)),
            ("attention", attentions),
        ):
            held = getattr(self, name)
            if len(held) < most:
                held = np.concatenate([held, np.zeros(max(most - len(held), len(held)))])
            held[:most] += np.bincount(words, amounts, minlength=most)
            setattr(self, name, held)

    def cut(self, n_words: int) -> "Sums":
        """All columns of one length, longer or shorter."""
        columns = (self.n, self.effect, self.squared, self.size, self.attention)
        return Sums(*(np.pad(c[:n_words], (0, max(0, n_words - len(c)))) for c in columns))

    @property
    def mean(self) -> FloatArray:
        return self.effect / np.maximum(1, self.n)

    @property
    def variance(self) -> FloatArray:
        spread = self.squared - self.n * self.mean**2
        return np.maximum(0.0, spread) / np.maximum(1, self.n - 1)

    @property
    def error(self) -> FloatArray:
        """Of the mean."""
        return np.sqrt(self.variance / np.maximum(1, self.n))


@dataclass
class Odds:
    """The log-odds of the target over the documents of a group."""

    n: int = 0
    total: float = 0.0
    squared: float = 0.0

    def add(self, log_odds: float) -> None:
        self.n, self.total = self.n + 1, self.total + log_odds
        self.squared += log_odds**2

    @property
    def mean(self) -> float:
        return self.total / self.n

    @property
    def error(self) -> float:
        """Of the mean; infinite for one document, which says nothing of others."""
        if self.n < 2:
            return inf
        spread = max(0.0, self.squared - self.n * self.mean**2)
        return sqrt(spread / (self.n - 1) / self.n)


@dataclass(frozen=True, eq=False)
class Survey:
    """A whole run, added up."""

    folder: RunFolder
    settings: dict[str, Any]
    effect: str  # the score that says what a word does
    words: tuple[str, ...]
    sums: Sums
    groups: dict[str, Sums]  # by a column of the input; {}: none was given
    group_odds: dict[str, Odds]
    n_rows: int
    problems: Counter[str]
    trust: Counter[str]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The words of a batch of documents: one entry per word and document."""

    documents: NDArray[np.intp]  # row in the batch
    words: tuple[str, ...]
    word: NDArray[np.intp]  # of each entry
    effects: FloatArray
    attentions: FloatArray


@dataclass
class _Tally:
    """What has been read so far."""

    effect: str
    by: str | None
    numbers: dict[str, int] = field(default_factory=dict)  # word → its number
    sums: Sums = field(default_factory=Sums)
    groups: dict[str, Sums] = field(default_factory=dict)
    group_odds: dict[str, Odds] = field(default_factory=dict)
    n_rows: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    trust: Counter[str] = field(default_factory=Counter)

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        self.n_rows += len(rows)
        self.problems.update(row["problem"] for row in rows if row["problem"] is not None)
        explained = [row for row in rows if row["problem"] is None]
        self.trust.update(row["quality"]["trust"] for row in explained)
        pairs = pairs_of(explained, self.effect)
        known = self.numbers
        local = np.array([known.setdefault(w, len(known)) for w in pairs.words], dtype=np.intp)
        word = local[pairs.word] if len(local) else np.zeros(0, dtype=np.intp)
        self.sums.add(word, pairs.effects, pairs.attentions)
        if self.by is not None:
            self._add_groups([_group(row[self.by]) for row in explained], pairs, word)
            for row in explained:
                self.group_odds.setdefault(_group(row[self.by]), Odds()).add(row["log_odds"])

    def _add_groups(self, names: Sequence[str], pairs: Pairs, word: NDArray[np.intp]) -> None:
        of_pair = np.array(names, dtype=object)[pairs.documents]
        for name in dict.fromkeys(names):
            mine = of_pair == name
            sums = self.groups.setdefault(name, Sums())
            sums.add(word[mine], pairs.effects[mine], pairs.attentions[mine])
        if len(self.groups) > MAX_GROUPS:
            raise InputError(
                f"the column {self.by!r} has more than {MAX_GROUPS} different values: "
                "group by one with fewer"
            )


def survey_of(folder: RunFolder, by: str | None = None) -> Survey:
    """Read every row once; `by` is a column of the input to group documents by."""
    settings = finished_settings(folder)
    column = None if by is None else _column_of(folder, by)
    tally = _Tally(_effect(folder), column)
    for rows in batches(folder, column):
        tally.add(rows)
    n = len(tally.numbers)
    return Survey(
        folder=folder,
        settings=settings,
        effect=tally.effect,
        words=tuple(tally.numbers),
        sums=tally.sums.cut(n),
        groups={name: tally.groups[name].cut(n) for name in sorted(tally.groups)},
        group_odds=tally.group_odds,
        n_rows=tally.n_rows,
        problems=tally.problems,
        trust=tally.trust,
    )


def finished_settings(folder: RunFolder) -> dict[str, Any]:
    """What the run was asked; an error where there is no run or it has not come to its end."""
    record = folder.settings()
    if record is None:
        raise FileError(f"{folder.path} holds no run: name the OUTPUT of slalom corpus")
    if "finished" not in record:
        raise FileError(f"the run in {folder.path} has not come to its end: finish it first")
    settings: dict[str, Any] = record["settings"]
    return settings


def batches(folder: RunFolder, by: str | None = None) -> Iterator[list[dict[str, Any]]]:
    """The rows of all files, a few hundred at a time, with what is needed of them."""
    for path in _files(folder):
        file = parquet_file(path)
        columns = [*NEEDED, *([by] if by is not None and by not in NEEDED else [])]
        for batch in file.iter_batches(BATCH, columns=columns):
            yield batch.to_pylist()


def _column_of(folder: RunFolder, by: str) -> str:
    """What a column of the input is called in the rows: one named like ours is `input_…`."""
    ours = {*OWN, *document_schema().names}
    names = parquet_file(_files(folder)[0]).schema_arrow.names
    carried = [name for name in names if name not in ours]
    if by in ours and f"input_{by}" in carried:
        return f"input_{by}"
    if by in carried or by in GROUPING:
        return by
    raise InputError(
        f"the rows have no column {by!r} to group by: they have {', '.join([*carried, *GROUPING])}"
    )


def pairs_of(rows: Sequence[dict[str, Any]], effect: str) -> Pairs:
    """Words and what they do, the occurrences within a document put together."""
    lengths = np.array([len(row["units"]) for row in rows], dtype=np.intp)
    owners = np.repeat(np.arange(len(rows)), lengths)
    units = [unit.casefold().strip() or unit for row in rows for unit in row["units"]]
    words, number = np.unique(np.array(units, dtype=object), return_inverse=True)
    effects = np.array([e for row in rows for e in row["scores"][effect]], dtype=np.float64)
    attentions = np.concatenate([np.zeros(0), *map(_attentions, rows)])
    known = np.array([mark for row in rows for mark in row["identified"]], dtype=bool)
    owners, number, effects, attentions = (
        owners[known],
        number[known],
        effects[known],
        attentions[known],
    )
    code, at = np.unique(owners * max(1, len(words)) + number, return_inverse=True)
    counts = np.bincount(at, minlength=len(code)).astype(np.float64)
    return Pairs(
        documents=code // max(1, len(words)),
        words=tuple(words.tolist()),
        word=code % max(1, len(words)),
        effects=np.bincount(at, effects, len(code)) / np.maximum(1, counts),
        attentions=np.bincount(at, attentions, len(code)) / np.maximum(1, counts),
    )


def _attentions(row: dict[str, Any]) -> FloatArray:
    """The part of the attention, times the number of units: 1 is an even part; 0: unknown."""
    shares, importances = row["scores"]["share"], row["scores"]["importance"]
    n_units = len(row["units"])
    if shares is None and importances is None:
        return np.zeros(n_units)
    if shares is None:
        weights = np.exp(np.array(importances) - max(importances, default=0.0))
        shares = weights / weights.sum()
    return n_units * np.array(shares, dtype=np.float64)


def _effect(folder: RunFolder) -> str:
    """The score that the run has and that says what a word does to the prediction."""
    for rows in batches(folder):
        for row in rows:
            if row["problem"] is None:
                found = [name for name in (*EFFECTS, *SCORES) if row["scores"][name] is not None]
                return found[0]
    raise InputError(f"no text of {folder.path} could be explained: there is nothing to report")


def _files(folder: RunFolder) -> list[Path]:
    found = sorted(folder.path.glob("part-*.parquet"))
    if not found:
        raise FileError(f"the files of {folder.path} are gone: run slalom corpus again")
    return found


def _group(cell: Any) -> str:
    return "(none)" if cell is None else str(cell)
