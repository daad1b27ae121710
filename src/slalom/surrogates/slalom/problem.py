"""The least-squares problem behind a SLALOM: what every solver works on.

Given the importances s the model is linear in the values v, so v is eliminated exactly
(variable projection) and what is left is a problem over s alone. With A the attention of
every query, Π the weights, r the residuals, B = A ∘ (v − F) and ridges R:

    G = AᵀΠA + R_v      C = AᵀΠB      S = BᵀΠB − CᵀG⁻¹C + R_s      gradient = BᵀΠr − R_s (s − s̄)

The anchor is the last column, present once in every query. Only differences of s matter:
a term on Σs fixes the gauge Σ_{j≥1} s_j = 0 without touching the fit.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.errors import ClassifierError
from slalom.surrogates.rows import Rows

LOUDEST = 25.0  # |s| beyond this is exp(25) : 1, no query can tell
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Problem:
    """Counts and scores of one fit; columns of scores share importances.

    They are the classes, or orthonormal contrasts of them.
    """

    counts: Rows  # (n, k) the anchor, if any, is the last column of ones
    scores: FloatArray  # (n, n_columns)
    weights: FloatArray  # (n,) of mean 1
    prior: FloatArray  # (k, n_columns) values shrink towards it
    importance_prior: FloatArray  # (k,) s̄, importances shrink towards it; in the gauge
    anchored: bool
    grounded: bool = True  # the empty query was asked: it says what the anchor is worth
    complete: bool = False  # every subset was asked: nothing is left to chance

    @property
    def n_features(self) -> int:
        return self.counts.shape[1] - int(self.anchored)

    def padded(self, features: FloatArray) -> FloatArray:
        """(n_features,) → (k,): the anchor, if any, gets 0."""
        return np.append(features, 0.0) if self.anchored else features

    def expected(self) -> FloatArray:
        """What the prior says of every query: (n, n_columns)."""
        return attention_of(self.counts, self.importance_prior).apply(self.prior)

    def in_gauge(self, importances: FloatArray) -> FloatArray:
        centred = importances - importances[: self.n_features].mean()
        return np.asarray(centred.clip(-LOUDEST, LOUDEST))


@dataclass(frozen=True, eq=False)
class Ridges:
    """Strength of the pull on each parameter: values and importances to their priors."""

    values: FloatArray  # (k,) 0 for an anchor whose score is known
    importances: FloatArray  # (k,) 0 for the anchor
    strengths: tuple[float, float]  # on a value, on an importance

    @classmethod
    def of(cls, problem: Problem, value: float, importance: float) -> "Ridges":
        free = problem.padded(np.ones(problem.n_features))
        shrunk = free if problem.grounded else np.ones_like(free)
        return cls(value * shrunk, importance * free, (value, importance))


@dataclass(frozen=True, eq=False)
class State:
    """The best values for given importances, and the residuals they leave."""

    importances: FloatArray  # (k,)
    values: FloatArray  # (k, n_columns)
    attention: Rows  # (n, k) A
    residuals: FloatArray  # (n, n_columns)
    factor: Any  # Cholesky factor of G
    objective: float


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver ended: the state and the ridges it was found under."""

    state: State
    ridges: Ridges


@dataclass(frozen=True, eq=False)
class Curvature:
    """The system of the importances after the values are eliminated."""

    slopes: tuple[Rows, ...]  # B, one a column
    coupling: FloatArray  # (n_columns, k, k) G⁻¹C
    schur: FloatArray  # (k, k) S, gauge term included
    gradient: FloatArray  # (k,) downhill


def project(problem: Problem, importances: FloatArray, ridges: Ridges) -> State:
    """Eliminate the values: one weighted ridge regression on the attention."""
    from scipy.linalg import cho_solve

    attention = attention_of(problem.counts, importances)
    weighted = attention.times(problem.weights, 1.0)
    gram = attention.gram(weighted) + np.diag(ridges.values)
    factor = _factor(gram)
    # shrinking v to the prior is shrinking v − prior to 0
    centred = problem.scores - attention.apply(problem.prior)
    shift = cho_solve(factor, weighted.apply_transposed(centred), check_finite=False)
    residuals = centred - attention.apply(shift)
    objective = (
        float(problem.weights @ (residuals**2).sum(axis=1))
        + float(ridges.values @ (shift**2).sum(axis=1))
        + float(ridges.importances @ (importances - problem.importance_prior) ** 2)
    )
    return State(importances, shift + problem.prior, attention, residuals, factor, objective)


def _factor(gram: FloatArray) -> Any:
    """Cholesky; where features cannot be told apart, with as little added as it takes."""
    from scipy.linalg import LinAlgError, cho_factor

    for jitter in (TINY, 1e-10, 1e-8, 1e-6):
        padded = gram + np.diag(np.full(len(gram), jitter * (1.0 + gram.diagonal().max())))
        try:
            return cho_factor(padded, lower=True, check_finite=False)
        except LinAlgError:
            continue
    raise ClassifierError("the answers are too large or too odd for a fit: look at the scores")


def attention_of(counts: Rows, importances: FloatArray) -> Rows:
    """Each query's softmax over what it shows."""
    mass = counts.times(1.0, np.exp(importances - importances.max()))
    total = mass.sums()
    return mass.times(1.0 / np.where(total > 0, total, 1.0), 1.0)


def curvature(problem: Problem, state: State, ridges: Ridges, *, full: bool = False) -> Curvature:
    """Gauss–Newton, or with `full` the true second derivatives: S and C get what r bends."""
    from scipy.linalg import cho_solve

    predictions = problem.scores - state.residuals
    schur = np.diag(ridges.importances)
    gradient = -ridges.importances * (state.importances - problem.importance_prior)
    weighted = state.attention.times(problem.weights, 1.0)
    slopes, couplings = [], []
    for column in range(problem.scores.shape[1]):
        slope = state.attention.times_difference(state.values[:, column], predictions[:, column])
        pull = problem.weights * state.residuals[:, column]
        cross = weighted.gram(slope)  # C
        schur += slope.gram(slope.times(problem.weights, 1.0))
        if full:
            pulled = state.attention.times(pull, 1.0)
            bend = pulled.gram(slope)
            schur += bend + bend.T - np.diag(slope.apply_transposed(pull))
            cross += pulled.gram(state.attention) - np.diag(state.attention.apply_transposed(pull))
        coupling = cho_solve(state.factor, cross, check_finite=False)
        schur -= cross.T @ coupling
        gradient += slope.apply_transposed(pull)
        slopes.append(slope)
        couplings.append(coupling)
    return Curvature(tuple(slopes), np.stack(couplings), _gauged(problem, schur), gradient)


def _gauged(problem: Problem, schur: FloatArray) -> FloatArray:
    """Pin the one direction that changes nothing: all importances shifted together."""
    schur = (schur + schur.T) / 2
    k = len(schur)
    typical = np.abs(schur.diagonal()).mean() + TINY
    gauge = problem.padded(np.ones(problem.n_features))
    schur += np.outer(gauge, gauge) * typical / k
    schur[np.diag_indices(k)] += 1e-10 * typical  # an anchor that nothing speaks of stays put
    return schur
