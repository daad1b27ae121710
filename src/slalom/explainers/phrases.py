"""Phrases as units: neighbours that act as one are put together first, then explained.

With N the text and i, j neighbours, both steps of the first round are asked:

    s = F(N) − F(N∖i) − F(N∖j) + F(N∖ij)        what is due to their being there together

The two are one phrase where s is at least half of what they add together and of what each adds
without the other, and a quarter of the largest effect of any word. Chains make longer phrases.
An average over many words (attention) gives no two of them such an s. The round costs two
questions per word; it counts towards `n_queries`, and the explanation is told the total.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.classifiers.base import Classifier, Units
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document, FloatArray, Queries, queries_from_masks
from slalom.errors import BudgetError, Setting, counted
from slalom.explainers.base import Explainer, TargetName, ask
from slalom.explainers.case import Case, case_of
from slalom.explainers.remembering import Remembering
from slalom.explanation import Explanation
from slalom.pairs import joined

PHRASE = "phrase"  # what `units` is called
AS_ONE = 0.5  # of what the two add together, and of what each adds alone
LEAST = 0.25  # of the largest effect of a single word
LEFT = 10  # queries that the explanation itself needs at least


@dataclass(frozen=True)
class ByPhrases:
    """A method that is given words, and explains the phrases they make."""

    method: Explainer
    too_long: str = "error"

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def summary(self) -> str:
        return self.method.summary

    def budget(self, document: Document) -> int:
        return len(_neighbours(document)) + self.method.budget(document)

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]:
        questions = [(document, _neighbours(document)) for document in documents]
        for document, queries in questions:
            _check_budget(document, len(queries), n_queries)
        asked = Remembering(CachedClassifier(classifier))
        cases = [
            case_of(asked, document, answers, target)
            for document, answers in zip(documents, ask(asked, questions), strict=True)
        ]
        found: list[Explanation] = []
        for together in _alike(cases, n_queries):
            phrases = [self._cut(asked, case) for case in together.cases]
            explained = self.method.explain(
                asked, phrases, target=target, n_queries=together.n_queries, seed=seed
            )
            found += [
                _told(explanation, asked, case.document, document)
                for explanation, case, document in zip(
                    explained, together.cases, phrases, strict=True
                )
            ]
        return found

    def _cut(self, classifier: Classifier, case: Case) -> Document:
        document = case.document
        spans = joined(document.spans, _one_with_next(case))
        return classifier.split(document.text, spans, too_long=self.too_long)


def by_phrases(method: Explainer, units: Units, too_long: str) -> tuple[Explainer, Units]:
    """The method and the units it is given: words, where phrases are wanted."""
    if isinstance(units, str) and units == PHRASE:
        return ByPhrases(method, too_long), "word"
    return method, units


@dataclass(frozen=True, eq=False)
class _Together:
    """Neighbouring documents with the same number of queries left."""

    cases: list[Case]
    n_queries: int | None


def _alike(cases: Sequence[Case], n_queries: int | None) -> list[_Together]:
    """Runs that can be explained in one go; without a bound that is all of them."""
    runs: list[_Together] = []
    for case in cases:
        left = None if n_queries is None else n_queries - case.answers.n_queries
        if not runs or runs[-1].n_queries != left:
            runs.append(_Together([], left))
        runs[-1].cases.append(case)
    return runs


def _neighbours(document: Document) -> Queries:
    """The text, the text without each unit, without each two neighbours."""
    n_units = document.n_units
    if n_units < 2 + (not document.has_empty_query):
        return document.full()
    masks = np.ones((2 * n_units, n_units), dtype=bool)
    single = np.arange(n_units)
    masks[1 + single, single] = False
    first = np.arange(n_units - 1)
    masks[1 + n_units + first, first] = masks[1 + n_units + first, first + 1] = False
    return queries_from_masks(masks)


def _one_with_next(case: Case) -> set[int]:
    """Units that act as one with the unit after them."""
    n_units, scores = case.document.n_units, case.scores.reshape(len(case.scores), -1)
    if len(scores) == 1:
        return set()
    whole, without, neither = scores[0], scores[1 : 1 + n_units], scores[1 + n_units :]
    first, second = without[1:] - neither, without[:-1] - neither
    together = whole - neither
    own = np.maximum(_size(together), np.maximum(_size(first), _size(second)))
    due = _size(together - first - second)
    least = LEAST * float(_size(whole - without).max())
    return set(np.flatnonzero((due >= AS_ONE * own) & (due >= least) & (due > 0)).tolist())


def _size(effects: FloatArray) -> FloatArray:
    """(k, n_columns) → (k,); the largest of all classes."""
    return np.asarray(np.abs(effects).max(axis=1))


def _told(
    explanation: Explanation, asked: Remembering, words: Document, phrases: Document
) -> Explanation:
    n_queries, n_tokens = asked.cost(words, phrases)
    n_joined = words.n_units - phrases.n_units
    note = (
        f"neighbours that act as one were put together: {counted(words.n_units, 'word')} "
        f"and signs became {counted(phrases.n_units, 'unit')}"
        if n_joined
        else "no neighbours act as one: the units are words"
    )
    quality = explanation.quality
    return replace(
        explanation,
        quality=replace(
            quality, n_queries=n_queries, n_tokens=n_tokens, notes=(*quality.notes, note)
        ),
    )


def _check_budget(document: Document, n_first: int, n_queries: int | None) -> None:
    if n_queries is not None and n_queries < n_first + LEFT:
        raise BudgetError(
            f"{counted(n_queries, 'query')} are too few for phrases of "
            f"{counted(document.n_units, 'word')}: allow at least {n_first + LEFT}, or leave ",
            Setting("n_queries"),
            " out",
        )
