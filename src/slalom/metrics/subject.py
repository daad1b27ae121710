"""What a metric looks at: an explanation beside the classifier it explains.

Every question of every metric is asked from here, each distinct one once: give several
metrics the same CachedClassifier and they share its memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.base import Classifier, Target, is_independent
from slalom.classifiers.cached import CachedClassifier
from slalom.document import BoolArray, Document, FloatArray, queries_from_masks
from slalom.errors import InputError, UnknownNameError
from slalom.explanation import Explanation

SINGLE = ("score", "shapley", "removal")  # the first there is stands for the whole explanation


@dataclass(frozen=True)
class Measure:
    """A number, and how many queries had to be asked to know it."""

    value: float
    n_queries: int


@dataclass(frozen=True, eq=False)
class Subject:
    """An explanation beside its classifier: answers about subsets, as log-odds of the target."""

    classifier: CachedClassifier
    explanation: Explanation
    document: Document
    asked_before: int

    @property
    def n_units(self) -> int:
        return self.document.n_units

    @property
    def n_removable(self) -> int:
        """How many units can go: all, or all but one where an empty text cannot be read."""
        return self.n_units - (not self.document.has_empty_query)

    @property
    def n_queries(self) -> int:
        """What was asked since the subject was made."""
        return self.classifier.n_asked - self.asked_before

    def scores(self, masks: BoolArray) -> FloatArray:
        """(k, n_units) of 0/1 → (k,) log-odds, or (k, n_classes) where all are explained."""
        logits = self.classifier.logits([(self.document, queries_from_masks(masks))])[0]
        target = Target(self.explanation.target_index, self.explanation.target)
        return target.scores(logits, independent=is_independent(self.classifier))

    def probabilities(self, masks: BoolArray) -> FloatArray:
        """The probability of the target for each subset."""
        scores = self.scores(masks)
        if scores.ndim != 1:
            raise InputError("this metric follows one class: explain one target, not target='all'")
        from scipy.special import expit

        return np.asarray(expit(scores))


def subject_of(
    classifier: Classifier, explanation: Explanation, document: Document | None = None
) -> Subject:
    """`document` is the explanation's, where it is at hand: else the text is cut again."""
    asked = classifier if isinstance(classifier, CachedClassifier) else CachedClassifier(classifier)
    if document is None:
        too_long = "windows" if explanation.windowed else "truncate"
        document = asked.split(explanation.text, explanation.spans, too_long=too_long)
    if document.units != explanation.units or tuple(asked.labels) != explanation.labels:
        raise InputError(
            f"{asked.name} does not cut this text as the explained classifier did "
            f"({explanation.classifier}): measure with the classifier that was explained"
        )
    return Subject(asked, explanation, document, asked.n_asked)


def masks_without(sets: Sequence[Sequence[int]], n_units: int) -> BoolArray:
    """(k, n_units): every unit shown but those of each set."""
    kept = np.ones((len(sets), n_units), dtype=bool)
    for row, removed in enumerate(sets):
        kept[row, list(removed)] = False
    return kept


def unit_scores(explanation: Explanation, name: str | None = None) -> FloatArray:
    """One score per unit: the named one, else the one the method shows, its own, or Shapley's."""
    name = name or explanation.primary_score
    if name is None:
        name = next((n for n in SINGLE if n in explanation.scores), None)
    if name not in explanation.scores:
        raise UnknownNameError("score", name, explanation.scores)
    scores = explanation.scores[name]
    if scores.ndim != 1:
        raise InputError("this metric ranks for one class: explain one target, not target='all'")
    return scores
