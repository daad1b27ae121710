"""What a fit would say had it not seen a fold of its rows, by refitting from where it ended.

Leave-one-out from one factorisation takes the fit to be linear; where importances bend it
strongly, that is too hopeful. A few steps from the optimum under the same ridges are enough, in
single precision where that saves time, unless the fit is closer than that; in double precision
they go on until answers that differ in the last digits lead to the same place. Rows of which
there is only one of a kind (the whole and the empty text) are never left out: no other row
could stand in for them.

Without two folds importances are w⁻ᶠ + w⁻ᵍ − w, what leaving out each of them did to them added
up; all else, which is linear given them, is solved anew.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.problem import (
    Parts,
    Problem,
    Ridges,
    Solution,
    State,
    attention_of,
    project,
)

N_FOLDS = 4
N_STEPS, TOLERANCE = 5, 1e-6
N_FINE_STEPS, FINE = 8, 1e-12
CLOSE = 1e-4  # mean square of the residuals, of the spread: single precision would show


def folds_of(problem: Problem) -> IntArray:
    """(n,) the fold of each row; −1: never left out. Queries were drawn at random: in turn."""
    drawn = np.ones(len(problem.scores), bool) if problem.judged is None else problem.judged
    folds = np.full(len(drawn), -1, dtype=np.int32)
    folds[drawn] = np.arange(int(drawn.sum())) % N_FOLDS
    return folds


@dataclass(frozen=True, eq=False)
class WithoutFolds:
    """What fits without each fold say, and where their importances went."""

    said: FloatArray  # (n_folds, n, n_columns) of all rows
    importances: FloatArray  # (n_folds, n_features), with the anchor's where there is one


def without_folds(problem: Problem, solution: Solution, folds: IntArray) -> WithoutFolds:
    """Refitted without each fold."""
    end, found = _End.of(problem, solution), list[State]()
    for fold in range(N_FOLDS):
        rows = _rows(end.problem, folds != fold)
        state = project(rows, end.importances, end.ridges)
        found.append(descend(rows, state, end.ridges, n_steps=end.n_steps, tolerance=end.tolerance))
    said = np.stack([_said(end.problem, state) for state in found]).astype(np.float64)
    return WithoutFolds(said, np.stack([state.importances for state in found]))


def without_two_folds(
    problem: Problem, solution: Solution, folds: IntArray, *, one_less: WithoutFolds
) -> FloatArray:
    """(n_folds, n, n_columns) each row by a fit without its own fold and another one.

    Rows of the other fold itself are not told (0), and those never left out neither.
    """
    end = _End.of(problem, solution)
    found = np.zeros((N_FOLDS, *problem.scores.shape))
    for one, other in combinations(range(N_FOLDS), 2):
        rows = _rows(end.problem, (folds != one) & (folds != other))
        importances = one_less.importances[[one, other]].sum(axis=0) - end.importances
        said = _said(end.problem, project(rows, importances, end.ridges)).reshape(found[0].shape)
        found[one, folds == other] = said[folds == other]
        found[other, folds == one] = said[folds == one]
    return found


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

    @property
    def n_steps(self) -> int:
        return N_FINE_STEPS if self._is_fine else N_STEPS

    @property
    def tolerance(self) -> float:
        """The fall of the objective that ends the steps."""
        return FINE if self._is_fine else TOLERANCE

    @property
    def _is_fine(self) -> bool:
        return self.importances.dtype == np.float64


def _said(problem: Problem, state: State) -> FloatArray:
    """What a fit says of all rows."""
    attended = attention_of(problem.counts, state.importances).apply(state.values)
    return np.asarray(attended + problem.fixed @ state.effects)


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
