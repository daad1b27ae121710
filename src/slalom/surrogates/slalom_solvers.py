"""Fitting a SLALOM: solvers know the numbers of one fit and nothing else.

Given the importances s the model is linear in the values v, so v is eliminated exactly
(variable projection) and Levenberg–Marquardt runs over s alone. With A the attention of
every query, Π the weights, B = A ∘ (v − F) and ridges R:

    G = AᵀΠA + R_v      C = AᵀΠB      S = BᵀΠB − CᵀG⁻¹C + R_s      step = (S + λD)⁻¹ (BᵀΠr − R_s s)

The anchor is the last column, present once in every query. Only differences of s matter:
a term on Σs fixes the gauge Σ_{j≥1} s_j = 0 without touching the fit.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slalom.document import FloatArray

MOST_IMPORTANT = 25.0  # |s| beyond this is exp(25) : 1, no query can tell
STEP_BOUND = 2.0
SPARSE_BELOW = 0.1  # share of non-zero counts


@dataclass(frozen=True, eq=False)
class Problem:
    """Counts and scores of one fit; columns of scores are classes that share importances."""

    counts: FloatArray  # (n, k) the anchor, if any, is the last column of ones
    scores: FloatArray  # (n, n_classes)
    weights: FloatArray  # (n,) of mean 1
    prior: FloatArray  # (n_classes,) values shrink towards it
    anchored: bool

    @property
    def n_features(self) -> int:
        return self.counts.shape[1] - self.anchored


@dataclass(frozen=True, eq=False)
class Ridges:
    """Strength of the pull on each parameter: values to the prior, importances to 0."""

    values: FloatArray  # (k,) 0 for the anchor
    importances: FloatArray  # (k,) 0 for the anchor

    @classmethod
    def uniform(cls, problem: Problem, value: float, importance: float) -> "Ridges":
        free = np.ones(problem.counts.shape[1])
        if problem.anchored:
            free[-1] = 0.0
        return cls(value * free, importance * free)


@dataclass(frozen=True, eq=False)
class State:
    """The best values for given importances, and the residuals they leave."""

    importances: FloatArray  # (k,)
    values: FloatArray  # (k, n_classes)
    attention: FloatArray  # (n, k)
    residuals: FloatArray  # (n, n_classes)
    gram: FloatArray  # (k, k) G
    factor: Any  # its Cholesky factor
    objective: float


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver ended: the state and the ridges it was found under."""

    state: State
    ridges: Ridges


class Solver(Protocol):
    def solve(self, problem: Problem) -> Solution: ...


def project(problem: Problem, importances: FloatArray, ridges: Ridges) -> State:
    """Eliminate the values: one weighted ridge regression on the attention."""
    from scipy.linalg import cho_factor, cho_solve

    mass = problem.counts * np.exp(importances - importances.max())
    total = mass.sum(axis=1)
    attention = mass / np.where(total > 0, total, 1.0)[:, None]
    weighted = attention * problem.weights[:, None]
    gram = attention.T @ weighted + np.diag(ridges.values)
    gram[np.diag_indices_from(gram)] += 1e-12 * (1.0 + gram.diagonal().max())
    factor = cho_factor(gram, lower=True, check_finite=False)
    centred = problem.scores - problem.prior
    shift = cho_solve(factor, weighted.T @ centred, check_finite=False)
    residuals = centred - attention @ shift
    # a row of attention sums to 1, so shrinking v to the prior is shrinking v − prior to 0
    # wherever anything is present; rows with nothing present carry no weight
    objective = (
        float(problem.weights @ (residuals**2).sum(axis=1))
        + float(ridges.values @ (shift**2).sum(axis=1))
        + float(ridges.importances @ importances**2)
    )
    return State(importances, shift + problem.prior, attention, residuals, gram, factor, objective)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Gauss–Newton system of the importances after the values are eliminated."""

    slopes: FloatArray  # (n_classes, n, k) B, one slice a class
    coupling: FloatArray  # (n_classes, k, k) G⁻¹C
    schur: FloatArray  # (k, k) S, gauge term included
    gradient: FloatArray  # (k,)


def curvature(problem: Problem, state: State, ridges: Ridges) -> Curvature:
    from scipy.linalg import cho_solve

    predictions = problem.scores - state.residuals
    k = len(state.importances)
    schur = np.diag(ridges.importances)
    gradient = -ridges.importances * state.importances
    weighted = state.attention * problem.weights[:, None]
    slopes, couplings = [], []
    for column in range(problem.scores.shape[1]):
        slope = state.attention * (state.values[:, column] - predictions[:, column, None])
        cross = weighted.T @ slope  # C
        coupling = cho_solve(state.factor, cross, check_finite=False)
        schur += slope.T @ (slope * problem.weights[:, None]) - cross.T @ coupling
        gradient += slope.T @ (problem.weights * state.residuals[:, column])
        slopes.append(slope)
        couplings.append(coupling)
    schur = (schur + schur.T) / 2
    gauge = np.ones(k)
    if problem.anchored:
        gauge[-1] = 0.0
    schur += np.outer(gauge, gauge) * (np.trace(schur) / k + 1e-12) / k
    return Curvature(np.stack(slopes), np.stack(couplings), schur, gradient)


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Second order, a handful of steps, ridges chosen from the data unless given.

    Prefer it to Adam always; Adam is there to compare with the paper.
    """

    ridges: tuple[float, float] | None = None  # (values, importances); None: from the data
    max_steps: int = 60
    tolerance: float = 1e-10

    def solve(self, problem: Problem) -> Solution:
        start = np.zeros(problem.counts.shape[1])
        ridges = Ridges.uniform(problem, *(self.ridges or (1e-2, 1e-1)))
        return Solution(self.descend(problem, start, ridges), ridges)

    def descend(self, problem: Problem, importances: FloatArray, ridges: Ridges) -> State:
        """Levenberg–Marquardt over the importances from a given start, ridges fixed."""
        state = project(problem, importances, ridges)
        damping = 1e-3
        for _ in range(self.max_steps):
            system = curvature(problem, state, ridges)
            scale = system.schur.diagonal() + 1e-9 * system.schur.diagonal().max() + 1e-300
            before = state.objective
            while damping < 1e12:
                step = np.linalg.solve(system.schur + np.diag(damping * scale), system.gradient)
                moved = _in_gauge(problem, importances + np.clip(step, -STEP_BOUND, STEP_BOUND))
                trial = project(problem, moved, ridges)
                if trial.objective < state.objective:
                    state, importances, damping = trial, moved, max(damping / 10, 1e-12)
                    break
                damping *= 10
            if before - state.objective <= self.tolerance * before:
                break
        return state


def _in_gauge(problem: Problem, importances: FloatArray) -> FloatArray:
    centred = importances - importances[: problem.n_features].mean()
    return np.clip(centred, -MOST_IMPORTANT, MOST_IMPORTANT)
