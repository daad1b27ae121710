"""The paper's algorithm 1, for comparison."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.surrogates.slalom.newton import Place, Problem, Ridges

LEAST = 1e-11  # ridges, next to none


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

    def __call__(self, problem: Problem) -> tuple[Problem, Place]:
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
        k = len(parameters)
        problem = replace(problem, ridges=Ridges(np.full(k, LEAST), np.full(k, LEAST), np.zeros(0)))
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
    mass = counts * np.exp(importances - importances.max())
    attention = mass / mass.sum(axis=1, keepdims=True)
    predictions = attention @ values
    misses = (predictions - problem.scores[batch]) * problem.weights[batch, None]
    by_value = attention.T @ misses
    by_importance = (by_value * values).sum(axis=1)
    by_importance -= attention.T @ (misses * predictions).sum(axis=1)
    return np.asarray(2 / len(batch) * np.column_stack([by_value, by_importance]))
