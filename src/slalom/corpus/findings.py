"""What is worth showing of a corpus: which words, and in which documents to look them up.

strongest   by Σ|effect| / (n + 3) over the n documents that hold the word; words in fewer than
            three documents come after all others
agreed      those that clearly speak for the target, the strongest first
opposed     those that clearly speak for the other class
attended    more attention than an even part, but next to no effect: candidates for cues that
            the model listens to without using them here
differing   words whose mean effect in one group is surely far from that in all others: the
            difference less two of its standard errors
"""

from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import chain
from typing import Any

import numpy as np

from slalom.corpus.survey import Sums, Survey, batches, pairs_of
from slalom.document import FloatArray
from slalom.views.numbers import ROUNDING

N_WORDS, N_OTHERS, N_EXAMPLES, N_POINTS, N_DOUBTFUL = 20, 15, 3, 120, 10
PRIOR_DOCUMENTS = 3  # a word in one document alone is not yet a strong word
QUIET = 0.1  # of the strongest word's effect: less is next to none
CLEAR = 2.0  # standard errors
MIN_DOCUMENTS = 3


@dataclass(frozen=True)
class Example:
    """A document, and what one word does in it."""

    row: dict[str, Any]
    effect: float


@dataclass(frozen=True)
class Difference:
    """A word, and what it does in one group beside all others."""

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
    """Choose words by their sums, then go through the rows again for what to show of them."""
    found = choose(survey)
    chosen = (found.strongest, found.agreed, found.opposed, found.attended)
    wanted = {*chain(*chosen), *(one.word for one in found.differing)}
    _collect(survey, found, {survey.words[word]: word for word in wanted})
    return found


def strength(sums: Sums) -> FloatArray:
    """The mean size of a word's effect, less for words in few documents."""
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
    attended = candidates[np.argsort(-mean_attention[candidates], kind="stable")][
        :N_OTHERS
    ].tolist()
    return Findings([int(word) for word in strongest], agreed, opposed, attended, differing(survey))


def differing(survey: Survey) -> list[Difference]:
    """Every group beside all others; a word once, for the group where it stands out most."""
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
    """Keep the entries with the highest numbers; ties go to the first that came."""
    if len(heap) < most:
        heappush(heap, entry)
    elif entry[0] > heap[0][0]:
        heappushpop(heap, entry)


def _sample(points: list[float], effect: float, n_seen: int, rng: np.random.Generator) -> None:
    """Every document has the same chance to be drawn."""
    if len(points) < N_POINTS:
        points.append(effect)
    elif (at := int(rng.integers(n_seen))) < N_POINTS:
        points[at] = effect
