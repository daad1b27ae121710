"""Ridges by leave-one-out error: a coordinate search over four strengths.

A strength is a ridge in units that mean the same for every design. For values, direct effects
and the length curve it sets the prior variance, as a share of the scores' variance that the part
explains: ridge = strength × the summed variance of the part's columns. For importances, whose
own unit is natural, it is the ridge itself. From one set of strengths that suits most classifiers
the search moves one strength at a time, then all together (exact data lead to no ridges at all,
noise to a fit that predicts the mean), as long as the leave-one-out error falls. Weaker ridges
must gain more than stronger ones: leave-one-out favours them a little too much. Before other
ridges are tried, one Gauss–Newton step from the current fit predicts their error at a fifth of
the cost; where that is too high they are not tried.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.descent import approach, descend
from slalom.surrogates.slalom.left_out import Linearised, judge
from slalom.surrogates.slalom.problem import (
    Problem,
    Ridges,
    Solution,
    State,
    project,
)

MIN_STRENGTH, MAX_STRENGTH = 1e-11, 1e6  # of all strengths together, times those of the start
STRENGTH_BOUNDS = 1e-2, 1e4  # of one strength, times that of the start
ANCHOR_RIDGE_FACTOR = 0.4  # of an anchor without an answer of its own, relative to a unit
FIRST_STEP_RIDGE = 1e-3  # on the length curve's first step: a level that all texts share
ALL_SUBSETS_STRENGTH = 3e-2  # times the start, where every subset was asked
GAIN_BY_WEAKER, GAIN_BY_STRONGER = 0.95, 0.995  # what the error must fall to, under such ridges
SKIPPED_ABOVE = 1.01  # times that, where it is only predicted
MAX_VALUE_SPREAD, MAX_IMPORTANCE_SPREAD = 9.0, 6.0  # that misfit may lead to; in scores' spreads
POOR_FIT = 0.4  # error above which all ridges may be too weak; below it, too strong
FAIR_FIT = 0.25  # above it importances have never been pulled too much
NEARLY_EXACT = 0.15  # error below which much weaker ridges are tried at once
NEARLY_EXACT_STRENGTH = 1e-5  # theirs
NEARLY_NOTHING = 0.1  # of that error: what they must leave of the rows themselves
TOLERATED_LOSS = 1.02  # of error, for stronger ridges where data are nearly exact
SINGLE_PRECISION_RANGE = 1e3  # spreads: scores within it are searched in single precision
FIRST_TOLERANCE = 1e-3  # relative fall of the objective that ends a descent from the prior
EXACT_FIT = 1e-8  # of the spread: nothing is left to gain


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
        kind = problem.scores.dtype  # in which all of a trial is computed
        ones = problem.padded(np.ones(problem.n_features, kind))
        all_ones = np.ones_like(ones)
        eased = all_ones if problem.grounded else np.where(ones > 0, ones, ANCHOR_RIDGE_FACTOR)
        return Ridges(
            values=value * (ones if problem.grounded else all_ones),
            importances=importance * eased.astype(kind),
            fixed=self._fixed(problem).astype(kind),
            strengths=(value, importance),
        )

    def _fixed(self, problem: Problem) -> FloatArray:
        if problem.parts is None:
            return np.zeros(0)
        direct = np.full(problem.parts.direct.shape[1], self.direct * problem.variances[1])
        length = np.full(problem.parts.length.shape[1], self.length * problem.variances[2])
        ridges = self.common * np.append(direct, length)
        ridges[len(direct)] = FIRST_STEP_RIDGE * min(self.common, 1.0)
        return ridges


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit under some strengths, and the error it makes on rows it has not seen."""

    strengths: Strengths
    near: Linearised

    @property
    def ridges(self) -> Ridges:
        return self.near.ridges

    @property
    def error(self) -> float:
        return self.near.error

    @property
    def state(self) -> State:
        return self.near.state

    @property
    def importances(self) -> FloatArray:
        """In double precision, whatever the trial was made in."""
        return np.asarray(self.state.importances, np.float64)

    @property
    def is_plausible(self) -> bool:
        """Whether misfit explains no values or importances that spread too far.

        Error over ridge is the variance that the prior would then expect.
        """
        value, importance = self.ridges.strengths
        values_are = value * MAX_VALUE_SPREAD**2 >= self.error
        return values_are and importance * MAX_IMPORTANCE_SPREAD**2 >= self.error


@dataclass(frozen=True)
class ByLeaveOneOut:
    """Damped Newton steps under ridges chosen by leave-one-out error."""

    start: Strengths = Strengths()
    forecast_threshold: float = (
        SKIPPED_ABOVE * GAIN_BY_WEAKER
    )  # of the error, if importances were freer
    first_steps: int = 40  # of the first trial, over plateaus
    fresh_steps: int = 15  # of one that begins there again, under other ridges
    first_look: int = 3  # of these, after which exact data are told from others
    n_steps: int = 2  # of each other: they begin where the best one ended
    max_steps: int = 60  # of the last descent
    tolerance: float = 1e-9  # relative fall of the objective that ends it: the next is a rounding

    def solve(self, problem: Problem) -> Solution:
        if problem.complete:
            ridges = _firm(
                problem, replace(self.start, common=ALL_SUBSETS_STRENGTH).ridges(problem), 1.0
            )
            state = _begin(problem, ridges, self.first_steps)
        else:
            found = self.search(problem)
            ridges = _firm(problem, found.strengths.ridges(problem), found.error)
            state = project(problem, problem.in_gauge(found.importances), ridges)
        state = descend(problem, state, ridges, n_steps=self.max_steps, tolerance=self.tolerance)
        return Solution(state, ridges)

    def search(self, problem: Problem) -> Trial:
        """In single precision as long as there are ridges worth the name."""
        first = self._afresh(problem.single if _float32_suffices(problem) else problem, self.start)
        best = self._try_near_zero_ridge(problem, first)
        if best.error <= EXACT_FIT:
            return best
        best = self._either(best, _value, 4.0)
        if problem.parts is not None:
            best = self._either(best, _direct, 8.0)
        if best.error > FAIR_FIT:
            best = self._line_search(best, _importance, 4.0, GAIN_BY_STRONGER)
        else:
            best = self._either(best, _importance, 4.0)
        if best.error > POOR_FIT:
            return self._line_search(best, _common, 10.0, GAIN_BY_STRONGER)
        down = self._line_search(best, _common, 1 / 10, GAIN_BY_WEAKER)
        if down is not best and best.near.problem is not problem:
            again = self._afresh(problem, best.strengths, best.importances)
            down = self._line_search(
                again, _common, 1 / 10, GAIN_BY_WEAKER
            )  # next to no ridges: digits matter
        best = down
        if first.error <= NEARLY_EXACT:  # it was tried
            return best
        return self._try_near_zero_ridge(problem, best)

    def _try_near_zero_ridge(self, problem: Problem, best: Trial) -> Trial:
        """Nearly exact data show their worth only once the ridges are all but gone.

        It begins where the best trial ended: from the prior, without ridges, the last digits of
        the scores decide where a descent ends.
        """
        if best.error > NEARLY_EXACT:
            return best
        strengths = replace(self.start, common=NEARLY_EXACT_STRENGTH)
        begun = self._afresh(problem, strengths, best.importances, n_steps=self.first_look)
        if judge(problem, begun.state.residuals) > NEARLY_NOTHING * best.error:
            return best
        trial = self._afresh(problem, strengths, begun.importances)
        if trial.error > GAIN_BY_WEAKER * best.error:
            return best
        down = self._line_search(trial, _common, 1 / 10, GAIN_BY_WEAKER)
        if down is not trial:
            return down
        up = self._line_search(trial, _common, 10.0, TOLERATED_LOSS)
        return up if up.is_plausible else best  # misfit is no exact data

    def _either(self, best: Trial, move: "Move", factor: float) -> Trial:
        """Down as long as that pays, else up."""
        down = self._line_search(best, move, 1 / factor, GAIN_BY_WEAKER)
        return self._line_search(best, move, factor, GAIN_BY_STRONGER) if down is best else down

    def _line_search(self, best: Trial, move: "Move", factor: float, enough: float) -> Trial:
        """On and on, while the error falls to `enough` of what it was."""
        problem = best.near.problem
        while move.within(best.strengths, factor):
            strengths, most = move.by(best.strengths, factor), enough * best.error
            ridges = strengths.ridges(problem)
            freer = factor < 1 and move.of_importances
            tried_below = self.forecast_threshold * best.error if freer else SKIPPED_ABOVE * most
            if best.near.forecast(ridges) > tried_below:
                break
            state = project(problem, best.state.importances, ridges)
            state = descend(problem, state, ridges, n_steps=self.n_steps, tolerance=1e-3)
            trial = Trial(strengths, Linearised(problem, state, ridges))
            if trial.error > most or (factor < 1 and not trial.is_plausible):
                break
            best = trial
        return best

    def _afresh(
        self,
        problem: Problem,
        strengths: Strengths,
        importances: FloatArray | None = None,
        *,
        n_steps: int | None = None,
    ) -> Trial:
        ridges = strengths.ridges(problem)
        if importances is None:
            state = _begin(problem, ridges, self.first_steps)
        else:
            state = project(problem, importances, ridges)
            steps = n_steps or self.fresh_steps
            state = descend(problem, state, ridges, n_steps=steps, tolerance=1e-3, near=False)
        return Trial(strengths, Linearised(problem, state, ridges))


def _firm(problem: Problem, ridges: Ridges, error: float) -> Ridges:
    """An anchor without an answer of its own: misfit does not buy it more than the scores' spread.

    Error over ridge is the variance that the prior expects, and the unit is that spread.
    """
    if problem.grounded or not problem.anchored:
        return ridges
    values = ridges.values.copy()
    values[-1] = max(float(values[-1]), error)
    return replace(ridges, values=values)


def _float32_suffices(problem: Problem) -> bool:
    """Whether single precision is enough for a search, and worth it."""
    return (
        problem.is_large and float(np.abs(problem.scores).max(initial=0.0)) < SINGLE_PRECISION_RANGE
    )


def _begin(problem: Problem, ridges: Ridges, n_steps: int) -> State:
    """From the prior, where the anchor is as loud as a unit."""
    state = project(problem, problem.importance_prior, ridges)
    return approach(problem, state, ridges, n_steps=n_steps, tolerance=FIRST_TOLERANCE)


@dataclass(frozen=True)
class Move:
    """A strength that may change, within bounds relative to the start."""

    name: str
    bounds: tuple[float, float]
    of_importances: bool  # too

    def by(self, strengths: Strengths, factor: float) -> Strengths:
        return replace(strengths, **{self.name: getattr(strengths, self.name) * factor})

    def within(self, strengths: Strengths, factor: float) -> bool:
        relative = getattr(strengths, self.name) * factor / getattr(Strengths(), self.name)
        return bool(self.bounds[0] <= relative <= self.bounds[1])


_common = Move("common", (MIN_STRENGTH, MAX_STRENGTH), of_importances=True)
_importance = Move("importance", STRENGTH_BOUNDS, of_importances=True)
_value, _direct = (
    Move(name, STRENGTH_BOUNDS, of_importances=False) for name in ("value", "direct")
)
