"""Two ways down: they end in the same place, and one needs a single system for it."""

import numpy as np
import pytest
from tests.surrogates.slalom.test_left_out import converged, problem_of

from slalom.surrogates.slalom.curvature import curvature, downhill
from slalom.surrogates.slalom.descent import descend, root_at, slide
from slalom.surrogates.slalom.path import Strengths
from slalom.surrogates.slalom.problem import project


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
    root = root_at(problem, state, ridges)
    slid = slide(problem, state, ridges, root=root, n_steps=50, tolerance=1e-14)
    assert state.objective - end.objective > 1e-3 * end.objective  # there was something to do
    np.testing.assert_allclose(slid.importances, end.importances, atol=1e-5)
    some = slide(problem, state, ridges, root=root, n_steps=7, tolerance=1e-6)
    assert some.objective - end.objective < 1e-3 * (state.objective - end.objective)


def test_another_system_will_do_and_it_never_goes_up(moved):
    problem, ridges, state = moved
    root = root_at(problem, project(problem, problem.importance_prior, ridges), ridges)
    heights = [
        slide(problem, state, ridges, root=root, n_steps=n_steps, tolerance=0.0).objective
        for n_steps in (1, 2, 3, 5, 30)
    ]
    assert [state.objective, *heights] == sorted([state.objective, *heights], reverse=True)
    end = descend(problem, state, ridges, n_steps=50, tolerance=1e-14)
    np.testing.assert_allclose(heights[-1], end.objective, rtol=1e-6)
