"""Optimizers of the paper's model: ridges of the highest marginal likelihood, and its algorithm 1.

A ridge is the noise's variance over the prior's. Both come from the current fit (MacKay's
fixed point): the noise from the residuals, less the parameters they paid for; the prior's
from how far the parameters lie from it, less what the data did not determine:

    σ² = Σ π r² / (N − γ)      τ² = (Σ (θ − θ̄)² + p τ_0²) / (γ_θ + p)      ρ = σ² / τ²

p units that were never seen keep τ sane in short texts: their values spread like the scores, their
importances like 1. Data that a SLALOM describes exactly leave no misfit, hence no ridge.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.surrogates.linalg import inverse_of, solve_lower_transposed
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.newton import (
    Factors,
    Point,
    Problem,
    Ridges,
    attention_of,
    descend,
    descent_of,
    gauss_newton,
)

WEAKEST = 1e-11  # ridge


def by_evidence(
    problem: Problem, *, n_rounds: int = 15, tolerance: float = 1e-13
) -> tuple[Problem, Point]:
    """The problem with its ridges, and its optimum.

    The number of rounds is fixed: a rule that ends them would hang on last digits.
    """
    problem = _with(problem, 1e-3, 1e-1)
    point = problem.start()
    for _ in range(n_rounds):
        point = descend(problem, point, tolerance, max_steps=2)
        problem = _with(problem, *_evidence(problem, point))
        point = problem.at_point(point)
    return problem, descend(problem, point, tolerance)


def _with(problem: Problem, value: float, importance: float) -> Problem:
    k = problem.counts.shape[1]
    return replace(
        problem, ridges=Ridges(np.full(k, value), np.full(k, importance), problem.ridges.fixed)
    )


def _evidence(problem: Problem, point: Point, n_unseen: float = 10.0) -> tuple[float, float]:
    """What the evidence says of both ridges, where they are these; `n_unseen` is p."""
    n_columns, ridges = problem.scores.shape[1], problem.ridges
    values, importances = _variances(gauss_newton(problem, point))
    spent_values = (1 - ridges.values[:, None] * values).clip(0, 1).sum()
    spent_importances = (1 - ridges.importances * importances).clip(0, 1).sum()
    size = problem.scores.size
    freedom = max(size - spent_values - spent_importances, 0.05 * size)
    noise = float(problem.weights @ (point.residuals**2).sum(axis=1)) / freedom
    spread = float(((problem.scores - problem.centre[0]) ** 2).mean())
    moved, unseen = float(((point.latent - problem.centre) ** 2).sum()), n_unseen * n_columns
    of_values = (moved + unseen * spread) / (spent_values + unseen)
    moved = float(point.importances @ point.importances)
    of_importances = (moved + n_unseen) / (spent_importances + n_unseen)
    return _ratio(noise, of_values), _ratio(noise, of_importances)


def _variances(factors: Factors) -> tuple[FloatArray, FloatArray]:
    """Posterior variances over the noise's: (k, n_columns) of values, (k,) of importances."""
    shared, values = inverse_of(factors.root), []
    for lower, half in zip(factors.lowers, factors.halves, strict=True):
        through = solve_lower_transposed(lower, half)
        values.append(inverse_of(lower).diagonal() + ((through @ shared) * through).sum(axis=1))
    return np.stack(values, axis=1), np.asarray(shared.diagonal())


def _ratio(noise: float, spread: float) -> float:
    return max(noise / max(spread, 1e-300), WEAKEST)


@dataclass(frozen=True)
class Adam:
    """The paper's algorithm 1: first-order steps on random batches, from all zeros.

    As printed a step is the learning rate times the gradient (`moments=False`); the published code
    divides it by Adam's moments. The rate falls to nothing along a cosine, without which neither
    comes to rest. There for comparison: Newton's steps need a tenth of the time.
    """

    learning_rate: float = 0.1
    batch_size: int = 64
    n_steps: int = 5000
    moments: bool = True
    seed: int = 0

    def __call__(self, problem: Problem) -> tuple[Problem, Point]:
        counts = problem.counts.dense()
        parameters = np.zeros((counts.shape[1], problem.scores.shape[1] + 1))  # importances last
        first, second = np.zeros_like(parameters), np.zeros_like(parameters)
        batches = self._batches(len(counts))
        for step, batch in enumerate(batches, start=1):
            slope = _loss_gradient(problem, parameters, counts[batch], batch)
            rate = self.learning_rate * (1 + np.cos(np.pi * (step - 1) / self.n_steps)) / 2
            if self.moments:
                first += 0.1 * (slope - first)
                second += 0.001 * (slope**2 - second)
                rate *= np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                slope = first / (np.sqrt(second) + 1e-8)
            parameters -= rate * slope
        problem = _with(problem, WEAKEST, WEAKEST)
        nothing = np.zeros((0, problem.scores.shape[1]))
        return problem, problem.at(parameters[:, :-1], nothing, parameters[:, -1])

    def _batches(self, n: int) -> Iterator[NDArray[np.intp]]:
        """Random batches, every row once before any comes again."""
        rng = np.random.default_rng(self.seed)
        n_each, left = max(1, round(n / self.batch_size)), self.n_steps
        while left > 0:
            drawn = np.array_split(rng.permutation(n), n_each)[:left]
            left -= len(drawn)
            yield from drawn


def _loss_gradient(
    problem: Problem, parameters: FloatArray, counts: FloatArray, batch: NDArray[np.intp]
) -> FloatArray:
    """The gradient of the weighted mean squared error of one batch, by every parameter."""
    values, importances = parameters[:, :-1], parameters[:, -1]
    attention = attention_of(Rows(counts, counts.shape, None), importances)
    attended = attention.apply(values)
    weighted = problem.weights[batch, None] * (problem.scores[batch] - attended)
    by_value, by_importance = descent_of(attention, values, attended, weighted)
    return np.asarray(-2 / len(batch) * np.column_stack([by_value, by_importance.sum(axis=1)]))
