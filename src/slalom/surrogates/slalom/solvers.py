"""Ways to fit a SLALOM; each knows the numbers of one problem and nothing else."""

from collections.abc import Iterator
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

    def solve(self, problem: Problem) -> Solution:
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
        ridges = Ridges.of(problem, WEAKEST, WEAKEST)
        state = project(problem, problem.in_gauge(parameters[:, -1]), ridges)
        values = parameters[:, :-1]
        residuals = problem.scores - state.attention.apply(values)
        return Solution(replace(state, values=values, residuals=residuals), ridges)

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
