"""The rows of a finished run added up, and the findings worth showing.

Rows are read in batches, so memory grows with the number of different words, not of documents. A
word counts once per document, by the mean over its occurrences; case is ignored. Findings are words
with documents to look at:

strongest   by Σ|effect| / (n + 3) over the n documents that hold the word; words in fewer than
            three documents come after all others
agreed      those that clearly speak for the target, the strongest first
opposed     those that clearly speak for the other class
attended    more attention than an even share, but hardly any effect: possible cues that the model
            attends to without using them here
differing   words whose mean effect in one group clearly differs from that in all others: by the
            difference less two of its standard errors
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappush, heappushpop
from itertools import chain
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.corpus.folder import OWN, RunFolder
from slalom.document import FloatArray
from slalom.errors import FileError, InputError
from slalom.records import parquet_file
from slalom.tables import SCORES, document_schema, reading
from slalom.views.numbers import ROUNDING

EFFECTS = ("shapley", "removal", "alone", "score", "linearised")  # the first there is counts
BATCH = 512  # rows
MAX_GROUPS = 12
GROUPING = ("source",)  # the columns of our own by which rows can be grouped: their files
NEEDED = (
    *("id", "text", "second_text", "problem", "units", "spans", "identified"),
    *("log_odds", "quality", "scores"),
)


@dataclass
class Sums:
    """Per word: the number of documents with it, and sums of its effects there."""

    n: FloatArray = field(default_factory=lambda: np.zeros(64))
    effect: FloatArray = field(default_factory=lambda: np.zeros(64))
    squared: FloatArray = field(default_factory=lambda: np.zeros(64))
    size: FloatArray = field(default_factory=lambda: np.zeros(64))  # sums of |effect|
    attention: FloatArray = field(
        default_factory=lambda: np.zeros(64)
    )  # 1 in a document: an even share

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
        """Of the mean; infinite for a single document."""
        if self.n < 2:
            return inf
        spread = max(0.0, self.squared - self.n * self.mean**2)
        return sqrt(spread / (self.n - 1) / self.n)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The words of a batch of documents: one entry per word and document."""

    documents: NDArray[np.intp]  # row in the batch
    words: tuple[str, ...]
    word: NDArray[np.intp]  # of each entry
    effects: FloatArray
    attentions: FloatArray


@dataclass(eq=False)
class Survey:
    """A whole run, added up row by row."""

    folder: RunFolder
    settings: dict[str, Any]
    effect: str  # the score that counts as a word's effect
    by: str | None  # the column whose values make groups
    numbers: dict[str, int] = field(default_factory=dict)  # word → its number
    sums: Sums = field(default_factory=Sums)
    groups: dict[str, Sums] = field(default_factory=dict)  # by the values of that column
    group_odds: dict[str, Odds] = field(default_factory=dict)
    n_rows: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    trust: Counter[str] = field(default_factory=Counter)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """By their numbers, once all rows are read."""
        return tuple(self.numbers)

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
    survey = Survey(folder, settings, _effect(folder), column)
    for rows in batches(folder, column):
        survey.add(rows)
    n_words = len(survey.words)
    survey.sums = survey.sums.cut(n_words)
    survey.groups = {name: survey.groups[name].cut(n_words) for name in sorted(survey.groups)}
    return survey


def finished_settings(folder: RunFolder) -> dict[str, Any]:
    """The settings of a finished run; an error if there is none."""
    record = folder.settings()
    if record is None:
        raise FileError(f"{folder.path} holds no run: name the OUTPUT of slalom corpus")
    if "finished" not in record:
        raise FileError(f"the run in {folder.path} has not finished: repeat its command first")
    settings: dict[str, Any] = record["settings"]
    return settings


def batches(folder: RunFolder, by: str | None = None) -> Iterator[list[dict[str, Any]]]:
    """The rows of all files in batches, with the columns that are needed."""
    for path in _files(folder):
        columns = [*NEEDED, *([by] if by is not None and by not in NEEDED else [])]
        with reading(path):
            for batch in parquet_file(path).iter_batches(BATCH, columns=columns):
                yield batch.to_pylist()


def _column_of(folder: RunFolder, by: str) -> str:
    """The name of an input column in the output: one named like ours is `input_…`."""
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
    """Words and their effects, averaged over the occurrences within a document."""
    lengths = np.array([len(row["units"]) for row in rows], dtype=np.intp)
    owners = np.repeat(np.arange(len(rows)), lengths)
    units = [unit.casefold().strip() or unit for row in rows for unit in row["units"]]
    words, number = np.unique(np.array(units, dtype=object), return_inverse=True)
    effects = np.array([e for row in rows for e in row["scores"][effect]], dtype=np.float64)
    attentions = np.concatenate([np.zeros(0), *map(_attentions, rows)])
    known = np.array([mark for row in rows for mark in row["identified"]], dtype=bool)
    owners, number, effects, attentions = (
        each[known] for each in (owners, number, effects, attentions)
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
    """Shares of the attention times the number of units: 1 is an even share; 0: unknown."""
    shares, importances = row["scores"]["share"], row["scores"]["importance"]
    n_units = len(row["units"])
    if shares is None and importances is None:
        return np.zeros(n_units)
    if shares is None:
        weights = np.exp(np.array(importances) - max(importances, default=0.0))
        shares = weights / weights.sum()
    return n_units * np.array(shares, dtype=np.float64)


def _effect(folder: RunFolder) -> str:
    """The first score of EFFECTS that the run has."""
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


N_WORDS, N_OTHERS, N_EXAMPLES, N_POINTS, N_DOUBTFUL = 20, 15, 3, 120, 10
PRIOR_DOCUMENTS = 3  # lowers the rank of words in few documents
QUIET = 0.1  # of the strongest word's effect: less counts as none
CLEAR = 2.0  # standard errors
MIN_DOCUMENTS = 3


@dataclass(frozen=True)
class Example:
    """A document, and the effect of one word in it."""

    row: dict[str, Any]
    effect: float


@dataclass(frozen=True)
class Difference:
    """A word, and its mean effects in one group and in all others."""

    word: int
    group: str
    here: float
    elsewhere: float
    error: float  # of the difference


@dataclass(eq=False)
class Findings:
    """The chosen words (by their numbers in the survey), points and examples."""

    strongest: list[int]
    agreed: list[int]
    opposed: list[int]
    attended: list[int]
    differing: list[Difference]
    points: dict[int, list[float]] = field(default_factory=dict)
    examples: dict[int, list[Example]] = field(default_factory=dict)
    doubtful: list[dict[str, Any]] = field(default_factory=list)  # the lowest R² first


def findings(survey: Survey) -> Findings:
    """Choose words by their sums, then read the rows again for points and examples."""
    found = choose(survey)
    chosen = (found.strongest, found.agreed, found.opposed, found.attended)
    wanted = {*chain(*chosen), *(one.word for one in found.differing)}
    _collect(survey, found, {survey.words[word]: word for word in wanted})
    return found


def strength(sums: Sums) -> FloatArray:
    """The mean size of a word's effect, lowered for words in few documents."""
    return sums.size / (sums.n + PRIOR_DOCUMENTS)


def choose(survey: Survey) -> Findings:
    sums = survey.sums
    strong = strength(sums)
    order = np.argsort(-strong, kind="stable")
    is_common = sums.n >= MIN_DOCUMENTS
    strongest = [*order[is_common[order]], *order[~is_common[order]]][:N_WORDS]
    bar = np.maximum(CLEAR * sums.error, QUIET * strong.max(initial=0.0))
    bar = np.where(is_common, bar, np.inf)
    agreed = [word for word in order.tolist() if sums.mean[word] > bar[word]][:N_OTHERS]
    opposed = [word for word in order.tolist() if sums.mean[word] < -bar[word]][:N_OTHERS]
    mean_attention = sums.attention / np.maximum(1, sums.n)
    quiet = sums.size / np.maximum(1, sums.n) <= QUIET * strong.max(initial=0.0)
    candidates = np.flatnonzero(quiet & (mean_attention > 1) & is_common)
    attended = candidates[np.argsort(-mean_attention[candidates], kind="stable")][:N_OTHERS]
    strongest = [int(word) for word in strongest]
    return Findings(strongest, agreed, opposed, attended.tolist(), differing(survey))


def differing(survey: Survey) -> list[Difference]:
    """Every group against all others; each word once, for the group where it differs most."""
    best: dict[int, tuple[float, Difference]] = {}  # word → its sure difference, and what it is
    for name, here in survey.groups.items():
        n = survey.sums.n - here.n
        rest = Sums(n, survey.sums.effect - here.effect, survey.sums.squared - here.squared)
        error = np.sqrt(here.error**2 + rest.error**2)
        enough = (here.n >= MIN_DOCUMENTS) & (n >= MIN_DOCUMENTS)
        sure = np.where(enough, np.abs(here.mean - rest.mean) - CLEAR * error, 0.0)
        for word in np.flatnonzero(sure > ROUNDING).tolist():
            means = float(here.mean[word]), float(rest.mean[word])
            one = Difference(word, name, *means, float(error[word]))
            if word not in best or best[word][0] < sure[word]:
                best[word] = float(sure[word]), one
    ranked = sorted(best.values(), key=lambda pair: -pair[0])
    return [one for _, one in ranked[:N_OTHERS]]


def _collect(survey: Survey, found: Findings, wanted: dict[str, int]) -> None:
    rng = np.random.default_rng(0)
    seen = dict.fromkeys(wanted.values(), 0)
    tops: dict[int, list[tuple[float, int, Example]]] = {word: [] for word in wanted.values()}
    doubtful: list[tuple[float, int, dict[str, Any]]] = []
    number = 0
    for rows in batches(survey.folder):
        explained = [row for row in rows if row["problem"] is None]
        for row in explained:
            number += 1
            r2 = row["quality"]["r2"]
            if row["quality"]["trust"] == "low":
                _push(doubtful, (-1.0 if r2 is None else -r2, number, row), N_DOUBTFUL)
        pairs = pairs_of(explained, survey.effect)
        numbers = np.array([wanted.get(word, -1) for word in pairs.words], dtype=np.intp)
        word_of = numbers[pairs.word] if len(numbers) else np.zeros(0, dtype=np.intp)
        for at in np.flatnonzero(word_of >= 0).tolist():
            word, effect = int(word_of[at]), float(pairs.effects[at])
            seen[word] += 1
            _sample(found.points.setdefault(word, []), effect, seen[word], rng)
            side = 1.0 if survey.sums.mean[word] >= 0 else -1.0
            number += 1
            example = Example(explained[int(pairs.documents[at])], effect)
            _push(tops[word], (side * effect, number, example), N_EXAMPLES)
    for word, heap in tops.items():
        found.examples[word] = [example for *_, example in sorted(heap, key=lambda e: -e[0])]
    found.doubtful = [row for *_, row in sorted(doubtful, key=lambda e: -e[0])]


def _push(heap: list[Any], entry: tuple[float, int, Any], most: int) -> None:
    """Keep the entries with the highest numbers; on ties, the earlier."""
    if len(heap) < most:
        heappush(heap, entry)
    elif entry[0] > heap[0][0]:
        heappushpop(heap, entry)


def _sample(points: list[float], effect: float, n_seen: int, rng: np.random.Generator) -> None:
    """Reservoir sampling: every document is kept with the same probability."""
    if len(points) < N_POINTS:
        points.append(effect)
    elif (at := int(rng.integers(n_seen))) < N_POINTS:
        points[at] = effect
