"""The system of the importances: how predictions answer to them, the rest eliminated.

problem.py has the formulas. The slopes B and their products are of a state alone; ridges come in
twice, on what is eliminated and on the importances themselves, so that either can change alone.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.cholesky import (
    diagonal_of,
    solve_lower,
    solve_lower_transposed,
    stacked,
)
from slalom.surrogates.slalom.problem import TINY, Problem, Ridges, State, prior_deviation


@dataclass(frozen=True, eq=False)
class Slopes:
    """Products of B, how predictions answer to the importances; no ridge changes them."""

    crossed: FloatArray  # (n_columns, k + n_fixed, k) C
    bent: FloatArray  # (k, k) BᵀΠB, summed over the columns
    downhill: FloatArray  # (k,) BᵀΠr, likewise


@dataclass(frozen=True, eq=False)
class Eliminated:
    """What eliminating all but the importances leaves, before ridges on these come in."""

    lower: FloatArray  # L, G = LLᵀ
    half: FloatArray  # (n_columns, k + n_fixed, k) L⁻¹C
    bent: FloatArray  # (k, k) BᵀΠB − CᵀG⁻¹C
    downhill: FloatArray  # (k,) BᵀΠr

    @classmethod
    def of(cls, slopes: Slopes, lower: FloatArray) -> "Eliminated":
        """`lower` is G's root under the ridges on what is eliminated."""
        halves = [solve_lower(lower, crossed) for crossed in slopes.crossed]
        bent = slopes.bent - sum(half.T @ half for half in halves)
        return cls(lower, stacked(halves), bent, slopes.downhill)

    def system(self, problem: Problem, state: State, ridges: Ridges) -> "Curvature":
        schur = _gauged(problem, ridges, self.bent.copy())
        gradient = _pull(problem, state, ridges) + self.downhill
        return Curvature(self.half, schur, gradient, self.lower)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The system of the importances after the rest is eliminated."""

    half: FloatArray  # (n_columns, k + n_fixed, k) L⁻¹C, G = LLᵀ
    schur: FloatArray  # (k, k) S, gauge term included
    gradient: FloatArray  # (k,) downhill
    lower: FloatArray  # L

    @cached_property
    def coupling(self) -> FloatArray:
        """(n_columns, k + n_fixed, k) G⁻¹C."""
        return stacked([solve_lower_transposed(self.lower, half) for half in self.half])


def slope_of(state: State, column: int) -> Rows:
    """B, how a column's predictions answer to the importances."""
    return state.attention.times_difference(state.values[:, column], state.attended[:, column])


def curvature(problem: Problem, state: State, ridges: Ridges, *, full: bool = False) -> Curvature:
    """Gauss–Newton, or with `full` the true second derivatives: S and C get what r bends."""
    slopes = slopes_of(problem, state, full=full)
    return Eliminated.of(slopes, state.lower).system(problem, state, ridges)


def slopes_of(problem: Problem, state: State, *, full: bool = False) -> Slopes:
    """B = A diag(v) − diag(Av) A, so every product of A and B is one of AᵀDA with a diagonal D.

    K₁ and K₂ below are all that it takes.
    """
    k, width = len(state.importances), len(state.gram)
    n_columns = problem.scores.shape[1]
    kind = state.gram.dtype
    crossed = np.empty((n_columns, width, k), kind)
    bent, downhill = np.zeros((k, k), kind), np.zeros(k, kind)
    for column, cross in enumerate(crossed):
        level = float(state.values[:, column].mean())  # of which B knows nothing
        values, attended = state.values[:, column] - level, state.attended[:, column] - level
        pull = problem.weights * state.residuals[:, column]
        once = problem.weights * attended  # K₁ = Aᵀ diag(once) A
        by_row = once[:, None]
        twice = once * attended  # K₂
        if full:
            once, twice = once - pull, twice - 2 * pull * attended
        first = state.attention.gram(state.attention.times(once, 1.0))
        pulled = _pulled(state, values, attended, pull)
        cross[:k] = state.gram[:k, :k] * values - first
        if width > k:
            cross[k:] = state.gram[k:, :k] * values
            cross[k:] -= state.attention.apply_transposed(problem.fixed * by_row).T
        bent += state.attention.gram(state.attention.times(twice, 1.0))
        bent += values[:, None] * cross[:k] - first * values
        downhill += pulled
        if full:
            diagonal_of(bent)[:] -= pulled
            diagonal_of(cross[:k])[:] -= state.attention.apply_transposed(pull)
    return Slopes(crossed, bent, downhill)


def downhill(problem: Problem, state: State, ridges: Ridges) -> FloatArray:
    """(k,) the gradient alone, which takes no products of matrices."""
    found = _pull(problem, state, ridges)
    columns = zip(state.values.T, state.attended.T, state.residuals.T, strict=True)
    for values, attended, left in columns:
        level = float(values.mean())
        found = found + _pulled(state, values - level, attended - level, problem.weights * left)
    return found


def _pulled(state: State, values: FloatArray, attended: FloatArray, pull: FloatArray) -> FloatArray:
    """Bᵀ Π r of one column."""
    attention = state.attention
    return values * attention.apply_transposed(pull) - attention.apply_transposed(pull * attended)


def _pull(problem: Problem, state: State, ridges: Ridges) -> FloatArray:
    """What the ridges add to the gradient; like the fit, shifts do not move them."""
    pull = ridges.importances * prior_deviation(problem, state.importances)
    return np.asarray(pull.sum() * problem.share - pull)


def _gauged(problem: Problem, ridges: Ridges, schur: FloatArray) -> FloatArray:
    """S with what the ridges add to it, and the one direction pinned that changes nothing.

    That is all importances shifted together: neither the fit nor the ridges heed it.
    """
    strengths, share, m = ridges.importances, problem.share, problem.n_features
    total = strengths.sum()
    diagonal_of(schur)[:] += strengths
    diagonal = np.abs(diagonal_of(schur) + share * (total * share - 2 * strengths))
    typical = diagonal.sum() / len(schur) + TINY
    pin = typical * m**2 / len(schur)
    turned = ((total + pin) / 2 * share - strengths) / m
    schur[:m] += turned  # the share of every feature is 1 / m, the anchor's 0
    schur[:, :m] += turned[:, None]
    diagonal_of(schur)[:] += 1e-10 * typical  # an anchor that nothing speaks of stays put
    return schur
