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
    score = dict(zip(map(tuple, masks), model.spread(features).predict(masks), strict=True))
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


def test_fewer_nodes_than_half_the_units_lose_nothing(monkeypatch):
    rng = np.random.default_rng(4)
    model = SlalomModel(rng.normal(size=120), 2 * rng.normal(size=120), Anchor(0.5, -3.0))
    game = game_of(model, np.ones(120))
    found = shapley_values(game)
    monkeypatch.setattr(shapley, "NODES_PER_ROOT", 100.0)
    np.testing.assert_allclose(found, shapley_values(game), rtol=1e-10, atol=1e-12)


def test_shares_add_up_to_what_the_text_adds_and_500_units_take_half_a_second():
    rng = np.random.default_rng(0)
    model = SlalomModel(rng.normal(size=500), rng.normal(size=500), Anchor(0.5, 1.0))
    counts = np.ones(500)
    start = process_time()
    shares = shapley_values(game_of(model, counts))
    seconds = process_time() - start
    assert shares.sum() == pytest.approx(model.predict(counts[None])[0] - 0.5, abs=1e-9)
    assert seconds < 0.5


def test_jacobian_is_the_derivative():
    rng = np.random.default_rng(1)
    counts = np.array([1.0, 2, 1, 1])
    parameters = rng.normal(size=10)

    def shares(theta):
        model = SlalomModel(theta[:4], theta[5:9], Anchor(theta[4], theta[9]))
        return shapley_values(game_of(model, counts))

    steps = 1e-5 * np.eye(10)
    differences = [(shares(parameters + h) - shares(parameters - h)) / 2e-5 for h in steps]
    model = SlalomModel(parameters[:4], parameters[5:9], Anchor(parameters[4], parameters[9]))
    np.testing.assert_allclose(
        shapley_jacobian(game_of(model, counts)), np.transpose(differences), atol=1e-6
    )
