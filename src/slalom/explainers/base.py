"""What a method is, and `ask`, through which every method queries the classifier.

Each distinct query is asked once, and its tokens and seconds are counted here.
"""

from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier, checked_logits, remarks_on
from slalom.classifiers.cached import distinct
from slalom.document import Document, FloatArray, Queries, stack
from slalom.errors import ClassifierError, InputError, Setting, SlalomError, counted
from slalom.explanation import Explanation

TargetName = str | int | None
Result = Explanation | SlalomError


def checked_whole(name: str, given: object, least: int) -> int:
    """A number that the caller gave; numpy's become Python's, which files can hold."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InputError(
            Setting(name), f" must be a whole number of at least {least}, not {given!r}"
        )
    return int(given)


class Explainer(Protocol):
    """One method; `METHODS` lists them all.

    A method with `only_asks` uses nothing of a classifier but its answers: worker processes can
    then run it, and ask a classifier that lives on a device. One with `has_shapley_errors`
    gives standard errors of a score called "shapley", and can be asked to make them small.
    """

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...  # one line for people

    def budget(self, document: Document) -> int:
        """How many queries the method asks for when the caller does not say."""
        ...

    def explain(
        self, classifier: Classifier, documents: Sequence[Document], request: "Request"
    ) -> list[Explanation]: ...


@dataclass(frozen=True)
class Request:
    """What the caller wants, the same for every document."""

    target: TargetName = None
    n_queries: int | None = None
    seed: int = 0

    def planned(self, explainer: Explainer, document: Document) -> int:
        """How many queries a document will take, at most."""
        n_subsets = 1 << min(document.n_units, 30)
        return min(self.n_queries or explainer.budget(document), n_subsets)


@dataclass(frozen=True, eq=False)
class Answers:
    """The classifier's answers to the queries of one document so far, and what they cost."""

    logits: FloatArray  # (n_queries, n_classes), one row per query of the last call
    first: NDArray[np.intp]  # rows of that call that differ as the classifier reads them
    inverse: NDArray[np.intp]  # (n_queries,) which of `first` each row equals
    asked: Queries  # every distinct query so far, in the order of `known`
    known: Mapping[Hashable, FloatArray] = field(repr=False)  # what the classifier read → logits
    n_tokens: int
    seconds: float
    remarks: tuple[str, ...]

    @property
    def n_queries(self) -> int:
        """Distinct queries asked."""
        return len(self.known)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The queries of one document as the classifier reads them, and which of them are new."""

    entries: Sequence[Hashable]
    first: NDArray[np.intp]
    inverse: NDArray[np.intp]
    new: NDArray[np.intp]


def ask(
    classifier: Classifier,
    asked: Sequence[tuple[Document, Queries]],
    before: Sequence[Answers] | None = None,
) -> list[Answers]:
    """Ask each distinct query of each document once, all documents together.

    What is known from `before`, one per document, is not asked again; costs add up.
    """
    start = perf_counter()
    earlier: Sequence[Answers | None] = [None] * len(asked) if before is None else before
    seen = [
        _seen(classifier.seen(document, queries), known)
        for (document, queries), known in zip(asked, earlier, strict=True)
    ]
    new = [
        (document, queries[one.new]) for (document, queries), one in zip(asked, seen, strict=True)
    ]
    answered = _checked(classifier, new)
    tokens = [int(document.n_tokens(queries).sum()) for document, queries in new]
    per_token = (perf_counter() - start) / max(1, sum(tokens))
    return [
        _answers(classifier, question, one, (logits, n_tokens, n_tokens * per_token), known)
        for question, one, logits, n_tokens, known in zip(
            new, seen, answered, tokens, earlier, strict=True
        )
    ]


def _seen(entries: Sequence[Hashable], before: Answers | None) -> _Seen:
    first, inverse = distinct(entries)
    known: Mapping[Hashable, FloatArray] = {} if before is None else before.known
    new = np.array([at for at in first.tolist() if entries[at] not in known], dtype=np.intp)
    return _Seen(entries, first, inverse, new)


def _checked(classifier: Classifier, new: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
    """The answers, checked: a class of the caller's own may return anything."""
    asked = [pair for pair in new if len(pair[1])]
    answers = classifier.logits(asked) if asked else []
    if not isinstance(answers, Sized) or len(answers) != len(asked):
        given = len(answers) if isinstance(answers, Sized) else type(answers).__name__
        raise ClassifierError(
            f"{classifier.name}.logits returned {given} for {counted(len(asked), 'document')}: "
            "expected a list with one array for each"
        )
    labels, name, left = classifier.labels, classifier.name, iter(answers)
    return [
        checked_logits(next(left), n_queries=len(queries), n_classes=len(labels), name=name)
        if len(queries)
        else np.zeros((0, len(labels)))
        for _, queries in new
    ]


def _answers(
    classifier: Classifier,
    question: tuple[Document, Queries],
    seen: _Seen,
    answered: tuple[FloatArray, int, float],
    before: Answers | None,
) -> Answers:
    document, queries = question
    logits, n_tokens, seconds = answered
    new_entries = [seen.entries[at] for at in seen.new.tolist()]
    known = dict(zip(new_entries, logits, strict=True))
    if before is None:  # every distinct query is new, in this order
        all_queries, all_logits, rows = queries, logits, logits[seen.inverse]
    else:
        known = {**before.known, **known}
        all_queries = stack([before.asked, queries])
        all_logits = np.array(list(known.values())).reshape(len(known), -1)
        rows = np.array([known[entry] for entry in seen.entries]).reshape(len(seen.entries), -1)
    return Answers(
        logits=rows,
        first=seen.first,
        inverse=seen.inverse,
        asked=all_queries,
        known=known,
        n_tokens=n_tokens + (before.n_tokens if before else 0),
        seconds=seconds + (before.seconds if before else 0.0),
        remarks=remarks_on(classifier, document, all_queries, all_logits),
    )
