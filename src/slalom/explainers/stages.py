"""One text on its way through a surrogate method: what is known of it after each step.

Sampled: queries drawn and answered
Fitted:  a model fitted to the answers; then what was asked beside them (`follow_up`), and
         what is said of the text with all of it (`whole`)
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray, queries_from_masks
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

    @property
    def all_asked(self) -> bool:
        """Every subset of the units, the empty one too."""
        return self.samples.complete and self.follow_up.empty is not None

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
