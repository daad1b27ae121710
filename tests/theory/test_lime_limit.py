"""The limits of LIME against enumeration, against LIME, and against each other."""

from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest

import slalom
from slalom.theory.attention_classifier import AttentionClassifier
from slalom.theory.attention_model import random_attention_model
from slalom.theory.lime_limit import (
    bandwidth_limit,
    coefficients,
    corrected_limit,
    distinct_words,
    exact_limit,
    expectations,
    lime_run,
    limit_of,
    printed_limit,
    ratio_bound,
    removal_moments,
    sample_weights,
    simplified_limit,
)


def case(n_words, *, n_positions, key_scale=1.0, n_heads=1, seed=1):
    words = [f"word{number}" for number in range(n_words)]
    rng = np.random.default_rng(seed)
    model = random_attention_model(
        words, rng, n_positions=n_positions, key_scale=key_scale, n_heads=n_heads
    )
    return model, model.ids(words)


def distance(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


def test_expectations_equal_enumeration():
    """Every subset of a text with a repeated and an unknown word, two heads."""
    model, _ = case(7, n_positions=12, n_heads=2, key_scale=1.5)
    ids = model.ids([*model.words, model.words[2], "never-seen"])
    words = distinct_words(model, ids)
    d = len(words)
    overall, given = 0.0, np.zeros(d)
    for n_gone in range(1, d + 1):
        for gone in combinations(range(d), n_gone):
            f = float(model(np.where(np.isin(ids, words[list(gone)]), model.unknown, ids)))
            chance = 1 / (d * comb(d, n_gone))
            overall += chance * f
            given[np.setdiff1d(np.arange(d), gone)] += chance * f / ((d - 1) / (2 * d))
    found = expectations(model, ids)
    assert found.overall == pytest.approx(overall, abs=1e-13)
    np.testing.assert_allclose(found.given, given, atol=1e-13)


@pytest.mark.parametrize("key_scale", [0.5, 3.0])
def test_many_lime_runs_follow_the_exact_limit(key_scale):
    model, ids = case(20, n_positions=30, n_heads=2, key_scale=key_scale)
    rng = np.random.default_rng(0)
    runs = np.array([lime_run(model, ids, n_samples=2000, rng=rng) for _ in range(40)])
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    # noise, and the bias of a regression on 2000 samples, which is of the order of 1/2000
    gap = np.abs(runs.mean(axis=0) - exact_limit(model, ids))
    assert (gap < 4.5 * error + 1e-3 * np.abs(runs).max()).all()


def test_our_own_lime_follows_it_too():
    """The method of the table, its bandwidth large and its ridge small."""
    model, ids = case(12, n_positions=16)
    lime = slalom.METHODS["lime"]
    wide = replace(
        lime,
        sampler=replace(lime.sampler, bandwidth=1e3),
        surrogate=replace(lime.surrogate, ridges=(1e-6,)),
    )
    classifier = AttentionClassifier(model)
    text = " ".join(model.words)
    found = slalom.explain(classifier, text, wide, target="positive", n_queries=20_000)
    assert distance(found.scores["score"], exact_limit(model, ids)) < 0.02


def test_a_linear_function_gets_its_coefficients_back():
    """Why the factor cannot be 3/2: with uniform attention f is linear in the words."""
    model, ids = case(30, n_positions=40, key_scale=0.0)
    nothing = np.full_like(ids, model.unknown)
    differences = model.token_outputs(ids) - model.token_outputs(nothing)
    coefficients = differences[0, :30] / model.n_positions
    np.testing.assert_allclose(exact_limit(model, ids), coefficients, atol=1e-12)
    np.testing.assert_allclose(corrected_limit(model, ids), coefficients, atol=1e-12)
    np.testing.assert_allclose(printed_limit(model, ids), 1.5 * coefficients, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_corrected_form_holds_for_short_texts(seed):
    model, ids = case(20, n_positions=512, seed=seed)
    exact = exact_limit(model, ids)
    assert distance(corrected_limit(model, ids), exact) < 0.06
    assert distance(printed_limit(model, ids), exact) > 0.3


@pytest.mark.parametrize("n_positions", [99, 512])
@pytest.mark.parametrize("seed", range(3))
def test_at_99_words_lime_follows_the_exact_and_the_corrected_form(n_positions, seed):
    """The setting of the slides' figure, where they draw the printed form."""
    model, ids = case(99, n_positions=n_positions, seed=seed)
    rng = np.random.default_rng(seed)
    lime = np.mean([lime_run(model, ids, n_samples=3000, rng=rng) for _ in range(5)], axis=0)
    gaps = [distance(form(model, ids), lime) for form in (exact_limit, corrected_limit)]
    assert gaps[0] < 0.03
    assert gaps[1] < 0.15
    assert distance(printed_limit(model, ids), lime) > 0.3


def test_the_slides_general_limit_drops_a_term():
    model, ids = case(20, n_positions=512)
    found = expectations(model, ids)
    assert distance(simplified_limit(found), limit_of(found)) > 0.3


def test_keys_far_below_that_of_the_unknown_word_do_not_overflow():
    model, ids = case(5, n_positions=5)
    away = 500.0 * model.key_direction()[0]  # a gap of 1000 between the attention logits
    table = np.vstack([model.W_e[:-1] - away, model.W_e[-1] + away])
    limit = corrected_limit(replace(model, W_e=table), ids)
    assert np.isfinite(limit).all()


def test_a_text_of_one_word_has_a_limit():
    model, ids = case(1, n_positions=4)
    np.testing.assert_array_equal(exact_limit(model, ids), [0.0])


@pytest.mark.parametrize("bandwidth", [0.1, 0.25, 1.0])
def test_the_limit_of_a_finite_bandwidth_equals_weighted_least_squares_on_all_samples(bandwidth):
    model, _ = case(7, n_positions=12, n_heads=2, key_scale=1.5)
    ids = model.ids([*model.words, model.words[2], "never-seen"])
    words = distinct_words(model, ids)
    d = len(words)
    rows, weights, answers = [], [], []
    for n_gone in range(1, d + 1):
        for gone in combinations(range(d), n_gone):
            answers.append(
                float(model(np.where(np.isin(ids, words[list(gone)]), model.unknown, ids)))
            )
            rows.append([1.0, *(0.0 if at in gone else 1.0 for at in range(d))])
            weights.append(sample_weights(d, bandwidth)[n_gone] / comb(d, n_gone))
    root = np.sqrt(weights)
    solved = np.linalg.lstsq(np.array(rows) * root[:, None], answers * root, rcond=None)[0]
    np.testing.assert_allclose(bandwidth_limit(model, ids, bandwidth), solved[1:], atol=1e-9)


@pytest.mark.parametrize("n_words", [7, 99])
def test_a_large_bandwidth_is_the_limit_without_one(n_words):
    model, ids = case(n_words, n_positions=120, n_heads=2)
    exact = exact_limit(model, ids)
    np.testing.assert_allclose(bandwidth_limit(model, ids, np.inf), exact, rtol=1e-9)
    np.testing.assert_allclose(bandwidth_limit(model, ids, 1e4), exact, rtol=1e-6)


def test_many_lime_runs_follow_the_limit_of_their_bandwidth():
    model, ids = case(99, n_positions=120, key_scale=2.0)
    rng = np.random.default_rng(0)
    runs = [lime_run(model, ids, n_samples=4000, rng=rng, bandwidth=0.25) for _ in range(20)]
    found = bandwidth_limit(model, ids, 0.25)
    assert distance(np.mean(runs, axis=0), found) < 0.05
    assert distance(exact_limit(model, ids), found) > 0.1  # the bandwidth matters


def test_a_linear_function_gets_its_coefficients_back_at_any_bandwidth():
    model, ids = case(30, n_positions=40, key_scale=0.0)
    np.testing.assert_allclose(
        bandwidth_limit(model, ids, 0.25), exact_limit(model, ids), atol=1e-9
    )


def test_the_coefficients_at_no_bandwidth_belong_to_the_general_limit():
    """β = {σ₁ Ef + (σ₂ − σ₃) p₁ eⱼ + σ₃ p₁ Σ eₖ} / c_d, of any f."""
    model, ids = case(20, n_positions=40)
    expected, found, p1 = expectations(model, ids), coefficients(20), 19 / 40
    joint = p1 * expected.given
    mixed = found.sigma_1 * expected.overall + found.sigma_2 * joint
    mixed = mixed + found.sigma_3 * (joint.sum() - joint)
    np.testing.assert_allclose(mixed / found.c_d, limit_of(expected), rtol=1e-9)
    many = coefficients(4000)
    assert many.sigma_2 / many.c_d == pytest.approx(6.0, rel=1e-3)
    assert many.sigma_3 / many.c_d == pytest.approx(many.sigma_1 / many.c_d, rel=1e-3)


@pytest.mark.parametrize("n_removed", [1, 2, 4])
def test_the_moments_of_a_sum_with_removals_equal_enumeration(n_removed):
    rng = np.random.default_rng(n_removed)
    present, absent = rng.normal(size=(2, 6))
    sums = []
    for gone in combinations([at for at in range(6) if at != 3], n_removed):
        stays = np.ones(6, dtype=bool)
        stays[list(gone)] = False
        sums.append(np.where(stays, present, absent).sum())
    found = removal_moments(present, absent, n_removed, kept=3)
    np.testing.assert_allclose(found, (np.mean(sums), np.var(sums)), atol=1e-12)


def test_the_bound_on_ratios_holds_and_is_not_idle():
    rng = np.random.default_rng(0)
    n, low, high = 50, 0.5, 2.0
    y = n * rng.uniform(low, high, size=100_000)
    for x in (rng.uniform(-high, high, size=len(y)), high * np.sign(y.mean() - y)):
        gap = abs((x / y).mean() - x.mean() / y.mean())
        assert gap <= ratio_bound(y.var(), n, low, high)
    assert gap > 0.05 * ratio_bound(y.var(), n, low, high)
