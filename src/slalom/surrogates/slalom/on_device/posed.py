"""What goes to a device and what comes back: a problem, and where its fit ended."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.slalom.problem import Problem
from slalom.surrogates.slalom.strengths import Strengths


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem as it is sent to another process: no larger than it must be."""

    counts: Any  # (n, n_features) small whole numbers
    scores: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    prior: FloatArray  # (k,)
    importance_prior: FloatArray  # (k,)
    length: FloatArray | None  # (n, n_ramps); None: the paper's model
    judged: BoolArray  # (n,)
    anchored: bool
    grounded: bool
    anchor_prior: float
    variances: tuple[float, float, float]

    @classmethod
    def of(cls, problem: Problem) -> "Posed | None":
        """None where a device has no way to solve it."""
        if problem.complete or problem.scores.shape[1] != 1:
            return None
        counts = problem.counts.dense()[:, : problem.n_features]
        small = counts.astype(np.uint8)
        judged = np.ones(len(counts), bool) if problem.judged is None else problem.judged
        return cls(
            small if (small == counts).all() else counts,
            problem.scores[:, 0],
            problem.weights,
            problem.prior[:, 0],
            problem.importance_prior,
            None if problem.parts is None else problem.parts.length,
            judged,
            problem.anchored,
            problem.grounded,
            problem.anchor_prior,
            problem.variances,
        )

    @property
    def size(self) -> tuple[int, int, int]:
        """Rows, features with the anchor, fixed columns."""
        n_rows, n_features = self.counts.shape
        n_fixed = 0 if self.length is None else n_features + self.length.shape[1]
        return n_rows, n_features + self.anchored, n_fixed


@dataclass(frozen=True, eq=False)
class Found:
    """Where the fit of one document ended."""

    strengths: Strengths
    error: float  # that its search found
    importances: FloatArray  # (k,)
    without: FloatArray  # (n_folds, n) what fits without each fold say of all rows
