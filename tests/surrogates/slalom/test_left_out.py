"""Leave-one-out errors that a linearised fit foretells, and trials in single precision."""

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom.cholesky import (
    cholesky,
    inverse_of,
    solve_lower,
    solve_lower_transposed,
    solved,
)
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.left_out import Linearised, left_out, shift_without
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.path import ByLeaveOneOut, Strengths
from slalom.surrogates.slalom.problem import Ridges, attention_of, project


def problem_of(seed=0, *, n_rows=300, n_units=20, noise=0.2):
    rng = np.random.default_rng(seed)
    counts = (rng.random((n_rows, n_units)) < rng.random((n_rows, 1))).astype(float)
    counts[0], counts[1] = 1.0, 0.0
    model = SlalomModel(rng.normal(size=n_units), rng.normal(size=n_units), Anchor(0.2, 1.0))
    scores = model.predict(counts) + noise * rng.normal(size=n_rows)
    weights = 0.5 + rng.random(n_rows)
    return SlalomSurrogate().problem(observed(counts, scores / scores.std(), weights=weights))


def converged(problem, ridges, importances):
    state = project(problem, importances, ridges)
    return descend(problem, state, ridges, n_steps=50, tolerance=1e-13, near=False)


def test_what_is_foretold_of_the_same_ridges_is_what_is_found():
    problem = problem_of()
    ridges = Strengths().ridges(problem)
    near = Linearised(problem, converged(problem, ridges, problem.importance_prior), ridges)
    assert near.forecast(ridges) == pytest.approx(near.error, rel=1e-6)


def test_other_ridges_are_foretold_nearly():
    """Twice and half of each strength: the change of the error, to a quarter of itself or .02."""
    problem, start = problem_of(1), Strengths()
    ridges = start.ridges(problem)
    state = converged(problem, ridges, problem.importance_prior)
    near = Linearised(problem, state, ridges)
    for name in ("value", "importance", "direct", "common"):
        for factor in (0.5, 2.0):
            other = Strengths(**{name: getattr(start, name) * factor}).ridges(problem)
            there = Linearised(problem, converged(problem, other, state.importances), other)
            true, foretold = (
                error / near.error - 1 for error in (there.error, near.forecast(other))
            )
            assert abs(foretold - true) < max(0.25 * abs(true), 0.02), name


def test_single_precision_leads_to_the_same_strengths_and_errors():
    problem = problem_of(2)
    search = ByLeaveOneOut()
    assert problem.single.fixed.dtype == problem.single.scores.dtype == np.float32
    single, double = (search._afresh(p, Strengths()) for p in (problem.single, problem))
    assert single.state.gram.dtype == single.near.left_out.residuals.dtype == np.float32
    assert abs(single.error / double.error - 1) < 1e-3
    solution = search.solve(problem)
    assert solution.state.values.dtype == solution.state.importances.dtype == np.float64


def test_roots_and_what_is_solved_with_them():
    rng = np.random.default_rng(3)
    matrix = np.cov(rng.normal(size=(5, 40)))
    right = rng.normal(size=(5, 3))
    root = cholesky(matrix.copy())
    lower = np.tril(root)
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-12)
    np.testing.assert_allclose(lower @ solve_lower(root, right), right, atol=1e-12)
    np.testing.assert_allclose(lower.T @ solve_lower_transposed(root, right), right, atol=1e-12)
    np.testing.assert_allclose(matrix @ solved(root, right[:, 0]), right[:, 0], atol=1e-12)
    np.testing.assert_allclose(matrix @ inverse_of(root), np.eye(5), atol=1e-12)
    assert cholesky(-np.eye(3)) is None


def test_without_a_fold_importances_move_as_the_linear_fit_says():
    """One Gauss–Newton step from the optimum, on the other rows alone."""
    rng, n_units = np.random.default_rng(3), 6
    counts = (rng.random((120, n_units)) < 0.5).astype(float)
    model = SlalomModel(rng.normal(size=n_units), rng.normal(size=n_units), Anchor(0.2, 1.0))
    scores = model.predict(counts) + 0.1 * rng.normal(size=120)
    problem = SlalomSurrogate(parts=False).problem(observed(counts, scores))
    ridges = Ridges.of(problem, 1e-2, 1e-2)
    state = project(problem, problem.importance_prior, ridges)
    state = descend(problem, state, ridges, n_steps=60, tolerance=1e-14)
    fold = np.arange(120) % 8 == 0
    shift = shift_without(left_out(problem, state, ridges), state, fold, weights=problem.weights)

    def jacobian(h=1e-6):
        """By differences, of what all parameters say of the rows."""

        def said(parameters):
            values, importances = np.split(parameters, 2)
            return attention_of(problem.counts, importances).apply(values)

        at = np.concatenate([state.values[:, 0], state.importances])
        sides = [(said(at + h * one) - said(at - h * one)) / (2 * h) for one in np.eye(len(at))]
        return np.stack(sides, axis=1)

    kept = jacobian()[~fold]
    k = len(state.importances)
    centring = np.eye(k)  # ridges on importances do not feel a common shift
    centring[:, : k - 1] -= 1 / (k - 1)
    pulls = np.zeros((2 * k, 2 * k))
    pulls[:k, :k] = np.diag(ridges.values)
    pulls[k:, k:] = centring.T @ np.diag(ridges.importances) @ centring
    hessian = kept.T @ kept + pulls
    gradient = -jacobian()[fold].T @ state.residuals[fold, 0]
    step = np.linalg.lstsq(hessian, gradient, rcond=1e-9)[0][k:]
    np.testing.assert_allclose(shift - shift[:-1].mean(), step - step[:-1].mean(), atol=1e-5)
    assert np.abs(step).max() > 1e-3
