"""Strengths of ridges, in units that mean the same for every design.

For values, direct effects and the length curve a strength sets the prior variance, as a share of
the scores' variance that the part explains: ridge = strength × the summed variance of the part's
columns. For importances, whose own unit is natural, it is the ridge itself.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.problem import Problem, Ridges

MIN_STRENGTH, MAX_STRENGTH = 1e-11, 1e6  # of all strengths together, times those of the start
STRENGTH_BOUNDS = 1e-2, 1e4  # of one strength, times that of the start
ANCHOR_RIDGE_FACTOR = 0.4  # of an anchor without an answer of its own, relative to a unit
FIRST_STEP_RIDGE = 1e-3  # on the length curve's first step: a level that all texts share


class Pulls(NamedTuple):
    """The ridge on one parameter of each kind."""

    value: float
    importance: float
    direct: float
    length: float
    first_step: float  # of the length curve


@dataclass(frozen=True)
class Strengths:
    value: float = 1.5
    importance: float = 0.2
    direct: float = 0.7
    length: float = 4.0
    common: float = 1.0  # a factor on all of them

    def pulls(self, variances: tuple[float, float, float]) -> Pulls:
        """`variances` of the problem: of attention, direct effects, length."""
        attention, direct, length = variances
        return Pulls(
            self.value * attention * self.common,
            self.importance * self.common,
            self.direct * direct * self.common,
            self.length * length * self.common,
            FIRST_STEP_RIDGE * min(self.common, 1.0),
        )

    def ridges(self, problem: Problem) -> Ridges:
        pulls = self.pulls(problem.variances)
        kind = problem.scores.dtype  # in which all of a trial is computed
        ones = problem.padded(np.ones(problem.n_features, kind))
        all_ones = np.ones_like(ones)
        eased = all_ones if problem.grounded else np.where(ones > 0, ones, ANCHOR_RIDGE_FACTOR)
        return Ridges(
            values=pulls.value * (ones if problem.grounded else all_ones),
            importances=pulls.importance * eased.astype(kind),
            fixed=_fixed(problem, pulls).astype(kind),
            strengths=(pulls.value, pulls.importance),
        )


def _fixed(problem: Problem, pulls: Pulls) -> FloatArray:
    if problem.parts is None:
        return np.zeros(0)
    direct = np.full(problem.parts.direct.shape[1], pulls.direct)
    ridges = np.append(direct, np.full(problem.parts.length.shape[1], pulls.length))
    ridges[len(direct)] = pulls.first_step
    return ridges


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


TOGETHER = Move("common", (MIN_STRENGTH, MAX_STRENGTH))
VALUE, DIRECT, IMPORTANCE = (
    Move(name, STRENGTH_BOUNDS) for name in ("value", "direct", "importance")
)
