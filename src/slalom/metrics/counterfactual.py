"""Counterfactuals: a small set of units whose removal changes the predicted class.

The explanation ranks the removals, the classifier verifies them, and then every removed unit that
is not needed is put back:

    1  order the units greedily: remove the one that lowers the model's prediction most, and so on
    2  query the classifier without each of the strongest units, and without each of the first 16
       prefixes of that order, then of the first 48, 144, …, until one changes the prediction
    3  put units back one by one as long as the prediction stays changed

The set is minimal (no single unit can be put back) but not proven to be the smallest. Without a
classifier, steps 2 and 3 use the explanation's model, and the result says that it is unverified.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.classifiers.load import as_classifier
from slalom.document import BoolArray, FloatArray, Text, masks_without, queries_from_masks
from slalom.errors import InputError, counted
from slalom.explanation import Explanation
from slalom.metrics.subject import (
    Subject,
    greedy_order,
    subject_of,
    unit_scores,
)

N_NAMED = 10  # words in the sentence
FIRST_STEPS = 16  # prefixes of the order that are queried together; then three times as many
Margins = Callable[[BoolArray], FloatArray]  # (k, n_units) → (k,): below 0 the prediction changed


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """Units whose removal changes the prediction; `str()` gives a sentence."""

    removed: tuple[int, ...]  # unit positions; () if nothing changes it
    words: tuple[str, ...]
    text: Text  # what is left
    before: str  # the label predicted for the full text
    after: str | None  # the label predicted for what is left; None if nothing changes it
    logits: FloatArray | None  # (n_classes,) for what is left; None: not queried
    n_queries: int  # to find and verify it
    verified: bool  # False: only the surrogate predicts it

    @property
    def sentence(self) -> str:
        """The result in words."""
        queries = counted(self.n_queries, "query")
        if self.after is None:
            doubt = f"verified, {queries}" if self.verified else "according to the fitted model"
            return f"No removal that was tried changes the prediction “{self.before}” ({doubt})."
        listed = _listed([f"“{word.strip()}”" for word in self.words])
        if not self.verified:
            return (
                f"Without {listed} the prediction would probably be “{self.after}” instead of "
                f"“{self.before}”, according to the fitted model; pass the classifier to verify it."
            )
        return (
            f"Without {listed} the prediction is “{self.after}” instead of “{self.before}” "
            f"(verified, {queries})."
        )

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"Counterfactual: {self.sentence}"


def counterfactual(explanation: Explanation, classifier: Any = None) -> Counterfactual:
    """The smallest set of units found whose removal changes whether the target is predicted."""
    case = _Case.of(explanation)
    subject = None if classifier is None else subject_of(as_classifier(classifier), explanation)
    margins = case.guessed if subject is None else lambda kept: case.margins(_ask(subject, kept))
    n_removable = len(explanation.units) if subject is None else subject.n_removable
    removed = _found(case, margins, n_removable)
    removed = _shrunk(removed, margins, len(explanation.units)) if removed else removed
    logits = None
    if subject is not None and removed:
        logits = _ask(subject, masks_without([removed], len(explanation.units)))[0]
    return Counterfactual(
        removed=tuple(sorted(removed)),
        words=tuple(explanation.units[unit] for unit in sorted(removed)),
        text=_remaining_text(explanation, removed),
        before=case.before,
        after=case.after(logits) if removed else None,
        logits=logits,
        n_queries=0 if subject is None else subject.n_queries,
        verified=subject is not None,
    )


@dataclass(frozen=True, eq=False)
class _Case:
    """What counts as a change: the target is no longer predicted, or is now predicted."""

    explanation: Explanation
    target: int
    side: float  # 1: the target is predicted now, −1: it is not

    @classmethod
    def of(cls, explanation: Explanation) -> "_Case":
        if len(explanation.labels) < 2:
            raise InputError(
                "a single output has no prediction to change: `without` gives its score "
                "when some units are gone"
            )
        best = int(np.argmax(explanation.logits))
        target = best if explanation.target_index is None else explanation.target_index
        lead = _lead(explanation.logits[None, :], target, independent=explanation.independent)
        return cls(explanation, target, 1.0 if lead[0] >= 0 else -1.0)

    def margins(self, logits: FloatArray) -> FloatArray:
        return self.side * _lead(logits, self.target, independent=self.explanation.independent)

    def guessed(self, kept: BoolArray) -> FloatArray:
        """The classifier's margin of the full text plus the change that the model predicts."""
        full = np.ones((1, kept.shape[1]), dtype=bool)
        change = self._predicted(kept) - self._predicted(full)
        return np.asarray(self.margins(self.explanation.logits[None, :]) + self.side * change)

    def order(self, n_steps: int) -> list[int]:
        """The greedy order of removal by the model, or by the scores if there is no model."""
        n_units = len(self.explanation.units)
        if self.explanation.model is None:
            scores = self.side * unit_scores(self.explanation)
            return [int(unit) for unit in np.argsort(-scores, kind="stable")[:n_steps]]
        return greedy_order(
            lambda kept: self.side * self._predicted(kept), range(n_units), n_units, n_steps
        )

    def strongest(self, n: int) -> list[int]:
        """The units whose single removal lowers the margin most."""
        n_units = len(self.explanation.units)
        if self.explanation.model is None:
            return self.order(n)
        alone = self.guessed(masks_without([[unit] for unit in range(n_units)], n_units))
        return [int(unit) for unit in np.argsort(alone, kind="stable")[:n]]

    @property
    def before(self) -> str:
        return self._label(self.side > 0)

    def after(self, logits: FloatArray | None) -> str:
        if logits is None or self.explanation.independent:
            return self._label(self.side < 0)
        return self.explanation.labels[int(np.argmax(logits))]

    def _label(self, is_target: bool) -> str:
        labels = self.explanation.labels
        if is_target:
            return labels[self.target]
        if self.explanation.independent or (len(labels) > 2 and self.side > 0):
            return f"not {labels[self.target]}"
        if self.side < 0:
            return labels[int(np.argmax(self.explanation.logits))]
        return labels[1 - self.target]

    def _predicted(self, kept: BoolArray) -> FloatArray:
        predicted = self.explanation.predict(kept)
        return predicted if predicted.ndim == 1 else predicted[:, self.target]


def _lead(logits: FloatArray, target: int, *, independent: bool) -> FloatArray:
    """(k, n_classes) → (k,): above 0 if the target is predicted."""
    if independent:
        return logits[:, target]
    return np.asarray(logits[:, target] - np.delete(logits, target, axis=1).max(axis=1))


def _found(case: _Case, margins: Margins, n_removable: int) -> list[int]:
    """The smallest set that changes the prediction, from the first batch with such a set."""
    n_units, n_steps = len(case.explanation.units), min(FIRST_STEPS, n_removable)
    order = case.order(n_steps)
    tried = [[unit] for unit in case.strongest(n_steps)]
    tried += [order[:size] for size in range(1, len(order) + 1)]
    while tried:
        changed = np.flatnonzero(margins(masks_without(tried, n_units)) < 0)
        if len(changed):
            return min((tried[at] for at in changed), key=len)
        longer = case.order(min(3 * len(order), n_removable))
        tried = [longer[:size] for size in range(len(order) + 1, len(longer) + 1)]
        order = longer
    return []


def _shrunk(removed: list[int], margins: Margins, n_units: int) -> list[int]:
    """Put units back, the least needed first, while the prediction stays changed."""
    while len(removed) > 1:
        smaller = [[other for other in removed if other != unit] for unit in removed]
        after = margins(masks_without(smaller, n_units))
        if after.min() >= 0:
            break
        removed = smaller[int(np.argmin(after))]
    return removed


def _ask(subject: Subject, kept: BoolArray) -> FloatArray:
    return subject.classifier.logits([(subject.document, queries_from_masks(kept))])[0]


def _remaining_text(explanation: Explanation, removed: list[int]) -> Text:
    """The text without the characters of these units."""
    sides = [explanation.text] if isinstance(explanation.text, str) else list(explanation.text)
    for unit in sorted(removed, reverse=True):
        *side, start, end = explanation.spans[unit]
        at = side[0] if side else 0
        sides[at] = sides[at][:start].rstrip(" ") + sides[at][end:]  # the gap before it goes too
    trimmed = [side.lstrip(" ") for side in sides]
    return trimmed[0] if isinstance(explanation.text, str) else (trimmed[0], trimmed[1])


def _listed(words: list[str]) -> str:
    if len(words) > N_NAMED:
        words = [*words[: N_NAMED - 1], f"{len(words) - N_NAMED + 1} more words"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
