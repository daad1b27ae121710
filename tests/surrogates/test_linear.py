"""Ridge regression against known answers: exact data, true leave-one-out, normal theory."""

import json

import numpy as np
import pytest

from oracles import observed
from slalom.schema import plain, read_as
from slalom.surrogates.additive import GamSurrogate, LinearSurrogate
from slalom.surrogates.base import Observations


def design(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, size=(n_rows, n_features)).astype(float), rng


@pytest.mark.parametrize("n_classes", [None, 3])
def test_exact_additive_scores_come_back(n_classes):
    counts, rng = design(60, 8)
    shape = (8,) if n_classes is None else (8, n_classes)
    coefficients = rng.normal(size=shape)
    scores = 0.7 + counts @ coefficients
    fit = LinearSurrogate().fit(observed(counts, scores))
    np.testing.assert_allclose(fit.scores["score"], coefficients, atol=1e-6)
    np.testing.assert_allclose(fit.model.intercept, 0.7, atol=1e-6)
    np.testing.assert_allclose(fit.model.predict(counts), scores, atol=1e-6)
    assert fit.quality.r2 == pytest.approx(1.0)


@pytest.mark.parametrize("ridge", [1e-6, 2.0])
def test_leave_one_out_is_leaving_one_out(ridge):
    counts, rng = design(30, 5)
    scores = counts @ rng.normal(size=5) + rng.normal(size=30)
    weights = rng.uniform(0.5, 2.0, size=30)
    surrogate = LinearSurrogate(ridges=(ridge,))
    fit = surrogate.fit(observed(counts, scores, weights=weights))
    missed = []
    for row in range(30):
        left = np.arange(30) != row
        without = surrogate.fit(observed(counts[left], scores[left], weights=weights[left]))
        missed.append(scores[row] - without.model.predict(counts[row : row + 1])[0])
    expected = np.sqrt(np.average(np.square(missed), weights=weights))
    assert fit.quality.rmse == pytest.approx(expected, rel=1e-6)


def test_the_ridge_is_the_one_with_the_least_leave_one_out_error():
    counts, rng = design(25, 20)
    scores = 0.05 * counts @ rng.normal(size=20) + rng.normal(size=25)
    chosen = LinearSurrogate().fit(observed(counts, scores))
    weak = LinearSurrogate((1e-6,)).fit(observed(counts, scores))
    assert chosen.quality.rmse < weak.quality.rmse
    assert np.abs(chosen.scores["score"]).max() < np.abs(weak.scores["score"]).max()


def test_standard_errors_cover():
    inside = []
    truth = np.linspace(-1, 1, 6)
    for seed in range(200):
        counts, rng = design(80, 6, seed)
        scores = counts @ truth + rng.normal(size=80)
        fit = LinearSurrogate((1e-6,)).fit(observed(counts, scores))
        inside.append(np.abs(fit.scores["score"] - truth) < 1.645 * fit.errors["score"])
    assert 0.86 < np.mean(inside) < 0.95


def test_rows_of_weight_zero_are_not_fitted():
    counts, rng = design(40, 4)
    scores = counts @ rng.normal(size=4)
    spoiled = scores.copy()
    spoiled[:5] = 99.0
    weights = np.where(np.arange(40) < 5, 0.0, 1.0)
    fit = LinearSurrogate().fit(observed(counts, spoiled, weights=weights))
    np.testing.assert_allclose(fit.model.predict(counts), scores, atol=1e-5)


def test_nothing_to_judge_by():
    counts, _ = design(10, 4)
    constant = LinearSurrogate().fit(observed(counts, np.ones(10)))
    assert constant.quality.r2 is None
    few = LinearSurrogate().fit(observed(counts[:3], counts[:3, 0]))
    assert few.quality.r2 is None
    assert np.isfinite(few.scores["score"]).all()


def test_a_second_occurrence_may_add_less():
    rng = np.random.default_rng(0)
    at = np.array([3.0, 1.0, 1.0])
    counts = np.column_stack([rng.integers(0, n + 1, size=80) for n in (3, 1, 1)]).astype(float)
    steps = np.array([0.0, 2.0, 2.5, 2.6])
    scores = 0.3 + steps[counts[:, 0].astype(int)] - counts[:, 1]
    fit = GamSurrogate().fit(Observations(counts, scores, weights=np.ones(80), document_counts=at))
    np.testing.assert_allclose(fit.scores["score"], [2.6 / 3, -1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(fit.model.predict(counts), scores, atol=1e-5)
    units = fit.model.expand(np.array([0, 1, 0, 2, 0], dtype=np.int32))
    present = np.array([[1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]])
    np.testing.assert_allclose(units.predict(present), [2.8, 1.9, 2.3], atol=1e-5)


@pytest.mark.parametrize("surrogate", [LinearSurrogate(), GamSurrogate()])
@pytest.mark.parametrize("n_classes", [None, 3])
def test_models_survive_json(surrogate, n_classes):
    counts, rng = design(30, 4)
    counts[:, 0] *= 2
    scores = rng.normal(size=(30,) if n_classes is None else (30, n_classes))
    fit = surrogate.fit(
        Observations(counts, scores, weights=np.ones(30), document_counts=np.array([2.0, 1, 1, 1]))
    )
    record = json.loads(json.dumps(plain(fit.model), allow_nan=False))
    again = read_as(type(fit.model), record)
    np.testing.assert_array_equal(again.predict(counts), fit.model.predict(counts))
    assert again.predict(counts).shape == scores.shape


def test_without_repeats_the_gam_is_linear():
    counts, rng = design(50, 6)
    scores = counts @ rng.normal(size=6) + 0.1 * rng.normal(size=50)
    linear = LinearSurrogate().fit(observed(counts, scores))
    gam = GamSurrogate().fit(observed(counts, scores))
    np.testing.assert_allclose(gam.scores["score"], linear.scores["score"], atol=1e-9)
    assert gam.quality.r2 == pytest.approx(linear.quality.r2)


def test_with_as_many_rows_as_coefficients_the_ridge_is_not_the_weakest():
    """Weak ridges pass through every row there, and leaving one out does not show it."""
    rng = np.random.default_rng(0)
    true = 0.3 * rng.normal(size=68)
    design, fresh = (rng.integers(0, 2, (n, 68)).astype(float) for n in (70, 2000))
    scores = design @ true + 0.5 * rng.normal(size=70)
    fit = LinearSurrogate().fit(observed(design, scores))
    missed = ((fit.model.predict(fresh) - fresh @ true) ** 2).mean() / (fresh @ true).var()
    assert missed < 1
    assert fit.quality.r2 < 0.9


def test_fewer_rows_than_coefficients_bear_no_errors():
    rng = np.random.default_rng(1)
    design = rng.integers(0, 2, (20, 60)).astype(float)
    fit = LinearSurrogate().fit(observed(design, rng.normal(size=20)))
    assert (fit.quality.r2, fit.errors) == (None, {})
    assert "about 240 queries are needed" in fit.notes[0]


@pytest.mark.parametrize("noise", [1.0, 10.0])
def test_errors_hold_under_strong_ridges_too(noise):
    rng = np.random.default_rng(2)
    inside = []
    for _ in range(40):
        true = 0.3 * rng.normal(size=30)
        design = rng.integers(0, 2, (300, 30)).astype(float)
        scores = design @ true + noise * rng.normal(size=300)
        fit = LinearSurrogate().fit(observed(design, scores))
        inside += (np.abs(fit.scores["score"] - true) <= 1.645 * fit.errors["score"]).tolist()
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)
