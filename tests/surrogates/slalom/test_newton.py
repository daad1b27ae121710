"""Derivatives against differences, one optimum from anywhere, and leaving out by the formula."""

from dataclasses import replace

import numpy as np
import pytest

from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.newton import (
    STEP_BOUND,
    Bounded,
    Free,
    Problem,
    Ridges,
    _moved,
    descend,
    gauss_newton,
    system_at,
)
from slalom.surrogates.slalom.uncertainty import influence_of, left_out, unasked

BOUNDED = Bounded(np.array([0.3, -0.1]), np.array([4.0, 5.0]))


def problem_of(values, *, anchored=True, pinned=False, n_fixed=2, n=60, m=5, noise=0.3):
    rng = np.random.default_rng(0)
    counts = (rng.random((n, m)) < rng.random((n, 1))).astype(float)
    counts = counts[counts.any(axis=1)]
    n, k = len(counts), m + anchored
    shown = np.hstack([counts, np.ones((n, 1))]) if anchored else counts
    mass = shown * np.exp(rng.normal(size=k))
    scores = mass @ rng.normal(size=(k, 2)) / mass.sum(axis=1, keepdims=True)
    scores += noise * rng.normal(size=scores.shape)
    importances = np.append(np.full(m, 0.05), np.full(k - m, 0.02))
    ridges = Ridges(rng.random(k) / 10, importances, rng.random(n_fixed))
    centre, prior_importances = 0.1 * rng.normal(size=(k, 2)), rng.normal(size=k)
    prior_importances -= prior_importances[:m].mean()
    fixed, weights = rng.normal(size=(n, n_fixed)), 0.5 + rng.random(n)
    rows = Rows.of(shown)
    return Problem(
        rows, scores, weights, values, centre, prior_importances, ridges, fixed, anchored, pinned
    )


KINDS = {
    "free": problem_of(Free()),
    "no anchor": problem_of(Free(), anchored=False, n_fixed=0),
    "bounded": problem_of(BOUNDED),
    "pinned": problem_of(BOUNDED, pinned=True, n_fixed=0),
}


def shifted(problem, point, flat):
    """The objective with all parameters moved: u and e class by class, then s."""
    k, q = len(point.latent), len(point.effects)
    linear, importances = flat[: 2 * (k + q)].reshape(2, k + q).T, flat[2 * (k + q) :]
    latent = linear[:k].copy()
    if problem.pinned:
        latent[-1] = 0.0
    return problem.at(
        point.latent + latent, point.effects + linear[k:], point.importances + importances
    ).objective


@pytest.mark.parametrize("problem", KINDS.values(), ids=KINDS)
def test_slopes_and_second_derivatives_are_those_of_the_objective(problem):
    rng = np.random.default_rng(1)
    start = problem.start()
    latent, importances = (
        0.5 * rng.normal(size=start.latent.shape),
        rng.normal(size=len(start.latent)),
    )
    if problem.pinned:
        latent[-1] = 0.0
    point = problem.at(
        start.latent + latent, rng.normal(size=start.effects.shape), start.importances + importances
    )
    system = system_at(problem, point, full=True)
    m, width = problem.n_features, len(system.downhill[0])
    size = 2 * width + len(system.pull)
    gradient = np.append(system.downhill.ravel(), system.pull)
    hessian = np.zeros((size, size))
    for c, (own, crossed) in enumerate(zip(system.own, system.crossed, strict=True)):
        at = slice(c * width, (c + 1) * width)
        hessian[at, at], hessian[at, 2 * width :] = own, crossed
        hessian[2 * width :, at] = crossed.T
    hessian[2 * width :, 2 * width :] = system.shared
    for _ in range(5):
        way = rng.normal(size=size)
        if problem.pinned:
            way[[m, width + m]] = 0.0
        way[2 * width :][:m] -= way[2 * width :][:m].mean()  # only differences matter
        up, here, down = (shifted(problem, point, h * way) for h in (1e-4, 0.0, -1e-4))
        assert -2 * gradient @ way == pytest.approx((up - down) / 2e-4, rel=1e-5)
        assert 2 * way @ hessian @ way == pytest.approx((up - 2 * here + down) / 1e-8, rel=1e-3)


@pytest.mark.parametrize("problem", KINDS.values(), ids=KINDS)
def test_any_start_leads_to_the_same_optimum(problem):
    rng = np.random.default_rng(2)
    first = descend(problem, problem.start(), 1e-13)
    for _ in range(3):
        latent = problem.centre + 0.3 * rng.normal(size=problem.centre.shape)
        if problem.pinned:
            latent[-1] = problem.centre[-1]
        begun = problem.at(latent, first.effects + 1, 0.5 * rng.normal(size=len(latent)))
        found = descend(problem, begun, 1e-13)
        assert found.objective == pytest.approx(first.objective, rel=1e-9)
        np.testing.assert_allclose(found.importances, first.importances, atol=1e-4)


def test_no_parameter_moves_further_than_the_bound_in_one_step():
    problem = KINDS["free"]
    problem = replace(problem, scores=100 * problem.scores)
    point = problem.start()
    moved, _ = _moved(problem, point, system_at(problem, point, full=False), 1e-3)
    assert np.abs(moved.latent - point.latent).max() == STEP_BOUND


@pytest.mark.parametrize("problem", KINDS.values(), ids=KINDS)
def test_leave_one_out_is_what_leaving_one_out_gives(problem):
    point = descend(problem, problem.start(), 1e-12)
    quick = left_out(problem, point, gauss_newton(problem, point))
    slow = np.empty_like(quick)
    for row in range(len(quick)):
        kept = np.arange(len(quick)) != row
        some = replace(problem.rows(kept), weights=problem.weights[kept])
        there = descend(some, some.at(point.latent, point.effects, point.importances), 1e-12)
        slow[row] = problem.at(there.latent, there.effects, there.importances).residuals[row]
    assert np.corrcoef(quick.ravel(), slow.ravel())[0, 1] > 0.99
    assert np.mean(quick**2) == pytest.approx(np.mean(slow**2), rel=0.1)


def test_a_row_that_is_missed_by_more_moves_the_optimum_as_told():
    problem = problem_of(BOUNDED, noise=0.02)
    point = descend(problem, problem.start(), 1e-14)
    size = 1e-4 * np.ones_like(problem.scores)
    factors = system_at(problem, point, full=True).factored(0.0)
    moves = influence_of(problem, point, factors, size)
    scores = problem.scores.copy()
    scores[7] += 1e-4
    other = replace(problem, scores=scores)
    there = descend(other, other.at(point.latent, point.effects, point.importances), 1e-16)
    np.testing.assert_allclose(there.values - point.values, moves.values[:, :, 7].T, atol=2e-7)
    shift = there.importances - point.importances
    np.testing.assert_allclose(shift, moves.importances[:, 7], atol=2e-7)


def test_sizes_that_were_asked_completely_leave_nothing_open():
    counts = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    np.testing.assert_allclose(unasked(counts, np.ones(3)), [0, 0, 0, 2 / 3, 0])
