"""An exact SLALOM read off its answers: linear equations, whatever was asked.

With y = F(c) − v_0, F(c) Z(c) = w_0 v_0 + Σ c_j w_j v_j says

    0 = Σ_j c_j q_j − y (w_0 + Σ_j c_j w_j)            q_j = w_j (v_j − v_0)

of every answer, linear in q and w; where ∅ cannot be asked a constant joins q, and without an
anchor w_0 = 0 and v_0 is any level. Classes share w. With q eliminated, w is what a matrix sends
to zero: if one such vector is there, and all of it is positive, and the answers come back to
rounding, they are those of this SLALOM and of no other.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.base import ROUNDING, sums_to_zero

EXACT = 1e-8  # of the range that answers may be off
ROUNDINGS = 20 * 2.0**-24  # of the largest answer: 32 bits


@dataclass(frozen=True, eq=False)
class Recovered:
    """Values and importances of m words and, last, of the anchor, if there is one."""

    values: FloatArray  # (k, n_classes)
    importances: FloatArray  # (k,) those of the words have mean 0


def recovered(
    counts: FloatArray,
    scores: FloatArray,
    *,
    anchored: bool,
    empty: FloatArray | None = None,
    n_weighings: int = 3,
) -> Recovered | None:
    """The SLALOM that gives these answers, if there is just one; `empty` is F(∅), if known."""
    nothing = ~counts.any(axis=1)
    if anchored and empty is None and nothing.any():
        empty = scores[nothing].mean(axis=0)
    counts, scores = counts[~nothing], scores[~nothing]
    always = np.ones((len(counts), int(anchored)))
    shown = np.hstack([counts, always])
    design = counts if empty is not None else shown
    level = scores.mean(axis=0) if empty is None else empty
    if not _are_enough(design, counts, scores):
        return None
    total = np.ones(len(counts))
    found = None
    for _ in range(n_weighings):  # an equation is off by Z times what its answer is off
        found = _solved(design / total[:, None], shown, scores - level, total)
        if found is None:
            return None
        total = shown @ found[0]
    assert found is not None
    checked = _checked(*found, shown, scores, level)
    if checked is None:
        return None
    values, importances = checked
    gauge = importances[: counts.shape[1]].mean()
    return Recovered(values, importances - gauge)


def _are_enough(design: FloatArray, counts: FloatArray, scores: FloatArray) -> bool:
    """At least as many different answers as unknowns."""
    n_rows, n_classes = scores.shape
    n_classes -= sums_to_zero(scores)
    return bool(n_rows * n_classes >= design.shape[1] * n_classes + counts.shape[1] > 1)


def _left(design: FloatArray, shown: FloatArray, scores: FloatArray) -> FloatArray:
    """What q cannot say of `shown` · y, all classes below each other: (n, k) each."""
    basis = np.linalg.qr(design)[0]
    parts = [shown * column[:, None] for column in scores.T]
    return np.vstack([part - basis @ (basis.T @ part) for part in parts])


def _solved(
    design: FloatArray, shown: FloatArray, scores: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Weights (k,), the middle one 1, and effects; None: not one vector, or not all positive."""
    left = np.asarray(np.linalg.qr(_left(design, shown, scores / total[:, None]), mode="r"))
    _, sizes, turned = np.linalg.svd(left, full_matrices=False)
    if len(sizes) < max(2, left.shape[1]) or sizes[-2] <= ROUNDING * sizes[0]:
        return None
    middle = float(np.median(turned[-1]))
    weights = turned[-1] * np.sign(middle)
    if not (weights > 1e-7 * abs(middle)).all():  # a word that weighs so little only adds
        return None
    weights /= abs(middle)
    answers = (shown @ weights)[:, None] * scores / total[:, None]
    effects, _, rank, _ = np.linalg.lstsq(design, answers, rcond=None)
    return None if rank < design.shape[1] else (weights, effects)


def _checked(
    weights: FloatArray,
    effects: FloatArray,
    shown: FloatArray,
    scores: FloatArray,
    level: FloatArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Values and importances, if they predict the answers."""
    known = np.zeros((len(weights) - len(effects), len(level)))  # an anchor that was asked
    values = level + np.vstack([effects, known]) / weights[:, None]
    predicted = shown @ (weights[:, None] * values) / (shown @ weights)[:, None]
    allowed = max(EXACT * np.ptp(scores, axis=0).max(), ROUNDINGS * np.abs(scores).max())
    if np.abs(predicted - scores).max() > allowed:
        return None
    return values, np.log(weights)
