"""How good a fit is and how sure each parameter is, without spending a query.

With H = JᵀΠJ + R at the optimum, split into values and importances (see problem.py):

    leverage of row n       h = π_n (a_nᵀ G⁻¹ a_n + b̃_nᵀ S⁻¹ b̃_n)      b̃ = b − Cᵀ G⁻¹ a
    leave-one-out residual  r_n / (1 − h)
    covariance              H⁻¹ (JᵀΠ² diag(r²_loo) J + h² σ² R) H⁻¹

The last term is the pull of the ridges, without which strong ridges look surer than they are.
h = 1 would be the posterior's full width; the answer that more queries would give keeps part
of the pull (see ridges.py), and h = ½ is what makes 90 % intervals hold it in 90 % of
cases (benchmarks/coverage.py). Standard errors of everything that is read off follow by the
delta method.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.problem import Curvature, Problem, Solution, curvature

HIDDEN = 0.5  # h


@dataclass(frozen=True, eq=False)
class Certainty:
    """Leave-one-out quality and, for each class, the covariance of (values, importances)."""

    r2: float | None
    rmse: float | None
    covariances: tuple[FloatArray, ...]  # one (2k, 2k) a class


def certainty(problem: Problem, solution: Solution, contrasts: FloatArray) -> Certainty:
    """Everything §6 of the theory asks for, from one factorisation.

    `contrasts` (n_classes, n_columns) take the problem's columns to the classes.
    """
    from scipy.linalg import cho_solve

    state, ridges = solution.state, solution.ridges
    system = curvature(problem, state, ridges)
    schur_inverse: FloatArray = np.asarray(np.linalg.inv(system.schur), np.float64)
    gram_inverse = cho_solve(state.factor, np.eye(len(state.importances)), check_finite=False)
    reduced = np.stack(  # (n_columns, n, k) b̃
        [
            slope.dense() - state.attention.apply(coupling)
            for slope, coupling in zip(system.slopes, system.coupling, strict=True)
        ]
    )
    residuals = loo_residuals(problem, solution, reduced, gram_inverse, schur_inverse)
    r2, rmse = _quality(problem, residuals, len(contrasts))
    parts = (reduced, residuals, gram_inverse, schur_inverse)
    return Certainty(r2, rmse, _covariances(problem, solution, system, contrasts, parts))


def loo_residuals(
    problem: Problem,
    solution: Solution,
    reduced: FloatArray,
    gram_inverse: FloatArray,
    schur_inverse: FloatArray,
) -> FloatArray:
    """What each row's residual would be had it not been fitted: (n, n_columns)."""
    state = solution.state
    attention = state.attention.dense()
    own = ((attention @ gram_inverse) * attention).sum(axis=1)  # (n,)
    through = np.einsum("cnk,dnk->ncd", reduced @ schur_inverse, reduced, optimize=True)
    one = np.eye(problem.scores.shape[1])
    left = one - problem.weights[:, None, None] * (own[:, None, None] * one + through)
    if len(one) == 1:
        return np.asarray(state.residuals / np.maximum(left[:, 0], 1e-3))
    left += 1e-9 * one
    return np.asarray(np.linalg.solve(left, state.residuals[:, :, None])[:, :, 0])


def _quality(
    problem: Problem, residuals: FloatArray, n_classes: int
) -> tuple[float | None, float | None]:
    n_rows, n_columns = problem.scores.shape
    n_parameters = problem.counts.shape[1] * (1 + n_columns) / n_columns - 1
    weights = problem.weights / problem.weights.sum()
    squared = float(weights @ (residuals**2).sum(axis=1))
    rmse = float(np.sqrt(squared / n_classes))
    mean = weights @ problem.scores
    spread = float(weights @ ((problem.scores - mean) ** 2).sum(axis=1))
    scale = float(np.abs(problem.scores).max(initial=0.0))
    if n_rows < n_parameters or spread <= (1e-9 * max(1.0, scale)) ** 2:
        return None, rmse
    alone = n_rows / (n_rows - 1)  # the mean, too, is judged on rows it has not seen
    return 1.0 - squared / (spread * alone**2), rmse


def _covariances(
    problem: Problem,
    solution: Solution,
    system: Curvature,
    contrasts: FloatArray,
    parts: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> tuple[FloatArray, ...]:
    """Every row, and every ridge as one more row of its own, moves the parameters by its noise."""
    reduced, residuals, gram_inverse, schur_inverse = parts
    state, ridges = solution.state, solution.ridges
    noise = problem.weights[:, None] * residuals  # (n, n_columns)
    sigma = HIDDEN * np.sqrt(float(problem.weights @ (residuals**2).sum(axis=1)) / residuals.size)
    pull_values = sigma * np.sqrt(ridges.values)
    pull_importances = sigma * np.sqrt(ridges.importances)
    by_rows = schur_inverse @ np.einsum("cnk,nc->kn", reduced, noise, optimize=True)
    by_ridges = schur_inverse * pull_importances
    by_values = [-(schur_inverse @ coupling.T) * pull_values for coupling in system.coupling]
    moved = np.hstack([by_rows, by_ridges, *by_values])  # (k, …) how each moved the importances
    k, n = by_rows.shape
    by_column = []
    for column, coupling in enumerate(system.coupling):
        own = np.zeros_like(moved)
        own[:, :n] = gram_inverse @ state.attention.times(noise[:, column], 1.0).dense().T
        start = n + k * (1 + column)
        own[:, start : start + k] = gram_inverse * pull_values
        by_column.append(own - coupling @ moved)
    by_class = np.tensordot(contrasts, np.stack(by_column), axes=1)  # (n_classes, k, …)
    influences = (np.vstack([own, moved]) for own in by_class)  # (2k, …)
    return tuple(influence @ influence.T for influence in influences)
