"""What a method is, and how it asks: every explainer gets its answers from here.

An explainer knows how a question is answered and billed, never how a classifier works inside.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier, checked_logits, remarks_on
from slalom.classifiers.cached import distinct
from slalom.document import Document, FloatArray, Queries, stack
from slalom.errors import SlalomError
from slalom.explanation import Explanation

TargetName = str | int | None
Result = Explanation | SlalomError


class Explainer(Protocol):
    """One method; `METHODS` lists them all.

    One that needs nothing of a classifier but answers may say so (`only_asks`): worker processes
    then run it where a device answers.
    """

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


@dataclass(frozen=True)
class Request:
    """What is wanted of every document alike."""

    target: TargetName = None
    n_queries: int | None = None
    seed: int = 0

    def planned(self, explainer: Explainer, document: Document) -> int:
        """How many queries a document will take, at most."""
        n_subsets = 1 << min(document.n_units, 30)
        return min(self.n_queries or explainer.budget(document), n_subsets)


@dataclass(frozen=True, eq=False)
class Answers:
    """What the classifier said to the queries of one document so far, and what that cost."""

    logits: FloatArray  # (n_queries, n_classes) one row per query as given last
    first: NDArray[np.intp]  # rows that differ as the classifier reads them
    inverse: NDArray[np.intp]  # (n_queries,) which of `first` answers each row
    asked: Queries  # every distinct query so far, in the order of `known`
    known: Mapping[Hashable, FloatArray] = field(repr=False)  # what it read → what it said
    n_tokens: int
    seconds: float
    remarks: tuple[str, ...]

    @property
    def n_queries(self) -> int:
        """Distinct queries asked."""
        return len(self.known)


@dataclass(frozen=True, eq=False)
class _Fold:
    """The queries of one document as the classifier reads them, and which are new."""

    seen: Sequence[Hashable]
    first: NDArray[np.intp]
    inverse: NDArray[np.intp]
    new: NDArray[np.intp]


def ask(
    classifier: Classifier,
    asked: Sequence[tuple[Document, Queries]],
    before: Sequence[Answers] | None = None,
) -> list[Answers]:
    """Ask each distinct query of each document once, all documents together.

    What is known from `before`, one for each document, is not asked again; costs add up.
    """
    start = perf_counter()
    earlier: Sequence[Answers | None] = [None] * len(asked) if before is None else before
    folds = [
        _fold(classifier.seen(document, queries), known)
        for (document, queries), known in zip(asked, earlier, strict=True)
    ]
    shown = [
        (document, queries[fold.new])
        for (document, queries), fold in zip(asked, folds, strict=True)
    ]
    answered = _checked(classifier, shown)
    tokens = [int(document.n_tokens(queries).sum()) for document, queries in shown]
    per_token = (perf_counter() - start) / max(1, sum(tokens))
    return [
        _answers(classifier, question, fold, (logits, n_tokens, n_tokens * per_token), known)
        for question, fold, logits, n_tokens, known in zip(
            shown, folds, answered, tokens, earlier, strict=True
        )
    ]


def _fold(seen: Sequence[Hashable], before: Answers | None) -> _Fold:
    first, inverse = distinct(seen)
    known: Mapping[Hashable, FloatArray] = {} if before is None else before.known
    new = np.array([at for at in first.tolist() if seen[at] not in known], dtype=np.intp)
    return _Fold(seen, first, inverse, new)


def _checked(classifier: Classifier, shown: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
    """The answers to what is new; a class of the caller's own may give anything."""
    answers = classifier.logits([pair for pair in shown if len(pair[1])])
    labels, name, left = classifier.labels, classifier.name, iter(answers)
    return [
        checked_logits(next(left), n_queries=len(queries), n_classes=len(labels), name=name)
        if len(queries)
        else np.zeros((0, len(labels)))
        for _, queries in shown
    ]


def _answers(
    classifier: Classifier,
    question: tuple[Document, Queries],
    fold: _Fold,
    found: tuple[FloatArray, int, float],
    before: Answers | None,
) -> Answers:
    document, queries = question
    logits, n_tokens, seconds = found
    entries = [fold.seen[at] for at in fold.new.tolist()]
    new = dict(zip(entries, logits, strict=True))
    if before is None:  # what is new is what differs, in this order
        known, everything, said, rows = new, queries, logits, logits[fold.inverse]
    else:
        known = {**before.known, **new}
        everything = stack([before.asked, queries])
        said = np.array(list(known.values())).reshape(len(known), -1)
        rows = np.array([known[entry] for entry in fold.seen]).reshape(len(fold.seen), -1)
    return Answers(
        logits=rows,
        first=fold.first,
        inverse=fold.inverse,
        asked=everything,
        known=known,
        n_tokens=n_tokens + (before.n_tokens if before else 0),
        seconds=seconds + (before.seconds if before else 0.0),
        remarks=remarks_on(classifier, document, everything, said),
    )
