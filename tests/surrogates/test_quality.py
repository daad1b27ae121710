"""R² and RMSE of left-out rows, against what they say they are."""

import numpy as np
import pytest

from slalom.surrogates.quality import loo_quality


def test_the_mean_of_the_others_explains_nothing():
    """The mean, too, is judged on rows it has not seen: no model at all has an R² of 0."""
    scores = np.random.default_rng(0).normal(3.0, 2.0, size=(40, 1))
    of_others = (scores.sum() - scores) / 39
    r2, rmse = loo_quality(scores - of_others, scores, weights=np.ones(40), n_parameters=1)
    assert r2 == pytest.approx(0.0, abs=1e-12)
    assert rmse == pytest.approx(np.sqrt(np.mean((scores - of_others) ** 2)))


def test_a_row_of_weight_three_is_three_rows_in_every_mean():
    rng = np.random.default_rng(1)
    scores, residuals = rng.normal(size=(2, 200, 2))
    weights = rng.integers(1, 6, size=200).astype(float)
    r2, rmse = loo_quality(residuals, scores, weights=weights, n_parameters=1)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    missed = (residuals[repeated] ** 2).sum(axis=1).mean()
    spread = scores[repeated].var(axis=0).sum() * (200 / 199) ** 2
    assert r2 == pytest.approx(1 - missed / spread)
    assert rmse == pytest.approx(np.sqrt(missed / 2))
    plain = loo_quality(residuals, scores, weights=np.ones(200), n_parameters=1)
    assert abs(r2 - plain[0]) > 0.01  # it would show


def test_a_handful_of_rows_carries_no_r2():
    """Three answers far from all others: a fit that meets them has described nothing else."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(300, 1))
    residuals = rng.normal(size=(300, 1))
    scores[:3] += 200.0
    assert loo_quality(residuals, scores, weights=np.ones(300), n_parameters=1)[0] is None
    spread = np.abs(scores).max() * rng.normal(size=(300, 1))
    assert loo_quality(residuals, spread, weights=np.ones(300), n_parameters=1)[0] > 0.9
