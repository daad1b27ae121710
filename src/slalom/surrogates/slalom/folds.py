"""What a fit would say had it not seen a fold of its rows, by refitting from where it ended.

Leave-one-out from one factorisation takes the fit to be linear; where importances bend it
strongly, that is too hopeful. From where a linear fit would go without the fold, a step or two
under the same ridges are enough, in single precision where that saves time, unless the fit is
closer than that; in double precision they go on until answers that differ in the last digits
lead to the same place. Rows of which
there is only one of a kind (the whole and the empty text) are never left out: no other row
could stand in for them.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.descent import STEP_BOUND, descend, slide
from slalom.surrogates.slalom.left_out import LeftOut, left_out, shift_without
from slalom.surrogates.slalom.problem import (
    Parts,
    Problem,
    Ridges,
    Solution,
    State,
    attention_of,
    project,
)

N_FOLDS, N_FOLDS_OF_FEW = 4, 8
FEW = 600  # rows at most: a fit without a quarter of them would be too poor to judge by
N_STEPS, N_STEPS_AFAR, TOLERANCE = 2, 6, 1e-5  # in single precision
N_FINE_STEPS, FINE = 8, 1e-12
CLOSE = 1e-4  # mean square of the residuals, of the spread: single precision would show


def folds_of(problem: Problem) -> IntArray:
    """(n,) the fold of each row; −1: never left out. Queries were drawn at random: in turn."""
    drawn = np.ones(len(problem.scores), bool) if problem.judged is None else problem.judged
    folds = np.full(len(drawn), -1, dtype=np.int32)
    n_drawn = int(drawn.sum())
    folds[drawn] = np.arange(n_drawn) % (N_FOLDS if n_drawn > FEW else N_FOLDS_OF_FEW)
    return folds


def without_folds(problem: Problem, solution: Solution, folds: IntArray) -> list[State]:
    """The fits without each fold, over the rows that are left."""
    end = _End.of(problem, solution)
    return [end.without(folds != fold) for fold in range(folds.max() + 1)]


def said_of_all(problem: Problem, state: State) -> FloatArray:
    """(n, n_columns) what a fit to some of the rows says of all."""
    values, importances, effects = (
        each.astype(np.float64) for each in (state.values, state.importances, state.effects)
    )
    attended = attention_of(problem.counts, importances).apply(values)
    return np.asarray(attended + problem.fixed @ effects)


@dataclass(frozen=True, eq=False)
class _End:
    """Where a fit ended, in the precision that it deserves."""

    problem: Problem
    importances: FloatArray
    ridges: Ridges

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> "_End":
        importances, ridges = solution.state.importances, solution.ridges
        if (solution.state.residuals**2).mean() <= CLOSE or not problem.is_large:
            return cls(problem, importances, ridges)
        return cls(problem.single, importances.astype(np.float32), ridges.single)

    @cached_property
    def state(self) -> State:
        return project(self.problem, self.importances, self.ridges)

    @cached_property
    def left_out(self) -> LeftOut:
        """Of the system of all rows: without a fold it is much the same."""
        return left_out(self.problem, self.state, self.ridges)

    def without(self, kept: BoolArray) -> State:
        """The fit to these rows alone."""
        rows, ridges = _rows(self.problem, kept), self.ridges
        if self.importances.dtype == np.float64:
            state = project(rows, self.importances, ridges)
            return descend(rows, state, ridges, n_steps=N_FINE_STEPS, tolerance=FINE)
        n_steps, state = N_STEPS, project(rows, self._linear_guess(~kept), ridges)
        if not state.objective < self._objective_of(kept):
            n_steps, state = N_STEPS_AFAR, project(rows, self.importances, ridges)
        root = self.left_out.root
        return slide(rows, state, ridges, root=root, n_steps=n_steps, tolerance=TOLERANCE)

    def _linear_guess(self, fold: BoolArray) -> FloatArray:
        """(k,) the importances without a fold, were the model linear in them."""
        shift = shift_without(self.left_out, self.state, fold, weights=self.problem.weights)
        return self.problem.in_gauge(self.importances + shift.clip(-STEP_BOUND, STEP_BOUND))

    def _objective_of(self, kept: BoolArray) -> float:
        """Of the fit to all rows, counted on these alone."""
        squares = (self.state.residuals[~kept] ** 2).sum(axis=1)
        return self.state.objective - float(self.problem.weights[~kept] @ squares)


def _rows(problem: Problem, kept: BoolArray) -> Problem:
    parts = problem.parts and Parts(problem.parts.direct[kept], problem.parts.length[kept])
    return replace(
        problem,
        counts=Rows.of(problem.counts.dense()[kept]),
        scores=problem.scores[kept],
        weights=problem.weights[kept],
        parts=parts,
        judged=None,
    )
