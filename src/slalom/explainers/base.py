"""What a method is: it asks about a document and is told, or it looks inside the classifier.

A method that asks is a generator. It yields queries (`Ask`), receives what the classifier says
(`Answers`), returns an Explanation, and never sees the classifier: the driver (execution/) runs
many of them in step, in this process or in others.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier
from slalom.document import Document, FloatArray, Queries, Span
from slalom.errors import InputError, Setting, SlalomError
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


@dataclass(frozen=True)
class Outputs:
    """How the numbers of a classifier are to be read."""

    name: str  # of the classifier, in words
    labels: tuple[str, ...]
    independent: bool  # labels do not compete: multi-label, regression


@dataclass(frozen=True, eq=False)
class Ask:
    """Queries about a document; what was answered before is not asked again."""

    document: Document
    queries: Queries
    most: int | None = None  # asked about this document in all, those before included
    again: Queries | None = None  # of those that were asked: once more, to see what they are worth


@dataclass(frozen=True, eq=False)
class Split:
    """The text of a document with other units; the driver sends the new document."""

    document: Document
    spans: Sequence[Span]
    too_long: str


@dataclass(frozen=True, eq=False)
class Repeats:
    """Queries that were asked more than once: a classifier that repeats itself says the same."""

    before: FloatArray  # (n, n_classes) one answer to each
    after: FloatArray  # (n, n_classes) a later one
    n_each: int  # answers that are averaged wherever one is used


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to the queries of one Ask, those beyond its `most` left out."""

    logits: FloatArray  # (n_answered, n_classes)
    rows: NDArray[np.intp]  # (n_answered,) which of the queries they answer
    first: NDArray[np.intp]  # those answers that differ as the classifier reads their queries
    inverse: NDArray[np.intp]  # (n_answered,) which of `first` each equals
    empty: FloatArray | None  # (n_classes,) of the empty text; None: it was not asked
    outputs: Outputs
    remarks: tuple[str, ...]  # what a reader of all answers so far must know
    repeats: Repeats | None  # None: nothing was asked twice
    n_queries: int  # about this document so far
    n_repeats: int  # of them
    n_tokens: int
    seconds: float


Found = TypeVar("Found", covariant=True)
Asking = Generator[Ask | Split, Any, Found]  # is sent Answers, or a Document
Plan = Asking[Explanation]


class Explainer(Protocol):
    """One method; `METHODS` lists them all. It also has `plan` or `explain`, as below.

    One with `has_shapley_errors` gives standard errors of a score called "shapley", and can be
    asked to make them small.
    """

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...  # one line for people

    def budget(self, document: Document) -> int:
        """How many queries the method asks for when the caller does not say."""
        ...


@runtime_checkable
class AskingMethod(Explainer, Protocol):
    """A method that needs nothing of a classifier but answers."""

    def plan(self, document: Document, request: "Request") -> Plan: ...


@runtime_checkable
class InsideMethod(Explainer, Protocol):
    """A method that looks inside the classifier, or asks it in a way of its own."""

    def explain(
        self, classifier: Classifier, documents: Sequence[Document], request: "Request"
    ) -> list[Explanation]: ...


@dataclass(frozen=True)
class Request:
    """What the caller wants, the same for every document."""

    target: TargetName = None
    n_queries: int | None = None
    seed: int = 0
    repeats: int = 1  # how often each query is asked; answers are means

    def planned(self, explainer: Explainer, document: Document) -> int:
        """How many queries a document will take, at most, a few repeated ones aside."""
        n_subsets = self.repeats << min(document.n_units, 30)
        return min(self.n_queries or self.repeats * explainer.budget(document), n_subsets)
