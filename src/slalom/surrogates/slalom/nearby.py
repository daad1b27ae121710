"""Kriging near the whole text: residuals of a fit are interpolated from what was measured there.

A fit to subsets of every size is coarse where a text is nearly whole, and there people try it
out. Its residuals y at subsets S (the whole text, single removals, and rows that show more than
half of the n units) are interpolated, with h the number of units in which two subsets differ:

    F(c) + Σ_S a_S (exp(−h(c, S) / ℓ) + q [c = S measured])      (K + q) a = y      ℓ = n / 6

so that what was measured (the whole text, single removals) comes back as the answer it was, what
differs from it by a few units is predicted from it, and far away nothing is added. The nugget q
is chosen by leave-one-out error on rows of two and more removals; where none helps, or smaller
subsets lose more than is gained, nothing is added beside what was measured. Removals that were
not measured are read off the same sum; the leave-one-out error of the weaker of those that were
measured is their standard error. Leave-one-out residuals of the drawn rows go into R².
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import Within

LENGTH_SCALE = 1 / 6  # ℓ, of the units of the text
NUGGETS = 10.0 ** np.arange(-3.0, 1.5, 0.5)  # q
MIN_GAIN = 0.98  # what the leave-one-out error must fall to
ISOLATED = 0.02  # ℓ, in units, at which a point says nothing of others
MIN_ROWS, MAX_ROWS = 12, 300  # rows to judge by, and to interpolate
MIN_REMOVALS = 5  # to tell how far others are off


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Which subsets are near the full text, and their covariances: no fit changes them."""

    measured: BoolArray  # (k, n_units) the whole text and single removals
    drawn: BoolArray  # (m, n_units) subsets that were fitted

    @cached_property
    def sizes(self) -> IntArray:
        return np.asarray(self.drawn.sum(axis=1))

    @cached_property
    def inner(self) -> IntArray:
        """Of the drawn rows: those that are interpolated."""
        n_units = self.drawn.shape[1]
        found = np.flatnonzero((self.sizes > n_units / 2) & (self.sizes < n_units))
        return np.sort(found[np.argsort(-self.sizes[found], kind="stable")[:MAX_ROWS]])

    @cached_property
    def outer(self) -> IntArray:
        """Of the drawn rows: the others, but for the full text."""
        return np.setdiff1d(np.flatnonzero(self.sizes < self.drawn.shape[1]), self.inner)

    @cached_property
    def judged(self) -> IntArray:
        """Of the drawn rows: those of two and more removals, by which the nugget is chosen."""
        return np.asarray(self.inner[self.sizes[self.inner] < self.drawn.shape[1] - 1])

    @property
    def length_scale(self) -> float:
        return float(max(1.0, LENGTH_SCALE * self.drawn.shape[1]))

    @cached_property
    def points(self) -> BoolArray:
        return np.vstack([self.measured, self.drawn[self.inner]])

    @cached_property
    def eigen(self) -> tuple[FloatArray, FloatArray]:
        values, axes = np.linalg.eigh(_kernel(self.points, self.points, self.length_scale))
        return np.maximum(values, 0.0), axes

    @cached_property
    def around(self) -> FloatArray:
        """(n_outer, n_points)"""
        return _kernel(self.drawn[self.outer], self.points, self.length_scale)


@dataclass(frozen=True, eq=False)
class NearResiduals:
    """Residuals of a fit at the subsets of a neighbourhood, and what it says of removals."""

    where: Neighbourhood
    measured_residuals: FloatArray  # (k, n_columns) the classifier's answer less the fit's
    left_out: FloatArray  # (k, n_columns) the same, each as predicted from the others
    drawn_residuals: FloatArray  # (m, n_columns) the same, each as predicted from the others
    removals: FloatArray  # (n_units, n_columns) the answer to the text less the fit without a unit
    strengths: FloatArray  # (n_units,) by the fit; the strongest were measured


@dataclass(frozen=True, eq=False)
class Nearby:
    """What to add to a fit of subsets that are nearly the whole text."""

    points: Annotated[BoolArray, "points units"]
    weights: Annotated[FloatArray, "points columns"]  # a
    length_scale: Annotated[float, Within(1e-6)]  # ℓ
    nugget: float  # q
    n_measured: Annotated[int, Within(0)]  # of the points, the first

    def __call__(self, present: FloatArray) -> FloatArray:
        """(m, n_units) of 0 … 1 → (m, n_columns)."""
        apart = _hamming(np.minimum(present, 1.0), self.points)
        near = np.exp(-apart / self.length_scale)
        near[:, : self.n_measured] += self.nugget * (apart[:, : self.n_measured] < 0.5)
        return np.asarray(near @ self.weights)


@dataclass(frozen=True, eq=False)
class NearFit:
    """What to add, and what single removals are, measured or not."""

    nearby: Nearby
    removals: FloatArray  # (n_units, n_columns)
    error: FloatArray | None  # (n_columns,) of those that were not measured; None: unknown
    drawn_residuals: FloatArray  # (m, n_columns) of the drawn rows, leave-one-out


def fit_near(given: NearResiduals) -> NearFit:
    nearby, left_out, drawn_residuals = _fitted(given)
    removals = given.removals - nearby(1.0 - np.eye(len(given.removals)))
    whole = given.measured_residuals[:1]
    if nearby.nugget == 0 and ((left_out - whole) ** 2).sum() < (left_out**2).sum():
        removals, left_out = removals - whole, left_out - whole  # the fit's change says more
    return NearFit(nearby, removals, _error(given, left_out), drawn_residuals)


def _error(given: NearResiduals, left_out: FloatArray) -> FloatArray | None:
    """Of removals that were not measured, from the weaker half of those that were.

    Errors grow with the strength of a unit, and the strongest are those that were measured.
    """
    if len(left_out) < MIN_REMOVALS:
        return None
    strengths = given.strengths[np.argmin(given.where.measured[1:], axis=1)]
    n_weaker = max(MIN_REMOVALS, -(-len(left_out) // 2))
    weaker = np.argsort(strengths, kind="stable")[:n_weaker]
    return np.asarray(np.sqrt((left_out[weaker] ** 2).mean(axis=0)))


def _fitted(given: NearResiduals) -> tuple[Nearby, FloatArray, FloatArray]:
    """What is added, and leave-one-out residuals of measured removals and of drawn rows."""
    near = given.where
    k, inner, outer, judged = len(near.measured), near.inner, near.outer, near.judged
    residuals = np.vstack([given.measured_residuals, given.drawn_residuals[inner]])
    unseen = np.vstack([given.left_out, given.drawn_residuals[inner]])
    best = Nearby(near.measured, given.measured_residuals, ISOLATED, 0.0, k)
    left_out, drawn_residuals = unseen[1:k], given.drawn_residuals
    if len(judged) < MIN_ROWS:
        return best, left_out, drawn_residuals
    values, axes = near.eigen
    rotated, rotated_unseen, squared = axes.T @ residuals, axes.T @ unseen, axes**2
    least = MIN_GAIN * _squares(drawn_residuals[judged])
    # where nothing is known, nothing may be harmed
    beyond = np.flatnonzero(near.sizes <= near.drawn.shape[1] / 2)
    before = _squares(drawn_residuals[judged]) + _squares(drawn_residuals[beyond])
    for nugget in NUGGETS:
        shrunk = 1.0 / (values + nugget)
        weights = axes @ (shrunk[:, None] * rotated)
        without = axes @ (shrunk[:, None] * rotated_unseen) / (squared @ shrunk)[:, None]
        remaining = given.drawn_residuals.copy()
        remaining[inner] = without[k:]
        remaining[outer] = given.drawn_residuals[outer] - near.around @ weights
        error = _squares(remaining[judged])
        if error < least and error + _squares(remaining[beyond]) < before:
            least, left_out, drawn_residuals = error, without[1:k], remaining
            best = Nearby(near.points, weights, near.length_scale, float(nugget), k)
    return best, left_out, drawn_residuals


def _squares(residuals: FloatArray) -> float:
    return float((residuals**2).sum())


def _kernel(present: BoolArray, points: BoolArray, length_scale: float) -> FloatArray:
    """(m, k) exp(−h / ℓ)."""
    return np.asarray(np.exp(-_hamming(present.astype(np.float64), points) / length_scale))


def _hamming(present: FloatArray, points: BoolArray) -> FloatArray:
    """(m, k) the number of units in which subsets differ."""
    shown = points.astype(np.float64)
    return np.asarray(present.sum(axis=1)[:, None] + shown.sum(axis=1) - 2.0 * present @ shown.T)
