"""Fitting a SLALOM: solvers know the numbers of one fit and nothing else.

Given the importances s the model is linear in the values v, so v is eliminated exactly
(variable projection) and Levenberg–Marquardt runs over s alone. With A the attention of
every query, Π the weights, B = A ∘ (v − F) and ridges R:

    G = AᵀΠA + R_v      C = AᵀΠB      S = BᵀΠB − CᵀG⁻¹C + R_s      step = (S + λD)⁻¹ (BᵀΠr − R_s s)

The anchor is the last column, present once in every query. Only differences of s matter:
a term on Σs fixes the gauge Σ_{j≥1} s_j = 0 without touching the fit.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.surrogates.rows import Rows

MOST_IMPORTANT = 25.0  # |s| beyond this is exp(25) : 1, no query can tell
STEP_BOUND = 2.0
WEAKEST_RIDGE, STRONGEST_RIDGE = 1e-8, 1e3


@dataclass(frozen=True, eq=False)
class Problem:
    """Counts and scores of one fit; columns of scores are classes that share importances."""

    counts: Rows  # (n, k) the anchor, if any, is the last column of ones
    scores: FloatArray  # (n, n_classes)
    weights: FloatArray  # (n,) of mean 1
    prior: FloatArray  # (n_classes,) values shrink towards it
    anchored: bool

    @property
    def n_features(self) -> int:
        return self.counts.shape[1] - int(self.anchored)


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
    attention: Rows  # (n, k)
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

    attention = _attention(problem.counts, importances)
    weighted = attention.times(problem.weights, 1.0)
    gram = attention.gram(weighted) + np.diag(ridges.values)
    gram[np.diag_indices_from(gram)] += 1e-12 * (1.0 + gram.diagonal().max())
    factor = cho_factor(gram, lower=True, check_finite=False)
    centred = problem.scores - problem.prior
    shift = cho_solve(factor, weighted.apply_transposed(centred), check_finite=False)
    residuals = centred - attention.apply(shift)
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

    slopes: tuple[Rows, ...]  # B, one a class
    coupling: FloatArray  # (n_classes, k, k) G⁻¹C
    schur: FloatArray  # (k, k) S, gauge term included
    gradient: FloatArray  # (k,)


def curvature(problem: Problem, state: State, ridges: Ridges, *, full: bool = False) -> Curvature:
    """Gauss–Newton, or with `full` the true second derivatives: S and C get what r bends."""
    from scipy.linalg import cho_solve

    predictions = problem.scores - state.residuals
    k = len(state.importances)
    schur = np.diag(ridges.importances)
    gradient = -ridges.importances * state.importances
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
    schur = (schur + schur.T) / 2
    gauge = np.ones(k)
    if problem.anchored:
        gauge[-1] = 0.0
    typical = np.abs(schur.diagonal()).mean() + 1e-12
    schur += np.outer(gauge, gauge) * typical / k
    schur[np.diag_indices(k)] += 1e-10 * typical  # an anchor that nothing speaks of stays put
    return Curvature(tuple(slopes), np.stack(couplings), schur, gradient)


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Second order, a handful of steps, ridges chosen from the data unless given.

    Prefer it to Adam always; Adam is there to compare with the paper.
    """

    ridges: tuple[float, float] | None = None  # (values, importances); None: from the data
    max_steps: int = 60
    tolerance: float = 1e-13
    n_rounds: int = 12
    tails: float = np.inf

    def solve(self, problem: Problem) -> Solution:
        ridges = Ridges.uniform(problem, *(self.ridges or (1e-2, 1e-1)))
        state = project(problem, np.zeros(problem.counts.shape[1]), ridges)
        if self.ridges is None:
            for _ in range(self.n_rounds):
                state = self.descend(problem, state, ridges, 2)
                ridges = by_evidence(problem, state, ridges, self.tails)
                state = project(problem, state.importances, ridges)
        return Solution(self.descend(problem, state, ridges, self.max_steps), ridges)

    def descend(self, problem: Problem, state: State, ridges: Ridges, n_steps: int) -> State:
        """Damped Newton steps over the importances, ridges fixed, downhill only."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        damping = 1e-3
        for _ in range(n_steps):
            system = curvature(problem, state, ridges, full=True)
            scale = np.abs(system.schur.diagonal()) + 1e-12
            before = state.objective
            while damping < 1e12:
                try:
                    factor = cho_factor(
                        system.schur + np.diag(damping * scale), check_finite=False
                    )
                except LinAlgError:  # not convex here: lean towards steepest descent
                    damping *= 10
                    continue
                step = cho_solve(factor, system.gradient, check_finite=False)
                step = np.clip(step, -STEP_BOUND, STEP_BOUND)
                moved = _in_gauge(problem, state.importances + step)
                trial = project(problem, moved, ridges)
                if trial.objective < state.objective:
                    state, damping = trial, max(damping / 10, 1e-10)
                    break
                damping *= 10
            if before - state.objective <= self.tolerance * before:
                break
        return state


def by_evidence(problem: Problem, state: State, ridges: Ridges, tails: float) -> Ridges:
    """One fixed-point step towards the ridges of the highest marginal likelihood.

    A ridge is noise variance over prior variance. Both are read off the current fit: the
    noise from the residuals, less the parameters they paid for; the prior's from the
    parameters' second moments. Finite `tails` make the prior of the values a Student t, so
    that the few units that matter are hardly shrunk and the many that do not, more.
    """
    from scipy.linalg import cho_solve

    system = curvature(problem, state, ridges)
    k, n_classes = len(state.importances), problem.scores.shape[1]
    gram_inverse = cho_solve(state.factor, np.eye(k), check_finite=False)
    schur_inverse = np.linalg.inv(system.schur)
    own = gram_inverse.diagonal()[:, None] + np.stack(
        [((c @ schur_inverse) * c).sum(axis=1) for c in system.coupling], axis=1
    )  # (k, n_classes) posterior variances over the noise
    free = slice(0, problem.n_features)
    ridge_v, ridge_s = ridges.values[free, None], ridges.importances[free]
    spent_v = (1 - ridge_v * own[free]).clip(0, 1)
    spent_s = (1 - ridge_s * schur_inverse.diagonal()[free]).clip(0, 1)
    n_rows = len(problem.scores) * n_classes
    spent = spent_v.sum() + spent_s.sum() + problem.anchored * (n_classes + 1)
    noise = float(problem.weights @ (state.residuals**2).sum(axis=1)) / max(
        n_rows - spent, 0.05 * n_rows
    )
    noise = max(noise, 1e-24)
    moments = ((state.values[free] - problem.prior) ** 2 + noise * own[free]).mean(axis=1)
    if np.isinf(tails):
        spread = ((state.values[free] - problem.prior) ** 2).sum() / max(spent_v.sum(), 1e-9)
        values = np.full(problem.n_features, noise / max(spread, 1e-300))
    else:
        pull = noise / ridges.values[free] / np.maximum(moments, 1e-300)  # τ²/λ over m
        spread = moments.mean()
        for _ in range(20):
            share = (tails + 1) / (tails + moments / spread)
            spread = (share * moments).mean()
        values = noise * share / spread
    spread_s = (state.importances[free] ** 2).sum() / max(spent_s.sum(), 1e-9)
    importances = np.full(problem.n_features, noise / max(spread_s, 1e-300))
    pad = [0.0] * problem.anchored
    return Ridges(
        np.append(values.clip(WEAKEST_RIDGE, STRONGEST_RIDGE), pad),
        np.append(importances.clip(WEAKEST_RIDGE, STRONGEST_RIDGE), pad),
    )


@dataclass(frozen=True)
class Adam:
    """The paper's algorithm 1: stochastic first-order steps on random batches.

    There for comparison: with a few hundred queries it has not converged.
    """

    learning_rate: float = 5e-3
    batch_size: int = 64
    n_epochs: int = 60
    seed: int = 0

    def solve(self, problem: Problem) -> Solution:
        rng = np.random.default_rng(self.seed)
        n, k = problem.counts.shape
        counts = problem.counts.dense()
        n_classes = problem.scores.shape[1]
        parameters = np.zeros((k, n_classes + 1))  # values, then importances in the last column
        first, second = np.zeros_like(parameters), np.zeros_like(parameters)
        steps = 0
        for _ in range(self.n_epochs):
            for batch in np.array_split(rng.permutation(n), max(1, round(n / self.batch_size))):
                steps += 1
                slope = _loss_gradient(problem, parameters, counts[batch], batch)
                first += 0.1 * (slope - first)
                second += 0.001 * (slope**2 - second)
                rate = self.learning_rate * np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
                parameters -= rate * first / (np.sqrt(second) + 1e-8)
        ridges = Ridges.uniform(problem, WEAKEST_RIDGE, WEAKEST_RIDGE)
        importances = _in_gauge(problem, parameters[:, -1])
        state = project(problem, importances, ridges)
        values = parameters[:, :-1]
        residuals = problem.scores - state.attention.apply(values)
        return Solution(replace(state, values=values, residuals=residuals), ridges)


def _loss_gradient(
    problem: Problem, parameters: FloatArray, counts: FloatArray, batch: NDArray[np.intp]
) -> FloatArray:
    """The gradient of the weighted mean squared error of one batch, by every parameter."""
    values, importances = parameters[:, :-1], parameters[:, -1]
    mass = counts * np.exp(importances - importances.max())
    attention = mass / mass.sum(axis=1, keepdims=True)
    predictions = attention @ values
    misses = (predictions - problem.scores[batch]) * problem.weights[batch, None]
    by_value = attention.T @ misses
    by_importance = (attention.T @ misses * values).sum(axis=1)
    by_importance -= attention.T @ (misses * predictions).sum(axis=1)
    return np.asarray(2 / len(batch) * np.column_stack([by_value, by_importance]))


def _attention(counts: Rows, importances: FloatArray) -> Rows:
    mass = counts.times(1.0, np.exp(importances - importances.max()))
    total = mass.sums()
    return mass.times(1.0 / np.where(total > 0, total, 1.0), 1.0)


def _in_gauge(problem: Problem, importances: FloatArray) -> FloatArray:
    centred = importances - importances[: problem.n_features].mean()
    return np.clip(centred, -MOST_IMPORTANT, MOST_IMPORTANT)
