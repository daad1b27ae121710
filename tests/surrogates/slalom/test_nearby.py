"""Near the whole text: what was measured comes back, what is like it follows, the rest stays."""

from dataclasses import replace

import numpy as np
import pytest

from explanations import again_from_json
from slalom.samplers.base import random_subsets
from slalom.surrogates.slalom.corrected import CorrectedModel
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.nearby import NearResiduals, Neighbourhood, fit_near

N = 24
WHOLE, SINGLE = np.ones((1, N), dtype=bool), ~np.eye(N, dtype=bool)


def residuals_near(miss, *, n_removals=N, n_drawn=200, seed=0):
    """A fit that says 0 of all and misses `miss` of a subset; the first units are strongest."""
    rng = np.random.default_rng(seed)
    measured = np.vstack([WHOLE, SINGLE[:n_removals]])
    drawn = random_subsets(rng.integers(1, N, size=n_drawn), N, rng)
    of = [miss(part)[:, None] for part in (measured, drawn, WHOLE)]
    where = Neighbourhood(measured, drawn)
    return NearResiduals(where, of[0], of[0], of[1], np.tile(of[2], (N, 1)), -np.arange(N))


def near_the_whole(present):
    """Two words that turn the text when they go, and matter less the more is gone."""
    gone = (~present).sum(axis=1)
    return (1.0 - 0.8 * (~present[:, 3]) + 0.5 * (~present[:, 7])) * np.exp(-gone / 8)


def test_what_was_measured_comes_back():
    found = fit_near(residuals_near(near_the_whole, n_removals=10)).nearby
    shown = np.vstack([WHOLE, SINGLE[:10]])
    np.testing.assert_allclose(found(shown.astype(float))[:, 0], near_the_whole(shown), atol=1e-9)


def test_a_few_removals_follow_and_small_parts_stay():
    found = fit_near(residuals_near(near_the_whole)).nearby
    rng = np.random.default_rng(5)
    near = random_subsets(np.repeat([N - 2, N - 3, N - 5], 40), N, rng)
    left = near_the_whole(near) - found(near.astype(float))[:, 0]
    assert (left**2).mean() < 0.25 * (near_the_whole(near) ** 2).mean()
    far = random_subsets(np.full(40, 3), N, rng)
    assert np.abs(found(far.astype(float))).max() < 0.1


def test_noise_adds_little_or_nothing():
    """Rows of two and more removals say whether anything is carried on."""
    rng = np.random.default_rng(1)
    strays = []
    for seed in range(10):
        found = fit_near(
            residuals_near(lambda present: rng.normal(size=len(present)), seed=seed)
        ).nearby
        near = random_subsets(np.full(40, N - 3), N, rng)
        strays.append(float((found(near.astype(float)) ** 2).mean()))
    assert np.median(strays) < 0.1


def test_removals_that_were_not_measured_have_an_error_that_holds_them():
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        own = rng.normal(size=N)

        def miss(present, own=own):
            return np.exp(-(~present).sum(axis=1) / 8) + (~present) @ own * 0.1

        given = residuals_near(miss, n_removals=12, seed=seed)
        known = fit_near(given)
        truth = (miss(WHOLE) - miss(SINGLE))[12:]
        held.append(np.abs(known.removals[12:, 0] - truth) <= 1.645 * known.error[0])
    assert 0.8 <= np.mean(held) <= 0.98


def test_weak_units_are_judged_by_weak_ones():
    """Misses that fall with the strength: those of the strongest would make errors too wide."""
    held, widths = [], []
    for seed in range(20):
        own = np.random.default_rng(seed).normal(size=N) * np.linspace(1.0, 0.2, N)
        given = residuals_near(lambda present, own=own: (~present) @ own, n_removals=12, seed=seed)
        where = Neighbourhood(given.where.measured, given.where.drawn[:0])
        far = replace(given, where=where, drawn_residuals=given.drawn_residuals[:0])
        error = fit_near(far).error[0]
        held.append(np.abs(own[12:]) <= 1.645 * error)
        widths.append(error / np.sqrt((own[:12] ** 2).mean()))
    assert np.mean(held) > 0.9
    assert np.mean(widths) < 0.85


def test_too_few_removals_tell_no_error():
    assert fit_near(residuals_near(near_the_whole, n_removals=3)).error is None


def test_with_too_few_rows_only_what_was_measured_is_known():
    found = fit_near(residuals_near(near_the_whole, n_drawn=5)).nearby
    np.testing.assert_allclose(found(SINGLE.astype(float))[:, 0], near_the_whole(SINGLE))
    two_gone = SINGLE[:-1] & SINGLE[1:]
    assert np.abs(found(two_gone.astype(float))).max() < 1e-9


def test_with_too_few_rows_the_error_is_the_miss_of_the_weaker_half():
    def miss(present):
        return (~present) @ np.arange(N) / 10

    found = fit_near(residuals_near(miss, n_removals=10, n_drawn=5))
    weaker = np.arange(5, 10) / 10
    assert found.error == pytest.approx(np.sqrt((weaker**2).mean()))


@pytest.fixture
def model():
    rng = np.random.default_rng(2)
    slalom = SlalomModel(rng.normal(size=N), rng.normal(size=N), Anchor(0.2, 0.1))
    return CorrectedModel(slalom, None, fit_near(residuals_near(near_the_whole)).nearby)


def test_the_model_is_the_fit_and_what_is_added(model):
    shown = random_subsets(np.arange(1, N), N, np.random.default_rng(3)).astype(float)
    added = model.predict(shown) - model.fitted.predict(shown)
    np.testing.assert_allclose(added, model.nearby(shown)[:, 0])
    assert model.anchor == model.fitted.anchor
    assert model.parts is model.fitted


def test_json_gives_it_back(model):
    shown = random_subsets(np.arange(1, N), N, np.random.default_rng(3)).astype(float)
    again = again_from_json(model)
    np.testing.assert_array_equal(again.predict(shown), model.predict(shown))


def test_columns_of_several_classes_are_independent():
    one = residuals_near(near_the_whole)
    both = replace(
        one,
        measured_residuals=np.hstack([one.measured_residuals, -one.measured_residuals]),
        left_out=np.hstack([one.left_out, -one.left_out]),
        drawn_residuals=np.hstack([one.drawn_residuals, -one.drawn_residuals]),
        removals=np.hstack([one.removals, -one.removals]),
    )
    found = fit_near(both)
    np.testing.assert_allclose(found.removals[:, 0], -found.removals[:, 1])
    np.testing.assert_allclose(found.nearby.weights[:, 0], fit_near(one).nearby.weights[:, 0])


def test_each_row_is_judged_without_itself():
    """The residual that is left of a row is that of an interpolation of all others."""
    given = residuals_near(near_the_whole, n_removals=12)
    known = fit_near(given)
    near = known.nearby
    assert near.nugget > 0
    drawn = near.points[near.n_measured :]
    at = [int(np.flatnonzero((given.where.drawn == point).all(axis=1))[0]) for point in drawn]
    misses = np.vstack([given.measured_residuals, given.drawn_residuals[at]])
    apart = (near.points[:, None] != near.points).sum(axis=2)
    kernel = np.exp(-apart / near.length_scale) + near.nugget * np.eye(len(apart))
    for row in range(near.n_measured, len(apart), 17):
        others = np.arange(len(apart)) != row
        weights = np.linalg.solve(kernel[np.ix_(others, others)], misses[others])
        left = misses[row] - kernel[row, others] @ weights
        np.testing.assert_allclose(
            known.drawn_residuals[at[row - near.n_measured]], left, atol=1e-9
        )
    far = given.where.drawn.sum(axis=1) <= N / 2
    added = near(given.where.drawn[far].astype(float))
    np.testing.assert_allclose(
        known.drawn_residuals[far], given.drawn_residuals[far] - added, atol=1e-12
    )


def test_what_would_harm_smaller_parts_is_not_added():
    """A cliff at half of the units that a fit has smoothed: residuals change sign there."""

    def smoothed(present):
        over = present.sum(axis=1) - N / 2 - 0.5
        return np.sign(over) * np.exp(-np.abs(over) / 2)

    given = residuals_near(smoothed, n_drawn=400)
    known = fit_near(given)
    below = random_subsets(np.full(60, N // 2 - 1), N, np.random.default_rng(8)).astype(float)
    assert known.nearby.nugget == 0
    assert np.abs(known.nearby(below)).max() < 1e-9
    np.testing.assert_array_equal(known.drawn_residuals, given.drawn_residuals)
