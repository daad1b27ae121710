"""An exact SLALOM read off its answers: linear equations, whatever was asked.

With w_0 = 1 and y = F(c) − v_0, F(c) Z(c) = w_0 v_0 + Σ c_j w_j v_j says

    y = Σ_j c_j q_j − y Σ_j c_j w_j            q_j = w_j (v_j − v_0)

of every answer, linear in q and w; where ∅ cannot be asked a constant joins q. Classes share w.
With q eliminated, w is what a matrix sends to zero: if one such vector is there, and all of it is
positive, and the answers come back to rounding, they are those of this SLALOM and of no other.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray

ROWS_PER_FEATURE, FEW = 3, 20  # that show whether to look at all
HOPELESS = 1e-3  # of a column, left by all others: no exact SLALOM
QUIETEST = 1e-7  # of the anchor's weight: a word that weighs so little only adds
UNIQUE = 1e-9  # of the largest singular value, that all but one must have
EXACT = 1e-8  # of the range that answers may be off
ROUNDINGS = 20 * 2.0**-24  # of the largest answer: 32 bits
N_WEIGHINGS = 3


@dataclass(frozen=True, eq=False)
class Recovered:
    """Values and importances of m words and, last, of the anchor."""

    values: FloatArray  # (m + 1, n_classes)
    importances: FloatArray  # (m + 1,) those of the words have mean 0


def recovered(counts: FloatArray, scores: FloatArray, empty: FloatArray | None) -> Recovered | None:
    """The SLALOM that gives these answers, if there is just one: `empty` is F(∅), if asked."""
    shown = counts.sum(axis=1) > 0
    counts, scores = counts[shown], scores[shown]
    level = scores.mean(axis=0) if empty is None else empty
    design = counts if empty is not None else np.hstack([counts, np.ones((len(counts), 1))])
    if not _are_enough(design, counts, scores):
        return None
    some = np.random.default_rng(0).permutation(len(counts))[: _few(counts)]
    if not _depend(_left(design[some], counts[some], scores[some] - level)):
        return None
    total = np.ones(len(counts))
    found = None
    for _ in range(N_WEIGHINGS):  # an equation is off by Z times what its answer is off
        found = _solved(design / total[:, None], counts, scores - level, total)
        if found is None:
            return None
        weights, effects = found
        total = weights[-1] + counts @ weights[:-1]
    return _checked(weights, effects, counts, scores, level)


def _few(counts: FloatArray) -> int:
    return int(ROWS_PER_FEATURE * counts.shape[1] + FEW)


def _are_enough(design: FloatArray, counts: FloatArray, scores: FloatArray) -> bool:
    """Classes whose scores sum to 0 say one thing less."""
    n_rows, n_classes = scores.shape
    if n_classes > 1 and np.abs(scores.sum(axis=1)).max() <= 1e-6 * np.abs(scores).max():
        n_classes -= 1
    return bool(n_rows * n_classes >= design.shape[1] * n_classes + counts.shape[1] > 1)


def _left(design: FloatArray, counts: FloatArray, scores: FloatArray) -> FloatArray:
    """What q cannot say of [counts · y, y], all classes below each other: (n, m + 1) each."""
    basis = np.linalg.qr(design)[0]
    with_anchor = np.hstack([counts, np.ones((len(counts), 1))])
    parts = [with_anchor * column[:, None] for column in scores.T]
    return np.vstack([part - basis @ (basis.T @ part) for part in parts])


def _depend(left: FloatArray) -> bool:
    triangle = np.asarray(np.linalg.qr(left, mode="r"))
    lengths = np.linalg.norm(triangle, axis=0)
    return bool((np.abs(triangle.diagonal()) <= HOPELESS * lengths.max()).any())


def _solved(
    design: FloatArray, counts: FloatArray, scores: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Weights (m + 1,), the anchor's last and 1, and effects; None: not one vector, or not > 0."""
    left = _left(design, counts, scores / total[:, None])
    _, sizes, turned = np.linalg.svd(left, full_matrices=False)
    if len(sizes) < left.shape[1] or sizes[-2] <= UNIQUE * sizes[0]:
        return None
    weights = turned[-1] / turned[-1, -1] if turned[-1, -1] != 0 else turned[-1]
    if not (weights > QUIETEST).all():
        return None
    answers = (weights[-1] + counts @ weights[:-1])[:, None] * scores / total[:, None]
    effects, _, rank, _ = np.linalg.lstsq(design, answers, rcond=None)
    return None if rank < design.shape[1] else (weights, effects)


def _checked(
    weights: FloatArray,
    effects: FloatArray,
    counts: FloatArray,
    scores: FloatArray,
    level: FloatArray,
) -> Recovered | None:
    """Whether it says what was answered."""
    m = counts.shape[1]
    anchor = effects[m] if len(effects) > m else np.zeros_like(level)
    values = level + np.vstack([effects[:m] / weights[:m, None], anchor])
    said = (counts @ (weights[:m, None] * values[:m]) + values[m]) / (1 + counts @ weights[:m])[
        :, None
    ]
    allowed = max(EXACT * np.ptp(scores, axis=0).max(), ROUNDINGS * np.abs(scores).max())
    if np.abs(said - scores).max() > allowed:
        return None
    importances = np.log(weights)
    return Recovered(values, importances - importances[:m].mean())
