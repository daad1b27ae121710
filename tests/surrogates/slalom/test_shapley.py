"""Shapley values against enumeration of all coalitions, and their Jacobian against differences."""

from itertools import product
from math import factorial
from time import process_time

import numpy as np
import pytest

from slalom.surrogates.slalom import shapley
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.shapley import Game, shapley_jacobian, shapley_values


def game_of(model, counts):
    weights, anchor_weight = model.weights()
    return Game(weights, model.values, counts, anchor_weight, float(model.anchor_values()))


def enumerated(model, features):
    """Shapley values of every unit by the definition."""
    n = len(features)
    masks = np.array(list(product([0, 1], repeat=n)), dtype=float)
    score = dict(zip(map(tuple, masks), model.expand(features).predict(masks), strict=True))
    values = np.zeros(n)
    for mask in masks:
        for unit in np.flatnonzero(mask == 0):
            size = int(mask.sum())
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            joined = mask.copy()
            joined[unit] = 1
            values[unit] += weight * (score[tuple(joined)] - score[tuple(mask)])
    return values


@pytest.mark.parametrize("anchor", [Anchor(0.7, 0.3), Anchor(-2.0, -6.0), None])
@pytest.mark.parametrize("seed", range(3))
def test_equals_enumeration(anchor, seed):
    rng = np.random.default_rng(seed)
    model = SlalomModel(2 * rng.normal(size=7), 2 * rng.normal(size=7), anchor)
    counts = np.array([2.0, 1, 1, 3, 1, 1, 1])
    features = np.repeat(np.arange(7), counts.astype(int)).astype(np.int32)
    found = shapley_values(game_of(model, counts))[features]
    np.testing.assert_allclose(found, enumerated(model, features), atol=1e-8)


MANY = shapley.Grid(0.2, 40.0)  # nodes
DOCUMENTS = [(120, 2.0, -3.0), (90, 0.5, 4.0), (40, 1.0, 12.0), (60, 4.0, -9.0), (1, 0.0, 3.0)]


def document(n_features, spread, loudness):
    """A game with units of which some occur more than once."""
    rng = np.random.default_rng(4)
    values, importances = rng.normal(size=n_features), spread * rng.normal(size=n_features)
    counts = rng.geometric(0.7, size=n_features).astype(float)
    return game_of(SlalomModel(values, importances, Anchor(0.5, loudness)), counts)


@pytest.mark.parametrize("drawn", DOCUMENTS, ids=str)
def test_more_nodes_tell_nothing_new(drawn, monkeypatch):
    game = document(*drawn)
    found = shapley_values(game)
    monkeypatch.setattr(shapley, "FINE", MANY)
    expected = shapley_values(game)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-10 * np.abs(expected).max())


@pytest.mark.parametrize("drawn", DOCUMENTS, ids=str)
def test_standard_errors_do_with_few_nodes(drawn, monkeypatch):
    game = document(*drawn)
    found = np.hstack(shapley_jacobian(game))
    monkeypatch.setattr(shapley, "COARSE", MANY)
    expected = np.hstack(shapley_jacobian(game))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    unsure = np.random.default_rng(5).normal(size=(found.shape[1], 2 * found.shape[1]))
    errors, exact = (np.linalg.norm(jacobian @ unsure, axis=1) for jacobian in (found, expected))
    np.testing.assert_allclose(errors, exact, rtol=1e-3)


def test_nothing_is_asked_of_nothing():
    game = Game(np.ones(3), np.ones(3), np.zeros(3), 1.0, 0.5)
    assert np.isfinite(shapley_values(game)).all()
    assert all(np.isfinite(part).all() for part in shapley_jacobian(game))


def test_shares_add_up_to_what_the_text_adds_and_500_units_take_half_a_second():
    rng = np.random.default_rng(0)
    model = SlalomModel(rng.normal(size=500), rng.normal(size=500), Anchor(0.5, 1.0))
    counts = np.ones(500)
    start = process_time()
    shares = shapley_values(game_of(model, counts))
    seconds = process_time() - start
    assert shares.sum() == pytest.approx(model.predict(counts[None])[0] - 0.5, abs=1e-9)
    assert seconds < 0.5


def test_jacobian_is_the_derivative(monkeypatch):
    monkeypatch.setattr(shapley, "COARSE", shapley.FINE)
    rng = np.random.default_rng(1)
    counts = np.array([1.0, 2, 1, 1])
    parameters, anchor = rng.normal(size=8), Anchor(*rng.normal(size=2))

    def game(theta):
        return game_of(SlalomModel(theta[:4], theta[4:], anchor), counts)

    steps = 1e-5 * np.eye(8)
    differences = [
        (shapley_values(game(parameters + h)) - shapley_values(game(parameters - h))) / 2e-5
        for h in steps
    ]
    found = np.hstack(shapley_jacobian(game(parameters)))
    np.testing.assert_allclose(found, np.transpose(differences), atol=1e-6)
