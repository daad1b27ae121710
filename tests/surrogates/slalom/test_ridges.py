"""Ridges from evidence: the noise over the spread of what is shrunk, bounded at the end."""

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.problem import Ridges, project
from slalom.surrogates.slalom.ridges import (
    UNSEEN,
    _noise,
    _spread,
    bound_ridges,
    ridges_from_evidence,
)

NOISE = 0.3


def problem_of(n_rows, n_units, seed=0):
    """A SLALOM whose values spread like 1, and noise of variance NOISE²."""
    rng = np.random.default_rng(seed)
    masks = rng.random((n_rows, n_units)) < rng.random((n_rows, 1))
    masks[:2] = [[True], [False]]
    counts = masks.astype(float)
    model = SlalomModel(rng.normal(size=n_units), 0.5 * rng.normal(size=n_units), Anchor(0.0, 0.5))
    scores = model.predict(counts) + NOISE * rng.normal(size=n_rows)
    surrogate = SlalomSurrogate(parts=False)
    return surrogate.problem(observed(counts, scores))


@pytest.mark.parametrize("n_rows", [120, 1000])
def test_what_values_were_bought_with_is_no_longer_noise(n_rows):
    """Importances held at their prior, of variance 1: their ridge is the noise itself."""
    problem = problem_of(n_rows, 30)
    ridges = Ridges.of(problem, 1e-9, 1e9)
    state = project(problem, problem.importance_prior, ridges)
    found = ridges_from_evidence(problem, state, ridges).strengths[1]
    spent = 30 + 2  # the values, and both parameters of the anchor
    assert found == pytest.approx(float((state.residuals**2).sum()) / (n_rows - spent), rel=1e-3)


def test_values_may_spread_nine_times_as_far_as_the_scores_and_no_further():
    problem = problem_of(400, 30)
    ridges = Ridges.of(problem, 1e-9, 1e-9)
    state = project(problem, problem.importance_prior, ridges)
    bounded = bound_ridges(problem, state, ridges)
    misfit = float(problem.weights @ (state.residuals**2).sum(axis=1)) / len(problem.scores)
    assert bounded.strengths[0] == pytest.approx(misfit / (81 * _spread(problem)), rel=1e-6)


def test_from_500_queries_on_ridges_grow_with_the_budget():
    for n_rows, growth in ((250, 1.0), (500, 1.0), (1500, 3.0)):
        problem = problem_of(n_rows, 30)
        ridges = Ridges.of(problem, 5.0, 0.7)
        state = project(problem, problem.importance_prior, ridges)
        found = bound_ridges(problem, state, ridges).strengths
        assert found == pytest.approx((5.0 * growth, 0.7 * growth))


def test_noise_is_that_of_the_rows_left_after_the_parameters():
    problem = problem_of(400, 30)
    state = project(problem, problem.importance_prior, Ridges.of(problem, 1e-9, 1e9))
    misfit = float((state.residuals**2).sum())
    assert _noise(problem, state, 0.0) == pytest.approx(misfit / 400)
    assert _noise(problem, state, 100.0) == pytest.approx(misfit / 300)


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_ridge_on_importances_is_noise_over_their_variance(spread):
    """Ridges of nothing: all 30 values and 30 importances are paid for by the data."""
    problem, ridges = problem_of(1000, 30), Ridges.of(problem_of(1000, 30), 1e-9, 1e-9)
    drawn = spread * np.random.default_rng(1).normal(size=31)
    state = project(problem, problem.in_gauge(drawn), ridges)
    found = ridges_from_evidence(problem, state, ridges).strengths[1]
    noise = float((state.residuals**2).sum()) / (1000 - 30 - 30 - 2)
    variance = float((state.importances[:30] ** 2).sum() + UNSEEN) / (30 + UNSEEN)
    assert found == pytest.approx(noise / variance, rel=1e-2)  # one of them is the gauge
