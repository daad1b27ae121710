"""Orders of removal and insertion against the best of all orders."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from slalom.errors import InputError
from slalom.surrogates.slalom.model import Anchor, LengthCurve, SlalomModel
from slalom.surrogates.slalom.orders import insertion_order, removal_order


def model_of(seed, n_units=6, anchored=True):
    rng = np.random.default_rng(seed)
    anchor = Anchor(float(rng.normal()), float(rng.normal())) if anchored else None
    return SlalomModel(2 * rng.normal(size=n_units), rng.normal(size=n_units), anchor)


def mean_kept(model, order):
    """The mean of F as the units go in this order, from one gone to one left."""
    n_units = len(order)
    ranks = np.argsort(order)
    kept = (ranks >= np.arange(1, n_units)[:, None]).astype(float)
    return model.predict(kept).mean()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("anchored", [True, False])
def test_removal_is_nearly_the_best_of_all_orders(seed, anchored):
    model = model_of(seed, anchored=anchored)
    all_orders = [mean_kept(model, np.array(order)) for order in permutations(range(6))]
    found = mean_kept(model, removal_order(model))
    assert found - min(all_orders) <= 0.05 * (max(all_orders) - min(all_orders))


@pytest.mark.parametrize("seed", range(4))
def test_insertion_is_removal_seen_from_the_other_side(seed):
    model = model_of(seed)
    turned = SlalomModel(
        -model.values, model.importances, Anchor(-model.anchor.value, model.anchor.importance)
    )
    inserted = [-mean_kept(turned, order[::-1]) for order in permutations(range(6))]
    found = mean_kept(model, insertion_order(model)[::-1])
    assert found >= min(inserted)
    assert max(inserted) - found <= 0.05 * (max(inserted) - min(inserted))


def test_it_beats_every_single_score():
    model = model_of(3, n_units=30)
    at = np.ones(30)
    best = mean_kept(model, removal_order(model))
    weights, _ = model.weights()
    score = model.predict(at[None])[0]
    for ranking in (model.values, weights * model.values, weights * (model.values - score)):
        assert best <= mean_kept(model, np.argsort(-ranking)) + 1e-12


def test_one_loud_word_does_not_hide_the_order_of_the_rest():
    """Levels over all values would be far apart where F moves."""
    values = np.array([400.0, 0.5, -0.3, 0.2, -0.1, 0.9])
    model = SlalomModel(values, np.array([-7.0, 1.0, 2.0, -1.0, 0.5, -2.0]), Anchor(0.1, 4.0))
    all_orders = [mean_kept(model, np.array(order)) for order in permutations(range(6))]
    found = mean_kept(model, removal_order(model))
    assert found - min(all_orders) <= 0.01 * (max(all_orders) - min(all_orders))


@pytest.mark.parametrize("seed", range(8))
def test_with_a_length_curve_too(seed):
    rng = np.random.default_rng(seed)
    curve = LengthCurve(np.array([1.0, 3.0, 6.0]), rng.normal(size=3))
    model = replace(model_of(seed), length=curve)
    kept = [mean_kept(model, np.array(order)) for order in permutations(range(6))]
    reach = max(kept) - min(kept)
    assert mean_kept(model, removal_order(model)) - min(kept) <= 0.1 * reach
    assert max(kept) - mean_kept(model, insertion_order(model)[::-1]) <= 0.1 * reach


def test_one_class_only():
    model = SlalomModel(np.zeros((3, 2)), np.zeros(3), None)
    with pytest.raises(InputError, match="one class"):
        removal_order(model)
