"""One text on its way through a surrogate method, and what is asked after its fit.

Sampled: queries drawn and answered
Fitted:  a model fitted to the answers; then what was asked beside them (`follow_up`), and
         what is said of the text with all of it (`whole`)

What can be asked is not estimated: after a fit the classifier is asked what it says to every unit
alone, to the empty text, and to the text less each of the units that matter most.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, Document, FloatArray, Queries, queries_from_masks
from slalom.explainers.base import Ask, Asking
from slalom.explainers.case import Case
from slalom.samplers.base import Samples
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.slalom.fit import Prior
from slalom.surrogates.slalom.process import Whole
from slalom.surrogates.slalom.two_scores import Known, TwoScores, two_scores


@dataclass(frozen=True, eq=False)
class Sampled:
    """One text with the queries that were drawn for it and their answers."""

    case: Case
    samples: Samples
    rows: NDArray[np.intp]  # of the samples: one of each that the classifier can tell apart
    seen: Observations  # the same rows, as the fit sees them

    def fitted(self, fit: Fit) -> "Fitted":
        """The next stage; nothing was asked beside the samples yet."""
        nothing = np.zeros((0, self.case.document.n_units), dtype=bool)
        return Fitted(
            case=self.case,
            samples=self.samples,
            rows=self.rows,
            seen=self.seen,
            fit=fit,
            follow_up=FollowUp(nothing, self.case.scores[:0]),
        )


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Subsets that were asked after the fit, and their scores."""

    present: BoolArray  # (k, n_units)
    scores: FloatArray  # (k,) or (k, n_classes)

    @property
    def empty(self) -> FloatArray | None:
        """The score of the empty text; None: it was not asked."""
        at = np.flatnonzero(~self.present.any(axis=1))
        return np.asarray(self.scores[at[0]]) if len(at) else None


@dataclass(frozen=True, eq=False)
class Fitted:
    """One text after its fit, and with what was found out since."""

    case: Case  # with the answers of both rounds
    samples: Samples
    rows: NDArray[np.intp]
    seen: Observations
    fit: Fit
    follow_up: FollowUp
    whole: Whole | None = None  # None: the fit is all

    @property
    def anchored(self) -> bool:
        return getattr(self.fit.model, "anchor", None) is not None

    def described(self, prior: Prior | None) -> TwoScores:
        """The two scores, from all answers."""
        present = self.follow_up.present
        beside = self.case.document.count(queries_from_masks(present))
        seen = (
            self.seen if self.samples.due is None else balanced(self.seen, self.samples, self.rows)
        )
        return two_scores(seen, Known(beside, self.follow_up.scores), prior)

    @property
    def drawn(self) -> FloatArray:
        """(n_rows, n_units) how often each row of the fit shows each unit."""
        return self.case.document.untied().count(self.samples.queries[self.rows])


def balanced(seen: Observations, samples: Samples, rows: NDArray[np.intp]) -> Observations:
    """The same with weights by which all rows of a size weigh what they are to weigh together.

    Of some sizes more rows are drawn than the design asks for: there are no others left.
    """
    assert samples.due is not None
    sizes, fitted = seen.counts.sum(axis=1).astype(int), seen.weights > 0
    of_size = np.maximum(np.bincount(sizes, fitted)[sizes], 1.0)
    return replace(seen, weights=np.where(fitted, samples.due[rows] / of_size, 0.0))


@dataclass(frozen=True)
class FollowUpPlan:
    """How much is asked beside the fit."""

    max_removals: int = 100  # units, the strongest first
    share: float = 0.25  # of a given number of queries, at most
    rows_per_unit: int = 3  # random ones that come before removals beyond `min_removals`
    min_removals: int = 25

    def reserved(self, document: Document, n_queries: int | None) -> int:
        """How many of `n_queries` are kept back for what is asked after the fit."""
        n_subsets = 2 ** min(document.n_units, 30) - (not document.has_empty_query)
        if n_queries is None or n_queries >= n_subsets:
            return 0
        n_different = len(np.unique(document.features))  # each is asked alone
        spare = n_queries - n_different - self.rows_per_unit * n_different
        most = min(self.max_removals, max(self.min_removals, spare))
        return min(document.n_units, most, int(self.share * n_queries))

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        """Nothing, the text less each of the strongest units, and every unit alone."""
        n_units = document.n_units
        wanted = min(n_units, self.max_removals, n_units if room is None else max(room, 0))
        strongest = np.argsort(-strength_of(fit)[document.features], kind="stable")[:wanted]
        single = np.eye(n_units, dtype=bool)
        nothing = np.zeros((1, n_units), dtype=bool)
        masks = np.vstack([nothing, ~single[np.sort(strongest)], single])
        return masks if document.has_empty_query else masks[masks.any(axis=1)]


def ask_follow_up(
    plan: FollowUpPlan | None, one: Fitted, *, n_queries: int | None, again: Queries
) -> Asking[Fitted]:
    """The second round; never more than `n_queries` with the first.

    In it some of the first are asked anew: a later call finds noise as well as drift.
    """
    document, first = one.case.document, one.case.answers
    masks = np.zeros((0, document.n_units), dtype=bool)
    if plan is not None:
        room = None if n_queries is None else n_queries - first.n_queries - len(again)
        masks = plan.masks(document, one.fit, room)
    answers = yield Ask(document, queries_from_masks(masks), n_queries, again)
    # the full text stays the first of the rows that tell the target
    kept = replace(answers, logits=first.logits, first=first.first, inverse=first.inverse)
    follow_up = FollowUp(masks[answers.rows], one.case.scores_of(answers.logits))
    return replace(one, case=replace(one.case, answers=kept), follow_up=follow_up)


def strength_of(fit: Fit) -> FloatArray:
    """How much each feature matters, by the strongest of its classes."""
    names = [name for name in ("shapley", "removal", "score") if name in fit.scores]
    sizes = [np.abs(fit.scores[name]).reshape(len(fit.scores[name]), -1) for name in names]
    return np.asarray(np.max([size.max(axis=1) for size in sizes], axis=0))
