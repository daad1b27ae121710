"""The derivatives that every Newton step rests on, against differences of the objective."""

import numpy as np

from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.curvature import curvature
from slalom.surrogates.slalom.problem import Problem, Ridges, attention_of, project


def problem_of(rng, n_rows=60, n_features=5, n_classes=2):
    counts = np.hstack([rng.integers(0, 3, (n_rows, n_features)), np.ones((n_rows, 1))])
    weights = rng.random(n_rows)
    return Problem(
        Rows.of(counts.astype(float)),
        rng.normal(size=(n_rows, n_classes)),
        weights / weights.mean(),
        prior=rng.normal(size=(n_features + 1, n_classes)),
        importance_prior=rng.normal(size=n_features + 1),
        anchored=True,
    )


def test_slope_and_curvature_are_those_of_the_objective():
    rng = np.random.default_rng(0)
    problem, at = problem_of(rng), rng.normal(size=6)
    ridges = Ridges.of(problem, 0.3, 0.2)

    def objective(*moves):
        return project(problem, at + sum(moves), ridges).objective

    system = curvature(problem, project(problem, at, ridges), ridges, full=True)
    small, large = 1e-5 * np.eye(6), 1e-3 * np.eye(6)
    slopes = [(objective(move) - objective(-move)) / 2e-5 for move in small]
    np.testing.assert_allclose(system.gradient, -np.array(slopes) / 2, atol=1e-7)

    bends = [
        [
            (objective(a, b) - objective(a, -b) - objective(-a, b) + objective(-a, -b)) / 4e-6
            for a in large
        ]
        for b in large
    ]
    gauge = system.schur - np.array(bends) / 2  # a constant on every pair of features
    np.testing.assert_allclose(gauge[:5, :5], gauge[0, 1], atol=1e-4)
    np.testing.assert_allclose(gauge[5], 0.0, atol=1e-4)


def test_gauss_newton_is_what_the_slopes_of_the_predictions_give():
    rng = np.random.default_rng(1)
    problem, at = problem_of(rng, n_classes=1), rng.normal(size=6)
    ridges = Ridges.of(problem, 0.3, 0.2)
    state = project(problem, at, ridges)

    def predicted(values, importances):
        return attention_of(problem.counts, importances).apply(values)[:, 0]

    small = 1e-6 * np.eye(6)
    by_value = attention_of(problem.counts, at).dense()
    by_importance = np.stack(
        [
            (predicted(state.values, at + move) - predicted(state.values, at - move)) / 2e-6
            for move in small
        ],
        axis=1,
    )
    weighted = problem.weights[:, None]
    gram = by_value.T @ (weighted * by_value) + np.diag(ridges.values)
    cross = by_value.T @ (weighted * by_importance)
    both = by_importance.T @ (weighted * by_importance) + np.diag(ridges.importances)
    schur = both - cross.T @ np.linalg.solve(gram, cross)
    gauge = curvature(problem, state, ridges).schur - schur
    np.testing.assert_allclose(gauge[:5, :5], gauge[0, 1], atol=1e-6)
    np.testing.assert_allclose(gauge[5], 0.0, atol=1e-6)
