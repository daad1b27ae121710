"""What a metric evaluates: an explanation together with the classifier it explains.

All metrics query the classifier through here, each distinct query once: metrics that are given the
same CachedClassifier share its answers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.base import Classifier, Target, is_independent
from slalom.classifiers.cached import CachedClassifier
from slalom.document import BoolArray, Document, FloatArray, queries_from_masks
from slalom.errors import InputError, UnknownNameError
from slalom.explanation import Explanation
from slalom.scales import logistic

ONE_CLASS = "this metric is for one class: explain one target, not target='all'"
SINGLE = ("score", "shapley", "removal")  # the first of these that an explanation has represents it


@dataclass(frozen=True, eq=False)
class Subject:
    """An explanation and its classifier, which answers in log-odds of the explained target."""

    classifier: CachedClassifier
    explanation: Explanation
    document: Document
    n_asked_before: int

    @property
    def n_units(self) -> int:
        return self.document.n_units

    @property
    def n_removable(self) -> int:
        """How many units can be removed: all, or all but one if the text cannot be empty."""
        return self.n_units - (not self.document.has_empty_query)

    @property
    def n_queries(self) -> int:
        """Distinct queries asked since the subject was made."""
        return self.classifier.n_asked - self.n_asked_before

    def scores(self, masks: BoolArray) -> FloatArray:
        """(k, n_units) of 0/1 → (k,) log-odds, or (k, n_classes) where all are explained."""
        logits = self.classifier.logits([(self.document, queries_from_masks(masks))])[0]
        target = Target(self.explanation.target_index, self.explanation.target)
        return target.scores(logits, independent=is_independent(self.classifier))

    def scores_of_one_class(self, masks: BoolArray) -> FloatArray:
        """(k,) log-odds, of a single target."""
        scores = self.scores(masks)
        if scores.ndim != 1:
            raise InputError(ONE_CLASS)
        return scores

    def probabilities(self, masks: BoolArray) -> FloatArray:
        """The probability of the target for each subset."""
        return logistic(self.scores_of_one_class(masks))


def subject_of(
    classifier: Classifier, explanation: Explanation, document: Document | None = None
) -> Subject:
    """`document` is the explanation's; without it the text is split again."""
    cached = (
        classifier if isinstance(classifier, CachedClassifier) else CachedClassifier(classifier)
    )
    if document is None:
        too_long = "windows" if explanation.windowed else "truncate"
        document = cached.split(explanation.text, explanation.spans, too_long=too_long)
    if document.units != explanation.units or tuple(cached.labels) != explanation.labels:
        raise InputError(
            f"{cached.name} does not cut this text as the explained classifier did "
            f"({explanation.classifier}): measure with the classifier that was explained"
        )
    return Subject(cached, explanation, document, cached.n_asked)


def greedy_order(
    predict: Callable[[BoolArray], FloatArray],
    candidates: Iterable[int],
    n_units: int,
    n_steps: int,
) -> list[int]:
    """At most `n_steps` candidates; each next one leaves the lowest score when removed."""
    left, present = [int(unit) for unit in candidates], np.ones(n_units, dtype=bool)
    order: list[int] = []
    while left and len(order) < n_steps:
        tried = np.repeat(present[None], len(left), axis=0)
        tried[np.arange(len(left)), left] = False
        order.append(left.pop(int(np.argmin(predict(tried)))))
        present[order[-1]] = False
    return order


def unit_scores(explanation: Explanation, name: str | None = None) -> FloatArray:
    """One score per unit: the named one, else the primary one, else the first of SINGLE."""
    name = name or explanation.primary_score
    if name is None:
        name = next((n for n in SINGLE if n in explanation.scores), None)
    if name not in explanation.scores:
        raise UnknownNameError("score", name, explanation.scores)
    scores = explanation.scores[name]
    if scores.ndim != 1:
        raise InputError(ONE_CLASS)
    return scores
