"""Phrases as units: neighbours that act as one are joined first, then explained.

With N the text and i, j neighbours, a first round of queries measures their interaction

    s = F(N) − F(N∖i) − F(N∖j) + F(N∖ij)

The two are one phrase where |s| is at least half of what they add together and of what each adds
without the other, and a quarter of the largest effect of any word. Chains make longer phrases.
An average over many words (attention) gives no two of them such an s. The round costs two
queries per word; it counts towards `n_queries` and towards the cost of the explanation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.classifiers.base import UNIT_KINDS, Classifier, Units
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document, FloatArray, Queries, queries_from_masks
from slalom.errors import BudgetError, Setting, UnknownNameError, counted
from slalom.explainers.base import Explainer, Request, ask
from slalom.explainers.case import Case, case_of
from slalom.explainers.cost_recorder import CostRecorder
from slalom.explanation import Explanation
from slalom.pairs import joined

PHRASE = "phrase"  # the value of `units` that asks for them
MIN_SHARE = 0.5  # of what the two add together, and of what each adds without the other
MIN_EFFECT = 0.25  # of the largest effect of a single word
MIN_REMAINING = 10  # queries that the explanation itself needs


@dataclass(frozen=True)
class ByPhrases:
    """A method that joins the words it is given to phrases, and explains these."""

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
        self, classifier: Classifier, documents: Sequence[Document], request: Request
    ) -> list[Explanation]:
        questions = [(document, _neighbours(document)) for document in documents]
        for document, queries in questions:
            _check_budget(document, len(queries), request.n_queries)
        recorder = CostRecorder(CachedClassifier(classifier))
        cases = [
            case_of(recorder, document, answers, request.target)
            for document, answers in zip(documents, ask(recorder, questions), strict=True)
        ]
        explanations: list[Explanation] = []
        for run in _runs_of_equal_budget(cases, request.n_queries):
            phrases = [self._joined(recorder, case) for case in run.cases]
            explained = self.method.explain(
                recorder, phrases, replace(request, n_queries=run.n_queries)
            )
            explanations += [
                _with_cost(explanation, recorder, case.document, document)
                for explanation, case, document in zip(explained, run.cases, phrases, strict=True)
            ]
        return explanations

    def _joined(self, classifier: Classifier, case: Case) -> Document:
        """The text of the case, split into phrases."""
        document = case.document
        spans = joined(document.spans, _joined_to_next(case))
        return classifier.split(document.text, spans, too_long=self.too_long)


def by_phrases(method: Explainer, units: Units, too_long: str) -> tuple[Explainer, Units]:
    """The method and the units it is given: words, where phrases are wanted."""
    if isinstance(units, str) and units == PHRASE:
        return ByPhrases(method, too_long), "word"
    if isinstance(units, str) and units not in UNIT_KINDS:
        raise UnknownNameError("unit kind", units, (*UNIT_KINDS, PHRASE))
    return method, units.tolist() if isinstance(units, np.ndarray) else units


@dataclass(frozen=True, eq=False)
class _Run:
    """Consecutive documents with the same number of queries left, explained in one call."""

    cases: list[Case]
    n_queries: int | None


def _runs_of_equal_budget(cases: Sequence[Case], n_queries: int | None) -> list[_Run]:
    """Without a bound, one run of all cases."""
    runs: list[_Run] = []
    for case in cases:
        left = None if n_queries is None else n_queries - case.answers.n_queries
        if not runs or runs[-1].n_queries != left:
            runs.append(_Run([], left))
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


def _joined_to_next(case: Case) -> set[int]:
    """Units that act as one with the unit after them."""
    n_units, scores = case.document.n_units, case.scores.reshape(len(case.scores), -1)
    if len(scores) == 1:
        return set()
    full, without, neither = scores[0], scores[1 : 1 + n_units], scores[1 + n_units :]
    first, second = without[1:] - neither, without[:-1] - neither
    together = full - neither
    effect = np.maximum(_size(together), np.maximum(_size(first), _size(second)))
    interaction = _size(together - first - second)
    least = MIN_EFFECT * float(_size(full - without).max())
    as_one = (interaction >= MIN_SHARE * effect) & (interaction >= least) & (interaction > 0)
    return set(np.flatnonzero(as_one).tolist())


def _size(effects: FloatArray) -> FloatArray:
    """(k, n_columns) → (k,): the largest over all classes."""
    return np.asarray(np.abs(effects).max(axis=1))


def _with_cost(
    explanation: Explanation, recorder: CostRecorder, words: Document, phrases: Document
) -> Explanation:
    """The explanation with the cost of both rounds, and a note on what was joined."""
    n_queries, n_tokens = recorder.cost(words, phrases)
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
    needed = n_first + MIN_REMAINING
    if n_queries is not None and n_queries < needed:
        raise BudgetError(
            f"{counted(n_queries, 'query')} are too few for phrases of "
            f"{counted(document.n_units, 'word')}: allow at least {needed}, or leave ",
            Setting("n_queries"),
            " out",
        )
