"""R² and RMSE of left-out rows, against what they say they are."""

import numpy as np
import pytest

from slalom.surrogates.quality import held_out_quality, loo_quality, sampled_rows


def test_the_mean_of_the_others_explains_nothing():
    """The mean, too, is judged on rows it has not seen: no model at all has an R² of 0."""
    scores = np.random.default_rng(0).normal(3.0, 2.0, size=(40, 1))
    of_others = (scores.sum() - scores) / 39
    found = loo_quality(scores - of_others, scores, weights=np.ones(40), n_parameters=1)
    assert found.r2 == pytest.approx(0.0, abs=1e-12)
    assert found.rmse == pytest.approx(np.sqrt(np.mean((scores - of_others) ** 2)))


def test_a_row_of_weight_three_is_three_rows_in_every_mean():
    rng = np.random.default_rng(1)
    scores, residuals = rng.normal(size=(2, 200, 2))
    weights = rng.integers(1, 6, size=200).astype(float)
    found = loo_quality(residuals, scores, weights=weights, n_parameters=1)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    missed = (residuals[repeated] ** 2).sum(axis=1).mean()
    spread = scores[repeated].var(axis=0).sum() * (200 / 199) ** 2
    assert found.r2 == pytest.approx(1 - missed / spread)
    assert found.rmse == pytest.approx(np.sqrt(missed / 2))
    plain = loo_quality(residuals, scores, weights=np.ones(200), n_parameters=1)
    assert abs(found.r2 - plain.r2) > 0.01  # it would show


def test_a_handful_of_rows_carries_no_r2():
    """Three answers far from all others: a fit that meets them has described nothing else."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(300, 1))
    residuals = rng.normal(size=(300, 1))
    scores[:3] += 200.0
    assert loo_quality(residuals, scores, weights=np.ones(300), n_parameters=1).r2 is None
    spread = np.abs(scores).max() * rng.normal(size=(300, 1))
    assert loo_quality(residuals, spread, weights=np.ones(300), n_parameters=1).r2 > 0.9


def test_the_error_of_r2_is_how_far_it_varies_over_draws():
    """Rows drawn anew, misses that come with the spread: what it says against what it does."""
    rng, found = np.random.default_rng(3), []
    for _ in range(400):
        scores = rng.normal(size=(60, 1))
        residuals = 0.3 * rng.normal(size=(60, 1)) * (1 + np.abs(scores))
        weights = rng.integers(1, 4, size=60).astype(float)
        found.append(loo_quality(residuals, scores, weights=weights, n_parameters=1))
    varies = np.std([one.r2 for one in found])
    assert np.mean([one.r2_error for one in found]) == pytest.approx(varies, rel=0.15)
    assert 0.05 < varies < 0.2


def test_four_times_the_rows_halve_the_error_of_r2():
    rng = np.random.default_rng(4)
    scores, residuals = rng.normal(size=(2, 100, 1))
    once, four = (
        loo_quality(
            np.tile(residuals, (times, 1)),
            np.tile(scores, (times, 1)),
            weights=np.ones(100 * times),
            n_parameters=1,
        ).r2_error
        for times in (1, 4)
    )
    assert four == pytest.approx(once / 2, rel=0.05)


def test_what_was_not_drawn_is_not_ruled_out():
    """A fit that misses nothing may still miss the next row: forty rows do not make it certain."""
    scores = np.repeat([[-1.0], [1.0]], 20, axis=0)
    found = loo_quality(0 * scores, scores, weights=np.ones(40), n_parameters=1)
    assert (found.r2, found.r2_error) == (1.0, pytest.approx(1 / 40))


def test_rows_that_err_together_count_once():
    """Ten copies of each row, groups to each other, tell no more than one of them."""
    missed, spread = np.random.default_rng(5).random(size=(2, 300))
    alone = held_out_quality(missed, spread, largest=1.0, rmse=1.0)
    groups = np.repeat(np.arange(300, dtype=np.int32), 10)
    copied = held_out_quality(
        np.repeat(missed, 10), np.repeat(spread, 10), largest=1.0, rmse=1.0, groups=groups
    )
    assert copied.r2 == pytest.approx(alone.r2)
    assert copied.r2_error == pytest.approx(alone.r2_error, rel=0.02)


def test_units_that_were_all_asked_alone_do_not_judge_the_fit():
    """No unit alone is still to come; where one was not asked, those that were are a sample."""
    parts = (np.random.default_rng(6).random(size=(40, 12)) < 0.5).astype(float)
    counts = np.vstack([np.eye(12), parts[parts.sum(axis=1) > 1]])
    np.testing.assert_array_equal(sampled_rows(counts), counts.sum(axis=1) > 1)
    assert sampled_rows(counts[1:]).all()
    assert sampled_rows(counts[:15]).all()  # hardly anything else was asked: better than nothing


def test_rows_that_do_not_judge_still_count_as_rows():
    """Thirty rows fit twenty parameters, also if only ten of them judge."""
    rng = np.random.default_rng(7)
    scores, residuals = rng.normal(size=(2, 30, 1))
    by = np.arange(30) >= 15
    found = loo_quality(residuals, scores, weights=np.ones(30), n_parameters=20, by=by)
    alone = loo_quality(residuals[by], scores[by], weights=np.ones(15), n_parameters=1)
    assert found == alone
    few = loo_quality(residuals[by], scores[by], weights=np.ones(15), n_parameters=20)
    assert few.r2 is None
