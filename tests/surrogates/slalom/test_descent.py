"""Two ways down: they end in the same place, and one needs a single system for it."""

import numpy as np
import pytest
from tests.surrogates.slalom.test_left_out import converged, problem_of

from slalom.surrogates.slalom import descent
from slalom.surrogates.slalom.descent import descend, slide
from slalom.surrogates.slalom.path import Strengths
from slalom.surrogates.slalom.problem import curvature, downhill, project


@pytest.fixture(scope="module")
def moved():
    """A problem, ridges, and where the fit under a quarter of them ended."""
    problem = problem_of()
    before = converged(problem, Strengths(common=0.25).ridges(problem), problem.importance_prior)
    ridges = Strengths().ridges(problem)
    return problem, ridges, project(problem, before.importances, ridges)


def test_the_gradient_alone_is_that_of_the_whole_system(moved):
    problem, ridges, state = moved
    np.testing.assert_allclose(
        downhill(problem, state, ridges),
        curvature(problem, state, ridges).gradient,
        atol=1e-10,
    )


def test_sliding_ends_where_newton_ends(moved):
    problem, ridges, state = moved
    end = descend(problem, state, ridges, n_steps=50, tolerance=1e-14)
    slid = slide(problem, state, ridges, n_steps=50, tolerance=1e-14)
    assert state.objective - end.objective > 1e-3 * end.objective  # there was something to do
    np.testing.assert_allclose(slid.importances, end.importances, atol=1e-5)
    some = slide(problem, state, ridges, n_steps=7, tolerance=1e-6)
    assert some.objective - end.objective < 1e-3 * (state.objective - end.objective)


def test_sliding_makes_one_system_and_never_goes_up(moved, monkeypatch):
    problem, ridges, state = moved
    made, heights = [], []
    monkeypatch.setattr(descent, "curvature", lambda *given: made.append(1) or curvature(*given))
    for n_steps in range(1, 6):
        made.clear()
        heights.append(slide(problem, state, ridges, n_steps=n_steps, tolerance=0.0).objective)
        assert len(made) == 1
    assert heights == sorted(heights, reverse=True)
    assert heights[0] < state.objective
