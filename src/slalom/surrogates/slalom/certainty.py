"""How good a fit is and how sure each parameter is, without spending a query.

With H = JᵀΠJ + R at the optimum and leave-one-out residuals (left_out.py):

    covariance              H⁻¹ (JᵀΠ² diag(r²_loo) J + R²T) H⁻¹      T = max(σ²/ρ, Σ(θ − θ̄)²/γ)

The last term is the pull of the ridges, without which strong ridges look surer than they are:
T is how far the parameters of one kind lie from their prior, as the ridge says or as they do
(MacKay: over the number that the data determine), whichever is more. Standard errors of
everything that is read off follow by the delta method.

All values shrink to a common score. An error of that score is common to all values, and the
length curve can absorb it, so that no residual shows it: H⁻¹ R 1 √T over the values of one column
is one more error of theirs and of the curve's. What only ridges tell apart counts as values':

    T = Σ(v − v̄ + direct effects, in values' units)²/γ + (any share of the curve: a third of its²)
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.quality import Judged, loo_quality
from slalom.surrogates.slalom.cholesky import inverse_of, solve_lower_transposed
from slalom.surrogates.slalom.left_out import LeftOut, judge, left_out
from slalom.surrogates.slalom.problem import Problem, Solution

MIN_FREE = 0.05  # of the parameters of one kind


@dataclass(frozen=True, eq=False)
class Certainty:
    """Leave-one-out quality and, for each class, the covariance of all parameters.

    They are the values, the direct effects, the rises of the length curve, the importances.
    """

    judged: Judged  # RMSE in the problem's own unit
    residuals: FloatArray  # (n, n_classes) leave-one-out residuals, in the scores' own unit
    covariances: tuple[FloatArray, ...]  # one (n_parameters, n_parameters) per class
    common_shift: FloatArray  # (n_classes, n_parameters, n_columns) all values pulled in common


@dataclass(frozen=True, eq=False)
class Inverses:
    """What covariances, pulls and shares have in common."""

    gram: FloatArray  # (k + n_fixed, k + n_fixed) G⁻¹
    schur: FloatArray  # (k, k) S⁻¹
    through: FloatArray  # (n_columns, k + n_fixed, k) G⁻¹C S⁻¹

    @classmethod
    def of(cls, left: LeftOut) -> "Inverses":
        schur = inverse_of(left.root)
        return cls(inverse_of(left.system.lower), schur, left.system.coupling @ schur)


def certainty(
    problem: Problem, solution: Solution, contrasts: FloatArray, by: BoolArray | None = None
) -> Certainty:
    """Everything from one factorisation.

    `contrasts` (n_classes, n_columns) take the problem's columns to the classes, `by` (n,) says
    which of the rows that leave-one-out looks at judge the fit; None: all.
    """
    left = left_out(problem, solution.state, solution.ridges)
    inverses = Inverses.of(left)
    residuals = left.residuals
    left = replace(left, residuals=_capped_residuals(problem, residuals))
    return Certainty(
        _quality(problem, residuals, len(contrasts), by),
        residuals @ contrasts.T,
        _covariances(problem, solution, contrasts, left, inverses),
        _common_shift(problem, solution, contrasts, left, inverses),
    )


def _capped_residuals(problem: Problem, residuals: FloatArray) -> FloatArray:
    """Rows that are one of a kind miss no more than others do on average.

    No other row could stand in for the empty text: predicted without it, it may come out
    anywhere, which says nothing of the noise in what was asked.
    """
    judged = problem.judged
    if judged is None or judged.all() or not judged.any():
        return residuals
    typical = np.sqrt(judge(problem, residuals))
    ends = residuals[~judged]
    length = np.maximum(np.sqrt((ends**2).sum(axis=1, keepdims=True)), 1e-300)
    capped = residuals.copy()
    capped[~judged] = ends * np.minimum(1.0, typical / length)
    return capped


def _quality(
    problem: Problem, residuals: FloatArray, n_classes: int, by: BoolArray | None
) -> Judged:
    n_columns = problem.scores.shape[1]
    judged = slice(None) if problem.judged is None else problem.judged
    return loo_quality(
        residuals[judged] * np.sqrt(n_columns / n_classes),
        problem.scores[judged] * np.sqrt(n_columns / n_classes),
        weights=problem.weights[judged],
        n_parameters=problem.counts.shape[1] * (1 + n_columns) / n_columns - 1,
        by=None if by is None else by[judged],
    )


def _covariances(
    problem: Problem,
    solution: Solution,
    contrasts: FloatArray,
    left: LeftOut,
    inverses: Inverses,
) -> tuple[FloatArray, ...]:
    """Every row, and every ridge as one more row of its own, moves the parameters by its noise."""
    coupling, through = left.system.coupling, inverses.through
    n_columns, width, k = coupling.shape
    noise = problem.weights[:, None] * left.residuals  # (n, n_columns)
    n = len(noise)
    pull_linear, pull_importances = _pulls(problem, solution, left, inverses)
    influence = np.empty((width + k, n + k + width * n_columns))  # one for all classes
    moved = influence[width:]  # (k, …) how each moved the importances
    moved[:, :n] = inverses.schur @ sum(
        part * by for part, by in zip(left.reduced, noise.T, strict=True)
    )
    moved[:, n : n + k] = inverses.schur * pull_importances
    places = [slice(at, at + width) for at in n + k + width * np.arange(n_columns)]
    for place, part in zip(places, through, strict=True):
        moved[:, place] = -part.T * pull_linear
    by_column = []
    for column, place in enumerate(places):
        own = -coupling[column] @ moved
        own[:, :n] += solve_lower_transposed(solution.state.lower, left.rows * noise[:, column])
        own[:, place] += inverses.gram * pull_linear
        by_column.append(_in_gauge(problem, own))
    covariances = []
    for contrast in contrasts:
        influence[:width] = sum(by * own for by, own in zip(contrast, by_column, strict=True))
        covariances.append(influence @ influence.T)
    return tuple(covariances)


def _pulls(
    problem: Problem,
    solution: Solution,
    left: LeftOut,
    inverses: Inverses,
) -> tuple[FloatArray, FloatArray]:
    """R √T: (k + n_fixed,) of what is linear, (k,) of the importances."""
    state, ridges = solution.state, solution.ridges
    noise = float(problem.weights @ (left.residuals**2).sum(axis=1)) / left.residuals.size
    m, k = problem.n_features, problem.counts.shape[1]
    n_direct = 0 if problem.parts is None else problem.parts.direct.shape[1]
    through = (inverses.through * left.system.coupling).sum(axis=2).mean(axis=0)
    spread = inverses.gram.diagonal() + through
    moved = np.vstack([state.values - problem.prior, state.effects])
    squares = (moved**2).mean(axis=1)  # over columns
    linear = np.sqrt(noise * ridges.linear)
    for kind in (slice(0, m), slice(k, k + n_direct), slice(k + n_direct + 1, None)):
        far = _prior_scale(squares[kind], ridges.linear[kind] * spread[kind])
        linear[kind] = np.maximum(linear[kind], ridges.linear[kind] * far)
    deviation = (state.importances - problem.importance_prior)[:m] ** 2
    far = _prior_scale(deviation, (ridges.importances * inverses.schur.diagonal())[:m])
    importances = np.sqrt(noise * ridges.importances)
    return linear, np.maximum(importances, ridges.importances * far)


def _common_shift(
    problem: Problem,
    solution: Solution,
    contrasts: FloatArray,
    left: LeftOut,
    inverses: Inverses,
) -> FloatArray:
    """H⁻¹ R 1 √T of each column: the prior's centre is a guess, all ridges on values pull to it."""
    coupling, m = left.system.coupling, problem.n_features
    ridges = solution.ridges.linear[:m]
    pulled = []
    for column, part in enumerate(coupling):
        moved = -inverses.through[column, :m].T @ ridges
        own = -np.einsum("clk,k->lc", coupling, moved)
        own[:, column] += inverses.gram[:, :m] @ ridges
        through = (inverses.through[column, :m] * part[:m]).sum(axis=1)
        shrunk = ridges * (inverses.gram.diagonal()[:m] + through)
        size = np.hypot(
            _prior_scale(_total_effects(problem, solution, column) ** 2, shrunk),
            _as_values(problem, solution, column, own[:, column]) / np.sqrt(3.0),
        )
        by_class = contrasts @ _in_gauge(problem, own).T
        pulled.append(size * np.hstack([by_class, np.tile(moved, (len(contrasts), 1))]))
    return np.stack(pulled, axis=-1)


def _total_effects(problem: Problem, solution: Solution, column: int) -> FloatArray:
    """(m,) values less their prior, with the direct effects, in values' units.

    Both act through columns of the design: what one lacks in size it makes up in effect.
    """
    m, state = problem.n_features, solution.state
    deviation = (state.values - problem.prior)[:m, column]
    by_attention, by_direct, _ = problem.variances
    if by_attention <= 0 or by_direct <= 0:  # no such part, or nothing that it could tell apart
        return np.asarray(deviation)
    direct = state.effects[:m, column]
    return np.asarray(deviation + np.sqrt(by_direct / by_attention) * (direct - direct.mean()))


def _as_values(problem: Problem, solution: Solution, column: int, pulled: FloatArray) -> float:
    """The length curve as that which all values would have in common, if it were theirs."""
    if problem.parts is None or not problem.parts.length.size:
        return 0.0
    length = problem.parts.length * np.reshape(problem.roots, (-1, 1))
    n_ramps = length.shape[1]
    curve = length @ solution.state.effects[-n_ramps:, column]
    shape = length @ pulled[-n_ramps:]
    return float(shape @ curve / max(float(shape @ shape), 1e-300))


def _prior_scale(squares: FloatArray, shrunk: FloatArray) -> float:
    """How far parameters of one kind lie from their prior, had they not been shrunk."""
    if not squares.size:
        return 0.0
    free = float((1.0 - shrunk).clip(0.0, 1.0).sum())
    return float(np.sqrt(squares.sum() / max(free, MIN_FREE * squares.size)))


def _in_gauge(problem: Problem, influence: FloatArray) -> FloatArray:
    """Direct effects sum to 0; without an answer to the empty text the curve begins at one unit.

    Only the ridges know of that sum, and of the step from nothing to one unit: it is the anchor's.
    """
    if problem.parts is not None:
        k, m = problem.counts.shape[1], problem.parts.direct.shape[1]
        influence[k : k + m] -= influence[k : k + m].mean(axis=0)
        influence[k + m] *= problem.grounded
    return influence
