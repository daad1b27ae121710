"""Which ridges to try next: a coordinate search over four strengths, by leave-one-out error.

From one set of strengths that suits most classifiers the search moves one strength at a time, then
all together (exact data lead to no ridges at all, noise to a fit that predicts the mean), as long
as the leave-one-out error falls. Weaker ridges must gain more than stronger ones: leave-one-out
favours them a little too much. Before other ridges are tried, one Gauss–Newton step from the
current fit forecasts their error at a fifth of the cost; where that is too high they are not tried.

The search computes nothing itself: it yields what it wants to know and is sent the answer, by
trials.py for one document, by on_device/fits.py for many documents at once.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from slalom.document import FloatArray
from slalom.surrogates.slalom.strengths import (
    DIRECT,
    IMPORTANCE,
    TOGETHER,
    VALUE,
    Move,
    Pulls,
    Strengths,
)

GAIN_BY_WEAKER, GAIN_BY_STRONGER = 0.95, 0.995  # what the error must fall to, under such ridges
SKIPPED_ABOVE = 1.01  # times that, where it is only forecast
MAX_VALUE_SPREAD, MAX_IMPORTANCE_SPREAD = 9.0, 6.0  # that misfit may lead to; in scores' spreads
POOR_FIT = 0.4  # error above which all ridges may be too weak; below it, too strong
NEARLY_EXACT = 0.15  # error below which much weaker ridges are tried at once
NEARLY_EXACT_STRENGTH = 1e-5  # theirs
TOLERATED_LOSS = 1.02  # of error, for stronger ridges where data are nearly exact
EXACT_FIT = 1e-8  # of the spread: nothing is left to gain


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit under some strengths, and the error it makes on rows it has not seen."""

    strengths: Strengths
    pulls: Pulls
    importances: FloatArray  # (k,) in double precision, whatever the trial was made in
    error: float
    exact: bool  # made in double precision
    near: Any = field(default=None, repr=False)  # what whoever made it wants to keep

    @property
    def modest(self) -> bool:
        """Whether misfit explains no values or importances that spread too far.

        Error over ridge is the variance that the prior would then expect.
        """
        values_are = self.pulls.value * MAX_VALUE_SPREAD**2 >= self.error
        return values_are and self.pulls.importance * MAX_IMPORTANCE_SPREAD**2 >= self.error


@dataclass(frozen=True)
class FromPrior:
    """Wanted: the trial that a descent from the prior leads to."""

    strengths: Strengths
    exact: bool


@dataclass(frozen=True, eq=False)
class FromAfar:
    """Wanted: a trial in double precision, from where one under other ridges ended."""

    strengths: Strengths
    importances: FloatArray


@dataclass(frozen=True, eq=False)
class Beside:
    """Wanted: a trial from where one under similar ridges ended, in its precision."""

    strengths: Strengths
    trial: Trial


@dataclass(frozen=True, eq=False)
class Forecast:
    """Wanted: the error that such a trial would have, or so."""

    strengths: Strengths
    trial: Trial


Wanted = FromPrior | FromAfar | Beside | Forecast
Search = Generator[Wanted, Any, Trial]


def search(start: Strengths, *, parts: bool, mild: bool) -> Search:
    """The best trial; `parts`: there are direct effects. `mild`: single precision is enough.

    That holds as long as there are ridges worth the name.
    """
    first: Trial = yield FromPrior(start, exact=not mild)
    best = yield from _leap(start, first)
    if best.error <= EXACT_FIT:
        return best
    best = yield from _either(best, VALUE, 4.0)
    if parts:
        best = yield from _either(best, DIRECT, 8.0)
    best = yield from _either(best, IMPORTANCE, 4.0)
    if best.error > POOR_FIT:
        return (yield from _walk(best, TOGETHER, 10.0, GAIN_BY_STRONGER))
    down = yield from _walk(best, TOGETHER, 1 / 10, GAIN_BY_WEAKER)
    if down is not best and not best.exact:  # next to no ridges: digits matter
        again: Trial = yield FromAfar(best.strengths, best.importances)
        down = yield from _walk(again, TOGETHER, 1 / 10, GAIN_BY_WEAKER)
    if first.error <= NEARLY_EXACT:  # it was tried
        return down
    return (yield from _leap(start, down))


def _leap(start: Strengths, best: Trial) -> Search:
    """Nearly exact data show their worth only once the ridges are all but gone.

    It begins where the best trial ended: from the prior, without ridges, the last digits of
    the scores decide where a descent ends.
    """
    if best.error > NEARLY_EXACT:
        return best
    trial: Trial = yield FromAfar(replace(start, common=NEARLY_EXACT_STRENGTH), best.importances)
    if trial.error > GAIN_BY_WEAKER * best.error:
        return best
    down = yield from _walk(trial, TOGETHER, 1 / 10, GAIN_BY_WEAKER)
    if down is not trial:
        return down
    up = yield from _walk(trial, TOGETHER, 10.0, TOLERATED_LOSS)
    return up if up.modest else best  # misfit is no exact data


def _either(best: Trial, move: Move, factor: float) -> Search:
    """Down as long as that pays, else up."""
    down = yield from _walk(best, move, 1 / factor, GAIN_BY_WEAKER)
    if down is not best:
        return down
    return (yield from _walk(best, move, factor, GAIN_BY_STRONGER))


def _walk(best: Trial, move: Move, factor: float, enough: float) -> Search:
    """On and on, while the error falls to `enough` of what it was."""
    while move.within(best.strengths, factor):
        strengths, most = move.by(best.strengths, factor), enough * best.error
        forecast: float = yield Forecast(strengths, best)
        if forecast > SKIPPED_ABOVE * most:
            break
        trial: Trial = yield Beside(strengths, best)
        if trial.error > most or (factor < 1 and not trial.modest):
            break
        best = trial
    return best
