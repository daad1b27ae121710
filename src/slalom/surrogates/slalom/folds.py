"""What a fit would say had it not seen a fold of its rows, by refitting from where it ended.

Leave-one-out from one factorisation takes the fit to be linear; where importances bend it
strongly, that is too hopeful. A few steps from the optimum under the same ridges are enough,
and cost about a fifth of the fit. Rows of which there is only one of a kind (the whole and the
empty text) are never left out: no other row could stand in for them.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.problem import Parts, Problem, Solution, attention_of, project

N_FOLDS = 4
N_STEPS, TOLERANCE = 4, 1e-4
N_STEPS_OF_TWO = 2


def folds_of(problem: Problem) -> IntArray:
    """(n,) the fold of each row; −1: never left out. Queries were drawn at random: in turn."""
    drawn = np.ones(len(problem.scores), bool) if problem.judged is None else problem.judged
    folds = np.full(len(drawn), -1, dtype=np.int32)
    folds[drawn] = np.arange(int(drawn.sum())) % N_FOLDS
    return folds


def without_folds(problem: Problem, solution: Solution, folds: IntArray) -> FloatArray:
    """(n_folds, n, n_columns) what fits without each fold say of all rows."""
    return np.stack([_without(problem, solution, folds != fold) for fold in range(N_FOLDS)])


def without_two_folds(problem: Problem, solution: Solution, folds: IntArray) -> FloatArray:
    """(n_folds, n, n_columns) each row by a fit without its own fold and another one.

    Rows of the other fold itself are not told (0), and those never left out neither.
    """
    found = np.zeros((N_FOLDS, *problem.scores.shape))
    for one, other in combinations(range(N_FOLDS), 2):
        kept = (folds != one) & (folds != other)
        said = _without(problem, solution, kept, n_steps=N_STEPS_OF_TWO).reshape(found[0].shape)
        found[one, folds == other] = said[folds == other]
        found[other, folds == one] = said[folds == one]
    return found


def _without(
    problem: Problem, solution: Solution, kept: BoolArray, n_steps: int = N_STEPS
) -> FloatArray:
    rows = _rows(problem, kept)
    state = project(rows, solution.state.importances, solution.ridges)
    state = descend(rows, state, solution.ridges, n_steps=n_steps, tolerance=TOLERANCE)
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
