"""Phrases as units: neighbours that act as one are joined first, then explained.

With N the text and i, j neighbours, a first round of queries measures their interaction

    s = F(N) − F(N∖i) − F(N∖j) + F(N∖ij)

The two are one phrase where |s| is at least half of what they add together and of what each adds
without the other, and a quarter of the largest effect of any word. Chains make longer phrases.
An average over many words (attention) gives no two of them such an s. The round costs two
queries per word; it counts towards `n_queries` and towards the cost of the explanation.
"""

from dataclasses import dataclass, replace
from operator import methodcaller

import numpy as np

from slalom.document import Document, FloatArray, Queries, queries_from_masks
from slalom.errors import counted
from slalom.explainers.base import (
    Around,
    Ask,
    Case,
    Explainer,
    Look,
    Plan,
    Request,
    case_of,
    noted,
    too_few,
)
from slalom.explainers.surrogate import LEAST_QUERIES
from slalom.pairs import joined

PHRASE = "phrase"  # the value of `units` that asks for them


@dataclass(frozen=True)
class ByPhrases(Around):
    """A method whose units are phrases; the words it is given are joined first."""

    method: Explainer
    too_long: str = "error"
    min_share: float = 0.5  # of what the two add together, and of what each adds without the other
    min_effect: float = 0.25  # of the largest effect of a single word

    def budget(self, document: Document) -> int:
        return len(_neighbours(document)) + self.method.budget(document)

    def plan(self, document: Document, request: Request) -> Plan:
        queries, n_queries = _neighbours(document), request.n_queries
        needed = len(queries) + LEAST_QUERIES
        if n_queries is not None and n_queries < needed:
            raise too_few(n_queries, f"phrases of {counted(document.n_units, 'word')}", needed)
        answers = yield Ask(document, queries)
        together = self._joined_to_next(case_of(document, answers, request))
        spans = joined(document.spans, together)
        phrases = yield Look(methodcaller("split", document.text, spans, too_long=self.too_long))
        left = None if n_queries is None else n_queries - answers.n_queries
        found = yield from self.method.plan(phrases, replace(request, n_queries=left))
        return noted(found, _outcome(document.n_units, phrases.n_units))

    def _joined_to_next(self, case: Case) -> set[int]:
        """Units that act as one with the unit after them."""
        n_units, scores = case.document.n_units, case.scores.reshape(len(case.scores), -1)
        if len(scores) == 1:
            return set()
        full, without, neither = scores[0], scores[1 : 1 + n_units], scores[1 + n_units :]
        first, second = without[1:] - neither, without[:-1] - neither
        together = full - neither
        effect = np.maximum(_size(together), np.maximum(_size(first), _size(second)))
        interaction = _size(together - first - second)
        least = self.min_effect * float(_size(full - without).max())
        as_one = (
            (interaction >= self.min_share * effect) & (interaction >= least) & (interaction > 0)
        )
        return set(np.flatnonzero(as_one).tolist())


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


def _size(effects: FloatArray) -> FloatArray:
    """(k, n_columns) → (k,): the largest over all classes."""
    return np.asarray(np.abs(effects).max(axis=1))


def _outcome(n_words: int, n_phrases: int) -> str:
    if n_words == n_phrases:
        return "no neighbouring words act as one: the units are words"
    return (
        f"neighbouring words that act as one were joined: {counted(n_words, 'word')} "
        f"and signs became {counted(n_phrases, 'unit')}"
    )
