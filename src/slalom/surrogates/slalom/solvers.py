"""Ways to fit a SLALOM; each knows the numbers of one problem and nothing else."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.problem import Problem, Ridges, Solution, State, project
from slalom.surrogates.slalom.ridges import WEAKEST, FixedPoint, bound_ridges, ridges_from_evidence

FIRST_RIDGES = (1e-3, 1e-1)


class Solver(Protocol):
    def solve(self, problem: Problem) -> Solution: ...


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Newton steps over the importances, the values eliminated, ridges from the data.

    Prefer it always: it converges in a handful of steps. Adam is there to compare with the
    paper.
    """

    ridges: tuple[float, float] | None = None  # (values, importances); None: from the data
    bounded: bool = True  # False: the data's word on the ridges is the last (ridges.py)
    most_rounds: int = 40  # of choosing ridges, two steps each
    settled: float = 1e-5  # relative change of the ridges that ends them
    max_steps: int = 60
    tolerance: float = 1e-13  # relative fall of the objective that ends the descent

    def solve(self, problem: Problem) -> Solution:
        ridges = Ridges.of(problem, *(self.ridges or FIRST_RIDGES))
        state = project(problem, problem.importance_prior, ridges)
        if self.ridges is None:
            state, ridges = self.choose(problem, state, ridges)
            if self.bounded:
                ridges = bound_ridges(problem, state, ridges)
                state = project(problem, state.importances, ridges)
        return Solution(self._descend(problem, state, ridges, self.max_steps), ridges)

    def choose(self, problem: Problem, state: State, ridges: Ridges) -> tuple[State, Ridges]:
        """Rounds of two steps until the ridges settle, and stay settled where descent ends.

        Seven rounds are usual; exact data need many, their ridges fall to nothing.
        """
        search, settled = FixedPoint(), False
        for _ in range(self.most_rounds):
            state = self._descend(problem, state, ridges, self.max_steps if settled else 2)
            close = (
                search.move(ridges, ridges_from_evidence(problem, state, ridges)) <= self.settled
            )
            ridges = search.guess(problem)
            state = project(problem, state.importances, ridges)
            if close and settled:
                break
            settled = close
        return state, ridges

    def _descend(self, problem: Problem, state: State, ridges: Ridges, n_steps: int) -> State:
        return descend(problem, state, ridges, n_steps=n_steps, tolerance=self.tolerance)


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
        parameters = np.zeros((k, problem.scores.shape[1] + 1))  # values, importances last
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
        ridges = Ridges.of(problem, WEAKEST, WEAKEST)
        state = project(problem, problem.in_gauge(parameters[:, -1]), ridges)
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
    by_importance = (by_value * values).sum(axis=1)
    by_importance -= attention.T @ (misses * predictions).sum(axis=1)
    return np.asarray(2 / len(batch) * np.column_stack([by_value, by_importance]))
