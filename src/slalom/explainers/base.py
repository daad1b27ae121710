"""What a method is, and how it asks: every explainer gets its answers from here.

An explainer knows how a question is answered and billed, never how a classifier works inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import (
    Classifier,
    Target,
    checked_logits,
    is_independent,
    remarks_on,
    target_of,
)
from slalom.classifiers.cached import distinct
from slalom.document import Document, FloatArray, Queries
from slalom.explanation import Explanation

TargetName = str | int | None


class Explainer(Protocol):
    """One method; `METHODS` lists them all."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...  # one line for people

    def budget(self, document: Document) -> int:
        """How many queries the method asks for when the caller does not say."""
        ...

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]: ...


@dataclass(frozen=True, eq=False)
class Answers:
    """What the classifier said to the distinct queries of one document, and what that cost."""

    logits: FloatArray  # (n_queries, n_classes) one row per query as sampled
    first: NDArray[np.intp]  # rows that were asked; the others repeat one of them
    inverse: NDArray[np.intp]  # (n_queries,) which of `first` answers each row
    n_tokens: int
    seconds: float
    remarks: tuple[str, ...]

    @property
    def n_queries(self) -> int:
        return len(self.first)


def ask(classifier: Classifier, asked: Sequence[tuple[Document, Queries]]) -> list[Answers]:
    """Ask each distinct query of each document once, all documents together."""
    start = perf_counter()
    folds = [distinct(classifier.seen(document, queries)) for document, queries in asked]
    shown = [
        (document, queries[first])
        for (document, queries), (first, _) in zip(asked, folds, strict=True)
    ]
    answered = [
        checked_logits(
            logits,
            n_queries=len(queries),
            n_classes=len(classifier.labels),
            name=classifier.name,
        )
        for (_, queries), logits in zip(shown, classifier.logits(shown), strict=True)
    ]
    tokens = [int(document.n_tokens(queries).sum()) for document, queries in shown]
    per_token = (perf_counter() - start) / max(1, sum(tokens))
    return [
        Answers(
            logits[inverse],
            first,
            inverse,
            n_tokens,
            n_tokens * per_token,
            remarks_on(classifier, document, queries, logits),
        )
        for (document, queries), logits, (first, inverse), n_tokens in zip(
            shown, answered, folds, tokens, strict=True
        )
    ]


def scored(
    classifier: Classifier, wanted: TargetName, logits: FloatArray, full: int = 0
) -> tuple[Target, FloatArray]:
    """The target, settled by the answer to the full text, and every answer as its score."""
    target = target_of(wanted, classifier.labels, logits[full])
    return target, target.scores(logits, independent=is_independent(classifier))
