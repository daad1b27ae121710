"""Near the whole text: what was measured there, carried a little further.

A fit to subsets of every size is coarse where a text is nearly whole, and there people try it
out. What it misses of the whole text, of single removals and of rows that show more than half
of the units is interpolated: with h the number of units in which two subsets differ, n of the
text, misses y at subsets S,

    F(c) + Σ_S a_S (exp(−h(c, S) / ℓ) + q [c = S measured])      (K + q) a = y      ℓ = n / 6

so that what was measured (the whole text, single removals) comes back as the answer it was, what
differs from it by a few units is predicted from it, and far away nothing is added. q, how much
of a miss is its own, is chosen by leaving out rows of two and more removals; where none pays, or
smaller parts lose more than is gained, nothing is added beside what was measured. Removals that
were not measured are read off the same sum; how far the weaker of those that were measured come
out wrong when they are left out is the error. So with rows that were drawn: what is missed of
each with it left out goes into R².
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.subset_kernel import packed, unpacked

REACH = 1 / 6  # ℓ, of the units of the text
OWN = 10.0 ** np.arange(-3.0, 1.5, 0.5)  # q
PAYS = 0.98  # what the error of left-out rows must fall to
NOWHERE = 0.02  # ℓ, in units: to itself alone
FEWEST, MOST = 12, 300  # rows to judge by, and to interpolate
FEWEST_REMOVALS = 5  # to tell how far others are off


@dataclass(frozen=True, eq=False)
class Missed:
    """What a fit misses near the whole text, by unit."""

    measured: BoolArray  # (k, n_units) the whole text and single removals
    of_measured: FloatArray  # (k, n_columns) the classifier's answer less the fit's
    left_out: FloatArray  # (k, n_columns) the same, each as predicted from the others
    drawn: BoolArray  # (m, n_units) subsets that were fitted
    of_drawn: FloatArray  # (m, n_columns) the same, each as predicted from the others
    removals: FloatArray  # (n_units, n_columns) the answer to the text less the fit without a unit
    strengths: FloatArray  # (n_units,) by the fit; the strongest were measured


@dataclass(frozen=True, eq=False)
class Nearby:
    """What to add to a fit of subsets that are nearly the whole text."""

    points: BoolArray  # (k, n_units)
    weights: FloatArray  # (k, n_columns) a
    reach: float  # ℓ
    own: float  # q
    n_measured: int  # of the points, the first

    def __call__(self, present: FloatArray) -> FloatArray:
        """(m, n_units) of 0 … 1 → (m, n_columns)."""
        apart = _apart(np.minimum(present, 1.0), self.points)
        near = np.exp(-apart / self.reach)
        near[:, : self.n_measured] += self.own * (apart[:, : self.n_measured] < 0.5)
        return np.asarray(near @ self.weights)

    def to_json(self) -> dict[str, Any]:
        return {
            "points": packed(self.points),
            "n_units": self.points.shape[1],
            "weights": self.weights.tolist(),
            "reach": self.reach,
            "own": self.own,
            "n_measured": self.n_measured,
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Nearby":
        points = unpacked(record["points"], record["n_units"])
        weights = np.array(record["weights"], dtype=np.float64)
        return cls(points, weights, record["reach"], record["own"], record["n_measured"])


@dataclass(frozen=True, eq=False)
class Known:
    """What to add, and what single removals are, measured or not."""

    nearby: Nearby
    removals: FloatArray  # (n_units, n_columns)
    error: FloatArray | None  # (n_columns,) of those that were not measured; None: unknown
    of_drawn: FloatArray  # (m, n_columns) what is still missed of rows, each left out


def know_nearby(missed: Missed) -> Known:
    nearby, left_out, of_drawn = _fitted(missed)
    removals = missed.removals - nearby(1.0 - np.eye(len(missed.removals)))
    whole = missed.of_measured[:1]
    if nearby.own == 0 and ((left_out - whole) ** 2).sum() < (left_out**2).sum():
        removals, left_out = removals - whole, left_out - whole  # the fit's change says more
    return Known(nearby, removals, _error(missed, left_out), of_drawn)


def _error(missed: Missed, left_out: FloatArray) -> FloatArray | None:
    """Of removals that were not measured, from the weaker half of those that were.

    Errors grow with the strength of a unit, and the strongest are those that were measured.
    """
    if len(left_out) < FEWEST_REMOVALS:
        return None
    strengths = missed.strengths[np.argmin(missed.measured[1:], axis=1)]
    n_alike = max(FEWEST_REMOVALS, -(-len(left_out) // 2))
    weaker = np.argsort(strengths, kind="stable")[:n_alike]
    return np.asarray(np.sqrt((left_out[weaker] ** 2).mean(axis=0)))


def _fitted(missed: Missed) -> tuple[Nearby, FloatArray, FloatArray]:
    """What is added, and what measured removals and drawn rows are missed by when left out."""
    n_units, k = missed.measured.shape[1], len(missed.measured)
    sizes = missed.drawn.sum(axis=1)
    inner = np.flatnonzero((sizes > n_units / 2) & (sizes < n_units))
    inner = np.sort(inner[np.argsort(-sizes[inner], kind="stable")[:MOST]])
    outer = np.setdiff1d(np.flatnonzero(sizes < n_units), inner)
    points = np.vstack([missed.measured, missed.drawn[inner]])
    misses = np.vstack([missed.of_measured, missed.of_drawn[inner]])
    unseen = np.vstack([missed.left_out, missed.of_drawn[inner]])
    best = Nearby(missed.measured, missed.of_measured, NOWHERE, 0.0, k)
    left_out, of_drawn = unseen[1:k], missed.of_drawn
    judged = inner[sizes[inner] < n_units - 1]
    if len(judged) < FEWEST:
        return best, left_out, of_drawn
    reach = max(1.0, REACH * n_units)
    values, axes = np.linalg.eigh(_near(points, points, reach))
    turned, turned_unseen, squared = axes.T @ misses, axes.T @ unseen, axes**2
    around = _near(missed.drawn[outer], points, reach)
    least = PAYS * _squares(of_drawn[judged])
    beyond = np.flatnonzero(sizes <= n_units / 2)  # where nothing is known, nothing may be harmed
    before = _squares(of_drawn[judged]) + _squares(of_drawn[beyond])
    for own in OWN:
        shrunk = 1.0 / (np.maximum(values, 0.0) + own)
        weights = axes @ (shrunk[:, None] * turned)
        without = axes @ (shrunk[:, None] * turned_unseen) / (squared @ shrunk)[:, None]
        still = missed.of_drawn.copy()
        still[inner], still[outer] = without[k:], missed.of_drawn[outer] - around @ weights
        error = _squares(still[judged])
        if error < least and error + _squares(still[beyond]) < before:
            least, left_out, of_drawn = error, without[1:k], still
            best = Nearby(points, weights, reach, float(own), k)
    return best, left_out, of_drawn


def _squares(misses: FloatArray) -> float:
    return float((misses**2).sum())


def _near(present: BoolArray, points: BoolArray, reach: float) -> FloatArray:
    """(m, k) exp(−h / ℓ)."""
    return np.asarray(np.exp(-_apart(present.astype(np.float64), points) / reach))


def _apart(present: FloatArray, points: BoolArray) -> FloatArray:
    """(m, k) the number of units in which subsets differ."""
    shown = points.astype(np.float64)
    return np.asarray(present.sum(axis=1)[:, None] + shown.sum(axis=1) - 2.0 * present @ shown.T)
