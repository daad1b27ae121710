"""How strongly to shrink, read off the data: ridges of the highest marginal likelihood.

A ridge is the noise's variance over the prior's. Both come from the current fit (MacKay's
fixed point): the noise from the residuals, less the parameters they paid for; the prior's
from how far the parameters lie from it, less what the data did not determine:

    σ² = Σ π r² / (N − γ)      τ² = (Σ (θ − θ̄)² + p τ_0²) / (γ_θ + p)      ρ = σ² / τ²

p units that were never seen keep τ sane in short texts: their values spread like the
scores, their importances like 1.

What the residuals hold is misfit more than noise, and it does not average out. With enough
queries the likelihood would buy the last of it with values a hundred times the scores and an
anchor to drown them: one direction of the parameters is nearly free. So `bound_ridges` ends the
search: values may spread MAX_VALUE_SPREAD times as far as the scores, and from ENOUGH_QUERIES on
the ridges grow with the budget, so that more queries sharpen the answer and do not move it. Data
that a SLALOM describes exactly leave no misfit, hence no ridge. Of short texts every subset is
asked; then misfit is a fact, nothing has to be guessed, and only the bounds are left.
"""

from dataclasses import dataclass, field

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.cholesky import inverse_of
from slalom.surrogates.slalom.curvature import Curvature, curvature
from slalom.surrogates.slalom.problem import Problem, Ridges, State

WEAKEST, STRONGEST = 1e-11, 1e3
UNSEEN = 10.0  # p
MAX_VALUE_SPREAD = 9.0  # spread of the values over that of the scores
ENOUGH_QUERIES = 500  # queries
MIN_FREEDOM = 0.05  # of the rows
GUESS = 0.2  # misfit over the spread of the scores, before any row has come in
FEW = 16  # rows that all subsets of four units have: short texts are asked completely
NEAR = 0.2  # change of the logarithms from which on the last rounds foretell the next


@dataclass
class FixedPoint:
    """Finds the strengths that the evidence gives back, by Anderson's mixing of three rounds.

    Plain rounds come closer by a constant factor, and where they end would depend on the last
    digits of the answers.
    """

    tried: list[FloatArray] = field(default_factory=list)  # logarithms
    found: list[FloatArray] = field(default_factory=list)

    def move(self, ridges: Ridges, evidence: Ridges) -> float:
        """Takes in a round; by how much the evidence disagreed with what was tried."""
        self.tried = [*self.tried[-2:], np.log(ridges.strengths)]
        self.found = [*self.found[-2:], np.log(evidence.strengths)]
        return float(np.abs(self.found[-1] - self.tried[-1]).max())

    def guess(self, problem: Problem) -> Ridges:
        """What to try next: where a straight line through the last rounds finds agreement."""
        best = self.found[-1]
        misses = np.array(self.found) - np.array(self.tried)
        if len(misses) > 1 and np.abs(misses[-1]).max() < NEAR:
            steps = np.diff(misses, axis=0).T
            share = np.linalg.lstsq(steps, misses[-1], rcond=1e-8)[0]
            best = best - np.diff(self.found, axis=0).T @ share
            best = self.tried[-1] + (best - self.tried[-1]).clip(-1.5, 1.5)
        value, importance = np.exp(best).clip(WEAKEST, STRONGEST)
        return Ridges.of(problem, float(value), float(importance))


def ridges_from_evidence(problem: Problem, state: State, ridges: Ridges) -> Ridges:
    """One step of the fixed point; where every subset was asked, misfit is all there is."""
    if problem.complete:
        misfit = _noise(problem, state, 0.0)
        return Ridges.of(
            problem, _ratio(misfit, MAX_VALUE_SPREAD**2 * _spread(problem)), _ratio(misfit, 1.0)
        )
    free = slice(0, problem.n_features)
    own_values, own_importances = _variances(state, curvature(problem, state, ridges))
    spent_values = (1 - ridges.values[free, None] * own_values[free]).clip(0, 1).sum()
    spent_importances = (1 - ridges.importances[free] * own_importances[free]).clip(0, 1).sum()
    n_columns = problem.scores.shape[1]
    spent = spent_values + spent_importances + problem.anchored * (n_columns + 1)
    noise = _noise(problem, state, float(spent))
    moved = float(((state.values[free] - problem.prior[free]) ** 2).sum())
    unseen = UNSEEN * n_columns
    values = (moved + unseen * _spread(problem)) / (spent_values + unseen)
    importance_prior = float(((state.importances - problem.importance_prior)[free] ** 2).sum())
    importances = (importance_prior + UNSEEN) / (spent_importances + UNSEEN)
    return Ridges.of(problem, _ratio(noise, values), _ratio(noise, importances))


def bound_ridges(problem: Problem, state: State, ridges: Ridges) -> Ridges:
    """The last word on the ridges: values stay bounded; large budgets weaken no ridge."""
    budget = max(1.0, len(problem.scores) / ENOUGH_QUERIES)
    least = _ratio(_noise(problem, state, 0.0), MAX_VALUE_SPREAD**2 * _spread(problem))
    value, importance = ridges.strengths
    return Ridges.of(problem, max(value, least) * budget, importance * budget)


def _noise(problem: Problem, state: State, spent: float) -> float:
    """The variance of the residuals, less the parameters they paid for.

    With few rows a parameter a fit can pass through all of them; what it would miss elsewhere
    is then a guess, a part of the scores' spread that fades as rows come in.
    """
    n_rows, n_parameters = len(problem.scores), 2 * problem.counts.shape[1]
    guess = GUESS * max(0.0, 1 - (n_rows + FEW) / (2 * n_parameters)) ** 2 * _spread(problem)
    freedom = max(problem.scores.size - spent, MIN_FREEDOM * problem.scores.size)
    return guess + float(problem.weights @ (state.residuals**2).sum(axis=1)) / freedom


def _spread(problem: Problem) -> float:
    return float(((problem.scores - problem.expected()) ** 2).mean())


def _ratio(noise: float, spread: float) -> float:
    return float(np.clip(noise / max(spread, 1e-300), WEAKEST, STRONGEST))


def _variances(state: State, system: Curvature) -> tuple[FloatArray, FloatArray]:
    """Posterior variances over the noise's: (k, n_columns) of values, (k,) of importances."""
    gram_inverse = inverse_of(state.lower)
    schur_inverse: FloatArray = np.asarray(np.linalg.inv(system.schur), np.float64)
    through = [((c @ schur_inverse) * c).sum(axis=1) for c in system.coupling]
    values = gram_inverse.diagonal()[:, None] + np.stack(through, axis=1)
    return values, np.asarray(schur_inverse.diagonal())
