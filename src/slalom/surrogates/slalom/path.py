"""How strongly to shrink: the ridges under which left-out rows are predicted best.

A strength is a ridge in units that mean the same for every design: of values, direct effects
and the length curve it is the prior's word on how much of the scores' spread the part
explains, ridge = strength × the summed variance of the part's columns; of importances, whose
own unit is natural, the ridge itself. From one set of strengths that suits most classifiers
the search walks, first with all strengths together (exact data lead to no ridges at all,
noise to a fit that says the mean), then with one at a time, as long as the leave-one-out
error falls. Weaker ridges all around must pay for themselves: in short texts leave-one-out
likes them a little too much.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.left_out import left_out
from slalom.surrogates.slalom.problem import (
    Problem,
    Ridges,
    Solution,
    State,
    project,
)

WEAKEST, STRONGEST = 1e-11, 1e6  # of all strengths together, times those of the start
NARROW = 1e-2, 1e4  # of one strength, times that of the start
EASE = 0.1  # the anchor's importance is pulled this much less than a unit's
FREE = 1e-3  # the ridge on the length curve's first step: a level that all texts share
ASKED_ALL = 3e-2  # times the start, where every subset was asked: no row is left to predict
PAYS, HELPS = 0.95, 0.99  # what the error must fall to, for weaker ridges and for any others
MOST = 9.0
POOR = 0.4  # from which error on all ridges may be too weak; below it they may be too strong
NEARLY, LEAP = (
    0.15,
    1e-5,
)  # error, or part of it, from which on to leap, and the strengths it leads to
HARMLESS = 1.02  # where data turn out to be nearly exact only: as strong as they may be
EXACT = 1e-8  # of the spread: nothing is left to gain


@dataclass(frozen=True)
class Strengths:
    value: float = 1.5
    importance: float = 0.2
    direct: float = 0.7
    length: float = 4.0
    common: float = 1.0  # a factor on all of them

    def ridges(self, problem: Problem) -> Ridges:
        value = self.value * problem.variances[0] * self.common
        importance = self.importance * self.common
        ones = problem.padded(np.ones(problem.n_features))
        return Ridges(
            values=value * (ones if problem.grounded else np.ones_like(ones)),
            importances=importance * np.where(ones > 0, 1.0, EASE),
            fixed=self._fixed(problem),
            strengths=(value, importance),
        )

    def _fixed(self, problem: Problem) -> FloatArray:
        if problem.parts is None:
            return np.zeros(0)
        direct = np.full(problem.parts.direct.shape[1], self.direct * problem.variances[1])
        length = np.full(problem.parts.length.shape[1], self.length * problem.variances[2])
        ridges = self.common * np.append(direct, length)
        ridges[len(direct)] = FREE * min(self.common, 1.0)
        return ridges


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit under some strengths, and the error it makes on rows it has not seen."""

    strengths: Strengths
    ridges: Ridges
    state: State
    error: float

    @property
    def modest(self) -> bool:
        """Misfit buys no values that spread more than MOST times as far as the scores."""
        return self.ridges.strengths[0] * MOST**2 >= self.error


@dataclass(frozen=True)
class ByLeaveOneOut:
    """Damped Newton steps under ridges chosen by leave-one-out error."""

    start: Strengths = Strengths()
    first_steps: int = 12  # of the first trial
    n_steps: int = 2  # of each other: they begin where the best one ended
    max_steps: int = 60  # of the last descent
    tolerance: float = 1e-14  # relative fall of the objective that ends it

    def solve(self, problem: Problem) -> Solution:
        if problem.complete:
            start = replace(self.start, common=ASKED_ALL)
            found = Trial(start, start.ridges(problem), _begin(problem, start), 0.0)
        else:
            found = self.search(problem)
        state = descend(
            problem, found.state, found.ridges, n_steps=self.max_steps, tolerance=self.tolerance
        )
        return Solution(state, found.ridges)

    def search(self, problem: Problem) -> Trial:
        best = self._trial(problem, self.start, _begin(problem, self.start), self.first_steps)
        best = self._leap(problem, best)
        if best.error <= EXACT:
            return best
        best = self._either(problem, best, _value, 4.0)
        if problem.parts is not None:
            best = self._either(problem, best, _direct, 8.0)
        best = self._either(problem, best, _importance, 4.0, PAYS)
        if best.error > POOR:
            return self._walk(problem, best, _common, 10.0, HELPS)
        return self._walk(problem, best, _common, 1 / 10, PAYS)

    def _leap(self, problem: Problem, best: Trial) -> Trial:
        """Nearly exact data show their worth only once the ridges are all but gone."""
        if best.error > NEARLY:
            return best
        strengths = replace(self.start, common=LEAP)
        trial = self._trial(problem, strengths, _begin(problem, strengths), self.first_steps)
        if trial.error > PAYS * best.error:
            return best
        down = self._walk(problem, trial, _common, 1 / 10, PAYS)
        if down is not trial:
            return down
        up = self._walk(problem, trial, _common, 10.0, HARMLESS)
        return up if up.modest else best  # misfit is no exact data

    def _either(
        self, problem: Problem, best: Trial, move: "Move", factor: float, enough: float = HELPS
    ) -> Trial:
        """Down as long as that is enough, else up."""
        down = self._walk(problem, best, move, 1 / factor, enough)
        return self._walk(problem, best, move, factor, HELPS) if down is best else down

    def _walk(
        self, problem: Problem, best: Trial, move: "Move", factor: float, enough: float
    ) -> Trial:
        """On and on, while the error falls to `enough` of what it was."""
        while move.within(best.strengths, factor):
            trial = self._trial(problem, move.by(best.strengths, factor), best.state)
            if trial.error > enough * best.error or (factor < 1 and not trial.modest):
                break
            best = trial
        return best

    def _trial(
        self, problem: Problem, strengths: Strengths, state: State, n_steps: int | None = None
    ) -> Trial:
        ridges = strengths.ridges(problem)
        state = project(problem, state.importances, ridges)
        n_steps = self.n_steps if n_steps is None else n_steps
        state = descend(problem, state, ridges, n_steps=n_steps, tolerance=1e-3)
        misses = left_out(problem, state, ridges).residuals
        return Trial(strengths, ridges, state, judge(problem, misses))


def judge(problem: Problem, residuals: FloatArray) -> float:
    """The weighted mean square over the rows that are judged."""
    judged = slice(None) if problem.judged is None else problem.judged
    weights = problem.weights[judged]
    if not len(weights):
        return 0.0
    return float(weights @ (residuals[judged] ** 2).sum(axis=1) / weights.sum())


def _begin(problem: Problem, strengths: Strengths) -> State:
    """A few steps from where importances and the anchor's are believed to be."""
    ridges = strengths.ridges(problem)
    state = project(problem, problem.importance_prior, ridges)
    return descend(problem, state, ridges, n_steps=3, tolerance=1e-3)


@dataclass(frozen=True)
class Move:
    """A strength that may change, within bounds relative to the start."""

    name: str
    bounds: tuple[float, float]

    def by(self, strengths: Strengths, factor: float) -> Strengths:
        return replace(strengths, **{self.name: getattr(strengths, self.name) * factor})

    def within(self, strengths: Strengths, factor: float) -> bool:
        relative = getattr(strengths, self.name) * factor / getattr(Strengths(), self.name)
        return bool(self.bounds[0] <= relative <= self.bounds[1])


_common = Move("common", (WEAKEST, STRONGEST))
_value, _direct, _importance = (Move(name, NARROW) for name in ("value", "direct", "importance"))
