"""One document's fit under ridges that a search chooses: damped Newton steps, in numpy."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.descent import approach, descend
from slalom.surrogates.slalom.left_out import Linearised
from slalom.surrogates.slalom.path import (
    Beside,
    Forecast,
    FromAfar,
    FromPrior,
    Search,
    Trial,
    Wanted,
    search,
)
from slalom.surrogates.slalom.problem import Problem, Ridges, Solution, State, project
from slalom.surrogates.slalom.strengths import Strengths

FIRST_STEPS, FIRST_TOLERANCE = 40, 1e-4  # of a descent from the prior, over plateaus
STEPS_FROM_AFAR, STEPS_BESIDE, TOLERANCE = 15, 2, 1e-3  # of the others
LAST_STEPS, LAST_TOLERANCE = 60, 1e-11  # relative fall of the objective; the next is a rounding
START = Strengths()
ALL_SUBSETS_STRENGTH = 3e-2  # times the start, where every subset was asked
SINGLE_PRECISION_RANGE = 1e3  # spreads: scores within it are searched in single precision


@dataclass(frozen=True)
class ByLeaveOneOut:
    """Damped Newton steps under ridges chosen by leave-one-out error."""

    start: Strengths = START

    def solve(self, problem: Problem) -> Solution:
        if problem.complete:
            strengths = replace(self.start, common=ALL_SUBSETS_STRENGTH)
            ridges = firm(problem, strengths.ridges(problem), 1.0)
            state = _begin(problem, ridges)
        else:
            found = answered(self.search(problem), Trials(problem))
            ridges = firm(problem, found.strengths.ridges(problem), found.error)
            state = project(problem, problem.in_gauge(found.importances), ridges)
        state = descend(problem, state, ridges, n_steps=LAST_STEPS, tolerance=LAST_TOLERANCE)
        return Solution(state, ridges)

    def search(self, problem: Problem) -> Search:
        return search(self.start, parts=problem.parts is not None, mild=_is_mild(problem))


def answered(searching: Search, trials: "Trials") -> Trial:
    """Where a search ends."""
    answer: Any = None
    while True:
        try:
            wanted = searching.send(answer)
        except StopIteration as end:
            found: Trial = end.value
            return found
        answer = trials.answer(wanted)


@dataclass(frozen=True, eq=False)
class Trials:
    """What a search wants to know of one problem."""

    problem: Problem

    def answer(self, wanted: Wanted) -> Trial | float:
        match wanted:
            case FromPrior(strengths, exact):
                problem = self.problem if exact else self.problem.single
                ridges = strengths.ridges(problem)
                return _judged(problem, strengths, ridges, _begin(problem, ridges))
            case FromAfar(strengths, importances):
                return self._from_afar(strengths, importances)
            case Beside(strengths, trial):
                return _beside(trial, strengths)
            case Forecast(strengths, trial):
                near: Linearised = trial.near
                ridges = strengths.ridges(near.problem)
                return judge(near.problem, near.predicted_residuals(ridges))

    def _from_afar(self, strengths: Strengths, importances: FloatArray) -> Trial:
        problem, ridges = self.problem, strengths.ridges(self.problem)
        state = project(problem, importances, ridges)
        state = descend(
            problem, state, ridges, n_steps=STEPS_FROM_AFAR, tolerance=TOLERANCE, near=False
        )
        return _judged(problem, strengths, ridges, state)


def judge(problem: Problem, residuals: FloatArray) -> float:
    """The weighted mean square over the rows that are judged."""
    judged = slice(None) if problem.judged is None else problem.judged
    weights = problem.weights[judged]
    if not len(weights):
        return 0.0
    return float(weights @ (residuals[judged] ** 2).sum(axis=1) / weights.sum())


def firm(problem: Problem, ridges: Ridges, error: float) -> Ridges:
    """An anchor without an answer of its own: misfit does not buy it more than the scores' spread.

    Error over ridge is the variance that the prior expects, and the unit is that spread.
    """
    if problem.grounded or not problem.anchored:
        return ridges
    values = ridges.values.copy()
    values[-1] = max(float(values[-1]), error)
    return replace(ridges, values=values)


def _is_mild(problem: Problem) -> bool:
    """Whether single precision is enough for a search, and worth it."""
    return (
        problem.is_large and float(np.abs(problem.scores).max(initial=0.0)) < SINGLE_PRECISION_RANGE
    )


def _beside(trial: Trial, strengths: Strengths) -> Trial:
    near: Linearised = trial.near
    problem, ridges = near.problem, strengths.ridges(near.problem)
    state = project(problem, near.state.importances, ridges)
    state = descend(problem, state, ridges, n_steps=STEPS_BESIDE, tolerance=TOLERANCE)
    return _judged(problem, strengths, ridges, state)


def _judged(problem: Problem, strengths: Strengths, ridges: Ridges, state: State) -> Trial:
    near = Linearised(problem, state)
    return Trial(
        strengths,
        strengths.pulls(problem.variances),
        np.asarray(state.importances, np.float64),
        judge(problem, near.left_out(ridges).residuals),
        exact=problem.scores.dtype == np.float64,
        near=near,
    )


def _begin(problem: Problem, ridges: Ridges) -> State:
    """From the prior, where the anchor is as loud as a unit."""
    state = project(problem, problem.importance_prior, ridges)
    return approach(problem, state, ridges, n_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE)
