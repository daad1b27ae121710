"""What a method is: it asks about a document, gets answers, and returns an Explanation.

A method is a generator. It yields queries (`Ask`), receives what the classifier says (`Answers`)
and never sees the classifier, unless it asks to look inside (`Look`): the driver (execution/) runs
many of them in step, in this process or in others.

    Request → plan: Ask → Answers → Case (scores of the target) → Found → Explanation
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier, Target, target_of
from slalom.document import BoolArray, Document, FloatArray, Queries
from slalom.errors import BudgetError, InputError, Setting, SlalomError, counted
from slalom.explanation import Explanation, Number, Quality, trust_of
from slalom.surrogates.additive import LinearModel
from slalom.surrogates.base import UNKNOWN, HeldOutQuality, Model
from slalom.surrogates.slalom.model import Anchor

TargetName = str | int | None
SplitText = Document | SlalomError  # a text as it was split, or why it could not be
Result = Explanation | SlalomError
UNREAD = "units are unknown to the tokenizer: the classifier cannot have read them"


def checked_whole(name: str, given: object, least: int) -> int:
    """A number that the caller gave; numpy's become Python's, which files can hold."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InputError(
            Setting(name), f" must be a whole number of at least {least}, not {given!r}"
        )
    return int(given)


def checked_many(texts: object, asked_by: str) -> None:
    """Texts one after another; of a table only the names of its columns would come."""
    is_table = isinstance(texts, Mapping) or hasattr(texts, "columns")
    if is_table or isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"{asked_by} takes a list of texts, not one {type(texts).__name__}")


def too_few(n_queries: int, for_what: str, needed: int) -> BudgetError:
    return BudgetError(
        f"{counted(n_queries, 'query')} {'is' if n_queries == 1 else 'are'} too few "
        f"for {for_what}: allow at least {needed}, or leave ",
        Setting("n_queries"),
        " out",
    )


@dataclass(frozen=True)
class Request:
    """What the caller wants, the same for every document."""

    target: TargetName = None
    n_queries: int | None = None
    seed: int = 0
    repeats: int = 1  # how often each query is asked; answers are means

    def planned(self, explainer: "Explainer", document: Document) -> int:
        """How many queries a document will take, at most, a few repeated ones aside."""
        n_subsets = self.repeats << min(document.n_units, 30)
        return min(self.n_queries or self.repeats * explainer.budget(document), n_subsets)


@dataclass(frozen=True, eq=False)
class Ask:
    """Queries about a document; what was answered before is not asked again."""

    document: Document
    queries: Queries
    most: int | None = None  # asked about this document in all, those before included
    again: Queries | None = None  # of those that were asked: once more, to see what they are worth


@dataclass(frozen=True, eq=False)
class Look:
    """What a method wants of the classifier itself; the driver sends what the function finds."""

    at: Callable[[Classifier], Any]


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
    classifier: str  # its name, in words
    labels: tuple[str, ...]
    independent: bool  # labels do not compete: multi-label, regression
    remarks: tuple[str, ...]  # what a reader of all answers so far must know
    repeats: Repeats | None  # None: nothing was asked twice
    n_queries: int  # about this document so far
    n_repeats: int  # of them


Returned = TypeVar("Returned", covariant=True)
Asking = Generator[Ask | Look, Any, Returned]  # is sent Answers, or what was found
Plan = Asking[Explanation]


@runtime_checkable
class Explainer(Protocol):
    """One method; `METHODS` lists them all."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...  # one line for people

    @property
    def looks_inside(self) -> bool: ...  # it needs more of a classifier than answers

    @property
    def has_shapley_errors(self) -> bool: ...  # standard errors of a score called "shapley"

    def budget(self, document: Document) -> int:
        """How many queries the method asks for when the caller does not say."""
        ...

    def plan(self, document: Document, request: Request) -> Plan: ...


class Around(Protocol):
    """A method around another, which it is like in all that it does not do itself."""

    method: Explainer

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def summary(self) -> str:
        return self.method.summary

    @property
    def looks_inside(self) -> bool:
        return self.method.looks_inside

    @property
    def has_shapley_errors(self) -> bool:
        return self.method.has_shapley_errors


def noted(explanation: Explanation, note: str) -> Explanation:
    """The same with a further note."""
    quality = explanation.quality
    return replace(explanation, quality=replace(quality, notes=(*quality.notes, note)))


@dataclass(frozen=True, eq=False)
class Case:
    """One document, what the classifier said about it, and what is to be explained."""

    document: Document
    answers: Answers
    target: Target
    scores: FloatArray  # (n_queries,) or (n_queries, n_classes), the full text first
    seed: int

    @property
    def score(self) -> FloatArray:
        """() or (n_classes,) the log-odds, or centred logits, of the full text."""
        return np.asarray(self.scores[0])

    def scores_of(self, logits: FloatArray) -> FloatArray:
        """Logits of this classifier as scores of this case's target."""
        return self.target.scores(logits, independent=self.answers.independent)

    @cached_property
    def noise(self) -> FloatArray:
        """() or (n_classes,) variance of a score, were it asked again; 0: it repeats itself.

        Differences a thousandth of those between subsets are rounding, as are those of single
        precision after many layers.
        """
        repeats = self.answers.repeats
        if repeats is None:
            return np.zeros_like(self.score)
        missed = self.scores_of(repeats.before) - self.scores_of(repeats.after)
        variance = (missed**2).mean(axis=0) / (2 * repeats.n_each)
        largest = 1.0 + np.abs(self.scores).max(axis=0)
        floor = (1e-3 * self.scores.std(axis=0)) ** 2 + (1e-5 * largest) ** 2
        return np.asarray(np.where(variance <= floor, 0.0, variance))

    @property
    def is_noisy(self) -> bool:
        return bool(self.noise.any())

    def additive(self, scores: FloatArray) -> LinearModel:
        """The model that takes the scores at their word: removing a unit takes its score away."""
        return LinearModel(scores, np.asarray(self.score - scores.sum(axis=0)))

    def _trust(self, found: "Found") -> str:
        """What was not read cannot be explained; what was asked in full needs no fit."""
        if self._unread():
            return trust_of(None)
        if found.exact and not self.is_noisy:
            return "exact"
        r2, error = found.held_out.r2, found.held_out.r2_error
        r2 = 1.0 if found.exact and r2 is None else r2
        return trust_of(None if r2 is None else min(r2, self._repeatable()), error)

    def _repeatable(self) -> float:
        """How much of what two subsets differ by is more than the noise of two answers."""
        variation = np.maximum(self.scores.var(axis=0), np.finfo(float).tiny)
        return float(1.0 - (2.0 * self.noise / variation).max())

    def _noted(self) -> tuple[str, ...]:
        """What to know of a classifier that does not repeat itself."""
        repeats = self.answers.repeats
        if repeats is None or not self.is_noisy:
            return ()
        deviation = float(np.sqrt(self.noise.max() * repeats.n_each))
        note = (
            f"the classifier's answers vary: {counted(len(repeats.before), 'query')} asked twice "
            f"got answers that differ by ±{deviation:.2g}, which the errors include"
        )
        many = f"; each query was repeated {repeats.n_each} times and its answers averaged"
        more = ": more repeats make them smaller"
        return (note + (many if repeats.n_each > 1 else more),)

    def _unread(self) -> tuple[str, ...]:
        n_unknown, n_units = self.document.n_unknown, self.document.n_units
        if n_unknown <= n_units / 2:
            return ()
        return (f"{'all' if n_unknown == n_units else f'{n_unknown} of {n_units}'} {UNREAD}",)

    def _empty(self) -> FloatArray | None:
        """The score of the empty text, where it was asked."""
        logits = self.answers.empty
        return None if logits is None else self.scores_of(logits[None])[0]

    def explanation(self, found: "Found", method: str) -> Explanation:
        """The one place where an Explanation is made; the driver adds what asking cost."""
        document, answers = self.document, self.answers
        identified, empty = found.identified, self._empty()
        held_out = UNKNOWN if self._unread() else found.held_out  # of what nobody read
        is_measured = empty is not None
        if identified is None:
            identified = np.ones(document.n_units, dtype=bool)
        fitted = found.model if found.fitted is None else found.fitted
        if empty is None and found.model is not None:
            empty = found.model.empty_score
        return Explanation(
            text=document.text,
            units=document.units,
            spans=document.spans,
            features=document.features,
            scores=found.scores,
            errors=found.errors,
            identified=identified,
            anchor=found.anchor,
            quality=Quality(
                r2=held_out.r2,
                rmse=held_out.rmse,
                n_queries=answers.n_queries,
                n_repeats=answers.n_repeats,
                n_tokens=found.n_tokens,
                seconds=0.0,
                trust=self._trust(found),
                notes=(
                    *self._unread(),
                    *document.notes,
                    *answers.remarks,
                    *self._noted(),
                    *found.notes,
                ),
                parts=found.parts,
                r2_error=found.held_out.r2_error,
                two_scores=None if self._unread() else found.two_scores,
            ),
            logits=answers.logits[0],
            labels=answers.labels,
            target=self.target.label,
            target_index=self.target.index,
            method=method,
            seed=self.seed,
            classifier=answers.classifier,
            independent=answers.independent,
            primary_score=found.primary_score,
            model=found.model,
            measured=found.measured,
            whole=_whole(fitted, identified),
            base=_number(empty),
            base_measured=is_measured,
            length_curve=found.length_curve,
            length_errors=found.length_errors,
            windowed=document.windowed,
        )


@dataclass(frozen=True, eq=False)
class Found:
    """What a method found out about the units of one document."""

    scores: dict[str, FloatArray]  # name → (n_units,) or (n_units, n_classes)
    errors: dict[str, FloatArray] = field(default_factory=dict)
    model: Model | None = None  # over units
    fitted: Model | None = None  # the same without what was measured since; None: nothing was
    identified: BoolArray | None = None  # None: all of them
    held_out: HeldOutQuality = UNKNOWN
    notes: tuple[str, ...] = ()
    n_tokens: int = 0  # that went through the model besides the queries
    primary_score: str | None = None
    measured: dict[str, BoolArray] = field(default_factory=dict)
    anchor: Anchor | None = None
    two_scores: float | None = None  # R² of value and importance alone
    length_curve: FloatArray | None = None
    length_errors: FloatArray | None = None
    parts: dict[str, float] = field(default_factory=dict)
    exact: bool = False  # every subset was asked, and that is what the scores say


def case_of(document: Document, answers: Answers, request: Request) -> Case:
    """The target is settled by the answer to the full text, which stands in the first row."""
    target = target_of(request.target, answers.labels, answers.logits[0])
    scores = target.scores(answers.logits, independent=answers.independent)
    return Case(document, answers, target, scores, request.seed)


def _whole(model: Model | None, identified: BoolArray) -> Number | None:
    """What the model says of the full text."""
    return None if model is None else _number(model.predict(identified[None].astype(float))[0])


def _number(score: FloatArray | None) -> Number | None:
    return score if score is None or np.ndim(score) else float(score)
